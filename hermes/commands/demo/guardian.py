"""A temporary folder whose processes end even if the demo is killed: a guardian ends them, and removes the folder.

    with guarded_folder("hermes-demo-") as folder:
        folder.holds(process.pid)    # a process group

The guardian is a separate process that waits for the end of a pipe; only the demo holds the other end open. Through
this pipe the demo also sends the process groups, one on each line. The listener is found by the lock of its store.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from hermes.commands.demo.processes import LOOK_S, PATIENCE_S, Daemon

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@dataclass(frozen=True, slots=True)
class GuardedFolder:
    """The folder at `path`."""

    path: Path
    _guardian: IO[bytes]

    def holds(self, group: int) -> None:
        """Register a process group to end with the demo. It must be a child, so that its id is not reused."""
        self._guardian.write(b"%d\n" % group)
        self._guardian.flush()


@contextmanager
def guarded_folder(prefix: str) -> Iterator[GuardedFolder]:
    """Make a folder, and remove it at the end. The caller must end its processes before it leaves the context."""
    with tempfile.TemporaryDirectory(prefix=prefix) as name:
        command = [sys.executable, "-I", "-m", "hermes.commands.demo.guardian", name]
        # A new session, so that a signal to the whole process group of the demo does not end the guardian.
        with subprocess.Popen(
            command, cwd="/", stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
        ) as guardian:
            assert guardian.stdin is not None  # noqa: S101 - it was opened as a pipe
            try:
                yield GuardedFolder(Path(name), guardian.stdin)
            finally:
                guardian.kill()


def end(folder: Path, groups: Iterable[int]) -> None:
    """End these process groups and the listener of this folder, and remove the folder."""
    for group in groups:
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
    config = folder / "config.toml"
    if config.exists():
        Daemon(folder, tomllib.loads(config.read_text(encoding="utf-8"))["telegram"], ()).close()
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:  # a hook whose agent has ended writes a record, and makes the folder again
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(LOOK_S)


def main() -> None:
    """Read process groups until standard input ends, then end all that belongs to the folder."""
    groups = [int(line) for line in sys.stdin]
    end(Path(sys.argv[1]), groups)


if __name__ == "__main__":
    main()
