"""The screen of a message as a value, and the phrases that several screens share. Pure.

A screen is first drawn with long texts. If 4096 UTF-16 units do not hold it, the least important texts are cut first
(`Caps`): the agent's last words, then the descriptions, then the rest.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice
from typing import Final

from hermes.chat.screens.buttons import LIMITS, Rows, shown_label
from hermes.chat.screens.text import Entity, Line, Mark, Span, cut, dotted, fits, lay, line, one_line, phrase
from hermes.core.answers import bare_label
from hermes.core.prompt_routing import may_write
from hermes.model.answer import Answer
from hermes.model.ask import Ask, OnExpiry, Question, Source, folder_name
from hermes.model.entry import Entry
from hermes.model.prompt import PromptAbilities


@dataclass(frozen=True, slots=True)
class Look:
    """The settings that the screens depend on, in addition to the entry.

    `tz` is None for the machine's own zone. `group` is true if the chat is a group. `context_chars` limits the agent's
    last words. `remind_s` is the time to the first reminder; each later one comes after twice the time of the one
    before. `on_expiry` is the rule for asks that nobody answers, `permission_expiry` the rule for permissions.
    `prompted` are the agents that take prompts from this phone, with their abilities. `projects` are the projects that
    this phone may write to, () for all.
    """

    tz: tzinfo | None
    group: bool
    context_chars: int
    on_expiry: OnExpiry = "reject"
    remind_s: float | None = None
    permission_expiry: OnExpiry = "reject"
    prompted: Mapping[str, PromptAbilities] = field(default_factory=dict)
    projects: tuple[str, ...] = ()

    def may_write(self, source: Source) -> bool:
        """Tell whether this phone may send prompts to this session."""
        return may_write(source, self.prompted, self.projects)

    def rule(self, ask: Ask) -> OnExpiry:
        """Return the rule for this ask if nobody answers; "keep" is "reject" if its desk dialog does not stay open."""
        rule = ask.on_expiry or (self.on_expiry if ask.permission is None else self.permission_expiry)
        return "reject" if rule == "keep" and not ask.capabilities.desk_stays_open else rule


@dataclass(frozen=True, slots=True)
class Screen:
    """The complete content of one message on the phone."""

    text: str
    entities: tuple[Entity, ...] = ()
    rows: Rows = ()
    force_reply: bool = False

    @property
    def digest(self) -> str:
        """A short hash of the screen: if it is equal, an edit would change nothing on the phone."""
        seen = repr((self.text, self.entities, self.rows, self.force_reply))
        return hashlib.sha256(seen.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class SideScreen:
    """A side message, and how to send it.

    `ring`: it makes a sound outside quiet hours. `lasting`: it is only a record, so it is not sent again if an edit
    finds that it was deleted on the phone. `fresh`: a change is a new message, not an edit. `document`: it is a file
    with this name and content, and the screen's text stands below it.
    """

    screen: Screen
    ring: bool = False
    lasting: bool = False
    fresh: bool = False
    document: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Caps:
    """How many UTF-16 units of each text that Hermes did not write are shown, and how many answers are listed."""

    question: int
    label: int
    description: int
    context: int
    listed: int = LIMITS.review  # answers, one a line


# The last `Caps` fit every ask: 30 lines of 24 + 48 units, or 24 options of 48, plus Hermes' own words.
_LADDER: Final = (
    Caps(2600, 300, 400, 4000),
    Caps(2600, 300, 400, 600),
    Caps(2600, 300, 240, 200),
    Caps(2000, 240, 160, 200),
    Caps(1400, 120, 100, 120),
    Caps(800, 80, 60, 0),
    Caps(300, 48, 0, 0, 30),
)
HEADING: Final = 60
SHORT: Final = 100
_TITLE: Final = 60
_NAME: Final = 40
_LOOKED_AT: Final = 300


def draw(build: Callable[[Caps], Sequence[Line]], rows: Rows = (), *, force_reply: bool = False) -> Screen:
    """Return the screen with the longest texts that fit one message: `build` draws the lines for given `Caps`."""
    drafts = (build(caps) for caps in _LADDER)
    lines = next((draft for draft in drafts if fits(draft)), None) or build(_LADDER[-1])
    text, entities = lay(lines)
    return Screen(text, entities, tuple(row for row in rows if row), force_reply)


def note(*pieces: str | Span, rows: Rows = (), force_reply: bool = False) -> Screen:
    """Return the screen of one short line."""
    return draw(lambda _: [line(*pieces)], rows, force_reply=force_reply)


# --- names ----------------------------------------------------------------------------------------


def header(ask: Ask, index: int) -> str:
    """Return the name of a question, not yet defused: its header, else the beginning of its text, else its number."""
    question = ask.questions[index]
    several = len(ask.questions) > 1
    said = one_line(question.header[:_LOOKED_AT]) or one_line(question.text[:_LOOKED_AT])
    return said or (f"Question {index + 1}" if several else "Question")


def has_header(question: Question) -> bool:
    """Tell whether the question has a header that differs from its text."""
    return one_line(question.header[:_LOOKED_AT]) not in ("", one_line(question.text[:_LOOKED_AT]))


def name(ask: Ask, index: int, limit: int = _NAME, mark: Mark = "bold") -> Span:
    """Return the name of a question for a sentence, `limit` units at most."""
    return phrase(header(ask, index), limit, mark)


def subject(ask: Ask) -> Line:
    """Return the name of the whole ask for a sentence: its first question, and the number of the others."""
    if not ask.questions:
        return line(Span("Go on?", "bold"))
    more = len(ask.questions) - 1
    return line(name(ask, 0), f" and {more} more" if more else "")


def code(entry: Entry) -> Span:
    """Return the short code of the ask, by which Hermes recognises a reply to the message."""
    return Span(f"#{entry.code}")


def agent(ask: Ask) -> Span:
    """Return the agent and its machine, as in "OpenCode on laptop"."""
    return agent_at(ask.capabilities.agent_name, ask.source)


def agent_at(agent_name: str, source: Source) -> Span:
    """Return this agent and the machine of its session, as in "OpenCode on laptop"."""
    who = phrase(agent_name, _NAME, empty="The agent").text
    where = phrase(source.host or source.machine, _NAME).text
    return Span(f"{who} on {where}" if where else who)


def computer(machine: str) -> Span:
    """Return the name of a machine for a sentence."""
    return phrase(machine, _NAME, empty="the computer")


def session(ask: Ask) -> Span:
    """Return the session's title; for a subagent, "ROOT › OWN" with the title of its root session."""
    own = phrase(ask.source.session_title, _TITLE).text
    root = phrase(ask.source.root_title, _TITLE).text
    return Span(f"{root} › {own}" if root and own and root != own else own or root)


