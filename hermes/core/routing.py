"""Decide which ask a written message belongs to. Pure.

The first of these rules that fits decides:

 1. The text is a further part of a text that is being joined for an ask: it belongs to that ask.
 2. The text is a reply to a message of an ask: it belongs to that ask. The message is known by its id or, if our own
    bot wrote it (a copy), by the code in its last line. A reply to a message that asked for another answer, or
    another person, or "Is this your answer?", is offered by a button; so is any reply while a second tap is asked for.
 3. It is the next plain text after ✏️ in a private chat (in a group people reply to the message that ✏️ sends). A text
    that was only forwarded is offered by a button.
 4. Exactly one ask is open in a private chat: a button offers the text as the answer to it.
 5. Else the person is told how to answer. In a group only a reply to a message of our bot is told anything, because
    people there talk to each other.

In a topic, rules 3 and 4 are about the asks in that topic; if there are none, rule 4 is about those of the whole chat.
There rule 3 holds in a group, too.

A text belongs only to an ask that was on the phone when the text was written. Telegram's ids and dates of both messages
decide that, never our clock. A tap needs no rule: its button names the ask.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from hermes.core.answers import SPLIT_UNITS, open_to_people, option_named, utf16_units
from hermes.model.entry import Entry
from hermes.model.events import Text, Texted, TextHow
from hermes.model.state import Part

_CODE: Final = re.compile(r"#([a-z][0-9a-z]{1,7})\Z")
TYPING_S: Final = 120.0
"""So long a person may go on typing an answer to an ask that has ended meanwhile."""
PART_S: Final = 5.0
"""An app sends all parts of a split text at once: a text that is dated more than this after a part is another text."""

TellKind = Literal["no_words", "two_open", "none_open", "too_early", "how_to_answer", "settled", "no_such_option"]


@dataclass(frozen=True, slots=True)
class ToAsk:
    """The text is an event of this entry's dialog."""

    entry_id: str
    event: Texted


@dataclass(frozen=True, slots=True)
class Tell:
    """The text changes nothing, and the person gets a short message about the asks in `entry_ids`."""

    kind: TellKind
    entry_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ignore:
    """The text changes nothing, and the person gets no message: it was seen before, or is not meant for Hermes."""


Destination = ToAsk | Tell | Ignore


def route(text: Text, entries: Sequence[Entry]) -> Destination:
    """Return the destination of `text` among `entries` (all that are not closed yet, in the order asked)."""
    if any(text.update_id in entry.state.seen for entry in entries):
        return Ignore()
    here = [entry for entry in entries if entry.phone.chat_id == text.chat_id]
    target = _replied_to(text, here)
    if text.text is None or not text.text.strip():
        is_for_people = text.group and target is None and not text.reply_text
        return Ignore() if is_for_people else Tell("no_words", (target.id,) if target else ())
    for entry in here:
        if _is_part(text, entry, target):
            return _to(entry, text, "part")
    if target is not None:
        return _to(target, text, "reply" if _is_meant(text, target) else "offered")
    if replied_code(text):
        return Tell("settled")
    return _plain(text, here)


def may_be_late(text: Text, entry: Entry) -> bool:
    """Tell whether this text may be an answer to an ask that ended while it was typed, and not by this person."""
    outcome, decision = entry.state.outcome, entry.state.decision
    if outcome is None or text.at_s < outcome.at_s:
        return False
    written_s, posted_s = text.at_s, entry.timing.posted_s
    if posted_s is not None:  # Hermes may have read it long after; by Telegram's clock, it came so long after the ask
        written_s = min(written_s, posted_s + text.date_s - entry.phone.since_date_s)
    if written_s - outcome.at_s >= TYPING_S:
        return False
    return decision is None or decision.by is None or decision.by.id != text.user.id


def replied_code(text: Text) -> str:
    """Return the code of the ask to a message of which this text replies, "" if it replies to no such message."""
    code = None if text.reply_to is None else _CODE.search(_last_line(text.reply_text))
    return code[1] if code else ""


