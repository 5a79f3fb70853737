"""A file of a project that a person wants on the phone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

MOST_BYTES: Final = 50_000_000
"""Telegram takes files of 50 MB at most from a bot."""

FileFault = Literal[
    "missing",
    "folder",
    "special",
    "outside",
    "secret",
    "excluded",
    "ignored",
    "unchecked",
    "large",
    "empty",
    "unreadable",
]
"""Why a file is not sent.

"special": a device, a pipe or a socket. "excluded": the permissions keep it from the agent. "unchecked": git gives no
answer about it.
"""


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """The name of a file without its folder, and its content."""

    name: str
    content: bytes