def project(source: Source) -> Span:
    """Return the last part of the session's directory."""
    return phrase(folder_name(source.directory) or source.directory, _NAME)


def origin(entry: Entry, look: Look) -> Line:
    """Return the line with the source of an ask, the time until which it waits, and its code."""
    ask = entry.ask
    return dotted([project(ask.source), session(ask), agent(ask), Span(_waits(entry, look)), code(entry)])


def _waits(entry: Entry, look: Look) -> str:
    until_s, can = entry.timing.until_s, entry.ask.capabilities
    if entry.timing.away_at is not None:
        return "away now; an answer goes there when it is back"
    given_up_s = entry.asked_s + can.gives_up_after_s
    if can.gives_up_after_s and entry.timing.posted_s is not None and (until_s is None or until_s > given_up_s):
        who = phrase(can.agent_name, _NAME, empty="the agent").text
        return f"{who} may give up at {clock(given_up_s, look, near_s=entry.asked_s)}"
    return "" if until_s is None else f"waits until {clock(until_s, look, near_s=entry.asked_s)}"


# --- time -----------------------------------------------------------------------------------------

_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_SAME_DAY: Final = timedelta(hours=12)
_SAME_WEEK: Final = timedelta(days=6)


def clock(at_s: float, look: Look, *, near_s: float) -> str:
    """Return the time of day, with the weekday or date if it is 12 h or more away from `near_s`.

    `near_s` (epoch seconds) is a time that the reader has in mind.
    """
    at = datetime.fromtimestamp(at_s, UTC).astimezone(look.tz)
    away = abs(timedelta(seconds=at_s - near_s))
    time = f"{at:%H:%M}"
    if away < _SAME_DAY:
        return time
    if away < _SAME_WEEK:
        return f"{_DAYS[at.weekday()]} {time}"
    return f"{at.day} {_MONTHS[at.month - 1]} {time}"


