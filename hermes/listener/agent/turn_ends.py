"""Finds out what a turn came to: an event of its server says only that a session stopped."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from hermes.errors import AgentError, NotThere, StoreError
from hermes.model.signals import TurnEnded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hermes.agents.server import AgentServer
    from hermes.listener.agent.intake import Intake
    from hermes.listener.background import Background

log = logging.getLogger(__name__)

UPDATED_S: Final = 12 * 3600.0
"""A turn that fails does not count as an update of its session, so sessions are looked at whose prompt is this old."""
PAUSES_S: Final = (0.0, 1.0, 5.0, 30.0, 120.0)
"""The pauses before each try to read what a turn came to, and to save it."""


class TurnEnds:
    """Looks at the sessions of one server in the background, so that no question has to wait for it."""

    def __init__(
        self,
        server: AgentServer,
        intake: Intake,
        background: Background,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._server = server
        self._intake = intake
        self._background = background
        self._sleep = sleep

    def look(self, session_id: str, directory: str) -> None:
        """Report the last turn of this session soon, if it has ended by itself."""
        self._background.spawn(self._until_known(lambda: self._report(session_id, directory)))

    def look_back(self, since_s: float) -> None:
        """Report the turns that ended after this time (epoch), soon: no event told of them."""
        self._background.spawn(self._until_known(lambda: self._report_all(since_s)))

    async def _until_known(self, report: Callable[[], Awaitable[None]]) -> None:
        for pause_s in PAUSES_S:
            await self._sleep(pause_s)
            try:
                await report()
            except (AgentError, StoreError) as error:
                log.info("server %s: a turn that ended is not known yet: %s", self._server.name, error)
            else:
                return
        log.warning("server %s: nobody is told of a turn that ended: it could not be read", self._server.name)

    async def _report(self, session_id: str, directory: str, *, since_s: float = 0.0) -> None:
        try:
            turn = await self._server.turn(session_id, directory)
        except NotThere:
            return  # the session was deleted
        if turn is not None and turn.ended_s >= since_s:
            await self._intake.take(TurnEnded(turn), heard_by=self._server.name)

    async def _report_all(self, since_s: float) -> None:
        for session_id, directory in await self._server.active_since(since_s - UPDATED_S):
            await self._report(session_id, directory, since_s=since_s)
