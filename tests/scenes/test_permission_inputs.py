"""A permission shows all parameters of its call, with the real OpenCode, by its server and by the plugin."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.home import VERSIONS
from tests.scenes.stage import NEWEST
from tests.scenes.test_permissions import BY_SERVER, start, way

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.harness.home import Json
    from tests.scenes.test_permissions import Guarded

__all__ = ["start", "way"]

OLDEST = pytest.mark.parametrize("opencode_version", VERSIONS[-1:], indirect=True)
BY_PLUGIN = pytest.mark.parametrize("way", ["plugin"], indirect=True)
SHOP = {"type": "local", "command": [sys.executable, str(Path(__file__).with_name("shop_mcp.py"))], "enabled": True}
ASKS = {"bash": "ask", "task": "ask", "shop_query": "ask", "external_directory": "allow"}


def bash(**args: Any) -> Json:
    """One step of the scripted model: run a command."""
    return {"tool": "bash", "args": {"description": "a step", **args}}


def test_the_arguments_of_an_mcp_tool_are_shown(start: Callable[..., Guarded]) -> None:
    """The request says only "*"."""
    guard = start({"permission": ASKS, "mcp": {"shop": SHOP}})
    session = guard.session({"tool": "shop_query", "args": {"sql": "DROP TABLE customers"}})
    asked = guard.stage.asked("OpenCode wants to use: shop_query")
    assert asked.marked("pre") == ("*", "sql: DROP TABLE customers")
    assert "Not all of it is known" not in asked.text
    guard.allows("DROP TABLE")
    guard.opencode.wait_idle(session)
    assert guard.outputs(session, "shop_query") == ["ran DROP TABLE customers"]


@NEWEST
@BY_SERVER
def test_the_prompt_of_a_task_is_shown(start: Callable[..., Guarded]) -> None:
    """The request names the agent and the description alone."""
    guard = start({"permission": ASKS})
    args = {"description": "look around", "prompt": "delete all branches on the server", "subagent_type": "general"}
    guard.session({"tool": "task", "args": args})
    asked = guard.stage.asked("OpenCode wants to use: task")
    assert asked.marked("pre") == (
        "general",
        "description: look around\nprompt: delete all branches on the server",
    )


def test_the_folder_in_which_a_command_runs_is_shown(start: Callable[..., Guarded]) -> None:
    """The same command does another thing in another folder."""
    guard = start({"permission": ASKS})
    inner = guard.directory / "precious"
    inner.mkdir()
    (inner / "file").write_text("x")
    session = guard.session(bash(command="rm -rf file; pwd", workdir=str(inner)))
    asked = guard.stage.asked("rm -rf file; pwd")
    assert asked.marked("pre") == ("rm -rf file; pwd", f"workdir: {inner}")
    guard.allows("rm -rf file; pwd")
    guard.opencode.wait_idle(session)
    assert guard.outputs(session) == [str(inner)]


@OLDEST
@BY_PLUGIN
@pytest.mark.parametrize(("length", "is_cut"), [(100_000, False), (600_000, True)])
def test_a_command_is_handed_over_whole_or_said_to_be_cut(
    start: Callable[..., Guarded], length: int, *, is_cut: bool
) -> None:
    """A hook takes a line of 1 MiB, and 1.1.53 tells the command and its parts."""
    guard = start({"permission": ASKS})
    guard.session(bash(command=f"true {'a' * length}; echo the end"))
    asked = guard.stage.asked("true aaa")
    assert ("Only parts of the command are known" in asked.text) == is_cut
    assert (("Always…",) in asked.labels) != is_cut
    guard.stage.phone.tap(asked, "📄 Show more of it" if is_cut else "📄 Show all of it")
    guard.stage.ended("As much of it as is known." if is_cut else "All of it, as the agent wrote it.")
