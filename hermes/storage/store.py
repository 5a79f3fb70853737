"""The store: every ask that is still open, what was settled, and what the chat must remember.

Nothing outside this module knows that these are files; another store can take its place. Each entry is a
file of its own, so a change costs the same whatever else is open. An entry is changed under one file lock, by
compare-and-set on its revision: whoever read it before somebody else changed it gets `Conflict`, and never
wins in silence. What cannot be understood goes to quarantine and is never overwritten; what a newer Hermes
wrote is left where it is.

Methods block for about the time of one fsync. Every one that writes raises `NotSaved` where the disk refuses,
with a sentence for people; then nothing has changed.
"""

import contextlib
import logging
import os
import re
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from filelock import FileLock, Timeout

from hermes import disk
from hermes.errors import Conflict, Missing, NotSaved, StoreError, TooNew, Unreadable
from hermes.hook import spool
from hermes.model.chat_memory import ChatMemory
from hermes.model.entry import Entry
from hermes.storage import process_lock
from hermes.storage.archive import Done, Quarantine, entry_files
from hermes.storage.codec import CHATS, ENTRIES

log = logging.getLogger(__name__)

LISTENER = "listener"
"""The name of the lock that the listener of a store holds."""

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ID_SIGNS = "abcdefghijklmnopqrstuvwxyz234567"
_CODE_LETTERS = "abcdefghjkmnpqrstuvwxyz"  # without those that look like a digit
_CODE_DIGITS = "23456789"
_CODE_SIGNS = 5

_FOLDERS = ("pending", "done", "quarantine", "locks")
_MARKS = {"pending", "inbox", "store.lock"}
_KNOWN = _MARKS | {*_FOLDERS, "wait", "run", "log", "telegram.json", "locked", "machine", "refused"}


@dataclass(frozen=True, slots=True)
class Survey:
    """What is there, oldest first, and which files of it cannot be used (with the reason)."""

    entries: tuple[Entry, ...]
    damaged: tuple[tuple[Path, str], ...]
    too_new: tuple[Path, ...]
    unread: tuple[tuple[Path, str], ...]


