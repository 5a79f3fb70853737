"""Makes the parts of the agent side from the configuration, and connects them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hermes.agents.opencode.api import Api
from hermes.agents.opencode.client import OpenCodeServer
from hermes.agents.registry import ADAPTERS
from hermes.listener.agent.arrivals import Arrivals
from hermes.listener.agent.errands import Errands
from hermes.listener.agent.hooks import Strays, WaitingHooks
from hermes.listener.agent.inbox import Inbox
from hermes.listener.agent.intake import Intake
from hermes.listener.agent.servers import Follower

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes.config.settings import Config
    from hermes.listener.background import Background
    from hermes.listener.entries import Entries
    from hermes.model.chat_memory import Followed


@dataclass(frozen=True, slots=True)
class AgentParts:
    """The parts of the agent side."""

    servers: tuple[OpenCodeServer, ...]
    hooks: WaitingHooks
    errands: Errands
    intake: Intake
    inbox: Inbox
    strays: Strays
    followers: tuple[Follower, ...]


def agent_parts(
    config: Config,
    entries: Entries,
    known: Sequence[Followed],
    background: Background,
    connected: dict[str, bool],
    *,
    machine: str,
    monotonic: Callable[[], float],
) -> AgentParts:
    """Make the parts of the agent side.

    `known` tells until when the events of each server are known; `machine` is the name of this machine for people.
    """
    store, root = entries.store, entries.store.root
    servers = {
        server.name: OpenCodeServer(
            Api(server.name, server.url, username=server.username, password=server.password.get_secret_value()),
            machine=store.machine(),
            host=machine,
            now=entries.now,
            monotonic=monotonic,
        )
        for server in config.opencode
    }
    hooks = WaitingHooks(root)
    errands = Errands(entries, servers, hooks, ADAPTERS, config.matching, monotonic=monotonic)
    intake = Intake(entries, errands, hooks, rules=config.permissions.rules)
    until_s = {one.server: one.until_s for one in known}
    followers = []
    for name, server in servers.items():
        arrivals = Arrivals(
            server, entries, intake, errands, background, ttl_s=config.questions.ttl, monotonic=monotonic
        )
        heard_s = until_s.get(name, entries.now())
        followers.append(Follower(server, entries, intake, errands, arrivals, connected, heard_s=heard_s))
    inbox = Inbox(root, store, ADAPTERS, intake, errands)
    strays = Strays(entries, hooks, ADAPTERS, monotonic=monotonic)
    return AgentParts(tuple(servers.values()), hooks, errands, intake, inbox, strays, tuple(followers))
