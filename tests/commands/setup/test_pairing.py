"""The code, and whose messages are looked past: each rule by itself."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import pytest

from hermes.chat.bot import Bot
from hermes.chat.incoming import Admitted, Blocked, Incoming, Migrated, Other
from hermes.commands.setup.pairing import BATCH, Code, Heard, Watch, claimed, listener_needs, new_code
from hermes.errors import ChatAway, HermesError
from hermes.model.answer import User
from hermes.model.events import Tap, Text, TextEdit

if TYPE_CHECKING:
    from tests.commands.setup.desk import Desk

ANN, BOB = User(1001, "Ann"), User(1002, "Bob")


def text(words: str | None, user: User = ANN, chat: int = 1001) -> Text:
    """A text that came."""
    return Text(1, 0.0, user, chat, 5, words)


def test_a_code_fits_into_a_link_and_cannot_be_guessed() -> None:
    """At most 64 signs of those that Telegram hands on; 128 bits; no two alike."""
    codes = {new_code(0.0).text for _ in range(100)}
    assert len(codes) == 100
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{22,64}", code) for code in codes)
    assert Code("abc", 0.0).link("hermes_bot") == "https://t.me/hermes_bot?start=abc"
    assert Code("abc", 0.0).link("hermes_bot", group=True) == "https://t.me/hermes_bot?startgroup=abc"
    assert "abc" not in repr(Code("abc", 0.0))


@pytest.mark.parametrize("words", ["/start abc", "/start@hermes_bot abc", "/start  abc\n"])
def test_the_code_is_in_the_command_alone(words: str) -> None:
    """As a private chat and as a group send it."""
    assert Code("abc", 0.0).is_in(words)


@pytest.mark.parametrize("words", [None, "", "abc", "/start", "/start ab", "/start abcd", "/start abc d", "/start äbc"])
def test_what_is_not_the_code(words: str | None) -> None:
    """Nor what only contains it."""
    assert not Code("abc", 0.0).is_in(words)


@pytest.mark.parametrize(
    ("update", "is_needed"),
    [
        (Tap(1, 0.0, ANN, 1001, 5, "q", "d"), True),
        (text("hello"), True),
        (text(None), True),
        (text("/start"), False),
        (text("/start abc"), False),
        (text("hello", ANN, -7), True),
        (TextEdit(1, ANN, 1001, 5, "fix it all"), True),  # of a prompt that waits, for example
        (Migrated(1, -7, -8), True),
        (None, True),
        (Blocked(1, 1001), False),
        (Admitted(1, 1001), False),
        (Other(1), False),
    ],
)
def test_what_a_listener_might_act_on(update: Incoming | None, *, is_needed: bool) -> None:
    """Whoever sent it: another configuration may obey people that this one does not know."""
    assert listener_needs(update) is is_needed


async def test_what_is_behind_a_message_that_stays_is_heard_once(desk: Desk) -> None:
    """Telegram brings it again and again; what cannot be read does no harm."""
    desk.write("stays")
    desk.write("/start abc")
    desk.api.control.inject({"message": {"no": "shape"}})
    async with Bot(desk.api.token, api_base=desk.api.base_url) as bot:
        watch = Watch(bot)
        first, second = await watch.look(0), await watch.look(0)
    assert [one.text.text for one in first] == ["stays", "/start abc"]
    assert (second, watch.crowded) == ([], True)


async def test_behind_a_hundred_messages_nothing_is_seen(desk: Desk) -> None:
    """Then it is said what to do, instead of waiting for ever."""
    for _ in range(BATCH):
        desk.write("stays")
    async with Bot(desk.api.token, api_base=desk.api.base_url) as bot:
        watch = Watch(bot)
        assert len(await watch.look(0)) == BATCH
        with pytest.raises(HermesError, match="run `hermes reap`"):
            await watch.look(0)


class Line:
    """Updates as they come, one list (or error) a look; then the clock has moved on by `later_s`."""

    def __init__(self, *looks: list[Heard] | Exception, later_s: float = 0.0) -> None:
        self.crowded = False
        self.now_s, self.pauses = 0.0, []  # type: ignore[var-annotated]
        self._looks, self._later_s = list(looks), later_s

    async def look(self, wait_s: float) -> list[Heard]:
        came = self._looks.pop(0) if self._looks else []
        self.now_s += wait_s if came == [] else self._later_s
        if isinstance(came, Exception):
            raise came
        return came

    async def let_go(self) -> None:
        pass

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    async def claim(self, code: Code) -> Heard | None:
        async def is_claim(_: Heard, has_code: bool) -> bool:
            return has_code

        return await claimed(
            self,  # type: ignore[arg-type]
            code,
            is_claim=is_claim,
            shown=lambda *_: None,
            now=lambda: self.now_s,
            sleep=self.sleep,
        )


async def test_a_code_that_comes_too_late_opens_nothing() -> None:
    """Also where it came with the very look during which the time ran out."""
    in_time = Line([Heard(text("/start abc"), None)], later_s=599)
    assert await in_time.claim(Code("abc", 600.0)) == Heard(text("/start abc"), None)
    late = Line([Heard(text("/start abc"), None)], later_s=600)
    assert await late.claim(Code("abc", 600.0)) is None


async def test_pauses_grow_while_telegram_is_away() -> None:
    """And are as long as Telegram wants where it says so."""
    away = [ChatAway("away") for _ in range(9)]
    line = Line(*away, ChatAway("slower", retry_after_s=77.0), [Heard(text("/start abc"), None)])
    assert await asyncio.wait_for(line.claim(Code("abc", 600.0)), 10) is not None
    assert line.pauses == [0.5, 1, 2, 4, 8, 16, 30, 30, 30, 77]
