"""Reading one update: what a person did, and nothing that is not for Hermes."""

import logging
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import telegram

from hermes.chat.bot import Bot
from hermes.chat.incoming import Admitted, Blocked, Migrated, Other, is_permitted, read_update
from hermes.chat.screens.buttons import Button
from hermes.chat.screens.screen import Screen
from hermes.model.answer import User
from hermes.model.events import Tap, Text, TextEdit
from hermes.model.files import File
from hermes.sandbox.botapi import Chat, RunningBotApi, running_botapi
from hermes.sandbox.phone import file_of

ANN, GROUP, TEAM = 1001, -500, -1001234567890
BOB, OTHER = 1002, -501
USERS = frozenset({ANN})
DAY_S = 86400.0
SCREEN = Screen("Which?", (), ((Button("A", "a1"),),))


def anns(text: str, update_id: int) -> dict[str, Any]:
    """A text of Ann's as an update."""
    person = {"id": ANN, "is_bot": False, "first_name": "Ann"}
    message = {"message_id": 7, "date": 1_700_000_000, "text": text, "from": person}
    return {"update_id": update_id, "message": {**message, "chat": {"id": ANN, "type": "private"}}}


@pytest.fixture
def api() -> Iterator[RunningBotApi]:
    """A strict local Bot API of this test's own."""
    with running_botapi(chats=[Chat(ANN), Chat(GROUP, "Small"), Chat(TEAM, "Team", topics=(7,))]) as api:
        yield api


@pytest.fixture
async def bot(api: RunningBotApi) -> AsyncIterator[Bot]:
    """A bot on it."""
    async with Bot(api.token, api_base=api.base_url) as bot:
        yield bot


async def fetched(bot: Bot) -> dict[str, Any]:
    """The newest update as Telegram sends it."""
    update: dict[str, Any] = (await bot.updates(-1, 0))[-1]
    return update


async def test_a_tap_is_read(bot: Bot, api: RunningBotApi) -> None:
    """Who, where, which button; it is dated by the listener's clock, since it carries no time."""
    message_id = (await bot.send(ANN, SCREEN)).message_id
    tap = api.phone.tap(message_id, "A", chat=ANN)
    read = read_update(await fetched(bot), now=lambda: 5.0)
    assert read == Tap(tap.update_id, 5.0, User(ANN, "Ann"), ANN, message_id, tap.tap_id, "a1")


def test_a_tap_on_a_message_too_old_to_show_is_read() -> None:
    """Date 0 instead of the message: chat and id are still there."""
    query = {"id": "9", "from": {"id": ANN, "is_bot": False, "first_name": "Ann"}, "chat_instance": "1"}
    message = {"chat": {"id": ANN, "type": "private"}, "message_id": 3, "date": 0}
    read = read_update({"update_id": 1, "callback_query": {**query, "message": message, "data": "a1"}})
    assert isinstance(read, Tap)
    assert (read.chat_id, read.message_id, read.data) == (ANN, 3, "a1")


@pytest.mark.parametrize("lacking", ["data", "message"])
def test_a_tap_without_data_or_message_is_nothing(lacking: str) -> None:
    """Buttons of games and inline messages are not Hermes'."""
    query = {
        "id": "9",
        "from": {"id": ANN, "is_bot": False, "first_name": "Ann"},
        "chat_instance": "1",
        "message": {"chat": {"id": ANN, "type": "private"}, "message_id": 3, "date": 0},
        "data": "a1",
    }
    del query[lacking]
    assert read_update({"update_id": 1, "callback_query": query}) == Other(1)


async def test_a_text_is_read(bot: Bot, api: RunningBotApi) -> None:
    """Dated by our own clock, which parts of a text and second thoughts are timed by; Telegram's may be another."""
    (message_id,) = api.phone.write("hello", chat=ANN)
    raw = await fetched(bot)
    read = read_update(raw, now=lambda: 5.0)
    assert read == Text(
        raw["update_id"], 5.0, User(ANN, "Ann"), ANN, message_id, "hello", date_s=raw["message"]["date"]
    )


async def test_a_reply_names_what_it_replies_to(bot: Bot, api: RunningBotApi) -> None:
    """The id, and the text, in which a copy of a question shows its short code."""
    question = (await bot.send(GROUP, Screen("Which? (k7)"))).message_id
    api.phone.write("that one", reply_to=question, user=ANN, chat=GROUP)
    raw = await fetched(bot)
    bot_id = raw["message"]["reply_to_message"]["from"]["id"]
    read = read_update(raw, bot_id=bot_id)
    assert isinstance(read, Text)
    assert (read.reply_to, read.reply_text, read.group) == (question, "Which? (k7)", True)
    another = read_update(raw, bot_id=bot_id + 1)
    assert isinstance(another, Text)
    assert (another.reply_to, another.reply_text) == (question, "")
    raw["message"]["reply_to_message"]["sender_chat"] = {"id": -1009, "type": "channel", "title": "News"}
    channel = read_update(raw, bot_id=bot_id)
    assert isinstance(channel, Text)
    assert channel.reply_text == ""


