"""A prompt from the phone wakes an idle Claude Code in its terminal; the model gets the text to the letter, once."""

from __future__ import annotations

import contextlib
import json
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hermes.agents.claude_code import install
from hermes.agents.claude_code.shape import WAKE_MESSAGE, WAKE_SUMMARY
from hermes.hook import prompt_files
from hermes.listener.agent.hook_prompts import STARTING_S
from hermes.sandbox.model_server import script
from tests.harness import claude_code
from tests.harness.claude_code import ClaudeCode, Home
from tests.harness.messages import running_messages
from tests.harness.processes import stop, until
from tests.harness.tui import ENTER, ESC
from tests.scenes.stage import PATIENCE_S
from tests.scenes.test_claude_code import DATABASE, asks, question, runs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes.sandbox.phone_values import ShownMessage
    from tests.harness.messages import MessagesModel
    from tests.scenes.stage import Json, Stage

COLOUR = question("Which colour?", "Colour", "Red", "Blue")

pytestmark = [pytest.mark.scene(needs=claude_code.binary), pytest.mark.xdist_group("claude-code")]


@pytest.fixture(scope="module")
def messages() -> Iterator[MessagesModel]:
    """A scripted model for all of this module."""
    with running_messages() as running:
        yield running


@pytest.fixture
def home(tmp_path: Path, messages: MessagesModel, stage: Stage) -> Home:
    """A home whose Claude Code takes prompts from the phone, and tells of each turn."""
    home = Home(tmp_path / "desk", messages.base_url)
    stage.install(install.install, home.environ())
    stage.start(notices={"finished": "0s"}, prompts={"enabled": True})
    return home


@pytest.fixture
def desk(home: Home, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Start Claude Code in a terminal, asked to take these steps."""
    running: list[ClaudeCode] = []

    def start(*steps: Any) -> ClaudeCode:
        one = ClaudeCode(home, steps, key=key_of(request))
        running.append(one.__enter__())
        return one

    yield start
    for one in running:
        one.kill()


def key_of(request: pytest.FixtureRequest) -> str:
    """The key under which the model keeps what it received in this test."""
    return str(request.node.name).translate({ord(sign): "-" for sign in "[] "})


def waiting(stage: Stage) -> list[dict[str, str]]:
    """What the hooks that wait for prompts say about their sessions."""
    return list(prompt_files.waiting(stage.store).values())


def hooks_of(process_id: int) -> list[str]:
    """The command lines of the hooks that this process, or init, has as children and that wait for prompts."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            command = (path / "cmdline").read_text().replace("\0", " ")
            if "--prompts" in command and parent in {process_id, 1}:
                found.append(command)
    return found


def write_by_the_card(stage: Stage) -> None:
    """Begin to write to the session that waits. Its screen shows the end of a turn before the phone knows of it."""
    until(lambda: "a turn of session" in stage.log.read_text(), PATIENCE_S, "the end of a turn")
    stage.phone.write("/sessions")
    stage.phone.tap(stage.asked("Your sessions"), "shop-api")
    stage.phone.tap(stage.asked("shop-api 💤 waits for you"), "✏️ Write a prompt")
    stage.asked("Type your prompt")


def test_a_reply_to_a_notice_wakes_the_idle_session(stage: Stage, desk: Any, messages: MessagesModel) -> None:
    """The model reads that it is from the phone, and exactly the text, once; what is half typed at the desk stays."""
    claude = desk({"text": "Both tests pass now."})
    notice = stage.ended("✅ shop-api is done")
    claude.wait_screen("Both tests pass now.")
    claude.send("half typed")
    claude.wait_screen("half typed")
    text = 'Rename it, <b>please</b> & "now"\n' + script([{"text": "Renamed it."}], "woken")
    stage.phone.write(text, reply_to=notice)
    shown = claude.wait_screen("Renamed it.")
    assert WAKE_SUMMARY in shown
    stage.ended("✅ Done")
    again = stage.ended("Renamed it.")
    claude.wait_screen("half typed")
    (asked,) = messages.asked("woken")
    assert f"{WAKE_MESSAGE} {text}\n" in asked[-1]
    assert "NOT USER INPUT" in asked[-1]
    stage.phone.write(script([{"text": "Tested it."}], "woken-again"), reply_to=again)
    stage.ended("Tested it.")
    assert messages.turns("woken") == messages.turns("woken-again") == 1
    assert len(waiting(stage)) == 1


def test_a_file_that_the_settings_exclude_stays(stage: Stage, home: Home, desk: Any) -> None:
    """Settings that cannot be read exclude everything, and are named."""
    settings = home.project / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"permissions": {"deny": ["Read(./secret/**)"]}}')
    (home.project / "secret").mkdir()
    (home.project / "secret" / "plan.md").write_text("plan")
    (home.project / "README.md").write_text("read")
    desk({"text": "Both tests pass now."})
    notice = stage.ended("✅ shop-api is done")
    stage.phone.write("/get secret/plan.md", reply_to=notice)
    stage.ended("secret/plan.md is excluded by the permissions of Claude Code")
    stage.phone.write("/get README.md", reply_to=notice)
    (call,) = until(lambda: stage.phone.calls("sendDocument"), PATIENCE_S, "a document")
    assert call.params["document"] == "README.md (4 bytes)"
    settings.write_text("{")
    stage.phone.write("/get README.md", reply_to=notice)
    assert str(settings) in stage.ended("so I do not know whether the permissions").text.replace("\u2060", "")


