"""Permissions of one session stand in a row: asked for one after the other, and one message moves on with them.

The next one is posted at the end of the chat, where it rings, with a line for each one before it; the message of the
one before goes. What is known here only makes the phone tidier: after a restart a message of its own begins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hermes.chat.screens.main_message import main, sides
from hermes.chat.screens.permission import TRAIL_LINES, is_refused, trail_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.chat.screens.main_message import Look
    from hermes.listener.entries import Book
    from hermes.model.entry import Entry

BEHIND_LOOK_S: Final = 5.0
"""How often a permission looks whether the one before it is over, should nobody tell."""
DRAWING_S: Final = 10.0
"""The end of one must be on the phone before the next one comes, but nobody waits for it longer than this."""
REFUSING_S: Final = 5.0
"""What was asked before the refusal of another one of its session ends with it, within this time."""
IN_A_ROW_S: Final = 600.0
"""A permission that comes later than this after the one before it begins a message of its own."""
FRESH_S: Final = 1.5
"""A tap on the next one so soon after it came was meant for the one before."""


@dataclass(frozen=True, slots=True)
class Left:
    """The message of a permission that is over, and the lines of all that stood there."""

    session_id: str
    chat_id: int
    message_id: int
    at_s: float
    refused_s: float
    trail: tuple[str, ...]


class Row:
    """Knows whose turn it is, and which message the next one replaces. `now` is the epoch clock, in seconds."""

    def __init__(self, book: Book, look: Look, *, now: Callable[[], float]) -> None:
        self._book = book
        self._look = look
        self._now = now
        self._left: dict[str, Left] = {}
        self._moved_s: dict[str, float] = {}

    def wait_s(self, entry: Entry) -> float | None:
        """Return when to look again where it is not this permission's turn yet, else None.

        An earlier one that is over, and shown so, is put away here.
        """
        if entry.ask.permission is None or entry.state.phase == "settled":
            return None
        for other in self._book.entries():
            if other.id == entry.id:
                break
            if other.ask.permission is not None and other.ask.source.session_id == entry.ask.source.session_id:
                if not self._is_over(other):
                    return BEHIND_LOOK_S
                if other.phone.message_id is not None and self._is_shown(other):
                    self.put_away(other)
        return self._refusing_s(entry)

    def _is_over(self, entry: Entry) -> bool:
        """Tell whether it is settled and shown so, or has had its time to be."""
        outcome = entry.state.outcome
        if entry.state.phase != "settled" or outcome is None:
            return False
        had_its_time = not 0 <= self._now() - outcome.at_s < DRAWING_S
        return entry.phone.message_id is None or had_its_time or self._is_shown(entry)

    def _is_shown(self, entry: Entry) -> bool:
        beside = {side.kind for side in entry.phone.sides}
        return main(entry, self._look).digest == entry.phone.drawn and beside == set(sides(entry, self._look))

    def _refusing_s(self, entry: Entry) -> float | None:
        """What was asked before a refusal ends with it: that is waited for a little."""
        left = self._left.get(entry.ask.source.session_id)
        if left is None or entry.asked_s > left.refused_s or not 0 <= self._now() - left.at_s < REFUSING_S:
            return None
        return REFUSING_S - (self._now() - left.at_s)

    def left_for(self, entry: Entry) -> Left | None:
        """Return what the one before has left, if anything, for this one to replace."""
        left = self._left.get(entry.ask.source.session_id) if entry.ask.permission is not None else None
        if left is None or left.chat_id != entry.phone.chat_id or abs(self._now() - left.at_s) > IN_A_ROW_S:
            return None
        return left

    def moved(self, entry: Entry, left: Left) -> bool:
        """This permission stands on the phone now; tell whether the message before it is its own to take away.

        Where one ends while it is being posted, two may have been posted for it.
        """
        now_s = self._now()
        self._moved_s = {one: at_s for one, at_s in self._moved_s.items() if 0 <= now_s - at_s < FRESH_S}
        self._moved_s[entry.id] = now_s
        if self._left.get(left.session_id) is not left:
            return False
        del self._left[left.session_id]
        return True

    def is_fresh(self, entry_id: str) -> bool:
        """Tell whether a tap on it may have been meant for the one before."""
        return 0 <= self._now() - self._moved_s.get(entry_id, -math.inf) < FRESH_S

    def put_away(self, entry: Entry) -> None:
        """Close an entry; the message of a permission may be replaced by the next one of its session."""
        self._book.close(entry.id)
        phone, decision, session_id = entry.phone, entry.state.decision, entry.ask.source.session_id
        if entry.ask.permission is None or phone.message_id is None:
            return
        now_s = self._now()
        self._left = {one: left for one, left in self._left.items() if abs(now_s - left.at_s) <= IN_A_ROW_S}
        refused_s = decision.at_s if decision is not None and is_refused(entry) else -math.inf
        trail = (*entry.trail, trail_line(entry))[-TRAIL_LINES:]
        self._left[session_id] = Left(session_id, phone.chat_id, phone.message_id, now_s, refused_s, trail)
