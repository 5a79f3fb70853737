"""Install Hermes' plugin into the user's plugin folder of OpenCode; the user's JSON files are never changed."""

from collections.abc import Mapping
from pathlib import Path

from hermes.agents.plugin_file import Plugin


def folder(environ: Mapping[str, str]) -> Path:
    """Return `opencode/plugin` in the user's configuration folder.

    OpenCode also reads this folder if OPENCODE_CONFIG_DIR names another one.
    """
    base = environ.get("XDG_CONFIG_HOME") or ""
    home = Path(environ.get("HOME") or Path.home())
    config = Path(base) if Path(base).is_absolute() else home / ".config"
    return config / "opencode" / "plugin"


def without_plugin(version: str) -> str:
    """Return why this version of OpenCode gets no plugin, "" if it does: version 2 loads none of version 1."""
    if not version.startswith("2."):
        return ""
    return (
        f"OpenCode {version} needs no plugin: Hermes finds its server by itself, as long as a listener runs "
        "(`hermes install service`)."
    )


_HERE = Path(__file__).parent
PLUGIN = Plugin("OpenCode", _HERE / "plugin.js", folder, parts=(('"@CALLS@"\n', _HERE / "calls.js"),))
install, uninstall, is_connected = PLUGIN.install, PLUGIN.uninstall, PLUGIN.is_connected
