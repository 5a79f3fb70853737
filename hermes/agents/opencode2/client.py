"""The client of one OpenCode 2 server: it finds the server, follows its events, and sends the answers.

There is one event stream for all directories, and it has no replay. An answer is sent under the session of its form; a
form of an MCP server belongs to the session "global" and must name its directory. A refusal has a `_tag`; a 404 without
one means that this version has no such route.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from typing import Any, Final

from hermes.agents.http import PROBE, Api, path_of, translated
from hermes.agents.opencode2 import adapter, proof, sessions, wire
from hermes.agents.opencode2.discovery import Address, Locate
from hermes.agents.opencode2.forms import GLOBAL, Field, body, fields_of, is_lost, told
from hermes.agents.opencode2.prompting import OpenCode2Prompts
from hermes.agents.prompting import PromptWay
from hermes.agents.questions import read_reply
from hermes.agents.server import Client, Connected, Disposed, Heard, Pending, numbers
from hermes.agents.turns import Beginnings
from hermes.agents.wire import Data, decode
from hermes.errors import AgentAway, AgentError, AgentRefused, NotRunning, NotThere, PayloadError, Unfit
from hermes.model.answer import Refused, Response
from hermes.model.ask import Ask
from hermes.model.notice import Turn
from hermes.model.signals import Asked, Retrying
from hermes.model.verdicts import AnsweredWith, Dead, StillOpen, Unproven, Verdict, WasDismissed

_LOG = logging.getLogger(__name__)

LONGEST_PAUSE_S: Final = 2.0
"""A look for the file costs next to nothing, so a server that starts is found within this time."""
_PAUSES_S: Final = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
_SWEEP_PAUSES_S: Final = (0.05, 0.1, 0.2)
_DAY_S: Final = 86400.0
_SWEEPING: Final = (2, 0)
"""The versions that end a turn in which nothing happens for `_SWEPT_AFTER_S`."""
_SWEPT_AFTER_S: Final = 3600.0


class OpenCode2Server(Client):
    """A server, found again at each connection. It sends no event if nothing happens, only heartbeats.

    Its methods raise what those of `Api` raise, and AgentAway without a server, unless their docstrings say otherwise.
    """

    agent = adapter.AGENT
    longest_pause_s = LONGEST_PAUSE_S

    def __init__(
        self,
        name: str,
        locate: Locate,
        *,
        machine: str,
        host: str = "",
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        now: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(name, machine, host)
        self._locate = locate
        self._sleep = sleep
        self._now = now
        self._api: Api | None = None
        self._address: Address | None = None
        self._is_first_shape = False
        self._gives_up_after_s = 0.0
        self._open: OrderedDict[str, tuple[Field, ...]] = OrderedDict()
        self._replies: OrderedDict[str, Response] = OrderedDict()
        self._swept: OrderedDict[str, None] = OrderedDict()
        self._beginnings = Beginnings()
        self.prompts = OpenCode2Prompts(self)

    async def aclose(self) -> None:
        api, self._api = self._api, None
        if api is not None:
            await api.aclose()

    async def way(self) -> PromptWay:
        return self.prompts

    # --- the connection ---------------------------------------------------------------------------------------------

    async def connect(self) -> wire.Info:
        """Find the server and ask what it is, within about a second; later calls go to this one.

        Raises AgentAway also if another server answers than the one that its file names.
        """
        address = self._locate()
        if address != self._address or self._api is None:
            await self.aclose()
            with translated(f"OpenCode {self.name!r}"):
                self._api = Api(
                    self.name, address.url, events="/api/event", username=address.username, password=address.password
                )
            self._address = address
        info, is_first_shape = await self._probe(self._api)
        if address.pid is not None and info.pid != address.pid:
            raise AgentAway(f"OpenCode {self.name!r}: another process answers at {address.url} than its file names")
        self._is_first_shape = is_first_shape
        self._gives_up_after_s = _SWEPT_AFTER_S if numbers(info.version)[:2] == _SWEEPING else 0.0
        return info

    async def _probe(self, api: Api) -> tuple[wire.Info, bool]:
        """Return version and process, and whether its routes are those of 7 August, which differ from 2.0.26's."""
        try:
            return await api.get(wire.Info, "/api/info", timeout=PROBE), False
        except NotThere as error:
            if error.tag:
                raise
        return await api.get(wire.Info, "/api/health", timeout=PROBE), True

    @property
    def api(self) -> Api:
        """The connections of now. They send the password, so each use looks whether their server still runs.

        Raises NotRunning: it does not, or none was found yet; and what `Locate` raises.
        """
        if self._api is None or self._locate() != self._address:
            raise NotRunning(f"OpenCode {self.name!r}: its server was not found yet, or has ended")
        return self._api

    async def listen(self) -> AsyncGenerator[Connected | Heard | Disposed, None]:
        info = await self.connect()
        self._open.clear()
        try:
            async with self.api.listening() as events:
                async for event in events:
                    self._hearing.note(self._now())
                    try:
                        read = decode(wire.Event, event.data)
                        heard = await self._signal(read)
                    except (ValueError, PayloadError) as error:
                        _LOG.warning("server %s: an event is ignored: %s", self.name, error)
                        continue
                    if read.type == "server.connected":
                        _LOG.info("server %s: following OpenCode %s, process %d", self.name, info.version, info.pid)
                        yield Connected(info.version)
                    if read.type == "location.shutdown":
                        yield Disposed(read.location.directory if read.location else "")
                    if heard is not None:
                        yield heard
        finally:
            self._open.clear()
            self._beginnings.forget()

    async def _signal(self, event: wire.Event) -> Heard | None:
        """Return what an event tells, and remember what a verdict may need. Raises PayloadError: of another shape."""
        self._note(event)
        if event.type not in adapter.KINDS:
            return None
        directory = event.location.directory if event.location else ""
        if event.type == "form.created" and not directory:
            directory = await self._place_of(event.data.get("form"))
        signal = adapter.read_event(event.type, event.data, self.origin(directory))
        self._beginnings.note(signal, self._now())
        if isinstance(signal, Retrying):
            return await self._titled(signal)
        if isinstance(signal, Asked):
            ask = self._noted(signal.ask)
            signal = replace(signal, ask=replace(ask, answerable=False) if is_lost(ask.source) else ask)
        return Heard(signal, directory)

    async def _titled(self, signal: Retrying) -> Heard | None:
        """Return the signal with title and directory of its session, None for a subagent."""
        with contextlib.suppress(AgentError):
            info = await sessions.info(self.api, signal.session_id)
            source = replace(signal.retry.source, session_title=info.title, directory=info.location.directory)
            heard = Heard(Retrying(replace(signal.retry, source=source)), source.directory)
            return heard if info.parent_id is None else None
        return Heard(signal, "")

    def _note(self, event: wire.Event) -> None:
        self.prompts.note(event)
        request_id = event.data.get("requestID") or event.data.get("id")
        if event.type in {"form.replied", "form.cancelled", "permission.replied"} and isinstance(request_id, str):
            fields = self._open.pop(request_id, None)
            if event.type == "permission.replied":
                sessions.keep(self._replies, request_id, read_reply(event.data, event.type))
            elif event.type == "form.replied" and fields is not None:
                sessions.keep(self._replies, request_id, told(fields, event.data.get("answer")))
        session_id = event.data.get("sessionID")
        if event.type == "session.execution.interrupted" and event.data.get("reason") == "inactivity":
            sessions.keep(self._swept, str(session_id), None)
        if event.type == "session.execution.started":
            self._swept.pop(str(session_id), None)

    def _noted(self, ask: Ask) -> Ask:
        """Remember that an ask is open, and return it with the time after which this version may give it up."""
        sessions.keep(self._open, ask.source.request_id or "", fields_of(ask))
        return replace(ask, capabilities=replace(ask.capabilities, gives_up_after_s=self._gives_up_after_s))

    async def _place_of(self, form: object) -> str:
        """Return the directory of a form that an event names without one, "" if it is in none that can be found.

        An AgentError breaks the stream, and the next connection lists the form.
        """
        wanted = form.get("id") if isinstance(form, dict) else None
        for directory in await self.directories(self._now() - _DAY_S):
            listed = await sessions.get(self.api, Data[list[Any]], f"{sessions.session_path(GLOBAL)}/form", directory)
            if any(isinstance(one, dict) and one.get("id") == wanted for one in listed):
                return directory
        return ""

    # --- directories and pending asks -------------------------------------------------------------------------------

    async def directories(self, since_s: float) -> tuple[str, ...]:
        """Return the directories that are loaded, or whose sessions were updated since then (epoch)."""
        listed = await sessions.newest(self.api)
        active = await sessions.get(self.api, Data[dict[str, Any]], "/api/session/active")
        recent = [one for one in listed if one.time.updated >= since_s * 1000 or one.id in active]
        for session_id in active.keys() - {one.id for one in listed}:
            with contextlib.suppress(NotThere):
                recent.append(await sessions.info(self.api, session_id))
        found = (*(one.location.directory for one in recent), *await sessions.loaded(self.api))
        return tuple(dict.fromkeys(directory for directory in found if directory))

    async def pending(self, directory: str) -> Pending:
        """Return the pending asks of a directory, forms first. One of another shape is logged and left out."""
        path = "/api/form/request" if self._is_first_shape else "/api/form"
        forms = await sessions.get(self.api, Data[list[Any]], path, directory)
        forms += await sessions.get(self.api, Data[list[Any]], f"{sessions.session_path(GLOBAL)}/form", directory)
        permissions = await sessions.get(self.api, Data[list[Any]], "/api/permission/request", directory)
        found: dict[str, Ask] = {}
        for read, listed in ((adapter.read_question, forms), (adapter.read_permission_request, permissions)):
            for one in listed:
                try:
                    ask = self._noted(read(one, self.origin(directory)))
                    found[ask.source.request_id or ""] = ask
                except PayloadError as error:
                    _LOG.warning("server %s: a pending ask is left out: %s", self.name, error)
        return Pending(tuple(found.values()))

    async def busy(self, directory: str) -> frozenset[str]:  # noqa: ARG002 (demanded by the protocol)
        """Return the ids of the sessions, of all directories, whose turn has not ended."""
        return frozenset(await sessions.get(self.api, Data[dict[str, Any]], "/api/session/active"))

    # --- replies ----------------------------------------------------------------------------------------------------

    async def reply(self, ask: Ask, answers: Response) -> None:
        """Send the values of a form's fields, or the reply to a permission.

        Raises NotThere: it was settled before. Unfit: the server does not take this answer, and the ask stays open.
        """
        sent = adapter.reply_body(answers) if not isinstance(answers, tuple) else body(ask, answers)
        await self._settle(ask, "/reply", sent)
        sessions.keep(self._replies, ask.source.request_id or "", answers)

    async def reject(self, ask: Ask) -> None:
        """Cancel a form, or reject a permission. Raises NotThere: it was settled before."""
        if ask.permission is not None:
            await self.reply(ask, Refused())
        elif self._is_first_shape:
            await self._settle(ask, "/cancel", None)
        else:
            await self._settle(ask, "", None, method="DELETE")

    async def _settle(self, ask: Ask, verb: str, sent: object, *, method: str = "POST") -> None:
        source = ask.source
        params = sessions.at(source.directory) if source.session_id == GLOBAL else None
        try:
            with sessions.known_routes():
                await self.api.call(method, self._path(ask) + verb, params=params, body=sent)
        except AgentRefused as error:
            match error.tag:
                case "FormAlreadySettledError":
                    raise NotThere(str(error), tag=error.tag) from None
                case "FormInvalidAnswerError" | "InvalidRequestError":
                    # The same request would be refused again, but another answer may be taken.
                    raise Unfit(str(error), tag=error.tag, said=" ".join(error.said.split())) from None
            raise

    def _path(self, ask: Ask) -> str:
        kind = "form" if ask.permission is None else "permission"
        return sessions.session_path(ask.source.session_id) + path_of(kind, ask.source.request_id or "")

    # --- what became of an ask --------------------------------------------------------------------------------------

    def sees_open(self, ask: Ask) -> bool:
        """Tell whether the events show that it is open. A reply to one that is not is refused, and does nothing."""
        return ask.source.request_id in self._open

    async def verdict(self, ask: Ask) -> Verdict:
        """Return the state of an ask, by the table in proof.py; takes up to some 2 s.

        If the server does not run, the ask is gone: asks are kept in its memory alone.
        """
        try:
            self._locate()
        except NotRunning:
            return Dead()
        if is_lost(ask.source):
            return Unproven()  # another directory would say that it knows no such form
        found = await (self._state(ask) if ask.permission is None else self._is_pending(ask))
        if found is not None:
            return found
        judge = proof.judge if ask.permission is None else proof.judge_permission
        for pause_s in _PAUSES_S:
            verdict = judge(await self._evidence(ask))
            if not isinstance(verdict, proof.Settling):
                was_swept = verdict == Dead() and ask.source.session_id in self._swept
                return Dead(reason="swept") if was_swept else verdict
            await self._sleep(pause_s)
        # What was allowed may run for hours; a form of a running call is gone if its folder was closed.
        return Dead() if ask.permission is None else Unproven()

    async def _state(self, ask: Ask) -> Verdict | None:
        """Return the verdict that the state of a form gives; None if the server does not know the form."""
        directory = ask.source.directory if ask.source.session_id == GLOBAL else ""
        path = f"{self._path(ask)}/state" if self._is_first_shape else self._path(ask)
        try:
            with sessions.known_routes():
                told_of = await sessions.get(self.api, Data[dict[str, Any]], path, directory)
        except NotThere:
            return None
        kept: Any = told_of if self._is_first_shape else told_of.get("state")
        match kept:
            case {"status": "pending"}:
                return StillOpen()
            case {"status": "answered", "answer": answer}:
                try:
                    return AnsweredWith(told(fields_of(ask), answer))
                except PayloadError as error:
                    raise AgentRefused(f"OpenCode {self.name!r}: {error}") from None
            case {"status": "cancelled"}:
                return Dead(reason="swept") if await self._was_swept(ask.source.session_id) else WasDismissed()
            case _:
                raise AgentRefused(f"OpenCode {self.name!r}: a form has a state that Hermes does not know")

    async def _was_swept(self, session_id: str) -> bool:
        """Tell whether the turn was ended because nobody did anything; the event follows that of the form."""
        for pause_s in _SWEEP_PAUSES_S:
            if session_id in self._swept:
                return True
            await self._sleep(pause_s)
        return session_id in self._swept

    async def _is_pending(self, ask: Ask) -> Verdict | None:
        try:
            with sessions.known_routes():
                await sessions.get(self.api, Data[dict[str, Any]], self._path(ask))
        except NotThere:
            return None
        return StillOpen()

    async def _evidence(self, ask: Ask) -> proof.Evidence:
        # Read before the call: a turn that ends between the two reads would look like one whose server died.
        is_active = ask.source.session_id in await self.busy("")
        call = None
        with contextlib.suppress(NotThere):
            call = await sessions.call(self.api, ask.source)
        return proof.Evidence(call, is_active, self._replies.get(ask.source.request_id or ""))

    async def active_since(self, since_s: float) -> tuple[tuple[str, str], ...]:
        found = [
            one
            for one in await sessions.newest(self.api)
            if one.parent_id is None and one.time.updated >= since_s * 1000
        ]
        return tuple((one.id, one.location.directory) for one in found)

    async def turn(self, session_id: str, directory: str) -> Turn | None:
        return await sessions.last_turn(self.api, session_id, self.origin(directory), self._beginnings)

    async def context(self, ask: Ask) -> Ask:
        with contextlib.suppress(AgentError):
            ask = await sessions.context(self.api, ask, self._sleep)
        return ask
