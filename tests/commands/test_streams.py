"""The standard streams: full, closed, without a reader, or without the signs that Hermes prints."""

from __future__ import annotations

import fcntl
import os
import select
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from hermes.commands import loading
from tests.harness.processes import until

if TYPE_CHECKING:
    from pathlib import Path

FULL = "hermes: the output could not be written: No space left on device.\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a configuration that names a Telegram out of reach."""
    place = tmp_path / ".config" / "hermes" / "config.toml"
    place.parent.mkdir(parents=True)
    telegram = f'token = "123456789:{"x" * 35}"\nchat_id = 1\nusers = [1]\napi_base = "http://127.0.0.1:9"\n'
    place.write_text(f"[telegram]\n{telegram}")
    place.chmod(0o600)
    return tmp_path


def shell(home: Path, line: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash, in which `hermes` is this Hermes; the status is that of the first failure in a pipe."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8", **more}
    script = f'set -o pipefail\nhermes() {{ "{sys.executable}" -m hermes "$@"; }}\n{line}'
    return subprocess.run(["bash", "-c", script], env=environ, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", ["config --example", "status", "status --json"])
def test_a_full_disk_is_one_sentence(home: Path, words: str, unbuffered: str) -> None:
    """Status 1, and no traceback, whether Python keeps output back or not."""
    ended = shell(home, f"hermes {words} >/dev/full", PYTHONUNBUFFERED=unbuffered)
    assert (ended.returncode, ended.stderr) == (1, FULL)


def test_a_slow_reader_of_a_pipe_that_does_not_block_gets_all(home: Path) -> None:
    """Another program has set it so for all that share it, as some terminals and build servers do."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETFL, os.O_NONBLOCK)
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    command = [sys.executable, "-m", "hermes", "config", "--example"]
    environ = {"PATH": os.environ["PATH"], "HOME": str(home)}
    with subprocess.Popen(command, env=environ, stdout=writing, stderr=subprocess.PIPE, text=True) as process:
        os.close(writing)
        until(lambda: select.select((reading,), (), (), 0)[0], 30, "the first of it")
        with os.fdopen(reading) as file:
            told = file.read()
        assert process.stderr is not None
        assert (process.wait(30), process.stderr.read()) == (0, "")
    assert told == loading.shipped("config.example.toml").read_text()


@pytest.mark.parametrize("words", ["config --example", "status", "status --json", "log", "--help", "hook --help"])
def test_a_reader_that_leaves_changes_nothing(home: Path, words: str) -> None:
    """The command ends as it would have, in silence."""
    ended = shell(home, f"hermes {words} | true")
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("words", ["status", "hook --help", "config --example"])
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_defect(home: Path, words: str, closed: str) -> None:
    """What is printed there is lost, and no more than that."""
    ended = shell(home, f"hermes {words} {closed}")
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("status --config ~/none.toml", 2),
        ("nosuch", 2),
        ("lock", 0),
        ("status", 0),
    ],
)
@pytest.mark.parametrize("aside", ["2>/dev/full", "2> >(true)"])
def test_the_status_is_right_though_standard_error_cannot_be_written(
    home: Path, words: str, status: int, aside: str
) -> None:
    """A script that keeps it in a file on a full disk must not take an answer for a failure."""
    place = home / ".config" / "hermes" / "config.toml"
    log = f'[log]\nfile = "{home}"\n'  # a folder: so each command has something to say
    place.write_text(place.read_text() + log)
    assert shell(home, f"hermes {words} {aside}").returncode == status


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("setup --yes --config ~/new.toml", "hermes: nobody can be asked here "),
        ("ask --file -", "hermes: standard input "),
    ],
)
def test_a_command_that_would_read_says_so(home: Path, words: str, said: str) -> None:
    """One sentence if standard input is closed."""
    ended = shell(home, f"hermes {words} <&-")
    assert (ended.returncode, ended.stderr.startswith(said), len(ended.stderr.splitlines())) == (2, True, 1)


def test_signs_that_the_encoding_lacks_are_replaced(home: Path) -> None:
    """A question mark each; the rest is printed."""
    ended = shell(home, "hermes status", PYTHONIOENCODING="latin-1")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "? listener" in ended.stdout
