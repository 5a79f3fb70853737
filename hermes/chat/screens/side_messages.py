"""The side messages of an entry (all but its main message): which ones should exist, and their texts. Pure.

`posting` deletes a side message from the phone if `sides` no longer returns it.
"""

from dataclasses import replace
from typing import Final

from hermes.chat.screens.buttons import LIMITS, Row, Rows, in_rows, press
from hermes.chat.screens.permission import file_name, whole
from hermes.chat.screens.screen import (
    Look,
    Screen,
    SideScreen,
    agent,
    all_in_words,
    clock,
    code,
    computer,
    decided,
    lasting,
    name,
    note,
    session,
    subject,
)
from hermes.chat.screens.text import Span, defused, one_line, phrase, shortened
from hermes.core.answers import option_named
from hermes.core.dialog import step
from hermes.core.ends import is_elsewhere, is_refused
from hermes.model.actions import NO_LIMIT, AnswerLate, Arm, AskTwice, Back, Confirmed, KeepWaiting, TakeOffer
from hermes.model.answer import Decision
from hermes.model.ask import Permission
from hermes.model.entry import Entry, SideKind
from hermes.model.events import Expired
from hermes.model.state import Offer

_HOUR_S: Final = 3600
_ANSWER: Final = 300
_NAME: Final = 40
_UNHEARD: Final = "The agent only hears that the command could not be run, not why."
_ENDS: Final = " If it has asked for something else, too, its turn may end."
"""A refusal refuses all open requests of its session, and the others without the reason."""
_AGAIN: Final = "Please answer again. "


def sides(entry: Entry, look: Look) -> dict[SideKind, SideScreen]:
    """Return the side messages that should be on the phone now."""
    if entry.state.phase == "open":
        return _beside_open(entry, look) if entry.ask.answerable else {}
    found = _beside_settled(entry, look) if entry.state.phase == "settled" else {}
    if entry.state.offer and not _says_the_same(entry, entry.state.offer):
        found["offer"] = _unused(entry, entry.state.offer)
    return found


def _beside_open(entry: Entry, look: Look) -> dict[SideKind, SideScreen]:
    found: dict[SideKind, SideScreen] = {}
    if entry.state.armed:
        found["typing"] = _typing(entry, entry.state.armed.question, look)
    if entry.state.offer:
        found["offer"] = _offer(entry, entry.state.offer)
    if entry.state.declined:
        found["declined"] = _declined(entry)
    # A tap on "Stop now" starts the time again, but the message stays for the second tap if there is an end.
    is_sure_asked = entry.state.confirm == "reject" and any(one.kind == "final_call" for one in entry.phone.sides)
    if entry.timing.called or (is_sure_asked and entry.timing.expires_at is not None):
        found["final_call"] = _final_call(entry, look)
    if entry.timing.reminded > 0:
        found["reminder"] = _reminder(entry, look)
    if entry.state.whole and entry.ask.permission is not None:
        found["whole"] = _whole(entry, entry.ask.permission)
    return found


def _beside_settled(entry: Entry, look: Look) -> dict[SideKind, SideScreen]:
    state, outcome = entry.state, entry.state.outcome
    if outcome is None:
        return {}
    if state.decision is None or state.decision.by is None:
        if outcome.reason == "swept":
            return {"expired": _given_up(entry)}
        if outcome.reason == "timer":
            return {"expired": _by_its_timer(entry)}
        return {} if is_elsewhere(outcome) else {"expired": _expired(entry, look)}
    if is_elsewhere(outcome):
        return {"too_late": _too_late(entry, look)}
    return {"delivered": _delivered(entry)} if entry.is_out_of_reach else {}


# --- while it is open -----------------------------------------------------------------------------


def _whole(entry: Entry, permission: Permission) -> SideScreen:
    """Return the message with the whole permission as a file, because the main message shows only a part."""
    how_much = "As much of it as is known. " if permission.partial else "All of it, as the agent wrote it. "
    said = note(how_much, code(entry))
    # The message of a file has no text that could be edited.
    return SideScreen(said, document=(file_name(permission), whole(permission)), fresh=True)


