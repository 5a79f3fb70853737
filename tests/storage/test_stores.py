"""What each store promises, of files or of a database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.errors import Conflict, Missing, NoRoom, StoreError, Unreadable
from hermes.hook import spool
from hermes.model.answer import User
from hermes.model.chat_memory import ChatMemory
from hermes.model.entry import Entry
from hermes.model.notice import Notice
from hermes.model.prompt import Prompt, PromptAbilities, Target
from hermes.model.state import Part
from hermes.storage.postgres.store import PostgresStore
from hermes.storage.store import Store
from tests.harness.postgres import Database
from tests.storage.machines import BOT, joined, machine
from tests.storage.store_process import an_entry, one_more
from tests.storage.stores import DAY_S, InFiles, InPostgres, Kept

NO_IDS = ("zzzz2222", "", "../telegram", "a/b", "a\0b", "\ud800", "x" * 300)
"""Ids come back from the phone, so they can be anything; none leads out of the folder."""
NOTICE = Notice("nnnn2222", "opencode", "ses_1", machine="desk")


@pytest.fixture(params=["files", pytest.param("postgres", marks=pytest.mark.database)])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Kept:
    """Where the store keeps its things."""
    root = tmp_path / "store"
    if request.param == "files":
        return InFiles(root)
    return InPostgres(root, request.getfixturevalue("database"))


@pytest.fixture
async def store(kept: Kept) -> AsyncIterator[Store]:
    """The store of the one machine that there is, which is the phone side."""
    made = kept.make()
    await made.join("desk", "1.0")
    assert await made.take_phone()
    assert await made.open() == []
    yield made
    await made.leave()


async def test_an_ask_lives_and_is_closed(store: Store) -> None:
    """Each step is there for whoever reads next."""
    entry = await store.create(replace(an_entry(), revision=9))
    assert entry == replace(an_entry(), revision=1)
    assert await store.get(entry.id) == entry
    entry = await store.change(entry.id, one_more)
    assert entry == replace(one_more(an_entry()), revision=2)
    entry = await store.change(entry.id, one_more, entry)
    assert entry.revision == 3
    assert await store.open() == [entry] == list((await store.survey()).entries)
    assert await store.revisions() == {entry.id: entry.revision}
    await store.settle(entry.id, entry)
    assert await store.open() == []
    assert await store.done(entry.id) == entry
    assert await store.newest_done(3) == [entry] == list((await store.survey_done(store.now() - 60)).entries)
    assert (await store.survey_done(store.now() + 60)).entries == ()


async def test_an_ask_that_is_not_open_is_missing(store: Store) -> None:
    """Closed, or never there; also with an id that cannot be one."""
    entry = await store.create(an_entry())
    await store.save_chat(ChatMemory(BOT))
    with pytest.raises(Missing):
        await store.done(entry.id)
    await store.settle(entry.id)
    assert await store.done(entry.id) == entry
    for gone in (entry.id, *NO_IDS):
        for work in (store.get(gone), store.change(gone, one_more), store.settle(gone)):
            with pytest.raises(Missing):
                await work
    with pytest.raises(Missing):
        await store.keep(entry)
    for gone in NO_IDS:
        with pytest.raises(Missing):
            await store.done(gone)


async def test_an_ask_is_not_made_twice(store: Store) -> None:
    """Whoever is second is told."""
    entry = await store.create(an_entry())
    with pytest.raises(Conflict, match=entry.id):
        await store.create(an_entry(asked_s=2.0))
    assert await store.open() == [entry]


async def test_a_change_that_changes_nothing_writes_nothing(store: Store) -> None:
    """Nor does one that fails, whose error reaches the caller; and an ask stays the same ask."""
    entry = await store.create(an_entry())
    assert await store.change(entry.id, lambda found: replace(found, revision=9)) == entry

    def refuse(_: Entry) -> Entry:
        raise LookupError

    with pytest.raises(LookupError):
        await store.change(entry.id, refuse)
    with pytest.raises(StoreError, match="cannot become"):
        await store.change(entry.id, lambda found: replace(found, id="bbbb2222"))
    assert await store.get(entry.id) == entry
    assert await store.open() == [entry]


async def test_the_revision_is_not_the_callers_to_set(store: Store) -> None:
    """A function that resets it resets nothing."""
    entry = await store.change((await store.create(an_entry())).id, one_more)
    assert (await store.change(entry.id, lambda found: replace(one_more(found), revision=0))).revision == 3


async def test_changes_from_an_earlier_version_are_made_on_the_newest(store: Store) -> None:
    """None of those that are made at once is lost."""
    entry = await store.create(an_entry())
    await asyncio.gather(*(store.change(entry.id, one_more, entry) for _ in range(10)))
    newest = await store.get(entry.id)
    assert (newest.state.epoch, newest.revision) == (entry.state.epoch + 10, 11)


async def test_asks_come_oldest_first(store: Store) -> None:
    """By the time at which they were asked."""
    for name, asked_s in (("a", 3.0), ("b", 1.0), ("c", 2.0)):
        await store.create(an_entry(name * 8, asked_s=asked_s, code=f"{name}2"))
    assert [entry.id[0] for entry in await store.open()] == ["b", "c", "a"]


async def test_ids_and_codes_are_new(store: Store) -> None:
    """For open and for closed asks."""
    entry = await store.create(replace(an_entry(await store.new_id()), code=await store.new_code(())))
    await store.settle(entry.id)
    for _ in range(20):
        assert await store.new_id() != entry.id
        assert await store.new_code([]) != entry.code


async def test_an_ask_that_the_store_has_lost_is_kept(store: Store, kept: Kept) -> None:
    """It is written from memory; what the store knows better stays."""
    entry = await store.change((await store.create(an_entry())).id, one_more)
    assert await store.keep(entry) == entry
    earlier = replace(an_entry(), revision=1)
    assert await store.keep(earlier) == entry
    other = replace(an_entry("bbbb2222", code="x2"), revision=4)
    assert await store.keep(other) == other
    assert await store.get(other.id) == other


async def test_an_ask_that_was_moved_away_is_not_there(store: Store) -> None:
    """It can come back as it is elsewhere by then; one that is closed stays."""
    entry = await store.create(an_entry())
    for _ in range(2):
        await store.forget(entry.id)
    assert await store.open() == []
    with pytest.raises(Missing):
        await store.get(entry.id)
    later = replace(one_more(entry), revision=7)
    assert await store.keep(later) == later
    await store.settle(entry.id)
    await store.forget(entry.id)
    assert await store.done(entry.id) == later


async def test_a_damaged_ask_delays_no_other(store: Store, kept: Kept) -> None:
    """It is left out, and can be written again by one who knows it."""
    good, bad = [await store.create(an_entry(name * 8, code=f"{name}2")) for name in "ab"]
    kept.damage(bad.id)
    with pytest.raises(Unreadable):
        await store.get(bad.id)
    assert await store.open() == [good]
    assert await store.change(bad.id, one_more, bad) == replace(one_more(bad), revision=2)


async def test_a_closed_ask_is_known_by_its_wait_id(store: Store) -> None:
    """A hook that asks again is told so."""
    entry = await store.create(an_entry())
    wait_id = spool.wait_id("opencode", "desk", "que_1")
    assert await store.done_by(wait_id) is None
    await store.settle(entry.id)
    assert await store.done_by(wait_id) == "opencode"
    assert await store.done_by("0" * 16) is None


async def test_closed_asks_are_forgotten_by_day(store: Store, kept: Kept) -> None:
    """Those of other days stay."""
    ids = []
    for name in "abc":
        ids.append((await store.create(an_entry(name * 8, code=f"{name}2"))).id)
        await store.settle(ids[-1])
        kept.wait(2)
    days = await store.days_done()
    assert len(days) == 3
    assert all(store.now() - at_s < 7 * DAY_S for at_s in days.values())
    assert [entry.id for entry in await store.newest_done(2)] == ids[:0:-1]
    assert await store.forget_done([min(days)]) == 1
    assert [entry.id for entry in await store.newest_done(9)] == ids[:0:-1]
    assert await store.forget_done([min(days)]) == 0


async def test_records_live_and_are_forgotten(store: Store) -> None:
    """A change is made on the newest version."""
    notice = await store.notices.create(NOTICE)
    assert notice == replace(NOTICE, revision=1)
    with pytest.raises(Conflict):
        await store.notices.create(NOTICE)
    later = await store.notices.change(notice, lambda found: replace(found, heard_s=found.heard_s + 1))
    assert later == replace(NOTICE, heard_s=1.0, revision=2)
    assert await store.notices.change(later, lambda found: found) == later
    assert await store.notices.get(notice.id) == later
    assert await store.notices.all() == await store.notices.survey() == [later]
    assert await store.notices.keep(later) == later
    assert await store.notices.keep(notice) == later
    later = replace(later, heard_s=2.0, revision=5)
    assert await store.notices.keep(later) == await store.notices.get(notice.id) == later
    for _ in range(2):
        await store.notices.forget(notice.id)
    with pytest.raises(Missing):
        await store.notices.get(notice.id)
    assert await store.notices.keep(later) == later


async def test_a_record_that_another_machine_forgot_is_gone(database: Database, tmp_path: Path) -> None:
    """Only a store of files, whose one process forgets records itself, takes it for lost and writes it again."""
    store = machine(tmp_path, "desk", database.address())
    async with joined(store):
        notice = await store.notices.create(NOTICE)
        await store.notices.forget(notice.id)
        with pytest.raises(Missing):
            await store.notices.change(notice, lambda found: replace(found, heard_s=9.0))


async def test_records_of_each_kind_are_apart(store: Store) -> None:
    """A prompt that gets its session is for the machine of that."""
    target = Target(an_entry().ask.source, "OpenCode", PromptAbilities())
    prompt = await store.prompts.create(Prompt("pppp2222", User(7, "Ann"), 7, (Part(1, "Go"),), 1.0))
    assert prompt.machine == ""
    moved = await store.prompts.change(prompt, lambda found: replace(found, target=target))
    assert moved.machine == "desk"
    assert await store.prompts.all() == [moved]
    assert await store.cards.all() == []
    assert await store.notices.all() == []


async def test_files_live_until_they_are_removed(store: Store, kept: Kept) -> None:
    """Over a restart, and to the byte; one that is written twice is one file, and one may be empty."""
    for prompt_id in ("pppp2222", "pppp3333"):
        await store.prompts.create(Prompt(prompt_id, User(7, "Ann"), 7, (Part(1, "Go"),), 1.0))
    assert await store.files.prompt_ids() == set()
    every_byte = bytes(range(256))
    for prompt_id, message_id, data in (
        ("pppp2222", 7, b"one"),
        ("pppp2222", 7, b"a"),
        ("pppp2222", 8, b""),
        ("pppp3333", 7, every_byte),
    ):
        await store.files.write(prompt_id, message_id, data)
    other = kept.make()
    assert await other.files.read("pppp2222", 7) == b"a"
    assert await other.files.read("pppp2222", 8) == b""
    assert await other.files.read("pppp3333", 7) == every_byte
    assert await other.files.prompt_ids() == {"pppp2222", "pppp3333"}
    await other.leave()
    for _ in range(2):
        await store.files.remove("pppp2222")
    assert await store.files.prompt_ids() == {"pppp3333"}
    with pytest.raises(Missing):
        await store.files.read("pppp2222", 7)
    with pytest.raises(Missing):
        await store.files.read("pppp3333", 8)


async def test_files_take_so_much_room_at_most(store: Store) -> None:
    """All together; the same file again is not counted twice. A file without room changes nothing."""
    store.files._most_bytes = 10  # type: ignore[attr-defined]
    await store.prompts.create(Prompt("pppp2222", User(7, "Ann"), 7, (Part(1, "Go"),), 1.0))
    await store.files.write("pppp2222", 7, b"12345678")
    await store.files.write("pppp2222", 7, b"1234567890")
    for message_id, data in ((8, b"1"), (7, b"12345678901")):
        with pytest.raises(NoRoom):
            await store.files.write("pppp2222", message_id, data)
    assert await store.files.read("pppp2222", 7) == b"1234567890"
    await store.files.remove("pppp2222")
    await store.files.write("pppp2222", 8, b"1234567890")


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".", "a.b", "a\0"])
async def test_an_id_that_is_none_names_no_file(store: Store, name: str) -> None:
    """A damaged record must not lead to other files."""
    for work in (store.files.write(name, 7, b"one"), store.files.read(name, 7)):
        with pytest.raises(StoreError, match="is not one that Hermes makes"):
            await work


async def test_the_chat_is_remembered_for_each_bot(store: Store, kept: Kept) -> None:
    """And the lock, over a restart."""
    assert await store.load_chat(BOT) == ChatMemory(BOT)
    memory = ChatMemory(BOT, offset=7, trouble="\ud800", is_away=True)
    await store.save_chat(memory)
    await store.lock_phone()
    other = kept.make()
    assert await other.load_chat(BOT) == memory
    assert await other.load_chat(43) == ChatMemory(43, takes_over=not other.is_shared)
    assert await other.is_phone_locked()
    assert await other.unlock_phone()
    assert not await store.is_phone_locked()
    assert not await store.unlock_phone()
    await other.leave()


async def test_one_machine_is_there(store: Store) -> None:
    """It is the phone side, and says so."""
    assert store.is_phone()
    assert store.is_shared is isinstance(store, PostgresStore)
    await store.renew((("opencode", True),))
    [machine] = await store.machines()
    assert machine.is_phone
    assert machine.silent_s < 30
