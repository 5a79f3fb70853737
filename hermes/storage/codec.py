"""How a value stands in a file: one JSON object that names its version, `{"v": 1, "entry": {…}}`.

What is written is ASCII, so a text with half an emoji in it (JSON may carry one) is kept to the letter. What
is read is checked against the dataclass. A version below ours is brought forward step by step; one above
ours belongs to a newer Hermes and is nobody else's to touch. Keys that this version does not know are passed
over. A field that is added with a default needs no new version; one that is renamed, removed or means
something else does.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from hermes.errors import TooNew, Unreadable
from hermes.model.chat_memory import ChatMemory
from hermes.model.entry import Entry

T = TypeVar("T")
Upgrade = Callable[[dict[str, Any]], dict[str, Any]]


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
            if not isinstance(body, dict):
                raise Unreadable(f"it holds no {self._key}")
            if step not in self._upgrades:
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


_NO_MESSAGE = 2**62  # higher than any


def _without_held_and_paused(entry: dict[str, Any]) -> dict[str, Any]:
    """Bring an entry of version 1 forward.

    A plain label that was held as the answer, to be undone, is open again, and the label is offered. An ask that waited
    for the word on several that ran out of time gets its final call again, after the grace of every restart.
    """
    state, phone, timing = dict(entry["state"]), dict(entry["phone"]), dict(entry.get("timing", {}))
    if timing.pop("paused", False):
        timing["called"] = False
    sides = phone.get("sides", ())
    undo = [side["message_id"] for side in sides if side["kind"] == "undo"]
    phone["sides"] = [side for side in sides if side["kind"] != "undo"]
    phone["copies"] = [*phone.get("copies", ()), *undo]
    shown = [message_id for message_id in (phone.get("message_id"), *phone["copies"]) if message_id is not None]
    phone["since_id"] = phone.get("message_id")
    # Codes of two signs were given again and again: a message from before the ask may end in the same one.
    phone["after_id"] = min(shown, default=_NO_MESSAGE) - 1
    if state.get("joining"):
        # Its parts have no dates, by which a further one would be known.
        state["joining"] = state["joining"] | {"offered": True}
    if state.get("phase") == "held":
        decision, options = state["decision"], entry["ask"]["questions"][0]["options"]
        label = options[decision["answers"][0]["picks"][0]]["label"]
        offer = {"question": 0, "user": decision["by"], "message_id": 0, "text": label}
        state |= {"phase": "open", "decision": None, "due_s": None, "offer": offer, "epoch": state["epoch"] + 1}
    return entry | {"state": state, "phone": phone, "timing": timing}


ENTRIES = Codec("entry", Entry, {1: _without_held_and_paused})
CHATS = Codec("chat", ChatMemory)
