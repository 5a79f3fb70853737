"""The client of one OpenCode server: it lists pending asks, sends replies, and finds out how an ask ended.

A request about a directory starts an instance of OpenCode there, so Hermes only uses directories that have sessions.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from hermes.agents.http import BOOT, PROBE, Api, path_of
from hermes.agents.opencode import engine2, events, proof, turns, wire
from hermes.agents.opencode.adapter import AGENT, read_permission_request, read_request, reply_body
from hermes.agents.opencode.permissions import completed
from hermes.agents.opencode.prompting import OpenCodePrompts
from hermes.agents.opencode.proof import Evidence
from hermes.agents.opencode.stream_memory import Living, Moment, StreamMemory
from hermes.agents.prompting import PromptWay
from hermes.agents.questions import with_permission
from hermes.agents.server import LONGEST_S, Client, Connected, Disposed, Heard, Pending, numbers
from hermes.agents.turns import Beginnings
from hermes.agents.wire import decode
from hermes.errors import AgentAway, AgentError, AgentRefused, NotThere, PayloadError, Unauthorized
from hermes.model.answer import Allowed, Response
from hermes.model.ask import Ask, Source
from hermes.model.notice import Turn
from hermes.model.signals import Replied, Signal
from hermes.model.verdicts import AnsweredWith, Verdict

_LOG = logging.getLogger(__name__)

_PAUSES_S = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.5)
"""The pauses between checks of an ask that is about to settle: some 2 s in all, without a flood of requests."""
_LOOKS, _LOOK_S = 5, 0.1
_ANCESTORS = 10
_RECENT = 8
_SESSIONS = 1000
_ONE_LIST = (1, 18, 33)  # the first version that was seen to list the sessions of all projects at once


class OpenCodeServer(Client):
    """A configured server. Its methods raise what those of `Api` raise, unless their docstrings say otherwise."""

    agent = AGENT
    longest_pause_s = LONGEST_S

    def __init__(
        self,
        api: Api,
        *,
        machine: str,
        host: str = "",
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(api.name, machine, host)
        self.memory = StreamMemory()
        self._living = Living()
        self._beginnings = Beginnings()
        self._sleep = sleep
        self._now = now
        self._monotonic = monotonic
        self._version: str | None = None
        self.api = api
        self.prompts: PromptWay = OpenCodePrompts(self, self.memory)

    async def aclose(self) -> None:
        await self.api.aclose()

    async def way(self) -> PromptWay:
        if self._version is None:  # nothing is connected, and the server may not be ready yet
            await self.health()
        return self.prompts

    # version, directories and pending asks

    async def health(self) -> str:
        """Return the version, or raise within about a second."""
        self._version = (await self.api.get(wire.Health, "/global/health", timeout=PROBE)).version
        return self._version

    async def directories(self, since_s: float) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.directory for one in await self.updated(since_s * 1000)))

    async def updated(self, since_ms: float) -> list[wire.Session]:
        """Return the sessions that were updated since then (epoch, in milliseconds), newest first."""
        found = await self._all_sessions({"start": int(since_ms), "limit": _SESSIONS})
        found.sort(key=lambda one: one.time.updated, reverse=True)
        return [one for one in found if one.time.updated >= since_ms]

    async def _all_sessions(self, recent: Mapping[str, int]) -> list[wire.Session]:
        version = self._version or await self.health()
        # Older versions are not tried: 1.1.53 forwards a request for an unknown route to the internet.
        if numbers(version) >= _ONE_LIST:
            with contextlib.suppress(AgentRefused):
                return await self._sessions("/experimental/session", recent)
        found = []
        for project in await self.api.get(list[wire.Project], "/project", timeout=BOOT):
            try:
                found += await self._sessions("/session", recent, project.worktree)
            except AgentRefused as error:
                _LOG.warning("%s; the sessions of one project are left out", error)
        return found

    async def _sessions(self, path: str, params: Mapping[str, int], directory: str = "") -> list[wire.Session]:
        return await self.api.get(list[wire.Session], path, directory, params=params, timeout=BOOT)

    async def pending(self, directory: str) -> Pending:
        """Return the pending asks of a directory, questions first, each kind in creation order, zombies too.

        Questions of the v2 engine are not listed, because their list would start that engine in the directory, which
        takes more than a second. They arrive as events. A request of another shape is logged and left out.
        """
        asked = await self.api.get(list[Any], "/question", directory, timeout=BOOT)
        permissions = await self._permissions(directory)
        asks = (
            *self._asks(asked, read_request, directory),
            *self._asks(permissions or [], read_permission_request, directory),
        )
        return Pending(asks, is_whole=permissions is not None)

    async def _permissions(self, directory: str) -> list[Any] | None:
        """Return the pending permission requests, or None if 1.18.33 refuses its list; events bring later ones."""
        try:
            return await self.api.get(list[Any], "/permission", directory)
        except Unauthorized:
            raise
        except AgentRefused as error:
            _LOG.info("server %s does not list its permissions now: %s", self.name, error)
            return None

    def _asks(self, requests: list[Any], read: Callable[[object, Source], Ask], directory: str) -> list[Ask]:
        found = []
        for request in requests:
            try:
                found.append(read(request, self.origin(directory)))
            except PayloadError as error:
                _LOG.warning("server %s: a pending question is left out: %s", self.name, error)
        return found

    async def busy(self, directory: str) -> frozenset[str]:
        return frozenset(await self.api.get(dict[str, wire.Status], "/session/status", directory))

    # replies

    async def reply(self, ask: Ask, answers: Response) -> None:
        """Send answers. A normal return proves nothing, because 1.1.53 accepts anything: see `verdict`."""
        await self._say(ask, "reply", reply_body(answers))

    async def reject(self, ask: Ask) -> None:
        """Dismiss a question, or refuse a permission; the turn ends. A normal return proves nothing, as with `reply`.

        Neither may be sent for an ask that is Dead: in 1.1.53, a reply to a zombie, or a rejection of it, also ends
        the turn that now runs in its session.
        """
        if ask.permission is None:
            await self._say(ask, "reject")
        else:
            await self._say(ask, "reply", {"reply": "reject"})

    async def _say(self, ask: Ask, what: str, body: object = None) -> None:
        if ask.source.request_id is None:
            raise NotThere(f"OpenCode {self.name!r}: the question has no request id yet")
        if not ask.answerable:
            raise AgentRefused(f"OpenCode {self.name!r}: {ask.source.request_id} can be answered in its terminal only")
        path = path_of("question" if ask.permission is None else "permission", ask.source.request_id, what)
        await self.api.call("POST", path, ask.source.directory, body=body)

    # the state of an ask

    def sees_open(self, ask: Ask) -> bool:
        """Tell whether the event stream shows this ask alive, and has not broken since the ask began."""
        return self._living.is_alive(ask.source.request_id or "", at=self._moment())

    def _note(self, event: wire.Event, signal: Signal | None) -> None:
        """Remember the facts of an event from this server's stream, and of its signal.

        Raises:
            ValueError: its properties have another shape.
        """
        at = self._moment()
        self._hearing.note(at[1])
        self._living.note(event.type, event.properties, at=at)
        self.memory.note(event)
        if event.type != "session.error":  # it may be about something else than the turn
            self._beginnings.note(signal, self._now())
        if isinstance(signal, Replied):
            self.memory.note_reply(signal)

    def _moment(self) -> Moment:
        return self._monotonic(), self._now()

    async def verdict(self, ask: Ask) -> Verdict:
        """Return the state of an ask, by the table in proof.py; takes up to some 2 s after a reply.

        An ask belongs to this server if it came from this server (`source.server`), or if this server lists it now.
        Raises AgentAway also if a question was answered and its tool does not end within these 2 s.
        """
        if not ask.answerable:
            heard = self.memory.reply(ask.source.request_id or "")
            return await engine2.verdict(self.api, ask.source, heard)
        judge = proof.judge if ask.permission is None else proof.judge_permission
        for pause_s in _PAUSES_S:
            verdict = judge(await self._evidence(ask))
            if not isinstance(verdict, proof.Settling):
                return verdict
            await self._sleep(pause_s)
        if ask.permission is not None:
            # The permission is no longer pending. Its tool runs, or needs longer to report a refusal.
            heard = self.memory.reply(ask.source.request_id or "")
            return AnsweredWith(Allowed(), "list") if heard is None else AnsweredWith(heard, "event")
        raise AgentAway(f"OpenCode {self.name!r}: {ask.source.request_id} was answered, its tool goes on")

    async def _evidence(self, ask: Ask) -> Evidence:
        source = ask.source
        listed = await self._lists(ask)
        busy = source.session_id in await self.busy(source.directory)
        # Read before the part. In the other order, a tool that ends between the two reads would show a running part and
        # a newer message, like a call that the model has abandoned.
        newest = await self._newest_of_model(source) if busy else ()
        message = await self._message(source)
        part = proof.tool_part(message, source)
        went_on = message is not None and any(proof.is_of_later_turn(info, message.info) for info in newest)
        over = went_on or not busy or (part is not None and part.ended)
        return Evidence(
            # List again: an ask that was answered after the first list is not listed any more, and is no zombie.
            listed=await self._lists(ask) if listed and over else listed,
            ours=bool(listed) or source.server == self.name,
            busy=busy,
            part=part,
            known=message is not None or await self._knows(source),
            gone=message is None and source.message_id is not None,
            went_on=went_on,
            heard=self.memory.reply(source.request_id or ""),
        )

    async def _lists(self, ask: Ask) -> bool | None:
        """Tell whether the server lists the ask as pending; None if it refuses to list its permissions."""
        source = ask.source
        if ask.permission is not None:
            permissions = await self._permissions(source.directory)
            return None if permissions is None else any(proof.is_permission_of(one, source) for one in permissions)
        for request in await self.api.get(list[Any], "/question", source.directory):
            with contextlib.suppress(PayloadError):
                if proof.same(read_request(request, source).source, source):
                    return True
        return False

    async def _message(self, source: Source) -> wire.Message | None:
        """Return the message that asked; None if the ask names no message, or the message is gone."""
        if source.message_id is None:
            return None
        path = path_of("session", source.session_id, "message", source.message_id)
        try:
            return await self.api.get(wire.Message, path, source.directory)
        except NotThere:
            return None

    async def _knows(self, source: Source) -> bool:
        try:
            await self.api.get(wire.Session, path_of("session", source.session_id), source.directory)
        except NotThere:
            return False
        return True

    async def _newest_of_model(self, source: Source) -> tuple[wire.Info, ...]:
        """Return the heads of the model's newest messages. Prompts do not count: they can be queued."""
        try:
            infos = [message.info for message in await self._newest(source)]
        except NotThere:
            return ()
        return tuple(info for info in infos if info.role == "assistant")

    async def _newest(self, source: Source) -> list[wire.Message]:
        path = path_of("session", source.session_id, "message")
        return await self.api.get(list[wire.Message], path, source.directory, params={"limit": _RECENT})

    # turns

    async def active_since(self, since_s: float) -> tuple[tuple[str, str], ...]:
        found = await self.updated(since_s * 1000)
        return tuple((one.id, one.directory) for one in found if one.parent_id is None)

    async def turn(self, session_id: str, directory: str) -> Turn | None:
        session = await self._info(session_id, directory)
        return await turns.last_turn(self.api, session, self.origin(directory), self._beginnings, sleep=self._sleep)

    # the context of an ask

    async def context(self, ask: Ask) -> Ask:
        """Return the ask with the input of its tool, its session's title, the root session's title and the last text.

        Only a permission gets the input, and only a subagent's ask the root title. Titles and texts that the event
        stream has brought are not requested. Raises no AgentError: a fact that cannot be read stays as it was.
        """
        with contextlib.suppress(AgentError):
            ask = await self._with_input(ask)
        source = ask.source
        heard = self.memory.last_text(source)
        if heard is not None:
            source = replace(source, last_text=heard)
        try:
            source = await self._titled(source)
            if heard is None:
                source = replace(source, last_text=await self._last_text(source) or source.last_text)
        except AgentError as error:
            _LOG.info("request %s goes without its context: %s", source.request_id, error)
        return replace(ask, source=source)

    async def _with_input(self, ask: Ask) -> Ask:
        """Return a permission with the input of its tool, which 1.1.53 writes some ms after the request."""
        for _ in range(_LOOKS):
            if ask.permission is None or not ask.permission.partial or ask.source.message_id is None:
                break
            message = await self._message(ask.source)
            calls = [part for part in (message.parts if message else ()) if part.call_id == ask.source.call_id]
            if calls and calls[-1].state is not None and calls[-1].state.status != "pending":
                return with_permission(ask, completed(ask.permission, calls[-1].state.input))
            await self._sleep(_LOOK_S)
        return ask

    async def _titled(self, source: Source) -> Source:
        own = root = await self._info(source.session_id, source.directory)
        for _ in range(_ANCESTORS):
            if root.parent_id is None:
                break
            root = await self._info(root.parent_id, source.directory)
        titled = replace(source, session_title=own.title)
        return titled if root is own else replace(titled, root_title=root.title, root_id=root.id)

    async def _info(self, session_id: str, directory: str) -> wire.Session:
        known = self.memory.info(session_id)
        if known is None:
            known = await self.api.get(wire.Session, path_of("session", session_id), directory)
            self.memory.keep(known)
        return known

    async def _last_text(self, source: Source) -> str:
        """Read the model's last text. In 1.1.53 it is stored some ms after the question, like the question's call."""
        messages: list[wire.Message] = []
        for _ in range(_LOOKS):
            messages = await self._newest(source)
            calls = {part.call_id for message in messages for part in message.parts}
            if source.call_id is None or source.call_id in calls:
                break
            await self._sleep(_LOOK_S)
        return turns.said(messages)[-self.memory.longest :]

    async def listen(self) -> AsyncGenerator[Connected | Heard | Disposed, None]:
        # All directories in one stream, which survives their dispose, but has no replay.
        version = await self.health()  # has a short time-out: 1.18.33 never answers a request that comes too early
        try:
            async with self.api.listening() as heard:
                async for event in heard:
                    for one in self._told(event.data, version):
                        self._living.is_read = False  # the caller may be slow, or never ask for the next event
                        yield one
                        self._living.is_read = True
        finally:
            self._version = None  # another one may start there
            self._living.forget()
            self._beginnings.forget()

    def _told(self, data: str, version: str) -> Iterator[Connected | Heard | Disposed]:
        """Note an event, and yield what the caller has to know of it."""
        try:
            read = decode(wire.Event, data)
            signal = events.signal_of(read, self.origin(read.directory), self.memory)
            self._note(read, signal)
        except (ValueError, PayloadError) as error:
            _LOG.warning("server %s: an event is ignored: %s", self.name, error)
            return
        if read.type == "server.connected":
            _LOG.info("server %s: following OpenCode %s", self.name, version)
            yield Connected(version)
        if read.type in events.DISPOSED:
            yield Disposed(read.directory if read.type == events.INSTANCE_DISPOSED else "")
        if signal is not None:
            yield Heard(signal, read.directory)
