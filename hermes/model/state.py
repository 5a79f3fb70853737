"""The state of the dialog about one ask, and what one event does to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hermes.model.answer import Answer, Decision, Outcome, User

Phase = Literal["matching", "open", "sending", "settled"]

Confirm = Literal["reject", "skip", "send", "always"]


@dataclass(frozen=True, slots=True)
class Armed:
    """The next plain text of this user counts for this question; of two armed asks the later one gets it."""

    question: int
    user_id: int
    at_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Part:
    """One message of a text that Telegram may have split; `date_s` is Telegram's own date for it."""

    message_id: int
    text: str
    date_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Joining:
    """A text for `question` that is being gathered from its parts; complete at `State.due_s`.

    `offered`: nobody asked for this text, so that it becomes an offer and not an answer.
    """

    question: int
    user: User
    parts: tuple[Part, ...]
    offered: bool = False


@dataclass(frozen=True, slots=True)
class Offer:
    """A plain text that nobody asked for, waiting for "is this your answer?"."""

    question: int
    user: User
    message_id: int
    text: str


@dataclass(frozen=True, slots=True)
class State:
    """The whole dialog about one ask, as saved.

    `page` is the question on show, len(questions) the review. `shelf` is the part of a long list of options.
    `answers` has one Answer a question. `epoch` grows whenever buttons change their meaning. `due_s` is when
    `joining` ends. `away` stays true once the phone was told that the agent was away. `whole` is
    true where the person wants to see the whole of what was cut.
    `seen` holds the last update ids that were taken in.
    """

    phase: Phase = "open"
    page: int = 0
    shelf: int = 0
    answers: tuple[Answer, ...] = ()
    epoch: int = 0
    armed: Armed | None = None
    confirm: Confirm | None = None
    offer: Offer | None = None
    joining: Joining | None = None
    due_s: float | None = None
    decision: Decision | None = None
    away: bool = False
    outcome: Outcome | None = None
    working: bool = False
    whole: bool = False
    seen: tuple[int, ...] = ()


ToastKind = Literal[
    "picked", "dropped", "on_its_way", "settled", "page_changed", "type_now", "typing_off", "sure",
    "moved", "kept_waiting", "forgotten", "receiving", "not_answerable", "whole",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Toast:
    """The acknowledgement of a tap; `text` is what the kind speaks of (a label, an answer)."""

    kind: ToastKind
    text: str = ""


HintKind = Literal["no_such_option", "which_question", "settled", "taken"]


@dataclass(frozen=True, slots=True)
class Hint:
    """A short new message that explains why a text changed nothing."""

    kind: HintKind


@dataclass(frozen=True, slots=True)
class Step:
    """What one event does: the new state, and the word that the person gets at once.

    All other effects follow from the saved state (draw what it shows, deliver what it decided, wake when it is
    due), so that a process that dies right after the save owes nothing that the state does not tell.
    `touched` is true where a person did something with the ask: the time to answer starts anew, `extra_s`
    longer than usual.
    """

    state: State
    toast: Toast | None = None
    hint: Hint | None = None
    touched: bool = False
    extra_s: int = 0
