"""The program that hears voice notes: what it gets, and what it must not do."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from hermes.errors import NotHeard
from hermes.listener.phone.transcribing import LONGEST_TEXT, MOST_OUTPUT, Transcriber
from tests.harness.processes import state_of
from tests.listening import until


def program(tmp_path: Path, *lines: str) -> list[str]:
    """A program in Python."""
    path = tmp_path / "hear.py"
    path.write_text("\n".join(("import os, sys, time", *lines)))
    return [sys.executable, str(path), "--language", "en"]


async def heard(command: list[str], **limits: float) -> str:
    """What it makes of a voice note."""
    return await Transcriber(command, **limits).text_of(Path("/store/files/a.7.ogg"))  # type: ignore[arg-type]


async def refused(command: list[str], **limits: float) -> str:
    """What the person reads."""
    with pytest.raises(NotHeard) as caught:
        await heard(command, **limits)
    return str(caught.value)


async def test_it_gets_the_path_last_and_its_text_is_one_line(tmp_path: Path) -> None:
    """As whisper prints it, a line for each sentence; bytes that are no text do no harm."""
    command = program(tmp_path, "print(' '.join(sys.argv[1:]))", "print('  Fix\\n the tests. ')")
    assert await heard(command) == "--language en /store/files/a.7.ogg Fix the tests."
    assert "�" in await heard(program(tmp_path, "sys.stdout.buffer.write(b'\\xff')"))


async def test_no_shell_reads_its_arguments(tmp_path: Path) -> None:
    """They are words, whatever they look like."""
    command = program(tmp_path, "print(sys.argv[1:-1])")[:2]
    assert await heard([*command, "$HOME", "; touch x", "`id`"]) == "['$HOME', '; touch x', '`id`']"


async def test_its_environment_is_a_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of an agent's, nor of Hermes'."""
    monkeypatch.setenv("HERMES_TELEGRAM__TOKEN", "secret")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    monkeypatch.setenv("LD_PRELOAD", "")
    kept = (await heard(program(tmp_path, "print(*sorted(os.environ), os.getcwd(), sys.stdin.read())"))).split()
    assert set(kept) <= {"HOME", "PATH", "LANG", "TZ", "/"} | {name for name in os.environ if name.startswith("LC_")}


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        pytest.param(["sys.exit(3)"], "ended with the status 3; try it at the computer", id="status"),
        pytest.param(["print('   ')"], "heard no words; if there are some, try it", id="silence"),
        pytest.param([f"print('x' * {LONGEST_TEXT + 1})"], "too long to show", id="long"),
        pytest.param([f"print('x ' * {MOST_OUTPUT})", "time.sleep(60)"], "printed more than 16 KiB", id="output"),
        pytest.param(["x = bytearray(1 << 30)", "print('a')"], "ended with the status 1", id="memory"),
    ],
)
async def test_what_goes_wrong_is_said(tmp_path: Path, lines: list[str], said: str) -> None:
    """In a sentence that names the program and no word of the note."""
    assert said in await refused(program(tmp_path, *lines), most_memory=1 << 29)


async def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    """Its whole path helps."""
    said = "could not be started; give its whole path in `[prompts] transcribe`"
    assert await refused(["no-such-program"]) == f"no-such-program {said}"
    assert await refused([str(tmp_path)]) == f"{tmp_path.name} {said}"


async def test_a_child_that_leaves_the_group_holds_nothing_up(tmp_path: Path) -> None:
    """It keeps the output open, and outlives the program."""
    mark, began_s = tmp_path / "pid", time.monotonic()
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    lines = (
        "import subprocess",
        f"child = subprocess.Popen({command!r}, start_new_session=True)",
        f"open({str(mark)!r}, 'w').write(str(child.pid))",
        "print('a', flush=True)",
    )
    assert "took more than 5 s" in await refused(program(tmp_path, *lines), longest_s=5.0)
    assert time.monotonic() - began_s < 60
    child = int(mark.read_text())
    assert state_of(child)
    os.kill(child, signal.SIGKILL)
    await until(lambda: not state_of(child), "the end of the child")
    await asyncio.sleep(0.2)  # the loop reads that its end of the output is closed


async def test_a_program_that_hangs_ends_with_all_that_it_started(tmp_path: Path) -> None:
    """After a minute, here sooner."""
    mark = tmp_path / "pid"
    nap = "import time; time.sleep(600)"
    lines = (
        "import subprocess",
        f"child = subprocess.Popen([sys.executable, '-c', {nap!r}])",
        f"open({str(mark)!r}, 'w').write(str(child.pid))",
        "time.sleep(600)",
    )
    began_s = time.monotonic()
    assert "took more than 5 s" in await refused(program(tmp_path, *lines), longest_s=5.0)
    assert time.monotonic() - began_s < 60
    child = int(mark.read_text())
    await until(lambda: not state_of(child), "the end of the child, which may take a moment after its signal")
