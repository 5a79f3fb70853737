"""The reasons of failures that OpenCode tells in events alone."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.agents.opencode.stream_memory import StreamMemory
from hermes.agents.opencode.wire import Event
from hermes.agents.wire import shaped


def event(kind: str = "session.error", **properties: Any) -> Event:
    """An event of the stream."""
    payload = {"type": kind, "properties": properties}
    return shaped(Event, {"directory": "/home/dev/shop", "payload": payload})


def error(message: str) -> dict[str, Any]:
    """An error in OpenCode's shape."""
    return {"name": "UnknownError", "data": {"message": message}}


def test_the_newest_reason_of_a_session_is_known_until_the_next_prompt() -> None:
    """Each session has its own."""
    memory = StreamMemory()
    for said in ("First", "Model not found: nowhere/nothing"):
        memory.note(event(sessionID="ses_1", error=error(said)))
    assert memory.failure("ses_1") == "Model not found: nowhere/nothing"
    assert not memory.failure("ses_2")
    memory.forget_failure("ses_1")
    memory.forget_failure("ses_1")
    assert not memory.failure("ses_1")


@pytest.mark.parametrize(
    "other",
    [
        event("session.idle", sessionID="ses_1", error=error("x")),
        event(error=error("x")),
        event(sessionID=5, error=error("x")),
        event(sessionID="ses_1"),
        event(sessionID="ses_1", error="x"),
    ],
)
def test_what_is_no_error_of_a_session_changes_nothing(other: Event) -> None:
    """Nor an error of another shape."""
    memory = StreamMemory()
    memory.note(other)
    assert not memory.failure("ses_1")


def test_memory_does_not_grow_with_the_sessions() -> None:
    """The oldest reasons go first."""
    memory = StreamMemory(limit=200)
    for number in range(203):
        memory.note(event(sessionID=f"ses_{number}", error=error("x")))
    assert not memory.failure("ses_2")
    assert memory.failure("ses_3") == memory.failure("ses_202") == "x"
