"""An entry: one ask as the store keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hermes.model.ask import Ask
from hermes.model.state import State

SideKind = Literal["typing", "offer", "final_call", "reminder", "expired", "delivered", "too_late", "whole"]


@dataclass(frozen=True, slots=True)
class Side:
    """A message beside the main one: which one it is, and the digest of what it shows."""

    kind: SideKind
    message_id: int
    drawn: str = ""


@dataclass(frozen=True, slots=True)
class Phone:
    """What of this entry is on the phone. `drawn` is the digest of the screen that the message shows.

    `copies` are older messages of the same ask (a send that timed out and was delivered all the same). `since_id` is
    the first message of this ask and `since_date_s` Telegram's own date for it: a text counts only if it is later.
    `after_id` is the newest message that the chat had when the ask came: none of its messages is older.
    """

    chat_id: int
    message_id: int | None = None
    drawn: str = ""
    sides: tuple[Side, ...] = ()
    copies: tuple[int, ...] = ()
    since_id: int | None = None
    since_date_s: float = 0.0
    after_id: int = 0


@dataclass(frozen=True, slots=True)
class Timing:
    """The time to answer. `set_at` and `expires_at` are seconds of the answerable clock (`core.answer_clock`).

    All None until the first post. `until_s` is the same moment as the phone shows it; `called` is true once
    the final call was made, `reminded` counts reminders.
    """

    posted_s: float | None = None
    set_at: float | None = None
    expires_at: float | None = None
    until_s: float | None = None
    called: bool = False
    reminded: int = 0


Route = Literal["server", "waiter"]


@dataclass(frozen=True, slots=True)
class Entry:
    """An ask with everything that must survive a crash. `code` is the short name in the text ("k7mx4").

    `trail` has a line for each permission of the same session whose message this one took over, the latest last.
    `waits` is true once a waiting hook was seen, `waiter_taken` once one has taken the answer.
    """

    id: str
    code: str
    ask: Ask
    state: State
    phone: Phone
    asked_s: float
    timing: Timing = Timing()
    route: Route | None = None
    waits: bool = False
    waiter_taken: bool = False
    trail: tuple[str, ...] = ()
    revision: int = 0
