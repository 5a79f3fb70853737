"""Calls of the store that begin, and go on when a test says so."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from hermes.errors import NotSaved
from hermes.storage.records import RecordFiles
from hermes.storage.store import R

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from hermes.listener.records import Records
    from hermes.storage.store import RecordStore, Store


class Gate:
    """Where a call stands still."""

    def __init__(self) -> None:
        self._began = asyncio.Event()
        self._goes_on = asyncio.Event()

    async def begun(self) -> None:
        """Wait until the call has begun."""
        async with asyncio.timeout(20):
            await self._began.wait()

    async def passed(self) -> None:
        """Stand still until the gate is open."""
        self._began.set()
        await self._goes_on.wait()

    def open(self) -> None:
        """Let the call go on."""
        self._goes_on.set()


@asynccontextmanager
async def held(store: Store | RecordStore[Any], name: str, *, is_done: bool = False) -> AsyncIterator[Gate]:
    """Hold the next call of this method of the store, before its work or when that is done, until the block ends."""
    found, gate = getattr(store, name), Gate()

    async def called(*given: Any, **named: Any) -> Any:
        is_next = store.__dict__.pop(name, None) is not None
        if is_next and not is_done:
            await gate.passed()
        result = await found(*given, **named)
        if is_next and is_done:
            await gate.passed()
        return result

    store.__dict__[name] = called
    try:
        yield gate
    finally:
        gate.open()


def fails_once(part: object, name: str, error: Exception) -> None:
    """Let the next call of this method fail, for example one of the store."""

    async def called(*_: Any, **__: Any) -> Any:
        del part.__dict__[name]
        raise error

    part.__dict__[name] = called


def fails_for(store: Store, name: str, entry_id: str, error: Exception) -> None:
    """Let this method of the store fail for this entry from now on."""
    found = getattr(store, name)

    async def called(given: str, *more: Any) -> Any:
        if given == entry_id:
            raise error
        return await found(given, *more)

    store.__dict__[name] = called


@contextmanager
def unsaved(records: Records[R], refuses: Callable[[R], bool] = lambda _: True) -> Iterator[None]:
    """Let the disk be full for these records in the block."""
    files = records._store
    assert isinstance(files, RecordFiles)
    real = files._save

    def save(record: R) -> R:
        if refuses(record):
            raise NotSaved("the disk is full", disk_full=True)
        saved: R = real(record)
        return saved

    files.__dict__["_save"] = save
    try:
        yield
    finally:
        del files.__dict__["_save"]


@contextmanager
def unwritable(file: Path) -> Iterator[None]:
    """Make writes of this file fail: a folder stands where its new content would be written."""
    folder = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    folder.mkdir()
    try:
        yield
    finally:
        folder.rmdir()
