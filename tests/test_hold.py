"""Many asks that ran out of time together: held, asked about once, and ended or kept by one word."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC
from typing import TYPE_CHECKING, Any, cast

import pytest

from hermes.book import Book
from hermes.chat.outbox import Outbox
from hermes.chat.screen import Look, Screen
from hermes.codec import Hold
from hermes.errors import NotSaved
from hermes.expiry import AnswerableClock
from hermes.memory import Memory
from hermes.model import Entry, Side
from hermes.settings import Questions
from hermes.store import Store
from hermes.timekeeper import Timekeeper
from tests.asks import CHAT_ID, ask, question

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

TTL_S = 1800.0


class Sent:
    """What stands where the outbox stands: messages get ids from 1 on; a send may be held until it is let go."""

    def __init__(self) -> None:
        self.texts: dict[int, str] = {}
        self.deleted: list[int] = []
        self.let_go = asyncio.Event()
        self.let_go.set()
        self.under_way = asyncio.Event()

    async def send(self, _: int, screen: Screen, **__: Any) -> int:
        message_id = len(self.texts) + 1
        self.texts[message_id] = screen.text
        self.under_way.set()
        await self.let_go.wait()
        return message_id

    async def discard(self, _: int, message_id: int) -> None:
        self.deleted.append(message_id)


class Room:
    """A timekeeper with its book and its memory; nothing else runs."""

    def __init__(self, root: Path) -> None:
        self.now_s = 1_757_000_000.0
        self.store = Store(root)
        self.store.open()
        self.memory = Memory(self.store, 7)
        self.sent = Sent()
        self.tasks: set[asyncio.Task[None]] = set()
        self.time = Timekeeper(
            self.memory,
            cast("Outbox", self.sent),
            Look(tz=UTC, group=False, context_chars=600),
            Questions(),
            spawn=self.spawn,
            now=lambda: self.now_s,
            monotonic=lambda: self.now_s,
        )
        self.book = Book(
            self.store,
            chat_id=CHAT_ID,
            now=lambda: self.now_s,
            retimed=self.time.retimed,
            on_change=lambda _: None,
        )

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run it beside."""
        self.tasks.add(asyncio.get_running_loop().create_task(work))

    async def settled(self) -> None:
        """Let all that runs beside come to its end."""
        while any(not task.done() for task in self.tasks):
            await asyncio.gather(*self.tasks)
        for task in self.tasks:
            task.result()

    def asked(self, count: int) -> list[Entry]:
        """So many asks that are on the phone, with their final call."""

        def posted(entry: Entry) -> Entry:
            call = (Side("final_call", 900, "x"),)
            timing = replace(self.time.started(entry), called=True)
            return replace(entry, timing=timing, phone=replace(entry.phone, message_id=500, sides=call))

        return [self.book.change(self.book.create(ask(question())).id, posted) for _ in range(count)]

    def run_out(self) -> None:
        """Let their whole time pass."""
        self.pass_time(TTL_S - 20)
        self.tick(20)

    def pass_time(self, seconds: float) -> None:
        """Let answerable time pass before anybody looks."""
        self.time.clock.counted_s += seconds

    def tick(self, seconds: float) -> None:
        """Let time pass, and look."""
        self.now_s += seconds
        self.time.tick(self.book, answerable=True)

    def paused(self) -> list[bool]:
        """Which of the open asks are held."""
        return [entry.timing.paused for entry in self.book.entries()]

    def hold(self) -> Hold:
        """The hold there is."""
        assert self.memory.at.hold is not None
        return self.memory.at.hold


@pytest.fixture
def room(tmp_path: Path) -> Room:
    """A timekeeper whose clock has just begun."""
    made = Room(tmp_path / "store")
    made.time.clock = AnswerableClock(1000.0, monotonic=lambda: made.now_s)
    return made


async def test_three_are_held_and_asked_about_once(room: Room) -> None:
    """What is held is known on disk, and by which message; two are no crowd."""
    room.asked(3)
    room.run_out()
    await room.settled()
    assert room.paused() == [True] * 3
    assert list(room.sent.texts) == [1]
    kept = room.store.load_chat(7).hold
    assert kept is not None
    assert (kept.message_id, len(kept.entry_ids)) == (1, 3)


