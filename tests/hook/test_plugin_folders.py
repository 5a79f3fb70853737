"""The folders of plugins: who is alive, what is damaged, what is not ours, and what is removed when."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hermes.hook import plugin_folders, spool, sweeping
from hermes.hook.plugin_folders import ENDED_KEPT, ENDED_KEPT_S, UNTOLD_S

if TYPE_CHECKING:
    from collections.abc import Iterator

linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system has no /proc")
SESSIONS = {"ses_1": 5.0}


def started(pid: int) -> str:
    """The system's own time of the start of a process."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


def a_folder(root: Path, name: str = "p1", at_s: float | None = None, **told: Any) -> Path:
    """Make the folder of a plugin as it makes it itself, by default for this process."""
    folder = root / "plugins" / name
    for made in (root, root / "plugins", folder, folder / "in", folder / "out"):
        made.mkdir(mode=0o700, exist_ok=True)
    usual = {"v": 1, "pid": os.getpid(), "start": "", "directories": ["/project"], "sessions": SESSIONS}
    (folder / "plugin.json").write_text(json.dumps(usual | told))
    if at_s is not None:
        os.utime(folder / "plugin.json", (at_s, at_s))
    return folder


@contextmanager
def a_process() -> Iterator[int]:
    """A process that is ended and reaped with the block at the latest."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        yield process.pid
    finally:
        process.kill()
        process.communicate()


def test_what_a_plugin_tells_is_read(tmp_path: Path) -> None:
    """And a store without plugins has none."""
    assert plugin_folders.plugins(tmp_path) == []
    folder = a_folder(tmp_path)
    (plugin,) = plugin_folders.plugins(tmp_path)
    assert (plugin.folder, plugin.directories, plugin.sessions) == (str(folder), ("/project",), SESSIONS)
    assert plugin.used_ms == 5.0
    assert plugin.is_alive


@linux
def test_a_plugin_lives_as_long_as_its_process(tmp_path: Path) -> None:
    """A process that ended is dead before it is reaped; a later one with the same number is another one."""
    with a_process() as pid:
        a_folder(tmp_path, pid=pid, start=started(pid))
        assert [one.is_alive for one in plugin_folders.plugins(tmp_path)] == [True]
        a_folder(tmp_path, pid=pid, start="1")
        assert [one.is_alive for one in plugin_folders.plugins(tmp_path)] == [False]
        a_folder(tmp_path, pid=pid, start=started(pid))
        os.kill(pid, 9)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert [one.is_alive for one in plugin_folders.plugins(tmp_path)] == [False]
    assert [one.is_alive for one in plugin_folders.plugins(tmp_path)] == [False]


@pytest.mark.parametrize(
    "told",
    [
        {"v": 2},
        {"pid": "1"},
        {"pid": -1},
        {"pid": 0},
        {"pid": 1},
        {"start": None},
        {"directories": None},
        {"sessions": []},
    ],
    ids=str,
)
def test_a_plugin_that_tells_something_else_is_none(tmp_path: Path, told: dict[str, Any]) -> None:
    """A number below two is never the number of an agent's process."""
    a_folder(tmp_path, **told)
    assert plugin_folders.plugins(tmp_path) == []


HUGE = '{"v": 1, "pid": 2, "start": "", "directories": [], "sessions": {"ses_1": 1' + "0" * 400 + "}}"


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, '{"pid": 1}', "null", HUGE], ids=lambda text: text[:9])
def test_a_damaged_file_is_no_plugin(tmp_path: Path, text: str) -> None:
    """And holds up no other."""
    (a_folder(tmp_path) / "plugin.json").write_text(text)
    a_folder(tmp_path, "p2")
    assert [Path(one.folder).name for one in plugin_folders.plugins(tmp_path)] == ["p2"]


@pytest.mark.parametrize("which", ["plugins", "plugins/p1"])
@pytest.mark.parametrize("how", ["open", "link", "file"])
def test_a_folder_that_others_can_reach_is_not_used(tmp_path: Path, which: str, how: str) -> None:
    """Neither one with other rights, nor a link, nor a file in its place; nothing in it is removed."""
    root = tmp_path / "store"
    a_folder(root, at_s=0.0, pid=2**22 + 1)
    place = root / which
    if how == "open":
        place.chmod(0o750)
    else:
        moved = place.rename(tmp_path / "elsewhere")
        place.symlink_to(moved) if how == "link" else place.write_text("")
    assert plugin_folders.plugins(root) == []
    assert plugin_folders.sweep(root, now_s=1e9) == 0
    (tmp_path / "elsewhere" / "in").mkdir(parents=True, exist_ok=True)
    plugin_folders.forget_calls(root)


def test_folders_of_ended_processes_go_after_a_while(tmp_path: Path) -> None:
    """The folder of a live one stays however old it is; of those that ended, the newest ones stay an hour."""
    now_s = 1_757_000_000.0
    live = a_folder(tmp_path, "live", at_s=0.0)
    kept = a_folder(tmp_path, "kept", at_s=now_s - ENDED_KEPT_S + 1, pid=2**22 + 1)
    old = a_folder(tmp_path, "old", at_s=now_s - ENDED_KEPT_S - 1, pid=2**22 + 1)
    untold = a_folder(tmp_path, "untold", at_s=now_s - UNTOLD_S - 1, v=2)
    young = a_folder(tmp_path, "young", at_s=now_s - UNTOLD_S + 1, v=2)
    sweeping.sweep(tmp_path, now=now_s)
    assert [folder.exists() for folder in (live, kept, old, untold, young)] == [True, True, False, False, True]
    many = [a_folder(tmp_path, f"many{number}", at_s=now_s + number, pid=2**22 + 1) for number in range(ENDED_KEPT)]
    assert plugin_folders.sweep(tmp_path, now_s=now_s) == 2
    assert all(folder.exists() for folder in (live, *many))
    assert not kept.exists()


def test_calls_that_nobody_took_are_forgotten(tmp_path: Path) -> None:
    """By the next listener: their maker has ended, and cannot hear their answers."""
    folder = a_folder(tmp_path)
    for name in ("a.json", ".b.tmp"):
        (folder / "in" / name).write_text("{}")
    (folder / "out" / "c.json").write_text("{}")
    plugin_folders.forget_calls(tmp_path)
    assert spool.names_in(str(folder / "in")) == []
    assert (folder / "out" / "c.json").exists()
