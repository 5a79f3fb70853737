"""Claude Code asks in its terminal and on the phone: the first answer counts, and the model gets it to the letter."""

from __future__ import annotations

import contextlib
import json
import signal
from typing import TYPE_CHECKING, Any

import pytest

from hermes.agents.claude_code import install
from hermes.agents.claude_code.adapter import _NO
from tests.harness import claude_code
from tests.harness.claude_code import ClaudeCode, Home
from tests.harness.messages import running_messages
from tests.harness.processes import stop, until
from tests.harness.tui import DOWN, ENTER, ESC

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.harness.messages import MessagesModel
    from tests.scenes.stage import Json, Stage

pytestmark = [pytest.mark.scene(needs=claude_code.binary), pytest.mark.xdist_group("claude-code")]

DIALOG = "Esc to cancel"
ANSWERED = "Your questions have been answered: "
PREVIEW = "+--+\n|  |\n+--+"


def question(text: str, header: str, *labels: str, multiple: bool = False, **more: str) -> Json:
    """One question as the model writes it."""
    options = [{"label": label, "description": f"about {label}", **more} for label in labels]
    return {"question": text, "header": header, "options": options, "multiSelect": multiple}


DATABASE = question("Which database should I use?", "Database", "PostgreSQL", "SQLite")
SIZES = question("Which sizes?", "Sizes", "S", "M, or so", "L", multiple=True)


def asks(*questions: Json) -> Json:
    """One step of the scripted model: ask these questions."""
    return {"tool": "AskUserQuestion", "args": {"questions": list(questions)}}


def runs(command: str) -> Json:
    """One step of the scripted model: run this."""
    return {"tool": "Bash", "args": {"command": command, "description": "what it says"}}


@pytest.fixture(scope="module")
def messages() -> Iterator[MessagesModel]:
    """A scripted model for all of this module; its memory is kept apart by key."""
    with running_messages() as running:
        yield running


@pytest.fixture
def home(tmp_path: Path, messages: MessagesModel, stage: Stage) -> Home:
    """A home whose Claude Code is connected to the stage, whose listener runs."""
    home = Home(tmp_path / "desk", messages.base_url)
    stage.install(install.install, home.environ())
    stage.start()
    return home


