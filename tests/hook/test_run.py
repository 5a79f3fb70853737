"""The hook as an agent's plugin starts it: it keeps, it waits, and whatever happens it troubles nobody."""

import contextlib
import json
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import hermes
from hermes.hook import run, spool, starting, sweeping, wait as waiter
from tests.harness.processes import until

Process = subprocess.Popen[bytes]
QUESTION = {
    "question": "Launch the SECRET rocket?",
    "header": "Go",
    "options": [{"label": "Yes", "description": ""}],
}
ASKED: dict[str, Any] = {
    "type": "question.asked",
    "properties": {"id": "que_1", "sessionID": "ses_1", "questions": [QUESTION]},
    "directory": "/home/dev/project",
    "context": {"title": "A title", "rootTitle": "", "lastText": "I looked."},
}
IDLE = ASKED | {"type": "session.idle", "properties": {"sessionID": "ses_1"}}
MACHINE = "0123456789abcdef"
WAIT = spool.wait_id("opencode", MACHINE, "que_1")


class Desk:
    """A store, a log, and hooks that are started as the plugin starts them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.store = root / "store"
        spool.keep_machine(self.store, MACHINE)
        self.log = root / "logs" / "hermes.log"
        self.arguments = [
            "--store",
            str(self.store),
            "--log",
            str(self.log),
            "--config",
            str(root / "config.toml"),
        ]
        self.cwd = root
        self.python = Path(sys.executable)

    def start(self, *more: str, **settings: Any) -> Process:
        """Start a hook with its three pipes."""
        command = [str(self.python), "-I", "-m", "hermes", "hook", "opencode", *self.arguments, *more]
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        started: Process = subprocess.Popen(command, cwd=self.cwd, **(pipes | settings))
        return started

    def tell(self, data: bytes | dict[str, Any], *more: str, **settings: Any) -> None:
        """Run a hook to its end: status 0, nothing on stdout, nothing on stderr but that it kept what came."""
        text = data if isinstance(data, bytes) else line(data)
        process = self.start(*more, **settings)
        with contextlib.suppress(BrokenPipeError):
            before = len(spool.listing(self.store))
            printed, said = process.communicate(text, timeout=60)
            kept = len(spool.listing(self.store)) > before
            assert (printed, said) == (b"", b"kept\n" if kept else said)
            assert kept or said in {b"", b"refused\n"}
        assert process.wait(60) == 0

    def payloads(self) -> list[object]:
        """What the listener finds in the inbox."""
        return [spool.read(path)["payload"] for path in spool.listing(self.store)]

    def logged(self) -> str:
        """The one line of trouble."""
        (found,) = self.log.read_text().splitlines()
        assert "SECRET" not in found
        return found.split(": ", 1)[1]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A desk with a listener's socket, so that no hook starts a listener of its own."""
    desk = Desk(tmp_path)
    bound = spool.listen_socket(desk.store)
    yield desk
    spool.close_socket(bound)
    sweeping.sweep(desk.store)


def line(payload: dict[str, Any]) -> bytes:
    """A payload as the plugin writes it."""
    return json.dumps(payload).encode() + b"\n"


@contextlib.contextmanager
def waiting(
    desk: Desk, payload: dict[str, Any] = ASKED, more: tuple[str, ...] = (), **settings: Any
) -> Iterator[Process]:
    """A hook that has kept its payload and waits for the answer."""
    process = desk.start("--wait", *more, **settings)
    try:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(line(payload))
        process.stdin.flush()
        assert process.stderr.readline() == b"kept\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def printed(process: Process) -> bytes:
    """What a waiter prints until it leaves by itself, its stdin still open; status 0, no word on stderr."""
    assert process.stdout is not None
    assert process.stderr is not None
    found = process.stdout.read()
    assert process.wait(60) == 0
    assert process.stderr.read() == b""
    return found


# keeping


