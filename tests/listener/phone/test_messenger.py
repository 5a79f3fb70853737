"""Messages beside the asks: sent again while Telegram is away."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import pytest

from hermes.chat.screens.screen import note
from hermes.errors import ChatAway, ChatError, ChatRefused, Undelivered
from hermes.listener.background import Background
from hermes.listener.phone import messenger
from hermes.listener.phone.messenger import AGAIN_S, INSIST_PAUSE_S, Messenger
from tests.books import a_book, link_of
from tests.listening import house, until
from tests.stores import a_store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from hermes.chat.outbox import Outbox
    from hermes.chat.screens.screen import Screen
    from hermes.listener.entries import Entries
    from hermes.listener.phone.chat_link import ChatLink
    from tests.listening import House

CHAT_ID = 1001
AWAY = ChatAway("Telegram cannot be reached")
home = house("new", started=True)


@dataclass
class Wire:
    """What stands where the outbox stands, the chat and the clock: it fails with these errors, the last for ever."""

    errors: list[ChatError | None]
    sent: list[tuple[str, int | None]] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)
    is_stopped: bool = False
    is_night: bool = False
    silent: list[bool | None] = field(default_factory=list)
    chat_id: int = CHAT_ID

    def is_quiet(self) -> bool:
        return self.is_night

    async def send(
        self, chat_id: int, screen: Screen, *, reply_to: int | None = None, silent: bool | None = None
    ) -> None:
        assert chat_id == CHAT_ID
        self.silent.append(silent)
        self.sent.append((screen.text, reply_to))
        error = self.errors.pop(0) if len(self.errors) > 1 else self.errors[0]
        if error is not None:
            raise error

    async def delete(self, chat_id: int, message_id: int) -> None:
        await self.send(chat_id, note("deleted"), reply_to=message_id)

    async def document(self, chat_id: int, screen: Screen, file: tuple[str, str], *, reply_to: int) -> None:
        await self.send(chat_id, note(f"{screen.text} {file[0]}"), reply_to=reply_to)

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        if self.is_stopped:
            await asyncio.Event().wait()


@dataclass
class Line:
    """A messenger on a wire."""

    background: Background
    wire: Wire
    link: ChatLink

    def messenger(self) -> Messenger:
        entries, outbox = cast("Entries", self.wire), cast("Outbox", self.wire)
        return Messenger(entries, outbox, self.background, self.link, machine="laptop", sleep=self.wire.sleep)


@pytest.fixture
def link(tmp_path: Path) -> ChatLink:
    """The link to a chat that works."""
    return link_of(a_book(a_store(tmp_path)))


@pytest.fixture
async def line(link: ChatLink) -> AsyncIterator[Line]:
    """A line on which nothing is wrong."""
    background = Background()
    yield Line(background, Wire([None]), link)
    await background.close()


async def test_a_hint_that_met_an_outage_is_sent_once_that_is_over(line: Line) -> None:
    """The same words as a reply to the same message; and not again after that."""
    line.wire.errors = [AWAY, AWAY, None]
    line.messenger().say(note("No question is open."), reply_to=7)
    await line.background.at_rest(5.0)
    assert line.wire.sent == [("No question is open.", 7)] * 3
    assert line.wire.pauses == list(AGAIN_S[:2])


async def test_a_deletion_and_a_document_outlive_an_outage_too(line: Line) -> None:
    """False words would stay, or a file that was promised would never come."""
    line.wire.errors = [AWAY, None]
    line.messenger().delete(CHAT_ID, 9)
    await line.background.at_rest(5.0)
    line.wire.errors = [AWAY, None]
    line.messenger().attach(note("Here it is."), ("words.txt", "all"), reply_to=7)
    await line.background.at_rest(5.0)
    assert line.wire.sent == [("deleted", 9)] * 2 + [("Here it is. words.txt", 7)] * 2


@pytest.mark.parametrize("is_night", [False, True])
async def test_nothing_rings_in_the_quiet_hours(line: Line, is_night: bool) -> None:
    """But for what replies to a person, who is awake then."""
    line.wire.is_night = is_night
    line.messenger().say(note("I was offline."))
    line.messenger().say(note("No question is open."), reply_to=7)
    await line.background.at_rest(5.0)
    assert line.wire.silent == [is_night, False]


async def test_a_hint_is_given_up_after_two_minutes(line: Line, caplog: pytest.LogCaptureFixture) -> None:
    """It would be no answer any more; each failure is in the log."""
    line.wire.errors = [AWAY]
    line.messenger().say(note("No question is open."))
    await line.background.at_rest(5.0)
    assert len(line.wire.sent) == len(AGAIN_S) + 1
    assert 115 <= sum(line.wire.pauses) <= 125
    assert caplog.text.count("a message was not sent: Telegram cannot be reached") == len(AGAIN_S) + 1


async def test_a_hint_that_may_have_arrived_is_sent_again(line: Line) -> None:
    """Twice is better than never."""
    line.wire.errors = [Undelivered("the connection broke"), None]
    line.messenger().say(note("No question is open."))
    await line.background.at_rest(5.0)
    assert len(line.wire.sent) == 2


async def test_a_hint_that_was_refused_is_not_sent_again(line: Line) -> None:
    """Another try cannot help. Not after an outage either."""
    line.wire.errors = [AWAY, ChatRefused("bad request"), None]
    line.messenger().say(note("No question is open."))
    await line.background.at_rest(5.0)
    assert len(line.wire.sent) == 2


@pytest.mark.parametrize("error", [ChatRefused("bad request"), Undelivered("the connection broke"), AWAY])
async def test_a_warning_is_sent_again_whatever_happened(line: Line, error: ChatError) -> None:
    """Until Telegram says that it has it."""
    line.wire.errors = [error] * (len(AGAIN_S) + 3) + [None]
    line.messenger().insist(note("Please answer it on the computer."))
    await line.background.at_rest(5.0)
    assert len(line.wire.sent) == len(AGAIN_S) + 4
    assert set(line.wire.pauses) == {INSIST_PAUSE_S}


async def test_a_hint_that_waits_ends_with_the_listener(line: Line) -> None:
    """Nothing is sent after that."""
    line.wire.errors, line.wire.is_stopped = [AWAY], True
    line.messenger().say(note("No question is open."))
    await until(lambda: line.wire.pauses, "the pause")
    await line.background.close()
    assert not line.background._tasks
    assert len(line.wire.sent) == 1


async def test_the_only_word_about_a_text_outlives_an_outage_of_telegram(
    home: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The poll loop goes on meanwhile."""
    monkeypatch.setattr(messenger, "AGAIN_S", (0.1, 0.1, 0.1))
    home.api.control.fault(method="sendMessage", action="error", status=502, times=2)
    text_id = home.person.write("anybody there?")
    hint = await home.person.sees("No question is open just now")
    assert hint.reply_to == text_id
    assert len(home.person.shown()) == 1
