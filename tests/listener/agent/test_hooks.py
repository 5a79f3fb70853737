"""The spool as the listener sees it: what is damaged is put away, what is not ours stays, and the rest goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from hermes.agents.registry import ADAPTERS
from hermes.errors import Missing, NotSaved
from hermes.hook import spool
from hermes.listener.agent.errands import Errands
from hermes.listener.agent.hooks import WaitingHooks, wait_id
from hermes.listener.agent.inbox import VERSION, Inbox
from hermes.listener.agent.intake import Intake
from hermes.model.signals import Asked, Signal, TurnEnded
from tests.asks import ask, question
from tests.at_once import all_of, at_once
from tests.listening import a_request
from tests.stores import a_store

if TYPE_CHECKING:
    from collections.abc import Callable


class Kept:
    """What came out of an inbox."""

    def __init__(self, root: Path, failing: Callable[[Signal], None] | None = None) -> None:
        self.store = a_store(root)
        at_once(self.store.open())
        self.signals: list[Signal] = []
        self.words: list[tuple[str, str]] = []
        self._failing = failing
        self.inbox = Inbox(root, self.store, ADAPTERS, cast("Intake", self), cast("Errands", self))

    async def take(self, signal: Signal) -> None:
        """Stand where the intake stands."""
        (self._failing or self.signals.append)(signal)

    async def hear_hook(self, kind: str, wait: str) -> None:
        """Stand where the errands stand."""
        self.words.append((kind, wait))

    def names(self) -> list[str]:
        """The names of what is still in the inbox."""
        return [path.name for path in spool.listing(self.store.home.root)]


def record(**changes: object) -> dict[str, object]:
    """A record as a hook drops it."""
    payload = {"type": "question.asked", "properties": a_request(), "directory": "/home/dev/project"}
    return {**spool.record("opencode", dict(payload)), **changes}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A store's folder."""
    return tmp_path / "store"


def test_records_are_taken_in_order(root: Path) -> None:
    """A question, a receipt, a farewell; then the inbox is empty."""
    kept = Kept(root)
    spool.drop(root, record())
    for word in ("receipt", "waiter.gone"):
        spool.drop(root, record(payload={"type": word, "waitID": "0123"}))
    at_once(all_of(kept.inbox.files()))
    assert [type(signal) for signal in kept.signals] == [Asked]
    assert kept.words == [("receipt", "0123"), ("waiter.gone", "0123")]
    assert kept.names() == []


