"""A host name that only this process and its children have, so that a round may change it (Linux, as root)."""

from __future__ import annotations

import ctypes
import os
import socket
import sys
from pathlib import Path
from typing import Final

CLONE_NEWUTS: Final = 0x04000000
_OWN: Final = Path("/proc/thread-self/ns/uts")
_FIRST: Final = str(_OWN.readlink()) if _OWN.exists() else ""


def leave_the_machines() -> bool:
    """Give this thread, and what it starts from now on, a host name of its own; tell whether that could be had."""
    if sys.platform != "linux" or os.geteuid() != 0 or not _FIRST:
        return False
    return _is_own() or (ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUTS) == 0 and _is_own())


def change(name: str) -> None:
    """Take this host name. Raises AssertionError where that would change the machine's."""
    assert _is_own(), "the host name of the machine itself is not ours to change"
    socket.sethostname(name)


def _is_own() -> bool:
    return str(_OWN.readlink()) != _FIRST
