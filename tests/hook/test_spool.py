"""The spool: nothing kept is lost or torn, one of several takers wins, and a nudge never blocks."""

import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hermes.hook import runtime, spool, sweeping
from tests.harness.processes import until

WAIT = spool.wait_id("opencode", "desk", "que_1")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A store that is not there yet."""
    return tmp_path / "state" / "hermes"


def python(code: str, *arguments: object) -> "subprocess.Popen[bytes]":
    """Start a Python that has `spool`, `root` and `argv` at hand."""
    start = "import sys, os, time; from hermes.hook import runtime, spool, sweeping; root, *argv = sys.argv[1:]\n"
    command = [sys.executable, "-I", "-c", start + code, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def output(process: "subprocess.Popen[bytes]") -> str:
    """Wait for its end and return what it printed."""
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err.decode()
    return out.decode()


@contextlib.contextmanager
def waiting(root: Path, code: str = "sys.stdin.read()") -> Iterator["subprocess.Popen[bytes]"]:
    """A process that holds a place in the waiting room."""
    process = python(f"held = spool.hold_wait(root, argv[0]); print('held', flush=True); {code}", root, WAIT)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield process
    finally:
        process.kill()
        process.communicate()


# the inbox


def test_what_is_dropped_is_read_again(root: Path) -> None:
    """Whatever JSON can say comes back the same, also half a surrogate pair."""
    payload: dict[str, object] = {"type": "x", "text": "ünï 🦉 \ud83e \u2028", "list": [1, None, 0.5]}
    spool.drop(root, spool.record("opencode", payload))
    (path,) = spool.listing(root)
    found = spool.read(path)
    assert found["payload"] == payload
    assert found["v"] == 1
    assert found["agent"] == "opencode"
    assert found["machine"] == spool.machine(root)
    assert found["host"] == os.uname().nodename
    assert abs(float(str(found["at"])) - time.time()) < 60


def test_records_are_listed_in_the_order_of_their_dropping(root: Path) -> None:
    """Names sort by time."""
    for number in range(20):
        spool.drop(root, {"number": number})
    assert [spool.read(path)["number"] for path in spool.listing(root)] == list(range(20))


def test_a_clock_that_was_set_back_does_not_change_the_order(root: Path) -> None:
    """The end of an ask would be read before it."""
    spool.drop(root, {"number": 0})
    (first,) = spool.listing(root)
    first.rename(first.with_name(f"{time.time_ns() + 3600 * 10**9:020d}-1-a.json"))
    spool.drop(root, {"number": 1})
    assert [spool.read(path)["number"] for path in spool.listing(root)] == [0, 1]


def test_folders_and_files_are_closed_to_others(root: Path) -> None:
    """0700 and 0600, whatever the umask says."""
    before = os.umask(0)
    try:
        spool.drop(root, {"a": 1})
        spool.put_answer(root, WAIT, "x")
        os.close(spool.hold_wait(root, WAIT))
    finally:
        os.umask(before)
    found = [root.parent, root, *root.rglob("*")]
    assert {stat.S_IMODE(path.stat().st_mode) for path in found if path.is_dir()} == {0o700}
    assert {stat.S_IMODE(path.stat().st_mode) for path in found if path.is_file()} == {0o600}
    assert len([path for path in found if path.is_file()]) == 4


def test_several_processes_that_drop_at_once_lose_nothing(root: Path) -> None:
    """Four processes, fifty records each, in a folder that none of them finds."""
    code = "for n in range(50): spool.drop(root, {'from': argv[0], 'n': n})"
    for process in [python(code, root, name) for name in range(4)]:
        output(process)
    found = [spool.read(path) for path in spool.listing(root)]
    assert len(found) == 200
    for name in "0123":
        assert [record["n"] for record in found if record["from"] == name] == list(range(50))


def test_a_writer_that_is_killed_leaves_no_torn_record(root: Path) -> None:
    """`kill -9` in the middle of writing: each listed record can be read."""
    code = "while True: spool.drop(root, {'text': 'x' * 20000})"
    for _ in range(5):
        process = python(code, root)
        until(lambda: len(spool.listing(root)) > 3, 20, "some records")
        process.kill()
        process.communicate()
        for path in spool.listing(root):
            assert spool.read(path)["text"] == "x" * 20000
            path.unlink()


def test_a_full_disk_leaves_nothing_behind(root: Path) -> None:
    """The error is told, and neither a record nor an unfinished file stays."""
    spool.drop(root, {"a": 1})
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try: spool.drop(root, {'text': 'x' * 5000})\n"
        "except OSError as error: print(error.strerror)"
    )
    assert output(python(code, root)) == "File too large\n"
    assert len(list((root / "inbox").iterdir())) == 1


@pytest.mark.parametrize("refusal", ["EINVAL", "ENOTSUP", "EIO"])
def test_what_stands_in_its_place_was_kept_whatever_its_folder_says(root: Path, refusal: str) -> None:
    """A folder that cannot be brought to the disk: the program must not hear that nothing was asked, for it was."""
    code = (
        "import errno, stat; real = os.fsync\n"
        "def fsync(one):\n"
        "  if stat.S_ISDIR(os.fstat(one).st_mode): raise OSError(getattr(errno, argv[0]), 'no fsync of folders here')\n"
        "  real(one)\n"
        "os.fsync = fsync\n"
        "print(spool.drop(root, {'a': 1})); spool.put_answer(root, argv[1], 'x')"
    )
    path = output(python(code, root, refusal, WAIT)).strip()
    assert [str(path) for path in spool.listing(root)] == [path]
    assert spool.take_answer(root, WAIT) == "x"


@pytest.mark.parametrize("text", ["", "[1]", '{"a": ', '"x"', "\xff", "[" * 100_000])
def test_a_damaged_record_is_a_value_error(root: Path, text: str) -> None:
    """Whatever stands in the file."""
    root.mkdir(parents=True)
    path = root / "x.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r".+"):
        spool.read(path)


def test_a_record_that_is_too_long_is_neither_kept_nor_read(root: Path) -> None:
    """Nobody's inbox is filled, nobody's memory either."""
    with pytest.raises(ValueError, match="too long"):
        spool.drop(root, {"text": "x" * spool.MAX_RECORD_BYTES})
    assert spool.listing(root) == []
    root.mkdir(parents=True, exist_ok=True)
    (root / "x.json").write_text(json.dumps("x" * spool.MAX_RECORD_BYTES))
    with pytest.raises(ValueError, match="too long"):
        spool.read(root / "x.json")


# the nudge


def test_a_nudge_tells_whether_somebody_listens(root: Path) -> None:
    """Nobody yet, somebody, somebody too busy to take more, nobody any more."""
    assert spool.nudge(root) is False
    bound = spool.listen_socket(root)
    assert spool.nudge(root) is True
    assert bound.recv(10) == b"!"
    assert all(spool.nudge(root) for _ in range(2000))
    spool.close_socket(bound)
    assert spool.nudge(root) is False


def test_a_socket_that_a_dead_listener_left_is_no_listener(root: Path) -> None:
    """Its name stays, the connection is refused, and the next listener takes the name over."""
    output(python("spool.listen_socket(root); os._exit(0)", root))
    assert spool.nudge(root) is False
    bound = spool.listen_socket(root)
    assert spool.nudge(root) is True
    spool.close_socket(bound)


def test_the_socket_is_found_whatever_the_store_is_called(root: Path) -> None:
    """Through a link, with a slash at its end, and in a folder too deep for a socket's path."""
    deep = root / ("deep" * 40)
    deep.mkdir(parents=True)
    link = root / "link"
    link.symlink_to(deep)
    bound = spool.listen_socket(f"{link}/")
    assert spool.nudge(deep) is True
    assert spool.nudge(root) is False
    spool.close_socket(bound)


