"""Nothing is lost: the listener down or killed, OpenCode frozen or cut off."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from tests.harness.processes import CuttableProxy
from tests.scenes.stage import NEWEST, asking, question

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes.sandbox.model_server import ScriptedModel
    from tests.harness.opencode import OpenCode
    from tests.scenes.stage import Stage

LONG = "A long answer. " * 200


def test_asked_while_nobody_listened(stage: Stage, opencode: OpenCode, project: Path, own_project: Path) -> None:
    """Scene 11: what was asked before the start is posted at the start, in a second directory too."""
    here, there = opencode.session(project), opencode.session(own_project)
    opencode.prompt(here, [asking(question("Here?", ("yes", "no"), header="Here"))])
    opencode.prompt(there, [asking(question("There?", ("yes", "no"), header="There"))])
    opencode.wait_question(here)
    opencode.wait_question(there)
    stage.connect(opencode)
    stage.start()
    stage.phone.tap(stage.asked("Here?"), "yes")
    stage.phone.tap(stage.asked("There?"), "no")
    assert '"Here?"="yes"' in opencode.final_text(here)
    assert '"There?"="no"' in opencode.final_text(there)
    stage.wait_closed()


def test_killed_before_the_question_was_posted(connected: Stage, opencode: OpenCode, project: Path) -> None:
    """Scene 12, seen: the entry is on disk, its message is not known; both copies of it work."""
    connected.phone.fault("sendMessage", "hang", hang_s=60, processed=True)
    session = opencode.session(project)
    opencode.prompt(session, [asking(question())])
    connected.wait_phase("open")
    first = connected.asked("Which database")
    connected.kill()
    connected.phone.clear_faults()
    connected.start()
    second = connected.phone.wait(
        lambda: next((m for m in connected.phone.shown() if m.rows and m.message_id != first.message_id), None),
        what="the question posted again",
    )
    connected.phone.tap(first, "Redis")
    assert '="Redis"' in opencode.final_text(session)
    assert connected.ended("✅ Redis").message_id == second.message_id
    connected.phone.wait(lambda: connected.phone.message(first.message_id).deleted, what="the older copy removed")
    connected.wait_closed()


def test_killed_while_open(connected: Stage, opencode: OpenCode, project: Path) -> None:
    """Scene 12, open: a tap made while nobody listened counts after the start."""
    session = opencode.session(project)
    opencode.prompt(session, [asking(question())])
    asked = connected.asked("Which database")
    connected.kill()
    connected.phone.tap(asked, "SQLite")
    connected.start()
    assert '="SQLite"' in opencode.final_text(session)
    connected.ended("✅ SQLite")
    connected.wait_closed()


@NEWEST
def test_killed_while_armed(connected: Stage, opencode: OpenCode, project: Path, model: ScriptedModel) -> None:
    """Scene 12, armed: the text after ✏️ still counts after the start."""
    session = opencode.session(project)
    opencode.prompt(session, [asking(question())])
    tap = connected.phone.tap(connected.asked("Which database"), "✏️ Other")
    connected.phone.toast_for(tap)
    connected.kill()
    connected.start()
    connected.phone.write("let's take\nDuckDB")
    assert '="let\'s take\nDuckDB"' in opencode.final_text(session)
    assert len(model.received(session)) == 1
    connected.ended("DuckDB")
    connected.wait_closed()


@NEWEST
def test_killed_while_joining(
    stage: Stage, opencode: OpenCode, project: Path, model: ScriptedModel, tmp_path: Path
) -> None:
    """Scene 12, joining: a long text of which a part was saved arrives once and whole."""
    slow = {"epoch_s": time.time(), "steady_s": time.monotonic(), "ahead_s": 0, "pace": 0.1}
    (tmp_path / "clock.json").write_text(json.dumps(slow))
    stage.test_clock = tmp_path / "clock.json"  # so that a part waits long for the next one
    stage.connect(opencode)
    stage.start()
    session = opencode.session(project)
    opencode.prompt(session, [asking(question())])
    asked = stage.asked("Which database")
    stage.phone.write(LONG, reply_to=asked)
    stage.phone.wait(lambda: any(entry["state"]["joining"] for entry in stage.entries()), what="a part that was saved")
    stage.kill()
    stage.test_clock = None
    stage.start()
    assert LONG.strip() in opencode.final_text(session)
    assert len(model.received(session)) == 1
    stage.wait_closed()


@pytest.mark.story
def test_killed_while_sending(stage: Stage, private_opencode: Callable[..., OpenCode], model: ScriptedModel) -> None:
    """Scene 12, sending: the answer is frozen on disk while OpenCode is; after both are back it arrives once."""
    opencode = private_opencode()
    stage.connect(opencode)
    stage.start()
    session = opencode.session()
    opencode.prompt(session, [asking(question())])
    asked = stage.asked("Which database")
    opencode.freeze()
    stage.phone.tap(asked, "Redis")
    stage.wait_phase("sending")
    stage.kill()
    opencode.thaw()
    stage.start()
    assert '="Redis"' in opencode.final_text(session)
    assert len(model.received(session)) == 1
    stage.ended("✅ Redis")
    stage.wait_closed()


@NEWEST
def test_killed_before_the_end_was_shown(connected: Stage, opencode: OpenCode, project: Path) -> None:
    """Scene 12, outcome: the answer took effect, the phone does not show it yet; after the start it does."""
    session = opencode.session(project)
    opencode.prompt(session, [asking(question())])
    asked = connected.asked("Which database")
    connected.phone.fault("editMessageText", "hang", hang_s=60, times=9)
    connected.phone.tap(asked, "Redis")
    connected.wait_phase("settled")
    connected.kill()
    connected.phone.clear_faults()
    connected.start()
    connected.ended("✅ Redis")
    assert '="Redis"' in opencode.final_text(session)
    connected.wait_closed()


@pytest.mark.nightly
def test_a_frozen_opencode_gets_the_answer_when_it_is_back(
    stage: Stage, private_opencode: Callable[..., OpenCode], model: ScriptedModel
) -> None:
    """Scene 13: saved, said so, and delivered after the time to answer has long passed."""
    opencode = private_opencode()
    stage.connect(opencode)
    stage.start(questions={"ttl": "6s"})
    session = opencode.session()
    opencode.prompt(session, [asking(question())])
    asked = stage.asked("Which database")
    opencode.freeze()
    stage.phone.tap(asked, "SQLite")
    stage.phone.message_with("be reached")
    stage.phone.wait(lambda: _passed(stage, 7.0), 60, what="more than the time to answer")
    opencode.thaw()
    assert '="SQLite"' in opencode.final_text(session)
    assert len(model.received(session)) == 1
    stage.phone.message_with("Delivered")
    stage.ended("✅ SQLite")
    stage.wait_closed()


def test_a_cut_connection_gets_the_answer_when_it_is_back(
    stage: Stage, private_opencode: Callable[..., OpenCode], model: ScriptedModel
) -> None:
    """Scene 13: the connection to OpenCode is cut when the answer is sent, and comes back."""
    opencode = private_opencode()
    with CuttableProxy(opencode.port) as proxy:
        stage.connect(opencode, url=proxy.url)
        stage.start(questions={"ttl": "6s"})
        session = opencode.session()
        opencode.prompt(session, [asking(question())])
        asked = stage.asked("Which database")
        proxy.cut()
        stage.phone.tap(asked, "SQLite")
        stage.phone.message_with("be reached")
        # Longer than the time to answer, whose end must not take the answer back.
        stage.phone.wait(lambda: _passed(stage, 7.0), 60, what="more than the time to answer")
        proxy.restore()
        assert '="SQLite"' in opencode.final_text(session)
        assert len(model.received(session)) == 1
        stage.phone.message_with("Delivered")
        stage.wait_closed()


def _passed(stage: Stage, wanted_s: float) -> bool:
    decided_s = next((entry["state"]["decision"]["at_s"] for entry in stage.entries()), 0.0)
    return bool(stage.phone.state().now - decided_s > wanted_s)


@NEWEST
def test_sigterm_stops_soon_with_everything_saved(connected: Stage, opencode: OpenCode, project: Path) -> None:
    """The listener leaves at once while an ask is open, and finds it again at the next start."""
    session = opencode.session(project)
    opencode.prompt(session, [asking(question())])
    connected.asked("Which database")
    assert connected.listener is not None
    connected.listener.sigterm(timeout_s=10)
    assert len(connected.entries()) == 1
    connected.start()
    connected.phone.tap(connected.asked("Which database"), "Redis")
    assert '="Redis"' in opencode.final_text(session)
    connected.wait_closed()
