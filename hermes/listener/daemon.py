"""The daemon: runs the loops and the workers of a listener, recovers at start, and stops with everything saved.

All state is in the store. The process can be killed at any line: the next start opens the book and wakes the workers
of every entry, and each finds out by itself what is left to do.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import math
import signal
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import hermes
from hermes.chat.bot import ANSWER_FIRST_S, tls_context
from hermes.chat.screens import notices
from hermes.core.answer_clock import AnswerableClock, AnswerTimes, Pace, Quiet
from hermes.errors import AgentError, ChatRefused, HermesError, NotSaved, StoreError
from hermes.hook import spool
from hermes.listener.agent.hooks import Bell
from hermes.listener.agent.parts import AgentParts, agent_parts
from hermes.listener.background import Background
from hermes.listener.entries import Book
from hermes.listener.phone.chat_memory import Memory
from hermes.listener.phone.parts import Given, PhoneParts, phone_parts
from hermes.listener.ping import Pinger
from hermes.listener.sd_notify import Supervisor, installed_version
from hermes.listener.store_watch import Locks, StoreWatch
from hermes.listener.wakes import due
from hermes.listener.workers import Steps
from hermes.model.errand import Woke
from hermes.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes.config.reading import Config, Followed
    from hermes.listener.wakes import Wake

log = logging.getLogger(__name__)

IDLE_S: Final = 600.0
"""A listener that a hook started leaves after nothing was open for this long."""
UNTIL_IDLE: Final = "hermes listen --until-idle"
"""As what such a listener holds its locks."""
TICK_S: Final = 0.25
SLOW_TICK_S: Final = 2.0
REMEMBER_S: Final = 10.0
INBOX_LOOK_S: Final = 2.0
INBOX_TURN_S: Final = 0.02
"""So long the inbox is read before a tap has as much time: a hundred large files must not delay it."""
INBOX_WELL_S: Final = 30.0
DOUBT_S: Final = 60.0
"""How often each open ask is looked at, because an event may have been lost."""
HOUSEKEEPING_S: Final = 600.0
REAPING_S: Final = 20.0


class Listener:
    """One listener of one bot and one store. `run` returns when it was told to stop or has nothing left to do.

    `now` is the epoch clock, `monotonic` one that never jumps, both in seconds; `rate_scale` 2 sends twice as fast as
    Telegram is known to take it; `supervisor` is told how things go; if the configuration that it `followed` is another
    by now, it starts itself again.
    """

    def __init__(
        self,
        config: Config,
        *,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        idle_s: float | None = None,
        rate_scale: float = 1.0,
        supervisor: Supervisor | None = None,
        followed: Followed | None = None,
    ) -> None:
        self._config = config
        self._followed = followed
        self._supervisor = supervisor or Supervisor()
        self._rate_scale = rate_scale
        self._monotonic = monotonic
        self._idle_s = idle_s
        self._store = Store(config.store.path, now=now)
        self._stop = asyncio.Event()
        self._restart = ""
        self.serves = False
        """Whether it could start."""
        self._fate: HermesError | None = None
        self._times_unsaved_said = 0
        self._inbox_read_s = -math.inf

    # --- life ---------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT, or until nothing is open any more (`idle_s`).

        Raises:
            Held: another listener has the bot or the store.
            StoreError: the store cannot be used, or was removed while nothing was open.
        """
        loop = asyncio.get_running_loop()
        with self._alone("hermes listen" if self._idle_s is None else UNTIL_IDLE):
            bell = Bell(self._store.root)
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self._stop.set)
            try:
                self._recover()
                spool.accept(self._store.root)
                self.serves = True
                # What was loaded at the start stays: to look through it again and again would hold taps up.
                gc.collect()
                gc.freeze()
                self._begin(bell)
                await self._stop.wait()
                if not self._restart:
                    self._supervisor.stopping()
            finally:
                # First of all: a hook that finds nobody from now on starts a listener of its own.
                bell.close()
                await self._close()
        if self._fate is not None and self._idle_s is None:
            raise self._fate
        if self._restart:
            log.info("%s: starting again", self._restart)
            self._supervisor.restart(self._restart)

    async def run_once(self) -> None:
        """Take in taps, texts and the inbox, deliver, settle what is over at the agent, tidy up; then leave.

        The time to answer stands still: what a reaper said about it would not be kept. Raises as `run`, and
        ChatRefused if Telegram does not take the token, once all else is done.
        """
        with self._alone("hermes reap"):
            try:
                self._recover(by_timer=True)
                await self._phone.connection.take_in()
                self._take_inbox()
                await self._look_at_servers()
                await self._steps.idle(REAPING_S)
                self._tidy()
                if refusal := self._phone.connection.refusal:
                    self._phone.link.in_trouble(refusal)
                    raise ChatRefused(refusal)
            finally:
                await self._close()

    @contextmanager
    def _alone(self, command: str) -> Iterator[None]:
        """Hold the locks of the store and of the bot, and make all parts."""
        who = f"{command}, store {self._store.root}"
        self._locks = Locks(self._store, self._config.telegram.bot_id, who)
        try:
            self._locks.take()
            self._make_parts()
            yield
        finally:
            self._locks.release()

    def _make_parts(self) -> None:
        config, store = self._config, self._store
        questions, telegram, host = config.questions, config.telegram, spool.host()
        hours = questions.quiet_hours
        self._background = Background()
        self._memory = Memory(store, telegram.bot_id)
        self._times = AnswerTimes(
            AnswerableClock(self._memory.at.answerable_s, monotonic=self._monotonic),
            Pace(questions.ttl, questions.remind_at),
            now=store.now,
            quiet=None if hours is None else Quiet(hours.start, hours.end, questions.zone),
        )
        self._book = Book(store, self._times, chat_id=self._memory.chat_id(telegram.chat_id))
        connected: dict[str, bool] = {}
        self._phone: PhoneParts = phone_parts(
            config,
            Given(
                self._book,
                self._memory,
                self._times,
                self._background,
                self._supervisor,
                connected,
                machine=host,
                monotonic=self._monotonic,
                rate_scale=self._rate_scale,
            ),
        )
        self._agent: AgentParts = agent_parts(
            config,
            self._book,
            self._memory,
            self._background,
            connected,
            machine=host,
            monotonic=self._monotonic,
        )
        self._steps = Steps(
            {
                "phone": self._phone.posting.step,
                "errand": self._agent.errands.step,
                "join": self._phone.connection.join,
            },
            self._book.wakes,
        )
        self._watch = StoreWatch(self._locks, self._book, self._agent.errands, self._memory, self._phone.messenger)
        self._pinger = self._made_pinger()

    def _made_pinger(self) -> Pinger | None:
        telegram, url = self._config.telegram, self._config.monitor.ping_url.get_secret_value()
        proxy = telegram.proxy.get_secret_value() if telegram.proxy else None
        return Pinger(url, proxy=proxy, tls=tls_context(telegram.ca_file, proxy, url)) if url else None

    def _recover(self, *, by_timer: bool = False) -> None:
        """Open the book and let every worker look at every entry."""
        spool.sweep(self._store.root)
        self._book.open()
        open_now = self._book.entries()
        for entry in open_now:
            self._times.clock.begin_after(entry.timing.set_at or 0.0)
        log.info("listening for bot %d; %d asks are open", self._config.telegram.bot_id, len(open_now))
        self._memory.note(damaged=self._memory.at.damaged + self._store.put_away)
        with suppress(NotSaved):
            # From now on what is asked while nobody listens is looked for, however soon this listener is killed.
            self._remember()
        self._phone.connection.recover(by_timer=by_timer)
        self._background.spawn(self._phone.connection.report_damaged())
        for entry in open_now:
            if entry.state.phase == "settled":
                with suppress(NotSaved):
                    self._agent.errands.tell(entry.id, Woke())  # before it is closed: its hook may wait
            self._book.wakes.put(entry.id)
        self._background.supervise(self._wake_workers)

    def _begin(self, bell: Bell) -> None:
        """Start all loops."""
        self._background.spawn(self._phone.commands.introduce(self._phone.bot))
        self._background.supervise(self._phone.connection.poller.run)
        self._background.supervise(lambda: self._read_inbox(bell))
        self._background.supervise(self._keep_time)
        for follower in self._agent.followers:
            self._background.supervise(follower.run)
        if self._pinger:
            self._background.supervise(self._pinger.run)

    async def _close(self) -> None:
        await self._steps.close()
        await self._background.close()
        self._phone.connection.close()
        if self._fate is None:
            with suppress(NotSaved):
                self._remember()
        await self._phone.outbox.close()
        with suppress(HermesError):
            await self._phone.bot.close()
        for server in self._agent.servers:
            await server.aclose()

    # --- loops --------------------------------------------------------------------------------------------------------

    async def _wake_workers(self) -> None:
        while True:
            for wake in await self._book.wakes.take():
                self._look_at(wake)

    def _look_at(self, wake: Wake) -> None:
        """Wake the workers that have something to do about this entry, after the acknowledgement of a tap."""
        if wake.worker is not None:
            self._steps.kick(wake.worker, wake.entry_id)
            return
        entry = self._book.get(wake.entry_id)
        if entry is None:
            return
        self._agent.errands.changed(entry)
        after_s = 0.0 if entry.phone.message_id is None else ANSWER_FIRST_S
        for worker in due(entry):
            self._steps.kick(worker, entry.id, after_s=after_s if worker != "join" else 0.0)
        for behind in self._phone.row.behind(entry):
            self._steps.kick("phone", behind.id)

    async def _read_inbox(self, bell: Bell) -> None:
        loop = asyncio.get_running_loop()
        while self._fate is None:
            try:
                self._watch.look()
            except HermesError as error:
                self._leave(error)
                return
            # Before the inbox: the hook that found no socket has dropped its record already.
            bell.look()
            turn_s = loop.time()
            for _ in self._inbox_files():
                if loop.time() - turn_s > INBOX_TURN_S:
                    await asyncio.sleep(INBOX_TURN_S)
                    turn_s = loop.time()
            await bell.rings(INBOX_LOOK_S)

    def _leave(self, why: HermesError) -> None:
        """Stop without a store: nothing is held or written from now on."""
        self._fate = why
        log.error("%s", why)
        self._stop.set()

    def _take_inbox(self) -> None:
        for _ in self._inbox_files():
            pass

    def _inbox_files(self) -> Iterator[None]:
        """Take in what hooks have told, one file at each step."""
        try:
            yield from self._agent.inbox.files()
            self._agent.errands.look_for_hooks()
            self._inbox_read_s = self._monotonic()
        except StoreError as error:
            log.error("the inbox waits: %s", error)  # noqa: TRY400 (a full disk, not a defect)

    async def _look_at_servers(self) -> None:
        """Compare with what each server lists now, except those that are out of reach."""
        for follower in self._agent.followers:
            try:
                await follower.compare()
            except AgentError as error:
                log.warning("server %s: %s", follower.server.name, error)

    async def _keep_time(self) -> None:
        remembered_s = tidied_s = doubted_s = idle_since_s = self._monotonic()
        while True:
            at_s = self._monotonic()
            try:
                self._phone.timekeeper.tick(answerable=self._is_answerable())
                if at_s - remembered_s > REMEMBER_S:
                    remembered_s = at_s
                    self._remember()
                    self._look_at_configuration()
                    self._agent.strays.release()
                    self._agent.errands.forget_closed()
                if at_s - doubted_s > DOUBT_S:
                    doubted_s = at_s
                    for follower in self._agent.followers:
                        follower.doubt()
                if at_s - tidied_s > HOUSEKEEPING_S:
                    tidied_s = at_s
                    self._tidy()
            except StoreError as error:
                log.error("%s", error)  # noqa: TRY400 (a full disk, not a defect)
            self._tell_of_unsaved()
            if self._pinger:
                self._pinger.is_well = self._is_well()
            if self._book.entries() or self._steps.busy or spool.listing(self._store.root):
                idle_since_s = at_s
            if self._idle_s is not None and at_s - idle_since_s > self._idle_s:
                log.info("nothing is open any more: leaving")
                self._stop.set()
            await asyncio.sleep(TICK_S if self._book.entries() else SLOW_TICK_S)

    def _is_answerable(self) -> bool:
        return self._phone.connection.answerable and not self._store.is_phone_locked()

    def _is_well(self) -> bool:
        return self._phone.connection.answerable and self._monotonic() - self._inbox_read_s < INBOX_WELL_S

    def _tell_of_unsaved(self) -> None:
        """Say on the phone, once for each time of trouble, that a new question could not be saved."""
        error, times = self._book.unsaved, self._book.times_unsaved
        if error is not None and times != self._times_unsaved_said:
            self._times_unsaved_said = times
            why = "disk full" if error.disk_full else "see its log"
            self._phone.messenger.insist(notices.question_not_saved(self._phone.messenger.machine, why))

    # --- housekeeping -------------------------------------------------------------------------------------------------

    def _remember(self) -> None:
        clock = self._times.clock
        self._memory.live(now_s=self._store.now(), steady_s=self._monotonic())
        self._memory.save(
            answerable_s=clock.counted_s,
            known_at_s=self._store.now(),
            gap_at=clock.gap_at,
            followed=tuple(follower.followed() for follower in self._agent.followers),
        )

    def _tidy(self) -> None:
        self._memory.live(now_s=self._store.now(), steady_s=self._monotonic())
        if over := self._memory.outlived(self._store.days_done(), self._config.store.keep_done):
            self._store.forget_done(over)
        spool.sweep(self._store.root)
        if installed_version() not in {hermes.__version__, ""}:
            self._begin_again("the installed version changed")

    def _look_at_configuration(self) -> None:
        if self._followed is not None and self._followed.has_changed():
            self._begin_again("the configuration changed")

    def _begin_again(self, why: str) -> None:
        self._restart = why
        self._stop.set()
