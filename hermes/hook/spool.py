"""What the hook and the listener share on disk: the inbox, the waiting room, and the nudge between them.

    ROOT/machine                      the id of this machine: wait ids and records carry it
    ROOT/inbox/TIME-PID-RANDOM.json   one record a file, in the order in which they were dropped
    ROOT/wait/ID.PID.lock             a waiting hook, alive as long as its flock is held
    ROOT/wait/ID.answer               the text that it will print; taken by rename, so one of several wins
    RUNTIME/KEY.sock                  the listener's datagram socket; KEY stands for this store
    RUNTIME/KEY.ID.PID.sock           that of a waiting hook

A datagram only says "look now": whoever misses one finds the same on disk a little later. Names that begin
with a dot are files that are being written. Folders are 0700, files 0600.

The hook loads this module while an agent waits for it, so it takes the two C modules below `socket` and
`hashlib`: those load `selectors`, `enum` and OpenSSL, together a third of the hook's whole time.
"""

# pathlib would cost the hook as much as json does; `listing` alone gives out real Paths:
# ruff: noqa: PTH101, PTH102, PTH104, PTH108, PTH116, PTH118, PTH123, PTH208

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat
import time
from _socket import AF_UNIX, MSG_DONTWAIT, SOCK_DGRAM, socket as _Socket  # noqa: N812 (it is a class)

try:
    from _blake2 import blake2b
except ImportError:  # pragma: no cover (a Python that was built without it)
    from hashlib import blake2b

from hermes import disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from pathlib import Path

MAX_RECORD_BYTES = 4 * 1024 * 1024  # a payload of 1 MiB, and what JSON's escapes make of it
LEFTOVER_AFTER_S = 60.0
_MOST_MACHINE_BYTES = 255
MAX_SOCKET_PATH_BYTES = 103  # what macOS takes; Linux takes four more
_RUN = "/run/user"
_LISTENER_LOCK = ("locks", "listener.lock")
_LOCK_PARTS = 3  # ID.PID.lock


# --- the inbox ------------------------------------------------------------------------------------------


def drop(root: str | Path, record: dict[str, object]) -> str:
    """Keep `record` in the inbox and return the path of its file; once this returns, it survives a crash.

    It carries this store's machine id, unless it names one. Raises OSError (nothing was kept) and ValueError (the
    record is no JSON, or too long).
    """
    data = json.dumps({"machine": machine(root)} | record).encode()
    if len(data) > MAX_RECORD_BYTES:
        raise ValueError("the record is too long")
    path = os.path.join(_folder(root, "inbox"), f"{time.time_ns():020d}-{os.getpid()}-{os.urandom(4).hex()}.json")
    disk.write(path, data)
    return path


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
    """Return the record that carries this payload: who says it, on which host, and when; `drop` adds the machine."""
    return {"v": 1, "agent": agent, "host": host(), "at": time.time(), "payload": payload}


def host() -> str:
    """Return the name of this machine for people; it may change at any time."""
    return os.uname().nodename


def machine(root: str | Path) -> str:
    """Return the id of this machine for this store, which never changes; it is made if there is none.

    A store that was in use before there were such ids gets today's host name, which hooks that wait have used. Of two
    processes that make one, the first wins. Raises OSError.
    """
    path = os.path.join(root, "machine")
    is_bad = False
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        if found := _machine_in(path):
            return found
        is_bad = True  # one that is not there now may be made by another process in the next moment
    in_use = any(os.path.lexists(os.path.join(root, room)) for room in ("inbox", "pending"))
    keep_machine(root, host() if in_use else os.urandom(8).hex(), over=is_bad)
    return _machine_in(path) or host()


def keep_machine(root: str | Path, machine: str, *, over: bool = True) -> None:
    """Make this the machine id of the store; `over` replaces one that is there. Raises OSError."""
    make_folder(root)
    path = os.path.join(root, "machine")
    made = path if over else os.path.join(root, f".machine.{os.urandom(4).hex()}.tmp")
    disk.write(made, f"{machine}\n".encode())
    if over:
        return
    try:
        os.link(made, path)
    except FileExistsError:
        pass  # another process was first
    except OSError:  # a file system without links
        os.rename(made, path)
        return
    os.unlink(made)


