"""Check the plugins of agents that load one; for OpenCode, also whether another plugin file replaces ours."""

import asyncio
import contextlib
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from hermes.agents.opencode import install as connect
from hermes.commands import install
from hermes.commands.doctor.finding import Area, Around, Finding
from hermes.commands.doctor.opencode import asked
from hermes.commands.doctor.placed import Placed
from hermes.config.settings import OpenCode
from hermes.errors import AgentError

AREA = Area("OpenCode plugin")

RECENT_S: Final = 7 * 86400.0
DIRECTORIES_S: Final = 2.0
_FOLDERS = ("plugin", "plugins")
# OpenCode is the first of `install.AGENTS`.
_OPENCODE, *OTHERS = (
    Placed(AREA if agent.plugin is connect.PLUGIN else Area(agent.title), agent, agent.plugin)
    for agent in install.AGENTS
    if agent.plugin is not None
)


async def look(around: Around) -> tuple[Finding, ...]:
    """Check OpenCode's plugin, and look for other plugin files that OpenCode would load in its place."""
    if not connect.is_connected(around.environ):
        return (_absent(around),)
    found, shadows = await asyncio.gather(_OPENCODE.found(around), AREA.guarded("projects", _shadows(around)))
    if found is None:
        return (_absent(around),)  # it was removed in this moment
    return (*found, *shadows) if found[0].verdict == "good" else found


def _absent(around: Around) -> Finding:
    mend = _OPENCODE.mend(around)
    if around.config.opencode:
        return AREA.warning("file", "not installed: only the servers above are followed, no plain `opencode`", mend)
    others = [agent.title for agent in install.AGENTS if agent.is_connected(around.environ)]
    if others:
        asks = f"{' and '.join(others)} {'asks' if len(others) == 1 else 'ask'}"
        return AREA.warning("file", f"not installed: only {asks} here, no OpenCode", mend)
    return AREA.broken("file", "not installed, and no server is configured: no question can come", mend)


# --- plugins that replace it ---------------------------------------------------------------------------


async def _shadows(around: Around) -> list[Finding]:
    """Look for files of the same name: OpenCode 1.1.53 loads only one of them, the project's."""
    place, text = connect.PLUGIN.path(around.environ), connect.PLUGIN.installed(around.environ)
    directories = [around.directory, *await _projects(around)]
    found = await asyncio.to_thread(lambda: list(_twins(directories, around.environ.get("OPENCODE_CONFIG_DIR"), place)))
    findings = []
    for twin in found:
        with contextlib.suppress(OSError):
            same = twin.read_text(encoding="utf-8", errors="replace") == text
            seen = f"{twin} stands before yours in OpenCode 1.1.53"
            mend = f"rm {shlex.quote(str(twin))}"
            findings.append(AREA.warning("projects", seen, mend) if same else AREA.broken("projects", seen, mend))
    return findings or [AREA.good("projects", f"none of {len(set(directories))} has a plugin of that name")]


async def _projects(around: Around) -> list[Path]:
    """Return the recent directories of the configured servers; a server that is slow or fails is left out."""

    async def of(server: OpenCode) -> tuple[str, ...]:
        with contextlib.suppress(AgentError, TimeoutError):
            async with asyncio.timeout(DIRECTORIES_S), asked(server) as there:
                return await there.directories(RECENT_S)
        return ()

    told = await asyncio.gather(*map(of, around.config.opencode))
    return [Path(directory) for directories in told for directory in directories]


def _twins(directories: Iterable[Path], config_dir: str | None, place: Path) -> Iterator[Path]:
    above = dict.fromkeys(folder for directory in directories for folder in (directory, *directory.parents))
    bases = [folder / ".opencode" for folder in above] + ([Path(config_dir)] if config_dir else [])
    for twin in (base / folder / place.name for base in bases for folder in _FOLDERS):
        with contextlib.suppress(OSError):
            if twin.is_file() and not twin.samefile(place):
                yield twin
