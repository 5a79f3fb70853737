"""Permissions: what an agent may not do without a word, on both ways, with the real OpenCode of both versions."""

from __future__ import annotations

import tempfile
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from hermes.sandbox.model_server import script
from tests.harness.processes import until
from tests.scenes.stage import NEWEST, question

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from hermes.sandbox.phone_values import ShownMessage
    from tests.harness.home import Json
    from tests.harness.opencode import OpenCode
    from tests.scenes.stage import Stage

ASKS = {"bash": "ask", "edit": "ask", "webfetch": "ask", "external_directory": "ask"}
BY_SERVER = pytest.mark.parametrize("way", ["server", pytest.param("plugin", marks=pytest.mark.nightly)], indirect=True)
"""`make test` plays these by the server alone: with the real plugin, `agents/opencode/test_plugin.py` has the plugin's
side of them, and the phone's side is the same."""
RUN = "OpenCode wants to run:"
REFUSE = "✋ Refuse"
WHY = "✏️ Refuse with a reason"


@dataclass
class Guarded:
    """Hermes, and an OpenCode whose agent may do nothing by itself in this directory."""

    stage: Stage
    opencode: OpenCode
    directory: Path

    def session(self, *steps: Json) -> str:
        """Let the agent take these steps in a new session."""
        session = self.opencode.session(self.directory, "Release 2.0")
        self.opencode.prompt(session, steps)
        return session

    def taps_twice(self, message: ShownMessage, first: str, second: str, question: str) -> None:
        """Tap, and then the second thought that it leads to."""
        self.stage.phone.tap(message, first)
        self.stage.phone.tap(self.stage.turned(message, question, button=second), second)

    def allows(self, text: str) -> None:
        """Wait for the next one, look at it, and let it."""
        message = self.stage.asked(text)

        def allowed() -> bool:
            return self.stage.phone.toast_for(self.stage.phone.tap(message, "Allow once")).text == "Allow once"

        until(allowed, 20, f"{text!r} allowed", every_s=0.5)

    def outputs(self, session: str, tool: str = "bash") -> list[str]:
        """What came of the calls of a tool: the output, or the error."""
        parts = self.opencode.tool_parts(session, tool)
        return [str(part["state"].get("output") or part["state"].get("error", "")).strip() for part in parts]


def bash(command: str) -> Json:
    """One step of the scripted model: run this."""
    return {"tool": "bash", "args": {"command": command, "description": "a step"}}


@pytest.fixture(params=["server", "plugin"])
def way(request: pytest.FixtureRequest) -> str:
    """How the permission comes, and the word goes back."""
    name: str = request.param
    return name


@pytest.fixture
def start(
    way: str, stage: Stage, opencode: OpenCode, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Guarded]]:
    """Start Hermes with these sections of the configuration; it is told of a project of its own by `way`.

    `project` is laid over the configuration of that project.
    """
    opened: list[Path] = []

    def guarded(project: Json | None = None, **sections: Any) -> Guarded:
        config = {"permission": ASKS} | (project or {})
        if way == "server":
            directory = opencode.home.project(f"guarded-{uuid.uuid4().hex[:6]}", **config)
            opened.append(directory)
            stage.connect(opencode)
        else:
            directory = request.getfixturevalue("plugged")(stage.root, **config).directory
        stage.start(**sections)
        return Guarded(stage, opencode, directory)

    yield guarded
    for directory in opened:
        opencode.discard(directory)


def test_once(start: Callable[..., Guarded]) -> None:
    """It is shown whole, runs, and the next one is asked for again, in place of the one before."""
    guard = start()
    session = guard.session({**bash("echo one; echo 1"), "say": "I will count."}, bash("echo two"))
    asked = guard.stage.asked("echo one; echo 1")
    assert asked.text.startswith(RUN)
    assert "Release 2" in asked.text
    assert list(asked.labels) == [("Allow once", REFUSE), (WHY,), ("Always…",), ("📋 Copy",)]
    assert asked.marked("pre") == ("echo one; echo 1",)
    tap = guard.stage.phone.tap(asked, "Allow once")
    assert guard.stage.phone.toast_for(tap).text == "Allow once"
    again = guard.stage.asked("echo two")
    assert "✅ Allowed once: echo one; echo 1" in again.text
    guard.stage.gone(asked)
    guard.allows("echo two")
    guard.opencode.wait_idle(session)
    assert guard.outputs(session) == ["one\n1", "two"]
    guard.stage.ended("✅ Allowed once")
    guard.stage.over()