def test_a_runtime_folder_that_others_could_use_is_refused(tmp_path: Path) -> None:
    """Open to others, or no real folder."""
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to(tmp_path)
    for name in ("open", "link"):
        with pytest.raises(PermissionError, match=name):
            runtime.private_folder(str(tmp_path / name))
    assert stat.S_IMODE(Path(runtime.private_folder(str(tmp_path / "new"))).stat().st_mode) == 0o700


def test_the_stores_own_folder_takes_the_place_of_one_that_is_refused(root: Path, tmp_path: Path) -> None:
    """Another user's (as root one can be given away), one open to others, and one that cannot be made."""
    foreign, free = tmp_path / "foreign", tmp_path / "free"
    foreign.mkdir(mode=0o700 if os.geteuid() == 0 else 0o755)
    if os.geteuid() == 0:
        os.chown(foreign, 12345, -1)
    refused = (str(foreign), str(tmp_path / "missing" / "folder"))
    assert runtime.folder(root, shared=(*refused, str(free))) == str(free)
    assert runtime.folder(root, shared=refused) == str(root / "run")
    assert stat.S_IMODE((root / "run").stat().st_mode) == 0o700


OTHER_USER = """
import json
from pathlib import Path
from hermes.listener.agent import hooks
from hermes.storage import process_lock
folder = runtime.folder(root)
bell = hooks.Bell(Path(root))
told = [folder, spool.nudge(root)]
with process_lock.hold_bot(7, root, "me"):
    bot = str(process_lock.bot_lock(7, root))
os.makedirs(root + "/locks")
with process_lock.hold(Path(root, "locks/listener.lock"), "x", "me"):
    told += [bot, spool.nudge(root)]
print(json.dumps(told))
"""


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root can be another user")
@pytest.mark.parametrize("depth", [1, 120])
def test_another_user_who_takes_our_place_stops_nothing(depth: int) -> None:
    """The socket and the bot's lock are in the store then; where its path is too long, the lock tells who listens."""
    uid = 60_000 + os.getpid() % 5000
    taken = Path(f"/tmp/hermes-{uid}")  # noqa: S108 (what another user makes before we do)
    taken.mkdir()
    with tempfile.TemporaryDirectory(dir="/tmp") as home:
        os.chown(home, uid, uid)
        root = f"{home}/{'s' * depth}"
        become = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
        become += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]  # the interpreter may be root's
        code = f"import sys, os; from hermes.hook import runtime, spool, sweeping; root = sys.argv[1]\n{OTHER_USER}"
        try:
            command = [*become, sys.executable, "-I", "-c", code, root]
            told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        finally:
            taken.rmdir()
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout) == [f"{root}/run", depth == 1, f"{root}/run/bot-7.lock", True]
    assert ("no hook can ring" in told.stderr) is (depth != 1)


