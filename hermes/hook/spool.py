"""The files and sockets that the hook and the listener share: the inbox, the waiting hooks, and the nudge.

    ROOT/machine                      the id of this machine: wait ids and records carry it
    ROOT/inbox/TIME-PID-RANDOM.json   one record a file; the names sort in the order of arrival
    ROOT/wait/ID.PID.lock             a waiting hook, alive as long as its flock is held
    ROOT/wait/ID.answer               the text that the hook will print; taken by rename, so one of several hooks wins
    ROOT/refused                      why the last listener could not start; see `refusal.py`
    ROOT/takes-prompts                there as long as prompts from the phone are on
    RUNTIME/KEY.sock                  the listener's datagram socket; KEY stands for this store
    RUNTIME/KEY.ID.PID.sock           the datagram socket of a waiting hook

A datagram only says "look now": a process that misses it finds the change on disk at its next look. Names that begin
with a dot are files that are being written. Folders are 0700, files 0600.

The hook loads this module while an agent waits, so the module imports the C modules `_socket` and `_blake2`. The
modules `socket` and `hashlib` would load `selectors`, `enum` and OpenSSL, together a third of the hook's whole time.
"""

# pathlib would cost the hook as much time as json does; only `listing` returns Path objects:
# ruff: noqa: PTH101, PTH104, PTH108, PTH116, PTH118, PTH123, PTH208

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import time
from _socket import AF_UNIX, MSG_DONTWAIT, SOCK_DGRAM, socket as _Socket  # noqa: N812 (the name is a class)

try:
    from _blake2 import blake2b
except ImportError:  # pragma: no cover (a Python that was built without `_blake2`)
    from hashlib import blake2b

from hermes import disk
from hermes.hook import runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from pathlib import Path

MAX_RECORD_BYTES = 4 * 1024 * 1024  # room for a payload of 1 MiB after JSON has escaped it
MAX_SOCKET_PATH_BYTES = 103  # the limit of macOS; Linux takes four more
TAKES_PROMPTS = "takes-prompts"
LISTENER_LOCK = ("locks", "listener.lock")  # held by the one listener of the store
_MOST_MACHINE_BYTES = 255


# --- the inbox ------------------------------------------------------------------------------------------


def drop(root: str | Path, record: dict[str, object]) -> str:
    """Write `record` to the inbox and return the path of its file; after the return, the file survives a crash.

    The file gets this store's machine id, unless `record` names one. Raises OSError: nothing was kept. Raises
    ValueError: the record is too long.
    """
    data = json.dumps({"machine": machine(root)} | record).encode()
    if len(data) > MAX_RECORD_BYTES:
        raise ValueError("the record is too long")
    folder = _folder(root, "inbox")
    number = max(time.time_ns(), _newest(folder) + 1)  # the clock may have been set back
    path = os.path.join(folder, f"{number:020d}-{os.getpid()}-{os.urandom(4).hex()}.json")
    disk.write(path, data)
    return path


def _newest(folder: str) -> int:
    """Return the number of the newest record in the inbox, 0 if it is empty."""
    number = max((name for name in names_in(folder) if name.endswith(".json")), default="").partition("-")[0]
    return int(number) if number.isdecimal() else 0


def listing(root: str | Path) -> list[Path]:
    """Return the paths of all complete records, oldest first; an empty list if there is no inbox yet."""
    from pathlib import Path  # noqa: PLC0415 (the hook has no use for it)

    folder = Path(root) / "inbox"
    return [folder / name for name in sorted(names_in(str(folder))) if name.endswith(".json")]


def read(path: str | Path) -> dict[str, object]:
    """Return the record in this file; a pipe in its place is an empty file.

    Raises ValueError (the file is damaged: not a JSON object, or too long) and OSError (FileNotFoundError: another
    process took the file).
    """
    data = disk.read(path)
    if len(data) > MAX_RECORD_BYTES:
        raise ValueError("the record is too long")
    try:
        record = json.loads(data)
    except RecursionError:
        raise ValueError("the record is nested too deeply") from None
    if not isinstance(record, dict):
        raise ValueError("the record is not a JSON object")  # noqa: TRY004 (damaged data, no wrong call)
    return record


def record(agent: str, payload: dict[str, object]) -> dict[str, object]:
    """Return the record of this payload, with agent, host and time (epoch seconds); `drop` adds the machine id."""
    return {"v": 1, "agent": agent, "host": host(), "at": time.time(), "payload": payload}


