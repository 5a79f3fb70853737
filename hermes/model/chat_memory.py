"""The data of one bot that survives a restart of Hermes."""

from __future__ import annotations

from dataclasses import dataclass

from hermes.model.ask import Source


@dataclass(frozen=True, slots=True)
class Followed:
    """The time (epoch) until which Hermes has received all events of the server with this name."""

    server: str
    until_s: float


@dataclass(frozen=True, slots=True)
class Servers:
    """How far the events of each server of this machine are known."""

    followed: tuple[Followed, ...]


@dataclass(frozen=True, slots=True)
class SettledDay:
    """A day (UTC, "YYYY-MM-DD") on which asks were settled; they age from this value of `ChatMemory.lived_s`."""

    day: str
    lived_s: float


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that Hermes made in a chat, by its own `name`.

    `about` is its session or, without a session id, its project: a folder of a machine. `agent_name`: the name of the
    session's agent for people.
    """

    chat_id: int
    thread_id: int
    name: str
    about: Source
    agent_name: str = ""


@dataclass(frozen=True, slots=True)
class ChatMemory:
    """The data of one bot that survives a restart of Hermes.

    - `offset`: the id of the next update to request from Telegram. `last_poll_s`: the last successful poll (epoch).
    - `answerable_s`: the value of the answerable clock (`core.answer_clock`) at the time `known_at_s` (epoch).
      `gap_at`: its value when it last stood still.
    - `chat_id`: the id of the supergroup that the configured group `moved_from` has become.
    - `trouble`: the sentence about why the chat does not work, or "".
    - `followed`: as in `Servers`. It is only read: an earlier version kept it here.
    - `damaged`: the number of unreadable asks that the person was not told about yet.
    - `newest_message`: the highest known message id in the chat.
    - `lived_s`: how long Hermes has run in all; of a pause between two runs at most an hour is added. Settled asks age
      by this count, so that a wrong wall clock deletes none. `settled_days`: the days with settled asks.
    - `is_away`: the person has said /away, so that nothing waits for the desk.
    - `was_quiet`: the last look at the clock was in the quiet hours.
    - `topics`: the topics that Hermes made, the one that was used last at the end. `no_topic`: the sentence that the
      person has read about why a topic could not be made or used, "" once one was made.
    - `takes_over`: another bot was at work with this store before, and what it posted is not posted again yet.
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
    is_away: bool = False
    was_quiet: bool = False
    topics: tuple[Topic, ...] = ()
    no_topic: str = ""
    takes_over: bool = False
