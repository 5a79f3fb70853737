"""Files of ours in other people's folders: put there whole, recognised again, and taken away.

Whoever reads them is another program, so they say in their first line who wrote them; what does not begin with that
is somebody else's, and stays as it is.
"""

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from hermes.errors import ConfigError, NotSaved

PYTHON_ANSWERS_S = 30
MARKER = "// hermes-telegram-phone:"
SETTINGS = '"@SETTINGS@"'
PHONE = '"@PHONE@"\n'


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


def filled_in(template: Path, settings: Mapping[str, object]) -> str:
    """Return the text of a plugin of this version: its settings, and what it shares with others, in their places."""
    shared = (Path(__file__).parent / "agents" / "racing.js").read_text(encoding="utf-8")
    text = template.read_text(encoding="utf-8").replace(PHONE, shared)
    return text.replace(SETTINGS, json.dumps(dict(settings)))


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
    unfinished = place.with_name(f".{place.name}.{os.getpid()}")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            os.fchmod(descriptor, mode)
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        unfinished.replace(place)
    finally:
        unfinished.unlink(missing_ok=True)


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
