"""What a person answers, what is decided, and how an ask ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class User:
    """A person on the phone."""

    id: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one question: option indices in the order chosen, then free text or None."""

    picks: tuple[int, ...] = ()
    text: str | None = None

    def __bool__(self) -> bool:
        """Tell whether anything was answered."""
        return bool(self.picks) or self.text is not None


DecisionKind = Literal["answer", "reject", "skip", "release", "always"]


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be sent, frozen. `by` is None where a timer decided; `release` leaves the agent waiting.

    `always` allows a deed and all that are like it.
    """

    kind: DecisionKind
    at_s: float
    answers: tuple[Answer, ...] = ()
    by: User | None = None


OutcomeKind = Literal["answered", "rejected", "skipped", "answered_at_desk", "rejected_at_desk", "expired", "gone"]

Proof = Literal["", "record", "event", "plugin", "list", "accepted", "receipt", "left"]

"""How an end is known. "record": the agent's own record of the tool call shows it; "event": its server's events told,
"plugin": its plugin told, where no record does; "list": its server asks for it no more, or its session is over;
"accepted": the server took the reply, and nothing else could be seen; "receipt": it was handed over to a program that
reports no more; "left": whoever waited for it is gone; "": nothing had to be known, or nobody noted it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an ask ended. `answers` are the desk's own words, one tuple of strings a question.

    `reason` is set for "gone": "ended" (aborted, deleted, restarted), "ambiguous" (two candidates); and for what ended
    at the desk "together", where the word on another ask of its session, or one like it, ended this one, too.
    """

    kind: OutcomeKind
    at_s: float
    answers: tuple[tuple[str, ...], ...] = ()
    reason: str = ""
    proof: Proof = ""
