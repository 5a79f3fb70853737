"""Prompts for the sessions of one OpenCode 2 server.

The server keeps the first prompt that comes under an id, so it can be sent again without harm. One that waits is in
the session's inbox; once a turn has taken it, it is a message under the same id.

Only texts are offered. A command takes no id in 2.0.26, so it would run twice if it were sent twice. Nobody has seen a
note (`synthetic`) keep an id of its client, nor what `agents` beside a text does.
"""

from __future__ import annotations

import contextlib
import math
import secrets
from collections import OrderedDict
from dataclasses import dataclass, replace
from itertools import dropwhile, takewhile
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from hermes.agents.http import BOOT, path_of
from hermes.agents.opencode2 import adapter, sessions, wire
from hermes.agents.opencode2.forms import GLOBAL
from hermes.agents.prompting import Excludes, Serving, nothing_excluded
from hermes.agents.turns import GOES_ON
from hermes.agents.wire import Data, decode
from hermes.errors import AgentRefused, NotThere
from hermes.model.card import Listed
from hermes.model.prompt import Content, PromptAbilities, SessionState, Sight, Target

if TYPE_CHECKING:
    from hermes.model.ask import Source

T = TypeVar("T")
KILLED: Final = "the agent was ended in the middle of it"
PARKED: Final = "it waits in the session, and begins with the next prompt there"
ABILITIES: Final = PromptAbilities(kinds=("text",), steers=True, stops=True, makes_sessions=True, no_session=GLOBAL)
_RECENT: Final = 20
_ALL: Final = 200
_NO_MESSAGE: Final = "MessageNotFoundError"
_WAITING: Final = ("inbox", "pending")
"""The list of the prompts that wait: in 2.0.26, and in the build of 7 August."""


@dataclass(frozen=True, slots=True)
class _End:
    """How the last turn of a session ended, if not well, and when (ms since the epoch)."""

    at_ms: float
    record: Literal["failed", "stopped"]
    reason: str = ""


