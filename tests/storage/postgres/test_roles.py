"""The user of an agent-only machine sees and changes what is its own, and nothing of the chat: the database says so."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from hermes.errors import ConfigError, Conflict, Deposed, Missing, NotSaved, StoreError, Unreadable
from hermes.hook import spool
from hermes.model.chat_memory import ChatMemory
from hermes.model.entry import Phone
from hermes.model.notice import Notice, Turn
from hermes.sandbox.postgres import programs
from hermes.storage.postgres import migrations, roles
from hermes.storage.postgres.connection import Connection
from hermes.storage.postgres.store import PostgresStore
from hermes.storage.store import Changed, Missed
from tests.harness.postgres import PASSWORD, Database
from tests.storage.machines import BOT, SECRET, agent, asked_at, joined, machine
from tests.storage.store_process import one_more

NOTICE = Notice("nnnn2222", "opencode", "ses_1", machine="ci")

_LEASE = "INSERT INTO hermes.leases (bot, name, machine, holder, term, until)"
_ENTRY = "(bot, id, machine, agent, wait_id, code, phase, revision, asked_s, body"
REFUSALS = (
    psycopg.errors.InsufficientPrivilege,
    psycopg.errors.UniqueViolation,
    psycopg.errors.CheckViolation,
)
_RECORD = "INSERT INTO hermes.records (bot, kind, id, machine, revision, body)"
REFUSED = (
    "SELECT phone FROM hermes.entries",
    "SELECT * FROM hermes.chats",
    """UPDATE hermes.entries SET phone = '{"chat_id":1}'""",
    """UPDATE hermes.records SET phone = '{"chat_id":1}'""",
    """INSERT INTO hermes.records (bot, kind, id, machine, revision, body, phone)
    VALUES (42, 'cards', 'x', 'ci', 1, '{}', '{}')""",
    "UPDATE hermes.entries SET owner = 'hermes'",
    "DELETE FROM hermes.entries",
    "DELETE FROM hermes.records",
    f"INSERT INTO hermes.entries {_ENTRY}, owner) VALUES (42, 'x', '', '', '', '', '', 1, 1, '{{}}', 'hermes')",
    f"INSERT INTO hermes.entries {_ENTRY}) VALUES (43, 'x', '', '', '', '', '', 1, 1, '{{}}')",
    f"{_LEASE} VALUES (42, 'phone', '', '', 9, now())",
    f"{_LEASE} VALUES (42, 'machine:desk', '', '', 9, now())",
    "INSERT INTO hermes.machines (bot, id, name, version) VALUES (42, 'desk', '', '')",
    "INSERT INTO hermes.machines (bot, id, name, version) VALUES (42, '', '', '')",
    "UPDATE hermes.machines SET id = ''",
    "UPDATE hermes.leases SET name = 'phone'",
    "INSERT INTO hermes.members VALUES (current_user, 43, 'agent')",
    "INSERT INTO hermes.locks VALUES (42)",
    "INSERT INTO hermes.migrations VALUES (99)",
    "UPDATE hermes.records SET owner = 'hermes'",
    f"INSERT INTO hermes.entries {_ENTRY}) VALUES (42, 'x', 'desk', '', '', '', '', 1, 1, '{{}}')",
    f"{_RECORD} VALUES (42, 'prompts', 'x', 'desk', 1, '{{}}')",
    f"{_RECORD} VALUES (42, 'prompts', 'x', '', 1, '{{}}')",
    "CREATE TABLE hermes.mine ()",
    "SET ROLE hermes",
)
"""What the user of an agent-only machine may not do."""


MODES = (
    "ROW SHARE", "ROW EXCLUSIVE", "SHARE UPDATE EXCLUSIVE", "SHARE", "SHARE ROW EXCLUSIVE", "EXCLUSIVE",
    "ACCESS EXCLUSIVE",
)  # fmt: skip
"""The modes of a lock on a table, except for the one of each SELECT."""
GRANTED_BEFORE = (
    "GRANT SELECT, INSERT, UPDATE ON hermes.machines, hermes.leases TO {user}",
    "GRANT INSERT, DELETE ON hermes.records TO {user}",
)
"""What an earlier Hermes has granted beside the rights of today."""


def locks(connection: psycopg.Connection, database: Database) -> list[str]:
    """The locks that this user may take on the tables of Hermes."""
    found = database.ask("SELECT tablename FROM pg_tables WHERE schemaname = 'hermes' ORDER BY 1")
    tables = [table for (table,) in found]
    assert "leases" in tables
    taken = []
    for lock in [f"hermes.{table} in {mode}" for table in tables for mode in MODES]:
        with suppress(psycopg.errors.InsufficientPrivilege), connection.transaction():
            connection.execute(f"LOCK TABLE {lock} MODE NOWAIT".encode())
            taken.append(lock)
    return taken


@asynccontextmanager
async def earlier(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PostgresStore]:
    """The machine with the bot's token while all machines run an earlier Hermes, which makes users with more rights."""
    first, grants = migrations.steps()[:2], (*roles._GRANTS, *GRANTED_BEFORE)
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "steps", lambda: first)
        patch.setattr(roles, "_GRANTS", grants)
        async with joined(machine(tmp_path, "desk", database.address()), phone=True) as desk:
            yield desk


