"""The store: pending entries, settled entries and the chat memory, as files in one folder.

Each entry has a file, so the cost of a change does not depend on the number of entries. An entry is read, changed and
written under one file lock. A damaged file goes to quarantine and is never overwritten; a file that a newer Hermes
wrote stays unchanged.

The methods that read or write entries and the chat memory are coroutines, because other stores talk with a server. This
one blocks for about the time of one fsync instead, which is shorter than handing the work to a thread. Every method
that writes raises `NotSaved`, with a sentence for people, if the disk refuses; then nothing has changed.
"""

import contextlib
import logging
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from filelock import FileLock, Timeout

from hermes import disk
from hermes.errors import Conflict, Missing, NotSaved, StoreError, TooNew, Unreadable
from hermes.hook import spool
from hermes.model.chat_memory import ChatMemory
from hermes.model.entry import Entry
from hermes.storage import folders, names, process_lock
from hermes.storage.archive import Done, Quarantine, entry_files
from hermes.storage.codec import CARDS, CHATS, ENTRIES, NOTICES, PROMPTS
from hermes.storage.reading import Survey, closed_line, read_chat, read_entry, surveyed
from hermes.storage.records import RecordFiles

log = logging.getLogger(__name__)

LISTENER = "listener"
"""The name of the lock that the listener of a store holds."""


