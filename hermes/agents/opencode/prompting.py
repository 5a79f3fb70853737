"""Prompts for the sessions of one OpenCode server, and what its record has of them.

A prompt is sent under a message id of our own, and each of its parts under an id that follows from that one: if it is
sent again, it replaces itself. 1.1.53 orders messages by their ids: it never answers one that sorts before the newest
message, and answers one of the future again and again. So the id follows directly on that of the newest message.

`204` says that the request was read, and no more; the prompt is in the record some ms later, if at all.
"""

from __future__ import annotations

import re
import secrets
import string
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from hermes.agents.http import BOOT, path_of
from hermes.agents.opencode import turns, wire
from hermes.agents.opencode.adapter import capabilities
from hermes.agents.wire import decode
from hermes.errors import AgentRefused, NotThere
from hermes.model.card import Listed
from hermes.model.prompt import PromptAbilities, Sight, Target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.agents.opencode.client import OpenCodeServer
    from hermes.model.ask import Source
    from hermes.model.prompt import Content, SessionState

ABILITIES: Final = PromptAbilities(
    kinds=("text", "note", "task", "command"), steers=True, stops=True, makes_sessions=True
)
_RECENT: Final = 20
_ALL: Final = 500
_ID: Final = re.compile(r"msg_([0-9a-f]{12})")
_BASE62: Final = string.digits + string.ascii_letters
_MENTION: Final = re.compile(r"(?<![\w@])@([\w./-]+)")
_SHELL: Final = "!`"
_NAMED: Final = 20
_WORDS: Final = 3000


