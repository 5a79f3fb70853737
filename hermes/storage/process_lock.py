"""One process at a time: locks that are held for a process's life, and tell who holds them.

The lock is the kernel's (flock): it goes the moment its holder dies, however it dies, and is not inherited by
the programs that the holder starts. The file stays; what is written in it only says who.
"""

import contextlib
import fcntl
import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from hermes import disk
from hermes.errors import Held, StoreError
from hermes.hook import spool

_PATIENCE_S = 0.25
_STEP_S = 0.01
_NOTE_BYTES = 4096
_LOOK_S = 0.05
STOPS_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lock. `pid` is 0 and `who` empty where the file does not tell."""

    pid: int = 0
    who: str = ""
    since_s: float = 0.0

    def __str__(self) -> str:
        """Return what a person is told of it, as far as the file tells."""
        return (self.who or "another process") + (f" (pid {self.pid})" if self.pid else "")


class Holding:
    """A held lock, until `release` or the end of the process."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        """Let go; a second time does nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def is_there(self) -> bool:
        """Tell whether the lock is still the file at its path: a lock whose file was removed guards nothing."""
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
    """Take the lock file at `path`, whose folder is there, and write our pid and `who` into it.

    Somebody who only looks (`holder`) has it for an instant, so a lock that is taken is tried for a quarter
    of a second.

    Raises:
        Held: another process has it; the sentence says which one holds `what`.
        OSError: the file cannot be opened.
    """
    for attempt in range(round(_PATIENCE_S / _STEP_S)):
        if attempt:
            sleep(_STEP_S)
        descriptor = _try(path)
        if descriptor is not None:
            note = json.dumps({"pid": os.getpid(), "who": who, "since_s": now()})
            # A full disk must not keep the only listener from running: the note is for people.
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, note.encode("ascii"), 0)
            return Holding(path, descriptor)
    raise Held(f"{_note(disk.read(path))} holds {what}; stop it first, or leave the work to it")


def bot_lock(bot_id: int, store: str | Path) -> Path:
    """Return the lock file of this bot: one for all stores of this user on this machine.

    If no folder that they share is ours alone, it is one for each store (see `spool.runtime_folder`). The bot's own id
    names it, not its token: a token can be renewed, and names of files are no secret.

    Raises:
        OSError: there is no folder for it.
    """
    return Path(spool.runtime_folder(store)) / f"bot-{bot_id}.lock"


def hold_bot(bot_id: int, store: str | Path, who: str, *, now: Callable[[], float] = time.time) -> Holding:
    """Take the lock of this bot, so that no second listener takes its updates away.

    Raises:
        Held: another process has it; the sentence says which.
        StoreError: the lock file cannot be made.
    """
    try:
        return hold(bot_lock(bot_id, store), f"the bot {bot_id}", who, now=now)
    except OSError as error:
        raise StoreError(f"the lock of the bot {bot_id} cannot be made: {error}") from error


def holder(path: Path) -> Holder | None:
    """Return who holds the lock file at `path`, or None where nobody does."""
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


def stop(path: Path, *, longest_s: float = STOPS_S, sleep: Callable[[float], None] = time.sleep) -> Holder | None:
    """Ask the process that holds the lock file at `path` to end, and wait until it let go.

    Returns who held it, None if nobody did.

    Raises:
        Held: it does not tell its process id, is another user's, or holds the lock `longest_s` later.
    """
    found = holder(path)
    if found is None:
        return None
    if not found.pid:
        raise Held(f"another process holds {path}, and does not tell its process id; `fuser {path}` says which one")
    try:
        os.kill(found.pid, signal.SIGTERM)
    except ProcessLookupError:
        pass  # it is leaving by itself
    except PermissionError:
        raise Held(f"{found} belongs to another user; stop it as that user") from None
    for _ in range(round(longest_s / _LOOK_S)):
        now = holder(path)
        if now is None or now.pid not in {0, found.pid}:
            return found
        sleep(_LOOK_S)
    raise Held(f"{found} was asked to end, and did not within {longest_s:g} s; end it with `kill -9 {found.pid}`")


def _try(path: Path) -> int | None:
    """Return a descriptor that holds the lock, or None where another process does."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # A cleaner may have removed the file between the two steps: a lock on no name guards nothing.
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