def test_a_prompt_waits_for_the_turn_that_runs(stage: Stage, desk: Any, messages: MessagesModel) -> None:
    """A question is open in it, which is answered on the phone; the prompt has a turn of its own after that.

    The end of the first one is told at once, although it waits for the desk otherwise.
    """
    claude = desk(asks(DATABASE), {"text": "I took it."})
    asked = stage.asked("Which database")
    claude.wait_screen("Esc to cancel")
    stage.phone.write("/sessions")
    listed = stage.asked("Your sessions")
    stage.phone.tap(listed, "shop-api")
    card = stage.asked("shop-api ▶️ is working")
    stage.phone.tap(card, "✏️ Write a prompt")
    stage.asked("Type your prompt")
    stage.phone.write(script([{"text": "Tested it."}], "queued"))
    stage.asked("Waits for the current turn")
    stage.stop()
    stage.start(notices={"finished": "0s"}, prompts={"enabled": True}, questions={"post_after": "1h"})
    stage.phone.tap(asked, "SQLite")
    stage.ended("I took it.")
    stage.ended("Tested it.")
    assert messages.turns("queued") == 1


def test_a_killed_listener_sends_no_prompt_twice(stage: Stage, desk: Any, messages: MessagesModel) -> None:
    """It dies while the prompt lies ready and Claude Code is stopped, as after Ctrl-Z, and again once it was taken."""
    claude = desk({"text": "Both tests pass now."})
    notice = stage.ended("✅ shop-api is done")
    until(lambda: len(waiting(stage)) == 1, PATIENCE_S, "a hook that waits")
    stop(claude.proc.pid)
    stage.phone.write(script([{"text": "Renamed it."}], "stopped"), reply_to=notice)
    until(lambda: list((stage.store / "wait").glob("*.prompt")), PATIENCE_S, "a prompt that lies ready")
    stage.kill()
    stage.start()
    assert not messages.turns("stopped")
    claude.proc.signal(signal.SIGCONT)
    until(lambda: messages.turns("stopped"), 60, "the prompt")
    stage.kill()
    claude.wait_screen("Renamed it.")
    stage.start()
    stage.ended("✅ Done")
    stage.ended("Renamed it.")
    assert messages.turns("stopped") == 1


