"""The daemon: wires the steps together, supervises them, recovers at start, stops with everything saved.

All state is in the store. What runs here can be killed at any line: the next start opens the book and kicks
every entry, and each step finds out by itself what is left to do.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import math
import signal
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import hermes
from hermes.agents.opencode.client import OpenCodeServer
from hermes.agents.registry import ADAPTERS
from hermes.chat.bot import ANSWER_FIRST_S, Bot, tls_context
from hermes.chat.outbox import Outbox
from hermes.chat.screens import notices
from hermes.chat.screens.screen import Look
from hermes.core import answer_clock
from hermes.errors import AgentError, ChatRefused, HermesError, NotSaved, StoreError
from hermes.hook import spool
from hermes.listener.agent.errands import Errands
from hermes.listener.agent.hooks import Bell, Room, Strays
from hermes.listener.agent.inbox import Inbox
from hermes.listener.agent.intake import Intake
from hermes.listener.agent.servers import Follower
from hermes.listener.entries import Book
from hermes.listener.phone.chat_commands import Commands
from hermes.listener.phone.chat_memory import Memory
from hermes.listener.phone.permission_queue import Row
from hermes.listener.phone.phone import PhoneSide
from hermes.listener.phone.polling import Connection
from hermes.listener.phone.posting import Posting
from hermes.listener.phone.timekeeper import Timekeeper
from hermes.listener.ping import Pinger
from hermes.listener.sd_notify import Supervisor, installed_version
from hermes.listener.workers import Steps
from hermes.model.errand import PlacesGone, Woke
from hermes.model.events import Ticked, Torn
from hermes.storage import process_lock
from hermes.storage.store import LISTENER, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from hermes.config.reading import Config
    from hermes.model.entry import Entry

log = logging.getLogger(__name__)

IDLE_S: Final = 600.0
"""A listener that a hook started leaves after nothing was open for this long."""
UNTIL_IDLE: Final = "hermes listen --until-idle"
"""As what such a listener holds its locks."""
TICK_S: Final = 0.25
SLOW_TICK_S: Final = 2.0
REMEMBER_S: Final = 10.0
INBOX_LOOK_S: Final = 2.0
LOCKED_LOOK_S: Final = 2.0
INBOX_TURN_S: Final = 0.02
"""So long the inbox is read before a tap has as much time: a hundred large files must not delay it."""
INBOX_WELL_S: Final = 30.0
DOUBT_S: Final = 60.0
"""How often each open ask is looked at, because an event may have been lost."""
HOUSEKEEPING_S: Final = 600.0
STUMBLE_S: Final = 1.0
REAPING_S: Final = 20.0


class Listener:
    """One listener of one bot and one store. `run` returns when it was told to stop or has nothing left to do.

    `now` is the epoch clock, `monotonic` one that never jumps, both in seconds; `rate_scale` 2 sends twice as fast
    as Telegram is known to take it; `supervisor` is told how things go; once `is_outdated` says that the configuration
    is another by now, it starts itself again.
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
        is_outdated: Callable[[], bool] = lambda: False,
    ) -> None:
        self._config = config
        self._is_outdated = is_outdated
        self._supervisor = supervisor or Supervisor()
        self._rate_scale = rate_scale
        self._now = now
        self._monotonic = monotonic
        self._idle_s = idle_s
        self._host = spool.host()
        self._root = config.store.path
        self._stop = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._restart = ""
        self.serves = False
        """Whether it could start."""
        self._fate: HermesError | None = None
        self._who = ""
        self._locks: list[process_lock.Holding] = []
        self._phone_was_locked = False
        self._times_unsaved_said = 0
        self._inbox_read_s = -math.inf
        self._store = Store(self._root, now=now)

    # --- life -------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT, or until nothing is open any more (`idle_s`).

        Raises:
            Held: another listener has the bot or the store.
            StoreError: the store cannot be used, or was removed while nothing was open.
        """
        loop = asyncio.get_running_loop()
        with self._alone("hermes listen" if self._idle_s is None else UNTIL_IDLE):
            bell = Bell(self._root)
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self._stop.set)
            try:
                self._recover()
                spool.accept(self._root)
                self.serves = True
                # What was loaded at the start stays: to look through it again and again would hold taps up.
                gc.collect()
                gc.freeze()
                self._spawn(self._commands.introduce(self._bot))
                self._supervise(self._connection.poller.run)
                self._supervise(lambda: self._read_inbox(bell))
                self._supervise(self._keep_time)
                for follower in self._followers:
                    self._supervise(follower.run)
                if self._pinger:
                    self._supervise(self._pinger.run)
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
        ChatRefused where Telegram does not take the token, once all else is done.
        """
        with self._alone("hermes reap"):
            try:
                self._recover(by_timer=True)
                await self._connection.take_in()
                self._take_inbox()
                await self._look_at_servers()
                await self._steps.idle(REAPING_S)
                self._tidy()
                if refusal := self._connection.refusal:
                    self._connection.in_trouble(refusal)
                    raise ChatRefused(refusal)
            finally:
                await self._close()

    @contextmanager
    def _alone(self, command: str) -> Iterator[None]:
        """Hold the locks of the store and of the bot, and wire everything up."""
        self._who = f"{command}, store {self._root}"
        try:
            self._take_locks()
            self._wire()
            yield
        finally:
            self._release_locks()

    def _take_locks(self) -> None:
        self._locks.append(self._store.hold(LISTENER, self._who))
        self._locks.append(
            process_lock.hold_bot(self._config.telegram.bot_id, self._root, self._who, now=self._now),
        )

    def _release_locks(self) -> None:
        while self._locks:
            self._locks.pop().release()

    def _recover(self, *, by_timer: bool = False) -> None:
        """Open the book and let every step look at every entry."""
        spool.sweep(self._root)
        self._book.open()
        self._intake.recall(self._book.recently_closed)
        open_now = self._book.entries()
        for entry in open_now:
            self._time.clock.begin_after(entry.timing.set_at or 0.0)
        log.info("listening for bot %d; %d asks are open", self._config.telegram.bot_id, len(open_now))
        self._memory.note(damaged=self._memory.at.damaged + self._store.put_away)
        with suppress(NotSaved):
            # From now on what is asked while nobody listens is looked for, however soon this listener is killed.
            self._remember()
        self._connection.recover(by_timer=by_timer)
        for entry in open_now:
            self._changed(entry)

    async def _close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await self._steps.close()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._connection.close()
        if self._fate is None:
            with suppress(NotSaved):
                self._remember()
        await self._outbox.close()
        with suppress(HermesError):
            await self._bot.close()
        for server in self._servers.values():
            await server.aclose()

    # --- wiring -----------------------------------------------------------------------------------------------

    def _wire(self) -> None:
        config, now = self._config, self._now
        self._machine = self._store.machine()
        telegram, questions = config.telegram, config.questions
        self._memory = Memory(self._store, telegram.bot_id)
        look = self._look = Look(
            tz=questions.zone,
            group=telegram.chat_id < 0,
            context_chars=questions.context_chars,
            on_expiry=questions.on_expiry,
            permission_expiry=config.permissions.on_expiry,
            remind_s=questions.remind_at,
        )
        proxy = telegram.proxy.get_secret_value() if telegram.proxy else None
        self._bot = Bot(
            telegram.token.get_secret_value(), api_base=telegram.api_base, proxy=proxy, ca_file=telegram.ca_file
        )
        url = config.monitor.ping_url.get_secret_value()
        tls = tls_context(telegram.ca_file, proxy, url)
        self._pinger = Pinger(url, is_well=self._is_well, proxy=proxy, tls=tls) if url else None
        self._outbox = Outbox(self._bot, rate_scale=self._rate_scale, now=self._monotonic)
        self._time = Timekeeper(
            self._memory, self._outbox, look, questions, spawn=self._spawn, now=now, monotonic=self._monotonic
        )
        self._book = Book(
            self._store,
            chat_id=self._memory.chat_id(telegram.chat_id),
            now=now,
            retimed=self._time.retimed,
            on_change=self._changed,
        )
        self._row = Row(self._book, look, now=now)
        self._wire_agents()
        posting = self._wire_phone()
        self._steps = Steps(
            {
                "phone": posting.step,
                "errand": self._errands.step,
                "due": self._due,
            },
            failed=self._refused,
        )

    def _wire_phone(self) -> Posting:
        telegram, questions, now = self._config.telegram, self._config.questions, self._now
        self._phone = PhoneSide(
            self._book,
            self._outbox,
            self._look,
            bot_id=telegram.bot_id,
            users=frozenset(telegram.users),
            machine=self._host,
            moved=lambda chat_id: self._connection.moved(chat_id),  # noqa: PLW0108 (it is made below)
            blocked=self._blocked,
            commands=self._made_commands,
            is_fresh=self._row.is_fresh,
            spawn=self._spawn,
            now=now,
        )
        self._connection = Connection(
            self._bot,
            self._book,
            self._phone,
            self._memory,
            self._look,
            supervisor=self._supervisor,
            machine=self._host,
            now=now,
        )
        return Posting(
            self._book,
            self._outbox,
            self._look,
            self._row,
            post_after_s=questions.post_after,
            started=self._time.started,
            quiet=self._time.is_quiet,
            sent=self._connection.sent,
            now=now,
        )

    def _wire_agents(self) -> None:
        config = self._config
        self._servers = {
            server.name: OpenCodeServer(
                server.name,
                server.url,
                username=server.username,
                password=server.password.get_secret_value(),
                machine=self._machine,
                host=self._host,
                now=self._now,
                monotonic=self._monotonic,
            )
            for server in config.opencode
        }
        self._room = Room(self._root)
        self._errands = Errands(
            self._book,
            self._servers,
            self._room,
            ADAPTERS,
            config.matching,
            kick=lambda entry_id: self._steps.kick("errand", entry_id),
            now=self._now,
            monotonic=self._monotonic,
        )
        self._intake = Intake(self._book, self._errands, self._room, rules=config.permissions.rules)
        self._inbox = Inbox(self._root, self._store, ADAPTERS, took=self._intake.take, word=self._errands.hear_hook)
        self._strays = Strays(self._book, self._room, ADAPTERS, monotonic=self._monotonic)
        known = {one.server: one.until_s for one in self._memory.at.followed}
        self._followers = [
            Follower(
                server,
                self._book,
                self._intake,
                self._errands,
                spawn=self._spawn,
                ttl_s=config.questions.ttl,
                heard_s=known.get(name, self._now()),
                now=self._now,
                monotonic=self._monotonic,
            )
            for name, server in self._servers.items()
        ]

    # What is wired first calls what is wired later by these.

    def _refused(self, error: HermesError) -> None:
        self._connection.refused(error)

    def _made_commands(self, say: Callable[..., None]) -> Commands:
        self._commands = Commands(
            self._book,
            self._look,
            machine=self._host,
            say=say,
            connected=lambda: [(one.server.name, one.is_connected) for one in self._followers],
            now=self._now,
        )
        return self._commands

    def _is_answerable(self) -> bool:
        return self._connection.answerable and not self._store.is_phone_locked()

    def _is_well(self) -> bool:
        return self._connection.answerable and self._monotonic() - self._inbox_read_s < INBOX_WELL_S

    def _blocked(self, sentence: str) -> None:
        self._connection.in_trouble(sentence)

    # --- what runs --------------------------------------------------------------------------------------------

    def _supervise(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Keep a loop running: one that stumbles begins anew, so that Hermes is never deaf."""

        async def again() -> None:
            while True:
                try:
                    await work()
                except Exception:
                    log.exception("a part of the listener stumbled and begins anew")
                await asyncio.sleep(STUMBLE_S)

        self._spawn(again())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("something that nothing waits for failed", exc_info=task.exception())

    def _changed(self, entry: Entry) -> None:
        """Wake the steps that have something to do about this change."""
        phase = entry.state.phase
        self._errands.changed(entry)
        if phase == "matching":
            self._steps.kick("errand", entry.id)
            return
        after_s = 0.0 if entry.phone.message_id is None else ANSWER_FIRST_S
        self._steps.kick("phone", entry.id, after_s=after_s)
        if phase == "sending":
            self._steps.kick("errand", entry.id, after_s=after_s)
        elif entry.state.due_s is not None:
            self._steps.kick("due", entry.id)
        if phase == "settled":
            self._intake.settled(entry)
            with suppress(NotSaved):
                self._errands.tell(entry.id, Woke())
        if phase == "settled" and entry.ask.permission is not None:
            self._wake_the_next(entry)

    def _wake_the_next(self, over: Entry) -> None:
        """Let the permissions that stand behind this one look whether it is their turn."""
        for entry in self._book.entries():
            if entry.ask.permission is not None and entry.ask.source.session_id == over.ask.source.session_id:
                self._steps.kick("phone", entry.id)

    async def _due(self, entry_id: str) -> float | None:
        """Step: end the joining of a text whose time has come, once Telegram has no further part of it."""
        entry = self._book.get(entry_id)
        if entry is None or entry.state.due_s is None:
            return None
        left_s = entry.state.due_s - self._now()
        # A wall clock that was set back must not keep an answer back.
        if 0 < left_s <= answer_clock.LONGEST_TICK_S:
            return left_s
        await self._connection.poller.caught_up()
        after = self._book.get(entry_id)
        if after is None or after.state.due_s != entry.state.due_s:
            return 0.0
        if self._store.is_phone_locked():
            return LOCKED_LOOK_S
        if entry_id in self._phone.torn:
            self._book.apply(entry_id, Torn())
            self._phone.torn.discard(entry_id)
        self._book.apply(entry_id, Ticked(max(self._now(), entry.state.due_s)))
        return None

    async def _read_inbox(self, bell: Bell) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._keep_store()
            if self._fate is not None:
                return
            # Before the inbox: the hook that found no socket has dropped its record already.
            bell.look()
            turn_s = loop.time()
            for _ in self._inbox_files():
                if loop.time() - turn_s > INBOX_TURN_S:
                    await asyncio.sleep(INBOX_TURN_S)
                    turn_s = loop.time()
            await bell.rings(INBOX_LOOK_S)

    def _keep_store(self) -> None:
        """Notice that the folder of the store was removed or replaced: make it again for open asks, else leave.

        If only folders in it are gone (a removal may still go on while it is made again), these are made again. If it
        cannot be made while something is open (a full disk), the listener goes on without its locks, saves nothing,
        and tries again at each look.
        """
        if self._fate is not None:
            return  # it is leaving
        is_ours = bool(self._locks) and self._locks[0].is_there()
        if is_ours and self._store.is_whole():
            self._phone_was_locked = self._store.is_phone_locked()
            self._keep_bot()
            return
        count = sum(entry.state.phase != "settled" for entry in self._book.entries())
        self._release_locks()
        if not is_ours and not count and not self._was_written_to():
            self._leave(StoreError(f"{self._root} was removed while Hermes listened; nothing was open: leaving"))
            return
        try:
            self._make_store_again()
        except HermesError as error:
            self._release_locks()
            if count and isinstance(error, NotSaved):
                log.error("%d asks are open: %s", count, error)  # noqa: TRY400 (a full disk, not a defect)
            else:
                self._leave(error)
            return
        log.error("%s was removed while Hermes listened: made again, with %d open asks", self._root, count)
        if count:
            self._phone.insist(notices.store_made_again(count, self._host), sent=lambda: None)

    def _was_written_to(self) -> bool:
        """Tell whether a hook has made the folder again, and left something there."""
        try:
            return bool(spool.listing(self._root))
        except OSError:
            return False

    def _keep_bot(self) -> None:
        """Take the bot's lock again if its file was removed, as a logout does; leave if another listener has it now."""
        if self._locks[1].is_there():
            return
        self._release_locks()
        try:
            self._take_locks()
        except HermesError as error:
            self._leave(error)

    def _make_store_again(self) -> None:
        self._store.keep_machine(self._machine)
        self._take_locks()
        self._errands.hint_all(PlacesGone())
        self._book.lay_out_again()
        if self._phone_was_locked:
            self._store.lock_phone()
        self._remember()

    def _tell_of_unsaved(self) -> None:
        """Say on the phone, once for each time of trouble, that a new question could not be saved."""
        error, times = self._book.unsaved, self._book.times_unsaved
        if error is not None and times != self._times_unsaved_said:
            self._times_unsaved_said = times
            why = "disk full" if error.disk_full else "see its log"
            self._phone.insist(notices.question_not_saved(self._host, why), sent=lambda: None)

    def _leave(self, why: HermesError) -> None:
        """Stop without a store: nothing is held or written from now on."""
        self._release_locks()
        self._fate = why
        log.error("%s", why)
        self._stop.set()

    async def _look_at_servers(self) -> None:
        """Compare with what each server lists now, except those that are out of reach."""
        for follower in self._followers:
            try:
                await follower.compare()
            except AgentError as error:
                log.warning("server %s: %s", follower.server.name, error)

    def _take_inbox(self) -> None:
        for _ in self._inbox_files():
            pass

    def _inbox_files(self) -> Iterator[None]:
        """Take in what hooks have told, one file at each step."""
        try:
            yield from self._inbox.files()
            self._errands.look_for_hooks()
            self._inbox_read_s = self._monotonic()
        except StoreError as error:
            log.error("the inbox waits: %s", error)  # noqa: TRY400 (a full disk, not a defect)

    async def _keep_time(self) -> None:
        remembered_s = tidied_s = doubted_s = idle_since_s = self._monotonic()
        while True:
            at_s = self._monotonic()
            try:
                self._time.tick(self._book, answerable=self._is_answerable())
                if at_s - remembered_s > REMEMBER_S:
                    remembered_s = at_s
                    self._remember()
                    self._look_at_configuration()
                    self._strays.release()
                    self._errands.forget_closed()
                if at_s - doubted_s > DOUBT_S:
                    doubted_s = at_s
                    for follower in self._followers:
                        follower.doubt()
                if at_s - tidied_s > HOUSEKEEPING_S:
                    tidied_s = at_s
                    self._tidy()
            except StoreError as error:
                log.error("%s", error)  # noqa: TRY400 (a full disk, not a defect)
            self._tell_of_unsaved()
            if self._book.entries() or self._steps.busy or spool.listing(self._root):
                idle_since_s = at_s
            if self._idle_s is not None and at_s - idle_since_s > self._idle_s:
                log.info("nothing is open any more: leaving")
                self._stop.set()
            await asyncio.sleep(TICK_S if self._book.entries() else SLOW_TICK_S)

    # --- housekeeping -----------------------------------------------------------------------------------------

    def _remember(self) -> None:
        clock = self._time.clock
        self._memory.live(now_s=self._now(), steady_s=self._monotonic())
        self._memory.save(
            answerable_s=clock.counted_s,
            known_at_s=self._now(),
            gap_at=clock.gap_at,
            followed=tuple(follower.followed() for follower in self._followers),
        )

    def _tidy(self) -> None:
        self._memory.live(now_s=self._now(), steady_s=self._monotonic())
        if over := self._memory.outlived(self._store.days_done(), self._config.store.keep_done):
            self._store.forget_done(over)
        spool.sweep(self._root)
        if installed_version() not in {hermes.__version__, ""}:
            self._begin_again("the installed version changed")

    def _look_at_configuration(self) -> None:
        if self._is_outdated():
            self._begin_again("the configuration changed")

    def _begin_again(self, why: str) -> None:
        self._restart = why
        self._stop.set()
