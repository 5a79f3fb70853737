"""Show the question in the terminal that a script runs in, and read an answer there."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from hermes.commands.ask import typed
from hermes.commands.status.table import printable
from hermes.errors import StoreError
from hermes.model.ask import Question

LOOK_S: Final = 0.5
LATE_S: Final = 10.0
"""After so many seconds, the terminal says that the question is not on the phone yet."""


class Terminal:
    """Prints on `console` (standard error), and reads answers from `stdin` if a person can type there (`listens`)."""

    def __init__(self, console: Console, *, listens: bool, stdin: int = 0) -> None:
        self.listens = listens
        self._console = console
        self._stdin = stdin

    def say(self, words: str) -> None:
        """Print the words on a separate line."""
        self._console.print(Text(printable(words)), soft_wrap=True)

    # --- progress ---------------------------------------------------------------------------------------------

    async def progress(self, is_on_phone: Callable[[], Awaitable[bool]]) -> None:
        """Say when the question is on the phone, and once that it is late."""
        if self._console.is_terminal and not self.listens:
            self.say("Asking on your phone…")
        began_s = time.monotonic()
        late = False
        while not await self.shows(is_on_phone):
            if not late and time.monotonic() - began_s > LATE_S:
                late = True
                self.say("It is not on your phone yet; `hermes status` says why. I keep trying.")
            await asyncio.sleep(LOOK_S)
        self.say("It is on your phone, too: the first answer counts." if self.listens else "Asked on your phone.")

    @staticmethod
    async def shows(is_on_phone: Callable[[], Awaitable[bool]]) -> bool:
        """Tell whether the question is on the phone; return False if the store cannot be read."""
        try:
            return await is_on_phone()
        except (StoreError, OSError):
            return False

    # --- answering --------------------------------------------------------------------------------------------

    async def answers(self, questions: Sequence[Question]) -> tuple[tuple[str, ...], ...] | None:
        """Ask one question after the other; return None if the terminal takes no answers, or at Ctrl-D."""
        if not self.listens:
            return None
        given = []
        for place, question in enumerate(questions):
            self._show(question, f"{place + 1}/{len(questions)} " if len(questions) > 1 else "")
            said = await self._answer(question)
            if said is None:
                self.say("")
                self.say("I wait for your phone.")
                return None
            given.append(said)
        return tuple(given)

    def _show(self, question: Question, place: str) -> None:
        self._console.print(Text.assemble((f"{place}{printable(question.text)}", "bold")), soft_wrap=True)
        for index, option in enumerate(question.options):
            star = " ⭐" if index == question.recommended else ""
            more = f" – {printable(option.description)}" if option.description else ""
            self._console.print(Text(f"  {index + 1}  {printable(option.label)}{star}{more}"), soft_wrap=True)
        self._console.print(Text(typed.hint(question), style="dim"))

    async def _answer(self, question: Question) -> tuple[str, ...] | None:
        while True:
            line = await self._line()
            if not line:
                return None
            said = typed.answer(question, line)
            if said is not None:
                return said
            self.say(f"{typed.fault(question, line)} {typed.hint(question)}")

    async def _line(self) -> str:
        """Return the next typed line with its newline, or "" at the end of the input."""
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        data = b""
        loop.add_reader(self._stdin, ready.set)
        try:
            while not data.endswith(b"\n"):
                await ready.wait()
                more = _read(self._stdin)
                ready.clear()
                if not more:
                    break
                data += more
        finally:
            loop.remove_reader(self._stdin)
        return data.decode("utf-8", "replace")


def _read(stdin: int) -> bytes:
    """Return the typed bytes, or b"" if this process runs in the background and may not read the terminal."""
    try:
        return os.read(stdin, 4096)
    except OSError:
        return b""


def of_this_process() -> Terminal:
    """Return the terminal of this process; it listens if stdin and stderr are terminals, and not in the background."""
    console = Console(stderr=True, highlight=False)
    signal.signal(signal.SIGTTIN, signal.SIG_IGN)  # a read in the background then fails, and does not stop the process
    return Terminal(console, listens=console.is_terminal and sys.stdin.isatty() and _is_in_foreground())


def _is_in_foreground() -> bool:
    """Tell whether what is typed in the terminal of stdin is for this process."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:  # it is the terminal of another session
        return False
