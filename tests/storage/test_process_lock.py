"""One at a time, and it is said who."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.errors import Held
from hermes.hook import runtime
from hermes.storage import process_lock


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    """A lock file that is not there yet."""
    return tmp_path / "it.lock"


def test_a_lock_that_nobody_holds_has_no_holder(lock: Path) -> None:
    """Whether its file is there or not; what a dead holder wrote into it is no longer true."""
    assert process_lock.holder(lock) is None
    process_lock.hold(lock, "it", "me").release()
    assert "me" in lock.read_text()
    assert process_lock.holder(lock) is None


def test_the_second_one_is_told_who_was_first(lock: Path) -> None:
    """By command and process id; it may not do the work of the second one. A second release does no harm."""
    first = process_lock.hold(lock, "the bot 42", "hermes listen", now=lambda: 7.0)
    assert process_lock.holder(lock) == process_lock.Holder(os.getpid(), "hermes listen", 7.0)
    with pytest.raises(Held, match=rf"hermes listen \(pid {os.getpid()}\) holds the bot 42; stop it first$"):
        process_lock.hold(lock, "the bot 42", "me")
    first.release()
    first.release()
    process_lock.hold(lock, "the bot 42", "me").release()


def test_whoever_only_looks_keeps_nobody_out(lock: Path) -> None:
    """`status` at the wrong instant must not turn a starting listener away."""
    first = process_lock.hold(lock, "it", "one who looks")
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            first.release()

    with process_lock.hold(lock, "it", "me", sleep=sleep):
        assert len(waits) == 3


def test_a_holder_is_known_by_its_store(lock: Path) -> None:
    """By its name, and by the words for a person; a store whose path ends alike is another one."""
    with process_lock.hold(lock, "the bot", process_lock.named("hermes listen", Path("/srv/a"))):
        found = process_lock.holder(lock)
    assert found is not None
    assert str(found) == f"hermes listen, store /srv/a (pid {os.getpid()})"
    for who in (found.who, str(found)):
        assert process_lock.works_with(who, "/srv/a")
        assert not process_lock.works_with(who, "/a")
    assert not process_lock.works_with(str(process_lock.Holder()), "/srv/a")


def test_a_lock_file_that_was_removed_guards_nothing(lock: Path) -> None:
    """Who holds the old one does not keep the name; who comes next makes it anew and is alone with it."""
    with process_lock.hold(lock, "it", "one"):
        lock.unlink()
        with process_lock.hold(lock, "it", "two"), pytest.raises(Held, match="two"):
            process_lock.hold(lock, "it", "three")


@pytest.mark.parametrize("note", ["", "{", "[1]", '{"pid":"x"}'])
def test_a_holder_that_left_no_note_is_another_process(lock: Path, note: str) -> None:
    """A full disk may have kept it from writing."""
    with process_lock.hold(lock, "it", "me"):
        lock.write_text(note)
        assert process_lock.holder(lock) == process_lock.Holder()
        with pytest.raises(Held, match="another process holds it"):
            process_lock.hold(lock, "it", "me")


def test_a_child_does_not_inherit_the_lock(lock: Path) -> None:
    """A listener's own children may outlive it."""
    held = process_lock.hold(lock, "it", "me")
    command = [sys.executable, "-I", "-c", "print('up', flush=True); input()"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, close_fds=False, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "up\n"
        held.release()
        process_lock.hold(lock, "it", "the next").release()
        child.communicate("\n")


def test_a_bot_is_held_once_on_a_machine_whatever_the_store() -> None:
    """Its lock is named by the bot's own id, in a folder of ours alone."""
    bot_id = 10_000_000_000 + os.getpid()
    try:
        with process_lock.hold_bot(bot_id, "/elsewhere", "me"), pytest.raises(Held, match=f"holds the bot {bot_id}"):
            process_lock.hold_bot(bot_id, "/elsewhere", "another")
        assert process_lock.bot_lock(bot_id, "/elsewhere") == Path(runtime.folder("/elsewhere")) / f"bot-{bot_id}.lock"
        assert process_lock.bot_lock(bot_id, "/elsewhere").stat().st_mode & 0o077 == 0
    finally:
        process_lock.bot_lock(bot_id, "/elsewhere").unlink(missing_ok=True)


HOLDS = """
import os, signal, sys, time
from pathlib import Path
from hermes.storage import process_lock
held = process_lock.hold(Path(sys.argv[1]), "it", "hermes listen")
if sys.argv[2] == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("manner", ["", "deaf"])
def test_the_holder_of_a_lock_is_asked_to_end(tmp_path: Path, manner: str) -> None:
    """Who it was is told, or that it did not end; a lock that nobody holds is no error."""
    path = tmp_path / "x.lock"
    assert process_lock.stop(path) is None
    path.write_text(json.dumps({"pid": os.getpid(), "who": "me", "since_s": 0}))
    assert process_lock.stop(path) is None, "a note that a dead holder left harms nobody"
    command = [sys.executable, "-c", HOLDS, str(path), manner]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        if manner:
            with pytest.raises(Held, match=rf"hermes listen \(pid {process.pid}\) was asked to end, and did not"):
                process_lock.stop(path, longest_s=0.2)
            process.kill()
        else:
            stopped = process_lock.stop(path)
            assert stopped is not None
            assert stopped.pid == process.pid
            assert process.wait(60) == -signal.SIGTERM
    assert process_lock.stop(path) is None


def test_a_process_that_does_not_hold_the_lock_is_not_asked_to_end(tmp_path: Path) -> None:
    """The holder may run in a container that shares the folder: there its id means another process."""
    path = tmp_path / "x.lock"
    pipe = subprocess.PIPE
    with (
        subprocess.Popen([sys.executable, "-c", HOLDS, str(path), ""], stdin=pipe, stdout=pipe) as holding,
        subprocess.Popen([sys.executable, "-c", "input()"], stdin=pipe, stdout=pipe) as innocent,
    ):
        assert holding.stdout is not None
        assert holding.stdout.readline() == b"held\n"
        path.write_text(json.dumps({"pid": innocent.pid, "who": "hermes listen", "since_s": 0}))
        with pytest.raises(Held, match=rf"hermes listen \(pid {innocent.pid}\) holds .* in another container"):
            process_lock.stop(path, longest_s=0.2)
        assert innocent.communicate(b"\n", 60)[0] == b""
        assert innocent.returncode == 0, "it ended by itself"
        holding.communicate(timeout=60)
