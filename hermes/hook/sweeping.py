"""Removes the files and sockets that dead processes left."""

# pathlib would turn each of many names into an object:
# ruff: noqa: PTH108, PTH116, PTH118

from __future__ import annotations

import contextlib
import fcntl
import os
import time

from hermes.hook import plugin_folders, runtime, spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

LEFTOVER_AFTER_S = 60.0
ENDED_AFTER_S = 30 * 86400.0
"""The mark of a session that has ended, and an answer that no hook has taken, stay for so long."""


def sweep(root: str | Path, *, now: float | None = None) -> int:
    """Remove the unfinished files, locks and sockets of dead processes; return how many files of the store it removed.

    The folders of plugins whose process ended a while ago go, too.
    Unfinished files and sockets that are younger than a minute stay, because a live process may still need them.
    """
    now_s = time.time() if now is None else now
    old_s = now_s - LEFTOVER_AFTER_S
    plugin_folders.sweep(root, now_s=now_s)
    for path in _sockets_of_nobody(root, old_s):
        _remove(path)
    rooms = [os.path.join(root, room) for room in ("inbox", "wait")]
    files = [(folder, name) for folder in rooms for name in spool.names_in(folder)]
    unfinished = [os.path.join(*each) for each in files if each[1].startswith(".")]
    over = [os.path.join(*each) for each in files if each[1].endswith((".ended", ".answer"))]
    unfinished += [path for path in over if _older(path, now_s - ENDED_AFTER_S)]
    locks = [os.path.join(*each) for each in files if each[1].endswith(".lock")]
    return sum([_remove(path) for path in unfinished if _older(path, old_s)] + [*map(_remove_unheld, locks)])


def _remove(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:  # the file is gone, or this user may not remove it
        return False
    return True


def _remove_unheld(path: str) -> bool:
    """Remove a lock file if no process holds it, and return whether it was removed.

    This process holds the lock meanwhile, so that no other process gets the lock of a file that is being removed.
    """
    try:
        probe = os.open(path, os.O_RDWR)
    except OSError:  # the file is gone, or is no lock of Hermes
        return False
    with contextlib.closing(os.fdopen(probe)), contextlib.suppress(BlockingIOError):
        fcntl.flock(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return spool.is_same_file(probe, path) and _remove(path)
    return False


def _sockets_of_nobody(root: str | Path, old_s: float) -> list[str]:
    """Return the old sockets, of any store, that refuse a datagram; the probe nudges the processes of the others."""
    try:
        folder = runtime.folder(root)
    except OSError:
        return []
    old = [name for name in spool.names_in(folder) if name.endswith(".sock") and _older(f"{folder}/{name}", old_s)]
    return [f"{folder}/{name}" for name in old if not spool.poke(root, name)]


def _older(path: str, than_s: float) -> bool:
    try:
        return os.stat(path).st_mtime < than_s
    except FileNotFoundError:
        return False
