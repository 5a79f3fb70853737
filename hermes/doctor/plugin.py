"""The plugin in OpenCode: is it there, is it ours and of this version, do its paths live, does OpenCode load it."""

import asyncio
import contextlib
import json
import os
import shlex
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import hermes
from hermes import install, placing
from hermes.agents.opencode import connect
from hermes.doctor.finding import Area, Around, Finding
from hermes.doctor.opencode import asked
from hermes.errors import AgentError, ConfigError
from hermes.settings import OpenCode

AREA = Area("OpenCode plugin")

RECENT_S: Final = 7 * 86400.0
DIRECTORIES_S: Final = 2.0
PYTHON_S: Final = 4.0
_FOLDERS = ("plugin", "plugins")
_SAY_VERSION = "import hermes, hermes.hook; print(hermes.__version__)"


async def look(around: Around) -> tuple[Finding, ...]:
    """Check the installed file, then what it names, and who stands before it."""
    place = connect.plugin_path(around.environ)
    try:
        text = placing.installed(place, connect.MARKER)
    except ConfigError as error:
        return (
            AREA.broken(
                "file", str(error), f"mv {shlex.quote(str(place))} {shlex.quote(f'{place}.old')} && {_install(around)}"
            ),
        )
    if text is None:
        return (_absent(around),)
    settings = _settings(text)
    found = await asyncio.gather(
        AREA.guarded("version", asyncio.to_thread(_version, around, text, settings)),
        AREA.guarded("python", asyncio.to_thread(_python, around, settings)),
        AREA.guarded("paths", asyncio.to_thread(_paths, around, settings)),
        AREA.guarded("projects", _shadows(around, place, text)),
    )
    return AREA.good("file", str(place)), *(finding for findings in found for finding in findings)


def _install(around: Around) -> str:
    return around.hermes("install", "opencode")


def _absent(around: Around) -> Finding:
    if around.config.opencode:
        return AREA.warning(
            "file", "not installed: only the servers above are followed, no plain `opencode`", _install(around)
        )
    others = [agent.title for agent in install.AGENTS if agent.is_connected(around.environ)]
    if others:
        asks = f"{' and '.join(others)} {'asks' if len(others) == 1 else 'ask'}"
        return AREA.warning("file", f"not installed: only {asks} here, no OpenCode", _install(around))
    return AREA.broken("file", "not installed, and no server is configured: no question can come", _install(around))


def _settings(text: str) -> dict[str, str]:
    """The paths that stand in an installed plugin; none where it has another shape."""
    _, _, rest = text.partition("const settings = ")
    with contextlib.suppress(ValueError):
        found = json.JSONDecoder().raw_decode(rest)[0]
        if isinstance(found, dict):
            return {name: path for name, path in found.items() if isinstance(path, str)}
    return {}


def _version(around: Around, text: str, settings: dict[str, str]) -> list[Finding]:
    if text != connect.plugin_text(settings):
        return [_outdated(around, settings, "version", f"not the plugin of Hermes {hermes.__version__}")]
    return [AREA.good("version", f"of Hermes {hermes.__version__}")]


def _outdated(around: Around, settings: dict[str, str], check: str, seen: str) -> Finding:
    """Its paths stay as they are, where there are any: another configuration may be meant."""
    paths = {name: Path(settings.get(name) or path) for name, path in around.plugin_paths().items()}
    mend = _install(replace(around, config_file=paths["config"]))
    return AREA.broken(check, seen, mend, lambda: around.put(connect.install, paths))


def _python(around: Around, settings: dict[str, str]) -> list[Finding]:
    python = settings.get("python", "")
    if not os.access(python, os.X_OK) or not Path(python).is_file():
        seen = f"{python or 'none'} is no program (any more), so no hook starts"
        return [_outdated(around, settings, "python", seen)]
    version = says_version(python)
    if version is None:
        return [_outdated(around, settings, "python", f"{python} cannot load Hermes, so no hook starts")]
    if version != hermes.__version__:
        return [
            AREA.warning("python", f"{python} has Hermes {version}, this is {hermes.__version__}", _install(around))
        ]
    return [AREA.good("python", f"{python} loads Hermes {version}")]


def says_version(python: str) -> str | None:
    """Return the version of Hermes that this interpreter loads, None where it loads none."""
    command = [python, "-I", "-c", _SAY_VERSION]
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=PYTHON_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return told.stdout.strip()


def _paths(around: Around, settings: dict[str, str]) -> list[Finding]:
    """Another path than ours may be meant (another configuration): so it is said, and not mended by itself."""
    wanted = around.plugin_paths()
    other = {name: settings.get(name, "") for name, path in wanted.items() if settings.get(name) != str(path)}
    if not other:
        return [AREA.good("paths", "store, log and configuration are the ones in use")]
    seen = "; ".join(f"its {name} is {path or 'none'}, not {wanted[name]}" for name, path in other.items())
    mend = _install(around)
    return [AREA.broken("paths", seen, mend) if "store" in other else AREA.warning("paths", seen, mend)]


# --- who stands before it ------------------------------------------------------------------------------


async def _shadows(around: Around, place: Path, text: str) -> list[Finding]:
    """OpenCode 1.1.53 takes two plugins of one file name for one, and a project's for the one that counts."""
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
    """The directories that the configured servers worked in lately, as far as they tell at once."""

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
