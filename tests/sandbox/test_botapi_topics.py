"""Topics of the local Bot API: who may make them, what a message says of its topic, and each refusal's words."""

from collections.abc import Iterator
from typing import Any

import pytest
from aiogram import Bot as Aiogram
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.exceptions import TelegramBadRequest
from telegram import Bot, Message
from telegram.error import BadRequest

from hermes.sandbox.botapi import Chat, RunningBotApi, running_botapi
from tests.sandbox.raw_bot import RawBot

ANN = 1001
GROUP = -500
TEAM = -1001234567890
PLAIN = -1001234567891
FORUM = Chat(TEAM, "Team", forum=True, standing="administrator", manages_topics=True)


@pytest.fixture
def api() -> Iterator[RunningBotApi]:
    """A server with a person, a small group, a supergroup with topics and one without."""
    chats = [Chat(ANN), Chat(GROUP, "Small"), FORUM, Chat(PLAIN, "Plain")]
    with running_botapi(chats=chats, topics_mode=True) as api:
        yield api


def made(bot: RawBot, chat_id: int = TEAM, name: str = "Fix login") -> int:
    """Make a topic; its id."""
    thread_id: int = bot("createForumTopic", chat_id=chat_id, name=name)["message_thread_id"]
    return thread_id


def newest(bot: RawBot) -> dict[str, Any]:
    """The newest message that the bot hears of."""
    message: dict[str, Any] = bot("getUpdates", offset=-1)[0]["message"]
    return message


@pytest.mark.parametrize("chat_id", [ANN, TEAM])
def test_a_topic_is_made_and_written_to(api: RunningBotApi, bot: RawBot, chat_id: int) -> None:
    """The bot hears of its own service message; a message names its topic."""
    thread_id = made(bot, chat_id)
    began = newest(bot)
    assert (began["message_id"], began["forum_topic_created"]["name"]) == (thread_id, "Fix login")
    assert began["is_topic_message"] is True
    sent = bot.send(chat_id=chat_id, message_thread_id=thread_id)
    assert (sent["message_thread_id"], sent["is_topic_message"]) == (thread_id, True)
    assert api.phone.message(sent["message_id"], chat=chat_id).thread_id == thread_id


def test_a_text_in_a_topic_of_a_group_replies_to_its_beginning(api: RunningBotApi, bot: RawBot) -> None:
    """A real reply names the message that it is for; in a private chat nothing is implied."""
    thread_id = made(bot)
    asked = bot.send(chat_id=TEAM, message_thread_id=thread_id)
    api.phone.write("plain", thread_id=thread_id, chat=TEAM)
    assert "forum_topic_created" in newest(bot)["reply_to_message"]
    api.phone.write("real", reply_to=asked["message_id"], chat=TEAM)
    assert newest(bot)["reply_to_message"]["message_id"] == asked["message_id"]
    assert newest(bot)["message_thread_id"] == thread_id
    api.phone.write("private", thread_id=made(bot, ANN), chat=ANN)
    assert "reply_to_message" not in newest(bot)


def test_a_reply_stands_in_the_topic_of_its_message(bot: RawBot) -> None:
    """Without a topic in the request; with another one it is no reply for the bot."""
    thread_id, other = made(bot), made(bot, name="Other")
    asked = bot.send(chat_id=TEAM, message_thread_id=thread_id)
    reply = {"message_id": asked["message_id"]}
    assert bot.send(chat_id=TEAM, reply_parameters=reply)["message_thread_id"] == thread_id
    elsewhere = bot.send(chat_id=TEAM, message_thread_id=other, reply_parameters=reply)
    assert elsewhere["message_thread_id"] == other
    assert "reply_to_message" not in elsewhere


