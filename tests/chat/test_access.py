"""Who may do anything at all."""

import logging
from collections.abc import Callable

import pytest

from hermes.chat.access import followed, permitted
from hermes.model.answer import User
from hermes.model.events import Tap, Text

ANN, BOB, CHAT, OTHER = 1001, 1002, -500, -501
USERS = frozenset({ANN})

Make = Callable[[int, int], Tap | Text]


def text(user: int, chat: int) -> Text:
    """A text that nobody else should read."""
    return Text(7, 1.0, User(user, "Mallory"), chat, 3, "the launch code is 1234")


def tap(user: int, chat: int) -> Tap:
    """A tap on a button."""
    return Tap(8, 1.0, User(user, "Mallory"), chat, 3, "query", "secret-data")


@pytest.mark.parametrize("incoming", [text(ANN, CHAT), tap(ANN, CHAT)])
def test_a_configured_user_in_the_configured_chat_may(incoming: Tap | Text) -> None:
    """And nobody has to be told."""
    assert permitted(incoming, users=USERS, chat_id=CHAT)


@pytest.mark.parametrize(("user", "chat"), [(BOB, CHAT), (ANN, OTHER), (BOB, OTHER), (ANN, ANN)])
@pytest.mark.parametrize("make", [text, tap])
def test_anybody_else_may_not(user: int, chat: int, make: Make) -> None:
    """A stranger in the chat, a user in another chat, not even in a private one."""
    assert not permitted(make(user, chat), users=USERS, chat_id=CHAT)


def test_without_users_nobody_may() -> None:
    """An empty list is never "everybody"."""
    assert not permitted(text(ANN, CHAT), users=frozenset(), chat_id=CHAT)


@pytest.mark.parametrize("make", [text, tap])
def test_a_stranger_is_logged_without_their_words(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    """Who and where, not what; nor the name, which they choose."""
    caplog.set_level(logging.DEBUG)
    permitted(make(BOB, CHAT), users=USERS, chat_id=CHAT)
    assert str(BOB) in caplog.text
    assert str(CHAT) in caplog.text
    for words in ("launch", "secret-data", "Mallory"):
        assert words not in caplog.text


def test_a_group_that_moved_is_followed() -> None:
    """And only the configured one."""
    assert followed(CHAT, old=CHAT, new=-100500) == -100500
    assert followed(CHAT, old=OTHER, new=-100501) == CHAT
