"""A server whose URL a person gave: it finds out at each connection which version of OpenCode answers there."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncGenerator, Callable

from hermes.agents.opencode.client import OpenCodeServer
from hermes.agents.opencode2.client import OpenCode2Server
from hermes.agents.prompting import PromptWay
from hermes.agents.server import AgentServer, Connected, Disposed, Heard
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
        self._now: AgentServer = first
        self._has_connected = False

    @property
    def agent(self) -> str:
        """The name of the adapter of its asks."""
        return self._now.agent

    @property
    def longest_pause_s(self) -> float:
        """The longest pause between two attempts to connect."""
        return self._first.longest_pause_s

    @property
    def heard_s(self) -> float:
        """Return the time (epoch) until which all events of the version that answers now are known."""
        return self._now.heard_s

    @property
    def prompts(self) -> PromptWay:
        """The way of prompts to its sessions."""
        return self._now.prompts

    async def aclose(self) -> None:
        """Close all connections."""
        await self._first.aclose()
        await self._second.aclose()

    async def listen(self) -> AsyncGenerator[Connected | Heard | Disposed, None]:
        """Connect to the version that answers, and yield what the events tell until the stream breaks.

        Version 1 is tried first: 1.1.53 forwards a request for an unknown route to the internet.
        """
        for server in (self._first, self._second):
            is_connected = False
            try:
                async with contextlib.aclosing(server.listen()) as stream:
                    async for one in stream:
                        is_connected = self._has_connected = True
                        self._now = server
                        yield one
            except Unauthorized:
                raise
            except AgentRefused:
                if is_connected or server is self._second:
                    raise
            else:
                return

    async def directories(self, since_s: float, *, now: Callable[[], float] = time.time) -> tuple[str, ...]:
        """Return the directories whose sessions were updated in the last `since_s` seconds."""
        return await self._now.directories(since_s, now=now)

    async def questions(self, directory: str) -> tuple[Ask, ...]:
        """Return the pending asks of a directory."""
        return await self._now.questions(directory)

    async def busy(self, directory: str) -> frozenset[str]:
        """Return the ids of the sessions of a directory that are not idle."""
        return await self._now.busy(directory)

    async def active_since(self, since_s: float) -> tuple[tuple[str, str], ...]:
        """Return the id and the directory of each session that was updated since then (epoch)."""
        return await self._now.active_since(since_s)

    async def turn(self, session_id: str, directory: str) -> Turn | None:
        """Return the last turn of a session if it has ended by itself."""
        return await self._now.turn(session_id, directory)

    async def context(self, ask: Ask) -> Ask:
        """Return the ask with its titles, the agent's last words and the input of its tool."""
        return await self._of(ask).context(ask)

    def sees_open(self, ask: Ask) -> bool:
        """Tell whether an unbroken event stream shows that the ask still waits."""
        return self._of(ask).sees_open(ask)

    async def verdict(self, ask: Ask) -> Verdict:
        """Return the state of an ask, which ends with the process of its version."""
        if self._has_connected and self._of(ask) is not self._now:
            return Dead()
        return await self._of(ask).verdict(ask)

    async def reply(self, ask: Ask, answers: Response) -> None:
        """Send the answers to questions, or the reply to a permission."""
        await self._of(ask).reply(ask, answers)

    async def reject(self, ask: Ask) -> None:
        """Reject an ask."""
        await self._of(ask).reject(ask)

    def _of(self, ask: Ask) -> AgentServer:
        """Return the client that knows this ask: another version may answer there since."""
        return self._second if ask.source.agent == self._second.agent else self._first
