"""`hermes demo`: start the stage, serve its page, and leave nothing behind."""

from __future__ import annotations

import importlib.util
import logging
import signal
import threading
import webbrowser
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hermes.commands.demo.computer import Computer, ScriptedComputer
from hermes.commands.demo.opencode import OpenCodeComputer, program
from hermes.commands.demo.page import serving
from hermes.commands.demo.stage import staged
from hermes.errors import ConfigError, HermesError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes.commands.demo.page import Shown


def run(*, opencode: bool, machines: int, topics: bool, port: int, open_page: bool, say: Callable[[str], None]) -> None:
    """Serve until SIGINT, SIGTERM or SIGHUP. Raises HermesError: the demo cannot start, and why."""
    # Connections are cut at the end, and when an agent goes away, which is no error: uvicorn's log is discarded, and so
    # are the warnings of asyncio, which come if something is still sent to them.
    logging.getLogger("uvicorn").addHandler(logging.NullHandler())
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    with (
        _until_told() as told,
        _staged(opencode=opencode, machines=machines, topics=topics) as stage,
        serving(stage, port=port) as url,
    ):
        say(f"Hermes in your browser: {url}")
        say("An agent has asked you something: answer it there. Ctrl-C ends the demo.")
        if open_page:
            webbrowser.open(url)
        told.wait()


@contextmanager
def _staged(*, opencode: bool, machines: int, topics: bool) -> Iterator[Shown]:
    """Yield what is behind the page, once an agent has asked. Raises HermesError."""
    if machines == 1:
        with staged(_computer(opencode=opencode), topics=topics) as stage:
            stage.ask("one")
            yield stage
        return
    if opencode:
        raise ConfigError("--machines has scripted agents: leave --opencode out")
    if importlib.util.find_spec("psycopg") is None:
        raise HermesError("--machines needs psycopg: install hermes-phone[postgres]")
    from hermes.commands.demo.machines import NAMES, fleet  # noqa: PLC0415 (few have psycopg)

    with fleet(machines, topics=topics) as several:
        several.ask("one", NAMES[1])
        yield several


def _computer(*, opencode: bool) -> Computer:
    return OpenCodeComputer(program()) if opencode else ScriptedComputer()


@contextmanager
def _until_told() -> Iterator[threading.Event]:
    """Yield an event that SIGINT, SIGTERM and SIGHUP set."""
    told = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, lambda *_: told.set()) for number in numbers}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
