"""What happens behind the page of the demo, without a browser. One stage for all: each test has a scene of its own."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from hermes.commands.demo.computer import COVERED, Row, ScriptedComputer
from hermes.commands.demo.stage import Stage, staged
from hermes.config import reading as configuration
from tests.commands.demo.conftest import SPANS
from tests.harness.processes import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes.sandbox.phone_values import ShownMessage

pytestmark = pytest.mark.xdist_group("stage")

PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """All that runs behind the page."""
    with staged(ScriptedComputer(), spans=SPANS) as ready:
        yield ready


def tap(stage: Stage, label: str) -> None:
    """Tap the newest button with this label, once it is there."""

    def shown() -> ShownMessage:
        found = [one for one in stage.api.control.messages() if label in str(one.labels)]
        assert found
        return found[-1]

    message = until(shown, PATIENCE_S, f"a button {label!r}")
    stage.api.control.tap(message.message_id, data=message.button(label).data or "")


def row(stage: Stage, state: str) -> Row:
    """The newest ask, once it is in this state."""

    def newest() -> Row:
        last = stage.computer.rows()[-1]
        assert last.state == state
        return last

    return until(newest, PATIENCE_S, state)


def test_what_is_always_allowed_is_not_asked(stage: Stage) -> None:
    """After "Always" the same scene is a row that says so, however often it is pressed."""
    stage.ask("permission")
    tap(stage, "Always…")
    tap(stage, "Yes, always")
    assert row(stage, "received").received == (("always",),)
    stage.ask("permission")
    stage.ask("permission")
    rows = stage.computer.rows()
    assert [one.received for one in rows[-2:]] == [((COVERED,),)] * 2
    assert len({one.key for one in rows}) == len(rows)


def test_an_agent_that_is_away_is_away_for_its_plugin_too(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was answered meanwhile takes effect when it is back, and until then it asks nothing."""
    monkeypatch.setattr(stage, "spans", replace(stage.spans, away=600.0))
    stage.ask("plugin")
    until(lambda: "9000" in str(stage.api.control.messages()), PATIENCE_S, "the question")
    stage.agent_away()
    tap(stage, "9000")
    asked = stage.computer.rows()
    with pytest.raises(LookupError, match="the agent is away"):
        stage.ask("text")
    assert len(stage.computer.rows()) == len(asked)
    until(lambda: "9000 saved" in str(stage.api.control.messages()), PATIENCE_S, "the word that it waits")
    assert row(stage, "waiting").received == ()
    stage.agent_back_s = time.time()
    assert row(stage, "received").received == (("9000",),)
    until(lambda: stage.agent_back_s is None, PATIENCE_S, "the agent")
    stage.ask("text")


def test_a_listener_that_a_hook_starts_finds_the_same_opencode_2(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the person's own home: else it would find no server there, and say that its questions are gone."""
    monkeypatch.setenv("HOME", "/home/ann")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert configuration.load(stage._daemon.config, environ={}).opencode2.file == stage._daemon.opencode2_file


def test_an_answer_waits_for_an_opencode_2_that_is_away(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file stays, so what it asked still counts; it takes the answer when it is back."""
    monkeypatch.setattr(stage, "spans", replace(stage.spans, away=600.0))
    stage.ask("opencode2")
    tap(stage, "Again ▶")
    stage.agent_away()
    tap(stage, "No")
    tap(stage, "Send")
    tap(stage, "Yes, send")
    until(lambda: "Saved." in stage.api.control.messages()[-1].text, PATIENCE_S, "the word that it waits")
    assert row(stage, "waiting").received == ()
    stage.agent_back_s = time.time()
    assert row(stage, "received").received == ((), ("false",))
