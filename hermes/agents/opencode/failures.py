"""Why turns failed that left nothing in the record of OpenCode: their model does not exist, say."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from hermes.agents.opencode import turns, wire
from hermes.agents.wire import shaped

MOST: Final = 200


class Failures:
    """The reason of the newest error of each session since its newest prompt, as the event stream tells it."""

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}

    def note(self, event: wire.Event) -> None:
        """Remember the reason, if the event is an error of a session."""
        session_id = event.properties.get("sessionID")
        if event.type != "session.error" or not isinstance(session_id, str):
            return
        with suppress(ValueError):  # of another shape: then the person reads that the agent did not answer
            self._reasons[session_id] = turns.reason_of(shaped(wire.MessageError, event.properties.get("error")))
        while len(self._reasons) > MOST:
            del self._reasons[next(iter(self._reasons))]

    def forget(self, session_id: str) -> None:
        """Forget the reason: another prompt is sent."""
        self._reasons.pop(session_id, None)

    def of(self, session_id: str) -> str:
        """Return the reason, "" if there is none."""
        return self._reasons.get(session_id, "")
