"""The folder of the files that wait to be sent with their prompts, and of voice notes while a program hears them.

A file has a name of ours, made of the id of its prompt and of its message. So a file that is written again replaces
itself, and one whose prompt is unknown can be found and removed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from hermes import disk
from hermes.errors import Missing, NoRoom, StoreError
from hermes.storage.names import is_id
from hermes.storage.store import PromptFiles

MOST_BYTES: Final = 500_000_000
FOLDER: Final = "files"
_SOUND: Final = ".ogg"


class PromptFolder(PromptFiles):
    """The files of prompts, in a folder of the folder `root`; together at most `most_bytes`."""

    def __init__(self, root: Path, *, most_bytes: int = MOST_BYTES) -> None:
        self._folder = root / FOLDER
        self._most_bytes = most_bytes

    async def write(self, prompt_id: str, message_id: int, data: bytes) -> None:
        await asyncio.to_thread(self._write, self._path(prompt_id, message_id), data)

    async def read(self, prompt_id: str, message_id: int) -> bytes:
        path = self._path(prompt_id, message_id)
        with disk.reading(path):
            try:
                return disk.read(path)
            except FileNotFoundError as error:
                raise Missing(f"{path} is not there") from error

    async def remove(self, prompt_id: str) -> None:
        self._unlink(lambda path: _prompt_of(path) == prompt_id)

    async def prompt_ids(self) -> set[str]:
        with disk.reading(self._folder):
            return {prompt_id for path in disk.listing(self._folder) if (prompt_id := _prompt_of(path))}

    @asynccontextmanager
    async def sound(self, prompt_id: str, message_id: int, data: bytes) -> AsyncIterator[Path]:
        """Keep a voice note for as long as a program hears it. Raises NoRoom, NotSaved."""
        path = self._path(prompt_id, message_id, _SOUND)
        await asyncio.to_thread(self._write, path, data)
        try:
            yield path
        finally:
            self._unlink(lambda one: one == path)

    def remove_sounds(self) -> None:
        """Remove the voice notes that a process left when it died. Raises NotSaved."""
        self._unlink(lambda path: _SOUND in path.suffixes)

    def _write(self, path: Path, data: bytes) -> None:
        with disk.saving(self._folder):
            disk.own_folder(self._folder)
            others = sum(one.lstat().st_size for one in disk.listing(self._folder) if one != path)
            if others + len(data) > self._most_bytes:
                raise NoRoom(f"the files in {self._folder} would take more than {self._most_bytes // 1_000_000} MB")
            disk.write(path, data)

    def _unlink(self, is_one: Callable[[Path], bool]) -> None:
        with disk.saving(self._folder):
            for path in disk.listing(self._folder):
                if is_one(path):
                    path.unlink(missing_ok=True)

    def _path(self, prompt_id: str, message_id: int, suffix: str = "") -> Path:
        check_id(prompt_id)
        return self._folder / f"{prompt_id}.{message_id}{suffix}"


def check_id(prompt_id: str) -> None:
    """Raise StoreError if this is no id of a prompt: a damaged record must not name other files."""
    if not is_id(prompt_id):
        raise StoreError("the id of a prompt is not one that Hermes makes")


def _prompt_of(path: Path) -> str:
    """Return the id of the prompt of a file, "" for one that is being written."""
    return path.name.partition(".")[0]