class OpenCodePrompts:
    """The way of prompts to the sessions of a server; see `PromptWay`."""

    can = ABILITIES

    def __init__(self, server: OpenCodeServer) -> None:
        self._server = server
        self._api = server.api

    async def look(self, source: Source, record_id: str) -> Sight:
        """Return the state of the session, and what its record has of this prompt."""
        directory = source.directory
        session = path_of("session", source.session_id)
        await self._api.get(wire.Session, session, directory, timeout=BOOT)
        # Read before the messages: a turn that ends between the two reads is then only seen one look later.
        busy = (await self._api.get(dict[str, wire.Status], "/session/status", directory)).get(source.session_id)
        messages = await self._messages(session, directory, _RECENT)
        state: SessionState = "idle" if busy is None else "busy"
        next_id = following(max((one.info.id for one in messages), default=""), self._server.now())
        if not record_id:
            return Sight(state, next_id=next_id)
        if not _knows(messages, record_id):
            if not await self._has(session, record_id, directory):
                return Sight(state, next_id=next_id)
            messages = await self._messages(session, directory, _ALL)
        return turns.sight_of(messages, record_id, is_busy=busy is not None)

    async def _messages(self, session: str, directory: str, limit: int) -> list[wire.TurnMessage]:
        path = f"{session}/message"
        return await self._api.get(list[wire.TurnMessage], path, directory, params={"limit": limit}, timeout=BOOT)

    async def _has(self, session: str, record_id: str, directory: str) -> bool:
        try:
            await self._api.get(wire.TurnMessage, session + path_of("message", record_id), directory)
        except NotThere:
            return False
        return True

    async def send(self, source: Source, record_id: str, content: Content) -> None:
        """Send a prompt under this id."""
        session = path_of("session", source.session_id)
        if content.kind == "command":
            await self._check_command(content.name, source.directory)
            body = {"messageID": record_id, "command": content.name, "arguments": content.text}
            await self._api.call("POST", f"{session}/command", source.directory, body=body)
            return
        parts = await self._parts(content, source.directory)
        for number, part in enumerate(parts):
            part["id"] = f"prt_{record_id.removeprefix('msg_')}{number}"
        prompt: dict[str, Any] = {"messageID": record_id, "parts": parts}
        if content.kind == "note":
            prompt["noReply"] = True
        await self._api.call("POST", f"{session}/prompt_async", source.directory, body=prompt)

    async def _parts(self, content: Content, directory: str) -> list[dict[str, Any]]:
        if content.kind == "task":
            if content.name not in await self._subagents(directory):
                names = ", ".join(sorted(await self._subagents(directory))[:_NAMED])
                raise AgentRefused("no such agent", said=f"there is no agent “{content.name}”; there are: {names}")
            about = content.text.partition("\n")[0][:60]
            return [{"type": "subtask", "agent": content.name, "description": about, "prompt": content.text}]
        parts: list[dict[str, Any]] = [{"type": "text", "text": content.text}]
        mentioned = dict.fromkeys(_MENTION.findall(content.text)) if content.kind == "text" else {}
        if mentioned:
            known = await self._subagents(directory)
            parts += [{"type": "agent", "name": name} for name in mentioned if name in known]
        return parts

    async def _subagents(self, directory: str) -> frozenset[str]:
        agents = await self._api.get(list[wire.Agent], "/agent", directory, timeout=BOOT)
        return frozenset(one.name for one in agents if one.mode != "primary" and not one.hidden)

    async def _check_command(self, name: str, directory: str) -> None:
        """Raise AgentRefused unless this is a command that runs nothing in a shell."""
        listed = await self._api.get(list[wire.Command], "/command", directory, timeout=BOOT)
        safe = [one.name for one in listed if _SHELL not in one.template]
        if name not in safe:
            there = ", ".join(sorted(safe)[:_NAMED]) or "none"
            is_shell = any(one.name == name for one in listed)
            why = f"“{name}” runs a shell" if is_shell else f"there is no command “{name}”"
            raise AgentRefused("no such command", said=f"{why}; you can send: {there}")

    async def stop(self, source: Source) -> bool:
        """End the turn that runs; return whether one ran."""
        status = await self._api.get(dict[str, wire.Status], "/session/status", source.directory)
        if source.session_id not in status:
            return False
        await self._api.call("POST", path_of("session", source.session_id, "abort"), source.directory)
        return True

    async def new_session(self, directory: str) -> str:
        """Make a session in this directory; return its id."""
        content = await self._api.call("POST", "/session", directory, body={}, timeout=BOOT)
        try:
            return decode(wire.Session, content).id
        except ValueError as error:
            raise AgentRefused(f"OpenCode {self._server.name!r}: a session of an unknown shape: {error}") from None

    async def words(self, source: Source) -> str:
        """Return the agent's last words in this session."""
        session = path_of("session", source.session_id)
        return turns.said(await self._messages(session, source.directory, _RECENT))[-_WORDS:]

    async def listed(self, since_s: float) -> tuple[Listed, ...]:
        """Return the sessions that run, or were used since then (epoch); no subagent's."""
        found = [one for one in await self._server.updated(since_s * 1000) if one.parent_id is None]
        busy: set[str] = set()
        for directory in dict.fromkeys(one.directory for one in found):
            with suppress(AgentRefused):
                busy |= await self._server.busy(directory)
        return tuple(self._listed(one, is_busy=one.id in busy) for one in found)

    def _listed(self, session: wire.Session, *, is_busy: bool) -> Listed:
        source = replace(self._server.origin(session.directory), session_id=session.id, session_title=session.title)
        target = Target(source, capabilities.agent_name, ABILITIES)
        return Listed(target, "busy" if is_busy else "idle", session.time.updated / 1000)


def following(newest_id: str, now_s: float) -> str:
    """Return an id that sorts directly behind this one, the newest of a session; without one, an id of now."""
    found = _ID.match(newest_id)
    number = int(found[1], 16) + 1 if found else int(now_s * 1000) * 0x1000
    return f"msg_{number % 16**12:012x}{''.join(secrets.choice(_BASE62) for _ in range(14))}"


def _knows(messages: Sequence[wire.TurnMessage], record_id: str) -> bool:
    return any(record_id in {one.info.id, one.info.parent_id} for one in messages)
