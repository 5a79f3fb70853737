"""What `hermes install` installs and removes: Hermes in each agent, and Hermes as a service."""

import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, ModuleType

from hermes.agents.claude_code import install as claude_code
from hermes.agents.neovate import install as neovate
from hermes.agents.oh_my_pi import install as oh_my_pi
from hermes.agents.opencode import install as opencode
from hermes.agents.opencode2 import discovery
from hermes.agents.plugin_file import Plugin
from hermes.commands import service
from hermes.commands.service.machine import run_command
from hermes.config.settings import Config
from hermes.errors import ConfigError

VERSION_S = 10.0


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent that Hermes can be installed in.

    - `name`: its name for `hermes install`. `title`: its name for people. `program`: its command.
    - `plugin`: the plugin file that `install` writes, or None if `install` changes the agent's settings instead.
    - `is_outdated(environ)`: whether it was connected by another Hermes, and cannot do all that this one can.
    - `without_plugin(version)`: why this version needs no connection, "" if it does.
    - `prompts_note`: a sentence for a person whose phone may send prompts, "" if there is nothing to say.
    - `options`: the options of `hermes install` that it knows. Its `install` takes each by name, or None if the person
      did not give it.
    """

    name: str
    title: str
    program: str
    install: Callable[..., list[str]]
    uninstall: Callable[..., list[str]]
    is_connected: Callable[[Mapping[str, str]], bool]
    is_outdated: Callable[[Mapping[str, str]], bool]
    plugin: Plugin | None = None
    prompts_note: str = ""
    options: tuple[str, ...] = ()
    without_plugin: Callable[[str], str] = lambda _: ""

    def version(self, path: str, environ: Mapping[str, str]) -> str:
        """Return what the program at `path` says of its version, "" if it says nothing."""
        told = run_command([path, "--version"], environ=environ, limit_s=VERSION_S)
        return "" if told.status else told.output.strip().partition("\n")[0][:40]


def connect(
    agent: Agent,
    config: Config,
    config_path: Path,
    *,
    environ: Mapping[str, str],
    options: Mapping[str, bool | None] = MappingProxyType({}),
) -> list[str]:
    """Connect the agent to the store of this configuration. Returns and raises as its `install`.

    `options` are the person's words by option of `hermes install`; the agent gets those that it knows.
    """
    known = {name: options.get(name) for name in agent.options}
    paths = {"config_path": config_path, "store": config.store.path, "log": config.log.file}
    done = agent.install(environ=environ, python=sys.executable, **paths, **known)
    return [*done, agent.prompts_note] if config.prompts.enabled and agent.prompts_note else done


def _agent(name: str, title: str, program: str, connect: ModuleType, *options: str) -> Agent:
    plugin, without = getattr(connect, "PLUGIN", None), getattr(connect, "without_plugin", lambda _: "")
    made = connect.install, connect.uninstall, connect.is_connected
    outdated = connect.is_outdated if plugin is None else plugin.is_outdated
    return Agent(name, title, program, *made, outdated, plugin, getattr(connect, "PROMPTS_NOTE", ""), options, without)


AGENTS = (
    _agent("opencode", "OpenCode", "opencode", opencode),
    _agent("claude-code", "Claude Code", "claude", claude_code, "permissions", "headless"),
    _agent("oh-my-pi", "oh-my-pi", "omp", oh_my_pi, "headless"),
    _agent("neovate", "Neovate Code", "neovate", neovate),
)
"""All agents. Their `install` and `uninstall` take the same arguments by name, `install` also the agent's options."""


NAMES = (*(agent.name for agent in AGENTS), *service.JOBS)
"""All that can be installed: the agents, and the background jobs."""
ALL = "all"
"""The name with which `hermes uninstall` removes everything."""


def install(
    name: str, config: Config, config_path: Path, *, environ: Mapping[str, str], options: Mapping[str, bool | None]
) -> Iterable[str]:
    """Install this agent's connection or this job; return sentences about the changes.

    Raises ConfigError: there is none of this name, or it has no such option; and as `connect` and `install_service`.
    """
    agent = _agent_of(name, "install", NAMES)
    for option, said in options.items():
        if said is not None and (agent is None or option not in agent.options):
            knowing = ", ".join(one.name for one in AGENTS if option in one.options)
            raise ConfigError(f"--{option} is nothing that {name} knows; it is for {knowing}.")
    if agent is None:
        return service.install_service(name, python=sys.executable, config_path=config_path, log=config.log.file)
    program = shutil.which(agent.program, path=environ.get("PATH"))
    if sentence := _why_no_plugin(agent, program, environ):
        return [sentence]
    done = connect(agent, config, config_path, environ=environ, options=options)
    sentence = discovery.running(config.opencode2.file) if agent.name == "opencode" else ""
    if sentence:
        done.append(sentence)
    elif program is None:
        done.append(f"No `{agent.program}` was found on this PATH. Hermes is ready for when {agent.title} is there.")
    return done


def uninstall(name: str, *, environ: Mapping[str, str]) -> Iterable[str]:
    """Remove this agent's connection or this job; return sentences about it. Raises ConfigError: there is none."""
    agent = _agent_of(name, "uninstall", (*NAMES, ALL))
    return service.uninstall_service(name) if agent is None else agent.uninstall(environ=environ)


def _agent_of(name: str, verb: str, known: Iterable[str]) -> Agent | None:
    """Return the agent of this name, or None if it names a job. Raises ConfigError: it is none of `NAMES`."""
    if name not in NAMES:
        raise ConfigError(f"{name!r} is nothing that Hermes can {verb}; it knows {', '.join(known)}.")
    return next((agent for agent in AGENTS if agent.name == name), None)


def needs_no_connection(config: Config, *, environ: Mapping[str, str]) -> bool:
    """Tell whether an agent is here whose server the listener finds by itself."""
    if not config.opencode2.enabled:
        return False
    programs = [(agent, shutil.which(agent.program, path=environ.get("PATH"))) for agent in AGENTS]
    is_running = bool(discovery.running(config.opencode2.file))
    return is_running or any(_why_no_plugin(agent, program, environ) for agent, program in programs)


def _why_no_plugin(agent: Agent, program: str | None, environ: Mapping[str, str]) -> str:
    """Return why the version of this program needs no connection, "" if it does, or if the program is not here."""
    return "" if program is None else agent.without_plugin(agent.version(program, environ))


def is_any_connected(environ: Mapping[str, str]) -> bool:
    """Tell whether at least one agent is connected. A connected agent starts a listener when it asks."""
    return any(agent.is_connected(environ) for agent in AGENTS)


def outdated(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return a sentence for each agent that another Hermes connected: it works on, without all that is new."""
    names = (agent.name for agent in AGENTS if agent.is_outdated(environ))
    why = "another Hermes connected it, and what is new, such as notices, may not come"
    return tuple(f"run `hermes install {name}` again: {why}" for name in names)
