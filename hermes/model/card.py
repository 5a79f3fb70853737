"""A card: a session as the phone knows it, so that a person can write to it and stop it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hermes.model.prompt import SessionState, StopPhase, Target

Wanted = Literal["sessions", "new", "stop"]
"""What a list shows: all sessions; the projects in which a new one can begin; or the sessions that run, to stop one."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A session as its agent lists it: its state now, and when it was used last (epoch).

    `is_own`: the process that lists it is known to be the one that has worked on it last.
    """

    target: Target
    state: SessionState
    used_s: float
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class MachineList:
    """The sessions of the agents of one machine, as it listed them last.

    Its id is that of the machine, whose name for people is `name`. `wanted_s` and `listed_s`: when a list was asked for
    last, and the request that the newest one answers (epoch). `silent` are the agents and servers that did not answer.
    """

    id: str
    name: str
    wanted_s: float = 0.0
    listed_s: float = 0.0
    found: tuple[Listed, ...] = ()
    silent: tuple[str, ...] = ()
    revision: int = 0

    @property
    def machine(self) -> str:
        """The id of the machine."""
        return self.id


@dataclass(frozen=True, slots=True)
class Card:
    """A session that was listed on the phone, or a project in which a prompt begins a new session.

    Times are epoch seconds.

    - `target`: the session; its source has its title and, in `last_text`, the agent's last words.
    - `state`, `used_s`: the session's state when it was listed last, and when it was used before that.
    - `messages`: the messages on the phone that stand for it, the newest last. A reply to one is a prompt.
    - `shown`: the newest message that is a card, None if none is wanted; `drawn`: the digest of its screen.
      `is_wanted`: it is to be posted as a new message, since `wanted_s`.
    - `armed_for`, `armed_s`: the next plain text of this user is a prompt for it; 0 if nobody's is. `armed_in`: the
      topic in which they wished so, 0 if in none. `about`: the question that this text answers too late, "" if none.
    - `typing`: the message that asks for that text; it goes when no text is awaited any more.
    - `is_muted`: its turns get no notices.
    - `stop`: how far the wish to stop its turn has come; `sure_s`: when the person tapped for it first, 0 if an earlier
      Hermes has not noted that; `stop_s`: when the person was sure of it.
    - `is_stale`: its state and the last words are to be read again.
    """

    id: str
    chat_id: int
    target: Target
    state: SessionState = "idle"
    used_s: float = 0.0
    messages: tuple[int, ...] = ()
    armed_for: int = 0
    armed_s: float = 0.0
    armed_in: int = 0
    typing: int | None = None
    about: str = ""
    is_muted: bool = False
    stop: StopPhase = ""
    stop_s: float = 0.0
    sure_s: float = 0.0
    is_stale: bool = False
    is_wanted: bool = False
    wanted_s: float = 0.0
    shown: int | None = None
    drawn: str = ""
    revision: int = 0

    @property
    def machine(self) -> str:
        """The id of the machine of its session."""
        return self.target.source.machine
