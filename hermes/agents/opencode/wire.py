"""The shapes of OpenCode's HTTP answers and events, limited to the fields that Hermes reads; others are ignored.

The requests (the questions and permissions themselves) are not here. The adapter reads them without pydantic, because
they also arrive as payloads of the hook.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from hermes.agents.wire import Text, Wire


class Health(Wire):
    """`GET /global/health`."""

    version: Text


class Times(Wire):
    """Milliseconds since the epoch."""

    created: float = 0
    updated: float = 0
    completed: float | None = None


class Session(Wire):
    """An item of `GET /session`, the answer to `GET /session/{id}`, and the `info` of session events."""

    id: Text
    title: Text = ""
    parent_id: Text | None = Field(None, alias="parentID")
    directory: Text = ""
    time: Times = Times()


class Project(Wire):
    """An item of `GET /project`; the worktree of all folders without git is "/"."""

    worktree: Text


class Status(Wire):
    """A value in `GET /session/status`, which holds only the sessions that are not idle."""

    type: Text


class ToolState(Wire):
    """The state of a tool part; the v2 engine stores in `structured` the data that v1 stores in `metadata`."""

    status: Text
    input: Any = None
    error: Any = ""
    metadata: dict[str, Any] | None = None
    structured: dict[str, Any] | None = None


class Part(Wire):
    """A part of a message: `type` is "text", "tool", "compaction", or another type that Hermes ignores."""

    id: Text = ""
    type: Text
    session_id: Text = Field("", alias="sessionID")
    message_id: Text = Field("", alias="messageID")
    text: Text = ""
    tool: Text = ""
    call_id: Text = Field("", alias="callID")
    state: ToolState | None = None
    synthetic: bool | None = None
    auto: bool | None = None
    overflow: bool | None = None


class ErrorData(Wire):
    """More about a failure; a failed request has an HTTP status."""

    message: Text | None = None
    status: int | None = Field(None, alias="statusCode")


class MessageError(Wire):
    """Why a message of the model ended before its time."""

    name: Text = "an error"
    data: ErrorData | None = None


class Info(Wire):
    """The head of a message. `parent_id`: of a message of the model's, the id of its prompt."""

    id: Text
    role: Text
    session_id: Text = Field("", alias="sessionID")
    parent_id: Text | None = Field(None, alias="parentID")
    time: Times = Times()


class ModelRef(Wire):
    """The model of a prompt, and in 1.18.33 its variant: how hard it thinks."""

    provider_id: Text = Field("", alias="providerID")
    model_id: Text = Field("", alias="modelID")
    variant: Text | None = None


class Places(Wire):
    """The folders of a message of the model; `root` is the worktree."""

    root: Text


class Changed(Wire):
    """Shows that a turn changed something. Its lines are not read here: there can be many."""


class TurnInfo(Info):
    """The head of a message, as turns are read from it: the model's has in the end a `finish` or an `error`.

    `summary` is true for a message that sums the session up; a prompt's says what its turn changed. `model`, `variant`
    (1.1.53) and `agent`: what a prompt is answered by.
    """

    finish: Text | None = None
    error: MessageError | None = None
    summary: bool | Changed | None = None
    model: ModelRef | None = None
    variant: Text | None = None
    agent: Text | None = None
    path: Places | None = None


class Message(Wire):
    """A message with its parts: an item of `GET /session/{id}/message`, or the answer to …/message/{id}."""

    info: Info
    parts: tuple[Part, ...] = ()


class TurnMessage(Message):
    """A message, as turns are read from it."""

    info: TurnInfo


class FileDiff(Wire):
    """The changes of a turn in one file, and what it was: 1.18.33 has the `patch`, 1.1.53 the text before and after."""

    additions: int | None = None
    deletions: int | None = None
    file: Text = ""
    patch: Text | None = None
    before: Text | None = None
    after: Text | None = None


class Summary(Changed):
    """The changes of a turn with their lines."""

    diffs: tuple[FileDiff, ...] | None = None


class PromptInfo(TurnInfo):
    """The head of a prompt, with all that its turn changed."""

    summary: bool | Summary | None = None


class Prompt(Message):
    """A prompt, read alone: the lines that its turn changed can be many."""

    info: PromptInfo


class Agent(Wire):
    """An item of `GET /agent`; `mode` is "primary", "subagent" or "all"."""

    name: Text
    mode: Text = ""
    hidden: bool | None = None


class Rule(Wire):
    """A rule of the permissions; `action` is "allow", "ask" or "deny"."""

    permission: Text
    pattern: Text
    action: Text


class Ruled(Wire):
    """The rules of a session; few have any."""

    permission: tuple[Rule, ...] | None = None


class RuledAgent(Wire):
    """An agent with its rules, which contain those of the configuration. The default one is the first of the list."""

    name: Text
    permission: tuple[Rule, ...]


class Takes(Wire):
    """The inputs that a model takes beside text."""

    input: dict[str, bool] | None = None


class Model(Wire):
    """A model of a provider."""

    name: Text = ""
    capabilities: Takes | None = None


class Provider(Wire):
    """A provider with its models, by their ids. It also has the keys of the provider, which are not read."""

    id: Text
    models: dict[str, Model] = Field({})


class Providers(Wire):
    """`GET /config/providers`."""

    providers: tuple[Provider, ...] = ()


class Config(Wire):
    """`GET /config`; `model` is "provider/model"."""

    model: Text | None = None


class Command(Wire):
    """An item of `GET /command`; The model gets the `template`, with the arguments filled in.

    The template of a prompt from an MCP server is an empty record. `model` is "provider/model".
    """

    name: Text
    template: Text | dict[str, Any] | None = None
    description: Text | None = None
    agent: Text | None = None
    model: Text | None = None
    subtask: bool | None = None


class Delta(Wire):
    """`message.part.delta` (1.18.33 only): text to append to a part."""

    session_id: Text = Field(alias="sessionID")
    message_id: Text = Field(alias="messageID")
    part_id: Text = Field(alias="partID")
    field: Text
    delta: Text


class V2Tool(Wire):
    """A part of a v2 message; a tool's `id` is the call id."""

    type: Text
    id: Text = ""
    name: Text = ""
    state: ToolState | None = None


class V2Content(Wire):
    """The content of a v2 message."""

    content: tuple[V2Tool, ...] = ()


class Payload(Wire):
    """A bus event. `properties` has another shape for each type."""

    type: Text
    properties: dict[str, Any] = Field({})


class Event(Wire):
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
