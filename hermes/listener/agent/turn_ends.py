"""Finds out what a turn came to: an event of its server says only that a session stopped."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Final

from hermes.agents.server import AgentServer
from hermes.errors import AgentError, NotThere, StoreError
from hermes.listener.agent.intake import Intake
from hermes.listener.background import Background
from hermes.listener.notices import Notices
from hermes.model.signals import Quiet, TurnEnded

log = logging.getLogger(__name__)

UPDATED_S: Final = 12 * 3600.0
"""A turn that fails does not count as an update of its session, so sessions are looked at whose prompt is this old."""
PAUSES_S: Final = (0.0, 1.0, 5.0, 30.0, 120.0)
"""The pauses before each try to read what a turn came to, and to save it."""


class TurnEnds:
    """Looks at the sessions of one server in the background, so that no question has to wait for it.

    All times are epoch seconds. If nobody wants notices, it looks at nothing.
    """

    def __init__(
        self,
        server: AgentServer,
        intake: Intake,
        notices: Notices,
        background: Background,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._server = server
        self._intake = intake
        self._notices = notices
        self._background = background
        self._sleep = sleep
        self._under_way: dict[object, float] = {}
        self._rest = asyncio.Event()
        self._rest.set()

    def look(self, session_id: str, directory: str, since_s: float) -> None:
        """Report the last turn of this session soon, if it has ended by itself, and not before `since_s`."""
        self._spawn(since_s, partial(self._report, [(session_id, directory)], since_s))

    def look_back(self, since_s: float) -> None:
        """Report the turns that ended after this time, soon: no event told of them."""
        self._spawn(since_s, partial(self._report_all, since_s))

    def look_at_retries(self, *, is_running: bool = True) -> None:
        """Report soon which turns no longer try to reach their model: no event tells of it if their server ends.

        `is_running`: the server runs, and can be asked.
        """
        if self._notices.trying_at(self._server.name):
            self._background.spawn(self._report_retries(is_running=is_running))

    def unknown_since_s(self) -> float:
        """Return the time since which turns may have ended that are not reported yet; infinity if there is none."""
        return min(self._under_way.values(), default=math.inf)

    async def known(self, longest_s: float) -> None:
        """Return when nothing is looked at any more, or after this time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(longest_s):
                await self._rest.wait()

    def _spawn(self, since_s: float, report: Callable[[], Awaitable[list[tuple[str, str]]]]) -> None:
        if self._notices.rules.is_watching:
            look = object()
            self._under_way[look] = since_s
            self._rest.clear()
            self._background.spawn(self._until_known(look, since_s, report))

    async def _until_known(
        self, look: object, since_s: float, report: Callable[[], Awaitable[list[tuple[str, str]]]]
    ) -> None:
        """Report, and try again what could not be read. A look that is cancelled stays under way."""
        for pause_s in PAUSES_S:
            await self._sleep(pause_s)
            try:
                left = await report()
            except (AgentError, StoreError) as error:
                log.info("server %s: the turns that ended are not known yet: %s", self._server.name, error)
                continue
            if not left:
                break
            report = partial(self._report, left, since_s)
        else:
            log.warning("server %s: nobody is told of a turn that ended: it could not be read", self._server.name)
        del self._under_way[look]
        if not self._under_way:
            self._rest.set()

    async def _report(self, sessions: list[tuple[str, str]], since_s: float) -> list[tuple[str, str]]:
        """Report the last turn of each session; return those that could not be read now. Raises NotSaved."""
        left = []
        for session_id, directory in sessions:
            try:
                turn = await self._server.turn(session_id, directory)
            except NotThere:
                continue  # the session was deleted
            except AgentError as error:
                log.info("server %s: session %s is not known yet: %s", self._server.name, session_id, error)
                left.append((session_id, directory))
                continue
            if turn is not None and turn.ended_s >= since_s:
                await self._intake.take(TurnEnded(turn), heard_by=self._server.name)
        return left

    async def _report_all(self, since_s: float) -> list[tuple[str, str]]:
        return await self._report(list(await self._server.active_since(since_s - UPDATED_S)), since_s)

    async def _report_retries(self, *, is_running: bool) -> None:
        for source in self._notices.trying_at(self._server.name):
            try:
                if not is_running or source.session_id not in await self._server.busy(source.directory):
                    await self._intake.take(Quiet(source.session_id), heard_by=self._server.name)
            except (AgentError, StoreError) as error:  # it is looked at again
                log.info("server %s: session %s is not known yet: %s", self._server.name, source.session_id, error)
