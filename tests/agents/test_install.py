"""`hermes install oh-my-pi`, `… neovate`, and back: one file of our own, and nothing else is touched."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from hermes.agents.neovate import install as neovate
from hermes.agents.oh_my_pi import install as oh_my_pi
from hermes.agents.plugin_file import MARKER, PHONE, SETTINGS
from hermes.commands.install import AGENTS
from hermes.errors import ConfigError
from tests.harness.node import node

if TYPE_CHECKING:
    from pathlib import Path

BOTH = pytest.mark.parametrize("connect", [oh_my_pi, neovate], ids=["oh-my-pi", "neovate"])


def put(connect: Any, home: Path, **more: Any) -> list[str]:
    """Install into this home."""
    said: list[str] = connect.install(
        environ={"HOME": str(home)},
        python=sys.executable,
        config_path=home / 'odd "name" \u2028 ünï' / "config.toml",
        store=home / "state",
        log=home / "log",
        **more,
    )
    return said


def settings(place: Path) -> dict[str, Any]:
    """What stands in an installed plugin."""
    (line,) = (line for line in place.read_text().split("\n") if line.startswith("const settings = "))
    found: dict[str, Any] = json.JSONDecoder().raw_decode(line.removeprefix("const settings = "))[0]
    return found


@pytest.mark.parametrize(
    ("connect", "folder"), [(oh_my_pi, ".omp/agent/extensions"), (neovate, ".neovate/plugins")], ids=["omp", "neovate"]
)
def test_one_file_is_written_with_absolute_paths(connect: Any, folder: str, tmp_path: Path) -> None:
    """Closed to others, and whole: what plugins share stands in it."""
    place = tmp_path / folder / "hermes-telegram-phone.js"
    assert put(connect, tmp_path)[0] == f"{place} is installed."
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [place]
    found = settings(place)
    assert (found["python"], found["store"]) == (sys.executable, str(tmp_path / "state"))
    assert found["config"] == str(tmp_path / 'odd "name" \u2028 ünï' / "config.toml")
    text = place.read_text()
    assert text.startswith(MARKER)
    assert SETTINGS not in text
    assert PHONE.strip() not in text
    assert text.count("function phone(") == 1


@BOTH
@pytest.mark.scene(needs=node)
def test_it_is_javascript(connect: Any, tmp_path: Path) -> None:
    """Of the kind that its agent loads."""
    put(connect, tmp_path)
    place = connect.PLUGIN.path({"HOME": str(tmp_path)})
    kind = "module" if connect is oh_my_pi else "commonjs"
    with place.open() as text:
        subprocess.run([node(), "--check", f"--input-type={kind}", "-"], stdin=text, check=True)


@BOTH
def test_both_directions_can_be_repeated(connect: Any, tmp_path: Path) -> None:
    """Up to date: nothing is written; older: it is updated; removed: nothing else goes."""
    place = connect.PLUGIN.path({"HOME": str(tmp_path)})
    assert connect.uninstall(environ={"HOME": str(tmp_path)}) == [f"{place} is not there; nothing was changed."]
    put(connect, tmp_path)
    before = place.stat()
    assert put(connect, tmp_path) == [f"{place} is already installed and up to date."]
    assert place.stat().st_mtime_ns == before.st_mtime_ns
    place.write_text(f"{MARKER} of an older version\n")
    assert put(connect, tmp_path)[0] == f"{place} was updated."
    (place.parent / "mine.js").write_text("mine")
    assert connect.uninstall(environ={"HOME": str(tmp_path)})[0] == f"{place} was removed."
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["mine.js"]


@BOTH
def test_a_foreign_file_of_that_name_is_left_alone(connect: Any, tmp_path: Path) -> None:
    """In both directions."""
    place = connect.PLUGIN.path({"HOME": str(tmp_path)})
    place.parent.mkdir(parents=True)
    place.write_text("// somebody else's")
    with pytest.raises(ConfigError, match="was not written by Hermes"):
        put(connect, tmp_path)
    with pytest.raises(ConfigError, match="was not written by Hermes"):
        connect.uninstall(environ={"HOME": str(tmp_path)})
    assert place.read_text() == "// somebody else's"


def test_asking_without_a_terminal_is_an_option(tmp_path: Path) -> None:
    """Of oh-my-pi; installing it again without a word on it leaves that as it is."""
    place = oh_my_pi.PLUGIN.path({"HOME": str(tmp_path)})
    put(oh_my_pi, tmp_path)
    assert settings(place)["headless"] is False
    assert put(oh_my_pi, tmp_path, headless=True) == [
        f"{place} was updated.",
        "Restart oh-my-pi to load it.",
        "Without a terminal it asks on the phone, too.",
    ]
    put(oh_my_pi, tmp_path)
    assert settings(place)["headless"] is True
    put(oh_my_pi, tmp_path, headless=False)
    assert settings(place)["headless"] is False


@pytest.mark.parametrize(
    ("environ", "agent"),
    [
        ({}, "~/.omp/agent"),
        ({"PI_CONFIG_DIR": ".pi"}, "~/.pi/agent"),
        ({"PI_CODING_AGENT_DIR": "/srv/agent"}, "/srv/agent"),
        ({"OMP_PROFILE": "work"}, "~/.omp/profiles/work/agent"),
        ({"PI_PROFILE": "work", "PI_CODING_AGENT_DIR": "/srv/agent"}, "~/.omp/profiles/work/agent"),
        ({"OMP_PROFILE": "", "PI_PROFILE": "work"}, "~/.omp/agent"),
        ({"OMP_PROFILE": "default"}, "~/.omp/agent"),
    ],
)
def test_the_place_is_where_oh_my_pi_looks(environ: dict[str, str], agent: str, tmp_path: Path) -> None:
    """As its dirs.ts reads the environment."""
    place = oh_my_pi.PLUGIN.path({"HOME": str(tmp_path), **environ})
    assert str(place.parent.parent) == agent.replace("~", str(tmp_path))
    assert place.parent.name == "extensions"


def test_both_are_offered() -> None:
    """By `hermes install` and by the setup, which looks for their programs."""
    found = {agent.name: agent for agent in AGENTS}
    assert (found["oh-my-pi"].program, found["oh-my-pi"].install) == ("omp", oh_my_pi.install)
    assert (found["neovate"].program, found["neovate"].uninstall) == ("neovate", neovate.uninstall)
