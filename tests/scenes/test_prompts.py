"""A person sends prompts from the phone to a real OpenCode. Each scene says what the model received."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hermes.sandbox.model_server import script
from tests.harness.processes import until
from tests.scenes.stage import NEWEST, PATIENCE_S, asking, question

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes.sandbox.phone_values import ShownMessage
    from tests.harness.opencode import OpenCode
    from tests.scenes.stage import Stage

BUSY = {"tool": "bash", "args": {"command": "sleep 60", "description": "waits"}}
WAITS = "Waits for the current turn"


@pytest.fixture
def prompted(stage: Stage, opencode: OpenCode) -> Stage:
    """A stage whose phone may send prompts, and that tells of each turn, however short."""
    stage.connect(opencode)
    stage.start(notices={"finished": "0s"}, prompts={"enabled": True})
    return stage


def received(opencode: OpenCode, session: str, directory: Path | None = None) -> list[str]:
    """The prompts of a session, in its own record: what a person wrote, and what Hermes made of it."""
    messages = opencode.messages(session, directory)
    return [_text(one) for one in messages if one["info"]["role"] == "user"]


def _text(message: dict[str, Any]) -> str:
    parts = message["parts"]
    said = [part.get("text", part.get("prompt", "")) for part in parts if not part.get("synthetic")]
    return "".join(said)


def answered(opencode: OpenCode, session: str) -> list[str]:
    """The texts of the model in a session."""
    messages = [one for one in opencode.messages(session) if one["info"]["role"] == "assistant"]
    return [part["text"] for one in messages for part in one["parts"] if part["type"] == "text"]


def say(text: str) -> str:
    """A prompt that lets the model say this."""
    return script([{"text": text}])


def a_notice(stage: Stage, opencode: OpenCode, session: str, title: str) -> ShownMessage:
    """Let a turn end at the desk; its notice."""
    opencode.prompt(session, [{"text": "Both tests pass now."}])
    return stage.ended(f"✅ {title} is done")


def came(opencode: OpenCode, session: str, *texts: str) -> None:
    """Wait until the record ends with exactly these prompts, each there once."""

    def there() -> bool:
        found = received(opencode, session)
        assert found[-len(texts) :] == list(texts), found
        assert all(found.count(text) == 1 for text in texts), found
        return True

    until(there, PATIENCE_S, "the prompts in the record")


@pytest.mark.story
def test_replies_to_a_notice_and_to_a_line_are_prompts(prompted: Stage, opencode: OpenCode, project: Path) -> None:
    """The model gets exactly the texts, once each; the end of each turn is a notice again."""
    session = opencode.session(project, "Fix login flow")
    notice = a_notice(prompted, opencode, session, "Fix login flow")
    prompted.phone.write(say("Renamed it."), reply_to=notice)
    line = prompted.ended("✅ Done")
    assert f"{project.name} · Fix login flow · OpenCode on " in line.text
    prompted.ended("Renamed it.")
    prompted.phone.write(say("Tested it."), reply_to=line)
    prompted.ended("Tested it.")
    came(opencode, session, say("Renamed it."), say("Tested it."))
    assert answered(opencode, session) == ["Both tests pass now.", "Renamed it.", "Tested it."]


def test_a_card_takes_a_prompt_and_new_begins_a_session(prompted: Stage, opencode: OpenCode, project: Path) -> None:
    """Cancel typing ends it; a new session gets its first prompt and no other."""
    session = opencode.session(project, "Fix login flow")
    a_notice(prompted, opencode, session, "Fix login flow")
    prompted.phone.write("/sessions")
    prompted.phone.tap(prompted.asked("Your sessions"), "Fix login flow")
    card = prompted.asked("waits for you")
    assert "Both tests pass now." in card.text
    prompted.phone.tap(card, "✏️ Write a prompt")
    prompted.asked("Type your prompt for Fix login flow")
    prompted.phone.write(say("By the card."))
    prompted.ended("By the card.")
    came(opencode, session, say("By the card."))
    prompted.phone.write("/new")
    prompted.phone.tap(prompted.asked("Where should the new session begin?"), project.name)
    prompted.asked("Type your prompt for a new session")
    prompted.phone.write(say("In a new one."))
    prompted.ended("In a new one.")
    found = opencode.request("GET", "/session", project).json()
    fresh = [one["id"] for one in found if one["id"] != session and one["directory"] == str(project)]
    assert len(fresh) == 1
    came_there = received(opencode, fresh[0], project)
    assert came_there == [say("In a new one.")]


def test_notes_tasks_and_mentions(prompted: Stage, opencode: OpenCode, project: Path) -> None:
    """A note has no answer; a task goes to a subagent; a name in a text is a wish for one."""
    session = opencode.session(project, "Fix login flow")
    notice = a_notice(prompted, opencode, session, "Fix login flow")
    prompted.phone.write("/note Mind the tests", reply_to=notice)
    prompted.ended("✅ Noted.")
    came(opencode, session, "Mind the tests")
    prompted.phone.write("/task @nobody Look around", reply_to=notice)
    prompted.asked("❌ Not sent: there is no agent “nobody”")
    prompted.phone.write(f"/task @general {say('Looked around.')}", reply_to=notice)
    prompted.ended("✅ Done")
    children = opencode.children(session)
    assert len(children) == 1
    assert received(opencode, children[0]["id"], project)[0] == say("Looked around.")
    prompted.phone.write(f"Ask @general about it. {say('Asked.')}", reply_to=notice)
    prompted.ended("Asked.")
    last = [one for one in opencode.messages(session) if one["info"]["role"] == "user"][-1]
    assert [part["name"] for part in last["parts"] if part["type"] == "agent"] == ["general"]


def test_commands_of_the_project(prompted: Stage, opencode: OpenCode, own_project: Path) -> None:
    """Filled in by OpenCode's rules; one that runs a shell is refused, and so are arguments that would."""
    folder = own_project / ".opencode" / "command"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "greet.md").write_text(f"---\ndescription: greets\n---\nSCRIPT {json.dumps([{'text': 'Hi.'}])} $1 and $2")
    (folder / "build.md").write_text("---\ndescription: builds\n---\nNow !`touch pwned` build")
    session = opencode.session(own_project, "Fix login flow")
    notice = a_notice(prompted, opencode, session, "Fix login flow")
    before = len(received(opencode, session))
    prompted.phone.write("/run build", reply_to=notice)
    prompted.asked("“build” runs a shell")
    prompted.phone.write("/run greet `touch pwned`", reply_to=notice)
    prompted.ended("must not contain a backtick")
    assert len(received(opencode, session)) == before
    prompted.phone.write("/run greet Ada Bob Cleo", reply_to=notice)
    prompted.ended("Hi.")
    came(opencode, session, f"SCRIPT {json.dumps([{'text': 'Hi.'}])} Ada and Bob Cleo")
    assert not (own_project / "pwned").exists()