async def test_what_a_person_wrote_names_no_question(bot: Bot, api: RunningBotApi) -> None:
    """A code in it would make it a copy of the question, and copies are deleted."""
    (own,) = api.phone.write("I like #k7", chat=ANN)
    api.phone.write("so do I", reply_to=own, chat=ANN)
    read = read_update(await fetched(bot))
    assert isinstance(read, Text)
    assert (read.reply_to, read.reply_text) == (own, "")


def test_a_text_in_a_topic_replies_to_nothing() -> None:
    """Telegram lets every message of a topic reply to the one that opened the topic."""
    update = anns("plain", 1)
    opening = {**anns("", 1)["message"], "message_id": 2, "forum_topic_created": {"name": "t", "icon_color": 1}}
    update["message"]["reply_to_message"] = opening
    read = read_update(update)
    assert isinstance(read, Text)
    assert (read.text, read.reply_to, read.reply_text, read.thread_id) == ("plain", None, "", 0)
    del opening["forum_topic_created"]
    update["message"] |= {"message_thread_id": 2, "is_topic_message": True}
    read = read_update(update)
    assert isinstance(read, Text)
    assert (read.reply_to, read.thread_id, read.is_forwarded) == (None, 2, False)
    somebody = {"type": "hidden_user", "sender_user_name": "Mallory", "date": 1}
    update["message"]["forward_origin"] = somebody
    read = read_update(update)
    assert isinstance(read, Text)
    assert (read.thread_id, read.is_forwarded) == (0, True)


def test_a_reply_that_was_brought_to_another_topic_is_not_about_that() -> None:
    """Telegram's "Reply in another chat": the message that it replies to stands elsewhere."""
    update = anns("SQLite", 1)
    origin = {"type": "hidden_user", "sender_user_name": "Hermes", "date": 1}
    update["message"] |= {"message_thread_id": 2, "is_topic_message": True}
    update["message"]["external_reply"] = {"origin": origin, "chat": update["message"]["chat"], "message_id": 3}
    read = read_update(update)
    assert isinstance(read, Text)
    assert (read.reply_to, read.thread_id, read.is_forwarded) == (None, 0, True)


def test_replies_in_a_group_without_topics_are_in_none() -> None:
    """Telegram gives them the number of a thread, too."""
    update = anns("plain", 1)
    update["message"]["message_thread_id"] = 2
    read = read_update(update)
    assert isinstance(read, Text)
    assert read.thread_id == 0


@pytest.mark.parametrize("kind", ["sticker", "photo", "document"])
async def test_what_has_no_words_is_a_text_of_none(bot: Bot, api: RunningBotApi, kind: Any) -> None:
    """A caption is no answer either: it belongs to something that cannot be passed on."""
    if kind == "sticker":
        api.phone.send_sticker(chat=ANN)
    else:
        api.phone.share([file_of(kind, b"look", caption="look")], chat=ANN)
    read = read_update(await fetched(bot))
    assert isinstance(read, Text)
    assert read.text is None


async def test_an_edited_text_is_read_with_its_text_of_now(bot: Bot, api: RunningBotApi) -> None:
    """Only a prompt that was not sent yet follows it; an answer stays as it was. A change without a time is no edit."""
    message = anns("new words", 4)["message"]
    read_now = TextEdit(4, User(ANN, "Ann"), ANN, 7, "new words")
    assert read_update({"update_id": 4, "edited_message": message}) == read_now
    edited = message | {"edit_date": message["date"] + 5}
    assert read_update({"update_id": 4, "edited_message": edited}) == replace(read_now, is_to_bot=True)
    await bot.updates(None, 0)
    (message_id,) = api.phone.write("old words", chat=ANN)
    api.phone.rewrite(message_id, "new words", chat=ANN)
    read = [read_update(raw, now=lambda: 5.0) for raw in await bot.updates(None, 0)]
    assert [type(one) for one in read] == [Text, TextEdit]
    assert [getattr(one, "text", "") for one in read] == ["old words", "new words"]
    assert {getattr(one, "message_id", 0) for one in read} == {message_id}


