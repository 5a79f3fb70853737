"""OpenCode 2 needs no installation: say so where it runs."""

from __future__ import annotations

from pathlib import Path

from hermes.agents.opencode2 import discovery
from hermes.errors import AgentError


def running(file: Path) -> str:
    """Return a sentence about the server that keeps this file, "" if none runs."""
    try:
        address = discovery.read(file)
    except AgentError:
        return ""
    return (
        f"An OpenCode 2 runs (process {address.pid}). It needs no plugin: Hermes finds its server by itself, "
        "as long as a listener runs (`hermes install service`)."
    )
