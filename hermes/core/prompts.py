"""How a prompt travels from the phone to the agent, and how it ends. Pure.

    unaddressed   the person has not chosen a session        → queued, withdrawn
    queued        it waits until its session is idle         → sending, failed, withdrawn
    sending       it is being sent                           → admitted, running, failed, stopped, finished;
                                                               and, before the first try, → queued, withdrawn
    admitted      the agent's record has it                  → running, failed, stopped, finished
    running       a turn of the agent answers it             → failed, stopped, finished
    finished, failed, stopped, withdrawn                     nothing changes any more

`step` applies an event, `due` tells what to do next. Both depend on the saved prompt alone: a restart changes no end.

Rules:
  * A prompt is sent under an id of our own. It is sent again only after a look at the agent's record has shown, since
    the last try, that the record does not have it. That an agent accepted it proves nothing.
  * A prompt that was tried once can be neither edited nor withdrawn: it may have arrived.
  * One look proves nothing bad: the record and the state of the session may be read a moment apart, and a clock may
    jump. A prompt is missing, or unanswered, only if all looks of some seconds agree.
  * A session gets one prompt at a time, in the order in which they were written, and only while it is idle. "Send now"
    overrules that, if the agent takes a prompt in a running turn.
  * An edit that brings another file withdraws the prompt: it is not clear which file the person wants to send.
  * A prompt is sent once all its files are here. A voice note counts as written when the person agrees with its words.
  * A turn is not stopped if a look shows that its prompt is over: another turn would end in its place.
  * After `STARTS_S` a prompt no longer begins by itself: the person may have forgotten it. Nor is it sent again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from hermes.core import prompt_files
from hermes.core.answers import joined_text
from hermes.core.prompt_text import content_of
from hermes.model.prompt import Content, Prompt, PromptPhase, Sight
from hermes.model.prompt_events import (
    Accepted,
    Addressed,
    Agreed,
    Continued,
    Declined,
    Edited,
    Fetched,
    Heard,
    Hurried,
    Joined,
    PromptEvent,
    Seen,
    SessionMade,
    StopTold,
    StopWanted,
    Trying,
    Unreached,
    Withdrawn,
)
from hermes.model.state import Part

STARTS_S: Final = 1800.0
"""A prompt starts by itself for so long after it was written."""
LOOK_S: Final = 5.0
"""The pause between two looks at a session that is busy, or at work on the prompt."""
CONFIRM_S: Final = 0.3
"""The pause before the next look for a prompt that was just sent."""
SETTLE_S: Final = 5.0
"""A prompt is missing if no look of this time finds it: the agent may still be writing it down."""
NO_EFFECT_S: Final = 30.0
"""A prompt in a session that all looks of this time find idle has no answer and gets none."""
FRESH_S: Final = 5.0
"""A prompt is sent only within this time after a look at the session."""
MOST_TRIES: Final = 4
"""So often an accepted prompt is sent that does not show up in the record."""
LONGEST_REASON: Final = 500

OVER: Final = frozenset({"finished", "failed", "stopped", "withdrawn"})
WITH_AGENT: Final = frozenset({"sending", "admitted", "running"})


@dataclass(frozen=True, slots=True)
class MakeSession:
    """Make the new session that the prompt is for."""


@dataclass(frozen=True, slots=True)
class Look:
    """Look at the session and at the agent's record, after `pause_s`."""

    pause_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Send:
    """Send it: save `Trying` first."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Tell the agent to end the turn."""


PromptOrder = MakeSession | Look | Send | Stop


def content(prompt: Prompt) -> Content:
    """Return what is sent beside the files. Raises ValueError: the text is no prompt; it says what is missing."""
    if not prompt_files.files_of(prompt.parts):
        return content_of(joined_text(prompt.parts), about=prompt.about)
    return content_of("\n".join(part.text for part in prompt.parts if part.text), about=prompt.about)


def is_over(prompt: Prompt) -> bool:
    """Tell whether nothing changes any more."""
    return prompt.phase in OVER


def is_free(prompt: Prompt) -> bool:
    """Tell whether it can still be edited and withdrawn: it was not tried yet."""
    return not is_over(prompt) and not prompt.tries


def typed_s(prompt: Prompt) -> float:
    """Return when the person wrote an addressed prompt (epoch): Hermes may have read it hours later."""
    return min(prompt.asked_s, prompt.starts_until_s - STARTS_S)


