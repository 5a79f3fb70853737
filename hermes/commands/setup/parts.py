"""The further steps: choose the agents and a test question (`background` has the service)."""

import shutil
from collections.abc import Mapping

from hermes.commands.install import AGENTS, Agent
from hermes.commands.setup.context import Context
from hermes.commands.setup.terminal import Terminal
from hermes.errors import ConfigError


def find_agents(environ: Mapping[str, str]) -> list[tuple[Agent, str, str]]:
    """Return the agents whose programs are on the PATH, each with its path and version, "" if it tells none."""
    places = ((agent, shutil.which(agent.program, path=environ.get("PATH"))) for agent in AGENTS)
    return [(agent, path, agent.version(path, environ)) for agent, path in places if path is not None]


def choose_agents(context: Context) -> tuple[Agent, ...]:
    """Take the agents from the options, or offer those found. Raises ConfigError: unknown agent, or no person."""
    terminal = context.terminal
    terminal.title("Your agents")
    if context.given.agents is not None:
        return _named(context.given.agents)
    with terminal.waiting("Looking for agents…"):
        found = find_agents(context.environ)
    if not found:
        names = ", ".join(agent.title for agent in AGENTS)
        terminal.say(f"None was found (Hermes knows {names}). Once there is one: `hermes install {AGENTS[0].name}`.")
    return tuple(agent for agent, path, version in found if _wanted(terminal, agent, path, version))


def _wanted(terminal: Terminal, agent: Agent, path: str, version: str) -> bool:
    terminal.done(f"{agent.title} {version} is here: {path}")
    if sentence := agent.without_plugin(version):
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


def choose_test(context: Context) -> bool:
    """Return whether a test question ends the setup; without a person at the terminal, only an option asks for it."""
    if context.given.test is not None:
        return context.given.test
    if not context.terminal.interactive:
        return False
    context.terminal.title("A test")
    return context.terminal.ask("Ask you a test question at the end?", default=True, option="--test or --no-test")
