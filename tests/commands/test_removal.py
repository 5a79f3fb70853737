"""`hermes uninstall all` leaves a home as it was before Hermes came."""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hermes.agents.plugin_file import PLUGIN_NAME
from hermes.commands.install import AGENTS
from hermes.hook import runtime
from hermes.sandbox.botapi import RunningBotApi, running_botapi
from tests.harness.processes import Proc, until
from tests.stores import a_store

if TYPE_CHECKING:
    from collections.abc import Iterator

BIN = Path(sys.executable).parent


@pytest.fixture
def api() -> Iterator[RunningBotApi]:
    """A Bot API, with a bot of its own."""
    with running_botapi(token=f"{secrets.randbelow(10**9) + 10**9}:{secrets.token_hex(17)}") as running:
        yield running


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a shell and an agent that have settings of their own."""
    home = tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    (home / ".claude" / "settings.json").write_text('{\n  "model": "opus",\n  "hooks": {"Stop": []}\n}\n')
    (home / ".bashrc").write_text("alias ll='ls -l'\n")
    (home / ".bashrc").chmod(0o640)
    (home / ".config").mkdir()
    (home / ".config" / "other.toml").write_text("a = 1\n")
    return home


def environ(home: Path) -> dict[str, str]:
    """The environment of a shell in this home."""
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(home), "TERM": "xterm", "LC_ALL": "C.UTF-8"}


def hermes(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command in this home, from a bash (the completion asks which shell this is)."""
    script = f"{shlex.join(['hermes', *words])}; exit $?"
    return subprocess.run(["bash", "-c", script], env=environ(home), capture_output=True, text=True, check=False)


def tree(home: Path) -> dict[str, tuple[int, bytes]]:
    """All paths of this home with their modes and contents."""
    paths = sorted(home.rglob("*"))
    return {str(path): (path.stat().st_mode, b"" if path.is_dir() else path.read_bytes()) for path in paths}


def set_up(home: Path, api: RunningBotApi) -> None:
    """Write a configuration into the usual place."""
    place = home / ".config" / "hermes" / "config.toml"
    place.parent.mkdir(mode=0o700)
    place.write_text(
        f'[telegram]\ntoken = "{api.token}"\nchat_id = 1001\nusers = [1001]\napi_base = "{api.base_url}"\n'
    )
    place.chmod(0o600)


def test_a_home_is_as_it_was(home: Path, api: RunningBotApi, tmp_path: Path) -> None:
    """The agents, the completion and the listener go; the rest goes by the command that is printed."""
    before = tree(home)
    set_up(home, api)
    for agent in AGENTS:
        assert hermes(home, "install", agent.name).returncode == 0
    assert hermes(home, "--install-completion").returncode == 0
    store = a_store(home / ".local" / "state" / "hermes")
    command = [str(BIN / "hermes"), "listen"]
    with Proc(command, cwd=tmp_path, environ=environ(home), log_dir=tmp_path, name="listener"):
        until(lambda: api.control.state().polling, 60, "a poll")
        removed = hermes(home, "uninstall", "all")
    assert removed.returncode == 0, removed.stderr
    assert store.home.listener() is None
    *_, left, program = removed.stdout.splitlines()
    assert program == "To remove the program: pipx uninstall hermes-phone"
    said, _, command_line = left.partition("rm -r ")
    assert said == "Left: settings, history, log and locks. To delete them: "
    for place in shlex.split(command_line):
        if Path(place).is_relative_to(home):  # other tests have their locks in the folder that stores share
            shutil.rmtree(place)
    for parent in (home / ".local" / "state", home / ".local"):
        parent.rmdir()
    assert tree(home) == before


def test_all_can_be_removed_twice(home: Path) -> None:
    """Without anything to remove it says so, also before the setup."""
    before = tree(home)
    removed = hermes(home, "uninstall", "all")
    assert removed.returncode == 0, removed.stderr
    assert removed.stdout.splitlines()[0] == "Nobody listens."
    assert tree(home) == before


@pytest.mark.parametrize(("log", "named"), [("hermes.log", ["hermes.log", "hermes.log.1"]), ("/dev/null", [])])
def test_of_folders_that_hold_other_things_only_hermes_own_is_named(home: Path, log: str, named: list[str]) -> None:
    """The log is in the home folder, or is a device; the store is a project by mistake."""
    for name in ("hermes.log", "hermes.log.1", "project/thesis.tex"):
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text("")
    place = home / "hermes.toml"
    place.write_text(
        f'[telegram]\ntoken = "{secrets.randbelow(10**9) + 10**9}:{secrets.token_hex(17)}"\nchat_id = 1\nusers = [1]\n'
        f'[store]\npath = "{home / "project"}"\n[log]\nfile = "{home / log}"\n'
    )
    place.chmod(0o600)
    removed = hermes(home, "uninstall", "all", "--config", str(place))
    assert removed.returncode == 0, removed.stderr
    _, _, command_line = removed.stdout.partition("rm -r ")
    found = set(shlex.split(command_line.splitlines()[0])).difference(runtime.shared_folders())
    assert found == {str(home / name) for name in ("hermes.toml", *named)}