def test_what_is_queued_can_be_edited_withdrawn_or_sent_now(prompted: Stage, opencode: OpenCode, project: Path) -> None:
    """While the agent waits for an answer at the desk; the rest goes when that turn is over, and its end is told."""
    session = opencode.session(project, "Fix login flow")
    notice = a_notice(prompted, opencode, session, "Fix login flow")
    opencode.prompt(session, [asking(question()), {"text": "Asked."}])
    asked = prompted.asked("Which database")
    edited = prompted.phone.write(say("First."), reply_to=notice)[-1]
    line = prompted.asked(WAITS)
    prompted.phone.rewrite(edited, say("Edited."))
    prompted.turned(line, "· edited")
    withdrawn = prompted.phone.write(say("Withdrawn."), reply_to=notice)[-1]
    second = prompted.line_of(withdrawn)
    prompted.phone.tap(second, "✖️ Cancel")
    prompted.turned(second, "✖️ Cancelled")
    before = received(opencode, session)
    assert say("Edited.") not in before
    prompted.stop()
    prompted.start(notices={"finished": "0s"}, prompts={"enabled": True}, questions={"post_after": "1h"})
    prompted.phone.tap(asked, "SQLite")
    prompted.ended("Asked.")
    prompted.ended("Edited.")
    came(opencode, session, say("Edited."))
    assert say("First.") not in received(opencode, session)
    assert say("Withdrawn.") not in received(opencode, session)


