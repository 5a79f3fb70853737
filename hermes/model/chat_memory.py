"""What one bot must remember across restarts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Followed:
    """Until when (epoch) the events of the server with this name are known."""

    server: str
    until_s: float


@dataclass(frozen=True, slots=True)
class SettledDay:
    """A day (UTC, "YYYY-MM-DD") on which asks were settled, and for how long Hermes had been seen running by then."""

    day: str
    lived_s: float


@dataclass(frozen=True, slots=True)
class ChatMemory:
    """What one bot must remember across restarts.

    `offset` is the next update to ask for. `answerable_s` is the answerable clock as it stood at `known_at_s`
    (epoch), `gap_at` its value when it last stood still. `chat_id` replaces the configured one, `moved_from`,
    after a group became a supergroup. `trouble` is what keeps the chat from working, in words, or "". `damaged` counts
    the questions that could not be read, of which the person was not told yet. `newest_message` is the highest id of a
    message that is known in the chat. `lived_s` is for how long Hermes was seen running, and `settled_days` says until
    when of that time asks were settled.
    """

    bot_id: int
    offset: int | None = None
    last_poll_s: float | None = None
    answerable_s: float = 0.0
    known_at_s: float | None = None
    gap_at: float | None = None
    chat_id: int | None = None
    moved_from: int | None = None
    trouble: str = ""
    followed: tuple[Followed, ...] = ()
    damaged: int = 0
    newest_message: int = 0
    lived_s: float = 0.0
    settled_days: tuple[SettledDay, ...] = ()
