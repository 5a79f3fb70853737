"""Our extension in Node: around a dialog whose result has a shape that it does not know, and at the end of turns."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from hermes.agents.oh_my_pi.install import PLUGIN
from tests.harness.listeners import running
from tests.harness.node import node
from tests.harness.processes import until

if TYPE_CHECKING:
    from pathlib import Path

Json = dict[str, Any]

QUESTION = {"id": "db", "question": "Which database?", "options": [{"label": "A"}, {"label": "B"}]}
# A hook that nobody answers on the phone: it keeps the question and the desk's word, and leaves.
HOOK = """#!/bin/sh
for _ in question word; do read -r line && printf '%s\\n' "$line" >> "$0.told"; done
"""
DESK = """
import extension from PLUGIN
const lives = setInterval(() => {}, 1000) // as the agent does: our extension keeps no process alive
const handlers = {}
const ui = { askDialog: async () => (RESULT), notify() {} }
const ctx = { ui, cwd: "/", sessionManager: { getSessionId: () => "s1", getSessionName: () => "" } }
extension({ on: (name, handler) => (handlers[name] = handler), getAllTools: () => [{ name: "ask" }] })
handlers.session_start({}, ctx)
console.log(JSON.stringify((await ui.askDialog([QUESTION])) ?? null))
clearInterval(lives)
"""


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ({"kind": "submit", "results": [{"id": "db", "selectedOptions": ["B"], "note": "n"}]}, [["B", "n"]]),
        ({"kind": "submit", "results": [{"id": "db", "choices": ["B"]}]}, [[]]),
        ({"kind": "submit", "results": [None]}, [[]]),
        ({"kind": "submit", "results": {"db": "B"}}, []),
        ({"kind": "submit", "selectedOptions": ["B"]}, []),
    ],
)
def test_what_was_said_at_the_desk_counts_in_whatever_shape(tmp_path: Path, result: Any, told: Any) -> None:
    """The agent gets it as it is; the phone hears that it was answered, and with what, as far as that is known."""
    assert json.loads(run(tmp_path, DESK, HOOK, RESULT=result, QUESTION=QUESTION)) == result
    lines = [json.loads(line) for line in (tmp_path / "hook.told").read_text().splitlines()]
    assert lines[1:] == [{"answers": told}]


def test_what_its_own_timer_took_is_told_as_that(tmp_path: Path) -> None:
    """Nobody answered at the desk."""
    result = {"kind": "submit", "results": [{"id": "db", "selectedOptions": ["B"], "timedOut": True}]}
    assert json.loads(run(tmp_path, DESK, HOOK, RESULT=result, QUESTION=QUESTION)) == result
    lines = [json.loads(line) for line in (tmp_path / "hook.told").read_text().splitlines()]
    assert lines[1:] == [{"answers": [["B"]], "timer": True}]


def run(folder: Path, script: str, hook: str | None, **values: Any) -> str:
    """Run this script with Node and return its output; `hook` stands where Python would run Hermes."""
    executable = folder / "hook"
    if hook is not None:
        executable.write_text(hook)
        executable.chmod(0o700)
    settings = {"python": str(executable), "store": "/s", "log": "/l", "config": "/c", "headless": False}
    plugin = folder / "plugin.mjs"
    plugin.write_text(PLUGIN.text(settings))
    for name, value in {"PLUGIN": str(plugin), **values}.items():
        script = script.replace(name, json.dumps(value))
    agent = folder / "agent.mjs"
    agent.write_text(script)
    ran = subprocess.run([node(), str(agent)], capture_output=True, text=True, timeout=60, check=False)
    assert ran.stderr == ""
    assert ran.returncode == 0
    return ran.stdout


# the end of a turn

# A hook that writes nothing before it may: by then the agent has ended.
SLOW_HOOK = """#!/bin/sh
read -r line
until [ -e "$0.go" ]; do sleep 0.05; done
printf '%s\\n' "$line" >> "$0.told"
"""
TURNS = """
import extension from PLUGIN
const handlers = {}
let folder = "/home/dev/shop"
const sessionManager = { getSessionId: () => "s1", getSessionName: () => "Fix", getCwd: () => folder }
const ctx = { ui: {}, cwd: folder, sessionManager, isIdle: () => idle }
let idle = true
extension({ on: (name, handler) => (handlers[name] = handler), getAllTools: () => [{ name: "ask" }] })
handlers.session_start({}, ctx)
for (const [at, name, event] of EVENTS) {
  Date.now = () => at
  folder = event.moved ?? folder
  idle = name !== "agent_start" && (idle || name === "agent_end")
  console.log(JSON.stringify((await handlers[name](event, ctx)) ?? null))
}
"""
BEGAN = "agent_start"


def said(text: str, role: str = "assistant") -> Json:
    """What `message_end` tells of a message."""
    return {"message": {"role": role, "content": [{"type": "text", "text": text}]}}


def stop(reason: str = "stop", **more: str) -> Json:
    """What `session_stop` tells."""
    return {"last_assistant_message": {"role": "assistant", "stopReason": reason, **more}}


TURN: tuple[tuple[int, str, Json], ...] = ((0, BEGAN, {}), (100, "session_stop", stop()), (200, "agent_end", {}))


def told(folder: Path, *events: tuple[int, str, Json]) -> list[Json]:
    """The news of these events, by their beginning; the agent ends before any hook does."""
    answers = run(folder, TURNS, SLOW_HOOK, EVENTS=events).splitlines()
    assert answers == ["null"] * len(events)  # anything else would change what the agent does
    (folder / "hook.go").touch()
    until(lambda: not running("hook", folder), 30, "the end of all hooks")
    news = [json.loads(line) for line in (folder / "hook.told").read_text().splitlines()]
    return sorted(news, key=lambda one: int(one["turn"]["began"]))


def test_a_turn_that_finished_is_told_once(tmp_path: Path) -> None:
    """With its times, its place and the agent's last words."""
    (news,) = told(
        tmp_path,
        (1000, BEGAN, {}),
        (1001, "message_end", said("Fix it.", "user")),
        (2000, "message_end", said("I look.")),
        (3000, "message_end", said("Both tests pass now.")),
        (3500, "session_stop", stop()),
        (4000, "agent_end", {}),
    )
    turn = {"id": "1000", "began": 1000, "ended": 4000, "words": "Both tests pass now.", "failure": ""}
    assert news == {"turn": turn, "directory": "/home/dev/shop", "session": "s1", "title": "Fix"}


