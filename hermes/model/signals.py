"""What an agent tells."""

from __future__ import annotations

from dataclasses import dataclass

from hermes.model.ask import Ask


@dataclass(frozen=True, slots=True)
class Asked:
    """An ask with its request id.

    `waits`: its hook holds its place already, and is never started again. `nonce`: the hook made the request id up, so
    that an open ask of its session with its call id is an older one of the same, which nobody can answer any more.
    """

    ask: Ask
    waits: bool = False
    nonce: bool = False


@dataclass(frozen=True, slots=True)
class Announced:
    """An ask that may come: its tool call began; there is a call id, but no request yet."""

    ask: Ask


@dataclass(frozen=True, slots=True)
class Replied:
    """Somebody's answer took effect (or went to a zombie): `answers` are strings, one tuple a question.

    Where the agent does not name the request, `request_id` is "", and `call_id` is what it shares with its ask.
    """

    request_id: str
    session_id: str
    answers: tuple[tuple[str, ...], ...]
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class Dismissed:
    """Somebody's rejection took effect; the ids are those of `Replied`."""

    request_id: str
    session_id: str
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class Quiet:
    """The session stopped (idle, error, deleted): nothing that it asked before is waited for any more."""

    session_id: str


@dataclass(frozen=True, slots=True)
class Busy:
    """The session is working."""

    session_id: str


@dataclass(frozen=True, slots=True)
class Receipt:
    """A waiting hook took its answer and printed it."""

    wait_id: str


Signal = Asked | Announced | Replied | Dismissed | Quiet | Busy | Receipt
