"""The poll loop: it handles each update at least once, one at a time, and retries after every error.

Rules, each because a poll loop without it lost answers:
- A poll with the next offset makes Telegram forget older updates, so the loop sends it only after handling them.
- An update that cannot be handled goes to quarantine alone, and the next one is read.
- If an update cannot be saved, the person is told to tap again. The update stays with Telegram only if Telegram cannot
  be reached for that message or refuses the token.
- After every error, also 401, 404 and 409, the loop pauses for at most 30 s and retries; it waits for Telegram's
  `retry_after` at any length.
- The loop takes the ids of the server as they are. They may restart at a lower number (after a week without updates, or
  on another Bot API server); then Telegram answers from the head of its queue, and the offset follows. A loop that only
  raises the offset would repeat the same request a thousand times a second.
- After an answer that is immediate and brings nothing new, the loop pauses.
"""

import asyncio
import inspect
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

import telegram

from hermes.chat.bot import ANSWER_FIRST_S, Bot, is_conflict, is_unauthorized, is_webhook
from hermes.errors import ChatAway, ChatError, NotSaved, StoreError
from hermes.model.answer import User
from hermes.model.events import Tap, Text

log = logging.getLogger(__name__)

POLL_S = 25.0
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
LONGEST_IDLE_PAUSE_S = 1.0
# After a week without updates ids may start at any number, so an offset of that age is not used.
OFFSET_KEEPS_S = 6 * 86400.0
# While two programs poll, each sometimes succeeds, so one good poll does not end a conflict.
PEACE_S = 600.0
LOUD_AFTER = 3
LOUD_CONFLICTS = 2
SAY_AGAIN_EVERY = 20
REMEMBERED = 1000
MOST_UPDATES = 100  # Telegram's limit for one answer: if it is reached, more may wait
_NO_ID = 2**63

# --- reading one update --------------------------------------------------------------------------------


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
class Other:
    """An update that Hermes does not use: an edit, a channel post, a person who joins or leaves."""

    update_id: int


Incoming = Tap | Text | Migrated | Blocked | Other


def read_update(raw: dict[str, Any], *, bot_id: int | None = None, now: Callable[[], float] = time.time) -> Incoming:
    """Return the parsed update. If it replies to a message that `bot_id` wrote, the text of that message is included.

    `at_s` comes from `now`, the clock of all other times; `date_s` is Telegram's. Raises ValueError: another shape.
    """
    try:
        update = telegram.Update.de_json(raw, None)
        update_id = _number(update.update_id)
        if update.callback_query:
            return _tap(update_id, update.callback_query, now())
        if update.message:
            return _message(update_id, update.message, now(), bot_id)
        if update.my_chat_member:
            return _membership(update_id, update.my_chat_member)
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, OSError, RecursionError) as error:
        raise ValueError(f"an update of another shape: {error!r}") from error
    return Other(update_id)


def _tap(update_id: int, query: telegram.CallbackQuery, at_s: float) -> Tap | Other:
    # For a message that is too old, Telegram still sends the chat and the message id; Hermes needs no more.
    if query.data is None or query.message is None:
        return Other(update_id)
    chat_id, message_id = _number(query.message.chat.id), _number(query.message.message_id)
    return Tap(update_id, at_s, _user(query.from_user), chat_id, message_id, _words(query.id), _words(query.data))


def _message(update_id: int, message: telegram.Message, at_s: float, bot_id: int | None) -> Incoming:
    chat_id = _number(message.chat.id)
    if message.migrate_to_chat_id:
        return Migrated(update_id, chat_id, _number(message.migrate_to_chat_id))
    if message.migrate_from_chat_id:
        return Migrated(update_id, _number(message.migrate_from_chat_id), chat_id)
    if message.from_user is None or (message.text is None and message.effective_attachment is None):
        return Other(update_id)
    reply = _replied(message)
    return Text(
        update_id,
        at_s,
        _user(message.from_user),
        chat_id,
        _number(message.message_id),
        None if message.text is None else _words(message.text),
        reply_to=_number(reply.message_id) if reply else None,
        reply_text=_words(reply.text or reply.caption or "") if reply and _is_ours(reply, bot_id) else "",
        group=message.chat.type in {"group", "supergroup"},
        date_s=message.date.timestamp(),
    )


def _replied(message: telegram.Message) -> telegram.Message | None:
    """Return the message that this one replies to; without a reply, Telegram names the first message of a topic."""
    reply = message.reply_to_message
    return None if reply is None or reply.forum_topic_created else reply


def _is_ours(message: telegram.Message, bot_id: int | None) -> bool:
    """Tell whether this bot wrote the message: a person, a channel or another bot can write the same text."""
    return message.from_user is not None and message.from_user.id == bot_id and message.sender_chat is None


def _membership(update_id: int, change: telegram.ChatMemberUpdated) -> Blocked | Other:
    if change.new_chat_member.status in {"kicked", "left"}:
        return Blocked(update_id, _number(change.chat.id))
    return Other(update_id)


def _user(user: telegram.User) -> User:
    return User(_number(user.id), _words(user.full_name))


