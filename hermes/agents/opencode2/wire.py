"""The shapes of OpenCode 2's HTTP answers and events, limited to the fields that Hermes reads.

Two releases were described: a build of 7 August 2026, which was run, and 2.0.26, which was read. Each shape takes both.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from hermes.agents.wire import Text, Wire


class Info(Wire):
    """`GET /api/info` (2.0.26) and `GET /api/health` (7 August)."""

    version: Text
    pid: int


class Located(Wire):
    """The `location` of a session or an event."""

    directory: Text = ""


class Times(Wire):
    """Milliseconds since the epoch."""

    created: float = 0
    updated: float = 0
    completed: float | None = None


class Session(Wire):
    """A session."""

    id: Text
    title: Text = ""
    parent_id: Text | None = Field(None, alias="parentID")
    location: Located = Located()
    time: Times = Times()


class Failure(Wire):
    """The error of a tool call, or of a message of the model."""

    type: Text = ""
    message: Text = ""


class ToolState(Wire):
    """The state of a tool call: "streaming", "running", "completed" or "error"."""

    status: Text
    input: Any = None
    error: Failure | None = None
    metadata: dict[str, Any] | None = None


class Part(Wire):
    """A part of a message's content; a tool's `id` is the call id."""

    type: Text
    id: Text = ""
    name: Text = ""
    text: Text = ""
    state: ToolState | None = None


class Snapshot(Wire):
    """The files that a step of the model changed."""

    files: tuple[Any, ...] = ()


class Message(Wire):
    """A message; only the model's has `content`, and in the end a `finish`, which is "error" beside an `error`."""

    id: Text
    type: Text
    content: tuple[Part, ...] = ()
    time: Times = Times()
    finish: Text | None = None
    error: Failure | None = None
    snapshot: Snapshot | None = None


class Interrupted(Wire):
    """`POST /api/session/{id}/interrupt` of 2.0.26; that of 7 August answers nothing."""

    interrupted: bool


class Event(Wire):
    """One event of `GET /api/event`; `data` has another shape for each type. `created` is in ms since the epoch."""

    type: Text
    created: float = 0
    data: dict[str, Any] = Field({})
    location: Located | None = None