def test_the_end_of_a_turn_is_kept_only_for_a_listener(desk: Desk, tmp_path: Path) -> None:
    """It concerns no ask; without a listener it would lie there, and be told days later."""
    ended = {"type": "turn.ended", "properties": {"sessionID": "ses_1"}, "directory": "/x", "context": {}}
    desk.tell(ended)
    assert desk.payloads() == [ended]
    alone = Desk(tmp_path / "alone")
    process = alone.start()
    assert process.communicate(line(ended), timeout=60) == (b"", b"kept\n")
    assert alone.payloads() == []
    assert not alone.log.exists()


def test_the_end_of_a_turn_is_kept_while_prompts_are_on(tmp_path: Path) -> None:
    """It may be the answer to a prompt from the phone, and come while the listener is being restarted."""
    alone = Desk(tmp_path)
    (alone.store / spool.TAKES_PROMPTS).touch()
    ended = {"type": "turn.ended", "properties": {"sessionID": "ses_1"}, "directory": "/x", "context": {}}
    alone.tell(ended)
    assert alone.payloads() == [ended]


def test_the_end_of_an_ask_is_kept_as_long_as_its_hook_waits(tmp_path: Path) -> None:
    """With a database the folder does not tell what is open; if no listener runs just then, the end would be lost."""
    alone = Desk(tmp_path)
    command = [sys.executable, "-I", "-m", "hermes", "hook", "claude-code", *alone.arguments]
    answered = {"hook_event_name": "PostToolUse", "session_id": "ses_1"}

    def tell() -> bytes:
        return subprocess.run(command, input=line(answered), capture_output=True, check=True, timeout=60).stderr

    assert tell() == b""
    held = spool.hold_wait(alone.store, WAIT)
    assert tell() == b"kept\n"
    spool.leave_wait(alone.store, WAIT, held)
    assert alone.payloads() == [answered]


def test_a_payload_is_kept_as_it_came(desk: Desk) -> None:
    """Under the agent's and the machine's name; no log, no word."""
    desk.tell(ASKED)
    (path,) = spool.listing(desk.store)
    record = spool.read(path)
    assert record["payload"] == ASKED
    assert record["agent"] == "opencode"
    assert record["machine"] == MACHINE
    assert record["host"] == spool.host()
    assert not desk.log.exists()


def test_the_context_may_be_absent_and_the_last_line_end_too(desk: Desk) -> None:
    """The end of stdin ends the line."""
    short = {key: value for key, value in IDLE.items() if key != "context"}
    desk.tell(line(short).strip())
    assert desk.payloads() == [short]


def test_what_follows_the_first_line_is_not_read(desk: Desk) -> None:
    """One line is one payload."""
    desk.tell(line(IDLE) + b"garbage")
    assert desk.payloads() == [IDLE]


def test_the_line_may_come_in_pieces(desk: Desk) -> None:
    """A pipe cuts where it likes."""
    process = desk.start()
    assert process.stdin is not None
    for piece in (line(IDLE)[:10], line(IDLE)[10:]):
        process.stdin.write(piece)
        process.stdin.flush()
    assert process.wait(60) == 0
    process.communicate()
    assert desk.payloads() == [IDLE]


def test_a_payload_of_just_one_mebibyte_is_kept(desk: Desk) -> None:
    """The limit itself still passes."""
    size = run.MAX_LINE_BYTES - len(line(IDLE | {"directory": ""})) + 1
    desk.tell(IDLE | {"directory": "x" * size})
    assert len(desk.payloads()) == 1


def test_what_is_kept_of_a_longer_line_is_counted_as_it_came(desk: Desk) -> None:
    """A file of 800 kB in Cyrillic was asked about, so it can be told that it was written, too."""
    text = "\u0434" * 400_000
    told = {"hook_event_name": "PostToolUse", "session_id": "s", "tool_name": "Write", "tool_input": {"content": text}}
    data = json.dumps(told | {"tool_response": {"content": text}}, ensure_ascii=False).encode()
    command = [sys.executable, "-I", "-m", "hermes", "hook", "claude-code", *desk.arguments]
    subprocess.run(command, input=data, capture_output=True, check=True)
    assert desk.payloads() == [told]


# sad paths


