"""Machines that share a database, each with a folder of its own."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.hook import spool
from hermes.model.entry import Phone
from hermes.storage.home import Home
from hermes.storage.postgres.store import PostgresStore
from tests.storage.store_process import an_entry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hermes.model.entry import Entry
    from hermes.storage.postgres.address import Address
    from tests.harness.postgres import Database

BOT = 42
SECRET = "a-secret 'of' its own"
MADE: list[PostgresStore] = []
"""The stores of the test that runs."""


class Clock:
    """A monotonic clock that a test moves; to sleep is to move it."""

    def __init__(self) -> None:
        self.ahead_s = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return asyncio.get_running_loop().time() + self.ahead_s

    async def sleep(self, seconds: float) -> None:
        """Let the time pass at once."""
        self.slept.append(seconds)
        self.ahead_s += seconds
        await asyncio.sleep(0.01)


def machine(root: Path, name: str, address: Address, *, bot: int | None = BOT, **seams: Any) -> PostgresStore:
    """The store of this machine, which has not joined yet."""
    home = root / name
    home.mkdir(parents=True, exist_ok=True)
    spool.keep_machine(home, name)
    MADE.append(PostgresStore(Home(home), address, bot, **seams))
    return MADE[-1]


@contextlib.asynccontextmanager
async def joined(store: PostgresStore, *, phone: bool = False) -> AsyncIterator[PostgresStore]:
    """The store of a machine that has joined, and that is the phone side if that is wanted."""
    try:
        await store.join(store.home.root.name, "1.0")
        if phone:
            assert await store.take_phone()
        yield store
    finally:
        await store.leave()


def agent(database: Database, tmp_path: Path, user: str, name: str = "ci", bot: int | None = None) -> PostgresStore:
    """An agent-only machine."""
    return machine(tmp_path, name, database.address(user.replace(" ", "%20"), SECRET), bot=bot)


def asked_at(name: str, entry_id: str, code: str = "") -> Entry:
    """An ask of this machine that is not on the phone yet."""
    entry = an_entry(entry_id, code=code)
    return replace(entry, ask=replace(entry.ask, source=replace(entry.ask.source, machine=name)), phone=Phone(0))