@contextmanager
def connected(database: Database, name: str) -> Iterator[psycopg.Connection]:
    """A connection of this user, which is dropped afterwards."""
    try:
        with psycopg.connect(**database.address(name, SECRET).parameters(), autocommit=True) as connection:  # type: ignore[arg-type]
            yield connection
    finally:
        database.ask(roles.removal(name))


def others_in(table: str) -> bytes:
    """Count the rows of others in this table."""
    return f"SELECT count(*) FROM hermes.{table} WHERE owner <> current_user".encode()


async def test_an_agent_only_machine_learns_its_bot_and_asks(
    database: Database, phone: PostgresStore, user: str, tmp_path: Path
) -> None:
    """The phone side places its ask; the machine hears of it, and never sees the phone."""
    async with joined(agent(database, tmp_path, user)) as ci:
        heard = ci.changes()
        assert await anext(heard) == Missed()
        entry = await ci.create(asked_at("ci", "aaaa2222"))
        assert entry.phone == Phone(0)
        placed = await phone.change(entry.id, lambda found: replace(found, code="k7", phone=Phone(7, message_id=70)))
        assert await anext(heard) == Changed("entries", entry.id)
        seen = await ci.change(entry.id, one_more)
        assert (seen.code, seen.phone, seen.revision) == ("k7", Phone(0), 3)
        assert await ci.keep(seen) == seen
        assert await ci.get(entry.id) == seen
        [whole] = await phone.open()
        assert whole == replace(one_more(placed), revision=3)
        assert not await ci.take_phone()
        assert [each.id for each in await ci.machines()] == ["ci"]
        assert {each.id for each in await phone.machines()} == {"ci", "desk"}
        await ci.renew((("opencode", True),))
        await ci.settle(entry.id, seen)
        assert await ci.done(entry.id) == seen
        assert await ci.newest_done(5) == [seen]
        assert await ci.forget_done(list(await ci.days_done())) == 0
        assert await phone.forget_done(list(await phone.days_done())) == 1
        assert await phone.forget_done([]) == 0


async def test_an_agent_only_machine_keeps_records(
    database: Database, phone: PostgresStore, user: str, tmp_path: Path
) -> None:
    """Also those that the phone side makes for it; not those of others."""
    async with joined(agent(database, tmp_path, user)) as ci:
        theirs = await phone.notices.create(NOTICE)
        await phone.notices.create(replace(NOTICE, id="dddd2222", machine="desk"))
        assert await ci.notices.all() == [theirs]
        changed = await ci.notices.change(theirs, lambda found: replace(found, heard_s=1.0))
        assert await phone.notices.get(theirs.id) == changed
        own = await ci.notices.create(replace(NOTICE, id="oooo2222"))
        for each in (own.id, "dddd2222"):
            await ci.notices.forget(each)
        assert {each.id for each in await phone.notices.all()} == {NOTICE.id, "dddd2222", own.id}
        await phone.notices.forget(own.id)
        assert await ci.notices.all() == [changed]
        with pytest.raises(Conflict):
            await ci.notices.create(replace(NOTICE, id="dddd2222"))


