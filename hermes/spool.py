"""What the hook and the listener share on disk: the inbox, the waiting room, and the nudge between them.

    ROOT/inbox/TIME-PID-RANDOM.json   one record a file, in the order in which they were dropped
    ROOT/wait/ID.PID.lock             a waiting hook, alive as long as its flock is held
    ROOT/wait/ID.answer               the text that it will print; taken by rename, so one of several wins
    RUNTIME/hermes/KEY.sock           the listener's datagram socket; KEY stands for this store
    RUNTIME/hermes/KEY.ID.PID.sock    that of a waiting hook

A datagram only says "look now": whoever misses one finds the same on disk a little later. Names that begin
with a dot are files that are being written. Folders are 0700, files 0600.

The hook loads this module while an agent waits for it, so it takes the two C modules below `socket` and
`hashlib`: those load `selectors`, `enum` and OpenSSL, together a third of the hook's whole time.
"""

# pathlib would cost the hook as much as json does; `listing` alone gives out real Paths:
# ruff: noqa: PTH101, PTH102, PTH100, PTH104, PTH108, PTH112, PTH116, PTH118, PTH120, PTH123, PTH208

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat
import sys
import time
from _socket import AF_UNIX, MSG_DONTWAIT, SOCK_DGRAM, socket as _Socket  # noqa: N812 (it is a class)

try:
    from _blake2 import blake2b
except ImportError:  # pragma: no cover (a Python that was built without it)
    from hashlib import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from pathlib import Path

MAX_RECORD_BYTES = 4 * 1024 * 1024  # a payload of 1 MiB, and what JSON's escapes make of it
LEFTOVER_AFTER_S = 60.0
_RUN = "/run/user"
_LOCK_PARTS = 3  # ID.PID.lock


# --- the inbox ------------------------------------------------------------------------------------------


def drop(root: str | Path, record: dict[str, object]) -> str:
    """Keep `record` in the inbox and return the path of its file; once this returns, it survives a crash.

    Raises OSError (nothing was kept) and ValueError (the record is no JSON, or too long).
    """
    data = json.dumps(record).encode()
    if len(data) > MAX_RECORD_BYTES:
        raise ValueError("the record is too long")
    name = f"{time.time_ns():020d}-{os.getpid()}-{os.urandom(4).hex()}.json"
    return _write(_folder(root, "inbox"), name, data)


def listing(root: str | Path) -> list[Path]:
    """Return the paths of all complete records, oldest first; none where there is no inbox yet."""
    from pathlib import Path  # noqa: PLC0415 (the hook has no use for it)

    folder = Path(root) / "inbox"
    return [folder / name for name in sorted(_names(str(folder))) if name.endswith(".json")]


def read(path: str | Path) -> dict[str, object]:
    """Return the record in this file.

    Raises ValueError (damaged: no JSON object, too long) and OSError (FileNotFoundError: another took it).
    """
    with open(path, "rb") as file:
        data = file.read(MAX_RECORD_BYTES + 1)
    if len(data) > MAX_RECORD_BYTES:
        raise ValueError("the record is too long")
    try:
        record = json.loads(data)
    except RecursionError:
        raise ValueError("the record is nested too deeply") from None
    if not isinstance(record, dict):
        raise ValueError("the record is no JSON object")  # noqa: TRY004 (damaged data, no wrong call)
    return record


def record(agent: str, payload: dict[str, object]) -> dict[str, object]:
    """Return the record that carries this payload: who says it, on which machine, and when."""
    return {"v": 1, "agent": agent, "machine": machine(), "at": time.time(), "payload": payload}


def machine() -> str:
    """Return the name of this machine, as records carry it."""
    return os.uname().nodename


def close_inherited() -> None:
    """Close what an agent left open for its children: its port, or the pipes of another waiter."""
    os.closerange(3, min(os.sysconf("SC_OPEN_MAX"), 65536))


# --- the nudge ------------------------------------------------------------------------------------------


def nudge(root: str | Path) -> bool:
    """Tell the listener of this store to look into the inbox; False where none is listening."""
    return _poke(f"{_key(root)}.sock")


def listen_socket(root: str | Path) -> socket.socket:
    """Return the listener's socket, not blocking; each datagram means "look now".

    Only for the process that holds the listener's lock of this store: a socket left by a dead one is put
    away first. Raises OSError.
    """
    import socket  # noqa: PLC0415 (the hook has no use for it)

    return socket.socket(fileno=_bind(f"{_key(root)}.sock").detach())


