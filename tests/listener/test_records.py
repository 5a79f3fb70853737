"""Records in memory, as the store has them on disk."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.errors import InUse, NotSaved
from hermes.listener.records import Records
from hermes.listener.wakes import Wake, Wakes
from hermes.model.notice import Notice
from tests.listener.gates import fails_once
from tests.stores import a_store

ONE = Notice("abcdefga", "opencode", "ses_a", heard_s=3.0)
TWO = Notice("abcdefgb", "opencode", "ses_b", heard_s=1.0)
THREE = Notice("abcdefgc", "opencode", "ses_c", heard_s=2.0)


class Two(Records[Notice]):
    """Records of which at most two are kept."""

    of_phone = ("notice", "phone")
    most = 2

    def _age_s(self, record: Notice) -> float:
        """The one that was heard of first goes first."""
        return record.heard_s


class House:
    """A store, and the records in it, of which at most two are kept."""

    def __init__(self, root: Path) -> None:
        self.store = a_store(root)
        self.wakes = Wakes()
        self.records = Two(self.store.notices, self.wakes, now=self.store.now)

    async def keep(self, notice: Notice) -> Notice:
        """Make a record."""
        return await self.records.make(
            lambda one: one.id == notice.id, lambda: notice, lambda one: replace(one, is_muted=True)
        )

    def woken(self) -> list[Wake]:
        """The wakes since the last time."""
        unread, self.wakes._unread = list(self.wakes._unread), {}
        return unread


@pytest.fixture
async def house(tmp_path: Path) -> House:
    """A store that is open."""
    made = House(tmp_path / "store")
    await made.store.open()
    await made.records.open()
    return made


async def test_a_change_is_on_disk_before_its_workers_hear_of_it(house: House) -> None:
    """And a restart wakes them again."""
    saved = await house.keep(ONE)
    assert house.records.get(ONE.id) == saved == replace(ONE, is_muted=True, revision=1)
    assert await house.store.notices.all() == [saved]
    both = [Wake(ONE.id, "notice"), Wake(ONE.id, "phone")]
    assert house.woken() == both
    again = House(house.store.home.root)
    await again.records.open()
    assert (again.records.all(), again.woken()) == ([saved], both)


async def test_make_finds_or_makes(house: House) -> None:
    """What it finds is changed, and nothing is written if nothing changes."""
    saved = await house.keep(ONE)
    house.woken()
    assert await house.keep(ONE) == saved
    assert house.woken() == []
    assert await house.records.make(lambda _: True, lambda: TWO, lambda one: replace(one, heard_s=9.0)) == replace(
        saved, heard_s=9.0, revision=2
    )
    assert len(house.records.all()) == 1


async def test_two_that_make_the_same_at_the_same_time_make_one(house: House) -> None:
    """Telegram sends a message twice."""
    first, second, _ = await asyncio.gather(house.keep(ONE), house.keep(ONE), house.records.at_rest())
    assert first == second
    assert [one.revision for one in house.records.all()] == [1]


async def test_a_record_that_is_unknown_is_not_changed(house: House) -> None:
    """It may have been forgotten meanwhile."""
    assert await house.records.change(ONE.id, lambda one: replace(one, heard_s=9.0)) is None
    assert house.records.get(ONE.id) is None


async def test_the_oldest_goes_first_if_there_are_too_many(house: House) -> None:
    """From the disk, too."""
    for notice in (ONE, TWO, THREE):
        await house.keep(notice)
    assert {one.id for one in house.records.all()} == {ONE.id, THREE.id}
    assert {one.id for one in await house.store.notices.all()} == {ONE.id, THREE.id}


async def test_no_machine_takes_the_room_of_another(house: House) -> None:
    """The user of its database writes the times in its records as it likes."""
    await house.keep(replace(ONE, machine="laptop"))
    for number in range(4):
        await house.keep(Notice(f"abcdefg{number}", "opencode", f"ses_{number}", heard_s=9e10, machine="ci"))
    assert [one.machine for one in house.records.all()] == ["laptop", "ci", "ci"]


async def test_what_is_old_is_forgotten(house: House) -> None:
    """And nothing else."""
    for notice in (ONE, TWO):
        await house.keep(notice)
    await house.records.forget(lambda one: one.heard_s < 2.0)
    assert [one.id for one in house.records.all()] == [ONE.id]
    assert [one.id for one in await house.store.notices.all()] == [ONE.id]


async def test_a_change_that_is_not_saved_is_not_seen(house: House) -> None:
    """Nor does anybody wake. A store that is laid out again has what memory has."""
    saved = await house.keep(ONE)
    house.woken()
    house.store.home.root.rename(house.store.home.root.with_name("elsewhere"))
    with pytest.raises(NotSaved):
        await house.records.change(ONE.id, lambda one: replace(one, heard_s=9.0))
    with pytest.raises(NotSaved):
        await house.keep(TWO)
    assert (house.records.all(), house.woken()) == ([saved], [])
    await house.store.open()
    await house.records.lay_out_again()
    assert await house.store.notices.all() == house.records.all() == [saved]


async def test_a_record_that_is_locked_keeps_no_other_from_being_saved(house: House) -> None:
    """It is removed later: another process keeps it locked now."""
    for notice in (ONE, TWO):
        await house.keep(notice)
    fails_once(house.store.notices, "forget", InUse("it is locked"))
    await house.keep(THREE)
    assert len(house.records.all()) == 3
    fails_once(house.store.notices, "forget", InUse("it is locked"))
    await house.records.forget(lambda one: one.id != THREE.id)
    assert len(house.records.all()) == 2
    await house.records.forget(lambda one: one.id != THREE.id)
    assert [one.id for one in house.records.all()] == [THREE.id]
