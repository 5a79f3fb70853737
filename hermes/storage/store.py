"""The store: all that Hermes must not forget, in a folder of files (`files`) or in a database (`postgres`).

Nothing outside `storage` knows which of the two it has. Several machines can share a database. Each of them runs its
agent side, for the asks of its own agents; exactly one of them is the phone side as well. A process writes under all
the leases that it holds, so that one that was paused too long changes nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from hermes.errors import Missing, StoreError, TooNew, Unreadable
from hermes.model.card import Card, MachineList
from hermes.model.chat_memory import ChatMemory
from hermes.model.entry import Entry
from hermes.model.machine import Machine
from hermes.model.notice import Notice
from hermes.model.prompt import Prompt
from hermes.storage.home import Home

Kind = Literal["entries", "notices", "prompts", "cards", "lists"]
"""The kinds of things that a store keeps."""


class Record(Protocol):
    """A frozen dataclass that a store keeps beside the asks."""

    @property
    def id(self) -> str:
        """Its id: eight characters, as `names.random_id` makes them."""

    @property
    def machine(self) -> str:
        """The id of the machine whose agent it is about; "" if it is about none yet, and of the phone side alone."""

    @property
    def revision(self) -> int:
        """0 before the first write; each write adds 1."""


R = TypeVar("R", bound=Record)


class RecordStore(Protocol[R]):
    """The records of one kind."""

    async def survey(self) -> list[R]:
        """Return all records that can be read, and change nothing. Raises StoreError."""

    async def all(self) -> list[R]:
        """Return all records that can be read; others are logged. Raises StoreError."""

    async def get(self, record_id: str) -> R:
        """Return this record. Raises Missing, or another StoreError."""

    async def create(self, record: R) -> R:
        """Save a new record, and return it at its next revision. Raises Conflict, NotSaved."""

    async def change(self, known: R, fn: Callable[[R], R]) -> R:
        """Apply `fn` to the newest version of a record, and return what was saved, at its next revision.

        `known` is the record as the caller knows it. `fn` is pure and may run several times. If it changes nothing,
        nothing is written.

        Raises:
            Missing: the record was forgotten.
            NotSaved: nothing was saved.
        """

    async def keep(self, record: R) -> R:
        """Write a record from memory if the store has lost it or has a lower revision; return the one to go on with.

        Raises NotSaved.
        """

    async def forget(self, record_id: str) -> None:
        """Remove a record; one that is gone already is no error. Raises NotSaved."""


class PromptFiles(Protocol):
    """The files that wait to be sent with their prompts, each known by its prompt and by its message."""

    async def write(self, prompt_id: str, message_id: int, data: bytes) -> None:
        """Keep a file; one that is written again replaces itself. For the phone side, one at a time.

        Raises:
            Missing: the prompt was forgotten.
            NoRoom: the files that wait would take too much room.
            NotSaved: nothing was saved, or a part of the file alone.
        """

    async def read(self, prompt_id: str, message_id: int) -> bytes:
        """Return the content of a file. Raises Missing: it is not there, or not whole; StoreError."""

    async def remove(self, prompt_id: str) -> None:
        """Remove the files of a prompt; one that has none is no error. For the phone side. Raises NotSaved."""

    async def prompt_ids(self) -> set[str]:
        """Return the ids of the prompts that have files. Raises StoreError."""


@dataclass(frozen=True, slots=True)
class Changed:
    """Another process has changed, closed or forgotten this entry or record, or made it."""

    kind: Kind
    id: str


@dataclass(frozen=True, slots=True)
class Missed:
    """Changes may have been missed: everything is to be read again."""


@dataclass(frozen=True, slots=True)
class Survey:
    """Entries, oldest first, and the files or rows that cannot be used (damaged, unread: with the reason)."""

    entries: tuple[Entry, ...]
    damaged: tuple[tuple[Path, str], ...]
    too_new: tuple[Path, ...]
    unread: tuple[tuple[Path, str], ...]


def surveyed(readers: Iterable[tuple[Path, Callable[[], Entry]]]) -> Survey:
    """Read each file or row; one that was settled or removed meanwhile is left out."""
    entries, damaged, too_new, unread = [], [], [], []
    for path, read in readers:
        try:
            entries.append(read())
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


class Store(Protocol):
    """The asks, the records beside them, and the memory of the chat.

    `home` is the folder of this machine. `put_away` counts the damaged asks that were put aside since the start.
    `is_shared` tells whether other machines can share this store, so that a lease says which one is the phone side;
    `has_unread`, whether the last `open` left asks alone that it could not read. `files` are the files of prompts.
    `lists` has, for each machine, the sessions that a person may write to: they need not outlive the listener. `now`
    returns the time of the store's clock (epoch seconds), which all machines share.

    Every method may raise StoreError; every method that writes raises NotSaved with a sentence for people, and then
    nothing has changed, and Deposed if another process has taken over a lease of this one.
    """

    home: Home
    put_away: int
    is_shared: bool
    has_unread: bool
    notices: RecordStore[Notice]
    prompts: RecordStore[Prompt]
    files: PromptFiles
    cards: RecordStore[Card]
    lists: RecordStore[MachineList]
    now: Callable[[], float]

    # --- who this process is ------------------------------------------------------------------------------------------

    async def join(self, name: str, version: str) -> None:
        """Take the lease of this machine, which has this name for people, and read the clock.

        Raises:
            Held: another process with this machine's id is at work.
            TooNew: a newer Hermes has made this store.
        """

    async def take_phone(self) -> bool:
        """Try to become the phone side, and tell whether it worked. Do it after `join`.

        After the phone side was lost, nothing can be written before this call: end the earlier phone side first.
        """

    def is_phone(self) -> bool:
        """Tell whether this process is the phone side. It looks at a clock alone, so it can be asked at any time.

        Once it has returned false, this process is to stop; it may become the phone side again by `take_phone`.
        """

    async def renew(self, servers: tuple[tuple[str, bool], ...]) -> None:
        """Say that this machine is there, with the state of its servers. Call it every `RENEW_S`. Raises Deposed."""

    async def leave(self) -> None:
        """Give up all leases at once, so that another machine need not wait, and close all connections."""

    async def machines(self) -> tuple[Machine, ...]:
        """Return all machines that share this store."""

    def changes(self) -> AsyncIterator[Changed | Missed]:
        """Yield what other processes change, for as long as it is read; its own changes are left out."""

    # --- asks ---------------------------------------------------------------------------------------------------------

    async def open(self) -> list[Entry]:
        """Return the open asks, oldest first: of all machines for the phone side, else of this machine."""

    async def revisions(self) -> dict[str, int]:
        """Map the id of each ask that `open` returns to its revision."""

    async def survey(self) -> Survey:
        """Read all open asks and change nothing, for callers that only look."""

    async def survey_done(self, since_s: float) -> Survey:
        """Read all asks that were closed at `since_s` (epoch) or later, and change nothing."""

    async def new_id(self) -> str:
        """Return an id of eight characters that no ask has."""

    async def new_code(self, open_entries: Iterable[Entry]) -> str:
        """Return a code such as "k7m2q" that neither these asks nor the closed ones have. For the phone side."""

    async def create(self, entry: Entry) -> Entry:
        """Save a new ask and return it, at revision 1. Raises Conflict: there is an ask with this id."""

    async def get(self, entry_id: str) -> Entry:
        """Return an open ask. Raises Missing: it is closed, or never existed; Unreadable, TooNew."""

    async def change(self, entry_id: str, fn: Callable[[Entry], Entry], known: Entry | None = None) -> Entry:
        """Apply `fn` to the newest version of an open ask, and return what was saved, at its next revision.

        `known` is the ask as the caller knows it: it saves reading it first, and replaces a damaged one. `fn` is pure
        and may run several times. If it changes nothing, nothing is written; if it raises an error, it reaches the
        caller, and nothing has changed.

        Raises:
            Missing, Unreadable, TooNew: as `get`.
            Stuck: the damaged ask cannot be replaced.
        """

    async def keep(self, entry: Entry) -> Entry:
        """Write an open ask from memory if the store has lost it or has a lower revision; return the one to go on with.

        Raises:
            Missing: the ask was closed.
            Conflict: another ask has its code.
        """

    async def forget(self, entry_id: str) -> None:
        """Remove an open ask that was moved to another store; one that is not open is no error."""

    async def settle(self, entry_id: str, known: Entry | None = None) -> None:
        """Close a settled ask. Raises as `change`."""

    async def done(self, entry_id: str) -> Entry:
        """Return a closed ask. Raises Missing: no closed ask has this id, or it was deleted; Unreadable, TooNew."""

    async def done_by(self, wait_id: str) -> str | None:
        """Return the agent of the closed ask of this machine with this wait id, or None."""

    async def newest_done(self, most: int) -> list[Entry]:
        """Return the `most` asks that were closed last, newest first, but none that cannot be read."""

    async def days_done(self) -> dict[str, float]:
        """Map each day (UTC, "YYYY-MM-DD") on which asks were closed to the time of its last one (epoch)."""

    async def forget_done(self, days: Collection[str]) -> int:
        """Delete the asks that were closed on these days (as `days_done` names them), and return how many."""

    # --- the chat -----------------------------------------------------------------------------------------------------

    async def load_chat(self, bot_id: int) -> ChatMemory:
        """Return the memory of this bot, or an empty one if there is none."""

    async def save_chat(self, memory: ChatMemory) -> None:
        """Save the memory of a bot."""

    async def is_phone_locked(self) -> bool:
        """Tell whether the phone is locked: Hermes takes no answers from it."""

    async def lock_phone(self) -> None:
        """Lock the phone: Hermes takes no answers from it, also after a restart."""

    async def unlock_phone(self) -> bool:
        """Unlock the phone, and tell whether it was locked."""


RENEW_S = 4.0
"""How often a process says that it is there."""