@pytest.mark.parametrize(
    "body",
    [
        {"channel_post": {"message_id": 1, "date": 1, "chat": {"id": TEAM, "type": "channel"}, "text": "x"}},
        {"message": {"message_id": 1, "date": 1, "chat": {"id": GROUP, "type": "group"}, "text": "nobody's"}},
        {"message": {**anns("", 1)["message"], "text": None, "new_chat_title": "Other"}},
        {"poll_answer": {"poll_id": "1", "option_ids": [], "option_persistent_ids": []}},
        {"some_future_kind": {"x": 1}},
        {},
    ],
)
def test_what_concerns_nobody_is_nothing(body: dict[str, Any]) -> None:
    """Channel posts, messages of nobody, news of the group, and what Telegram may think of yet."""
    assert read_update({"update_id": 3, **body}) == Other(3)


@pytest.mark.parametrize(("chat_id", "word"), [(GROUP, "migrate_to_chat_id"), (TEAM, "migrate_from_chat_id")])
def test_a_group_that_moved_is_read_from_both_sides(chat_id: int, word: str) -> None:
    """The old group says where to, the new one where from."""
    other = TEAM if chat_id == GROUP else GROUP
    message = {"message_id": 1, "date": 1, "chat": {"id": chat_id, "type": "group"}, word: other}
    assert read_update({"update_id": 2, "message": message}) == Migrated(2, GROUP, TEAM)


async def test_a_group_that_moves_is_noticed(bot: Bot, api: RunningBotApi) -> None:
    """As Telegram tells it."""
    new = api.phone.migrate(chat=GROUP)
    read = [read_update(raw) for raw in await bot.updates(None, 0)]
    moves = [(move.old, move.new) for move in read if isinstance(move, Migrated)]
    assert moves
    assert set(moves) == {(GROUP, new)}


async def test_a_bot_that_was_blocked_hears_of_it(bot: Bot, api: RunningBotApi) -> None:
    """And that it is let in again."""
    api.phone.block(chat=ANN)
    blocked = read_update(raw := await fetched(bot))
    api.phone.unblock(chat=ANN)
    assert blocked == Blocked(raw["update_id"], ANN)
    assert read_update(raw := await fetched(bot)) == Admitted(raw["update_id"], ANN)


async def test_a_bot_hears_of_its_right_to_write(bot: Bot, api: RunningBotApi) -> None:
    """What else it may do there is nothing of interest."""
    api.phone.rule(chat=GROUP, standing="restricted")
    assert isinstance(read_update(await fetched(bot)), Other)
    api.phone.rule(chat=GROUP, standing="administrator")
    raw = await fetched(bot)
    assert read_update(raw) == Admitted(raw["update_id"], GROUP)
    rights = {name: True for name in telegram.ChatMemberRestricted.__slots__ if name.startswith("can_")}
    removed = raw["my_chat_member"]["new_chat_member"]["user"]
    raw["my_chat_member"]["new_chat_member"] = {
        "user": removed, "status": "restricted", "is_member": False, "until_date": 0, **rights,
    }  # fmt: skip
    assert read_update(raw) == Blocked(raw["update_id"], GROUP)


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"update_id": 1, "message": {}},
        {"update_id": 1, "message": []},
        {"update_id": 1, "message": "x"},
        {"update_id": 1, "callback_query": {"id": "1"}},
        {"update_id": 1, "message": {**anns("x", 1)["message"], "date": "yesterday"}},
        {"update_id": 1, "message": {**anns("x", 1)["message"], "date": 10**20}},
        {"update_id": 1, "my_chat_member": {"chat": 5}},
    ],
)
def test_an_update_of_another_shape_is_a_value_error(raw: dict[str, Any]) -> None:
    """And no other error: the loop knows what to do with it."""
    with pytest.raises(ValueError, match="another shape"):
        read_update(raw)


async def test_a_picture_is_read_in_its_largest_size(bot: Bot, api: RunningBotApi) -> None:
    """Its caption is not the text of the message: a picture is no answer."""
    api.phone.send_photo(b"a picture", caption="look", chat=ANN)
    read = read_update(await fetched(bot))
    assert isinstance(read, Text)
    assert (read.text, read.caption) == (None, "look")
    assert read.file is not None
    own, size = read.file, len(b"a picture")
    assert own == File(own.file_id, "picture.jpg", "image/jpeg", size, unique_id=own.unique_id)
    assert own.unique_id
    assert await bot.download(read.file.file_id) == b"a picture"


