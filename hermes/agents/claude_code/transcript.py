"""Claude Code's own record of a session tells what no hook does.

That is: which turn was interrupted, when each turn began, and the title of the session. The record has a line of JSON
for each message. That of the first message of a turn has the id of its prompt; so have some others. Further lines hold
the titles, some of them several times. Seen with 2.1.330.
"""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any, BinaryIO, Final

_READ_BYTES: Final = 65536
_BLOCK_BYTES: Final = 1 << 20
_INTERRUPTED: Final = "[Request interrupted by user"
_TITLE_CHARACTERS: Final = 200


def interrupted_at(path: str | Path) -> float | None:
    """Return when the turn that the record ends with was interrupted (epoch); None if it was not, or is unreadable."""
    try:
        with _opened(path) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _READ_BYTES))
            lines = file.read().splitlines()
    except (OSError, ValueError):
        return None
    for line in reversed(lines):
        entry = _entry(line)
        if entry.get("type") in {"user", "assistant"} and not entry.get("isSidechain"):
            return _time(entry) if _text(entry).startswith(_INTERRUPTED) else None
    return None


def began_at(path: str | Path, prompt_id: str) -> float | None:
    """Return when the turn of this prompt began (epoch); None if the record does not tell, or is unreadable."""
    named = f'"promptId":{json.dumps(prompt_id)}'.encode()
    try:
        with _opened(path) as file:
            return next((_time(_entry(line)) for line in _lines_with(named, file)), None)
    except (OSError, ValueError):
        return None


def title_of(path: str | Path) -> str:
    """Return the title that a person gave the session (`/rename`), else the one that Claude Code made; "" without."""
    titles: dict[str, str] = {}
    try:
        with _opened(path) as file:
            for line in _lines_with(b'-title"', file):
                entry = _entry(line)
                title = entry.get("customTitle", entry.get("aiTitle"))
                if isinstance(title, str):
                    titles[str(entry.get("type"))] = title[:_TITLE_CHARACTERS]
    except (OSError, ValueError):
        return ""
    return titles.get("custom-title") or titles.get("ai-title", "")


def _lines_with(words: bytes, file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines with these words. A record may have 100 MB, and most of its lines are looked at by the block."""
    rest = b""
    while block := file.read(_BLOCK_BYTES):
        whole, _, rest = (rest + block).rpartition(b"\n")
        if words in whole:
            yield from (line for line in whole.split(b"\n") if words in line)
    if words in rest:
        yield rest


def _opened(path: str | Path) -> BinaryIO:
    """Open another program's path; a pipe without a writer holds nobody up."""
    return open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))


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
    from datetime import datetime  # noqa: PLC0415 (an ask needs only the title)

    try:
        return datetime.fromisoformat(str(entry.get("timestamp"))).timestamp()
    except ValueError:
        return None