def is_stale(prompt: Prompt, now_s: float) -> bool:
    """Tell whether it has waited too long to begin by itself."""
    return prompt.phase == "queued" and now_s >= prompt.starts_until_s


def wants_files(prompt: Prompt, now_s: float) -> bool:
    """Tell whether files of it are to be downloaded now."""
    is_waiting = prompt.phase == "queued" and prompt.due_s is None and not is_stale(prompt, now_s)
    return is_waiting and bool(prompt_files.lacking(prompt))


def due(prompt: Prompt, *, is_next: bool, now_s: float) -> PromptOrder | None:
    """Return what to do next for the agent; None if only a person, or the end of another prompt, brings it further.

    `is_next`: no prompt for the session that comes before it is under way.
    """
    target = prompt.target
    if prompt.phase in OVER or prompt.due_s is not None or target is None:
        return None
    if prompt.phase == "queued":
        if is_stale(prompt, now_s) or not prompt_files.is_complete(prompt) or not (is_next or prompt.is_hurried):
            return None
        return MakeSession() if not target.source.session_id else Look()
    if prompt.phase == "sending":
        return Send() if prompt.is_clear and 0 <= now_s - prompt.seen_s < FRESH_S else Look(CONFIRM_S)
    if prompt.stop == "asked":
        return Stop()
    return Look(CONFIRM_S if prompt.phase == "admitted" else LOOK_S)


def step(prompt: Prompt, event: PromptEvent) -> Prompt:
    """Return the prompt after this event. An event that does not fit, or comes twice, changes nothing."""
    if prompt.phase in OVER:
        return prompt
    return _STEPS[type(event)](prompt, event)


# --- what the person does -----------------------------------------------------------------------------------------


def _continued(prompt: Prompt, event: Continued) -> Prompt:
    is_known = any(part.message_id == event.part.message_id for part in prompt.parts)
    if prompt.due_s is None or is_known:
        return prompt
    return replace(prompt, parts=(*prompt.parts, event.part), due_s=event.due_s)


def _joined(prompt: Prompt, _: Joined) -> Prompt:
    return prompt if prompt.due_s is None else _checked(replace(prompt, due_s=None))


def _fetched(prompt: Prompt, event: Fetched) -> Prompt:
    return _with_parts(prompt, prompt_files.fetched(prompt.parts, event))


def _heard(prompt: Prompt, event: Heard) -> Prompt:
    return _with_parts(prompt, prompt_files.with_words(prompt.parts, event))


def _agreed(prompt: Prompt, event: Agreed) -> Prompt:
    if prompt.phase != "queued" or prompt_files.lacking(prompt):
        return prompt
    after = _with_parts(prompt, prompt_files.without_sounds(prompt.parts))
    return prompt if after == prompt else replace(after, starts_until_s=event.at_s + STARTS_S)


def _edited(prompt: Prompt, event: Edited) -> Prompt:
    parts = prompt_files.edited(prompt.parts, event)
    if is_free(prompt) and prompt_files.brings_file(prompt.parts, event):
        return replace(_withdrawn(prompt, Withdrawn(prompt_files.EDITED)), parts=parts)
    after = _with_parts(prompt, parts)
    return prompt if after == prompt else replace(after, is_edited=True)


def _with_parts(prompt: Prompt, parts: tuple[Part, ...]) -> Prompt:
    return prompt if parts == prompt.parts or not is_free(prompt) else _checked(replace(prompt, parts=parts))


def _addressed(prompt: Prompt, event: Addressed) -> Prompt:
    queued = replace(prompt, phase="queued", target=event.target, choices=(), starts_until_s=event.at_s + STARTS_S)
    return _checked(queued) if prompt.phase == "unaddressed" else prompt


def _checked(prompt: Prompt) -> Prompt:
    """Return the prompt, failed if its text is no prompt, or if its agent does not take that, or its files."""
    if prompt.target is None or prompt.due_s is not None:
        return prompt
    try:
        kind = content(prompt).kind
    except ValueError as error:
        return _failed(prompt, str(error), None)
    why = "" if kind in prompt.target.can.kinds else f"{prompt.target.agent_name} takes no {kind} from here"
    why = why or prompt_files.objection(prompt.parts, prompt.target, kind)
    return _failed(prompt, why, None) if why else prompt


