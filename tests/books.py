"""The open asks of a store, without the rest of a listener."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.answer_clock import AnswerableClock, AnswerTimes, Pace
from hermes.core.notices import NoticeRules
from hermes.listener.entries import Entries
from hermes.listener.notices import Notices
from hermes.listener.phone.turn_notices import TurnNotices
from tests.asks import CHAT_ID
from tests.at_once import at_once

if TYPE_CHECKING:
    from hermes.chat.outbox import Outbox
    from hermes.chat.screens.screen import Look
    from hermes.listener.phone.chat_link import ChatLink
    from hermes.listener.phone.messenger import Messenger
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


def no_notices(book: Entries) -> Notices:
    """Return the notices of the same store, of which there are none yet."""
    return Notices(book.store.notices, NoticeRules(), book.wakes, now=book.now)


def no_turn_notices(book: Entries, outbox: Outbox, look: Look, link: ChatLink, messenger: Messenger) -> TurnNotices:
    """Return what posts the notices of a store that has none yet."""
    times = AnswerTimes(AnswerableClock(0.0, monotonic=lambda: 0.0), Pace(TTL_S), now=book.now)
    return TurnNotices(no_notices(book), book, outbox, look, times, link, messenger)


def entry_of(book: Entries, entry_id: str) -> Entry:
    """Return the open entry with this id, as it is now."""
    entry = book.get(entry_id)
    assert entry is not None
    return entry


def woken(book: Entries) -> list[Wake]:
    """Take what the queue of the workers holds."""
    unread, book.wakes._unread = list(book.wakes._unread), {}
    return unread
