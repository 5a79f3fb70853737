"""The standard streams of a command: always open, and never a reason to stop halfway.

What a command does, and its exit status, must not depend on whether somebody reads what it prints: `hermes uninstall
all | head -1` removes everything, too. So an error of standard output is told once, at the end. One of standard error
cannot be told: a script must still learn from the status of `hermes ask` what was answered.
"""

import contextlib
import io
import os
import select
import sys
from typing import TextIO


class Stream(io.FileIO):
    """A stream that never fails: what cannot be written is lost."""

    def write(self, data: "bytes | bytearray | memoryview") -> int:  # type: ignore[override]
        """Write the data, or throw it away; wait for room if another program made it not block. Return the bytes."""
        try:
            while (written := super().write(data)) is None:
                select.select((), (self,), ())
        except OSError as error:
            self.failed(error)
            return len(data)
        return written

    def failed(self, error: OSError) -> None:
        """Lose this line; the next one may find room."""


class Output(Stream):
    """Standard output. After an error it writes to /dev/null, and `error` is that error."""

    error: OSError | None = None

    def failed(self, error: OSError) -> None:
        """Write no more, so that the output has no gap."""
        self.error = error
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())

    def fault(self) -> str:
        """Return why not all was written, or "". A reader that has left, as `head` does, is no fault."""
        if self.error is None or isinstance(self.error, BrokenPipeError):
            return ""
        return self.error.strerror or str(self.error)


def prepare() -> Output | None:
    """Make the streams usable, and return standard output; None if it is not a file, as in a test.

    Closed streams are opened on /dev/null, in this order: so each gets its own number, which no file of the store may
    get. Standard output writes "?" for a sign that its encoding lacks.
    """
    sys.stdin = sys.stdin or _null("r")
    sys.stdout = sys.stdout or _null("w")
    sys.stderr = sys.stderr or _null("w")
    now = sys.stdout
    try:
        output = Output(now.fileno(), "w", closefd=False)
    except io.UnsupportedOperation:
        return None
    now.flush()
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(output), now.encoding, errors="replace", line_buffering=now.isatty()
    )
    aside = sys.stderr
    with contextlib.suppress(io.UnsupportedOperation):
        stream = Stream(aside.fileno(), "w", closefd=False)
        sys.stderr = io.TextIOWrapper(
            io.BufferedWriter(stream), aside.encoding, errors=aside.errors, line_buffering=True
        )
    return output


def _null(mode: str) -> TextIO:
    return io.TextIOWrapper(io.FileIO(os.open(os.devnull, os.O_RDWR), mode, closefd=False), "utf-8")