def _withdrawn(prompt: Prompt, event: Withdrawn) -> Prompt:
    return replace(prompt, phase="withdrawn", choices=(), due_s=None, reason=event.why) if is_free(prompt) else prompt


def _hurried(prompt: Prompt, event: Hurried) -> Prompt:
    wanted = replace(prompt, is_hurried=True, starts_until_s=event.at_s + STARTS_S)
    return wanted if prompt.phase == "queued" else prompt


def _stop_wanted(prompt: Prompt, event: StopWanted) -> Prompt:
    if prompt.phase not in {"admitted", "running"} or prompt.stop == "asked":
        return prompt
    if not event.on:
        return replace(prompt, stop="") if prompt.stop == "sure" else prompt
    if event.is_sure:
        return replace(prompt, stop="asked") if prompt.stop == "sure" else prompt
    return replace(prompt, stop="sure")


# --- what the agent does ------------------------------------------------------------------------------------------


def _session_made(prompt: Prompt, event: SessionMade) -> Prompt:
    target = prompt.target
    if prompt.phase != "queued" or target is None or target.source.session_id:
        return prompt
    return replace(prompt, target=replace(target, source=replace(target.source, session_id=event.session_id)))


def _seen(prompt: Prompt, event: Seen) -> Prompt:
    if prompt.phase == "unaddressed" or prompt.due_s is not None:
        return prompt
    sight, found = event.sight, replace(prompt, is_away=False)
    if sight.session == "gone":
        return _failed(found, sight.reason or "the session does not exist any more", None)
    if is_free(prompt):
        return _begun(found, event) if _may_begin(found, event) else replace(found, phase="queued", is_clear=False)
    if sight.record in {"finished", "failed", "stopped"}:
        return _ended(found, sight, event.at_s)
    if sight.record == "waiting":
        return replace(found, quiet_s=None)
    if sight.record == "running":
        return _running(found, event)
    if sight.record == "admitted":
        return _admitted(found, event)
    return _absent(found, event)


def _may_begin(prompt: Prompt, event: Seen) -> bool:
    target = prompt.target
    if target is None or not target.source.session_id or event.at_s >= prompt.starts_until_s:
        return False
    if not prompt_files.is_complete(prompt):
        return False
    return event.sight.session == "idle" or (prompt.is_hurried and target.can.steers)


def _begun(prompt: Prompt, event: Seen) -> Prompt:
    return replace(prompt, phase="sending", record_id=event.sight.next_id, is_clear=True, seen_s=event.at_s)


def _absent(prompt: Prompt, event: Seen) -> Prompt:
    if prompt.phase != "sending":
        return _given_up(prompt, event.at_s, "it is no longer in the session")
    prompt = _quiet(prompt, event.at_s)
    if not prompt.is_clear and not _is_quiet_for(prompt, event.at_s, SETTLE_S):
        return prompt
    if prompt.reason:
        return _failed(prompt, prompt.reason, event.at_s)
    if prompt.is_accepted and prompt.tries >= MOST_TRIES:
        return _failed(prompt, "the agent accepted it, but did not keep it", event.at_s)
    if event.at_s >= prompt.starts_until_s:
        return _failed(prompt, "the agent could not be reached in time", event.at_s)
    return replace(prompt, is_clear=True, seen_s=event.at_s)


def _admitted(prompt: Prompt, event: Seen) -> Prompt:
    quiet_s = event.at_s if event.sight.session == "idle" else None
    if prompt.phase == "sending":
        prompt = replace(prompt, phase="admitted", is_clear=False, seen_s=event.at_s, quiet_s=quiet_s)
        is_note = content(prompt).kind == "note"  # nothing answers it
        return replace(prompt, phase="finished", ended_s=event.at_s) if is_note else prompt
    if quiet_s is None:
        return replace(prompt, quiet_s=None)
    return _given_up(prompt, event.at_s, event.sight.reason or "the agent did not answer it")


def _quiet(prompt: Prompt, at_s: float) -> Prompt:
    """Return the prompt after a look that has shown neither a turn nor an end, which may be the first of several."""
    is_known = prompt.quiet_s is not None and prompt.quiet_s <= at_s  # else the clock was set back
    return prompt if is_known else replace(prompt, quiet_s=at_s)


