"""The last turn of a session, read from OpenCode's own record.

Each message of the model names its prompt (`parentID`). A step that calls tools ends with the finish "tool-calls", the
last step of a turn with another one; after a failure a message has an error instead. A turn that was interrupted, or
ended by the rejection of a question, is none that ended by itself. The prompt's `summary.diffs` are written some ms
after the last step, in a project with git alone.

OpenCode sums up a session that is too long for the model, also in the middle of a turn. It writes a prompt with a
`compaction` part, and the model answers it with a summary. Then OpenCode writes a prompt of synthetic texts, which asks
the model to go on; or, if the provider had refused the conversation as too long (`overflow`), a prompt that repeats the
person's own. The further steps of the turn name that prompt, which has the changes since then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from hermes.agents.diffs import ChangedFile, joined
from hermes.agents.http import BOOT, Api, path_of
from hermes.agents.opencode import wire
from hermes.agents.opencode.adapter import capabilities
from hermes.agents.turns import GOES_ON, Beginnings
from hermes.errors import AgentRefused, NotThere
from hermes.model.ask import Source
from hermes.model.notice import Changes, Turn
from hermes.model.prompt import SessionState, Sight

M = TypeVar("M", bound=wire.Message)
_RECENT, _MANY, _ALL = 8, 100, 500
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
    messages = await newest_messages(api, path, source.directory, _RECENT)
    newest = max(_of_model(messages), key=_created_ms, default=None)
    if newest is None or not _has_ended(newest.info):
        return None
    prompt = await _prompt(api, path, newest.info.parent_id, source.directory)
    for _ in range(_LOOKS):
        if prompt is None or _diffs(prompt) or not _has_patch(messages, newest):
            break
        await sleep(_LOOK_S)
        prompt = await _prompt(api, path, newest.info.parent_id, source.directory)
    info = newest.info
    if prompt is not None and _is_of_opencode(prompt):  # that of the person may be far before
        wider = await newest_messages(api, path, source.directory, _ALL, _MANY, _RECENT)
        messages = wider if any(one.info.id == info.id for one in wider) else messages
    asked = asked_by(messages)
    turn = [one for one in messages if asked[one.info.id] == asked[info.id]]
    return Turn(
        replace(source, session_id=session.id, session_title=session.title),
        capabilities.agent_name,
        info.id,
        beginnings.of(session.id, _asked_s(turn, prompt)),
        (info.time.completed or info.time.created) / 1000,
        words="" if info.error else _answer(turn),
        failure=reason_of(info.error) if info.error else "",
        changes=None if prompt is None else await asyncio.to_thread(_changes, _diffs(prompt)),
        prompt_id=asked[info.id],
    )


def _asked_s(turn: Sequence[wire.TurnMessage], prompt: wire.Prompt | None) -> float | None:
    """Return when the first prompt of a turn was written (epoch), None if it is not known."""
    prompts = [*(one for one in turn if one.info.role == "user"), *([] if prompt is None else [prompt])]
    return min((_created_ms(one) / 1000 for one in prompts), default=None)


async def newest_messages(api: Api, path: str, directory: str, *most: int) -> list[wire.TurnMessage]:
    """Return the newest messages of a session, the oldest first: as many as the first of these numbers that works.

    They can be too large, since they have files, and a prompt of 1.1.53 all that its turn changed. At last it is one.
    Raises what `Api.get` raises.
    """
    for limit in most:
        try:
            return await _messages(api, path, directory, limit)
        except NotThere:
            raise
        except AgentRefused:
            continue
    return await _messages(api, path, directory, 1)


async def _messages(api: Api, path: str, directory: str, limit: int) -> list[wire.TurnMessage]:
    return await api.get(list[wire.TurnMessage], path, directory, params={"limit": limit}, timeout=BOOT)


async def _prompt(api: Api, path: str, message_id: str | None, directory: str) -> wire.Prompt | None:
    """Return the prompt, None if it cannot be read: without it a turn only has no changes."""
    if not message_id:
        return None
    try:
        return await api.get(wire.Prompt, path + path_of(message_id), directory)
    except AgentRefused:
        return None


def _answer(turn: Iterable[wire.TurnMessage]) -> str:
    """Return the answers in the messages of one turn: OpenCode can sum up a session after an answer, and go on."""
    ended = (one for one in _of_model(turn) if _has_ended(one.info) and not one.info.error)
    answers = {one.info.parent_id: said([one]) for one in ended}
    return "\n\n".join(filter(None, answers.values()))


def _has_ended(info: wire.TurnInfo) -> bool:
    if info.time.completed is None or _is_summary(info):
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
    asked = asked_by(messages)
    answers = [one for one in _of_model(messages) if not _is_summary(one.info)]
    steps = [one for one in answers if asked[one.info.id] == record_id]
    if not steps:
        return Sight(state, "admitted")
    last = max(steps, key=_created_ms)
    info = last.info
    turn = (one for one in messages if asked[one.info.id] == record_id)
    goes_on = is_busy and last is not max(turn, key=_created_ms)
    ended_s = None if info.time.completed is None else info.time.completed / 1000
    if info.error is not None and info.error.name == _ABORTED:
        return Sight(state, "stopped", ended_s=ended_s)
    if info.error is not None and not is_busy:
        return Sight(state, "failed", reason=reason_of(info.error), ended_s=ended_s)
    if ended_s is not None and info.finish not in GOES_ON and not goes_on:
        return Sight(state, "finished", ended_s=ended_s)
    is_last = last is max(answers, key=_created_ms)
    if ended_s is None and not is_last:
        return Sight(state, "stopped")
    if ended_s is None or is_busy:
        tools = [part.tool for part in last.parts if part.state is not None and part.state.status == "running"]
        return Sight(state, "running", tool=tools[-1] if tools else "")
    return Sight(state, "stopped" if is_last else "finished", ended_s=ended_s)


def asked_by(messages: Sequence[wire.TurnMessage]) -> dict[str, str]:
    """Return, for each message by its id, the id of the person's prompt that it is, goes on with, or answers.

    `messages` are the newest of a session, the oldest first. A prompt before all of them counts as a person's.
    """
    asked: dict[str, str] = {}
    prompts: dict[str, str] = {}
    newest_id = ""
    compactions: dict[str, wire.Part] = {}
    summary: wire.TurnInfo | None = None
    for message in messages:
        info = message.info
        if info.role == "assistant":
            parent_id = info.parent_id or ""
            if parent_id not in prompts:
                prompts[parent_id] = newest_id = parent_id
            asked[info.id] = prompts[parent_id]
            summary = info if parent_id in compactions and _is_summary(info) else None
            continue
        compaction = next((part for part in message.parts if part.type == "compaction" and part.auto), None)
        if compaction is not None:
            compactions[info.id] = compaction
        elif summary is not None and _goes_on(message, summary, compactions[summary.parent_id or ""]):
            summary = None
        else:
            newest_id = info.id
        asked[info.id] = prompts[info.id] = newest_id or info.id
    return asked


def _goes_on(prompt: wire.TurnMessage, summary: wire.TurnInfo, compaction: wire.Part) -> bool:
    """Tell whether OpenCode wrote this prompt, after the summary, to let the turn go on."""
    ended_ms = summary.time.completed
    is_after = ended_ms is not None and prompt.info.time.created >= ended_ms
    return is_after and (bool(compaction.overflow) or _is_synthetic(prompt))


def reason_of(error: wire.MessageError) -> str:
    """Return why a turn failed: the provider's words, and the HTTP status if there is one."""
    data = error.data or wire.ErrorData()
    words = data.message or error.name
    return words if data.status is None else f"{words} ({data.status})"


