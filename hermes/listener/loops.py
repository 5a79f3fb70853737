"""The loops of a listener: they wake workers, read the inbox, follow the time, and keep the store in order."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from typing import Final

from hermes.config.reading import Followed
from hermes.errors import AgentError, Deposed, HermesError, Missing, NotRunning, StoreError
from hermes.hook import spool, sweeping
from hermes.listener.agent.hooks import Bell
from hermes.listener.circumstances import Circumstances
from hermes.listener.parts import Parts
from hermes.listener.sd_notify import is_upgraded
from hermes.listener.wakes import ANSWER_FIRST_S, Wake, Worker
from hermes.model.entry import Entry
from hermes.model.errand import Woke
from hermes.storage.store import RENEW_S, Changed, Missed

log = logging.getLogger(__name__)

TICK_S: Final = 0.25
PAUSE: Final = 20.0
"""The pause after a tick is at least this many times as long as it took, so that many open asks cost little."""
SLOW_TICK_S: Final = 2.0
"""The longest pause between two ticks."""
REMEMBER_S: Final = 10.0
INBOX_LOOK_S: Final = 2.0
INBOX_TURN_S: Final = 0.02
"""So long the inbox is read before a tap has as much time: a hundred large files must not delay it."""
INBOX_WELL_S: Final = 30.0
DOUBT_S: Final = 60.0
"""How often each open ask is looked at, because an event may have been lost."""
MISSED_PAUSE_S: Final = 1.0
MISSED_TRIES: Final = 5
"""So often changes that could not be read are looked for, before the next ones: all are found a minute later."""
HOUSEKEEPING_S: Final = 600.0
TURNS_S: Final = 20.0
"""How long a timer's round waits for the turns that ended to be known; the next one goes on."""


