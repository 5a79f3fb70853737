"""Derive the state of an ask, as one verdict, from the evidence that a server gives. Pure.

Success is confirmed, never assumed: 1.1.53 answers `200 true` to anything, an absent question proves nothing, and a
zombie stays listed and even emits `question.replied` after a reply. (A zombie is a question whose session was aborted
or deleted, or went on without it.) The proof is the tool part of the message that asked.

    listed  part                   session        verdict
    ------  ---------------------  -------------  ------------------------------------------------------
    no      completed              any            AnsweredWith: the answers of the part
    no      error "… dismissed …"  any            WasDismissed
    no      error (aborted …)      any            Dead
    no      pending, running       idle           Dead: lost in a restart or dispose
    no      pending, running       busy, went on  Dead: the model works on another prompt
    no      pending, running       busy with it   Settling: answered just now, the part will soon show it
    no      the message is gone    known          Dead: the message was removed
    no      none, or none named    known          AnsweredWith the reply on the event stream; else Unproven
    any     any but ended          unknown        Dead: deleted
    yes     error (aborted …)      any            Dead: a zombie of 1.18.33, aborted
    yes     other, or none         idle           Dead: a zombie of 1.1.53, aborted
    yes     other, or none         busy, went on  Dead: a zombie of 1.1.53, prompted again after an abort
    yes     other, or none         busy with it   StillOpen

The list is read first, and again after any sign of an end. So "listed" with a part that ended otherwise is no race: a
provider gave two calls of one message the same id, and both versions then keep one part for the two. And "listed" with
an idle session is no question that was answered a moment ago. Newer messages of the model are read before the part, so
that a part that still runs after a newer message was abandoned. The steps of one turn are no such messages: they have
the same prompt, and an earlier one looks newer if the clock was set back after it.

"idle", "gone", "unknown" and "Settling" count only if the ask is known to belong to this server process: it lists the
ask, or the ask came from it. Two processes of one user (a terminal without a port beside `opencode serve`) share their
sessions and messages, but neither sees the questions or the busy sessions of the other, so that a live question looks
lost to the wrong process. Without that knowledge only an ended part proves anything.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Final

from hermes.agents.opencode import wire
from hermes.agents.opencode.permissions import read_error
from hermes.agents.questions import read_answers
from hermes.errors import PayloadError
from hermes.model.answer import Allowed, Answers, Refused, Response
from hermes.model.ask import Source
from hermes.model.verdicts import AnsweredWith, Dead, StillOpen, Unproven, Verdict, WasDismissed

ABORTED: Final = "tool execution aborted"


@dataclass(frozen=True, slots=True)
class Settling:
    """The tool part will show the result in a moment: check again."""


@dataclass(frozen=True, slots=True)
class ToolPart:
    """The tool part of the call that asked. `answers` are the answers that it stored, or None."""

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
    """The facts that a server gives about an ask, read in this order: `listed`, `busy`, `went_on`, `part`, `known`.

    - `listed`: the ask is in the list of pending asks; None if the server refused the list.
    - `ours`: the ask is known to belong to this server process (see above).
    - `busy`, `known`: its session is not idle, and exists.
    - `part`: the tool part; None if the message has none yet or is not there, or if the ask names no message.
    - `gone`: the message that the ask names is not there.
    - `went_on`: the model has begun a newer message, for another prompt.
    - `heard`: the reply to this request on the event stream; None if none was seen.
    """

    listed: bool | None
    ours: bool
    busy: bool
    part: ToolPart | None
    known: bool = True
    gone: bool = False
    went_on: bool = False
    heard: Response | None = None


def tool_part(message: wire.Message | None, source: Source) -> ToolPart | None:
    """Return the tool part of the call that asked, or None if the message has none or is not there."""
    parts = message.parts if message else ()
    states = [(one.tool, one.state) for one in parts if one.call_id == source.call_id and one.state]
    return read_part(*states[-1]) if states else None


def read_part(tool: str, state: wire.ToolState) -> ToolPart:
    """Return a tool part with the answers that it stored, if they can be read."""
    kept = (state.metadata or state.structured or {}).get("answers")
    answers = None
    with contextlib.suppress(PayloadError):
        answers = read_answers(kept, "answers")
    return ToolPart(tool, state.status, str(state.error), answers)


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
        # Without a tool part, the event stream is the best proof.
        return Unproven() if evidence.heard is None else AnsweredWith(evidence.heard, "event")
    return Settling() if evidence.busy and not evidence.went_on else Dead()


def judge_permission(evidence: Evidence) -> Verdict | Settling:
    """Return what the evidence proves about a permission.

    The table above holds, with these differences. An allowed tool may end in any way, and may ask for more permissions
    before that. The error of a refused tool names the refusal and its reason. 1.18.33 was seen to answer 400 instead of
    its list while a permission for a webfetch was pending: then a running tool shows that the permission is open.
    """
    part, heard = evidence.part, evidence.heard
    if not evidence.listed and part is not None and part.ended:
        return _judge_used(part, heard)
    verdict = judge(evidence)
    if not isinstance(verdict, Settling):
        return verdict
    if heard is not None and not isinstance(heard, Refused):
        return AnsweredWith(heard, "event")
    return StillOpen() if evidence.listed is None and heard is None else verdict


def _judge_used(part: ToolPart, heard: Response | None) -> Verdict:
    """Return the verdict on a permission whose tool has ended."""
    allowed = heard if heard is not None and not isinstance(heard, Refused) else None
    if part.status == "completed":
        # A refused tool does not complete: the part is that of another call with the same id.
        return AnsweredWith(heard, "event") if isinstance(heard, Refused) else AnsweredWith(allowed or Allowed())
    refused = read_error(part.error)
    if refused is not None:
        # The tool may have been allowed this permission, and refused the next one that it asked for.
        return AnsweredWith(allowed or refused)
    return Dead() if ABORTED in part.error.lower() else AnsweredWith(allowed or Allowed())


def _judge_listed(evidence: Evidence) -> Verdict:
    aborted = evidence.part is not None and ABORTED in evidence.part.error.lower()
    if aborted or not evidence.known or not evidence.busy or evidence.went_on:
        return Dead()
    return StillOpen()


def _judge_ended(part: ToolPart, heard: Response | None) -> Verdict:
    """Return the verdict on a question whose tool has ended.

    `plan_exit` stores no answers: "No" ends it like a dismissal, any other answer approves the plan (seen on both
    versions). If two calls share one part, the part stores the answers of the first. In both cases the reply to this
    request on the event stream is right, provided that the part shows that a reply took effect.
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


def is_of_later_turn(info: wire.Info, asking: wire.Info) -> bool:
    """Tell whether this message of the model's is newer than the one that asks, and for another prompt."""
    is_same_turn = info.parent_id is not None and info.parent_id == asking.parent_id
    return info.time.created > asking.time.created and not is_same_turn


def same(one: Source, other: Source) -> bool:
    """Tell whether both are the source of one ask."""
    if one.session_id != other.session_id:
        return False
    if other.request_id is None:
        return one.call_id is not None and one.call_id == other.call_id
    return one.request_id == other.request_id


def is_permission_of(request: object, source: Source) -> bool:
    """Tell whether this permission request is that of the source."""
    return isinstance(request, dict) and request.get("id") == source.request_id
