"""A temporary folder that is left by nobody: where the demo itself is killed, a guardian ends what lives in it.

    with guarded_folder("hermes-demo-") as folder:
        folder.holds(process.pid)    # a process group

The guardian is a process of its own, which waits for the end of a pipe that only the demo holds open. That pipe also
tells it the process groups, one a line; a listener is known by its lock.
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
        """Tell of a process group that ends with the demo, and is a child of it (so no other gets its number)."""
        self._guardian.write(b"%d\n" % group)
        self._guardian.flush()


@contextmanager
def guarded_folder(prefix: str) -> Iterator[GuardedFolder]:
    """Make a folder; who leaves in order has ended the processes in it."""
    with tempfile.TemporaryDirectory(prefix=prefix) as name:
        command = [sys.executable, "-I", "-m", "hermes.commands.demo.guardian", name]
        # A session of its own, for what ends the whole group of the demo.
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
    while time.monotonic() < deadline:  # a hook that hears of its agent's end writes that down, into a folder made anew
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(LOOK_S)


def main() -> None:
    """Wait for the end of standard input."""
    groups = [int(line) for line in sys.stdin]
    end(Path(sys.argv[1]), groups)


if __name__ == "__main__":
    main()