def _is_summary(info: wire.TurnInfo) -> bool:
    """Tell whether a message sums the session up, which is no answer to anybody. A failed one ends the turn."""
    return info.summary is True and info.error is None


def _is_of_opencode(prompt: wire.Message) -> bool:
    return _is_synthetic(prompt) or any(part.type == "compaction" for part in prompt.parts)


def _is_synthetic(prompt: wire.Message) -> bool:
    """Tell whether OpenCode, and no person, wrote the words of a prompt."""
    return bool(prompt.parts) and all(part.synthetic for part in prompt.parts)


def _created_ms(message: wire.Message) -> float:
    return message.info.time.created


def _of_model(messages: Iterable[M]) -> list[M]:
    return [message for message in messages if message.info.role == "assistant"]


def _has_patch(messages: Iterable[wire.TurnMessage], newest: wire.TurnMessage) -> bool:
    same = (one for one in messages if one.info.parent_id == newest.info.parent_id)
    return any(part.type == "patch" for message in same for part in message.parts)


def _diffs(prompt: wire.Prompt) -> tuple[wire.FileDiff, ...]:
    summary = prompt.info.summary
    return (summary.diffs if isinstance(summary, wire.Summary) else None) or ()


def _changes(diffs: tuple[wire.FileDiff, ...]) -> Changes | None:
    if not diffs:
        return None
    added, removed = (sum(getattr(one, key) or 0 for one in diffs) for key in ("additions", "deletions"))
    text = joined(ChangedFile(one.file, one.patch, one.before, one.after) for one in diffs)
    return Changes(len(diffs), added, removed, text)


def said(messages: Iterable[wire.Message]) -> str:
    """Return the model's last text in these messages, "" if there is none."""
    for message in sorted(_of_model(messages), key=_created_ms, reverse=True):
        words = "\n\n".join(part.text for part in message.parts if part.type == "text").strip()
        if words:
            return words
    return ""
