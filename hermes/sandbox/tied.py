"""Processes that end with the program that started them, even if that is killed."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_TIED: Final = 'exec 3<&0; (read -r _ <&3 || { rm -f "$0"; kill -9 0; }) & exec "$@" 3<&- </dev/null'
"""Run a command, and beside it a shell that reads a line, or finds that there is none because the parent was killed."""


def tied(command: Sequence[str], *, needed: Path, **options: Any) -> subprocess.Popen[bytes]:
    r"""Start a command in a session of its own, where Ctrl-C does not reach it; its standard input is empty.

    If this program is killed, the file `needed` is removed, so that nobody starts the command again, and then the
    process group of the command is killed. `communicate(b"\n")` ends that watch, and waits for the end of the command.
    """
    shell = ["/bin/sh", "-c", _TIED, str(needed), *command]
    return subprocess.Popen(shell, stdin=subprocess.PIPE, start_new_session=True, **options)