def host() -> str:
    """Return the host name, which is only shown to people; it may change at any time."""
    return os.uname().nodename


def machine(root: str | Path) -> str:
    """Return the id of this machine for this store; it is made if it is missing or damaged, and then never changes.

    A store that was in use before machine ids existed gets the current host name as its id, because the hooks that
    wait have used that name. Of two processes that make a missing id, the first wins. Raises OSError.
    """
    path = os.path.join(root, "machine")
    is_bad = False
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        if found := _machine_in(path):
            return found
        is_bad = True  # only a damaged id is replaced: another process may make a missing one at this moment
    in_use = any(os.path.lexists(os.path.join(root, room)) for room in ("inbox", "pending"))
    keep_machine(root, host() if in_use else os.urandom(8).hex(), over=is_bad)
    return _machine_in(path) or host()


def known_machine(root: str | Path) -> str:
    """Return the id of this machine for this store, or "" if it is missing or damaged. Raises OSError."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        return _machine_in(os.path.join(root, "machine"))
    return ""


def keep_machine(root: str | Path, machine: str, *, over: bool = True) -> None:
    """Make this the machine id of the store; with `over`, replace an existing id. Raises OSError."""
    disk.make_folder(root)
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
    """Return the machine id in the file, or "" if its content cannot be an id."""
    with open(path, "rb") as file:
        found = file.read(_MOST_MACHINE_BYTES + 1).decode("utf-8", "replace").strip()
    return found if found.isprintable() and len(found) <= _MOST_MACHINE_BYTES else ""


def close_inherited() -> None:
    """Close the descriptors that an agent left open in its children, such as its port or the pipes of another hook."""
    os.closerange(3, min(os.sysconf("SC_OPEN_MAX"), 65536))


def nudge(root: str | Path) -> bool:
    """Tell the listener of this store to look into the inbox; return False if no listener runs.

    If the path of the socket would be too long, the listener has no socket and looks into the inbox at intervals; then
    its lock shows whether it runs.
    """
    return poke(root, _socket_name(root)) or (_is_too_deep(root) and is_held(os.path.join(root, *LISTENER_LOCK)))


def listen_socket(root: str | Path) -> socket.socket:
    """Return the listener's socket, which does not block; each datagram means "look now".

    Only the process that holds the listener's lock of this store may call this, because a socket that is there is
    removed first. Raises OSError.
    """
    import socket  # noqa: PLC0415 (the hook has no use for it)

    return socket.socket(fileno=_bind(root, _socket_name(root)).detach())


def socket_path(root: str | Path) -> str:
    """Return the path of the listener's socket. Raises OSError: the folder for it cannot be made."""
    return os.path.join(runtime.folder(root), _socket_name(root))


def close_socket(bound: socket.socket | _Socket) -> None:
    """Close a socket of `listen_socket` or `wait_socket` and remove its file."""
    name = bound.getsockname()
    bound.close()
    with contextlib.suppress(OSError):
        os.unlink(name)


def _socket_name(root: str | Path) -> str:
    return f"{_key(root)}.sock"


def _is_too_deep(root: str | Path) -> bool:
    """Return whether the path of the listener's socket is longer than the system allows."""
    with contextlib.suppress(OSError):
        return len(os.fsencode(socket_path(root))) > MAX_SOCKET_PATH_BYTES
    return False


def _key(root: str | Path) -> str:
    return _hashed(os.path.realpath(root))[:16]


def _hashed(*parts: str) -> str:
    data = "\0".join(parts).encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=16).hexdigest()


def poke(root: str | Path, name: str) -> bool:
    """Send one datagram and return whether a process has the socket open, even if its queue is full."""
    with contextlib.closing(_Socket(AF_UNIX, SOCK_DGRAM)) as sender:
        try:
            sender.sendto(b"!", MSG_DONTWAIT, os.path.join(runtime.folder(root), name))
        except BlockingIOError:
            return True
        except OSError as error:
            return error.errno == errno.ENOBUFS  # a full queue on macOS; Linux reports EAGAIN
    return True


def _bind(root: str | Path, name: str) -> _Socket:
    path = os.path.join(runtime.folder(root), name)
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


def wait_id(agent: str, machine: str, request_id: str) -> str:
    """Return the name under which hooks wait for the answer to this request: 16 hex digits."""
    return _hashed("wait", agent, machine, request_id)[:16]


