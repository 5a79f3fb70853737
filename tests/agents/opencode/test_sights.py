"""What the messages of a session tell of one prompt, which id comes next, and what a command becomes. Pure."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, strategies as st

from hermes.agents.opencode import commands, turns
from hermes.agents.opencode.prompting import following
from hermes.agents.opencode.wire import Agent, Command, TurnMessage
from hermes.agents.wire import shaped
from hermes.errors import AgentRefused
from hermes.model.prompt import Sight

OURS, OTHER = "msg_000000000010ours", "msg_000000000020other"
ABORTED = {"name": "MessageAbortedError", "data": {"message": "Aborted"}}
RATE = {"name": "APIError", "data": {"message": "Slow down", "statusCode": 429}}


def user(message_id: str = OURS) -> TurnMessage:
    """Return a prompt."""
    info = {"id": message_id, "role": "user", "time": {"created": 1000}}
    return shaped(TurnMessage, {"info": info, "parts": [{"type": "text", "text": "x"}]})


def step(at_s: int, *tools: str, prompt: str = OURS, ended_s: int | None = None, **info: Any) -> TurnMessage:
    """Return a step of the model that answers a prompt; `tools` are "name:status"."""
    time = {"created": at_s * 1000} | ({} if ended_s is None else {"completed": ended_s * 1000})
    parts = [
        {"type": "tool", "tool": one, "state": {"status": status}} for one, status in (t.split(":") for t in tools)
    ]
    head = {"id": f"msg_{at_s}", "role": "assistant", "parentID": prompt, "time": time, **info}
    return shaped(TurnMessage, {"info": head, "parts": [{"type": "text", "text": "…"}, *parts]})


CALLS = {"finish": "tool-calls"}
SIGHTS = [
    pytest.param([user()], False, Sight("idle", "admitted"), id="no step yet"),
    pytest.param([user()], True, Sight("busy", "admitted"), id="no step yet, busy"),
    pytest.param([step(1, prompt=OTHER), user()], True, Sight("busy", "admitted"), id="only another's step"),
    pytest.param([user(), step(2)], True, Sight("busy", "running"), id="a step runs"),
    pytest.param([user(), step(2)], False, Sight("idle", "running"), id="a step runs, and nothing is busy"),
    pytest.param([step(2, "bash:running")], True, Sight("busy", "running", tool="bash"), id="the prompt is far back"),
    pytest.param(
        [user(), step(2, "read:completed", "bash:running", "question:running", "edit:pending")],
        True,
        Sight("busy", "running", tool="question"),
        id="the last tool that runs",
    ),
    pytest.param(
        [user(), step(2, "bash:completed", ended_s=3, **CALLS)], True, Sight("busy", "running"), id="between two steps"
    ),
    pytest.param(
        [user(), step(2, ended_s=3, **CALLS), step(4, "bash:running")],
        True,
        Sight("busy", "running", tool="bash"),
        id="the second step",
    ),
    pytest.param(
        [user(), step(4, ended_s=5, finish="stop"), step(2, ended_s=3, **CALLS)],
        False,
        Sight("idle", "finished", ended_s=5),
        id="the order is that of the times",
    ),
    pytest.param(
        [user(), step(2, ended_s=3, finish="length")],
        True,
        Sight("busy", "finished", ended_s=3),
        id="another turn runs",
    ),
    pytest.param(
        [user(), step(2, ended_s=3, error=ABORTED)], False, Sight("idle", "stopped", ended_s=3), id="an abort"
    ),
    pytest.param([user(), step(2, error=ABORTED)], True, Sight("busy", "stopped"), id="an abort, and the next turn"),
    pytest.param(
        [user(), step(2, ended_s=3, error=RATE)],
        False,
        Sight("idle", "failed", reason="Slow down (429)", ended_s=3),
        id="the provider refuses",
    ),
    pytest.param(
        [user(), step(2, error={"name": "UnknownError"})],
        False,
        Sight("idle", "failed", reason="UnknownError"),
        id="an error without words",
    ),
    pytest.param([user(), step(2, error=RATE)], True, Sight("busy", "running"), id="an error that is tried again"),
    pytest.param(
        [user(), step(2, "question:error", ended_s=3, **CALLS)],
        False,
        Sight("idle", "stopped", ended_s=3),
        id="a refusal ends the turn",
    ),
    pytest.param(
        [user(), step(2, ended_s=3, **CALLS), user(OTHER), step(4, prompt=OTHER, ended_s=5, finish="stop")],
        False,
        Sight("idle", "finished", ended_s=3),
        id="a later prompt took the turn over",
    ),
    pytest.param(
        [user(), step(2, ended_s=3, **CALLS), user(OTHER), step(4, "bash:running", prompt=OTHER)],
        True,
        Sight("busy", "running"),
        id="a later prompt takes the turn over",
    ),
    pytest.param(
        [user(), step(2, "question:running"), user(OTHER), step(4, prompt=OTHER)],
        True,
        Sight("busy", "stopped"),
        id="a step that never ends, and the next turn",
    ),
]


@pytest.mark.parametrize(("messages", "is_busy", "sight"), SIGHTS)
def test_what_the_messages_tell(messages: list[TurnMessage], *, is_busy: bool, sight: Sight) -> None:
    """The last step that answers the prompt decides, and whether the session is busy."""
    assert turns.sight_of(messages, OURS, is_busy=is_busy) == sight


# ids


@given(st.integers(0, 16**12 - 2), st.text("abcXYZ019", min_size=14, max_size=14))
def test_an_id_is_right_behind_the_newest(number: int, rest: str) -> None:
    """It sorts behind it, and before whatever is made a millisecond later; no two are the same."""
    newest = f"msg_{number:012x}{rest}"
    ours = following(newest, 0)
    assert re.fullmatch(r"msg_[0-9a-f]{12}[0-9A-Za-z]{14}", ours)
    assert newest < ours
    assert int(ours[4:16], 16) == number + 1
    assert ours != following(newest, 0)


def test_an_id_in_an_empty_session_has_its_time() -> None:
    """The server's own time, as OpenCode writes it; an id of another form tells no time, either."""
    made_ms = 1_795_569_743_784
    for newest in ("", "msg_zzz", "msg-1"):
        assert int(following(newest, made_ms)[4:16], 16) == (made_ms * 4096 + 1) % 2**48


