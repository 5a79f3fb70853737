"""Remember which asks an unbroken event stream shows alive, so that an answer can be sent without a check. Pure.

A question or a permission is alive from its event until an event that may have ended it: its reply, an idle, retrying,
failed or deleted session, a newer message of the model, a removed message, a dispose. An ask that is unknown here is
not necessarily dead; the server must be asked (see proof.py). If the stream breaks, an end may have been missed, so
that all asks are forgotten.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

SILENT_S: Final = 45.0
"""Longer than any heartbeat interval. After more silence the machine may have slept, and events may still be unread."""
_BEGINNINGS: Final = {"question.asked", "permission.asked"}
_ENDS: Final = {"question.replied", "question.rejected", "permission.replied"}
_STOPS: Final = {"session.idle", "session.error", "session.deleted", "message.removed"}
_ALL_GONE: Final = {"server.connected", "server.instance.disposed", "global.disposed"}


Moment = tuple[float, float]
"""Monotonic and wall clock, in seconds: the first stops while the machine sleeps, the second can be set."""


class Living:
    """The questions and permissions of one server that are alive, at most `limit` of them.

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
            self._asked[request_id] = properties.get("sessionID"), _inner(properties, "tool").get("messageID")
            _cap(self._asked, self._limit)

    def _end(self, request_id: object) -> None:
        if isinstance(request_id, str):
            self._asked.pop(request_id, None)
            self._ended[request_id] = None
            _cap(self._ended, self._limit)

    def _stop(self, session_id: object, *, but: object = None) -> None:
        """Forget all asks of a session, except those of the message `but`."""
        for request_id, (session, message) in list(self._asked.items()):
            if session == session_id and (but is None or message != but):
                del self._asked[request_id]


def _inner(properties: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    inner = properties.get(key)
    return inner if isinstance(inner, dict) else {}


def _cap(where: OrderedDict[str, Any], limit: int) -> None:
    while len(where) > limit:
        where.popitem(last=False)
