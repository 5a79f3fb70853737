"""Put Hermes into an agent, and take it out again.

For OpenCode that is one file of our own in the user's plugin folder, with absolute paths in it; their JSON is
never touched. Both directions say what they did and are safe to repeat.
"""

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from hermes.errors import ConfigError, NotSaved

PLUGIN_NAME = "hermes-telegram-phone.js"  # OpenCode 1.1.53 takes two plugins of one file name for one
MARKER = "// hermes-telegram-phone:"
SETTINGS = '"@SETTINGS@"'
PYTHON_ANSWERS_S = 30
_TEMPLATE = Path(__file__).parent / "agents" / "opencode" / "plugin.js"


def install_opencode(
    *, environ: Mapping[str, str], python: str, config_path: Path, store: Path, log: Path
) -> list[str]:
    """Write the plugin, and return what was done, one sentence each.

    `python` is the interpreter that has Hermes (`sys.executable`), `environ` says where OpenCode looks.
    Raises ConfigError (a foreign file of that name; a Python without Hermes) and NotSaved.
    """
    place = plugin_path(environ)
    paths = {"store": store, "log": log, "config": config_path}
    settings = {"python": interpreter(python)} | {name: str(path.absolute()) for name, path in paths.items()}
    wanted = _TEMPLATE.read_text(encoding="utf-8").replace(SETTINGS, json.dumps(settings))
    there = _ours(place)
    if there == wanted:
        return [f"{place} is already installed and up to date."]
    with _saving(place):
        _replace(place.resolve(), wanted)
    done = "was updated" if there is not None else "is installed"
    return [f"{place} {done}.", "An OpenCode that is running takes it in when it is started again."]


def uninstall_opencode(*, environ: Mapping[str, str]) -> list[str]:
    """Remove the plugin, nothing else, and return what was done, one sentence each.

    Raises ConfigError (a foreign file of that name, which stays) and NotSaved.
    """
    place = plugin_path(environ)
    if _ours(place) is None:
        return [f"{place} is not there; nothing was changed."]
    with _saving(place):
        place.resolve().unlink()
        if place.is_symlink():
            place.unlink()
    return [f"{place} was removed.", "An OpenCode that is running keeps it until it is started again."]


def plugin_path(environ: Mapping[str, str]) -> Path:
    """Return where the plugin belongs: `opencode/plugin` in the user's configuration folder.

    OpenCode reads that folder whatever OPENCODE_CONFIG_DIR names besides.
    """
    base = environ.get("XDG_CONFIG_HOME") or ""
    home = Path(environ.get("HOME") or Path.home())
    config = Path(base) if Path(base).is_absolute() else home / ".config"
    return config / "opencode" / "plugin" / PLUGIN_NAME


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


def _ours(place: Path) -> str | None:
    """Return the text of our plugin there, None where there is nothing.

    Raises ConfigError: something else has its name.
    """
    try:
        found = place.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{place} cannot be read ({error.strerror}).") from None
    if not found.startswith(MARKER):
        raise ConfigError(f"{place} was not written by Hermes; it stays as it is. Move it away first.")
    return found


def _replace(place: Path, text: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    unfinished = place.with_name(f".{place.name}.{os.getpid()}")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        unfinished.replace(place)
    finally:
        unfinished.unlink(missing_ok=True)


@contextlib.contextmanager
def _saving(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise NotSaved(f"{place} could not be changed ({error.strerror}).") from None
