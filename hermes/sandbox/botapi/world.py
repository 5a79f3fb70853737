"""The world behind the Bot API: users, chats, messages, taps, the clock. No HTTP here.

One `World` is one bot with all its users and chats. Hold `lock` to read or change it. After a change, call `bump`,
which wakes all waiters, in any thread and any event loop.
"""

import asyncio
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from hermes.sandbox.botapi.calls import Calls, Faults
from hermes.sandbox.botapi.files import Files
from hermes.sandbox.botapi.keyboard import Markup
from hermes.sandbox.botapi.rates import UNLIMITED, Rates
from hermes.sandbox.botapi.text import Entity
from hermes.sandbox.botapi.updates import Updates
from hermes.sandbox.phone_values import Tap, Toast

DEMO_TOKEN = "7000000001:demo-token-of-a-bot-that-does-not-exist"  # noqa: S105 - opens nothing but this server
SUPERGROUP_BELOW = -1_000_000_000_000

ChatKind = Literal["private", "group", "supergroup"]
Standing = Literal["member", "administrator", "restricted"]


@dataclass(frozen=True, slots=True)
class User:
    """A person or a bot."""

    id: int
    first_name: str = "Ann"
    username: str | None = None
    is_bot: bool = False


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat that the bot is in; the kind follows from the id (above 0 private, below -10^12 supergroup).

    `standing` is the bot's status in a group; a restricted bot may not write. `manages_topics` is a right of an
    administrator. `forum`: topics are on in a supergroup, as they are if it begins with `topics`.
    """

    id: int
    title: str = ""
    topics: tuple[int, ...] = ()
    blocked: bool = False
    migrated_to: int | None = None
    standing: Standing = "member"
    manages_topics: bool = False
    forum: bool = False

    @property
    def kind(self) -> ChatKind:
        """The kind: private, group or supergroup."""
        if self.id > 0:
            return "private"
        return "supergroup" if self.id < SUPERGROUP_BELOW else "group"

    @property
    def is_forum(self) -> bool:
        """Tell whether this is a group whose topics are on."""
        return self.kind == "supergroup" and (self.forum or bool(self.topics))

    @property
    def rules_topics(self) -> bool:
        """Tell whether the bot may make topics here, and change those of others."""
        return self.standing == "administrator" and self.manages_topics


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of a chat. `thread_id` is the id of the service message that it began with."""

    chat_id: int
    thread_id: int
    name: str
    creator_id: int
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """One state of a message. `content` is the part that is not text (sticker, document, service fields) as JSON."""

    chat_id: int
    message_id: int
    sender_id: int
    date: int
    text: str = ""
    entities: tuple[Entity, ...] = ()
    markup: Markup = field(default_factory=Markup)
    content: dict[str, Any] = field(default_factory=dict)
    reply_to: int | None = None
    thread_id: int | None = None
    silent: bool = False
    protected: bool = False
    preview: dict[str, Any] | None = None
    edit_date: int | None = None
    deleted: bool = False

    def says(self, text: str, entities: tuple[Entity, ...], markup: Markup) -> bool:
        """Tell whether the message already has this content; an edit is then refused."""
        return (self.text, self.entities, self.markup.rows) == (text, entities, markup.rows)