async def test_a_row_tells_of_its_own_machine_alone(
    database: Database, phone: PostgresStore, user: str, tmp_path: Path
) -> None:
    """Otherwise an answer, or the reply to a notice, would go to the machine that its body names."""
    async with joined(agent(database, tmp_path, user)) as ci:
        entry, notice = await ci.create(asked_at("ci", "aaaa2222")), await ci.notices.create(NOTICE)
        elsewhere = asked_at("desk", entry.id).ask
        turn = Turn(elsewhere.source, "OpenCode", "msg_1", 1.0, 2.0)
        await ci.change(entry.id, lambda found: replace(found, ask=elsewhere))
        await ci.notices.change(notice, lambda found: replace(found, turn=turn))
        found = await phone.notices.get(notice.id)
        assert found.turn is not None
        for source in ((await phone.get(entry.id)).ask.source, found.turn.source):
            assert source == replace(elsewhere.source, machine="ci")
        await ci.settle(entry.id)
        assert (await phone.done(entry.id)).ask.source.machine == "ci"
        await ci.notices.change(found, lambda found: replace(found, machine="desk"))
        with pytest.raises(Unreadable, match="of another machine"):
            await phone.notices.get(notice.id)


async def test_a_closed_ask_of_another_machine_closes_none_here(
    database: Database, phone: PostgresStore, user: str, tmp_path: Path
) -> None:
    """A user that knows the id of a machine could otherwise end the asks there."""
    async with joined(agent(database, tmp_path, user)) as ci:
        entry = await ci.create(asked_at("ci", "aaaa2222"))
        await ci.settle(entry.id)
        source = entry.ask.source
        wait_id = spool.wait_id(source.agent, source.machine, source.request_id or "")
        assert await ci.done_by(wait_id) == source.agent
        assert await phone.done_by(wait_id) is None


async def test_what_an_agent_only_machine_may_not_do_is_refused(
    database: Database, phone: PostgresStore, user: str, tmp_path: Path
) -> None:
    """By the database, whatever the program tries."""
    theirs = await phone.create(asked_at("desk", "dddd2222", "d2"))
    await phone.save_chat(ChatMemory(BOT, offset=7))
    async with joined(agent(database, tmp_path, user)) as ci:
        own = await ci.create(asked_at("ci", "aaaa2222"))
        with pytest.raises(Missing):
            await ci.get(theirs.id)
        with pytest.raises(Missing):
            await ci.change(theirs.id, one_more, theirs)
        with pytest.raises(StoreError, match="does not let this user"):
            await ci.load_chat(BOT)
        for work in (ci.save_chat(ChatMemory(BOT)), ci.lock_phone(), ci.unlock_phone()):
            with pytest.raises(NotSaved, match="does not let this user"):
                await work
        assert not await ci.is_phone_locked()
        await phone.lock_phone()
        assert await ci.is_phone_locked()
    parameters = database.address(user.replace(" ", "%20"), SECRET).parameters()
    with psycopg.connect(**parameters, autocommit=True) as connection:  # type: ignore[arg-type]
        database.ask("DELETE FROM hermes.leases WHERE name = 'phone'")
        for statement in REFUSED:
            with pytest.raises(REFUSALS):
                connection.execute(statement.encode())
        for table in ("entries", "leases", "machines", "members"):
            [(others,)] = connection.execute(
                f"SELECT count(*) FROM hermes.{table} WHERE owner <> current_user".encode()
            )
            assert others == 0
        assert connection.execute("UPDATE hermes.entries SET phase = '' WHERE id = 'dddd2222'").rowcount == 0
    assert await phone.get(theirs.id) == theirs
    assert (await phone.get(own.id)).id == own.id


