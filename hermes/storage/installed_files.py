"""Install, recognise and remove files of Hermes in the folders of other programs.

A plugin file begins with a marker that says that Hermes wrote it. `put` and `take_away` refuse a file without the
marker and leave it unchanged; `replace` does not check the old content.
"""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from hermes import disk
from hermes.errors import ConfigError, NotSaved

PYTHON_ANSWERS_S = 30


def interpreter(python: str) -> str:
    """Return the absolute path of the Python interpreter behind `python`, which must be able to load Hermes.

    The interpreter reports its own path. Behind a pyenv shim (ten times as slow) that is the real interpreter. In a
    virtual environment it is the path inside it, not the target of its link, which could not load Hermes.
    Raises ConfigError: `python` does not start, or cannot load Hermes.
    """
    command = [python, "-I", "-c", "import sys, hermes.hook; print(sys.executable)"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=PYTHON_ANSWERS_S, check=True)
    except (OSError, subprocess.SubprocessError):
        raise ConfigError(f"{python} is not a Python that has Hermes installed; run this with one that has.") from None
    return answer.stdout.strip()


def installed(place: Path, marker: str) -> str | None:
    """Return the text of Hermes' file at `place`, which begins with `marker`, or None if there is no file.

    Raises ConfigError: the file there is not Hermes', or cannot be read.
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
    """Write the text with this file mode, or leave the file unchanged. Raises OSError.

    A folder that is missing is made closed to others: agents and service managers execute what lies in it.
    """
    disk.make_folder(place.parent)
    disk.write(place, text.encode(), mode=mode)


def put(place: Path, text: str, marker: str) -> str:
    """Write Hermes' file, through a link if `place` is one, and return a sentence such as "PLACE is installed.".

    Raises ConfigError: as `installed`; NotSaved: the file could not be changed.
    """
    there = installed(place, marker)
    if there == text:
        return f"{place} is already installed and up to date."
    with saving(place):
        replace(place.resolve(), text)
    return f"{place} {'was updated' if there is not None else 'is installed'}."


def take_away(place: Path, marker: str) -> bool:
    """Remove Hermes' file and, if `place` is a link to it, the link. Tell whether there was one. Raises as `put`."""
    if installed(place, marker) is None:
        return False
    with saving(place):
        place.resolve().unlink()
        if place.is_symlink():
            place.unlink()
    remove_empty(place.parent)
    return True


def remove_empty(folder: Path) -> None:
    """Remove this folder and those above it that are empty by now, the home folder and what is above it aside."""
    while folder.name and folder not in (home := Path.home(), *home.parents):
        try:
            folder.rmdir()
        except OSError:  # it holds something, or is not ours
            return
        folder = folder.parent


@contextlib.contextmanager
def saving(place: Path) -> Iterator[None]:
    """Turn an OSError into NotSaved, with a sentence that names this file."""
    try:
        yield
    except OSError as error:
        raise NotSaved(f"{place} could not be changed ({error.strerror}).") from None