def test_send_now_steers_and_stop_ends_the_turn(prompted: Stage, opencode: OpenCode, project: Path) -> None:
    """The turn that runs reads it at its next step; Stop takes two taps."""
    session = opencode.session(project, "Fix login flow")
    notice = a_notice(prompted, opencode, session, "Fix login flow")
    prompted.phone.write(script([BUSY, {"text": "Slept."}]), reply_to=notice)
    working = prompted.asked("bash")
    prompted.phone.write(say("Steered."), reply_to=working)
    waiting = prompted.asked(WAITS)
    prompted.phone.tap(waiting, "▶️ Send now")
    came(opencode, session, say("Steered."))
    prompted.phone.tap(working, "⏹ Stop")
    prompted.turned(working, "Stop the agent?", button="Back")
    prompted.phone.tap(working, "Back")
    prompted.turned(working, "▶️ Working", button="⏹ Stop")
    prompted.phone.tap(working, "⏹ Stop")
    prompted.turned(working, button="Yes, stop")
    prompted.phone.tap(working, "Yes, stop")
    prompted.turned(working, "⏹ Stopped")
    until(lambda: session not in opencode.request("GET", "/session/status", project).json(), PATIENCE_S, "the end")
    assert received(opencode, session).count(say("Steered.")) == 1


def test_stop_by_the_list(prompted: Stage, opencode: OpenCode, project: Path) -> None:
    """What the desk began can be stopped from the phone, also if its card is far above."""
    session = opencode.session(project, "Fix login flow")
    a_notice(prompted, opencode, session, "Fix login flow")
    prompted.phone.write("/stop")
    prompted.ended("Nothing is running that I can stop")
    opencode.prompt(session, [BUSY, {"text": "Slept."}])
    until(lambda: opencode.tool_parts(session, "bash"), PATIENCE_S, "the tool")
    prompted.phone.write("/stop")
    prompted.phone.tap(prompted.asked("What should stop?"), "Fix login flow")
    card = prompted.asked("is working")
    prompted.phone.tap(prompted.turned(card, button="Yes, stop"), "Yes, stop")
    until(lambda: session not in opencode.request("GET", "/session/status", project).json(), PATIENCE_S, "the end")
    prompted.turned(card, "told to stop")


@NEWEST
def test_a_provider_that_refuses_is_told_and_can_be_tried_again(
    prompted: Stage, opencode: OpenCode, project: Path
) -> None:
    """With its words; "Send again" is a prompt of its own."""
    session = opencode.session(project, "Fix login flow")
    notice = a_notice(prompted, opencode, session, "Fix login flow")
    text = script([{"status": 401}])
    prompted.phone.write(text, reply_to=notice)
    failed = prompted.asked("❌ the script says so (401)")
    prompted.phone.tap(failed, "🔁 Send again")

    def twice() -> bool:
        assert received(opencode, session).count(text) == 2
        return True

    until(twice, PATIENCE_S, "a second prompt")


@NEWEST
def test_a_model_that_does_not_exist_is_told(prompted: Stage, opencode: OpenCode) -> None:
    """OpenCode writes no reason into its record, and tells it in an event alone."""
    lost = opencode.home.project("lost-model", model="nowhere/nothing")
    session = opencode.session(lost, "Lost")
    prompted.phone.write("/sessions")
    prompted.phone.tap(prompted.asked("Your sessions"), "Lost")
    prompted.phone.write(say("Never."), reply_to=prompted.asked("waits for you"))
    failed = prompted.asked("❌", timeout_s=90.0)
    assert "odel" in failed.text, failed.text
    assert failed.labels == (("🔁 Send again",),)
    assert not answered(opencode, session)
    opencode.discard(lost)


@NEWEST
@pytest.mark.parametrize(
    "phase", ["sending", *(pytest.param(phase, marks=pytest.mark.nightly) for phase in ("queued", "running"))]
)
def test_a_listener_that_is_killed_sends_each_prompt_once(
    prompted: Stage, opencode: OpenCode, project: Path, phase: str
) -> None:
    """Whatever it was at."""
    session = opencode.session(project, "Fix login flow")
    notice = a_notice(prompted, opencode, session, "Fix login flow")
    if phase == "queued":
        opencode.prompt(session, [{"text": "Slow.", "delay_s": 4}])
    text = script([asking(question()), {"text": "Renamed it."}])
    prompted.phone.write(text, reply_to=notice)
    # "sending" is over in a moment; the question keeps it from its end until the listener was killed.
    reached = ("sending", "admitted", "running") if phase == "sending" else (phase,)
    until(lambda: {*reached} & {*_phases(prompted)}, PATIENCE_S, f"a prompt that is {phase}", every_s=0.001)
    prompted.kill()
    prompted.start()
    prompted.phone.tap(prompted.asked("Which database"), "SQLite")
    prompted.ended("✅ Done")
    came(opencode, session, text)
    prompted.ended("Renamed it.")


