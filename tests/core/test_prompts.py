"""How a prompt travels, one rule at a time; `test_prompts_walk` has the laws."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from hermes.core import prompts
from hermes.core.prompts import (
    CONFIRM_S,
    FRESH_S,
    LONGEST_REASON,
    LOOK_S,
    MOST_TRIES,
    NO_EFFECT_S,
    SETTLE_S,
    STARTS_S,
    Look,
    MakeSession,
    Send,
    Stop,
)
from hermes.model.ask import Source
from hermes.model.prompt import Prompt, PromptAbilities, RecordState, SessionState, Sight, Target
from hermes.model.prompt_events import (
    Accepted,
    Addressed,
    Continued,
    Declined,
    Edited,
    Hurried,
    Joined,
    Seen,
    SessionMade,
    StopTold,
    StopWanted,
    Trying,
    Unreached,
    Withdrawn,
)
from hermes.model.state import Part
from tests.asks import ANN, CHAT_ID

if TYPE_CHECKING:
    from hermes.core.prompts import PromptOrder
    from hermes.model.prompt_events import PromptEvent

CAN = PromptAbilities(("text", "note", "task"), steers=True, stops=True, makes_sessions=True)
TARGET = Target(Source("opencode", "laptop", "ses_1", "/home/dev/shop-api"), "OpenCode", CAN)
NEW = Prompt("p1", ANN, CHAT_ID, (Part(7, "fix the tests"),), 0.0)


def after(prompt: Prompt, *events: PromptEvent) -> Prompt:
    """The prompt after these events."""
    for event in events:
        prompt = prompts.step(prompt, event)
    return prompt


def seen(
    at_s: float, session: SessionState = "idle", record: RecordState = "absent", *, reason: str = "", tool: str = ""
) -> Seen:
    """A look."""
    return Seen(at_s, Sight(session, record, "msg_1", tool, reason))


def due(prompt: Prompt, now_s: float = 0.0, *, is_next: bool = True) -> PromptOrder | None:
    """What to do next."""
    return prompts.due(prompt, is_next=is_next, now_s=now_s)


QUEUED = after(NEW, Addressed(0.0, TARGET))
BEGUN = after(QUEUED, seen(0.0))
TRIED = after(BEGUN, Trying(0.0))
ADMITTED = after(TRIED, seen(1.0, "busy", "admitted"))
RUNNING = after(ADMITTED, seen(2.0, "busy", "running", tool="bash"))


def test_a_prompt_goes_its_way() -> None:
    """It waits, is sent, is in the record, is answered, and is done."""
    assert due(NEW) is None, "the person has not chosen a session"
    assert (QUEUED.phase, due(QUEUED)) == ("queued", Look())
    assert (BEGUN.phase, BEGUN.record_id, due(BEGUN)) == ("sending", "msg_1", Send())
    assert (TRIED.phase, due(TRIED)) == ("sending", Look(CONFIRM_S))
    assert (ADMITTED.phase, due(ADMITTED)) == ("admitted", Look(CONFIRM_S))
    assert (RUNNING.phase, RUNNING.began_s, RUNNING.tool, due(RUNNING)) == ("running", 2.0, "bash", Look(LOOK_S))
    done = after(RUNNING, Seen(9.0, Sight("idle", "finished", ended_s=8.0)))
    assert (done.phase, done.ended_s, done.tool, due(done)) == ("finished", 8.0, "", None)
    assert after(RUNNING, seen(9.0, "idle", "finished")).ended_s == 9.0, "the agent does not say when"
    for wrong_s in (-7200.0, 7200.0):
        for how in ("finished", "failed"):
            ended = after(RUNNING, Seen(9.0, Sight("idle", how, ended_s=wrong_s)))
            assert ended.ended_s == 9.0, "the clock of the agent's machine is wrong"
    assert prompts.is_over(done)


@pytest.mark.parametrize(
    "event", [seen(0.0), Unreached(), Declined("no"), Hurried(0.0), SessionMade("ses_2"), Joined()]
)
def test_nothing_of_an_agent_concerns_a_prompt_without_a_session(event: PromptEvent) -> None:
    """It changes nothing."""
    assert after(NEW, event) == NEW


def test_accepted_proves_nothing() -> None:
    """Only the record does; a prompt that was not tried cannot be accepted."""
    accepted = after(TRIED, Unreached(), Accepted())
    assert (accepted.phase, accepted.is_accepted, accepted.is_away) == ("sending", True, False)
    assert due(accepted) == Look(CONFIRM_S)
    assert after(BEGUN, Accepted()) == BEGUN


def test_it_is_sent_again_once_all_looks_of_some_seconds_have_missed_it() -> None:
    """Under the same id. A look may be too early, a clock may be set back, and one try counts once."""
    assert after(TRIED, Trying(1.0)) == TRIED
    missed = after(TRIED, seen(900.0))
    assert due(missed, 900.0) == Look(CONFIRM_S), "nobody has looked before"
    assert due(after(missed, seen(899.0 + SETTLE_S)), 904.0) == Look(CONFIRM_S)
    assert due(after(missed, seen(100.0), seen(101.0)), 101.0) == Look(CONFIRM_S)
    clear = after(missed, seen(900.0 + SETTLE_S))
    assert due(clear, 900.0 + SETTLE_S) == Send()
    again = after(clear, Trying(905.0))
    assert (again.tries, again.record_id, again.tried_s) == (2, TRIED.record_id, 905.0)
    assert due(after(again, seen(906.0)), 906.0) == Look(CONFIRM_S)


def test_a_look_that_could_not_be_made_proves_nothing() -> None:
    """The agent may be starting again."""
    assert due(after(TRIED, seen(0.0), Unreached(), seen(SETTLE_S)), SETTLE_S) == Look(CONFIRM_S)
    missing = after(RUNNING, seen(10.0), Unreached(), seen(10.0 + NO_EFFECT_S))
    assert missing.phase == "running"


def test_a_prompt_that_does_not_stay_in_the_record_fails_in_the_end() -> None:
    """One that never left is sent again, however often."""
    for told, ends in ((Accepted(), "failed"), (Unreached(), "sending")):
        prompt = BEGUN
        for turn in range(MOST_TRIES):
            at_s = 10.0 * turn
            prompt = after(prompt, Trying(at_s), told, seen(at_s + 1.0), seen(at_s + 1.0 + SETTLE_S))
        assert prompt.phase == ends
        assert prompt.reason == ("the agent accepted it, but did not keep it" if ends == "failed" else "")


def test_a_refusal_counts_once_the_record_does_not_have_it() -> None:
    """An earlier try may have arrived."""
    refused = after(TRIED, Declined("x" * 999))
    assert (refused.phase, len(refused.reason)) == ("sending", LONGEST_REASON)
    assert after(refused, seen(1.0, "busy", "admitted")).phase == "admitted"
    assert after(refused, seen(1.0), seen(1.0 + SETTLE_S)).phase == "failed"
    assert after(RUNNING, Declined("no")) == RUNNING


def test_a_prompt_that_lies_ready_is_not_missing() -> None:
    """However long: it is sent again only after looks that did not find it there."""
    waiting = after(TRIED, seen(1.0, record="waiting"), seen(SETTLE_S + 9.0, record="waiting"))
    assert (waiting.phase, waiting.is_clear, waiting.quiet_s) == ("sending", False, None)
    assert due(waiting) == Look(CONFIRM_S)
    assert after(waiting, seen(99.0), seen(99.0 + SETTLE_S)).is_clear


@pytest.mark.parametrize("prompt", [QUEUED, BEGUN])
def test_a_refusal_before_the_first_try_ends_it(prompt: Prompt) -> None:
    """It cannot have arrived."""
    failed = after(prompt, Declined("no such folder"))
    assert (failed.phase, failed.reason, failed.is_clear) == ("failed", "no such folder", False)


@pytest.mark.parametrize("prompt", [NEW, QUEUED, BEGUN])
def test_an_untried_prompt_can_be_edited_and_withdrawn(prompt: Prompt) -> None:
    """An empty text, the same one, and that of a foreign message change nothing."""
    assert after(prompt, Edited(7, "fix the docs")).parts == (Part(7, "fix the docs"),)
    for edit in (Edited(7, " "), Edited(7, "fix the tests"), Edited(8, "x")):
        assert after(prompt, edit) == prompt
    assert after(prompt, Withdrawn()).phase == "withdrawn"


@pytest.mark.parametrize("prompt", [TRIED, ADMITTED, RUNNING])
def test_a_tried_prompt_can_be_neither(prompt: Prompt) -> None:
    """It may have arrived."""
    assert after(prompt, Edited(7, "fix the docs"), Withdrawn(), Hurried(9.0), Addressed(9.0, TARGET)) == prompt


@pytest.mark.parametrize("prompt", [QUEUED, BEGUN])
@pytest.mark.parametrize(("text", "why"), [("/run", "write /run"), ("/run x", "OpenCode takes no command")])
def test_an_edit_that_makes_no_prompt_of_it_ends_it(prompt: Prompt, text: str, why: str) -> None:
    """Also a moment before it is sent."""
    failed = after(prompt, Edited(7, text))
    assert (failed.phase, why in failed.reason) == ("failed", True)


def test_the_parts_of_a_long_text_are_one_prompt() -> None:
    """Nothing begins before the last one. It is checked then, and once."""
    long = replace(NEW, due_s=1.0, parts=(Part(7, "/run"),))
    queued = after(long, Addressed(0.0, TARGET))
    assert (queued.phase, due(queued)) == ("queued", None)
    assert after(queued, seen(0.0)) == queued
    assert after(queued, Joined()).phase == "failed"
    more = after(long, Continued(Part(8, "b"), 2.0))
    assert (more.parts, more.due_s) == ((*long.parts, Part(8, "b")), 2.0)
    assert after(more, Continued(Part(8, "b"), 9.0)) == more
    assert after(QUEUED, Continued(Part(8, "b"), 2.0), Joined()) == QUEUED


def test_a_session_gets_one_prompt_at_a_time() -> None:
    """In their order, and only while it is idle."""
    assert due(QUEUED, is_next=False) is None
    assert after(QUEUED, seen(1.0, "busy")) == QUEUED


def test_send_now_overrules_that_if_the_agent_takes_a_prompt_in_a_turn() -> None:
    """Another agent gets it once its session is idle."""
    hurried = after(QUEUED, Hurried(1.0))
    assert due(hurried, is_next=False) == Look()
    assert after(hurried, seen(1.0, "busy")).phase == "sending"
    alone = after(NEW, Addressed(0.0, replace(TARGET, can=PromptAbilities())), Hurried(1.0))
    assert after(alone, seen(1.0, "busy")).phase == "queued"


def test_a_prompt_that_has_waited_too_long_does_not_begin_by_itself() -> None:
    """A look that came too late changes nothing; "Send now" gives it as much time again."""
    assert prompts.is_stale(QUEUED, STARTS_S)
    assert due(QUEUED, STARTS_S) is None
    assert after(QUEUED, seen(STARTS_S)) == QUEUED
    hurried = after(QUEUED, Hurried(STARTS_S))
    assert due(hurried, STARTS_S) == Look()
    assert due(hurried, 2 * STARTS_S) is None


def test_an_old_look_sends_nothing() -> None:
    """Hermes was killed, or the phone locked: the session may be busy now, and the prompt forgotten."""
    assert due(BEGUN, FRESH_S) == Look(CONFIRM_S)
    assert due(BEGUN, -1.0) == Look(CONFIRM_S)
    assert after(BEGUN, seen(9.0, "busy")) == replace(BEGUN, phase="queued", is_clear=False)
    assert due(after(BEGUN, seen(STARTS_S)), STARTS_S) is None
    fresh = after(BEGUN, Seen(9.0, Sight("idle", next_id="msg_9")))
    assert (fresh.record_id, due(fresh, 9.0)) == ("msg_9", Send())


def test_nor_is_it_sent_again_later() -> None:
    """The agent was away for the night."""
    clear = after(TRIED, seen(1.0), seen(1.0 + SETTLE_S))
    assert due(clear, 99.0) == Look(CONFIRM_S)
    assert due(after(clear, seen(99.0)), 99.0) == Send()
    for tried in (TRIED, clear):
        late = after(tried, seen(STARTS_S), seen(STARTS_S + SETTLE_S))
        assert (late.phase, late.reason) == ("failed", "the agent could not be reached in time")


def test_a_new_session_is_made_once() -> None:
    """Before anything is sent."""
    bare = after(NEW, Addressed(0.0, replace(TARGET, source=replace(TARGET.source, session_id=""))))
    assert due(bare) == MakeSession()
    assert after(bare, seen(1.0)) == bare
    made = after(bare, SessionMade("ses_9"), SessionMade("ses_8"))
    assert made.target is not None
    assert (made.target.source.session_id, due(made)) == ("ses_9", Look())


@pytest.mark.parametrize("prompt", [QUEUED, BEGUN, TRIED, ADMITTED, RUNNING])
def test_a_session_that_is_gone_ends_it(prompt: Prompt) -> None:
    """The person is told why."""
    assert after(prompt, seen(9.0, "gone")).reason == "the session does not exist any more"
    assert after(prompt, seen(9.0, "gone", reason="not followed")).reason == "not followed"


def test_a_note_is_finished_once_the_record_has_it() -> None:
    """Nothing answers it."""
    noted = after(
        NEW, Edited(7, "/note x"), Addressed(0.0, TARGET), seen(0.0), Trying(0.0), seen(1.0, record="admitted")
    )
    assert (noted.phase, noted.ended_s) == ("finished", 1.0)


@pytest.mark.parametrize(
    ("prompt", "look", "why"),
    [
        (ADMITTED, seen(0.0, "idle", "admitted"), "the agent did not answer it"),
        (ADMITTED, seen(0.0, "idle", "admitted", reason="no model"), "no model"),
        (ADMITTED, seen(0.0, "idle", "absent"), "it is no longer in the session"),
        (RUNNING, seen(0.0, "busy", "absent"), "it is no longer in the session"),
        (RUNNING, seen(0.0, "idle", "running"), "the agent was ended in the middle of it"),
    ],
)
def test_a_prompt_without_an_answer_fails_once_all_looks_agree(prompt: Prompt, look: Seen, why: str) -> None:
    """One look proves nothing, after a long time or before a clock was set back; nor do two with a turn between."""
    at_s = 1000.0
    first = after(prompt, replace(look, at_s=at_s))
    assert first.phase == prompt.phase
    assert after(first, replace(look, at_s=10.0)).phase == prompt.phase
    last = replace(look, at_s=at_s + NO_EFFECT_S)
    record: RecordState = "running" if prompt is RUNNING else "admitted"
    assert after(first, seen(at_s + 1.0, "busy", record), last).phase == prompt.phase
    failed = after(first, last)
    assert (failed.phase, failed.reason) == ("failed", why)


def test_a_turn_that_is_seen_from_its_middle_counts() -> None:
    """Hermes did not run when it began; then the agent was killed."""
    running = after(TRIED, seen(5.0, "idle", "running"))
    assert (running.phase, running.began_s) == ("running", 5.0)
    assert after(running, seen(5.0 + NO_EFFECT_S, "idle", "running")).phase == "failed"
    known = after(RUNNING, seen(9.0, "busy", "running", tool="bash"))
    assert known == RUNNING, "nothing new"
    assert after(RUNNING, seen(9.0, "busy", "running")).seen_s == 9.0


def test_a_turn_that_fails_says_why() -> None:
    """In the agent's words, if it has some."""
    assert after(RUNNING, seen(9.0, "idle", "failed", reason="no credit")).reason == "no credit"
    assert after(RUNNING, seen(9.0, "idle", "failed")).reason == "the agent gave no reason"


