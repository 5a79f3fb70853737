"""The further steps: choose the agents, the service and a test question; and start the service or the listener."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

from hermes.commands.install import AGENTS, Agent, is_any_connected
from hermes.commands.service import Machine, ServiceState, install_service, restart_service, service_state
from hermes.commands.service.machine import run_command
from hermes.commands.setup.file import without_telegram
from hermes.commands.setup.given import Given
from hermes.commands.setup.terminal import Terminal
from hermes.config.reading import config_path
from hermes.config.settings import Config
from hermes.errors import ConfigError, ServiceError
from hermes.listener.daemon import UNTIL_IDLE
from hermes.storage.process_lock import Holder

VERSION_S = 10.0


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
            found.append(Found(agent, path, _version(path, environ)))
    return found


def _version(path: str, environ: Mapping[str, str]) -> str:
    told = run_command([path, "--version"], environ=environ, limit_s=VERSION_S)
    return "" if told.status else told.output.strip().partition("\n")[0][:40]


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
    option = f"--agent {agent.name} or --no-agents"
    return terminal.ask(f"Connect {agent.title}?", default=True, option=option)


def _named(names: tuple[str, ...]) -> tuple[Agent, ...]:
    known = {agent.name: agent for agent in AGENTS}
    for name in names:
        if name not in known:
            raise ConfigError(f"{name!r} is no agent that Hermes knows; it knows {', '.join(known)}.")
    return tuple(known[name] for name in dict.fromkeys(names))


def choose_service(terminal: Terminal, given: Given, place: Path, *, environ: Mapping[str, str]) -> bool:
    """Take the option, or offer the service if it can run and is not installed. Raises ConfigError: no person."""
    if given.service is not None:
        return given.service
    terminal.title("In the background")
    state = service_state(machine=Machine(environ))
    if state.kind == "none":
        terminal.say(f"No service here: {state.detail}. Your agents start Hermes themselves when they ask something.")
        return False
    if state.installed:
        say, but = (terminal.done, "") if _is_up(state) else (terminal.warn, ", but does not run")
        say(f"The service is installed{but} ({state.detail}).")
        if not _is_for(place, state):
            terminal.warn(f"It uses {_config_of(state)}, not {place}, and stays as it is.")
        return False
    terminal.say("A service keeps Hermes ready. Without one, your agents start it themselves when they ask something.")
    return terminal.ask("Install the service?", default=True, option="--service or --no-service")


def start_service(place: Path, config: Config, *, environ: Mapping[str, str]) -> Iterator[str]:
    """Install and start the service; return one sentence for each thing done. Raises as `install_service`."""
    machine = Machine(without_telegram(environ))  # the file now holds the removed variables
    return install_service(python=sys.executable, config_path=place, log=config.log.file, machine=machine)


def wake_service(place: Path, log: Path, *, environ: Mapping[str, str]) -> list[str]:
    """Start the enabled service of this configuration if it is down; return a sentence, if so. Raises ServiceError."""
    machine = Machine(environ)
    state = service_state(machine=machine)
    if not _is_for(place, state) or not state.enabled or _is_up(state):
        return []
    return [f"The service did not run and was started: {restart_service(log=log, machine=machine)}"]


def reviver(holder: Holder, *, place: Path, log: Path, environ: Mapping[str, str]) -> Callable[[], str]:
    """Return a function that starts this listener again in the same way: as the service, or for good, or until idle.

    If a service of this configuration waits for the locks of this listener, the function restarts that service
    instead, because it has read the configuration from before the change. Both functions raise ServiceError.
    """
    machine = Machine(environ)
    state = service_state(machine=machine)
    if state.pid and (state.pid == holder.pid or _is_for(place, state)):
        return lambda: f"The service was started again: {restart_service(log=log, machine=machine)}"
    until_idle = holder.who.startswith(UNTIL_IDLE)
    return partial(_start_listener, place, environ=environ, until_idle=until_idle)


def _start_listener(place: Path, *, environ: Mapping[str, str], until_idle: bool) -> str:
    """Start a listener as a hook does it: detached, in a new session. Raises ServiceError."""
    if not place.exists():
        raise ServiceError(f"the listener was stopped, and cannot be started again without {place}: start it as before")
    command = [sys.executable, "-I", "-m", "hermes", "listen", "--config", str(place)]
    subprocess.Popen(
        [*command, "--until-idle"] if until_idle else command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=without_telegram(environ),
        start_new_session=True,
    )
    return "The listener was started again, in the background."


def is_started_by_something(place: Path, *, environ: Mapping[str, str]) -> bool:
    """Tell whether the service of this configuration, or an agent, starts a listener without the person."""
    state = service_state(machine=Machine(environ))
    return (_is_for(place, state) and state.enabled) or is_any_connected(environ)


def _is_up(state: ServiceState) -> bool:
    return state.active or state.pid > 0


def _is_for(place: Path, state: ServiceState) -> bool:
    return state.installed and _config_of(state) == place


def _config_of(state: ServiceState) -> Path:
    """Return the configuration that the installed service reads."""
    named = next((Path(after) for before, after in pairwise(state.command) if before == "--config"), None)
    return config_path(named, environ={})


def choose_test(terminal: Terminal, given: Given) -> bool:
    """Return whether a test question ends the setup; without a person at the terminal, only an option asks for it."""
    if given.test is not None:
        return given.test
    if not terminal.interactive:
        return False
    terminal.title("A test")
    return terminal.ask("Ask you a test question at the end?", default=True, option="--test or --no-test")
