"""Files that a person sends with a prompt: their way to the agent, and why some do not arrive."""

from __future__ import annotations

import json
import stat
import sys
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from hermes import disk
from hermes.core.prompts import STARTS_S
from hermes.errors import AgentRefused, NotSaved
from hermes.listener.phone import downloads
from hermes.model.prompt import PromptAbilities
from hermes.sandbox.phone import file_of
from hermes.storage.prompt_files import PromptFolder
from tests.listener.gates import unsaved
from tests.listening import a_request, house, question, until
from tests.prompted import PROMPTS, Desked

if TYPE_CHECKING:
    from pathlib import Path

    from hermes.model.ask import Source
    from hermes.model.files import Attachment
    from hermes.sandbox.phone_values import ShownMessage

home = house(sections=PROMPTS)
JPEG = b"\xff\xd8\xff\xe0 a picture"
LARGEST = 20 << 20


def folder(desk: Desked) -> Path:
    """The folder of files."""
    return desk.store.home.root / "files"


def kept(desk: Desked) -> list[Path]:
    """The files in it that are written."""
    return [path for path in disk.listing(folder(desk)) if not path.name.startswith(".")]


def came(desk: Desked) -> list[tuple[str, tuple[Attachment, ...]]]:
    """The texts that came to the desk, with their files."""
    return [(content.text, content.files) for _, content in desk.desk.received]


def share(desk: Desked, *media: dict[str, object], to: ShownMessage | None = None, album: str = "") -> tuple[int, ...]:
    """Send files."""
    return desk.home.api.control.share(list(media), reply_to=to.message_id if to else None, album=album)


async def sent(desk: Desked, shop: Source, *media: dict[str, object]) -> int:
    """Send files as a reply to a notice of the session; the first message."""
    return share(desk, *media, to=await desk.notice(shop))[0]


async def failed(desk: Desked, words: str) -> None:
    """Wait until the person reads this; nothing has come to the desk, and no file stays."""
    line = await desk.home.person.sees(words)
    assert "❌ Not sent: " in line.text
    assert desk.desk.received == []
    await until(lambda: not kept(desk), "no file kept")


async def test_a_picture_goes_to_its_session(desk: Desked, shop: Source) -> None:
    """With its caption; while it waits, it is a private file of a name of ours, and then it is removed."""
    shop_session = desk.desk.sessions[shop.session_id]
    shop_session.is_busy = True
    message = await sent(desk, shop, file_of("photo", JPEG, caption="What is wrong here?"))
    await until(lambda: kept(desk), "the file")
    (file,) = kept(desk)
    assert file.name == f"{desk.prompts()[0].id}.{message}"
    assert stat.S_IMODE(file.lstat().st_mode) == 0o600
    assert stat.S_IMODE(folder(desk).lstat().st_mode) == 0o700
    desk.desk.end(shop.session_id)
    await until(lambda: desk.desk.received or not await_looks(desk), "the prompt at the desk")
    ((text, (picture,)),) = came(desk)
    assert (text, picture.name, picture.mime, picture.data) == (
        "What is wrong here?",
        "picture.jpg",
        "image/jpeg",
        JPEG,
    )
    await desk.phase("running")
    desk.desk.end(shop.session_id)
    await desk.looks()
    await desk.phase("finished")
    await until(lambda: not kept(desk), "no file kept")


def await_looks(desk: Desked) -> bool:
    """Let all prompts be looked at, in the middle of a condition."""
    for prompt in desk.prompts():
        desk.home.listener._parts.steps.kick("prompt", prompt.id)
    return True


async def test_a_document_without_a_caption_is_a_prompt(desk: Desked, shop: Source) -> None:
    """Its bytes say what it is, and no path stands in its name."""
    await sent(desk, shop, file_of("document", "naïve".encode(), name="../../notes.ts", mime="video/mp2t"))
    await until(lambda: desk.desk.received, "the prompt at the desk")
    ((text, (file,)),) = came(desk)
    assert (text, file.name, file.mime, file.data) == ("", "_.._notes.ts", "text/plain", "naïve".encode())