def _machine_in(path: str) -> str:
    """Return what the file holds, or "" if it is no id."""
    with open(path, "rb") as file:
        found = file.read(_MOST_MACHINE_BYTES + 1).decode("utf-8", "replace").strip()
    return found if found.isprintable() and len(found) <= _MOST_MACHINE_BYTES else ""


def close_inherited() -> None:
    """Close what an agent left open for its children: its port, or the pipes of another waiter."""
    os.closerange(3, min(os.sysconf("SC_OPEN_MAX"), 65536))


# --- the nudge ------------------------------------------------------------------------------------------


def nudge(root: str | Path) -> bool:
    """Tell the listener of this store to look into the inbox; False if none is listening.

    A listener that has no socket, since the path of its socket would be too long, looks by itself.
    """
    return _poke(root, _socket_name(root)) or (_is_too_deep(root) and _is_held(os.path.join(root, *_LISTENER_LOCK)))


def listen_socket(root: str | Path) -> socket.socket:
    """Return the listener's socket, not blocking; each datagram means "look now".

    Only for the process that holds the listener's lock of this store: a socket left by a dead one is put
    away first. Raises OSError.
    """
    import socket  # noqa: PLC0415 (the hook has no use for it)

    return socket.socket(fileno=_bind(root, _socket_name(root)).detach())


def socket_path(root: str | Path) -> str:
    """Return where the listener's socket belongs. Raises OSError: there is no folder for it."""
    return os.path.join(runtime_folder(root), _socket_name(root))


def close_socket(bound: socket.socket | _Socket) -> None:
    """Close a socket of `listen_socket` or `wait_socket` and take its name away."""
    name = bound.getsockname()
    bound.close()
    with contextlib.suppress(OSError):
        os.unlink(name)


def runtime_folder(root: str | Path, *, shared: tuple[str, ...] | None = None) -> str:
    """Return the folder of the sockets and of the bot's lock, made if it is not there.

    It is the first of `shared` (by default `shared_folders()`) that can be ours alone, else `run` in the store: another
    user who takes our place under /tmp stops nothing. Raises OSError: not even that can be made.
    """
    for folder in shared_folders() if shared is None else shared:
        with contextlib.suppress(OSError):
            return private_folder(folder)
    store = os.path.realpath(root)
    make_folder(store)
    return private_folder(os.path.join(store, "run"))


def shared_folders() -> tuple[str, ...]:
    """Return the short folders that all stores of this user may share, the best one first.

    No variable is read, so that a hook and a listener that were started differently find each other.
    """
    mine = os.getuid()
    below_tmp = f"/tmp/hermes-{mine}"  # noqa: S108 (taken only if it is ours, a real folder, closed to others)
    run = f"{_RUN}/{mine}"
    with contextlib.suppress(OSError):
        if stat.S_ISDIR((found := os.lstat(run)).st_mode) and found.st_uid == mine:
            return f"{run}/hermes", below_tmp
    return (below_tmp,)


