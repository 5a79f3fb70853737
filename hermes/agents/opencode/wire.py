"""What OpenCode's server sends, as far as Hermes reads it; whatever else comes along is passed over.

Requests (the questions themselves) are not here: `adapter.read_request` reads them, since they also come by
the hook, which has no pydantic.
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
    """One of `GET /session`, `GET /session/{id}`, and the `info` of session events."""

    id: Text
    title: Text = ""
    parent_id: Text | None = Field(None, alias="parentID")
    directory: Text = ""
    time: Times = Times()


class Project(_Wire):
    """One of `GET /project`; the worktree of all folders without git is "/"."""

    worktree: Text


class Status(_Wire):
    """A value of `GET /session/status`; only sessions that are not idle are there."""

    type: Text


class ToolState(_Wire):
    """The state of a tool part; `structured` is where the v2 engine keeps what v1 keeps in `metadata`."""

    status: Text
    input: Any = None
    error: Any = ""
    metadata: dict[str, Any] | None = None
    structured: dict[str, Any] | None = None


class Part(_Wire):
    """A part of a message: `type` is "text", "tool" or what does not matter here."""

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
    """A message with its parts: one of `GET /session/{id}/message`, or the one of …/message/{id}."""

    info: Info
    parts: tuple[Part, ...] = ()


class Delta(_Wire):
    """`message.part.delta` (new only): more of a part's text."""

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
    """What a v2 message holds."""

    content: tuple[V2Tool, ...] = ()


class V2Message(_Wire):
    """`GET /api/session/{id}/message/{id}`."""

    data: V2Content


class Payload(_Wire):
    """A bus event. `properties` has another shape for each type."""

    type: Text
    properties: dict[str, Any] = {}


class Event(_Wire):
    """One event of `/global/event`; new has `sync` twins of many, in another shape, which are nothing new."""

    directory: Text = ""
    payload: Payload

    @property
    def type(self) -> str:
        """The name of the event."""
        return self.payload.type

    @property
    def properties(self) -> Mapping[str, Any]:
        """What it says."""
        return self.payload.properties


@cache
def _reader(kind: Hashable) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def decode(kind: type[T], text: str | bytes) -> T:
    """Read JSON of this shape.

    Raises:
        ValueError: it is no JSON, or has another shape; the text says where, without any value in it.
    """
    try:
        # Not pydantic's own parser: it refuses the lone surrogate halves that JSON can carry.
        value = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError:
        raise ValueError("no JSON") from None
    return shaped(kind, value)


def shaped(kind: type[T], value: object) -> T:
    """Read decoded JSON of this shape; see `decode`."""
    try:
        read: T = _reader(cast("Hashable", kind)).validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(step) for step in first["loc"]) or "it"
        raise ValueError(f"{sound(place[:80])}: {first['msg'].removeprefix('Value error, ')}") from None
    return read
