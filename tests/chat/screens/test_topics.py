"""The names of topics, and what is said of them."""

from __future__ import annotations

import pytest

from hermes.chat.screens.topics import NAME_UNITS, no_topic, takes_no_prompts, topic_name, why_no_topic
from hermes.core.answers import utf16_units
from hermes.model.ask import Source

SHOP = Source("opencode", "m1", "ses_1", "/home/dev/shop-api", session_title="Fix login")


@pytest.mark.parametrize(
    ("title", "directory", "name"),
    [
        ("Fix login", "/home/dev/shop-api", "Fix login"),
        ("Fix\n\u202e login\u0007", "/home/dev/shop-api", "Fix login"),
        ("", "/home/dev/shop-api/", "shop-api"),
        ("\u200b\u3164", "/home/dev/shop-api", "shop-api"),
        ("", "", "Agent"),
    ],
)
def test_the_name_of_a_topic(title: str, directory: str, name: str) -> None:
    """The title, without what nobody sees, else the folder."""
    assert topic_name(Source("opencode", "m1", "ses_1", directory, session_title=title), ()) == name


def test_a_name_that_is_taken_gets_a_number() -> None:
    """The first that is free."""
    assert topic_name(SHOP, {"Fix login", "Fix login (2)"}) == "Fix login (3)"


def test_no_name_is_too_long() -> None:
    """Also with a number, and with signs of two units."""
    long = Source("opencode", "m1", "ses_1", session_title="😀" * 500)
    first = topic_name(long, ())
    assert utf16_units(first) <= utf16_units(topic_name(long, {first})) <= NAME_UNITS


def test_the_reason_is_in_plain_words() -> None:
    """Words of Telegram that are not known are said as they are, in one line."""
    assert why_no_topic("Bad Request: not enough rights to create a topic") == "I may not manage topics in this group"
    assert why_no_topic("Bad Request:\nSOMETHING_NEW") == "Bad Request: SOMETHING_NEW"
    assert "hermes doctor" in no_topic("topics are switched off in this chat", "laptop").text
    assert takes_no_prompts("Claude\u202e Code").text.startswith("Claude Code takes no prompts")
