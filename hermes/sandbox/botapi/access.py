"""Read chat, message and text of a request, and check the bot's access to them, as in Client.cpp."""

from typing import Literal

from hermes.sandbox.botapi.text import Entity, parse_entities, prepare, units
from hermes.sandbox.botapi.wire import ApiError, Params, refused
from hermes.sandbox.botapi.world import Chat, Message, Topic, World

Access = Literal["read", "edit", "write"]


def chat_of(world: World, params: Params, access: Access) -> Chat:
    """Return the request's chat; raise ApiError 400 if it is unknown or was upgraded, 403 if the bot has no access."""
    given = params.text("chat_id")
    if not given:
        raise refused("chat_id is empty")
    chat = None if given.startswith("@") else world.chats.get(params.integer("chat_id"))
    if chat is None:
        raise refused("chat not found")
    if chat.blocked and (access != "read" or chat.kind == "supergroup"):
        raise refused(_shut_out(chat), 403)
    if chat.migrated_to is not None and access == "write":
        sentence = "Bad Request: group chat was upgraded to a supergroup chat"
        raise ApiError(400, sentence, migrate_to_chat_id=chat.migrated_to)
    return chat


def _shut_out(chat: Chat) -> str:
    if chat.kind == "private":
        return "bot was blocked by the user"
    return f"bot was kicked from the {chat.kind} chat"


def message_of(world: World, params: Params, chat: Chat, purpose: str) -> Message:
    """Return the request's message; raise ApiError 400 ("message to … not found") if it is unknown or deleted."""
    message_id = params.integer("message_id")
    if message_id == 0:
        raise refused("Message identifier is not specified")
    message = world.message(chat.id, message_id)
    if message is None or message.deleted:
        raise refused(f"{purpose} not found")
    return message


def text_of(params: Params, field: str, entities: str, *, limit: int, too_long: str) -> tuple[str, tuple[Entity, ...]]:
    """Return a text field and its entities, cleaned, or raise ApiError 400; a caption may be empty, a text may not."""
    if params.text("parse_mode").lower() not in {"", "none"}:
        # only plain text with entities is accepted: a parse mode would hide errors of escaping
        raise refused("Unsupported parse_mode")
    marks = parse_entities(_structure_or_none(params, entities))
    text, placed = prepare(params.text(field), marks, allow_empty=field == "caption")
    if units(text) > limit:
        raise refused(too_long)
    return text, placed


def _structure_or_none(params: Params, name: str) -> object:
    try:
        return params.structure(name, "")
    except ApiError:
        return None  # the real server ignores entities that are not JSON


def reply_target(world: World, params: Params, chat: Chat) -> int | None:
    """Return the id of the message replied to, if any; raise ApiError 400 if it is gone, unless the bot allows that."""
    wanted = params.structure("reply_parameters", "Can't parse reply parameters JSON object")
    if wanted is None:
        wanted = {"message_id": params.integer("reply_to_message_id")}
        wanted["allow_sending_without_reply"] = params.flag("allow_sending_without_reply")
    if not isinstance(wanted, dict):
        raise refused("Object expected as reply parameters")
    if not wanted:
        return None
    if not isinstance(wanted.get("message_id"), int):
        raise refused('Can\'t find field "message_id"')
    message_id: int = wanted["message_id"]
    if message_id <= 0:
        return None
    message = world.message(chat.id, message_id)
    if message is not None and not message.deleted:
        return message_id
    if wanted.get("allow_sending_without_reply"):
        return None
    raise refused("message to be replied not found")


def replied_thread(world: World, chat: Chat, message_id: int) -> int | None:
    """Return the topic of a message that is replied to: without a topic in its request, a reply stands there.

    Raises ApiError 400 if that topic is closed to the bot.
    """
    message = world.message(chat.id, message_id)
    if message is None or message.thread_id is None or not has_topics(world, chat):
        return None
    _check_open(world, chat, world.topics.get((chat.id, message.thread_id)))
    return message.thread_id


def has_topics(world: World, chat: Chat) -> bool:
    """Tell whether topics are on in this chat."""
    return world.topics_mode if chat.kind == "private" else chat.is_forum


def thread_of(world: World, params: Params, chat: Chat) -> int | None:
    """Return the request's topic, or None; raise ApiError 400 if the chat has no such topic, or the bot is kept out.

    As in `check_message_topic` of Client.cpp, a group without topics ignores the parameter.
    """
    thread_id = params.integer("message_thread_id")
    if thread_id <= 0 or (chat.kind != "private" and not chat.is_forum):
        return None
    topic = world.topics.get((chat.id, thread_id)) if has_topics(world, chat) else None
    if topic is None:
        raise refused("message thread not found")
    _check_open(world, chat, topic)
    return thread_id


def _check_open(world: World, chat: Chat, topic: Topic | None) -> None:
    if topic is not None and topic.closed and topic.creator_id != world.me.id and not chat.rules_topics:
        raise refused("TOPIC_CLOSED")
