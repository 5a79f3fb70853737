"""`hermes hook` as a person types it, at a terminal."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pexpect
import pytest

from hermes.agents.generic.shape import SHAPE
from hermes.hook import run
from hermes.hook.usage import HELP
from hermes.listener.agent.inbox import VERSION

if TYPE_CHECKING:
    from pathlib import Path


def typed(*words: str, line: str = "") -> tuple[int, str]:
    """The status of the hook, and all that the terminal showed after the person's own line."""
    child = pexpect.spawn(
        sys.executable, ["-I", "-m", "hermes", "hook", *words], encoding="utf-8", timeout=60, echo=False
    )
    if line:
        child.sendline(line)
    shown = child.read().replace("\r\n", "\n")
    child.close()
    return int(child.exitstatus or 0), shown


def test_the_help_describes_what_the_hook_takes() -> None:
    """All agents, all keys of the JSON, all options; no line is wider than a page."""
    status, shown = typed("--help")
    assert (status, shown) == (0, HELP)
    assert [name for name in (*run.NAMES, *(SHAPE.carried or ())) if name not in HELP] == []
    assert max(map(len, HELP.splitlines())) < 80


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (("opencod",), "the agents are opencode, generic, claude-code, oh-my-pi, neovate"),
        (("opencode", "--wiat"), "the arguments are wrong, or some are missing"),
    ],
)
def test_wrong_usage_is_status_2_at_a_terminal(words: tuple[str, ...], fault: str) -> None:
    """A plugin gets 0: its agent could take 2 as a veto."""
    assert typed(*words) == (2, f"hermes: {fault}; see `hermes hook --help`.\n")


def test_no_bare_word_is_left_at_a_terminal(tmp_path: Path) -> None:
    """The words "refused" and "kept" are for the plugins; a person gets the error, or nothing to worry about."""
    places = ("--store", str(tmp_path / "store"), "--log", str(tmp_path / "log"))
    status, shown = typed("generic", *places, line='{"questions": 3}')
    assert (status, json.loads(shown)) == (
        0,
        {"kind": "refused", "error": "its 'questions' is missing or of the wrong type"},
    )
    assert typed("opencode", *places, line="{") == (
        0,
        "hermes: nothing was asked: not JSON (column 2: Expecting property name enclosed in double quotes)\n",
    )
    told = json.dumps({"type": "session.idle", "properties": {}, "directory": "/"})
    assert typed("opencode", *places, line=told) == (0, "")
    (kept,) = (tmp_path / "store" / "inbox").glob("*.json")
    assert json.loads(kept.read_text())["v"] == VERSION