def test_a_stop_needs_two_taps() -> None:
    """Back takes the first one back, and nothing else. If the agent did not stop, the person can try again."""
    assert after(RUNNING, StopWanted(is_sure=True)) == RUNNING
    assert after(QUEUED, StopWanted()) == QUEUED
    sure = after(RUNNING, StopWanted())
    assert due(sure) == Look(LOOK_S)
    assert after(sure, StopWanted(on=False)) == RUNNING
    asked = after(sure, StopWanted(is_sure=True))
    assert due(asked) == Stop()
    assert after(asked, StopWanted(), StopWanted(on=False)) == asked
    for is_taken, stop in ((True, "told"), (False, "refused")):
        told = after(asked, StopTold(is_taken=is_taken))
        assert (told.stop, due(told)) == (stop, Look(LOOK_S))
        assert after(told, StopTold(is_taken=not is_taken), StopWanted(on=False)) == told
        assert after(told, StopWanted()).stop == "sure"
    assert after(asked, seen(9.0, "idle", "stopped")).phase == "stopped"


def test_an_agent_may_leave_the_record_of_a_turn_that_it_stopped_as_it_was() -> None:
    """The turn is over then, unless it has only just begun: another one was stopped."""
    told = (StopWanted(), StopWanted(is_sure=True), StopTold(is_taken=True))
    assert after(RUNNING, *told, seen(9.0, "idle", "running")).phase == "stopped"
    began = after(ADMITTED, *told, seen(9.0, "idle", "running"), seen(9.0, "idle", "running"))
    assert (began.phase, began.stop) == ("running", "told")
    assert after(began, seen(14.0, "idle", "running")).phase == "stopped"