class Store:
    """The entries under one folder. One object may be used from several threads, and beside others.

    `now` is the epoch clock, in seconds. A lock that another process does not let go of within
    `lock_timeout_s` counts as a refusal to save. Quarantine keeps the newest `quarantine_files` and
    `quarantine_bytes`. `too_new` names the files that a newer Hermes wrote, and `unread` those that could not be
    read just then, as last seen by `pending`; `put_away` counts the damaged ones that it put into quarantine.
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
        self.too_new: list[Path] = []
        self.unread: list[Path] = []
        self.put_away = 0
        self._now = now
        self._pending, done, quarantine, self._locks = (root / name for name in _FOLDERS)
        self._chat = root / "telegram.json"
        self._phone_lock = root / "locked"
        self._done = Done(done)
        self._quarantine = Quarantine(quarantine, now=now, files=quarantine_files, max_bytes=quarantine_bytes)
        # A soft lock would outlive a killed process; better no store at all on such a file system.
        self._lock = FileLock(
            root / "store.lock",
            mode=0o600,
            timeout=lock_timeout_s,
            poll_interval=0.002,
            fallback_to_soft=False,
        )

    # --- a phone that was lost -------------------------------------------------------------------------

    def is_phone_locked(self) -> bool:
        """Tell whether no answers are to be taken from the phone."""
        return os.path.lexists(self._phone_lock)

    def lock_phone(self) -> None:
        """Take no answers from the phone any more, also after a restart. Raises NotSaved."""
        with disk.saving(self.root):
            disk.write(self._phone_lock, b"`hermes unlock` takes this away\n")

    def unlock_phone(self) -> bool:
        """Take answers again; tell whether it was locked. Raises NotSaved."""
        with disk.saving(self.root):
            try:
                self._phone_lock.unlink()
            except FileNotFoundError:
                return False
            disk.sync_folder(self.root)
        return True

    # --- opening ---------------------------------------------------------------------------------------

    def open(self) -> list[Entry]:
        """Make or check the folders, sweep what dead writers left, and return the pending entries.

        Raises:
            StoreError: the folder is another user's, or is full of other things.
            NotSaved: it cannot be made.
        """
        self._make_folders()
        with self._writing():
            places = (self.root, self._pending, self.root / "quarantine", *self._done.months())
            swept = sum(disk.sweep(folder) for folder in places)
            self._list_closed()
        if swept:
            log.warning("removed %d temporary files that a process left when it died", swept)
        return self.pending()

    def is_whole(self) -> bool:
        """Tell whether none of its folders was removed."""
        return all(os.path.lexists(self.root / name) for name in _FOLDERS)

    def _make_folders(self) -> None:
        with disk.saving(self.root):
            names = {path.name for path in disk.listing(self.root)}
            if not (names & _MARKS or names <= _KNOWN):
                raise StoreError(f"{self.root} holds other things; set store.path to a folder of its own")
            disk.own_folder(self.root)
            spool.machine(self.root)  # before the folders by which a store in use is known
            for name in _FOLDERS:
                disk.own_folder(self.root / name)

    def machine(self) -> str:
        """Return the id of this machine for this store. Raises NotSaved: there is none, and it cannot be made."""
        with disk.saving(self.root):
            return spool.machine(self.root)

    def keep_machine(self, machine: str) -> None:
        """Make this the machine id again, after the folder was removed. Raises NotSaved."""
        with disk.saving(self.root):
            spool.keep_machine(self.root, machine)

    # --- pending entries -------------------------------------------------------------------------------

    def survey(self) -> Survey:
        """Read all that is pending and change nothing: for those who only look."""
        with disk.reading(self._pending):
            return _surveyed(entry_files(self._pending))

    def survey_done(self, since_s: float) -> Survey:
        """Read all that was settled at `since_s` (epoch) or later, and change nothing."""
        with disk.reading(self.root):
            return _surveyed(self._done.since(since_s))

    def pending(self) -> list[Entry]:
        """Return all pending entries, oldest first; damaged files go to quarantine on the way, loudly."""
        survey = self.survey()
        self.put_away += sum([self._put_away(path, _read_entry) for path, _ in survey.damaged])
        for _, why in survey.unread:
            log.error("left alone for now: %s", why)
        self.unread = [path for path, _ in survey.unread]
        for path in sorted({*survey.too_new}.difference(self.too_new)):
            log.error("left alone: %s was written by a newer Hermes; upgrade this one", path)
        self.too_new = list(survey.too_new)
        return list(survey.entries)

    def new_id(self) -> str:
        """Return an id of eight signs that no pending or settled entry has."""
        while True:
            entry_id = "".join(secrets.choice(_ID_SIGNS) for _ in range(8))
            path = self._path(entry_id)
            if not path.exists() and not self._done.places(path.name):
                return entry_id

    def new_code(self, open_entries: Iterable[Entry]) -> str:
        """Return a short name such as "k7m2q" that neither these entries nor the settled ones have."""
        taken = {entry.code for entry in open_entries}
        while True:
            rest = [secrets.choice(_CODE_LETTERS + _CODE_DIGITS) for _ in range(_CODE_SIGNS - 1)]
            code = secrets.choice(_CODE_LETTERS) + "".join(rest)
            with disk.reading(self.root):
                if code not in taken and not self._done.has_code(code):
                    return code

    def create(self, entry: Entry) -> Entry:
        """Save a new entry and return it, at revision 1.

        Raises:
            Conflict: there is one with this id.
            NotSaved: the disk refuses.
        """
        return self._add(replace(entry, revision=1))

    def restore(self, entry: Entry) -> Entry:
        """Save an entry anew, as it was last read, whose file was damaged or taken away; return it.

        Raises:
            Conflict: there is a file of it.
            NotSaved: the disk refuses.
        """
        return self._add(entry)

    def get(self, entry_id: str) -> Entry:
        """Return the pending entry.

        Raises:
            Missing: nothing pending has this id.
            Unreadable: it is damaged; it was put into quarantine.
            TooNew: a newer Hermes wrote it.
        """
        return self._get(self._path(entry_id))

    def change(self, entry_id: str, fn: Callable[[Entry], Entry]) -> Entry:
        """Read the entry, apply `fn`, save what it returns, all under the lock; return what is saved now.

        The revision is the store's own business: `fn` need not touch it. Where `fn` changes nothing, nothing
        is written. What `fn` raises comes through, and nothing has changed.

        Raises:
            Missing, Unreadable, TooNew: as `get`.
            NotSaved: the disk refuses.
        """
        path = self._path(entry_id)
        with self._writing():
            entry = self._get(path)
            changed = replace(fn(entry), revision=entry.revision)
            if changed == entry:
                return entry
            if changed.id != entry.id:
                raise StoreError(f"entry {entry.id} cannot become {changed.id}")
            return _put(path, replace(changed, revision=entry.revision + 1))

    def save(self, entry: Entry) -> Entry:
        """Save an entry that was read before, and return it with its new revision.

        Raises:
            Conflict: somebody else changed it since it was read.
            Missing, Unreadable, TooNew, NotSaved: as `change`.
        """

        def swap(found: Entry) -> Entry:
            if found.revision != entry.revision:
                message = f"entry {entry.id} is at revision {found.revision}, not {entry.revision}"
                raise Conflict(f"{message}: another process got there first")
            return entry

        return self.change(entry.id, swap)

    def settle(self, entry_id: str) -> None:
        """Move a pending entry to the settled ones.

        Raises:
            Missing, Unreadable: as `get`.
            NotSaved: the disk refuses.
        """
        path = self._path(entry_id)
        with self._writing():
            line = ""
            with contextlib.suppress(TooNew):
                line = _line(self._get(path))
            self._done.take(path, self._now(), line)

    # --- what is put away ------------------------------------------------------------------------------

    def done(self, entry_id: str) -> Entry:
        """Return a settled entry.

        Raises:
            Missing: no settled entry has this id (any more).
            Unreadable, TooNew: as `get`.
        """
        name = self._path(entry_id).name
        with disk.reading(self.root):
            places = self._done.places(name)
        for path in places:
            return self._get(path)
        raise Missing(f"there is no settled entry {entry_id}")

    def newest_done(self, most: int) -> list[Entry]:
        """Return the entries that were settled last, the last one first, `most` at most."""
        return self.recent_done(0.0, most=most)

    def is_done(self, wait_id: str) -> bool:
        """Tell whether a settled ask has this wait id; it reads one small file a month. Raises StoreError."""
        return self.done_by(wait_id) is not None

    def done_by(self, wait_id: str) -> str | None:
        """Return the agent of the settled ask with this wait id, None if there is none. Raises StoreError."""
        with disk.reading(self.root):
            return self._done.closed_by(wait_id)

    def recent_done(self, since_s: float, *, most: int | None = None) -> list[Entry]:
        """Return what was settled at `since_s` (epoch) or later, the last one first, `most` at most."""
        entries = []
        with disk.reading(self.root):
            paths = self._done.since(since_s)[:most]
        for path in paths:
            with contextlib.suppress(Missing, Unreadable, TooNew):
                entries.append(self._get(path))
        return entries

    def days_done(self) -> dict[str, float]:
        """Return the days (UTC, "YYYY-MM-DD") on which entries were settled, with the last moment of each (epoch)."""
        with disk.reading(self.root):
            return self._done.days()

    def forget_done(self, days: Collection[str]) -> int:
        """Forget what was settled on these days (as `days_done` names them); return how many.

        Raises:
            NotSaved: the disk refuses.
        """
        with self._writing():
            return self._done.forget(days)

    def _list_closed(self) -> None:
        """List the closed asks of the months for which an older Hermes wrote no list."""
        for month in self._done.unlisted():
            self._done.list_month(month, map(_line, _surveyed(entry_files(month)).entries))

    def quarantine(self, name: str, data: bytes, reason: str) -> Path:
        """Keep what cannot be understood for a person to look at, and say so loudly; return the file.

        Raises:
            NotSaved: the disk refuses.
        """
        with self._writing():
            path = self._quarantine.put(name, data)
        log.error("%s cannot be understood (%s); put it into %s", name, reason, path)
        return path

    def quarantined(self) -> list[Path]:
        """Return the files in quarantine, oldest first."""
        with disk.reading(self.root):
            return self._quarantine.files()

    def _put_away(self, path: Path, read: Callable[[Path], object]) -> bool:
        """Move a damaged file of the store itself to quarantine, unless it is whole or gone by now; tell whether."""
        try:
            with self._writing():
                try:
                    read(path)
                except Unreadable as error:
                    target = self._quarantine.take(path)
                    log.error("%s is damaged (%s); moved it to %s", path, error, target)  # noqa: TRY400
                    return True
        except StoreError as error:
            log.error("%s is left alone: %s", path, error)  # noqa: TRY400
        return False

    # --- the chat's memory -----------------------------------------------------------------------------

    def load_chat(self, bot_id: int) -> ChatMemory:
        """Return what this bot remembers; a fresh memory where there is none, or only another bot's.

        Raises:
            TooNew: a newer Hermes wrote it.
            StoreError: it cannot be read just now.
        """
        memory = ChatMemory(bot_id)
        try:
            memory = _read_chat(self._chat)
        except Unreadable:
            self._put_away(self._chat, _read_chat)
        except Missing:
            pass
        return memory if memory.bot_id == bot_id else ChatMemory(bot_id)

    def save_chat(self, memory: ChatMemory) -> None:
        """Save what the bot must remember.

        Raises:
            NotSaved: the disk refuses.
        """
        with self._writing():
            disk.write(self._chat, CHATS.encode(memory))

    def hold(self, name: str, who: str) -> process_lock.Holding:
        """Take the lock `name` of this store until `release` or the end of this process.

        Raises:
            Held: another process has it; the sentence says which.
            StoreError, NotSaved: as `open`.
        """
        self._make_folders()
        with disk.saving(self._locks):
            return process_lock.hold(self._locks / f"{name}.lock", f"the store {self.root}", who, now=self._now)

    def holder(self, name: str) -> process_lock.Holder | None:
        """Return the process that holds the lock `name`, or None."""
        with disk.reading(self._locks):
            return process_lock.holder(self._locks / f"{name}.lock")

    def stop_listener(self) -> process_lock.Holder | None:
        """Ask the listener to end, and wait until it has; return who it was, None if nobody listened. Raises Held."""
        with disk.reading(self._locks):
            return process_lock.stop(self._locks / f"{LISTENER}.lock")

    # --- files -----------------------------------------------------------------------------------------

    def _add(self, entry: Entry) -> Entry:
        path = self._path(entry.id)
        with self._writing():
            if os.path.lexists(path):
                raise Conflict(f"there is an entry {entry.id} already")
            return _put(path, entry)

    def _path(self, entry_id: str) -> Path:
        # Ids come back from the phone: one that is no id names no file.
        if not _ID.fullmatch(entry_id):
            raise Missing("there is no entry with such an id")
        return self._pending / f"{entry_id}.json"

    def _get(self, path: Path) -> Entry:
        try:
            return _read_entry(path)
        except Unreadable:
            self._put_away(path, _read_entry)
            raise

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        with disk.saving(self.root):
            self.root.stat()  # the lock would make a folder that was removed, open to others
            try:
                lock = self._lock.acquire()
            except Timeout:
                message = f"nothing was saved in {self.root}: another process does not let go of store.lock"
                raise NotSaved(f"{message}; `fuser` says which one") from None
            with lock:
                yield


def _line(entry: Entry) -> str:
    """Return what the list of closed asks says of it: "WAITID CODE AGENT"; without a request id "-" for the first."""
    source = entry.ask.source
    wait_id = "-" if source.request_id is None else spool.wait_id(source.agent, source.machine, source.request_id)
    return f"{wait_id} {entry.code} {source.agent}"


def _content(path: Path) -> bytes:
    with disk.reading(path):
        try:
            return disk.read(path)
        except FileNotFoundError:
            raise Missing(f"there is no entry {path.stem}") from None


def _read_entry(path: Path) -> Entry:
    try:
        entry = ENTRIES.decode(_content(path))
    except TooNew as error:
        raise TooNew(f"{path} is left alone: {error}; upgrade this one") from None
    if entry.id != path.stem:
        raise Unreadable(f"it holds another entry, {entry.id}")
    return entry


def _surveyed(paths: Iterable[Path]) -> Survey:
    entries, damaged, too_new, unread = [], [], [], []
    for path in paths:
        try:
            entries.append(_read_entry(path))
        except Missing:
            continue  # settled or forgotten just now
        except Unreadable as error:
            damaged.append((path, str(error)))
        except TooNew:
            too_new.append(path)
        except StoreError as error:
            unread.append((path, str(error)))
    entries.sort(key=lambda entry: (entry.asked_s, entry.id))
    return Survey(tuple(entries), tuple(damaged), tuple(too_new), tuple(unread))


def _read_chat(path: Path) -> ChatMemory:
    try:
        return CHATS.decode(_content(path))
    except TooNew as error:
        raise TooNew(f"{path} is left alone: {error}; upgrade this one, or move the file away") from None


def _put(path: Path, entry: Entry) -> Entry:
    disk.write(path, ENTRIES.encode(entry))
    return entry
