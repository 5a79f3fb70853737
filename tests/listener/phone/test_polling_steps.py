"""What is known of the chat, one piece of news at a time: moves, absences, rivals, refusals."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC
from typing import TYPE_CHECKING, cast

import pytest

from hermes.chat.poll import PEACE_S, Offset, Trouble, TroubleKind
from hermes.chat.screens.screen import Look, Screen
from hermes.errors import ChatRefused
from hermes.listener.phone.chat_link import ChatLink
from hermes.listener.phone.chat_memory import Memory
from hermes.listener.phone.messenger import Messenger
from hermes.listener.phone.polling import ABSENCE_S, SAVE_OFFSET_S, Connection
from hermes.listener.sd_notify import Supervisor
from tests.asks import ask, question
from tests.at_once import at_once
from tests.books import a_book, no_records
from tests.listener.gates import unwritable
from tests.stores import a_store

if TYPE_CHECKING:
    from pathlib import Path

CONFIGURED, MOVED, AGAIN = -4_001, -100_4001, -100_4002


class Phone:
    """What stands where the phone side stands: what it was told to say."""

    machine = "laptop"

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, screen: Screen, **_: object) -> None:
        self.said.append(screen.text)


class Line:
    """A connection with its book of two open asks and its memory, polling nothing."""

    def __init__(self, root: Path) -> None:
        self.now_s = 1_757_000_000.0
        self.store = a_store(root, now=lambda: self.now_s)
        at_once(self.store.open())
        self.phone = Phone()
        self.memory = self.remembered()
        self.connection = self.connected()

    def remembered(self) -> Memory:
        """The memory as a restart reads it."""
        return Memory(self.store, at_once(self.store.load_chat(7)))

    def connected(self) -> Connection:
        """A connection as a start makes it."""
        self.book = a_book(self.store, chat_id=self.memory.chat_id(CONFIGURED))
        self.link = ChatLink(self.book, no_records(self.book), self.memory)
        look = Look(tz=UTC, group=True, context_chars=600)
        messenger = cast("Messenger", self.phone)
        prompts = no_records(self.book).prompts
        return Connection(self.book, prompts, messenger, self.memory, self.link, look, supervisor=Supervisor())

    def asked(self, count: int = 2) -> None:
        """So many asks that are on the phone."""
        for place in range(count):
            made = at_once(self.book.place(at_once(self.book.create(ask(question())))))
            shown = replace(made.phone, message_id=500 + place, drawn="x")
            at_once(self.book.change(made.id, lambda entry, shown=shown: replace(entry, phone=shown)))  # type: ignore[misc]

    def trouble(self, kind: TroubleKind, sentence: str = "it", *, loud: bool = True) -> None:
        """A poll failed."""
        at_once(self.connection.poll_failed(Trouble(kind, sentence, 5, loud)))

    def polled(self) -> None:
        """A poll went well."""
        at_once(self.connection.polled(self.now_s))

    def on_disk(self) -> str:
        """The trouble that `status` shows."""
        at_once(self.memory.save())
        return at_once(self.store.load_chat(7)).trouble


@pytest.fixture
def line(tmp_path: Path) -> Line:
    """A connection to a group."""
    return Line(tmp_path / "store")


# --- moves --------------------------------------------------------------------------------------------------------


def test_a_group_that_moves_twice_is_still_the_configured_one(line: Line) -> None:
    """What the configuration names is remembered, not the place in between; also after a restart."""
    at_once(line.link.moved(MOVED))
    at_once(line.link.moved(AGAIN))
    kept = at_once(line.store.load_chat(7))
    assert (kept.chat_id, kept.moved_from) == (AGAIN, CONFIGURED)
    assert line.remembered().chat_id(CONFIGURED) == AGAIN
    assert line.remembered().chat_id(-99) == -99


def test_what_was_posted_is_posted_again_where_the_group_went(line: Line) -> None:
    """Messages of the old group are out of reach, and the new one counts its messages from the beginning."""
    line.asked()
    line.book.note_message(500)
    at_once(line.link.moved(MOVED))
    assert [(one.phone.chat_id, one.phone.message_id) for one in line.book.all()] == [(MOVED, None)] * 2
    assert (line.book.newest_message, at_once(line.store.load_chat(7)).newest_message) == (0, 0)
    assert {one.phone.chat_id for one in at_once(line.store.open())} == {MOVED}


def test_told_once_more_a_move_changes_nothing(line: Line) -> None:
    """Each refused message tells of it."""
    at_once(line.link.moved(MOVED))
    line.asked()
    before = line.book.all()
    at_once(line.link.refused(ChatRefused("upgraded", moved_to=MOVED)))
    assert line.book.all() == before


def test_what_could_not_be_brought_along_follows_when_it_is_told_once_more(
    line: Line, caplog: pytest.LogCaptureFixture
) -> None:
    """The disk was full for one of the entries: said, and the refusal of the message stays what it is."""
    line.asked()
    first = line.book.all()[0]
    with unwritable(line.store.home.root / "pending" / f"{first.id}.json"):
        at_once(line.link.refused(ChatRefused("upgraded", moved_to=MOVED)))
    assert "nothing was saved" in caplog.text
    assert {one.phone.chat_id for one in line.book.all()} >= {CONFIGURED}
    at_once(line.link.refused(ChatRefused("upgraded", moved_to=MOVED)))
    assert {one.phone.chat_id for one in line.book.all()} == {MOVED}


def test_a_start_brings_along_what_an_earlier_run_could_not(line: Line) -> None:
    """It was killed between the two."""
    line.asked()
    at_once(line.memory.save(chat_id=MOVED, moved_from=CONFIGURED))
    line.connection = line.connected()
    at_once(line.connection.recover())
    assert {(one.phone.chat_id, one.phone.message_id) for one in line.book.all()} == {(MOVED, None)}


# --- absences -----------------------------------------------------------------------------------------------------


def test_a_full_disk_at_a_start_is_said_and_the_others_are_drawn_afresh(
    line: Line, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody goes without a listener for want of an edit."""
    line.asked()
    at_once(line.memory.save(last_poll_s=line.now_s))
    line.now_s += ABSENCE_S + 1
    first = line.book.all()[0]
    with unwritable(line.store.home.root / "pending" / f"{first.id}.json"):
        at_once(line.connection.recover())
    assert sorted(one.phone.drawn for one in line.book.all()) == ["", "x"]
    assert f"entry {first.id} is not drawn afresh" in caplog.text
    assert len(line.phone.said) == 1


