"""The folders through which Hermes calls the plugins in the processes of agents, and in which these name themselves.

    ROOT/plugins/ID/plugin.json   {v, pid, start, directories, sessions}, see `Plugin`
    ROOT/plugins/ID/in/N.json     a call; the plugin takes it by rename
    ROOT/plugins/ID/out/N.json    the answer

The plugin makes its folder, as long as prompts are on, and never removes it; `sweep` does, some time after the process
has ended. Until then the folder tells which sessions ended with it.
"""

# pathlib would turn each of many names into an object:
# ruff: noqa: PTH108, PTH118

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import time
from dataclasses import dataclass

from hermes import disk
from hermes.hook import spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ENDED_KEPT_S = 3600.0
ENDED_KEPT = 20
UNTOLD_S = 60.0
"""A folder that does not say whose it is, is removed after this time."""
_LARGEST = 1024 * 1024
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plugin in a process, as its folder tells.

    - `pid`, `start`: the process, and the system's own time of its start, "" if the system does not tell it.
    - `directories`: where it has sessions. `sessions`: when the process last worked on each session (epoch ms).
    - `is_alive`: its process is there.
    """

    folder: str
    pid: int
    start: str
    directories: tuple[str, ...]
    sessions: Mapping[str, float]
    is_alive: bool

    @property
    def used_ms(self) -> float:
        """Return when the process last worked on any session, 0 if it did not yet."""
        return max(self.sessions.values(), default=0.0)


def plugins(root: str | Path) -> list[Plugin]:
    """Return all plugins with a folder that nobody else can reach, also those whose process has ended."""
    found = [_plugin(folder) for folder in _folders(root)]
    return [plugin for plugin in found if plugin is not None]


def sweep(root: str | Path, *, now_s: float) -> int:
    """Remove the folders of processes that ended a while ago; return how many."""
    ended = []
    for folder in _folders(root):
        plugin = _plugin(folder)
        if plugin is None or not plugin.is_alive:
            ended.append((_changed_s(folder), folder, UNTOLD_S if plugin is None else ENDED_KEPT_S))
    ended.sort(reverse=True)
    old = [
        folder for number, (at_s, folder, kept_s) in enumerate(ended) if at_s < now_s - kept_s or number >= ENDED_KEPT
    ]
    for folder in old:
        shutil.rmtree(folder, ignore_errors=True)
    return len(old)


def forget_calls(root: str | Path) -> None:
    """Remove the calls that no plugin has taken: the listener that made them has ended, and made no other."""
    for folder in _folders(root):
        calls = os.path.join(folder, "in")
        for name in spool.names_in(calls):
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(calls, name))


def _folders(root: str | Path) -> list[str]:
    above = os.path.join(root, "plugins")
    if not _is_private(above):
        return []
    return [path for name in sorted(spool.names_in(above)) if _is_private(path := os.path.join(above, name))]


def _is_private(path: str) -> bool:
    """Tell whether this is a folder of this user, not a link, that nobody else can enter."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def _plugin(folder: str) -> Plugin | None:
    try:
        told = json.loads(disk.read(os.path.join(folder, "plugin.json"))[: _LARGEST + 1])
        pid, start = told["pid"], told["start"]
        directories = tuple(one for one in told["directories"] if isinstance(one, str))
        sessions = {one: float(at_ms) for one, at_ms in told["sessions"].items() if isinstance(at_ms, int | float)}
    except (OSError, ValueError, OverflowError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    if told.get("v") != _VERSION or not isinstance(pid, int) or pid <= 1 or not isinstance(start, str):
        return None
    return Plugin(folder, pid, start, directories, sessions, is_alive(pid, start))


def is_alive(pid: int, start: str = "") -> bool:
    """Tell whether this process of this user runs; with `start`, the one that started then by the system's own time."""
    try:
        os.kill(pid, 0)
    except (OSError, OverflowError):  # it has ended, or another user's process has this number now
        return False
    try:
        told = disk.read(f"/proc/{pid}/stat")
    except OSError:
        return True
    # The state follows the name, which stands in brackets and may contain some.
    fields = told.rpartition(b")")[2].split()
    return fields[0] not in {b"Z", b"X"} and (not start or fields[19].decode() == start)


def _changed_s(folder: str) -> float:
    for path in (os.path.join(folder, "plugin.json"), folder):
        with contextlib.suppress(OSError):
            return os.lstat(path).st_mtime
    return time.time()