def private_folder(folder: str) -> str:
    """Make the folder or take the one that is there, and return it.

    Raises PermissionError: it is another user's, no real folder, or open to others; OSError: it cannot be made.
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


def _socket_name(root: str | Path) -> str:
    return f"{_key(root)}.sock"


def _is_too_deep(root: str | Path) -> bool:
    """Whether the path of the listener's socket would be longer than a socket's path can be."""
    with contextlib.suppress(OSError):
        return len(os.fsencode(socket_path(root))) > MAX_SOCKET_PATH_BYTES
    return False


def _key(root: str | Path) -> str:
    return _hashed(os.path.realpath(root))[:16]


def _hashed(*parts: str) -> str:
    data = "\0".join(parts).encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=16).hexdigest()


def _poke(root: str | Path, name: str) -> bool:
    """Send one datagram; True if somebody holds the socket, even one too busy to take it."""
    with contextlib.closing(_Socket(AF_UNIX, SOCK_DGRAM)) as sender:
        try:
            sender.sendto(b"!", MSG_DONTWAIT, os.path.join(runtime_folder(root), name))
        except BlockingIOError:
            return True
        except OSError as error:
            return error.errno == errno.ENOBUFS  # what macOS says where Linux says EAGAIN
    return True


def _bind(root: str | Path, name: str) -> _Socket:
    path = os.path.join(runtime_folder(root), name)
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


def is_held_by(root: str | Path, wait_id: str, held: int) -> bool:
    """Tell whether the place that `hold_wait` took is still there for others to see."""
    return _same_file(held, _lock_path(os.path.join(root, "wait"), wait_id, os.getpid()))


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


def has_asks(root: str | Path) -> bool:
    """Tell whether an ask is open here, or is still in the inbox."""
    return any(_names(os.path.join(root, room)) for room in ("pending", "inbox"))


def wait_socket(root: str | Path, wait_id: str) -> _Socket:
    """Return the socket that wakes this process when its answer is there. Raises OSError."""
    return _bind(root, _wait_name(root, wait_id, os.getpid()))


def put_answer(root: str | Path, wait_id: str, text: str) -> None:
    """Lay the answer out, in place of an older one, and wake whoever waits for it. Raises OSError."""
    disk.write(os.path.join(_folder(root, "wait"), f"{wait_id}.answer"), text.encode())
    for pid in waiters(root, wait_id):
        _poke(root, _wait_name(root, wait_id, pid))


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
    except OSError:  # it is gone, or is no lock of ours: a folder, another user's file
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
    for path in _sockets_of_nobody(root, old_s):
        _remove(path)
    rooms = [os.path.join(root, room) for room in ("inbox", "wait")]
    files = [(folder, name) for folder in rooms for name in _names(folder)]
    unfinished = [os.path.join(*each) for each in files if each[1].startswith(".")]
    locks = [os.path.join(*each) for each in files if each[1].endswith(".lock")]
    return sum([_remove(path) for path in unfinished if _older(path, old_s)] + [*map(_remove_unheld, locks)])


def _remove(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:  # it is gone, or is not ours to remove
        return False
    return True


def _remove_unheld(path: str) -> bool:
    """Remove a lock that nobody holds; held meanwhile, so that nobody takes a file that is going away."""
    try:
        probe = os.open(path, os.O_RDWR)
    except OSError:  # it is gone, or is no lock of ours
        return False
    with contextlib.closing(os.fdopen(probe)), contextlib.suppress(BlockingIOError):
        fcntl.flock(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return _same_file(probe, path) and _remove(path)
    return False


def _sockets_of_nobody(root: str | Path, old_s: float) -> list[str]:
    """Return the sockets that refuse a datagram, whatever store they are of; to the others it is a nudge."""
    try:
        folder = runtime_folder(root)
    except OSError:
        return []
    old = [name for name in _names(folder) if name.endswith(".sock") and _older(f"{folder}/{name}", old_s)]
    return [f"{folder}/{name}" for name in old if not _poke(root, name)]


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
    """Return a room of the store, made with all that is above it if it is missing."""
    path = os.path.join(root, room)
    make_folder(path)
    return path


make_folder = disk.make_folder


# --- a listener that cannot start -----------------------------------------------------------------------

_REFUSAL = "refused"
_MAX_REFUSAL_BYTES = 4096


def refuse(root: str | Path, why: str) -> None:
    """Leave word for waiting hooks why a listener cannot start: one sentence without a secret. Raises OSError."""
    make_folder(str(root))
    disk.write(os.path.join(root, _REFUSAL), why.encode("utf-8", "backslashreplace")[:_MAX_REFUSAL_BYTES])


def refusal(root: str | Path, *, within_s: float | None = None) -> str:
    """Return why the last listener could not start, "" if it could; `within_s`: only a word of these last seconds.

    A clock that has jumped makes a young word old, which costs one more try.
    """
    try:
        with open(os.path.join(root, _REFUSAL), "rb") as file:
            age_s = time.time() - os.fstat(file.fileno()).st_mtime
            why = file.read(_MAX_REFUSAL_BYTES).decode("utf-8", "replace").strip()
    except OSError:
        return ""
    return "" if within_s is not None and abs(age_s) >= within_s else why or "it did not say why"


def accept(root: str | Path) -> None:
    """Take that word away: a listener has started, or another try is made."""
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(root, _REFUSAL))
