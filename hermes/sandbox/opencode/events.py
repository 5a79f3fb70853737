"""The parts of both scripted OpenCodes: sessions, events, faults, effects, the record of requests. No HTTP here."""

from __future__ import annotations

import copy
import secrets
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

Json = dict[str, Any]
Answers = Sequence[Sequence[str]]
Manner = Literal["old", "new"]
Action = Literal["error", "lie", "cut", "cut_after", "slow"]

_SIGNS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
# 1.18.33 sends these events a second time, in another shape.
_TWICE: Final = ("session.created", "session.deleted", "message.")


@dataclass(frozen=True, slots=True)
class Received:
    """One request as received; `body` is its JSON, or None."""

    route: str
    method: str
    path: str
    directory: str
    body: Any = None


@dataclass(slots=True)
class Fault:
    """A fault for the next `times` requests of a route: a name in `routes.ROUTES`, "events", or "*" (any).

    `error` answers `status`, `lie` answers `true` (204 to a prompt) and does nothing, `cut` breaks the connection
    before the request takes effect, `cut_after` after it, `slow` answers after `delay_s`.
    """

    route: str
    action: Action
    status: int = 500
    delay_s: float = 0.0
    times: int = 1


@dataclass(frozen=True, slots=True)
class Effect:
    """An answer that reached a waiting agent, over HTTP or from the desk; `answers` is None after a dismissal.

    For a permission, `answers` has one tuple: the reply, and the message to the model if there is one.
    """

    request_id: str
    answers: tuple[tuple[str, ...], ...] | None


@dataclass(slots=True)
class Session:
    """A session; `busy` while a turn has not ended. Version 1 keeps deleted ones: their requests stay listed."""

    id: str
    title: str
    directory: str
    parent_id: str | None
    created_ms: int
    updated_ms: int
    busy: bool = False
    deleted: bool = False
    messages: list[Json] = field(default_factory=list)


class Events:
    """The followers of the event stream (`sinks`), the held events, the queued faults, and all requests (`received`).

    Any thread may call its methods.
    """

    def __init__(self, manner: Manner, directory: str, now: Callable[[], float]) -> None:
        self.manner: Manner = manner
        self.directory = directory
        self.sessions: dict[str, Session] = {}
        self.effects: list[Effect] = []
        self.lock = threading.RLock()
        self.doubles_events = False
        self.received: list[Received] = []
        self.faults: list[Fault] = []
        self.sinks: set[Callable[[Json | None], None]] = set()
        self._held_events: list[Json] | None = None
        self._now = now
        self._last_ms = 0

    def is_active(self, session: str) -> bool:
        """Tell whether the session's turn has not ended."""
        return self.sessions[session].busy

    def came_of(self, request_id: str) -> list[Answers | None]:
        """Return the answers of every effect of this request, see `Effect`."""
        with self.lock:
            return [effect.answers for effect in self.effects if effect.request_id == request_id]

    def now_ms(self) -> int:
        """Return the epoch milliseconds, never the same value twice, because messages are told apart by it."""
        self._last_ms = max(self._last_ms + 1, int(self._now() * 1000))
        return self._last_ms

    # --- faults ---------------------------------------------------------------------------------------------------

    def fault(
        self, route: str, action: Action = "error", *, status: int = 500, delay_s: float = 0.0, times: int = 1
    ) -> None:
        """Queue a fault, see `Fault`."""
        with self.lock:
            self.faults.append(Fault(route, action, status, delay_s, times))

    def clear_faults(self) -> None:
        """Remove the queued faults."""
        with self.lock:
            self.faults.clear()

    def cut_events(self) -> None:
        """Break every event stream and drop the held events; a follower gets no event before it connects again."""
        with self.lock:
            self._held_events = None if self._held_events is None else []
            for sink in tuple(self.sinks):
                sink(None)

    def hold_events(self) -> None:
        """Hold events back until `release_events`."""
        with self.lock:
            self._held_events = self._held_events or []

    def release_events(self, *, lost: bool = False, backwards: bool = False) -> None:
        """Send the held events, in order or (`backwards`) the last first; or drop them (`lost`)."""
        with self.lock:
            held, self._held_events = self._held_events or [], None
            for event in () if lost else reversed(held) if backwards else held:
                self._send(event)

    def double_events(self, *, on: bool) -> None:
        """Send every event twice, or stop doing so."""
        self.doubles_events = on

    def request_count(self) -> int:
        """Return the number of requests so far."""
        return len(self.received)

    def take_fault(self, route: str) -> Fault | None:
        """Return the fault of this request, or None, and count its `times` down."""
        with self.lock:
            for fault in self.faults:
                if fault.route in {"*", route}:
                    fault.times -= 1
                    if fault.times <= 0:
                        self.faults.remove(fault)
                    return fault
            return None

    # --- events -----------------------------------------------------------------------------------------------------

    def emit(self, kind: str, properties: Json, directory: str = "") -> None:
        """Send an event to all followers, or hold it back; later changes of `properties` do not change the event."""
        event: Json = {"payload": self.payload(kind, copy.deepcopy(properties))}
        if directory:
            event["directory"] = directory
            if self.manner == "new":
                event["project"] = "global"
        self._hold_or_send(event)

    def _hold_or_send(self, event: Json) -> None:
        with self.lock:
            if self._held_events is not None:
                self._held_events.append(event)
            else:
                self._send(event)

    def payload(self, kind: str, properties: Json) -> Json:
        """Return one event in the shape of this version."""
        told: Json = {"type": kind, "properties": properties}
        return told if self.manner == "old" else {"id": self.new_id("evt"), **told}

    def _send(self, event: Json) -> None:
        payload = event["payload"]
        twins = [event]
        if self.manner == "new" and payload["type"].startswith(_TWICE):
            inner = {"id": payload["id"], "seq": 0, "type": f"{payload['type']}.1", "data": payload["properties"]}
            twins.append({**event, "payload": {"id": payload["id"], "type": "sync", "syncEvent": inner}})
        for sink in tuple(self.sinks):
            for one in twins * (2 if self.doubles_events else 1):
                sink(one)

    def new_id(self, kind: str) -> str:
        """Return an id of OpenCode's form: `kind`, "_" and 26 characters."""
        return f"{kind}_" + "".join(secrets.choice(_SIGNS) for _ in range(26))
