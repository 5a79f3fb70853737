"""The state of the dialog about one ask, and the result of one event (`core.dialog` has the rules)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hermes.model.answer import Answer, Decision, Outcome, User
from hermes.model.files import File

Phase = Literal["matching", "open", "sending", "settled"]
"""The phase of an ask.

- "matching": the tool call has begun, but its request is not known yet.
- "open": the ask waits for an answer.
- "sending": the decision is final and is being delivered to the agent.
- "settled": the ask is over.
"""

Confirm = Literal["reject", "skip", "send", "always"]
"""The actions that need a second tap; "send" only if a question is unanswered."""


@dataclass(frozen=True, slots=True)
class Armed:
    """The next plain text of this user answers this question. If two asks are armed, the later one (`at_s`) gets it."""

    question: int
    user_id: int
    at_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Part:
    """One message of a text that Telegram's app may have split, or of an album. `date_s` is Telegram's date of it.

    `file`: the file that came with it; its caption is the `text`.
    """

    message_id: int
    text: str
    date_s: float = 0.0
    file: File | None = None


@dataclass(frozen=True, slots=True)
class Joining:
    """A text for `question` whose parts are still arriving. It is complete at `State.due_s`.

    `offered`: the person was not asked for a text, so that it becomes an offer and not an answer.
    """

    question: int
    user: User
    parts: tuple[Part, ...]
    offered: bool = False


@dataclass(frozen=True, slots=True)
class Offer:
    """A text that the person was not asked for. A message asks "is this your answer?".

    Once the ask has another answer or another end, the message says that the text was not used.
    """

    question: int
    user: User
    message_id: int
    text: str


@dataclass(frozen=True, slots=True)
class State:
    """The whole dialog about one ask, as saved.

    - `page`: the index of the question that the phone shows; len(questions) is the review of all answers.
    - `shelf`: the part, counted from 0, of a long list of options that the phone shows.
    - `answers`: one Answer for each question, as chosen so far.
    - `epoch`: grows whenever the buttons change their meaning, so that a tap on an old button is detected.
    - `confirm`: the action that waits for its second tap.
    - `due_s`: the time at which `joining` ends.
    - `away`: a delivery has failed, so that the phone shows that the agent cannot be reached. It stays true.
    - `unknown`: it has failed because this version of Hermes does not know the agent.
    - `working`: the agent was seen working again.
    - `declined`: the agent's words about an answer that it did not take; "" once another one is sent.
    - `whole`: the person wants to see the whole text of a permission that its message cuts.
    - `seen`: the ids of the last updates that this ask has handled, so that an update has its effect only once.
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
    unknown: bool = False
    outcome: Outcome | None = None
    working: bool = False
    declined: str = ""
    whole: bool = False
    seen: tuple[int, ...] = ()


ToastKind = Literal[
    "picked", "dropped", "on_its_way", "settled", "page_changed", "type_now", "typing_off", "sure",
    "moved", "kept_waiting", "forgotten", "receiving", "not_answerable", "whole",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Toast:
    """The short text that acknowledges a tap. `text` is the label or the answer that it names, if any."""

    kind: ToastKind
    text: str = ""


Hint = Literal["no_such_option", "which_question", "settled", "taken"]
"""Why a text from the person changed nothing; a short new message explains it."""


@dataclass(frozen=True, slots=True)
class Step:
    """The result of one event: the new state, and the toast or hint that the person gets at once.

    All other effects follow from the saved state: draw its screen, deliver its decision, wake up at `due_s`. So a
    process that is killed right after the save loses no effect except the toast or hint.

    `touched`: a person did something with the ask. The time to answer starts again, `extra_s` longer than usual;
    infinity: it never ends.
    """

    state: State
    toast: Toast | None = None
    hint: Hint | None = None
    touched: bool = False
    extra_s: float = 0.0
