"""Durable files: written whole or not at all, by default private to this user. Spool and store write with this module.

`write` puts the data into a temporary file in the same folder, flushes it to the disk (fsync), renames it to its final
name in one step, and then flushes the folder. If the process is killed before the rename, the old content stays, and a
temporary file is left, which `sweep` removes. `saving` turns an error of the disk into a clear sentence.

After the rename no error is raised: the caller would report that nothing was saved, but other processes already read
the new file. So the folder is opened before the rename. If the folder cannot be flushed (some network file systems
cannot do that), a power cut may lose the newest file; there is no other effect.

The hook loads this module while an agent waits, so it imports only modules of the standard library that load quickly.
"""

# pathlib takes the hook as long to load as json, so only `listing` returns Path objects, and imports it when called:
# ruff: noqa: PTH100, PTH101, PTH102, PTH104, PTH105, PTH108, PTH110, PTH112, PTH116, PTH118, PTH120

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

NO_BYTES = 10_000_000
"""With less free space than this, nothing can be saved soon."""
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
    errno.ENOENT: "the folder was removed; start Hermes again, and it makes the folder",
    errno.ENOTDIR: "a file is where a folder should be; move it away",
    errno.EEXIST: "a file is where a folder should be; move it away",
    errno.EISDIR: "a folder is where a file should be; move it away",
    errno.ELOOP: "a link is where a file or folder should be; remove it",
    errno.EMFILE: "this process has too many files open; see `ulimit -n`",
    errno.EIO: "the disk reports an error; look at its health",
}


@contextlib.contextmanager
def saving(folder: Place) -> Iterator[None]:
    """Turn each OSError into a `NotSaved` whose message names `folder`, the reason and the remedy."""
    try:
        yield
    except OSError as error:
        from hermes.errors import NotSaved  # noqa: PLC0415 (the hook does not need it)

        why = _SENTENCES.get(error.errno or 0, f"{error.strerror or error}; see that the folder can be written")
        full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        raise NotSaved(f"nothing was saved in {folder}: {why}", disk_full=full) from error


@contextlib.contextmanager
def reading(place: Place) -> Iterator[None]:
    """Turn each OSError into a `StoreError` whose message names `place`."""
    try:
        yield
    except OSError as error:
        from hermes.errors import StoreError  # noqa: PLC0415 (the hook does not need it)

        raise StoreError(f"{place} cannot be read: {error.strerror or error}") from error


def make_folder(path: Place) -> None:
    """Make the folder and its missing parents, each with mode 0700. Change nothing if the path exists.

    Raises:
        OSError: the folder cannot be made.
    """
    if os.path.lexists(path):
        return
    above = os.path.dirname(os.path.abspath(path))
    make_folder(above)
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, _FOLDER_MODE)
        sync_folder(above)


def is_there(path: Place) -> bool:
    """Tell whether the path exists and can be seen. `Path.exists` raises an error if a folder above is closed."""
    return os.path.exists(path)


def is_taken(path: Place) -> bool:
    """Tell whether a file or a folder has this name, or a link that leads nowhere."""
    return os.path.lexists(path)


def closed_above(path: Place) -> str | None:
    """Return the nearest existing folder above the path if nothing can be made in it, else None."""
    above = os.path.dirname(os.path.realpath(path))
    while not os.path.exists(above):
        above = os.path.dirname(above)
    return None if os.path.isdir(above) and os.access(above, os.W_OK | os.X_OK) else above


def own_folder(path: Place) -> None:
    """Make the folder, or use the existing one, and make sure that its mode is 0700.

    Raises:
        StoreError: the folder, or a link in its place, belongs to another user (a link of root is accepted).
        OSError: the folder cannot be made, or the path is not a folder.
    """
    from hermes.errors import StoreError  # noqa: PLC0415 (the hook does not need it)

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
    """Write the file durably, with this content and mode. If that fails, the old file is unchanged.

    Raises:
        OSError: the file was not written; `saving` turns this into a clear sentence.
    """
    folder, name = os.path.split(os.path.abspath(path))
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.tmp")
    with _open_folder(folder) as opened:
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
            _write_all(os.open(temporary, flags, 0o600), data, mode)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        _sync_open_folder(opened)


def append(path: Place, data: bytes) -> None:
    """Append `data` to the file durably; make the file if it is missing.

    If the process is killed meanwhile, the file may contain only a part of `data`.

    Raises:
        OSError: the write failed; the file may contain a part of `data`.
    """
    folder = os.path.dirname(os.path.abspath(path))
    with _open_folder(folder) as opened:
        is_new = not os.path.lexists(path)
        _write_all(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600), data)
        if is_new:
            _sync_open_folder(opened)


def move(source: Place, target: Place) -> None:
    """Move a file durably from one folder to another. Raises OSError: it was not moved."""
    folders = [os.path.dirname(os.path.abspath(path)) for path in (target, source)]
    with _open_folder(folders[0]) as into, _open_folder(folders[1]) as out:
        os.rename(source, target)
        _sync_open_folder(into)
        _sync_open_folder(out)


def read(path: Place) -> bytes:
    """Return the content of the file. Do not follow a link, and do not wait for a pipe. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        pieces = []
        while piece := os.read(descriptor, _READ_BYTES):
            pieces.append(piece)
    finally:
        os.close(descriptor)
    return b"".join(pieces)


def sweep(folder: Place) -> int:
    """Remove the temporary files of killed processes; return their number. No other process may write there now."""
    leftovers = [path for path in listing(folder) if path.name.startswith(".") and path.suffix == ".tmp"]
    for path in leftovers:
        path.unlink(missing_ok=True)
    return len(leftovers)


def listing(folder: Place) -> list[Path]:
    """Return the paths of all files and folders in the folder, sorted by name; an empty list if it does not exist."""
    from pathlib import Path  # noqa: PLC0415 (the hook does not need it)

    try:
        return sorted(Path(folder).iterdir())
    except FileNotFoundError:
        return []


def sync_folder(path: Place) -> None:
    """Flush the list of files of the folder to the disk, if possible. Raises OSError: the folder cannot be opened."""
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
    # Other processes can already read the new file, so an error here must not look like a failed write.
    with contextlib.suppress(OSError):
        _sync(descriptor)


def _write_all(descriptor: int, data: bytes, mode: int = 0o600) -> None:
    """Write all data, flush it to the disk, and close the descriptor."""
    try:
        os.fchmod(descriptor, mode)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        _sync(descriptor)
    finally:
        os.close(descriptor)


def _sync(descriptor: int) -> None:
    # On macOS fsync leaves the data in the cache of the drive, but F_FULLFSYNC flushes that too. Some network file
    # systems do not support F_FULLFSYNC.
    if _FULL_SYNC is not None:
        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, _FULL_SYNC)
            return
    os.fsync(descriptor)
