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
import socket
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import hermes
from hermes import expiry, holding, spool
from hermes.agent_side import AgentSide
from hermes.agents import ADAPTERS
from hermes.agents.opencode.client import OpenCodeServer
from hermes.book import Book
from hermes.chat.bot import ANSWER_FIRST_S, Bot
from hermes.chat.outbox import Outbox
from hermes.chat.screen import Look
from hermes.commands import Commands
from hermes.connection import Connection
from hermes.delivery import Delivery
from hermes.errors import ChatRefused, HermesError, NotSaved
from hermes.memory import Memory
from hermes.model import Ticked
from hermes.monitor import Pinger
from hermes.phone_side import PhoneSide
from hermes.posting import Posting
from hermes.room import Room
from hermes.row import Row
from hermes.steps import Steps
from hermes.store import LISTENER, Store
from hermes.supervisor import Supervisor, installed_version
from hermes.timekeeper import Timekeeper

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from hermes.config import Config
    from hermes.model import Entry, Route

log = logging.getLogger(__name__)

IDLE_S: Final = 600.0
"""A listener that a hook started leaves after nothing was open for this long."""
UNTIL_IDLE: Final = "hermes listen --until-idle"
"""As what such a listener holds its locks."""
TICK_S: Final = 0.25
SLOW_TICK_S: Final = 2.0
REMEMBER_S: Final = 10.0
INBOX_LOOK_S: Final = 2.0
INBOX_WELL_S: Final = 30.0
HOUSEKEEPING_S: Final = 600.0
STUMBLE_S: Final = 1.0
REAPING_S: Final = 20.0


