"""Cleaning, defusing, cutting, and the places of marks."""

import re
import unicodedata

import pytest
from hypothesis import example, given, strategies as st

from hermes.chat.screens.text import (
    Entity,
    Span,
    cleaned,
    cut,
    defused,
    dotted,
    ending,
    lay,
    line,
    one_line,
    passage,
    phrase,
    shortened,
    width,
)
from hermes.chat.screens.unseen import visible
from hermes.core.answers import utf16_units
from hermes.sandbox.botapi.text import FOUND_BY_CLIENTS, prepare
from tests.chat.screens.entries import wild

FAMILY = "👨‍👩‍👧‍👦"


def test_marks_count_utf16_units() -> None:
    """An emoji beyond U+FFFF takes two units, so what follows begins later."""
    text, entities = lay([line("😀 ", Span("bold", "bold")), line(), line(Span("code", "code"))])
    assert text == "😀 bold\ncode"
    assert entities == (Entity("bold", 3, 4), Entity("code", 8, 4))


def test_what_lies_beyond_the_limit_is_left_out_with_its_marks() -> None:
    """No entity ever points outside the text; the last line, with the short code, always stays."""
    above = [line(Span("a" * 50, "bold"), Span("b" * 50, "italic")), line(Span("c", "bold"))]
    text, entities = lay([*above, line(Span("end", "bold"))], 64)
    assert text == "a" * 50 + "b" * 9 + "…\nend"
    assert entities == (Entity("bold", 0, 50), Entity("italic", 50, 10), Entity("bold", 61, 3))
    assert lay([line("a" * 50)], 10)[0] == "a" * 9 + "…"


def test_blanks_carry_no_mark() -> None:
    """Telegram drops such an entity; what is sent is what is shown."""
    assert lay([line("a", Span("  ", "bold"), "b")]) == ("a  b", ())


def test_no_more_than_a_hundred_marks_are_sent() -> None:
    """Telegram ignores the rest."""
    assert len(lay([line(*(Span("a", "bold"), Span("-")) * 150)])[1]) == 100


def test_dots_stand_only_between_what_is_there() -> None:
    """Nothing to say leaves no trace."""
    assert lay([dotted([Span(""), Span("a"), Span(""), Span("b")])])[0] == "a · b"
    assert dotted([]) == ()


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("a\u202eb\u2066c\u2069d\u200f\u061ce\ufeff", "abcde"),
        ("a\x00b\x07c\x85d\x9be", "a b c\nd e"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("a\r\nb\rc\u2028d\u2029e\x0bf", "a\nb\nc\nd\ne\nf"),
        ("half \ud83d of a pair", "half \ufffd of a pair"),
        ("a   \n\n\n\n  b\t", "a\n\n  b"),
        ("\u200b\u3164\u2800 \ufe0f", ""),
        ("שלום 👨‍👩‍👧‍👦", "שלום 👨‍👩‍👧‍👦"),
    ],
)
def test_control_and_direction_characters_are_neutralised(raw: str, clean: str) -> None:
    """What an agent writes cannot turn, hide or break what Hermes writes."""
    assert cleaned(raw) == clean


@pytest.mark.parametrize(
    "raw",
    [
        "/stop", "/stop@my_bot", "see /tmp", "@name", "#tag", "#k3", "$USD", "https://evil.example/x",
        "http://1.2.3.4", "evil.com", "www.evil.com/x?y",
        "README.md", "a@b.com", "t.me/joinchat", "x/y@z.com/#a",
    ],
)  # fmt: skip
def test_clients_find_no_link_in_agent_text(raw: str) -> None:
    """Neither Telegram nor an app makes a command, a mention, a tag or an address of it."""
    text = defused(raw)
    assert text.replace("\u2060", "") == raw
    assert prepare(text, ()) == (text, ())
    assert prepare(raw, ())[1], "the check can see what it looks for"


