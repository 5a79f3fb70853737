"""Pairing: a person proves to be there by sending the bot a code that only this terminal shows.

Telegram drops an update once a later one is asked for. So the offset never passes an update on which a listener might
act (taps, texts and edits of any user): that update and all later ones stay with Telegram.
"""

import asyncio
import re
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from hermes.chat.bot import Bot
from hermes.chat.failures import is_conflict, is_unauthorized, is_webhook
from hermes.chat.incoming import Incoming, Migrated, read_update
from hermes.chat.poll import pause_after
from hermes.errors import ChatError, HermesError
from hermes.model.events import Tap, Text, TextEdit

CODE_LASTS_S: Final = 600.0
POLL_S: Final = 10.0
CROWDED_PAUSE_S: Final = 1.0
"""The pause after a poll while updates stay with Telegram, because each poll is then answered at once."""
BATCH: Final = 100

_RIVAL: Final = "another program takes this bot's messages, perhaps Hermes of another user or computer: stop it there"
_START: Final = re.compile(r"/start(?:@\w+)?(?:\s+(\S+))?\s*")


@dataclass(frozen=True, slots=True)
class Code:
    """A code of 128 bits for one use, valid until `until_s` (epoch seconds)."""

    text: str = field(repr=False)
    until_s: float

    def link(self, username: str, *, group: bool = False) -> str:
        """Return the link by which Telegram sends the code to the bot, or adds the bot to a group and sends it."""
        return f"https://t.me/{username}?{'startgroup' if group else 'start'}={self.text}"

    def is_in(self, text: str | None) -> bool:
        """Tell whether this text is the command with the code; the time that this takes reveals nothing of the code."""
        found = _START.fullmatch(text or "")
        return found is not None and secrets.compare_digest((found[1] or "").encode(), self.text.encode())


def is_start(text: str | None) -> bool:
    """Tell whether this text is the command /start alone: what a person sends who opens the bot and presses Start."""
    found = _START.fullmatch(text or "")
    return found is not None and found[1] is None


def new_code(now_s: float) -> Code:
    """Return a new random code, valid for `CODE_LASTS_S`."""
    return Code(secrets.token_urlsafe(16), now_s + CODE_LASTS_S)


# --- the updates of the bot -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Heard:
    """A text that came, and the title of its group, None for a private chat."""

    text: Text
    group: str | None


class Watch:
    """Reads the updates of the bot, and leaves those with Telegram that a listener needs."""

    def __init__(self, bot: Bot) -> None:
        self.crowded = False
        self._bot = bot
        self._offset: int | None = None
        self._seen: set[object] = set()

    async def look(self, wait_s: float) -> list[Heard]:
        """Return the new texts; wait for one up to `wait_s`.

        Raises:
            ChatError: as `Bot.updates`.
            HermesError: so many updates must stay with Telegram that no new one can be read.
        """
        batch = [raw for raw in await self._bot.updates(self._offset, wait_s) if isinstance(raw, dict)]
        self.crowded, heard = False, []
        for raw in batch:
            update = _read(raw)
            heard += self._new(raw, update)
            self.crowded = self.crowded or listener_needs(update)
            if not self.crowded and isinstance(raw.get("update_id"), int):
                self._offset = raw["update_id"] + 1
        if self.crowded and len(batch) >= BATCH and not heard:
            raise HermesError(
                "a hundred messages wait for Hermes, and nothing behind them can be seen: run `hermes reap` where "
                "it is set up with this bot, or make another bot with @BotFather"
            )
        return heard

    async def let_go(self) -> None:
        """Confirm the handled updates to Telegram; if that fails, they come again, which does no harm."""
        with suppress(ChatError):
            await self._bot.updates(self._offset, 0)

    def _new(self, raw: dict[str, Any], update: Incoming | None) -> list[Heard]:
        name = raw.get("update_id")
        if not isinstance(update, Text) or name in self._seen:
            return []
        self._seen.add(name)
        return [Heard(update, str(raw["message"]["chat"].get("title", "")) if update.group else None)]


def _read(raw: dict[str, Any]) -> Incoming | None:
    try:
        return read_update(raw)
    except ValueError:
        return None


def listener_needs(update: Incoming | None) -> bool:
    """Tell whether a listener might act on an update of any user. None is an update that cannot be read.

    That listener may have a configuration with other users, and may run on another computer.
    """
    match update:
        case Text(text=str(words)):
            return not _START.fullmatch(words)
        case None | Tap() | Text() | TextEdit() | Migrated():
            return True
    return False


# --- waiting for the code -------------------------------------------------------------------------------


async def claimed(
    watch: Watch,
    code: Code,
    *,
    is_claim: Callable[[Heard, bool], Awaitable[bool]],
    shown: Callable[[float, str], None],
    now: Callable[[], float],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Heard | None:
    """Wait for a user who sends the code, and return that text, or None once the code has expired.

    `is_claim(text, has_code)` tells whether a text counts; `shown(left_s, trouble)` is called before each look.

    Raises:
        ChatRefused: the token was revoked, or the bot has a webhook.
        HermesError: as `Watch.look`.
    """
    failures, trouble = 0, ""
    while (left_s := code.until_s - now()) > 0:
        shown(left_s, trouble)
        try:
            came = await watch.look(max(1.0, min(left_s, POLL_S)))
            failures, trouble = 0, ""
        except ChatError as error:
            if is_unauthorized(error) or is_webhook(error):
                raise
            failures += 1
            trouble = _RIVAL if is_conflict(error) else str(error)
            await sleep(pause_after(error, failures))
            continue
        for one in came:
            if await is_claim(one, code.is_in(one.text.text) and now() < code.until_s):
                await watch.let_go()
                return one
        if watch.crowded:
            await sleep(CROWDED_PAUSE_S)
    return None
