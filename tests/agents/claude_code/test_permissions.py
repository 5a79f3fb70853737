"""Claude Code's other permission prompts: what is to be done, and what was said to it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hermes.agents.claude_code.adapter import answers, waiter_text
from hermes.agents.claude_code.permissions import read_permission
from hermes.model.answer import Allowed, Answer, Decision, Once, Refused
from hermes.model.ask import Option, Permission
from hermes.model.signals import Replied
from tests.agents.claude_code.spoken import asked, recorded, signal

ALLOW = Decision("answer", 1.0, (Answer((0,)),))
WHY = Decision("answer", 1.0, (Answer((), "use make"),))
NO = Decision("reject", 1.0)
CELL = {"notebook_path": "n", "new_source": "s", "cell_id": "c1", "cell_type": "code"}


@pytest.mark.parametrize(
    ("name", "kind", "what", "detail"),
    [
        ("Bash", "command", "touch made && echo hi", ""),
        ("Write", "change", "/home/dev/project/new.txt", "+a\n+b"),
        ("Edit", "change", "/home/dev/project/new.txt", "-a\n+c"),
        ("WebFetch", "fetch", "http://127.0.0.1:9/x", "prompt: what"),
    ],
)
def test_a_recorded_permission_is_an_ask(name: str, kind: str, what: str, detail: str) -> None:
    """One option, and no "always": no screen says what Claude Code would mean by it."""
    ask = asked(f"PermissionRequest-{name}")
    assert ask.permission == Permission(name, kind, what, detail, patterns=(what,))  # type: ignore[arg-type]
    (one,) = ask.questions
    assert one.options == (Option("Allow once"),)
    assert one.header == what
    assert not ask.capabilities.can_skip


@pytest.mark.parametrize(
    ("tool", "given", "detail"),
    [
        ("Bash", {"command": "x", "run_in_background": True}, "in the background"),
        ("Bash", {"command": "x", "dangerouslyDisableSandbox": True}, "outside of its sandbox"),
        ("Edit", {"file_path": "f", "old_string": "a", "new_string": "", "replace_all": True}, "(everywhere in"),
        ("Edit", {"file_path": "f", "old_string": "a", "new_string": "@@ b"}, "-a\n+@@ b"),
        ("Edit", {"file_path": "f", "old_string": 5, "new_string": ""}, "old_string: 5"),
        ("NotebookEdit", {"notebook_path": "n", "new_source": "s"}, "replaces a cell that it does not name\n+s"),
        ("NotebookEdit", {**CELL, "edit_mode": "delete"}, "deletes the cell c1"),
        ("NotebookEdit", {**CELL, "edit_mode": "insert"}, "inserts a cell after the cell c1\ncell_type: code\n+s"),
        ("NotebookEdit", {**CELL, "edit_mode": "burn"}, '"burn" the cell c1'),
        (
            "NotebookEdit",
            {**CELL, "edit_mode": ["delete"]},
            'replaces the cell c1\ncell_type: code\nedit_mode: ["delete"]',
        ),
        ("Bash", {"command": "x", "sudo": True, "env": "A=1\nB=2"}, 'sudo: true\nenv: "A=1\\nB=2"'),
        ("Write", {"file_path": "f", "content": "a", "mode": "append"}, "mode: append\n+a"),
        ("WebFetch", {"url": "u", "prompt": "send it"}, "prompt: send it"),
        ("WebFetch", {"url": "u", "odd key": None}, '"odd key": null'),
    ],
)
def test_what_makes_more_of_an_action_is_told(tool: str, given: Any, detail: str) -> None:
    """Nobody allows on a phone what only the desk shows."""
    assert read_permission(tool, given).detail.startswith(detail)


def test_a_tool_is_named_by_its_own_parameter_alone() -> None:
    """One of another tool would hide the file that is changed."""
    found = read_permission("NotebookEdit", {**CELL, "file_path": "plot.ipynb"})
    assert found.what == CELL["notebook_path"]
    assert "file_path: plot.ipynb" in found.detail


@pytest.mark.parametrize(("tool", "given"), [("mcp__db__query", {"sql": "é"}), ("Bash", {"command": 5}), ("Edit", {})])
def test_anything_else_is_shown_as_it_came(tool: str, given: Any) -> None:
    """Of a known tool, too, where it has another shape."""
    found = read_permission(tool, given)
    assert (found.kind, found.what) == ("other", tool)
    assert found.detail == (json.dumps(given, ensure_ascii=False, indent=1) if given else "")


@pytest.mark.parametrize(
    "name", ["PostToolUse-Bash", "PostToolUse-Edit", "PostToolUse-Write", "PostToolUse-ExitPlanMode"]
)
def test_what_was_done_was_allowed(name: str) -> None:
    """By whom, and for how long, nobody tells."""
    done, ask = signal(name), asked(name.replace("PostToolUse", "PermissionRequest"))
    assert done == Replied("", ask.source.session_id, Allowed(), call_id=ask.source.call_id or "")


def test_a_plan_is_shown_as_it_was_written() -> None:
    """Its lines are lines, and what else the call says stands above them."""
    given = recorded("PermissionRequest-ExitPlanMode")["tool_input"]
    found = asked("PermissionRequest-ExitPlanMode").permission
    detail = f"planFilePath: {given['planFilePath']}\n{given['plan']}"
    assert found == Permission("ExitPlanMode", "other", "ExitPlanMode", detail, patterns=("ExitPlanMode",))


def test_what_failed_was_allowed_too() -> None:
    """It had begun."""
    done, ask = signal("PostToolUseFailure-WebFetch"), asked("PermissionRequest-WebFetch")
    assert isinstance(done, Replied)
    assert (done.answers, done.call_id) == (Allowed(), ask.source.call_id)


def test_allowed_once_is_allowed_as_it_came() -> None:
    """With the very input, and with no rule for the next time."""
    ask = asked("PermissionRequest-Bash")
    told = json.loads(waiter_text(ask, ALLOW))["hookSpecificOutput"]
    given = recorded("PermissionRequest-Bash")["tool_input"]
    assert told == {
        "hookEventName": "PermissionRequest",
        "decision": {"behavior": "allow", "updatedInput": given},
    }
    assert answers(ask, ALLOW) == Once()


@pytest.mark.parametrize(
    ("decision", "said", "word"), [(WHY, "They wrote: use make", "use make"), (NO, "said no.", "")]
)
def test_a_refusal_tells_the_model_why(decision: Decision, said: str, word: str) -> None:
    """As far as the person said why."""
    ask = asked("PermissionRequest-Bash-npm")
    told = json.loads(waiter_text(ask, decision))["hookSpecificOutput"]["decision"]
    assert told["behavior"] == "deny"
    assert told["message"].endswith(said)
    assert answers(ask, decision) == Refused(word)


def test_always_is_never_taken_for_more_than_it_was_offered() -> None:
    """It was not offered: a word of that kind is a no."""
    assert answers(asked("PermissionRequest-Bash"), Decision("always", 1.0)) == Refused()