def close_socket(bound: socket.socket | _Socket) -> None:
    """Close a socket of `listen_socket` or `wait_socket` and take its name away."""
    name = bound.getsockname()
    bound.close()
    with contextlib.suppress(OSError):
        os.unlink(name)


def runtime_folder() -> str:
    """Return the folder of the sockets, made if it is not there: short, for their paths end at 108 bytes.

    No variable is read, so that a hook and a listener that were started differently find each other.
    Raises PermissionError where somebody else owns it or could write into it.
    """
    mine = os.getuid()
    run = f"{_RUN}/{mine}"
    with contextlib.suppress(OSError):
        if stat.S_ISDIR((found := os.lstat(run)).st_mode) and found.st_uid == mine:
            return _private(f"{run}/hermes")
    return _private(f"/tmp/hermes-{mine}")  # noqa: S108 (checked: ours, a real folder, closed to others)


def _private(folder: str) -> str:
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise PermissionError(f"{folder} is not a folder of ours alone")
    return folder


def _key(root: str | Path) -> str:
    return _hashed(os.path.realpath(root))[:16]


def _hashed(*parts: str) -> str:
    data = "\0".join(parts).encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=16).hexdigest()


def _poke(name: str) -> bool:
    """Send one datagram; True where somebody holds the socket, even one too busy to take it."""
    with contextlib.closing(_Socket(AF_UNIX, SOCK_DGRAM)) as sender:
        try:
            sender.sendto(b"!", MSG_DONTWAIT, os.path.join(runtime_folder(), name))
        except BlockingIOError:
            return True
        except OSError as error:
            return error.errno == errno.ENOBUFS  # what macOS says where Linux says EAGAIN
    return True


def _bind(name: str) -> _Socket:
    path = os.path.join(runtime_folder(), name)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    bound = _Socket(AF_UNIX, SOCK_DGRAM)
    try:
        bound.bind(path)
        os.chmod(path, 0o600)
        bound.setblocking(False)  # noqa: FBT003 (positional only)
    except OSError:
        bound.close()
        raise
    return bound


# --- waiting for an answer ------------------------------------------------------------------------------


def wait_id(agent: str, machine: str, request_id: str) -> str:
    """Return the name under which hooks wait for the answer to this request: 16 hex digits."""
    return _hashed("wait", agent, machine, request_id)[:16]


def hold_wait(root: str | Path, wait_id: str) -> int:
    """Take this process's place in the waiting room; it is held until the descriptor is closed.

    Raises OSError.
    """
    path = _lock_path(_folder(root, "wait"), wait_id, os.getpid())
    while True:
        held = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(held, fcntl.LOCK_EX)
            # Between the two lines above the file may have been swept away as one that nobody holds.
            if _same_file(held, path):
                return held
        except BaseException:
            os.close(held)
            raise
        os.close(held)


def leave_wait(root: str | Path, wait_id: str, held: int) -> None:
    """Give up the place that `hold_wait` took."""
    with contextlib.suppress(OSError):
        os.unlink(_lock_path(os.path.join(root, "wait"), wait_id, os.getpid()))
    os.close(held)


def waiters(root: str | Path, wait_id: str) -> list[int]:
    """Return the process ids of the living hooks that wait for this answer."""
    folder = os.path.join(root, "wait")
    parts = [name.split(".") for name in _names(folder)]
    ours = [part for part in parts if len(part) == _LOCK_PARTS and (part[0], part[2]) == (wait_id, "lock")]
    pids = [part[1] for part in ours if part[1].isdecimal()]
    return sorted(int(pid) for pid in pids if _is_held(_lock_path(folder, wait_id, int(pid))))


def waited_for(root: str | Path) -> set[str]:
    """Return all names under which a living hook waits, by one look at the folder."""
    folder = os.path.join(root, "wait")
    locks = [name for name in _names(folder) if name.endswith(".lock")]
    return {name.partition(".")[0] for name in locks if _is_held(os.path.join(folder, name))}


def wait_socket(root: str | Path, wait_id: str) -> _Socket:
    """Return the socket that wakes this process when its answer is there. Raises OSError."""
    return _bind(_wait_name(root, wait_id, os.getpid()))


def put_answer(root: str | Path, wait_id: str, text: str) -> None:
    """Lay the answer out, in place of an older one, and wake whoever waits for it. Raises OSError."""
    _write(_folder(root, "wait"), f"{wait_id}.answer", text.encode())
    for pid in waiters(root, wait_id):
        _poke(_wait_name(root, wait_id, pid))