async def test_a_document_and_an_album_are_read(bot: Bot, api: RunningBotApi) -> None:
    """With name, type and size as the person's app tells them."""
    api.phone.send_document(b"x" * 5, "a.py", "text/x-python", chat=ANN)
    read = read_update(await fetched(bot))
    assert isinstance(read, Text)
    assert read.file is not None
    assert (read.file.name, read.file.mime, read.file.size, read.file.album) == ("a.py", "text/x-python", 5, "")
    api.phone.share([file_of("photo", b"1"), file_of("photo", b"2")], chat=ANN)
    read = read_update(await fetched(bot))
    assert isinstance(read, Text)
    assert read.file is not None
    assert read.file.album


async def test_the_edit_of_a_caption_is_read(bot: Bot, api: RunningBotApi) -> None:
    """To nothing, too."""
    sent = api.phone.send_photo(b"a picture", caption="look", chat=ANN)
    api.phone.rewrite(sent, "there", chat=ANN)
    read = read_update(await fetched(bot))
    assert isinstance(read, TextEdit)
    assert (read.message_id, read.text) == (sent, "there")
    before = read.file
    api.phone.rewrite(sent, "", chat=ANN)
    read = read_update(await fetched(bot))
    assert isinstance(read, TextEdit)
    assert (read.text, read.file) == ("", before)


async def test_an_edit_tells_of_another_file(bot: Bot, api: RunningBotApi) -> None:
    """By an id that the same file always has."""
    sent = api.phone.send_photo(b"a picture", chat=ANN)
    first = read_update(await fetched(bot))
    assert isinstance(first, Text)
    assert first.file is not None
    api.phone.rewrite(sent, "there", media=file_of("document", b"text", name="a.txt"), chat=ANN)
    read = read_update(await fetched(bot))
    assert isinstance(read, TextEdit)
    assert read.file is not None
    assert (read.text, read.file.name) == ("there", "a.txt")
    assert "" not in {first.file.unique_id, read.file.unique_id}
    assert first.file.unique_id != read.file.unique_id


@pytest.mark.parametrize(
    "document",
    [{"file_id": "a", "file_size": "5"}, {"file_id": "a", "file_size": 2**70}, {"file_id": "a", "mime_type": 7}],
)
def test_a_file_of_another_shape_is_no_file(document: dict[str, Any]) -> None:
    """It would be in the store for ever."""
    update = anns("x", 1)
    del update["message"]["text"]
    update["message"]["document"] = {"file_unique_id": "u", **document}
    with pytest.raises(ValueError, match="another shape"):
        read_update(update)


async def test_a_voice_note_is_read(bot: Bot, api: RunningBotApi) -> None:
    """It is no answer by itself."""
    api.phone.send_voice(b"OggS", chat=ANN)
    read = read_update(await fetched(bot))
    assert isinstance(read, Text)
    assert read.text is None
    assert read.file is not None
    assert (read.file.is_voice, read.file.size, read.file.album) == (True, 4, "")


# --- who may do anything at all ------------------------------------------------------------------------------------

Make = Callable[[int, int], Tap | Text]


def a_text(user: int, chat: int) -> Text:
    """A text that nobody else should read."""
    return Text(7, 1.0, User(user, "Mallory"), chat, 3, "the launch code is 1234")


def a_tap(user: int, chat: int) -> Tap:
    """A tap on a button."""
    return Tap(8, 1.0, User(user, "Mallory"), chat, 3, "query", "secret-data")


@pytest.mark.parametrize("incoming", [a_text(ANN, GROUP), a_tap(ANN, GROUP)])
def test_a_configured_user_in_the_configured_chat_may(incoming: Tap | Text) -> None:
    """And nobody has to be told."""
    assert is_permitted(incoming, users=USERS, chat_id=GROUP)


@pytest.mark.parametrize(("user", "chat"), [(BOB, GROUP), (ANN, OTHER), (BOB, OTHER), (ANN, ANN)])
@pytest.mark.parametrize("make", [a_text, a_tap])
def test_anybody_else_may_not(user: int, chat: int, make: Make) -> None:
    """A stranger in the chat, a user in another chat, not even in a private one."""
    assert not is_permitted(make(user, chat), users=USERS, chat_id=GROUP)


def test_without_users_nobody_may() -> None:
    """An empty list is never "everybody"."""
    assert not is_permitted(a_text(ANN, GROUP), users=frozenset(), chat_id=GROUP)


@pytest.mark.parametrize("make", [a_text, a_tap])
def test_a_stranger_is_logged_without_their_words(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    """Who and where, not what; nor the name, which they choose."""
    caplog.set_level(logging.DEBUG)
    is_permitted(make(BOB, GROUP), users=USERS, chat_id=GROUP)
    assert str(BOB) in caplog.text
    assert str(GROUP) in caplog.text
    for words in ("launch", "secret-data", "Mallory"):
        assert words not in caplog.text
