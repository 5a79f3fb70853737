"""The regular work of the phone side.

It counts the time to answer, and does what is due by it: reminders, final calls, expiry, the word at the end of quiet
hours. It also saves the clocks and deletes old asks.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Final

from hermes.chat.screens import hints
from hermes.chat.screens.screen import Look
from hermes.core.answer_clock import AnswerTimes
from hermes.errors import Conflict, InUse, Missing
from hermes.listener.entries import Entries
from hermes.listener.kept import Kept
from hermes.listener.phone.chat_memory import Memory
from hermes.listener.phone.machines import Machines
from hermes.listener.phone.messenger import Messenger
from hermes.listener.phone.polling import Connection
from hermes.model.entry import Entry
from hermes.model.events import Expired

log = logging.getLogger(__name__)

LOCK_LOOK_S: Final = 1.0
"""How often the time to answer looks whether the phone is locked. A tap looks by itself."""


class Timekeeper:
    """Advances the answerable clock, and does with the open asks what is due by it."""

    def __init__(
        self,
        entries: Entries,
        times: AnswerTimes,
        look: Look,
        messenger: Messenger,
        machines: Machines,
        memory: Memory,
    ) -> None:
        self._entries = entries
        self._times = times
        self._look = look
        self._messenger = messenger
        self._machines = machines
        self._memory = memory
        self._stood = True

    async def tick(self, *, answerable: bool) -> None:
        """Advance the clock; remind, make final calls and expire asks if that is due. Raises NotSaved."""
        await self._machines.look()
        quiet = self._times.is_quiet()
        self._times.clock.tick(answerable=answerable and not quiet)
        self._notice_quiet(quiet=quiet)
        resumed = self._resumed(answerable=answerable and not quiet)
        for entry_id in [entry.id for entry in self._entries.all()]:
            with self._entries.apart(entry_id), suppress(Conflict, Missing, InUse):  # the next tick looks again
                entry = self._entries.get(entry_id)
                if entry is not None and (resumed or (entry.timing.until_s is None) is not quiet):
                    entry = await self._corrected(entry)
                if entry is not None:
                    await self._look_at(await self._looked_for(entry))

    def _resumed(self, *, answerable: bool) -> bool:
        """Tell whether the clock has just begun to run again: the times that the phone shows are then wrong."""
        stood, self._stood = self._stood, not answerable
        return stood and answerable

    async def _corrected(self, entry: Entry) -> Entry:
        """Correct the end that the phone shows, after a standstill of the clock; in quiet hours nobody knows it."""
        now_s, is_quiet, left_s = self._entries.now(), self._times.is_quiet(), self._times.clock.left_s

        def corrected(found: Entry) -> Entry:
            seconds = left_s(found.timing)
            if seconds is None or found.state.phase != "open":
                return found
            return replace(found, timing=replace(found.timing, until_s=None if is_quiet else now_s + max(0.0, seconds)))

        after = corrected(entry)
        return entry if after == entry else await self._entries.change(entry.id, corrected)

    async def _looked_for(self, entry: Entry) -> Entry:
        """Note whether the machine of the ask is away. Raises Conflict, Missing."""
        clock, now_s = self._times.clock, self._entries.now()
        is_away, is_noted = self._machines.is_away(entry.ask.source.machine), entry.timing.away_at is not None
        # The end of a decision that had to wait for its machine is told by a message of its own: it stays noted. A
        # decision that has arrived waits for nothing more.
        if is_away is is_noted or (is_noted and entry.state.phase != "open") or entry.state.phase == "settled":
            return entry
        log.info("entry %s: its machine is %s", entry.id, "away" if is_away else "back")
        return await self._entries.change(
            entry.id,
            lambda found: replace(
                found, timing=clock.missed(found.timing) if is_away else clock.back(found.timing, now_s=now_s)
            ),
            seen=entry,
        )

    async def _look_at(self, entry: Entry) -> None:
        """Remind, make the final call or expire, if that is due. Raises Conflict: the entry has changed meanwhile."""
        left_s = self._times.clock.left_s(entry.timing)
        match self._times.due(entry):
            case "remind":
                timing = replace(entry.timing, reminded=self._times.reminders(entry.timing))
                await self._entries.change(entry.id, lambda found: replace(found, timing=timing), seen=entry)
            case "call":
                await self._call(entry, self._entries.now() + max(0.0, left_s or 0.0))
            case "expire":
                log.info("entry %s: nobody answered in time", entry.id)
                expired = Expired(self._entries.now(), self._look.rule(entry.ask))
                await self._entries.apply(entry.id, expired, seen=entry)
            case None:
                pass

    async def _call(self, entry: Entry, until_s: float) -> None:
        """Let the final call be made, which rings; the one of before, whose "Stop now" nobody confirmed, goes."""
        phone = entry.phone.wanting("final_call")
        timing = replace(entry.timing, called=True, until_s=until_s)
        await self._entries.change(entry.id, lambda found: replace(found, timing=timing, phone=phone), seen=entry)

    def _notice_quiet(self, *, quiet: bool) -> None:
        was_quiet = self._memory.at.was_quiet
        self._memory.note(was_quiet=quiet)
        waiting = sum(entry.state.phase == "open" for entry in self._entries.all())
        if was_quiet and not quiet and waiting:
            self._messenger.say(hints.digest_screen(waiting))


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
