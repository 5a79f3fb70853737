"""Reads one file of a project for the phone, and no other file of the machine.

- The file must be inside the project by its real path. Each step of that path is opened in the folder before it and
  follows no link, so that a path that is changed meanwhile leads nowhere else.
- Only a plain file is opened: to open a device or a pipe can have an effect.
- No file that may hold secrets or that the agent's permissions exclude, by its own name or by that of a link to it,
  none of Hermes' own, and none that git ignores in the project. Git is asked without its index, so that it runs
  nothing that the settings of a project name.
- Programs keep their logins in hidden files and folders of the home folder: none of these if the project contains it.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from hermes.agents.prompting import Excludes
from hermes.core.secret_files import is_secret
from hermes.hook.starting import built_environment
from hermes.model.project_file import MOST_BYTES, FileFault, ProjectFile

PROGRAMS: Final = "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin"
GIT_S: Final = 10.0
_CHUNK: Final = 1 << 20
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class _RefusedError(Exception):
    def __init__(self, fault: FileFault) -> None:
        super().__init__(fault)
        self.fault: FileFault = fault


def fetch(
    project: str,
    path: str,
    *,
    excludes: Excludes,
    private: Iterable[Path] = (),
    programs: str = PROGRAMS,
) -> ProjectFile | FileFault:
    """Return the file with this path, absolute or from the folder of the project; blocks until it is read.

    `excludes` knows the agent's permissions, `private` are the files and folders that are Hermes' own, and
    `programs` is the search path for git.
    """
    try:
        return _fetched(project, path, excludes, private, programs)
    except _RefusedError as refused:
        return refused.fault
    except (FileNotFoundError, NotADirectoryError):
        return "missing"
    except (OSError, ValueError):  # the second: a zero byte in the path
        return "unreadable"


def _fetched(project: str, path: str, excludes: Excludes, private: Iterable[Path], programs: str) -> ProjectFile:
    root, given = Path(os.path.realpath(project, strict=True)), Path(path)
    real = Path(os.path.realpath(root / given))
    parts = _inside(real, root)
    if is_secret(given.name if given.is_absolute() else path) or is_secret(str(real)):
        raise _RefusedError("secret")
    if _is_hidden_at_home(root, parts) or _is_in(real, private):
        raise _RefusedError("secret")
    if any(excludes(name) for name in {os.path.normpath(one) for one in (project / given, root / given, real)}):
        raise _RefusedError("excluded")
    file = _opened(root, parts)
    try:
        if any(_is_ignored(folder, name, programs) for folder, name in _in_repositories(root, parts)):
            raise _RefusedError("ignored")
        return ProjectFile(parts[-1], _content(file))
    finally:
        os.close(file)


def _inside(real: Path, root: Path) -> Sequence[str]:
    """Return the steps from the project to this real path."""
    if real == root:
        raise _RefusedError("folder")
    if not real.is_relative_to(root):
        raise _RefusedError("outside")
    return real.relative_to(root).parts


def _is_hidden_at_home(root: Path, parts: Sequence[str]) -> bool:
    """Tell whether the project contains the home folder, and this path has a hidden file or folder."""
    home = Path(os.environ.get("HOME") or built_environment({})["HOME"])
    return any(part.startswith(".") for part in parts) and _is_in(Path(os.path.realpath(home)), [root])


def _is_in(real: Path, places: Iterable[Path]) -> bool:
    """Tell whether a real path is one of the places or in one, by whatever name: capitals may count or not."""
    return not set(_identities(places)).isdisjoint(_identities((real, *real.parents)))


def _identities(places: Iterable[Path]) -> Iterator[tuple[int, int]]:
    for place in places:
        with suppress(OSError):
            found = place.stat()
            yield found.st_dev, found.st_ino


def _opened(root: Path, parts: Sequence[str]) -> int:
    folder = os.open(root, _FOLDER)
    try:
        for name in parts[:-1]:
            inner = os.open(name, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        _check(os.stat(parts[-1], dir_fd=folder, follow_symlinks=False))
        return os.open(parts[-1], _FILE, dir_fd=folder)
    finally:
        os.close(folder)


def _check(found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise _RefusedError("folder")
    if not stat.S_ISREG(found.st_mode):
        raise _RefusedError("special")
    if not found.st_size:  # those of /proc say so, too: they have more secrets than content
        raise _RefusedError("empty")
    if found.st_size > MOST_BYTES:
        raise _RefusedError("large")


def _content(file: int) -> bytes:
    """Return the content of an open file, which may have been changed since it was looked at."""
    _check(os.fstat(file))
    content = bytearray()
    while more := os.read(file, _CHUNK):
        content += more
        if len(content) > MOST_BYTES:
            raise _RefusedError("large")
    if not content:
        raise _RefusedError("empty")
    return bytes(content)


def _in_repositories(root: Path, parts: Sequence[str]) -> Iterator[tuple[Path, str]]:
    """Yield the folder of each repository whose rules count for a file, and the path of the file from there.

    One that begins above the project counts from the folder of the project.
    """
    if any(_has_git(folder) for folder in (root, *root.parents)):
        yield root, "/".join(parts)
    for depth in range(1, len(parts)):
        folder = root.joinpath(*parts[:depth])
        if _has_git(folder):
            yield folder, "/".join(parts[depth:])


def _has_git(folder: Path) -> bool:
    return os.path.lexists(folder / ".git")


def _is_ignored(folder: Path, name: str, programs: str) -> bool:
    git = shutil.which("git", path=programs)
    if git is None:
        raise _RefusedError("unchecked")
    environ = {**built_environment({}), "PATH": programs, "LC_ALL": "C"}
    asked = [
        "-c",
        "core.fsmonitor=false",
        "-C",
        str(folder),
        "check-ignore",
        "--no-index",
        "--quiet",
        "--",
        f"./{name}",
    ]
    try:
        status = subprocess.run(
            [git, *asked], env=environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=GIT_S, check=False
        ).returncode
    except (OSError, subprocess.TimeoutExpired):
        raise _RefusedError("unchecked") from None
    if status not in {0, 1}:
        raise _RefusedError("unchecked")
    return status == 0