# The library does not check the types of ids and texts; a wrong one in the file of an entry could not be decoded.


def _number(value: object) -> int:
    if type(value) is not int or abs(value) >= _NO_ID:
        raise TypeError("an id is no number")
    return value


def _words(value: object) -> str:
    """Return the text without halves of surrogate pairs, which JSON can carry and UTF-8 cannot."""
    if not isinstance(value, str):
        raise TypeError("a text is none")
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def as_text(raw: object) -> str:
    """Return an unreadable update as text, for a person to look at."""
    try:
        return repr(raw)
    except RecursionError:
        return "an update that is nested too deeply to be written down"


# --- the loop ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Offset:
    """The id to poll from next, and the time (epoch seconds) at which the update before it was handled."""

    next_id: int
    at_s: float


TroubleKind = Literal["conflict", "unauthorized", "away"]


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why no updates come, after `failures` failed polls in a row. `loud`: so many that a person should be told."""

    kind: TroubleKind
    sentence: str
    failures: int
    loud: bool


CONFLICT = (
    "another program receives the updates of this bot, and with them taps and texts: "
    "stop it, or give Hermes a bot of its own"
)
"""The value of `ChatMemory.trouble` while another program polls."""

_SENTENCES = {
    "conflict": CONFLICT,
    "webhook": "a webhook was set for this bot, and nothing can be polled beside it: it will be removed",
    "unauthorized": "Telegram does not accept the bot's token: look at telegram.token and telegram.api_base",
}

Handle = Callable[[dict[str, Any]], Awaitable[None] | None]


class Poller:
    """Poll for updates and pass each to `handle`, which saves its effect before it returns.

    `load` and `save` keep the offset of this bot. `handle` gets the raw update. If it raises NotSaved,
    `not_saved` tells the person, and raises ChatError if that fails; after any other error the update goes to
    `quarantine`. `on_good_poll(at_s)` is called for each answer of Telegram, even an empty one, and `on_trouble` for
    each failure. `hurry_s()` returns the longest time in seconds that the next poll may last, or None for `poll_s`.
    """

    def __init__(  # noqa: PLR0913 - one argument for each thing that the caller provides
        self,
        bot: Bot,
        *,
        load: Callable[[], Offset | None],
        save: Callable[[Offset], None],
        handle: Handle,
        quarantine: Callable[[Any, Exception], None],
        not_saved: Callable[[dict[str, Any], NotSaved], Awaitable[None] | None],
        on_good_poll: Callable[[float], None] = lambda _: None,
        on_trouble: Callable[[Trouble], None] = lambda _: None,
        hurry_s: Callable[[], float | None] = lambda: None,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        poll_s: float = POLL_S,
    ) -> None:
        self._bot, self._save, self._handle = bot, save, handle
        self._quarantine, self._not_saved = quarantine, not_saved
        self._on_good_poll, self._on_trouble = on_good_poll, on_trouble
        self._hurry_s = hurry_s
        self._now, self._sleep, self._poll_s = now, sleep, poll_s
        self._offset = load()
        self._saved = self._offset
        self._done: deque[object] = deque(maxlen=REMEMBERED)
        self._webhook_gone = False
        self._failures, self._idle = 0, 0
        self._is_there = False
        self._kind: TroubleKind | None = None
        self._failed_s = 0.0
        self._begun = self._taken = 0
        self._is_whole = True
        self._progress = asyncio.Condition()
        self.pause_s = 0.0

    async def run(self) -> None:
        """Poll until cancelled. Polls return at once until the first one succeeds, to show if Telegram is reachable."""
        while True:
            try:
                again = await self.step(poll_s=self._lasting_s() if self._is_there else 0)
            except Exception:  # the loop must never end: log the error and continue
                log.exception("the poll loop tripped and goes on")
                again, self.pause_s = False, LONGEST_IDLE_PAUSE_S
            await self._sleep(ANSWER_FIRST_S if again else self.pause_s)

    async def step(self, *, poll_s: float | None = None) -> bool:
        """Poll once and handle the updates. Return True to continue at once, False to pause for `pause_s` first.

        `poll_s=0` handles the updates that already wait at Telegram, and does not wait for more.
        """
        began_s = self._now()
        self._begun += 1
        try:
            batch = await self._poll(began_s, self._poll_s if poll_s is None else poll_s)
        except ChatError as error:
            return self._failed(error)
        self._recovered()
        self._is_whole = len(batch) < MOST_UPDATES
        taken = await self._take_all(batch)
        self._keep_offset()
        if self._is_whole:
            async with self._progress:
                self._taken = self._begun
                self._progress.notify_all()
        return self._paced(brought=taken, took_s=self._now() - began_s)

    async def caught_up(self) -> None:
        """Return when a poll that began after this call has brought all waiting updates, and they are handled.

        `hurry_s` keeps the polls before it short.
        """
        begun = self._begun
        async with self._progress:
            await self._progress.wait_for(lambda: self._taken > begun)

    def _lasting_s(self) -> float:
        hurry_s = self._hurry_s()
        return self._poll_s if hurry_s is None else min(self._poll_s, max(0.0, hurry_s))

    async def _poll(self, at_s: float, poll_s: float) -> list[Any]:
        if not self._webhook_gone:
            await self._bot.delete_webhook()
            self._webhook_gone = True
        if self._offset and at_s - self._offset.at_s > OFFSET_KEEPS_S:
            log.info("no update for days: asking without an offset, since ids may have started anew")
            self._offset = None
        return await self._bot.updates(self._offset.next_id if self._offset else None, poll_s)

    async def _take_all(self, batch: list[Any]) -> bool:
        """Handle the batch and tell whether any update was new; stop, with False, at one that must come again."""
        taken = False
        for raw in batch:
            update_id = _id_of(raw)
            name = as_text(raw) if update_id is None else update_id
            if name not in self._done:
                if not await self._take(raw):
                    self._is_whole = False
                    return False
                self._done.append(name)
                taken = True
            if update_id is not None:
                self._offset = Offset(update_id + 1, self._now())
        return taken

    async def _take(self, raw: Any) -> bool:
        """Handle one update; return False if it must stay with Telegram."""
        try:
            await _finished(self._handle(raw))
        except NotSaved as error:
            return await self._told(raw, error)
        except ValueError as error:
            log.warning("an update of another shape is put into quarantine: %s", error)
            self._set_aside(raw, error)
        except Exception as error:  # the guard around one update
            log.exception("an update could not be handled and is put into quarantine")
            self._set_aside(raw, error)
        return True

    async def _told(self, raw: dict[str, Any], error: NotSaved) -> bool:
        log.error("an update was not saved, the person is asked to do it again: %s", error)
        try:
            await _finished(self._not_saved(raw, error))
        except ChatError as untold:
            if isinstance(untold, ChatAway) or is_unauthorized(untold) or is_conflict(untold):
                log.warning("nor could they be told (%s): the update stays with Telegram", untold)
                return False
            log.warning("nor could they be told: %s", untold)
        return True

    def _set_aside(self, raw: Any, error: Exception) -> None:
        try:
            self._quarantine(raw, error)
        except (StoreError, OSError) as full:
            log.error("nor could it be put there: %s", full)  # noqa: TRY400 - the cause is named; not a bug

    def _keep_offset(self) -> None:
        """Save the offset; a failure is only logged, because its one effect is that updates come twice."""
        if self._offset is None or self._offset == self._saved:
            return
        try:
            self._save(self._offset)
            self._saved = self._offset
        except (StoreError, OSError) as error:
            log.warning("the place in Telegram's queue was not saved: %s", error)

    def _paced(self, *, brought: bool, took_s: float) -> bool:
        if brought or took_s >= LONGEST_IDLE_PAUSE_S:
            self._idle = 0
            return True
        self._idle += 1
        self.pause_s = min(LONGEST_IDLE_PAUSE_S, 0.05 * 2 ** min(self._idle, 10))
        return False

    def _recovered(self) -> None:
        at_s = self._now()
        if self._failures and (self._kind != "conflict" or at_s - self._failed_s > PEACE_S):
            log.info("Telegram answers again after %d failures", self._failures)
            self._failures, self._kind = 0, None
        self._is_there = True
        self._on_good_poll(at_s)

    def _failed(self, error: ChatError) -> bool:
        kind, sentence = _told_apart(error)
        self._webhook_gone = self._webhook_gone and not is_webhook(error)
        self._failures, self._kind, self._failed_s = self._failures + 1, kind, self._now()
        beyond = self._failures - (LOUD_CONFLICTS if kind == "conflict" else LOUD_AFTER)
        self._say(sentence, beyond)
        self._on_trouble(Trouble(kind, sentence, self._failures, loud=beyond >= 0))
        wait_s = error.retry_after_s if isinstance(error, ChatAway) else None
        grown_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(self._failures - 1, 10))
        self.pause_s = grown_s if wait_s is None else wait_s
        return False

    def _say(self, sentence: str, beyond: int) -> None:
        """Log a warning for each of the first failures, then one error, and another after every 20 further failures."""
        if beyond < 0:
            log.warning("no updates from Telegram: %s", sentence)
        elif beyond % SAY_AGAIN_EVERY == 0:
            log.error("no updates from Telegram, %d times in a row: %s", self._failures, sentence)


def _id_of(raw: object) -> int | None:
    """Return the id of the update, or None if it has none; such an update cannot be confirmed to Telegram."""
    try:
        return _number(raw["update_id"]) if isinstance(raw, dict) else None
    except (KeyError, TypeError):
        return None


def _told_apart(error: ChatError) -> tuple[TroubleKind, str]:
    if is_webhook(error):
        return "conflict", _SENTENCES["webhook"]
    if is_conflict(error):
        return "conflict", _SENTENCES["conflict"]
    if is_unauthorized(error):
        return "unauthorized", _SENTENCES["unauthorized"]
    return "away", str(error)


async def _finished(result: Awaitable[None] | None) -> None:
    if inspect.isawaitable(result):
        await result
