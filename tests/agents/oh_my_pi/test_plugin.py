"""Our extension in Node, around a dialog whose result has a shape that it does not know."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from hermes.agents.oh_my_pi.install import PLUGIN
from tests.harness.node import node

if TYPE_CHECKING:
    from pathlib import Path

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
    hook = tmp_path / "hook"
    hook.write_text(HOOK)
    hook.chmod(0o700)
    settings = {"python": str(hook), "store": "/s", "log": "/l", "config": "/c", "headless": False}
    plugin = tmp_path / "plugin.mjs"
    plugin.write_text(PLUGIN.text(settings))
    values = {"PLUGIN": str(plugin), "RESULT": result, "QUESTION": QUESTION}
    script = DESK
    for name, value in values.items():
        script = script.replace(name, json.dumps(value))
    desk = tmp_path / "desk.mjs"
    desk.write_text(script)
    ran = subprocess.run([node(), str(desk)], capture_output=True, text=True, timeout=60, check=False)
    assert ran.stderr == ""
    assert json.loads(ran.stdout) == result
    lines = [json.loads(line) for line in (tmp_path / "hook.told").read_text().splitlines()]
    assert lines[1:] == [{"answers": told}]