def hold_wait(root: str | Path, wait_id: str) -> int:
    """Make and lock the file that shows that this process waits, and return its descriptor, which holds the lock.

    Raises OSError.
    """
    path = _lock_path(_folder(root, "wait"), wait_id, os.getpid())
    while True:
        held = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(held, fcntl.LOCK_EX)
            # Between the two lines above, `sweep` may have removed the file, because no process held it.
            if is_same_file(held, path):
                return held
        except BaseException:
            os.close(held)
            raise
        os.close(held)


def is_held_by(root: str | Path, wait_id: str, held: int) -> bool:
    """Return whether the file that `hold_wait` locked is still at its path, so that other processes see it."""
    return is_same_file(held, _lock_path(os.path.join(root, "wait"), wait_id, os.getpid()))


def leave_wait(root: str | Path, wait_id: str, held: int) -> None:
    """Remove the file that `hold_wait` locked, and release the lock."""
    with contextlib.suppress(OSError):
        os.unlink(_lock_path(os.path.join(root, "wait"), wait_id, os.getpid()))
    os.close(held)


def waiters(root: str | Path, wait_id: str) -> list[int]:
    """Return the process ids of the live hooks that wait for this answer, in ascending order."""
    folder = os.path.join(root, "wait")
    parts = [name.split(".") for name in names_in(folder)]
    pids = [part[1] for part in parts if (part[0], *part[2:]) == (wait_id, "lock") and part[1].isdecimal()]
    return sorted(int(pid) for pid in pids if is_held(_lock_path(folder, wait_id, int(pid))))


def waited_for(root: str | Path) -> set[str]:
    """Return the names (`wait_id`) under which live hooks wait; the folder is read once for all of them."""
    folder = os.path.join(root, "wait")
    locks = [name for name in names_in(folder) if name.endswith(".lock") and name.split(".")[1].isdecimal()]
    return {name.partition(".")[0] for name in locks if is_held(os.path.join(folder, name))}


def has_asks(root: str | Path) -> bool:
    """Return whether an ask is open here, a hook waits for one (it may be in a database), or the inbox has anything."""
    return any(names_in(os.path.join(root, room)) for room in ("pending", "inbox")) or bool(waited_for(root))


def takes_prompts(root: str | Path) -> bool:
    """Return whether prompts from the phone are on, as the last listener of this store was told."""
    return os.path.lexists(os.path.join(root, TAKES_PROMPTS))


def named_socket(root: str | Path, name: str) -> _Socket:
    """Return a socket on which this process can be woken under this name of its own. Raises OSError."""
    return _bind(root, socket_name(root, name))


def socket_name(root: str | Path, name: str) -> str:
    """Return the file name of a `named_socket`, for `poke`."""
    return f"{_key(root)}.{name}.sock"


def wait_socket(root: str | Path, wait_id: str) -> _Socket:
    """Return the socket that wakes this process when its answer is there. Raises OSError."""
    return named_socket(root, f"{wait_id}.{os.getpid()}")


def put_answer(root: str | Path, wait_id: str, text: str) -> None:
    """Write the answer file, replacing an older one, and wake the hooks that wait for it. Raises OSError."""
    disk.write(os.path.join(_folder(root, "wait"), f"{wait_id}.answer"), text.encode())
    for pid in waiters(root, wait_id):
        poke(root, socket_name(root, f"{wait_id}.{pid}"))


def take_answer(root: str | Path, wait_id: str) -> str | None:
    """Remove the answer file and return its text, or None if there is no file; of several callers one gets the text.

    The listener also calls this, to withdraw an answer: a text that it gets was read by no hook. Raises OSError, also
    if the file is damaged (it is removed then, so that the answer can be written again).
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


def _lock_path(folder: str, wait_id: str, pid: int) -> str:
    return os.path.join(folder, f"{wait_id}.{pid}.lock")


def is_held(path: str) -> bool:
    """Return whether a process has an exclusive lock on the file; a shared lock probes it and blocks no other probe."""
    try:
        probe = os.open(path, os.O_RDWR)
    except OSError:  # the file is gone, or is no lock of Hermes: a folder, another user's file
        return False
    try:
        fcntl.flock(probe, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(probe)
    return False


def is_same_file(descriptor: int, path: str) -> bool:
    """Tell whether this descriptor is open for the file that has this path now."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def names_in(folder: str) -> list[str]:
    """Return the names in a folder, which may be missing."""
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def _folder(root: str | Path, room: str) -> str:
    """Return the path of a folder in the store; the folder and its parents are made if they are missing."""
    path = os.path.join(root, room)
    disk.make_folder(path)
    return path