@pytest.mark.nightly
def test_a_session_after_clear_gets_nothing_of_the_one_before(stage: Stage, desk: Any, messages: MessagesModel) -> None:
    """The phone says that the first one has ended; the new one is listed before its first turn, and can be woken."""
    claude = desk({"text": "Both tests pass now."})
    notice = stage.ended("✅ shop-api is done")
    until(lambda: len(waiting(stage)) == 1, PATIENCE_S, "a hook that waits")
    (before,) = waiting(stage)
    for keys in ("/clear", ENTER):
        claude.send(keys)
        claude.wait_screen("/clear" if keys != ENTER else "❯")
    until(
        lambda: [one["session"] for one in waiting(stage)] not in ([], [before["session"]]),
        PATIENCE_S,
        "another session",
    )
    assert len(waiting(stage)) == 1
    stage.phone.write(script([{"text": "Never said."}], "late"), reply_to=notice)
    stage.asked("the session was ended on the computer")
    write_by_the_card(stage)
    stage.phone.write(script([{"text": "In the new one."}], "fresh"))
    stage.ended("In the new one.")
    assert not messages.turns("late")
    assert messages.turns("fresh") == 1


@pytest.mark.nightly
def test_an_interrupted_turn_leaves_the_session_idle(
    stage: Stage, home: Home, desk: Any, messages: MessagesModel
) -> None:
    """Esc at the desk, which no hook tells, in a turn that the phone began: the phone says so, and goes on."""
    settings = json.loads(home.settings.read_text())
    settings["permissions"]["allow"] = ["Bash"]
    home.settings.write_text(json.dumps(settings))
    claude = desk({"text": "Both tests pass now."})
    notice = stage.ended("✅ shop-api is done")
    works = runs("python3 -c 'import time; time.sleep(100)'")
    stage.phone.write(script([works, {"text": "Never said."}], "interrupted"), reply_to=notice)
    stage.ended("▶️ Working")
    claude.wait_screen("time.sleep")
    claude.send(ESC)
    claude.wait_screen("Interrupted")
    stage.ended("⏹ Stopped")
    stage.phone.write(script([{"text": "Tested it."}], "after-esc"), reply_to=notice)
    stage.ended("Tested it.")
    assert messages.turns("after-esc") == 1


def goes_on_once(home: Home) -> None:
    """Let a Stop hook of the project send Claude Code on in each turn, until it says that the linter is content."""
    checks = home.root / "check.sh"
    checks.write_text("grep -q 'linter is content' && exit 0; echo 'Run the linter, too.' >&2; exit 2\n")
    settings = home.project / ".claude" / "settings.json"
    settings.parent.mkdir()
    command = {"type": "command", "command": f"sh {checks}"}
    settings.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [command]}]}}))


def test_each_end_of_a_turn_is_told(stage: Stage, home: Home, desk: Any) -> None:
    """Of one at the desk, and of one that the phone began."""
    goes_on_once(home)
    desk({"text": "Tests pass."}, asks(COLOUR), {"text": "The linter is content."})
    stage.ended("Tests pass.")
    stage.phone.tap(stage.asked("Which colour"), "Red")
    notice = stage.ended("The linter is content.")
    steps = [{"text": "Renamed it."}, asks(DATABASE), {"text": "Still, the linter is content."}]
    stage.phone.write(script(steps, "goes-on"), reply_to=notice)
    stage.ended("✅ Done")
    stage.ended("Renamed it.")
    stage.phone.tap(stage.asked("Which database"), "SQLite")
    stage.ended("Still, the linter is content.")


@pytest.mark.nightly
@pytest.mark.parametrize("there", [True, False], ids=["there", "deleted"])
def test_an_end_soon_after_another_one_changes_the_notice(there: bool, stage: Stage, home: Home, desk: Any) -> None:
    """So that a Stop hook that sends the agent on does not let the phone ring each time; a deleted one comes again."""
    stage.stop()
    stage.start(notices={"finished": "1h"}, prompts={"enabled": True})
    goes_on_once(home)
    desk({"text": "The linter is content."}).wait_answered("The linter is content.")
    write_by_the_card(stage)
    steps = [{"text": "Renamed it."}, asks(DATABASE), {"text": "Still, the linter is content."}]
    stage.phone.write(script(steps, f"soon-{there}"))
    notice = stage.ended("Renamed it.")
    asked = stage.asked("Which database")
    if not there:
        stage.phone.delete(notice)
    stage.phone.tap(asked, "SQLite")
    told = stage.turned(notice, "Still,") if there else stage.ended("Still,")
    assert (told.message_id == notice.message_id) is there


