"""What the harness promises: real OpenCodes that ask, at a port and at a desk, under a test's control."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes.sandbox.model_server import ScriptedModel
from tests.harness.home import BinaryMissingError, Home, Json, binary
from tests.harness.opencode import OpenCode
from tests.harness.tui import DOWN, ENTER, ESC, Tui

ON = "You can now continue with the user's answers in mind."


def question(text: str = "Which database?", *labels: str, **more: Any) -> Json:
    """Return one question of the tool's arguments."""
    options = [{"label": label, "description": f"about {label}"} for label in labels or ("PostgreSQL", "SQLite")]
    return {"question": text, "header": text[:12], "options": options, **more}


def asks(*questions: Json, **more: Any) -> Json:
    """Return a step that asks these questions in one request."""
    return {"tool": "question", "args": {"questions": list(questions)}, **more}


# a real server


def test_several_questions_come_as_one_request(opencode: OpenCode, project: Path, model: ScriptedModel) -> None:
    """A multiple one and a single one: both answers reach the model, in their order."""
    session = opencode.session(project)
    opencode.prompt(session, [asks(question("Tools?", "S", "L", "M", multiple=True), question("Db?"))])
    asked = opencode.wait_question(session)
    assert [one.get("multiple", False) for one in asked["questions"]] == [True, False]
    opencode.reply(asked["id"], [["S", "L"], ["my own"]], project)
    opencode.wait_idle(session)
    assert model.received(session) == (f'User has answered your questions: "Tools?"="S, L", "Db?"="my own". {ON}',)


def test_two_empty_projects_are_two_to_opencode(opencode: OpenCode, project: Path, own_project: Path) -> None:
    """Projects are told apart by their first commit, so each has its own."""
    ids = {opencode.request("GET", "/project/current", one).json()["id"] for one in (project, own_project)}
    assert len(ids) == 2


@pytest.mark.parametrize("name", ["50%25", "a%20b", "100%"])
def test_a_percent_sign_is_kept_however_it_looks(opencode: OpenCode, name: str) -> None:
    """A name that looks encoded is not decoded on its way.

    Prompts cannot be tried there: 1.18.33 itself decodes a session's directory once more for them.
    """
    project = opencode.home.project(name)
    assert opencode.request("GET", "/path", project).json()["directory"] == str(project)
    session = opencode.session(project)
    assert opencode.request("GET", f"/session/{session}", project).json()["directory"] == str(project)
    opencode.discard(project)


# the desk
# `make test` has the next three in scenes/test_plugin.py: terminals are answered by keys, dismissed and killed there.


@pytest.mark.nightly
def test_the_desk_answers_by_keys(home: Home, tui: Callable[..., Tui], model: ScriptedModel) -> None:
    """A plain `opencode` without a port asks on its screen; arrow and Enter answer."""
    desk = tui(home.project(), steps=[asks(question(), say="I looked at both.")], key=f"keys-{home.version}")
    assert "2. SQLite" in desk.wait_dialog()
    assert model.received(desk.key) == ()
    desk.send(DOWN)
    desk.send(ENTER)
    desk.wait_screen("FINAL:")
    desk.wait_no_dialog()
    assert model.received(desk.key) == (f'User has answered your questions: "Which database?"="SQLite". {ON}',)


@pytest.mark.nightly
def test_escape_rejects_at_the_desk(home: Home, tui: Callable[..., Tui], model: ScriptedModel) -> None:
    """A typed prompt asks; Esc closes the dialog and the model is not called again."""
    desk = tui(home.project(), key=f"esc-{home.version}")
    desk.prompt([asks(question())])
    desk.wait_dialog()
    desk.send(ESC)
    desk.wait_no_dialog()
    desk.prompt([{"text": "I go on."}])
    desk.wait_screen(lambda _: model.turns(desk.key) == 2)
    assert "dismissed" in model.received(desk.key)[0]


@pytest.mark.nightly
def test_a_killed_desk_is_gone(home: Home, tui: Callable[..., Tui]) -> None:
    """`kill -9` of the terminal's OpenCode ends it, and closing twice harms nothing."""
    desk = tui(home.project(), steps=[asks(question())])
    desk.wait_dialog()
    assert desk.proc.sigkill() == -signal.SIGKILL
    desk.kill()
    desk.kill()
    assert not desk.proc.alive()


def test_a_missing_binary_says_how_to_get_it(tmp_path: Path) -> None:
    """One line with the command to run."""
    with pytest.raises(BinaryMissingError, match=r"run `make opencode`; needs npm"):
        binary("1.18.33", cache=tmp_path)
