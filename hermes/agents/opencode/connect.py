"""OpenCode's plugin: one file of our own in the user's plugin folder; their JSON is never touched.

Both directions say what they did, and are safe to repeat.
"""

from collections.abc import Mapping
from pathlib import Path

from hermes.placing import MARKER, SETTINGS, filled_in, interpreter, put, take_away

PLUGIN_NAME = "hermes-telegram-phone.js"  # OpenCode 1.1.53 takes two plugins of one file name for one

__all__ = ["MARKER", "PLUGIN_NAME", "SETTINGS", "install", "plugin_path", "plugin_text", "uninstall"]

_TEMPLATE = Path(__file__).parent / "plugin.js"


def install(*, environ: Mapping[str, str], python: str, config_path: Path, store: Path, log: Path) -> list[str]:
    """Write the plugin, and return what was done, one sentence each.

    `python` is the interpreter that has Hermes (`sys.executable`), `environ` says where OpenCode looks.
    Raises ConfigError (a foreign file of that name; a Python without Hermes) and NotSaved.
    """
    place = plugin_path(environ)
    paths = {"store": store, "log": log, "config": config_path}
    settings = {"python": interpreter(python)} | {name: str(path.absolute()) for name, path in paths.items()}
    done = put(place, plugin_text(settings), MARKER)
    if "already" in done:
        return [done]
    return [done, "An OpenCode that is running takes it in when it is started again."]


def uninstall(*, environ: Mapping[str, str]) -> list[str]:
    """Remove the plugin, nothing else, and return what was done, one sentence each.

    Raises ConfigError (a foreign file of that name, which stays) and NotSaved.
    """
    place = plugin_path(environ)
    if not take_away(place, MARKER):
        return [f"{place} is not there; nothing was changed."]
    return [f"{place} was removed.", "An OpenCode that is running keeps it until it is started again."]


def is_connected(environ: Mapping[str, str]) -> bool:
    """Tell whether something of this name is in place."""
    return plugin_path(environ).exists()


def plugin_path(environ: Mapping[str, str]) -> Path:
    """Return where the plugin belongs: `opencode/plugin` in the user's configuration folder.

    OpenCode reads that folder whatever OPENCODE_CONFIG_DIR names besides.
    """
    base = environ.get("XDG_CONFIG_HOME") or ""
    home = Path(environ.get("HOME") or Path.home())
    config = Path(base) if Path(base).is_absolute() else home / ".config"
    return config / "opencode" / "plugin" / PLUGIN_NAME


def plugin_text(settings: Mapping[str, str]) -> str:
    """Return the plugin of this version with these settings: python, store, log and config, absolute paths."""
    return filled_in(_TEMPLATE, settings)
