"""What can be put in place and taken away: Hermes in an agent, as its own folder knows it, and Hermes as a service."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import NamedTuple

from hermes.agents.claude_code import install as claude_code
from hermes.agents.neovate import install as neovate
from hermes.agents.oh_my_pi import install as oh_my_pi
from hermes.agents.opencode import install as opencode
from hermes.agents.plugin_file import Plugin
from hermes.commands import service
from hermes.config.settings import Config
from hermes.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent: as `hermes install` calls it, as people do, its program, both directions, and whether it is connected.

    `plugin` is the file that is put into its folder, where it is one. `options` are those of `hermes install` that it
    knows: its `install` takes each by name, None where it was not said.
    """

    name: str
    title: str
    program: str
    install: Callable[..., list[str]]
    uninstall: Callable[..., list[str]]
    is_connected: Callable[[Mapping[str, str]], bool]
    plugin: Plugin | None = None
    options: tuple[str, ...] = ()


def connect(
    agent: Agent,
    config: Config,
    config_path: Path,
    *,
    environ: Mapping[str, str],
    options: Mapping[str, bool | None] = MappingProxyType({}),
) -> list[str]:
    """Install what connects the agent to the store of this configuration. Returns and raises as its `install`."""
    for name, said in options.items():
        if said is not None and name not in agent.options:
            knowing = ", ".join(one.name for one in AGENTS if name in one.options)
            raise ConfigError(f"--{name} is nothing that {agent.name} knows; it is for {knowing}.")
    known = {name: options.get(name) for name in agent.options}
    paths = {"config_path": config_path, "store": config.store.path, "log": config.log.file}
    return agent.install(environ=environ, python=sys.executable, **paths, **known)


def _agent(name: str, title: str, program: str, connect: ModuleType, *options: str) -> Agent:
    plugin = getattr(connect, "PLUGIN", None)
    return Agent(name, title, program, connect.install, connect.uninstall, connect.is_connected, plugin, options)


AGENTS = (
    _agent("opencode", "OpenCode", "opencode", opencode),
    _agent("claude-code", "Claude Code", "claude", claude_code, "permissions", "headless"),
    _agent("oh-my-pi", "oh-my-pi", "omp", oh_my_pi, "headless"),
    _agent("neovate", "Neovate Code", "neovate", neovate),
)
"""`install` and `uninstall` take what those of OpenCode take, by name."""


class Piece(NamedTuple):
    """Something that is put in place and taken away; both say what they did, one sentence each.

    `install` takes the configuration's place, the configuration, and options that may be None where nothing was said.
    """

    install: Callable[[Path, Config, Mapping[str, bool | None]], list[str]]
    uninstall: Callable[[], list[str]]


def piece(name: str, *, environ: Mapping[str, str]) -> Piece:
    """Return what has this name. Raises ConfigError: nothing has."""
    known = pieces(environ)
    if name not in known:
        raise ConfigError(f"{name!r} is nothing that Hermes can install; it knows {', '.join(known)}.")
    return known[name]


def pieces(environ: Mapping[str, str]) -> dict[str, Piece]:
    """Return all that can be installed, by name: the agents, then what runs in the background."""
    agents = {agent.name: _connection(agent, environ) for agent in AGENTS}
    return agents | {what: _job(what) for what in service.JOBS}


def _connection(agent: Agent, environ: Mapping[str, str]) -> Piece:
    def install(place: Path, config: Config, options: Mapping[str, bool | None]) -> list[str]:
        return connect(agent, config, place, environ=environ, options=options)

    return Piece(install, lambda: agent.uninstall(environ=environ))


def _job(what: str) -> Piece:
    def install(place: Path, config: Config, options: Mapping[str, bool | None]) -> list[str]:
        if said := [f"--{name}" for name, value in options.items() if value is not None]:
            raise ConfigError(f"{said[0]} is for agents; {what} has no such option.")
        return list(service.install_service(what, python=sys.executable, config_path=place, log=config.log.file))

    return Piece(install, lambda: list(service.uninstall_service(what)))


def is_any_connected(environ: Mapping[str, str]) -> bool:
    """Tell whether an agent is connected, which starts a listener when it asks."""
    return any(agent.is_connected(environ) for agent in AGENTS)
