"""What every message is made of: the screen as a value, and the phrases that several screens share. Pure.

Texts are first drawn generously; where 4096 units do not hold them, the pieces that matter least are cut
first (`Caps`): the agent's last words, then descriptions, then the rest.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice
from typing import Final

from hermes.chat.screens.buttons import LIMITS, Rows, shown_label
from hermes.chat.screens.text import Entity, Line, Mark, Span, cut, dotted, fits, lay, line, one_line, phrase
from hermes.core.dialog import bare_label
from hermes.model.answer import Answer
from hermes.model.ask import Ask, OnExpiry, Question
from hermes.model.entry import Entry


@dataclass(frozen=True, slots=True)
class Look:
    """What the screens depend on besides the entry.

    `tz` is None for the machine's own zone, `remind_s` the time to the first reminder (each further one comes
    after twice as long), `on_expiry` what happens when nobody answers, `permission_expiry` that of permissions.
    """

    tz: tzinfo | None
    group: bool
    context_chars: int
    on_expiry: OnExpiry = "reject"
    remind_s: float | None = None
    permission_expiry: OnExpiry = "reject"

    def rule(self, ask: Ask) -> OnExpiry:
        """Return what happens to this ask when nobody answers."""
        rule = ask.on_expiry or (self.on_expiry if ask.permission is None else self.permission_expiry)
        return "reject" if rule == "keep" and not ask.capabilities.desk_stays_open else rule


@dataclass(frozen=True, slots=True)
class Screen:
    """One message as it is to stand on the phone."""

    text: str
    entities: tuple[Entity, ...] = ()
    rows: Rows = ()
    force_reply: bool = False

    @property
    def digest(self) -> str:
        """A short name of exactly this screen: equal where nothing would change on the phone."""
        seen = repr((self.text, self.entities, self.rows, self.force_reply))
        return hashlib.sha256(seen.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class SideScreen:
    """A message beside the main one, and how it is to be sent.

    `ring`: with a sound. `lasting`: it stays when it is no longer due; any other is deleted then. `fresh`: a
    change is a new message, not an edit. `reply`: it replies to the main message. `document`: it is a file with this
    name and content, and the screen's text stands below it.
    """

    screen: Screen
    ring: bool = False
    lasting: bool = False
    fresh: bool = False
    reply: bool = True
    document: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Caps:
    """How much of each foreign text is shown, in UTF-16 units."""

    question: int
    label: int
    description: int
    context: int
    listed: int = LIMITS.review  # answers listed one a line


# The last one fits whatever comes: 30 lines of 24 + 48 units, or 24 options of 48, besides Hermes' own words.
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
    """Return the screen of the most generous lines that one message holds."""
    drafts = (build(caps) for caps in _LADDER)
    lines = next((draft for draft in drafts if fits(draft)), None) or build(_LADDER[-1])
    text, entities = lay(lines)
    return Screen(text, entities, rows, force_reply)


def note(*pieces: str | Span, rows: Rows = (), force_reply: bool = False) -> Screen:
    """Return the screen of one short line."""
    return draw(lambda _: [line(*pieces)], rows, force_reply=force_reply)


# --- what things are called -----------------------------------------------------------------------


def header(ask: Ask, index: int) -> str:
    """Return the raw name of a question: its header, else the beginning of its text, else its number."""
    question = ask.questions[index]
    several = len(ask.questions) > 1
    said = one_line(question.header[:_LOOKED_AT]) or one_line(question.text[:_LOOKED_AT])
    return said or (f"Question {index + 1}" if several else "Question")


def has_header(question: Question) -> bool:
    """Tell whether the header says something that the question's text does not."""
    return one_line(question.header[:_LOOKED_AT]) not in ("", one_line(question.text[:_LOOKED_AT]))


def name(ask: Ask, index: int, limit: int = _NAME, mark: Mark = "bold") -> Span:
    """Return the name of a question as a sentence says it."""
    return phrase(header(ask, index), limit, mark)


def subject(ask: Ask) -> Line:
    """Return what a sentence calls the whole ask."""
    if not ask.questions:
        return line(Span("Go on?", "bold"))
    more = len(ask.questions) - 1
    return line(name(ask, 0), f" and {more} more" if more else "")


def code(entry: Entry) -> Span:
    """Return the short code that lets a reply be recognised."""
    return Span(f"#{entry.code}")


