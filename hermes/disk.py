"""Files that survive: written whole or not at all, for our eyes only. Spool and store write by this module alone.

A file is written beside its place under a name that nobody reads, brought to the disk, and then takes its place in one
step; the folder is brought to the disk after it. A process that dies on the way leaves the old content and a temporary
file, which `sweep` removes. If the disk refuses, `saving` has plain words for it.

Once a file stands in its place, nothing is raised any more: the caller would say that nothing was kept, and everybody
else would read it. So the folder is opened before that step, and if it cannot be brought to the disk (some network
file systems know no such thing), a power cut may take the newest file, and nothing else happens.

The hook loads this module while an agent waits for it: the standard library's cheapest parts only.
"""

# pathlib would cost the hook as much as json does; `listing` alone gives out real Paths:
# ruff: noqa: PTH100, PTH101, PTH102, PTH104, PTH105, PTH108, PTH116, PTH118, PTH120

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    Place = str | os.PathLike[str]

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
    errno.ENOENT: "the folder is gone; start Hermes again, and it makes the folder",
    errno.ENOTDIR: "a file stands where a folder is needed; move it away",
    errno.EEXIST: "a file stands where a folder is needed; move it away",
    errno.EISDIR: "a folder stands where a file is needed; move it away",
    errno.ELOOP: "a link stands where a file or folder is needed; remove it",
    errno.EMFILE: "this process has too many files open; see `ulimit -n`",
    errno.EIO: "the disk reports an error; look at its health",
}


@contextlib.contextmanager
def saving(folder: Place) -> Iterator[None]:
    """Turn every refusal of the operating system into `NotSaved`, which names `folder` and what to do."""
    try:
        yield
    except OSError as error:
        from hermes.errors import NotSaved  # noqa: PLC0415 (the hook has no use for it)

        why = _SENTENCES.get(error.errno or 0, f"{error.strerror or error}; see that the folder can be written")
        full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        raise NotSaved(f"nothing was saved in {folder}: {why}", disk_full=full) from error


@contextlib.contextmanager
def reading(place: Place) -> Iterator[None]:
    """Turn every refusal of the operating system into `StoreError`, which names `place`."""
    try:
        yield
    except OSError as error:
        from hermes.errors import StoreError  # noqa: PLC0415 (the hook has no use for it)

        raise StoreError(f"{place} cannot be read: {error.strerror or error}") from error


def make_folder(path: Place) -> None:
    """Make the folder and all that is missing above it, each with mode 0700; what is there stays as it is.

    Raises:
        OSError: it cannot be made.
    """
    if os.path.lexists(path):
        return
    above = os.path.dirname(os.path.abspath(path))
    make_folder(above)
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, _FOLDER_MODE)
        sync_folder(above)


def own_folder(path: Place) -> None:
    """Make the folder, or take the one that is there; either way it ends with mode 0700.

    Raises:
        StoreError: it belongs to another user, or to nobody but a link of another user.
        OSError: it cannot be made.
    """
    from hermes.errors import StoreError  # noqa: PLC0415 (the hook has no use for it)

    make_folder(path)
    link, found = os.lstat(path), os.stat(path)
    if stat.S_ISLNK(link.st_mode) and link.st_uid not in {os.geteuid(), 0}:
        raise StoreError(f"{path} is a link that belongs to another user (uid {link.st_uid}); remove it")
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
    if found.st_uid != os.geteuid():
        message = f"{path} belongs to another user (uid {found.st_uid}); run Hermes as that user"
        raise StoreError(f"{message}, or set store.path to a folder of your own")
    if stat.S_IMODE(found.st_mode) != _FOLDER_MODE:
        os.chmod(path, _FOLDER_MODE)


def write(path: Place, data: bytes, *, mode: int = 0o600) -> None:
    """Give the file this content and mode, durably; on failure what was there is unchanged.

    Raises:
        OSError: as it comes; `saving` has the words for it.
    """
    folder, name = os.path.split(os.path.abspath(path))
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.tmp")
    with _open_folder(folder) as opened:
        try:
            _write_new(temporary, data, mode)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        _sync_open_folder(opened)


def append(path: Place, data: bytes) -> None:
    """Add `data` to the end of the file, durably; the file is made if it is not there.

    A process that dies on the way may leave a part of it.

    Raises:
        OSError: as it comes; a part of `data` may stand there.
    """
    folder = os.path.dirname(os.path.abspath(path))
    with _open_folder(folder) as opened:
        is_new = not os.path.lexists(path)
        _write_all(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600), data)
        if is_new:
            _sync_open_folder(opened)


def move(source: Place, target: Place) -> None:
    """Rename durably, from one folder to another."""
    folders = [os.path.dirname(os.path.abspath(path)) for path in (target, source)]
    with _open_folder(folders[0]) as into, _open_folder(folders[1]) as out:
        os.rename(source, target)
        _sync_open_folder(into)
        _sync_open_folder(out)


def read(path: Place) -> bytes:
    """Return the content; a link is not followed, and a pipe is not waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        pieces = []
        while piece := os.read(descriptor, _READ_BYTES):
            pieces.append(piece)
    finally:
        os.close(descriptor)
    return b"".join(pieces)


def sweep(folder: Place) -> int:
    """Remove temporary files that a dead writer left, and return how many. No writer may be alive."""
    leftovers = [path for path in listing(folder) if path.name.startswith(".") and path.suffix == ".tmp"]
    for path in leftovers:
        path.unlink(missing_ok=True)
    return len(leftovers)


def listing(folder: Place) -> list[Path]:
    """Return what is in the folder, by name; nothing if there is no such folder."""
    from pathlib import Path  # noqa: PLC0415 (the hook has no use for it)

    try:
        return sorted(Path(folder).iterdir())
    except FileNotFoundError:
        return []


def sync_folder(path: Place) -> None:
    """Bring the folder's own entries to the disk, if its file system can. Raises OSError: it cannot be opened."""
    with _open_folder(path) as opened:
        _sync_open_folder(opened)


@contextlib.contextmanager
def _open_folder(path: Place) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _sync_open_folder(descriptor: int) -> None:
    # What stands in it is there for everybody to read, whatever the disk says now.
    with contextlib.suppress(OSError):
        _sync(descriptor)


def _write_new(path: str, data: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    _write_all(descriptor, data, mode)


def _write_all(descriptor: int, data: bytes, mode: int = 0o600) -> None:
    """Write all of it, bring it to the disk, and close the descriptor."""
    try:
        os.fchmod(descriptor, mode)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        _sync(descriptor)
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
