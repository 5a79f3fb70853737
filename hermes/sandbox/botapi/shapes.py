"""Convert the world's objects to JSON of the Bot API (User, Chat, Message, CallbackQuery …)."""

from typing import Any

from hermes.sandbox.botapi.access import has_topics
from hermes.sandbox.botapi.world import Chat, Message, User, World
from hermes.sandbox.phone_values import Tap

Json = dict[str, Any]

_SENDS = "messages audios documents photos videos video_notes voice_notes polls other_messages"
_MAY = "react_to_messages add_web_page_previews edit_tag change_info invite_users pin_messages manage_topics"
_RULES = (
    "be_edited manage_chat delete_messages manage_video_chats restrict_members promote_members change_info "
    "invite_users post_stories edit_stories delete_stories send_welcome_messages"
)


def user_json(user: User) -> Json:
    """Return a User."""
    shape: Json = {"id": user.id, "is_bot": user.is_bot, "first_name": user.first_name}
    if user.username:
        shape["username"] = user.username
    return shape if user.is_bot else shape | {"language_code": "en"}


def me_json(world: World) -> Json:
    """Return the User of getMe."""
    return user_json(world.me) | {
        "can_join_groups": True,
        "can_read_all_group_messages": not world.privacy_mode,
        "supports_inline_queries": False,
        "can_connect_to_business": False,
        "has_main_web_app": False,
        "has_topics_enabled": world.topics_mode,
        "allows_users_to_create_topics": False,
    }


def chat_json(world: World, chat: Chat) -> Json:
    """Return a Chat."""
    if chat.kind == "private":
        person = world.user(chat.id)
        shape: Json = {"id": chat.id, "first_name": person.first_name, "type": "private"}
        return shape | ({"username": person.username} if person.username else {})
    shape = {"id": chat.id, "title": chat.title or "Group", "type": chat.kind}
    return shape | ({"is_forum": True} if chat.is_forum else {})


def full_chat_json(world: World, chat: Chat) -> Json:
    """Return a ChatFullInfo with its required fields only, and what the members of a group may do."""
    shape = chat_json(world, chat)
    if chat.kind != "private":
        shape["permissions"] = {"can_send_messages": True, "can_manage_topics": False}
    return shape | {
        "accent_color_id": 0,
        "max_reaction_count": 11,
        "accepted_gift_types": dict.fromkeys(
            (
                "unlimited_gifts",
                "limited_gifts",
                "unique_gifts",
                "premium_subscription",
                "gifts_from_channels",
            ),
            False,
        ),
    }


def member_json(world: World, user: User, *, present: bool = True) -> Json:
    """Return a ChatMember: a member or, if not `present`, one who left or (the bot itself) was removed."""
    if present:
        return {"status": "member", "user": user_json(user)}
    if user == world.me:
        return {"status": "kicked", "user": user_json(user), "until_date": 0}
    return {"status": "left", "user": user_json(user)}


def standing_json(world: World, chat: Chat) -> Json:
    """Return the ChatMember of the bot itself in this chat."""
    if chat.blocked:
        return member_json(world, world.me, present=False)
    shape = member_json(world, world.me) | {"status": chat.standing}
    if chat.standing == "administrator":
        rules = dict.fromkeys((f"can_{right}" for right in _RULES.split()), False)
        return shape | rules | {"is_anonymous": False, "can_manage_topics": chat.manages_topics}
    if chat.standing == "restricted":
        rights = [*(f"can_send_{kind}" for kind in _SENDS.split()), *(f"can_{right}" for right in _MAY.split())]
        return shape | dict.fromkeys(rights, False) | {"is_member": True, "until_date": 0}
    return shape


def message_json(world: World, message: Message, *, nested: bool = False) -> Json:
    """Return a Message. It contains the message it replies to, but no further messages of a chain of replies."""
    shape: Json = {
        "message_id": message.message_id,
        "from": user_json(world.user(message.sender_id)),
        "chat": chat_json(world, world.chats[message.chat_id]),
        "date": message.date,
    }
    if message.edit_date:
        shape["edit_date"] = message.edit_date
    if message.thread_id:
        shape |= {"message_thread_id": message.thread_id, "is_topic_message": True}
    replied = None if nested else _replied(world, message)
    if replied is not None and not replied.deleted:
        shape["reply_to_message"] = message_json(world, replied, nested=True)
    return shape | _content_json(message)


def _replied(world: World, message: Message) -> Message | None:
    """Return the message that this one replies to: where topics are on, if it stands in the same one.

    In a topic of a group, a message that replies to none replies to the one that the topic began with.
    """
    if message.reply_to is not None:
        replied = world.message(message.chat_id, message.reply_to)
        is_apart = replied is not None and replied.thread_id != message.thread_id
        return None if is_apart and has_topics(world, world.chats[message.chat_id]) else replied
    is_first = message.thread_id in {None, message.message_id}
    if is_first or world.chats[message.chat_id].kind == "private":
        return None
    return world.message(message.chat_id, message.thread_id or 0)


def _content_json(message: Message) -> Json:
    shape: Json = dict(message.content)
    text, entities = ("caption", "caption_entities") if message.content else ("text", "entities")
    if message.text:
        shape[text] = message.text
    if message.entities:
        shape[entities] = list(message.entities)
    if message.protected:
        shape["has_protected_content"] = True
    if message.preview:
        shape["link_preview_options"] = message.preview
    if message.markup.rows:
        shape["reply_markup"] = {"inline_keyboard": [list(row) for row in message.markup.rows]}
    return shape


def tap_json(world: World, tap: Tap) -> Json:
    """Return a CallbackQuery; its message is inaccessible (date 0) if it has been deleted."""
    message = world.message(tap.chat_id, tap.message_id)
    chat = chat_json(world, world.chats[tap.chat_id])
    gone = {"message_id": tap.message_id, "chat": chat, "date": 0}
    return {
        "id": tap.tap_id,
        "from": user_json(world.user(tap.user_id)),
        "message": gone if message is None or message.deleted else message_json(world, message),
        "chat_instance": str(tap.chat_id * 31 + 7),
        "data": tap.data,
    }