@BY_SERVER
def test_always(start: Callable[..., Guarded]) -> None:
    """A second tap, which names what it covers; the second command of its kind is not asked for."""
    guard = start()
    session = guard.session(bash("git status"), bash("git status --short"))
    asked = guard.stage.turned(guard.stage.asked("git status"), button="Always…")
    guard.taps_twice(asked, "Always…", "Yes, always", "git status *")
    assert "?? opencode.json" in guard.opencode.final_text(session)
    guard.stage.ended("✅ Always allowed")
    assert len(guard.opencode.tool_parts(session, "bash")) == 2
    guard.stage.over()


@BY_SERVER
def test_reject(start: Callable[..., Guarded]) -> None:
    """The turn ends, and the button said so."""
    guard = start()
    session = guard.session(bash("npm publish"))
    asked = guard.stage.asked("npm publish")
    assert (WHY,) in asked.labels, "always is not offered for what the configuration names"
    guard.taps_twice(asked, REFUSE, "Yes, refuse", "The agent ends its turn here")
    guard.opencode.wait_idle(session)
    guard.stage.ended("Refused")
    assert "rejected permission" in guard.outputs(session)[0]
    guard.stage.over()


@BY_SERVER
@NEWEST
def test_reject_beside_a_question_of_the_same_step(start: Callable[..., Guarded]) -> None:
    """The turn ends with that step, and its question can still be answered; the agent does not go on."""
    guard = start()
    asks = {"tool": "question", "args": {"questions": [question()]}}
    session = guard.session({"tools": [asks, bash("npm publish")]}, {"text": "I went on."})
    database, asked = guard.stage.asked("Which database"), guard.stage.asked("npm publish")
    guard.taps_twice(asked, REFUSE, "Yes, refuse", "The agent ends its turn here")
    guard.stage.ended("✋ Refused; its turn ends here ·")
    assert guard.opencode.busy(session), "it waits for the answer"
    guard.stage.phone.tap(database, "SQLite")
    assert guard.opencode.final_text(session) == ""
    guard.stage.ended("✅ SQLite")
    guard.stage.over()


@pytest.mark.story
@BY_SERVER
def test_reject_with_a_word(start: Callable[..., Guarded]) -> None:
    """The model receives it and goes on; a plain "yes" is never taken for one."""
    guard = start()
    session = guard.session(bash("npm install"))
    asked = guard.stage.asked("npm install")
    guard.stage.phone.write("yes", reply_to=asked)
    offer = guard.stage.phone.message_with("To allow it, tap its button")
    guard.stage.phone.tap(offer, "No")
    guard.stage.phone.tap(asked, WHY)
    guard.stage.phone.message_with("Write why not")
    guard.stage.phone.write("use pnpm,\nplease")
    assert "with the following feedback: use pnpm,\nplease" in guard.opencode.final_text(session)
    guard.stage.ended("✋ Refused: “use pnpm, please”")
    guard.stage.over()


@BY_SERVER
def test_an_edit_is_shown_as_a_diff(start: Callable[..., Guarded]) -> None:
    """With the file's name and the count of lines, folded."""
    guard = start()
    (guard.directory / "a.txt").write_text("one\ntwo\nthree\n")
    file = str(guard.directory / "a.txt")
    change = {"tool": "edit", "args": {"filePath": file, "oldString": "two", "newString": "TWO\nagain"}}
    session = guard.session({"tool": "read", "args": {"filePath": file}}, change)
    asked = guard.stage.asked("OpenCode wants to change this file:")
    assert asked.marked("pre")[0] == "a.txt"
    assert "+2 −1 lines" in asked.text
    assert any("+TWO\n+again" in folded for folded in asked.marked("expandable_blockquote"))
    guard.stage.phone.tap(asked, "Allow once")
    guard.opencode.wait_idle(session)
    assert (guard.directory / "a.txt").read_text() == "one\nTWO\nagain\nthree\n"
    guard.stage.over()


@BY_SERVER
def test_the_desk_is_first(start: Callable[..., Guarded]) -> None:
    """The buttons go, and the message says where it was allowed."""
    guard = start()
    session = guard.session(bash("echo desk"))
    guard.stage.asked("echo desk")
    (permission,) = guard.opencode.request("GET", "/permission", guard.directory).json()
    guard.opencode.request("POST", f"/permission/{permission['id']}/reply", guard.directory, {"reply": "once"})
    guard.stage.ended("🖥 Allowed on the computer")
    assert "desk" in guard.opencode.final_text(session)
    guard.stage.over()


