"""A notice: it tells the phone, unasked, that a turn of a session has ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hermes.model.ask import Source


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of one turn: the number of files, and of lines added and removed.

    `diff`: the changed lines, for a person to read; "" if the agent does not tell.
    """

    files: int
    added: int = 0
    removed: int = 0
    diff: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn that has ended: the work of an agent from a prompt to its last words. Times are epoch seconds.

    - `source`: its session, without the ids of a request.
    - `agent_name`: the name of the agent for people.
    - `id`: the agent's id of the turn, which no other turn of the session has.
    - `began_s`: None if the agent does not tell; then the beginning counts that Hermes heard of.
    - `words`: the agent's last words.
    - `failure`: why the turn failed, in words; "" if it finished.
    - `prompt_id`: the agent's id of the prompt that began it or came into it, "" if the agent does not tell.
    - `changes`: None if the agent does not tell.
    - `nobody_there`: the agent knew at its end that nobody is at the desk, so that its notice does not wait there.
    """

    source: Source
    agent_name: str
    id: str
    began_s: float | None
    ended_s: float
    words: str = ""
    failure: str = ""
    changes: Changes | None = None
    prompt_id: str = ""
    nobody_there: bool = False


@dataclass(frozen=True, slots=True)
class Retry:
    """A request to the model that failed so often in one turn, and is tried again at `next_s` (epoch).

    `reason`: why it failed, in words. `since_s`: when Hermes first heard of it.
    """

    source: Source
    agent_name: str
    attempt: int
    next_s: float
    reason: str = ""
    since_s: float = 0.0


@dataclass(frozen=True, slots=True)
class RetryShown:
    """The message about a turn that keeps trying, and its content. `is_over`: that it no longer does."""

    retry: Retry
    chat_id: int
    message_id: int
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """A turn whose notice is on the phone, and the message. `heard_s`: when Hermes heard of its latest turn (epoch)."""

    turn: Turn
    heard_s: float
    chat_id: int
    message_id: int


@dataclass(frozen=True, slots=True)
class Place:
    """A message."""

    chat_id: int
    message_id: int


@dataclass(frozen=True, slots=True)
class Begun:
    """A turn that began at `at_s` (epoch), as Hermes heard it.

    - `prompt_id`: the latest prompt from the phone that began it or came into it.
    - `runs_s`: when something came into it last (epoch).
    - `goes_on`: the agent began it by itself, and it goes on with the turn before: it has the beginning of that one.
    """

    turn_id: str
    at_s: float
    prompt_id: str = ""
    runs_s: float = 0.0
    goes_on: bool = False


NoticePhase = Literal["none", "waiting", "posted", "dropped"]
"""No turn has ended yet; the notice of the latest one waits, was posted, or never will be."""


@dataclass(frozen=True, slots=True)
class Notice:
    """The notice of the latest turn of one session, as the store keeps it.

    - `machine`: the id of the machine of its agent.
    - `begun`: the last turns that began, the latest last. Only agents tell of them that keep no times of turns.
      `is_stopped`: the last one was interrupted. `is_left`: the session has ended.
    - `turn`: the latest turn that has ended, None before the first. `heard_s`: when Hermes heard of that, or first of
      the session (epoch).
    - `is_ours`: a prompt from the phone began that turn or came into it, so that its end is always told; or one began
      the next turn while the notice waited.
    - `untold`: earlier turns whose ends the phone is to hear of, because of its prompts, and that are not posted yet.
    - `is_muted`: the person wants no notices of the session, but for those.
    - `retry`: the turn that runs keeps trying to reach its model. `retry_shown`: the message about that.
    - `shown`: the newest notice of the session on the phone. `outdated`: earlier ones that still have their buttons.
    - `earlier`: further messages about the session's turns, the newest last. A reply to one of them is a prompt, too.
    - `revision`: grows with each write.
    """

    id: str
    agent: str
    session_id: str
    phase: NoticePhase = "none"
    begun: tuple[Begun, ...] = ()
    is_stopped: bool = False
    is_left: bool = False
    turn: Turn | None = None
    heard_s: float = 0.0
    is_ours: bool = False
    untold: tuple[Turn, ...] = ()
    is_muted: bool = False
    retry: Retry | None = None
    retry_shown: RetryShown | None = None
    shown: Shown | None = None
    outdated: tuple[Shown, ...] = ()
    earlier: tuple[Place, ...] = ()
    machine: str = ""
    revision: int = 0

    @property
    def places(self) -> set[tuple[int, int]]:
        """The chat and the id of each known message about the session's turns."""
        messages = (self.shown, self.retry_shown, *self.outdated, *self.earlier)
        return {(one.chat_id, one.message_id) for one in messages if one is not None}
