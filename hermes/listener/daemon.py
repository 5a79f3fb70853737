"""The daemon: starts a listener, recovers what was left, and stops with everything saved.

All state is in the store. The process can be killed at any line: the next start opens the entries and wakes the workers
of every entry, and each finds out by itself what is left to do.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import time
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

from hermes.errors import ChatRefused, HermesError, NotSaved
from hermes.hook import plugin_folders, refusal, sweeping
from hermes.listener.agent.hooks import Bell
from hermes.listener.loops import Ending, Loops
from hermes.listener.parts import Circumstances, Parts, make_parts
from hermes.listener.sd_notify import Supervisor
from hermes.listener.store_watch import Locks
from hermes.model.errand import Woke

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from hermes.config.reading import Followed
    from hermes.config.settings import Config
    from hermes.storage.store import Store

log = logging.getLogger(__name__)

IDLE_S: Final = 600.0
"""A listener that a hook started leaves after nothing was open for this long."""
UNTIL_IDLE: Final = "hermes listen --until-idle"
"""As what such a listener holds its locks."""
REAPING_S: Final = 20.0


class Listener:
    """One listener of one bot and one store. `run` returns when it was told to stop or has nothing left to do.

    `monotonic` is a clock that never jumps, in seconds; `rate_scale` is as in `Circumstances`; `idle_s` and `followed`
    are as in `Loops`; `supervisor` is told how things go.
    """

    def __init__(
        self,
        config: Config,
        store: Store,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        idle_s: float | None = None,
        rate_scale: float = 1.0,
        supervisor: Supervisor | None = None,
        followed: Followed | None = None,
    ) -> None:
        self.serves = False
        """Whether it could start."""
        self._given = Circumstances(config, supervisor or Supervisor(), monotonic, rate_scale)
        self._idle_s = idle_s
        self._followed = followed
        self._store = store
        self._ending = Ending()
        self._locks: Locks
        self._parts: Parts
        self._loops: Loops

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT, or until nothing is open any more (`idle_s`).

        Raises:
            Held: another listener has the bot or the store.
            StoreError: the store cannot be used, or was removed while nothing was open.
        """
        loop = asyncio.get_running_loop()
        async with self._alone("hermes listen" if self._idle_s is None else UNTIL_IDLE):
            bell = Bell(self._store.home.root)
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self._ending.begin)
            try:
                await self._recover()
                refusal.remove(self._store.home.root)
                self.serves = True
                # What was loaded at the start stays: to look through it again and again would hold taps up.
                gc.collect()
                gc.freeze()
                self._begin(bell)
                await self._ending.wait()
                if not self._ending.restart:
                    self._given.supervisor.stopping()
            finally:
                # First of all: a hook that finds nobody from now on starts a listener of its own.
                bell.close()
                await self._close()
        if self._ending.error is not None and self._idle_s is None:
            raise self._ending.error
        if self._ending.restart:
            log.info("%s: starting again", self._ending.restart)
            self._given.supervisor.restart(self._ending.restart)
        else:
            log.info("stopped", extra={"told": "Stopped. What is open stays on the phone."})

    async def run_once(self) -> None:
        """Take in taps, texts and the inbox, deliver, settle what is over at the agent, tidy up; then leave.

        The time to answer stands still: what a reaper said about it would not be kept. Raises as `run`, and
        ChatRefused if Telegram does not take the token, once all else is done.
        """
        async with self._alone("hermes reap"):
            connection = self._parts.phone.connection
            try:
                await self._recover(by_timer=True)
                await self._parts.phone.updates.take_in()
                await self._loops.take_inbox()
                await self._loops.compare_servers()
                await self._parts.steps.idle(REAPING_S)
                await self._loops.tidy()
                if connection.refusal:
                    await self._parts.phone.link.in_trouble(connection.refusal)
                    raise ChatRefused(connection.refusal)
            finally:
                await self._close()

    @asynccontextmanager
    async def _alone(self, command: str) -> AsyncIterator[None]:
        """Hold the locks of the store and of the bot, and make all parts."""
        config = self._given.config
        self._locks = Locks(self._store, config.telegram.bot_id, f"{command}, store {self._store.home.root}")
        try:
            self._locks.take()
            self._parts = await make_parts(self._given, self._store, self._locks)
            self._loops = Loops(
                self._parts,
                self._ending,
                keep_done_s=config.store.keep_done,
                monotonic=self._given.monotonic,
                idle_s=self._idle_s,
                followed=self._followed,
            )
            yield
        finally:
            self._locks.release()

    async def _recover(self, *, by_timer: bool = False) -> None:
        """Open the entries and let every worker look at every entry."""
        parts = self._parts
        sweeping.sweep(self._store.home.root)
        plugin_folders.forget_calls(self._store.home.root)
        try:
            await parts.entries.open()
            await parts.kept.open()
        finally:
            parts.memory.note(damaged=parts.memory.at.damaged + self._store.put_away)
        open_now = parts.entries.all()
        for entry in open_now:
            parts.times.clock.begin_after(entry.timing.set_at or 0.0)
        log.info("listening for bot %d; %d asks are open", self._given.config.telegram.bot_id, len(open_now))
        with suppress(NotSaved):
            self._store.home.let_prompts(on=self._given.config.prompts.enabled)
        with suppress(NotSaved):
            # From now on what is asked while nobody listens is looked for, however soon this listener is killed.
            await self._loops.remember()
        await parts.phone.connection.recover(by_timer=by_timer)
        parts.background.spawn(parts.phone.connection.report_damaged())
        for entry in open_now:
            if entry.state.phase == "settled":
                with suppress(NotSaved):
                    await parts.agent.errands.tell(entry.id, Woke())  # before it is closed: its hook may wait
            parts.entries.wakes.put(entry.id)
        parts.background.supervise(self._loops.wake_workers)

    def _begin(self, bell: Bell) -> None:
        """Start all loops."""
        parts, loops = self._parts, self._loops
        parts.background.spawn(parts.phone.commands.introduce(parts.phone.bot))
        parts.background.supervise(parts.phone.updates.run)
        parts.background.supervise(lambda: loops.read_inbox(bell))
        parts.background.supervise(loops.keep_time)
        for follower in parts.agent.followers:
            parts.background.supervise(follower.run)
        if parts.pinger:
            parts.background.supervise(parts.pinger.run)

    async def _close(self) -> None:
        phone = self._parts.phone
        await self._parts.steps.close()
        await self._parts.background.close()
        phone.connection.close()
        if self._ending.error is None:
            with suppress(NotSaved):
                await self._loops.remember()
        await phone.outbox.close()
        with suppress(HermesError):
            await phone.bot.close()
        for server in self._parts.agent.servers:
            await server.aclose()
