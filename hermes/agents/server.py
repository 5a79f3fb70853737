"""The interface of an agent's server to the listener, and the loop that follows its events and connects again.

An event stream has no replay. So the caller must list the pending asks after every `Connected` and compare: subscribe
first, then list.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, Self

from hermes.agents.prompting import HasPrompts
from hermes.errors import AgentAway, AgentError, NotRunning
from hermes.model.answer import Response
from hermes.model.ask import Ask, Source
from hermes.model.notice import Turn
from hermes.model.signals import Signal
from hermes.model.verdicts import Verdict

_LOG = logging.getLogger(__name__)

FIRST_S, LONGEST_S = 0.2, 15.0
"""The pauses between two attempts to connect grow from the first to the second."""
LATE_S = 60.0
"""While the machine is awake, every event is read within this time after it happened."""


@dataclass(frozen=True, slots=True)
class Pending:
    """The pending asks that a server lists; unless the list `is_whole`, it may have more."""

    asks: tuple[Ask, ...]
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Connected:
    """The stream is connected, so that no later event is missed. The caller must list the earlier asks."""

    version: str


@dataclass(frozen=True, slots=True)
class Lost:
    """The stream broke or could not be connected; Hermes tries again. Repeated errors of one class yield one `Lost`."""

    error: AgentError


@dataclass(frozen=True, slots=True)
class Heard:
    """A signal and the directory that it came from ("" if it has none)."""

    signal: Signal
    directory: str


@dataclass(frozen=True, slots=True)
class Disposed:
    """The instance of this directory ("": of every directory) was disposed, and all of its pending asks are gone."""

    directory: str


Followed = Connected | Lost | Heard | Disposed


class Hearing:
    """Knows until when the events of a stream are known.

    An event that is read now may have happened before the machine slept or stood still, and what happened meanwhile may
    be lost with the connection. But it happened after the moment in which an event was read `LATE_S` before.
    """

    def __init__(self) -> None:
        self.until_s = self._next_s = 0.0

    def note(self, at_s: float) -> None:
        """Note that an event was read at this time (epoch)."""
        if abs(at_s - self._next_s) >= LATE_S:  # the clock may be set back
            self.until_s, self._next_s = min(self._next_s, at_s), at_s


class Client(ABC):
    """The base of the clients of all servers. Close one with `aclose()`, or use it with `async with`.

    `machine` is the id of this machine, and `host` its name for people.
    """

    agent: str

    def __init__(self, name: str, machine: str, host: str) -> None:
        self.name = name
        self.machine = machine
        self.host = host
        self._hearing = Hearing()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @abstractmethod
    async def aclose(self) -> None:
        """Close all connections."""

    @property
    def heard_s(self) -> float:
        """Return the time (epoch) until which all its events are known, see `Hearing`; 0 while nothing is known."""
        return self._hearing.until_s

    def origin(self, directory: str) -> Source:
        """Return a Source, without ids, for the asks of this server in a directory."""
        return Source(self.agent, self.machine, session_id="", directory=directory, server=self.name, host=self.host)


class AgentServer(HasPrompts, Protocol):
    """One server of an agent. Each method raises AgentAway, Unauthorized, NotThere or AgentRefused, unless it says."""

    name: str

    @property
    def longest_pause_s(self) -> float:
        """The longest pause between two attempts to connect."""

    @property
    def heard_s(self) -> float:
        """Return the time (epoch) until which all its events are known, see `Hearing`; 0 while nothing is known."""

    async def connect(self) -> object:
        """Find the server and its version. `listen` does so itself; the other methods need one of the two before."""

    def listen(self) -> AsyncGenerator[Connected | Heard | Disposed, None]:
        """Connect, and yield what its events tell until the stream breaks. `follow` does so again and again."""

    async def aclose(self) -> None:
        """Close all connections."""

    async def directories(self, since_s: float) -> tuple[str, ...]:
        """Return the directories whose sessions were updated since then (epoch), newest first."""

    async def pending(self, directory: str) -> Pending:
        """Return the pending asks of a directory."""

    async def busy(self, directory: str) -> frozenset[str]:
        """Return the ids of the sessions of a directory that are not idle."""

    async def active_since(self, since_s: float) -> tuple[tuple[str, str], ...]:
        """Return the id and the directory of each session that was updated since then (epoch); no subagent's."""

    async def turn(self, session_id: str, directory: str) -> Turn | None:
        """Return the last turn of a session if it has ended by itself; None otherwise, and for a subagent."""

    async def context(self, ask: Ask) -> Ask:
        """Return the ask with its titles, the agent's last words and the input of its tool. Raises no AgentError."""

    def sees_open(self, ask: Ask) -> bool:
        """Tell whether an unbroken event stream shows that the ask still waits."""

    async def verdict(self, ask: Ask) -> Verdict:
        """Return the state of an ask."""

    async def reply(self, ask: Ask, answers: Response) -> None:
        """Send the answers to questions, or the reply to a permission. Raises Unfit if they do not fit."""

    async def reject(self, ask: Ask) -> None:
        """Reject an ask."""


def numbers(version: str) -> tuple[int, ...]:
    """Return a version as numbers that can be compared: (1, 18, 33)."""
    return tuple(int(number) for number in re.findall(r"\d{1,9}", version)[:3])


async def follow(
    name: str,
    listen: Callable[[], AsyncGenerator[Connected | Heard | Disposed, None]],
    *,
    longest_s: float = LONGEST_S,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> AsyncGenerator[Followed, None]:
    """Follow a server without end: `listen` connects and yields until its stream breaks. Raises no AgentError.

    The pauses between attempts grow from 0.2 s to `longest_s`, and start at 0.2 s again after an attempt that lasted
    longer than that. To end it, close it (`contextlib.aclosing`) or cancel the task that iterates.
    """
    pause_s, told = FIRST_S, None
    while True:
        began_s = clock()
        error: AgentError = AgentAway(f"OpenCode {name!r}: the event stream ended")
        try:
            async with contextlib.aclosing(listen()) as stream:
                async for one in stream:
                    told = None
                    yield one
        except AgentError as why:
            error = why
        if type(error) is not told:
            if isinstance(error, NotRunning):
                _LOG.info("server %s: %s", name, error)
            else:
                _LOG.warning("server %s is lost: %s", name, error)
            yield Lost(error)
            told = type(error)
        if clock() - began_s > longest_s:
            pause_s = FIRST_S
        await sleep(pause_s)
        pause_s = min(pause_s * 2, longest_s)
