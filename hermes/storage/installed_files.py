"""Files of ours in other people's folders: put there whole, recognised again, and taken away.

Whoever reads them is another program, so they say in their first line who wrote them; what does not begin with that
is somebody else's, and stays as it is.
"""

import contextlib
import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hermes import disk
from hermes.errors import ConfigError, NotSaved

PYTHON_ANSWERS_S = 30
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
        shared = (Path(__file__).parents[1] / "agents" / "racing.js").read_text(encoding="utf-8")
        text = self.template.read_text(encoding="utf-8").replace(PHONE, shared)
        return text.replace(SETTINGS, json.dumps(dict(settings)))

    def installed(self, environ: Mapping[str, str]) -> str | None:
        """Return the text that is in place, None where there is nothing. Raises ConfigError: it is not ours."""
        return installed(self.path(environ), MARKER)

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
        settings: dict[str, object] = {"python": interpreter(python)}
        settings |= {name: str(path.absolute()) for name, path in paths.items()}
        there = settings_of(self.installed(environ) or "")
        if unknown := switches.keys() - set(self.switches):
            raise TypeError(f"{self.agent} has no switch {', '.join(sorted(unknown))}")
        said = {name: switches.get(name) for name in self.switches}
        switched = {name: bool(there.get(name)) if on is None else on for name, on in said.items()}
        done = put(self.path(environ), self.text(settings | switched), MARKER)
        if "already" in done:
            return [done]
        return [done, f"{self.agent} that is running takes it in when it is started again."]

    def uninstall(self, *, environ: Mapping[str, str]) -> list[str]:
        """Remove it, nothing else, and return what was done, one sentence each. Safe to repeat.

        Raises ConfigError (a foreign file of that name, which stays) and NotSaved.
        """
        place = self.path(environ)
        if not take_away(place, MARKER):
            return [f"{place} is not there; nothing was changed."]
        return [f"{place} was removed.", f"{self.agent} that is running keeps it until it is started again."]


def settings_of(text: str) -> dict[str, object]:
    """Return the settings that stand in a plugin; none where it has another shape."""
    with contextlib.suppress(ValueError):
        found = json.JSONDecoder().raw_decode(text.partition(_BEFORE_SETTINGS)[2])[0]
        if isinstance(found, dict):
            return found
    return {}


def interpreter(python: str) -> str:
    """Return the absolute path of a Python that can load Hermes, with no shim in front of it.

    The interpreter is asked itself: a shim of pyenv (ten times as slow) names the real one, and a virtual
    environment's names itself, not what its link points to, which would know nothing of Hermes.
    Raises ConfigError.
    """
    command = [python, "-I", "-c", "import sys, hermes.hook; print(sys.executable)"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=PYTHON_ANSWERS_S, check=True)
    except (OSError, subprocess.SubprocessError):
        raise ConfigError(f"{python} is no Python that has Hermes; run this with the one that has.") from None
    return answer.stdout.strip()


def installed(place: Path, marker: str) -> str | None:
    """Return the text of our own file there, which begins with the marker (the plugin's); None where there is nothing.

    Raises ConfigError: something else has its name.
    """
    try:
        found = place.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{place} cannot be read ({error.strerror}).") from None
    if not found.startswith(marker):
        raise ConfigError(f"{place} was not written by Hermes; it stays as it is. Move it away first.")
    return found


def replace(place: Path, text: str, *, mode: int = 0o600) -> None:
    """Put the whole text there, for us alone to read or as `mode` says, or leave what is there. Raises OSError."""
    place.parent.mkdir(parents=True, exist_ok=True)
    disk.write(place, text.encode(), mode=mode)


def put(place: Path, text: str, marker: str) -> str:
    """Put our own file there, and return what became of it, as in "PLACE is installed."; a link is followed.

    Raises ConfigError (a foreign file of that name, which stays) and NotSaved.
    """
    there = installed(place, marker)
    if there == text:
        return f"{place} is already installed and up to date."
    with saving(place):
        replace(place.resolve(), text)
    return f"{place} {'was updated' if there is not None else 'is installed'}."


def take_away(place: Path, marker: str) -> bool:
    """Remove our own file, and the link to it, and tell whether there was one. Raises as `put`."""
    if installed(place, marker) is None:
        return False
    with saving(place):
        place.resolve().unlink()
        if place.is_symlink():
            place.unlink()
    return True


@contextlib.contextmanager
def saving(place: Path) -> Iterator[None]:
    """Say in one sentence that this file could not be changed. Raises NotSaved."""
    try:
        yield
    except OSError as error:
        raise NotSaved(f"{place} could not be changed ({error.strerror}).") from None
