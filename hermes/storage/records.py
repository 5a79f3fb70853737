"""Records of one kind as files, such as the notices of sessions: `notices/ID.json`.

A damaged file goes to quarantine and costs only its own record; a file that a newer Hermes wrote is left alone.
"""

import contextlib
import dataclasses
import logging
from collections.abc import Callable
from pathlib import Path

from hermes import disk
from hermes.errors import Conflict, Missing, NotSaved, StoreError, TooNew, Unreadable
from hermes.storage import names
from hermes.storage.archive import entry_files
from hermes.storage.codec import Codec
from hermes.storage.home import Home
from hermes.storage.store import R, RecordStore

log = logging.getLogger(__name__)


class RecordFiles(RecordStore[R]):
    """The records under one folder. Only the listener writes them, so they need no lock."""

    def __init__(self, folder: Path, codec: Codec[R], home: Home) -> None:
        self._folder = folder
        self._codec = codec
        self._home = home

    async def survey(self) -> list[R]:
        """Return all records that can be read, and change nothing: for processes beside the listener."""
        found = []
        for path in entry_files(self._folder):
            with contextlib.suppress(OSError, StoreError):
                found.append(self._read(path))
        return found

    async def all(self) -> list[R]:
        """Return all records that can be read; an unreadable file is left alone or put into quarantine, and logged."""
        found = []
        with disk.reading(self._folder):
            paths = list(entry_files(self._folder))
        for path in paths:
            try:
                found.append(self._read(path))
            except OSError as error:
                log.error("%s is left alone: %s", path, error.strerror)  # noqa: TRY400 (no defect)
            except TooNew as error:
                log.error("%s is left alone: %s; upgrade this one", path, error)  # noqa: TRY400 (no defect)
            except Unreadable:
                self._home.quarantine_file(path, self._read)
        return found

    def _read(self, path: Path) -> R:
        record = self._codec.decode(disk.read(path))
        if record.id != path.stem:
            raise Unreadable(f"it holds another record, {record.id}")
        return record

    async def get(self, record_id: str) -> R:
        with disk.reading(self._folder):
            try:
                return self._read(self._path(record_id))
            except FileNotFoundError:
                raise Missing(f"there is no record {record_id}") from None

    async def create(self, record: R) -> R:
        if disk.is_taken(self._path(record.id)):
            raise Conflict(f"there is a record {record.id} already")
        return self._save(_next_revision(record))

    async def change(self, known: R, fn: Callable[[R], R]) -> R:
        """Apply `fn` to `known`, and return what was saved, at its next revision. Raises NotSaved."""
        changed = fn(known)
        return known if changed == known else self._save(_next_revision(changed))

    async def keep(self, record: R) -> R:
        with contextlib.suppress(OSError, StoreError):
            found = self._read(self._path(record.id))
            if found.revision >= record.revision:
                return found
        return self._save(record)

    def _save(self, record: R) -> R:
        if not disk.is_taken(self._folder.parent):
            raise NotSaved(f"the folder {self._folder.parent} was removed")
        with disk.saving(self._folder):
            disk.own_folder(self._folder)
            disk.write(self._path(record.id), self._codec.encode(record))
        return record

    async def forget(self, record_id: str) -> None:
        with disk.saving(self._folder):
            self._path(record_id).unlink(missing_ok=True)

    def _path(self, record_id: str) -> Path:
        if not names.is_id(record_id):
            raise StoreError("there is no record with such an id")
        return self._folder / f"{record_id}.json"


class MemoryRecords(RecordStore[R]):
    """Records that need not outlive the process."""

    def __init__(self) -> None:
        self._records: dict[str, R] = {}

    async def survey(self) -> list[R]:
        return list(self._records.values())

    async def all(self) -> list[R]:
        return list(self._records.values())

    async def get(self, record_id: str) -> R:
        if record_id not in self._records:
            raise Missing(f"there is no record {record_id}")
        return self._records[record_id]

    async def create(self, record: R) -> R:
        if record.id in self._records:
            raise Conflict(f"there is a record {record.id} already")
        return self._kept(record)

    async def change(self, known: R, fn: Callable[[R], R]) -> R:
        changed = fn(known)
        return known if changed == known else self._kept(changed)

    async def keep(self, record: R) -> R:
        return self._kept(record)

    async def forget(self, record_id: str) -> None:
        self._records.pop(record_id, None)

    def _kept(self, record: R) -> R:
        kept = self._records[record.id] = _next_revision(record)
        return kept


def _next_revision(record: R) -> R:
    return dataclasses.replace(record, revision=record.revision + 1)  # type: ignore[type-var]
