"""Check the plugin of each agent that loads one: it is ours, of this version, and its paths are right."""

import asyncio
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import hermes
from hermes.agents.plugin_file import Plugin, settings_of
from hermes.commands import install
from hermes.commands.doctor.finding import Area, Around, Finding, Fix, command
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
        return await self.area.guarded("file", asyncio.to_thread(lambda: list(self._look(around))))

    def _look(self, around: Around) -> Iterator[Finding]:
        place, mend = self.plugin.path(around.environ), around.hermes("install", self.agent.name)
        try:
            text = self.plugin.installed(around.environ)
        except ConfigError as error:
            aside = f"mv {shlex.quote(str(place))} {shlex.quote(f'{place}.old')}"
            yield self.area.broken("file", str(error), f"{aside} && {mend}")
            return
        if text is None:
            if shutil.which(self.agent.program, path=around.environ.get("PATH")):
                yield self.area.warning("file", "not installed: its questions do not come to the phone", mend)
            return
        yield self.area.good("file", str(place))
        settings = settings_of(text)
        again, fix = again_with(settings, around, self.agent.name, self.plugin.install)
        if text == self.plugin.text(settings):
            yield self.area.good("version", f"of Hermes {hermes.__version__}")
        else:
            yield self.area.broken("version", f"not the plugin of Hermes {hermes.__version__}", again, fix)
        yield loads(self.area, str(settings.get("python") or ""), again, fix)
        yield in_use(self.area, around, settings, mend)


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


def again_with(
    named: Mapping[str, object], around: Around, name: str, install: Callable[..., list[str]]
) -> tuple[str, Fix]:
    """Return the command and the fix that connect an agent again with the paths that it names.

    They may be there on purpose, so its questions do not move to the configuration that is checked.
    """
    paths = around.paths_of(named)
    again = command("install", name, place=paths["config"], environ=around.environ)
    return again, lambda: around.put(install, paths)


def loads(area: Area, python: str, mend: str, fix: Fix) -> Finding:
    """Return a finding about the version of Hermes that this interpreter loads."""
    if not os.access(python, os.X_OK) or not Path(python).is_file():
        return area.broken("python", f"{python or 'none'} is not a program, so no hook can start", mend, fix)
    say_version = [python, "-I", "-c", _SAY_VERSION]
    try:
        told = subprocess.run(say_version, capture_output=True, text=True, timeout=PYTHON_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return area.broken("python", f"{python} cannot load Hermes, so no hook starts", mend, fix)
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
