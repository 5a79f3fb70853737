"""The desk is followed: what is answered, dismissed, aborted or lost there closes on the phone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scenes.stage import asking, question

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes.sandbox.model_server import ScriptedModel
    from tests.harness.opencode import OpenCode
    from tests.scenes.stage import Stage


@pytest.mark.story
def test_answered_on_the_computer(connected: Stage, opencode: OpenCode, project: Path) -> None:
    """Scene 9: the desk answers; the buttons go and the phone shows the desk's answer; a late tap is told."""
    session = opencode.session(project)
    opencode.prompt(session, [asking(question())])
    asked = connected.asked("Which database")
    request = opencode.wait_question(session)
    opencode.reply(request["id"], [["PostgreSQL"]], project)
    ended = connected.ended("Answered on the computer: PostgreSQL")
    assert ended.message_id == asked.message_id
    connected.wait_closed()
    late = connected.phone.tap(asked.message_id, data=asked.button("SQLite").data, chat=asked.chat_id)
    assert "Already answered on the computer" in connected.phone.toast_for(late).text
    assert '="PostgreSQL"' in opencode.final_text(session)


def test_dismissed_on_the_computer(connected: Stage, opencode: OpenCode, project: Path) -> None:
    """Scene 9: the desk dismisses; the phone says so."""
    session = opencode.session(project)
    opencode.prompt(session, [asking(question())])
    connected.asked("Which database")
    opencode.reject(opencode.wait_question(session)["id"], project)
    connected.ended("Dismissed on the computer")
    connected.wait_closed()


@pytest.mark.parametrize("how", ["aborted", "deleted", "aborted and prompted again"])
def test_a_session_that_gave_up_is_closed_within_seconds(
    how: str, connected: Stage, opencode: OpenCode, project: Path
) -> None:
    """Scene 17: OpenCode keeps listing the question of a dead session; the phone does not."""
    session = opencode.session(project)
    opencode.prompt(session, [asking(question())])
    connected.asked("Which database")
    opencode.wait_question(session)
    if how == "deleted":
        opencode.delete_session(session)
    else:
        opencode.abort(session)
    if how == "aborted and prompted again":
        opencode.prompt(session, [asking(question("And now?", ("Yes", "No"), header="Again"))])
        again = connected.asked("And now?")
        connected.phone.tap(again, "Yes")
        connected.ended("✅ Yes")
    connected.ended("The agent no longer needs this")
    connected.wait_closed()


def test_a_dispose_closes_what_its_directory_asked(connected: Stage, opencode: OpenCode, own_project: Path) -> None:
    """No event tells of the question itself: the word of the dispose is enough."""
    session = opencode.session(own_project)
    opencode.prompt(session, [asking(question())])
    connected.asked("Which database")
    opencode.request("POST", "/instance/dispose", own_project)
    connected.ended("The agent no longer needs this")
    connected.wait_closed()


def test_a_zombie_found_at_the_start_is_not_posted(stage: Stage, opencode: OpenCode, project: Path) -> None:
    """Scene 17: the session was aborted while nobody listened; its question is still listed, and never shown."""
    session = opencode.session(project)
    opencode.prompt(session, [asking(question())])
    opencode.wait_question(session)
    opencode.abort(session)
    opencode.wait_idle(session)
    stage.connect(opencode)
    stage.start()
    stage.wait_closed()
    assert not [message for message in stage.phone.shown() if message.rows]


def test_a_restart_of_opencode_closes_its_questions(stage: Stage, private_opencode: Callable[..., OpenCode]) -> None:
    """Scene 14: OpenCode forgets its questions without an event; the list at reconnect tells."""
    opencode = private_opencode()
    stage.connect(opencode)
    stage.start()
    session = opencode.session()
    opencode.prompt(session, [asking(question())])
    stage.asked("Which database")
    opencode.restart()
    stage.ended("The agent no longer needs this")
    stage.wait_closed()


def test_eight_sessions_at_once_are_not_crossed(
    connected: Stage, opencode: OpenCode, project: Path, own_project: Path, model: ScriptedModel
) -> None:
    """Scene 15: eight sessions in two directories, answered in another order: each model gets its own."""
    sessions = [opencode.session(project if n % 2 else own_project, f"Session {n}") for n in range(8)]
    for n, session in enumerate(sessions):
        labels = (f"left {n}", f"right {n}")
        opencode.prompt(session, [asking(question(f"Question number {n}?", labels, header=f"Q{n}"))])
    shown = {n: connected.asked(f"Question number {n}?") for n in range(8)}
    for n in (5, 2, 7, 0, 3, 6, 1, 4):
        connected.phone.tap(shown[n], f"right {n}" if n % 3 else f"left {n}")
    for n, session in enumerate(sessions):
        wanted = f"right {n}" if n % 3 else f"left {n}"
        assert f'="{wanted}"' in opencode.final_text(session)
        assert len(model.received(session)) == 1
    connected.wait_closed()