class Ending:
    """Why a listener ends: it was told to, it must leave (`error`), or it starts again (`restart` says why).

    It may also end one round and go on with another, unless it `is_for_good`.
    """

    def __init__(self) -> None:
        self.error: HermesError | None = None
        self.restart = ""
        self.is_for_good = False
        self._why = ""
        self._told = asyncio.Event()

    def begin(self) -> None:
        """End because a signal came, or nothing is open any more."""
        self.is_for_good = True
        self._told.set()

    async def unless_begun(self, opening: Coroutine[None, None, bool]) -> bool:
        """Return what `opening` returns; cancel it, and return False, once the listener is to end.

        It may wait for a database, or for a lease.
        """
        work, told = asyncio.create_task(opening), asyncio.create_task(self.wait())
        try:
            await asyncio.wait({work, told}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (work, told):
                task.cancel()
            await asyncio.wait({work, told})
        return not work.cancelled() and work.result()

    def look_at_configuration(self, followed: Followed | None) -> None:
        """Start again if the configuration file that is `followed` has changed."""
        if followed is not None and followed.has_changed():
            self.start_again("the configuration changed")

    def leave(self, why: HermesError) -> None:
        """End without a store: nothing is held or written from now on."""
        log.error("%s", why)
        self.error = why
        self.begin()

    def start_again(self, why: str) -> None:
        """End, so that the installed version starts with the configuration of now."""
        self.restart = why
        self.begin()

    def change_sides(self, why: str) -> None:
        """End this round, and begin another one in which this machine is the phone side, or is it no longer."""
        self._why = why
        self._told.set()

    @property
    def another_round(self) -> str:
        """Why another round follows, "" if none does: a signal counts, also one that came after a change of sides."""
        return "" if self.is_for_good else self._why

    @property
    def is_begun(self) -> bool:
        """Tell whether the listener is to end."""
        return self._told.is_set()

    async def wait(self) -> None:
        """Return when the listener is to end."""
        await self._told.wait()


class Loops:
    """Keeps the parts of a listener at work."""

    def __init__(self, parts: Parts, ending: Ending, given: Circumstances) -> None:
        self._parts = parts
        self._ending = ending
        self._given = given
        self._store = parts.entries.store
        self._monotonic = given.monotonic
        self._inbox_read_s = -math.inf
        self._said = ""

    # --- workers ------------------------------------------------------------------------------------------------------

    async def wake_workers(self) -> None:
        """Wake the workers of each entry in the queue."""
        while True:
            for wake in await self._parts.entries.wakes.take():
                try:
                    self._wake(wake)
                except Exception:  # the guard around one entry
                    log.exception("entry %s could not be looked at", wake.entry_id)

    def _wake(self, wake: Wake) -> None:
        """Wake the workers that have something to do about this entry, after the acknowledgement of a tap."""
        parts = self._parts
        if wake.worker is not None:
            parts.steps.kick(wake.worker, wake.entry_id)
            return
        entry = parts.entries.get(wake.entry_id)
        if entry is None:
            return
        is_ours = parts.entries.is_ours(entry)
        if is_ours:
            parts.agent.errands.changed(entry)
        is_tapped = entry.phone.message_id is not None and entry.state.phase != "settled"
        for worker in _due(entry):
            if worker == "errand" and not is_ours:
                continue
            parts.steps.kick(worker, entry.id, after_s=ANSWER_FIRST_S if is_tapped and worker == "phone" else 0.0)

    # --- the inbox ----------------------------------------------------------------------------------------------------

    async def read_inbox(self, bell: Bell) -> None:
        """Take in the records of hooks, as long as there is a store."""
        loop = asyncio.get_running_loop()
        while self._ending.error is None:
            try:
                await self._parts.watch.look()
            except HermesError as error:
                self._ending.leave(error)
                return
            # Before the inbox: the hook that found no socket has dropped its record already.
            bell.look()
            turn_s = loop.time()
            async for _ in self._inbox_files():
                if loop.time() - turn_s > INBOX_TURN_S:
                    await asyncio.sleep(INBOX_TURN_S)
                    turn_s = loop.time()
            await bell.rings(INBOX_LOOK_S)

    async def take_inbox(self) -> None:
        """Take in all that hooks have told."""
        async for _ in self._inbox_files():
            pass

    async def _inbox_files(self) -> AsyncIterator[None]:
        """Take in what hooks have told, one file at each step."""
        try:
            async for _ in self._parts.agent.inbox.files():
                yield
            self._parts.agent.errands.look_for_hooks()
            self._inbox_read_s = self._monotonic()
        except StoreError as error:
            log.error("the inbox waits: %s", error)  # noqa: TRY400 (a full disk, not a defect)

    async def compare_servers(self) -> None:
        """Compare with what each server lists now, except those that are out of reach."""
        for follower in self._parts.agent.followers:
            try:
                await follower.server.connect()
                await follower.compare()
                await follower.turn_ends.known(TURNS_S)
            except AgentError as error:
                level = logging.INFO if isinstance(error, NotRunning) else logging.WARNING
                log.log(level, "server %s: %s", follower.server.name, error)

    # --- time ---------------------------------------------------------------------------------------------------------

    async def keep_time(self) -> None:
        """Do, each at its time, all that depends on the clock."""
        remembered_s = tidied_s = doubted_s = idle_since_s = self._monotonic()
        entries = self._parts.entries
        while True:
            at_s = self._monotonic()
            try:
                await self._tick()
                if at_s - remembered_s > REMEMBER_S:
                    remembered_s = at_s
                    await self._look_around()
                if at_s - doubted_s > DOUBT_S:
                    doubted_s = at_s
                    for follower in self._parts.agent.followers:
                        follower.doubt()
                if at_s - tidied_s > HOUSEKEEPING_S:
                    tidied_s = at_s
                    await self.tidy()
            except StoreError as error:
                self._complain(error)
            else:
                self._said = ""
            self._report()
            if entries.all() or self._parts.steps.busy or spool.listing(self._store.home.root):
                idle_since_s = at_s
            if self._given.idle_s is not None and at_s - idle_since_s > self._given.idle_s:
                log.info("nothing is open any more: leaving")
                self._ending.begin()
            took_s = self._monotonic() - at_s
            await asyncio.sleep(min(max(TICK_S, PAUSE * took_s), SLOW_TICK_S) if entries.all() else SLOW_TICK_S)

    async def _tick(self) -> None:
        """Do what is due by the time to answer. Raises StoreError."""
        if self._parts.phone_side is not None:
            await self._parts.phone_side.upkeep.tick()

    def _complain(self, error: StoreError) -> None:
        """Log that the store fails, such as a full disk, once."""
        if str(error) != self._said:
            self._said = str(error)
            log.error("%s", error)

    async def _look_around(self) -> None:
        """Do what is due every few seconds. Raises StoreError."""
        time.tzset()  # a laptop travels, and the C library reads the zone of the machine only once
        await self.remember()
        self._ending.look_at_configuration(self._given.followed)
        await self._parts.agent.strays.release()
        self._parts.agent.errands.forget_closed()

    def _report(self) -> None:
        """Tell the person of what could not be saved, and the monitor whether all is well."""
        if self._parts.phone_side is not None:
            self._parts.phone_side.upkeep.tell_of_unsaved()
        if self._parts.pinger:
            self._parts.pinger.is_well = self.is_well()

    def is_well(self) -> bool:
        """Tell whether answers and questions arrive."""
        phone = self._parts.phone_side
        hears = phone is None or phone.connection.answerable
        return hears and self._monotonic() - self._inbox_read_s < INBOX_WELL_S

    # --- other machines -----------------------------------------------------------------------------------------------

    async def keep_place(self) -> None:
        """Say that this machine is there; end the round if it becomes the phone side, or is it no longer.

        A round also ends if another process has this machine's id: `join` then says so.
        """
        was_phone, has_bot = self._parts.phone_side is not None, self._given.config.phone is not None
        while True:
            try:
                await self._store.renew(tuple(self._parts.connected.items()))
                if not was_phone and has_bot and await self._store.take_phone():
                    self._ending.change_sides("this machine is the phone side now")
            except Deposed as error:
                self._ending.change_sides(str(error))
            except StoreError as error:
                self._complain(error)
            if was_phone and not self._store.is_phone():
                self._ending.change_sides("this machine is no longer the phone side")
            if was_phone:
                await asyncio.sleep(RENEW_S)
            else:  # no poll tells the service manager that all is well
                self._given.supervisor.serves("listening for the agents of this machine")
                await self._given.supervisor.pause(RENEW_S)

    async def follow_store(self) -> None:
        """Take in the changes of other machines; after an error look a few times for all that were missed."""
        async for change in self._store.changes():
            wanted: Changed | Missed = change
            for _ in range(MISSED_TRIES):
                if await self._is_taken_in(wanted):
                    break
                wanted = Missed()
                await asyncio.sleep(MISSED_PAUSE_S)

    async def _is_taken_in(self, change: Changed | Missed) -> bool:
        """Take in a change, or all that were missed; tell whether the store could be read."""
        try:
            for one in await self._missed() if isinstance(change, Missed) else [change]:
                await self._take_in(one)
        except StoreError as error:
            log.warning("%s", error)
            return False
        return True

    async def _missed(self) -> list[Changed]:
        entries = [Changed("entries", one) for one in await self._parts.entries.stale()]
        return [*entries, *await self._parts.kept.stale()]

    async def _take_in(self, change: Changed) -> None:
        if change.kind != "entries":
            await self._parts.kept.refresh(change.kind, change.id)
            return
        entries = self._parts.entries
        with entries.apart(change.id):
            closed = await entries.refresh(change.id)
            if closed is not None:
                if entries.is_ours(closed):
                    with suppress(Missing):  # the phone side has closed it: nothing more is saved of it
                        await self._parts.agent.errands.tell(closed.id, Woke())  # its hook may still wait
                entries.drop(closed)

    # --- housekeeping -------------------------------------------------------------------------------------------------

    async def remember(self) -> None:
        """Save the clocks, and how far the events of each server are known. Raises NotSaved."""
        self._store.home.save_followed(tuple(follower.followed() for follower in self._parts.agent.followers))
        if self._parts.phone_side is not None:
            await self._parts.phone_side.upkeep.remember()

    async def tidy(self) -> None:
        """Delete old settled asks and leftover files; start again after an upgrade. Raises StoreError."""
        if self._parts.phone_side is not None:
            await self._parts.phone_side.upkeep.tidy(self._parts.kept)
            await self._parts.phone_side.downloads.tidy()
        sweeping.sweep(self._store.home.root)
        if is_upgraded():
            self._ending.start_again("Hermes was installed again")


def _due(entry: Entry) -> tuple[Worker, ...]:
    match entry.state.phase:
        case "matching":
            return ("errand",)
        case "sending":
            return ("phone", "errand")
        case "settled":
            return ("errand", "phone")  # a hook that still waits is released before the entry is closed
        case _:
            return ("phone",) if entry.state.due_s is None else ("phone", "join")