# waiting


def test_a_wait_id_stands_for_one_request_of_one_agent_on_one_machine() -> None:
    """16 hex digits; no two triples that differ are alike, also where their texts run together."""
    triples = [("a", "b", "c"), ("ab", "", "c"), ("a", "bc", ""), ("a", "b", "d"), ("x", "b", "c")]
    found = {spool.wait_id(*triple) for triple in triples}
    assert len(found) == len(triples)
    assert all(len(each) == 16 and int(each, 16) >= 0 for each in found)


def test_a_waiter_counts_as_long_as_it_lives(root: Path) -> None:
    """Its lock dies with it, also under `kill -9`; sweeping takes away what is left of it."""
    with waiting(root) as process:
        assert spool.waiters(root, WAIT) == [process.pid]
        assert spool.waiters(root, "0" * 16) == []
        assert sweeping.sweep(root) == 0
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert spool.waiters(root, WAIT) == []
    assert sweeping.sweep(root) == 1
    assert list((root / "wait").iterdir()) == []


def test_all_who_are_waited_for_are_found_by_one_look(root: Path) -> None:
    """Each name once, however many wait by it; not those of the dead, nor of answers."""
    assert spool.waited_for(root) == set()
    other = spool.wait_id("opencode", "desk", "que_other")
    held = spool.hold_wait(root, other)
    spool.put_answer(root, "0" * 16, "…")
    with waiting(root), waiting(root) as process:
        assert spool.waited_for(root) == {WAIT, other}
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert spool.waited_for(root) == {WAIT, other}
    assert spool.waited_for(root) == {other}
    spool.leave_wait(root, other, held)
    assert spool.waited_for(root) == set()


def test_a_place_that_was_swept_away_is_taken_anew(root: Path) -> None:
    """A sweeper that looks between making and locking the file takes nobody's place."""
    code = (
        "for _ in range(300):\n"
        "  held = spool.hold_wait(root, argv[0])\n"
        "  assert spool.waiters(root, argv[0])\n"
        "  spool.leave_wait(root, argv[0], held)"
    )
    sweeper = python("while True: sweeping.sweep(root)", root)
    try:
        output(python(code, root, WAIT))
    finally:
        sweeper.kill()
        sweeper.communicate()


