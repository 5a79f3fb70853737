"""oh-my-pi asks in its terminal and on the phone: the first answer counts, and the model gets it to the letter."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from hermes.agents.oh_my_pi import install
from hermes.sandbox.model_server import script
from tests.harness import oh_my_pi
from tests.harness.oh_my_pi import SETTINGS, Home, OhMyPi
from tests.harness.processes import until
from tests.harness.tui import DOWN, ENTER, ESC, LEFT, RIGHT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermes.sandbox.model_server import ScriptedModel
    from tests.scenes.stage import Json, Stage

pytestmark = [pytest.mark.scene(needs=oh_my_pi.command), pytest.mark.xdist_group("oh-my-pi")]

DATABASE: Json = {
    "id": "db",
    "question": "Which database should I use?",
    "header": "Database",
    "options": [{"label": "PostgreSQL", "description": "relational"}, {"label": "SQLite"}, {"label": "Redis"}],
    "recommended": 1,
}
SIZES: Json = {
    "id": "sizes",
    "question": "Which sizes?",
    "options": [{"label": "S"}, {"label": "M"}, {"label": "L"}],
    "multi": True,
}
NAME: Json = {"id": "name", "question": "Which name?", "options": [{"label": "Ada"}, {"label": "Bea"}]}


DIALOG = "Esc cancel"
WORKING = "⎋ Working"


def dialog_of(screen: str) -> str:
    """What stands in the dialog, "" where none is there; above it stands what was asked before."""
    return screen.rpartition("╭─ Ask ─")[2] if DIALOG in screen else ""


def asks(*questions: Json, say: str = "") -> Json:
    """One step of the scripted model: ask these questions."""
    return {"tool": "ask", "args": {"questions": list(questions)}, "say": say}


def helps(seconds: float = 0) -> Json:
    """A step that starts a subagent, which takes so long."""
    helper = {"name": "Helper", "task": script([{"text": "I helped.", "delay_s": seconds}], "helper")}
    return {"tool": "task", "args": {"context": "Help.", "tasks": [helper]}}


@pytest.fixture
def home(tmp_path: Path, model: ScriptedModel, stage: Stage) -> Home:
    """A home whose oh-my-pi is connected to the stage, whose listener runs."""
    home = Home(tmp_path / "desk", model.base_url)
    stage.install(install.install, home.environ())
    stage.start()
    return home


@pytest.fixture
def desk(home: Home, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Start oh-my-pi in a terminal, asked to take these steps; its model's memory is kept under `key`."""
    running: list[OhMyPi] = []

    def start(*steps: Json, **more: Any) -> OhMyPi:
        one = OhMyPi(home, steps, key=request.node.name, **more)
        running.append(one.__enter__())
        return one

    yield start
    for one in running:
        one.kill()


@pytest.fixture
def received(model: ScriptedModel, request: pytest.FixtureRequest) -> Any:
    """Wait for what the model received as results."""
    return lambda: until(lambda: model.received(request.node.name), 90, "a result")


