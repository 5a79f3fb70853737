"""Follow the event stream of a server, and connect again after each break.

`/global/event` covers all directories and survives their dispose, but it has no replay. So the caller must list the
pending questions after every `Connected` and compare: subscribe first, then list.
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


async def follow(
    server: OpenCodeServer,
    *,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> AsyncGenerator[Followed, None]:
    """Follow a server without end, and yield its signals, disposes, breaks and reconnects. Raises no AgentError.

    The pauses between attempts grow from 0.2 s to 15 s, and start at 0.2 s again after an attempt that lasted longer
    than 15 s. To end it, close it (`contextlib.aclosing`) or cancel the task that iterates.
    """
    pause_s, told = _FIRST_S, None
    while True:
        began_s = clock()
        error: AgentError = AgentAway(f"OpenCode {server.name!r}: the event stream ended")
        try:
            async with contextlib.aclosing(_listen(server)) as stream:
                async for one in stream:
                    told = None
                    server.living.is_read = False  # the caller may be slow, or never ask for the next event
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
    version = await server.health()  # has a short time-out: 1.18.33 never answers a request that comes too early
    async with server.listening() as events:
        async for event in events:
            try:
                read = wire.decode(wire.Event, event.data)
                server.note(read)
                heard = list(signals(read, server))
            except (ValueError, PayloadError) as error:
                _LOG.warning("server %s: an event is ignored: %s", server.name, error)
                continue
            if read.type == "server.connected":
                _LOG.info("server %s: following OpenCode %s", server.name, version)
                yield Connected(version)
            if read.type in _DISPOSED:
                yield Disposed(read.directory if read.type == _INSTANCE_DISPOSED else "")
            for signal in heard:
                yield Heard(signal, read.directory)


def signals(event: wire.Event, server: OpenCodeServer) -> Iterator[Signal]:
    """Yield the signal that an event stands for, if there is one.

    Raises:
        PayloadError: a known event has another shape.
    """
    if event.type not in adapter.KINDS:
        return
    if event.type == "session.status" and not _is_busy(event.properties.get("status")):
        return  # idle also comes as session.idle, and a session that retries is not working
    yield adapter.read_event(event.type, event.properties, server.origin(event.directory))


def _is_busy(status: object) -> bool:
    return isinstance(status, dict) and status.get("type") == "busy"
