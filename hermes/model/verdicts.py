"""The verdicts on a request: its state at its agent. A server gives them, or Hermes derives them from reports.

`proof` says how Hermes knows the verdict. Two verdicts that differ only in `proof` are equal.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from hermes.model.answer import Answers, Proof, Response


@dataclass(frozen=True, slots=True)
class StillOpen:
    """The request is pending, and its session waits for the answer."""


@dataclass(frozen=True, slots=True)
class AnsweredWith:
    """The request was answered with these answers, or this reply to a permission; `by_timer` as in `Replied`."""

    answers: Response
    proof: Proof = field(default="record", compare=False)
    by_timer: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class WasDismissed:
    """The request was rejected. `same_as` are the answers, if any, that end the tool call in exactly the same way."""

    same_as: Answers | None = None
    proof: Proof = field(default="record", compare=False)


@dataclass(frozen=True, slots=True)
class Dead:
    """The agent no longer waits for the answer (aborted, deleted, restarted), even if it still lists the request."""

    proof: Proof = field(default="list", compare=False)
    reason: Literal["ended", "swept"] = "ended"
    """"swept": the agent ended the turn because nobody answered it for long."""


@dataclass(frozen=True, slots=True)
class Unproven:
    """Nothing is proven now. A later event or another look may prove it."""


End = AnsweredWith | WasDismissed | Dead
"""The verdicts that end an ask."""

Verdict = StillOpen | End | Unproven
