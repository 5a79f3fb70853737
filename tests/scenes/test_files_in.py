"""A person sends pictures and documents from the phone to a real OpenCode. Each scene says what the model received."""

from __future__ import annotations

import base64
import struct
import sys
import zlib
from typing import TYPE_CHECKING, Any

import pytest

from hermes.sandbox import opencode_home
from hermes.sandbox.model_server import MODEL_ID, script
from hermes.sandbox.phone import file_of
from tests.harness.processes import until
from tests.scenes.stage import NEWEST, PATIENCE_S
from tests.scenes.test_prompts import a_notice, received

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermes.sandbox.model_server import ScriptedModel
    from hermes.sandbox.phone_values import ShownMessage
    from tests.harness.home import Home
    from tests.harness.opencode import OpenCode
    from tests.scenes.stage import Stage

OLD = "1.1.53"
PDF = b"%PDF-1.4\nA short one.\n%%EOF\n"


def png(side: int = 8, *, noise: bytes = b"") -> bytes:
    """A red picture of this many pixels a side; `noise` makes it larger."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + b"\xff\0\0" * side for _ in range(side))
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
    return (
        b"\x89PNG\r\n\x1a\n"
        + head
        + chunk(b"tEXt", b"x\0" + noise)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def said(word: str) -> str:
    """A caption that lets the model say this; the word is in it, too."""
    return script([{"text": f"I see {word}."}])


@pytest.fixture
def prompted(stage: Stage, opencode: OpenCode) -> Stage:
    """A stage whose phone may send prompts, and that tells of each turn, however short."""
    stage.connect(opencode)
    stage.start(notices={"finished": "0s"}, prompts={"enabled": True})
    return stage


def seeing_provider(home: Home) -> dict[str, Any]:
    """The provider of a model that takes pictures and PDFs."""
    provider: dict[str, Any] = opencode_home.settings(home.model_url)["provider"]
    provider["fake"]["models"][MODEL_ID]["modalities"] = {"input": ["text", "image", "pdf"], "output": ["text"]}
    return provider


@pytest.fixture
def seeing(opencode: OpenCode, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A project whose model takes pictures and PDFs."""
    name = request.node.name.replace("[", "-").replace("]", "")[:40]
    directory = opencode.home.project(name, provider=seeing_provider(opencode.home))
    yield directory
    opencode.discard(directory)


def pictures(model: ScriptedModel, word: str) -> list[bytes]:
    """The pictures that the model received with this word."""
    urls = [part["image_url"]["url"] for part in model.attached(word) if part["type"] == "image_url"]
    return [base64.b64decode(url.partition("base64,")[2]) for url in urls]


def no_file_is_kept(stage: Stage) -> None:
    """Wait until the folder of files is empty."""

    def empty() -> bool:
        assert list((stage.store / "files").iterdir()) == []
        return True

    until(empty, PATIENCE_S, "no file kept")


@pytest.mark.story
def test_a_picture_a_document_and_an_album_reach_the_model(
    prompted: Stage, opencode: OpenCode, model: ScriptedModel, seeing: Path
) -> None:
    """To the byte, with their captions, once each; nothing stays on the disk, and no token in the log."""
    session = opencode.session(seeing, "Fix login flow")
    notice = a_notice(prompted, opencode, session, "Fix login flow")
    prompted.phone.send_photo(png(), caption=said("one"), reply_to=notice)
    prompted.ended("I see one.")
    assert pictures(model, "I see one") == [png()]

    text = "naïve = '🐘'\nprint(naïve)\n"
    prompted.phone.send_document(text.encode(), "a.py", "text/x-python", caption=said("two"), reply_to=notice)
    prompted.ended("I see two.")
    assert f"a.py:\n\n{text}" in "\n".join(model.asked("I see two")[-1])

    album = [file_of("photo", png(9), caption=said("three")), file_of("photo", png(10))]
    prompted.phone.share([*album, file_of("document", b"notes", name="notes.txt")], reply_to=notice)
    prompted.ended("I see three.")
    assert pictures(model, "I see three")[-2:] == [png(9), png(10)]
    assert "notes.txt:\n\nnotes" in "\n".join(model.asked("I see three")[-1])

    files = [part for one in opencode.messages(session) for part in one["parts"] if part["type"] == "file"]
    assert [part["mime"] for part in files] == ["image/png"] * 3
    assert all(part["url"].startswith("data:image/png;base64,") for part in files)
    no_file_is_kept(prompted)
    assert prompted.api.token.partition(":")[2] not in prompted.log.read_text()


@NEWEST
def test_a_pdf_reaches_the_model(prompted: Stage, opencode: OpenCode, model: ScriptedModel, seeing: Path) -> None:
    """With its name. 1.1.53 cannot send one to a model of this kind, and says so."""
    session = opencode.session(seeing, "Fix login flow")
    notice = a_notice(prompted, opencode, session, "Fix login flow")
    prompted.phone.send_document(PDF, "spec.pdf", "application/pdf", caption=said("pdf"), reply_to=notice)
    prompted.ended("I see pdf.")
    (part,) = model.attached("I see pdf")
    assert part["file"]["filename"] == "spec.pdf"
    assert base64.b64decode(part["file"]["file_data"].partition("base64,")[2]) == PDF