def test_each_turn_is_told_with_a_beginning_of_its_own(tmp_path: Path) -> None:
    """The next one begins after it."""
    turns = [(at + more, name, event) for at in (1000, 5000) for more, name, event in TURN]
    assert [(one["turn"]["id"], one["turn"]["ended"]) for one in told(tmp_path, *turns)] == [
        ("1000", 1200),
        ("5000", 5200),
    ]


@pytest.mark.parametrize(
    ("message", "why"), [("Retry budget exhausted after 10 retries: 503", None), ("", "an error")], ids=["said", "not"]
)
def test_a_request_that_fails_is_told_when_it_is_given_up(tmp_path: Path, message: str, why: str | None) -> None:
    """Each try has an end; the turn began with the first one."""
    retry = {"willContinue": True}
    (news,) = told(
        tmp_path,
        (1000, BEGAN, {}),
        (1100, "agent_end", retry),
        (2000, BEGAN, {}),
        (2100, "agent_end", retry),
        (3000, BEGAN, {}),
        (3050, "auto_retry_end", {"success": False, "finalError": message}),
        (3100, "session_stop", stop("error", errorMessage=message)),
        (3200, "agent_end", {}),
    )
    assert news["turn"] == {"id": "1000", "began": 1000, "ended": 3200, "words": "", "failure": why or message}


def test_a_turn_that_another_extension_lets_go_on_is_told_at_its_end(tmp_path: Path) -> None:
    """It stopped twice."""
    (news,) = told(
        tmp_path,
        (1000, BEGAN, {}),
        (1100, "session_stop", stop()),
        (1200, "agent_end", {"willContinue": True}),
        (1300, BEGAN, {}),
        (1400, "session_stop", stop()),
        (1500, "agent_end", {}),
    )
    assert (news["turn"]["began"], news["turn"]["ended"]) == (1000, 1500)


def test_a_prompt_that_is_typed_while_a_job_runs_begins_another_turn(tmp_path: Path) -> None:
    """The one before goes on when its job is done; what is typed while the agent works belongs to its turn."""
    (news,) = told(
        tmp_path,
        (1000, BEGAN, {}),
        (1100, "agent_end", {"willContinue": True}),
        (5000, "input", {}),
        (5001, BEGAN, {}),
        (5050, "input", {}),
        (5100, "session_stop", stop()),
        (5200, "agent_end", {}),
    )
    assert news["turn"]["began"] == 5001


@pytest.mark.parametrize(
    "events",
    [
        [(1000, BEGAN, {}), (1100, "agent_end", {})],
        [(1000, BEGAN, {}), (1050, "session_stop", stop("aborted")), (1100, "agent_end", {})],
        [
            (1000, BEGAN, {}),
            (1030, "auto_retry_end", {"success": False, "finalError": "Retry cancelled"}),
            (1050, "session_stop", stop("error")),
            (1100, "agent_end", {}),
        ],
        [(1000, "session_stop", stop()), (1100, "agent_end", {})],
        [(1000, BEGAN, {}), (1050, "session_stop", stop()), (1060, "session_switch", {}), (1100, "agent_end", {})],
        [(1000, BEGAN, {}), (1050, "session_stop", stop()), (1060, "session_branch", {}), (1100, "agent_end", {})],
    ],
    ids=["a subagent, or Esc", "an abort", "Esc instead of a retry", "no beginning", "another session", "a branch"],
)
def test_what_is_no_turn_that_ended_by_itself_is_no_news(tmp_path: Path, events: list[Any]) -> None:
    """The turn after it is told."""
    (news,) = told(tmp_path, *events, *((5000 + more, name, event) for more, name, event in TURN))
    assert news["turn"]["id"] == "5000"


def test_a_session_that_was_moved_is_told_with_its_folder(tmp_path: Path) -> None:
    """No event tells of it, and what was given to the handlers before keeps the folder of then."""
    (news,) = told(tmp_path, *((1000 + more, name, event | {"moved": "/home/dev/web"}) for more, name, event in TURN))
    assert news["directory"] == "/home/dev/web"


def test_a_turn_that_is_interrupted_after_one_that_was_told_is_no_news(tmp_path: Path) -> None:
    """The stop of the one before is not its own."""
    turn = [(1000 + more, name, event) for more, name, event in TURN]
    (news,) = told(tmp_path, *turn, (5000, BEGAN, {}), (5100, "agent_end", {}))
    assert news["turn"]["id"] == "1000"


def test_an_agent_without_hermes_goes_on(tmp_path: Path) -> None:
    """Its Python is gone: nothing is thrown."""
    assert run(tmp_path, TURNS, None, EVENTS=TURN).splitlines() == ["null"] * 3
