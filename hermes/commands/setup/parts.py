"""The further steps: choose the agents and a test question (`background` has the service)."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from hermes.commands.install import AGENTS, Agent
from hermes.commands.setup.given import Given
from hermes.commands.setup.terminal import Terminal
from hermes.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Found:
    """An agent that is on this machine; `version` is "" if its program does not tell it."""

    agent: Agent
    path: str
    version: str


def find_agents(environ: Mapping[str, str]) -> list[Found]:
    """Return the agents whose programs are on the PATH."""
    found = []
    for agent in AGENTS:
        path = shutil.which(agent.program, path=environ.get("PATH"))
        if path is not None:
            found.append(Found(agent, path, agent.version(path, environ)))
    return found


def choose_agents(terminal: Terminal, given: Given, *, environ: Mapping[str, str]) -> tuple[Agent, ...]:
    """Take the agents from the options, or offer those found. Raises ConfigError: unknown agent, or no person."""
    terminal.title("Your agents")
    if given.agents is not None:
        return _named(given.agents)
    with terminal.waiting("Looking for agents…"):
        found = find_agents(environ)
    if not found:
        names = ", ".join(agent.title for agent in AGENTS)
        terminal.say(f"None was found (Hermes knows {names}). Once there is one: `hermes install {AGENTS[0].name}`.")
    return tuple(one.agent for one in found if _wanted(terminal, one))


def _wanted(terminal: Terminal, found: Found) -> bool:
    agent = found.agent
    terminal.done(f"{agent.title} {found.version} is here: {found.path}")
    if sentence := agent.without_plugin(found.version):
        terminal.say(sentence)
        return False
    option = f"--agent {agent.name} or --no-agents"
    return terminal.ask(f"Connect {agent.title}?", default=True, option=option)


def _named(names: tuple[str, ...]) -> tuple[Agent, ...]:
    known = {agent.name: agent for agent in AGENTS}
    for name in names:
        if name not in known:
            raise ConfigError(f"{name!r} is not an agent that Hermes knows; it knows {', '.join(known)}.")
    return tuple(known[name] for name in dict.fromkeys(names))


def choose_test(terminal: Terminal, given: Given) -> bool:
    """Return whether a test question ends the setup; without a person at the terminal, only an option asks for it."""
    if given.test is not None:
        return given.test
    if not terminal.interactive:
        return False
    terminal.title("A test")
    return terminal.ask("Ask you a test question at the end?", default=True, option="--test or --no-test")
