"""The last turn of a session, read from OpenCode's own record.

Each message of the model names its prompt (`parentID`). A step that calls tools ends with the finish "tool-calls", the
last step of a turn with another one; after a failure a message has an error instead. A turn that was interrupted, or
ended by the rejection of a question, is none that ended by itself. The prompt's `summary.diffs` are written some ms
after the last step, in a project with git alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from hermes.agents.diffs import ChangedFile, joined
from hermes.agents.http import Api, path_of
from hermes.agents.opencode import wire
from hermes.agents.opencode.adapter import capabilities
from hermes.agents.turns import GOES_ON, Beginnings
from hermes.errors import AgentRefused
from hermes.model.ask import Source
from hermes.model.notice import Changes, Turn
from hermes.model.prompt import SessionState, Sight

M = TypeVar("M", bound=wire.Message)
_RECENT: Final = 8
_ABORTED: Final = "MessageAbortedError"
_LOOKS, _LOOK_S = 5, 0.1


async def last_turn(
    api: Api,
    session: wire.Session,
    source: Source,
    beginnings: Beginnings,
    *,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> Turn | None:
    """Return the last turn of a session if it has ended by itself; None otherwise, and for a subagent.

    Raises what `Api.get` raises.
    """
    if session.parent_id is not None:
        return None
    path = path_of("session", session.id, "message")
    messages = await _newest(api, path, source.directory)
    newest = max(_of_model(messages), key=lambda one: one.info.time.created, default=None)
    if newest is None or not _has_ended(newest.info):
        return None
    prompt = await _prompt(api, path, newest.info.parent_id, source.directory)
    for _ in range(_LOOKS):
        if prompt is None or _diffs(prompt) or not _has_patch(messages, newest):
            break
        await sleep(_LOOK_S)
        prompt = await _prompt(api, path, newest.info.parent_id, source.directory)
    info = newest.info
    return Turn(
        replace(source, session_id=session.id, session_title=session.title),
        capabilities.agent_name,
        info.id,
        beginnings.of(session.id, None if prompt is None else prompt.info.time.created / 1000),
        (info.time.completed or info.time.created) / 1000,
        words="" if info.error else said([newest]),
        failure=reason_of(info.error) if info.error else "",
        changes=None if prompt is None else await asyncio.to_thread(_changes, _diffs(prompt)),
        prompt_id=info.parent_id or "",
    )


async def _newest(api: Api, path: str, directory: str) -> list[wire.TurnMessage]:
    """Return the newest messages, or the newest one alone: a prompt of 1.1.53 holds all files that its turn changed."""
    try:
        return await api.get(list[wire.TurnMessage], path, directory, params={"limit": _RECENT})
    except AgentRefused:
        return await api.get(list[wire.TurnMessage], path, directory, params={"limit": 1})


async def _prompt(api: Api, path: str, message_id: str | None, directory: str) -> wire.Prompt | None:
    """Return the prompt, None if it cannot be read: without it a turn only has no changes."""
    if not message_id:
        return None
    try:
        return await api.get(wire.Prompt, path + path_of(message_id), directory)
    except AgentRefused:
        return None


def _has_ended(info: wire.TurnInfo) -> bool:
    if info.time.completed is None or info.summary is True:  # a summary of the session is no answer to anybody
        return False
    if info.error is not None:
        return info.error.name != _ABORTED
    return info.finish not in GOES_ON


def sight_of(messages: Sequence[wire.TurnMessage], record_id: str, *, is_busy: bool) -> Sight:
    """Return what the newest messages show of the prompt with this id, which the session has.

    A turn whose steps all called tools, and that has stopped, was ended by a refusal; or a later prompt took it over.
    A step that has not ended, although a later one began, was ended in the middle: 1.1.53 leaves it so after an abort
    while a tool waits for a person.
    """
    state: SessionState = "busy" if is_busy else "idle"
    steps = [one for one in _of_model(messages) if one.info.parent_id == record_id]
    if not steps:
        return Sight(state, "admitted")
    last = max(steps, key=lambda one: one.info.time.created)
    info = last.info
    ended_s = None if info.time.completed is None else info.time.completed / 1000
    if info.error is not None and info.error.name == _ABORTED:
        return Sight(state, "stopped", ended_s=ended_s)
    if info.error is not None and not is_busy:
        return Sight(state, "failed", reason=reason_of(info.error), ended_s=ended_s)
    if ended_s is not None and info.finish not in GOES_ON:
        return Sight(state, "finished", ended_s=ended_s)
    is_last = last is max(_of_model(messages), key=lambda one: one.info.time.created)
    if ended_s is None and not is_last:
        return Sight(state, "stopped")
    if ended_s is None or is_busy:
        tools = [part.tool for part in last.parts if part.state is not None and part.state.status == "running"]
        return Sight(state, "running", tool=tools[-1] if tools else "")
    return Sight(state, "stopped" if is_last else "finished", ended_s=ended_s)


def reason_of(error: wire.MessageError) -> str:
    """Return why a turn failed: the provider's words, and the HTTP status if there is one."""
    data = error.data or wire.ErrorData()
    words = data.message or error.name
    return words if data.status is None else f"{words} ({data.status})"


def _of_model(messages: Iterable[M]) -> list[M]:
    return [message for message in messages if message.info.role == "assistant"]


def _has_patch(messages: Iterable[wire.TurnMessage], newest: wire.TurnMessage) -> bool:
    same = (one for one in messages if one.info.parent_id == newest.info.parent_id)
    return any(part.type == "patch" for message in same for part in message.parts)


def _diffs(prompt: wire.Prompt) -> tuple[wire.FileDiff, ...]:
    summary = prompt.info.summary
    return (summary.diffs if isinstance(summary, wire.ChangesSummary) else None) or ()


def _changes(diffs: tuple[wire.FileDiff, ...]) -> Changes | None:
    if not diffs:
        return None
    added, removed = (sum(getattr(one, key) or 0 for one in diffs) for key in ("additions", "deletions"))
    text = joined(ChangedFile(one.file, one.patch, one.before, one.after) for one in diffs)
    return Changes(len(diffs), added, removed, text)


def said(messages: Iterable[wire.Message]) -> str:
    """Return the model's last text in these messages, "" if there is none."""
    for message in sorted(_of_model(messages), key=lambda one: one.info.time.created, reverse=True):
        words = "\n\n".join(part.text for part in message.parts if part.type == "text").strip()
        if words:
            return words
    return ""
