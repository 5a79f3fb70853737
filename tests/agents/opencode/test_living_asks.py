"""What the event stream shows alive, and everything after which it has to be asked for."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.agents.opencode.stream_memory import SILENT_S, Living
from tests.agents.opencode.recorded import Json

ASKED: Json = {"id": "que_1", "sessionID": "ses_1", "tool": {"messageID": "msg_1", "callID": "call_1"}}


def at(now_s: float) -> tuple[float, float]:
    """A moment on both clocks."""
    return now_s, 1_757_000_000.0 + now_s


@pytest.fixture
def living() -> Living:
    """A stream that has told of one question."""
    ready = Living(limit=3)
    ready.note("question.asked", ASKED, at=at(100.0))
    return ready


def test_a_question_lives_from_its_event(living: Living) -> None:
    """One that was never told of is not known."""
    assert living.is_alive("que_1", at=at(100.0))
    assert not living.is_alive("que_2", at=at(100.0))


@pytest.mark.parametrize(
    ("kind", "properties"),
    [
        ("question.replied", {"requestID": "que_1", "answers": [["A"]]}),
        ("question.rejected", {"requestID": "que_1"}),
        ("session.idle", {"sessionID": "ses_1"}),
        ("session.status", {"sessionID": "ses_1", "status": {"type": "idle"}}),
        ("session.error", {"sessionID": "ses_1", "error": {}}),
        ("session.deleted", {"info": {"id": "ses_1"}}),
        ("message.removed", {"sessionID": "ses_1", "messageID": "msg_1"}),
        ("message.updated", {"info": {"id": "msg_2", "role": "assistant", "sessionID": "ses_1"}}),
        ("server.connected", {}),
        ("server.instance.disposed", {"directory": "/x"}),
    ],
)
def test_whatever_may_have_ended_it_is_believed(living: Living, kind: str, properties: Json) -> None:
    """Then the server is asked, which is never wrong."""
    living.note(kind, properties, at=at(101.0))
    assert not living.is_alive("que_1", at=at(101.0))


@pytest.mark.parametrize(
    ("kind", "properties"),
    [
        ("question.replied", {"requestID": "que_9", "answers": [["A"]]}),
        ("question.replied", {"requestID": ["que_1"]}),
        ("session.idle", {"sessionID": "ses_9"}),
        ("session.status", {"sessionID": "ses_1", "status": {"type": "busy"}}),
        ("message.updated", {"info": {"id": "msg_1", "role": "assistant", "sessionID": "ses_1"}}),
        ("message.updated", {"info": {"id": "msg_2", "role": "user", "sessionID": "ses_1"}}),
        ("message.updated", {"info": "x"}),
        ("server.heartbeat", {}),
    ],
)
def test_what_happens_elsewhere_ends_nothing(living: Living, kind: str, properties: Any) -> None:
    """Nor does its own message, a queued prompt, or garbage."""
    living.note(kind, properties, at=at(101.0))
    assert living.is_alive("que_1", at=at(101.0))


def test_a_late_word_of_its_beginning_revives_nothing(living: Living) -> None:
    """Events that come twice, or in another order."""
    living.note("question.replied", {"requestID": "que_1"}, at=at(101.0))
    living.note("question.asked", ASKED, at=at(101.0))
    assert not living.is_alive("que_1", at=at(101.0))


def test_a_broken_or_silent_stream_shows_nothing(living: Living) -> None:
    """A listener that slept has not read yet what happened meanwhile."""
    assert not living.is_alive("que_1", at=at(100.0 + SILENT_S))
    living.note("server.heartbeat", {}, at=at(200.0))
    assert living.is_alive("que_1", at=at(200.0))
    living.forget()
    assert not living.is_alive("que_1", at=at(200.0))


def test_the_oldest_are_forgotten(living: Living) -> None:
    """Whatever an agent does, memory stays small."""
    for number in range(2, 5):
        living.note("question.asked", {**ASKED, "id": f"que_{number}"}, at=at(101.0))
        living.note("question.replied", {"requestID": f"old_{number}"}, at=at(101.0))
        living.note("question.replied", {"requestID": f"older_{number}"}, at=at(101.0))
    assert [living.is_alive(f"que_{number}", at=at(101.0)) for number in range(1, 5)] == [False, True, True, True]


def test_a_machine_that_slept_shows_nothing(living: Living) -> None:
    """The steady clock stood still, the one on the wall did not."""
    assert not living.is_alive("que_1", at=(101.0, 1_757_003_600.0))


def test_what_nobody_reads_shows_nothing(living: Living) -> None:
    """The end may lie behind the event that is being taken in."""
    living.is_read = False
    assert not living.is_alive("que_1", at=at(100.0))
