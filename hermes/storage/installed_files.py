"""Files that Hermes puts into folders of other programs: written whole, recognized again, and removed.

The first line of each file says that Hermes wrote it. A file with another first line belongs to somebody else and stays
as it is.
"""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from hermes import disk
from hermes.errors import ConfigError, NotSaved

PYTHON_ANSWERS_S = 30


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