def _is_quiet_for(prompt: Prompt, at_s: float, seconds: float) -> bool:
    return prompt.quiet_s is not None and at_s - prompt.quiet_s >= seconds


def _given_up(prompt: Prompt, at_s: float, why: str) -> Prompt:
    """Return the prompt after such a look, failed if all looks of `NO_EFFECT_S` were such."""
    prompt = _quiet(prompt, at_s)
    return _failed(prompt, why, None) if _is_quiet_for(prompt, at_s, NO_EFFECT_S) else prompt


def _running(prompt: Prompt, event: Seen) -> Prompt:
    quiet_s = event.at_s if event.sight.session == "idle" else None
    if quiet_s is not None and prompt.phase == "running":
        if prompt.stop == "told" and prompt.quiet_s != event.at_s:
            # An agent may leave the record of a turn that it ended as it was.
            return replace(prompt, phase="stopped", ended_s=event.at_s, tool="", stop="")
        return _given_up(prompt, event.at_s, "the agent was ended in the middle of it")
    began_s = event.at_s if prompt.began_s is None else prompt.began_s
    found = replace(prompt, phase="running", is_clear=False, began_s=began_s, tool=event.sight.tool, quiet_s=quiet_s)
    return found if found == prompt else replace(found, seen_s=event.at_s)


def _ended(prompt: Prompt, sight: Sight, at_s: float) -> Prompt:
    phase: Mapping[str, PromptPhase] = {"finished": "finished", "stopped": "stopped"}
    told_s = sight.ended_s or -1.0  # by a clock that may be wrong: before the prompt was sent, or after now, is no time
    ended_s = told_s if prompt.tried_s <= told_s <= at_s else at_s
    if sight.record not in phase:
        return _failed(prompt, sight.reason or "the agent gave no reason", ended_s)
    return replace(prompt, phase=phase[sight.record], is_clear=False, ended_s=ended_s, tool="", stop="")


def _failed(prompt: Prompt, reason: str, at_s: float | None) -> Prompt:
    reason = reason[:LONGEST_REASON]
    return replace(prompt, phase="failed", reason=reason, ended_s=at_s, is_clear=False, is_away=False, tool="", stop="")


def _trying(prompt: Prompt, event: Trying) -> Prompt:
    if prompt.phase != "sending" or not prompt.is_clear:
        return prompt
    tried = replace(prompt, tries=prompt.tries + 1, tried_s=event.at_s, quiet_s=None)
    return replace(tried, is_clear=False, is_accepted=False, reason="")


def _accepted(prompt: Prompt, _: Accepted) -> Prompt:
    return replace(prompt, is_accepted=True, is_away=False) if _is_just_sent(prompt) else prompt


def _unreached(prompt: Prompt, _: Unreached) -> Prompt:
    return prompt if prompt.phase == "unaddressed" else replace(prompt, is_away=True, quiet_s=None)


def _declined(prompt: Prompt, event: Declined) -> Prompt:
    """Return the prompt after the agent refused it; an earlier try may have arrived, so the next look decides."""
    if prompt.phase != "unaddressed" and is_free(prompt):
        return _failed(prompt, event.reason, None)
    return replace(prompt, reason=event.reason[:LONGEST_REASON], is_away=False) if _is_just_sent(prompt) else prompt


def _is_just_sent(prompt: Prompt) -> bool:
    """Tell whether it was sent, and no look has shown since then that the record does not have it."""
    return prompt.phase == "sending" and prompt.tries > 0 and not prompt.is_clear


def _stop_told(prompt: Prompt, event: StopTold) -> Prompt:
    return replace(prompt, stop="told" if event.is_taken else "refused") if prompt.stop == "asked" else prompt


_STEPS: Final[Mapping[type, Callable[..., Prompt]]] = {
    Continued: _continued,
    Joined: _joined,
    Fetched: _fetched,
    Heard: _heard,
    Agreed: _agreed,
    Edited: _edited,
    Addressed: _addressed,
    Withdrawn: _withdrawn,
    Hurried: _hurried,
    StopWanted: _stop_wanted,
    SessionMade: _session_made,
    Seen: _seen,
    Trying: _trying,
    Accepted: _accepted,
    Unreached: _unreached,
    Declined: _declined,
    StopTold: _stop_told,
}
