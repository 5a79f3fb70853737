"""`hermes install opencode` and back: one file of our own, and nothing else is touched."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import hermes
from hermes.agents import plugin_file
from hermes.agents.claude_code import install as claude_code
from hermes.agents.opencode import install
from hermes.commands.install import AGENTS, Agent, outdated
from hermes.errors import ConfigError, NotSaved
from hermes.storage import installed_files

NAME = "hermes-telegram-phone.js"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A person's home with an OpenCode configuration of their own."""
    folder = tmp_path / "home" / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.json").write_text('{"plugin": ["mine"]} // mine')
    return tmp_path / "home"


def environ(home: Path, **more: str) -> dict[str, str]:
    """What the process that installs has in its environment."""
    return {"HOME": str(home), **more}


def put(home: Path, **more: str) -> list[str]:
    """Install into this home."""
    return install.install(
        environ=environ(home, **more),
        python=sys.executable,
        config_path=home / 'odd "name" \u2028 ünï' / "config.toml",
        store=home / "state",
        log=home / "log",
    )


def settings(place: Path) -> dict[str, str]:
    """The paths that stand in an installed plugin."""
    (line,) = (line for line in place.read_text().split("\n") if line.startswith("const settings = "))
    found: dict[str, str] = json.JSONDecoder().raw_decode(line.removeprefix("const settings = "))[0]
    return found


def test_one_file_is_written_with_absolute_paths(home: Path) -> None:
    """Closed to others, beside a configuration that stays to the letter."""
    said = put(home)
    place = home / ".config" / "opencode" / "plugin" / NAME
    assert said[0] == f"{place} is installed."
    assert settings(place) == {
        "python": sys.executable,
        "store": str(home / "state"),
        "log": str(home / "log"),
        "config": str(home / 'odd "name" \u2028 ünï' / "config.toml"),
    }
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert {path.name for path in home.rglob("*") if path.is_file()} == {NAME, "opencode.json"}
    assert (home / ".config" / "opencode" / "opencode.json").read_text() == '{"plugin": ["mine"]} // mine'
    assert plugin_file.SETTINGS not in place.read_text()


@pytest.mark.parametrize("agent", AGENTS, ids=[agent.name for agent in AGENTS])
def test_a_folder_that_was_missing_is_closed_to_others(tmp_path: Path, agent: Agent) -> None:
    """Whatever the umask: agents execute the files in it, and another user could add one."""
    paths = {name: tmp_path / name for name in ("config_path", "store", "log")}
    before = os.umask(0)
    try:
        agent.install(environ=environ(tmp_path / "home"), python=sys.executable, **paths)
    finally:
        os.umask(before)
    made = [path for path in (tmp_path / "home").rglob("*") if path.is_dir()]
    assert made
    assert {stat.S_IMODE(path.stat().st_mode) for path in made} == {0o700}


def test_installing_again_says_so(home: Path) -> None:
    """Up to date: nothing is written; older: it is updated."""
    put(home)
    place = install.PLUGIN.path(environ(home))
    before = place.stat()
    assert put(home) == [f"{place} is already installed and up to date."]
    assert place.stat().st_mtime_ns == before.st_mtime_ns
    place.write_text(f"{plugin_file.MARKER} of an older version\n")
    assert put(home)[0] == f"{place} was updated."
    assert settings(place)["python"] == sys.executable


def test_a_new_plugin_wants_a_restart_wherever_it_lies(home: Path) -> None:
    """Also in a folder whose name is a word of the sentence for a plugin that is up to date."""
    done = put(home, XDG_CONFIG_HOME=str(home / "already"))
    assert done[1:] == ["Restart OpenCode to load it."]
    assert len(put(home, XDG_CONFIG_HOME=str(home / "already"))) == 1


def test_a_place_that_cannot_be_looked_at_has_no_plugin(home: Path) -> None:
    """As where another user owns the folder: `hermes setup` asks this of every agent, and goes on."""
    assert not install.is_connected(environ(home / ("x" * 300)))


def test_the_place_follows_the_configuration_folder(home: Path, tmp_path: Path) -> None:
    """XDG_CONFIG_HOME, if it is absolute as the standard wants it."""
    put(home, XDG_CONFIG_HOME=str(tmp_path / "xdg"))
    assert (tmp_path / "xdg" / "opencode" / "plugin" / NAME).exists()
    usual = home / ".config" / "opencode" / "plugin" / NAME
    assert install.PLUGIN.path(environ(home, XDG_CONFIG_HOME="relative")) == usual
    assert install.PLUGIN.path(environ(home, XDG_CONFIG_HOME="")) == usual


