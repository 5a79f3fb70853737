"""Group privacy mode: it limits the messages that a bot sees in a group, unless the bot is an administrator."""

from hermes.sandbox.botapi.text import piece
from hermes.sandbox.botapi.world import Message, World

_SERVICE = (
    "migrate_to_chat_id",
    "migrate_from_chat_id",
    "forum_topic_created",
    "forum_topic_edited",
    "forum_topic_closed",
    "forum_topic_reopened",
)


def bot_may_see(world: World, message: Message) -> bool:
    """Tell whether the bot gets this message: in privacy mode, a group message must be meant for the bot.

    Such messages are commands, mentions, replies to the bot, and service messages. No bot sees messages of other
    bots, except as the quoted message of a reply.
    """
    chat = world.chats[message.chat_id]
    if world.user(message.sender_id).is_bot:
        return False
    if chat.kind == "private" or chat.standing == "administrator" or not world.privacy_mode:
        return True
    if any(kind in message.content for kind in _SERVICE):
        return True
    return _replies_to_bot(world, message) or _calls_bot(world, message)


def _replies_to_bot(world: World, message: Message) -> bool:
    replied = world.message(message.chat_id, message.reply_to) if message.reply_to else None
    return replied is not None and replied.sender_id == world.me.id


def _calls_bot(world: World, message: Message) -> bool:
    name = f"@{world.me.username}".lower()
    for entity in message.entities:
        said = piece(message.text, entity["offset"], entity["length"]).lower()
        if entity["type"] == "mention" and said == name:
            return True
        if entity["type"] == "bot_command" and entity["offset"] == 0:
            return "@" not in said or said.endswith(name)
    return False
