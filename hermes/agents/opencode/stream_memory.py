"""Remember facts from the event stream: titles, last texts and failures of sessions, replies, and which asks are alive.

All of this is capped, and any of it may be missing, because the stream has no replay of events before the subscription.
A reply that is remembered here only counts together with other evidence (see proof.py). The rest saves requests to the
server.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from hermes.agents.opencode.turns import reason_of
from hermes.agents.opencode.wire import Delta, Event, Info, MessageError, Part, Session
from hermes.agents.wire import shaped
from hermes.model.answer import Response
from hermes.model.ask import Source
from hermes.model.signals import Replied

T = TypeVar("T")
_PARTS = 20
SILENT_S: Final = 45.0
"""Longer than any heartbeat interval. After more silence the machine may have slept, and events may still be unread."""
_BEGINNINGS: Final = {"question.asked", "permission.asked"}
_ENDS: Final = {"question.replied", "question.rejected", "permission.replied"}
_STOPS: Final = {"session.idle", "session.error", "session.deleted", "message.removed"}
_ALL_GONE: Final = {"server.connected", "server.instance.disposed", "global.disposed"}

Moment = tuple[float, float]
"""Monotonic and wall clock, in seconds: the first stops while the machine sleeps, the second can be set."""


@dataclass(slots=True)
class _Words:
    """The model's newest message in a session: its texts and call ids so far, and the text before it (`before`)."""

    message_id: str
    created_ms: float
    before: str = ""
    texts: OrderedDict[str, str] = field(default_factory=OrderedDict)
    calls: OrderedDict[str, None] = field(default_factory=OrderedDict)

    def said(self) -> str:
        return "\n\n".join(self.texts.values()).strip() or self.before


class StreamMemory:
    """Facts about at most `limit` sessions and `limit` replies; of each text, the last `longest` characters."""

    def __init__(self, *, limit: int = 500, longest: int = 3000) -> None:
        self._limit = limit
        self.longest = longest
        self._infos: OrderedDict[str, Session] = OrderedDict()
        self._words: OrderedDict[str, _Words] = OrderedDict()
        self._replies: OrderedDict[str, Response] = OrderedDict()
        self._failures: OrderedDict[str, str] = OrderedDict()
        self._notes: Mapping[str, Callable[[Mapping[str, Any]], None]] = {
            "session.created": self._note_session,
            "session.updated": self._note_session,
            "session.deleted": self._note_deleted,
            "session.error": self._note_failure,
            "message.updated": self._note_message,
            "message.part.updated": self._note_part,
            "message.part.delta": self._note_delta,
        }

    def note(self, event: Event) -> None:
        """Remember the facts of an event; most events have none.

        Raises:
            ValueError: its properties have another shape.
        """
        if event.type in self._notes:
            self._notes[event.type](event.properties)

    def note_reply(self, signal: Replied) -> None:
        """Remember the reply to a request."""
        self._put(self._replies, signal.request_id, signal.answers)

    # look-ups; None means "not known here", never a failure

    def info(self, session_id: str) -> Session | None:
        """Return the session, with its title, parent and directory."""
        return self._infos.get(session_id)

    def last_text(self, source: Source) -> str | None:
        """Return the model's last text before this ask: of the message that asked, else of an earlier one.

        It is None until the stream has brought the asking call: in 1.1.53 the call, and the text in front of it, come
        after `question.asked`.
        """
        words = self._words.get(source.session_id)
        if words is None or words.message_id != source.message_id or source.call_id not in words.calls:
            return None
        return words.said()[-self.longest :] or None

    def reply(self, request_id: str) -> Response | None:
        """Return the reply to this request that the stream reported."""
        return self._replies.get(request_id)

    def failure(self, session_id: str) -> str | None:
        """Return the reason of the newest error of the session; it may leave nothing in the record of OpenCode."""
        return self._failures.get(session_id)

    def forget_failure(self, session_id: str) -> None:
        """Forget the reason: another prompt is sent."""
        self._failures.pop(session_id, None)

    def keep(self, info: Session) -> None:
        """Remember a session, from an event or from the server's answer."""
        self._put(self._infos, info.id, info)

    # events

    def _note_session(self, properties: Mapping[str, Any]) -> None:
        self.keep(shaped(Session, properties.get("info")))

    def _note_deleted(self, properties: Mapping[str, Any]) -> None:
        gone = shaped(Session, properties.get("info")).id
        self._infos.pop(gone, None)
        self._words.pop(gone, None)
        self._failures.pop(gone, None)

    def _note_failure(self, properties: Mapping[str, Any]) -> None:
        session_id = properties.get("sessionID")
        if isinstance(session_id, str):
            with suppress(ValueError):  # of another shape: then the person reads that the agent did not answer
                reason = reason_of(shaped(MessageError, properties.get("error")))
                self._put(self._failures, session_id, reason)

    def _note_message(self, properties: Mapping[str, Any]) -> None:
        info = shaped(Info, properties.get("info"))
        if info.role != "assistant":
            return
        now = self._words.get(info.session_id)
        if now is None:
            self._put(self._words, info.session_id, _Words(info.id, info.time.created))
        elif info.id != now.message_id and info.time.created >= now.created_ms:
            self._put(self._words, info.session_id, _Words(info.id, info.time.created, now.said()))

    def _note_part(self, properties: Mapping[str, Any]) -> None:
        part = shaped(Part, properties.get("part"))
        words = self._words.get(part.session_id)
        if words is None or words.message_id != part.message_id:
            return
        if part.type == "tool":
            _put(words.calls, part.call_id, None, _PARTS)
        elif part.type == "text":
            _put(words.texts, part.id, part.text[-self.longest :], _PARTS, move=False)

    def _note_delta(self, properties: Mapping[str, Any]) -> None:
        delta = shaped(Delta, properties)
        words = self._words.get(delta.session_id)
        # Reasoning also comes as deltas of a "text" field; only parts that were announced as texts count.
        if words is not None and delta.field == "text" and delta.part_id in words.texts:
            words.texts[delta.part_id] = (words.texts[delta.part_id] + delta.delta)[-self.longest :]

    def _put(self, where: OrderedDict[str, T], key: str, value: T) -> None:
        _put(where, key, value, self._limit)


