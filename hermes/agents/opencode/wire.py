"""The shapes of OpenCode's HTTP answers and events, limited to the fields that Hermes reads; others are ignored.

The requests (the questions and permissions themselves) are not here. The adapter reads them without pydantic, because
they also arrive as payloads of the hook.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from functools import cache
from typing import Annotated, Any, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from hermes.agents.fields import sound

T = TypeVar("T")


def _sound(value: object) -> object:
    return sound(value) if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_sound)]


class _Wire(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)


class Health(_Wire):
    """`GET /global/health`."""

    version: Text


class Times(_Wire):
    """Milliseconds since the epoch."""

    created: float = 0
    updated: float = 0


class Session(_Wire):
    """An item of `GET /session`, the answer to `GET /session/{id}`, and the `info` of session events."""

    id: Text
    title: Text = ""
    parent_id: Text | None = Field(None, alias="parentID")
    directory: Text = ""
    time: Times = Times()


class Project(_Wire):
    """An item of `GET /project`; the worktree of all folders without git is "/"."""

    worktree: Text


class Status(_Wire):
    """A value in `GET /session/status`, which holds only the sessions that are not idle."""

    type: Text


class ToolState(_Wire):
    """The state of a tool part; the v2 engine stores in `structured` the data that v1 stores in `metadata`."""

    status: Text
    input: Any = None
    error: Any = ""
    metadata: dict[str, Any] | None = None
    structured: dict[str, Any] | None = None


class Part(_Wire):
    """A part of a message: `type` is "text", "tool", or another type that Hermes ignores."""

    id: Text = ""
    type: Text
    session_id: Text = Field("", alias="sessionID")
    message_id: Text = Field("", alias="messageID")
    text: Text = ""
    tool: Text = ""
    call_id: Text = Field("", alias="callID")
    state: ToolState | None = None


class Info(_Wire):
    """The head of a message."""

    id: Text
    role: Text
    session_id: Text = Field("", alias="sessionID")
    time: Times = Times()


class Message(_Wire):
    """A message with its parts: an item of `GET /session/{id}/message`, or the answer to …/message/{id}."""

    info: Info
    parts: tuple[Part, ...] = ()


class Delta(_Wire):
    """`message.part.delta` (1.18.33 only): text to append to a part."""

    session_id: Text = Field(alias="sessionID")
    message_id: Text = Field(alias="messageID")
    part_id: Text = Field(alias="partID")
    field: Text
    delta: Text


class RawList(_Wire):
    """`GET /api/session/{id}/question` of the v2 engine."""

    data: list[Any]


class V2Tool(_Wire):
    """A part of a v2 message; a tool's `id` is the call id."""

    type: Text
    id: Text = ""
    name: Text = ""
    state: ToolState | None = None


class V2Content(_Wire):
    """The content of a v2 message."""

    content: tuple[V2Tool, ...] = ()


class V2Message(_Wire):
    """`GET /api/session/{id}/message/{id}`."""

    data: V2Content


class Payload(_Wire):
    """A bus event. `properties` has another shape for each type."""

    type: Text
    properties: dict[str, Any] = {}


class Event(_Wire):
    """One event of `/global/event`. 1.18.33 repeats many as type `sync`, in another shape; Hermes ignores those."""

    directory: Text = ""
    payload: Payload

    @property
    def type(self) -> str:
        """Return the name of the event."""
        return self.payload.type

    @property
    def properties(self) -> Mapping[str, Any]:
        """Return the properties of the event."""
        return self.payload.properties


@cache
def _reader(kind: Hashable) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def decode(kind: type[T], text: str | bytes) -> T:
    """Read JSON of this shape.

    Raises:
        ValueError: it is not JSON, or has another shape; the message names the place, and contains no value.
    """
    try:
        # Not pydantic's JSON parser, because it refuses the lone surrogate halves that JSON can carry.
        value = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError:
        raise ValueError("not JSON") from None
    return shaped(kind, value)


def shaped(kind: type[T], value: object) -> T:
    """Read decoded JSON of this shape; see `decode`."""
    try:
        read: T = _reader(cast("Hashable", kind)).validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(step) for step in first["loc"]) or "it"
        fault = "is missing" if first["type"] == "missing" else "has a shape that Hermes does not know"
        raise ValueError(f"{sound(place[:80])} {fault}") from None
    return read
