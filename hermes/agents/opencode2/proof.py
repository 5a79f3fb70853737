"""Derive the state of an ask from what an OpenCode 2 server answers. Pure.

    what the server says of the form        the tool's call            verdict
    --------------------------------------  -------------------------  ------------------------------------------
    state pending                           any                        StillOpen
    state answered                          any                        AnsweredWith these answers
    state cancelled                         any                        WasDismissed; Dead if its turn was swept
    no such form (kept 10 min, or less)     completed                  AnsweredWith the answers that it stored
                                            error, dismissed           WasDismissed
                                            error, another             Dead
                                            running, session at rest   Dead: the server died, or was restarted
                                            running, session at work   Settling, then Dead: its folder was closed
                                            none                       AnsweredWith the reply in the events; else Dead

A permission has no state: as long as it is known it is open. After that, `permission.replied` in the events says how it
ended, and after a gap in the events only the tool's call. A call that failed in its own words proves nothing.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Final

from hermes.agents.opencode2.wire import ToolState
from hermes.agents.questions import read_answers
from hermes.errors import PayloadError
from hermes.model.answer import Allowed, Refused, Response
from hermes.model.verdicts import AnsweredWith, Dead, Unproven, Verdict, WasDismissed

_DISMISSED: Final = "dismissed"
_DECLINED: Final = "declined this tool call"
_NOT_RUN: Final = "unable to execute command"


@dataclass(frozen=True, slots=True)
class Settling:
    """The tool's call will show the end in a moment: look again."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The facts about an ask that its server no longer knows.

    `call` is the state of the tool's call, None if there is none; `is_active`: the session's turn has not ended;
    `heard`: the reply in the events, None if none was heard.
    """

    call: ToolState | None
    is_active: bool
    heard: Response | None = None


def judge(evidence: Evidence) -> Verdict | Settling:
    """Return what became of a form that the server no longer knows."""
    call = evidence.call
    if call is None:
        return Dead() if evidence.heard is None else AnsweredWith(evidence.heard, "event")
    if call.status == "completed":
        with contextlib.suppress(PayloadError):
            return AnsweredWith(read_answers((call.metadata or {}).get("answers"), "metadata"))
        return Dead() if evidence.heard is None else AnsweredWith(evidence.heard, "event")
    if call.status == "error":
        return WasDismissed() if _DISMISSED in _error(call) else Dead()
    return Settling() if evidence.is_active else Dead()


def judge_permission(evidence: Evidence) -> Verdict | Settling:
    """Return what became of a permission that the server no longer knows."""
    call, heard = evidence.call, evidence.heard
    if heard is not None:
        return AnsweredWith(heard, "event")
    if call is None:
        return Dead()
    if call.status == "completed":
        return AnsweredWith(Allowed())
    if call.status == "error":
        error = _error(call)
        if _DECLINED in error or _NOT_RUN in error:
            return AnsweredWith(Refused(None))
        return Dead() if call.error is not None and call.error.type == "aborted" else Unproven()
    return Settling() if evidence.is_active else Dead()


def _error(call: ToolState) -> str:
    return "" if call.error is None else call.error.message.lower()
