"""Write and remove Hermes' plugin file for an agent that loads plugins from a folder."""

import contextlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hermes import disk
from hermes.errors import ConfigError
from hermes.storage import installed_files

PLUGIN_NAME = "hermes-telegram-phone.js"  # long: OpenCode 1.1.53 loads only one of two plugins with the same file name
MARKER = "// hermes-telegram-phone:"
SETTINGS = '"@SETTINGS@"'
PHONE = '"@PHONE@"\n'
_BEFORE_SETTINGS = "const settings = "


@dataclass(frozen=True, slots=True)
class Plugin:
    """Hermes' plugin for one agent: a file in the folder that the agent loads. The user's settings are never changed.

    - `agent`: the agent's name for people.
    - `template`: the JavaScript, with placeholders for the settings and for the code that plugins share.
    - `folder`: returns the agent's plugin folder for an environment.
    - `switches`: the names of additional settings, each true or false.
    - `parts`: further code, each with its placeholder.
    """

    agent: str
    template: Path
    folder: Callable[[Mapping[str, str]], Path]
    switches: tuple[str, ...] = ()
    parts: tuple[tuple[str, Path], ...] = ()

    def path(self, environ: Mapping[str, str]) -> Path:
        """Return the path of the plugin file."""
        return self.folder(environ) / PLUGIN_NAME

    def text(self, settings: Mapping[str, object]) -> str:
        """Return the JavaScript with these settings: absolute paths (python, store, log, config) and the switches."""
        text = self.template.read_text(encoding="utf-8")
        for place, part in ((PHONE, Path(__file__).with_name("racing.js")), *self.parts):
            text = text.replace(place, part.read_text(encoding="utf-8"))
        return text.replace(SETTINGS, json.dumps(dict(settings)))

    def installed(self, environ: Mapping[str, str]) -> str | None:
        """Return the text of the installed file, or None if there is no file.

        Raises ConfigError: Hermes did not write the file there, or it cannot be read.
        """
        return installed_files.installed(self.path(environ), MARKER)

    def is_connected(self, environ: Mapping[str, str]) -> bool:
        """Tell whether a file with this name exists. If the folder cannot be read, the answer is no."""
        return disk.is_there(self.path(environ))

    def is_outdated(self, environ: Mapping[str, str]) -> bool:
        """Tell whether the installed file is the plugin of another Hermes; it works, but cannot do all of this one."""
        with contextlib.suppress(ConfigError):
            text = self.installed(environ)
            return text is not None and text != self.text(settings_of(text))
        return False

    def install(
        self,
        *,
        environ: Mapping[str, str],
        python: str,
        config_path: Path,
        store: Path,
        log: Path,
        **switches: bool | None,
    ) -> list[str]:
        """Write the plugin file, and return a list of sentences about it. Safe to repeat.

        `python` is an interpreter that can load Hermes (`sys.executable`); `environ` decides the folder. A switch that
        is None keeps its value in the installed file; without one it is off.
        Raises ConfigError (another program's file with that name, which stays; a Python without Hermes) and NotSaved.
        """
        paths = {"store": store, "log": log, "config": config_path}
        settings: dict[str, object] = {"python": installed_files.interpreter(python)}
        settings |= {name: str(path.absolute()) for name, path in paths.items()}
        there = self.installed(environ)
        kept = settings_of(there or "")
        if unknown := switches.keys() - set(self.switches):
            raise TypeError(f"{self.agent} has no switch {', '.join(sorted(unknown))}")
        said = {name: switches.get(name) for name in self.switches}
        switched = {name: bool(kept.get(name)) if on is None else on for name, on in said.items()}
        wanted = self.text(settings | switched)
        done = installed_files.put(self.path(environ), wanted, MARKER)
        return [done] if there == wanted else [done, f"Restart {self.agent} to load it."]

    def uninstall(self, *, environ: Mapping[str, str]) -> list[str]:
        """Remove only the plugin file, and return a list of sentences about it. Safe to repeat.

        Raises ConfigError (another program's file with that name, which stays) and NotSaved.
        """
        place = self.path(environ)
        if not installed_files.take_away(place, MARKER):
            return [f"{place} is not there; nothing was changed."]
        return [f"{place} was removed.", f"{self.agent} keeps it in memory until you restart it."]


def settings_of(text: str) -> dict[str, object]:
    """Return the settings in the text of a plugin file, or {} if it has another shape."""
    with contextlib.suppress(ValueError):
        found = json.JSONDecoder().raw_decode(text.partition(_BEFORE_SETTINGS)[2])[0]
        if isinstance(found, dict):
            return found
    return {}
