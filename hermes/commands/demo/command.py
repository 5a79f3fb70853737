"""`hermes demo`: sets the stage, serves its page, and leaves nothing behind."""

from __future__ import annotations

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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def run(*, opencode: bool, port: int, open_page: bool, say: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM. Raises HermesError where something is missing."""
    # A connection that is cut at the end, or by an agent that goes away, is no error to tell of.
    logging.getLogger("uvicorn").addHandler(logging.NullHandler())
    with _until_told() as told, staged(_computer(opencode=opencode)) as stage, serving(stage, port=port) as url:
        stage.ask("one")
        say(f"Hermes in your browser: {url}")
        say("An agent has asked something already: answer it there, then try to lose an answer. Ctrl-C ends it all.")
        if open_page:
            webbrowser.open(url)
        told.wait()


def _computer(*, opencode: bool) -> Computer:
    return OpenCodeComputer(program()) if opencode else ScriptedComputer()


@contextmanager
def _until_told() -> Iterator[threading.Event]:
    """An event that the end of this process sets, however it is asked for."""
    told = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, lambda *_: told.set()) for number in numbers}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
