"""Exactly one process is the phone side, and each machine's id is used by one process."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hermes.errors import Deposed, Held, StoreError
from hermes.model.entry import Entry
from hermes.model.machine import Machine
from hermes.storage.postgres.clock import SharedClock, awake_or_asleep
from hermes.storage.store import RENEW_S
from tests.harness.postgres import Database
from tests.storage.machines import Clock, joined, machine
from tests.storage.store_process import an_entry, one_more


async def test_one_machine_is_the_phone_side_and_leaves_it_to_another(database: Database, tmp_path: Path) -> None:
    """At once, if it leaves in order."""
    first, second = (machine(tmp_path, name, database.address()) for name in ("desk", "laptop"))
    async with joined(second):
        async with joined(first, phone=True):
            assert not await second.take_phone()
            assert (first.is_phone(), second.is_phone()) == (True, False)
            await first.renew((("opencode", True), ("\ud800", False)))
            [desk, laptop] = await second.machines()
            assert desk == Machine(
                "desk", "desk", "1.0", desk.silent_s, is_phone=True, servers=(("opencode", True), ("\ud800", False))
            )
            assert (laptop.is_phone, laptop.silent_s < 30) == (False, True)
        assert await second.take_phone()
        assert second.is_phone()


async def test_a_phone_side_that_went_silent_is_followed_by_another(database: Database, tmp_path: Path) -> None:
    """Not before its lease has run out; then its renewal says so, and its agent side goes on after `take_phone`."""
    first, second = (machine(tmp_path, name, database.address()) for name in ("desk", "laptop"))
    async with joined(first, phone=True), joined(second):
        entry = await first.create(an_entry())
        assert not await second.take_phone()
        database.ask("UPDATE hermes.leases SET until = clock_timestamp() - interval '1 s' WHERE name = 'phone'")
        assert await second.take_phone()
        with pytest.raises(Deposed, match="another machine is the phone side"):
            await first.renew(())
        assert not first.is_phone()
        with pytest.raises(Deposed, match="taken over"):
            await first.change(entry.id, one_more)
        await first.renew(())
        assert not await first.take_phone()
        assert (await first.change(entry.id, one_more)).revision == 2
        assert [each.is_phone for each in await first.machines()] == [False, True]


async def test_the_phone_side_ends_by_its_own_clock(database: Database, tmp_path: Path) -> None:
    """Two seconds before another may follow, from the beginning of its last renewal; then it stays ended."""
    clock = Clock()
    store = machine(tmp_path, "desk", database.address(), monotonic=clock, sleep=clock.sleep)
    async with joined(store, phone=True):
        clock.ahead_s += 9
        assert store.is_phone()
        await store.renew(())
        clock.ahead_s += 9
        assert store.is_phone()
        clock.ahead_s += 1.5
        assert not store.is_phone()
        await store.renew(())
        assert not store.is_phone()
        assert await store.take_phone()
        assert store.is_phone()


async def test_a_renewal_that_takes_too_long_does_not_bring_the_phone_side_back(
    database: Database, tmp_path: Path
) -> None:
    """Somebody may have asked meanwhile, and have heard that it has ended."""
    clock = Clock()
    store = machine(tmp_path, "desk", database.address(), monotonic=clock)
    async with joined(store, phone=True):
        renew = asyncio.create_task(store.renew(()))
        await asyncio.sleep(0)
        clock.ahead_s += 11
        await renew
        assert not store.is_phone()
        clock.ahead_s -= 11
        assert not store.is_phone()


async def test_a_renewal_counts_from_its_beginning(database: Database, tmp_path: Path) -> None:
    """The database may have done it at once, and its answer may have taken long."""
    clock = Clock()
    store = machine(tmp_path, "desk", database.address(), monotonic=clock)
    async with joined(store, phone=True):
        renew = asyncio.create_task(store.renew(()))
        await asyncio.sleep(0)
        clock.ahead_s += 6
        await renew
        assert store.is_phone()
        clock.ahead_s += 5
        assert not store.is_phone()


async def test_a_copied_disk_is_found_out(database: Database, tmp_path: Path) -> None:
    """The second machine with the id waits for the lease of a process that may have died, and says what is wrong."""
    clock = Clock()
    original = machine(tmp_path / "one", "desk", database.address())
    copy = machine(tmp_path / "two", "desk", database.address(), monotonic=clock, sleep=clock.sleep)
    async with joined(original):
        with pytest.raises(Held, match="copied disk"):
            await copy.join("desk", "1.0")
        assert 12 <= sum(clock.slept) <= 14
        await copy.leave()
        await original.renew(())


async def test_a_process_that_died_is_followed_on_its_machine(database: Database, tmp_path: Path) -> None:
    """When its lease has run out; if it was only paused, it changes nothing any more."""
    paused = machine(tmp_path / "one", "desk", database.address())
    async with joined(paused):
        entry = await paused.create(an_entry())
        database.ask("UPDATE hermes.leases SET until = clock_timestamp() + interval '1 s'")
        async with joined(machine(tmp_path / "two", "desk", database.address())) as other:
            with pytest.raises(Deposed, match="copied disk"):
                await paused.change(entry.id, one_more)
            with pytest.raises(Deposed, match="copied disk"):
                await paused.renew(())
            assert await other.open() == [entry]


async def test_the_time_is_that_of_the_database(database: Database, tmp_path: Path) -> None:
    """However wrong the clock of the machine is; before the first look it is all that there is."""
    store = machine(tmp_path, "desk", database.address())
    store.home.now = lambda: 7.0
    store._clock._now = lambda: 7.0
    assert store.now() == 7.0
    async with joined(store):
        [(epoch_s,)] = database.ask("SELECT extract(epoch FROM clock_timestamp())::float8")
        assert isinstance(epoch_s, float)
        assert abs(store.now() - epoch_s) < 1
        entry = await store.create(an_entry())
        await store.settle(entry.id)
        [at_s] = (await store.days_done()).values()
        assert abs(at_s - epoch_s) < 5


def test_a_reading_of_the_clock_counts_from_the_middle_of_the_question() -> None:
    """The answer took as long as the question."""
    now_s = 10.0
    clock = SharedClock(lambda: 0.0, lambda: now_s)
    clock.read(1000.0, 8.0)
    assert clock() == 1001.0
    assert awake_or_asleep() > 0
    assert RENEW_S * 2 < 12 - 2


async def test_only_who_has_joined_becomes_the_phone_side(database: Database, tmp_path: Path) -> None:
    """Others may look, and the phone's user may write: `hermes unlock` does."""
    store = machine(tmp_path, "desk", database.address())
    async with joined(machine(tmp_path / "two", "laptop", database.address()), phone=True) as phone:
        with pytest.raises(StoreError, match="joined"):
            await store.take_phone()
        entries: list[Entry] = [await phone.create(an_entry())]
        await phone.lock_phone()
        assert list((await store.survey()).entries) == entries
        assert await store.unlock_phone()
        assert not await store.unlock_phone()
        assert not await phone.is_phone_locked()
    await store.leave()


async def test_the_phone_side_opens_the_asks_of_all_machines(database: Database, tmp_path: Path) -> None:
    """The others those of their own."""
    desk, laptop = (machine(tmp_path, name, database.address()) for name in ("desk", "laptop"))
    async with joined(desk), joined(laptop, phone=True):
        entry = await desk.create(an_entry())
        assert await desk.open() == await laptop.open() == [entry]
        await laptop.leave()
        assert await laptop.open() == []
        with pytest.raises(Deposed):
            await laptop.settle(entry.id)


async def test_leaving_a_database_that_cannot_be_reached_is_no_error(database: Database, tmp_path: Path) -> None:
    """Its lease runs out by itself."""
    store = machine(tmp_path, "desk", database.address())
    await store.join("desk", "1.0")
    database.ask("ALTER TABLE hermes.leases RENAME TO lost")
    await store.leave()