def test_ids_begin_again_after_the_last() -> None:
    """OpenCode keeps the low 48 bits of the time alone."""
    assert following("msg_" + "f" * 12 + "x" * 14, 0).startswith("msg_000000000000")


# commands


@pytest.mark.parametrize(
    ("template", "arguments", "text"),
    [
        ("Fix $ARGUMENTS now", "a  b", "Fix a  b now"),
        ("Fix $1 and $2", "a b c d", "Fix a and b c d"),
        ("Fix $2, $1", "a \"b c\" 'd'", "Fix b c d, a"),
        ("Fix $1 and $2", "a", "Fix a and"),
        ("Fix $1", "", "Fix"),
        ("  Fix it\n", "a b ", "Fix it\n\n\na b"),
        ("Fix it", " ", "Fix it"),
        ("$1 $ARGUMENTS", "$ARGUMENTS $1", "$ARGUMENTS $1 $ARGUMENTS $1"),
        ("$10 $1", "a b", "a"),
        ("$0", "a b", "b"),
        ("Costs $5\\n", "", "Costs \\n"),
    ],
)
def test_a_template_is_filled_in(template: str, arguments: str, text: str) -> None:
    """By OpenCode's rules; what the arguments look like is not filled in again."""
    assert commands.filled(template, arguments) == text


AGENTS = [
    Agent(name="title", mode="primary", hidden=True),
    Agent(name="general", mode="subagent"),
    Agent(name="build", mode="primary"),
    Agent(name="both", mode="all"),
]


@pytest.mark.parametrize(
    ("more", "agent", "is_subtask"),
    [
        ({}, None, False),
        ({"agent": "build"}, "build", False),
        ({"agent": "both"}, "both", False),
        ({"agent": "unknown"}, "unknown", False),
        ({"agent": "general"}, "general", True),
        ({"agent": "general", "subtask": False}, "general", False),
        ({"agent": "build", "subtask": True}, "build", True),
        ({"subtask": True}, "build", True),
    ],
)
def test_what_a_command_becomes(more: dict[str, Any], agent: str | None, *, is_subtask: bool) -> None:
    """A prompt for its agent, or a task for a subagent."""
    command = Command(name="fix", template="Fix $1", model="anthropic/claude/4", **more)
    prompt = commands.prompt_of(command, "it", AGENTS)
    (part,) = prompt["parts"]
    model = {"providerID": "anthropic", "modelID": "claude/4"}
    if is_subtask:
        assert part == {"type": "subtask", "agent": agent, "description": "fix", "prompt": "Fix it", "model": model}
        assert set(prompt) == {"parts"}
    else:
        assert part == {"type": "text", "text": "Fix it"}
        assert (prompt.get("agent"), prompt["model"]) == (agent, model)


def test_which_commands_can_be_sent() -> None:
    """Not one that runs a shell, and not the prompt of an MCP server, whose text is not known."""
    listed = [
        Command(name=name, template=text) for name, text in (("b", "B"), ("sh", "!`ls`"), ("mcp", {}), ("a", "!"))
    ]
    assert commands.chosen(listed, "a").template == "!"
    for name, words in (
        ("sh", "“sh” runs a shell; you can send: a, b"),
        ("mcp", "“mcp” cannot be sent from here; you can send: a, b"),
        ("c", "there is no command “c”; you can send: a, b"),
    ):
        with pytest.raises(AgentRefused) as caught:
            commands.chosen(listed, name)
        assert caught.value.said == words
    with pytest.raises(AgentRefused) as caught:
        commands.chosen([], "c")
    assert caught.value.said.endswith("you can send: none")
