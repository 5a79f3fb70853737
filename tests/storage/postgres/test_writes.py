"""A write lands exactly once, or is said not to have landed; and never after another process has taken over."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from hermes.errors import Conflict, Deposed, InUse, Missing, NotSaved, StoreError, TooNew, Unreadable
from hermes.model.chat_memory import ChatMemory, Topic
from hermes.model.entry import Entry
from hermes.model.notice import Notice
from hermes.storage.postgres import connection as connection_module
from tests.harness.postgres import Database
from tests.listening import PATIENCE_S, until
from tests.storage.machines import BOT, Clock, joined, machine
from tests.storage.postgres.proxy import proxy
from tests.storage.store_process import an_entry, one_more

NOTICE = Notice("nnnn2222", "opencode", "ses_1", machine="desk")
A_CHANGE = b"SET code ="
SLOW_COMMITS = (
    """
    CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN PERFORM pg_advisory_xact_lock_shared(7); RETURN NULL; END'
    """,
    *(
        f"""
        CREATE CONSTRAINT TRIGGER slow AFTER INSERT OR UPDATE ON hermes.{table} DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION wait()
        """
        for table in ("entries", "records")
    ),
)
"""A commit waits while somebody else has this lock."""


@pytest.fixture
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement waits for a row until the test lets it go on."""
    settings, count = re.subn(r"(?<=_timeout', ')\d+", "0", connection_module._SETTINGS)
    assert count == 2
    monkeypatch.setattr(connection_module, "_SETTINGS", settings)
    monkeypatch.setattr(connection_module, "PATIENCE_S", PATIENCE_S)


@pytest.mark.usefixtures("_patient")
async def test_a_writer_that_waits_for_a_row_while_another_takes_over_changes_nothing(
    database: Database, tmp_path: Path
) -> None:
    """A takeover waits until the write is done, or the write finds that its lease was lost: never both."""
    store = machine(tmp_path, "desk", database.address())
    other = machine(tmp_path, "laptop", database.address())
    async with joined(store, phone=True), joined(other):
        entry = await store.create(an_entry())
        async with await psycopg.AsyncConnection.connect(**database.superuser()) as blocker:
            await blocker.execute("UPDATE hermes.entries SET phase = phase")
            database.ask("UPDATE hermes.leases SET until = '-infinity' WHERE name = 'phone'")
            writing = asyncio.create_task(store.change(entry.id, one_more, entry))
            await _waits(database, "SET code =")
            taking = asyncio.create_task(other.take_phone())
            await _waits(database, "INSERT INTO hermes.leases")
            assert not taking.done()
            await blocker.rollback()
        saved = await writing
        assert await taking
        with pytest.raises(Deposed, match="taken over"):
            await store.change(entry.id, one_more, saved)
        assert await other.get(entry.id) == saved


@pytest.mark.usefixtures("_patient")
async def test_a_writer_that_comes_while_a_takeover_is_saved_waits_for_it_and_changes_nothing(
    database: Database, tmp_path: Path
) -> None:
    """A subselect of the term would have read the lease as it was before."""
    store = machine(tmp_path, "desk", database.address())
    async with joined(store, phone=True):
        entry = await store.create(an_entry())
        async with await psycopg.AsyncConnection.connect(**database.superuser()) as taker:
            await taker.execute("UPDATE hermes.leases SET term = term + 1, holder = 'x' WHERE name = 'phone'")
            writing = asyncio.create_task(store.change(entry.id, one_more, entry))
            await _waits(database, "SET code =")
            await taker.commit()
        with pytest.raises(Deposed):
            await writing
        assert await store.get(entry.id) == entry


