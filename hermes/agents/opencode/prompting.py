"""Prompts for the sessions of one OpenCode server, and their state in its record.

A prompt is sent under a message id of our own, and each of its parts under an id that follows from that one: if it is
sent again, it replaces itself. 1.1.53 orders messages by their ids: it never answers one that sorts before the newest
message, and answers one of the future again and again. So the id follows directly on that of the newest message.

`204` says that the request was read, and no more; the prompt is in the record some ms later, if at all.
"""

from __future__ import annotations

import re
import secrets
import string
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, Protocol

from hermes.agents.http import BOOT, CALL, FILES, path_of
from hermes.agents.opencode import commands, files, turns, wire
from hermes.agents.opencode.adapter import capabilities
from hermes.agents.opencode.exclusions import exclusions
from hermes.agents.opencode.stream_memory import StreamMemory
from hermes.agents.prompting import Excludes, Serving
from hermes.agents.wire import decode
from hermes.core.prompt_text import quotes_agent
from hermes.errors import AgentError, AgentRefused, NotThere
from hermes.model.ask import Source
from hermes.model.card import Listed
from hermes.model.prompt import Content, PromptAbilities, SessionState, Sight, Target

ABILITIES: Final = PromptAbilities(
    kinds=("text", "note", "task", "command"),
    steers=True,
    stops=True,
    makes_sessions=True,
    resumes="opencode --session",
    files=("picture", "pdf", "text"),
)
_RECENT, _MANY, _ALL = 20, 100, 500
_ID: Final = re.compile(r"msg_([0-9a-f]{12})")
_BASE62: Final = string.digits + string.ascii_letters
_MENTION: Final = re.compile(r"(?<![\w@./-])@([\w./-]+)(?![\w@])")
_WORDS: Final = 3000
_LENT: Final = re.compile(r"prt_[0-9a-f]{12}\w{14}\d\da")
"""The ids of the parts of a prompt of ours that has an agent for its own turn."""


class ServingSessions(Serving, Protocol):
    """An OpenCode with its sessions, reached through its port or through its plugin."""

    async def updated(self, since_ms: float) -> list[wire.Session]:
        """Return the sessions that were updated since then, newest first."""