def test_a_large_picture_reaches_the_model_and_is_confirmed(
    prompted: Stage, opencode: OpenCode, model: ScriptedModel, seeing: Path
) -> None:
    """The agent's record, from which Hermes confirms it, is as large. 1.18.33 makes it smaller for the model."""
    session = opencode.session(seeing, "Fix login flow")
    notice = a_notice(prompted, opencode, session, "Fix login flow")
    large = png(noise=bytes(range(1, 256)) * 60_000)
    prompted.phone.send_document(large, "large.png", "image/png", caption=said("large"), reply_to=notice)
    prompted.ended("✅ Done")
    assert len(pictures(model, "I see large")) == 1
    prompted.phone.write(script([{"text": "And I see more."}]), reply_to=notice)
    prompted.ended("And I see more.")


@pytest.mark.story
def test_a_model_that_takes_no_pictures_is_named_before_anything_is_sent(
    prompted: Stage, opencode: OpenCode, project: Path
) -> None:
    """OpenCode would send the model an error in place of the picture. A text is sent to it all the same."""
    session = opencode.session(project, "Fix login flow")
    notice = a_notice(prompted, opencode, session, "Fix login flow")
    before = received(opencode, session)
    prompted.phone.send_photo(png(), caption=said("nothing"), reply_to=notice)
    line = prompted.asked("❌ Not sent: the model")
    assert f"the model {MODEL_ID} takes no pictures" in line.text
    assert received(opencode, session) == before
    prompted.phone.send_document(b"words", "a.txt", caption=said("words"), reply_to=notice)
    prompted.ended("I see words.")


@NEWEST
def test_a_new_session_asks_the_configuration_for_its_model(
    prompted: Stage, opencode: OpenCode, model: ScriptedModel, seeing: Path
) -> None:
    """There is no prompt yet that names one."""
    session = opencode.session(seeing, "Empty")
    prompted.phone.write("/sessions")
    prompted.phone.tap(prompted.asked("Your sessions"), "Empty")
    card = prompted.asked("waits for you")
    prompted.phone.send_photo(png(), caption=said("first"), reply_to=card)
    prompted.ended("I see first.")
    assert pictures(model, "I see first") == [png()]
    assert session


@NEWEST
def test_a_listener_that_is_killed_while_it_downloads_sends_each_file_once(
    prompted: Stage, opencode: OpenCode, model: ScriptedModel, seeing: Path
) -> None:
    """The prompt was saved before it was acknowledged; the next listener downloads."""
    session = opencode.session(seeing, "Fix login flow")
    notice = a_notice(prompted, opencode, session, "Fix login flow")
    prompted.phone.fault("file", "hang", hang_s=60)
    prompted.phone.send_photo(png(), caption=said("late"), reply_to=notice)
    prompted.phone.wait(lambda: prompted.phone.calls("file"), what="a download")
    prompted.kill()
    prompted.phone.clear_faults()
    prompted.start()
    prompted.ended("I see late.")
    assert pictures(model, "I see late") == [png()]
    assert received(opencode, session).count(said("late")) == 1
    no_file_is_kept(prompted)


@NEWEST
def test_a_voice_note_reaches_the_model_as_the_text_that_the_person_has_read(
    stage: Stage, opencode: OpenCode, project: Path
) -> None:
    """Not before the yes; the one that is cancelled never does."""
    hear = stage.root / "hear.py"
    hear.write_text("import sys; print(open(sys.argv[-1], 'rb').read()[4:].decode())")
    stage.connect(opencode)
    prompts = {"enabled": True, "transcribe": [sys.executable, str(hear), "--language", "en"]}
    stage.start(notices={"finished": "0s"}, prompts=prompts)
    session = opencode.session(project, "Fix login flow")
    notice = a_notice(stage, opencode, session, "Fix login flow")
    before = received(opencode, session)
    stage.phone.send_voice(b"OggS" + said("a voice").encode(), reply_to=notice)
    line = stage.asked("🎤 I heard: ")
    assert received(opencode, session) == before
    stage.phone.tap(line, "✅ Send")
    stage.ended("I see a voice.")
    stage.phone.send_voice(b"OggS" + said("another").encode(), reply_to=notice)
    again = stage.phone.wait(lambda: _heard(stage, "another"), what="what was heard")
    stage.phone.tap(again, "✖️ Cancel")
    stage.ended("✖️ Cancelled")
    assert received(opencode, session) == [*before, said("a voice")]
    no_file_is_kept(stage)


def _heard(stage: Stage, word: str) -> ShownMessage | None:
    return next((one for one in stage.phone.shown() if "I heard: " in one.text and word in one.text), None)