class Listener:
    """One listener of one bot and one store. `run` returns when it was told to stop or has nothing left to do.

    `now` is the epoch clock, `monotonic` one that never jumps, both in seconds; `rate_scale` 2 sends twice as fast
    as Telegram is known to take it; `supervisor` is told how things go.
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
    ) -> None:
        self._config = config
        self._supervisor = supervisor or Supervisor()
        self._rate_scale = rate_scale
        self._now = now
        self._monotonic = monotonic
        self._idle_s = idle_s
        self._machine = socket.gethostname()
        self._root = config.store.path
        self._stop = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._restart = False
        self._inbox_read_s = -math.inf
        self._store = Store(self._root, now=now)

    # --- life -------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT, or until nothing is open any more (`idle_s`).

        Raises:
            Held: another listener has the bot or the store.
            StoreError: the store cannot be used.
        """
        loop = asyncio.get_running_loop()
        with self._alone("hermes listen" if self._idle_s is None else UNTIL_IDLE):
            nudges = spool.listen_socket(self._root)
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self._stop.set)
            try:
                self._recover()
                # What was loaded at the start stays: to look through it again and again would hold taps up.
                gc.collect()
                gc.freeze()
                self._spawn(self._commands.introduce(self._bot))
                self._supervise(self._connection.poller.run)
                self._supervise(lambda: self._read_inbox(nudges))
                self._supervise(self._keep_time)
                for server in self._servers.values():
                    self._supervise(lambda server=server: self._agents.follow(server))  # type: ignore[misc]
                if self._config.monitor.ping_url:
                    self._supervise(Pinger(self._config.monitor.ping_url.get_secret_value(), is_well=self._is_well).run)
                await self._stop.wait()
                if not self._restart:
                    self._supervisor.stopping()
            finally:
                # First of all: a hook that finds nobody from now on starts a listener of its own.
                spool.close_socket(nudges)
                await self._close()
        if self._restart:
            log.info("the installed version changed: starting anew")
            self._supervisor.restart()

    async def run_once(self) -> None:
        """Take in taps, texts and the inbox, deliver, settle what is over at the agent, tidy up; then leave.

        The time to answer stands still: what a reaper said about it would not be kept. Raises as `run`, and
        ChatRefused where Telegram does not take the token, once all else is done.
        """
        with self._alone("hermes reap"):
            try:
                self._recover(by_timer=True)
                await self._connection.poller.step(poll_s=0)
                self._take_inbox()
                await self._agents.look_once()
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
        who = f"{command}, store {self._root}"
        with self._store.hold(LISTENER, who), holding.hold_bot(self._config.telegram.bot_id, who, now=self._now):
            self._wire()
            yield

    def _recover(self, *, by_timer: bool = False) -> None:
        """Open the book and let every step look at every entry."""
        spool.sweep(self._root)
        self._book.open(keep_s=self._config.store.keep_done)
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
        self._spawn(self._time.ask_about_hold(self._book))

    async def _close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await self._steps.close()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._connection.close()
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
        self._bot = Bot(telegram.token.get_secret_value(), api_base=telegram.api_base, proxy=proxy)
        self._outbox = Outbox(self._bot, rate_scale=self._rate_scale, now=self._monotonic)
        self._time = Timekeeper(
            self._memory, self._outbox, look, questions, spawn=self._spawn, now=now, monotonic=self._monotonic
        )
        self._book = Book(
            self._store,
            chat_id=self._memory.chat_id(telegram.chat_id),
            now=now,
            retimed=self._time.retimed,
            routed=self._routed,
            on_change=self._changed,
        )
        self._row = Row(self._book, look, now=now)
        self._wire_agents()
        posting = self._wire_phone()
        self._steps = Steps(
            {
                "phone": posting.step,
                "deliver": self._delivery.step,
                "examine": self._agents.examine,
                "match": self._agents.match,
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
            users=frozenset(telegram.users),
            machine=self._machine,
            held=lambda word, message_id: self._time.hold_answered(self._book, word, message_id),
            moved=self._moved,
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
            machine=self._machine,
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
                now=self._now,
                monotonic=self._monotonic,
            )
            for server in config.opencode
        }
        self._room = Room(self._root)
        self._delivery = Delivery(
            self._book, self._servers, self._room, ADAPTERS, now=self._now, monotonic=self._monotonic
        )
        self._agents = AgentSide(
            self._book,
            self._delivery,
            self._servers,
            ADAPTERS,
            self._room,
            kick=self._kick,
            spawn=self._spawn,
            ttl_s=config.questions.ttl,
            matching=config.matching,
            rules=config.permissions.rules,
            followed=self._memory.at.followed,
            now=self._now,
            monotonic=self._monotonic,
        )

    # What is wired first calls what is wired later by these.

    def _moved(self, chat_id: int) -> None:
        self._connection.moved(chat_id)
        self._spawn(self._time.ask_about_hold(self._book))

    def _refused(self, error: HermesError) -> None:
        self._connection.refused(error)
        if isinstance(error, ChatRefused) and error.moved_to is not None:
            self._spawn(self._time.ask_about_hold(self._book))

    def _made_commands(self, say: Callable[..., None]) -> Commands:
        self._commands = Commands(
            self._book,
            self._look,
            machine=self._machine,
            say=say,
            connected=self._agents.connected,
            now=self._now,
        )
        return self._commands

    def _is_answerable(self) -> bool:
        return self._connection.answerable and not self._store.is_phone_locked()

    def _is_well(self) -> bool:
        return self._connection.answerable and self._monotonic() - self._inbox_read_s < INBOX_WELL_S

    def _blocked(self, sentence: str) -> None:
        self._connection.in_trouble(sentence)

    def _routed(self, entry: Entry) -> Route | None:
        return self._delivery.routed(entry)

    def _kick(self, name: str, entry_id: str) -> None:
        self._steps.kick(name, entry_id)

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
        if phase == "matching":
            self._steps.kick("match", entry.id)
            return
        after_s = 0.0 if entry.phone.message_id is None else ANSWER_FIRST_S
        self._steps.kick("phone", entry.id, after_s=after_s)
        if phase == "sending":
            self._steps.kick("deliver", entry.id, after_s=after_s)
        elif entry.state.due_s is not None:
            self._steps.kick("due", entry.id)
        if phase == "settled" and (entry.waits or not entry.ask.source.server):
            self._agents.over(entry)
        if phase == "settled" and entry.ask.permission is not None:
            self._wake_the_next(entry)

    def _wake_the_next(self, over: Entry) -> None:
        """Let the permissions that stand behind this one look whether it is their turn."""
        for entry in self._book.entries():
            if entry.ask.permission is not None and entry.ask.source.session_id == over.ask.source.session_id:
                self._steps.kick("phone", entry.id)

    async def _due(self, entry_id: str) -> float | None:
        """Step: end a joined text or a held answer when its time has come."""
        entry = self._book.get(entry_id)
        if entry is None or entry.state.due_s is None:
            return None
        left_s = entry.state.due_s - self._now()
        # A wall clock that was set back must not hold an answer for longer than it may be held.
        if 0 < left_s <= expiry.LONGEST_TICK_S:
            return left_s
        self._book.apply(entry_id, Ticked(max(self._now(), entry.state.due_s)))
        return None

    async def _read_inbox(self, nudges: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._take_inbox()
            with suppress(TimeoutError):
                async with asyncio.timeout(INBOX_LOOK_S):
                    await loop.sock_recv(nudges, 64)

    def _take_inbox(self) -> None:
        try:
            self._agents.inbox.drain()
            self._agents.look_for_the_dead()
            self._inbox_read_s = self._monotonic()
        except NotSaved as error:
            log.error("the inbox waits: %s", error)  # noqa: TRY400 (a full disk, not a defect)

    async def _keep_time(self) -> None:
        remembered_s = tidied_s = idle_since_s = self._monotonic()
        while True:
            at_s = self._monotonic()
            try:
                self._time.tick(self._book, answerable=self._is_answerable())
                if at_s - remembered_s > REMEMBER_S:
                    remembered_s = at_s
                    self._remember()
                    self._agents.send_strays_away()
                if at_s - tidied_s > HOUSEKEEPING_S:
                    tidied_s = at_s
                    self._tidy()
            except NotSaved as error:
                log.error("%s", error)  # noqa: TRY400 (a full disk, not a defect)
            if self._book.entries() or self._steps.busy or spool.listing(self._root):
                idle_since_s = at_s
            if self._idle_s is not None and at_s - idle_since_s > self._idle_s:
                log.info("nothing is open any more: leaving")
                self._stop.set()
            await asyncio.sleep(TICK_S if self._book.entries() else SLOW_TICK_S)

    # --- housekeeping -----------------------------------------------------------------------------------------

    def _remember(self) -> None:
        clock = self._time.clock
        self._memory.save(
            answerable_s=clock.counted_s,
            known_at_s=self._now(),
            gap_at=clock.gap_at,
            followed=self._agents.followed(),
        )

    def _tidy(self) -> None:
        self._store.prune(self._config.store.keep_done)
        spool.sweep(self._root)
        if installed_version() not in {hermes.__version__, ""}:
            self._restart = True
            self._stop.set()