class Store:
    """The entries under one folder. Several threads may share one object; several objects may share the folder.

    `now` returns epoch seconds. If another process does not release the lock within `lock_timeout_s`, nothing is saved
    (NotSaved). The quarantine keeps the newest `quarantine_files` files and `quarantine_bytes` bytes. The last call of
    `pending` leaves in `too_new` the files that a newer Hermes wrote, and in `unread` the files that could not be read
    at that time; `put_away` counts the damaged files that `pending` has put into quarantine.
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
        self.now = now
        self._pending, done, quarantine, self._locks = (root / name for name in folders.NAMES)
        self._chat = root / "telegram.json"
        self._phone_lock = root / "locked"
        self._done = Done(done)
        self._quarantine = Quarantine(quarantine, now=now, files=quarantine_files, max_bytes=quarantine_bytes)
        notices, prompts, cards = (root / name for name in folders.RECORDS)
        self.notices = RecordFiles(notices, NOTICES, self._quarantine)
        self.prompts = RecordFiles(prompts, PROMPTS, self._quarantine)
        self.cards = RecordFiles(cards, CARDS, self._quarantine)
        # A soft lock would outlive a killed process; a file system without flock gets no store.
        self._lock = FileLock(
            root / "store.lock",
            mode=0o600,
            timeout=lock_timeout_s,
            poll_interval=0.002,
            fallback_to_soft=False,
        )

    # --- the lock against a lost phone -----------------------------------------------------------------

    async def is_phone_locked(self) -> bool:
        """Tell whether the phone is locked: Hermes takes no answers from it."""
        return os.path.lexists(self._phone_lock)

    async def lock_phone(self) -> None:
        """Lock the phone: Hermes takes no answers from it, also after a restart. Raises NotSaved."""
        with disk.saving(self.root):
            disk.write(self._phone_lock, b"`hermes unlock` takes this away\n")

    async def unlock_phone(self) -> bool:
        """Unlock the phone, and tell whether it was locked. Raises NotSaved."""
        with disk.saving(self.root):
            try:
                self._phone_lock.unlink()
            except FileNotFoundError:
                return False
            disk.sync_folder(self.root)
        return True

    # --- what plugins and hooks must know --------------------------------------------------------------

    async def takes_prompts(self) -> bool:
        """Tell whether plugins and hooks are told that prompts from the phone are on."""
        return spool.takes_prompts(self.root)

    async def let_prompts(self, *, on: bool) -> None:
        """Tell plugins and hooks whether prompts from the phone are on. Raises NotSaved."""
        folders.let_prompts(self.root, on=on)

    async def open(self) -> list[Entry]:
        """Make or check the folders, remove leftover temporary files, and return the pending entries.

        Raises:
            StoreError: the folder belongs to another user, or holds other things.
            NotSaved: the folder cannot be made.
        """
        folders.make(self.root)
        with self._writing():
            records = (self.root / name for name in folders.RECORDS)
            places = (self.root, self._pending, self.root / "quarantine", *records, *self._done.months())
            swept = sum(disk.sweep(folder) for folder in places)
            for month in self._done.unlisted():  # an earlier version of Hermes wrote no lists
                self._done.list_month(month, map(closed_line, surveyed(entry_files(month)).entries))
        if swept:
            log.warning("removed %d temporary files that a process left when it died", swept)
        return await self.pending()

    def is_whole(self) -> bool:
        """Tell whether none of its folders was removed."""
        return folders.are_whole(self.root)

    def machine(self) -> str:
        """Return the id of this machine for this store. Raises NotSaved: it does not exist yet and cannot be made."""
        with disk.saving(self.root):
            return spool.machine(self.root)

    def keep_machine(self, machine: str) -> None:
        """Write this machine id again after the folder was removed. Raises NotSaved."""
        with disk.saving(self.root):
            spool.keep_machine(self.root, machine)

    # --- pending entries -------------------------------------------------------------------------------

    async def survey(self) -> Survey:
        """Read all pending entries and change nothing, for callers that only look."""
        with disk.reading(self._pending):
            return surveyed(entry_files(self._pending))

    async def survey_done(self, since_s: float) -> Survey:
        """Read all entries that were settled at `since_s` (epoch) or later, and change nothing."""
        with disk.reading(self.root):
            return surveyed(self._done.since(since_s))

    async def pending(self) -> list[Entry]:
        """Return all pending entries, oldest first; move damaged files to quarantine, and log an error for each."""
        survey = await self.survey()
        self.put_away += sum([self._put_away(path, read_entry) for path, _ in survey.damaged])
        for _, why in survey.unread:
            log.error("left alone for now: %s", why)
        self.unread = [path for path, _ in survey.unread]
        for path in sorted({*survey.too_new}.difference(self.too_new)):
            log.error("left alone: %s was written by a newer Hermes; upgrade this one", path)
        self.too_new = list(survey.too_new)
        return list(survey.entries)

    async def new_id(self) -> str:
        """Return an id of eight characters that no pending or settled entry has."""
        while True:
            entry_id = names.random_id()
            path = self._path(entry_id)
            if not path.exists() and not self._done.places(path.name):
                return entry_id

    async def new_code(self, open_entries: Iterable[Entry]) -> str:
        """Return a code such as "k7m2q" that neither these entries nor the settled ones have."""
        taken = {entry.code for entry in open_entries}
        while True:
            code = names.random_code()
            with disk.reading(self.root):
                if code not in taken and not self._done.has_code(code):
                    return code

    async def create(self, entry: Entry) -> Entry:
        """Save a new entry and return it, at revision 1.

        Raises:
            Conflict: there is a pending entry with this id.
            NotSaved: the disk refuses.
        """
        return self._add(replace(entry, revision=1))

    async def restore(self, entry: Entry) -> Entry:
        """Save an entry again as it was last read, after its file was damaged or removed, and return it.

        Raises:
            Conflict: there is a file for this entry.
            NotSaved: the disk refuses.
        """
        return self._add(entry)

    async def get(self, entry_id: str) -> Entry:
        """Return the pending entry.

        Raises:
            Missing: no pending entry has this id.
            Unreadable: the file is damaged; it was put into quarantine.
            TooNew: a newer Hermes wrote the file.
        """
        return self._get(self._path(entry_id))

    async def change(self, entry_id: str, fn: Callable[[Entry], Entry]) -> Entry:
        """Read the entry, apply `fn` and save the result, all under the lock; return the saved entry.

        The store sets the revision; `fn` need not. If `fn` changes nothing, nothing is written. If `fn` raises an
        error, it reaches the caller, and nothing has changed.

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
            changed = replace(changed, revision=entry.revision + 1)
            disk.write(path, ENTRIES.encode(changed))
            return changed

    async def settle(self, entry_id: str) -> None:
        """Move a pending entry to the settled ones.

        Raises:
            Missing, Unreadable: as `get`.
            NotSaved: the disk refuses.
        """
        path = self._path(entry_id)
        with self._writing():
            line = ""
            with contextlib.suppress(TooNew):
                line = closed_line(self._get(path))
            self._done.take(path, self.now(), line)

    # --- settled entries and quarantine ----------------------------------------------------------------

    async def done(self, entry_id: str) -> Entry:
        """Return a settled entry.

        Raises:
            Missing: no settled entry has this id, or it was removed.
            Unreadable, TooNew: as `get`.
        """
        name = self._path(entry_id).name
        with disk.reading(self.root):
            places = self._done.places(name)
        for path in places:
            return self._get(path)
        raise Missing(f"there is no settled entry {entry_id}")

    async def done_by(self, wait_id: str) -> str | None:
        """Return the agent of the settled ask with this wait id, or None. Raises StoreError."""
        with disk.reading(self.root):
            return self._done.closed_by(wait_id)

    async def newest_done(self, most: int) -> list[Entry]:
        """Return the `most` entries that were settled last, newest first, but none that cannot be read."""
        entries = []
        with disk.reading(self.root):
            paths = self._done.since(0.0)[:most]
        for path in paths:
            with contextlib.suppress(Missing, Unreadable, TooNew):
                entries.append(self._get(path))
        return entries

    async def days_done(self) -> dict[str, float]:
        """Map each day (UTC, "YYYY-MM-DD") on which entries were settled to the time of its last one (epoch)."""
        with disk.reading(self.root):
            return self._done.days()

    async def forget_done(self, days: Collection[str]) -> int:
        """Remove the entries that were settled on these days (as `days_done` names them), and return how many.

        Raises:
            NotSaved: the disk refuses.
        """
        with self._writing():
            return self._done.forget(days)

    async def quarantine(self, name: str, data: bytes, reason: str) -> Path:
        """Save unreadable data in quarantine, log an error, and return the path of the file.

        Raises:
            NotSaved: the disk refuses.
        """
        with self._writing():
            path = self._quarantine.put(name, data)
        log.error("%s cannot be understood (%s); put it into %s", name, reason, path)
        return path

    async def quarantined(self) -> list[Path]:
        """Return the files in quarantine, oldest first."""
        with disk.reading(self.root):
            return self._quarantine.files()

    def _put_away(self, path: Path, read: Callable[[Path], object]) -> bool:
        """Move a damaged file to quarantine, unless it is whole or gone by now; tell whether it was moved."""
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

    async def load_chat(self, bot_id: int) -> ChatMemory:
        """Return the memory of this bot, or an empty one if it is absent, damaged or another bot's.

        Raises:
            TooNew: a newer Hermes wrote the file.
            StoreError: the file cannot be read now.
        """
        memory = ChatMemory(bot_id)
        try:
            memory = read_chat(self._chat)
        except Unreadable:
            self._put_away(self._chat, read_chat)
        except Missing:
            pass
        return memory if memory.bot_id == bot_id else ChatMemory(bot_id)

    async def save_chat(self, memory: ChatMemory) -> None:
        """Save the memory of a bot.

        Raises:
            NotSaved: the disk refuses.
        """
        with self._writing():
            disk.write(self._chat, CHATS.encode(memory))

    def hold(self, name: str, who: str) -> process_lock.Holding:
        """Take the lock `name` of this store until `release` or the end of this process.

        Raises:
            Held: another process has the lock; the sentence says which.
            StoreError, NotSaved: as `open`.
        """
        folders.make(self.root)
        with disk.saving(self._locks):
            return process_lock.hold(self._locks / f"{name}.lock", f"the store {self.root}", who, now=self.now)

    def holder(self, name: str) -> process_lock.Holder | None:
        """Return the process that holds the lock `name`, or None."""
        with disk.reading(self._locks):
            return process_lock.holder(self._locks / f"{name}.lock")

    def stop_listener(self) -> process_lock.Holder | None:
        """Stop the listener, wait until it has ended, and return its process, or None if none ran. Raises Held."""
        with disk.reading(self._locks):
            return process_lock.stop(self._locks / f"{LISTENER}.lock")

    def _add(self, entry: Entry) -> Entry:
        path = self._path(entry.id)
        with self._writing():
            if os.path.lexists(path):
                raise Conflict(f"there is an entry {entry.id} already")
            disk.write(path, ENTRIES.encode(entry))
            return entry

    def _path(self, entry_id: str) -> Path:
        # Ids also come from the phone: a text that is not an id must not name a file.
        if not names.is_id(entry_id):
            raise Missing("there is no entry with such an id")
        return self._pending / f"{entry_id}.json"

    def _get(self, path: Path) -> Entry:
        try:
            return read_entry(path)
        except Unreadable:
            self._put_away(path, read_entry)
            raise

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        with disk.saving(self.root):
            self.root.stat()  # if the folder was removed, the lock would make it again, open to others
            try:
                lock = self._lock.acquire()
            except Timeout:
                message = f"nothing was saved in {self.root}: another process does not let go of store.lock"
                raise NotSaved(f"{message}; `fuser` says which one") from None
            with lock:
                yield
