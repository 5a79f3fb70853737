"""What a durable change costs, whatever else is open."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from hermes import disk
from hermes.chat.bot import Bot
from hermes.chat.outbox import Outbox
from hermes.chat.screens.screen import Look
from hermes.core.answer_clock import AnswerableClock, AnswerTimes
from hermes.listener.background import Background
from hermes.listener.entries import Entries
from hermes.listener.phone.chat_memory import Memory
from hermes.listener.phone.machines import Machines
from hermes.listener.phone.messenger import Messenger
from hermes.listener.phone.timekeeper import Timekeeper
from hermes.model.actions import Pick
from hermes.model.answer import Answer
from hermes.model.chat_memory import ChatMemory
from hermes.model.entry import Entry, Phone, Timing
from hermes.model.events import Tapped
from hermes.model.state import State
from hermes.storage.codec import ENTRIES
from tests.asks import ANN, CHAT_ID, ask, question
from tests.at_once import at_once
from tests.bench.figures import Effort, Figure, middle_ms, ms, ratios
from tests.books import link_of
from tests.stores import a_store

TOKEN = f"{1234567890}:{'x' * 35}"


def figures(effort: Effort) -> tuple[Figure, ...]:
    """Return what is to be measured."""
    against = f"at {effort.many:,} open entries against {effort.few}"
    return (
        Figure(f"one durable entry change {against}", "×", 1.3),
        Figure(f"one new entry {against}", "×"),
        Figure(f"one look at the clock at {effort.many:,} open entries (there are 4 a second)", "ms"),
        Figure("the floor of a durable change: write, fsync, rename, fsync of the folder", "ms"),
    )


def measure(effort: Effort, root: Path) -> list[Figure]:
    """Measure a tap on an open ask, from the event to its state on disk, by turns in a small and a large store."""
    change, new, look, floor = figures(effort)
    few, many = (_book(root / str(count), count) for count in (effort.few, effort.many))
    changed_few, changed_many, written = _by_turns(
        (lambda: _tapped(few), lambda: _tapped(many), lambda: _written(root / "one")), effort
    )
    created_few, created_many = _by_turns((lambda: _created(few), lambda: _created(many)), effort)
    return [
        change.measured(*ratios(changed_many, changed_few), note=_compared(changed_many, changed_few)),
        new.measured(*ratios(created_many, created_few), note=_compared(created_many, created_few)),
        look.measured(*ms(_looks(many, effort))),
        floor.measured(*ms(written)),
    ]


def _compared(many_s: list[float], few_s: list[float]) -> str:
    return f"{middle_ms(many_s)} against {middle_ms(few_s)}"


def _book(root: Path, count: int) -> Entries:
    """A book of entries that are on the phone and wait; written without fsync, since they are only the scenery."""
    store = a_store(root)
    at_once(store.open())
    for number in range(count):
        entry = _entry(f"bench{number:05d}")
        (root / "pending" / f"{entry.id}.json").write_bytes(ENTRIES.encode(entry))
    made = Entries(store, _times(), chat_id=CHAT_ID)
    at_once(made.open())
    assert len(made.all()) == count
    return made


def _times() -> AnswerTimes:
    return AnswerTimes(AnswerableClock(0.0, monotonic=time.monotonic), ttl_s=1800.0, now=time.time)


def _entry(entry_id: str) -> Entry:
    asked = ask(question(multiple=True))
    source = replace(asked.source, request_id=f"que_{entry_id}", last_text="The schema is small. " * 20)
    timing = Timing(posted_s=time.time(), set_at=0.0, expires_at=1800.0, until_s=time.time() + 1800)
    state = State(answers=(Answer(),))
    return Entry(entry_id, "k7", replace(asked, source=source), state, Phone(CHAT_ID, 500), time.time(), timing)


def _by_turns(works: Sequence[Callable[[], Callable[[], object]]], effort: Effort) -> list[list[float]]:
    """Return the seconds of each; by turns, so that whatever else the disk does befalls all alike."""
    took: list[list[float]] = [[] for _ in works]
    for number in range(effort.warm_up + effort.changes):
        for place, prepare in enumerate(works):
            took_s = _lasted_s(prepare())
            if number >= effort.warm_up:
                took[place].append(took_s)
    return took


def _lasted_s(work: Callable[[], object]) -> float:
    began_s = time.perf_counter()
    work()
    return time.perf_counter() - began_s


def _tapped(book: Entries) -> Callable[[], object]:
    """A tap on a box of any open ask: what will happen, prepared."""
    entry = random.choice(list(book._open.values()))
    chosen = 1 in entry.state.answers[0].picks
    event = Tapped(random.getrandbits(40), time.time(), ANN, Pick(0, 1, on=not chosen), entry.state.epoch)
    return lambda: at_once(book.apply(entry.id, event))


def _created(book: Entries) -> Callable[[], object]:
    asked = ask(question())
    source = replace(asked.source, request_id=f"que_{random.getrandbits(60):x}")
    return lambda: at_once(book.create(replace(asked, source=source)))


def _written(path: Path) -> Callable[[], object]:
    return lambda: disk.write(path, b"x" * 1000)


def _looks(book: Entries, effort: Effort) -> list[float]:
    """What the listener does four times a second: count the time, and see whether anything is due."""
    look, times = Look(tz=None, group=False, context_chars=600), _times()
    outbox = Outbox(Bot(TOKEN, api_base="http://127.0.0.1:9"))
    messenger = Messenger(book, outbox, Background(), link_of(book), machine="bench")
    keeper = Timekeeper(
        book,
        times,
        look,
        messenger,
        Machines(book.store, monotonic=time.monotonic),
        Memory(book.store, ChatMemory(7)),
    )
    at_once(keeper.tick(answerable=True))
    times.clock.gap_at = None  # else every entry's time would be set anew by the first looks
    return [_lasted_s(lambda: at_once(keeper.tick(answerable=True))) for _ in range(effort.rounds)]