async def test_a_text_in_another_encoding_is_told_so(desk: Desked, shop: Source) -> None:
    """That its type is not taken, and that texts are, would be a riddle."""
    await sent(desk, shop, file_of("document", "naïve".encode("latin-1"), name="notes.txt", mime="text/plain"))
    await failed(desk, "txt is not in UTF-8")


async def test_an_album_is_one_prompt(desk: Desked, shop: Source) -> None:
    """In its order, with all captions."""
    media = [file_of("photo", JPEG + bytes([number]), caption=f"{number}" if number else "") for number in range(3)]
    await sent(desk, shop, *media)
    await until(lambda: desk.desk.received, "the prompt at the desk")
    ((text, files),) = came(desk)
    assert text == "1\n2"
    assert [file.data[-1] for file in files] == [0, 1, 2]
    assert len(desk.prompts()) == 1


async def test_an_album_after_write_a_prompt_is_one_prompt(desk: Desked, shop: Source) -> None:
    """No part replies to anything then, and only the first one finds the card that waits."""
    person = desk.home.person
    person.write("/sessions")
    await person.taps(await person.sees("Your sessions"), shop.session_title)
    await person.taps(await person.sees("waits for you", buttons=True), "✏️ Write a prompt")
    await person.sees("Type your prompt")
    share(desk, file_of("photo", JPEG, caption="both"), file_of("photo", JPEG))
    await until(lambda: desk.desk.received, "the prompt at the desk")
    ((text, files),) = came(desk)
    assert (text, len(files)) == ("both", 2)


async def test_an_album_whose_pieces_come_on_both_sides_of_a_restart_is_one_prompt(desk: Desked, shop: Source) -> None:
    """The first piece is saved, and waits for the others."""
    control, updates = desk.home.api.control, desk.home.api.control.world.updates
    shown = await desk.notice(shop)
    await desk.home.stop()
    share(desk, file_of("photo", JPEG, caption="one"), file_of("photo", JPEG, caption="two"), to=shown)
    late = updates.waiting.pop()
    await desk.start()
    await until(lambda: desk.prompts() and desk.prompts()[0].parts, "the first piece")
    await desk.home.stop()
    control.redeliver(late.update_id)
    await desk.start()
    await until(lambda: desk.desk.received, "the prompt at the desk")
    ((text, files),) = came(desk)
    assert (text, len(files)) == ("one\ntwo", 2)


async def test_the_same_update_twice_is_one_file(desk: Desked, shop: Source) -> None:
    """Before and after it is over, and also of a piece of an album."""
    message = await sent(desk, shop, file_of("photo", JPEG), file_of("photo", JPEG))
    for number in (message, message + 1):
        desk.home.api.control.repeat(number)
    await desk.phase("running")
    desk.desk.end(shop.session_id)
    await desk.looks()
    await desk.phase("finished")
    desk.home.api.control.repeat(message)
    await desk.home.polled()
    assert len(desk.prompts()) == 1
    assert [len(files) for _, files in came(desk)] == [2]


async def test_a_caption_is_edited_while_the_prompt_waits(desk: Desked, shop: Source) -> None:
    """Afterwards the person hears that it is too late."""
    desk.desk.sessions[shop.session_id].is_busy = True
    message = await sent(desk, shop, file_of("photo", JPEG, caption="one"))
    await until(lambda: kept(desk), "the file")
    desk.home.api.control.rewrite(message, "two")
    await until(lambda: desk.prompts()[0].is_edited, "the edit")
    desk.desk.end(shop.session_id)
    await desk.looks()
    await until(lambda: desk.desk.received, "the prompt at the desk")
    assert came(desk)[0][0] == "two"
    desk.home.api.control.rewrite(message, "three")
    await desk.home.person.sees("Your edit came too late")


