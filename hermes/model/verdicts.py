"""What is true of a request at its agent.

`proof` tells how it is known: two verdicts that differ in it alone are equal.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hermes.model.answer import Proof


@dataclass(frozen=True, slots=True)
class StillOpen:
    """It is listed as pending, and its session waits for it."""


@dataclass(frozen=True, slots=True)
class AnsweredWith:
    """Its tool call is completed with these answers: strings, one tuple a question."""

    answers: tuple[tuple[str, ...], ...]
    proof: Proof = field(default="record", compare=False)


@dataclass(frozen=True, slots=True)
class WasDismissed:
    """Its tool call ended by a rejection. `same_as` are answers that would have ended it just the same way."""

    same_as: tuple[tuple[str, ...], ...] | None = None
    proof: Proof = field(default="record", compare=False)


@dataclass(frozen=True, slots=True)
class Dead:
    """Nobody waits for it any more: aborted, deleted, restarted, or a zombie that is still listed."""

    proof: Proof = field(default="list", compare=False)


@dataclass(frozen=True, slots=True)
class Unproven:
    """It cannot be told now: an event may tell, or asking again later."""


Verdict = StillOpen | AnsweredWith | WasDismissed | Dead | Unproven
