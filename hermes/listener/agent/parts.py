"""Makes the parts of the agent side from the configuration, and connects them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hermes.agents.opencode.client import OpenCodeServer
from hermes.agents.registry import ADAPTERS
from hermes.listener.agent.errands import Errands
from hermes.listener.agent.hooks import Room, Strays
from hermes.listener.agent.inbox import Inbox
from hermes.listener.agent.intake import Intake
from hermes.listener.agent.servers import Follower

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.config.settings import Config
    from hermes.listener.background import Background
    from hermes.listener.entries import Book
    from hermes.listener.phone.chat_memory import Memory


@dataclass(frozen=True, slots=True)
class AgentParts:
    """The parts of the agent side."""

    servers: tuple[OpenCodeServer, ...]
    room: Room
    errands: Errands
    intake: Intake
    inbox: Inbox
    strays: Strays
    followers: tuple[Follower, ...]


def agent_parts(
    config: Config,
    book: Book,
    memory: Memory,
    background: Background,
    connected: dict[str, bool],
    *,
    machine: str,
    monotonic: Callable[[], float],
) -> AgentParts:
    """Make the parts of the agent side; `machine` is the name of this machine for people."""
    store, root = book.store, book.store.root
    servers = {
        server.name: OpenCodeServer(
            server.name,
            server.url,
            username=server.username,
            password=server.password.get_secret_value(),
            machine=store.machine(),
            host=machine,
            now=book.now,
            monotonic=monotonic,
        )
        for server in config.opencode
    }
    room = Room(root)
    errands = Errands(book, servers, room, ADAPTERS, config.matching, monotonic=monotonic)
    intake = Intake(book, errands, room, rules=config.permissions.rules)
    known = {one.server: one.until_s for one in memory.at.followed}
    followers = tuple(
        Follower(
            server,
            book,
            intake,
            errands,
            background,
            connected,
            ttl_s=config.questions.ttl,
            heard_s=known.get(name, book.now()),
            monotonic=monotonic,
        )
        for name, server in servers.items()
    )
    inbox = Inbox(root, store, ADAPTERS, intake, errands)
    strays = Strays(book, room, ADAPTERS, monotonic=monotonic)
    return AgentParts(tuple(servers.values()), room, errands, intake, inbox, strays, followers)