def agent(ask: Ask) -> Span:
    """Return who asks, and where: "OpenCode on laptop"."""
    who = phrase(ask.capabilities.agent_name, _NAME, empty="The agent").text
    where = phrase(ask.source.host or ask.source.machine, _NAME).text
    return Span(f"{who} on {where}" if where else who)


def session(ask: Ask) -> Span:
    """Return the session's title; a subagent's after that of the session that started it."""
    own = phrase(ask.source.session_title, _TITLE).text
    root = phrase(ask.source.root_title, _TITLE).text
    return Span(f"{root} › {own}" if root and own and root != own else own or root)


def project(ask: Ask) -> Span:
    """Return the last part of the session's directory."""
    path = ask.source.directory.replace("\\", "/").rstrip("/")
    return phrase(path.rpartition("/")[2] or ask.source.directory, _NAME)


def origin(entry: Entry, look: Look) -> Line:
    """Return the line that says where an ask comes from and how long it waits."""
    until_s = entry.timing.until_s
    waits = "" if until_s is None else f"waits until {clock(until_s, look, near_s=entry.asked_s)}"
    ask = entry.ask
    return dotted([project(ask), session(ask), agent(ask), Span(waits), code(entry)])


# --- time -----------------------------------------------------------------------------------------

_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_SAME_DAY: Final = timedelta(hours=12)
_SAME_WEEK: Final = timedelta(days=6)


def clock(at_s: float, look: Look, *, near_s: float) -> str:
    """Return the time of day, with the day where it is far from `near_s`, the moment the reader thinks of."""
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
    """Return a length of time as one says it: "20 min", "1 h 30 min", "2 days"."""
    minutes = max(1, round(seconds / _MINUTE_S))
    hours, rest = divmod(minutes, _HOUR_MIN)
    if hours >= 2 * _DAY_H:
        return f"{hours // _DAY_H} days"
    return " ".join(part for part in (f"{hours} h" if hours else "", f"{rest} min" if rest else "") if part)


# --- answers in words -----------------------------------------------------------------------------


def quoted(text: str, limit: int) -> str:
    """Return what a person wrote, in quotation marks."""
    return f"“{phrase(text, limit, empty='…').text}”"


def chosen(question: Question, answer: Answer, limit: int) -> str:
    """Return the answer to one question in words, "" for none."""
    said, room = [], limit
    for pick in answer.picks:
        if room > 0 and pick < len(question.options):
            said.append(phrase(shown_label(question, pick), limit).text)
            room -= len(said[-1])
    if answer.text is not None:
        said.append(quoted(answer.text, limit))
    return cut(", ".join(said), limit + len("“”"))


def answer_in_words(entry: Entry, index: int, limit: int) -> str:
    """Return the answer to one question, "" for none: as given at the desk, decided, or so far."""
    state = entry.state
    if state.outcome and state.outcome.kind == "answered_at_desk":
        desk = state.outcome.answers
        told = (bare_label(label) for label in islice(desk[index], limit)) if index < len(desk) else ()
        return phrase(", ".join(told), limit).text
    given = state.decision.answers if state.decision else state.answers
    return chosen(entry.ask.questions[index], given[index], limit) if index < len(given) else ""


def all_in_words(entry: Entry, limit: int) -> str:
    """Return all answers in one line."""
    said, room = [], limit
    for index in range(len(entry.ask.questions)):
        if room >= 0 and (words := answer_in_words(entry, index, limit)):
            said.append(words)
            room -= len(words)
    return cut(" · ".join(said), limit) or "no answer"


def _word_on_deed(entry: Entry, limit: int) -> str:
    """Return what was decided about a permission."""
    decision = entry.state.decision
    why = decision.answers[0].text if decision is not None and decision.answers else None
    if decision is None or decision.kind == "reject":
        return "Refused"
    if decision.kind == "always":
        return "Always allowed"
    return "Allowed once" if why is None else f"Refused: {quoted(why, limit)}"


def decided(entry: Entry, limit: int) -> str:
    """Return what was decided, in a word or two: "SQLite", "Blue · S, L", "Stop", "Skip"."""
    decision = entry.state.decision
    kind = decision.kind if decision else "answer"
    if entry.ask.permission is not None:
        return _word_on_deed(entry, limit)
    if kind == "reject":
        return "Stop" if entry.ask.capabilities.reject_stops else "Refusal"
    if kind == "skip":
        return "Skip"
    if not entry.ask.questions:
        return "Go on"
    return all_in_words(replace(entry, state=replace(entry.state, outcome=None)), limit)