class OpenCodePrompts:
    """The way of prompts to the sessions of a server; see `PromptWay`."""

    def __init__(self, server: ServingSessions, memory: StreamMemory | None = None) -> None:
        """`memory` knows the errors of the event stream; without it, none is known."""
        self._server = server
        self._memory = memory or StreamMemory()
        self._api = server.api

    async def look(self, source: Source, record_id: str) -> Sight:
        """Return the state of the session, and of this prompt in its record.

        A step that has not ended in an idle session was ended in the middle: 1.1.53 leaves it so after an abort while
        a tool waits for a person, both if they are killed.
        """
        directory = source.directory
        session = path_of("session", source.session_id)
        made_ms = (await self._api.get(wire.Session, session, directory, timeout=BOOT)).time.created
        # Read before the messages: a turn that ends between the two reads is then only seen one look later.
        is_busy = source.session_id in await self._server.busy(directory)
        messages = await self._newest(session, directory, _RECENT)
        state: SessionState = "busy" if is_busy else "idle"
        nothing = Sight(state, next_id=following(max((one.info.id for one in messages), default=""), made_ms))
        if not record_id:
            return nothing
        if not _knows(messages, record_id):
            if not await self._has(session, record_id, directory):
                return nothing
            messages = await self._newest(session, directory, _MANY)
            if not _knows(messages, record_id):
                messages = await self._newest(session, directory, _ALL, _MANY)
        sight = turns.sight_of(messages, record_id, is_busy=is_busy)
        is_unanswered = sight.record == "admitted" and not is_busy
        return replace(sight, reason=self._memory.failure(source.session_id) or "") if is_unanswered else sight

    async def _newest(self, session: str, directory: str, *most: int) -> list[wire.TurnMessage]:
        return await turns.newest_messages(self._api, f"{session}/message", directory, *most)

    async def _has(self, session: str, record_id: str, directory: str) -> bool:
        """Tell whether the record has this prompt. If OpenCode was killed, it can have one without its parts."""
        try:
            kept = await self._api.get(wire.TurnMessage, session + path_of("message", record_id), directory)
        except NotThere:
            return False
        return bool(kept.parts)

    async def check(self, source: Source, content: Content) -> None:
        """Raise AgentRefused if there is no such command or agent, or the model does not take the files."""
        if content.kind in {"command", "task"}:
            await self._prompt(content, source.directory)
        if not content.files:
            return
        try:
            messages = await self._newest(path_of("session", source.session_id), source.directory, _RECENT)
            why = await files.objection(self._api, content.files, messages, source.directory)
        except AgentRefused:
            return  # this OpenCode does not tell of its models, or the session was deleted, which `look` finds
        if why:
            raise AgentRefused("the model does not take the files", said=why)

    async def send(self, source: Source, record_id: str, content: Content) -> None:
        prompt = await self._prompt(content, source.directory)
        prompt["parts"] = [*prompt["parts"], *(files.part_of(file) for file in content.files)]
        self._memory.forget_failure(source.session_id)
        session = path_of("session", source.session_id)
        # 1.18.33 does a task twice if it comes again while it is done, and both name a mentioned agent twice.
        is_text = all(part["type"] == "text" for part in prompt["parts"])
        if not is_text and await self._has(session, record_id, source.directory):
            return
        for number, part in enumerate(prompt["parts"]):  # the model gets the parts in the order of their ids
            part["id"] = f"prt_{record_id.removeprefix('msg_')}{number:02}{'a' if 'agent' in prompt else ''}"
        chosen = {} if "agent" in prompt else await self._chosen(session, source.directory)
        body = {"messageID": record_id, **chosen, **prompt}
        timeout = FILES if content.files else CALL
        await self._api.call("POST", f"{session}/prompt_async", source.directory, body=body, timeout=timeout)

    async def _chosen(self, session: str, directory: str) -> dict[str, Any]:
        """Return the agent and the model of the newest prompt of a session, for its next one.

        Without them, OpenCode would take its default agent: a session that may only plan would begin to write files.
        Prompts with an agent for their own turn do not count: commands of ours, and subagents. A command from the desk
        looks like any other prompt.
        """
        agents = {one.name: one for one in await self._agents(directory)}
        messages = await self._newest(session, directory, _RECENT)
        lent = {one.info.id for one in messages if any(_LENT.fullmatch(part.id) for part in one.parts)}
        infos = [
            one.info
            for one in reversed(messages)
            if one.info.agent and lent.isdisjoint({one.info.id, one.info.parent_id})
        ]
        infos = [one for one in infos if one.agent not in agents or _is_for_people(agents[one.agent])]
        info = next((one for one in infos if one.role == "user"), infos[0] if infos else None)
        if info is None:
            return {}
        if info.agent not in agents:
            gone = f"the agent “{info.agent}” of this session is not there any more; choose another one at the computer"
            raise AgentRefused("no such agent", said=gone)
        model, chosen = info.model, {"agent": info.agent}
        if model is None:
            return chosen
        variant = info.variant or model.variant
        chosen |= {"variant": variant} if variant else {}
        return chosen | {"model": {"providerID": model.provider_id, "modelID": model.model_id}}

    async def _prompt(self, content: Content, directory: str) -> dict[str, Any]:
        match content.kind:
            case "task":
                return {"parts": [await self._task(content, directory)]}
            case "note":
                return {"parts": _text(content), "noReply": True}
            case "command":
                listed = await self._api.get(list[wire.Command], "/command", directory, timeout=BOOT)
                command = commands.chosen(listed, content.name)
                prompt = commands.prompt_of(command, content.text, await self._agents(directory))
            case _ if quotes_agent(content.text):
                # OpenCode tells the model to call each subagent that is named; the question may name one.
                return {"parts": _text(content)}
            case _:
                prompt = {"parts": _text(content)}
        return prompt | {"parts": prompt["parts"] + await self._mentioned(prompt["parts"], directory)}

    async def _task(self, content: Content, directory: str) -> dict[str, Any]:
        there = [one.name for one in await self._agents(directory) if _is_subagent(one)]
        if content.name not in there:
            names = ", ".join(sorted(there)[: commands.NAMED]) or "none"
            raise AgentRefused("no such agent", said=f"there is no agent “{content.name}”; there are: {names}")
        about = content.text.partition("\n")[0][:60]
        return {"type": "subtask", "agent": content.name, "description": about, "prompt": content.text}

    async def _mentioned(self, parts: list[dict[str, Any]], directory: str) -> list[dict[str, Any]]:
        """Return a part for each subagent that the text names with "@"."""
        names = [
            name.rstrip(".") for part in parts if part["type"] == "text" for name in _MENTION.findall(part["text"])
        ]
        if not names:
            return []
        known = {one.name for one in await self._agents(directory) if _is_subagent(one)}
        return [{"type": "agent", "name": name} for name in dict.fromkeys(names) if name in known]

    async def _agents(self, directory: str) -> list[wire.Agent]:
        return await self._api.get(list[wire.Agent], "/agent", directory, timeout=BOOT)

    async def stop(self, source: Source) -> bool:
        if source.session_id not in await self._server.busy(source.directory):
            return False
        await self._api.call("POST", path_of("session", source.session_id, "abort"), source.directory)
        return True

    async def new_session(self, directory: str) -> str:
        content = await self._api.call("POST", "/session", directory, body={}, timeout=BOOT)
        try:
            return decode(wire.Session, content).id
        except ValueError as error:
            raise AgentRefused(f"OpenCode {self._server.name!r}: a session of an unknown shape: {error}") from None

    async def words(self, source: Source) -> str:
        session = path_of("session", source.session_id)
        return turns.said(await self._newest(session, source.directory, _RECENT))[-_WORDS:]

    async def exclusions(self, source: Source) -> Excludes:
        messages = await self._newest(path_of("session", source.session_id), source.directory, _RECENT)
        return await exclusions(self._api, source, messages)

    async def listed(self, since_s: float) -> tuple[Listed, ...]:
        found = [one for one in await self._server.updated(since_s * 1000) if one.parent_id is None]
        busy: set[str] = set()
        for directory in dict.fromkeys(one.directory for one in found):
            with suppress(AgentError):  # one folder that answers nothing takes the others from nobody
                busy |= await self._server.busy(directory)
        return tuple(self._listed(one, is_busy=one.id in busy) for one in found)

    def _listed(self, session: wire.Session, *, is_busy: bool) -> Listed:
        source = replace(self._server.origin(session.directory), session_id=session.id, session_title=session.title)
        target = Target(source, capabilities.agent_name, ABILITIES)
        return Listed(target, "busy" if is_busy else "idle", session.time.updated / 1000)


def following(newest_id: str, made_ms: float) -> str:
    """Return an id that sorts directly behind this one, the newest of a session that was made then (epoch ms).

    Our own clock has no part in it: it can differ from the clock of the server, which makes the other ids.
    """
    found = _ID.match(newest_id)
    number = int(found[1], 16) if found else int(made_ms) * 0x1000
    return f"msg_{(number + 1) % 16**12:012x}{''.join(secrets.choice(_BASE62) for _ in range(14))}"


def _text(content: Content) -> list[dict[str, Any]]:
    """Return the part of the text; without one there are files."""
    return [{"type": "text", "text": content.text}] if content.text else []


def _knows(messages: Sequence[wire.TurnMessage], record_id: str) -> bool:
    """Tell whether these messages have the prompt, with its parts, or what came of it."""
    asked = turns.asked_by(messages)
    return any(asked[one.info.id] == record_id and (one.info.id != record_id or one.parts) for one in messages)


def _is_for_people(agent: wire.Agent) -> bool:
    return agent.mode != "subagent" and not agent.hidden


def _is_subagent(agent: wire.Agent) -> bool:
    return agent.mode != "primary" and not agent.hidden
