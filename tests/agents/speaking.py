"""How each agent asks, and what it takes for an answer: one value an agent, for the contract that all of them keep.

To add one: how its plugin hands questions over, how the line that its hook prints is understood, what it tells
afterwards, and what it tells where its own desk was first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

Json = dict[str, Any]
Answers = list[list[str]]

SINGLE: Json = {
    "question": "Which database?",
    "header": "Database",
    "options": [{"label": "SQLite", "description": "one file"}, {"label": "Postgres", "description": ""}],
    "multiple": False,
}
SEVERAL: Json = {
    "question": "Which features?",
    "header": "Features",
    "options": [{"label": "Auth", "description": ""}, {"label": "Cache", "description": ""}],
    "multiple": True,
}


@dataclass(frozen=True)
class Speaking:
    """An agent's ways.

    `ask(questions)` is its payload; `took(payload, line)` what of a printed line it answers with (None: it was told
    no). `tells(payload, answers)` are the payloads by which it tells what took effect afterwards (None is a no); where
    `second_line` is true a desk that was first is told to the waiting hook itself, else by these payloads, too.
    """

    name: str
    ask: Callable[[list[Json]], Json]
    took: Callable[[Json, str], Answers | None]
    tells: Callable[[Json, Answers | None], list[Json]] = lambda _, __: []
    second_line: bool = True
    options: tuple[str, ...] = ()


# --- a program of any kind ----------------------------------------------------------------------------------------


def _generic_took(_: Json, line: str) -> Answers | None:
    told = json.loads(line)
    return told["answers"] if told["kind"] == "answer" else [] if told["kind"] == "skip" else None


GENERIC = Speaking("generic", lambda questions: {"questions": questions, "agent": "A build"}, _generic_took)

# --- OpenCode -----------------------------------------------------------------------------------------------------


def _opencode_ask(questions: list[Json]) -> Json:
    tool = {"messageID": "msg_1", "callID": "call_1"}
    request = {"id": "que_1", "sessionID": "ses_1", "questions": questions, "tool": tool}
    return {"type": "question.asked", "properties": request, "directory": "/home/dev/project", "context": {}}


def _opencode_took(_: Json, line: str) -> Answers | None:
    told: Json = json.loads(line)
    return None if told["kind"] == "reject" else list(told["answers"])


def _opencode_tells(payload: Json, answers: Answers | None) -> list[Json]:
    told: Json = {"requestID": payload["properties"]["id"], "sessionID": payload["properties"]["sessionID"]}
    kind = "question.rejected" if answers is None else "question.replied"
    return [payload | {"type": kind, "properties": told if answers is None else told | {"answers": answers}}]


OPENCODE = Speaking(
    "opencode", _opencode_ask, _opencode_took, _opencode_tells, second_line=False, options=("--wait", "--stay")
)

# --- Claude Code --------------------------------------------------------------------------------------------------


def _claude_ask(questions: list[Json]) -> Json:
    told = {"session_id": "s1", "prompt_id": "p1", "cwd": "/home/dev/project", "hook_event_name": "PermissionRequest"}
    asked = [{"multiSelect" if key == "multiple" else key: value for key, value in one.items()} for one in questions]
    return told | {"tool_name": "AskUserQuestion", "tool_input": {"questions": asked}}


def _claude_took(payload: Json, line: str) -> Answers | None:
    decision: Json = json.loads(line)["hookSpecificOutput"]["decision"]
    if decision["behavior"] == "deny":
        return None
    given = decision["updatedInput"]
    assert given["questions"] == payload["tool_input"]["questions"]
    texts = [one["question"] for one in given["questions"]]
    notes = {text: [told["notes"]] for text, told in given.get("annotations", {}).items()}
    picked = {text: told.split(", ") for text, told in given["answers"].items()}
    return [picked.get(text, []) + notes.get(text, []) for text in texts]


def _claude_tells(payload: Json, answers: Answers | None) -> list[Json]:
    if answers is None:
        return []  # it tells nobody of a no
    texts = [one["question"] for one in payload["tool_input"]["questions"]]
    told = dict(zip(texts, (", ".join(one) for one in answers), strict=True))
    return [payload | {"hook_event_name": "PostToolUse", "tool_input": payload["tool_input"] | {"answers": told}}]


CLAUDE_CODE = Speaking("claude-code", _claude_ask, _claude_took, _claude_tells, second_line=False)

# --- agents whose terminal our plugin races -----------------------------------------------------------------------


def _raced(multiple: str, questions: list[Json]) -> Json:
    """What both plugins hand over; `multiple` is what the agent calls that."""
    asked = [
        {"id": f"q{place}"} | {multiple if key == "multiple" else key: value for key, value in one.items()}
        for place, one in enumerate(questions)
    ]
    return {"questions": asked, "session": "s1", "directory": "/home/dev/project"}


def _oh_my_pi_took(payload: Json, line: str) -> Answers | None:
    told: Json = json.loads(line)
    if told["kind"] == "cancel":
        return None
    assert [one["id"] for one in told["results"]] == [one["id"] for one in payload["questions"]]
    words = [[one[key] for key in ("customInput", "note") if key in one] for one in told["results"]]
    return [one["selectedOptions"] + more for one, more in zip(told["results"], words, strict=True)]


def _neovate_took(payload: Json, line: str) -> Answers | None:
    told: Json = json.loads(line)
    if not told["approved"]:
        return None
    given = {one["question"]: one["answer"].split(", ") for one in told["params"]["answers"]}
    return [given.get(one["question"], []) for one in payload["questions"]]


OH_MY_PI = Speaking("oh-my-pi", partial(_raced, "multi"), _oh_my_pi_took)
NEOVATE = Speaking("neovate", partial(_raced, "multiSelect"), _neovate_took)

SPEAKING: Mapping[str, Speaking] = {one.name: one for one in (GENERIC, OPENCODE, CLAUDE_CODE, OH_MY_PI, NEOVATE)}
