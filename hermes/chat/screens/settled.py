"""The main message of a decided ask: the question, the answer, and its delivery or outcome. Pure; without buttons."""

from collections.abc import Sequence
from typing import Final

from hermes.chat.screens.permission import word_on
from hermes.chat.screens.question_page import title
from hermes.chat.screens.review import answer_list
from hermes.chat.screens.screen import Caps, Look, agent, all_in_words, clock, code, decided, project, subject
from hermes.chat.screens.side_messages import expired, out_of_reach
from hermes.chat.screens.text import Line, Span, dotted, line, phrase, plain
from hermes.model.answer import Outcome
from hermes.model.entry import Entry

_BRIEF: Final = 60


def after(entry: Entry, look: Look, caps: Caps) -> list[Line]:
    """Return the question, the answer, and its delivery or outcome."""
    several = len(entry.ask.questions) > 1 and _has_answers(entry)
    above = answer_list(entry, caps, "no answer") if several else title(entry, caps)
    at_desk = entry.state.outcome is not None and entry.state.outcome.kind == "answered_at_desk"
    answer = Span("" if several else (all_in_words if at_desk else decided)(entry, caps.label), "bold")
    match entry.state.phase:
        case "sending":
            return [*above, line(*_saved(entry, look, answer), " ", code(entry))]
        case _:
            return [*above, _settled(entry, look, answer)]


def in_brief(entry: Entry) -> str:
    """Return the name and the project of an ask in one line of plain text, for the terminal of `hermes listen`."""
    named = "".join(span.text for span in subject(entry.ask))
    where = project(entry.ask.source).text
    return plain(f"{named} ({where})" if where else named)


def end_in_brief(entry: Entry) -> str:
    """Return the name of a settled ask and how it ended, as `in_brief`."""
    outcome = entry.state.outcome or Outcome("gone", entry.asked_s)
    if outcome.kind == "expired":
        said = "⌛ Nobody answered in time"
    else:
        at_desk = outcome.kind == "answered_at_desk"
        answer = Span((all_in_words if at_desk else decided)(entry, _BRIEF))
        said = "".join(piece if isinstance(piece, str) else piece.text for piece in _ending(entry, outcome, answer))
    return f"{in_brief(entry)}: {plain(said)}"


def _has_answers(entry: Entry) -> bool:
    """Tell whether there are answers to list: not after a stop or a skip, nor if the ask was dismissed or is gone."""
    outcome, decision = entry.state.outcome, entry.state.decision
    if outcome and outcome.kind in ("rejected_at_desk", "gone"):
        return False
    return bool(outcome and outcome.kind == "answered_at_desk") or bool(decision and decision.kind == "answer")


def _saved(entry: Entry, look: Look, answer: Span) -> Sequence[str | Span]:
    decision = entry.state.decision
    if decision is not None and decision.by is None:
        return expired(entry, look)
    saved = "" if entry.ask.permission is not None else " saved"
    what: tuple[str | Span, ...] = ("💾 ", answer, saved) if answer.text else ("💾 Saved",)
    if not entry.is_out_of_reach:
        return (*what, ", being delivered.")
    if entry.ask.permission is not None or (decision is not None and decision.kind != "answer"):
        gets = "it is told"
    else:
        gets = "it gets your answers" if not answer.text else "it gets your answer"
    return (*what, *out_of_reach(entry, gets))


def _settled(entry: Entry, look: Look, answer: Span) -> Line:
    outcome = entry.state.outcome or Outcome("gone", entry.asked_s)
    decision = entry.state.decision
    timed = decision is not None and decision.by is None
    if outcome.kind == "expired" or (timed and outcome.kind in ("answered", "rejected", "skipped")):
        return line(*expired(entry, look), " · ", *_tail(entry, outcome, []))
    if outcome.kind == "gone" and outcome.reason == "ambiguous":
        return line(_AMBIGUOUS, " ", code(entry))
    who = phrase(decision.by.name, 40) if decision and decision.by and look.group else Span("")
    told = who if outcome.kind in ("answered", "rejected", "skipped") else Span("")
    time = Span(clock(outcome.at_s, look, near_s=entry.asked_s))
    return line(*_ending(entry, outcome, answer), " · ", *_tail(entry, outcome, [told, time]))


def _tail(entry: Entry, outcome: Outcome, pieces: Sequence[Span]) -> Line:
    works = Span("the agent is working again" if _works(entry, outcome) else "")
    return dotted([*pieces, works, code(entry)])


def _works(entry: Entry, outcome: Outcome) -> bool:
    """Tell whether the agent continued after this outcome. If the outcome stopped it, later work is another turn."""
    decision = entry.state.decision
    refused = decision is not None and decision.kind == "reject" and outcome.kind in ("rejected", "expired")
    ended = outcome.kind in ("rejected_at_desk", "gone")
    return entry.state.working and not ((refused or ended) and entry.ask.capabilities.reject_stops)


_AMBIGUOUS: Final = "Its questions look the same to me, so I can't tell which is which. Please answer on the computer."


def _answered_elsewhere(entry: Entry, outcome: Outcome, answer: Span) -> Sequence[str | Span]:
    by_timer = outcome.reason == "timer"
    if by_timer and not outcome.has_answers:
        return "⌛ ", agent(entry.ask), " went on without an answer"
    who = ("⌛ The timer of ", agent(entry.ask), " decided") if by_timer else ("🖥 Answered on the computer",)
    return (*who, ": " if answer.text else "", answer)


def _ending(entry: Entry, outcome: Outcome, answer: Span) -> Sequence[str | Span]:
    match outcome.kind:
        case _ if entry.ask.permission is not None and outcome.kind != "gone":
            return (word_on(entry),)
        case "answered":
            return ("✅ ", answer) if answer.text else ("✅ Answered",)
        case "rejected":
            return ("⏹ Stopped",) if entry.ask.capabilities.reject_stops else ("✋ Refused",)
        case "skipped":
            return ("⏭ Skipped, it decides by itself",)
        case "answered_at_desk":
            return _answered_elsewhere(entry, outcome, answer)
        case "rejected_at_desk":
            return ("🖥 Dismissed on the computer",)
        case _ if outcome.reason == "swept":
            return ("⌛ ", agent(entry.ask), " gave up waiting and ended its turn")
        case _:
            is_removed = outcome.reason == "removed"
            return ("Its machine was removed from Hermes" if is_removed else "The agent no longer needs this",)