@pytest.fixture
def rpc(home: Home, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Start oh-my-pi with a client on its stdin, which prompts it to take these steps; what is given tells it more."""
    running: list[subprocess.Popen[str]] = []

    def start(*steps: Json) -> Any:
        one = subprocess.Popen(
            home.arguments("--mode", "rpc"),
            cwd=home.project,
            env=home.environ(),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        running.append(one)

        def tell(record: Json) -> None:
            assert one.stdin is not None
            one.stdin.write(json.dumps(record) + "\n")
            one.stdin.flush()

        tell({"type": "prompt", "message": script(steps, request.node.name)})
        return tell

    yield start
    for one in running:
        one.kill()
        one.communicate()


def test_a_tap_answers_and_closes_the_dialog(stage: Stage, desk: Any, received: Any) -> None:
    """The phone is first: the exact label goes out, and the terminal says where it came from."""
    terminal = desk(asks(DATABASE, say="Two would do."))
    asked = stage.asked("Which database should I use?")
    assert "Two would do." in asked.text
    assert "shop-api" in asked.text
    assert "SQLite ⭐" in str(asked.labels)
    terminal.wait_screen(DIALOG)
    stage.phone.tap(asked, "SQLite ⭐")
    assert received() == ("User selected: SQLite",)
    stage.ended("✅ SQLite")
    screen = terminal.wait_screen("FINAL: User selected: SQLite")
    assert "Answered on the phone." in screen
    assert not dialog_of(screen)
    stage.over()


@pytest.mark.nightly
def test_several_questions_from_the_phone(stage: Stage, desk: Any, received: Any) -> None:
    """Many of one, with a text beside them, and a text alone; forth and back between the pages before they go."""
    terminal = desk(asks(SIZES, NAME))
    page = stage.asked("Which sizes?")
    terminal.wait_screen(DIALOG)
    stage.phone.tap(page, "☐ L")
    stage.phone.tap(stage.turned(page, button="☐ S"), "☐ S")
    stage.phone.write("XXL, but only in blue", reply_to=page.message_id)
    stage.phone.tap(stage.turned(page, "XXL", button="▶"), "name ▶")
    stage.phone.write("Cleo", reply_to=stage.turned(page, "Which name?").message_id)
    stage.phone.tap(stage.turned(page, "Ready to send?"), "Send")
    assert received() == ('User answers:\nsizes: [L, S] (note: XXL, but only in blue)\nname: "Cleo"',)
    stage.over()


def test_the_desk_is_first(stage: Stage, desk: Any, received: Any) -> None:
    """One choice, then two questions in its own dialog, forth and back; the phone says what was answered there."""
    terminal = desk(asks(DATABASE), asks(SIZES, NAME))
    asked = stage.asked("Which database should I use?")
    terminal.wait_screen(DIALOG)
    terminal.send(DOWN + ENTER)
    assert received() == ("User selected: Redis",)
    stage.turned(asked, "🖥 Answered on the computer: Redis")
    page = stage.asked("Which sizes?")
    terminal.wait_screen(DIALOG)
    for keys, shown in ((" ", "☑ S"), (DOWN + " ", "☑ M"), (RIGHT, "Ada"), (LEFT, "☑ M"), (ENTER, "Ada")):
        terminal.send(keys)
        terminal.wait_screen(lambda screen, shown=shown: shown in dialog_of(screen))
    terminal.send(ENTER)
    terminal.wait_screen("Review answers")
    terminal.send(ENTER)
    terminal.wait_screen("FINAL: User answers:")
    assert received()[1] == "User answers:\nsizes: [S, M]\nname: Ada"
    stage.turned(page, "🖥 Answered on the computer", "S, M", "Ada")
    stage.over()


def test_stopped_from_the_phone(stage: Stage, desk: Any, model: ScriptedModel, request: pytest.FixtureRequest) -> None:
    """A no ends the turn: the dialog closes, and the model is not asked again."""
    terminal = desk(asks(DATABASE), {"text": "Never said."})
    asked = stage.asked("Which database should I use?")
    terminal.wait_screen(DIALOG)
    stage.phone.tap(asked, "⏹ Stop")
    stage.phone.tap(stage.turned(asked, button="Yes, stop"), "Yes, stop")
    stage.ended("⏹ Stopped")
    terminal.wait_screen("Stopped from the phone.")
    stage.over()
    assert model.turns(request.node.name) == 1


@pytest.mark.nightly
def test_dismissed_at_the_desk(stage: Stage, desk: Any) -> None:
    """Esc ends the turn, and the question on the phone."""
    terminal = desk(asks(DATABASE))
    stage.asked("Which database should I use?")
    terminal.wait_screen(DIALOG)
    terminal.send(ESC)
    stage.ended("🖥 Dismissed on the computer")
    terminal.wait_screen(lambda screen: not dialog_of(screen))
    stage.over()


def test_a_killed_agent_leaves_no_question(stage: Stage, desk: Any) -> None:
    """`kill -9`: its hook sees that nobody reads, and the phone says so."""
    terminal = desk(asks(DATABASE))
    stage.asked("Which database should I use?")
    terminal.wait_screen(DIALOG)
    terminal.proc.sigkill()
    stage.ended("The agent no longer needs this")
    stage.over()


@pytest.mark.nightly
def test_a_subagent_that_ends_takes_no_question_of_another_with_it(home: Home, stage: Stage, desk: Any) -> None:
    """It is a session of the same process, and is parked minutes after its work: the phone can answer after that."""
    settings = SETTINGS | {"task": {"agentIdleTtlMs": 1000}, "async": {"enabled": False}}
    (home.agent / "config.yml").write_text(json.dumps(settings))
    terminal = desk(helps(), asks(DATABASE))
    asked = stage.asked("Which database should I use?")
    terminal.wait_screen(DIALOG)
    time.sleep(4)  # it is over that nothing happens
    stage.phone.tap(asked, "SQLite ⭐")
    stage.ended("✅ SQLite")
    terminal.wait_screen("FINAL: User selected: SQLite")
    stage.over()


@pytest.mark.nightly
def test_a_question_that_ran_out_of_time_stays_at_the_desk(stage: Stage, desk: Any, received: Any) -> None:
    """`keep`: the keyboard goes, the hook leaves, and the dialog is as usable as before."""
    stage.stop()
    stage.start(questions={"ttl": "3s", "on_expiry": "keep"})
    terminal = desk(asks(DATABASE))
    stage.ended("Which database should I use?")
    until(lambda: not list((stage.store / "wait").glob("*.lock")), 30, "the end of the hook")
    terminal.wait_screen(DIALOG)
    terminal.send(ENTER)
    assert received() == ("User selected: SQLite",)
    stage.over()


@pytest.mark.nightly
def test_a_timer_takes_what_its_own_would(stage: Stage, desk: Any, received: Any) -> None:
    """`recommended`: what is marked, else the first; the model is told that nobody chose it."""
    stage.stop()
    stage.start(questions={"ttl": "3s", "on_expiry": "recommended"})
    desk(asks(DATABASE, NAME))
    timed_out = "(auto-selected after timeout)"
    assert received() == (f"User answers:\ndb: SQLite {timed_out}\nname: Ada {timed_out}",)
    stage.over()


@pytest.mark.nightly
def test_its_own_timer_is_no_answer_of_a_person(home: Home, stage: Stage, desk: Any, received: Any) -> None:
    """`ask.timeout` takes what is marked; the phone rings, and says that nobody answered."""
    set_up(home, ask={"timeout": 5})
    desk(asks(DATABASE))
    asked = stage.asked("Which database should I use?")
    assert received() == ("User selected: SQLite (auto-selected after timeout)",)
    stage.turned(asked, "⌛ The timer of oh-my-pi on", "decided: SQLite")
    stage.ended("⌛ No answer to Database in time")
    stage.over()


@pytest.mark.nightly
def test_without_hermes_the_dialog_goes_on_alone(home: Home, stage: Stage, desk: Any, received: Any) -> None:
    """Its Python is gone: nothing of it is seen or felt."""
    place = install.PLUGIN.path(home.environ())
    place.write_text(place.read_text().replace(sys.executable, "/nowhere/python"))
    terminal = desk(asks(DATABASE))
    terminal.wait_screen(DIALOG)
    terminal.send(ENTER)
    assert received() == ("User selected: SQLite",)
    stage.over()
    assert not stage.phone.shown()


# without a terminal


def test_without_a_terminal_it_asks_on_the_phone_alone(
    home: Home, stage: Stage, received: Any, request: pytest.FixtureRequest
) -> None:
    """The tool is ours then, and tells the model the same words."""
    stage.install(install.install, home.environ(), headless=True)
    with home.run([asks(DATABASE), asks(SIZES, NAME)], key=request.node.name) as running:
        stage.phone.tap(stage.asked("Which database should I use?"), "SQLite ⭐")
        page = stage.asked("Which sizes?")
        stage.phone.tap(page, "☐ L")
        stage.phone.tap(stage.turned(page, button="name ▶"), "name ▶")
        stage.phone.write("Cleo", reply_to=stage.turned(page, "Which name?").message_id)
        stage.phone.tap(stage.turned(page, "Ready to send?"), "Send")
        assert running.wait(90) == 0
        assert received() == ("User selected: SQLite", 'User answers:\nsizes: [L]\nname: "Cleo"')
        assert "FINAL: User answers:" in running.output()
    stage.over()


@pytest.mark.nightly
def test_a_no_without_a_terminal_ends_the_run(
    home: Home, stage: Stage, model: ScriptedModel, request: pytest.FixtureRequest
) -> None:
    """As Esc would; the model is not asked again."""
    stage.install(install.install, home.environ(), headless=True)
    with home.run([asks(DATABASE)], key=request.node.name) as running:
        asked = stage.asked("Which database should I use?")
        stage.phone.tap(asked, "⏹ Stop")
        stage.phone.tap(stage.turned(asked, button="Yes, stop"), "Yes, stop")
        assert running.wait(90) == 1
    stage.ended("⏹ Stopped")
    stage.over()
    assert model.turns(request.node.name) == 1


@pytest.mark.nightly
def test_without_that_option_nothing_is_registered(
    home: Home, model: ScriptedModel, request: pytest.FixtureRequest
) -> None:
    """Where oh-my-pi offers no `ask`, none is there."""
    with home.run([{"text": "Done."}], key=request.node.name) as running:
        assert running.wait(90) == 0
    assert "ask" not in model.offered(request.node.name)


@pytest.mark.nightly
def test_over_rpc_it_asks_on_the_phone_alone(home: Home, stage: Stage, received: Any, rpc: Any) -> None:
    """`--mode rpc` has no dialog either; a turn that its client aborts takes the question with it."""
    stage.install(install.install, home.environ(), headless=True)
    tell = rpc(asks(DATABASE), asks(NAME))
    stage.phone.tap(stage.asked("Which database should I use?"), "Redis")
    assert received() == ("User selected: Redis",)
    stage.asked("Which name?")
    tell({"type": "abort"})
    stage.ended("The agent no longer needs this")
    stage.over()


# its turns


@pytest.fixture
def noticed(home: Home, stage: Stage) -> Home:
    """A home whose every turn is told on the phone when it ends."""
    stage.stop()
    stage.start(notices={"finished": "0s"})
    return home


def notices(stage: Stage) -> list[str]:
    """All notices on the phone."""
    return [one.text for one in stage.phone.shown() if " is done" in one.text or " stopped: " in one.text]


def prompt(terminal: OhMyPi, *steps: Json) -> None:
    """Type a prompt that lets the model take these steps."""
    typed = script(steps)
    terminal.wait_screen(lambda screen: WORKING not in screen)
    terminal.send(typed)
    terminal.wait_screen(typed)
    terminal.send(ENTER)


def test_the_end_of_each_turn_is_told(stage: Stage, noticed: Home, desk: Any) -> None:
    """Once, with its last words; a question in it is no turn of its own, and the next turn has another notice."""
    terminal = desk(asks(DATABASE), {"text": "Both tests pass now."})
    stage.phone.tap(stage.asked("Which database should I use?"), "SQLite ⭐")
    first = stage.ended("✅ shop-api is done")
    assert "Both tests pass now." in first.text
    assert "oh-my-pi on" in first.text
    terminal.wait_screen("Both tests pass now.")
    prompt(terminal, {"text": "Nothing is left."})
    stage.ended("Nothing is left.")
    stage.over()
    assert len(notices(stage)) == 2


@pytest.mark.nightly
def test_a_turn_that_fails_is_told_with_its_reason(stage: Stage, noticed: Home, desk: Any) -> None:
    """In oh-my-pi's own words."""
    desk({"status": 400})
    failed = stage.ended("❌ shop-api stopped: 400 the script says so")
    assert "raw-http-request" not in failed.text


LOOPS: Json = {"text": "word. " * 500}
"""oh-my-pi takes this for a fault of the model, and asks it again."""


def set_up(home: Home, **settings: Json) -> None:
    """Lay these over the settings of the home."""
    (home.agent / "config.yml").write_text(json.dumps(SETTINGS | settings))


@pytest.mark.nightly
def test_a_request_that_is_made_again_is_told_when_it_is_given_up(stage: Stage, noticed: Home, desk: Any) -> None:
    """Once."""
    set_up(noticed, retry={"maxRetries": 1, "baseDelayMs": 50})
    terminal = desk(LOOPS)
    stage.ended("❌ shop-api stopped: Retry budget exhausted after 1 retry: ")
    prompt(terminal, {"text": "Nothing is left."})
    stage.ended("Nothing is left.")
    assert len(notices(stage)) == 2


@pytest.mark.nightly
def test_a_retry_that_a_person_cancels_is_no_news(stage: Stage, noticed: Home, desk: Any) -> None:
    """oh-my-pi reports a failure then; the turn after it is told."""
    set_up(noticed, retry={"maxRetries": 5, "baseDelayMs": 60_000})
    terminal = desk(LOOPS)
    terminal.wait_screen("Retrying (1/5)")
    terminal.send(ESC)
    terminal.wait_screen("Retry cancelled")
    prompt(terminal, {"text": "Nothing is left."})
    stage.ended("Nothing is left.")
    assert len(notices(stage)) == 1


@pytest.mark.nightly
def test_a_turn_with_a_job_in_the_background_is_told_after_that(stage: Stage, noticed: Home, desk: Any) -> None:
    """Its agent goes on by itself when the job is done."""
    terminal = desk(helps(3), {"text": "I wait."})
    terminal.wait_screen("I wait.")
    assert "I wait." not in stage.asked("✅ shop-api is done").text  # it is long: there is a button
    assert len(notices(stage)) == 1


@pytest.mark.nightly
def test_a_turn_that_a_person_interrupts_is_no_news(stage: Stage, noticed: Home, desk: Any) -> None:
    """With Esc in the dialog, or while the model works; the turn after that is told."""
    terminal = desk(asks(DATABASE))
    stage.asked("Which database should I use?")
    terminal.wait_screen(DIALOG)
    terminal.send(ESC)
    stage.ended("🖥 Dismissed on the computer")
    terminal.wait_screen(lambda screen: not dialog_of(screen))
    prompt(terminal, {"text": "Never said.", "delay_s": 60})
    terminal.wait_screen(WORKING)
    terminal.send(ESC)
    terminal.wait_screen(lambda screen: WORKING not in screen)
    prompt(terminal, {"text": "Nothing is left."})
    assert "Nothing is left." in stage.ended("✅ shop-api is done").text
    stage.over()
    assert len(notices(stage)) == 1


@pytest.mark.nightly
def test_the_end_of_a_subagent_is_no_news(stage: Stage, noticed: Home, desk: Any) -> None:
    """It is a session of the same process; only the turn that needed it is told."""
    set_up(noticed, **{"async": {"enabled": False}})
    desk(helps(), {"text": "Both are done."})
    assert "Both are done." in stage.ended("✅ shop-api is done").text
    assert len(notices(stage)) == 1


@pytest.mark.nightly
def test_a_turn_without_a_terminal_is_told(
    stage: Stage, noticed: Home, model: ScriptedModel, request: pytest.FixtureRequest
) -> None:
    """`-p`: oh-my-pi ends at once, and its hook has the whole news all the same."""
    with noticed.run([{"text": "Both tests pass now."}], key=request.node.name) as running:
        assert running.wait(90) == 0
    assert "Both tests pass now." in stage.ended("✅ shop-api is done").text
    assert len(notices(stage)) == 1
