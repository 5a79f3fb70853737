"""The event stream of a server: followed for as long as anybody listens, cut or not.

`/global/event` tells of all directories and survives their dispose; it has no replay. So whoever follows it
lists the pending questions after every `Connected`, and compares: subscribe first, then list.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from dataclasses import dataclass

from hermes.agents.opencode import adapter, wire
from hermes.agents.opencode.client import OpenCodeServer
from hermes.errors import AgentAway, AgentError, PayloadError
from hermes.model.signals import Signal

_LOG = logging.getLogger(__name__)

_FIRST_S, _LONGEST_S = 0.2, 15.0
_INSTANCE_DISPOSED = "server.instance.disposed"
_DISPOSED = frozenset({_INSTANCE_DISPOSED, "global.disposed"})


@dataclass(frozen=True, slots=True)
class Connected:
    """The stream is there: nothing that happens from now on is missed. List what happened before."""

    version: str


@dataclass(frozen=True, slots=True)
class Lost:
    """The stream is not there (any more), and why; it is tried again. Told once for each kind of reason."""

    error: AgentError


@dataclass(frozen=True, slots=True)
class Heard:
    """A signal, and the directory that it came from ("" where it has none)."""

    signal: Signal
    directory: str


@dataclass(frozen=True, slots=True)
class Disposed:
    """All that ran in this directory has ended, and what was asked there is gone ("": in every directory)."""

    directory: str


Followed = Connected | Lost | Heard | Disposed


async def follow(
    server: OpenCodeServer,
    *,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> AsyncGenerator[Followed, None]:
    """Follow a server without end: what it says, when it is lost, when it is back. Never raises by itself.

    Pauses grow from 0.2 s to 15 s, and start anew after a connection that lasted longer than the pause before
    it would have. Close it (`contextlib.aclosing`) or cancel whoever iterates.
    """
    pause_s, told = _FIRST_S, None
    while True:
        began_s = clock()
        error: AgentError = AgentAway(f"OpenCode {server.name!r}: the event stream ended")
        try:
            async with contextlib.aclosing(_listen(server)) as stream:
                async for one in stream:
                    told = None
                    server.living.is_read = False  # whoever takes it in may be slow, or never come back
                    yield one
                    server.living.is_read = True
        except AgentError as why:
            error = why
        finally:
            server.living.forget()
        if type(error) is not told:
            _LOG.warning("server %s is lost: %s", server.name, error)
            yield Lost(error)
            told = type(error)
        if clock() - began_s > _LONGEST_S:
            pause_s = _FIRST_S
        await sleep(pause_s)
        pause_s = min(pause_s * 2, _LONGEST_S)


async def _listen(server: OpenCodeServer) -> AsyncGenerator[Connected | Heard | Disposed, None]:
    version = await server.health()  # asked shortly first: new swallows what comes too early
    async with server.listening() as events:
        async for event in events:
            try:
                read = wire.decode(wire.Event, event.data)
                server.note(read)
                heard = list(signals(read, server))
            except (ValueError, PayloadError) as error:
                _LOG.warning("server %s: an event is passed over: %s", server.name, error)
                continue
            if read.type == "server.connected":
                _LOG.info("server %s: following OpenCode %s", server.name, version)
                yield Connected(version)
            if read.type in _DISPOSED:
                yield Disposed(read.directory if read.type == _INSTANCE_DISPOSED else "")
            for signal in heard:
                yield Heard(signal, read.directory)


def signals(event: wire.Event, server: OpenCodeServer) -> Iterator[Signal]:
    """Yield what an event says in Hermes' words: one signal, or none.

    Raises:
        PayloadError: a known event has another shape.
    """
    if event.type not in adapter.KINDS:
        return
    if event.type == "session.status" and not _is_busy(event.properties.get("status")):
        return  # idle comes as session.idle too, and a retry is no work
    yield adapter.read_event(event.type, event.properties, server.origin(event.directory))


def _is_busy(status: object) -> bool:
    return isinstance(status, dict) and status.get("type") == "busy"