async def test_a_row_that_is_kept_locked_holds_up_no_other(database: Database, tmp_path: Path) -> None:
    """The change of another one is saved at once; its own is, as soon as it is free."""
    store = machine(tmp_path, "desk", database.address())
    async with joined(store, phone=True):
        locked, other = await store.create(an_entry("aaaa2222")), await store.create(an_entry("bbbb2222", code="b2"))
        for name in ("cccc2222", "dddd2222"):
            await store.create(an_entry(name, code=name[:2]))
            await store.settle(name)
        days = await store.days_done()
        async with await psycopg.AsyncConnection.connect(**database.superuser()) as blocker:
            await blocker.execute("SELECT FROM hermes.entries WHERE id IN ('aaaa2222', 'cccc2222') FOR UPDATE")
            began = time.monotonic()
            waiting = [store.change(locked.id, one_more, locked) for _ in range(10)]
            *failed, saved = await asyncio.gather(
                *waiting, store.change(other.id, one_more, other), return_exceptions=True
            )
            assert time.monotonic() - began < 3.0
            assert all(isinstance(one, InUse) for one in failed)
            assert saved == replace(one_more(other), revision=2)
            assert await store.forget_done(days) == 1
        assert (await store.change(locked.id, one_more, locked)).revision == 2
        assert await store.forget_done(days) == 1


async def test_a_commit_may_wait_for_those_of_others(database: Database, tmp_path: Path) -> None:
    """PostgreSQL commits them one by one, because they tell others: each stands in line, for long if a disk is slow."""
    store = machine(tmp_path, "desk", database.address())
    async with joined(store):
        entry = await store.create(an_entry())
        notice = await store.notices.create(NOTICE)
        for statement in SLOW_COMMITS:
            database.ask(statement)
        async with await psycopg.AsyncConnection.connect(**database.superuser(), autocommit=True) as before:
            await before.execute("SELECT pg_advisory_lock(7)")
            writing = asyncio.gather(
                store.change(entry.id, one_more, entry),
                store.notices.change(notice, lambda found: replace(found, heard_s=1.0)),
                store.create(an_entry("bbbb2222", code="b2")),
            )
            await _waits(database, "SET code =", longer_than_ms=3 * connection_module._LOCKED_MS)
            assert not writing.done()
        changed, noted, made = await writing
        assert (changed.revision, noted.revision, made.revision) == (2, 2, 1)


async def test_no_kind_of_write_lands_after_a_takeover(database: Database, tmp_path: Path) -> None:
    """Asks, records, the chat and the lock; what is read is still right."""
    store = machine(tmp_path, "desk", database.address())
    async with joined(store, phone=True):
        entry = await store.create(an_entry())
        notice = await store.notices.create(NOTICE)
        await store.lock_phone()
        database.ask("UPDATE hermes.leases SET holder = 'x' WHERE name = 'phone'")
        for work in (
            store.create(an_entry("bbbb2222", code="x2")),
            store.change(entry.id, one_more),
            store.keep(replace(entry, revision=7)),
            store.settle(entry.id),
            store.notices.create(replace(NOTICE, id="mmmm2222")),
            store.notices.change(notice, lambda found: replace(found, is_left=True)),
            store.notices.keep(replace(NOTICE, id="mmmm2222")),
            store.notices.forget(notice.id),
            store.save_chat(ChatMemory(BOT, offset=7)),
            store.unlock_phone(),
            store.forget_done(["2026-01-01"]),
        ):
            with pytest.raises(Deposed):
                await work
        assert await store.open() == [entry]
        assert await store.notices.all() == [notice]
        assert await store.load_chat(BOT) == ChatMemory(BOT)
        assert await store.is_phone_locked()


@pytest.mark.usefixtures("_patient")
async def test_what_two_machines_change_at_once_is_not_lost(database: Database, tmp_path: Path) -> None:
    """Each of them begins with the ask as it knows it."""
    one, two = (machine(tmp_path, name, database.address()) for name in ("desk", "laptop"))
    async with joined(one, phone=True), joined(two):
        known = await one.create(an_entry())
        await asyncio.gather(*(store.change(known.id, one_more, known) for store in (one, two) for _ in range(20)))
        assert (await one.get(known.id)).state.epoch == known.state.epoch + 40
        card = await one.notices.create(NOTICE)
        add = lambda found: replace(found, heard_s=found.heard_s + 1)  # noqa: E731
        await asyncio.gather(*(store.notices.change(card, add) for store in (one, two) for _ in range(20)))
        assert (await two.notices.get(card.id)).heard_s == 40.0


