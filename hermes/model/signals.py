"""The reports of an agent about its asks and its turns, from its plugin or its server. Adapters make them."""

from __future__ import annotations

from dataclasses import dataclass

from hermes.model.answer import Response
from hermes.model.ask import Ask
from hermes.model.notice import Retry, Turn


@dataclass(frozen=True, slots=True)
class Asked:
    """The agent asks, and the ask has a request id.

    - `waits`: the hook that brings the ask already waits for the answer, and is never started again.
    - `nonce`: the hook made up the request id. An open ask of the same session with the same call id is then an earlier
      one for the same call; it is closed, unless a hook still waits for it.
    """

    ask: Ask
    waits: bool = False
    nonce: bool = False


@dataclass(frozen=True, slots=True)
class Announced:
    """An ask may follow: its tool call has begun. It has a call id, but no request id yet."""

    ask: Ask


@dataclass(frozen=True, slots=True)
class Replied:
    """A request was answered, on the phone or at the desk. It may be a request that the agent no longer waits for.

    `answers` are those to its questions, or the reply to its permission. If the agent does not name the request,
    `request_id` is "", and `call_id` leads to the ask. `by_timer`: no person answered in time, and the agent went on.
    """

    request_id: str
    session_id: str
    answers: Response
    call_id: str = ""
    by_timer: bool = False


@dataclass(frozen=True, slots=True)
class Dismissed:
    """A request was rejected, on the phone or at the desk. The ids are as in `Replied`."""

    request_id: str
    session_id: str
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class Quiet:
    """The session stopped (idle, error, deleted), and waits for none of its asks any more.

    With a `request_id`, that is known of this request alone: the session may ask something else in another process.
    `but_turn`: the turn with this id runs on, so that its own asks still wait.
    """

    session_id: str
    request_id: str = ""
    but_turn: str = ""


@dataclass(frozen=True, slots=True)
class Busy:
    """The session is working."""

    session_id: str


@dataclass(frozen=True, slots=True)
class TurnBegan:
    """A turn of this agent's session has begun, at `at_s` (epoch), or a prompt has come into one that runs.

    Only agents tell it that keep no times of turns.

    - `prompt_id`: the id of that prompt, if it is from the phone; an agent that does not know it says `from_phone`.
    - `goes_on`: the agent began it by itself, and goes on with what the turn before was about.
    - `ends_asks`: so its session waits for no answer any more.
    """

    agent: str
    session_id: str
    turn_id: str
    at_s: float
    prompt_id: str = ""
    from_phone: bool = False
    goes_on: bool = False
    ends_asks: bool = True


@dataclass(frozen=True, slots=True)
class TurnStopped:
    """The turn that ran in this agent's session was interrupted. Only agents tell it that keep no times of turns."""

    agent: str
    session_id: str


@dataclass(frozen=True, slots=True)
class SessionEnded:
    """A session of this agent is over; it may be resumed later."""

    agent: str
    session_id: str


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """A turn has ended by itself. Nobody interrupted it, and it is no subagent's.

    `ends_asks`: so its session waits for no answer any more. Otherwise the agent tells that in another way.
    """

    turn: Turn
    ends_asks: bool = False


@dataclass(frozen=True, slots=True)
class Retrying:
    """The turn that runs cannot reach its model, and tries again."""

    retry: Retry

    @property
    def session_id(self) -> str:
        """The id of its session."""
        return self.retry.source.session_id


AskSignal = Asked | Announced | Replied | Dismissed | Quiet | Busy
TurnReport = TurnBegan | TurnEnded | TurnStopped | SessionEnded | Retrying | Quiet | Busy
Signal = AskSignal | TurnReport