def _typing(entry: Entry, index: int, look: Look) -> SideScreen:
    named = name(entry.ask, index)
    if entry.ask.permission is not None:
        return _typing_why(entry, look)
    if look.group:
        # A message with a forced reply cannot be edited, so a change needs a new message.
        screen = note("Reply to this with your answer to ", named, ". ", code(entry), force_reply=True)
        return SideScreen(screen, fresh=True)
    rows = ((press(entry, "✏️ Cancel typing", Arm(index, on=False)),),)
    return SideScreen(note("Type your answer to ", named, " as your next message.", rows=rows))


def _typing_why(entry: Entry, look: Look) -> SideScreen:
    can = entry.ask.capabilities
    what = ("The agent gets it." if can.hears_reason else _UNHEARD) + (_ENDS if can.reject_stops else "")
    if look.group:
        return SideScreen(note(f"Reply to this with why not. {what} ", code(entry), force_reply=True), fresh=True)
    rows = ((press(entry, "✏️ Cancel typing", Arm(0, on=False)),),)
    return SideScreen(note(f"Write why not, as your next message. {what}", rows=rows))


def _offer_refusal(entry: Entry, offer: Offer) -> SideScreen:
    hears = entry.ask.capabilities.hears_reason
    words = shortened(one_line(offer.text), LIMITS.columns - len("Refuse, say “”"))
    use = press(entry, f"Refuse, say “{words}”" if hears else "Refuse", TakeOffer(offer.message_id, on=True))
    no = press(entry, "No", TakeOffer(offer.message_id, on=False))
    why = ", and tell the agent that?" if hears else f" for that reason? {_UNHEARD}"
    asked = note("Refuse ", name(entry.ask, 0), f"{why} To allow it, tap its button.")
    return SideScreen(replace(asked, rows=((use,), (no,))))


def _offer(entry: Entry, offer: Offer) -> SideScreen:
    if entry.ask.permission is not None:
        return _offer_refusal(entry, offer)
    words = shortened(one_line(offer.text), LIMITS.columns - len("Use “”"))
    use = press(entry, f"Use “{words}”", TakeOffer(offer.message_id, on=True))
    no = press(entry, "No", TakeOffer(offer.message_id, on=False))
    asked = name(entry.ask, offer.question)  # without a header it is the question's text
    mark = "" if asked.text.endswith("?") else "?"
    return SideScreen(note("Is this your answer to ", asked, mark, rows=((use,), (no,))))


def _declined(entry: Entry) -> SideScreen:
    why = defused(shortened(one_line(entry.state.declined), _ANSWER))
    what: tuple[str | Span, ...] = (" did not take your answer to ", *subject(entry.ask), f": “{why}” ")
    return SideScreen(note("⚠️ ", agent(entry.ask), *what, _AGAIN, code(entry)), ring=True, fresh=True)


def _reminder(entry: Entry, look: Look) -> SideScreen:
    since = ""
    if look.remind_s:
        since = f", for {lasting(look.remind_s * (2**entry.timing.reminded - 1))}"
    elif entry.timing.posted_s is not None:
        since = f", since {clock(entry.timing.posted_s, look, near_s=entry.asked_s)}"
    said = note("Still waiting: ", *subject(entry.ask), f"{since}. ", code(entry))
    return SideScreen(said, ring=True, fresh=True)


def _final_call(entry: Entry, look: Look) -> SideScreen:
    answers = "the answer" if len(entry.ask.questions) == 1 else "the answers"
    lack = f"sent {answers} to" if any(entry.state.answers) else "answered"
    then = f"⏰ {_when(entry, look)} {_what_then(entry, look)}, because nobody {lack} "
    said = note(then, *subject(entry.ask), ". ", code(entry), rows=_last_chance(entry))
    return SideScreen(said, ring=True)


def out_of_date(entry: Entry) -> Screen:
    """Return what a message says that was to be deleted, and is too old for that."""
    return note("This message is out of date. ", code(entry))


def posted_again(entry: Entry) -> Screen:
    """Return what a message in a chat that was used before says, since its ask was posted in the one used now."""
    return note("This message is out of date. It was posted again, in the chat that I use now. ", code(entry))


def _when(entry: Entry, look: Look) -> str:
    """Return when the time ends: it stands still in quiet hours, and while the machine of the ask is away."""
    if entry.timing.away_at is not None:
        return f"Soon after {computer(entry.ask.source.host).text} is back"
    if entry.timing.until_s is None:
        return "After the quiet hours"
    return f"At {clock(entry.timing.until_s, look, near_s=entry.asked_s)}"


