"""How a value stands in a file: one JSON object that names its version, `{"v": 1, "entry": {…}}`.

What is written is ASCII, so a text with half an emoji in it (JSON may carry one) is kept to the letter. What
is read is checked against the dataclass. A version below ours is brought forward step by step; one above
ours belongs to a newer Hermes and is nobody else's to touch. Keys that this version does not know are passed
over. A field that is added with a default needs no new version; one that is renamed, removed or means
something else does.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from hermes.errors import TooNew, Unreadable
from hermes.model import Entry

T = TypeVar("T")
Upgrade = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Hold:
    """Asks that ran out of time together and are asked about once: the message that asks, and their ids."""

    message_id: int | None
    entry_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Followed:
    """Until when (epoch) the events of the server with this name are known."""

    server: str
    until_s: float


@dataclass(frozen=True, slots=True)
class ChatMemory:
    """What one bot must remember across restarts.

    `offset` is the next update to ask for. `answerable_s` is the answerable clock as it stood at `known_at_s`
    (epoch), `gap_at` its value when it last stood still. `chat_id` replaces the configured one, `moved_from`,
    after a group became a supergroup. `trouble` is what keeps the chat from working, in words, or "". `damaged` counts
    the questions that could not be read, of which the person was not told yet.
    """

    bot_id: int
    offset: int | None = None
    last_poll_s: float | None = None
    answerable_s: float = 0.0
    known_at_s: float | None = None
    gap_at: float | None = None
    chat_id: int | None = None
    moved_from: int | None = None
    trouble: str = ""
    hold: Hold | None = None
    followed: tuple[Followed, ...] = ()
    damaged: int = 0


class Codec(Generic[T]):
    """Bytes for the frozen dataclasses of one kind, and back.

    `upgrades` maps a version to what makes the next one of it, for every version below the newest.
    """

    def __init__(self, key: str, kind: type[T], upgrades: Mapping[int, Upgrade] | None = None) -> None:
        self._key = key
        self._adapter = TypeAdapter(kind)
        self._upgrades = dict(upgrades or {})
        self.version = max(self._upgrades, default=0) + 1

    def encode(self, value: T) -> bytes:
        """Return the whole content of a file, one line of ASCII."""
        record = {"v": self.version, self._key: self._adapter.dump_python(value)}
        return json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"

    def decode(self, data: bytes) -> T:
        """Return the value.

        Raises:
            TooNew: a newer Hermes wrote it.
            Unreadable: it is torn, empty, or something else altogether; the message never quotes it.
        """
        record = _record(data)
        version = record.get("v")
        if type(version) is not int or version < 1:
            raise Unreadable("it does not say which version it is")
        if version > self.version:
            raise TooNew(f"it has version {version}; this Hermes knows versions up to {self.version}")
        return self._checked(self._brought_forward(version, record.get(self._key)))

    def _brought_forward(self, version: int, body: object) -> object:
        for step in range(version, self.version):
            if step not in self._upgrades or not isinstance(body, dict):
                raise Unreadable(f"it has version {version}, which this Hermes no longer knows")
            try:
                body = self._upgrades[step](body)
            except (LookupError, TypeError, ValueError):
                raise Unreadable(f"it has version {version}, but not its shape") from None
        return body

    def _checked(self, body: object) -> T:
        if not isinstance(body, dict):
            raise Unreadable(f"it holds no {self._key}")
        try:
            return self._adapter.validate_python(body)
        except ValidationError as error:
            where = ".".join(str(step) for step in error.errors(include_input=False)[0]["loc"])
            raise Unreadable(f"{self._key}.{where} is missing or not what it should be") from None


def _record(data: bytes) -> dict[str, Any]:
    if not data.strip(b"\0 \r\n"):
        raise Unreadable("it is empty")
    try:
        record = json.loads(data)
    except (ValueError, RecursionError):
        raise Unreadable("it is no JSON") from None
    if not isinstance(record, dict):
        raise Unreadable("it is no JSON object")
    return record


ENTRIES = Codec("entry", Entry)
CHATS = Codec("chat", ChatMemory)
