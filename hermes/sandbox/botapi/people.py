"""The control side as a plain object: it acts for persons, and for tests it shows the state and queues faults.

Every method that needs the lock takes it, so any thread may use a `Control`. An impossible action (no such message,
no such button) raises LookupError, an invalid fault ValueError, a text that Telegram refuses ApiError.
"""

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import TypeAdapter

from hermes.sandbox.botapi import topics
from hermes.sandbox.botapi.access import has_topics
from hermes.sandbox.botapi.files import STICKER, Media, ids_of
from hermes.sandbox.botapi.privacy import bot_may_see
from hermes.sandbox.botapi.seen import shown
from hermes.sandbox.botapi.shapes import chat_json, member_json, message_json, standing_json, tap_json, user_json
from hermes.sandbox.botapi.text import MAX_CAPTION_UNITS, MAX_TEXT_UNITS, prepare, units
from hermes.sandbox.botapi.topics import TopicAct
from hermes.sandbox.botapi.updates import MESSAGE_TTL_S, TAP_TTL_S
from hermes.sandbox.botapi.world import SUPERGROUP_BELOW, Chat, Message, World
from hermes.sandbox.phone_values import Call, Fault, PhoneState, ShownMessage, Tap, Toast

T = TypeVar("T")
_FAULT = TypeAdapter(Fault)
_MEDIA = TypeAdapter(tuple[Media, ...])


