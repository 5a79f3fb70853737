"""A hook that an agent's own plugin starts before the question exists: its call is found among the requests."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harness.processes import until
from tests.scenes.stage import asking, question
from tests.stores import a_store

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.sandbox.model_server import ScriptedModel
    from tests.harness.home import Home
    from tests.harness.opencode import OpenCode
    from tests.scenes.stage import Json, Stage

PLUGIN = """
import { spawn } from "node:child_process"
const [command, ...words] = @COMMAND@
export const TestHook = async ({ directory }) => ({
  "tool.execute.before": async ({ tool, sessionID, callID }, { args }) => {
    if (tool !== "question") return
    const properties = { tool, sessionID, callID, args }
    const child = spawn(command, words, { cwd: directory, stdio: ["pipe", "ignore", "ignore"] })
    await new Promise((done) => {
      child.on("close", done)
      child.stdin.end(JSON.stringify({ type: "tool.execute.before", properties, directory, context: {} }) + "\\n")
    })
  },
})
"""
SAME = question("Which one?", ("Left", "Right"), header="One")


@pytest.fixture
def desk(stage: Stage, home: Home, private_opencode: Callable[..., OpenCode]) -> OpenCode:
    """An OpenCode whose project starts the hook before each question, in its own folder; the listener knows it."""
    paths = {"--store": stage.store, "--log": stage.log, "--config": stage.config}
    options = [str(word) for pair in paths.items() for word in pair]
    command = [sys.executable, "-I", "-m", "hermes", "hook", "opencode", *options]
    plugin = home.root / "test-hook.js"
    plugin.write_text(PLUGIN.replace("@COMMAND@", json.dumps(command)))
    directory = home.project("hooked", plugin=[f"file://{plugin}"])
    opencode = private_opencode(directory=directory, environ={"PYTHONPATH": str(directory)})
    stage.connect(opencode)
    stage.unattended = True
    return opencode


def two_calls() -> Json:
    """One step of the model that asks the very same twice."""
    calls = ("call_first", "call_second")
    return {"tools": [{"tool": "question", "args": {"questions": [SAME]}, "call_id": call} for call in calls]}


def messages_by_call(stage: Stage) -> dict[str, int]:
    """Wait until both calls are open on the phone; their messages."""

    def both() -> dict[str, int]:
        entries = stage.entries()
        found = {one["ask"]["source"]["call_id"]: one["phone"]["message_id"] for one in entries}
        assert set(found) == {"call_first", "call_second"}, found
        assert all(found.values()), found
        return found

    return until(both, 60, "both calls on the phone")


def answered(opencode: OpenCode, session: str, call_id: str) -> list[list[str]]:
    """What this call got."""
    answers: list[list[str]] = opencode.tool_part(session, call_id)["state"]["metadata"]["answers"]
    return answers


@pytest.mark.story
@pytest.mark.parametrize("when", ["listening", pytest.param("started by the hook", marks=pytest.mark.nightly)])
def test_a_call_is_found_among_equal_questions_of_its_session(
    when: str, stage: Stage, desk: OpenCode, model: ScriptedModel
) -> None:
    """Scene 22: two parallel calls ask the same; each message belongs to its own call, and none is doubled."""
    if when == "listening":
        stage.start()
    else:
        stage.write_config()
    session = desk.session()
    desk.prompt(session, [two_calls()])
    desk.wait_questions(session, 2)
    found = messages_by_call(stage)
    stage.phone.tap(found["call_second"], "Right", chat=stage.chat_id)
    stage.ended("✅ Right")
    stage.phone.tap(found["call_first"], "Left", chat=stage.chat_id)
    stage.ended("✅ Left")
    desk.wait_idle(session)
    assert answered(desk, session, "call_first") == [["Left"]]
    assert answered(desk, session, "call_second") == [["Right"]]
    assert len(model.received(session)) == 2
    stage.over()
    assert len(stage.phone.shown()) == 2


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("args", "end"),
    [
        pytest.param(
            {"questions": [{"question": "No header?", "options": []}]},
            "its call never became a request",
            id="no header",
        ),
        pytest.param({"questions": "none"}, "put it into", id="no list"),
        pytest.param({}, "put it into", id="nothing"),
    ],
)
def test_a_call_that_never_becomes_a_question_is_not_posted(
    args: Json, end: str, stage: Stage, desk: OpenCode, model: ScriptedModel
) -> None:
    """Scene 22: the hook starts for invalid arguments too; the model is told, the phone is not."""
    stage.start(matching={"tries": 3, "delay": "100ms"})
    session = desk.session()
    desk.prompt(session, [{"tool": "question", "args": args}, asking(SAME)])
    stage.phone.tap(stage.asked("Which one?"), "Left")
    assert '"Which one?"="Left"' in desk.final_text(session)
    assert "invalid" in model.received(session)[0]
    stage.over()
    assert len(stage.phone.shown()) == 1
    assert end in stage.log.read_text(encoding="utf-8")


def test_a_hook_in_a_hostile_repository_executes_nothing_of_it(stage: Stage, desk: OpenCode) -> None:
    """Scene 28: started in a folder with `json.py` and `hermes.py`, like the listener that the hook starts."""
    marks = desk.home.root / "marks"
    marks.mkdir()
    for name in ("json", "hermes", "os", "sitecustomize", "usercustomize"):
        (desk.directory / f"{name}.py").write_text(f"open({str(marks / name)!r}, 'w').close()\n")
    stage.write_config()
    session = desk.session()
    desk.prompt(session, [asking(SAME)])
    stage.phone.tap(stage.asked("Which one?", 60), "Right")
    assert '"Which one?"="Right"' in desk.final_text(session)
    stage.over()
    holder = a_store(stage.store).home.listener()
    assert holder is not None
    assert Path(f"/proc/{holder.pid}/cwd").readlink() == Path("/")
    assert not list(marks.iterdir())
