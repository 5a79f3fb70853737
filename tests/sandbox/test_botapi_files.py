"""The files of the local Bot API: what a bot gets of them, and when it gets none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest
from aiogram import Bot as AiogramBot
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.exceptions import TelegramBadRequest
from aiogram.types import Update as AiogramUpdate
from telegram import Bot, Update
from telegram.error import BadRequest

from hermes.sandbox.botapi import RunningBotApi, running_botapi
from hermes.sandbox.phone import file_of
from tests.sandbox.raw_bot import RawBot, raw_bot

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

ANN = 1001
PICTURE = b"\xff\xd8\xff\xe0 a picture"
LARGEST = 20 << 20


@pytest.fixture
def api() -> Iterator[RunningBotApi]:
    """A server with one person."""
    with running_botapi() as api:
        yield api


@pytest.fixture
def raw(api: RunningBotApi) -> Iterator[RawBot]:
    """A bot without a library."""
    with raw_bot(api) as bot:
        yield bot


@pytest.fixture
async def bot(api: RunningBotApi) -> AsyncIterator[Bot]:
    """The bot of python-telegram-bot."""
    async with Bot(api.token, base_url=f"{api.base_url}/bot", base_file_url=f"{api.base_url}/file/bot") as bot:
        yield bot


@pytest.fixture
async def other(api: RunningBotApi) -> AsyncIterator[AiogramBot]:
    """The bot of aiogram."""
    server = TelegramAPIServer.from_base(api.base_url)
    async with AiogramBot(api.token, session=AiohttpSession(api=server)) as bot:
        yield bot


def newest(raw: RawBot) -> dict[str, Any]:
    """The newest update."""
    updates: list[dict[str, Any]] = raw("getUpdates", offset=-1)
    return updates[-1]


def download(api: RunningBotApi, path: str, token: str = "") -> httpx.Response:
    """Ask for the file at this path."""
    return httpx.get(f"{api.base_url}/file/bot{token or api.token}/{path}", trust_env=False)


def test_a_picture_has_sizes_and_a_caption(api: RunningBotApi, raw: RawBot) -> None:
    """The smallest one first, each a file of its own; the caption is no text."""
    api.phone.send_photo(PICTURE, caption="look at #this")
    message = newest(raw)["message"]
    small, large = message["photo"]
    assert small["width"] < large["width"]
    assert small["file_id"] != large["file_id"]
    assert (message["caption"], "text" in message) == ("look at #this", False)
    assert [one["type"] for one in message["caption_entities"]] == ["hashtag"]
    told = raw("getFile", file_id=large["file_id"])
    assert told["file_size"] == len(PICTURE)
    assert download(api, told["file_path"]).content == PICTURE


def test_an_album_is_several_messages_with_one_id(api: RunningBotApi, raw: RawBot) -> None:
    """A file alone has none."""
    api.phone.share([file_of("photo", PICTURE, caption="two"), file_of("document", b"x", name="a.py", mime="")])
    one, two = (update["message"] for update in raw("getUpdates"))
    assert one["media_group_id"] == two["media_group_id"]
    assert (one["caption"], "caption" in two) == ("two", False)
    assert (two["document"]["file_name"], "mime_type" in two["document"]) == ("a.py", False)
    api.phone.send_voice(b"OggS")
    voice = newest(raw)["message"]
    assert "media_group_id" not in voice
    assert voice["voice"]["mime_type"] == "audio/ogg"


def test_an_album_can_come_in_pieces(api: RunningBotApi, raw: RawBot) -> None:
    """Each by a call of its own, with the id that was given."""
    for _ in range(2):
        api.phone.share([file_of("photo", PICTURE)], album="77")
    assert [update["message"]["media_group_id"] for update in raw("getUpdates")] == ["77", "77"]


def test_a_caption_is_edited(api: RunningBotApi, raw: RawBot) -> None:
    """Also to nothing."""
    sent = api.phone.send_photo(PICTURE, caption="one")
    api.phone.rewrite(sent, "two")
    edited = newest(raw)["edited_message"]
    assert (edited["caption"], len(edited["photo"])) == ("two", 2)
    api.phone.rewrite(sent, "")
    assert "caption" not in newest(raw)["edited_message"]


def test_a_file_takes_the_place_of_another(api: RunningBotApi, raw: RawBot) -> None:
    """The message stays in its album; each file has ids of its own."""
    (sent,) = api.phone.share([file_of("photo", PICTURE, caption="one")], album="77")
    before = newest(raw)["message"]
    api.phone.rewrite(sent, "two", media=file_of("photo", b"another"))
    after = newest(raw)["edited_message"]
    assert (after["message_id"], after["caption"], after["media_group_id"]) == (sent, "two", "77")
    for key in ("file_id", "file_unique_id"):
        assert len({size[key] for size in (*before["photo"], *after["photo"])}) == 4


def test_a_text_gets_a_file_and_then_one_of_another_kind(api: RunningBotApi, raw: RawBot) -> None:
    """What was the text is the caption."""
    (text,) = api.phone.write("look")
    api.phone.rewrite(text, "look", media=file_of("document", b"text"))
    assert newest(raw)["edited_message"]["document"]["file_unique_id"]
    api.phone.rewrite(text, "", media=file_of("photo", PICTURE))
    assert not newest(raw)["edited_message"].keys() & {"document", "text", "caption"}


def test_what_no_app_lets_a_person_replace(api: RunningBotApi) -> None:
    """A voice note and a sticker, and a picture of an album by another kind of file."""
    (piece,) = api.phone.share([file_of("photo", PICTURE)], album="77")
    text, voice, sticker = api.phone.write("look")[0], api.phone.send_voice(b"OggS"), api.phone.send_sticker()
    photo, document = file_of("photo", PICTURE), file_of("document", b"x")
    for message, media in ((piece, document), (voice, photo), (sticker, photo), (text, file_of("voice", b"OggS"))):
        with pytest.raises(LookupError):
            api.phone.rewrite(message, "", media=media)


def test_what_get_file_refuses(api: RunningBotApi, raw: RawBot) -> None:
    """In Telegram's words: more than 20 MB, an id that is none, a file that it does not have."""
    api.phone.send_document(b"", "large.txt", size=LARGEST + 1)
    large = newest(raw)["message"]["document"]
    assert large["file_size"] == LARGEST + 1
    assert raw.refused("getFile", file_id=large["file_id"]) == "Bad Request: file is too big"
    assert raw.refused("getFile", file_id="nonsense") == "Bad Request: invalid file_id"
    assert raw.refused("getFile") == "Bad Request: file_id not specified"
    sent = api.phone.send_document(b"text", "a.txt")
    small = newest(raw)["message"]["document"]["file_id"]
    path = raw("getFile", file_id=small)["file_path"]
    api.phone.lose_files(sent)
    lost = "Bad Request: wrong file_id or the file is temporarily unavailable"
    assert raw.refused("getFile", file_id=small) == lost
    assert download(api, path).status_code == 404


