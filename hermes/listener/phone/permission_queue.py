"""The permissions of one session are posted one after the other, and each replaces the message of the one before.

The next permission is posted at the end of the chat, so that the phone rings, with a line for each permission before
it; then the previous message is deleted. A question that its agent gave up and asks again, after a restart for one,
replaces its own message in the same way. The messages are known in memory only, because they only keep the chat tidy:
after a restart the next permission replaces none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from hermes.chat.screens.main_message import main
from hermes.chat.screens.permission import TRAIL_LINES, trail_line
from hermes.chat.screens.screen import Look
from hermes.chat.screens.side_messages import sides
from hermes.core.ends import is_refused
from hermes.listener.entries import Entries
from hermes.model.entry import Entry

BEHIND_LOOK_S: Final = 5.0
"""A permission checks this often whether the one before it is over, in case no change of that one wakes it."""
DRAWING_S: Final = 10.0
"""The phone must show the end of a permission before the next one is posted, which waits at most this long."""
REFUSING_S: Final = 5.0
"""A refusal, or the end of its turn, also ends the permissions of its session that were asked before it; they wait this
long for that end."""
IN_A_ROW_S: Final = 600.0
"""A permission replaces the message of the one before only if that one was closed less than this ago."""
FRESH_S: Final = 1.5
"""A tap on a permission that replaced another one less than this ago was meant for the other one."""


@dataclass(frozen=True, slots=True)
class Left:
    """The message of a permission closed at `at_s`, with its lines. `key` tells which asks may replace it.

    These are the permissions of its session, or the same questions of its session. `over_s` is when it was refused, or
    its agent gave it up, which also ends the earlier permissions of its session; else -inf.
    """

    key: tuple[str, ...]
    chat_id: int
    message_id: int
    at_s: float
    over_s: float
    trail: tuple[str, ...]


class PermissionQueue:
    """Decides which permission may be posted, and which message it replaces."""

    def __init__(self, entries: Entries, look: Look) -> None:
        self._entries = entries
        self._look = look
        self._left: dict[tuple[str, ...], Left] = {}
        self._moved_s: dict[str, float] = {}

    def behind(self, over: Entry) -> list[Entry]:
        """Return the other permissions of its session that are not settled, if this is one that is."""
        if over.ask.permission is None or over.state.phase != "settled":
            return []
        session = over.ask.source.session
        others = (entry for entry in self._entries.all() if entry.ask.source.session == session)
        return [entry for entry in others if entry.ask.permission is not None and entry.state.phase != "settled"]

    async def wait_s(self, entry: Entry) -> float | None:
        """Return the seconds until the next check if it is not this permission's turn yet, else None.

        This closes each earlier permission of the session whose end is on the phone.
        """
        if entry.ask.permission is None or entry.state.phase == "settled":
            return None
        for other_id in [other.id for other in self._entries.all()]:
            other = self._entries.get(other_id)
            if other_id == entry.id:
                break
            if other is None:
                continue
            if other.ask.permission is not None and other.ask.source.session == entry.ask.source.session:
                if not self._is_over(other):
                    return BEHIND_LOOK_S
                if other.state.phase == "settled" and other.phone.message_id is not None and self._is_shown(other):
                    with self._entries.apart(other_id):
                        if await self._entries.close(other):
                            self.note_closed(other)
        return self._refusing_s(entry)

    def _is_over(self, entry: Entry) -> bool:
        """Tell whether it is settled, and has no message, shows its end on the phone, or ended `DRAWING_S` ago.

        One whose answer waits for an agent or a machine that is away counts as over: that may take days.
        """
        outcome = entry.state.outcome
        if entry.state.phase == "sending" and entry.is_out_of_reach:
            return True
        if entry.state.phase != "settled" or outcome is None:
            return False
        had_its_time = not 0 <= self._entries.now() - outcome.at_s < DRAWING_S
        return entry.phone.message_id is None or had_its_time or self._is_shown(entry)

    def _is_shown(self, entry: Entry) -> bool:
        beside = {side.kind: side.drawn for side in entry.phone.sides}
        wanted = {kind: side.screen.digest for kind, side in sides(entry, self._look).items()}
        return main(entry, self._look).digest == entry.phone.drawn and beside == wanted

    def _refusing_s(self, entry: Entry) -> float | None:
        """Return how long a permission that was asked before a refusal still waits for its own end, else None."""
        left = self._left.get(_key(entry))
        if left is None or entry.asked_s > left.over_s or not 0 <= self._entries.now() - left.at_s < REFUSING_S:
            return None
        return REFUSING_S - (self._entries.now() - left.at_s)

    def left_for(self, entry: Entry) -> Left | None:
        """Return the message of the permission before, or of the same question, for this one to replace, or None."""
        left = self._left.get(_key(entry))
        if left is None or left.chat_id != entry.phone.chat_id or abs(self._entries.now() - left.at_s) > IN_A_ROW_S:
            return None
        return left

    def moved(self, entry: Entry, left: Left) -> bool:
        """Note that this entry is on the phone now; return whether the caller must delete the message `left`.

        If a permission ends while it is being posted, the next one may be posted to replace the same message: only one
        of them deletes it.
        """
        now_s = self._entries.now()
        self._moved_s = {one: at_s for one, at_s in self._moved_s.items() if 0 <= now_s - at_s < FRESH_S}
        if entry.ask.permission is not None:
            self._moved_s[entry.id] = now_s  # to the same question, a tap means the same
        if self._left.get(left.key) is not left:
            return False
        del self._left[left.key]
        return True

    def is_fresh(self, entry_id: str) -> bool:
        """Tell whether the entry has just replaced another one, so that a tap may have been meant for that one."""
        return 0 <= self._entries.now() - self._moved_s.get(entry_id, -math.inf) < FRESH_S

    def note_closed(self, entry: Entry) -> None:
        """Remember the message of an entry that was closed, if the next one of its session may replace it."""
        phone = entry.phone
        if phone.message_id is None or not (entry.ask.permission is not None or _was_given_up(entry)):
            return
        now_s = self._entries.now()
        self._left = {one: left for one, left in self._left.items() if abs(now_s - left.at_s) <= IN_A_ROW_S}
        trail = (*entry.trail, trail_line(entry))[-TRAIL_LINES:] if entry.ask.permission is not None else ()
        self._left[_key(entry)] = Left(_key(entry), phone.chat_id, phone.message_id, now_s, _over_s(entry), trail)


def _key(entry: Entry) -> tuple[str, ...]:
    ask = entry.ask
    texts = () if ask.permission is not None else tuple(question.text for question in ask.questions)
    return (*ask.source.session, *texts)


def _over_s(entry: Entry) -> float:
    """Return when it was refused, here or at the desk, or given up by its agent; else -inf.

    An agent that goes on after a refusal, as Claude Code does, may still wait for the others.
    """
    decision, outcome = entry.state.decision, entry.state.outcome
    if decision is not None and is_refused(entry):
        return decision.at_s
    if not entry.ask.capabilities.reject_stops or outcome is None:
        return -math.inf
    return outcome.at_s if outcome.kind in {"rejected_at_desk", "gone"} else -math.inf


def _was_given_up(entry: Entry) -> bool:
    """Tell whether the agent gave up a question that nobody had answered."""
    outcome = entry.state.outcome
    return outcome is not None and outcome.kind == "gone" and entry.state.decision is None
