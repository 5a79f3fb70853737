"""Makes the parts of the agent side from the configuration, and connects them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hermes.agents.either_opencode import EitherServer
from hermes.agents.http import Api
from hermes.agents.opencode.adapter import AGENT
from hermes.agents.opencode.client import OpenCodeServer
from hermes.agents.opencode.plugin_prompts import PluginPrompts
from hermes.agents.opencode2.client import OpenCode2Server
from hermes.agents.opencode2.discovery import NAME, Address, at, found_by
from hermes.agents.prompting import HasPrompts, without_server
from hermes.agents.registry import ADAPTERS, BY_HOOK
from hermes.agents.server import AgentServer
from hermes.config.settings import Config
from hermes.listener.agent.arrivals import Arrivals
from hermes.listener.agent.errands import Errands
from hermes.listener.agent.hook_prompts import HookPrompts
from hermes.listener.agent.hooks import Strays, WaitingHooks
from hermes.listener.agent.inbox import Inbox
from hermes.listener.agent.intake import Intake
from hermes.listener.agent.listing import Listing
from hermes.listener.agent.prompting import Prompting
from hermes.listener.agent.servers import Follower
from hermes.listener.agent.turn_ends import TurnEnds
from hermes.listener.background import Background
from hermes.listener.entries import Entries
from hermes.listener.kept import Kept
from hermes.model.chat_memory import Followed


@dataclass(frozen=True, slots=True)
class AgentParts:
    """The parts of the agent side."""

    servers: tuple[AgentServer, ...]
    hooks: WaitingHooks
    errands: Errands
    inbox: Inbox
    strays: Strays
    followers: tuple[Follower, ...]
    prompting: Prompting
    listing: Listing
    ways: Mapping[str, HasPrompts]


def agent_parts(
    config: Config,
    entries: Entries,
    kept: Kept,
    known: Sequence[Followed],
    background: Background,
    connected: dict[str, bool],
    machine: str,
    monotonic: Callable[[], float],
) -> AgentParts:
    """Make the parts of the agent side.

    `known` tells until when the events of each server are known; `machine` is the name of this machine for people.
    """
    store, root = entries.store, entries.store.home.root
    servers = _servers(config, entries, machine=machine, monotonic=monotonic)
    hooks = WaitingHooks(root)
    errands = Errands(entries, servers, hooks, ADAPTERS, config.matching, monotonic=monotonic)
    intake = Intake(entries, kept, errands, hooks, rules=config.permissions.rules)
    until_s = {one.server: one.until_s for one in known}
    followers = []
    for name, server in servers.items():
        arrivals = Arrivals(
            server, entries, intake, errands, background, ttl_s=config.questions.ttl, monotonic=monotonic
        )
        heard_s = until_s.get(name, store.home.now())
        ends = TurnEnds(server, intake, kept.notices, background)
        followers.append(Follower(server, entries, errands, arrivals, ends, connected, heard_s=heard_s))
    inbox = Inbox(root, store, ADAPTERS, intake, errands)
    strays = Strays(entries, hooks, ADAPTERS, monotonic=monotonic)
    plugins = PluginPrompts(root, agent=AGENT, machine=store.home.machine(), host=machine)
    ways: dict[str, HasPrompts] = {
        **servers,
        without_server(AGENT): plugins,
        **{without_server(agent): HookPrompts(agent, home=store.home, host=machine, kept=kept) for agent in BY_HOOK},
    }
    projects = config.prompts.projects
    prompting = Prompting(kept, ways, servers, store, config.prompts.writable)
    listing = Listing(ways, kept.lists, kept.cards, store, projects, now=store.home.now)
    return AgentParts(
        tuple(servers.values()), hooks, errands, inbox, strays, tuple(followers), prompting, listing, ways
    )


def _servers(
    config: Config, entries: Entries, *, machine: str, monotonic: Callable[[], float]
) -> dict[str, AgentServer]:
    """Return the servers of the configuration, and the one that is found by its file."""
    machine_id, now = entries.store.home.machine(), entries.store.home.now
    servers: dict[str, AgentServer] = {}
    for given in config.opencode:
        password = given.password.get_secret_value()
        api = Api(given.name, given.url, username=given.username, password=password)
        first = OpenCodeServer(api, machine=machine_id, host=machine, now=now, monotonic=monotonic)
        address = Address(given.url, password, given.username)
        second = OpenCode2Server(given.name, at(address), machine=machine_id, host=machine, now=now)
        servers[given.name] = EitherServer(first, second)
    if config.opencode2.enabled:
        locate = found_by(config.opencode2.file)
        servers[NAME] = OpenCode2Server(NAME, locate, machine=machine_id, host=machine, now=now)
    return servers
