"""Which open ask a written message belongs to. Pure; the order of the rules is the whole of it.

 1. a further part of a text that is being joined;
 2. a reply to a message of an ask, known by its id or by the short code in its text (a copy);
 3. the next plain text after ✏️;
 4. with exactly one ask open: a text that is exactly a label or its number is that option,
    any other is offered as an answer by a button, never taken by itself;
 5. everything else gets a word about how to answer, or nothing where people talk among themselves (groups).

A tap needs no rule: its button names the ask.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from hermes.dialog import open_to_people, option_named
from hermes.model import Texted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.model import Entry, Text, TextHow

_CODE: Final = re.compile(r"#([a-z][0-9a-z]{1,7})\b")

TellKind = Literal["no_words", "two_open", "none_open", "how_to_answer", "settled", "no_such_option"]


@dataclass(frozen=True, slots=True)
class ToAsk:
    """The text is an event of this entry's dialog."""

    entry_id: str
    event: Texted


@dataclass(frozen=True, slots=True)
class Tell:
    """The text changes nothing; the person gets a short word. `entry_ids` are the asks it speaks of."""

    kind: TellKind
    entry_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ignore:
    """Nothing to do and nothing to say: seen before, or not meant for Hermes."""


Destination = ToAsk | Tell | Ignore


def route(text: Text, entries: Sequence[Entry]) -> Destination:
    """Return where `text` belongs among `entries` (all that are not closed yet, in the order asked)."""
    here = [entry for entry in entries if entry.phone.chat_id == text.chat_id]
    if any(text.update_id in entry.state.seen for entry in entries):
        return Ignore()
    target = _replied_to(text, here)
    if text.text is None or not text.text.strip():
        return Tell("no_words") if target or not text.group else Ignore()
    for entry in here:
        joining = entry.state.joining
        if joining and joining.user.id == text.user.id and (text.reply_to is None or entry is target):
            return _to(entry, text, "part")
    if target is not None:
        return _to(target, text, "reply")
    if text.reply_to is not None and _CODE.search(_last_line(text.reply_text)):
        return Tell("settled")
    return _plain(text, here)


def _plain(text: Text, here: Sequence[Entry]) -> Destination:
    words = text.text or ""
    armed = [entry for entry in here if _armed_at(entry, text.user.id) is not None]
    if armed:
        return _to(max(armed, key=lambda entry: _armed_at(entry, text.user.id) or 0.0), text, "armed")
    if text.group and text.reply_to is not None:
        return Ignore()
    if words.startswith("/"):
        return Tell("how_to_answer")
    open_ones = [entry for entry in here if open_to_people(entry.ask, entry.state)]
    # A message can be on the phone before the answer to its sending has come: then it is the one that is meant.
    candidates = [entry for entry in open_ones if entry.phone.message_id is not None] or open_ones
    if len(candidates) == 1:
        return _alone(text, candidates[0])
    if text.group:
        return Ignore()
    return Tell("two_open" if candidates else "none_open", tuple(entry.id for entry in candidates))


def _alone(text: Text, entry: Entry) -> Destination:
    page = entry.state.page
    if page >= len(entry.ask.questions):
        return Ignore() if text.group else Tell("how_to_answer", (entry.id,))
    question = entry.ask.questions[page]
    option = option_named(question, text.text or "")
    if option is not None:
        return _to(entry, text, "label", option)
    if text.group:
        return Ignore()
    return _to(entry, text, "offered") if question.custom else Tell("no_such_option", (entry.id,))


def _replied_to(text: Text, here: Sequence[Entry]) -> Entry | None:
    if text.reply_to is None:
        return None
    for entry in here:
        phone = entry.phone
        if text.reply_to in (phone.message_id, *phone.copies, *(side.message_id for side in phone.sides)):
            return entry
    code = _CODE.search(_last_line(text.reply_text))
    return next((entry for entry in here if code and entry.code == code[1]), None)


def _last_line(shown: str) -> str:
    """Only Hermes' own last line names an ask: what stands above it was written by an agent."""
    return shown.rstrip().rpartition("\n")[2]


def _armed_at(entry: Entry, user_id: int) -> float | None:
    armed = entry.state.armed
    return armed.at_s if armed is not None and armed.user_id == user_id and entry.state.phase == "open" else None


def _to(entry: Entry, text: Text, how: TextHow, option: int | None = None) -> ToAsk:
    event = Texted(text.update_id, text.at_s, text.user, text.message_id, text.text or "", how, option)
    return ToAsk(entry.id, event)
