"""The update queue of one bot: ids, offsets, confirmation, expiry. It decides the result of getUpdates.

Facts from tdlib/telegram-bot-api 10.0 and td/db/TQueue.cpp: an offset confirms the updates before it; a negative
one keeps that many of the newest and drops the rest; one far in the future or the past is read as "from the start";
a callback query expires after 150 s, a message after a day, and expired updates vanish silently; `allowed_updates`
applies when an update is made, not when it is fetched.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

TAP_TTL_S = 150.0
MESSAGE_TTL_S = 86_400.0
MAX_LIMIT = 100
MAX_TIMEOUT_S = 50
FUTURE_SLACK = 10
PAST_SLACK = 100_000
NOT_BY_DEFAULT = frozenset({"chat_member", "message_reaction", "message_reaction_count"})

Update = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Queued:
    """An update that waits; `expires_at` is in epoch seconds."""

    update_id: int
    update: Update
    expires_at: float


@dataclass(slots=True)
class Updates:
    """The updates that wait for the bot, oldest first, and all updates ever made."""

    next_id: int = field(default_factory=lambda: 100_000_000 + secrets.randbelow(800_000_000))
    allowed: frozenset[str] = frozenset()
    waiting: list[Queued] = field(default_factory=list)
    again: list[Update] = field(default_factory=list)  # sent first, even if confirmed before
    made: dict[int, Update] = field(default_factory=dict)

    def add(self, kind: str, body: dict[str, Any], *, now: float, ttl_s: float) -> int:
        """Make an update of this kind and return its id; queue it if the bot wants that kind."""
        update_id = self._take_id()
        self.made[update_id] = {"update_id": update_id, kind: body}
        if self.wants(kind):
            self.waiting.append(Queued(update_id, self.made[update_id], now + ttl_s))
        return update_id

    def inject(self, update: Update, *, now: float) -> int:
        """Queue any object as an update and return its id: the next id or, to be sent first and unchanged, its own."""
        brought = update.get("update_id")
        if brought is not None:
            self.again.append(update)
            return brought if isinstance(brought, int) else 0
        update_id = self._take_id()
        self.made[update_id] = {"update_id": update_id, **update}
        self.waiting.append(Queued(update_id, self.made[update_id], now + MESSAGE_TTL_S))
        return update_id

    def redeliver(self, update_id: int) -> None:
        """Send this update again, even if it was confirmed; raise LookupError if it never existed."""
        if update_id not in self.made:
            raise LookupError(f"there never was an update {update_id}")
        self.again.append(self.made[update_id])

    def repeat(self, chat_id: int, message_id: int) -> None:
        """Send the newest update about this message again; raise LookupError if there was none."""
        for update in reversed(self.made.values()):
            for kind in ("message", "edited_message"):
                body = update.get(kind)
                if isinstance(body, dict) and (body.get("message_id"), body["chat"]["id"]) == (message_id, chat_id):
                    self.again.append(update)
                    return
        raise LookupError(f"there never was an update about message {message_id}")

    def wants(self, kind: str) -> bool:
        """Tell whether the bot wants updates of this kind."""
        return kind in self.allowed if self.allowed else kind not in NOT_BY_DEFAULT

    def allow(self, kinds: Sequence[str]) -> None:
        """Set the kinds that the bot wants from now on; an empty list means the default kinds."""
        self.allowed = frozenset(kinds)

    def fetch(self, offset: int, limit: int, *, now: float) -> list[Update]:
        """Confirm the updates before the offset and return up to `limit` from there on."""
        self._forget_expired(now)
        if offset < 0:
            self.waiting = self.waiting[offset:]
        elif self._plausible(offset):
            self.waiting = [queued for queued in self.waiting if queued.update_id >= offset]
        again, self.again = self.again[:limit], self.again[limit:]
        return again + [queued.update for queued in self.waiting[: limit - len(again)]]

    def clear(self) -> None:
        """Remove all updates that wait."""
        self.waiting.clear()
        self.again.clear()

    def pending(self, now: float) -> int:
        """Return the number of updates that wait."""
        self._forget_expired(now)
        return len(self.waiting) + len(self.again)

    def _plausible(self, offset: int) -> bool:
        head = self.waiting[0].update_id if self.waiting else self.next_id
        return head - PAST_SLACK <= offset <= self.next_id + FUTURE_SLACK

    def _forget_expired(self, now: float) -> None:
        self.waiting = [queued for queued in self.waiting if queued.expires_at >= now]

    def _take_id(self) -> int:
        self.next_id += 1
        return self.next_id - 1
