"""A real OpenCode's turns end, and the phone hears of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.harness.processes import until
from tests.scenes.stage import NEWEST, asking, question

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes.sandbox.phone_values import ShownMessage
    from tests.harness.opencode import OpenCode
    from tests.scenes.stage import Stage


@pytest.fixture
def noticed(stage: Stage, opencode: OpenCode) -> Stage:
    """A stage that follows the shared server and tells of each turn, however short."""
    stage.connect(opencode)
    stage.start(notices={"finished": "0s"})
    return stage


def told(stage: Stage) -> list[ShownMessage]:
    """All notices on the phone."""
    return [one for one in stage.phone.shown() if " is done" in one.text or " stopped: " in one.text]


@pytest.mark.story
def test_a_turn_that_finished_is_told_once(noticed: Stage, opencode: OpenCode, project: Path) -> None:
    """With its title and the last words; a question in it is no notice of its own."""
    session = opencode.session(project, "Fix login flow")
    opencode.prompt(session, [asking(question()), {"text": "Both tests pass now."}])
    noticed.phone.tap(noticed.asked("Which database"), "SQLite")
    shown = noticed.ended("✅ Fix login flow is done")
    assert "Both tests pass now." in shown.text
    assert f"{project.name} · OpenCode on " in shown.text
    noticed.over()
    assert len(told(noticed)) == 1


@pytest.mark.story
def test_a_turn_that_failed_is_told_with_its_reason(noticed: Stage, opencode: OpenCode, project: Path) -> None:
    """The provider's words and the HTTP status."""
    session = opencode.session(project, "Fix login flow")
    opencode.prompt(session, [{"status": 400}])
    noticed.ended("❌ Fix login flow stopped: the script says so (400)")
    opencode.wait_idle(session)
    assert len(told(noticed)) == 1


def test_what_a_person_stopped_is_no_news(noticed: Stage, opencode: OpenCode, project: Path) -> None:
    """An interrupt at the desk, a question that was stopped on the phone, a subagent; the turn after them is told."""
    interrupted = opencode.session(project, "Interrupted")
    opencode.prompt(interrupted, [asking(question("Interrupted?"))])
    noticed.asked("Interrupted?")
    opencode.abort(interrupted)
    noticed.ended("The agent no longer needs this")
    stopped = opencode.session(project, "Stopped")
    opencode.prompt(stopped, [asking(question("Stopped?"))])
    asked = noticed.asked("Stopped?")
    noticed.phone.tap(asked, "⏹ Stop")
    noticed.phone.tap(noticed.turned(asked, button="Yes, stop"), "Yes, stop")
    noticed.ended("⏹ Stopped")
    opencode.prompt(opencode.session(project, "Another"), [{"text": "Done."}])
    noticed.ended("✅ Another is done")
    assert len(told(noticed)) == 1


def test_a_turn_that_ended_while_no_listener_ran_is_told_by_the_next(
    noticed: Stage, opencode: OpenCode, project: Path
) -> None:
    """And not once more by the one after that."""
    session = opencode.session(project, "Fix login flow")
    noticed.stop()
    opencode.prompt(session, [{"text": "Both tests pass now."}])
    opencode.wait_idle(session)
    noticed.start()
    noticed.ended("✅ Fix login flow is done")
    until(
        lambda: '"posted"' in "".join(file.read_text() for file in (noticed.store / "notices").glob("*.json")), 30, "it"
    )
    noticed.stop()
    noticed.start()
    opencode.prompt(opencode.session(project, "Another"), [{"text": "Done."}])
    noticed.ended("✅ Another is done")
    assert len(told(noticed)) == 2


def test_the_changes_of_a_turn_are_counted_and_shown(noticed: Stage, opencode: OpenCode, project: Path) -> None:
    """Of the turn, not of the session, by OpenCode's own snapshots. What may hold secrets is named, and not shown."""
    own = opencode.home.project(f"changed-{opencode.version}", snapshot=True, permission={"bash": "allow"})
    (own / "old.txt").write_text("a\nb\n")
    session = opencode.session(own, "Change files")
    # 1.1.53 notes how the files were while the first command may run already.
    changes = "sleep 1; printf '1\\n2\\n' > new.txt; printf 'a\\nc\\n' > old.txt; printf 'key=hush\\n' > .env"
    command = {"command": changes, "description": "change"}
    opencode.prompt(session, [{"tool": "bash", "args": command}, {"text": "Changed."}])
    shown = noticed.told("✅ Change files is done")
    assert " · 3 files, +4 −1\n" in shown.text
    assert shown.labels == (("Changes",),)
    noticed.phone.tap(shown, "Changes")
    diff = noticed.ended("Changes of Change files").text
    for lines in ("--- old.txt\n+++ old.txt\n@@ -1,2 +1,2 @@\n a\n-b\n+c", "+++ new.txt\n@@ -0,0 +1,2 @@\n+1\n+2"):
        assert lines in diff.replace("\u2060", "")
    assert ".env: changed; not shown" in diff.replace("\u2060", "")
    assert "hush" not in diff
    opencode.prompt(session, [{"text": "Nothing to change."}])
    last = noticed.ended("Nothing to change.")
    assert "file" not in last.text.splitlines()[0].removeprefix("✅ Change files")
    assert not last.rows
    opencode.discard(own)


def test_a_turn_that_cannot_reach_its_model_is_told_while_it_tries(
    noticed: Stage, opencode: OpenCode, project: Path
) -> None:
    """With the provider's words; and that it is over, once somebody ends the turn at the desk."""
    session = opencode.session(project, "Fix login flow")
    opencode.prompt(session, [{"status": 503}])
    noticed.ended("🔁 Fix login flow: the script says so · 5th try at ")
    opencode.abort(session)
    noticed.ended("🔁 Fix login flow: the script says so · 4 tries failed")
    opencode.wait_idle(session)
    assert told(noticed) == []


@pytest.mark.nightly
@NEWEST
@pytest.mark.parametrize("how", ["killed", "aborted while nobody listens"])
def test_a_turn_that_ends_while_it_tries_is_no_longer_said_to_try(
    stage: Stage, private_opencode: Callable[..., OpenCode], how: str
) -> None:
    """No event tells of its end; the next look at its session does."""
    opencode = private_opencode()
    stage.connect(opencode)
    stage.start(notices={"finished": "0s"}, prompts={"enabled": True})
    session = opencode.session(title="Fix login flow")
    opencode.prompt(session, [{"status": 503}])
    stage.asked("🔁 Fix login flow: the script says so · 5th try at ")
    if how == "killed":
        opencode.kill()
        opencode.start()
    else:
        stage.stop()
        opencode.abort(session)
        stage.start()
    stage.ended("🔁 Fix login flow: the script says so · 4 tries failed")
