"""Check the plugin of each agent that loads one: it is ours, of this version, and its paths are right."""

import asyncio
import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import hermes
from hermes.agents.plugin_file import Plugin, settings_of
from hermes.commands import install
from hermes.commands.doctor.finding import Area, Around, Finding
from hermes.commands.install import Agent
from hermes.errors import ConfigError

PYTHON_S: Final = 4.0
_SAY_VERSION = "import hermes, hermes.hook; print(hermes.__version__)"


@dataclass(frozen=True, slots=True)
class Placed:
    """The plugin of one agent, as `hermes install NAME` writes it."""

    area: Area
    agent: Agent
    plugin: Plugin

    async def look(self, around: Around) -> tuple[Finding, ...]:
        """Check the installed file, then the paths in it; if there is no file, say so if the agent is here."""
        place = self.plugin.path(around.environ)
        try:
            text = self.plugin.installed(around.environ)
        except ConfigError as error:
            aside = f"mv {shlex.quote(str(place))} {shlex.quote(f'{place}.old')}"
            return (self.area.broken("file", str(error), f"{aside} && {self.mend(around)}"),)
        if text is not None:
            return self.area.good("file", str(place)), *await self._named(around, text)
        if shutil.which(self.agent.program, path=around.environ.get("PATH")) is None:
            return ()
        return (self.area.warning("file", "not installed: its questions do not come to the phone", self.mend(around)),)

    def mend(self, around: Around) -> str:
        """Return the command that installs the plugin."""
        return around.hermes("install", self.agent.name)

    async def _named(self, around: Around, text: str) -> list[Finding]:
        settings = settings_of(text)
        found = await asyncio.gather(
            self.area.guarded("version", asyncio.to_thread(self._version, around, text, settings)),
            self.area.guarded("python", asyncio.to_thread(self._python, around, settings)),
            self.area.guarded("paths", asyncio.to_thread(self._paths, around, settings)),
        )
        return [finding for findings in found for finding in findings]

    def _version(self, around: Around, text: str, settings: Mapping[str, object]) -> list[Finding]:
        if text != self.plugin.text(settings):
            return [self._outdated(around, settings, "version", f"not the plugin of Hermes {hermes.__version__}")]
        return [self.area.good("version", f"of Hermes {hermes.__version__}")]

    def _outdated(self, around: Around, settings: Mapping[str, object], check: str, seen: str) -> Finding:
        """Return a finding whose fix installs the plugin again, with its own paths: they may be there on purpose."""
        paths = around.paths_of(settings)
        return self.area.broken(
            check, seen, self._again(around, settings), lambda: around.put(self.plugin.install, paths)
        )

    def _again(self, around: Around, settings: Mapping[str, object]) -> str:
        """Return the command that installs the plugin again for the configuration that it names."""
        return self.mend(replace(around, config_file=around.paths_of(settings)["config"]))

    def _python(self, around: Around, settings: Mapping[str, object]) -> list[Finding]:
        python = str(settings.get("python") or "")
        if not os.access(python, os.X_OK) or not Path(python).is_file():
            seen = f"{python or 'none'} is not a program, so no hook can start"
            return [self._outdated(around, settings, "python", seen)]
        if (found := loads(self.area, python, self._again(around, settings))) is not None:
            return [found]
        return [self._outdated(around, settings, "python", f"{python} cannot load Hermes, so no hook starts")]

    def _paths(self, around: Around, settings: Mapping[str, object]) -> list[Finding]:
        return [in_use(self.area, around, settings, self.mend(around))]


PLUGINS = tuple(
    Placed(Area(f"{agent.title} plugin"), agent, agent.plugin) for agent in install.AGENTS if agent.plugin is not None
)

AREA = Area("Agents")


async def look(around: Around) -> tuple[Finding, ...]:
    """Check that at least one agent can ask: one is connected, or a server is configured."""
    if around.config.opencode or install.is_any_connected(around.environ):
        return ()
    if install.needs_no_connection(around.config, environ=around.environ):
        return ()
    mend = around.hermes("install", install.AGENTS[0].name)
    return (AREA.broken("connected", "none is, and no server is configured: no question can come", mend),)


def loads(area: Area, python: str, mend: str) -> Finding | None:
    """Return a finding about the version of Hermes that this interpreter loads, or None if it loads none."""
    command = [python, "-I", "-c", _SAY_VERSION]
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=PYTHON_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    version = told.stdout.strip()
    if version != hermes.__version__:
        return area.warning("python", f"{python} has Hermes {version}, this is {hermes.__version__}", mend)
    return area.good("python", f"{python} loads Hermes {version}")


def in_use(area: Area, around: Around, named: Mapping[str, object], mend: str) -> Finding:
    """Return a finding about whether the store, log and configuration that `named` gives are ours.

    Other paths may be there on purpose (another configuration), so the finding has a command but no fix.
    """
    wanted = around.plugin_paths()
    other = {name: named.get(name) for name, path in wanted.items() if Path(str(named.get(name) or "")) != path}
    if not other:
        return area.good("paths", "store, log and configuration are the ones in use")
    seen = "; ".join(f"its {name} is {path or 'none'}, not {wanted[name]}" for name, path in other.items())
    return area.broken("paths", seen, mend) if "store" in other else area.warning("paths", seen, mend)
