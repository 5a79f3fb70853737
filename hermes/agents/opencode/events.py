"""The events of an OpenCode 1 server: the signal that each stands for."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hermes.agents.opencode import adapter, wire
from hermes.agents.opencode.stream_memory import StreamMemory
from hermes.model.ask import Source
from hermes.model.signals import Retrying, Signal

INSTANCE_DISPOSED: Final = "server.instance.disposed"
DISPOSED: Final = frozenset({INSTANCE_DISPOSED, "global.disposed"})


def signal_of(event: wire.Event, origin: Source, memory: StreamMemory) -> Signal | None:
    """Return the signal that an event stands for, if there is one. `origin` is that of the asks of its directory.

    Raises:
        PayloadError: a known event has another shape.
    """
    if event.type not in adapter.KINDS:
        return None
    if event.type == "session.status" and _type_of(event.properties.get("status")) not in {"busy", "retry"}:
        return None  # idle also comes as session.idle
    signal = adapter.read_event(event.type, event.properties, origin)
    return _titled(signal, memory) if isinstance(signal, Retrying) else signal


def _titled(signal: Retrying, memory: StreamMemory) -> Retrying | None:
    """Return the signal with the session's title, None for a subagent: its root session goes on without it."""
    info = memory.info(signal.session_id)
    if info is None:
        return signal
    source = replace(signal.retry.source, session_title=info.title)
    return Retrying(replace(signal.retry, source=source)) if info.parent_id is None else None


def _type_of(status: object) -> str:
    kind = status.get("type") if isinstance(status, dict) else None
    return kind if isinstance(kind, str) else ""
