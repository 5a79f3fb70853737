"""Polls Telegram for updates, and tells how it went; `listener.phone.updates` handles what comes.

Rules, each because a poll loop without it lost answers:
- A poll with the next offset makes Telegram forget older updates, so the offset follows only what was handled.
- After every error, also 401, 404 and 409, there is a pause of at most 30 s; Telegram's `retry_after` is obeyed at any
  length.
- The ids of the server are taken as they are. They may restart at a lower number (after a week without updates, or on
  another Bot API server); then Telegram answers from the head of its queue, and the offset follows. An offset that is
  only ever raised would repeat the same request a thousand times a second.
- After an answer that is immediate and brings nothing new, there is a pause.
"""

import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from hermes.chat.bot import Bot
from hermes.chat.failures import is_conflict, is_unauthorized, is_webhook
from hermes.chat.incoming import number
from hermes.errors import ChatAway, ChatError

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


@dataclass(frozen=True, slots=True)
class Batch:
    """The result of a good poll at `at_s` (epoch seconds). `is_whole`: nothing more waits at Telegram."""

    updates: tuple[Any, ...]
    at_s: float
    is_whole: bool


class Poller:
    """Polls from `offset`, which `handled` moves on.

    `pause_s` is the pause that is due before the next poll. `is_there` is true once Telegram has answered.
    """

    def __init__(
        self, bot: Bot, offset: Offset | None, *, now: Callable[[], float] = time.time, poll_s: float = POLL_S
    ) -> None:
        self.offset = offset
        self.pause_s = 0.0
        self._bot = bot
        self._now = now
        self._poll_s = poll_s
        self._done: deque[object] = deque(maxlen=REMEMBERED)
        self._webhook_gone = False
        self._failures, self._idle = 0, 0
        self.is_there = False
        self._kind: TroubleKind | None = None
        self._failed_s = 0.0

    async def poll(self, longest_s: float | None = None) -> Batch | Trouble:
        """Poll once, for at most `longest_s` seconds; 0 brings what already waits."""
        at_s = self._now()
        poll_s = self._poll_s if longest_s is None else min(self._poll_s, max(0.0, longest_s))
        try:
            if not self._webhook_gone:
                await self._bot.delete_webhook()
                self._webhook_gone = True
            if self.offset and at_s - self.offset.at_s > OFFSET_KEEPS_S:
                log.info(
                    "no update for days: asking without an offset, since ids may have started again from a low number"
                )
                self.offset = None
            next_id = self.offset.next_id if self.offset else None
            updates = await self._bot.updates(next_id, poll_s)
        except ChatError as error:
            return self._failed(error)
        return Batch(tuple(updates), self._recovered(), len(updates) < MOST_UPDATES)

    def is_done(self, raw: object) -> bool:
        """Tell whether this update was handled before: Telegram sends some of them again."""
        return _name(raw) in self._done

    def handled(self, raw: object) -> None:
        """Let Telegram forget this update with the next poll."""
        if not self.is_done(raw):
            self._done.append(_name(raw))
        update_id = _id_of(raw)
        if update_id is not None:
            self.offset = Offset(update_id + 1, self._now())

    def goes_on(self, *, brought: bool, took_s: float) -> bool:
        """Tell whether to poll again at once after a poll that took `took_s`, else set `pause_s`."""
        if brought or took_s >= LONGEST_IDLE_PAUSE_S:
            self._idle = 0
            return True
        self._idle += 1
        self.pause_s = min(LONGEST_IDLE_PAUSE_S, 0.05 * 2 ** min(self._idle, 10))
        return False

    def _recovered(self) -> float:
        at_s = self._now()
        if self._failures and (self._kind != "conflict" or at_s - self._failed_s > PEACE_S):
            log.info("Telegram answers again after %d failures", self._failures)
            self._failures, self._kind = 0, None
        self.is_there = True
        return at_s

    def _failed(self, error: ChatError) -> Trouble:
        kind, sentence = _told_apart(error)
        self._webhook_gone = self._webhook_gone and not is_webhook(error)
        self._failures, self._kind, self._failed_s = self._failures + 1, kind, self._now()
        beyond = self._failures - (LOUD_CONFLICTS if kind == "conflict" else LOUD_AFTER)
        self._say(sentence, beyond)
        self.pause_s = pause_after(error, self._failures)
        return Trouble(kind, sentence, self._failures, loud=beyond >= 0)

    def _say(self, sentence: str, beyond: int) -> None:
        """Log a warning for each of the first failures, then one error, and another after every 20 further failures."""
        if beyond < 0:
            log.warning("no updates from Telegram: %s", sentence)
        elif beyond % SAY_AGAIN_EVERY == 0:
            log.error("no updates from Telegram, %d times in a row: %s", self._failures, sentence)


def pause_after(error: ChatError, failures: int) -> float:
    """Return the pause after so many failed polls in a row, in seconds: as Telegram asks, else a growing one."""
    asked_s = error.retry_after_s if isinstance(error, ChatAway) else None
    return min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(failures - 1, 10)) if asked_s is None else asked_s


def as_text(raw: object) -> str:
    """Return an unreadable update as text, for a person to look at."""
    try:
        return repr(raw)
    except RecursionError:
        return "an update that is nested too deeply to be written down"


def _name(raw: object) -> object:
    update_id = _id_of(raw)
    return as_text(raw) if update_id is None else update_id


def _id_of(raw: object) -> int | None:
    """Return the id of the update, or None if it has none; such an update cannot be confirmed to Telegram."""
    try:
        return number(raw["update_id"]) if isinstance(raw, dict) else None
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