@pytest.fixture
def desk(home: Home, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Start Claude Code in a terminal, asked to take these steps; its model's memory is kept under the test's name."""
    running: list[ClaudeCode] = []

    def start(*steps: Json) -> ClaudeCode:
        one = ClaudeCode(home, steps, key=key_of(request))
        running.append(one.__enter__())
        return one

    yield start
    for one in running:
        one.kill()


def key_of(request: pytest.FixtureRequest) -> str:
    """The key under which the model keeps what it received in this test."""
    return str(request.node.name).translate({ord(sign): "-" for sign in "[] "})


@pytest.fixture
def received(messages: MessagesModel, request: pytest.FixtureRequest) -> Any:
    """Wait for what the model received as results."""
    return lambda: until(lambda: messages.received(key_of(request)), 90, "a result")


def no_hook_waits(stage: Stage) -> None:
    """Wait until no hook is left."""
    until(lambda: not list((stage.store / "wait").glob("*.lock")), 30, "the end of all hooks")


def test_a_tap_answers_and_closes_the_dialog(stage: Stage, desk: Any, received: Any) -> None:
    """The dialog is there while the phone is asked; the exact label goes out, and previews come back as they were."""
    claude = desk(asks(question("Which layout?", "Layout", "Grid (Recommended)", "List", preview=PREVIEW)))
    asked = stage.asked("Which layout?")
    claude.wait_screen(DIALOG)
    assert "shop-api" in asked.text
    assert "⭐" in asked.text
    stage.phone.tap(asked, "List")
    assert received() == (f'{ANSWERED}"Which layout?"="List". You can now continue with these answers in mind.',)
    stage.ended("✅ List")
    assert "AnsweredWith by us, known by: plugin" in stage.log.read_text()
    shown = claude.wait_screen(lambda screen: "FINAL:" in screen and DIALOG not in screen)
    assert "Allowed by PermissionRequest hook" in shown
    stage.over()
    no_hook_waits(stage)


@pytest.mark.nightly
def test_a_question_names_the_project_also_after_the_agent_went_into_a_folder_of_it(
    stage: Stage, home: Home, desk: Any
) -> None:
    """A `cd` stays in effect for what the agent does next."""
    settings = json.loads(home.settings.read_text())
    settings["permissions"]["allow"] = ["Bash"]
    home.settings.write_text(json.dumps(settings))
    desk(runs("mkdir -p packages/api && cd packages/api"), asks(DATABASE))
    asked = stage.asked("Which database")
    assert "\nshop-api · Claude Code" in asked.text
    stage.phone.tap(asked, "SQLite")
    stage.ended("✅ SQLite")


@pytest.mark.nightly
def test_its_own_mark_says_whether_a_question_waits_at_the_desk(
    stage: Stage, home: Home, desk: Any, received: Any
) -> None:
    """The variable that it has for this reaches its hooks: while it is missing, nothing waits for `post_after`."""
    mark = home.root / "present"
    home.extra["CLAUDE_CLIENT_PRESENCE_FILE"] = str(mark)
    stage.stop()
    stage.start(questions={"post_after": "1h"})
    desk(asks(DATABASE))
    asked = stage.asked("Which database should I use?")
    stage.phone.tap(asked, "SQLite")
    assert received()
    stage.over()
    mark.touch()
    claude = desk(asks(SIZES))
    claude.wait_screen(DIALOG)
    until(stage.entries, 30, "the question in the store")
    stage.phone.write("/status")
    stage.phone.message_with("1 open")
    assert not [one for one in stage.phone.messages() if "Which sizes?" in one.text and "1 open" not in one.text]
    stage.phone.write("/away")
    stage.asked("Which sizes?")


@pytest.mark.nightly
def test_a_session_that_runs_takes_the_hooks_in(home: Home, stage: Stage, desk: Any) -> None:
    """After a question or two, if it was just about to ask: no session has to be started again."""
    install.uninstall(environ=home.environ())
    claude = desk(*(asks(question(f"Is it {number}?", f"N{number}", "Yes", "No")) for number in range(9)))

    def is_asked(number: int) -> bool:
        """Tell whether the question at the desk comes to the phone, too, and answer it at the desk."""
        claude.wait_screen(lambda screen: f"☐ N{number}" in screen and DIALOG in screen)
        came = False
        with contextlib.suppress(TimeoutError):
            came = bool(stage.asked(f"Is it {number}?", 5))
        claude.send(ENTER)
        return came

    numbers = iter(range(9))
    assert not is_asked(next(numbers))
    stage.install(install.install, home.environ())
    assert any(map(is_asked, numbers))


def test_picks_and_typed_words_reach_the_model(stage: Stage, desk: Any, received: Any) -> None:
    """Two questions: words alone are the answer; beside picks, joined as Claude Code does, they are a note."""
    desk(asks(DATABASE, SIZES))
    asked = stage.asked("Which database")
    stage.phone.write("DuckDB, please", reply_to=asked.message_id)
    page = stage.turned(asked, "Which sizes?", button="M, or so")
    stage.phone.tap(page, "M, or so")
    stage.turned(asked, button="☑ M, or so")
    stage.phone.tap(asked, "☐ S")
    stage.turned(asked, button="☑ S")
    stage.phone.write("but only in blue", reply_to=asked.message_id)
    stage.turned(asked, "only in blue", button="Review")
    stage.phone.tap(asked, "Review")
    stage.turned(asked, "Ready to send?")
    stage.phone.tap(asked, "Send")
    (told,) = received()
    assert '"Which database should I use?"="DuckDB, please"' in told
    assert '"Which sizes?"="M, or so, S" notes: but only in blue' in told
    stage.ended("✅")
    stage.over()


@pytest.mark.nightly
def test_a_stopped_agent_gets_the_answer_when_it_goes_on(stage: Stage, desk: Any, received: Any) -> None:
    """As after Ctrl-Z: until then the answer is on its way, and nobody says that it came too late."""
    claude = desk(asks(DATABASE))
    asked = stage.asked("Which database")
    claude.wait_screen(DIALOG)
    stop(claude.proc.pid)  # alone: its hook goes on
    stage.phone.tap(asked, "SQLite")
    stage.turned(asked, "as soon as it is back")
    claude.proc.signal(signal.SIGCONT)
    (told,) = received()
    assert '"Which database should I use?"="SQLite"' in told
    stage.ended("✅ SQLite")
    stage.over()


def test_what_is_answered_at_the_desk_closes_on_the_phone(stage: Stage, desk: Any, received: Any) -> None:
    """With the desk's answer; the hook, which Claude Code lets live, leaves."""
    claude = desk(asks(DATABASE))
    asked = stage.asked("Which database")
    claude.wait_screen(DIALOG)
    claude.send(DOWN)
    claude.wait_screen("❯ 2. SQLite")
    claude.send(ENTER)
    assert received()[0].startswith(f'{ANSWERED}"Which database should I use?"="SQLite"')
    stage.ended("Answered on the computer: SQLite")
    late = stage.phone.tap(asked.message_id, data=asked.button("PostgreSQL").data, chat=asked.chat_id)
    assert "Already answered on the computer" in stage.phone.toast_for(late).text
    stage.over()
    no_hook_waits(stage)


@pytest.mark.parametrize(
    ("button", "sure", "told", "end"),
    [
        pytest.param("✋ Refuse", "Yes, refuse", _NO, "✋ Refused", id="refuse"),
        pytest.param(
            *("⏭ Skip", "Yes", "The user did not answer the questions.", "⏭ Skipped"),
            marks=pytest.mark.nightly,
            id="skip",
        ),
    ],
)
def test_a_refusal_and_a_skip_let_it_go_on(
    button: str, sure: str, told: str, end: str, stage: Stage, desk: Any, received: Any
) -> None:
    """And the model knows that nobody has chosen anything."""
    claude = desk(asks(DATABASE))
    asked = stage.asked("Which database")
    stage.phone.tap(asked, button)
    stage.turned(asked, button="Back")
    stage.phone.tap(asked, sure)
    assert received() == (told,)
    stage.ended(end)
    claude.wait_screen("FINAL:")
    proof = "receipt" if told == _NO else "plugin"
    assert f"by us, known by: {proof}" in stage.log.read_text()
    stage.over()


@pytest.mark.nightly
def test_chatting_about_it_closes_the_question(stage: Stage, desk: Any, received: Any) -> None:
    """Nothing tells of that but the end of the turn."""
    claude = desk(asks(DATABASE))
    stage.asked("Which database")
    claude.wait_screen("Chat about this")
    claude.send("4")
    stage.ended("The agent no longer needs this")
    stage.over()
    no_hook_waits(stage)


@pytest.mark.parametrize("how", ["esc", "killed", pytest.param("closed", marks=pytest.mark.nightly)])
def test_an_agent_that_gives_up_closes_its_question(how: str, stage: Stage, desk: Any) -> None:
    """Esc at the dialog, kill -9, the end of its terminal."""
    claude = desk(asks(DATABASE))
    stage.asked("Which database")
    claude.wait_screen(DIALOG)
    if how == "esc":
        claude.send(ESC)
        claude.wait_screen("Declined to answer")
    elif how == "killed":
        claude.proc.sigkill()
    else:
        claude.kill()
    stage.ended("The agent no longer needs this")
    stage.over()
    no_hook_waits(stage)


@pytest.mark.nightly
def test_what_nobody_answers_in_time_is_left_to_the_dialog(stage: Stage, desk: Any, received: Any) -> None:
    """A no would let it go on as if somebody had chosen: the hook leaves without a word."""
    stage.listener.close() if stage.listener else None
    stage.start(questions={"ttl": "2s"})
    claude = desk(asks(DATABASE))
    stage.ended("on the computer")
    no_hook_waits(stage)
    claude.wait_screen(DIALOG)
    claude.send("1")
    assert '="PostgreSQL"' in received()[0]


def test_without_a_terminal_the_phone_alone_is_asked(
    stage: Stage, home: Home, messages: MessagesModel, request: pytest.FixtureRequest
) -> None:
    """`PreToolUse`, where the model is given the tool at all; a permission mode that asks nobody changes nothing."""
    stage.install(install.install, home.environ(), headless=True)
    words = ("--permission-prompt-tool", "stdio", "--permission-mode", "dontAsk")
    with home.run([asks(DATABASE, SIZES)], *words, key=key_of(request)) as claude:
        asked = stage.asked("Which database")
        stage.phone.tap(asked, "SQLite")
        stage.turned(asked, "Which sizes?", button="L")
        stage.phone.tap(asked, "L")
        stage.turned(asked, button="☑ L")
        stage.phone.tap(asked, "Review")
        stage.turned(asked, "Ready to send?")
        stage.phone.tap(asked, "Send")
        assert claude.wait() == 0
        assert '"Which database should I use?"="SQLite", "Which sizes?"="L"' in claude.output()
    stage.ended("✅")
    stage.over()


@pytest.mark.nightly
def test_without_a_terminal_a_no_ends_the_turn(
    stage: Stage, home: Home, messages: MessagesModel, request: pytest.FixtureRequest
) -> None:
    """Nobody is there to say how to go on: the model is asked for nothing more."""
    stage.install(install.install, home.environ(), headless=True)
    with home.run([asks(DATABASE)], "--permission-prompt-tool", "stdio", key=key_of(request)) as claude:
        asked = stage.asked("Which database")
        stage.phone.tap(asked, "⏹ Stop")
        stage.turned(asked, button="Back")
        stage.phone.tap(asked, "Yes, stop")
        claude.wait()
    assert messages.turns(key_of(request)) == 1
    stage.ended("⏹ Stopped")
    stage.over()


# its other permission prompts


@pytest.fixture
def permitted(home: Home, stage: Stage) -> Home:
    """A home whose permission prompts are asked on the phone, too."""
    stage.install(install.install, home.environ(), permissions=True)
    return home


def test_a_permission_is_given_once(stage: Stage, permitted: Home, desk: Any, received: Any) -> None:
    """The command runs as it was shown."""
    desk(runs("echo one > made && cat made"))
    asked = stage.asked("Claude Code wants to run:")
    assert "echo one > made && cat made" in asked.text
    assert "Always" not in str(asked.labels)
    stage.phone.tap(asked, "Allow once")
    assert received() == ("one",)
    stage.ended("✅ Allowed once")
    stage.over()


def test_a_permission_is_refused_with_a_reason(stage: Stage, permitted: Home, desk: Any, received: Any) -> None:
    """The model reads why; nothing was run."""
    desk(runs("echo one > made"))
    asked = stage.asked("Claude Code wants to run:")
    stage.phone.tap(asked, "✏️ Refuse with a reason")
    stage.turned(asked, button="Cancel typing")
    stage.phone.write("use make instead")
    (told,) = received()
    assert told.endswith("They wrote: use make instead")
    assert not (permitted.project / "made").exists()
    stage.ended("✋")
    stage.over()


@pytest.mark.nightly
def test_a_permission_given_at_the_desk_closes_on_the_phone(
    stage: Stage, permitted: Home, desk: Any, received: Any
) -> None:
    """Known once the tool has run."""
    claude = desk(runs("echo one > made && cat made"))
    stage.asked("Claude Code wants to run:")
    claude.wait_screen("Do you want to proceed?")
    claude.send("1")
    assert received() == ("one",)
    stage.ended("Allowed on the computer")
    stage.over()
    no_hook_waits(stage)


def test_permissions_are_left_to_the_desk_unless_they_were_asked_for(stage: Stage, desk: Any, received: Any) -> None:
    """Off by default: a question that comes after one is the first thing on the phone."""
    claude = desk(runs("echo one > made && cat made"), asks(DATABASE))
    claude.wait_screen("Do you want to proceed?")
    claude.send("1")
    asked = stage.asked("Which database")
    assert [message.message_id for message in stage.phone.shown()] == [asked.message_id]


@pytest.mark.nightly
def test_a_command_that_is_wanted_twice_in_one_step_is_allowed_twice(
    stage: Stage, permitted: Home, desk: Any, received: Any
) -> None:
    """The news that the first has run settles the first alone: the second waits for a word of its own."""
    made = permitted.project / "made"
    desk({"tools": [runs("date >> made && cat made")] * 2})

    def allowed() -> bool:
        """Tap the newest one, again if it was too fresh, until both commands have run."""
        open_ones = [one for one in stage.phone.shown() if "Allow once" in str(one.labels)]
        if open_ones:
            with contextlib.suppress(LookupError):  # its buttons went between the look and the tap
                stage.phone.tap(open_ones[-1], "Allow once")
        return made.exists() and len(made.read_text().splitlines()) == 2

    until(allowed, 60, "two lines")
    until(lambda: len(received()) == 2, 60, "both results")
    until(lambda: stage.log.read_text().count("AnsweredWith by us") >= 2, 60, "the news of both")
    stage.over()
    assert stage.log.read_text().count("AnsweredWith by us") == 2


# its turns


@pytest.fixture
def noticed(home: Home, stage: Stage) -> Home:
    """A home whose every turn is told on the phone when it ends."""
    stage.stop()
    stage.start(notices={"finished": "0s"})
    return home


def test_the_end_of_each_turn_is_told(stage: Stage, noticed: Home, desk: Any) -> None:
    """With Claude Code's last words; the second turn has a notice of its own."""
    claude = desk({"text": "Both tests pass now."})
    first = stage.ended("✅ shop-api is done")
    assert "Both tests pass now." in first.text
    assert "Claude Code on" in first.text
    claude.wait_screen("Both tests pass now.")
    claude.send("go on")
    claude.wait_screen("go on")
    claude.send(ENTER)
    until(lambda: len([one for one in stage.phone.shown() if " is done" in one.text]) == 2, 90, "the second notice")
    stage.over()


def test_a_turn_that_fails_is_told_with_its_reason(stage: Stage, noticed: Home, desk: Any) -> None:
    """In Claude Code's own words."""
    desk({"status": 400})
    failed = stage.ended("❌ shop-api stopped: ")
    assert "400" in failed.text
    assert "the script says so" in failed.text


@pytest.mark.nightly
def test_a_short_turn_is_no_news(stage: Stage, home: Home, desk: Any, received: Any) -> None:
    """Two minutes are the least by default; what it asks is asked all the same."""
    claude = desk(asks(DATABASE))
    stage.phone.tap(stage.asked("Which database"), "SQLite")
    assert "SQLite" in received()[0]
    claude.wait_screen("FINAL:")
    until(
        lambda: '"dropped"' in "".join(path.read_text() for path in (stage.store / "notices").glob("*.json")), 60, "it"
    )
    assert not [one for one in stage.phone.shown() if " is done" in one.text]
