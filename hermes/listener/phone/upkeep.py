"""The regular work of the phone side: it counts the time to answer, saves its memory, and removes old asks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from hermes.chat.screens import hints
from hermes.core.answer_clock import AnswerTimes
from hermes.listener.entries import Entries
from hermes.listener.kept import Kept
from hermes.listener.phone.chat_memory import Memory
from hermes.listener.phone.messenger import Messenger
from hermes.listener.phone.polling import Connection
from hermes.listener.phone.timekeeper import Timekeeper

LOCK_LOOK_S: Final = 1.0
"""How often the time to answer looks whether the phone is locked. A tap looks by itself."""


class Upkeep:
    """Keeps the phone side in order. Settled asks are deleted after `keep_done_s`."""

    def __init__(
        self,
        entries: Entries,
        memory: Memory,
        times: AnswerTimes,
        timekeeper: Timekeeper,
        connection: Connection,
        messenger: Messenger,
        *,
        keep_done_s: float,
        monotonic: Callable[[], float],
    ) -> None:
        self._entries = entries
        self._memory = memory
        self._times = times
        self._timekeeper = timekeeper
        self._connection = connection
        self._messenger = messenger
        self._keep_done_s = keep_done_s
        self._monotonic = monotonic
        self._times_unsaved_told = 0
        self._lock_seen_s = -math.inf
        self._is_locked = False

    async def tick(self) -> None:
        """Do with the open asks what is due by their time to answer. Raises StoreError."""
        at_s = self._monotonic()
        if at_s - self._lock_seen_s >= LOCK_LOOK_S:
            self._lock_seen_s, self._is_locked = at_s, await self._entries.store.is_phone_locked()
        await self._timekeeper.tick(answerable=self._connection.answerable and not self._is_locked)

    def tell_of_unsaved(self) -> None:
        """Say on the phone, once for each time of trouble, that a new question could not be saved."""
        unsaved = self._entries.unsaved
        if unsaved.error is not None and unsaved.times != self._times_unsaved_told:
            self._times_unsaved_told = unsaved.times
            self._messenger.insist(hints.question_not_saved(*self._messenger.why_not_saved(unsaved.error)))

    async def remember(self) -> None:
        """Save the clocks. Raises NotSaved."""
        clock, now_s = self._times.clock, self._entries.now()
        self._memory.live(now_s=now_s, steady_s=self._monotonic())
        await self._memory.save(answerable_s=clock.counted_s, known_at_s=now_s, gap_at=clock.gap_at)

    async def tidy(self, kept: Kept) -> None:
        """Delete old settled asks and records. Raises StoreError."""
        store, now_s = self._entries.store, self._entries.now()
        self._memory.live(now_s=now_s, steady_s=self._monotonic())
        if over := self._memory.outlived(await store.days_done(), self._keep_done_s):
            await store.forget_done(over)
        await kept.forget_before(now_s - self._keep_done_s)
