"""The notices of sessions as files, one for each session: `notices/ID.json`.

A damaged file goes to quarantine and costs only its own notice; a file that a newer Hermes wrote is left alone.
"""

import logging
import os
from dataclasses import replace
from pathlib import Path

from hermes import disk
from hermes.errors import NotSaved, StoreError, TooNew, Unreadable
from hermes.model.notice import Notice
from hermes.storage import names
from hermes.storage.archive import Quarantine, entry_files
from hermes.storage.codec import NOTICES

log = logging.getLogger(__name__)


class NoticeFiles:
    """The notices under one folder. Only the listener writes them, so they need no lock."""

    def __init__(self, folder: Path, quarantine: Quarantine) -> None:
        self._folder = folder
        self._quarantine = quarantine

    async def all(self) -> list[Notice]:
        """Return all notices that can be read; an unreadable file is left alone or put into quarantine, and logged."""
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
            except Unreadable as error:
                self._put_away(path, str(error))
        return found

    def _read(self, path: Path) -> Notice:
        notice = NOTICES.decode(disk.read(path))
        if notice.id != path.stem:
            raise Unreadable(f"it holds another notice, {notice.id}")
        return notice

    def _put_away(self, path: Path, why: str) -> None:
        try:
            with disk.saving(self._folder):
                target = self._quarantine.take(path)
            log.error("%s is damaged (%s); moved it to %s", path, why, target)
        except StoreError as error:
            log.error("%s is damaged (%s), and stays: %s", path, why, error)  # noqa: TRY400 (no defect)

    async def save(self, notice: Notice) -> Notice:
        """Save a notice and return it with its new revision. Raises NotSaved: the disk refuses."""
        saved = replace(notice, revision=notice.revision + 1)
        with disk.saving(self._folder):
            self._make_folder()
            disk.write(self._path(saved.id), NOTICES.encode(saved))
        return saved

    def _make_folder(self) -> None:
        if not os.path.lexists(self._folder.parent):
            raise NotSaved(f"the folder {self._folder.parent} was removed")
        disk.own_folder(self._folder)

    async def forget(self, notice_id: str) -> None:
        """Remove a notice. Raises NotSaved."""
        with disk.saving(self._folder):
            self._path(notice_id).unlink(missing_ok=True)

    def _path(self, notice_id: str) -> Path:
        if not names.is_id(notice_id):
            raise StoreError("there is no notice with such an id")
        return self._folder / f"{notice_id}.json"
