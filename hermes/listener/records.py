"""Records in memory, as the store has them on disk. Each change is on disk before it is visible here."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar, Generic

from hermes.errors import InUse, Missing, TooNew, Unreadable
from hermes.listener.wakes import Wakes, Worker
from hermes.storage.store import R, RecordStore


class Records(ABC, Generic[R]):
    """All records of one kind; `now` is the epoch clock of the store.

    A changed one goes to the queue of the workers `of_phone` and `of_agent`. Those of the agent side get the records of
    `machine` alone; None: there is one machine. At most `most` records of each machine are kept.
    """

    of_phone: ClassVar[tuple[Worker, ...]] = ()
    of_agent: ClassVar[tuple[Worker, ...]] = ()
    most: ClassVar[int]

    def __init__(
        self, store: RecordStore[R], wakes: Wakes, *, now: Callable[[], float], machine: str | None = None
    ) -> None:
        self.now = now
        self._store = store
        self._wakes = wakes
        self._machine = machine
        self._known: dict[str, R] = {}
        self._lock = asyncio.Lock()

    @abstractmethod
    def _age_s(self, record: R) -> float:
        """Return a number by which records are compared if there are too many: the lowest goes first."""

    async def open(self) -> None:
        """Read all records, and wake their workers. Raises StoreError."""
        for record in await self._store.all():
            self._known[record.id] = record
            self.wake(record.id)

    def wake(self, record_id: str) -> None:
        """Let the workers look at this record soon."""
        record = self._known.get(record_id)
        is_ours = record is not None and self._is_ours(record)
        for worker in (*self.of_phone, *(self.of_agent if is_ours else ())):
            self._wakes.put(record_id, worker)

    def all(self) -> list[R]:
        """Return all records, in the order in which they were read or made."""
        return list(self._known.values())

    def ours(self) -> list[R]:
        """As `all`, but without the records of other machines."""
        return [record for record in self._known.values() if self._is_ours(record)]

    def _is_ours(self, record: R) -> bool:
        return self._machine in {None, record.machine}

    def get(self, record_id: str) -> R | None:
        """Return the record with this id, or None."""
        return self._known.get(record_id)

    async def at_rest(self) -> None:
        """Return when the change that is under way is over."""
        async with self._lock:
            pass

    async def lay_out_again(self) -> None:
        """Write all records from memory into a store whose folder was removed or replaced. Raises NotSaved."""
        async with self._lock:
            for record in self.all():
                self._known[record.id] = await self._store.keep(record)

    async def refresh(self, record_id: str) -> None:
        """Read a record that another process has changed, made or forgotten. Raises StoreError."""
        async with self._lock:
            known = self._known.get(record_id)
            try:
                record = await self._store.get(record_id)
            except (Missing, Unreadable, TooNew):  # each look for what was missed logs one that cannot be read
                self._known.pop(record_id, None)
                return
            if known is None or known.revision < record.revision:
                self._known[record_id] = record
                self.wake(record_id)

    async def stale(self) -> set[str]:
        """Return the ids of the records that are not here as the store has them. Raises StoreError."""
        found = {record.id: record.revision for record in await self._store.all()}
        known = {record.id: record.revision for record in self._known.values()}
        return {record_id for record_id, _ in found.items() ^ known.items()}

    async def forget(self, is_old: Callable[[R], bool]) -> None:
        """Forget these records. Raises NotSaved."""
        async with self._lock:
            for record in [one for one in self.all() if is_old(one)]:
                with suppress(InUse):  # it is old the next time, too
                    await self._remove(record)

    async def make(self, find: Callable[[R], bool], new: Callable[[], R], fn: Callable[[R], R]) -> R:
        """Change the record that `find` finds, or a new one; return it, on disk. All are pure. Raises NotSaved."""
        async with self._lock:
            found = next((record for record in self.all() if find(record)), None)
            if found is not None:
                with suppress(Missing):
                    return await self._changed(found, fn)
            return await self._noted(await self._store.create(fn(new())))

    async def change(self, record_id: str, fn: Callable[[R], R]) -> R | None:
        """Change a record; return it, on disk, or None if there is none. `fn` is pure.

        Raises:
            NotSaved: it stays as it was.
            Unreadable, TooNew: another process has made it one that cannot be read here; it is unknown from now on.
        """
        async with self._lock:
            record = self._known.get(record_id)
            if record is None:
                return None
            with suppress(Missing):
                return await self._changed(record, fn)
            return None

    async def _changed(self, known: R, fn: Callable[[R], R]) -> R:
        try:
            saved = await self._store.change(known, fn)
        except (Missing, Unreadable, TooNew):
            del self._known[known.id]
            raise
        return known if saved == known else await self._noted(saved)

    async def _noted(self, saved: R) -> R:
        self._known[saved.id] = saved
        self.wake(saved.id)
        with suppress(InUse):  # the next one that is noted goes on
            while len(of_machine := [one for one in self.all() if one.machine == saved.machine]) > self.most:
                await self._remove(min(of_machine, key=self._age_s))
        return saved

    async def _remove(self, record: R) -> None:
        await self._store.forget(record.id)
        del self._known[record.id]
