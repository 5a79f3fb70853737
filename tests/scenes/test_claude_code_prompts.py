"""A prompt from the phone wakes an idle Claude Code in its terminal; the model gets the text to the letter, once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hermes.agents.claude_code import install
from hermes.agents.claude_code.shape import WAKE_SUMMARY
from hermes.sandbox.model_server import script
from tests.harness import claude_code
from tests.harness.claude_code import ClaudeCode, Home
from tests.harness.messages import running_messages

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.harness.messages import MessagesModel
    from tests.scenes.stage import Stage

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
    print(shown)
    stage.ended("✅ Done")
    stage.ended("Renamed it.")
    assert "half typed" in claude.screen()
    for one in messages.asked("woken"):
        print("MODEL:", one)
    for one in stage.phone.shown():
        print("PHONE:", one.text, one.labels)
    assert len(messages.asked("woken")) == 1
