"""A server whose URL a person gave: it finds out at each connection which version of OpenCode answers there."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator

from hermes.agents.opencode.client import OpenCodeServer
from hermes.agents.opencode2.client import OpenCode2Server
from hermes.agents.prompting import PromptWay
from hermes.agents.server import Connected, Disposed, Heard, Pending
from hermes.errors import AgentRefused, Unauthorized
from hermes.model.answer import Response
from hermes.model.ask import Ask
from hermes.model.notice import Turn
from hermes.model.verdicts import Dead, Verdict


class EitherServer:
    """An OpenCode 1 or 2; before the first connection it counts as a 1."""

    def __init__(self, first: OpenCodeServer, second: OpenCode2Server) -> None:
        self.name = first.name
        self._first = first
        self._second = second
        self._now: OpenCodeServer | OpenCode2Server = first
        self._has_connected = False

    @property
    def agent(self) -> str:
        return self._now.agent

    @property
    def longest_pause_s(self) -> float:
        return self._first.longest_pause_s

    @property
    def heard_s(self) -> float:
        return self._now.heard_s

    async def aclose(self) -> None:
        await self._first.aclose()
        await self._second.aclose()

    async def connect(self) -> None:
        """Find out which version answers.

        Version 1 is tried first: 1.1.53 forwards a request for an unknown route to the internet.
        """
        try:
            await self._first.health()
            self._now = self._first
        except Unauthorized:
            raise
        except AgentRefused:
            await self._second.connect()
            self._now = self._second
        self._has_connected = True

    async def way(self) -> PromptWay:
        """Return the way of prompts to the version that answers: a 1 would know no session of a 2."""
        if not self._has_connected:
            await self.connect()
        return await self._now.way()

    async def listen(self) -> AsyncGenerator[Connected | Heard | Disposed, None]:
        """Connect to the version that answers, and yield what the events tell until the stream breaks."""
        await self.connect()
        async with contextlib.aclosing(self._now.listen()) as stream:
            async for one in stream:
                yield one

    async def directories(self, since_s: float) -> tuple[str, ...]:
        return await self._now.directories(since_s)

    async def pending(self, directory: str) -> Pending:
        return await self._now.pending(directory)

    async def busy(self, directory: str) -> frozenset[str]:
        return await self._now.busy(directory)

    async def active_since(self, since_s: float) -> tuple[tuple[str, str], ...]:
        return await self._now.active_since(since_s)

    async def turn(self, session_id: str, directory: str) -> Turn | None:
        return await self._now.turn(session_id, directory)

    async def context(self, ask: Ask) -> Ask:
        return await self._of(ask).context(ask)

    def sees_open(self, ask: Ask) -> bool:
        return self._of(ask).sees_open(ask)

    async def verdict(self, ask: Ask) -> Verdict:
        """Return the state of an ask, which ends with the process of its version."""
        if self._has_connected and self._of(ask) is not self._now:
            return Dead()
        return await self._of(ask).verdict(ask)

    async def reply(self, ask: Ask, answers: Response) -> None:
        await self._of(ask).reply(ask, answers)

    async def reject(self, ask: Ask) -> None:
        await self._of(ask).reject(ask)

    def _of(self, ask: Ask) -> OpenCodeServer | OpenCode2Server:
        """Return the client that knows this ask: another version may answer there since."""
        return self._second if ask.source.agent == self._second.agent else self._first
