"""The open asks of a store, without the rest of a listener."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes.core.answer_clock import AnswerableClock, AnswerTimes
from hermes.core.notices import NoticeRules
from hermes.listener.background import Background
from hermes.listener.entries import Entries
from hermes.listener.kept import Kept
from hermes.listener.phone.chat_commands import Commands, Presence
from hermes.listener.phone.chat_link import ChatLink
from hermes.listener.phone.chat_memory import Memory
from hermes.listener.phone.file_requests import FileRequests
from hermes.listener.phone.machines import Machines
from hermes.listener.phone.permission_queue import PermissionQueue
from hermes.listener.phone.prompt_texts import PromptTexts
from hermes.listener.phone.taps import Taps
from hermes.listener.phone.texts import Texts
from hermes.listener.phone.topics import Topics
from hermes.listener.phone.turn_notices import TurnNotices
from hermes.model.chat_memory import ChatMemory
from tests.asks import CHAT_ID
from tests.at_once import at_once

if TYPE_CHECKING:
    from hermes.chat.outbox import Outbox
    from hermes.chat.screens.screen import Look
    from hermes.listener.phone.messenger import Messenger
    from hermes.listener.phone.session_cards import SessionCards
    from hermes.listener.wakes import Wake
    from hermes.model.entry import Entry
    from hermes.storage.files import FileStore

TTL_S = 1800.0


def a_book(store: FileStore, *, chat_id: int = CHAT_ID) -> Entries:
    """A book that is open; its answerable clock stands at 0."""
    times = AnswerTimes(AnswerableClock(0.0, monotonic=lambda: 0.0), ttl_s=TTL_S, now=store.now)
    made = Entries(store, times, chat_id=chat_id)
    at_once(made.open())
    return made


def no_records(book: Entries) -> Kept:
    """Return the records of the same store, of which there are none yet."""
    return Kept(book.store, NoticeRules(), book.wakes)


def link_of(book: Entries) -> ChatLink:
    """Return the link to a chat in which nothing was sent yet."""
    return ChatLink(book, no_records(book), Memory(book.store, ChatMemory(0)))


def taps_and_texts(book: Entries, outbox: Outbox, look: Look, messenger: Messenger) -> tuple[Taps, Texts]:
    """Return what takes in taps and texts, without prompts; the store has no records yet."""
    topics = topics_of(book, outbox, messenger)
    kept, prompts_off = no_records(book), PromptTexts(no_records(book), outbox, messenger, topics, {}, ())
    times = AnswerTimes(AnswerableClock(0.0, monotonic=lambda: 0.0), ttl_s=TTL_S, now=book.now)
    notices = TurnNotices(kept.notices, book, outbox, topics, look, times, messenger)
    taps = Taps(book, outbox, look, messenger, PermissionQueue(book, look), kept, (notices,), has_prompts=True)
    return taps, Texts(book, outbox, messenger, commands_of(book, look, messenger), prompts_off, topics, kept)


def topics_of(book: Entries, outbox: Outbox, messenger: Messenger) -> Topics:
    """Return the topics of a chat without any."""
    memory = Memory(book.store, ChatMemory(0))
    return Topics(memory, outbox, messenger, Background(), "off", monotonic=lambda: 0.0)


def commands_of(book: Entries, look: Look, messenger: Messenger) -> Commands:
    """Return the commands of a chat without prompts."""
    machines = Machines(book.store, monotonic=lambda: 0.0)
    cards, outbox = cast("SessionCards", None), cast("Outbox", None)
    prompts = PromptTexts(no_records(book), outbox, messenger, topics_of(book, outbox, messenger), {}, ())
    files = FileRequests(prompts, book, outbox, Background(), messenger, ways={}, private=(), remote=())
    return Commands(book, look, cards, machines, presence_of(book), files, messenger, connected={})


def presence_of(book: Entries) -> Presence:
    """Return where the person is, for whom nothing waits."""
    times = AnswerTimes(AnswerableClock(0.0, monotonic=lambda: 0.0), ttl_s=TTL_S, now=book.now)
    return Presence(Memory(book.store, ChatMemory(7)), times, book, no_records(book).notices)


def entry_of(book: Entries, entry_id: str) -> Entry:
    """Return the open entry with this id, as it is now."""
    entry = book.get(entry_id)
    assert entry is not None
    return entry


def woken(book: Entries) -> list[Wake]:
    """Take what the queue of the workers holds."""
    unread, book.wakes._unread = list(book.wakes._unread), {}
    return unread
