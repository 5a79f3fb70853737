"""Files that survive: written whole or not at all, for our eyes only.

A file is written beside its place under a name that nobody reads, brought to the disk, and then takes its
place in one step; the folder is brought to the disk after it. Whoever dies on the way leaves the old content
and a temporary file, which `sweep` removes. Where the disk refuses, `saving` has plain words for it.
"""

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from hermes.errors import NotSaved, StoreError

_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
_READ_BYTES = 1 << 20
_FOLDER_MODE = 0o700

_SENTENCES = {
    errno.ENOSPC: "the disk is full; free some space, then try again",
    errno.EDQUOT: "your quota on this disk is used up; free some space, then try again",
    errno.EFBIG: "the file would be larger than this process may write; see `ulimit -f`",
    errno.EROFS: "the file system is read-only; make it writable, or choose another folder",
    errno.EACCES: "this user may not write there; give the folder to the user that runs Hermes",
    errno.EPERM: "this user may not write there; give the folder to the user that runs Hermes",
    errno.ENOENT: "the folder is gone; start Hermes again, and it will be made anew",
    errno.ENOTDIR: "a file stands where a folder is needed; move it away",
    errno.EEXIST: "a file stands where a folder is needed; move it away",
    errno.EISDIR: "a folder stands where a file is needed; move it away",
    errno.ELOOP: "a link stands where a file or folder is needed; remove it",
    errno.EMFILE: "this process has too many files open; see `ulimit -n`",
    errno.EIO: "the disk reports an error; look at its health",
}


@contextlib.contextmanager
def saving(folder: Path) -> Iterator[None]:
    """Turn every refusal of the operating system into `NotSaved`, which names `folder` and what to do."""
    try:
        yield
    except OSError as error:
        why = _SENTENCES.get(error.errno or 0, f"{error.strerror or error}; see that the folder can be written")
        full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        raise NotSaved(f"nothing was saved in {folder}: {why}", disk_full=full) from error


@contextlib.contextmanager
def reading(place: Path) -> Iterator[None]:
    """Turn every refusal of the operating system into `StoreError`, which names `place`."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"{place} cannot be read: {error.strerror or error}") from error


def make_folder(path: Path) -> None:
    """Make the folder and all that is missing above it, each with mode 0700; what is there stays as it is.

    Raises:
        OSError: it cannot be made.
    """
    for folder in reversed([folder for folder in (path, *path.parents) if not os.path.lexists(folder)]):
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=_FOLDER_MODE)
            sync_folder(folder.parent)


def own_folder(path: Path) -> None:
    """Make the folder, or take the one that is there; either way it ends with mode 0700.

    Raises:
        StoreError: it belongs to another user, or to nobody but a link of another user.
        OSError: it cannot be made.
    """
    make_folder(path)
    link, found = path.lstat(), path.stat()
    if stat.S_ISLNK(link.st_mode) and link.st_uid not in {os.geteuid(), 0}:
        raise StoreError(f"{path} is a link that belongs to another user (uid {link.st_uid}); remove it")
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
    if found.st_uid != os.geteuid():
        message = f"{path} belongs to another user (uid {found.st_uid}); run Hermes as that user"
        raise StoreError(f"{message}, or set store.path to a folder of your own")
    if stat.S_IMODE(found.st_mode) != _FOLDER_MODE:
        path.chmod(_FOLDER_MODE)


def write(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Give the file this content and mode, durably; on failure what was there is unchanged.

    Raises:
        OSError: as it comes; `saving` has the words for it.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        _write_new(temporary, data, mode)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(path.parent)


def _write_new(path: Path, data: bytes, mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    try:
        os.fchmod(descriptor, mode)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        _sync(descriptor)
    finally:
        os.close(descriptor)


def move(source: Path, target: Path) -> None:
    """Rename durably, from one folder to another."""
    source.rename(target)
    sync_folder(target.parent)
    sync_folder(source.parent)


def read(path: Path) -> bytes:
    """Return the content; a link is not followed, and a pipe is not waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        pieces = []
        while piece := os.read(descriptor, _READ_BYTES):
            pieces.append(piece)
    finally:
        os.close(descriptor)
    return b"".join(pieces)


def sweep(folder: Path) -> int:
    """Remove temporary files that a dead writer left, and return how many. No writer may be alive."""
    leftovers = [path for path in listing(folder) if path.name.startswith(".") and path.suffix == ".tmp"]
    for path in leftovers:
        path.unlink(missing_ok=True)
    return len(leftovers)


def listing(folder: Path) -> list[Path]:
    """Return what is in the folder, by name; nothing where there is no such folder."""
    try:
        return sorted(folder.iterdir())
    except FileNotFoundError:
        return []


def sync_folder(path: Path) -> None:
    """Bring the folder's own entries to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _sync(descriptor)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:  # some network file systems sync files alone
            raise
    finally:
        os.close(descriptor)


def _sync(descriptor: int) -> None:
    # On macOS fsync leaves the data in the drive's own memory; F_FULLFSYNC does not. Some network file
    # systems do not know it.
    if _FULL_SYNC is not None:
        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, _FULL_SYNC)
            return
    os.fsync(descriptor)