def test_a_place_that_could_not_be_saved_is_saved_with_the_next_one(
    line: Line, caplog: pytest.LogCaptureFixture
) -> None:
    """The updates go on from memory."""

    async def noted(next_id: int) -> None:
        line.connection.note_offset(Offset(next_id, line.now_s))
        await asyncio.sleep(2 * SAVE_OFFSET_S)

    with unwritable(line.store.home.root / "telegram.json"):
        asyncio.run(noted(5))
        assert "the place in Telegram's queue was not saved" in caplog.text
    asyncio.run(noted(6))
    assert line.remembered().at.offset == 6


# --- rivals -------------------------------------------------------------------------------------------------------


def test_a_rival_is_told_of_once_in_a_while(line: Line) -> None:
    """Two that take turns come and go: one message in ten minutes."""
    for _ in range(5):
        line.trouble("conflict")
        line.now_s += PEACE_S / 5 - 1
        line.polled()
    assert len(line.phone.said) == 1
    line.now_s += 10
    line.trouble("conflict")
    assert len(line.phone.said) == 2


def test_what_is_not_loud_is_told_nobody(line: Line) -> None:
    """A hiccup; but nobody's tap would arrive now."""
    line.polled()
    before = line.connection.answerable
    line.trouble("conflict", loud=False)
    assert (before, line.connection.answerable) == (True, False)
    assert line.phone.said == []
    assert line.on_disk() == ""


# --- a chat that does not work ------------------------------------------------------------------------------------


def test_trouble_with_polling_is_over_with_a_good_poll_alone(line: Line) -> None:
    """That a message went out says nothing of what comes in."""
    line.trouble("unauthorized", "the token")
    line.link.sent()
    assert line.on_disk() == "the token"
    line.polled()
    assert line.on_disk() == ""
    at_once(line.link.refused(ChatRefused("not enough rights")))
    assert line.on_disk() == ""