def _what_then(entry: Entry, look: Look) -> str:
    """Return what the end of the time will do. The dialog's own `step` decides it, so that the text is true."""
    state = replace(entry.state, joining=None)
    then = step(entry.ask, state, Expired(0.0, look.rule(entry.ask))).state
    who = phrase(entry.ask.capabilities.agent_name, _NAME, empty="the agent").text
    match then.decision:
        case Decision(kind="reject"):
            return f"the agent will be told {'to stop' if entry.ask.capabilities.reject_stops else 'no'}"
        case Decision(kind="skip"):
            return "the agent will be left to decide by itself"
        case Decision(kind="answer"):
            words = decided(replace(entry, state=then), _ANSWER)
            return f"{_given_by_time(entry)} ({words}) will be given"
        case _:
            return f"this will be left to the computer, where {who} keeps waiting"


def _last_chance(entry: Entry) -> Rows:
    stops = entry.ask.capabilities.reject_stops
    if entry.state.confirm == "reject":
        sure = press(entry, "Yes, stop" if stops else "Yes, refuse", Confirmed("reject"))
        return ((sure, press(entry, "Back", Back())),)
    wait = press(entry, "1 h more", KeepWaiting(_HOUR_S)), press(entry, "No limit", KeepWaiting(NO_LIMIT))
    now = press(entry, "Stop now" if stops else "Refuse now", AskTwice("reject"))
    row: Row = (*wait, now)
    return in_rows(row, len(row))


# --- when it is over ------------------------------------------------------------------------------


def expired(entry: Entry, look: Look) -> tuple[str | Span, ...]:
    """Return the end of the time to answer, for the main message; a message of its own says what followed.

    Until that message can be sent, because the agent cannot be reached, this says so.
    """
    decision = entry.state.decision
    said: tuple[str | Span, ...] = (f"⌛ Expired {_end(entry, look)}",)
    if decision is not None and decision.kind == "answer" and len(entry.ask.questions) == 1:
        whose = "chosen" if any(entry.state.answers) else "recommended"
        said = (*said, f" · {whose}: ", Span(decided(entry, _ANSWER), "bold"))
    if entry.state.phase == "sending" and entry.is_out_of_reach:
        gets = "it is told" if decision is None or decision.kind != "answer" else "it gets that answer"
        return (*said, *out_of_reach(entry, gets))
    return said


def out_of_reach(entry: Entry, gets: str) -> tuple[str | Span, ...]:
    """Return why an answer waits, and until when; `gets` says what the agent gets then."""
    if entry.state.away and entry.state.unknown:
        return (". ", agent(entry.ask), f" is unknown to this version of Hermes; {gets} once Hermes is upgraded.")
    return (". ", agent(entry.ask), f" can't be reached; {gets} as soon as it is back.")


def _end(entry: Entry, look: Look) -> str:
    decision, outcome = entry.state.decision, entry.state.outcome
    at_s = decision.at_s if decision else outcome.at_s if outcome else entry.asked_s
    return clock(entry.timing.until_s or at_s, look, near_s=entry.asked_s)


def _expired(entry: Entry, look: Look) -> SideScreen:
    by = f" by {_end(entry, look)}; "
    said = ("⌛ No answer to ", *subject(entry.ask), by, *_consequence(entry), ". ", code(entry))
    rows = ((press(entry, "✏️ Answer it now, as a message", AnswerLate()),),) if is_answerable_late(entry, look) else ()
    return _lasting(note(*said, rows=rows))


def _given_up(entry: Entry) -> SideScreen:
    """Return that the agent waits no more, although nobody had told it anything."""
    who = agent(entry.ask)
    return _lasting(note("⌛ ", who, " gave up waiting for an answer to ", *subject(entry.ask), ". ", code(entry)))


def _by_its_timer(entry: Entry) -> SideScreen:
    """Return that the agent's own timer has decided: an edit of the main message alone would make no sound."""
    who, outcome, is_one = agent(entry.ask), entry.state.outcome, len(entry.ask.questions) == 1
    what = ("⌛ No answer to " if is_one else "⌛ Not all answers to ", *subject(entry.ask), " in time; ")
    if outcome is None or not outcome.has_answers:
        return _lasting(note(*what, who, " went on without one. ", code(entry)))
    answer = Span(all_in_words(entry, _ANSWER) if is_one else "", "bold")
    colon = ": " if is_one else ""
    return _lasting(note(*what, "the timer of ", who, " decided", colon, answer, ". ", code(entry)))