@pytest.mark.parametrize(
    ("said", "in_several_lines"),
    [
        (b"hello", False),
        (b"[]", False),
        (b'{"questions": 1}', False),
        (b"{", True),
        (b'{\n  "questions": [{"question": "Go?"}]\n}\n', True),
    ],
)
def test_a_program_is_told_why_nothing_was_asked(desk: Desk, said: bytes, in_several_lines: bool) -> None:
    """It need not look into our log; an agent's plugin is told nothing on stdout."""
    command = [sys.executable, "-I", "-m", "hermes", "hook", "generic", *desk.arguments]
    run = subprocess.run(command, input=said, capture_output=True, check=True)
    told = json.loads(run.stdout)
    assert told.pop("kind") == "refused"
    assert told == {"error": desk.logged().removeprefix("not kept: ")}
    assert ("in one line" in told["error"]) is in_several_lines


SAD: list[tuple[bytes, str]] = [
    (b"", "not JSON (column 1: Expecting value)"),
    (b"\n", "not JSON (column 1: Expecting value)"),
    (b'{"type": "SECRET\n', "not JSON (column 10: Unterminated string starting at)"),
    (b"\xff\xfe\n", "not UTF-8"),
    (b'["SECRET"]\n', "not a JSON object"),
    (b"null\n", "not a JSON object"),
    (b"[" * 100_000 + b"\n", "not JSON that can be read (a number of too many digits, or too deep)"),
    (b"1" * 10_000 + b"\n", "not JSON that can be read (a number of too many digits, or too deep)"),
    (line(IDLE | {"type": 1}), "its 'type' is missing or of the wrong type"),
    (line({"type": "SECRET"}), "its 'properties' is missing or of the wrong type"),
    (line(IDLE | {"properties": ["SECRET"]}), "its 'properties' is missing or of the wrong type"),
    (line(IDLE | {"directory": None}), "its 'directory' is missing or of the wrong type"),
    (line(IDLE | {"context": "SECRET"}), "its 'context' is missing or of the wrong type"),
    (b'"' + b"x" * (run.MAX_LINE_BYTES + 10) + b'"\n', "more than 1048576 bytes"),
]


@pytest.mark.parametrize(("data", "why"), SAD, ids=[why for _, why in SAD])
def test_what_cannot_be_read_is_one_line_in_the_log(desk: Desk, data: bytes, why: str) -> None:
    """And nothing else anywhere: status 0, no output, an empty inbox."""
    desk.tell(data)
    assert desk.logged() == f"not kept: {why}"
    assert desk.payloads() == []
    assert stat.S_IMODE(desk.log.stat().st_mode) == 0o600
    assert stat.S_IMODE(desk.log.parent.stat().st_mode) == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can write into another user's store")
def test_nothing_is_left_in_the_store_of_another_user(desk: Desk) -> None:
    """Its owner could not read it, and no listener of theirs would start: the folders would be root's."""
    before = list(desk.store.iterdir())
    os.chown(desk.store, 54321, 54321)
    desk.tell(ASKED)
    why = f"{desk.store} belongs to another user (uid 54321); run it as that user"
    assert desk.logged() == f"not kept: {why}"
    command = [sys.executable, "-I", "-m", "hermes", "hook", "generic", *desk.arguments]
    told = subprocess.run(command, input=b'{"questions": []}\n', capture_output=True, check=True)
    assert json.loads(told.stdout) == {"kind": "refused", "error": why}
    assert list(desk.store.iterdir()) == before


def test_a_full_disk_is_one_line_in_the_log(desk: Desk) -> None:
    """The record does not fit, the line does; nothing unfinished stays."""
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))  # noqa: E731
    desk.tell(ASKED | {"directory": "x" * 1000}, preexec_fn=limit)
    assert desk.logged() == f"not kept: File too large ({desk.store})"
    assert list((desk.store / "inbox").iterdir()) == []


def test_a_disk_without_any_room_troubles_nobody(desk: Desk) -> None:
    """Not even the line in the log fits."""
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # noqa: E731
    desk.tell(ASKED, preexec_fn=limit)
    assert desk.log.read_text() == ""
    assert list((desk.store / "inbox").iterdir()) == []


