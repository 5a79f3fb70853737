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


def dialog_of(screen: str) -> str:
    """What stands in the dialog, "" where none is there; above it stands what was asked before."""
    return screen.rpartition("╭─ Ask ─")[2] if DIALOG in screen else ""


def asks(*questions: Json, say: str = "") -> Json:
    """One step of the scripted model: ask these questions."""
    return {"tool": "ask", "args": {"questions": list(questions)}, "say": say}


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


def test_a_subagent_that_ends_takes_no_question_of_another_with_it(home: Home, stage: Stage, desk: Any) -> None:
    """It is a session of the same process, and is parked minutes after its work: the phone can answer after that."""
    settings = SETTINGS | {"task": {"agentIdleTtlMs": 1000}, "async": {"enabled": False}}
    (home.agent / "config.yml").write_text(json.dumps(settings))
    helper = {"name": "Helper", "task": script([{"text": "Done."}], "helper")}
    terminal = desk({"tool": "task", "args": {"context": "Help.", "tasks": [helper]}}, asks(DATABASE))
    asked = stage.asked("Which database should I use?")
    terminal.wait_screen(DIALOG)
    time.sleep(4)  # it is over that nothing happens
    stage.phone.tap(asked, "SQLite ⭐")
    stage.ended("✅ SQLite")
    terminal.wait_screen("FINAL: User selected: SQLite")
    stage.over()


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


def test_a_timer_takes_what_its_own_would(stage: Stage, desk: Any, received: Any) -> None:
    """`recommended`: what is marked, else the first; the model is told that nobody chose it."""
    stage.stop()
    stage.start(questions={"ttl": "3s", "on_expiry": "recommended"})
    desk(asks(DATABASE, NAME))
    timed_out = "(auto-selected after timeout)"
    assert received() == (f"User answers:\ndb: SQLite {timed_out}\nname: Ada {timed_out}",)
    stage.over()


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


def test_without_that_option_nothing_is_registered(
    home: Home, model: ScriptedModel, request: pytest.FixtureRequest
) -> None:
    """Where oh-my-pi offers no `ask`, none is there."""
    with home.run([{"text": "Done."}], key=request.node.name) as running:
        assert running.wait(90) == 0
    assert "ask" not in model.offered(request.node.name)


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
