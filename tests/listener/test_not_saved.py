"""The word to a person whose tap or text could not be saved: at once, to the right place, and never for long."""

from __future__ import annotations

import asyncio
from datetime import UTC
from typing import TYPE_CHECKING, Any, cast

import pytest

from hermes.chat.outbox import Outbox
from hermes.chat.screens.screen import Look, Screen
from hermes.core.answers import SPLIT_UNITS
from hermes.errors import ChatAway, ChatRefused, NotSaved
from hermes.listener.background import Background
from hermes.listener.phone.chat_link import ChatLink
from hermes.listener.phone.chat_memory import Memory
from hermes.listener.phone.messenger import Messenger
from hermes.listener.phone.phone import PhoneSide
from hermes.model.chat_memory import ChatMemory
from tests.asks import ANN, CHAT_ID
from tests.books import a_book, no_records, taps_and_texts
from tests.stores import a_store

if TYPE_CHECKING:
    from pathlib import Path


FULL = NotSaved("nothing was saved in /x: the disk is full; free some space, then try again", disk_full=True)
PERSON, CHAT = {"id": ANN.id, "is_bot": False, "first_name": "Ann"}, {"id": CHAT_ID, "type": "private"}
SHOWN = {"message_id": 500, "date": 1, "chat": CHAT, "text": "Which?"}
TAP: dict[str, Any] = {
    "update_id": 5,
    "callback_query": {"id": "77", "from": PERSON, "message": SHOWN, "chat_instance": "1", "data": "x"},
}
TEXT: dict[str, Any] = {
    "update_id": 6,
    "message": {"message_id": 501, "date": 1, "chat": CHAT, "from": PERSON, "text": "SQLite"},
}


class Told:
    """What stands where the outbox stands: what went to whom; it may hang, or refuse."""

    def __init__(self) -> None:
        self.to: list[tuple[object, str]] = []
        self.hangs = False
        self.refuses: Exception | None = None

    async def _say(self, whom: object, text: str) -> None:
        if self.hangs:
            await asyncio.Event().wait()
        if self.refuses is not None:
            raise self.refuses
        self.to.append((whom, text))

    async def answer(self, query_id: str, text: str) -> None:
        await self._say(query_id, text)

    async def send(self, chat_id: int, screen: Screen, *, reply_to: int, silent: bool = False) -> None:
        assert not silent  # it replies to a person
        await self._say((chat_id, reply_to), screen.text)


@pytest.fixture
def told() -> Told:
    """Where the words go."""
    return Told()


@pytest.fixture
def side(told: Told, tmp_path: Path) -> PhoneSide:
    """A phone side with an empty book, and nothing beside it."""
    book = a_book(a_store(tmp_path, now=lambda: 1.0))
    outbox, look = cast("Outbox", told), Look(tz=UTC, group=False, context_chars=600)
    link = ChatLink(book, no_records(book), Memory(book.store, ChatMemory(7)))
    messenger = Messenger(book, outbox, Background(), link, machine="laptop")
    taps, texts = taps_and_texts(book, outbox, look, messenger)
    return PhoneSide(book, outbox, taps, texts, messenger, bot_id=7, users=frozenset({ANN.id}), sorry_s=0.3)


async def test_a_tap_is_told_by_its_acknowledgement(side: PhoneSide, told: Told) -> None:
    """With the reason that the person can do something about."""
    await side.not_saved(TAP, FULL)
    ((whom, text),) = told.to
    assert whom == "77"
    assert "disk full on laptop" in text
    await side.not_saved(TAP, NotSaved("nothing was saved in /x: the disk reports an error"))
    assert "see its log on laptop" in told.to[1][1]


async def test_a_text_is_told_by_a_reply(side: PhoneSide, told: Told) -> None:
    """There where it was written."""
    await side.not_saved(TEXT, FULL)
    ((whom, text),) = told.to
    assert whom == (CHAT_ID, 501)
    assert "I could not save that" in text


async def test_the_person_reads_what_to_do_again(side: PhoneSide, told: Told) -> None:
    """There is nothing to tap below a text."""
    edit = {"update_id": 7, "edited_message": {**TEXT["message"], "text": "Redis", "edit_date": 2}}
    for raw in (TAP, TEXT, edit):
        await side.not_saved(raw, FULL)
    words = [text.partition("Please ")[2] for _, text in told.to]
    assert words == ["tap again in a moment.", "send it again in a moment.", "edit it again in a moment."]


async def test_the_end_of_a_text_is_lost_with_its_first_part_unless_that_comes_again(side: PhoneSide) -> None:
    """Telegram sends it again if the person could not be told."""
    first = {"update_id": 6, "message": {**TEXT["message"], "text": "w" * SPLIT_UNITS}}
    end = {"update_id": 7, "message": {**TEXT["message"], "message_id": 502}}
    await side.not_saved(first, FULL)
    with pytest.raises(NotSaved, match="another part of that text"):
        await side.handle(end)
    await side.handle(first)
    await side.handle(end)


async def test_a_lock_behind_a_text_that_was_lost_is_no_part_of_it(side: PhoneSide) -> None:
    """The phone was stolen a moment ago."""
    await side.not_saved({"update_id": 6, "message": {**TEXT["message"], "text": "w" * SPLIT_UNITS}}, FULL)
    await side.handle({"update_id": 7, "message": {**TEXT["message"], "message_id": 502, "text": "/lock"}})
    assert await side._entries.store.is_phone_locked()


async def test_what_nobody_did_is_told_nobody(side: PhoneSide, told: Told) -> None:
    """A group that moved, say."""
    await side.not_saved({"update_id": 7, "message": {**TEXT["message"], "migrate_to_chat_id": -5}}, FULL)
    assert told.to == []


@pytest.mark.parametrize("raw", [TAP, TEXT], ids=["tap", "text"])
async def test_a_telegram_that_hangs_does_not_hold_up_the_poll_loop(
    side: PhoneSide, told: Told, raw: dict[str, Any]
) -> None:
    """Then it counts as away, and the update stays with it."""
    told.hangs = True
    with pytest.raises(ChatAway, match="could not be told in time"):
        await side.not_saved(raw, FULL)


async def test_a_refusal_is_passed_on(side: PhoneSide, told: Told) -> None:
    """The poll loop knows what to do with it."""
    told.refuses = ChatRefused("bot was blocked by the user", blocked=True)
    with pytest.raises(ChatRefused):
        await side.not_saved(TAP, FULL)
