"""The verdict over an ask: every row of the table."""

from __future__ import annotations

import itertools

import pytest

from hermes.agents.opencode.proof import Evidence, Settling, ToolPart, judge
from hermes.model.verdicts import AnsweredWith, Dead, StillOpen, Unproven, Verdict, WasDismissed

OURS, THEIRS = (("SQLite",),), (("Redis",),)
RUNNING = ToolPart("question", "running")
PENDING = ToolPart("question", "pending")
ANSWERED = ToolPart("question", "completed", "", OURS)
DISMISSED = ToolPart("question", "error", "Error: The user dismissed this question")
ABORTED = ToolPart("question", "error", "Tool execution aborted")
PLAN_YES = ToolPart("plan_exit", "completed")
PLAN_NO = ToolPart("plan_exit", "error", "The user dismissed this question")


def evidence(
    part: ToolPart | None,
    *flags: str,
    heard: tuple[tuple[str, ...], ...] | None = None,
) -> Evidence:
    """Return evidence of an ask in our server; `flags` name what else is so."""
    return Evidence(
        listed="listed" in flags,
        ours="foreign" not in flags,
        busy="busy" in flags,
        part=part,
        known="unknown" not in flags,
        gone="gone" in flags,
        went_on="went on" in flags,
        heard=heard,
    )


ROWS: list[tuple[Evidence, Verdict | Settling]] = [
    # not listed
    (evidence(ANSWERED), AnsweredWith(OURS)),
    (evidence(ANSWERED, "busy"), AnsweredWith(OURS)),
    (evidence(ANSWERED, "foreign"), AnsweredWith(OURS)),
    (evidence(DISMISSED), WasDismissed()),
    (evidence(ABORTED), Dead()),
    (evidence(RUNNING), Dead()),
    (evidence(PENDING), Dead()),
    (evidence(RUNNING, "busy", "went on"), Dead()),
    (evidence(RUNNING, "busy"), Settling()),
    (evidence(None, "gone"), Dead()),
    (evidence(None), Unproven()),
    (evidence(None, heard=OURS), AnsweredWith(OURS)),
    (evidence(None, "busy"), Unproven()),
    (evidence(None, "unknown"), Dead()),
    (evidence(None, "unknown", "busy"), Dead()),
    # not listed, and perhaps in another process: only an ended part proves anything
    (evidence(RUNNING, "foreign"), Unproven()),
    (evidence(RUNNING, "foreign", "busy", "went on"), Unproven()),
    (evidence(None, "foreign", "unknown", "gone"), Unproven()),
    # listed
    (evidence(RUNNING, "listed", "busy"), StillOpen()),
    (evidence(None, "listed", "busy"), StillOpen()),
    (evidence(None, "listed", "busy", "gone"), StillOpen()),
    (evidence(ANSWERED, "listed", "busy"), StillOpen()),
    (evidence(DISMISSED, "listed", "busy"), StillOpen()),
    (evidence(RUNNING, "listed"), Dead()),
    (evidence(None, "listed"), Dead()),
    (evidence(ABORTED, "listed"), Dead()),
    (evidence(ABORTED, "listed", "busy", "went on"), Dead()),
    (evidence(RUNNING, "listed", "busy", "went on"), Dead()),
    (evidence(None, "listed", "busy", "gone", "unknown"), Dead()),
    # what keeps no answers, and what keeps another call's
    (evidence(PLAN_YES), AnsweredWith((("Yes",),))),
    (evidence(PLAN_NO), WasDismissed(same_as=(("No",),))),
    (evidence(PLAN_NO, heard=(("No",),)), AnsweredWith((("No",),))),
    (evidence(ANSWERED, heard=THEIRS), AnsweredWith(THEIRS)),
    (evidence(ToolPart("custom_tool", "completed")), Unproven()),
    (evidence(ToolPart("custom_tool", "completed"), heard=OURS), AnsweredWith(OURS)),
    # a zombie that is replied to emits an event, and is dead all the same
    (evidence(ABORTED, heard=OURS), Dead()),
    (evidence(RUNNING, heard=OURS), Dead()),
]


@pytest.mark.parametrize(("given", "verdict"), ROWS)
def test_each_row_has_its_verdict(given: Evidence, verdict: Verdict) -> None:
    """The table in proof.py, row by row."""
    assert judge(given) == verdict


def test_a_verdict_says_how_it_is_known() -> None:
    """By the record of the call; by an event where there is no call; by the list where nobody waits any more."""
    proofs = {getattr(judge(given), "proof", "") for given, _ in ROWS}
    assert proofs == {"", "record", "event", "list"}
    for part, heard, proof in ((ANSWERED, None, "record"), (ANSWERED, THEIRS, "record"), (None, OURS, "event")):
        verdict = judge(evidence(part, heard=heard))
        assert isinstance(verdict, AnsweredWith)
        assert verdict.proof == proof
    dead = judge(evidence(RUNNING))
    assert isinstance(dead, Dead)
    assert dead.proof == "list"


PARTS = (None, RUNNING, PENDING, ANSWERED, DISMISSED, ABORTED, PLAN_YES, PLAN_NO)
FLAGS = ("listed", "foreign", "busy", "unknown", "gone", "went on")


def test_nothing_is_assumed_to_be_answered() -> None:
    """Over all evidence there can be: answered only by an ended part, or by the stream where there is no part."""
    for part in PARTS:
        for flags in itertools.product(*(("", flag) for flag in FLAGS)):
            verdict = judge(evidence(part, *flags, heard=OURS))
            if isinstance(verdict, AnsweredWith):
                assert part is None or part.ended
            if isinstance(verdict, Dead) and "foreign" in flags and "listed" not in flags:
                assert part == ABORTED
            if isinstance(verdict, StillOpen):
                assert {"listed", "busy"} <= set(flags)