def test_a_deleted_topic_takes_its_messages_with_it(api: RunningBotApi, bot: RawBot) -> None:
    """Edits and further messages are refused."""
    thread_id = made(bot)
    asked = bot.send(chat_id=TEAM, message_thread_id=thread_id)
    api.phone.topic("delete", thread_id, chat=TEAM)
    edit = bot.refused("editMessageText", chat_id=TEAM, message_id=asked["message_id"], text="x")
    assert edit == "Bad Request: message to edit not found"
    refusal = bot.refused("sendMessage", chat_id=TEAM, message_thread_id=thread_id, text="x")
    assert refusal == "Bad Request: message thread not found"
    late = {"message_id": asked["message_id"], "allow_sending_without_reply": True}
    assert "message_thread_id" not in bot.send(chat_id=TEAM, reply_parameters=late)


def test_where_topics_are_off(api: RunningBotApi, bot: RawBot) -> None:
    """A group without topics ignores the parameter; a private chat refuses it, and General has no number."""
    for chat_id in (GROUP, PLAIN):
        assert bot.refused("createForumTopic", chat_id=chat_id, name="x") == "Bad Request: the chat is not a forum"
        assert "message_thread_id" not in bot.send(chat_id=chat_id, message_thread_id=7)
    thread_id = made(bot, ANN)
    assert bot("getMe")["has_topics_enabled"] is True
    api.phone.topics_mode(on=False)
    assert bot("getMe")["has_topics_enabled"] is False
    for chat_id, thread in ((ANN, thread_id), (TEAM, 1)):
        refusal = bot.refused("sendMessage", chat_id=chat_id, message_thread_id=thread, text="x")
        assert refusal == "Bad Request: message thread not found"
    assert bot.refused("createForumTopic", chat_id=ANN, name="x") == "Bad Request: the chat is not a forum"


@pytest.mark.parametrize("chat_id", [ANN, TEAM])
def test_what_is_written_while_topics_are_off_stands_in_none(api: RunningBotApi, bot: RawBot, chat_id: int) -> None:
    """A person's texts, and replies of both to what stood in a topic before."""
    thread_id = made(bot, chat_id)
    asked = bot.send(chat_id=chat_id, message_thread_id=thread_id)["message_id"]
    api.phone.topics_mode(on=False)
    api.phone.rule(chat=TEAM, forum=False)
    api.phone.write("plain", thread_id=thread_id, chat=chat_id)
    assert "message_thread_id" not in newest(bot)
    api.phone.write("reply", reply_to=asked, chat=chat_id)
    assert "message_thread_id" not in newest(bot)
    assert newest(bot)["reply_to_message"]["message_id"] == asked
    assert "message_thread_id" not in bot.send(chat_id=chat_id, reply_to_message_id=asked)


def test_rights(api: RunningBotApi, bot: RawBot) -> None:
    """Without the right nothing is made; a bot may change its own topics, and write into them when they are closed."""
    own, foreign = made(bot), api.phone.topic("make", name="Theirs", chat=TEAM)
    api.phone.rule(chat=TEAM, standing="member")
    refusal = bot.refused("createForumTopic", chat_id=TEAM, name="x")
    assert refusal == "Bad Request: not enough rights to create a topic"
    for method, words in (("edit", "edit"), ("close", "close or open"), ("delete", "delete")):
        refusal = bot.refused(f"{method}ForumTopic", chat_id=TEAM, message_thread_id=foreign, name="x")
        assert refusal == f"Bad Request: not enough rights to {words} the topic"
    assert bot("editForumTopic", chat_id=TEAM, message_thread_id=own, name="New name") is True
    (asked,) = api.phone.write("/sessions", thread_id=foreign, chat=TEAM)
    for thread_id in (own, foreign):
        api.phone.topic("close", thread_id, chat=TEAM)
    assert bot.send(chat_id=TEAM, message_thread_id=own)["message_thread_id"] == own
    for place in ({"message_thread_id": foreign}, {"reply_to_message_id": asked}):
        closed = bot.refused("sendMessage", chat_id=TEAM, text="x", **place)
        assert closed == "Bad Request: TOPIC_CLOSED"
    assert bot("reopenForumTopic", chat_id=TEAM, message_thread_id=own) is True
    assert bot("deleteForumTopic", chat_id=TEAM, message_thread_id=own) is True