@pytest.mark.nightly
def test_the_result_of_a_background_task_is_told(stage: Stage, home: Home, desk: Any) -> None:
    """Claude Code ends its turn, and begins one by itself when the task has ended: that goes on with the first."""
    stage.stop()
    stage.start(notices={"finished": "1h"}, prompts={"enabled": True})
    settings = json.loads(home.settings.read_text())
    settings["permissions"]["allow"] = ["Bash"]
    home.settings.write_text(json.dumps(settings))
    go = home.project / "go"
    works = {"command": f"until [ -e {go} ]; do sleep 0.2; done", "description": "tests", "run_in_background": True}
    desk({"text": "Ready."}).wait_answered("Ready.")
    write_by_the_card(stage)
    steps: list[Json] = [
        {"tool": "Bash", "args": works},
        {"text": "I wait for the tests."},
        {"text": "All tests pass."},
    ]
    stage.phone.write(script(steps, "background"))
    stage.ended("I wait for the tests.")
    go.touch()
    stage.ended("All tests pass.")
    stage.ended("I wait for the tests.")


def write_into(stage: Stage, notice: ShownMessage, text: str) -> None:
    """Write a prompt to a session whose turn waits for an answer, give that, and wait until the prompt is done."""
    asked = stage.asked("Which database")
    stage.phone.write(text, reply_to=notice)
    stage.ended("📨 Sent")
    stage.phone.tap(asked, "SQLite")
    stage.ended("✅ Done")


def type_ahead(desk: Any, prompt: str) -> None:
    """Start Claude Code, and type this prompt during the only step of its first turn."""
    claude = desk({"text": "Both tests pass now.", "delay_s": 5})
    claude.wait_screen("esc to interrupt")
    claude.send(prompt)
    claude.wait_screen("Took it.")
    claude.send(ENTER)


def test_a_prompt_comes_into_a_turn_that_goes_on(stage: Stage, home: Home, desk: Any, messages: MessagesModel) -> None:
    """The turn is seen to end, and to wait for an answer then; the prompt is in its next step."""
    goes_on_once(home)
    desk({"text": "Tests pass."}, asks(DATABASE), {"text": "The linter is content."})
    write_into(stage, stage.ended("Tests pass."), "Do not forget the docs")
    stage.ended("The linter is content.")
    assert messages.has_read(f"{WAKE_MESSAGE} Do not forget the docs")


@pytest.mark.nightly
def test_a_prompt_comes_into_a_turn_that_was_typed_ahead(stage: Stage, desk: Any, messages: MessagesModel) -> None:
    """No hook tells that its turn begins; the prompt from the phone comes into it."""
    type_ahead(desk, script([asks(DATABASE), {"text": "Took it."}], "ahead"))
    write_into(stage, stage.ended("Both tests pass now."), "Do not forget the tests")
    stage.ended("Took it.")
    assert messages.has_read(f"{WAKE_MESSAGE} Do not forget the tests")


@pytest.mark.nightly
def test_what_is_typed_ahead_has_a_beginning(stage: Stage, desk: Any) -> None:
    """Claude Code's own record tells it, a moment later, so that the phone hears of the end."""
    type_ahead(desk, script([{"text": "Took it.", "delay_s": 3}], "ahead-alone"))
    stage.ended("Both tests pass now.")
    stage.ended("Took it.")


@pytest.mark.nightly
def test_a_killed_turn_holds_up_nothing(stage: Stage, home: Home, desk: Any, messages: MessagesModel) -> None:
    """Its session is resumed: it waits for the phone, and takes the prompt."""
    claude = desk({"text": "Both tests pass now."})
    notice = stage.ended("✅ shop-api is done")
    claude.send(script([{"text": "Never said.", "delay_s": 100}], "killed"))
    claude.wait_screen("Never said.")
    claude.send(ENTER)
    until(lambda: messages.turns("killed"), PATIENCE_S, "a turn")
    killed_s = time.monotonic()
    claude.proc.sigkill()
    until(lambda: not waiting(stage) and time.monotonic() > killed_s + STARTING_S, PATIENCE_S, "no hook")
    with ClaudeCode(home, ()):
        until(lambda: len(waiting(stage)) == 1, PATIENCE_S, "a hook that waits")
        stage.phone.write(script([{"text": "Renamed it."}], "after-kill"), reply_to=notice)
        stage.ended("Renamed it.")
    assert messages.turns("after-kill") == 1


