"""Two changes of one entry at the same time, with a store that lets others run before and after each call."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from hermes.agents.registry import ADAPTERS
from hermes.chat.screens.screen import Look
from hermes.config.settings import Matching
from hermes.core.answer_clock import GRACE_S, AnswerableClock, AnswerTimes
from hermes.errors import Conflict
from hermes.listener.agent.errands import Errands
from hermes.listener.agent.hooks import WaitingHooks
from hermes.listener.entries import Entries
from hermes.listener.phone.chat_memory import Memory
from hermes.listener.phone.machines import Machines
from hermes.listener.phone.timekeeper import Timekeeper
from hermes.model.actions import KeepWaiting, Pick
from hermes.model.chat_memory import ChatMemory
from hermes.model.entry import Side
from hermes.model.errand import NewsCame
from hermes.model.events import Ended, Tapped
from hermes.model.signals import Replied
from hermes.sandbox.yielding_store import YieldingStore
from hermes.storage.home import Home
from tests.asks import ANN, CHAT_ID, ask, question
from tests.books import TTL_S, commands_of, entry_of
from tests.listener.gates import held

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes.listener.phone.messenger import Messenger
    from hermes.model.entry import Entry

NOW_S = 1_757_000_000.0
LOOK = Look(tz=UTC, group=False, context_chars=600)


class Book:
    """The open asks of a yielding store, and a clock that a test sets."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.steady_s = 0.0
        clock = AnswerableClock(0.0, monotonic=lambda: self.steady_s)
        self.times = AnswerTimes(clock, ttl_s=TTL_S, now=lambda: NOW_S)
        self.entries = Entries(YieldingStore(Home(root, now=lambda: NOW_S)), self.times, chat_id=CHAT_ID)

    async def asked(self) -> Entry:
        """An ask that is on the phone."""
        await self.entries.open()
        one = ask(question())
        source = replace(one.source, request_id=f"que_{len(self.entries.all()) + 1}")
        entry = await self.entries.create(replace(one, source=source))
        timing = replace(self.times.started(entry), posted_s=NOW_S, called=True)
        phone = replace(entry.phone, message_id=500, sides=(Side("final_call", 501),))
        return await self.entries.change(entry.id, lambda found: replace(found, timing=timing, phone=phone))

    async def saved(self, entry: Entry) -> Entry:
        """The entry as another process reads it."""
        return await self.entries.store.get(entry.id)


@pytest.fixture
def book(tmp_path: Path) -> Book:
    """No ask yet."""
    return Book(tmp_path / "store")


def with_trail(words: str) -> Callable[[Entry], Entry]:
    """A change that adds a line to the trail."""
    return lambda found: replace(found, trail=(*found.trail, words))


async def test_changes_take_turns(book: Book) -> None:
    """None of them is lost, and memory shows what is on disk."""
    entry = await book.asked()
    await asyncio.gather(*(book.entries.change(entry.id, with_trail(str(number))) for number in range(20)))
    now = entry_of(book.entries, entry.id)
    assert sorted(now.trail, key=int) == [str(number) for number in range(20)]
    assert await book.saved(entry) == now


async def test_a_decision_about_an_older_entry_changes_nothing(book: Book) -> None:
    """It was made before another change, which was being saved."""
    entry = await book.asked()
    first, late = await asyncio.gather(
        book.entries.change(entry.id, with_trail("first"), seen=entry),
        book.entries.change(entry.id, with_trail("late"), seen=entry),
        return_exceptions=True,
    )
    assert isinstance(late, Conflict)
    assert await book.saved(entry) == first == entry_of(book.entries, entry.id)


async def test_an_entry_that_changes_is_not_closed(book: Book) -> None:
    """Its new screen must be shown first; and of two that close it, one does."""
    entry = await book.asked()
    await book.entries.apply(entry.id, Ended(NOW_S, "gone"))
    seen = entry_of(book.entries, entry.id)
    changed, is_closed = await asyncio.gather(
        book.entries.change(entry.id, with_trail("more")), book.entries.close(seen)
    )
    assert not is_closed
    first, second = await asyncio.gather(book.entries.close(changed), book.entries.close(changed))
    assert (first, second) == (True, False)
    assert book.entries.get(entry.id) is None
    assert [one.id for one in book.entries.recently_closed] == [entry.id]


async def test_open_posts_no_ask_again_that_ended_meanwhile(book: Book) -> None:
    """It ended while the one before it was being saved."""
    await book.asked(), await book.asked()
    first, second = book.entries.all()  # asked in one moment, so that their random ids decide which is first
    commands = commands_of(book.entries, LOOK, cast("Messenger", None))
    async with held(book.entries.store, "change") as gate:
        posting = asyncio.create_task(commands._post_again())
        await gate.begun()
        await book.entries.apply(second.id, Ended(NOW_S, "gone"))
    await posting
    assert entry_of(book.entries, first.id).phone.message_id is None
    assert entry_of(book.entries, second.id).phone.message_id is not None


async def test_at_rest_is_after_the_changes_under_way(book: Book) -> None:
    """Whoever waits for it reads what they wrote."""
    entry = await book.asked()
    saving = [asyncio.create_task(book.entries.change(entry.id, with_trail(str(number)))) for number in range(3)]
    await asyncio.sleep(0)
    await book.entries.at_rest()
    assert all(task.done() for task in saving)


async def test_news_that_meets_a_tap_is_decided_again(book: Book) -> None:
    """The agent was answered at the desk while a tap was being saved: the tap's answer is not sent any more."""
    entry = await book.asked()
    errands = Errands(book.entries, {}, WaitingHooks(book.root), ADAPTERS, Matching(), monotonic=lambda: 0.0)
    news = NewsCame(Replied("que_1", "ses_1", (("PostgreSQL",),)))
    tap = Tapped(1, NOW_S, ANN, Pick(0, 1), entry.state.epoch)
    await asyncio.gather(book.entries.apply(entry.id, tap), errands.tell(entry.id, news))
    now = await book.saved(entry)
    assert now.state.phase == "settled"
    assert now.state.outcome is not None
    assert now.state.decision is not None, "the tap came first"
    assert now == entry_of(book.entries, entry.id)


async def test_a_tap_that_asks_to_wait_meets_the_end_of_the_time(book: Book, caplog: pytest.LogCaptureFixture) -> None:
    """The person was first: the ask stays open, with its new time, and nothing is an error."""
    entry = await book.asked()
    said = cast("Messenger", SimpleNamespace(say=lambda *_: None))
    machines, memory = Machines(book.entries.store, monotonic=lambda: 0.0), Memory(book.entries.store, ChatMemory(7))
    timekeeper = Timekeeper(book.entries, book.times, LOOK, said, machines, memory)
    await timekeeper.tick(answerable=True)
    while (book.times.clock.left_s(entry.timing) or 0.0) > 0.0:
        book.steady_s += 20.0
        book.times.clock.tick(answerable=True)
    keep: Any = Tapped(1, NOW_S, ANN, KeepWaiting(3600), entry.state.epoch)
    await asyncio.gather(book.entries.apply(entry.id, keep), timekeeper.tick(answerable=True))
    await timekeeper.tick(answerable=True)
    now = await book.saved(entry)
    assert (now.state.phase, now.state.decision) == ("open", None)
    assert (book.times.clock.left_s(now.timing) or 0.0) > GRACE_S
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
