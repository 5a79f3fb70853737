"""The data behind buttons, and what stands on them."""

import pytest
from hypothesis import given, strategies as st

from hermes.chat.screens.buttons import LIMITS, Button, copying, decode, encode, faces, in_columns, in_rows, shown_label
from hermes.chat.screens.text import width
from hermes.model.actions import (
    Action,
    Arm,
    AskTwice,
    Back,
    ClearText,
    Confirmed,
    Go,
    KeepWaiting,
    Pick,
    Send,
    Shelve,
    TakeOffer,
)
from hermes.model.ask import Option, Question
from tests.chat.screens.entries import questions

numbers = st.integers(0, 10**6)
confirms = st.sampled_from(("reject", "skip", "send"))
actions = st.one_of(
    st.builds(Pick, numbers, numbers, st.booleans()),
    st.builds(Go, numbers),
    st.builds(Shelve, numbers),
    st.builds(Arm, numbers, st.booleans()),
    st.builds(ClearText, numbers),
    st.just(Send()),
    st.builds(AskTwice, confirms),
    st.builds(Confirmed, confirms),
    st.just(Back()),
    st.builds(KeepWaiting, numbers),
    st.builds(TakeOffer, st.integers(0, 2**63), st.booleans()),
)
ids = st.text("abcdefXYZ0189_-", min_size=1, max_size=12)


@given(ids, st.integers(0, 2**40), actions)
def test_what_is_encoded_is_decoded(entry_id: str, epoch: int, action: Action) -> None:
    """Every action survives its button, within Telegram's 64 bytes."""
    data = encode(entry_id, epoch, action)
    assert 1 <= len(data.encode()) <= 64
    assert decode(data) == (entry_id, epoch, action)


@given(st.one_of(st.text(), st.text("e1:pgfacstybkuo0123.z-", max_size=20)))
def test_what_was_never_encoded_is_refused(data: str) -> None:
    """Only ValueError, and only one form for one meaning."""
    try:
        decoded = decode(data)
    except ValueError:
        return
    assert encode(*decoded) == data


@pytest.mark.parametrize(
    "data",
    [
        "", "hold:go", "e1", "e1:0", "e1:0:", "e1:0:q", "e1:0:p1", "e1:0:p1.2", "e1:0:p1.2.2", "e1:0:p1.2.1.1", "e1::s",
        "e1:0:s1", "e1:00:s", "e1:0:p01.2.1", "e1:-1:s", "e1: 1:s", "e1:1_0:s", "e1:٣:s", "e1:A:s", "e1:0:t4", "e1:0:S",
        ":0:s", "é:0:s", "thirteenchars:0:s", "e1:0:s:", "e1:0:s\n", "e1:" + "1" * 60 + ":s",
    ],
)  # fmt: skip
def test_a_malformed_button_is_refused(data: str) -> None:
    """Data comes from outside, and may be anything."""
    with pytest.raises(ValueError, match="button"):
        decode(data)


@pytest.mark.parametrize(
    ("entry_id", "epoch", "action"),
    [
        ("", 0, Send()),
        ("a:b", 0, Send()),
        ("thirteenchars", 0, Send()),
        ("e1", -1, Send()),
        ("e1", 36**16, TakeOffer(36**16, on=True)),
        ("e1", 36**60, Send()),
        ("twelve-chars", 36**16 - 1, Pick(36**16 - 1, 36**16 - 1)),
    ],
)
def test_what_no_button_can_carry_is_refused(entry_id: str, epoch: int, action: Action) -> None:
    """Telegram would refuse the whole message."""
    with pytest.raises(ValueError, match="button"):
        encode(entry_id, epoch, action)


def test_a_star_says_recommended() -> None:
    """The word is not said twice; an option that is not marked keeps its label."""
    options = (Option("A (Recommended)"), Option("B (recommended) "), Option(" "))
    question = Question("?", options=options, recommended=0)
    assert [shown_label(question, index) for index in range(3)] == ["A", "B (recommended)", "(empty)"]
    assert faces(question, [0])[0] == "A ⭐"


@pytest.mark.parametrize("labels", [("a", "b", "a"), ("x" * 50 + "1", "x" * 50 + "2"), ("", "\u200b"), ("a", " a ")])
def test_labels_that_look_the_same_get_their_numbers(labels: tuple[str, ...]) -> None:
    """A button must say which one it is; the list in the text has the same numbers."""
    said = faces(Question("?", options=tuple(map(Option, labels))), range(len(labels)))
    assert [face.split(" ")[0] for face in said.values()] == [str(index + 1) for index in range(len(labels))]


@pytest.mark.parametrize("sign", ["\u200b", "\u2060", "\ufe0f", "\u200d", "\U000e0101", "\u115f", "\u2800", "\u3164"])
def test_a_hidden_character_makes_no_label_look_different(sign: str) -> None:
    """The person could not tell which one to tap."""
    question = Question("Delete the database?", options=(Option("Keep it"), Option("Keep it" + sign)))
    assert [face.split(" ")[0] for face in faces(question, range(2)).values()] == ["1", "2"]


@given(questions())
def test_buttons_differ_and_fit(question: Question) -> None:
    """No two say the same, none is wider than a phone, none is empty."""
    said = tuple(faces(question, range(len(question.options))).values())
    assert len(set(said)) == len(said) == len(question.options)
    assert all(face.strip() and width(face) <= LIMITS.columns for face in said)


def test_short_buttons_share_a_row() -> None:
    """As many as their widest leaves room for, and never more than Telegram's eight."""
    short = [Button(text, "d") for text in "abcdef"]
    assert [len(row) for row in in_columns(short)] == [4, 2]
    assert [len(row) for row in in_columns([*short, Button("w" * 12, "d")])] == [2, 2, 2, 1]
    assert [len(row) for row in in_columns([*short, Button("w" * 20, "d")])] == [1] * 7
    assert in_columns([]) == ()
    assert in_rows(short, 5) == (tuple(short[:5]), tuple(short[5:]))


def test_the_limit_of_data_is_telegrams() -> None:
    """Telegram takes 64 bytes a button. The Bot API of the tests refuses more buttons than Telegram takes."""
    assert LIMITS.data_bytes == 64


@pytest.mark.parametrize(
    "copied",
    [
        "",
        "x" * 257,
        "👍" * 129,
        "ls\nrm -rf ~",
        "ls\trm",
        "ls \u202efdp",
        "ls\u200b",
        "ls \u3164",
        "ls\U000e0172",
        "ls\ufe0f",
        "ls\u2800",
        "ls\u17b4",
        "\x1b[2Jls",
        "\ud800",
    ],
)
def test_only_what_can_be_seen_is_copied(copied: str) -> None:
    """People paste it into a terminal."""
    assert copying("📋 Copy", copied) == ()


@pytest.mark.parametrize("copied", ["x" * 256, "cd '/home/me/Mein Projekt' && ls", "日本 👍"])
def test_a_button_copies_the_very_words(copied: str) -> None:
    """Not shortened, nothing added."""
    assert copying("📋 Copy", copied) == (Button("📋 Copy", copies=copied),)