@pytest.mark.nightly
def test_a_session_that_was_left_takes_prompts_once_it_is_resumed(stage: Stage, home: Home, desk: Any) -> None:
    """The first one is not taken for one to a session that has ended."""
    claude = desk({"text": "Both tests pass now."})
    notice = stage.ended("✅ shop-api is done")
    claude.send("/exit")
    claude.wait_screen("/exit")
    claude.send(ENTER)
    until(lambda: not waiting(stage), PATIENCE_S, "no hook")
    with ClaudeCode(home, ()):
        until(lambda: len(waiting(stage)) == 1, PATIENCE_S, "a hook that waits")
        stage.phone.write(script([{"text": "Renamed it.", "delay_s": 2}], "after-exit"), reply_to=notice)
        stage.ended("✅ Done")
        stage.ended("Renamed it.")


@pytest.mark.nightly
@pytest.mark.parametrize("how", ["killed", "exit"])
def test_no_hook_outlives_claude_code(how: str, stage: Stage, desk: Any) -> None:
    """`kill -9`, and `/exit`; what the phone sends then has no session."""
    claude = desk({"text": "Both tests pass now."})
    notice = stage.ended("✅ shop-api is done")
    process_id = claude.proc.pid
    until(lambda: len(waiting(stage)) == 1, PATIENCE_S, "a hook that waits")
    assert len(hooks_of(process_id)) == 1
    if how == "killed":
        claude.proc.sigkill()
    else:
        claude.send("/exit")
        claude.wait_screen("/exit")
        claude.send(ENTER)
    until(lambda: not hooks_of(process_id) and not waiting(stage), PATIENCE_S, "no hook")
    stage.phone.write("Go on", reply_to=notice)
    stage.asked("can't be reached" if how == "killed" else "the session was ended on the computer")


@pytest.mark.nightly
def test_without_a_terminal_no_hook_waits(stage: Stage, home: Home, request: pytest.FixtureRequest) -> None:
    """`-p` would wait for it, and not end."""
    with home.run([{"text": "Done."}], key=key_of(request)) as claude:
        assert claude.wait(90) == 0
    assert not waiting(stage)


@pytest.mark.nightly
def test_with_prompts_off_no_hook_waits(stage: Stage, home: Home, desk: Any) -> None:
    """Neither before a turn nor after it."""
    stage.stop()
    stage.start(prompts={"enabled": False})
    claude = desk({"text": "Both tests pass now."})
    stage.ended("✅ shop-api is done")
    assert not waiting(stage)
    assert not hooks_of(claude.proc.pid)


@pytest.mark.nightly
def test_a_session_is_named_by_its_title(stage: Stage, home: Home, desk: Any) -> None:
    """First by the one that Claude Code made, then by the one that its person gave it; a question has it, too."""
    home.extra["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] = ""
    claude = desk({"text": "Both tests pass now."})
    first = stage.ended("Both tests pass now.")
    (record,) = home.path.glob(".claude/projects/*/*.jsonl")
    until(lambda: '"ai-title"' in record.read_text(), PATIENCE_S, "a title of Claude Code's own")
    stage.phone.write(script([{"text": "Tested again."}], "made"), reply_to=first)
    second = stage.ended("✅ A scripted session is done")
    claude.wait_screen("Tested again.")
    claude.send("/rename Fix the build")
    claude.wait_screen("/rename Fix the build")
    claude.send(ENTER)
    claude.wait_screen("Session renamed to: Fix the build")
    stage.phone.write(script([asks(COLOUR)], "given"), reply_to=second)
    stage.asked("shop-api · Fix the build · Claude Code on ")