async def test_a_change_that_never_wins_ends(database: Database, tmp_path: Path) -> None:
    """If every write is lost on other ones, it is said at some time."""
    store = machine(tmp_path, "desk", database.address())
    async with joined(store):
        known = await store.create(an_entry())
        notice = await store.notices.create(NOTICE)

        def interfere(entry: Entry) -> Entry:
            database.ask("UPDATE hermes.entries SET revision = revision + 1")
            return one_more(entry)

        def interfere_too(found: Notice) -> Notice:
            database.ask("UPDATE hermes.records SET revision = revision + 1")
            return replace(found, heard_s=found.heard_s + 1)

        with pytest.raises(InUse, match="all the time"):  # the user of another machine may do it: others can be saved
            await store.change(known.id, interfere)
        with pytest.raises(InUse, match="all the time"):
            await store.notices.change(notice, interfere_too)


@pytest.mark.parametrize("moment", ["cut_before", "cut_after"])
async def test_a_change_whose_connection_breaks_is_made_exactly_once(
    database: Database, tmp_path: Path, moment: str
) -> None:
    """Whether the server had done it or not."""
    async with proxy(database.port) as between:
        store = machine(tmp_path, "desk", database.address(port=between.port))
        async with joined(store):
            entry = await store.create(an_entry())
            notice = await store.notices.create(NOTICE)
            setattr(between, moment, A_CHANGE)
            changed = await store.change(entry.id, one_more, entry)
            assert (changed.state.epoch, changed.revision) == (entry.state.epoch + 1, 2)
            assert await store.get(entry.id) == changed
            setattr(between, moment, b"UPDATE hermes.records")
            between.cuts = 1
            kept = await store.notices.change(notice, lambda found: replace(found, heard_s=found.heard_s + 1))
            assert (kept.heard_s, kept.revision) == (1.0, 2)
            assert await store.notices.get(notice.id) == kept
            assert between.cuts == 0


@pytest.mark.parametrize("moment", ["cut_before", "cut_after"])
async def test_an_ask_whose_connection_breaks_is_made_exactly_once(
    database: Database, tmp_path: Path, moment: str
) -> None:
    """Another one with its id is still a conflict. A closed one is closed once."""
    async with proxy(database.port) as between:
        store = machine(tmp_path, "desk", database.address(port=between.port))
        async with joined(store, phone=True):
            setattr(between, moment, b"INSERT INTO hermes.entries")
            entry = await store.create(an_entry())
            assert await store.open() == [entry]
            between.cuts = 1
            with pytest.raises(Conflict):
                await store.create(replace(entry, ask=replace(entry.ask, questions=())))
            setattr(between, moment, b"INSERT INTO hermes.records")
            between.cuts = 1
            notice = await store.notices.create(NOTICE)
            assert await store.notices.all() == [notice]
            setattr(between, moment, b"SET closed_s")
            between.cuts = 1
            await store.settle(entry.id)
            assert await store.newest_done(9) == [entry]
            await store.lock_phone()
            setattr(between, moment, b"DELETE FROM hermes.locks")
            between.cuts = 1
            assert await store.unlock_phone()
            assert not await store.is_phone_locked()
            setattr(between, moment, b"INSERT INTO hermes.chats")
            between.cuts = 1
            memory = ChatMemory(BOT, offset=7, topics=(Topic(-100, 5, "Fix login", entry.ask.source, "OpenCode"),))
            await store.save_chat(memory)
            assert await store.load_chat(BOT) == memory
            assert between.cuts == 0


async def test_an_ask_with_an_unknown_outcome_is_found_when_the_database_is_back(
    database: Database, tmp_path: Path
) -> None:
    """Also in its next version: whoever was told that it is not saved would make another one."""
    async with proxy(database.port) as between:
        store = machine(tmp_path, "desk", database.address(port=between.port))
        other = machine(tmp_path, "laptop", database.address())
        async with joined(store), joined(other, phone=True):
            between.cut_after, between.cuts = b"INSERT INTO hermes.entries", 3
            creating = asyncio.create_task(store.create(an_entry()))
            while not (found := await other.open()):
                await asyncio.sleep(0.01)
            changed = await other.change(found[0].id, one_more)
            assert await creating in {found[0], changed}
            assert between.cuts == 0
            assert await other.open() == [changed]