def test_a_store_that_cannot_be_made_is_one_line_in_the_log(desk: Desk) -> None:
    """A file stands where a folder should."""
    (desk.root / "file").touch()
    desk.arguments[1] = str(desk.root / "file" / "store")
    desk.tell(IDLE)
    assert desk.logged() == f"not kept: Not a directory ({desk.root}/file/store)"


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_folder_without_the_right_to_write_is_one_line_in_the_log(desk: Desk) -> None:
    """Somebody took the right away."""
    (desk.store / "inbox").mkdir(mode=0o500, parents=True)
    desk.tell(IDLE)
    assert desk.logged().startswith("not kept: Permission denied")


def test_a_log_that_cannot_be_written_troubles_nobody(desk: Desk) -> None:
    """There is nobody left to tell."""
    desk.arguments[3] = "/dev/null/x/hermes.log"
    desk.tell(b"garbage\n")


def test_a_log_that_is_too_long_is_put_aside(desk: Desk) -> None:
    """Also where nothing but hooks writes to it; two older ones are kept, as the listener keeps them."""
    desk.log.parent.mkdir()
    for name, size in (("", starting.LOG_BYTES), (".1", 1), (".2", 2)):
        with Path(f"{desk.log}{name}").open("wb") as file:
            file.truncate(size)
    desk.tell(b"garbage\n")
    assert desk.logged() == "not kept: not JSON (column 1: Expecting value)"
    assert [Path(f"{desk.log}{name}").stat().st_size for name in (".1", ".2")] == [starting.LOG_BYTES, 1]
    assert stat.S_IMODE(desk.log.stat().st_mode) == 0o600


