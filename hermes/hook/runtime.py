"""The folder of the sockets and of the bots' locks: short, private to this user, and the same for all processes."""

# pathlib would cost the hook as much time as json does:
# ruff: noqa: PTH102, PTH118

from __future__ import annotations

import contextlib
import os
import stat

from hermes import disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

_RUN = "/run/user"


def folder(root: str | Path, *, shared: tuple[str, ...] | None = None) -> str:
    """Return the folder of the sockets and of the bot's lock; it is made if it is missing.

    It is the first folder of `shared` (by default `shared_folders()`) that is private to this user, else `run` in the
    store, so that another user cannot stop Hermes with a folder under /tmp. Raises OSError: `run` cannot be made, or is
    not private.
    """
    for path in shared_folders() if shared is None else shared:
        with contextlib.suppress(OSError):
            return private_folder(path)
    store = os.path.realpath(root)
    disk.make_folder(store)
    return private_folder(os.path.join(store, "run"))


def shared_folders() -> tuple[str, ...]:
    """Return the short folders that all stores of this user may share, the best one first.

    No environment variable is read, so that a hook and a listener that were started differently find each other.
    """
    mine = os.getuid()
    below_tmp = f"/tmp/hermes-{mine}"  # noqa: S108 (taken only if it is ours, a real folder, closed to others)
    run = f"{_RUN}/{mine}"
    with contextlib.suppress(OSError):
        if stat.S_ISDIR((found := os.lstat(run)).st_mode) and found.st_uid == mine:
            return f"{run}/hermes", below_tmp
    return (below_tmp,)


def private_folder(folder: str) -> str:
    """Return the folder; make it if it is missing.

    Raises PermissionError: the folder belongs to another user, is no real folder, or is open to others; OSError: it
    cannot be made.
    """
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode):
        raise PermissionError(f"{folder} is not a folder")
    if found.st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to another user (uid {found.st_uid})")
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise PermissionError(f"{folder} is open to others")
    return folder
