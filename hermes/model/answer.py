"""The answer of a person, the decision that is sent to the agent, and the outcome of an ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class User:
    """A person on the phone, with the user id and the name from Telegram."""

    id: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one question: the indices of the chosen options, in the order chosen, and the free text or None."""

    picks: tuple[int, ...] = ()
    text: str | None = None

    def __bool__(self) -> bool:
        """Tell whether the question is answered, by an option or by a text."""
        return bool(self.picks) or self.text is not None


DecisionKind = Literal["answer", "reject", "skip", "release", "always"]


@dataclass(frozen=True, slots=True)
class Decision:
    """The final decision about an ask. Exactly this is sent to the agent, however often the delivery is repeated.

    - `kind`: "answer" sends `answers`, one for each question; the other kinds have none. "reject" tells the agent no.
      "skip" lets the agent decide. "always" allows a permission and all that its `always` patterns cover. "release"
      sends nothing and leaves the ask to the desk.
    - `by`: the person who decided, or None if a timer did.
    """

    kind: DecisionKind
    at_s: float
    answers: tuple[Answer, ...] = ()
    by: User | None = None


Answers = tuple[tuple[str, ...], ...]
"""The answers to questions as their agent reports them: for each question the labels, then the free text."""


@dataclass(frozen=True, slots=True)
class Once:
    """A permission was allowed once."""


@dataclass(frozen=True, slots=True)
class Always:
    """A permission was allowed, with all that its `always` patterns cover."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """A permission was allowed, but it is not known whether once or always."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A permission was refused: `why` is "" if no reason was given, None if it is not known whether one was given."""

    why: str | None = ""


Reply = Once | Always | Allowed | Refused
Response = Answers | Reply
"""What an agent was told: the answers to questions, or the reply to a permission."""

OutcomeKind = Literal["answered", "rejected", "skipped", "answered_at_desk", "rejected_at_desk", "expired", "gone"]
"""How an ask ended. "expired": a timer decided. "gone": the agent no longer waits for an answer."""

Proof = Literal["", "record", "event", "plugin", "list", "accepted", "receipt", "left"]
"""How Hermes knows that an ask has ended.

- "record": the agent's own record of the tool call shows it.
- "event", "plugin": no record shows it, but the events of the agent's server or the agent's plugin report it.
- "list": the agent's server no longer lists the request, or its session no longer waits for it.
- "accepted": the server accepted the reply, and nothing else could be observed.
- "receipt": the answer was handed over to a program that reports nothing more.
- "left": no hook waits for the answer any more.
- "": no proof was needed, or none was noted.
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an ask ended.

    - `answers`: the answers, or the reply to a permission, that the agent reported. They are empty if there were none,
      or if the decision tells all of them.
    - `reason` of "gone": "ended" (aborted, deleted, restarted), "swept" (the agent gave up waiting by itself),
      "removed" (its machine was removed),
      "ambiguous" (two requests fit, so that Hermes cannot tell which one it is), or "" (another entry has its request).
    - `reason` of an end at the desk: "together" if our decision about another permission ended this one too, "timer" if
      the agent's own timer ended it, else "".
    """

    kind: OutcomeKind
    at_s: float
    answers: Response = ()
    reason: str = ""
    proof: Proof = ""

    @property
    def has_answers(self) -> bool:
        """Whether the agent reported an answer to one of the questions at least."""
        return isinstance(self.answers, tuple) and any(self.answers)
