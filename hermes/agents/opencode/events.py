"""Follow the event stream of an OpenCode 1 server.

`/global/event` covers all directories and survives their dispose, but it has no replay.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from hermes.agents.opencode import adapter, wire
from hermes.agents.server import Connected, Disposed, Heard
from hermes.agents.wire import decode
from hermes.errors import PayloadError
from hermes.model.signals import Retrying, Signal

if TYPE_CHECKING:
    from hermes.agents.opencode.client import OpenCodeServer

_LOG = logging.getLogger(__name__)

_INSTANCE_DISPOSED = "server.instance.disposed"
_DISPOSED = frozenset({_INSTANCE_DISPOSED, "global.disposed"})


async def listen(server: OpenCodeServer) -> AsyncGenerator[Connected | Heard | Disposed, None]:
    """Connect, and yield signals and disposes until the stream breaks. Raises AgentError."""
    version = await server.health()  # has a short time-out: 1.18.33 never answers a request that comes too early
    try:
        async with server.api.listening() as events:
            async for event in events:
                for one in _told(event.data, version, server):
                    server.living.is_read = False  # the caller may be slow, or never ask for the next event
                    yield one
                    server.living.is_read = True
    finally:
        server.living.forget()
        server.beginnings.forget()


def _told(data: str, version: str, server: OpenCodeServer) -> Iterator[Connected | Heard | Disposed]:
    """Note an event, and yield what the caller has to know of it."""
    try:
        read = decode(wire.Event, data)
        heard = signal_of(read, server)
        server.note(read, heard)
    except (ValueError, PayloadError) as error:
        _LOG.warning("server %s: an event is ignored: %s", server.name, error)
        return
    if read.type == "server.connected":
        _LOG.info("server %s: following OpenCode %s", server.name, version)
        yield Connected(version)
    if read.type in _DISPOSED:
        yield Disposed(read.directory if read.type == _INSTANCE_DISPOSED else "")
    if heard is not None:
        yield Heard(heard, read.directory)


def signal_of(event: wire.Event, server: OpenCodeServer) -> Signal | None:
    """Return the signal that an event stands for, if there is one.

    Raises:
        PayloadError: a known event has another shape.
    """
    if event.type not in adapter.KINDS:
        return None
    if event.type == "session.status" and _type_of(event.properties.get("status")) not in {"busy", "retry"}:
        return None  # idle also comes as session.idle
    signal = adapter.read_event(event.type, event.properties, server.origin(event.directory))
    return _titled(signal, server) if isinstance(signal, Retrying) else signal


def _titled(signal: Retrying, server: OpenCodeServer) -> Retrying | None:
    """Return the signal with the session's title, None for a subagent: its root session goes on without it."""
    info = server.memory.info(signal.session_id)
    if info is None:
        return signal
    source = replace(signal.retry.source, session_title=info.title)
    return Retrying(replace(signal.retry, source=source)) if info.parent_id is None else None


def _type_of(status: object) -> str:
    kind = status.get("type") if isinstance(status, dict) else None
    return kind if isinstance(kind, str) else ""
