"""Reads one update of Telegram: a tap, a text or its edit, a moved group, a bot that is blocked or let in, or none.

Only a configured user in the configured chat may do anything. A stranger gets no reply, so that the bot does not reveal
that it is in use; the log names the user, not the content.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import telegram

from hermes.model.answer import User
from hermes.model.events import Tap, Text, TextEdit
from hermes.model.files import File

log = logging.getLogger(__name__)

_NO_ID = 2**63
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Migrated:
    """The group `old` became the supergroup `new`."""

    update_id: int
    old: int
    new: int


@dataclass(frozen=True, slots=True)
class Blocked:
    """The bot was blocked by the person, or removed from the group."""

    update_id: int
    chat_id: int


@dataclass(frozen=True, slots=True)
class Admitted:
    """The bot may write in this chat: it was unblocked, or added to the group, or its rights have changed."""

    update_id: int
    chat_id: int


@dataclass(frozen=True, slots=True)
class Other:
    """An update that Hermes does not use: a channel post, a person who joins or leaves."""

    update_id: int


_Sent = telegram.PhotoSize | telegram.Voice | telegram.Document | telegram.Video | telegram.Audio
Incoming = Tap | Text | TextEdit | Migrated | Blocked | Admitted | Other


def read_update(raw: dict[str, Any], *, bot_id: int | None = None, now: Callable[[], float] = time.time) -> Incoming:
    """Return the parsed update. If it replies to a message that `bot_id` wrote, the text of that message is included.

    `at_s` comes from `now`, the clock of all other times; `date_s` is Telegram's. Raises ValueError: another shape.
    """
    try:
        update = telegram.Update.de_json(raw, None)
        update_id = number(update.update_id)
        if update.callback_query:
            return _tap(update_id, update.callback_query, now())
        if update.message:
            return _message(update_id, update.message, now(), bot_id)
        if update.edited_message:
            return _edit(update_id, update.edited_message, bot_id)
        if update.my_chat_member:
            return _membership(update_id, update.my_chat_member)
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, OSError, RecursionError) as error:
        raise ValueError(f"an update of another shape: {error!r}") from error
    return Other(update_id)


def is_permitted(incoming: Tap | Text | TextEdit, *, users: frozenset[int], chat_id: int) -> bool:
    """Tell whether this tap or text comes from one of `users` in the chat; log a warning for any other."""
    if incoming.user.id in users and incoming.chat_id == chat_id:
        return True
    log.warning(
        "a %s of user %d in chat %d was ignored (update %d): not a configured user in the configured chat",
        "tap" if isinstance(incoming, Tap) else "text",
        incoming.user.id,
        incoming.chat_id,
        incoming.update_id,
    )
    return False


def _tap(update_id: int, query: telegram.CallbackQuery, at_s: float) -> Tap | Other:
    if query.data is None or query.message is None:
        return Other(update_id)
    chat_id, message_id = number(query.message.chat.id), number(query.message.message_id)
    # For a message that is too old, Telegram still sends the chat and the message id; Hermes needs no more.
    thread_id = _thread(query.message) if isinstance(query.message, telegram.Message) else 0
    user, query_id, data = _user(query.from_user), _words(query.id), _words(query.data)
    return Tap(update_id, at_s, user, chat_id, message_id, query_id, data, thread_id)


def _message(update_id: int, message: telegram.Message, at_s: float, bot_id: int | None) -> Incoming:
    chat_id = number(message.chat.id)
    if message.migrate_to_chat_id:
        return Migrated(update_id, chat_id, number(message.migrate_to_chat_id))
    if message.migrate_from_chat_id:
        return Migrated(update_id, number(message.migrate_from_chat_id), chat_id)
    if message.from_user is None or (message.text is None and message.effective_attachment is None):
        return Other(update_id)
    reply, file = _replied(message), _file(message)
    # Telegram's "Reply in another chat" brings a text to a topic that it is not about.
    is_from_elsewhere = bool(message.forward_origin or message.external_reply)
    return Text(
        update_id,
        at_s,
        _user(message.from_user),
        chat_id,
        number(message.message_id),
        None if message.text is None else _words(message.text),
        reply_to=number(reply.message_id) if reply else None,
        reply_text=_words(reply.text or reply.caption or "") if reply and _is_ours(reply, bot_id) else "",
        group=_is_group(message),
        date_s=message.date.timestamp(),
        file=file,
        caption=_words(message.caption or "") if file else "",
        thread_id=0 if is_from_elsewhere else _thread(message),
        is_forwarded=is_from_elsewhere,
        forwarded_to=_thread(message) if is_from_elsewhere else 0,
    )


def _file(message: telegram.Message) -> File | None:
    """Return the file of a message: the largest size of a picture, a voice note, a document, a video or a sound."""
    album = _words(message.media_group_id or "")
    picture = max(message.photo, key=lambda size: number(size.width) * number(size.height), default=None)
    if picture is not None:
        return _named(picture, "picture.jpg", "image/jpeg", album=album)
    if message.voice is not None:
        return _named(message.voice, "voice note", "audio/ogg", is_voice=True)
    file = message.document or message.video or message.audio
    if file is None:
        return None
    name, mime = _words(file.file_name or "")[-_LONGEST_NAME:], _words(file.mime_type or "")[:_LONGEST_NAME]
    return _named(file, name, mime, album=album)


def _named(file: _Sent, name: str, mime: str, *, album: str = "", is_voice: bool = False) -> File:
    file_id, unique_id, size = _words(file.file_id), _words(file.file_unique_id), number(file.file_size or 0)
    return File(file_id, name, mime, size, album, is_voice=is_voice, unique_id=unique_id)


def _edit(update_id: int, message: telegram.Message, bot_id: int | None) -> TextEdit | Other:
    file = _file(message)
    text = message.text if file is None else message.caption or ""
    if message.from_user is None or text is None:
        return Other(update_id)
    chat_id, message_id = number(message.chat.id), number(message.message_id)
    reply = _replied(message)
    is_for_us = not _is_group(message) or (reply is not None and _is_ours(reply, bot_id))
    is_to_bot = is_for_us and message.edit_date is not None
    return TextEdit(update_id, _user(message.from_user), chat_id, message_id, _words(text), file, is_to_bot=is_to_bot)


def _is_group(message: telegram.Message) -> bool:
    return message.chat.type in {"group", "supergroup"}


def _thread(message: telegram.Message) -> int:
    """Return the topic; the replies to a message in a group without topics have a number of this kind, too."""
    return number(message.message_thread_id) if message.is_topic_message and message.message_thread_id else 0


def _replied(message: telegram.Message) -> telegram.Message | None:
    """Return the message that this one replies to; without a reply, Telegram names the first message of a topic."""
    reply = message.reply_to_message
    return None if reply is None or reply.forum_topic_created or reply.message_id == _thread(message) else reply


def _is_ours(message: telegram.Message, bot_id: int | None) -> bool:
    """Tell whether this bot wrote the message: a person, a channel or another bot can write the same text."""
    return message.from_user is not None and message.from_user.id == bot_id and message.sender_chat is None


def _membership(update_id: int, change: telegram.ChatMemberUpdated) -> Blocked | Admitted | Other:
    chat_id, member = number(change.chat.id), change.new_chat_member
    is_there = may_write = member.status not in {"kicked", "left"}
    if isinstance(member, telegram.ChatMemberRestricted):
        is_there, may_write = member.is_member, member.can_send_messages
    if not is_there:
        return Blocked(update_id, chat_id)
    return Admitted(update_id, chat_id) if may_write else Other(update_id)


def _user(user: telegram.User) -> User:
    return User(number(user.id), _words(user.full_name))


# The library does not check the types of ids and texts; a wrong one in the file of an entry could not be decoded.


def number(value: object) -> int:
    """Return the id. Raises TypeError: it is no number of 64 bits."""
    if type(value) is not int or abs(value) >= _NO_ID:
        raise TypeError("an id is not a number")
    return value


def _words(value: object) -> str:
    """Return the text without halves of surrogate pairs, which JSON can carry and UTF-8 cannot."""
    if not isinstance(value, str):
        raise TypeError("a text is none")
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
