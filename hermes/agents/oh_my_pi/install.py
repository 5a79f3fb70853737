"""Install Hermes' extension into the user's extension folder of oh-my-pi; the user's settings are never changed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes.agents.plugin_file import Plugin, settings_of


def install(*, environ: Mapping[str, str], headless: bool | None = None, **where: Any) -> list[str]:
    """Write the extension as `Plugin.install` does, and return a list of sentences about it. Raises the same errors.

    With `headless`, oh-my-pi gets a tool `ask` in the modes that have none (`-p`, `--mode rpc`). None keeps the value.
    """
    said = PLUGIN.install(environ=environ, headless=headless, **where)
    asks = settings_of(PLUGIN.installed(environ) or "").get("headless")
    return [*said, *(["Without a terminal it asks on the phone, too."] if asks else [])]


def folder(environ: Mapping[str, str]) -> Path:
    """Return the folder `extensions` in oh-my-pi's agent folder, with the rules of oh-my-pi's dirs.ts.

    The agent folder is `~/.omp/agent`; PI_CONFIG_DIR replaces `.omp`. If OMP_PROFILE (if that is not set: PI_PROFILE)
    names a profile other than "default", it is `~/.omp/profiles/NAME/agent`. Otherwise PI_CODING_AGENT_DIR replaces the
    whole path.
    """
    root = Path(environ.get("HOME") or Path.home()) / (environ.get("PI_CONFIG_DIR") or ".omp")
    profile = environ.get("OMP_PROFILE", environ.get("PI_PROFILE", "")).strip()
    if profile not in {"", "default"}:
        agent = root / "profiles" / profile / "agent"
    else:
        agent = Path(environ.get("PI_CODING_AGENT_DIR") or root / "agent").absolute()
    return agent / "extensions"


PLUGIN = Plugin("oh-my-pi", Path(__file__).parent / "plugin.js", folder, switches=("headless",))
uninstall, is_connected = PLUGIN.uninstall, PLUGIN.is_connected
