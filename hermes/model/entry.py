"""An entry: one ask as the store keeps it, with all that must survive a crash."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from hermes.model.ask import Ask
from hermes.model.notice import Place
from hermes.model.state import State

SideKind = Literal["typing", "offer", "final_call", "reminder", "expired", "delivered", "too_late", "whole", "declined"]


@dataclass(frozen=True, slots=True)
class Side:
    """A message on the phone beside the main message. `drawn` is the digest of the screen that it shows."""

    kind: SideKind
    message_id: int
    drawn: str = ""


@dataclass(frozen=True, slots=True)
class Phone:
    """The messages of an entry on the phone.

    - `chat_id`: their chat, 0 until the phone side has looked at the ask.
    - `message_id`: the main message, None until it is posted. `drawn`: the digest of the screen that it shows.
    - `sides`: the messages beside the main message.
    - `copies`: other messages of the ask, which will be deleted: it was posted again, or a send timed out, but arrived.
    - `since_id`, `since_date_s`: the first message of the ask, and Telegram's date of it. Only a later text counts.
    - `after_id`: the newest message in the chat before the ask. All messages of the ask have higher ids.
    - `thread_id`: the topic of the chat in which the main message is, 0 if in none.
    - `left`: its messages in chats that were used before, which do not say yet that they are out of date.
    """

    chat_id: int = 0
    message_id: int | None = None
    drawn: str = ""
    sides: tuple[Side, ...] = ()
    copies: tuple[int, ...] = ()
    since_id: int | None = None
    since_date_s: float = 0.0
    after_id: int = 0
    thread_id: int = 0
    left: tuple[Place, ...] = ()

    @property
    def messages(self) -> set[int]:
        """The ids of all messages that are known."""
        known = (self.message_id, *self.copies, *(side.message_id for side in self.sides))
        return {message_id for message_id in known if message_id is not None}

    def wanting(self, kind: SideKind) -> Phone:
        """Return the messages without the one of this kind beside the main one: it goes, and is sent anew if wanted."""
        before = tuple(side.message_id for side in self.sides if side.kind == kind)
        sides = tuple(side for side in self.sides if side.kind != kind)
        return replace(self, sides=sides, copies=(*self.copies, *before))


@dataclass(frozen=True, slots=True)
class Timing:
    """The time to answer. It starts with the first post, and again if a person does something with the ask.

    - `posted_s`: the first post (epoch). Until then all times are None.
    - `set_at`, `expires_at`: start and end, in seconds of the answerable clock (`core.answer_clock`). An ask that was
      posted and has no end waits until somebody answers it.
    - `until_s`: the end as the phone shows it (epoch).
    - `away_at`: the value of the answerable clock when the machine of the ask was missed, None while it is there. Until
      it is back, no time to answer passes. If the ask is decided meanwhile, the value stays.
    - `called`, `reminded`: whether the final call was made, and the number of reminders, both since the last start.
    """

    posted_s: float | None = None
    set_at: float | None = None
    expires_at: float | None = None
    until_s: float | None = None
    away_at: float | None = None
    called: bool = False
    reminded: int = 0


Route = Literal["server", "waiter"]
"""The way of the answer: through the HTTP API of the agent's server, or printed by a hook that waits for it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An ask with everything that must survive a crash.

    - `code`: the short name of the ask in its messages ("k7mx4"), "" until the phone side has looked at the ask.
    - `asked_s`: when Hermes received the ask (epoch).
    - `route`: None until it is chosen.
    - `waits`: a hook is known to wait for the answer, or to have waited. `waiter_taken`: a hook has taken the answer.
    - `trail`: a line for each earlier permission of the session whose message this one has replaced, latest last.
    - `revision`: grows with each write, so that the store detects concurrent changes.
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

    @property
    def is_out_of_reach(self) -> bool:
        """Tell whether an answer waits or waited, or would wait, because its agent or the machine cannot be reached."""
        return self.state.away or self.timing.away_at is not None

    def unposted(self) -> Entry:
        """Return the ask as it was before its first post, for a bot that cannot edit the messages of another one."""
        return replace(self, code="", phone=Phone(), timing=Timing())


LastingWord = Literal["", "always", "refused"]
"""The kind of decision on a permission that may end others of its session, or ""."""


@dataclass(frozen=True, slots=True)
class Closed:
    """A closed ask in short, and when it ended (epoch). `word` is its lasting word (`core.ends`).

    `agent`, `directory`: those of its source. `awaits_news`: its agent may still tell that its call has ended;
    `message_id` is kept for that.
    """

    id: str
    session_id: str
    call_id: str | None
    awaits_news: bool
    word: LastingWord = ""
    ended_s: float = 0.0
    agent: str = ""
    directory: str = ""
    message_id: str | None = None