def test_limits(bot: RawBot) -> None:
    """A name has 1 to 128 characters; nothing changes without a change; a private topic cannot be closed."""
    assert bot.refused("createForumTopic", chat_id=TEAM, name=" ") == "Bad Request: name must be non-empty"
    assert bot("createForumTopic", chat_id=TEAM, name="x" * 200)["name"] == "x" * 128
    thread_id = made(bot)
    unchanged = bot.refused("editForumTopic", chat_id=TEAM, message_thread_id=thread_id, name="Fix login")
    assert unchanged == "Bad Request: TOPIC_NOT_MODIFIED"
    assert bot.refused("reopenForumTopic", chat_id=TEAM, message_thread_id=thread_id) == unchanged
    unknown = bot.refused("editForumTopic", chat_id=TEAM, message_thread_id=9999, name="x")
    assert unknown == "Bad Request: TOPIC_ID_INVALID"
    private = bot.refused("closeForumTopic", chat_id=ANN, message_thread_id=made(bot, ANN))
    assert private == "Bad Request: the chat is not a supergroup forum"


def test_privacy_mode_hides_plain_texts_in_topics(api: RunningBotApi, bot: RawBot) -> None:
    """Of a bot that is no administrator; service messages are for every bot."""
    thread_id = made(bot)
    api.phone.rule(chat=TEAM, standing="member")
    api.phone.write("plain", thread_id=thread_id, chat=TEAM)
    assert "my_chat_member" in bot("getUpdates", offset=-1)[0]
    api.phone.topic("close", thread_id, chat=TEAM)
    assert newest(bot)["forum_topic_closed"] == {}


def test_topics_make_a_group_a_supergroup(api: RunningBotApi, bot: RawBot) -> None:
    """With another id."""
    new = api.phone.migrate(chat=GROUP, forum=True)
    assert bot("getChat", chat_id=new)["is_forum"] is True


async def test_aiogram_and_python_telegram_bot_use_topics(api: RunningBotApi) -> None:
    """Every answer passes their models, and every refusal has its class."""
    server = AiohttpSession(api=TelegramAPIServer.from_base(api.base_url))
    async with Aiogram(api.token, session=server) as strict:
        assert (await strict.get_me()).has_topics_enabled
        topic = await strict.create_forum_topic(TEAM, "Fix login")
        assert (topic.name, topic.icon_color) == ("Fix login", 0x6FB9F0)
        thread_id = topic.message_thread_id
        sent = await strict.send_message(TEAM, "Which one?", message_thread_id=thread_id)
        assert (sent.is_topic_message, sent.chat.is_forum) == (True, True)
        assert await strict.edit_forum_topic(TEAM, thread_id, name="Fix the login")
        assert await strict.close_forum_topic(TEAM, thread_id)
        assert await strict.reopen_forum_topic(TEAM, thread_id)
        updates = await strict.get_updates()
        kinds = [update.message.content_type for update in updates if update.message]
        assert kinds == [f"forum_topic_{kind}" for kind in ("created", "edited", "closed", "reopened")]
        rights = await strict.get_chat_member(TEAM, strict.id)
        assert rights.model_dump()["can_manage_topics"] is True
        assert (await strict.get_chat(TEAM)).permissions is not None
        assert await strict.delete_forum_topic(TEAM, thread_id)
        with pytest.raises(TelegramBadRequest, match="message thread not found"):
            await strict.send_message(TEAM, "x", message_thread_id=thread_id)
    async with Bot(api.token, base_url=f"{api.base_url}/bot") as lenient:
        private = await lenient.create_forum_topic(ANN, "Fix login")
        message = await lenient.send_message(ANN, "x", message_thread_id=private.message_thread_id)
        assert isinstance(message, Message)
        assert message.message_thread_id == private.message_thread_id
        assert await lenient.delete_forum_topic(ANN, private.message_thread_id)
        with pytest.raises(BadRequest, match="Message thread not found"):
            await lenient.send_message(ANN, "x", message_thread_id=private.message_thread_id)