def _phases(stage: Stage) -> list[str]:
    return [
        word
        for file in (stage.store / "prompts").glob("*.json")
        for word in ("queued", "sending", "admitted", "running", "finished")
        if f'"phase":"{word}"' in file.read_text().replace(": ", ":")
    ]


@pytest.mark.nightly
@NEWEST
def test_a_server_that_restarts_gets_what_was_queued(stage: Stage, private_opencode: Callable[..., OpenCode]) -> None:
    """The turn before it has died with the server; the prompt goes out once."""
    opencode = private_opencode()
    stage.connect(opencode)
    stage.start(notices={"finished": "0s"}, prompts={"enabled": True})
    session = opencode.session(opencode.directory, "Fix login flow")
    notice = a_notice(stage, opencode, session, "Fix login flow")
    opencode.prompt(session, [BUSY, {"text": "Slept."}])
    until(lambda: opencode.tool_parts(session, "bash"), PATIENCE_S, "the tool")
    stage.phone.write(say("Renamed it."), reply_to=notice)
    stage.asked(WAITS)
    opencode.kill()
    stage.asked("can't be reached")
    opencode.start()
    stage.ended("Renamed it.")
    came(opencode, session, say("Renamed it."))


def test_a_file_of_the_project_is_fetched(prompted: Stage, opencode: OpenCode, project: Path) -> None:
    """The one that the turn wrote, as a reply to its end; one that git ignores stays."""
    (project / ".gitignore").write_text("*.log\n")
    session = opencode.session(project, "Write a report")
    reports = [
        {"tool": "write", "args": {"filePath": str(project / name), "content": "done"}} for name in ("r.md", "r.log")
    ]
    opencode.prompt(session, [*reports, {"text": "Written."}])
    shown = prompted.ended("✅ Write a report is done")
    prompted.phone.write("/get r.md", reply_to=shown)
    (call,) = until(lambda: prompted.phone.calls("sendDocument"), PATIENCE_S, "a document")
    assert call.params["document"] == "r.md (4 bytes)"
    prompted.phone.write("/get r.log", reply_to=shown)
    prompted.ended("r.log is ignored by git")
    assert len(prompted.phone.calls("sendDocument")) == 1
    assert len(received(opencode, session)) == 1


@pytest.mark.story
def test_a_file_that_the_permissions_exclude_stays(prompted: Stage, opencode: OpenCode) -> None:
    """Also if a link leads to it; another one is sent."""
    project = opencode.home.project("excluded", permission={"read": {"*": "allow", "secret/**": "deny"}})
    (project / "secret").mkdir()
    (project / "secret" / "plan.md").write_text("plan")
    (project / "plain.md").symlink_to("secret/plan.md")
    (project / "README.md").write_text("read")
    shown = a_notice(prompted, opencode, opencode.session(project, "Write a plan"), "Write a plan")
    for path in ("secret/plan.md", "plain.md"):
        prompted.phone.write(f"/get {path}", reply_to=shown)
        prompted.ended(f"{path} is excluded by the permissions of OpenCode")
    prompted.phone.write("/get README.md", reply_to=shown)
    (call,) = until(lambda: prompted.phone.calls("sendDocument"), PATIENCE_S, "a document")
    assert call.params["document"] == "README.md (4 bytes)"
    opencode.discard(project)


@pytest.mark.nightly
@NEWEST
def test_a_prompt_goes_to_the_server_that_works_on_its_session(
    stage: Stage, private_opencode: Callable[..., OpenCode]
) -> None:
    """Two servers share their sessions; the notice is of the one that does not work on it any more."""
    first = private_opencode()
    second = private_opencode(directory=first.directory)
    for name, server in (("first", first), ("second", second)):
        stage.connect(server, name=name)
    stage.start(notices={"finished": "0s"}, prompts={"enabled": True})
    session = first.session(title="Fix login flow")
    notice = a_notice(stage, first, session, "Fix login flow")
    second.prompt(session, [asking(question()), {"text": "Thanks."}])
    asked = stage.noted(stage.asked("Which database"))
    (written,) = stage.phone.write(say("By a reply."), reply_to=notice)
    stage.line_of(written, WAITS)
    stage.phone.tap(asked, "SQLite")
    stage.ended("By a reply.")
    assert answered(first, session) == ["Both tests pass now.", "Thanks.", "By a reply."]
