"""The order of the steps: first all questions, then all changes."""

import asyncio
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Final

from hermes.chat.bot import Bot
from hermes.clock import Clock
from hermes.commands.setup import file, parts, prompts
from hermes.commands.setup.background import Background, listener_need
from hermes.commands.setup.bot import Connect, Run, choose_bot
from hermes.commands.setup.database import choose_database
from hermes.commands.setup.file import Draft
from hermes.commands.setup.finish import Finish, Plan
from hermes.commands.setup.given import Given
from hermes.commands.setup.joining import plan_to_join
from hermes.commands.setup.people import choose_people
from hermes.commands.setup.terminal import Terminal
from hermes.config import reading as configuration
from hermes.config.settings import Config
from hermes.errors import HermesError

FAILED: Final = 1
INTERRUPTED: Final = 130
_WAKES_S: Final = 1.0


def run(given: Given, *, place: Path, environ: Mapping[str, str], terminal: Terminal, clock: Clock) -> int:
    """Set Hermes up, and return the exit status.

    Raises:
        HermesError: it ended before the configuration was changed; a listener that it stopped is started again.
    """
    setup = _Setup(given, place, environ, terminal)
    with told_to_leave(), asyncio.Runner(loop_factory=clock.loop) as runner:
        try:
            return setup.run(runner.run, clock.now)
        except KeyboardInterrupt:
            what = "what was done until here stays" if setup.saved else "the configuration stays as it was"
            terminal.title(f"Stopped: {what}.")
            return INTERRUPTED


@contextmanager
def told_to_leave() -> Iterator[None]:
    """Let SIGHUP (a closed terminal) and SIGTERM act as Ctrl-C, so that a stopped listener is started again."""

    def interrupt(_: int, frame: FrameType | None) -> None:
        interrupted = signal.getsignal(signal.SIGINT)  # the handler of asyncio cancels the task that runs
        if not callable(interrupted):
            raise KeyboardInterrupt
        interrupted(signal.SIGINT, frame)

    # A signal that comes between a prompt and the read after it does not interrupt that read, and would be handled
    # only after the next key: so a timer interrupts the read.
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, _WAKES_S, _WAKES_S)
    numbers = [one for one in (signal.SIGHUP, signal.SIGTERM) if signal.getsignal(one) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number in (*numbers, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)


class _Setup:
    """One run of the setup. `saved` tells whether the configuration is written; all questions are asked before that."""

    def __init__(self, given: Given, place: Path, environ: Mapping[str, str], terminal: Terminal) -> None:
        self.saved = False
        self._given, self._place, self._environ, self._terminal = given, place, environ, terminal

    def run(self, run: Run, now: Callable[[], float]) -> int:
        file.need_writable(self._place)
        draft = file.read(self._place, environ=self._environ)
        connect = _connect(self._given, draft.settings)
        own = draft.config and draft.config.phone
        shared_bot = own.bot_id if own and draft.settings.store.address else None
        settings, environ = draft.settings, self._environ
        background = Background(self._terminal, self._place, settings, environ=environ, shared_bot=shared_bot)
        try:
            plan = (
                plan_to_join(self._terminal, self._given, draft, background, environ=self._environ, run=run)
                if self._given.store.joins
                else self._plan(draft, background, connect=connect, run=run, now=now)
            )
            return self._carry_out(plan, background, connect=connect, run=run)
        finally:
            self._bring_back(background)

    def _bring_back(self, background: Background) -> None:
        try:
            for sentence in background.back():
                self._terminal.done(sentence)
        except HermesError as error:  # it must not hide the error that ends the setup
            self._terminal.warn(str(error))

    def _plan(
        self, draft: Draft, background: Background, *, connect: Connect, run: Run, now: Callable[[], float]
    ) -> Plan:
        terminal, given = self._terminal, self._given
        self._welcome(draft)
        bot = choose_bot(terminal, given, draft, connect=connect, run=run)
        people = choose_people(terminal, given, draft, bot, connect=connect, run=run, alone=background.alone, now=now)
        agents = parts.choose_agents(terminal, given, environ=self._environ)
        before, phones = draft.settings.prompts, 1 if people.chat_id > 0 else len(people.users)
        database = choose_database(terminal, given, draft, bot_id=bot.me.id, run=run)
        has_prompts = prompts.choose_prompts(terminal, given, before, phones=phones)
        changes = replace(
            bot.changes,
            chat_id=people.chat_id,
            users=people.users,
            api_base=given.api_base,
            proxy=given.proxy,
            prompts=has_prompts if has_prompts != before.enabled else None,
            store=None if database is None else database.change,
        )
        brings_others = database is not None or draft.settings.store.address is not None
        service = background.choose_service(given, listener_need(has_prompts=has_prompts, brings_others=brings_others))
        return Plan(changes, agents, service, database, bot, people, parts.choose_test(terminal, given))

    def _welcome(self, draft: Draft) -> None:
        self._terminal.title("Hermes: answer your coding agent from your phone")
        if draft.lacks:
            self._terminal.warn(draft.lacks)
        if self._terminal.interactive:
            self._terminal.say("Ctrl-C leaves everything as it is now.", "dim")

    def _carry_out(self, plan: Plan, background: Background, *, connect: Connect, run: Run) -> int:
        finish = Finish(self._terminal, self._place, environ=self._environ, connect=connect, run=run)
        changed = finish.save(plan)
        self.saved = True
        config = configuration.load(self._place, environ=file.without_asked(self._environ))
        finish.warn_of_shell(config)
        finish.greet(plan, has_prompts=config.prompts.enabled)
        finish.tell_prompts(plan)
        finish.connect_agents(plan, config)
        finish.listen(plan, config, background, changed=changed)
        if plan.test and not finish.has_other_listener:
            finish.test(config)
        finish.farewell(config)
        return 0 if finish.ok else FAILED


def _connect(given: Given, settings: Config) -> Connect:
    """Return a function that makes the bot of a token, with the configured server, proxy and CA file."""
    kept = settings.telegram.proxy
    return partial(
        Bot,
        api_base=given.api_base or settings.telegram.api_base,
        proxy=given.proxy or (kept.get_secret_value() if kept else None),
        ca_file=settings.telegram.ca_file,
    )
