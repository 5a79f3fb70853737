"""Claude Code's own record of a session: at its end it tells of an interrupted turn, of which no hook tells."""

from __future__ import annotations

import json
import os
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

_READ_BYTES: Final = 65536
_INTERRUPTED: Final = "[Request interrupted by user"


def interrupted_at(path: str | Path) -> float | None:
    """Return when the turn that the record ends with was interrupted (epoch); None if it was not, or is unreadable."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 (the path is another program's words)
            file.seek(max(0, file.seek(0, os.SEEK_END) - _READ_BYTES))
            lines = file.read().splitlines()
    except (OSError, ValueError):
        return None
    for line in reversed(lines):
        entry = _entry(line)
        if entry.get("type") in {"user", "assistant"} and not entry.get("isSidechain"):
            return _time(entry) if _text(entry).startswith(_INTERRUPTED) else None
    return None


def _entry(line: bytes) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return entry if isinstance(entry, dict) else {}


def _text(entry: dict[str, Any]) -> str:
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return next((text for text in texts if isinstance(text, str)), "")


def _time(entry: dict[str, Any]) -> float | None:
    try:
        return datetime.fromisoformat(str(entry.get("timestamp"))).timestamp()
    except ValueError:
        return None