@BY_SERVER
def test_one_rejection_ends_all_of_its_session(start: Callable[..., Guarded]) -> None:
    """Contract 4: of two at once the second one closes with the first, and is never asked for."""
    guard = start()
    session = guard.session({"tools": [bash("echo a"), bash("ls b")]})
    asked = guard.stage.asked(RUN)
    guard.taps_twice(asked, REFUSE, "Yes, refuse", "Refuse?")
    guard.opencode.wait_idle(session)
    guard.stage.over()
    assert all("rejected permission" in said for said in guard.outputs(session))
    shown = [message.text for message in guard.stage.phone.shown(chat=guard.stage.chat_id)]
    assert not any("on the computer" in text for text in shown), shown


@BY_SERVER
def test_a_reason_beside_another_permission_ends_the_turn(start: Callable[..., Guarded]) -> None:
    """The other one is refused without it; the phone says before that the turn may end."""
    guard = start()
    session = guard.session({"tools": [bash("echo a"), bash("ls b")]})
    guard.stage.phone.tap(guard.stage.asked(RUN), WHY)
    assert "its turn may end" in guard.stage.phone.message_with("Write why not").text
    guard.stage.phone.write("use c")
    guard.opencode.wait_idle(session)
    guard.stage.over()
    assert sum("with the following feedback: use c" in said for said in guard.outputs(session)) == 1
    messages = guard.opencode.request("GET", f"/session/{session}/message", guard.directory).json()
    assert [one["info"]["role"] for one in messages] == ["user", "assistant"], "the model was not called again"


@BY_SERVER
def test_a_refusal_in_a_subagent_lets_its_root_go_on(start: Callable[..., Guarded]) -> None:
    """Contract 7: it ends the turn of the subagent alone."""
    guard = start()
    child = script([bash("echo child")], f"child-{uuid.uuid4().hex[:6]}")
    task = {"tool": "task", "args": {"description": "look", "prompt": child, "subagent_type": "general"}}
    session = guard.session(task)
    guard.taps_twice(guard.stage.asked("echo child"), REFUSE, "Yes, refuse", "Refuse?")
    assert guard.opencode.final_text(session).startswith("FINAL: ")
    guard.stage.over()


@BY_SERVER
def test_a_subagents_permission_names_its_root(start: Callable[..., Guarded]) -> None:
    """Contract 7: it comes from the child session; allowed there, the child goes on."""
    guard = start()
    child = script([bash("echo child")], f"child-{uuid.uuid4().hex[:6]}")
    task = {"tool": "task", "args": {"description": "look", "prompt": child, "subagent_type": "general"}}
    session = guard.session(task)
    asked = guard.stage.asked("echo child")
    assert "Release 2" in asked.text
    assert "›" in asked.text
    guard.stage.phone.tap(asked, "Allow once")
    assert "child" in guard.opencode.final_text(session)
    guard.stage.over()


@NEWEST
@BY_SERVER
def test_nothing_is_allowed_by_time(start: Callable[..., Guarded]) -> None:
    """Expiry rejects, whatever becomes of questions."""
    guard = start(questions={"ttl": "4s", "on_expiry": "recommended"})
    session = guard.session(bash("echo late"))
    guard.stage.ended("echo late")
    guard.stage.ended("⌛")
    guard.opencode.wait_idle(session)
    assert "rejected permission" in guard.outputs(session)[0]
    guard.stage.over()


@NEWEST
@BY_SERVER
def test_a_lost_phone_is_locked(start: Callable[..., Guarded]) -> None:
    """No tap and no text counts until the machine says so; /open shows it again."""
    guard = start()
    session = guard.session(bash("echo locked"))
    asked = guard.stage.asked("echo locked")
    guard.stage.phone.write("/lock")
    guard.stage.phone.message_with("hermes unlock")
    assert "Locked" in guard.stage.phone.toast_for(guard.stage.phone.tap(asked, "Allow once")).text
    guard.stage.kill()
    guard.stage.start()
    assert "Locked" in guard.stage.phone.toast_for(guard.stage.phone.tap(asked, "Allow once")).text
    command = guard.stage.run("unlock", "--config", str(guard.stage.config))
    assert command.wait() == 0, command.output()
    guard.stage.phone.write("/open")
    guard.stage.gone(asked)
    again = guard.stage.asked("echo locked")
    guard.stage.phone.tap(again, "Allow once")
    assert "locked" in guard.opencode.final_text(session)
    guard.stage.over()