@pytest.mark.parametrize(
    ("agent", "payload", "ended_s"),
    [
        ("oh-my-pi", {"session": "s1", "turn": {"id": "1", "ended": 2000}}, 2.0),
        ("claude-code", {"session_id": "s1", "hook_event_name": "Stop", "prompt_id": "1"}, 7.0),
    ],
    ids=["told", "not told"],
)
def test_a_turn_without_a_time_ended_when_its_hook_kept_the_news(
    root: Path, agent: str, payload: dict[str, object], ended_s: float
) -> None:
    """A time that the agent told stays; the host's name is added to both."""
    kept = Kept(root)
    spool.drop(root, spool.record(agent, payload) | {"at": 7.0, "host": "laptop"})
    at_once(all_of(kept.inbox.files()))
    (signal,) = kept.signals
    assert isinstance(signal, TurnEnded)
    assert (signal.turn.ended_s, signal.turn.source.host) == (ended_s, "laptop")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        json.dumps(record(agent="skynet")).encode(),
        json.dumps(record(agent=7)).encode(),
        json.dumps(record(machine=None)).encode(),
        json.dumps(record(payload=[])).encode(),
        json.dumps(record(payload={"type": "question.asked"})).encode(),
        json.dumps(record(v=0)).encode(),
        json.dumps(record(v="1")).encode(),
    ],
    ids=range(11),
)
def test_what_cannot_be_understood_goes_to_quarantine(
    root: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Whole, under a name that tells where it came from, loudly; and the next one is taken in."""
    kept = Kept(root)
    damaged = Path(spool.drop(root, record()))
    damaged.write_bytes(content)
    spool.drop(root, record())
    at_once(all_of(kept.inbox.files()))
    (put,) = kept.store.home.quarantined()
    assert put.read_bytes() == content
    assert damaged.name in put.name
    assert damaged.name in caplog.text
    assert len(kept.signals) == 1
    assert kept.names() == []


@pytest.mark.parametrize(("waits", "quarantined"), [(True, 0), (False, 1)])
def test_a_refusal_that_the_program_hears_needs_no_quarantine(
    root: Path, caplog: pytest.LogCaptureFixture, waits: bool, quarantined: int
) -> None:
    """The program has its questions still; nobody else could do anything about them."""
    kept = Kept(root)
    wrong = spool.record("generic", {"id": "0123", "questions": [3]}) | {"machine": "here"}
    spool.drop(root, wrong)
    name = spool.wait_id("generic", "here", "0123")
    if waits:
        spool.hold_wait(root, name)
    at_once(all_of(kept.inbox.files()))
    assert len(kept.store.home.quarantined()) == quarantined
    assert ("the program that asked was told" in caplog.text) == waits
    assert kept.names() == []


def test_a_newer_record_is_left_untouched_and_said_once(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is for the Hermes that will be started after the upgrade."""
    kept = Kept(root)
    newer = Path(spool.drop(root, record(v=VERSION + 1)))
    content = newer.read_bytes()
    spool.drop(root, record())
    at_once(all_of(kept.inbox.files()))
    at_once(all_of(kept.inbox.files()))
    assert kept.names() == [newer.name]
    assert newer.read_bytes() == content
    assert len(kept.signals) == 1
    assert caplog.text.count("restart the listener") == 1


def test_a_file_that_cannot_be_read_holds_up_no_other(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A folder with the name of a record, and one that another process took."""
    kept = Kept(root)
    spool.drop(root, record())
    (root / "inbox" / "0-folder.json").mkdir()
    (root / "inbox" / "0-gone.json").symlink_to(root / "nowhere")
    at_once(all_of(kept.inbox.files()))
    assert len(kept.signals) == 1
    assert "0-folder.json could not be taken in" in caplog.text


def test_an_entry_that_is_gone_holds_up_no_other_record(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What is said of it stays in the inbox, with a traceback in the log; what is behind it is taken in."""
    taken: list[Signal] = []

    def take(signal: Signal) -> None:
        if not caplog.records:
            raise Missing("there is no entry aaaa2222")
        taken.append(signal)

    kept = Kept(root, failing=take)
    first = Path(spool.drop(root, record()))
    spool.drop(root, record())
    at_once(all_of(kept.inbox.files()))
    assert len(taken) == 1
    assert kept.names() == [first.name]
    assert f"{first.name} could not be taken in" in caplog.text
    at_once(all_of(kept.inbox.files()))
    assert len(taken) == 2
    assert kept.names() == []


def test_what_could_not_be_saved_stays(root: Path) -> None:
    """The disk is full: the record, and all behind it, are taken again later."""

    def full(_: Signal) -> None:
        raise NotSaved("the disk is full")

    kept = Kept(root, failing=full)
    for _ in range(2):
        spool.drop(root, record())
    with pytest.raises(NotSaved):
        at_once(all_of(kept.inbox.files()))
    assert len(kept.names()) == 2


def test_an_answer_is_laid_ready_for_who_waits(root: Path) -> None:
    """Seen by the waiting hook alone; withdrawn, it is gone."""
    room, one = WaitingHooks(root), ask(question())
    assert not room.waiting(one)
    held = spool.hold_wait(root, wait_id(one))
    assert room.waiting(one)
    room.put(one, "the text")
    assert room.is_ready(one)
    room.withdraw(one)
    assert not room.is_ready(one)
    room.withdraw(one)
    room.put(one, "again")
    assert spool.take_answer(root, wait_id(one)) == "again"
    spool.leave_wait(root, wait_id(one), held)
    assert not room.waiting(one)


def test_a_room_that_refuses(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A file stands where the waiting room belongs: an error on the way in, a warning on the way out."""
    root, one = tmp_path / "store", ask(question())
    root.mkdir()
    (root / "wait").write_text("")
    with pytest.raises(NotSaved, match="could not be written to"):
        WaitingHooks(root).put(one, "the text")
    WaitingHooks(root).withdraw(one)
    assert "could not be removed" in caplog.text