class Living:
    """The questions and permissions of one server that an unbroken event stream shows alive, at most `limit` of them.

    The answer to one of them can be sent without a check. An ask is alive from its event until an event that may have
    ended it: its reply, an idle, retrying, failed or deleted session, a newer message of the model, a removed message,
    a dispose. An ask that is unknown here is not necessarily dead; the server must be asked (see proof.py). If the
    stream breaks, an end may have been missed, so that all asks are forgotten.

    `is_read` is False while the reader of the stream is paused: the stream may then hold events that are not noted yet.
    """

    def __init__(self, *, limit: int = 500) -> None:
        self._limit = limit
        self._asked: OrderedDict[str, tuple[object, object]] = OrderedDict()
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._heard: Moment = (0.0, 0.0)
        self.is_read = True

    def is_alive(self, request_id: str, *, at: Moment) -> bool:
        """Tell whether this ask began, no event since then may have ended it, and the stream is up to date."""
        silent_s = max(abs(now_s - heard_s) for now_s, heard_s in zip(at, self._heard, strict=True))
        return self.is_read and request_id in self._asked and silent_s < SILENT_S

    def forget(self) -> None:
        """Forget all living asks, because the stream broke or begins."""
        self._asked.clear()
        self.is_read = True

    def note(self, kind: str, properties: Mapping[str, Any], *, at: Moment) -> None:
        """Update the living asks with an event."""
        self._heard = at
        if kind in _BEGINNINGS:
            self._begin(properties)
        elif kind in _ENDS:
            self._end(properties.get("requestID"))
        elif kind in _ALL_GONE:
            self.forget()
        elif kind in _STOPS or (kind == "session.status" and _inner(properties, "status").get("type") != "busy"):
            self._stop(properties.get("sessionID") or _inner(properties, "info").get("id"))
        elif kind == "message.updated":
            info = _inner(properties, "info")
            if info.get("role") == "assistant":
                self._stop(info.get("sessionID"), but=info.get("id"))

    def _begin(self, properties: Mapping[str, Any]) -> None:
        request_id = properties.get("id")
        # An ask does not begin again if its event is repeated after its end.
        if isinstance(request_id, str) and request_id not in self._ended:
            asking = properties.get("sessionID"), _inner(properties, "tool").get("messageID")
            _put(self._asked, request_id, asking, self._limit)

    def _end(self, request_id: object) -> None:
        if isinstance(request_id, str):
            self._asked.pop(request_id, None)
            _put(self._ended, request_id, None, self._limit)

    def _stop(self, session_id: object, *, but: object = None) -> None:
        """Forget all asks of a session, except those of the message `but`."""
        for request_id, (session, message) in list(self._asked.items()):
            if session == session_id and (but is None or message != but):
                del self._asked[request_id]


def _inner(properties: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    inner = properties.get(key)
    return inner if isinstance(inner, dict) else {}


def _put(where: OrderedDict[str, T], key: str, value: T, limit: int, *, move: bool = True) -> None:
    where[key] = value
    if move:
        where.move_to_end(key)
    while len(where) > limit:
        where.popitem(last=False)
