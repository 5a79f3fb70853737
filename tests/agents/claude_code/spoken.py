"""What Claude Code 2.1.330 was recorded to hand its hooks (tests/payloads/claude-code)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hermes.agents.claude_code.adapter import read
from hermes.model.ask import Ask
from hermes.model.signals import Asked, Signal

Json = dict[str, Any]
VERSION = "2.1.330"
_RECORDED: Json = json.loads(
    (Path(__file__).parents[2] / "payloads" / "claude-code" / f"{VERSION}.json").read_text(encoding="utf-8")
)


def recorded(name: str, **more: object) -> Json:
    """Return a fresh copy of one payload, as the hook hands it on."""
    copy: Json = json.loads(json.dumps(_RECORDED[name]))
    return {"id": "0123456789abcdef"} | copy | more


def signal(name: str, **more: object) -> Signal:
    """Return what it says."""
    return read(recorded(name, **more), machine="laptop")


def asked(name: str, **more: object) -> Ask:
    """Return what it asks."""
    found = signal(name, **more)
    assert isinstance(found, Asked)
    assert found.nonce
    return found.ask


def asking(*questions: Json) -> Ask:
    """Return the ask of these questions, in Claude Code's shape."""
    return asked(
        "PermissionRequest-one", hook_event_name="PermissionRequest", tool_input={"questions": list(questions)}
    )