async def test_two_are_no_crowd(room: Room) -> None:
    """Each ends by itself."""
    room.asked(2)
    room.run_out()
    assert [entry.state.phase for entry in room.book.entries()] == ["sending"] * 2
    assert room.memory.at.hold is None


async def test_a_hold_that_was_not_saved_holds_nothing(room: Room) -> None:
    """The disk is full: an ask that is held by nothing would never expire; with room all is as it should be."""
    room.asked(3)
    place = room.store.root / "telegram.json"
    place.mkdir()
    with pytest.raises(NotSaved):
        room.run_out()
    assert room.paused() == [False] * 3
    place.rmdir()
    room.tick(1)
    await room.settled()
    assert room.paused() == [True] * 3
    assert len(room.hold().entry_ids) == 3


async def test_the_word_on_an_older_question_changes_nothing(room: Room) -> None:
    """It spoke of fewer asks than are held now."""
    room.asked(3)
    room.run_out()
    await room.settled()
    room.asked(3)
    room.run_out()
    await room.settled()
    assert room.sent.deleted == [1]
    assert not room.time.hold_answered(room.book, "go", 1)
    assert room.paused() == [True] * 6
    assert room.time.hold_answered(room.book, "go", 2)
    assert {entry.state.phase for entry in room.book.entries()} == {"sending"}
    assert not room.time.hold_answered(room.book, "go", 2)
    await room.settled()
    assert room.sent.deleted == [1, 2]


async def test_a_question_that_speaks_of_too_few_is_taken_away(room: Room) -> None:
    """More were held while it was on its way to the phone: one question is left, about all of them."""
    room.sent.let_go.clear()
    room.asked(3)
    room.run_out()
    await room.sent.under_way.wait()
    room.asked(3)
    room.run_out()
    room.sent.let_go.set()
    await room.settled()
    left = set(room.sent.texts) - set(room.sent.deleted)
    assert len(left) == 1
    assert room.hold().message_id in left
    assert "6 questions" in room.sent.texts[left.pop()]
    assert "3 questions" in room.sent.texts[1]


async def test_a_word_that_overtakes_its_question_counts(room: Room) -> None:
    """Decided before its sending was confirmed: the question goes, and nothing is noted any more."""
    room.sent.let_go.clear()
    room.asked(3)
    room.run_out()
    await room.sent.under_way.wait()
    assert room.time.hold_answered(room.book, "keep", 1)
    room.sent.let_go.set()
    await room.settled()
    assert room.memory.at.hold is None
    assert room.paused() == [False] * 3
    assert set(room.sent.deleted) == {1}


async def test_after_a_stand_the_phone_shows_the_true_end(room: Room) -> None:
    """Telegram was away for an hour: what the phone says of the end is made right once the clock runs again."""
    (one,) = room.asked(1)
    room.tick(20)
    for _ in range(180):
        room.now_s += 20
        room.time.tick(room.book, answerable=False)
    assert room.book.entries()[0].timing.until_s == one.timing.until_s
    room.tick(20)
    until_s = room.book.entries()[0].timing.until_s
    left_s = room.time.clock.left_s(one.timing)
    assert left_s is not None
    assert until_s == pytest.approx(room.now_s + left_s)
    assert left_s == pytest.approx(TTL_S - 40)


async def test_what_only_the_desk_can_answer_leaves_the_phone_in_time(room: Room) -> None:
    """No call, no word of a timer: it is released."""
    made = room.book.create(replace(ask(question()), answerable=False))
    room.book.change(made.id, lambda entry: replace(entry, timing=room.time.started(entry)))
    room.pass_time(TTL_S - 30)
    room.tick(20)
    assert [entry.timing.called for entry in room.book.entries()] == [False]
    room.tick(20)
    (entry,) = room.book.entries()
    assert entry.state.outcome is not None
    assert entry.state.outcome.kind == "expired"
    assert entry.state.decision is not None
    assert entry.state.decision.kind == "release"
