"""Which asks an unbroken event stream shows alive, so that nobody has to ask before an answer is sent. Pure.

A question or a permission lives from its event until anything is told that may have ended it: its reply, an idle,
failed or deleted session, a newer message of the model, a message taken back, a dispose. What is not known here is not
dead; it has to be asked for (see proof.py). A stream that breaks may have missed an end, so all is forgotten with it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

SILENT_S: Final = 45.0
"""A stream that was silent for longer than its heartbeat may be a machine that slept, with news still unread."""
_BEGINNINGS: Final = {"question.asked", "permission.asked"}
_ENDS: Final = {"question.replied", "question.rejected", "permission.replied"}
_STOPS: Final = {"session.idle", "session.error", "session.deleted", "message.removed"}
_ALL_GONE: Final = {"server.connected", "server.instance.disposed", "global.disposed"}


Moment = tuple[float, float]
"""Steady and wall clock, in seconds: the first stands still while the machine sleeps, the second may be set."""


class Living:
    """The living questions of one server; `limit` of them are remembered.

    `is_read` is False while nobody reads on: what the stream brings then is not known yet.
    """

    def __init__(self, *, limit: int = 500) -> None:
        self._limit = limit
        self._asked: OrderedDict[str, tuple[object, object]] = OrderedDict()
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._heard: Moment = (0.0, 0.0)
        self.is_read = True

    def is_alive(self, request_id: str, *, at: Moment) -> bool:
        """Tell whether this question was seen to begin, and nothing since that may have ended it."""
        silent_s = max(abs(now_s - heard_s) for now_s, heard_s in zip(at, self._heard, strict=True))
        return self.is_read and request_id in self._asked and silent_s < SILENT_S

    @property
    def heard_s(self) -> float:
        """When (wall clock) the stream last brought anything, a heartbeat at least."""
        return self._heard[1]

    def forget(self) -> None:
        """The stream broke, or begins."""
        self._asked.clear()
        self.is_read = True

    def note(self, kind: str, properties: Mapping[str, Any], *, at: Moment) -> None:
        """Take in an event."""
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
        # Told once more after its end, it does not begin again.
        if isinstance(request_id, str) and request_id not in self._ended:
            self._asked[request_id] = properties.get("sessionID"), _inner(properties, "tool").get("messageID")
            _cap(self._asked, self._limit)

    def _end(self, request_id: object) -> None:
        if isinstance(request_id, str):
            self._asked.pop(request_id, None)
            self._ended[request_id] = None
            _cap(self._ended, self._limit)

    def _stop(self, session_id: object, *, but: object = None) -> None:
        """Forget all of a session's questions that the message `but` did not ask."""
        for request_id, (session, message) in list(self._asked.items()):
            if session == session_id and (but is None or message != but):
                del self._asked[request_id]


def _inner(properties: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    inner = properties.get(key)
    return inner if isinstance(inner, dict) else {}


def _cap(where: OrderedDict[str, Any], limit: int) -> None:
    while len(where) > limit:
        where.popitem(last=False)