@pytest.mark.parametrize("number", [0, 1], ids=["a picture alone", "one of an album"])
async def test_a_file_that_an_edit_replaces_cancels_its_prompt(desk: Desked, shop: Source, number: int) -> None:
    """The line says why, also if Telegram tells of the edit again; the new message is a prompt."""
    desk.desk.sessions[shop.session_id].is_busy = True
    other = file_of("photo", JPEG + b"2")
    message = await sent(desk, shop, *[file_of("photo", JPEG, caption="Look")] * (number + 1)) + number
    await until(lambda: len(kept(desk)) == number + 1, "the files")
    for _ in range(2):
        desk.home.api.control.rewrite(message, "Look", **other)
        desk.home.api.control.repeat(message)
    await desk.home.person.sees("✖️ Cancelled: a file that an edit brings does not count.", buttons=False)
    await until(lambda: not kept(desk), "no file kept")
    desk.desk.sessions[shop.session_id].is_busy = False
    await sent(desk, shop, other)
    await until(lambda: desk.desk.received, "the new prompt at the desk")
    assert [[file.data for file in files] for _, files in came(desk)] == [[JPEG + b"2"]]


async def test_a_file_that_an_edit_adds_to_a_text_cancels_its_prompt(desk: Desked, shop: Source) -> None:
    """The text alone is not what the person reads any more."""
    desk.desk.sessions[shop.session_id].is_busy = True
    text = desk.home.person.write("Look", to=await desk.notice(shop))
    await desk.phase("queued")
    desk.home.api.control.rewrite(text, "Look", **file_of("document", b"text"))
    await desk.phase("withdrawn")
    await desk.home.person.sees("✖️ Cancelled: a file that an edit brings does not count.")


async def test_a_file_that_an_edit_replaces_too_late_is_told(desk: Desked, shop: Source) -> None:
    """The agent has the one before."""
    message = await sent(desk, shop, file_of("photo", JPEG))
    await until(lambda: desk.desk.received, "the prompt at the desk")
    desk.home.api.control.rewrite(message, "", **file_of("photo", JPEG + b"2"))
    told = await desk.home.person.sees("Your edit came too late")
    assert told.reply_to == message
    assert not desk.home.person.find("does not count")


async def test_a_file_of_an_earlier_hermes_takes_a_new_caption(desk: Desked, shop: Source) -> None:
    """Nobody knows whether the picture is another one."""
    desk.desk.sessions[shop.session_id].is_busy = True
    message = await sent(desk, shop, file_of("photo", JPEG, caption="one"))
    await until(lambda: kept(desk), "the file")
    await desk.home.stop()
    (path,) = (desk.home.store / "prompts").glob("*.json")
    record = json.loads(path.read_text())
    assert record["prompt"]["parts"][0]["file"].pop("unique_id")
    path.write_text(json.dumps(record))
    await desk.start()
    desk.home.api.control.rewrite(message, "two")
    await until(lambda: desk.prompts()[0].is_edited, "the edit")
    desk.desk.end(shop.session_id)
    await until(lambda: desk.desk.received or not await_looks(desk), "the prompt at the desk")
    assert [(text, file.data) for text, (file,) in came(desk)] == [("two", JPEG)]


# --- what is not sent ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("media", "words"),
    [
        pytest.param(file_of("document", b"", name="a.txt", size=LARGEST + 1), "larger than 20 MB", id="too large"),
        pytest.param(
            file_of("document", b"", name="a.mp4", mime="video/mp4"),
            "of a type that OpenCode does not take; it takes pictures, PDFs and text files",
            id="a film",
        ),
    ],
)
async def test_what_cannot_be_sent_is_not_downloaded(
    desk: Desked, shop: Source, media: dict[str, object], words: str
) -> None:
    """The person reads why."""
    await sent(desk, shop, media)
    await failed(desk, words)
    assert desk.home.api.control.calls("getFile") == ()


@pytest.mark.parametrize(
    ("media", "words"),
    [
        pytest.param(
            file_of("document", b"\0\1", name="a.bin", mime=""), "of a type that OpenCode does not take", id="no text"
        ),
        pytest.param(file_of("photo", b"broken"), "", id="a text for a picture"),
    ],
)
async def test_the_bytes_decide(desk: Desked, shop: Source, media: dict[str, object], words: str) -> None:
    """Whatever Telegram said."""
    await sent(desk, shop, media)
    if words:
        await failed(desk, words)
    else:
        await until(lambda: desk.desk.received, "the prompt at the desk")
        assert came(desk)[0][1][0].mime == "text/plain"