def test_an_unexpected_error_is_one_line_without_its_message(desk: Desk) -> None:
    """Its place and its kind; the message of an error may quote what came."""
    code = "import sys; from hermes.hook import run; sys.exit(run.main(sys.argv[1:] + ['--store', 'a\\0b']))"
    command = [sys.executable, "-I", "-c", code, "opencode", *desk.arguments]
    found = subprocess.run(command, input=line(ASKED), capture_output=True, check=True)
    assert (found.stdout, found.stderr) == (b"", b"")
    assert desk.logged().startswith("not kept: ValueError at ")
    assert "null" not in desk.logged()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["claude"],
        ["opencode"],
        ["opencode", "--store", "x"],
        ["opencode", "--what"],
        ["opencode", "--log"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_said_on_stderr_and_vetoes_nothing(
    arguments: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    """To some agents a hook's status 2 is a veto."""
    assert run.main(arguments) == 0
    known = arguments[:1] == ["opencode"]
    fault = "the arguments are wrong, or some are missing" if known else f"the agents are {', '.join(run.NAMES)}"
    assert capfd.readouterr() == ("", f"hermes: {fault}; see `hermes hook --help`.\n")


def test_a_line_that_never_ends_is_given_up(tmp_path: Path) -> None:
    """No process is left behind by an agent that hangs."""
    ours, theirs = os.pipe()
    os.write(theirs, b'{"type"')
    with pytest.raises(run._Refused, match=r"no line came within 0\.05 s"):
        run._line(ours, 0.05)
    os.close(ours)
    os.close(theirs)


# isolation


def test_a_repository_with_its_own_modules_executes_nothing(desk: Desk) -> None:
    """Scene 28: started in a folder whose `json.py` and `hermes.py` would tell, and with PYTHONPATH on it."""
    desk.cwd = desk.root / "repository"
    desk.cwd.mkdir()
    told = desk.root / "executed"
    for name in ("json", "hermes", "socket", "sitecustomize", "usercustomize", "select"):
        (desk.cwd / f"{name}.py").write_text(f"open({str(told)!r}, 'w').close()\n")
    desk.tell(IDLE, env={**os.environ, "PYTHONPATH": str(desk.cwd), "PYTHONSTARTUP": str(desk.cwd / "json.py")})
    with waiting(desk):
        pass
    assert len(desk.payloads()) == 2
    assert not told.exists()


def test_the_hook_loads_little() -> None:
    """None of what would make it slow: it takes about twice the time of a bare Python."""
    loads = "from hermes.hook import run; run.shape_of('opencode')"
    code = f"import sys; bare = set(sys.modules); {loads}; print(*(set(sys.modules) - bare))"
    found = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    heavy = {"argparse", "asyncio", "dataclasses", "hashlib", "inspect", "logging", "pathlib", "pydantic"}
    heavy |= {"random", "selectors", "signal", "socket", "subprocess", "tempfile", "threading", "typing"}
    assert set(found.stdout.split()) & heavy == set()
    assert "json" in found.stdout.split()


# waiting


def test_the_answer_is_printed_and_a_receipt_dropped(desk: Desk) -> None:
    """Once: the record first, `kept`, the answer as one line, the receipt."""
    with waiting(desk) as process:
        assert desk.payloads() == [ASKED]
        assert spool.waiters(desk.store, WAIT) == [process.pid]
        spool.put_answer(desk.store, WAIT, '{"answers": [["Yes"]]}')
        assert printed(process) == b'{"answers": [["Yes"]]}\n'
    assert desk.payloads() == [ASKED, {"type": "receipt", "waitID": WAIT}]
    assert list((desk.store / "wait").iterdir()) == []
    assert not desk.log.exists()


def test_a_waiter_that_stays_is_there_as_long_as_its_agent(desk: Desk) -> None:
    """The answer may lie in the pipe of an agent that was stopped; released, it leaves in silence."""
    with waiting(desk, more=("--stay",)) as process:
        spool.put_answer(desk.store, WAIT, "x")
        assert process.stdout is not None
        assert process.stdout.readline() == b"x\n"
        until(lambda: len(desk.payloads()) == 2, 20, "the receipt")
        assert spool.waiters(desk.store, WAIT) == [process.pid]
        process.terminate()
        assert printed(process) == b""
    assert desk.payloads() == [ASKED, {"type": "receipt", "waitID": WAIT}]
    assert list((desk.store / "wait").iterdir()) == []


def test_a_waiter_that_stays_says_when_its_agent_is_gone(desk: Desk) -> None:
    """Then nobody is left who could read what was printed."""
    with waiting(desk, more=("--stay",)) as process:
        spool.put_answer(desk.store, WAIT, "x")
        until(lambda: len(desk.payloads()) == 2, 20, "the receipt")
        assert process.communicate(timeout=60) == (b"x\n", b"")
    gone, receipt = ({"type": kind, "waitID": WAIT} for kind in ("waiter.gone", "receipt"))
    assert desk.payloads() == [ASKED, receipt, gone]


def test_an_answer_that_was_there_before_is_taken_at_once(desk: Desk) -> None:
    """A hook that is started anew finds what its dead forerunner did not take."""
    spool.put_answer(desk.store, WAIT, "early")
    with waiting(desk) as process:
        assert printed(process) == b"early\n"


def test_an_answer_without_a_datagram_is_found_all_the_same(desk: Desk) -> None:
    """A look every two seconds; the answer of a listener that died before it could wake anybody."""
    with waiting(desk) as process:
        answer = desk.store / "wait" / f"{WAIT}.answer"
        (desk.store / "unseen").write_text("late")
        (desk.store / "unseen").rename(answer)
        until(lambda: process.poll() is not None, 20, "a look")
        assert printed(process) == b"late\n"


def test_of_two_waiters_one_prints(desk: Desk) -> None:
    """The other goes on waiting."""
    with waiting(desk) as one, waiting(desk) as two:
        assert spool.waiters(desk.store, WAIT) == sorted([one.pid, two.pid])
        spool.put_answer(desk.store, WAIT, "for one of you")
        until(lambda: 0 in {one.poll(), two.poll()}, 20, "the end of one")
        winner, other = (one, two) if one.poll() == 0 else (two, one)
        assert printed(winner) == b"for one of you\n"
        assert spool.waiters(desk.store, WAIT) == [other.pid]
        assert other.poll() is None


def test_the_end_of_stdin_says_that_the_agent_is_gone(desk: Desk) -> None:
    """The hook leaves, and a record tells the listener."""
    with waiting(desk) as process:
        assert process.communicate(timeout=60) == (b"", b"")
        assert process.returncode == 0
    assert desk.payloads() == [ASKED, {"type": "waiter.gone", "waitID": WAIT}]
    assert list((desk.store / "wait").iterdir()) == []


def test_an_answer_that_nobody_can_read_is_no_receipt(desk: Desk) -> None:
    """The agent's end of stdout is closed: it is gone."""
    with waiting(desk) as process:
        assert process.stdout is not None
        process.stdout.close()
        spool.put_answer(desk.store, WAIT, "x")
        assert process.wait(60) == 0
    assert desk.payloads() == [ASKED, {"type": "waiter.gone", "waitID": WAIT}]


def test_an_answer_that_cannot_be_written_is_no_receipt(desk: Desk) -> None:
    """The agent's end of stdout is a file on a full disk: it has got nothing."""
    with Path("/dev/full").open("wb") as full, waiting(desk, stdout=full) as process:
        spool.put_answer(desk.store, WAIT, "x")
        assert process.wait(60) == 0
    assert desk.payloads() == [ASKED, {"type": "waiter.gone", "waitID": WAIT}]


def test_sigterm_releases_a_waiter_in_silence(desk: Desk) -> None:
    """The question was answered elsewhere: no word, no record, nothing left."""
    with waiting(desk) as process:
        process.terminate()
        assert printed(process) == b""
    assert desk.payloads() == [ASKED]
    assert list((desk.store / "wait").iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_waiter_does_not_hear_the_terminal(desk: Desk, number: signal.Signals) -> None:
    """Ctrl-C and a closed window are the agent's business; besides it has a session of its own."""
    with waiting(desk) as process:
        assert os.getsid(process.pid) == process.pid
        process.send_signal(number)
        spool.put_answer(desk.store, WAIT, "x")
        assert printed(process) == b"x\n"


def test_a_killed_waiter_leaves_its_answer_to_the_next(desk: Desk) -> None:
    """`kill -9`: no lock holds, and a new hook for the same question gets the answer."""
    with waiting(desk) as process:
        process.kill()
        process.wait()
    assert spool.waiters(desk.store, WAIT) == []
    spool.put_answer(desk.store, WAIT, "x")
    with waiting(desk) as process:
        assert printed(process) == b"x\n"


@contextlib.contextmanager
def standard_input() -> Iterator[int]:
    """Be a process whose standard input is a pipe; its other end."""
    kept, (reading, writing) = os.dup(0), os.pipe()
    os.dup2(reading, 0)
    os.close(reading)
    try:
        yield writing
    finally:
        os.dup2(kept, 0)
        os.close(kept)
        with contextlib.suppress(OSError):
            os.close(writing)


def watch(released: int, again: Callable[[], bool], store: Path = Path(), *, look_every_s: float) -> waiter.Watch:
    """What a hook of OpenCode's plugin looks at."""
    held = waiter.Hook("opencode", str(store), os.getppid(), machine=MACHINE, config="", ours=False)
    return waiter.Watch(held, WAIT, released, again, lambda _: False, look_every_s=look_every_s)


def test_a_waiter_asks_for_a_listener_every_half_minute(tmp_path: Path) -> None:
    """One that died is started anew, or the buttons would be dead; soon at first, for it may have died just then."""
    assert waiter.LOOK_EVERY_S * waiter.LOOKS_A_NUDGE == 30
    assert waiter.LOOK_EVERY_S * waiter.FIRST_LOOKS == 6
    nudges: list[float] = []
    began = time.monotonic()

    def again() -> bool:
        nudges.append(time.monotonic() - began)
        if len(nudges) == 3:
            spool.put_answer(tmp_path, WAIT, "at last")
        return True

    released, release = os.pipe()
    given_up = threading.Timer(30, os.write, (release, b"!"))
    given_up.start()
    with standard_input():
        assert watch(released, again, tmp_path, look_every_s=0.01).answer() == "at last"
    given_up.cancel()
    os.close(released)
    os.close(release)
    # Three looks before the first and fifteen before each other; the very first look comes without a pause.
    assert all(at >= 0.01 * (3 + 15 * number - 1) for number, at in enumerate(nudges))


def test_a_waiter_that_stays_asks_for_a_listener_too() -> None:
    """It leaves at its agent's end, or in silence where it is released."""
    released, release = os.pipe()
    nudges: list[int] = []
    with standard_input() as stdin:

        def again() -> bool:
            nudges.append(1)
            if len(nudges) == 2:
                os.close(stdin)
            if len(nudges) == 3:
                os.write(release, b"!")
            return True

        assert watch(released, again, look_every_s=0.001).left() == "waiter.gone"
        assert len(nudges) == 2
    with standard_input():
        assert watch(released, again, look_every_s=0.001).left() is None
        assert len(nudges) == 3
    os.close(released)
    os.close(release)


def test_to_wait_there_must_be_a_request_id(desk: Desk) -> None:
    """Nothing is kept that nobody could answer."""
    desk.tell(IDLE, "--wait")
    assert desk.logged() == "not kept: its 'properties' have no 'id' to wait for"
    assert desk.payloads() == []


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells this")
def test_a_waiter_is_small_and_sleeps(desk: Desk) -> None:
    """Under 14 MB, and (in clock ticks of 10 ms) next to no processor time over two of its looks."""
    with waiting(desk) as process:
        state = Path(f"/proc/{process.pid}")

        def spent() -> int:
            return sum(map(int, (state / "stat").read_text().split()[13:15]))

        before, end_s = spent(), time.monotonic() + 2 * waiter.LOOK_EVERY_S + 0.5
        until(lambda: time.monotonic() > end_s, 20, "two looks")
        assert spent() - before <= 5  # what began before it slept, and what is rounded; to spin would be 450
        (peak,) = (text for text in (state / "status").read_text().splitlines() if "VmHWM" in text)
        assert int(peak.split()[1]) < 14_000


def test_a_waiter_holds_nothing_of_its_agent(desk: Desk) -> None:
    """No descriptor that the agent left open for its children: its port, or another waiter's pipe."""
    ours, theirs = os.pipe()
    with waiting(desk, pass_fds=[theirs]):
        os.close(theirs)
        assert os.read(ours, 1) == b""
    os.close(ours)


# the listener that a hook starts

LISTENER = """
import json, os, sys, time
def main():
    descriptors = sorted(map(int, os.listdir("/dev/fd")))
    held = [os.path.realpath(f"/dev/fd/{one}") for one in descriptors[:3]]
    told = [sys.argv[1:], os.getcwd(), len(descriptors), held, os.getppid(), os.getpid()]
    print("started", file=sys.stderr, flush=True)
    with open(TOLD + ".part", "w") as file:
        json.dump(told, file)
    os.rename(TOLD + ".part", TOLD)
    time.sleep(30)
"""


class Lonely(Desk):
    """A desk where nobody listens, with a Python in which `hermes listen` only tells how it was started."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        package = root / "site" / "hermes"
        (package / "commands").mkdir(parents=True)
        for name in ("__init__.py", "__main__.py", "hook", "agents", "disk.py", "errors.py"):
            (package / name).symlink_to(Path(hermes.__file__).parent / name)
        self.told = root / "told"
        (package / "commands" / "cli.py").write_text(f"TOLD = {str(self.told)!r}\n{LISTENER}")
        self.python = root / "venv" / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", root / "venv"], check=True)
        (site,) = (root / "venv").glob("lib/python*/site-packages")
        (site / "hermes.pth").write_text(f"{root / 'site'}\n")


@pytest.fixture
def lonely(tmp_path: Path) -> Iterator[Lonely]:
    """Such a desk; the listener that was started ends with the test."""
    desk = Lonely(tmp_path)
    yield desk
    if desk.told.exists():
        os.kill(json.loads(desk.told.read_text())[-1], signal.SIGKILL)


@pytest.mark.parametrize("more", [(), ("--wait",)], ids=["a hook", "a waiter"])
def test_where_nobody_listens_a_listener_is_started(lonely: Lonely, more: tuple[str, ...]) -> None:
    """Nobody's child, in "/", with nothing of the hook's but the log; a waiter's lock stays its own."""
    process = lonely.start(*more)
    assert process.stdin is not None
    process.stdin.write(line(ASKED))
    process.stdin.flush()
    until(lonely.told.exists, 30, "the listener")
    arguments, cwd, descriptors, held, parent, listener = json.loads(lonely.told.read_text())
    assert arguments == ["listen", "--until-idle", *lonely.arguments]
    assert cwd == "/"
    assert descriptors == len(["stdin", "stdout", "stderr", "the folder that was listed"])
    assert held == ["/dev/null", "/dev/null", str(lonely.log)]
    assert parent != process.pid
    assert os.getsid(listener) not in {os.getsid(0), process.pid}
    assert lonely.log.read_text() == "started\n"
    assert bool(spool.waiters(lonely.store, WAIT)) == bool(more)
    process.kill()
    process.communicate(timeout=60)  # ends: the listener keeps no pipe of the hook's open
    assert spool.waiters(lonely.store, WAIT) == []
    os.kill(listener, 0)


def test_without_a_log_a_listener_is_started_all_the_same(lonely: Lonely) -> None:
    """A folder has its name, or it is another user's: that is no reason for a question that nobody sees."""
    lonely.log.mkdir(parents=True)
    process = lonely.start("--wait")
    assert process.stdin is not None
    process.stdin.write(line(ASKED))
    process.stdin.flush()
    until(lonely.told.exists, 30, "the listener")
    assert json.loads(lonely.told.read_text())[3] == ["/dev/null"] * 3
    process.kill()
    process.communicate(timeout=60)


@pytest.mark.parametrize("word", [b'{"answers": [["yes"]]}\n', None], ids=["the desk's word", "an end"])
def test_what_closes_a_question_starts_a_listener_that_died(lonely: Lonely, word: bytes | None) -> None:
    """Its buttons would stand on the phone until somebody asks again."""
    command = [str(lonely.python), "-I", "-m", "hermes", "hook", "generic", *lonely.arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        process.stdin.write(line({"questions": [{"question": "Now?", "options": [{"label": "yes"}]}]}))
        process.stdin.flush()
        until(lonely.told.exists, 30, "the listener")
        os.kill(json.loads(lonely.told.read_text())[-1], signal.SIGKILL)
        lonely.told.unlink()
        if word is None:
            process.terminate()
        else:
            process.stdin.write(word)
            process.stdin.flush()
        assert process.wait(60) == 0
        until(lonely.told.exists, 30, "another listener")


NO_PROCESS = """
import errno, os, sys
from hermes.hook import run
def fork():
    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
os.fork = fork
sys.exit(run.main(sys.argv[1:]))
"""


def test_where_no_listener_can_be_started_a_waiter_waits_all_the_same(tmp_path: Path) -> None:
    """The machine has no process left: the question is kept, and half a minute later a listener is tried again."""
    desk = Desk(tmp_path)
    command = [sys.executable, "-I", "-c", NO_PROCESS, "opencode", *desk.arguments, "--wait"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(line(ASKED))
        process.stdin.flush()
        assert process.stderr.readline() == b"kept\n"
        until(desk.log.exists, 30, "a line in the log")
        spool.put_answer(desk.store, WAIT, "at last")
        assert printed(process) == b"at last\n"
    said = "kept, but then: no listener was started: Resource temporarily unavailable"
    assert [one.split(": ", 1)[1] for one in desk.log.read_text().splitlines()] == [said] * 2  # and at its end


def test_what_opens_nothing_starts_no_listener(lonely: Lonely) -> None:
    """An idle session is no reason to start anything."""
    lonely.tell(IDLE)
    assert lonely.payloads() == [IDLE]
    assert not lonely.told.exists()
    assert not lonely.log.exists()