def test_the_password_of_the_database_is_named(home: Path) -> None:
    """`hermes setup` wrote it beside a configuration that is not in the usual folder; a file of the person's is not."""
    place = home / "hermes.toml"
    for name, is_named in (("database-password", True), ("my-password", False)):
        (home / name).write_text("hunter22\n")
        place.write_text(
            f'[store]\nurl = "postgresql://ci@127.0.0.1/hermes"\npassword_file = "{home / name}"\n'
            f'path = "{home / "store"}"\n'
        )
        removed = hermes(home, "uninstall", "all", "--config", str(place))
        assert removed.returncode == 0, removed.stderr
        assert (str(home / name) in removed.stdout) is is_named


def test_all_is_removed_if_nobody_reads_on(home: Path) -> None:
    """`hermes uninstall all | head -1`, with a reader that has already left."""
    assert hermes(home, "--install-completion").returncode == 0
    ended, unread = os.pipe()
    os.close(ended)
    with os.fdopen(unread, "w") as stdout:
        command = [str(BIN / "hermes"), "uninstall", "all"]
        removed = subprocess.run(command, env=environ(home), stdout=stdout, stderr=subprocess.PIPE, check=False)
    assert (removed.returncode, removed.stderr) == (0, b"")
    assert (home / ".bashrc").read_text() == "alias ll='ls -l'\n"


def test_the_line_of_zsh_is_named_and_left(home: Path) -> None:
    """It loads the completions of all programs in that folder, so a person must decide."""
    line = "fpath+=~/.zfunc; autoload -Uz compinit; compinit"
    (home / ".zshrc").write_text(f"setopt autocd\n\n{line}\n")
    (home / ".zfunc").mkdir()
    (home / ".zfunc" / "_hermes").write_text("#compdef hermes\neval $(env _HERMES_COMPLETE=complete_zsh hermes)\n")
    before = (home / ".zshrc").read_text()
    wanted = f"{home / '.zshrc'} stays as it is. If no other program needs the line, delete it: {line}"
    assert wanted in hermes(home, "uninstall", "all").stdout.splitlines()
    assert (home / ".zshrc").read_text() == before
    assert line not in hermes(home, "uninstall", "all").stdout


def test_a_line_of_the_shell_stays_a_line(home: Path) -> None:
    """`.bashrc` had no line break at its end when the completion was added, and has grown since then."""
    bash = home / ".bashrc"
    bash.write_text("if true; then\n  a=1\nfi")
    assert hermes(home, "--install-completion").returncode == 0
    with bash.open("a") as file:
        file.write("export A=1\n")
    assert hermes(home, "uninstall", "all").returncode == 0
    assert bash.read_text() == "if true; then\n  a=1\nfi\nexport A=1\n"


def test_the_completion_of_another_hermes_stays(home: Path) -> None:
    """Other programs have this name, too."""
    other = home / ".zfunc" / "_hermes"
    other.parent.mkdir()
    other.write_text("#compdef hermes\n")
    assert hermes(home, "uninstall", "all").returncode == 0
    assert other.read_text() == "#compdef hermes\n"


def test_a_configuration_that_cannot_be_read_is_named(home: Path) -> None:
    """It may name another store, whose listener goes on."""
    place = home / "hermes.toml"
    place.write_text("[telegramm]\n")
    place.chmod(0o600)
    removed = hermes(home, "uninstall", "all", "--config", str(place))
    assert removed.returncode == 1
    assert removed.stderr.startswith(f"hermes: {place}, telegramm is not known")
    assert "Nobody listens" not in removed.stdout


def test_a_foreign_file_stops_nothing_else(home: Path) -> None:
    """It stays, and is named; the rest is removed."""
    foreign = home / ".config" / "opencode" / "plugin" / PLUGIN_NAME
    foreign.parent.mkdir(parents=True)
    foreign.write_text("// somebody else's\n")
    completion = home / ".zfunc" / "_hermes"
    completion.parent.mkdir()
    completion.write_text("#compdef hermes\neval $(env _HERMES_COMPLETE=complete_zsh hermes)\n")
    removed = hermes(home, "uninstall", "all")
    assert removed.returncode == 1
    assert removed.stderr.splitlines() == [
        f"hermes: {foreign} was not written by Hermes; it stays as it is. Move it away first."
    ]
    assert foreign.exists()
    assert not completion.parent.exists()


def test_settings_that_cannot_be_read_are_named(home: Path, api: RunningBotApi) -> None:
    """Claude Code's, with a comma too many: the hooks in them are still there."""
    set_up(home, api)
    assert hermes(home, "install", "claude-code").returncode == 0
    place = home / ".claude" / "settings.json"
    place.write_text(place.read_text().rstrip()[:-1] + ",\n}\n")
    removed = hermes(home, "uninstall", "all")
    assert (removed.returncode, str(place) in removed.stderr) == (1, True)
    assert "hermes hook claude-code" in place.read_text()
