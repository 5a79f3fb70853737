"""The pieces that `hermes install` installs and removes: Hermes in each agent, and Hermes as a service."""

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
    """An agent that Hermes can be installed in.

    - `name`: its name for `hermes install`. `title`: its name for people. `program`: its command.
    - `plugin`: the plugin file that `install` writes, or None if `install` changes the agent's settings instead.
    - `options`: the options of `hermes install` that it knows. Its `install` takes each by name, or None if the person
      did not give it.
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
    """Connect the agent to the store of this configuration. Returns and raises as its `install`.

    Also raises ConfigError: an option is given that this agent does not know.
    """
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
"""All agents. Their `install` and `uninstall` take the same arguments by name, `install` also the agent's options."""


class Piece(NamedTuple):
    """Something to install and remove. Both functions return sentences about the changes that they made.

    `install` takes the path of the configuration, the configuration, and the options (None: not given).
    """

    install: Callable[[Path, Config, Mapping[str, bool | None]], list[str]]
    uninstall: Callable[[], list[str]]


def piece(name: str, *, environ: Mapping[str, str]) -> Piece:
    """Return the piece with this name. Raises ConfigError: there is none."""
    known = pieces(environ)
    if name not in known:
        raise ConfigError(f"{name!r} is nothing that Hermes can install; it knows {', '.join(known)}.")
    return known[name]


def pieces(environ: Mapping[str, str]) -> dict[str, Piece]:
    """Return all pieces by name: the agents, then the background jobs (`service.JOBS`)."""
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
    """Tell whether at least one agent is connected. A connected agent starts a listener when it asks."""
    return any(agent.is_connected(environ) for agent in AGENTS)