def is_answerable_late(entry: Entry, look: Look) -> bool:
    """Tell whether a question that is over can still be answered, by a prompt for its session."""
    decision = entry.state.decision
    if decision is None or decision.kind == "release" or entry.ask.permission is not None:
        return False
    return bool(entry.ask.questions) and look.may_write(entry.ask.source)


def _consequence(entry: Entry) -> tuple[str | Span, ...]:
    match entry.state.decision:
        case None | Decision(kind="release"):
            return ("it can still be answered on the computer",)
        case Decision(kind="reject"):
            return ("the agent was told to stop" if entry.ask.capabilities.reject_stops else "the agent was told no",)
        case Decision(kind="skip"):
            return ("the agent was left to decide by itself",)
    if len(entry.ask.questions) > 1:
        return (f"{_given_by_time(entry)} were given",)
    return (f"{_given_by_time(entry)} was given: ", Span(decided(entry, _ANSWER), "bold"))


def _given_by_time(entry: Entry) -> str:
    """Name what the end of the time gives: what a person has chosen, and what is recommended for the rest."""
    answers = entry.state.answers
    kinds = ["chosen"] * any(answers) + ["recommended"] * (not answers or not all(answers))
    return f"the {' and '.join(kinds)} answer{'s' if len(entry.ask.questions) > 1 else ''}"


def _unused(entry: Entry, offer: Offer) -> SideScreen:
    words = defused(shortened(one_line(offer.text), _ANSWER))
    said = note(f"⚠️ Your text “{words}” was not used. ", code(entry))
    return SideScreen(said, ring=True, lasting=True, fresh=True)


def _says_the_same(entry: Entry, offer: Offer) -> bool:
    """Tell whether the answer is what the text says, too: the person has tapped that option, for example."""
    decision, question = entry.state.decision, entry.ask.questions[offer.question]
    if decision is None or not decision.answers:
        return False
    given = decision.answers[offer.question]
    return given.text == offer.text or option_named(question, offer.text) in given.picks


def _delivered(entry: Entry) -> SideScreen:
    where = session(entry.ask).text or agent(entry.ask).text
    answer = Span(decided(entry, _ANSWER), "bold")
    return _lasting(note("✅ Delivered to ", where, ": ", answer, " · ", code(entry)))


_TOO_LATE: Final = {
    "gone": "the agent had stopped waiting.",
    "answered_at_desk": "it had already been answered on the computer.",
    "rejected_at_desk": "it had already been dismissed on the computer.",
    "together": "your answer to another request had settled it, too.",
    "timer": "the agent's own timer had decided.",
    "removed": "its machine was removed from Hermes.",
}
_PERMISSION_TOO_LATE: Final = {
    "answered_at_desk": "it had already been allowed on the computer.",
    "rejected_at_desk": "it had already been refused on the computer.",
}


def _too_late(entry: Entry, look: Look) -> SideScreen:
    outcome = entry.state.outcome
    kind, reason = (outcome.kind, outcome.reason) if outcome else ("gone", "")
    why = _TOO_LATE.get(reason) or _TOO_LATE[kind]
    if entry.ask.permission is not None:
        why = _TOO_LATE.get(reason) or _PERMISSION_TOO_LATE.get(kind, why)
        return _lasting(note(f"Your {_permission_word(entry)} came too late: {why} ", code(entry)))
    answer = Span(decided(entry, _ANSWER), "bold")
    decision = entry.state.decision
    is_answer = decision is None or decision.kind == "answer"
    rows: Rows = ()
    if is_answer and kind == "gone" and reason != "removed" and is_answerable_late(entry, look):
        rows = ((press(entry, "Send it as a message", AnswerLate()),),)
    your = "Your answer " if is_answer else "Your "
    return _lasting(note(your, answer, f" came too late: {why} ", code(entry), rows=rows))


def _permission_word(entry: Entry) -> str:
    if is_refused(entry):
        return "refusal"
    decision = entry.state.decision
    return "“always”" if decision is not None and decision.kind == "always" else "“once”"


def _lasting(screen: Screen) -> SideScreen:
    return SideScreen(screen, ring=True, lasting=True)
