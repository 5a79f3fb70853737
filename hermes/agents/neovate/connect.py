"""Neovate Code's plugin: one file of our own in the user's plugin folder; their settings are never touched.

Both directions say what they did, and are safe to repeat.
"""

from collections.abc import Mapping
from pathlib import Path

from hermes.placing import MARKER, filled_in, interpreter, put, take_away

PLUGIN_NAME = "hermes-telegram-phone.js"
_TEMPLATE = Path(__file__).parent / "plugin.js"


def install(*, environ: Mapping[str, str], python: str, config_path: Path, store: Path, log: Path) -> list[str]:
    """Write the plugin, and return what was done, one sentence each.

    `python` is the interpreter that has Hermes (`sys.executable`), `environ` says where Neovate looks.
    Raises ConfigError and NotSaved as `hermes.placing.put`.
    """
    paths = {"store": store, "log": log, "config": config_path}
    settings = {"python": interpreter(python)} | {name: str(path.absolute()) for name, path in paths.items()}
    done = put(plugin_path(environ), filled_in(_TEMPLATE, settings), MARKER)
    return [done] if "already" in done else [done, "A Neovate that is running takes it in when it is started again."]


def uninstall(*, environ: Mapping[str, str]) -> list[str]:
    """Remove the plugin, nothing else, and return what was done, one sentence each. Raises as `install`."""
    place = plugin_path(environ)
    if not take_away(place, MARKER):
        return [f"{place} is not there; nothing was changed."]
    return [f"{place} was removed.", "A Neovate that is running keeps it until it is started again."]


def is_connected(environ: Mapping[str, str]) -> bool:
    """Tell whether something of this name is in place."""
    return plugin_path(environ).exists()


def plugin_path(environ: Mapping[str, str]) -> Path:
    """Return where the plugin belongs: `~/.neovate/plugins`."""
    return Path(environ.get("HOME") or Path.home()) / ".neovate" / "plugins" / PLUGIN_NAME