def test_an_answer_is_taken_once(root: Path) -> None:
    """Of many takers at once one gets it."""
    spool.put_answer(root, WAIT, "ünï\n🦉")
    code = "print(ascii(spool.take_answer(root, argv[0])))"
    with ThreadPoolExecutor(8) as takers:
        found = list(
            takers.map(
                lambda _: output(python(code, root, WAIT)),
                range(8),
            )
        )
    assert sorted(found) == sorted([ascii("ünï\n🦉") + "\n"] + ["None\n"] * 7)
    assert list((root / "wait").iterdir()) == []


def test_a_later_answer_replaces_one_that_nobody_took(root: Path) -> None:
    """The listener can also take it back: then nobody saw it."""
    spool.put_answer(root, WAIT, "first")
    spool.put_answer(root, WAIT, "second")
    assert spool.take_answer(root, WAIT) == "second"
    assert spool.take_answer(root, WAIT) is None


def test_an_answer_wakes_its_waiter(root: Path) -> None:
    """And nobody else."""
    code = (
        "bell = spool.wait_socket(root, argv[0]); bell.setblocking(True); print('ready', flush=True);"
        "bell.recv(1); print(spool.take_answer(root, argv[0])); spool.close_socket(bell)"
    )
    with waiting(root, code) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        spool.put_answer(root, "0" * 16, "for another")
        spool.put_answer(root, WAIT, "for you")
        assert process.stdout.readline() == b"for you\n"


# tidying up


def test_sweeping_takes_only_what_is_old_and_unfinished(root: Path) -> None:
    """Records, answers and the work of this minute stay."""
    spool.drop(root, {"a": 1})
    spool.put_answer(root, WAIT, "x")
    for room in ("inbox", "wait"):
        (root / room / ".young").touch()
        (root / room / ".old").touch()
        os.utime(root / room / ".old", (1, 1))
    assert sweeping.sweep(root) == 2
    assert sorted(path.name for path in root.rglob("*") if path.name.startswith(".")) == [".young"] * 2
    assert sweeping.sweep(root, now=time.time() + 61) == 2
    assert len(spool.listing(root)) == 1
    assert spool.take_answer(root, WAIT) == "x"


def test_sweeping_takes_an_answer_that_nobody_takes(root: Path) -> None:
    """Its hook was killed, and no other one has that id: after a month."""
    spool.put_answer(root, WAIT, "x")
    assert sweeping.sweep(root, now=time.time() + sweeping.ENDED_AFTER_S - 60) == 0
    assert sweeping.sweep(root, now=time.time() + sweeping.ENDED_AFTER_S + 60) == 1


def test_sweeping_takes_the_sockets_of_the_dead(root: Path) -> None:
    """Whatever store they are of, once they are old; not those of the living, and no other file."""
    bound = spool.listen_socket(root)
    beside = Path(runtime.folder("/elsewhere")) / f"{root.parents[1].name}.lock"
    beside.touch()
    code = "bell = spool.wait_socket(root, argv[0]); print(bell.getsockname(), flush=True); sys.stdin.read()"
    with waiting(root, code) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().decode().strip())
        for path in (Path(bound.getsockname()), left, beside):
            os.utime(path, (1, 1))
        sweeping.sweep(root / "other")
        assert left.exists()
        process.kill()
        process.wait()
        sweeping.sweep(root / "other")
        assert not left.exists()
    assert beside.exists()
    beside.unlink()
    assert spool.nudge(root) is True
    spool.close_socket(bound)


# the machine


def test_a_fresh_store_makes_a_machine_id_and_keeps_it(root: Path) -> None:
    """16 hex digits, whichever of several processes comes first, closed to others; nothing else is left."""
    made = [python("print(spool.machine(root))", root) for _ in range(6)]
    (machine,) = {output(process).strip() for process in made}
    assert len(machine) == 16
    assert int(machine, 16) >= 0
    assert spool.machine(root) == machine
    assert stat.S_IMODE((root / "machine").stat().st_mode) == 0o600
    assert [path.name for path in root.iterdir()] == ["machine"]


@pytest.mark.parametrize("room", ["inbox", "pending"])
def test_a_store_in_use_takes_todays_host_name_for_its_machine_id(root: Path, room: str) -> None:
    """Hooks of an older Hermes wait under it. One that was lost by damage is made in the same way."""
    (root / room).mkdir(parents=True)
    assert spool.machine(root) == spool.host()
    (root / "machine").write_text("")
    assert spool.machine(root) == spool.host()
    (root / "machine").write_text("another\n")
    assert spool.machine(root) == "another"
