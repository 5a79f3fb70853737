"""Install Hermes' plugin into the user's plugin folder of Neovate Code; the user's settings are never changed."""

from collections.abc import Mapping
from pathlib import Path

from hermes.agents.plugin_file import Plugin


def folder(environ: Mapping[str, str]) -> Path:
    """Return `~/.neovate/plugins`."""
    return Path(environ.get("HOME") or Path.home()) / ".neovate" / "plugins"


PLUGIN = Plugin("Neovate Code", Path(__file__).parent / "plugin.js", folder)
install, uninstall, is_connected = PLUGIN.install, PLUGIN.uninstall, PLUGIN.is_connected