def take_answer(root: str | Path, wait_id: str) -> str | None:
    """Take the answer away, or return None where there is none; of several takers one gets it.

    The listener itself takes it to withdraw it: what it gets back was seen by nobody. Raises OSError, also
    where the file is damaged (it is gone then, so that the answer can be laid out anew).
    """
    folder = os.path.join(root, "wait")
    taken = os.path.join(folder, f".{wait_id}.{os.getpid()}.taken")
    try:
        os.rename(os.path.join(folder, f"{wait_id}.answer"), taken)
    except FileNotFoundError:
        return None
    with open(taken, "rb") as file:
        data = file.read()
    os.unlink(taken)
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise OSError(errno.EILSEQ, "the answer is damaged") from None


def _wait_name(root: str | Path, wait_id: str, pid: int) -> str:
    return f"{_key(root)}.{wait_id}.{pid}.sock"


def _lock_path(folder: str, wait_id: str, pid: int) -> str:
    return os.path.join(folder, f"{wait_id}.{pid}.lock")


def _is_held(path: str) -> bool:
    """Whether somebody has an exclusive lock on the file; a shared one to probe disturbs no other prober."""
    try:
        probe = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(probe, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(probe)
    return False


def _same_file(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


# --- tidying up -----------------------------------------------------------------------------------------


def sweep(root: str | Path, *, now: float | None = None) -> int:
    """Remove what dead processes left: unfinished files, locks, sockets. Return how many files of the store.

    Unfinished files and sockets younger than a minute may be somebody's work and stay.
    """
    old_s = (time.time() if now is None else now) - LEFTOVER_AFTER_S
    for path in _sockets_of_nobody(old_s):
        _remove(path)
    rooms = [os.path.join(root, room) for room in ("inbox", "wait")]
    files = [(folder, name) for folder in rooms for name in _names(folder)]
    unfinished = [os.path.join(*each) for each in files if each[1].startswith(".")]
    locks = [os.path.join(*each) for each in files if each[1].endswith(".lock")]
    return sum([_remove(path) for path in unfinished if _older(path, old_s)] + [*map(_remove_unheld, locks)])


def _remove(path: str) -> bool:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True


def _remove_unheld(path: str) -> bool:
    """Remove a lock that nobody holds; held meanwhile, so that nobody takes a file that is going away."""
    try:
        probe = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    with contextlib.closing(os.fdopen(probe)), contextlib.suppress(BlockingIOError):
        fcntl.flock(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return _same_file(probe, path) and _remove(path)
    return False


def _sockets_of_nobody(old_s: float) -> list[str]:
    """Return the sockets that refuse a datagram, whatever store they are of; to the others it is a nudge."""
    folder = runtime_folder()
    old = [name for name in _names(folder) if name.endswith(".sock") and _older(f"{folder}/{name}", old_s)]
    return [f"{folder}/{name}" for name in old if not _poke(name)]


def _older(path: str, than_s: float) -> bool:
    try:
        return os.stat(path).st_mtime < than_s
    except FileNotFoundError:
        return False


# --- files ----------------------------------------------------------------------------------------------


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def _folder(root: str | Path, room: str) -> str:
    """Return a room of the store, made with all that is above it where it is missing."""
    path = os.path.join(root, room)
    make_folder(path)
    return path


def make_folder(path: str) -> None:
    """Make a folder of ours alone, with all that is above it, where it is missing. Raises OSError."""
    if os.path.isdir(path):
        return
    above = os.path.dirname(os.path.abspath(path))
    make_folder(above)
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)
    _sync_folder(above)


def _write(folder: str, name: str, data: bytes) -> str:
    """Write a file that is there completely or not at all, also after a power cut; return its path."""
    path, unfinished = (os.path.join(folder, each) for each in (name, f".{name}.{os.getpid()}"))
    try:
        _write_all(unfinished, data)
        os.rename(unfinished, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
        raise
    _sync_folder(folder)
    return path


def _write_all(path: str, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        _sync(descriptor)
    finally:
        os.close(descriptor)


def _sync(descriptor: int) -> None:
    os.fsync(descriptor)
    if sys.platform == "darwin":  # there that leaves the data in the drive's own memory
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        _sync(descriptor)
    finally:
        os.close(descriptor)