def _is_part(text: Text, entry: Entry, target: Entry | None) -> bool:
    """Tell whether `text` is the next part of the text that is being joined for this entry."""
    joining = entry.state.joining
    if joining is None or joining.user.id != text.user.id or (text.reply_to is not None and entry is not target):
        return False
    if text.is_forwarded and not joining.offered:
        return False
    return follows(text, joining.parts[-1])


def follows(text: Text, part: Part) -> bool:
    """Tell whether `text` may be the next part of a split text: it came soon, and only the last part is short."""
    is_near = text.message_id > part.message_id and text.date_s - part.date_s <= PART_S
    return is_near and utf16_units(part.text) >= SPLIT_UNITS


def _plain(text: Text, here: Sequence[Entry]) -> Destination:
    there = [entry for entry in here if entry.phone.thread_id == text.thread_id] if text.thread_id else here
    if text.group and text.reply_text:
        return Tell("how_to_answer" if _open_ones(here) else "none_open")
    if text.group and (not text.thread_id or text.reply_to is not None):
        return Ignore()
    armed = [entry for entry in there if _armed_at(entry, text.user.id) is not None and _was_shown(entry, text)]
    if armed and text.reply_to is None:  # a reply is about another message
        newest = max(armed, key=lambda entry: _armed_at(entry, text.user.id) or 0.0)
        return _to(newest, text, "offered" if text.is_forwarded else "armed")
    if text.group:
        return Ignore()
    if (text.text or "").startswith("/"):
        return Tell("how_to_answer")
    open_ones = _open_ones(there or here)
    candidates = [entry for entry in open_ones if _was_shown(entry, text)]
    if len(candidates) == 1:
        return _alone(text, candidates[0])
    if candidates:
        return Tell("two_open", tuple(entry.id for entry in candidates))
    return Tell("too_early" if open_ones else "none_open")


def _open_ones(entries: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in entries if open_to_people(entry.ask, entry.state)]


def _was_shown(entry: Entry, text: Text) -> bool:
    """Tell whether this ask was on the phone when the text was written."""
    phone = entry.phone
    return phone.since_id is not None and text.message_id > phone.since_id and text.date_s >= phone.since_date_s


def _alone(text: Text, entry: Entry) -> Destination:
    page = entry.state.page
    if page >= len(entry.ask.questions):
        return Tell("how_to_answer", (entry.id,))
    question = entry.ask.questions[page]
    if not question.custom and option_named(question, text.text or "") is None:
        return Tell("no_such_option", (entry.id,))
    return _to(entry, text, "offered")


def _replied_to(text: Text, here: Sequence[Entry]) -> Entry | None:
    if text.reply_to is None:
        return None
    for entry in here:
        if text.reply_to in entry.phone.messages:
            return entry
    code = replied_code(text)
    return next((one for one in here if code and one.code == code and text.reply_to > one.phone.after_id), None)


def _is_meant(text: Text, entry: Entry) -> bool:
    """Tell whether a reply is an answer to the question on show: not if it replies to a request to type of before.

    Nor if that asked another person: Telegram lets the apps of all people in a group begin a reply to it. An unknown
    message may be such a request. A reply to an offer, such as "Is this your answer?", may be a yes or a no to that. So
    may one that comes while a second tap is asked for ("Stop the agent?").
    """
    typing = {side.message_id for side in entry.phone.sides if side.kind == "typing"}
    offers = {side.message_id for side in entry.phone.sides if side.kind == "offer"}
    if text.reply_to in offers or (entry.state.confirm is not None and text.reply_to not in typing):
        return False
    is_request = text.reply_to in typing or (text.group and text.reply_to not in entry.phone.messages)
    return not is_request or _armed_at(entry, text.user.id) is not None


def _last_line(shown: str) -> str:
    """Return the last line of a message: only this line is always by Hermes, the lines above may be by an agent."""
    return shown.rstrip().rpartition("\n")[2]


def _armed_at(entry: Entry, user_id: int) -> float | None:
    armed = entry.state.armed
    return armed.at_s if armed is not None and armed.user_id == user_id and entry.state.phase == "open" else None


def _to(entry: Entry, text: Text, how: TextHow) -> ToAsk:
    event = Texted(text.update_id, text.at_s, text.user, text.message_id, text.text or "", how, text.date_s)
    return ToAsk(entry.id, event)