@given(wild)
@example("\u030a")
def test_nothing_that_was_defused_links(raw: str) -> None:
    """Whatever it is made of, and wherever it is cut."""
    for span in (phrase(raw, 50), passage(raw, 300), ending(raw, 300), phrase(raw, 4000)):
        if visible(span.text):
            assert not {e["type"] for e in prepare(span.text, ())[1]} & FOUND_BY_CLIENTS


@given(wild, st.integers(0, 400))
def test_foreign_text_never_outgrows_its_room(raw: str, limit: int) -> None:
    """And holds nothing that Telegram would refuse or turn."""
    for span in (phrase(raw, limit), passage(raw, limit), ending(raw, limit)):
        assert utf16_units(span.text) <= limit
        assert utf16_units(span.text) == len(span.text.encode("utf-16-le")) // 2
        assert not re.search("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\x00-\x09\x0b-\x1f]", span.text)
    assert "\n" not in phrase(raw, limit).text


def test_a_text_is_cut_between_words() -> None:
    """Half a short word says less than none; half a long one says more."""
    assert cut("one two three four", 12) == "one two…"
    assert cut("one two three four", 14) == "one two three…"
    assert cut("x" * 30, 10) == "x" * 9 + "…"
    assert cut("short", 5) == "short"
    assert cut("none", 0) == ""


@pytest.mark.parametrize("whole", [FAMILY, "🇩🇪", "👍🏽", "e\u0301", "✏️", "1️⃣", "😀"])
def test_no_character_is_cut_in_two(whole: str) -> None:
    """Not a pair, not a joined emoji, not a flag, not a letter with its marks."""
    for limit in range(1, 3 * utf16_units(whole) + 2):
        kept = cut(whole * 4, limit).removesuffix("…")
        assert kept == whole * (len(kept) // len(whole))
        kept = ending(whole * 4, limit).text.removeprefix("…")
        assert kept == whole * (len(kept) // len(whole))
    for cells in range(1, 8):
        kept = shortened(whole * 9, cells).removesuffix("…")
        assert kept == whole * (len(kept) // len(whole))


def test_a_tower_of_marks_counts_as_many_characters() -> None:
    """What no font draws sensibly does not swallow the room of everything else."""
    assert utf16_units(cut("Z" + "\u0322" * 500, 100)) > 60


def test_a_button_holds_few_towers_of_marks() -> None:
    """Each is as wide as one letter, but Telegram counts its bytes."""
    assert len(shortened(("Z" + "\u0322" * 30) * 34, 34).encode()) <= 34 * 8
    assert shortened("กี่" * 30, 34) == "กี่" * 30  # nine bytes each


def test_the_end_of_last_words_is_kept() -> None:
    """The last words lead to the question; the first may be from long ago."""
    assert ending("beginning middle end", 8).text == "…end"
    assert ending("beginning middle end", 11).text == "…middle end"
    assert ending("x" * 30, 10).text == "…" + "x" * 9
    assert ending("all of it", 20).text == "all of it"
    assert ending("none", 0).text == ""
    assert ending("x" * 100_000 + " the end", 20).text.endswith("the end")


@pytest.mark.parametrize("row", [" ", "\n", "\u200b", " \u2800\n"])
def test_a_row_of_blanks_does_not_hide_the_rest_of_a_text(row: str) -> None:
    """A question goes on behind it."""
    said = passage(f"Clean up?{row * 4_000}And delete the database?", 300).text
    assert said.startswith("Clean up?⟨")
    assert said.endswith(("⟩And delete the database?", "⟩\nAnd delete the database?"))


def test_buttons_are_measured_in_columns() -> None:
    """A wide character takes the room of two."""
    assert width("abc") == 3
    assert width("日本") == 4
    assert width(FAMILY) == 2
    assert shortened("日本語日本語", 7) == "日本語…"
    assert shortened("plain words", 20) == "plain words"


def test_one_line_is_one_line() -> None:
    """A label cannot begin a line of its own."""
    assert one_line("a\n\nb\u2028c\td") == "a b c d"
    assert phrase("\u200b", 20, empty="(empty)").text == "(empty)"
    assert unicodedata.category("\u2060") == "Cf"