async def test_a_file_that_telegram_no_longer_has(desk: Desked, shop: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is tried again for a minute, because Telegram has the same words for one that comes later."""
    shown = await desk.notice(shop)
    control = desk.home.api.control
    await desk.home.stop()
    (message,) = share(desk, file_of("photo", JPEG), to=shown)
    control.lose_files(message)
    await desk.start()
    await until(lambda: len(control.calls("getFile")) > 1, "a second try")
    assert desk.prompts()[0].phase == "queued"
    desk.home.clock.advance(downloads.PATIENCE_S + 1)
    await failed(desk, "Telegram does not have that file any more")


async def test_a_download_that_breaks_off_is_tried_again(desk: Desked, shop: Source) -> None:
    """Also by the next listener."""
    control = desk.home.api.control
    shown = await desk.notice(shop)
    control.fault(method="file", action="cut", times=2)
    share(desk, file_of("photo", JPEG), to=shown)
    await until(lambda: desk.desk.received, "the prompt at the desk")
    assert [call.status for call in control.calls("file")] == [0, 0, 200]
    control.fault(method="file", action="cut", times=1000)
    share(desk, file_of("photo", JPEG + b"2"), to=shown)
    await desk.home.person.sees("📥 Getting your file from Telegram")
    await until(lambda: len(control.calls("file")) > 4, "two more tries")
    await desk.home.stop()
    control.clear_faults()
    desk.desk.end(shop.session_id)
    await desk.start()
    await until(lambda: len(desk.desk.received) == 2, "the second prompt")
    assert came(desk)[1][1][0].data == JPEG + b"2"


async def test_a_full_disk_is_said(desk: Desked, shop: Source) -> None:
    """The prompt fails; "Send again" sends it once there is room."""

    async def full(*_: object) -> None:
        raise NotSaved("the disk is full", disk_full=True)

    files = desk.home.listener._parts.phone.downloads._files
    files.__dict__["write"] = full
    await sent(desk, shop, file_of("photo", JPEG))
    await failed(desk, "the disk is full where Hermes keeps such files")
    del files.__dict__["write"]
    line = await desk.home.person.sees("disk is full", buttons=True)
    await desk.home.person.taps(line, "🔁 Send again")
    await until(lambda: desk.desk.received, "the prompt at the desk")
    assert came(desk)[0][1][0].data == JPEG


async def test_files_take_so_much_room_at_most(desk: Desked, shop: Source) -> None:
    """The one that would be too much says so, and the others stay."""
    files = desk.home.listener._parts.phone.downloads._files
    assert isinstance(files, PromptFolder)
    files._most_bytes = len(JPEG) + 5
    desk.desk.sessions[shop.session_id].is_busy = True
    await sent(desk, shop, file_of("photo", JPEG))
    await until(lambda: kept(desk), "the first file")
    share(desk, file_of("photo", JPEG), to=await desk.notice(shop, "And now?"))
    await desk.home.person.sees("take 500 MB already")
    assert len(kept(desk)) == 1


async def test_a_locked_phone_downloads_nothing(desk: Desked, shop: Source) -> None:
    """What was not sent waits."""
    control = desk.home.api.control
    control.fault(method="file", action="cut", times=1000)
    await sent(desk, shop, file_of("photo", JPEG))
    await until(lambda: control.calls("file"), "a try")
    await desk.store.lock_phone()
    await until(lambda: all(call.status == 0 for call in control.calls("file")), "the end of each try")
    tries = len(control.calls("file"))
    control.clear_faults()
    for _ in range(5):
        await desk.looks()
    assert len(control.calls("file")) == tries
    assert desk.desk.received == []
    await desk.store.unlock_phone()
    await until(lambda: desk.desk.received or not await_files(desk), "the prompt at the desk")


def await_files(desk: Desked) -> bool:
    """Let the files of all prompts be looked at."""
    for prompt in desk.prompts():
        desk.home.listener._parts.steps.kick("file", prompt.id)
    return True


async def test_prompts_that_were_switched_off_meanwhile(desk: Desked, shop: Source) -> None:
    """The prompt is not sent, and its file does not stay."""
    control = desk.home.api.control
    control.fault(method="file", action="cut", times=1000)
    await sent(desk, shop, file_of("photo", JPEG))
    await until(lambda: control.calls("file"), "a try")
    control.clear_faults()
    await desk.again(prompts={"enabled": False})
    await failed(desk, "this phone may no longer write to that project")


async def test_a_file_for_a_project_that_is_no_longer_allowed_is_not_downloaded(desk: Desked, shop: Source) -> None:
    """Nor if prompts are off; the person reads the words that they read of any other prompt."""
    control = desk.home.api.control
    shown = await desk.notice(shop)
    for number, section in enumerate(({"enabled": False}, {"enabled": True, "projects": ["blog"]}), 1):
        await desk.again(prompts={"enabled": True})
        control.fault(method="getFile", action="cut", times=1000)
        share(desk, file_of("photo", JPEG), to=shown)
        await desk.phase("queued")
        control.clear_faults()
        await desk.home.stop()
        calls = len(control.calls("getFile"))
        await desk.start(prompts=section)
        await failed(desk, "this phone may no longer write to that project")
        await desk.phase("failed", number)
        assert len(control.calls("getFile")) == calls


async def test_a_server_that_keeps_files_to_itself_is_named(desk: Desked, shop: Source) -> None:
    """A Bot API with `--local` names a place on its own disk; sending the file again would not help."""
    files = desk.home.api.control.world.files
    desk.home.api.control.fault(method="getFile", action="cut", times=1)
    await sent(desk, shop, file_of("photo", JPEG))
    for file_id, file in files.known.items():
        files.known[file_id] = replace(file, path=f"/var/lib/{file.path}")
    await failed(desk, "gives no address for its files")


async def test_an_agent_without_files_says_so(desk: Desked, shop: Source) -> None:
    """Nothing is downloaded for it."""
    texts = desk.home.listener._parts.phone.updates._phone._texts.prompts
    texts._abilities = {**texts._abilities, "opencode": PromptAbilities()}
    await sent(desk, shop, file_of("photo", JPEG))
    await failed(desk, "OpenCode takes text alone from here, no files")
    assert desk.home.api.control.calls("getFile") == ()


async def test_a_model_without_pictures_is_named_before_anything_is_sent(desk: Desked, shop: Source) -> None:
    """With another one, "Send again" works, although the file was removed."""
    desk.desk.objects = AgentRefused("no pictures", said="the model “Small” takes no pictures")
    await sent(desk, shop, file_of("photo", JPEG))
    await failed(desk, "the model “Small” takes no pictures")
    desk.desk.objects = None
    line = await desk.home.person.sees("takes no pictures", buttons=True)
    await desk.home.person.taps(line, "🔁 Send again")
    await until(lambda: desk.desk.received, "the prompt at the desk")
    assert came(desk)[0][1][0].data == JPEG


async def test_a_file_that_was_removed_meanwhile_is_said(desk: Desked, shop: Source) -> None:
    """Somebody has tidied up."""
    desk.desk.sessions[shop.session_id].is_busy = True
    await sent(desk, shop, file_of("photo", JPEG))
    await until(lambda: kept(desk), "the file")
    kept(desk)[0].unlink()
    desk.desk.end(shop.session_id)
    await desk.looks()
    await failed(desk, "I don't have its file any more")


async def test_files_are_removed_when_their_prompt_is_cancelled_or_too_old(desk: Desked, shop: Source) -> None:
    """And those that no prompt knows."""
    desk.desk.sessions[shop.session_id].is_busy = True
    await sent(desk, shop, file_of("photo", JPEG))
    line = await desk.home.person.sees("⏳ Waits")
    await until(lambda: kept(desk), "the file")
    await desk.home.person.taps(line, "✖️ Cancel")
    await until(lambda: not kept(desk), "no file kept")
    share(desk, file_of("photo", JPEG), to=line)
    await until(lambda: kept(desk), "the second file")
    (folder(desk) / "unknown.7").write_bytes(b"x")
    known = desk.prompts()[-1]
    forgotten = desk.kept.prompts._known.pop(known.id)
    await desk.home.listener._loops.tidy()
    assert len(kept(desk)) == 1, "the store knows that prompt, as it does one that was just moved in"
    desk.kept.prompts._known[known.id] = forgotten
    desk.home.clock.advance(STARTS_S + 8 * 86400)
    await desk.home.listener._loops.tidy()
    assert kept(desk) == []


async def test_a_file_for_an_ask_is_refused(desk: Desked, shop: Source) -> None:
    """As a reply, and while one is open; else the person is asked what it is for."""
    person = desk.home.person
    with desk.home.waiting("que_1"):
        desk.home.hook("question.asked", a_request("que_1", question()))
        shown = await person.sees("Which database?", buttons=True)
        await desk.home.noted(shown)
        share(desk, file_of("photo", JPEG, caption="SQLite"), to=shown)
        hint = await person.sees("An answer can only be words")
        share(desk, file_of("photo", JPEG, caption="SQLite"))
        await until(lambda: any(one.message_id > hint.message_id for one in person.shown()), "a second hint")
        assert "An answer can only be words" in person.shown()[-1].text
        assert desk.prompts() == []


async def test_an_album_for_an_ask_is_refused_once(desk: Desked, shop: Source) -> None:
    """Its pieces are messages of their own; the next album is refused, too."""
    person = desk.home.person
    with desk.home.waiting("que_1"):
        desk.home.hook("question.asked", a_request("que_1", question()))
        shown = await person.sees("Which database?", buttons=True)
        await desk.home.noted(shown)
        pictures = [file_of("photo", JPEG, caption="SQLite"), file_of("photo", JPEG), file_of("photo", JPEG)]
        firsts = [share(desk, *pictures, to=shown)[0] for _ in range(2)]
        written = person.write("/help")
        await person.sees("When your coding agent asks something")
        told = [one.reply_to for one in person.shown() if one.message_id > shown.message_id]
        assert told == [*firsts, written]


async def test_a_file_alone_is_offered(desk: Desked, shop: Source) -> None:
    """As a text without a target is; the album stays together."""
    await desk.notice(shop)
    share(desk, file_of("photo", JPEG, caption="Look"), file_of("photo", JPEG))
    asked = await desk.home.person.sees("What is this for?", buttons=True)
    await desk.home.person.taps(asked, "Fix login flow")
    await until(lambda: desk.desk.received, "the prompt at the desk")
    ((text, files),) = came(desk)
    assert (text, len(files)) == ("Look", 2)


@pytest.mark.parametrize("number", [1, 2], ids=["one question", "two questions"])
async def test_an_album_for_a_card_that_is_not_noted_stays_together(desk: Desked, shop: Source, number: int) -> None:
    """It is no answer, although questions are open. The card is noted between its pieces."""
    person, jobs = desk.home.person, desk.home.listener._parts.steps
    with ExitStack() as open_ones:
        for name in ("que_1", "que_2")[:number]:
            open_ones.enter_context(desk.home.waiting(name))
            desk.home.hook("question.asked", a_request(name, question(f"{name}?")))
            await desk.home.noted(await person.sees(f"{name}?", buttons=True))
        person.write("/sessions")
        sessions = await person.sees("Your sessions")
        with desk.home.clock.standing():
            with unsaved(desk.kept.cards, lambda card: card.shown is not None):
                await person.taps(sessions, shop.session_title)
                card = await person.sees("waits for you", buttons=True)
                share(desk, file_of("photo", JPEG, caption="Look"), to=card, album="7")
                await until(lambda: any(one.due_s for one in desk.prompts()), "the first piece")
            jobs.kick("card", desk.kept.cards.all()[0].id)
            await until(lambda: desk.kept.cards.all()[0].shown == card.message_id, "the card noted")
            share(desk, file_of("photo", JPEG), to=card, album="7")
        await person.taps(await person.sees("What is this for?", buttons=True), shop.session_title)
        await until(lambda: desk.desk.received, "the prompt at the desk")
        ((text, files),) = came(desk)
        assert (text, len(files)) == ("Look", 2)


# --- voice notes --------------------------------------------------------------------------------------------------


VOICE = b"OggS a voice note"


def hearing(desk: Desked, *lines: str) -> dict[str, object]:
    """The settings with a program that hears voice notes."""
    path = desk.home.root / "hear.py"
    path.write_text("\n".join(("import sys, time", *lines)))
    return {"enabled": True, "transcribe": [sys.executable, str(path)]}


async def test_a_voice_note_is_sent_once_the_person_agrees(desk: Desked, shop: Source) -> None:
    """Nothing leaves before, also over a restart; the agent gets a text, and nothing stays on the disk."""
    told = hearing(desk, "print('Fix the', len(open(sys.argv[1], 'rb').read()), 'tests')")
    await desk.again(prompts=told)
    await sent(desk, shop, file_of("voice", VOICE))
    line = await desk.home.person.sees("🎤 I heard: Fix the 17 tests – shall I send that?", buttons=True)
    assert kept(desk) == []
    await desk.again(prompts=told)
    await desk.looks()
    assert desk.desk.received == []
    await desk.home.person.taps(line, "✅ Send")
    await until(lambda: desk.desk.received, "the prompt at the desk")
    assert came(desk) == [("Fix the 17 tests", ())]
    assert await desk.home.person.toast(desk.home.person.control.tap(line.message_id, data=line.rows[0][0].data)[-1])
    await desk.looks()
    assert len(desk.desk.received) == 1
    assert not desk.prompts()[0].is_hurried


async def test_a_voice_note_is_not_heard_once_prompts_are_off(desk: Desked, shop: Source) -> None:
    """The program is not started again."""
    ran = desk.home.root / "ran"
    told = hearing(desk, f"open({str(ran)!r}, 'a').write('x')", "time.sleep(600)")
    await desk.again(prompts=told)
    await sent(desk, shop, file_of("voice", VOICE))
    await until(lambda: ran.exists() and ran.read_text(), "the program")
    await desk.again(prompts={**told, "enabled": False})
    await failed(desk, "this phone may no longer write to that project")
    assert ran.read_text() == "x"


async def test_a_voice_note_that_waits_for_a_yes_holds_up_nobody(desk: Desked, shop: Source) -> None:
    """Once the person agrees, it is the next one."""
    await desk.again(prompts=hearing(desk, "print('Fix it')"))
    shown = await desk.notice(shop)
    share(desk, file_of("voice", VOICE), to=shown)
    line = await desk.home.person.sees("I heard: Fix it", buttons=True)
    desk.home.person.write("Rename it", to=shown)
    await until(lambda: desk.desk.received, "the later prompt")
    assert came(desk) == [("Rename it", ())]
    await desk.home.person.taps(line, "✅ Send")
    await desk.home.person.sees("Waits for the current turn")
    desk.desk.end(shop.session_id)
    await until(lambda: len(desk.desk.received) == 2 or not await_looks(desk), "the voice note")
    assert came(desk)[1] == ("Fix it", ())


async def test_a_voice_note_that_waited_too_long_for_a_yes_asks_for_it_again(desk: Desked, shop: Source) -> None:
    """A new message rings, with the words; one tap on it is enough."""
    await desk.again(prompts=hearing(desk, "print('Fix it')"))
    await sent(desk, shop, file_of("voice", VOICE))
    before = await desk.home.person.sees("I heard: Fix it", buttons=True)
    await until(lambda: desk.prompts()[0].line.message_id == before.message_id, "the line noted")
    desk.home.clock.advance(STARTS_S + 60)
    await desk.looks()
    line = await desk.home.person.sees(" min. 🎤 I heard: Fix it – shall I send that?", buttons=True)
    assert not line.silent
    await desk.home.person.gone(before)
    assert await desk.home.person.taps(line, "✅ Send") == "All right, I send it"
    await until(lambda: desk.desk.received, "the prompt at the desk")
    assert came(desk) == [("Fix it", ())]


async def test_an_edit_below_a_voice_note_changes_nothing(desk: Desked, shop: Source) -> None:
    """Neither what the person agreed to, nor what they are asked about; each time they read so."""
    await desk.again(prompts=hearing(desk, "print('Fix it')"))
    desk.desk.sessions[shop.session_id].is_busy = True
    message = await sent(desk, shop, file_of("voice", VOICE, caption="Listen"))
    line = await desk.home.person.sees("I heard: Listen", buttons=True)

    def hints() -> int:
        return len([one for one in desk.home.person.shown() if "An edit below a voice note" in one.text])

    desk.home.api.control.rewrite(message, "Look")
    await until(lambda: hints() == 1, "the hint")
    await desk.home.person.taps(line, "✅ Send")
    await desk.home.person.sees("Waits for the current turn")
    desk.home.api.control.rewrite(message, "Something else")
    await until(lambda: hints() == 2, "the hint again")
    desk.desk.end(shop.session_id)
    await until(lambda: desk.desk.received or not await_looks(desk), "the prompt at the desk")
    assert came(desk) == [("Listen\nFix it", ())]
    assert not any("was not sent" in one.text for one in desk.home.person.shown())


async def test_a_voice_note_that_was_heard_wrong_is_cancelled(desk: Desked, shop: Source) -> None:
    """The agent never gets it."""
    await desk.again(prompts=hearing(desk, "print('Fax the tests')"))
    await sent(desk, shop, file_of("voice", VOICE))
    line = await desk.home.person.sees("I heard: Fax the tests", buttons=True)
    await desk.home.person.taps(line, "✖️ Cancel")
    await desk.phase("withdrawn")
    assert desk.desk.received == []


async def test_without_a_program_a_voice_note_is_refused(desk: Desked, shop: Source) -> None:
    """The person reads how to switch it on; nothing is downloaded."""
    await sent(desk, shop, file_of("voice", VOICE))
    hint = await desk.home.person.sees("I can't hear voice notes yet: on ")
    assert "[prompts]" in hint.text
    share(desk, file_of("voice", VOICE))
    await until(lambda: len([one for one in desk.home.person.shown() if "hear voice" in one.text]) == 2, "again")
    assert desk.home.api.control.calls("getFile") == ()
    assert desk.prompts() == []


async def test_a_program_that_fails_is_told(desk: Desked, shop: Source) -> None:
    """A tap on "Send again" tries it once more."""
    await desk.again(prompts=hearing(desk, "sys.exit(3)"))
    await sent(desk, shop, file_of("voice", VOICE))
    await failed(desk, "ended with the status 3")
    hearing(desk, "print('Now it works')")
    line = await desk.home.person.sees("ended with the status 3", buttons=True)
    await desk.home.person.taps(line, "🔁 Send again")
    await desk.home.person.sees("I heard: Now it works")


async def test_a_voice_note_goes_to_an_agent_that_takes_text_alone(desk: Desked, shop: Source) -> None:
    """It becomes one."""
    await desk.again(prompts=hearing(desk, "print('Fix it')"))
    texts = desk.home.listener._parts.phone.updates._phone._texts.prompts
    texts._abilities = {**texts._abilities, "opencode": PromptAbilities()}
    await sent(desk, shop, file_of("voice", VOICE))
    line = await desk.home.person.sees("I heard: Fix it", buttons=True)
    await desk.home.person.taps(line, "✅ Send")
    await until(lambda: desk.desk.received, "the prompt at the desk")


async def test_a_program_that_is_not_named_any_more(desk: Desked, shop: Source) -> None:
    """The note was taken in when there was one."""
    await desk.again(prompts=hearing(desk, "time.sleep(600)"))
    await sent(desk, shop, file_of("voice", VOICE))
    await desk.home.person.sees("🎤 Listening to your voice note")
    await until(lambda: kept(desk), "the sound file")
    await desk.again(prompts={"enabled": True})
    await failed(desk, "no program hears voice notes any more")
