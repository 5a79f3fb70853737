"""The open asks of a store, without the rest of a listener."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.answer_clock import AnswerableClock, AnswerTimes, Pace
from hermes.listener.entries import Entries
from tests.asks import CHAT_ID
from tests.at_once import at_once

if TYPE_CHECKING:
    from hermes.listener.wakes import Wake
    from hermes.model.entry import Entry
    from hermes.storage.store import Store

TTL_S = 1800.0


def a_book(store: Store, *, chat_id: int = CHAT_ID) -> Entries:
    """A book that is open; its answerable clock stands at 0."""
    times = AnswerTimes(AnswerableClock(0.0, monotonic=lambda: 0.0), Pace(TTL_S), now=store.now)
    made = Entries(store, times, chat_id=chat_id)
    at_once(made.open())
    return made


def entry_of(book: Entries, entry_id: str) -> Entry:
    """Return the open entry with this id, as it is now."""
    entry = book.get(entry_id)
    assert entry is not None
    return entry


def woken(book: Entries) -> list[Wake]:
    """Take what the queue of the workers holds."""
    unread, book.wakes._unread = list(book.wakes._unread), {}
    return unread
