"""A machine hears of what others change; and if it does not, it reads everything again."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.errors import StoreError
from hermes.model.notice import Notice
from hermes.storage.postgres import pooler
from hermes.storage.postgres.store import PostgresStore
from hermes.storage.store import Changed, Missed
from tests.harness.postgres import Database
from tests.storage.machines import Clock, joined, machine
from tests.storage.postgres.proxy import proxy
from tests.storage.store_process import an_entry, one_more

NOTICE = Notice("nnnn2222", "opencode", "ses_1", machine="desk")


class Ear:
    """What a store tells."""

    def __init__(self, store: PostgresStore) -> None:
        self.changes = store.changes()

    async def next(self) -> Changed | Missed:
        async with asyncio.timeout(10):
            return await anext(self.changes)


@contextlib.asynccontextmanager
async def listening(store: PostgresStore) -> AsyncIterator[Ear]:
    """Listen, from the first `Missed` on."""
    ear = Ear(store)
    assert await ear.next() == Missed()
    yield ear


async def test_a_machine_hears_of_its_asks_and_the_phone_side_of_all(database: Database, tmp_path: Path) -> None:
    """But not of what they did themselves, nor of those of other machines."""
    desk, laptop, phone = (machine(tmp_path, name, database.address()) for name in ("desk", "laptop", "phone"))
    async with joined(desk), joined(laptop), joined(phone, phone=True), contextlib.AsyncExitStack() as ears:
        at_desk, at_laptop, at_phone = [
            await ears.enter_async_context(listening(each)) for each in (desk, laptop, phone)
        ]
        entry = await desk.create(an_entry())
        assert await at_phone.next() == Changed("entries", entry.id)
        await phone.change(entry.id, one_more)
        assert await at_desk.next() == Changed("entries", entry.id)
        await phone.notices.create(NOTICE)
        assert await at_desk.next() == Changed("notices", NOTICE.id)
        await phone.notices.forget(NOTICE.id)
        assert await at_desk.next() == Changed("notices", NOTICE.id)
        await desk.leave()
        with pytest.raises(StopAsyncIteration):
            await at_desk.next()
        await laptop.settle(entry.id)
        assert await at_phone.next() == Changed("entries", entry.id)
        await phone.notices.create(replace(NOTICE, id="llll2222", machine="laptop"))
        assert await at_laptop.next() == Changed("notices", "llll2222")


async def test_a_lost_connection_is_made_again(database: Database, tmp_path: Path) -> None:
    """With growing pauses while the database cannot be reached; then everything is to be read again."""
    clock = Clock()
    async with proxy(database.port) as between:
        store = machine(tmp_path, "desk", database.address(port=between.port), sleep=clock.sleep)
        other = machine(tmp_path, "laptop", database.address())
        async with joined(store), joined(other), listening(store) as ear:
            server, between.server = between.server, 1
            between.cut_all()
            hearing = asyncio.create_task(ear.next())
            while len(clock.slept) < 6:
                await asyncio.sleep(0.01)
            assert clock.slept[:6] == [1, 2, 4, 8, 15, 15]
            between.server = server
            assert await hearing == Missed()
            entry = await other.create(an_entry())
            assert await ear.next() == Changed("entries", entry.id)
            clock.slept.clear()
            between.cut_all()
            assert await ear.next() == Missed()
            assert clock.slept == [1]


async def test_everything_is_read_again_once_a_minute(database: Database, tmp_path: Path) -> None:
    """News may get lost; and a connection that died in silence is found out."""
    clock = Clock()
    async with proxy(database.port) as between:
        store = machine(tmp_path, "desk", database.address(port=between.port), monotonic=clock)
        async with joined(store), joined(machine(tmp_path, "laptop", database.address())) as other:
            async with listening(store) as ear:
                between.loses_news = True
                await other.create(an_entry())
                hearing = asyncio.create_task(ear.next())
                await asyncio.sleep(0.1)
                assert not hearing.done()
                clock.ahead_s += 61
                hearing.cancel()
            async with listening(store) as ear:
                hearing = asyncio.create_task(ear.next())
                await asyncio.sleep(0.1)
                clock.ahead_s += 61
                between.loses_news = False
                await other.create(an_entry("bbbb2222", code="x2"))
                assert await hearing == Changed("entries", "bbbb2222")
                assert await ear.next() == Missed()


async def test_a_word_that_is_not_understood_is_left_alone(database: Database, tmp_path: Path) -> None:
    """A later Hermes may tell of other things."""
    store = machine(tmp_path, "desk", database.address())
    async with joined(store), listening(store) as ear:
        channel = store._identity.channel("desk")
        for word in ("", "parties aaaa2222 x", "entries my own desk x"):
            database.ask("SELECT pg_notify(%s, %s)", channel, word)
        assert await ear.next() == Changed("entries", "my own desk")


async def test_a_pooler_that_lends_connections_for_one_transaction_is_refused(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it tells itself is not heard."""
    async with proxy(database.port) as between:
        between.loses_news = True
        store = machine(tmp_path, "desk", database.address(port=between.port))
        with pytest.raises(StoreError, match="pooler"):
            await store.join("desk", "1.0")
        await store.leave()


async def test_two_connections_that_are_one_are_a_pooler(database: Database, tmp_path: Path) -> None:
    """The numbers of their servers tell."""
    store = machine(tmp_path, "desk", database.address())
    await store.join("desk", "1.0")

    class Same:
        async def read(self, statement: str, values: dict[str, object]) -> list[tuple[object, ...]]:
            await store._connection.read(statement, values)
            [(pid,)] = database.ask(
                "SELECT pid FROM pg_stat_activity WHERE query = 'SELECT pg_backend_pid()' AND pid <> pg_backend_pid()"
            )
            return [(pid, "")]

    with pytest.raises(StoreError, match="pooler"):
        await pooler.check(database.address(), Same())  # type: ignore[arg-type]
    await store.leave()
