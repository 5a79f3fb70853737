"""What became of a question: the evidence that a server gives, and the one verdict that follows. Pure.

Success is confirmed, never assumed: old answers `200 true` to anything, an absent question proves nothing,
and a zombie (its session aborted, deleted, or gone on without it) stays listed and even emits
`question.replied` when it is replied to. The proof is the tool part of the message that
asked.

    listed  part                   session        verdict
    ------  ---------------------  -------------  ------------------------------------------------------
    no      completed              any            AnsweredWith what it kept
    no      error "… dismissed …"  any            WasDismissed
    no      error (aborted …)      any            Dead
    no      pending, running       idle           Dead: lost in a restart or dispose
    no      pending, running       busy, went on  Dead: a newer message of the model follows
    no      pending, running       busy with it   Settling: answered just now, its part is about to tell
    no      the message is gone    known          Dead: the message was taken back
    no      none, or none named    known          what the stream told was replied; else Unproven
    any     any but ended          unknown        Dead: deleted
    yes     error                  any            Dead: a zombie of new, aborted
    yes     other, or none         idle           Dead: a zombie of old, aborted
    yes     other, or none         busy, went on  Dead: a zombie of old, prompted again after an abort
    yes     other, or none         busy with it   StillOpen

The list is read before all else, and once more after anything that speaks of an end: so "listed" with a
completed part is no race, but a provider that gave two calls of one message the same id (both versions then
keep one part for the two), and "listed" with an idle session is no question that was just answered. Whether
the model went on is read before the part, too: a part that still runs after that was left behind.

"idle", "gone", "unknown" and "about to tell" count only where the ask is known to live in this very server:
it lists the ask, or listed it before. Two processes of one user (a terminal without a port beside `opencode
serve`) share their sessions and messages, but neither sees the other's questions or who is busy: to the
wrong one of them a live question looks lost. Without that knowledge only an ended part proves anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hermes.agents.opencode.permissions import read_error
from hermes.model.verdicts import AnsweredWith, Dead, StillOpen, Unproven, Verdict, WasDismissed

Answers = tuple[tuple[str, ...], ...]

ALLOWED: Final[Answers] = (("allowed",),)
ABORTED: Final = "tool execution aborted"


@dataclass(frozen=True, slots=True)
class Settling:
    """It will be told in a moment: look again."""


@dataclass(frozen=True, slots=True)
class ToolPart:
    """The part that asked. `answers` is what it kept of the reply, None where it keeps none."""

    tool: str
    status: str
    error: str = ""
    answers: Answers | None = None

    @property
    def ended(self) -> bool:
        """Tell whether the tool has ended, well or badly."""
        return self.status in {"completed", "error"}


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a server says about an ask, read in this order but for `known`, and for `went_on`, read before `part`.

    `listed` among the pending ones (None: the list would not tell), `ours` as above, `busy` its session, `part` the
    tool part (None: the message has none yet, or is not there, or the ask names none), `known` the session, `gone` the
    named message, `went_on` the model to a newer message. `heard` is what the event stream said was replied to this
    very request, None where it was not heard.
    """

    listed: bool | None
    ours: bool
    busy: bool
    part: ToolPart | None
    known: bool = True
    gone: bool = False
    went_on: bool = False
    heard: Answers | None = None


def judge(evidence: Evidence) -> Verdict | Settling:
    """Return what the evidence proves, by the table above."""
    if evidence.listed:
        return _judge_listed(evidence)
    if evidence.part is not None and evidence.part.ended:
        return _judge_ended(evidence.part, evidence.heard)
    if not evidence.ours:
        return Unproven()
    if not evidence.known or evidence.gone:
        return Dead()
    if evidence.part is None:
        # Without a call to prove it the stream's word is the best there is.
        return Unproven() if evidence.heard is None else AnsweredWith(evidence.heard, "event")
    return Settling() if evidence.busy and not evidence.went_on else Dead()


def judge_permission(evidence: Evidence) -> Verdict | Settling:
    """Return what the evidence proves of a permission: its tool goes on, or says that it was refused.

    As above, but: allowed, a tool may end in any way, and may ask for more before it does; refused, its error says so,
    and why. 1.18.33 was seen to answer 400 instead of its list while a webfetch was asked for: then the list says
    nothing, and an open one is known by its running tool.
    """
    part, heard = evidence.part, evidence.heard
    if evidence.listed:
        return _judge_listed(evidence)
    if part is not None and part.ended:
        return _judge_used(part, heard)
    if not evidence.ours:
        return Unproven()
    if not evidence.known or evidence.gone:
        return Dead()
    if part is None:
        return Unproven() if heard is None else AnsweredWith(heard, "event")
    if not evidence.busy or evidence.went_on:
        return Dead()
    if heard is not None and heard[0][0] != "refused":
        return AnsweredWith(heard, "event")
    return StillOpen() if evidence.listed is None and heard is None else Settling()


def _judge_used(part: ToolPart, heard: Answers | None) -> Verdict:
    """Tell from the end of a tool whether it was allowed to be used."""
    allowed = heard if heard is not None and heard[0][0] != "refused" else None
    if part.status == "completed":
        return AnsweredWith(allowed or ALLOWED)
    refused = read_error(part.error)
    if refused is not None:
        # One that was allowed may have been refused the next thing that it asked for.
        return AnsweredWith(allowed or refused)
    return Dead() if ABORTED in part.error.lower() else AnsweredWith(allowed or ALLOWED)


def _judge_listed(evidence: Evidence) -> Verdict:
    failed = evidence.part is not None and evidence.part.status == "error"
    if failed or not evidence.known or not evidence.busy or evidence.went_on:
        return Dead()
    return StillOpen()


def _judge_ended(part: ToolPart, heard: Answers | None) -> Verdict:
    """Tell how a tool ended that asked.

    `plan_exit` keeps no answers: "No" ends it as a dismissal does, any other answer approves the plan (seen
    on both versions). And where two calls share one part, it keeps the answers of the first. What the event
    stream said of this very request is right in both cases, as long as the part shows that it took effect.
    """
    if part.status == "completed":
        known = heard if heard is not None else part.answers
        if known is None and part.tool == "plan_exit":
            known = (("Yes",),)
        return Unproven() if known is None else AnsweredWith(known)
    if "dismissed" not in part.error:
        return Dead()
    if part.tool != "plan_exit":
        return WasDismissed()
    return WasDismissed(same_as=(("No",),)) if heard is None else AnsweredWith(heard)
