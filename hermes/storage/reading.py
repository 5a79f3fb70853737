"""Reads the files of the store, and changes nothing."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hermes import disk
from hermes.errors import Missing, StoreError, TooNew, Unreadable
from hermes.model.chat_memory import ChatMemory
from hermes.model.entry import Entry
from hermes.storage.codec import CHATS, ENTRIES


@dataclass(frozen=True, slots=True)
class Survey:
    """The entries of a folder, oldest first, and the files that cannot be used (damaged, unread: with the reason)."""

    entries: tuple[Entry, ...]
    damaged: tuple[tuple[Path, str], ...]
    too_new: tuple[Path, ...]
    unread: tuple[tuple[Path, str], ...]


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
    """Read these files; one that was settled or removed meanwhile is left out."""
    entries, damaged, too_new, unread = [], [], [], []
    for path in paths:
        try:
            entries.append(read_entry(path))
        except Missing:
            continue  # it was settled or removed just now
        except Unreadable as error:
            damaged.append((path, str(error)))
        except TooNew:
            too_new.append(path)
        except StoreError as error:
            unread.append((path, str(error)))
    entries.sort(key=lambda entry: (entry.asked_s, entry.id))
    return Survey(tuple(entries), tuple(damaged), tuple(too_new), tuple(unread))


def read_chat(path: Path) -> ChatMemory:
    """Return the memory of a bot in this file. Raises as `read_entry`."""
    try:
        return CHATS.decode(_content(path))
    except TooNew as error:
        raise TooNew(f"{path} is left alone: {error}; upgrade this one, or move the file away") from None
