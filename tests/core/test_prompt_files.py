"""Which files go with a prompt, and what a person reads about the others."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from hermes.core import prompt_files, prompts
from hermes.core.prompt_files import MOST_BYTES, called, kind_of, strange, type_of
from hermes.model.ask import Source
from hermes.model.files import File
from hermes.model.prompt import Prompt, PromptAbilities, Sight, Target
from hermes.model.prompt_events import Addressed, Agreed, Edited, Fetched, Heard, Hurried, Seen, Withdrawn
from hermes.model.state import Part
from tests.asks import ANN, CHAT_ID

CAN = PromptAbilities(("text", "task"), files=("picture", "pdf", "text"))
TARGET = Target(Source("opencode", "laptop", "ses_1", "/home/dev/shop-api"), "OpenCode", CAN)
PNG = b"\x89PNG\r\n\x1a\n and so on"
PICTURE = File("f1", "picture.jpg", "image/jpeg", 1000)


def prompt(*files: File, text: str = "Look", target: Target = TARGET) -> Prompt:
    """A prompt with these files; the text is the caption of the first one."""
    parts = tuple(Part(7 + number, "" if number else text, file=file) for number, file in enumerate(files))
    return prompts.step(Prompt("p1", ANN, CHAT_ID, parts, 0.0), Addressed(0.0, target))


@pytest.mark.parametrize(
    ("mime", "kind"),
    [
        ("image/png", "picture"),
        ("IMAGE/JPEG; q=1", "picture"),
        ("image/webp", "picture"),
        ("image/heic", None),
        ("image/tiff", None),
        ("image/svg+xml", "text"),
        ("application/pdf", "pdf"),
        ("text/x-python", "text"),
        ("application/json", "text"),
        ("application/octet-stream", "text"),
        ("", "text"),
        ("video/mp2t", "text"),
        ("video/mp4", None),
        ("audio/ogg", None),
        ("application/zip", None),
        ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", None),
    ],
)
def test_what_telegram_says_of_a_file(mime: str, kind: str | None) -> None:
    """A TypeScript source is a video to it, and many a text has no type; so only what is certain is refused."""
    assert kind_of(File("f1", mime=mime)) == kind


@pytest.mark.parametrize(
    ("data", "mime"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a..", "image/gif"),
        (b"RIFF\n\n\n\nWEBPVP8", "image/webp"),
        (b"RIFF\0\0\0\0WAVE", None),
        (b"%PDF-1.7", "application/pdf"),
        ("naïve 🐘\n".encode(), "text/plain"),
        (b"", "text/plain"),
        (b"a\0b", None),
        (b"PK\x03\x04\xff", None),
        ("Ü".encode("latin-1"), None),
    ],
)
def test_the_bytes_of_a_file_decide_its_type(data: bytes, mime: str | None) -> None:
    """Its name and the word of an app prove nothing."""
    assert type_of(data) == mime


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("notes.txt", "notes.txt"),
        ("../../.ssh/config", "_.._.ssh_config"),
        ("C:\\Users\\a.txt", "C:_Users_a.txt"),
        ("a\nb\x00.txt", "a_b_.txt"),
        ("", "a file"),
        ("...", "a file"),
        ("x" * 200 + ".txt", "x" * 76 + ".txt"),
    ],
)
def test_a_name_names_no_folder(name: str, shown: str) -> None:
    """It is a word for people and for the model."""
    assert called(File("f1", name)) == shown


@given(st.text())
def test_no_name_has_a_separator(name: str) -> None:
    """Nor is any empty."""
    assert not set(called(File("f1", name))) & set("/\\\0\n")
    assert called(File("f1", name))


def test_a_prompt_waits_for_all_its_files() -> None:
    """Then it goes on as any other."""
    one = prompt(PICTURE, replace(PICTURE, file_id="f2"))
    assert prompts.wants_files(one, 0.0)
    assert prompts.due(one, is_next=True, now_s=0.0) is None
    assert prompts.step(one, Seen(0.0, Sight("idle", next_id="m1"))).phase == "queued"
    one = prompts.step(one, Fetched(7, "image/png", 5))
    assert prompts.due(one, is_next=True, now_s=0.0) is None
    one = prompts.step(one, Fetched(8, "image/png", 5))
    assert not prompts.wants_files(one, 0.0)
    assert prompts.due(one, is_next=True, now_s=0.0) == prompts.Look()
    assert [part.file and part.file.mime for part in one.parts] == ["image/png", "image/png"]


def test_nothing_is_downloaded_for_a_prompt_that_has_waited_too_long() -> None:
    """Or that was cancelled."""
    one = prompt(PICTURE)
    assert not prompts.wants_files(one, prompts.STARTS_S)
    assert not prompts.wants_files(prompts.step(one, Withdrawn()), 0.0)


@pytest.mark.parametrize(
    ("files", "text", "can", "reason"),
    [
        ([PICTURE], "", PromptAbilities(), "OpenCode takes text alone from here, no files"),
        ([PICTURE], "/task @general Look", CAN, "a task takes no files"),
        ([replace(PICTURE, size=MOST_BYTES + 1)], "", CAN, "its files are larger than 20 MB"),
        ([replace(PICTURE, size=MOST_BYTES // 2 + 1)] * 2, "", CAN, "its files are larger than 20 MB"),
        (
            [PICTURE, File("f2", "clip.mp4", "video/mp4")],
            "",
            CAN,
            "clip.mp4 is of a type that OpenCode does not take; it takes pictures, PDFs and text files",
        ),
        ([File("f2", "a.pdf", "application/pdf")], "", PromptAbilities(files=("picture",)), "it takes pictures"),
    ],
)
def test_what_an_agent_does_not_take_is_said_before_anything_is_sent(
    files: list[File], text: str, can: PromptAbilities, reason: str
) -> None:
    """And before it is downloaded."""
    one = prompt(*files, text=text, target=replace(TARGET, can=can))
    assert one.phase == "failed"
    assert reason in one.reason
    assert not one.tries


def test_a_file_that_is_not_what_telegram_said_is_refused_after_the_download() -> None:
    """By its bytes, or by their number."""
    can = replace(TARGET, can=PromptAbilities(files=("text",)))
    assert prompts.step(prompt(File("f1", "a.txt"), target=can), Fetched(7, "image/png", 5)).phase == "failed"
    assert prompts.step(prompt(PICTURE), Fetched(7, "image/png", MOST_BYTES + 1)).phase == "failed"


def test_captions_are_the_text() -> None:
    """Each in a line of its own; none is needed, and one can be edited to nothing."""
    one = prompt(PICTURE, PICTURE, text="Look")
    assert prompts.content(one).text == "Look"
    one = prompts.step(one, Edited(8, "and here"))
    assert prompts.content(one).text == "Look\nand here"
    one = prompts.step(prompts.step(one, Edited(7, "")), Edited(8, ""))
    assert (prompts.content(one).text, one.phase) == ("", "queued")
    assert prompt_files.lacking(one)


def test_an_edit_that_brings_another_file_withdraws_the_prompt() -> None:
    """Once: if Telegram tells of the edit again, the file is no other one."""
    first, second = replace(PICTURE, unique_id="u1"), replace(PICTURE, file_id="f2", unique_id="u2")
    one = prompts.step(prompt(first, first), Edited(8, "", second))
    assert one.phase == "withdrawn"
    assert [part.file for part in one.parts] == [first, second]
    assert not prompt_files.brings_file(one.parts, Edited(8, "", second))


def test_a_new_caption_withdraws_nothing() -> None:
    """Telegram may have a new id for the same file; an earlier Hermes did not keep the one that stays."""
    known = replace(PICTURE, unique_id="u1")
    for before, now in ((known, replace(known, file_id="f2")), (PICTURE, known), (known, PICTURE)):
        one = prompts.step(prompt(before), Edited(7, "Now", now))
        assert (one.phase, one.is_edited, one.parts[0]) == ("queued", True, Part(7, "Now", file=before))


def test_an_edit_that_adds_a_file_to_a_text_withdraws_the_prompt() -> None:
    """But a voice note is no new file: its words are a text once the person has agreed."""
    one = replace(prompt(PICTURE), parts=(Part(7, "Look"),))
    assert prompts.step(one, Edited(7, "", PICTURE)).phase == "withdrawn"
    assert not prompt_files.brings_file(one.parts, Edited(7, "Look", VOICE))


VOICE = File("f1", "voice note", "audio/ogg", 1000, is_voice=True)


def test_the_words_of_a_voice_note_leave_once_the_person_agrees() -> None:
    """To an agent that takes text alone, too; the time in which it begins by itself starts then."""
    one = prompt(VOICE, text="", target=replace(TARGET, can=PromptAbilities()))
    assert prompts.step(one, Agreed(1.0)) == one
    one = prompts.step(one, Heard(7, "Fix it"))
    assert prompt_files.heard(one) == "Fix it"
    assert prompts.step(one, Heard(7, "Fax it")) == one
    assert prompts.step(one, Edited(7, "Something else")) == one
    for before in (one, prompts.step(one, Hurried(1.0))):
        assert prompts.due(before, is_next=True, now_s=1.0) is None
    one = prompts.step(one, Agreed(100.0))
    assert one.parts == (Part(7, "Fix it"),)
    assert one.starts_until_s == 100.0 + prompts.STARTS_S
    assert prompts.due(one, is_next=True, now_s=100.0) == prompts.Look()
    assert prompts.content(one).text == "Fix it"


def test_a_caption_stands_above_what_was_heard() -> None:
    """And one that is too large is not downloaded."""
    assert prompt_files.heard(prompts.step(prompt(VOICE, text="Listen"), Heard(7, "Fix it"))) == "Listen\nFix it"
    assert prompt(replace(VOICE, size=MOST_BYTES + 1)).phase == "failed"


def test_a_strange_file_is_refused_before_its_agent_is_known() -> None:
    """The agent's own types are named once it is."""
    file = replace(PICTURE, name="model.stl", mime="model/stl")
    assert strange(file, None) == f"{called(file)} is of an unknown type"
    assert strange(file, TARGET).endswith("OpenCode does not take; it takes pictures, PDFs and text files")
