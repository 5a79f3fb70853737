"""The archive of the store: settled entries by month, and the quarantine of unreadable data.

`done/YYYY-MM/closed` lists the entries of its month, one line `WAITID CODE AGENT` for each. With it Hermes recognises
a closed ask and gives no code twice, and keeps nothing about closed asks in memory. The line break comes before each
line, so that a partly written line does not damage the next one. The file is removed with the last entry of its month.

A caller that changes something here holds the lock of the store. Errors of the disk are raised as OSError.
"""

import contextlib
import os
import re
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from hermes import disk
from hermes.hook import spool
from hermes.model.entry import Entry

_MONTH = re.compile(r"\d{4}-\d\d")
_CLOSED = "closed"


def entry_files(folder: Path) -> list[Path]:
    """Return the entry files in this folder, sorted by name."""
    return [path for path in disk.listing(folder) if path.suffix == ".json" and path.name[0] != "."]


def closed_line(entry: Entry) -> str:
    """Return the line of the list of closed asks: "WAITID CODE AGENT", with "-" for each part that is missing."""
    source = entry.ask.source
    wait_id = "-" if source.request_id is None else spool.wait_id(source.agent, source.machine, source.request_id)
    return f"{wait_id} {entry.code or '-'} {source.agent}"


class Done:
    """Settled entries, `YYYY-MM/ID.json`. The modification time of a file is when its entry was settled (epoch)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def take(self, path: Path, now_s: float, line: str = "") -> None:
        """Move this file to the month of `now_s`; add `line` ("WAITID CODE AGENT") to its list unless it is empty."""
        month = self._folder / datetime.fromtimestamp(now_s, UTC).strftime("%Y-%m")
        disk.own_folder(month)
        if line:
            disk.append(month / _CLOSED, f"\n{line}".encode())
        os.utime(path, (now_s, now_s))
        disk.move(path, month / path.name)

    def months(self) -> list[Path]:
        """Return the folders of all months, newest first."""
        return [path for path in reversed(disk.listing(self._folder)) if _MONTH.fullmatch(path.name) and path.is_dir()]

    def places(self, name: str) -> list[Path]:
        """Return the paths of all files with this name, newest month first."""
        return [month / name for month in self.months() if (month / name).exists()]

    def since(self, since_s: float) -> list[Path]:
        """Return the files of entries that were settled at `since_s` (epoch) or later, newest first."""
        return [path for _, path in sorted(pair for pair in self._all() if pair[0] >= since_s)][::-1]

    def days(self) -> dict[str, float]:
        """Map each day (UTC, "YYYY-MM-DD") on which entries were settled to the time of its last one (epoch)."""
        newest: dict[str, float] = {}
        for at_s, _ in self._all():
            newest[_day(at_s)] = max(at_s, newest.get(_day(at_s), at_s))
        return newest

    def forget(self, days: Collection[str]) -> int:
        """Remove the entries that were settled on these days, and return how many there were."""
        old = [path for at_s, path in self._all() if _day(at_s) in days]
        for path in old:
            path.unlink(missing_ok=True)
        for month in self.months():
            if not entry_files(month):
                (month / _CLOSED).unlink(missing_ok=True)
                with contextlib.suppress(OSError):  # the folder holds other files
                    month.rmdir()
        return len(old)

    def unlisted(self) -> list[Path]:
        """Return the folders of months without a list of closed asks: an earlier version of Hermes wrote none."""
        return [month for month in self.months() if not (month / _CLOSED).exists()]

    def list_month(self, month: Path, lines: Iterable[str]) -> None:
        """Write the list of closed asks of a month."""
        disk.write(month / _CLOSED, "".join(f"\n{line}" for line in lines).encode())

    def closed_by(self, wait_id: str) -> str | None:
        """Return the agent of the closed ask with this wait id, or None."""
        for data in self._lists():
            if (at := data.find(f"\n{wait_id} ".encode())) >= 0:
                return data[at:].split(b"\n", 2)[1].decode("utf-8", "replace").rpartition(" ")[2]
        return None

    def has_code(self, code: str) -> bool:
        """Tell whether a closed ask has this code."""
        return any(f" {code} ".encode() in data for data in self._lists())

    def _lists(self) -> Iterator[bytes]:
        for month in self.months():
            with contextlib.suppress(FileNotFoundError):
                yield disk.read(month / _CLOSED)

    def _all(self) -> Iterator[tuple[float, Path]]:
        for path in (path for month in self.months() for path in entry_files(month)):
            with contextlib.suppress(FileNotFoundError):
                yield path.lstat().st_mtime, path


def _day(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d")


class Quarantine:
    """Files that Hermes could not read.

    It keeps at most `files` files and `max_bytes` bytes and removes the oldest; the newest always stays.
    """

    def __init__(self, folder: Path, *, now: Callable[[], float], files: int, max_bytes: int) -> None:
        self._folder = folder
        self._now = now
        self._files = files
        self._max_bytes = max_bytes

    def put(self, name: str, data: bytes) -> Path:
        """Save these bytes and return the path of their file; its name ends with the harmless characters of `name`."""
        path = self._place(name)
        disk.write(path, data)
        self._trim()
        return path

    def take(self, path: Path) -> Path:
        """Move this file here, unchanged, and return its new path."""
        target = self._place(path.name)
        disk.move(path, target)
        self._trim()
        return target

    def files(self) -> list[Path]:
        """Return the files in quarantine, oldest first."""
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
