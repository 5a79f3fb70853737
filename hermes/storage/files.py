"""A store of files: pending entries, settled entries, the records beside them and the chat memory, in one folder.

Each entry has a file, so the cost of a change does not depend on the number of entries. An entry is read, changed and
written under one file lock. A damaged file goes to quarantine and is never overwritten; a file that a newer Hermes
wrote stays unchanged.

Its coroutines block for about the time of one fsync, which is shorter than handing the work to a thread. Every method
that writes raises `NotSaved`, with a sentence for people, if the disk refuses; then nothing has changed.

One machine has such a store: it is always the phone side, and no other process changes an ask.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

from hermes import disk
from hermes.errors import Conflict, Missing, StoreError, Stuck, TooNew, Unreadable
from hermes.model.card import MachineList
from hermes.model.chat_memory import ChatMemory
from hermes.model.entry import Entry
from hermes.model.machine import Machine
from hermes.storage import names, store
from hermes.storage.archive import Done, closed_line, entry_files
from hermes.storage.codec import CARDS, CHATS, ENTRIES, NOTICES, PROMPTS
from hermes.storage.home import RECORDS, Home
from hermes.storage.prompt_files import FOLDER, PromptFolder
from hermes.storage.records import MemoryRecords, RecordFiles
from hermes.storage.store import Changed, Missed, Store, Survey

log = logging.getLogger(__name__)


class FileStore(Store):
    """The entries under one folder.

    Several threads may share one object; several objects may share the folder. The last `open` or `pending` leaves in
    `too_new` the files that a newer Hermes wrote, and in `unread` the files that could not be read at that time;
    `put_away` counts the damaged files that went into quarantine.
    """

    is_shared = False

    def __init__(self, home: Home) -> None:
        self.home = home
        self.now = home.now
        self.too_new: list[Path] = []
        self.unread: list[Path] = []
        self.has_unread = False
        self.put_away = 0
        root = home.root
        self._root = root
        self._pending = root / "pending"
        self._chat = root / "telegram.json"
        self._phone_lock = root / "locked"
        self._done = Done(root / "done")
        notices, prompts, cards = (root / name for name in RECORDS)
        self.notices = RecordFiles(notices, NOTICES, home)
        self.prompts = RecordFiles(prompts, PROMPTS, home)
        self.cards = RecordFiles(cards, CARDS, home)
        self.files = PromptFolder(root)
        self.lists: MemoryRecords[MachineList] = MemoryRecords()
        self._machine = Machine("", "", "", 0.0)

    # --- one machine, which is the phone side -------------------------------------------------------------------------

    async def join(self, name: str, version: str) -> None:
        """Do nothing: the listener's lock keeps other processes away."""
        self._machine = Machine(self.home.machine(), name, version, 0.0, is_phone=True)

    async def take_phone(self) -> bool:
        return True

    def is_phone(self) -> bool:
        return True

    async def renew(self, servers: tuple[tuple[str, bool], ...]) -> None:
        self._machine = replace(self._machine, servers=servers)

    async def leave(self) -> None:
        """Do nothing."""

    async def machines(self) -> tuple[Machine, ...]:
        return (self._machine,)

    async def changes(self) -> AsyncIterator[Changed | Missed]:
        await asyncio.Event().wait()
        yield Missed()

    # --- the lock against a lost phone -----------------------------------------------------------------

    async def is_phone_locked(self) -> bool:
        return disk.is_taken(self._phone_lock)

    async def lock_phone(self) -> None:
        self.home.make()  # a phone can be locked before the first question
        with disk.saving(self._root):
            disk.write(self._phone_lock, b"`hermes unlock` takes this away\n")

    async def unlock_phone(self) -> bool:
        with disk.saving(self._root):
            try:
                self._phone_lock.unlink()
            except FileNotFoundError:
                return False
            disk.sync_folder(self._root)
        return True

    async def open(self) -> list[Entry]:
        """Make or check the folders, remove leftover temporary files, and return the pending entries."""
        self.home.make()
        with self.home.writing():
            names_of = ("quarantine", FOLDER, *RECORDS)
            places = (self._root, self._pending, *(self._root / name for name in names_of), *self._done.months())
            swept = sum(disk.sweep(folder) for folder in places)
            for month in self._done.unlisted():  # an earlier version of Hermes wrote no lists
                self._done.list_month(month, map(closed_line, surveyed(entry_files(month)).entries))
        if swept:
            log.warning("removed %d temporary files that a process left when it died", swept)
        return await self.pending()

    # --- pending entries -------------------------------------------------------------------------------

    async def revisions(self) -> dict[str, int]:
        return {entry.id: entry.revision for entry in await self.open()}

    async def survey(self) -> Survey:
        with disk.reading(self._pending):
            return surveyed(entry_files(self._pending))

    async def survey_done(self, since_s: float) -> Survey:
        with disk.reading(self._root):
            return surveyed(self._done.since(since_s))

    async def pending(self) -> list[Entry]:
        """Return all pending entries, oldest first; move damaged files to quarantine, and log an error for each."""
        survey = await self.survey()
        self.put_away += sum([self.home.quarantine_file(path, read_entry) for path, _ in survey.damaged])
        for _, why in survey.unread:
            log.error("left alone for now: %s", why)
        self.unread = [path for path, _ in survey.unread]
        for path in sorted({*survey.too_new}.difference(self.too_new)):
            log.error("left alone: %s was written by a newer Hermes; upgrade this one", path)
        self.too_new = list(survey.too_new)
        self.has_unread = bool(self.too_new or self.unread)
        return list(survey.entries)

    async def new_id(self) -> str:
        while True:
            entry_id = names.random_id()
            path = self._path(entry_id)
            if not path.exists() and not self._done.places(path.name):
                return entry_id

    async def new_code(self, open_entries: Iterable[Entry]) -> str:
        taken = {entry.code for entry in open_entries}
        while True:
            code = names.random_code()
            with disk.reading(self._root):
                if code not in taken and not self._done.has_code(code):
                    return code

    async def create(self, entry: Entry) -> Entry:
        return self._add(replace(entry, revision=1))

    async def get(self, entry_id: str) -> Entry:
        """Return a pending entry; a damaged file is put into quarantine first."""
        return self._get(self._path(entry_id))

    async def change(self, entry_id: str, fn: Callable[[Entry], Entry], known: Entry | None = None) -> Entry:
        """Read the entry, apply `fn` and save the result, all under the lock.

        A file that is damaged or gone is written again from `known` first. Raises Stuck: it could not be put into
        quarantine, and is not written over.
        """
        path = self._path(entry_id)
        with self.home.writing():
            entry = self._whole(path, known)
            changed = replace(fn(entry), revision=entry.revision)
            if changed == entry:
                return entry
            if changed.id != entry.id:
                raise StoreError(f"entry {entry.id} cannot become {changed.id}")
            changed = replace(changed, revision=entry.revision + 1)
            disk.write(path, ENTRIES.encode(changed))
            return changed

    async def keep(self, entry: Entry) -> Entry:
        """Write an entry from memory if its file is lost or has a lower revision. Raises as `change`."""
        path = self._path(entry.id)
        with self.home.writing():
            if not disk.is_taken(path):
                if self._done.places(path.name):
                    raise Missing(f"entry {entry.id} was settled")
                return self._add(entry)
            found = self._whole(path, entry)
            if found.revision < entry.revision:
                disk.write(path, ENTRIES.encode(entry))
                return entry
            return found

    async def forget(self, entry_id: str) -> None:
        with self.home.writing():
            self._path(entry_id).unlink(missing_ok=True)

    async def settle(self, entry_id: str, known: Entry | None = None) -> None:
        path = self._path(entry_id)
        with self.home.writing():
            line = ""
            with contextlib.suppress(TooNew):
                line = closed_line(self._whole(path, known))
            self._done.take(path, self.now(), line)

    # --- settled entries ----------------------------------------------------------------

    async def done(self, entry_id: str) -> Entry:
        name = self._path(entry_id).name
        with disk.reading(self._root):
            places = self._done.places(name)
        for path in places:
            return self._get(path)
        raise Missing(f"there is no settled entry {entry_id}")

    async def done_by(self, wait_id: str) -> str | None:
        with disk.reading(self._root):
            return self._done.closed_by(wait_id)

    async def newest_done(self, most: int) -> list[Entry]:
        entries = []
        with disk.reading(self._root):
            paths = self._done.since(0.0)[:most]
        for path in paths:
            with contextlib.suppress(StoreError):  # one that this user may not read holds up no other
                entries.append(self._get(path))
        return entries

    async def days_done(self) -> dict[str, float]:
        with disk.reading(self._root):
            return self._done.days()

    async def forget_done(self, days: Collection[str]) -> int:
        with self.home.writing():
            return self._done.forget(days)

    async def load_chat(self, bot_id: int) -> ChatMemory:
        """Return the memory of this bot, or an empty one if it is absent, damaged or another bot's."""
        memory = ChatMemory(bot_id)
        try:
            memory = read_chat(self._chat)
        except Unreadable:
            self.home.quarantine_file(self._chat, read_chat)
        except Missing:
            pass
        return memory if memory.bot_id == bot_id else ChatMemory(bot_id, takes_over=True)

    async def save_chat(self, memory: ChatMemory) -> None:
        with self.home.writing():
            disk.write(self._chat, CHATS.encode(memory))

    def _add(self, entry: Entry) -> Entry:
        path = self._path(entry.id)
        with self.home.writing():
            if disk.is_taken(path):
                raise Conflict(f"there is an entry {entry.id} already")
            disk.write(path, ENTRIES.encode(entry))
            return entry

    def _whole(self, path: Path, known: Entry | None) -> Entry:
        """Return the entry in this file, which is written again from `known` if it is damaged or gone."""
        try:
            return self._get(path)
        except (Missing, Unreadable) as error:
            if known is None:
                raise
            log.error("entry %s: its file is damaged (%s), and is written again", known.id, error)  # noqa: TRY400 (no defect)
            try:
                return self._add(known)
            except Conflict:
                message = f"the damaged file of entry {known.id} could not be put into quarantine"
                raise Stuck(f"{message}, and is not written over") from error

    def _path(self, entry_id: str) -> Path:
        # Ids also come from the phone: a text that is not an id must not name a file.
        if not names.is_id(entry_id):
            raise Missing("there is no entry with such an id")
        return self._pending / f"{entry_id}.json"

    def _get(self, path: Path) -> Entry:
        try:
            return read_entry(path)
        except Unreadable:
            self.home.quarantine_file(path, read_entry)
            raise


# --- reading one file, without a change -----------------------------------------------------------------


def _content(path: Path) -> bytes:
    with disk.reading(path):
        try:
            return disk.read(path)
        except FileNotFoundError:
            raise Missing(f"there is no entry {path.stem}") from None


def read_entry(path: Path) -> Entry:
    """Return the entry in this file. Raises Missing, Unreadable, TooNew, StoreError."""
    try:
        entry = ENTRIES.decode(_content(path))
    except TooNew as error:
        raise TooNew(f"{path} is left alone: {error}; upgrade this one") from None
    if entry.id != path.stem:
        raise Unreadable(f"it holds another entry, {entry.id}")
    return entry


def surveyed(paths: Iterable[Path]) -> Survey:
    """Read these files."""
    return store.surveyed((path, partial(read_entry, path)) for path in paths)


def read_chat(path: Path) -> ChatMemory:
    """Return the memory of a bot in this file. Raises as `read_entry`."""
    try:
        return CHATS.decode(_content(path))
    except TooNew as error:
        raise TooNew(f"{path} is left alone: {error}; upgrade this one, or move the file away") from None