class OpenCode2Prompts:
    """The way of prompts to the sessions of a server; see `PromptWay`."""

    def __init__(self, server: Serving) -> None:
        self._server = server
        self._ends: OrderedDict[str, _End] = OrderedDict()

    def note(self, event: wire.Event) -> None:
        """Remember how a turn ended: one that ends before its first step leaves no message."""
        session_id = str(event.data.get("sessionID"))
        match event.type:
            case "session.execution.started":
                self._ends.pop(session_id, None)
            case "session.execution.interrupted":
                sessions.keep(self._ends, session_id, _End(event.created, "stopped"))
            case "session.execution.failed":
                sessions.keep(self._ends, session_id, _End(event.created, "failed", _words(event.data.get("error"))))

    async def look(self, source: Source, record_id: str) -> Sight:
        with sessions.known_routes():
            return await self._look(source, record_id)

    async def _look(self, source: Source, record_id: str) -> Sight:
        api = self._server.api
        await sessions.info(api, source.session_id)
        # Read before the messages: a turn that ends between the two reads is then only seen one look later.
        is_busy = await self._is_busy(source)
        state: SessionState = "busy" if is_busy else "idle"
        next_id = f"msg_{secrets.token_hex(12)}"
        if not record_id:
            return Sight(state, next_id=next_id)
        path = sessions.session_path(source.session_id)
        messages = await self._messages(path, _RECENT)
        if all(one.id != record_id for one in messages):
            # The inbox first: a prompt that a turn takes between the two reads would be in neither.
            if await self._waits(path, record_id):
                return Sight(state, "admitted", reason="" if is_busy else self._parked(source.session_id))
            if not await self._has(path, record_id):
                return Sight(state, next_id=next_id)
            messages = await self._messages(path, _ALL)
        sight = sight_of(messages, record_id, state)
        if not is_busy and sight.record != "finished" and await self._is_busy(source):
            return sight_of(messages, record_id, "busy")  # a turn has begun between the two reads
        taken_ms = next((one.time.created for one in messages if one.id == record_id), math.inf)
        end = self._ends.get(source.session_id)
        if is_busy or sight.record != "admitted" or end is None or end.at_ms < taken_ms:
            return sight
        return replace(sight, record=end.record, reason=end.reason, ended_s=end.at_ms / 1000)

    async def _is_busy(self, source: Source) -> bool:
        return source.session_id in await self._server.busy(source.directory)

    def _parked(self, session_id: str) -> str:
        end = self._ends.get(session_id)
        return PARKED if end is None or not end.reason else f"{end.reason}; {PARKED}"

    async def _messages(self, path: str, limit: int) -> list[wire.Message]:
        return await sessions.get(self._server.api, Data[list[wire.Message]], f"{path}/message", limit=limit)

    async def _has(self, path: str, record_id: str) -> bool:
        try:
            await sessions.get(self._server.api, Data[wire.Message], path + path_of("message", record_id))
        except NotThere as error:
            if error.tag == _NO_MESSAGE:
                return False
            raise
        return True

    async def _waits(self, path: str, record_id: str) -> bool:
        try:
            listed = await sessions.get(self._server.api, Data[list[Any]], f"{path}/{_WAITING[0]}")
        except NotThere as error:
            if error.tag:
                raise
            listed = await sessions.get(self._server.api, Data[list[Any]], f"{path}/{_WAITING[1]}")
        return any(isinstance(one, dict) and one.get("id") == record_id for one in listed)

    async def check(self, source: Source, content: Content) -> None:
        """Object to nothing."""

    async def send(self, source: Source, record_id: str, content: Content) -> None:
        """Send a prompt under this id. It joins a turn that runs."""
        path = f"{sessions.session_path(source.session_id)}/prompt"
        with sessions.known_routes():
            await self._server.api.call("POST", path, body={"id": record_id, "text": content.text, "delivery": "steer"})

    async def stop(self, source: Source) -> bool:
        with sessions.known_routes():
            if not await self._is_busy(source):
                return False
            content = await self._server.api.call("POST", f"{sessions.session_path(source.session_id)}/interrupt")
        return not content or self._read(wire.Interrupted, content).interrupted

    async def new_session(self, directory: str) -> str:
        sent = {"location": {"directory": directory}}
        with sessions.known_routes():
            content = await self._server.api.call("POST", "/api/session", body=sent, timeout=BOOT)
        return self._read(Data[wire.Session], content).data.id

    def _read(self, kind: type[T], content: bytes) -> T:
        try:
            return decode(kind, content)
        except ValueError as error:
            raise AgentRefused(f"OpenCode {self._server.name!r}: an unknown shape: {error}") from None

    async def words(self, source: Source) -> str:
        return await sessions.last_words(self._server.api, source)

    async def exclusions(self, source: Source) -> Excludes:  # noqa: ARG002 (demanded by the protocol)
        """Return that no file is excluded: nobody has seen where OpenCode 2 tells its rules."""
        return nothing_excluded

    async def listed(self, since_s: float) -> tuple[Listed, ...]:
        with sessions.known_routes():
            busy = await self._server.busy("")
            found = await sessions.newest(self._server.api)
            for session_id in busy - {one.id for one in found}:
                with contextlib.suppress(NotThere):
                    found.append(await sessions.info(self._server.api, session_id))
        return tuple(
            self._listed(one, is_busy=one.id in busy)
            for one in found
            if one.parent_id is None and (one.id in busy or one.time.updated >= since_s * 1000)
        )

    def _listed(self, session: wire.Session, *, is_busy: bool) -> Listed:
        source = replace(
            self._server.origin(session.location.directory), session_id=session.id, session_title=session.title
        )
        target = Target(source, adapter.capabilities.agent_name, ABILITIES)
        return Listed(target, "busy" if is_busy else "idle", session.time.updated / 1000)


def _words(error: object) -> str:
    told = error if isinstance(error, dict) else {}
    return str(told.get("message") or told.get("type") or "")


def sight_of(messages: list[wire.Message], record_id: str, state: SessionState) -> Sight:
    """Return what the messages, the newest first, show of the prompt with this id; without it, all are after it.

    Prompts that one step takes are answered together. An error does not end the turn if a step follows: the step is
    tried again, or the server was restarted and takes the turn up again.
    """
    after = list(takewhile(lambda one: one.id != record_id, messages))[::-1]
    answered = list(dropwhile(lambda one: one.type != "assistant", after))
    turn = list(takewhile(lambda one: one.type != "user", answered))
    if not turn:
        return Sight(state, "admitted")
    last = [one for one in turn if one.type == "assistant"][-1]
    is_over = state == "idle" or len(turn) < len(answered)
    ended_s = None if last.time.completed is None else last.time.completed / 1000
    if last.error is None and ended_s is not None and last.finish not in GOES_ON:
        return Sight(state, "finished", ended_s=ended_s)
    if last.error is not None and is_over:
        if last.error.type == "aborted":
            return Sight(state, "stopped", ended_s=ended_s)
        return Sight(state, "failed", reason=last.error.message or last.error.type, ended_s=ended_s)
    if len(turn) < len(answered):  # a later prompt took the turn over
        return Sight(state, "failed", reason=KILLED) if ended_s is None else Sight(state, "finished", ended_s=ended_s)
    if state == "idle" and ended_s is not None:
        return Sight(state, "stopped", ended_s=ended_s)
    tools = [part.name for part in last.content if part.state is not None and part.state.status == "running"]
    return Sight(state, "running", tool=tools[-1] if tools else "")
