"""The file format of a value: one JSON object that names its version, `{"v": 1, "entry": {…}}`.

Hermes writes ASCII, so a text with half of a surrogate pair (JSON may carry one) is kept exactly. The decoder checks
the content against the dataclass. It upgrades a lower version step by step, and refuses a higher one, because only a
newer Hermes may change that file. It ignores unknown keys. A new field with a default needs no new version; a field
that is renamed, removed or changes its meaning does.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from hermes.errors import TooNew, Unreadable
from hermes.model.answer import Allowed, Always, Answers, Once, Refused, Response
from hermes.model.card import Card, MachineList
from hermes.model.chat_memory import ChatMemory, Servers
from hermes.model.entry import Entry
from hermes.model.notice import Notice
from hermes.model.prompt import Prompt

T = TypeVar("T")
Upgrade = Callable[[dict[str, Any]], dict[str, Any]]


class Codec(Generic[T]):
    """Encode the frozen dataclasses of one kind as bytes, and decode them.

    Each of the `upgrades` turns the content of a version into that of the next one; the first is that of version 1.
    `stored` turns a value into the one that is written, and `read` turns that into the value again.
    """

    def __init__(
        self,
        key: str,
        kind: type[T],
        upgrades: Sequence[Upgrade] = (),
        *,
        stored: Callable[[T], T] = lambda value: value,
        read: Callable[[T], T] = lambda value: value,
    ) -> None:
        self.key = key
        self._kind = kind
        self._stored = stored
        self._read = read
        self._upgrades = upgrades
        self.version = len(upgrades) + 1

    @cached_property
    def _adapter(self) -> TypeAdapter[T]:
        # Built when it is used: all seven together are an eighth of a start.
        return TypeAdapter(self._kind)

    def prepare(self) -> None:
        """Build the reader now: else the first value would wait for that, up to a tenth of a second."""
        _ = self._adapter

    def encode(self, value: T) -> bytes:
        """Return the whole content of a file: one line of ASCII."""
        record = {"v": self.version, self.key: self._adapter.dump_python(self._stored(value))}
        return json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"

    def decode(self, data: bytes) -> T:
        """Return the value.

        Raises:
            TooNew: a newer Hermes wrote the data.
            Unreadable: the data is incomplete, empty, or of another format; the message never quotes it.
        """
        if not data.strip(b"\0 \r\n"):
            raise Unreadable("it is empty")
        record = json_object(data)
        version = record.get("v")
        if type(version) is not int or version < 1:
            raise Unreadable("it does not say which version it is")
        if version > self.version:
            raise TooNew(f"it has version {version}; this Hermes knows versions up to {self.version}")
        return self._checked(self._brought_forward(version, record.get(self.key)))

    def _brought_forward(self, version: int, body: object) -> object:
        for upgrade in self._upgrades[version - 1 :]:
            if not isinstance(body, dict):
                raise Unreadable(f"it contains no {self.key}")
            try:
                body = upgrade(body)
            except (LookupError, TypeError, ValueError):
                raise Unreadable(f"it has version {version}, but not its shape") from None
        return body

    def _checked(self, body: object) -> T:
        if not isinstance(body, dict):
            raise Unreadable(f"it contains no {self.key}")
        try:
            return self._read(self._adapter.validate_python(body))
        except ValidationError as error:
            where = ".".join(str(step) for step in error.errors(include_input=False)[0]["loc"])
            raise Unreadable(f"{self.key}.{where} is missing or not what it should be") from None


def json_object(data: bytes | str) -> dict[str, Any]:
    """Return the JSON object that this is. Raises Unreadable: others may have written it as they like."""
    try:
        record = json.loads(data)
    except (ValueError, RecursionError):
        raise Unreadable("it is not JSON") from None
    if not isinstance(record, dict):
        raise Unreadable("it is not a JSON object")
    return record


_NO_MESSAGE = 2**62  # higher than any message id


def _without_held_and_paused(entry: dict[str, Any]) -> dict[str, Any]:
    """Upgrade an entry of version 1.

    Version 1 held a plain label as the answer until a time for an undo was over: such an ask is open again, and the
    label is offered. Version 1 also paused several asks that ran out of time together: such an ask gets its final call
    again, after the grace that follows each restart.
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
    # The codes of version 1 had two characters and were reused: a message from before the ask may end in the same code.
    phone["after_id"] = min(shown, default=_NO_MESSAGE) - 1
    if state.get("joining"):
        # Its parts have no dates, so a further part could not be recognised.
        state["joining"] = state["joining"] | {"offered": True}
    if state.get("phase") == "held":
        decision, options = state["decision"], entry["ask"]["questions"][0]["options"]
        label = options[decision["answers"][0]["picks"][0]]["label"]
        offer = {"question": 0, "user": decision["by"], "message_id": 0, "text": label}
        state |= {"phase": "open", "decision": None, "due_s": None, "offer": offer, "epoch": state["epoch"] + 1}
    return entry | {"state": state, "phone": phone, "timing": timing}


def in_code(response: Response) -> Answers:
    """Return the response as files and `hermes log --json` have it: a reply to a permission is a list in a list."""
    match response:
        case Once():
            return (("once",),)
        case Always():
            return (("always",),)
        case Allowed():
            return (("allowed",),)
        case Refused(why):
            return (("refused",) if why is None else ("refused", why),)
        case _:
            return response


def _decoded(answers: Answers) -> Response:
    match answers:
        case (("once",),):
            return Once()
        case (("always",),):
            return Always()
        case (("allowed",),):
            return Allowed()
        case (("refused",),):
            return Refused(None)
        case (("refused", why),):
            return Refused(why)
        case _:
            return answers


def _stored(entry: Entry) -> Entry:
    outcome = entry.state.outcome
    if outcome is None or isinstance(outcome.answers, tuple):
        return entry
    return replace(entry, state=replace(entry.state, outcome=replace(outcome, answers=in_code(outcome.answers))))


def _read(entry: Entry) -> Entry:
    outcome = entry.state.outcome
    if outcome is None:
        return entry
    if not isinstance(outcome.answers, tuple):
        raise Unreadable("entry.state.outcome.answers is not a list")
    if entry.ask.permission is None:
        return entry
    return replace(entry, state=replace(entry.state, outcome=replace(outcome, answers=_decoded(outcome.answers))))


ENTRIES = Codec("entry", Entry, (_without_held_and_paused,), stored=_stored, read=_read)
CHATS = Codec("chat", ChatMemory)
NOTICES = Codec("notice", Notice)
PROMPTS = Codec("prompt", Prompt)
CARDS = Codec("card", Card)
SERVERS = Codec("servers", Servers)
LISTS = Codec("list", MachineList)