async def test_a_function_of_another_user_is_not_called(database: Database, tmp_path: Path) -> None:
    """Up to PostgreSQL 14 all users may make some in `public`; it fits better than PostgreSQL's own of this name."""
    database.ask(
        "CREATE FUNCTION public.convert_to(text, text) RETURNS bytea LANGUAGE plpgsql "
        "AS 'BEGIN RAISE EXCEPTION ''it was called''; END'"
    )
    try:
        async with joined(machine(tmp_path, "desk", database.address()), phone=True) as store:
            entry = await store.create(asked_at("desk", "aaaa2222", "k7"))
            assert await store.get(entry.id) == entry
    finally:
        database.ask("DROP FUNCTION public.convert_to(text, text)")


async def test_it_locks_no_table_against_others(database: Database, user: str) -> None:
    """One lock on the leases would stop all machines: none could renew its lease."""
    parameters = database.address(user.replace(" ", "%20"), SECRET).parameters()
    with psycopg.connect(**parameters, autocommit=True) as connection:  # type: ignore[arg-type]
        assert locks(connection, database) == []


async def test_a_user_that_an_earlier_hermes_has_made_locks_none_either(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It could, until the phone side has brought the tables forward; its machine goes on as before."""
    name = f"ci_{secrets.token_hex(4)}"
    async with earlier(database, tmp_path, monkeypatch) as desk:
        await roles.add(desk._connection, name, SECRET, BOT)
    with connected(database, name) as connection:
        assert "hermes.leases in ACCESS EXCLUSIVE" in locks(connection, database)
        async with joined(machine(tmp_path, "desk", database.address()), phone=True):
            assert locks(connection, database) == []
            async with joined(agent(database, tmp_path, name)) as ci:
                await ci.create(asked_at("ci", "aaaa2222"))
                await ci.notices.create(NOTICE)
                await ci.renew(())


async def test_the_user_of_a_machine_that_was_removed_locks_none_either(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no member any more, and is there until an administrator drops it."""
    name = f"ci_{secrets.token_hex(4)}"
    async with earlier(database, tmp_path, monkeypatch) as desk:
        await roles.add(desk._connection, name, SECRET, BOT)
        async with joined(agent(database, tmp_path, name)):
            assert await roles.remove_machine(desk._connection, BOT, "ci") == name
    assert database.ask("SELECT FROM hermes.members WHERE owner = %s", name) == []
    with connected(database, name) as connection:
        assert {
            "hermes.leases in ACCESS EXCLUSIVE",
            "hermes.machines in ACCESS EXCLUSIVE",
            "hermes.records in ACCESS EXCLUSIVE",
        } <= set(locks(connection, database))
        async with joined(machine(tmp_path, "desk", database.address()), phone=True) as desk:
            assert locks(connection, database) == []
            await desk.create(asked_at("desk", "dddd2222"))
            await desk.renew(())


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE hermes.members SET kind = 'phone' WHERE owner = '{name}'",
        "DELETE FROM hermes.members WHERE owner = '{name}'; ALTER ROLE {name} NOINHERIT; GRANT hermes TO {name}",
    ],
    ids=["a member", "in the role of the owner"],
)
async def test_a_user_of_the_phone_side_keeps_its_rights(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """An administrator has granted them, and Hermes does not know why."""
    name = f"desk_{secrets.token_hex(4)}"
    async with earlier(database, tmp_path, monkeypatch) as desk:
        await roles.add(desk._connection, name, SECRET, BOT)
    database.ask(change.format(name=name))
    with connected(database, name) as connection:
        before = locks(connection, database)
        assert "hermes.leases in ACCESS EXCLUSIVE" in before
        async with joined(machine(tmp_path, "desk", database.address()), phone=True):
            assert locks(connection, database) == before


async def test_a_machine_that_was_removed_changes_nothing_any_more(
    database: Database, phone: PostgresStore, user: str, tmp_path: Path
) -> None:
    """Its asks stay for the phone side to end; its user sees nothing."""
    async with joined(agent(database, tmp_path, user)) as ci:
        entry = await ci.create(asked_at("ci", "aaaa2222"))
        assert await roles.remove_machine(phone._connection, BOT, "ci") == user
        assert await roles.remove_machine(phone._connection, BOT, "ci") is None
        with pytest.raises(Deposed, match="removed"):
            await ci.change(entry.id, one_more, entry)
        with pytest.raises(Deposed, match="removed"):
            await ci.renew(())
        assert await ci.open() == []
        assert await phone.open() == [entry]
        assert [each.id for each in await phone.machines()] == ["desk"]
    with pytest.raises(StoreError, match="does not belong to the bot"):
        await agent(database, tmp_path, user).survey()


async def test_a_user_with_another_machine_keeps_it(
    database: Database, phone: PostgresStore, user: str, tmp_path: Path
) -> None:
    """Only the last one takes its rights along."""
    async with joined(agent(database, tmp_path, user)) as ci, joined(agent(database, tmp_path, user, "box")) as box:
        assert await roles.remove_machine(phone._connection, BOT, "ci") == user
        with pytest.raises(Deposed, match="removed"):
            await ci.create(asked_at("ci", "aaaa2222"))
        await box.renew(())
    assert await roles.remove_machine(phone._connection, BOT, "desk") == "hermes"
    assert ("hermes", BOT, "phone") in database.ask("SELECT owner, bot, kind FROM hermes.members")


async def test_a_user_of_another_bot_or_of_several_is_told(
    database: Database, phone: PostgresStore, user: str, tmp_path: Path
) -> None:
    """A machine has one bot."""
    with pytest.raises(StoreError, match="does not belong"):
        await agent(database, tmp_path, user, bot=43).survey()
    database.ask("INSERT INTO hermes.members VALUES (%s, 43, 'agent')", user)
    with pytest.raises(StoreError, match="several bots"):
        await agent(database, tmp_path, user).survey()
    await agent(database, tmp_path, user, bot=43).survey()


async def test_the_printed_statements_work_and_have_no_password(
    database: Database, phone: PostgresStore, tmp_path: Path
) -> None:
    """For people whose user may not make users."""
    text = roles.as_text("box", SECRET, BOT)
    assert SECRET not in text
    assert "a-secret" not in text
    place = ["--host=127.0.0.1", f"--port={database.port}", "--username=postgres", database.name]
    command = [str(programs() / "psql"), "--quiet", "--set=ON_ERROR_STOP=1", *place]
    subprocess.run(command, input=text, text=True, check=True, env={"PGPASSWORD": PASSWORD})
    try:
        async with joined(agent(database, tmp_path, "box", "box")) as box:
            assert await box.open() == []
        with pytest.raises(NotSaved):
            await roles.add(phone._connection, "box", SECRET, BOT)
        with pytest.raises(StoreError):
            await Connection(database.address("box", "wrong")).read("SELECT 1")
    finally:
        subprocess.run(command, input=roles.removal("box"), text=True, check=True, env={"PGPASSWORD": PASSWORD})


@pytest.mark.parametrize("name", ["", "a\nb", "a" * 64, "é" * 32, "\udcff"])
def test_a_name_that_cannot_be_used_is_refused(name: str) -> None:
    """Before anything is done: a person gave it, so it is wrong usage."""
    with pytest.raises(ConfigError, match="1 to 63 bytes of UTF-8"):
        roles.statements(name, "x", BOT)


@pytest.mark.parametrize("password", ["", "ä"])
def test_a_password_that_cannot_be_used_is_refused(password: str) -> None:
    """Before anything is done."""
    with pytest.raises(StoreError):
        roles.statements("a", password, BOT)
