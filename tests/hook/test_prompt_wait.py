"""A hook waits in a session for prompts from the phone: each is handed over once, after its receipt."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from hermes.hook import prompt_files, spool, sweeping
from hermes.storage.home import Home
from tests.harness.processes import stop, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Process = subprocess.Popen[bytes]
MACHINE = "0123456789abcdef"
AT_DESK = {"CLAUDE_CODE_ENTRYPOINT": "cli", "CLAUDE_CODE_SESSION_ATTENDED": "1"}
STARTED = {"hook_event_name": "SessionStart", "session_id": "ses_1", "cwd": "/home/dev/shop", "transcript_path": "/r"}
ENDED = STARTED | {"hook_event_name": "SessionEnd", "reason": "clear"}
SAID = STARTED | {"hook_event_name": "UserPromptSubmit", "prompt": "hello"}
NAME = prompt_files.name_of("claude-code", MACHINE, "ses_1")
OMP = prompt_files.name_of("oh-my-pi", MACHINE, "ses_1")
PLACE = {"session": "ses_1", "directory": "/home/dev/shop", "title": "Shop"}
# The program that starts the hook: what is killed where an agent dies.
PARENT = "import subprocess, sys; sys.exit(subprocess.Popen(sys.argv[1:]).wait())"


class Desk:
    """A store in which prompts are on, and hooks that agents start."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.store = root / "store"
        spool.keep_machine(self.store, MACHINE)
        Home(self.store).let_prompts(on=True)
        self.running: list[Process] = []

    def command(self, agent: str, *more: str) -> list[str]:
        """How an agent starts a hook."""
        paths = ["--store", str(self.store), "--log", str(self.root / "log"), "--config", str(self.root / "toml")]
        return [sys.executable, "-I", "-m", "hermes", "hook", agent, *more, *paths]

    def start(self, payload: Any, *, agent: str = "claude-code", more: str = "--prompts", **environ: str) -> Process:
        """Start a hook, and hand this over."""
        return self.run(self.command(agent, more), payload, **environ)

    def run(self, command: list[str], payload: Any, **environ: str) -> Process:
        """Start this, and hand a payload over; its stdin stays open."""
        pipe = subprocess.PIPE
        env = os.environ | AT_DESK | environ
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=env, cwd=self.root)
        self.running.append(process)
        assert process.stdin is not None
        process.stdin.write(json.dumps(payload).encode() + b"\n")
        process.stdin.flush()
        return process

    def waits(self, name: str = NAME) -> None:
        """Wait until a hook waits."""
        until(lambda: prompt_files.is_waiting(self.store, name), 30, "a hook that waits")

    def lay(self, text: str, name: str = NAME, *, prompt_id: str = "id_1", for_s: float = 60.0) -> None:
        """Lay a prompt ready."""
        until_s = time.time() + for_s
        prompt_files.lay(self.store, name, json.dumps({"id": prompt_id, "text": text, "until": until_s}))

    def receipts(self) -> list[object]:
        """The payloads in the inbox."""
        return [spool.read(path)["payload"] for path in spool.listing(self.store)]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A desk; what still runs is killed at the end."""
    desk = Desk(tmp_path)
    yield desk
    for process in desk.running:
        process.kill()
        with contextlib.suppress(ValueError):
            process.communicate()
    sweeping.sweep(desk.store)


def ended(process: Process) -> tuple[int, bytes, bytes]:
    """The status of a hook, and what it has printed; its stdin is closed only now."""
    printed, said = process.communicate(timeout=30)
    return process.returncode, printed, said


TEXT = 'Say "yes" & <b>é</b> 🙂\n  and stop.\n'
RECEIPT = {"type": "prompt.taken", "session": "ses_1", "prompt": "id_1"}


def test_a_prompt_wakes_claude_code(desk: Desk) -> None:
    """By status 2, with the text alone on stderr; the receipt is in the inbox, and nothing is left."""
    hook = desk.start(STARTED)
    desk.waits()
    (said,) = prompt_files.waiting(desk.store).values()
    assert (said["agent"], said["session"], said["directory"]) == ("claude-code", "ses_1", "/home/dev/shop")
    assert said["record"] == "/r"
    desk.lay(TEXT)
    assert ended(hook) == (2, b"", TEXT.encode())
    assert desk.receipts() == [RECEIPT]
    assert [*(desk.store / "wait").iterdir()] == []


def test_one_hook_waits_in_a_session(desk: Desk) -> None:
    """A second one leaves at once; one of another session stays."""
    desk.start(STARTED)
    desk.waits()
    second = desk.start(STARTED | {"hook_event_name": "UserPromptSubmit", "prompt": "SECRET"})
    assert ended(second) == (0, b"", b"")
    desk.start(STARTED | {"session_id": "ses_2"})
    desk.waits(prompt_files.name_of("claude-code", MACHINE, "ses_2"))
    assert len(prompt_files.waiting(desk.store)) == 2


@pytest.mark.parametrize(
    ("payload", "environ"),
    [
        (STARTED, {"CLAUDE_CODE_ENTRYPOINT": "sdk-cli"}),
        (STARTED, {"CLAUDE_CODE_SESSION_ATTENDED": "0"}),
        (STARTED | {"agent_id": "a1"}, {}),
        ({"hook_event_name": "SessionStart"}, {}),
    ],
    ids=["-p", "unattended", "a subagent", "no session"],
)
def test_where_nobody_sits_no_hook_waits(desk: Desk, payload: Any, environ: dict[str, str]) -> None:
    """Claude Code would wait for it there."""
    status, printed, _ = ended(desk.start(payload, **environ))
    assert (status, printed) == (0, b"")


def test_with_prompts_off_no_hook_waits(desk: Desk) -> None:
    """None begins to wait, and one that waits leaves."""
    waits = desk.start(STARTED)
    desk.waits()
    Home(desk.store).let_prompts(on=False)
    assert ended(waits) == (0, b"", b"")
    assert ended(desk.start(STARTED)) == (0, b"", b"")
    assert not prompt_files.waiting(desk.store)


def test_the_end_of_a_session_ends_its_hook_and_what_lay_there(desk: Desk) -> None:
    """Without a listener; the hook of another session stays, and the session can be resumed."""
    hook, other = desk.start(STARTED), desk.start(STARTED | {"session_id": "ses_2"})
    desk.waits()
    assert ended(desk.start(ENDED, more="--stay"))[0] == 0
    assert ended(hook) == (0, b"", b"")
    assert other.poll() is None
    desk.lay("Never said.")
    assert ended(desk.start(ENDED, more="--stay"))[0] == 0
    assert prompt_files.lying(desk.store, NAME) is None
    # A hook that began late, before the end: nothing of the next session comes to it.
    assert ended(desk.start(SAID)) == (0, b"", b"")
    resumed = desk.start(STARTED | {"source": "resume"})
    desk.waits()
    desk.lay("Go on")
    assert ended(resumed) == (2, b"", b"Go on")


def test_a_session_that_was_closed_in_one_of_two_terminals_is_open_in_the_other(desk: Desk) -> None:
    """The next prompt that is typed there shows it: a hook waits for prompts from the phone again."""
    desk.start(STARTED)
    desk.waits()
    assert ended(desk.start(ENDED, more="--stay"))[0] == 0
    other = desk.run([sys.executable, "-c", PARENT, *desk.command("claude-code", "--prompts")], SAID)
    desk.waits()
    desk.lay("Go on")
    assert ended(other) == (2, b"", b"Go on")


@pytest.mark.parametrize("how", ["killed", "SIGTERM", "no store"])
def test_a_hook_leaves_with_its_agent(desk: Desk, how: str) -> None:
    """What lies ready then is taken by nobody."""
    agent = desk.run([sys.executable, "-c", PARENT, *desk.command("claude-code", "--prompts")], STARTED)
    desk.waits()
    if how == "killed":
        agent.kill()
    elif how == "no store":
        (desk.store / spool.TAKES_PROMPTS).unlink()
    else:
        listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(agent.pid)], capture_output=True, check=True)
        os.kill(int(listed.stdout), signal.SIGTERM)
    until(lambda: not prompt_files.is_waiting(desk.store, NAME), 30, "no hook")
    desk.lay("Never said.")
    assert desk.receipts() == []
    assert prompt_files.take_back(desk.store, NAME)


def test_a_prompt_that_has_lain_for_long_is_dropped(desk: Desk) -> None:
    """The session may have been closed and resumed meanwhile; without a receipt it is laid again."""
    desk.lay("Never said.", for_s=-1)
    hook = desk.start(STARTED)
    desk.waits()
    until(lambda: prompt_files.lying(desk.store, NAME) is None, 30, "nothing there")
    assert desk.receipts() == []
    desk.lay("Go on")
    assert ended(hook) == (2, b"", b"Go on")


def test_what_another_program_wrote_there_is_dropped(desk: Desk) -> None:
    """The hook goes on waiting."""
    hook = desk.start(STARTED)
    desk.waits()
    for damaged in ("{", "[]", '{"id": "x", "text": "SECRET"}'):
        prompt_files.lay(desk.store, NAME, damaged)
        until(lambda: prompt_files.lying(desk.store, NAME) is None, 30, "nothing there")
    desk.lay("Go on")
    assert ended(hook) == (2, b"", b"Go on")
    assert desk.receipts() == [RECEIPT]


def test_without_a_receipt_nothing_is_handed_over(desk: Desk) -> None:
    """The inbox cannot be written: the prompt lies ready again, and is handed over once when it can."""
    (desk.store / "inbox").write_text("no folder")
    hook = desk.start(STARTED)
    desk.waits()
    desk.lay("Go on")
    until(lambda: "its receipt could not be written" in _text(desk.root / "log"), 30, "the log")
    assert hook.poll() is None
    assert "SECRET" not in _text(desk.root / "log")
    (desk.store / "inbox").unlink()
    assert ended(hook) == (2, b"", b"Go on")
    assert desk.receipts() == [RECEIPT]


def test_a_stopped_agent_takes_nothing(desk: Desk) -> None:
    """Until it goes on."""
    agent = desk.run([sys.executable, "-c", PARENT, *desk.command("claude-code", "--prompts")], STARTED)
    desk.waits()
    stop(agent.pid)
    desk.lay("Go on")
    time.sleep(0.5)
    assert prompt_files.lying(desk.store, NAME)
    agent.send_signal(signal.SIGCONT)
    assert ended(agent) == (2, b"", b"Go on")


def test_a_hook_of_oh_my_pi_prints_each_prompt_and_keeps_news(desk: Desk) -> None:
    """In their order, until its plugin ends it; then all that the plugin told is kept."""
    hook = desk.start(PLACE, agent="oh-my-pi")
    desk.waits(OMP)
    assert hook.stdin is not None
    assert hook.stdout is not None
    assert json.loads(hook.stdout.readline()) == {"waits": True}, "from now on its plugin hands news over"
    for number in ("1", "2"):
        desk.lay(TEXT, OMP, prompt_id=number)
        given = json.loads(hook.stdout.readline())
        assert (given["id"], given["text"], given["session"]) == (number, TEXT, "ses_1")
    news = [{"began": {"id": "7", "at": 7, "prompt": "2"}, **PLACE}, {"left": True, **PLACE}]
    hook.stdin.write(b"".join(json.dumps(one).encode() + b"\n" for one in [*news, ["no news"]]))
    assert ended(hook)[0] == 0
    taken = [RECEIPT | {"prompt": number} for number in ("1", "2")]
    assert desk.receipts() == [*taken, *news]
    assert "news is lost" in _text(desk.root / "log")


def test_a_hook_that_died_with_a_prompt_in_its_hands_holds_nothing_up(desk: Desk) -> None:
    """It left no receipt: nobody takes the prompt any more, and the listener lays it ready again."""
    desk.lay("Go on")
    assert prompt_files.take(desk.store, NAME)
    assert not prompt_files.is_being_taken(desk.store, NAME)
    hook = desk.start(STARTED)
    desk.waits()
    until(lambda: not prompt_files.is_being_taken(desk.store, NAME), 30, "nothing taken")
    desk.lay("Go on")
    assert ended(hook) == (2, b"", b"Go on")
    assert desk.receipts() == [RECEIPT]


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""