async def test_an_outcome_that_stays_unknown_is_looked_for_with_pauses(database: Database, tmp_path: Path) -> None:
    """A row that is too large for its line would be sent all the time."""
    clock = Clock()
    async with proxy(database.port) as between:
        store = machine(tmp_path, "desk", database.address(port=between.port), sleep=clock.sleep)
        async with joined(store):
            between.cut_before, between.cuts = b"INSERT INTO hermes.entries", 3
            entry = await store.create(an_entry())
            assert between.cuts == 0
            assert len(clock.slept) == 3
            assert await store.open() == [entry]


async def test_an_outcome_that_stays_unknown_is_said(database: Database, tmp_path: Path) -> None:
    """The database does not come back within the time of the call."""
    async with proxy(database.port) as between:
        store = machine(tmp_path, "desk", database.address(port=between.port))
        async with joined(store):
            entry = await store.create(an_entry())
            between.cut_before = b"hermes.entries"
            between.cuts = 9
            for work in (store.change(entry.id, one_more, entry), store.settle(entry.id, entry), store.keep(entry)):
                between.cuts = 9
                with pytest.raises(NotSaved, match="not known"):
                    await work
            between.cuts = 2
            with pytest.raises(StoreError, match="cannot be reached"):
                await store.get(entry.id)
            between.cut_before, between.cuts = b"UPDATE hermes.leases", 2
            with pytest.raises(NotSaved, match="not known"):
                await store.renew(())
            between.cuts = 0


