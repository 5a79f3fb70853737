"""An agent at the desk: its terminal interface in a pseudo-terminal, read as a person reads the screen."""

import contextlib
import fcntl
import os
import re
import select
import struct
import termios
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

import pyte

from hermes.sandbox.model_server import script
from tests.harness.home import Home, binary
from tests.harness.opencode import Steps
from tests.harness.processes import Proc, until

COLUMNS, LINES = 120, 45
_BUSY = re.compile(r"esc (again to )?interrupt|esc dismiss")
UP, DOWN, RIGHT, LEFT = "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D"
ENTER, ESC, TAB = "\r", "\x1b", "\t"


class _Screen(pyte.Screen):
    """A screen that answers when an agent asks its terminal who it is and where the cursor stands."""

    def __init__(self, send: Callable[[str], None]) -> None:
        super().__init__(COLUMNS, LINES)
        self._send = send

    def write_process_input(self, data: str) -> None:
        self._send(data)


class Terminal:
    """A program in a terminal of 120 x 45; arguments as of `Proc`."""

    def __init__(
        self, command: Sequence[str | Path], *, cwd: Path, environ: Mapping[str, str], log_dir: Path, name: str
    ) -> None:
        self._screen = _Screen(self.send)
        self._stream = pyte.ByteStream(self._screen)
        self._lock = threading.Lock()
        self._ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        try:
            self.proc = Proc(
                command, cwd=cwd, environ=environ, log_dir=log_dir, name=f"{name}-{self._ours}", terminal=theirs
            )
        finally:
            os.close(theirs)
        self._ended = threading.Event()
        self._reader = threading.Thread(target=self._read, name="tui-screen", daemon=True)

    def __enter__(self) -> Self:
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """End the program and everything in its process group at once (SIGKILL). Safe to repeat."""
        self.proc.close()
        if not self._ended.is_set():
            self._ended.set()
            self._reader.join(10)
            os.close(self._ours)

    def _read(self) -> None:
        while not self._ended.is_set():
            readable, _, _ = select.select([self._ours], [], [], 0.1)
            if readable:
                try:
                    output = os.read(self._ours, 65536)
                except OSError:  # EIO: nobody holds the other side any more
                    return
                with self._lock:
                    self._stream.feed(output)

    def screen(self) -> str:
        """Return what stands on the screen now, without the blank ends of its lines."""
        with self._lock:
            return "\n".join(line.rstrip() for line in self._screen.display)

    def send(self, keys: str) -> None:
        """Press keys: text, or `ENTER`, `ESC`, `DOWN` and their like."""
        with contextlib.suppress(OSError):  # a dead terminal takes no keys
            os.write(self._ours, keys.encode())

    def wait_screen(self, wanted: str | Callable[[str], bool], timeout_s: float = 80) -> str:
        """Wait until the screen holds a text (or satisfies a predicate) and return it.

        Raises:
            AssertionError: it never did; the message shows the last screen.
        """
        holds: Callable[[str], bool] = (lambda text: wanted in text) if isinstance(wanted, str) else wanted
        what = repr(wanted) if isinstance(wanted, str) else "the predicate"

        def shown() -> str:
            text = self.screen()
            assert holds(text), f"{self.proc!r} shows:\n{text}"
            return text

        try:
            return until(shown, timeout_s, f"{what} on the screen")
        except AssertionError as error:  # as text, not as a repr in which every line end is escaped
            raise AssertionError(str(error).replace("\\n", "\n")) from None

    def wait_answered(self, words: str) -> None:
        """Wait until both stand there: the prompt, a script that has these words, and the answer, which is them."""
        self.wait_screen(lambda screen: screen.count(words) == 2)


class Tui(Terminal):
    """A plain `opencode` without a port, of one version.

    With `steps` the first prompt goes along as `--prompt` and the model keeps its results under `key`;
    otherwise type it with `prompt()`.
    """

    def __init__(
        self,
        home: Home,
        directory: Path,
        *,
        steps: Steps | None = None,
        key: str = "desk",
        arguments: tuple[str, ...] = (),
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.key = key
        self._prompts = 0
        first = ("--prompt", script(steps, key)) if steps is not None else ()
        super().__init__(
            [binary(home.version), *arguments, *first],
            cwd=directory,
            environ=home.environ(COLORTERM="truecolor", **(environ or {})),
            log_dir=home.logs,
            name=f"tui-{key}",
        )

    def prompt(self, steps: Steps) -> None:
        """Type a prompt with these steps and press Enter; its results are kept under `key`."""
        self.wait_ready()
        self._prompts += 1
        typed = f"#{self._prompts}"  # behind the script, where the model does not look
        self.send(f"{script(steps, self.key)} {typed}")
        self.wait_screen(typed)
        self.send(ENTER)

    def wait_ready(self) -> str:
        """Wait until no turn runs and no dialog stands there: a prompt will be taken.

        1.1.53 keeps a prompt that comes while a rejected turn is still ending, and never runs it.
        """
        return self.wait_screen(lambda text: "ctrl+p commands" in text and not _BUSY.search(text))

    def wait_dialog(self) -> str:
        """Wait until a question's dialog stands there with its footer, ready for keys."""
        return self.wait_screen("esc dismiss")

    def wait_no_dialog(self) -> str:
        """Wait until the dialog has gone, however it was answered."""
        return self.wait_screen(lambda text: "esc dismiss" not in text)