@NEWEST
@pytest.mark.parametrize(
    ("way", "moment"),
    [
        ("server", "sending"),
        ("plugin", "sending"),
        *(
            pytest.param(way, moment, marks=pytest.mark.nightly)
            for way in ("server", "plugin")
            for moment in ("open", "armed", "sure")
        ),
    ],
    indirect=["way"],
)
def test_a_killed_listener_loses_nothing(start: Callable[..., Guarded], moment: str) -> None:
    """Whatever state it was in, the next one goes on from there."""
    guard = start()
    session = guard.session(bash("echo survived"))
    asked = guard.stage.asked("echo survived")
    if moment == "armed":
        guard.stage.phone.tap(asked, WHY)
        guard.stage.phone.message_with("Write why not")
        until(lambda: guard.stage.wait_phase("open")["phone"]["sides"], 20, "the message beside it noted")
    if moment == "sure":
        guard.stage.phone.tap(asked, REFUSE)
        guard.stage.turned(asked, button="Back")
    if moment == "sending":
        guard.stage.phone.toast_for(guard.stage.phone.tap(asked, "Allow once"))
    guard.stage.kill()
    guard.stage.start()
    if moment == "open":
        guard.stage.phone.tap(asked, "Allow once")
    if moment == "armed":
        guard.stage.phone.write("not now")
        assert "feedback: not now" in guard.opencode.final_text(session)
    if moment == "sure":
        guard.stage.phone.tap(guard.stage.turned(asked, button="Back"), "Back")
        guard.stage.phone.tap(guard.stage.turned(asked, button="Allow once"), "Allow once")
    if moment != "armed":
        assert "survived" in guard.opencode.final_text(session)
    guard.stage.over()


@BY_SERVER
def test_a_page_that_new_does_not_list(start: Callable[..., Guarded]) -> None:
    """Contract 4: 1.18.33 answers 400 instead of its list meanwhile; the event still counts, and so does the answer."""
    guard = start()
    session = guard.session({"tool": "webfetch", "args": {"url": "http://127.0.0.1:9/x", "format": "text"}})
    asked = guard.stage.asked("OpenCode wants to fetch:")
    assert "127.0.0.1:9/x" in asked.text.replace("\u2060", "")
    guard.taps_twice(asked, REFUSE, "Yes, refuse", "Refuse?")
    guard.opencode.wait_idle(session)
    assert "rejected permission" in guard.outputs(session, "webfetch")[0]
    guard.stage.over()


@BY_SERVER
def test_two_permissions_of_one_call(start: Callable[..., Guarded]) -> None:
    """First the folder outside, then the command: one message that moves on."""
    guard = start()
    outside = f"{tempfile.gettempdir()}/nothing-{uuid.uuid4().hex[:6]}"
    session = guard.session(bash(f"rm -f {outside} && echo removed"))
    asked = guard.stage.asked("OpenCode wants to leave its project for:")
    assert f"rm -f {outside}" in asked.text
    guard.stage.phone.tap(asked, "Allow once")
    guard.allows(RUN)
    assert "removed" in guard.opencode.final_text(session)
    guard.stage.over()


@BY_SERVER
def test_a_zombie_is_closed(start: Callable[..., Guarded]) -> None:
    """Contract 2: its session was aborted; OpenCode lists it for ever, the phone does not."""
    guard = start()
    session = guard.session(bash("echo zombie"))
    guard.stage.asked("echo zombie")
    guard.opencode.abort(session)
    guard.stage.ended("The agent no longer needs this")
    guard.stage.over()


@BY_SERVER
@NEWEST
def test_what_the_configuration_keeps_from_the_phone(start: Callable[..., Guarded]) -> None:
    """Permissions are off; a question of the same agent comes all the same."""
    guard = start(permissions={"mode": "off"})
    session = guard.session({"tools": [bash("echo quiet"), {"tool": "question", "args": {"questions": [question()]}}]})
    asked = guard.stage.asked("Which database")
    (permission,) = until(
        lambda: guard.opencode.request("GET", "/permission", guard.directory).json(), 60, "the permission request"
    )
    guard.stage.phone.tap(asked, "SQLite")
    guard.stage.ended("✅ SQLite")
    assert not any(RUN in message.text for message in guard.stage.phone.messages(chat=guard.stage.chat_id))
    guard.opencode.request("POST", f"/permission/{permission['id']}/reply", guard.directory, {"reply": "once"})
    guard.opencode.wait_idle(session)
    guard.stage.over()


@BY_SERVER
def test_a_dispose_takes_the_buttons_away(start: Callable[..., Guarded]) -> None:
    """OpenCode forgets what one directory asked, and tells of the dispose alone."""
    guard = start()
    guard.session(bash("touch ran"))
    guard.stage.asked("touch ran")
    guard.opencode.request("POST", "/instance/dispose", guard.directory)
    guard.stage.ended("The agent no longer needs this")
    guard.stage.over()
    assert not (guard.directory / "ran").exists()
