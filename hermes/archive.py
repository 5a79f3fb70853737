"""Where files come to rest: settled entries by month, and what nobody could understand.

Whoever changes something here holds the lock of the store. Refusals of the disk come as OSError.
"""

import contextlib
import os
import re
import secrets
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from hermes import disk

_MONTH = re.compile(r"\d{4}-\d\d")


def entry_files(folder: Path) -> list[Path]:
    """Return the files of entries in this folder, by name."""
    return [path for path in disk.listing(folder) if path.suffix == ".json" and path.name[0] != "."]


class Done:
    """Settled entries, `YYYY-MM/ID.json`. A file's own time is the one at which it was settled (epoch)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def take(self, path: Path, now_s: float) -> None:
        """Move this file to the month of `now_s`."""
        month = self._folder / datetime.fromtimestamp(now_s, UTC).strftime("%Y-%m")
        disk.own_folder(month)
        os.utime(path, (now_s, now_s))
        disk.move(path, month / path.name)

    def months(self) -> list[Path]:
        """Return the folders of all months, the newest first."""
        return [path for path in reversed(disk.listing(self._folder)) if _MONTH.fullmatch(path.name)]

    def places(self, name: str) -> list[Path]:
        """Return where a file of this name is, the newest first."""
        return [month / name for month in self.months() if (month / name).exists()]

    def since(self, since_s: float) -> list[Path]:
        """Return what was settled at `since_s` or later, the last one first."""
        return [path for _, path in sorted(pair for pair in self._all() if pair[0] >= since_s)][::-1]

    def forget(self, before_s: float) -> int:
        """Remove what was settled before `before_s`, and return how many."""
        old = [path for at_s, path in self._all() if at_s < before_s]
        for path in old:
            path.unlink(missing_ok=True)
        for month in self.months():
            with contextlib.suppress(OSError):  # it is not empty
                month.rmdir()
        return len(old)

    def _all(self) -> Iterator[tuple[float, Path]]:
        for path in (path for month in self.months() for path in entry_files(month)):
            with contextlib.suppress(FileNotFoundError):
                yield path.lstat().st_mtime, path


class Quarantine:
    """Keeps the newest `files` and `max_bytes`; the very newest file stays whatever its size."""

    def __init__(self, folder: Path, *, now: Callable[[], float], files: int, max_bytes: int) -> None:
        self._folder = folder
        self._now = now
        self._files = files
        self._max_bytes = max_bytes

    def put(self, name: str, data: bytes) -> Path:
        """Keep these bytes and return their file; `name` is a hint, only its harmless signs are used."""
        path = self._place(name)
        disk.write(path, data)
        self._trim()
        return path

    def take(self, path: Path) -> Path:
        """Move this file here, as it is, and return its new place."""
        target = self._place(path.name)
        disk.move(path, target)
        self._trim()
        return target

    def files(self) -> list[Path]:
        """Return what is here, oldest first."""
        return [path for path in disk.listing(self._folder) if not path.name.startswith(".")]

    def _place(self, name: str) -> Path:
        stamp = datetime.fromtimestamp(self._now(), UTC).strftime("%Y%m%dT%H%M%S.%f")
        harmless = re.sub(r"[^A-Za-z0-9._-]", "_", name)[-80:]
        return self._folder / f"{stamp}-{secrets.token_hex(2)}-{harmless}"

    def _trim(self) -> None:
        files_left, bytes_left = self._files, self._max_bytes
        for place, path in enumerate(reversed(self.files())):
            files_left -= 1
            bytes_left -= path.lstat().st_size
            if place and (files_left < 0 or bytes_left < 0):
                path.unlink(missing_ok=True)