def test_a_file_outlives_its_message(api: RunningBotApi, raw: RawBot) -> None:
    """Until Telegram loses it."""
    sent = api.phone.send_document(b"text", "a.txt")
    file_id = newest(raw)["message"]["document"]["file_id"]
    api.phone.delete(sent)
    path = raw("getFile", file_id=file_id)["file_path"]
    assert download(api, path).content == b"text"
    api.phone.lose_files(sent)
    assert download(api, path).status_code == 404


def test_a_path_works_for_an_hour_and_with_the_token_alone(api: RunningBotApi, raw: RawBot) -> None:
    """Then the bot asks again."""
    api.phone.send_document(b"text", "notes.tar.gz")
    file_id = newest(raw)["message"]["document"]["file_id"]
    path = raw("getFile", file_id=file_id)["file_path"]
    assert path.endswith(".gz")
    assert download(api, path, "7000000001:another").status_code == 401
    assert download(api, path + "x").status_code == 404
    assert download(api, path).content == b"text"
    api.phone.advance(3601)
    assert download(api, path).status_code == 404
    assert download(api, raw("getFile", file_id=file_id)["file_path"]).content == b"text"
    assert [call.status for call in api.phone.calls("file")] == [404, 200, 404, 200]
    assert api.token not in str(api.phone.calls())


def test_a_download_breaks_off_in_the_middle(api: RunningBotApi, raw: RawBot) -> None:
    """Or is answered with an error, or by a proxy."""
    api.phone.send_document(b"text", "a.txt")
    path = raw("getFile", file_id=newest(raw)["message"]["document"]["file_id"])["file_path"]
    api.phone.fault("file", "cut")
    with pytest.raises(httpx.RemoteProtocolError):
        download(api, path)
    api.phone.fault("file", status=500)
    assert download(api, path).status_code == 500
    api.phone.fault("file", "html", status=502)
    assert "Bad Gateway" in download(api, path).text
    assert download(api, path).content == b"text"


async def test_python_telegram_bot_downloads(api: RunningBotApi, bot: Bot) -> None:
    """A picture, a document, a voice note; and what is too large."""
    api.phone.share([file_of("photo", PICTURE), file_of("document", b"text", name="a.txt")], reply_to=None)
    api.phone.send_voice(b"OggS")
    api.phone.send_document(b"", "large.txt", size=LARGEST + 1)
    messages = [update.message for update in await bot.get_updates()]
    assert all(message is not None for message in messages)
    photo, document, voice, large = (message for message in messages if message is not None)
    assert await (await bot.get_file(photo.photo[-1])).download_as_bytearray() == PICTURE
    assert document.document is not None
    assert await (await bot.get_file(document.document)).download_as_bytearray() == b"text"
    assert voice.voice is not None
    assert await (await bot.get_file(voice.voice)).download_as_bytearray() == b"OggS"
    assert large.document is not None
    with pytest.raises(BadRequest, match="File is too big"):
        await bot.get_file(large.document)
    assert photo.media_group_id == document.media_group_id
    assert Update.de_json({"update_id": 1}, bot) is not None


async def test_aiogram_downloads(api: RunningBotApi, other: AiogramBot) -> None:
    """It checks each object strictly."""
    api.phone.share([file_of("photo", PICTURE, caption="x"), file_of("photo", PICTURE)])
    api.phone.send_document(b"text", "a.txt")
    api.phone.send_voice(b"OggS")
    updates: list[AiogramUpdate] = await other.get_updates()
    messages = [update.message for update in updates if update.message is not None]
    assert messages[0].photo is not None
    got = await other.download(messages[0].photo[-1])
    assert got is not None
    assert got.read() == PICTURE
    assert messages[2].document is not None
    assert messages[2].document.file_name == "a.txt"
    assert messages[3].voice is not None
    got = await other.download(messages[3].voice)
    assert got is not None
    assert got.read() == b"OggS"
    with pytest.raises(TelegramBadRequest, match="invalid file_id"):
        await other.get_file("nonsense")
