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

import hermes
from hermes.errors import ChatError, ChatRefused, Conflict, HermesError, NotSaved, StoreError, TooNew
from hermes.hook import plugin_folders, refusal, spool, sweeping
from hermes.listener.agent.hooks import Bell
from hermes.listener.background import Background
from hermes.listener.circumstances import Circumstances
from hermes.listener.loops import Ending, Loops
from hermes.listener.parts import Parts, make_parts
from hermes.listener.sd_notify import Supervisor
from hermes.listener.store_watch import Locks
from hermes.model.errand import Woke
from hermes.storage import codec, process_lock
from hermes.storage.store import RENEW_S, Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from hermes.config.reading import Followed
    from hermes.config.settings import Config
    from hermes.listener.phone.outage import Outage

log = logging.getLogger(__name__)

IDLE_S: Final = 600.0
"""A listener that a hook started leaves after nothing was open for this long."""
REAPING_S: Final = 20.0
REMEMBERING_S: Final = 3.0
"""A listener that ends waits this long, at most, for a database: `hermes stop` waits for 10 s in all."""


class Listener:
    """One listener of one bot and one store. `run` returns when it was told to stop or has nothing left to do.

    `supervisor` is told how things go; the other arguments are as in `Circumstances`.
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
        self._given = Circumstances(config, followed, supervisor or Supervisor(), monotonic, rate_scale, idle_s)
        self._store = store
        self._ending = Ending()
        self._chat_id = 0  # of the phone side that this was
        self._bell: Bell | None = None
        self._locks: Locks
        self._parts: Parts
        self._loops: Loops

    async def run(self) -> None:
        """Serve until SIGTERM, SIGINT, SIGHUP (a closed terminal), or until nothing is open any more (`idle_s`).

        Raises:
            Held: another listener has the bot or the store.
            StoreError: the store cannot be used, or was removed while nothing was open.
        """
        loop = asyncio.get_running_loop()
        async with self._alone("hermes listen" if self._given.idle_s is None else process_lock.UNTIL_IDLE):
            self._bell = Bell(self._store.home.root)
            hang_up = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)  # as by `nohup`
            for number in (signal.SIGTERM, signal.SIGINT, *hang_up):
                loop.add_signal_handler(number, self.end)
            try:
                await self._round(self._bell)
                while self._ending.another_round:
                    log.warning("%s", self._ending.another_round)
                    self._ending = Ending()
                    await self._round(self._bell)
                if not self._ending.restart:
                    self._given.supervisor.stopping()
            finally:
                self._bell.close()
        if self._ending.error is not None and self._given.idle_s is None:
            raise self._ending.error
        if self._ending.restart:
            log.info("%s: starting again", self._ending.restart)
            self._given.supervisor.restart(self._ending.restart)
        else:
            log.info("stopped", extra={"told": "Stopped. What is open stays on the phone."})

    def end(self) -> None:
        """End as after a signal."""
        self._ending.begin()

    async def _round(self, bell: Bell) -> None:
        """Serve as the phone side or without it, until that changes or the listener ends."""
        if not await self._ending.unless_begun(self._opens()):
            return
        hearing = Background()
        try:
            refusal.remove(self._store.home.root)
            self.serves = True
            codec.ENTRIES.prepare()
            # What was loaded at the start stays: to look through it again and again would hold taps up.
            gc.collect()
            gc.freeze()
            hearing.supervise(lambda: self._loops.read_inbox(bell))
            self._begin()
            await self._ending.wait()
        finally:
            await hearing.close()
            await self._close()

    async def _opens(self, *, by_timer: bool = False) -> bool:
        """Take this machine's place in the store, and the phone side if it is free; make all parts and recover.

        False: the listener is to end. A store that cannot be reached is waited for if other machines share it, but not
        `by_timer`: the timer comes again. Nor does a listener that a hook started wait for what only a person can
        change: the hooks are to learn that nothing can come.
        Raises Held, TooNew, StoreError.
        """
        outage, said = self._outage(), ""
        while not self._ending.is_begun:
            try:
                await self._store.join(spool.host(), hermes.__version__)
                if self._given.config.phone is not None:
                    await self._store.take_phone()
                await self._make_parts()
                try:
                    await self._recover(by_timer=by_timer)
                    if outage is not None:
                        await outage.is_over()
                except BaseException:  # a start that is cancelled closes its connections, too
                    await self._close()
                    raise
            except StoreError as error:
                is_hopeless = isinstance(error, TooNew) or (error.permanent and self._given.idle_s is not None)
                if is_hopeless or by_timer or not self._store.is_shared:
                    raise
                if str(error) != said:
                    said = str(error)
                    log.warning("%s; it is tried again", said)
                self._given.supervisor.say(f"waiting: {said}")
                self._given.supervisor.alive()
                self._ending.look_at_configuration(self._given.followed)  # it may name another database by now
                if outage is not None:
                    await outage.goes_on()
                with suppress(TimeoutError):
                    async with asyncio.timeout(RENEW_S):
                        await self._ending.wait()
            else:
                return True
        return False

    def _outage(self) -> Outage | None:
        """Return the outage that begins if the store cannot be reached; None unless this was the phone side."""
        telegram = self._given.config.phone
        if telegram is None or not self._chat_id:
            return None
        from hermes.listener.phone.outage import Outage  # noqa: PLC0415 (the library of Telegram is large)

        times, monotonic = self._parts.times, self._given.monotonic
        return Outage(telegram, self._chat_id, times, machine=spool.host(), monotonic=monotonic)

    async def run_once(self) -> None:
        """Take in taps, texts and the inbox, deliver, settle what is over at the agent, tidy up; then leave.

        The time to answer stands still: what a reaper said about it would not be kept. Raises as `run`, and
        ChatRefused if Telegram does not take the token, once all else is done.
        """
        async with self._alone("hermes reap"):
            if not await self._opens(by_timer=True):
                return
            phone = self._parts.phone_side
            self._parts.connected.clear()  # nobody follows a server now, and /status must not call all of them away
            try:
                if phone is not None:
                    with suppress(ChatError):  # the polls say it, too
                        await phone.commands.learn_name(phone.bot)
                    await phone.updates.take_in()
                await self._loops.take_inbox()
                await self._loops.compare_servers()
                await self._parts.steps.idle(REAPING_S)
                await self._parts.background.at_rest(REAPING_S)
                await self._loops.tidy()
                if phone is not None and phone.connection.refusal:
                    await phone.link.in_trouble(phone.connection.refusal)
                    raise ChatRefused(phone.connection.refusal)
            finally:
                await self._close()

    @asynccontextmanager
    async def _alone(self, command: str) -> AsyncIterator[None]:
        phone = self._given.config.phone
        bot_id = None if phone is None or self._store.is_shared else phone.bot_id
        self._locks = Locks(self._store, bot_id, process_lock.named(command, self._store.home.root))
        try:
            self._locks.take()
            yield
        finally:
            await self._store.leave()
            self._locks.release()

    async def _make_parts(self) -> None:
        self._parts = await make_parts(self._given, self._store, self._locks)
        self._loops = Loops(self._parts, self._ending, self._given)

    async def _recover(self, *, by_timer: bool = False) -> None:
        """Open the entries and let every worker look at every entry."""
        parts, phone = self._parts, self._parts.phone_side
        sweeping.sweep(self._store.home.root)
        plugin_folders.forget_calls(self._store.home.root)
        try:
            await parts.entries.open()
            await parts.kept.open()
        finally:
            if phone is not None:
                phone.memory.note(damaged=phone.memory.at.damaged + self._store.put_away)
        open_now = parts.entries.all()
        for entry in parts.entries.ours():  # a user of another machine may have written what it likes
            parts.times.clock.begin_after(entry.timing.set_at or 0.0)
        log.info("%s; %d asks are open", self._told_sides(), len(open_now))
        if self._store.is_shared and (count := self._store.home.count_asks()):
            log.warning("%d asks are in the folder, and nobody sees them: run `hermes store move database`", count)
        with suppress(NotSaved):
            self._store.home.let_prompts(on=self._given.config.prompts.enabled)
        with suppress(NotSaved):
            # From now on what is asked while nobody listens is looked for, however soon this listener is killed.
            await self._loops.remember()
        with suppress(NotSaved, Conflict):  # a list that cannot be read is in its place
            await parts.kept.list_machine(self._store.home.machine(), spool.host())
        if phone is not None:
            self._chat_id = parts.entries.chat_id
            await phone.updates.shut_out()
            await phone.connection.recover(by_timer=by_timer)
            if self._store.is_shared:
                phone.updates.doubt()
                parts.background.spawn(phone.connection.take_over(by_timer=by_timer))
            parts.background.spawn(phone.connection.report_damaged())
        for entry in open_now:
            if entry.state.phase == "settled" and parts.entries.is_ours(entry):
                with suppress(NotSaved):
                    await parts.agent.errands.tell(entry.id, Woke())  # before it is closed: its hook may wait
            parts.entries.wakes.put(entry.id)
        parts.background.supervise(self._loops.wake_workers)

    def _told_sides(self) -> str:
        phone = self._given.config.phone
        if self._parts.phone_side is not None and phone is not None:
            return f"listening for bot {phone.bot_id}"
        return "listening for the agents of this machine; another one is the phone side"

    def _begin(self) -> None:
        """Start all loops but the one that reads the inbox."""
        parts, loops = self._parts, self._loops
        if parts.phone_side is not None:
            parts.background.spawn(parts.phone_side.commands.introduce(parts.phone_side.bot))
            parts.background.supervise(parts.phone_side.updates.run)
        parts.background.supervise(loops.keep_place)
        parts.background.supervise(loops.follow_store)
        parts.background.supervise(loops.keep_time)
        for follower in parts.agent.followers:
            parts.background.supervise(follower.run)
        if parts.pinger:
            parts.background.supervise(parts.pinger.run)

    async def _close(self) -> None:
        if self._bell is not None and self._ending.is_for_good:
            # First of all: a hook that finds nobody from now on starts a listener of its own.
            self._bell.close()
        phone = self._parts.phone_side
        if self._ending.error is not None:  # without a store nothing may be written any more
            await self._parts.steps.close(grace_s=0.0)
        await self._parts.background.close()  # an update that came now could be taken in, and not answered
        if phone is not None:
            await phone.outbox.close()  # no message begins any more, and a step notes the one that was being sent
        await self._parts.steps.close()
        await self._parts.background.close()  # the tasks that the last steps began
        if phone is not None:
            phone.connection.close()
        if self._ending.error is None:
            with suppress(StoreError, TimeoutError):
                async with asyncio.timeout(REMEMBERING_S):
                    await self._loops.remember()
        if phone is not None:
            with suppress(HermesError):
                await phone.bot.close()
        for server in self._parts.agent.servers:
            await server.aclose()
