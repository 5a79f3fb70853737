"""What a person cannot see in a text."""

import sys
import unicodedata

import pytest

from hermes.chat.screens.text import cleaned, one_line
from hermes.chat.screens.unseen import HIDDEN, seen, visible
from hermes.sandbox.botapi.text import DROPPED

ALL = [chr(point) for point in range(sys.maxunicode + 1) if not 0xD800 <= point < 0xE000]
BLANKS = {sign for sign in ALL if unicodedata.category(sign) == "Zs"} | {"\t", "\n"}
SELECTORS = "\ufe00\ufe01\ufe0e\ufe0f\u180b\u180f\U000e0100\U000e01ef"
FILLERS = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
REMOVED = sorted(DROPPED - {"\r"})
"""Telegram removes these from each text; a line break follows `\\r`."""


def test_every_character_that_nobody_can_see_is_hidden() -> None:
    """Controls, format characters and line separators by their category; selectors and fillers by their names."""
    unseen = {sign for sign in ALL if unicodedata.category(sign) in {"Cc", "Cf", "Zl", "Zp"}} - BLANKS
    named = {sign for sign in ALL if "VARIATION SELECTOR" in unicodedata.name(sign, "")}
    for sign in (*unseen, *named, *SELECTORS, *FILLERS, *REMOVED):
        assert HIDDEN.search(f"a{sign}b"), hex(ord(sign))
        assert not visible(sign), hex(ord(sign))


def test_what_can_be_seen_is_not_hidden() -> None:
    """Letters, marks, digits, punctuation, symbols and blanks."""
    for sign in ALL:
        if unicodedata.category(sign)[0] in "LNPS" and sign not in FILLERS + "\U0001d159":
            assert not HIDDEN.search(sign), hex(ord(sign))
            assert visible(sign), hex(ord(sign))
    assert not HIDDEN.search("".join(BLANKS))
    assert not HIDDEN.search("two\r\nlines")


@pytest.mark.parametrize("emoji", ["👨‍👩‍👧‍👦", "🏳️‍🌈", "👁️‍🗨️", "✏️", "1️⃣", "#️⃣", "👍🏽", "🇩🇪", "🤷🏽‍♂️", "‼️", "™️"])
def test_an_ordinary_emoji_hides_nothing(emoji: str) -> None:
    """Its selector and its joiners are parts of the picture."""
    assert not HIDDEN.search(f"git commit -m '{emoji} fix {emoji}{emoji}'")


@pytest.mark.parametrize(
    "text", ["a\ufe0f", "👍\ufe0f\ufe0f", "👍\u200da", "a\u200d👍", "a\u200db", "\ufe0f", "👍\ufe00"]
)
def test_the_parts_of_an_emoji_are_hidden_anywhere_else(text: str) -> None:
    """Beside a letter, or twice, they draw nothing."""
    assert HIDDEN.search(text)


def test_two_texts_are_compared_by_what_is_seen() -> None:
    """Hidden characters and the number of blanks make no difference."""
    assert seen("Keep\u200b  it\u2800 ") == "Keep it"
    assert seen("✏️ Keep") == seen("✏ Keep")
    assert seen("Keep") != seen("keep")
    assert one_line(cleaned("\u2800\ufe0f")) == ""