def test_uninstalling_takes_exactly_the_plugin(home: Path) -> None:
    """And is safe to repeat."""
    place = install.PLUGIN.path(environ(home))
    assert install.uninstall(environ=environ(home)) == [f"{place} is not there; nothing was changed."]
    put(home)
    (place.parent / "mine.js").write_text("mine")
    assert install.uninstall(environ=environ(home))[0] == f"{place} was removed."
    assert {path.name for path in home.rglob("*") if path.is_file()} == {"mine.js", "opencode.json"}


def test_a_foreign_file_of_that_name_is_left_alone(home: Path) -> None:
    """In both directions."""
    place = install.PLUGIN.path(environ(home))
    place.parent.mkdir()
    place.write_bytes(b"\xff // somebody else's")
    with pytest.raises(ConfigError, match="was not written by Hermes"):
        put(home)
    with pytest.raises(ConfigError, match="was not written by Hermes"):
        install.uninstall(environ=environ(home))
    assert place.read_bytes() == b"\xff // somebody else's"


def test_a_linked_plugin_is_written_where_the_link_points(home: Path, tmp_path: Path) -> None:
    """As those do it who keep their configuration in a repository; uninstalling takes both."""
    place = install.PLUGIN.path(environ(home))
    place.parent.mkdir()
    dotfiles = tmp_path / "dotfiles"
    place.symlink_to(dotfiles / "phone.js")
    put(home)
    assert place.is_symlink()
    assert (dotfiles / "phone.js").read_text().startswith(plugin_file.MARKER)
    assert len(put(home)) == 1
    install.uninstall(environ=environ(home))
    assert not place.is_symlink()
    assert list(dotfiles.iterdir()) == []


def test_a_folder_that_refuses_is_one_clear_sentence(home: Path) -> None:
    """A file stands where the folder should; nothing unfinished is left."""
    (home / ".config" / "opencode" / "plugin").touch()
    with pytest.raises((NotSaved, ConfigError), match=r"Not a directory|File exists"):
        put(home)


def test_a_virtual_environments_python_stays_itself(tmp_path: Path) -> None:
    """Its link must not be followed: the Python behind it knows nothing of Hermes."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (site / "hermes.pth").write_text(f"{Path(hermes.__file__).parents[1]}\n")
    python = tmp_path / "venv" / "bin" / "python"
    assert python.resolve() != python
    assert installed_files.interpreter(str(python)) == str(python)


def test_a_shim_is_seen_through(tmp_path: Path) -> None:
    """A script in front of the interpreter would cost every hook ten times its own time."""
    shim = tmp_path / "python"
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    shim.chmod(0o755)
    assert installed_files.interpreter(str(shim)) == sys.executable


@pytest.mark.parametrize("python", ["/nowhere/python", "/bin/false"])
def test_a_python_without_hermes_is_refused(home: Path, python: str) -> None:
    """Better now than by a toast in OpenCode."""
    with pytest.raises(ConfigError, match="is not a Python that has Hermes"):
        install.install(environ=environ(home), python=python, config_path=home, store=home, log=home / "log")
    assert not install.PLUGIN.path(environ(home)).exists()


def test_an_agent_that_another_hermes_connected_is_named(home: Path) -> None:
    """`hermes status` says so: its hooks and its plugin work, but do not report every end of a turn."""

    def named() -> list[str]:
        return [sentence.split("`")[1] for sentence in outdated(environ(home))]

    put(home)
    claude_code.install(
        environ=environ(home),
        python=sys.executable,
        config_path=home / "config.toml",
        store=home / "store",
        log=home / "log",
    )
    assert named() == []
    hooks = claude_code.settings_path(environ(home))
    hooks.write_text(hooks.read_text().replace('"StopFailure"', '"SomethingElse"'))
    plugin = install.PLUGIN.path(environ(home))
    plugin.write_text(plugin.read_text() + "// of an older version\n")
    assert named() == ["hermes install opencode", "hermes install claude-code"]
    plugin.write_text("// not ours\n")
    hooks.write_text("{")
    assert named() == []
