"""The folder of one machine: its id, its locks, the quarantine, and the files that plugins and hooks read.

Each machine has one, also if its asks are kept in a database. Hooks leave their records in it.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from hermes import disk
from hermes.errors import NotSaved, StoreError, Unreadable
from hermes.hook import spool
from hermes.model.chat_memory import Followed, Servers
from hermes.storage import process_lock
from hermes.storage.archive import Quarantine, entry_files
from hermes.storage.codec import SERVERS

log = logging.getLogger(__name__)

_FOLDERS: Final = ("pending", "done", "quarantine", "locks")
RECORDS: Final = ("notices", "prompts", "cards")
_OF_HOOKS: Final = ("inbox", "wait")
_MARKS = {"pending", "store.lock"}  # not "inbox": a hook makes it in any folder that the configuration names
_FILES = {"telegram.json", "locked", "machine", "refused", "servers.json", spool.TAKES_PROMPTS}
_KNOWN = _MARKS | _FILES | {*_FOLDERS, *RECORDS, *_OF_HOOKS, "run", "log", "plugins", "files"}


def is_usable(root: Path) -> bool:
    """Tell whether this folder is a store, or can become one: it holds no other things. Raises OSError."""
    found = {path.name for path in disk.listing(root)}
    return bool(found & _MARKS) or found <= _KNOWN


class Home:
    """The folder `root` of one machine. Several processes may use it at the same time.

    `now` returns epoch seconds. If another process does not release the lock within `lock_timeout_s`, nothing is saved
    (NotSaved). The quarantine keeps the newest `quarantine_files` files and `quarantine_bytes` bytes.
    """

    def __init__(
        self,
        root: Path,
        *,
        now: Callable[[], float] = time.time,
        lock_timeout_s: float = 10.0,
        quarantine_files: int = 100,
        quarantine_bytes: int = 20_000_000,
    ) -> None:
        self.root = root
        self.now = now
        self.spoilt = Quarantine(root / "quarantine", now=now, files=quarantine_files, max_bytes=quarantine_bytes)
        # A soft lock would outlive a killed process; a file system without flock gets no store.
        self._lock = FileLock(
            root / "store.lock",
            mode=0o600,
            timeout=lock_timeout_s,
            poll_interval=0.002,
            fallback_to_soft=False,
        )

    def make(self) -> None:
        """Make or check the folders.

        Raises:
            StoreError: the folder belongs to another user, or holds other things.
            NotSaved: the folder cannot be made.
        """
        self.check()
        with disk.saving(self.root):
            disk.own_folder(self.root)
            spool.machine(self.root)  # first, because these folders mark a store that is in use
            for name in _FOLDERS:
                disk.own_folder(self.root / name)

    def check(self) -> None:
        """Check, without a change, that the folder holds no other things.

        Raises:
            StoreError: it holds other things.
            NotSaved: it cannot be read.
        """
        with disk.saving(self.root):
            if not is_usable(self.root):
                raise StoreError(f"{self.root} holds other things; set store.path to a folder of its own")

    def is_whole(self) -> bool:
        """Tell whether none of its folders was removed."""
        return all(disk.is_taken(self.root / name) for name in _FOLDERS)

    def machine(self) -> str:
        """Return the id of this machine. Raises NotSaved: it does not exist yet and cannot be made."""
        with disk.saving(self.root):
            return spool.machine(self.root)

    def known_machine(self) -> str:
        """Return the id of this machine, or "" if it does not exist yet; nothing is made. Raises StoreError."""
        with disk.reading(self.root):
            return spool.known_machine(self.root)

    def keep_machine(self, machine: str) -> None:
        """Write this machine id again after the folder was removed. Raises NotSaved."""
        with disk.saving(self.root):
            spool.keep_machine(self.root, machine)

    def count_asks(self) -> int:
        """Return the number of open asks in this folder. With a database nobody sees them. Raises StoreError."""
        with disk.reading(self.root):
            return len(entry_files(self.root / "pending"))

    # --- what plugins and hooks must know -----------------------------------------------------------------------------

    def takes_prompts(self) -> bool:
        """Tell whether plugins and hooks are told that prompts from the phone are on."""
        return spool.takes_prompts(self.root)

    def let_prompts(self, *, on: bool) -> None:
        """Tell plugins and hooks whether prompts from the phone are on. Raises NotSaved."""
        with disk.saving(self.root):
            mark = self.root / spool.TAKES_PROMPTS
            if not on:
                mark.unlink(missing_ok=True)
            elif not self.takes_prompts():
                disk.write(mark, b"prompts from the phone are on\n")

    # --- the servers of its agents ------------------------------------------------------------------------------------

    def followed(self) -> tuple[Followed, ...] | None:
        """Return how far the events of each server are known; None if this was never saved, or is damaged."""
        try:
            return SERVERS.decode(disk.read(self._servers)).followed
        except (OSError, StoreError):
            return None  # asks that came while nobody listened are not looked for

    def save_followed(self, followed: tuple[Followed, ...]) -> None:
        """Save how far the events of each server are known. Raises NotSaved."""
        with self.writing():
            disk.write(self._servers, SERVERS.encode(Servers(followed)))

    # --- quarantine ---------------------------------------------------------------------------------------------------

    def quarantine(self, name: str, data: bytes, reason: str) -> Path:
        """Save unreadable data in quarantine, log an error, and return the path of the file. Raises NotSaved."""
        with self.writing():
            path = self.spoilt.put(name, data)
        log.error("%s cannot be understood (%s); put it into %s", name, reason, path)
        return path

    def quarantine_file(self, path: Path, read: Callable[[Path], object]) -> bool:
        """Move a damaged file to quarantine, unless it is whole or gone by now; tell whether it was moved."""
        try:
            with self.writing():
                try:
                    read(path)
                except Unreadable as error:
                    log.error("%s is damaged (%s); moved it to %s", path, error, self.spoilt.take(path))  # noqa: TRY400
                    return True
        except StoreError as error:
            log.error("%s is left alone: %s", path, error)  # noqa: TRY400 (no defect)
        return False

    def quarantined(self) -> list[Path]:
        """Return the files in quarantine, oldest first. Raises StoreError."""
        with disk.reading(self.root):
            return self.spoilt.files()

    # --- locks --------------------------------------------------------------------------------------------------------

    def hold(self, who: str) -> process_lock.Holding:
        """Take the lock of the listener of this folder until `release` or the end of this process.

        Raises:
            Held: another process has the lock; the sentence says which.
            StoreError, NotSaved: as `make`.
        """
        self.make()
        self._check_hook_folders()
        with disk.saving(self._lock_of_listener.parent):
            return process_lock.hold(self._lock_of_listener, f"the store {self.root}", who, now=self.now)

    def _check_hook_folders(self) -> None:
        """Check the folders that hooks make. Without them no question comes, and no answer goes. Raises as `make`."""
        for name in _OF_HOOKS:
            if disk.is_taken(self.root / name):
                with disk.saving(self.root / name):
                    disk.own_folder(self.root / name)

    def listener(self) -> process_lock.Holder | None:
        """Return the holder of the listener's lock: a listener, or a command that keeps it away; None without one."""
        with disk.reading(self._lock_of_listener.parent):
            return process_lock.holder(self._lock_of_listener)

    def stop_listener(self) -> process_lock.Holder | None:
        """Stop the listener, wait until it has ended, and return its process, or None if none ran. Raises Held."""
        with disk.reading(self._lock_of_listener.parent):
            return process_lock.stop(self._lock_of_listener)

    @property
    def _servers(self) -> Path:
        return self.root / "servers.json"

    @property
    def _lock_of_listener(self) -> Path:
        return self.root.joinpath(*spool.LISTENER_LOCK)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock under which files of the store are written. Raises NotSaved."""
        with disk.saving(self.root):
            self.root.stat()  # if the folder was removed, the lock would make it again, open to others
            try:
                lock = self._lock.acquire()
            except Timeout:
                message = f"nothing was saved in {self.root}: another process does not let go of store.lock"
                raise NotSaved(f"{message}; `fuser` says which one") from None
            with lock:
                yield
