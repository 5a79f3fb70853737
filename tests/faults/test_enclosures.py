"""The laws of files that go with prompts can fail; the person sends them as a person would."""

from __future__ import annotations

import base64
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.faults import enclosures, prompt_laws, talking
from tests.faults.enclosures import Enclosure
from tests.faults.letters import Letter
from tests.faults.test_talking import WROTE, Desk, Pen, a_talk, shown, view

if TYPE_CHECKING:
    from pathlib import Path

PICTURE = Enclosure("photo", "q1tk file 1", "image/jpeg", b"\xff\xd8\xff\xe0q1tk only inside 1 of the first picture")
SECOND = replace(PICTURE, content=PICTURE.content + b"!", caption="q1tk is about 2, too")
NOTES = Enclosure("document", "q1tk notes", "text/plain", b"q1tk only inside")
WORDS = Letter("q1tk", "", "card").written


@pytest.mark.parametrize(
    ("came", "broken"),
    [
        pytest.param([], "", id="none"),
        pytest.param([(PICTURE, SECOND)], "", id="both"),
        pytest.param([()], "0 files", id="no file"),
        pytest.param([(PICTURE,)], "1 files", id="one of two"),
        pytest.param([(SECOND, PICTURE)], "2 files", id="another order"),
        pytest.param([(PICTURE, replace(SECOND, content=b"\xff\xd8\xff"))], "1 of them right", id="other bytes"),
        pytest.param([(PICTURE, replace(SECOND, mime="image/png"))], "1 of them right", id="another type"),
        pytest.param([(PICTURE, SECOND), (PICTURE,)], "1 files", id="once all, once one"),
    ],
)
def test_a_prompt_has_all_its_files_and_their_bytes(came: list[tuple[Enclosure, ...]], broken: str) -> None:
    """Each time that it goes."""
    said = list(enclosures.complete("it", (PICTURE, NOTES, SECOND), [[one.digest for one in each] for each in came]))
    assert len(said) == (1 if broken else 0), said
    assert broken in "".join(said)


@pytest.mark.parametrize(
    ("text", "files", "broken"),
    [
        (f"{WORDS}\nq1tk is about 2, too", (PICTURE, SECOND), ""),
        (WORDS, (PICTURE, SECOND), "and not"),
        (f"{WORDS}\nq1tk is about 2, too", (PICTURE,), "1 files"),
        ("", (PICTURE,), "without its words"),
    ],
)
def test_a_letter_with_files_is_judged_with_them(text: str, files: tuple[Enclosure, ...], broken: str) -> None:
    """With the captions of all its files, and no file goes alone."""
    talk = a_talk()
    digests = [[one.digest for one in files]]
    first = [f"{WORDS}\nq1tk is about 2, too"] if not text else []
    talk.agent = Desk(texts=[*first, text], files=[*[[PICTURE.digest, SECOND.digest] for _ in first], *digests])
    talk.letters[0].ids, talk.letters[0].enclosed = (WROTE,), (PICTURE, SECOND)
    said = prompt_laws.kept(talk, view(shown(7, "✅ Done", reply_to=WROTE)), is_sure=True)
    assert len(said) == (1 if broken else 0), said
    assert broken in "".join(said)


def test_an_opencode_2_gets_no_letter_with_files() -> None:
    """Hermes sends it texts alone."""
    talk = a_talk()
    talk.agent = Desk(texts=[WORDS], manner="august")
    talk.letters[0].ids, talk.letters[0].enclosed = (WROTE,), (PICTURE,)
    said = prompt_laws.kept(talk, view(shown(7, "✅ Done", reply_to=WROTE)), is_sure=True)
    assert "0 files" in "".join(said)


def test_a_text_file_goes_as_text() -> None:
    """Behind all captions."""
    letter = Letter("q1tk", "", "card", enclosed=(NOTES, SECOND))
    assert letter.first == f"{WORDS}\nq1tk is about 2, too\nq1tk notes:\n\nq1tk only inside"
    assert NOTES.digest == ""


@pytest.mark.parametrize("in_pieces", [False, True])
def test_a_person_sends_an_album_at_once_or_in_pieces(*, in_pieces: bool) -> None:
    """The first file has the words of the letter; something may happen between the pieces."""
    talk, happened = a_talk(), list[str]()
    talk.letters[0].enclosed, talk.letters[0].in_pieces = (PICTURE, SECOND), in_pieces
    talk.between, talk.sleep = lambda: happened.append("it"), lambda _: None
    talk.step(view(shown(2, "Talk q1t 💤 waits for you", talking.WRITE)))
    assert isinstance(talk.phone, Pen)
    pieces = [[WORDS], [SECOND.caption]] if in_pieces else [[WORDS, SECOND.caption]]
    assert talk.phone.did == [f"share {one} to 2" for one in pieces]
    assert len(talk.phone.albums) == 1
    assert ("" in talk.phone.albums) is not in_pieces
    assert len(talk.letters[0].ids) == 2
    assert len(happened) == len(pieces) - 1


def test_files_are_made_up() -> None:
    """Each has bytes of its type, words that are nowhere else, and what it is told by."""
    for seed in range(30):
        made = enclosures.invented(Random(seed), "q1tk")
        assert len({one.kind for one in made}) == 1
        assert all(one.content.startswith(enclosures.HEADS[one.mime]) for one in made)
        assert all(enclosures.INSIDE.encode() in one.content for one in made)
        assert all(bool(one.digest) != bool(one.as_text) for one in made)


def test_a_file_that_is_left_is_a_violation(tmp_path: Path) -> None:
    """But not what a killed listener had begun to write: that is swept away within ten minutes."""
    assert not enclosures.left(tmp_path)
    folder = tmp_path / enclosures.FOLDER
    folder.mkdir()
    (folder / ".aa.7.12.tmp").write_bytes(b"")
    assert not enclosures.left(tmp_path)
    (folder / "aa.7").write_bytes(b"")
    assert enclosures.left(tmp_path) == ["aa.7"]


def test_a_piece_of_a_file_in_the_log_is_a_violation() -> None:
    """As it is, and in base64."""
    assert not list(enclosures.in_the_log("a file of 40 bytes", [PICTURE]))
    assert list(enclosures.in_the_log(f"sent {PICTURE.content[4:]!r}", [PICTURE]))
    coded = base64.b64encode(PICTURE.content).decode()
    assert list(enclosures.in_the_log(f"{{'url': 'data:image/jpeg;base64,{coded[:60]}", [PICTURE]))
