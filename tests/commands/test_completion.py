"""The shell completes what is typed: through a real bash, and through what zsh and fish ask."""

import os
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

BIN = Path(sys.executable).parent


def environ(home: Path, **more: str) -> dict[str, str]:
    """A home of one's own, with Hermes on the path."""
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(home), "TERM": "xterm", "LC_ALL": "C.UTF-8", **more}


def completed(home: Path, **asked: str) -> str:
    """What Hermes answers to a shell that asks."""
    return subprocess.run(
        ["hermes"], env=environ(home, **asked), capture_output=True, text=True, check=True, timeout=60
    ).stdout


def test_bash_completes_what_is_typed(tmp_path: Path) -> None:
    """After `--install-completion`: commands, options, and the agents that can be connected."""
    # It asks the processes above it which shell this is, so there has to be one.
    command = ["bash", "-c", "hermes --install-completion; exit $?"]
    installed = subprocess.run(command, env=environ(tmp_path), check=False, capture_output=True, text=True)
    assert installed.returncode == 0, installed.stdout + installed.stderr
    arguments = ["--noprofile", "--rcfile", str(tmp_path / ".bashrc"), "-i"]
    bash = pexpect.spawn("bash", arguments, env=environ(tmp_path, PS1="$ "), timeout=60, encoding="utf-8")
    try:
        for typed, wanted in (
            ("hermes sta", "tus "),
            ("hermes status --wa", "tch "),
            ("hermes log --js", "on "),
            ("hermes install open", "code "),
        ):
            bash.send(f"{typed}\t")
            bash.expect_exact(f"{typed}{wanted}")
            bash.sendcontrol("u")
    finally:
        bash.close(force=True)


@pytest.mark.parametrize("shell", ["source_bash", "complete_zsh", "complete_fish"])
def test_a_variable_takes_the_place_of_no_command(tmp_path: Path, shell: str) -> None:
    """A `.env` may set it: then nobody was asked, and a script took the status for a yes."""
    command = ["hermes", "ask", "--yes-no", "Deploy?"]
    told = subprocess.run(
        command, env=environ(tmp_path, _HERMES_COMPLETE=shell), check=False, capture_output=True, text=True, timeout=60
    )
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr == "hermes: not set up yet. Run `hermes setup`.\n"


def test_a_home_that_takes_no_completion_is_one_sentence(tmp_path: Path) -> None:
    """As after every other command that installs: status 1, the place, the reason and the remedy."""
    (tmp_path / ".bashrc").mkdir()
    command = ["bash", "-c", "hermes --install-completion; exit $?"]
    told = subprocess.run(command, env=environ(tmp_path), check=False, capture_output=True, text=True)
    why = f"the completion could not be installed in {tmp_path}: Is a directory"
    wanted = f"hermes: {why}; see that you can write there and that there is space, then run it again.\n"
    assert (told.returncode, told.stderr) == (1, wanted)


@pytest.mark.parametrize(
    ("words", "place", "offered"),
    [
        ("hermes ", "1", {"listen", "reap", "unlock", "status", "log", "hook", "install", "uninstall"}),
        ("hermes st", "1", {"status"}),
        ("hermes uninstall ", "2", {"opencode"}),
        ("hermes setup --agent ", "3", {"opencode", "claude-code"}),
        ("hermes log --", "2", {"--config", "--since", "--last", "--json", "--help"}),
        ("hermes status --config ", "3", set()),
    ],
)
def test_what_bash_is_offered(tmp_path: Path, words: str, place: str, offered: set[str]) -> None:
    """Where nothing is, bash offers the names of files by itself."""
    told = completed(tmp_path, _HERMES_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=place)
    assert offered <= set(told.split())
    assert offered or not told.strip()


def test_zsh_and_fish_are_told_what_each_means(tmp_path: Path) -> None:
    """In their own forms."""
    words = {"_TYPER_COMPLETE_ARGS": "hermes unl"}
    assert '"unlock":"Take answers' in completed(tmp_path, _HERMES_COMPLETE="complete_zsh", **words)
    fish = completed(tmp_path, _HERMES_COMPLETE="complete_fish", _TYPER_COMPLETE_FISH_ACTION="get-args", **words)
    assert fish.startswith("unlock\tTake answers")
    for shell in ("bash", "zsh", "fish"):
        assert "_HERMES_COMPLETE=complete_" in completed(tmp_path, _HERMES_COMPLETE=f"source_{shell}")
