"""Neovate Code asks in its terminal and on the phone: the first answer counts.

Neovate itself could not be run here: its package is not on the registry. Its plugin runs in a real Node against
`tests/harness/neovate.js`, which does what was seen of Neovate 0.28.2; hook, listener and Bot API are real.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from hermes.agents.neovate import install
from tests.harness.home import ROOT
from tests.harness.node import node
from tests.harness.processes import has_ended, until
from tests.harness.tui import ENTER, ESC, Terminal
from tests.scenes.stage import question

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.scenes.stage import Json, Stage

pytestmark = pytest.mark.scene(needs=node)

DATABASE = question(labels=("PostgreSQL (Recommended)", "SQLite"))
SIZES = question("Which sizes?", ("S", "M", "L"), header="Sizes") | {"multiSelect": True}
NAME = question("Which name?", ("Ada", "Bea"), header="Name")


@pytest.fixture
def place(stage: Stage, tmp_path: Path) -> Path:
    """The installed plugin of a home whose stage listens."""
    home = tmp_path / "home"
    stage.install(install.install, {"HOME": str(home)})
    stage.start()
    return install.PLUGIN.path({"HOME": str(home)})


@pytest.fixture
def desk(place: Path, tmp_path: Path) -> Iterator[Any]:
    """Start the stand-in in a terminal; it asks these questions, one call after the other."""
    project = tmp_path / "shop-api"
    project.mkdir()
    running: list[Terminal] = []

    def start(*calls: list[Json]) -> Terminal:
        given = json.dumps([{"questions": questions} for questions in calls])
        command: list[str | Path] = [node(), ROOT / "tests" / "harness" / "neovate.js", place, "7223256d", given]
        environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "TERM": "xterm-256color"}
        one = Terminal(command, cwd=project, environ=environ, log_dir=tmp_path / "logs", name="neovate")
        running.append(one.__enter__())
        return one

    yield start
    for one in running:
        one.kill()


def shows(terminal: Terminal, text: str) -> str:
    """Wait for this text, wherever its lines are broken; all that stands there."""
    screen = terminal.wait_screen(lambda screen: text in screen.replace("\n", ""))
    return screen.replace("\n", "")


def test_a_tap_answers_and_closes_the_dialog(stage: Stage, desk: Any) -> None:
    """The phone is first, twice: the exact label goes out, and nothing but the dialog gets the Esc."""
    terminal = desk([DATABASE], [NAME])
    asked = stage.asked("Which database should I use?")
    assert "shop-api" in asked.text
    assert "Hm." in asked.text
    assert "⭐" in str(asked.labels)
    shows(terminal, "DIALOG Which database")
    stage.phone.tap(asked, "PostgreSQL")
    told = 'RESULT 0 User has answered your questions: "Which database should I use?" = "PostgreSQL (Recommended)".'
    shows(terminal, told)
    stage.ended("✅ PostgreSQL")
    stage.phone.tap(stage.asked("Which name?"), "Bea")
    screen = shows(terminal, "DONE")
    assert 'RESULT 1 User has answered your questions: "Which name?" = "Bea". LISTENERS 1' in screen
    until(lambda: terminal.screen().count("CLOSED") == 2, 20, "both dialogs closed")
    assert "STOPPED" not in screen
    assert 'ALLOWED {"approved":true}' in screen
    stage.over()
    assert len(stage.phone.shown()) == 2


def test_several_questions_from_the_phone(stage: Stage, desk: Any) -> None:
    """Many of one and a text beside them, joined as its own dialog does it; a text alone."""
    terminal = desk([SIZES, NAME])
    page = stage.asked("Which sizes?")
    stage.phone.tap(page, "☐ L")
    stage.phone.tap(stage.turned(page, button="☐ S"), "☐ S")
    stage.phone.write("XXL", reply_to=page.message_id)
    stage.phone.tap(stage.turned(page, "XXL", button="▶"), "Name ▶")
    stage.phone.write("Cleo", reply_to=stage.turned(page, "Which name?").message_id)
    stage.phone.tap(stage.turned(page, "Ready to send?"), "Send")
    shows(terminal, '"Which sizes?" = "L, S, XXL", "Which name?" = "Cleo".')
    stage.over()


def test_the_desk_is_first(stage: Stage, desk: Any) -> None:
    """What was answered there goes through, and the phone says it."""
    terminal = desk([SIZES, NAME])
    page = stage.asked("Which sizes?")
    shows(terminal, "DIALOG Which sizes?")
    for keys in ("1", "3", ENTER, "2", ENTER):
        terminal.send(keys)
    shows(terminal, '"Which sizes?" = "S, L", "Which name?" = "Bea".')
    stage.turned(page, "🖥 Answered on the computer", "S, L", "Bea")
    assert "STOPPED" not in terminal.screen()
    stage.over()


def test_dismissed_at_the_desk(stage: Stage, desk: Any) -> None:
    """Esc is a no without a reason: the turn ends."""
    terminal = desk([DATABASE], [NAME])
    stage.asked("Which database should I use?")
    shows(terminal, "DIALOG")
    terminal.send(ESC)
    screen = shows(terminal, "DONE")
    assert "RESULT 0 denied" in screen
    assert "RESULT 1" not in screen
    stage.ended("🖥 Dismissed on the computer")
    stage.over()


def test_refused_from_the_phone(stage: Stage, desk: Any) -> None:
    """With a reason, so that the turn goes on: the words on the phone say so."""
    terminal = desk([DATABASE])
    asked = stage.asked("Which database should I use?")
    shows(terminal, "DIALOG")
    assert "Skip" not in str(asked.labels)
    stage.phone.tap(asked, "✋ Refuse")
    page = stage.turned(asked, button="Yes")
    stage.phone.tap(page, next(label for row in page.labels for label in row if "Yes" in label))
    shows(terminal, "Tool use rejected with user message: The user does not want to answer")
    stage.ended("✋ Refused")
    assert "STOPPED" not in terminal.screen()
    stage.over()


def test_a_question_that_ran_out_of_time_stays_at_the_desk(stage: Stage, desk: Any) -> None:
    """A no would let it go on, so it is released: the dialog is as usable as before."""
    stage.stop()
    stage.start(questions={"ttl": "2s"})
    terminal = desk([NAME])
    shows(terminal, "DIALOG")
    stage.ended("Which name?")
    until(lambda: not list((stage.store / "wait").glob("*.lock")), 20, "the end of the hook")
    assert "CLOSED" not in terminal.screen()
    terminal.send("1" + ENTER)
    shows(terminal, '"Which name?" = "Ada".')
    stage.over()


@pytest.mark.parametrize(
    "how", ["killed", *(pytest.param(how, marks=pytest.mark.nightly) for how in ("ended", "destroyed"))]
)
def test_an_agent_that_is_gone_leaves_no_question(stage: Stage, desk: Any, how: str) -> None:
    """`kill -9`, SIGTERM, or the end of its session alone: the hook leaves, and the phone says so."""
    terminal = desk([DATABASE])
    stage.asked("Which database should I use?")
    shows(terminal, "DIALOG")
    locks = list((stage.store / "wait").glob("*.lock"))
    (hook,) = (int(lock.name.split(".")[-2]) for lock in locks)
    {"killed": terminal.proc.sigkill, "ended": terminal.proc.sigterm, "destroyed": lambda: terminal.send("d")}[how]()
    stage.ended("The agent no longer needs this")
    until(lambda: has_ended(hook), 20, "the end of the hook")
    assert terminal.proc.alive() == (how == "destroyed")
    stage.over()


def test_without_hermes_the_dialog_goes_on_alone(stage: Stage, place: Path, desk: Any) -> None:
    """Its Python is gone: nothing of it is seen or felt."""
    place.write_text(place.read_text().replace(sys.executable, "/nowhere/python"))
    terminal = desk([NAME])
    shows(terminal, "DIALOG")
    terminal.send("1" + ENTER)
    shows(terminal, '"Which name?" = "Ada".')
    stage.over()
    assert not stage.phone.shown()
