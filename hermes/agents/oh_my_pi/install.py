"""Where oh-my-pi takes in its extension: the user's extension folder; their settings are never touched."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes.agents.plugin_file import Plugin, settings_of


def install(*, environ: Mapping[str, str], headless: bool | None = None, **where: Any) -> list[str]:
    """Write the extension as `Plugin.install` does, and return what was done, one sentence each. Raises as that.

    `headless` gives oh-my-pi an `ask` where it has none (`-p`, `--mode rpc`); None leaves that as it is.
    """
    said = PLUGIN.install(environ=environ, headless=headless, **where)
    asks = settings_of(PLUGIN.installed(environ) or "").get("headless")
    return [*said, *(["Without a terminal it asks on the phone, too."] if asks else [])]


def folder(environ: Mapping[str, str]) -> Path:
    """Return `extensions` in the folder of its agent.

    That is `~/.omp/agent`, or what PI_CODING_AGENT_DIR, OMP_PROFILE (before PI_PROFILE) or PI_CONFIG_DIR say, as its
    dirs.ts reads them.
    """
    root = Path(environ.get("HOME") or Path.home()) / (environ.get("PI_CONFIG_DIR") or ".omp")
    profile = environ.get("OMP_PROFILE", environ.get("PI_PROFILE", "")).strip()
    if profile not in {"", "default"}:
        agent = root / "profiles" / profile / "agent"
    else:
        agent = Path(environ.get("PI_CODING_AGENT_DIR") or root / "agent").absolute()
    return agent / "extensions"


PLUGIN = Plugin("An oh-my-pi", Path(__file__).parent / "plugin.js", folder, switches=("headless",))
uninstall, is_connected = PLUGIN.uninstall, PLUGIN.is_connected