class Control:
    """The control side of one world."""

    def __init__(self, world: World) -> None:
        self.world = world

    # reading

    def state(self) -> PhoneState:
        """Return the clock, the counts, and whether a long poll is held."""
        world = self.world
        with world.lock:
            now = world.now()
            return PhoneState(
                version=world.version,
                now=now,
                default_user=world.default_user,
                default_chat=world.default_chat,
                polling=world.held > 0,
                pending_update_count=world.updates.pending(now),
                webhook=world.webhook,
                blocked=tuple(chat.id for chat in world.chats.values() if chat.blocked),
                calls=world.calls.counts(),
            )

    def messages(self, chat_id: int | None = None, *, after: int = 0) -> tuple[ShownMessage, ...]:
        """Return the chat's messages with ids above `after`, in order, each with all its versions."""
        with self.world.lock:
            chat = self._chat(chat_id)
            found = [message for message in self.world.messages(chat.id) if message.message_id > after]
            return tuple(shown(self.world, message) for message in found)

    def toasts(self, *, after_s: float = 0.0) -> tuple[Toast, ...]:
        """Return the answers to taps that were given after `after_s` (epoch seconds), in order."""
        with self.world.lock:
            return tuple(toast for toast in self.world.toasts if toast.at_s > after_s)

    def calls(self, method: str | None = None) -> tuple[Call, ...]:
        """Return the bot's requests, in order: only those of `method` if given."""
        with self.world.lock:
            return self.world.calls.of(method)

    async def wait_for(self, predicate: Callable[[], T | None], timeout_s: float = 10.0) -> T:
        """Return the first true value of the predicate, checked after each change; raise TimeoutError if none comes."""
        deadline = time.monotonic() + timeout_s
        while True:
            version = self.world.version
            if value := predicate():
                return value
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"nothing within {timeout_s:g} s made the condition true")
            await self.world.changed(version, left)

    # actions of a person

    def tap(
        self,
        message_id: int,
        label: str | None = None,
        *,
        data: str | None = None,
        row: int | None = None,
        column: int | None = None,
        user_id: int | None = None,
        chat_id: int | None = None,
        times: int = 1,
    ) -> tuple[Tap, ...]:
        """Tap a shown button (by label or place), or send any `data` as if a button had it; return the taps."""
        with self.world.lock:
            chat, person = self._chat(chat_id, user_id), self._person(user_id)
            self._ever(chat.id, message_id)
            if data is None:
                data = self._data(chat.id, message_id, label, (row, column))
            return tuple(self._tap(person, chat.id, message_id, data) for _ in range(times))

    def write(
        self,
        text: str,
        *,
        reply_to: int | None = None,
        thread_id: int | None = None,
        user_id: int | None = None,
        chat_id: int | None = None,
    ) -> tuple[int, ...]:
        """Send a text and return its message ids; like a client, split it after 4096 units, with the same reply_to."""
        with self.world.lock:
            chat, person = self._open(chat_id, user_id), self._person(user_id)
            sent = []
            for part in _parts(text):
                cleaned, entities = prepare(part, ())
                message = self._new(chat, person, reply_to, thread_id, text=cleaned, entities=entities)
                sent.append(message.message_id)
            return tuple(sent)

    def send_sticker(self, *, reply_to: int | None = None, chat_id: int | None = None) -> int:
        """Send a sticker, and return its message id."""
        with self.world.lock:
            chat, person = self._open(chat_id, None), self._person(None)
            return self._new(chat, person, reply_to, None, content={"sticker": STICKER}).message_id

    def share(
        self,
        media: Sequence[Mapping[str, Any]],
        *,
        reply_to: int | None = None,
        album: str = "",
        thread_id: int | None = None,
        user_id: int | None = None,
        chat_id: int | None = None,
    ) -> tuple[int, ...]:
        """Send files, each with the fields of `Media`, and return their message ids; several make an album.

        `album`: the id of the album of which these are a piece; the others come with another call.
        """
        with self.world.lock:
            chat, person = self._open(chat_id, user_id), self._person(user_id)
            album = album or (str(secrets.randbelow(2**53)) if len(media) > 1 else "")
            group = {"media_group_id": album} if album else {}
            sent = []
            for each in _MEDIA.validate_python(media):
                text, entities = prepare(each.caption, (), allow_empty=True)
                if units(text) > MAX_CAPTION_UNITS:
                    raise LookupError("a client writes no caption of more than 1024 units")
                content = each.kept(self.world.files) | group
                message = self._new(chat, person, reply_to, thread_id, text=text, entities=entities, content=content)
                sent.append(message.message_id)
            return tuple(sent)

    def lose_files(self, message_id: int) -> None:
        """Let Telegram no longer have the files of this message, which may be deleted: their ids outlive it."""
        with self.world.lock:
            self.world.files.lost |= ids_of(self._ever(self._chat(None).id, message_id).content)

    def rewrite(self, message_id: int, text: str, *, chat_id: int | None = None, **media: Any) -> None:
        """Edit a text or caption of a person, or the file (the fields of `Media`); the bot gets an edited_message."""
        with self.world.lock:
            message = self._there(self._chat(chat_id).id, message_id)
            new = _MEDIA.validate_python([media] if media else [])
            content = new[0].put_for(message.content, self.world.files) if new else message.content
            cleaned, entities = prepare(text, (), allow_empty=bool(content))
            at_s = int(self.world.now())
            changed = replace(message, text=cleaned, entities=entities, content=content, edit_date=at_s)
            self._tell("edited_message", self.world.put(changed))

    def delete(self, message_id: int, *, chat_id: int | None = None) -> None:
        """Delete a message for everyone; the bot gets no update."""
        with self.world.lock:
            self.world.delete(self._there(self._chat(chat_id).id, message_id))

    def block(self, *, chat_id: int | None = None) -> None:
        """Block the bot, or remove it from a group."""
        self._set_blocked(chat_id, blocked=True)

    def unblock(self, *, chat_id: int | None = None) -> None:
        """Unblock the bot, or add it to a group again."""
        self._set_blocked(chat_id, blocked=False)

    def migrate(self, *, chat_id: int | None = None, forum: bool = False) -> int:
        """Turn a group into a supergroup, with service messages in both chats, and return the new chat id.

        `forum`: because a person switches topics on.
        """
        with self.world.lock:
            old = self._chat(chat_id)
            if old.kind != "group" or old.migrated_to is not None:
                raise LookupError(f"chat {old.id} is no group that could become a supergroup")
            new = self.world.put_chat(Chat(SUPERGROUP_BELOW - 1_000_000 + old.id, old.title, forum=forum))
            old = self.world.put_chat(replace(old, migrated_to=new.id))
            person = self._person(None)
            self._new(old, person, None, None, content={"migrate_to_chat_id": new.id})
            self._new(new, person, None, None, content={"migrate_from_chat_id": old.id})
            return new.id

    def topic(
        self,
        what: TopicAct,
        *,
        thread_id: int = 0,
        name: str = "Talk",
        chat_id: int | None = None,
    ) -> int:
        """Make, rename, close, reopen or delete a topic as a person who may do so, and return its id."""
        with self.world.lock:
            chat, person = self._open(chat_id, None), self._person(None)
            if not has_topics(self.world, chat):
                raise LookupError(f"there are no topics in chat {chat.id}")
            return topics.act(self.world, chat, person, what, thread_id, name)

    def rule(self, *, chat_id: int | None = None, **change: Any) -> None:
        """Change the fields of a group's `Chat` as its owner: topics, and the standing and the rights of the bot."""
        world = self.world
        with world.lock:
            before = self._chat(chat_id)
            after = world.put_chat(replace(before, **change))
            self._tell_standing(after, standing_json(world, before), standing_json(world, after))

    def topics_mode(self, *, on: bool) -> None:
        """Switch topics on or off in the private chats of the bot, as @BotFather does."""
        with self.world.lock:
            self.world.topics_mode = on
        self.world.bump()

    # actions of a test

    def advance(self, seconds: float) -> None:
        """Advance the clock by `seconds`."""
        self.world.advance(seconds)

    def fault(self, **fault: Any) -> None:
        """Queue a fault; the arguments are the fields of `phone_values.Fault`."""
        with self.world.lock:
            self.world.faults.put(_FAULT.validate_python(fault))
        self.world.bump()

    def clear_faults(self) -> None:
        """Remove the queued faults, and end the requests that hang."""
        with self.world.lock:
            self.world.faults.clear()
        self.world.bump()

    def redeliver(self, update_id: int) -> None:
        """Send an update again, even if it was confirmed."""
        with self.world.lock:
            self.world.updates.redeliver(update_id)
        self.world.bump()

    def repeat(self, message_id: int) -> None:
        """Send the newest update about a person's message again: the message itself, or its last edit."""
        with self.world.lock:
            self.world.updates.repeat(self._chat(None).id, message_id)
        self.world.bump()

    def inject(self, update: dict[str, Any]) -> int:
        """Send any object as an update and return its id."""
        with self.world.lock:
            update_id = self.world.updates.inject(update, now=self.world.now())
        self.world.bump()
        return update_id

    # below here: the caller holds the lock

    def _person(self, user_id: int | None) -> int:
        return self.world.user(self.world.default_user if user_id is None else user_id).id

    def _chat(self, chat_id: int | None, user_id: int | None = None) -> Chat:
        world = self.world
        if chat_id is None:
            chat_id = world.default_chat
            if user_id is not None and chat_id > 0:
                chat_id = user_id
        if chat_id > 0 and user_id not in {None, chat_id}:
            raise LookupError(f"user {user_id} is not in the private chat {chat_id}")
        if chat_id not in world.chats and chat_id > 0:
            world.user(chat_id)
            return world.put_chat(Chat(chat_id))  # an unknown person starts the bot
        if chat_id not in world.chats:
            raise LookupError(f"there is no chat {chat_id}")
        return world.chats[chat_id]

    def _open(self, chat_id: int | None, user_id: int | None) -> Chat:
        chat = self._chat(chat_id, user_id)
        if chat.blocked or chat.migrated_to is not None:
            raise LookupError(f"nobody can write to the bot in chat {chat.id}: it was blocked or has moved")
        return chat

    def _ever(self, chat_id: int, message_id: int) -> Message:
        """Return a message, which may be deleted. Raises LookupError."""
        message = self.world.message(chat_id, message_id)
        if message is None:
            raise LookupError(f"there never was a message {message_id} in chat {chat_id}")
        return message

    def _there(self, chat_id: int, message_id: int) -> Message:
        message = self.world.message(chat_id, message_id)
        if message is None or message.deleted:
            raise LookupError(f"there is no message {message_id} in chat {chat_id}")
        return message

    def _data(self, chat_id: int, message_id: int, label: str | None, place: tuple[int | None, int | None]) -> str:
        seen = shown(self.world, self._there(chat_id, message_id))
        row, column = place
        if label is not None:
            button = seen.button(label)
        elif row is not None and 0 <= row < len(seen.rows) and 0 <= (column or 0) < len(seen.rows[row]):
            button = seen.rows[row][column or 0]
        else:
            raise LookupError(f"no button at {place} among {seen.labels}")
        if button.data is None:
            raise LookupError(f"the button {button.text!r} sends nothing")
        return button.data

    def _tap(self, user_id: int, chat_id: int, message_id: int, data: str) -> Tap:
        world = self.world
        tap = Tap(world.new_tap_id(), world.updates.next_id, user_id, chat_id, message_id, data, world.now())
        world.unanswered[tap.tap_id] = tap
        world.updates.add("callback_query", tap_json(world, tap), now=tap.at_s, ttl_s=TAP_TTL_S)
        world.bump()
        return tap

    def _new(self, chat: Chat, user_id: int, reply_to: int | None, thread_id: int | None, **what: Any) -> Message:
        if reply_to is not None:
            replied = self._there(chat.id, reply_to)
            thread_id = replied.thread_id if thread_id is None else thread_id
        if not has_topics(self.world, chat):
            thread_id = None  # the app shows no topics, also if there were some
        if thread_id is not None and (chat.id, thread_id) not in self.world.topics:
            raise LookupError(f"there is no topic {thread_id} in chat {chat.id}")
        message_id = self.world.next_message_id(chat.id)
        message = Message(
            chat.id,
            message_id,
            user_id,
            int(self.world.now()),
            reply_to=reply_to,
            thread_id=thread_id,
            **what,
        )
        self._tell("message", self.world.put(message))
        return message

    def _tell(self, kind: str, message: Message) -> None:
        world = self.world
        if bot_may_see(world, message):
            world.updates.add(kind, message_json(world, message), now=world.now(), ttl_s=MESSAGE_TTL_S)
        world.bump()

    def _set_blocked(self, chat_id: int | None, *, blocked: bool) -> None:
        world = self.world
        with world.lock:
            chat = world.put_chat(replace(self._chat(chat_id), blocked=blocked))
            before, after = (member_json(world, world.me, present=there) for there in (blocked, not blocked))
            self._tell_standing(chat, before, after)

    def _tell_standing(self, chat: Chat, before: dict[str, Any], after: dict[str, Any]) -> None:
        world = self.world
        person = chat.id if chat.kind == "private" else self._person(None)
        change = {
            "chat": chat_json(world, chat),
            "from": user_json(world.user(person)),
            "date": int(world.now()),
            "old_chat_member": before,
            "new_chat_member": after,
        }
        if before != after:
            world.updates.add("my_chat_member", change, now=world.now(), ttl_s=MESSAGE_TTL_S)
        world.bump()


def _parts(text: str) -> list[str]:
    parts, part, size = [], "", 0
    for char in text:
        if size + units(char) > MAX_TEXT_UNITS:
            parts.append(part)
            part, size = "", 0
        part, size = part + char, size + units(char)
    return [*parts, part]
