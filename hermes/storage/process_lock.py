"""Lock files that one process holds at a time, usually until it ends, and that name their holder.

The lock is a kernel lock (flock): it ends with its holder, even if that process is killed, and the programs that the
holder starts do not inherit it. The file stays; its content only names the holder.
"""

import contextlib
import fcntl
import json
import os
import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from hermes import disk
from hermes.errors import Held, StoreError
from hermes.hook import runtime

_PATIENCE_S = 0.25
_STEP_S = 0.01
_NOTE_BYTES = 4096
_LOOK_S = 0.05
STOPS_S: Final = 10.0
UNTIL_IDLE: Final = "hermes listen --until-idle"
"""The command of a listener that leaves when nothing is open; the name of such a holder begins with it."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that holds a lock. `pid` is 0 and `who` is empty if the lock file does not name it."""

    pid: int = 0
    who: str = ""
    since_s: float = 0.0

    @property
    def leaves_when_idle(self) -> bool:
        """Tell whether this is a listener that leaves when nothing is open."""
        return self.who.startswith(UNTIL_IDLE)

    def __str__(self) -> str:
        """Return the words for a person, such as "NAME (pid 123)"."""
        return (self.who or "another process") + (f" (pid {self.pid})" if self.pid else "")


def named(command: str, store: Path) -> str:
    """Return as what a command that works with this store holds its locks; see `works_with`."""
    return f"{command}, store {store}"


def works_with(who: str, store: str | Path) -> bool:
    """Tell whether a holder works with this store, by its name or its words for a person."""
    return re.sub(r" \(pid \d+\)\Z", "", who).endswith(f", store {store}")


class Holding:
    """A held lock, until `release` or the end of the process."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        """Release the lock; a second call does nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def is_there(self) -> bool:
        """Tell whether the lock file is still at its path: another process can take the lock if it was removed."""
        try:
            return self._descriptor is not None and os.path.samestat(os.fstat(self._descriptor), self.path.stat())
        except OSError:
            return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def hold(
    path: Path,
    what: str,
    who: str,
    *,
    now: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> Holding:
    """Lock the file at `path`, whose folder must exist, and write our pid and `who` into it.

    `holder` takes the lock for an instant only to look, so a lock that is taken is tried for a quarter of a second.

    Raises:
        Held: another process has the lock; the sentence says which process holds `what`.
        OSError: the file cannot be opened.
    """
    for attempt in range(round(_PATIENCE_S / _STEP_S)):
        if attempt:
            sleep(_STEP_S)
        descriptor = _try(path)
        if descriptor is not None:
            note = json.dumps({"pid": os.getpid(), "who": who, "since_s": now()})
            # The note is only for people, so a full disk must not keep the listener from running.
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, note.encode("ascii"), 0)
            return Holding(path, descriptor)
    raise Held(f"{_note(disk.read(path))} holds {what}; stop it first")


def bot_lock(bot_id: int, store: str | Path) -> Path:
    """Return the path of this bot's lock file, which all stores of this user on this machine share.

    If no shared folder is private to this user, each store has its own file (see `runtime.folder`).
    The file is named after the bot's id, not its token: a token can be renewed, and file names are not secret.

    Raises:
        OSError: the folder for it cannot be made.
    """
    return Path(runtime.folder(store)) / f"bot-{bot_id}.lock"


def hold_bot(bot_id: int, store: str | Path, who: str, *, now: Callable[[], float] = time.time) -> Holding:
    """Take the lock of this bot, so that no second listener receives its updates.

    Raises:
        Held: another process has the lock; the sentence says which.
        StoreError: the lock file cannot be made.
    """
    try:
        return hold(bot_lock(bot_id, store), f"the bot {bot_id}", who, now=now)
    except OSError as error:
        raise StoreError(f"the lock of the bot {bot_id} cannot be made: {error}") from error


def holder(path: Path) -> Holder | None:
    """Return the process that holds the lock file at `path`, or None if no process does."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _note(os.pread(descriptor, _NOTE_BYTES, 0))
    finally:
        os.close(descriptor)
    return None


def stop(path: Path, *, longest_s: float = STOPS_S) -> Holder | None:
    """Send SIGTERM to the process that holds the lock file at `path`, and wait until it has released the lock.

    Return that process, or None if no process held the lock.

    Raises:
        Held: the file does not name the process id, the process is another user's or in another container, or it still
            holds the lock after `longest_s`.
    """
    found = holder(path)
    if found is None:
        return None
    if not found.pid:
        raise Held(f"another process holds {path}, and does not tell its process id; `fuser {path}` says which one")
    if not _is_open_in(found.pid, path):
        if holder(path) != found:
            return found  # it has just ended
        raise Held(f"{found} holds {path} in another container, where process ids are others; stop it there")
    try:
        os.kill(found.pid, signal.SIGTERM)
    except ProcessLookupError:
        pass  # it has just ended
    except PermissionError:
        raise Held(f"{found} belongs to another user; stop it as that user") from None
    for _ in range(round(longest_s / _LOOK_S)):
        now = holder(path)
        if now is None or now.pid not in {0, found.pid}:
            return found
        time.sleep(_LOOK_S)
    raise Held(f"{found} was asked to end, and did not within {longest_s:g} s; end it with `kill -9 {found.pid}`")


def _is_open_in(pid: int, path: Path) -> bool:
    """Tell whether a process has this file open; True if the system does not tell it.

    A container that shares the folder counts its processes by itself: here, another process may have the same id.
    """
    opened = Path(f"/proc/{pid}/fd")
    try:
        return any(_is_same(one, path) for one in opened.iterdir())
    except FileNotFoundError:
        return not disk.is_there("/proc/self/fd")
    except OSError:  # it is another user's
        return True


def _is_same(one: Path, other: Path) -> bool:
    with contextlib.suppress(OSError):  # a descriptor that was closed meanwhile
        return one.samefile(other)
    return False


def _try(path: Path) -> int | None:
    """Return a descriptor that holds the lock, or None if another process holds it or the file was just removed."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Another program may have removed the file between open and flock: then the lock keeps no process out.
        if os.path.samestat(os.fstat(descriptor), path.stat()):
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def _note(data: bytes) -> Holder:
    with contextlib.suppress(ValueError, TypeError, KeyError, OverflowError, RecursionError):
        note = json.loads(data)
        return Holder(int(note["pid"]), str(note["who"]), float(note["since_s"]))
    return Holder()