_MINUTE_S: Final = 60
_HOUR_MIN: Final = 60
_DAY_H: Final = 24


def lasting(seconds: float) -> str:
    """Return a length of time in words: "20 min", "1 h 30 min", "2 days"."""
    minutes = max(1, round(seconds / _MINUTE_S))
    hours, rest = divmod(minutes, _HOUR_MIN)
    if hours >= 2 * _DAY_H:
        return f"{hours // _DAY_H} days"
    return " ".join(part for part in (f"{hours} h" if hours else "", f"{rest} min" if rest else "") if part)


def span(seconds: float) -> str:
    """Return a length of time in words, in seconds if it is less than a minute: "20 s"."""
    return lasting(seconds) if round(seconds) >= _MINUTE_S else f"{max(0, round(seconds))} s"


# --- answers in words -----------------------------------------------------------------------------


def quoted(text: str, limit: int) -> str:
    """Return a person's text, cut to `limit` units, in quotation marks."""
    return f"“{phrase(text, limit, empty='…').text}”"


def chosen(question: Question, answer: Answer, limit: int) -> str:
    """Return the answer to one question in words, or "" if there is none."""
    said, room = [], limit
    for pick in answer.picks:
        if room > 0 and pick < len(question.options):
            said.append(phrase(shown_label(question, pick), limit).text)
            room -= len(said[-1])
    if answer.text is not None:
        said.append(quoted(answer.text, limit))
    return cut(", ".join(said), limit + len("“”"))


def answer_in_words(entry: Entry, index: int, limit: int) -> str:
    """Return the answer to one question, from the desk, else as decided, else as chosen so far; "" if there is none."""
    state = entry.state
    if state.outcome and state.outcome.kind == "answered_at_desk":
        desk = state.outcome.answers if isinstance(state.outcome.answers, tuple) else ()
        told = (bare_label(label) for label in islice(desk[index], limit)) if index < len(desk) else ()
        return phrase(", ".join(told), limit).text
    given = state.decision.answers if state.decision else state.answers
    return chosen(entry.ask.questions[index], given[index], limit) if index < len(given) else ""


def all_in_words(entry: Entry, limit: int) -> str:
    """Return all answers in one line, or "no answer"."""
    said, room = [], limit
    for index in range(len(entry.ask.questions)):
        if room >= 0 and (words := answer_in_words(entry, index, limit)):
            said.append(words)
            room -= len(words)
    return cut(" · ".join(said), limit) or "no answer"


def _word_on_permission(entry: Entry, limit: int) -> str:
    """Return the decision about a permission in words."""
    decision = entry.state.decision
    why = decision.answers[0].text if decision is not None and decision.answers else None
    if decision is None or decision.kind == "reject":
        return "Refused"
    if decision.kind == "always":
        return "Always allowed"
    return "Allowed once" if why is None else f"Refused: {quoted(why, limit)}"


def decided(entry: Entry, limit: int) -> str:
    """Return the decision in a few words: "SQLite", "Blue · S, L", "Stop", "Skip"."""
    decision = entry.state.decision
    kind = decision.kind if decision else "answer"
    if entry.ask.permission is not None:
        return _word_on_permission(entry, limit)
    if kind == "reject":
        return "Stop" if entry.ask.capabilities.reject_stops else "Refusal"
    if kind == "skip":
        return "Skip"
    if not entry.ask.questions:
        return "Go on"
    return all_in_words(replace(entry, state=replace(entry.state, outcome=None)), limit)
