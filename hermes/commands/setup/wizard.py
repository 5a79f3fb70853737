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
from hermes.commands.setup.bot import choose_bot
from hermes.commands.setup.context import Context
from hermes.commands.setup.database import choose_database
from hermes.commands.setup.finish import Finish, Plan
from hermes.commands.setup.given import Given
from hermes.commands.setup.joining import plan_to_join
from hermes.commands.setup.people import choose_people
from hermes.commands.setup.terminal import Terminal
from hermes.config.settings import Config
from hermes.errors import HermesError

FAILED: Final = 1
INTERRUPTED: Final = 130
_WAKES_S: Final = 1.0


def run(given: Given, *, place: Path, environ: Mapping[str, str], terminal: Terminal, clock: Clock) -> int:
    """Set Hermes up, and return the exit status. All questions are asked before anything is changed.

    Raises:
        HermesError: it ended before the configuration was changed; a listener that it stopped is started again.
    """
    file.need_writable(place)
    draft = file.read(place, environ=environ)
    connect = _connect(given, draft.settings)
    with told_to_leave(), asyncio.Runner(loop_factory=clock.loop) as runner:
        context = Context(terminal, given, draft, environ, connect, runner.run, clock.now)
        joins, finish = given.store.joins, Finish(context)
        background = Background(replace(context, terminal=terminal.with_defaults()) if joins else context)
        try:
            with _brought_back(background, terminal):
                plan = plan_to_join(context, background) if joins else _plan(context, background)
                finish.carry_out(plan, background)
        except KeyboardInterrupt:
            what = "what was done until here stays" if finish.saved else "the configuration stays as it was"
            terminal.title(f"Stopped: {what}.")
            return INTERRUPTED
    return 0 if finish.ok else FAILED


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


@contextmanager
def _brought_back(background: Background, terminal: Terminal) -> Iterator[None]:
    """Start a listener again that is still stopped at the end of the block."""
    try:
        yield
    finally:
        try:
            for sentence in background.back():
                terminal.done(sentence)
        except HermesError as error:  # it must not hide the error that ends the setup
            terminal.warn(str(error))


def _plan(context: Context, background: Background) -> Plan:
    given, draft = context.given, context.draft
    _welcome(context)
    bot = choose_bot(context)
    people = choose_people(context, bot, background.alone)
    agents = parts.choose_agents(context)
    before, phones = draft.settings.prompts, 1 if people.chat_id > 0 else len(people.users)
    database = choose_database(context, bot_id=bot.me.id)
    has_prompts = prompts.choose_prompts(context, phones=phones)
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
    service = background.choose_service(listener_need(has_prompts=has_prompts, brings_others=brings_others))
    return Plan(changes, agents, service, database, bot, people, parts.choose_test(context))


def _welcome(context: Context) -> None:
    context.terminal.title("Hermes: answer your coding agent from your phone")
    if context.draft.lacks:
        context.terminal.warn(context.draft.lacks)
    if context.terminal.interactive:
        context.terminal.say("Ctrl-C leaves everything as it is now.", "dim")


def _connect(given: Given, settings: Config) -> Callable[[str], Bot]:
    """Return a function that makes the bot of a token, with the configured server, proxy and CA file."""
    kept = settings.telegram.proxy
    return partial(
        Bot,
        api_base=given.api_base or settings.telegram.api_base,
        proxy=given.proxy or (kept.get_secret_value() if kept else None),
        ca_file=settings.telegram.ca_file,
    )