async def test_what_cannot_be_read_is_left_alone_and_said_once(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It delays no other ask, and is not overwritten."""
    store = machine(tmp_path, "desk", database.address())
    async with joined(store, phone=True):
        good, bad, newer, other = [
            await store.create(an_entry(f"{letter * 4}2222", code=f"{letter}2")) for letter in "abcd"
        ]
        await store.notices.create(NOTICE)
        database.ask("""UPDATE hermes.entries SET body = '{"v":2,"entry":{}}', revision = 9 WHERE id = %s""", bad.id)
        database.ask("""UPDATE hermes.entries SET body = '{"v":99}', revision = 9 WHERE id = %s""", newer.id)
        database.ask("UPDATE hermes.entries SET body = '[]' WHERE id = %s", other.id)
        database.ask("""UPDATE hermes.records SET body = '{"v":1}'""")
        for _ in range(2):
            assert await store.open() == [good]
            assert await store.notices.all() == []
            assert store.has_unread
        assert caplog.text.count("left alone") == 4
        assert await store.notices.survey() == []
        survey = await store.survey()
        assert {path.name for path, _ in survey.damaged} == {bad.id, other.id}
        assert [path.name for path in survey.too_new] == [newer.id]
        with pytest.raises(Unreadable):
            await store.change(bad.id, one_more, bad)
        with pytest.raises(TooNew, match="upgrade"):
            await store.change(newer.id, one_more, newer)
        database.ask("UPDATE hermes.entries SET id = 'eeee2222' WHERE id = %s", good.id)
        with pytest.raises(Unreadable, match="another entry"):
            await store.get("eeee2222")
        database.ask("UPDATE hermes.entries SET closed_s = 1")
        assert await store.newest_done(9) == []


async def test_thousands_of_asks_are_read_in_portions(database: Database, tmp_path: Path) -> None:
    """Each once, the oldest first."""
    store = machine(tmp_path, "desk", database.address())
    async with joined(store, phone=True):
        await store.create(an_entry())
        database.ask("""
            INSERT INTO hermes.entries (bot, id, machine, owner, agent, wait_id, code, phase, revision, asked_s, body)
            SELECT bot, 'copy' || n, machine, owner, agent, '', '', phase, 1, asked_s, replace(replace(
                body::text, '"id":"aaaa2222"', '"id":"copy' || n || '"'), '"asked_s":1000.0', '"asked_s":' || 3000 - n
            )::json FROM hermes.entries, generate_series(1000, 1999) AS n
        """)
        found = await store.open()
        assert [entry.id for entry in found] == ["aaaa2222", *(f"copy{n}" for n in range(1999, 999, -1))]
        assert await store.revisions() == {entry.id: entry.revision for entry in found}


async def test_an_ask_that_the_database_has_lost_is_written_again(database: Database, tmp_path: Path) -> None:
    """After a restore from a backup, say; a closed one stays closed, and a later version stays."""
    store = machine(tmp_path, "desk", database.address())
    async with joined(store):
        entry = await store.change((await store.create(an_entry())).id, one_more)
        database.ask("DELETE FROM hermes.entries")
        assert await store.keep(entry) == entry
        assert await store.get(entry.id) == entry
        ahead = replace(one_more(entry), revision=5)
        assert await store.keep(ahead) == ahead
        assert await store.keep(entry) == ahead
        await store.settle(entry.id)
        with pytest.raises(Missing):
            await store.keep(ahead)
        notice = await store.notices.create(NOTICE)
        await store.notices.forget(notice.id)
        assert await store.notices.keep(notice) == notice
        assert await store.notices.keep(replace(notice, heard_s=9.0)) == notice


async def test_two_open_asks_never_have_one_code(database: Database, tmp_path: Path) -> None:
    """The database itself refuses it; asks without a code are many."""
    store = machine(tmp_path, "desk", database.address())
    async with joined(store):
        for letter in "ab":
            await store.create(an_entry(f"{letter * 4}2222", code=""))
        await store.create(an_entry("cccc2222", code="k7"))
        with pytest.raises(Conflict):
            await store.change("aaaa2222", lambda entry: replace(entry, code="k7"))


async def test_an_entry_does_not_become_another(database: Database, tmp_path: Path) -> None:
    """Nor does an id from the phone reach the database that cannot be one."""
    store = machine(tmp_path, "desk", database.address())
    async with joined(store):
        entry = await store.create(an_entry())
        with pytest.raises(StoreError, match="cannot become"):
            await store.change(entry.id, lambda found: replace(found, id="bbbb2222"))
        for strange in ("x" * 256, "\0", "\ud800"):
            for work in (store.get(strange), store.done(strange), store.notices.get(strange)):
                with pytest.raises(Missing):
                    await work
            with pytest.raises(StoreError):
                await store.notices.forget(strange)
            with pytest.raises(StoreError):
                await store.notices.create(replace(NOTICE, id=strange))


async def test_a_damaged_memory_of_the_chat_is_put_into_quarantine(database: Database, tmp_path: Path) -> None:
    """One of a newer Hermes is not touched; that of another bot is none."""
    store = machine(tmp_path, "desk", database.address())
    async with joined(store, phone=True):
        await store.save_chat(ChatMemory(BOT, offset=7))
        database.ask("""UPDATE hermes.chats SET body = '{"v":1,"chat":{"bot_id":43}}'""")
        assert await store.load_chat(BOT) == ChatMemory(BOT)
        database.ask("""UPDATE hermes.chats SET body = '{"v":1,"chat":{}}'""")
        assert await store.load_chat(BOT) == ChatMemory(BOT)
        [kept] = store.home.quarantined()
        assert kept.read_bytes() == b'{"v":1,"chat":{}}'
        database.ask("""UPDATE hermes.chats SET body = '{"v":99}'""")
        with pytest.raises(TooNew, match="upgrade"):
            await store.load_chat(BOT)


async def test_a_record_moves_to_the_machine_of_its_session(database: Database, tmp_path: Path) -> None:
    """The row says which machine it is for."""
    store = machine(tmp_path, "desk", database.address())
    async with joined(store):
        notice = await store.notices.create(replace(NOTICE, machine=""))
        await store.notices.change(notice, lambda found: replace(found, machine="desk"))
        assert database.ask("SELECT machine FROM hermes.records") == [("desk",)]


async def _waits(database: Database, statement: str, *, longer_than_ms: int = 0) -> None:
    """Wait until such a statement waits for a lock in the database, and has run for so long."""
    waiting = """
        SELECT pid FROM pg_stat_activity
        WHERE wait_event_type = 'Lock' AND strpos(query, %s) > 0
            AND clock_timestamp() - query_start > %s * interval '1 ms'
    """
    await until(lambda: database.ask(waiting, statement, longer_than_ms), f"{statement!r} behind a lock")
