"""Without a port: OpenCode's plugin brings the questions and applies the answers, in terminals and servers alike."""

from __future__ import annotations

import os
import signal
import uuid
from typing import TYPE_CHECKING

import pytest

from hermes import install, spool
from tests.harness.processes import until
from tests.harness.tui import ESC
from tests.scenes.stage import COLOUR, NAME, SIZES, asking, question

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes.demo.model_server import ScriptedModel
    from tests.harness.home import Home
    from tests.harness.opencode import OpenCode
    from tests.harness.tui import Tui
    from tests.scenes.stage import Json, Stage

NO_LONGER = "The agent no longer needs this"
SERVER_PATIENCE_S = 60


@pytest.fixture
def desk(stage: Stage, home: Home) -> Home:
    """A home in which `hermes install opencode` was run."""
    stage.write_config()
    command = stage.run("install", "opencode", "--config", str(stage.config), environ=home.environ())
    assert command.wait() == 0, command.output()
    assert install.plugin_path(home.environ()).exists()
    return home


@pytest.fixture
def listening(stage: Stage, desk: Home) -> Stage:
    """A stage whose listener knows no server, beside a home with the plugin."""
    stage.start()
    assert "[[opencode]]" not in stage.config.read_text()
    return stage


@pytest.fixture
def key() -> str:
    """A name of its own for what the model receives from a terminal."""
    return f"desk-{uuid.uuid4().hex[:8]}"


def received(*answers: tuple[str, str]) -> str:
    """What the model gets for these questions and answers."""
    pairs = ", ".join(f'"{text}"="{answer}"' for text, answer in answers)
    return f"User has answered your questions: {pairs}. You can now continue with the user's answers in mind."


def request_of(stage: Stage) -> str:
    """The request id of the one entry that waits for a person."""
    entry = stage.wait_phase("open")
    request: str = entry["ask"]["source"]["request_id"]
    return request


def waiters(stage: Stage, request: str) -> list[int]:
    """The hooks that wait for the answer to this request."""
    return spool.waiters(stage.store, spool.wait_id("opencode", spool.machine(), request))


def wait_waiter(stage: Stage, request: str) -> int:
    """Wait until a hook waits for this request; its process id."""
    return until(lambda: waiters(stage, request), 30, "a waiting hook")[0]


def wait_received(model: ScriptedModel, key: str, *wanted: str) -> None:
    """Wait until the model has received exactly this."""

    def there() -> bool:
        assert model.received(key) == wanted
        return True

    until(there, 30, "what the model received")


# --- a terminal without a port ----------------------------------------------------------------------------------


@pytest.mark.timeout(300)
def test_a_plain_terminal_and_the_phone_are_one(
    listening: Stage, desk: Home, tui: Callable[..., Tui], model: ScriptedModel, key: str
) -> None:
    """Scene 21: answered from the phone, then in the terminal, then dismissed there: each side follows the other."""
    steps = [asking(question(), say="The schema is small. "), asking(COLOUR), asking(NAME)]
    terminal = tui(desk.project("tui"), steps=steps, key=key)
    asked = listening.asked("Which database", SERVER_PATIENCE_S)
    assert "The schema is small." in asked.text
    terminal.wait_dialog()
    listening.phone.tap(asked, "SQLite")
    listening.ended("✅ SQLite")
    terminal.wait_screen("Which colour?")
    assert model.received(key) == (received(("Which database should I use?", "SQLite")),)

    asked = listening.asked("Which colour?")
    terminal.wait_dialog()
    terminal.send("2")
    assert listening.ended("Answered on the computer: Blue", timeout_s=10).message_id == asked.message_id
    late = listening.phone.tap(asked.message_id, data=asked.button("Red").data, chat=asked.chat_id)
    assert "Already answered on the computer" in listening.phone.toast_for(late).text

    asked = listening.asked("Which name?")
    terminal.wait_screen("Which name?")
    terminal.wait_dialog()
    terminal.send(ESC)
    assert listening.ended("Dismissed on the computer", timeout_s=10).message_id == asked.message_id
    terminal.wait_no_dialog()
    listening.over()
    expected = (("Which database should I use?", "SQLite"), ("Which colour?", "Blue"))
    assert model.received(key) == tuple(received(one) for one in expected)
    assert model.turns(key) == 3
