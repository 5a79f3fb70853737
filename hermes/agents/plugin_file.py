"""The plugin file of an agent that loads plugins: its text with Hermes' settings in it, and where it belongs."""

import contextlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hermes.storage import installed_files

PLUGIN_NAME = "hermes-telegram-phone.js"  # long: OpenCode 1.1.53 takes two plugins of one file name for one
MARKER = "// hermes-telegram-phone:"
SETTINGS = '"@SETTINGS@"'
PHONE = '"@PHONE@"\n'
_BEFORE_SETTINGS = "const settings = "


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plugin of ours: one file in the folder where `agent` ("An OpenCode") looks. Its user's settings are left alone.

    `template` has the places for the settings and for what plugins share; `folder` finds the agent's folder in an
    environment. `switches` are settings besides, that are on or off.
    """

    agent: str
    template: Path
    folder: Callable[[Mapping[str, str]], Path]
    switches: tuple[str, ...] = ()

    def path(self, environ: Mapping[str, str]) -> Path:
        """Return where it belongs."""
        return self.folder(environ) / PLUGIN_NAME

    def text(self, settings: Mapping[str, object]) -> str:
        """Return it with these settings: python, store, log and config, absolute paths; and its switches."""
        shared = (Path(__file__).with_name("racing.js")).read_text(encoding="utf-8")
        text = self.template.read_text(encoding="utf-8").replace(PHONE, shared)
        return text.replace(SETTINGS, json.dumps(dict(settings)))

    def installed(self, environ: Mapping[str, str]) -> str | None:
        """Return the text that is in place, None where there is nothing. Raises ConfigError: it is not ours."""
        return installed_files.installed(self.path(environ), MARKER)

    def is_connected(self, environ: Mapping[str, str]) -> bool:
        """Tell whether something of this name is in place; a folder that nobody may look into has none."""
        with contextlib.suppress(OSError):
            return self.path(environ).exists()
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
        """Write it, and return what was done, one sentence each. Safe to repeat.

        `python` is the interpreter that has Hermes (`sys.executable`), `environ` says where the agent looks; a switch
        that is None stays as it is, off at first.
        Raises ConfigError (a foreign file of that name, which stays; a Python without Hermes) and NotSaved.
        """
        paths = {"store": store, "log": log, "config": config_path}
        settings: dict[str, object] = {"python": installed_files.interpreter(python)}
        settings |= {name: str(path.absolute()) for name, path in paths.items()}
        there = settings_of(self.installed(environ) or "")
        if unknown := switches.keys() - set(self.switches):
            raise TypeError(f"{self.agent} has no switch {', '.join(sorted(unknown))}")
        said = {name: switches.get(name) for name in self.switches}
        switched = {name: bool(there.get(name)) if on is None else on for name, on in said.items()}
        done = installed_files.put(self.path(environ), self.text(settings | switched), MARKER)
        if "already" in done:
            return [done]
        return [done, f"{self.agent} that is running takes it in when it is started again."]

    def uninstall(self, *, environ: Mapping[str, str]) -> list[str]:
        """Remove it, nothing else, and return what was done, one sentence each. Safe to repeat.

        Raises ConfigError (a foreign file of that name, which stays) and NotSaved.
        """
        place = self.path(environ)
        if not installed_files.take_away(place, MARKER):
            return [f"{place} is not there; nothing was changed."]
        return [f"{place} was removed.", f"{self.agent} that is running keeps it until it is started again."]


def settings_of(text: str) -> dict[str, object]:
    """Return the settings that stand in a plugin; none where it has another shape."""
    with contextlib.suppress(ValueError):
        found = json.JSONDecoder().raw_decode(text.partition(_BEFORE_SETTINGS)[2])[0]
        if isinstance(found, dict):
            return found
    return {}