FIRST_USER = User(1001, "Ann", "ann")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a world; the first user and the first chat are the default ones.

    Without `chats` each user has a private chat. `rate_scale` 1 is as strict as Telegram. `topics_mode`: @BotFather has
    switched topics on in the private chats of the bot. `test_clock` is the file of a clock that a test bends.
    """

    token: str = DEMO_TOKEN
    users: Sequence[User] = (FIRST_USER,)
    chats: Sequence[Chat] = ()
    rate_scale: float = UNLIMITED
    privacy_mode: bool = True
    topics_mode: bool = False
    test_clock: Path | None = None


class World:
    """See the module. Long polls are shorter by the factor `pace`."""

    def __init__(
        self, settings: Settings | None = None, *, now: Callable[[], float] = time.time, pace: float = 1.0
    ) -> None:
        settings = settings or Settings()
        self.token = settings.token
        self.pace = pace
        self.me = User(int(self.token.partition(":")[0]), "Hermes", "hermes_demo_bot", is_bot=True)
        self.privacy_mode = settings.privacy_mode
        self.topics_mode = settings.topics_mode
        self.lock = threading.RLock()
        self.version = 0
        self.polls = 0  # the number of long polls so far; only the newest one may go on
        self.held = 0  # the number of long polls that are held now
        self.webhook = ""
        self.closed = False
        self.commands: list[dict[str, str]] = []
        self.updates = Updates()
        self.rates = Rates(settings.rate_scale)
        self.calls = Calls(time.monotonic)
        self.faults = Faults()
        self.files = Files()
        self.users = {user.id: user for user in settings.users}
        self.chats = {chat.id: chat for chat in settings.chats}
        self.topics: dict[tuple[int, int], Topic] = {}
        self.unanswered: dict[str, Tap] = {}  # the taps that the bot may still answer, once
        self.toasts: list[Toast] = []
        self._messages: dict[tuple[int, int], Message] = {}
        self._history: dict[tuple[int, int], list[tuple[float, Message]]] = {}
        self._last_ids: dict[int, int] = {}
        self._now = now
        self._offset_s = 0.0
        self._wakers: set[Callable[[], None]] = set()
        self._complete()

    def _complete(self) -> None:
        """Add chats if there are none, and a person for each private chat."""
        if not self.chats:
            self.chats = {user_id: Chat(user_id) for user_id in self.users}
        for chat_id in self.chats:
            if chat_id > 0:
                self.user(chat_id)
        for chat in self.chats.values():
            for thread_id in chat.topics:
                self.topics[chat.id, thread_id] = Topic(chat.id, thread_id, f"Topic {thread_id}", self.default_user)

    # the clock and changes

    def now(self) -> float:
        """Return the time of this world in epoch seconds."""
        return self._now() + self._offset_s

    def advance(self, seconds: float) -> None:
        """Advance the clock by `seconds`."""
        with self.lock:
            self._offset_s += seconds
        self.bump()

    def bump(self) -> None:
        """Count a change and wake all waiters."""
        with self.lock:
            self.version += 1
            wakers = tuple(self._wakers)
        for wake in wakers:
            wake()

    def close(self) -> None:
        """End every wait, because the server stops."""
        self.closed = True
        self.bump()

    async def changed(self, version: int, timeout_s: float) -> int:
        """Wait until the version is above `version`, the world is closed or the time is over; return the version."""
        loop = asyncio.get_running_loop()
        news = asyncio.Event()

        def wake() -> None:
            with suppress(RuntimeError):  # the waiter's loop has ended meanwhile, so it waits no more
                loop.call_soon_threadsafe(news.set)

        with self.lock:
            self._wakers.add(wake)
            if self.version > version or self.closed:
                news.set()
        try:
            async with asyncio.timeout(timeout_s):
                await news.wait()
        except TimeoutError:
            pass
        finally:
            with self.lock:
                self._wakers.discard(wake)
        return self.version

    # people and chats

    @property
    def default_user(self) -> int:
        """The id of the first person."""
        return next(iter(self.users))

    @property
    def default_chat(self) -> int:
        """The id of the first chat."""
        return next(iter(self.chats))

    def user(self, user_id: int) -> User:
        """Return this user; an unknown one is created with a default name."""
        if user_id == self.me.id:
            return self.me
        return self.users.setdefault(user_id, User(user_id, f"Person {user_id}"))

    def put_chat(self, chat: Chat) -> Chat:
        """Store a chat, new or changed, and return it."""
        self.chats[chat.id] = chat
        return chat

    # messages

    def message(self, chat_id: int, message_id: int) -> Message | None:
        """Return the message, deleted or not, or None if it never existed."""
        return self._messages.get((chat_id, message_id))

    def messages(self, chat_id: int) -> list[Message]:
        """Return all messages of a chat in order, deleted ones too."""
        return sorted((m for m in self._messages.values() if m.chat_id == chat_id), key=lambda m: m.message_id)

    def history(self, message: Message) -> list[tuple[float, Message]]:
        """Return every state of the message, each with the time at which it began."""
        return self._history[message.chat_id, message.message_id]

    def put(self, message: Message) -> Message:
        """Store a message, new or changed, and return it."""
        key = (message.chat_id, message.message_id)
        self._messages[key] = message
        self._history.setdefault(key, []).append((self.now(), message))
        self.bump()
        return message

    def next_message_id(self, chat_id: int) -> int:
        """Return the next id: each supergroup has its own count; private chats and small groups share one."""
        box = chat_id if chat_id < SUPERGROUP_BELOW else 0
        self._last_ids[box] = self._last_ids.get(box, 0) + 1
        return self._last_ids[box]

    def delete(self, message: Message) -> Message:
        """Delete a message for everyone, and return its last state."""
        return self.put(replace(message, deleted=True))

    def new_tap_id(self) -> str:
        """Return a random number that is hard to guess."""
        return str(secrets.randbelow(2**63))
