"""Time: the final call, a touch that starts the time anew, and the end by each rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scenes.stage import NEWEST, PATIENCE_S, asking, question

if TYPE_CHECKING:
    from pathlib import Path

    from hermes.sandbox.model_server import ScriptedModel
    from hermes.sandbox.phone_values import ShownMessage
    from tests.harness.opencode import OpenCode
    from tests.scenes.stage import Stage

RECOMMENDED = question(labels=("PostgreSQL", "SQLite (Recommended)"))


def ring(stage: Stage, text: str, *, after: ShownMessage) -> ShownMessage:
    """Wait for a message with `text` that came, with a ring, after another one; it may be gone again by now."""

    def rung() -> ShownMessage | None:
        later = (m for m in stage.phone.messages() if m.message_id > after.message_id)
        return next((m for m in later if m.from_bot and not m.silent and text in m.text), None)

    return stage.phone.wait(rung, 60, what=f"a ring with {text!r}")


@pytest.mark.parametrize(
    ("rule", "heard", "said"),
    [
        ("reject", None, "the agent was told to stop"),
        ("recommended", '="SQLite (Recommended)"', "SQLite"),
        ("skip", '="Unanswered"', "decide"),
        ("keep", None, "computer"),
    ],
)
def test_expiry_by_each_rule(
    rule: str, heard: str | None, said: str, stage: Stage, opencode: OpenCode, project: Path, model: ScriptedModel
) -> None:
    """Scene 10: the final call rings, and then the timer decides by its rule, and a new message says so."""
    stage.connect(opencode)
    stage.start(questions={"ttl": "4s", "on_expiry": rule})
    session = opencode.session(project)
    opencode.prompt(session, [asking(RECOMMENDED)])
    asked = stage.phone.message_with("Which database", timeout_s=PATIENCE_S)
    call = ring(stage, "⏰", after=asked)
    assert call.reply_to == asked.message_id
    assert said in ring(stage, "⌛", after=call).text
    stage.wait_closed()
    stage.phone.wait(lambda: stage.phone.message(call.message_id).deleted, what="the final call taken away")
    assert not stage.phone.message(asked.message_id).rows
    if rule == "keep":
        assert opencode.wait_question(session)
        assert model.received(session) == ()
    elif heard:
        assert heard in opencode.final_text(session)
    else:
        opencode.wait_idle(session)
        assert model.turns(session) == 1, "a rejection ends the turn"


@NEWEST
def test_nothing_expires_that_was_not_answerable(stage: Stage, opencode: OpenCode, project: Path) -> None:
    """Scene 10: while Telegram is away, and while the listener is down, no time passes for an ask."""
    stage.connect(opencode)
    stage.start(questions={"ttl": "6s"})
    session = opencode.session(project)
    opencode.prompt(session, [asking(question())])
    asked = stage.asked("Which database")
    posted_s = stage.phone.state().now
    stage.phone.fault("*", "error", status=502, times=10_000)
    stage.phone.wait(lambda: stage.phone.state().now - posted_s > 9, 60, what="more than the time to answer")
    assert stage.entries()[0]["state"]["phase"] == "open"
    stage.phone.clear_faults()
    stage.kill()
    stage.start()
    stage.phone.tap(asked, "SQLite")
    assert '="SQLite"' in opencode.final_text(session)
    stage.wait_closed()
