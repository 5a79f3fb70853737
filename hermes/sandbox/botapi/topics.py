"""The topics of a chat: the bot's methods for them, and what people do with them.

Rights, limits and wording follow td/telegram/ForumTopicManager.cpp, which answers for the real server.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from hermes.sandbox.botapi.access import chat_of, has_topics
from hermes.sandbox.botapi.privacy import bot_may_see
from hermes.sandbox.botapi.shapes import message_json
from hermes.sandbox.botapi.updates import MESSAGE_TTL_S
from hermes.sandbox.botapi.wire import Params, refused
from hermes.sandbox.botapi.world import Chat, Message, Topic, World

TopicAct = Literal["make", "rename", "close", "reopen", "delete"]

MAX_NAME = 128
MAX_COLOR = 0xFFFFFF
DEFAULT_COLOR = 0x6FB9F0


def create_forum_topic(world: World, params: Params) -> Any:
    """Handle createForumTopic: return the ForumTopic. Like the real server, cut a name that is too long."""
    chat = _forum(world, params)
    if chat.kind != "private" and not chat.rules_topics:
        raise refused("Not enough rights to create a topic")
    name = _name(params)
    color = params.integer("icon_color", DEFAULT_COLOR)
    if not 0 <= color <= MAX_COLOR:
        raise refused("Invalid icon color specified")
    world.rates.take(chat.id, group=chat.kind != "private", now=world.now())
    thread_id = _make(world, chat, world.me.id, name, color)
    return {"message_thread_id": thread_id, "name": name, "icon_color": color}


def edit_forum_topic(world: World, params: Params) -> Any:
    """Handle editForumTopic: return true. An empty name leaves the name."""
    chat = _forum(world, params)
    topic = _topic(world, params, chat, "Not enough rights to edit the topic")
    if params.text("name"):
        _rename(world, chat, topic, world.me.id, _name(params))
    return True


def close_forum_topic(world: World, params: Params) -> Any:
    """Handle closeForumTopic: return true. There is none in a private chat."""
    return _switch(world, params, closed=True)


def reopen_forum_topic(world: World, params: Params) -> Any:
    """Handle reopenForumTopic: return true."""
    return _switch(world, params, closed=False)


def delete_forum_topic(world: World, params: Params) -> Any:
    """Handle deleteForumTopic: return true. Its messages are deleted, too."""
    chat = _forum(world, params)
    _delete(world, _topic(world, params, chat, "Not enough rights to delete the topic"))
    return True


def act(world: World, chat: Chat, person: int, what: TopicAct, thread_id: int, name: str) -> int:
    """Do as a person does; return the id of the topic. Raise LookupError if there is no such topic."""
    if what == "make":
        return _make(world, chat, person, name, DEFAULT_COLOR)
    topic = world.topics.get((chat.id, thread_id))
    if topic is None:
        raise LookupError(f"there is no topic {thread_id} in chat {chat.id}")
    match what:
        case "rename":
            _rename(world, chat, topic, person, name)
        case "delete":
            _delete(world, topic)
        case _:
            _close(world, chat, topic, person, closed=what == "close")
    return thread_id


def _forum(world: World, params: Params) -> Chat:
    chat = chat_of(world, params, "write")
    if not has_topics(world, chat):
        raise refused("The chat is not a forum")
    return chat


def _topic(world: World, params: Params, chat: Chat, no_rights: str) -> Topic:
    thread_id = params.integer("message_thread_id")
    if thread_id <= 0:
        raise refused("Invalid forum topic identifier specified")
    topic = world.topics.get((chat.id, thread_id))
    if topic is None:
        raise refused("TOPIC_ID_INVALID")
    if chat.kind != "private" and topic.creator_id != world.me.id and not chat.rules_topics:
        raise refused(no_rights)
    return topic


def _switch(world: World, params: Params, *, closed: bool) -> bool:
    chat = _forum(world, params)
    if chat.kind == "private":
        raise refused("The chat is not a supergroup forum")
    topic = _topic(world, params, chat, "Not enough rights to close or open the topic")
    _close(world, chat, topic, world.me.id, closed=closed)
    return True


def _name(params: Params) -> str:
    name = re.sub(r"\s+", " ", params.text("name")).strip()[:MAX_NAME]
    if not name:
        raise refused("Name must be non-empty")
    return name


def _make(world: World, chat: Chat, creator: int, name: str, color: int) -> int:
    thread_id = world.next_message_id(chat.id)
    world.topics[chat.id, thread_id] = Topic(chat.id, thread_id, name, creator)
    _tell(world, chat, thread_id, creator, {"forum_topic_created": {"name": name, "icon_color": color}}, thread_id)
    return thread_id


def _rename(world: World, chat: Chat, topic: Topic, by: int, name: str) -> None:
    if name == topic.name:
        raise refused("TOPIC_NOT_MODIFIED")
    world.topics[chat.id, topic.thread_id] = replace(topic, name=name)
    _tell(world, chat, topic.thread_id, by, {"forum_topic_edited": {"name": name}})


def _close(world: World, chat: Chat, topic: Topic, by: int, *, closed: bool) -> None:
    if closed == topic.closed:
        raise refused("TOPIC_NOT_MODIFIED")
    world.topics[chat.id, topic.thread_id] = replace(topic, closed=closed)
    _tell(world, chat, topic.thread_id, by, {"forum_topic_closed" if closed else "forum_topic_reopened": {}})


def _delete(world: World, topic: Topic) -> None:
    del world.topics[topic.chat_id, topic.thread_id]
    for message in world.messages(topic.chat_id):
        if message.thread_id == topic.thread_id and not message.deleted:
            world.delete(message)


def _tell(
    world: World, chat: Chat, thread_id: int, by: int, content: dict[str, Any], message_id: int | None = None
) -> None:
    """Put a service message into the topic; the bot gets those that it caused itself, too."""
    message_id = message_id or world.next_message_id(chat.id)
    message = world.put(
        Message(chat.id, message_id, by, int(world.now()), content=content, thread_id=thread_id, silent=True)
    )
    if by == world.me.id or bot_may_see(world, message):
        world.updates.add("message", message_json(world, message), now=world.now(), ttl_s=MESSAGE_TTL_S)
    world.bump()


TOPIC_METHODS: dict[str, Callable[[World, Params], Any]] = {
    "createForumTopic": create_forum_topic,
    "editForumTopic": edit_forum_topic,
    "closeForumTopic": close_forum_topic,
    "reopenForumTopic": reopen_forum_topic,
    "deleteForumTopic": delete_forum_topic,
}
