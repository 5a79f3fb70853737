"""The database of several machines under the doctor's eyes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hermes.commands.doctor import checkup, database as databases, listener, telegram
from hermes.commands.doctor.finding import Finding
from hermes.model.chat_memory import ChatMemory
from hermes.storage.home import Home
from hermes.storage.postgres import roles
from hermes.storage.postgres.address import Address
from hermes.storage.postgres.health import OLDEST, Server as State
from hermes.storage.postgres.store import PostgresStore
from tests.commands.doctor.patient import Patient, named, told
from tests.commands.doctor.test_command import environ, run
from tests.harness.pgbouncer import pooler
from tests.harness.postgres import PASSWORD, Database, ProvenServer, Server
from tests.harness.processes import free_port
from tests.storage.store_process import an_entry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from hermes.sandbox.botapi import RunningBotApi

WELL = {"reach", "version", "TLS", "clocks", "durability", "pooler", "tables", "user", "phone side", "lease"}
SECRET = "a-secret-of-its-own"


@contextlib.asynccontextmanager
async def listening(patient: Patient, address: Address, home: Path | None = None) -> AsyncIterator[PostgresStore]:
    """What a listener does in the database: of the patient's own folder, or of a copy of it elsewhere."""
    bot_id = int(patient.token.partition(":")[0])
    own = patient.root / "store"
    store = PostgresStore(Home(home or own), address, bot_id)
    if home is not None:
        home.mkdir()
        (home / "machine").write_bytes((own / "machine").read_bytes())
    try:
        await store.join("desk", "1.0")
        yield store
    finally:
        await store.leave()


async def examined(patient: Patient, *, ahead_s: float = 0) -> tuple[Finding, ...]:
    """The findings about the database."""
    return await databases.look(patient.around(ahead_s=ahead_s))


async def test_a_store_in_files_has_no_such_part(patient: Patient) -> None:
    """Nobody reads of a database who has none."""
    assert await examined(patient) == ()


async def test_a_durable_database_with_its_phone_side_is_well(patient: Patient) -> None:
    """Each part in one line. A setting that is off is an error, but not one that Hermes sets for itself."""
    with Server(fsync="on") as server, server.database() as database:
        patient.share(database.address())
        database.ask("ALTER ROLE hermes SET synchronous_commit = off")
        async with listening(patient, database.address()) as store:
            assert await store.take_phone()
            with patient_listens(patient):
                found = await examined(patient)
        assert told(found) == dict.fromkeys(WELL, "good")
        assert named(found, "reach").seen.startswith(f"{database.name} on 127.0.0.1 answers within ")
        assert named(found, "phone side").seen.startswith("desk (this machine); its lease ends in ")
        database.ask("ALTER SYSTEM SET full_page_writes = off")
        database.ask("SELECT pg_reload_conf()")
        while database.ask("SHOW full_page_writes") != [("off",)]:
            await asyncio.sleep(0.02)
        found = named(await examined(patient), "durability"), named(found, "durability")
    assert found[0].verdict == "broken"
    assert "full_page_writes is off" in found[0].seen
    assert found[0].mend == "set full_page_writes = on in postgresql.conf, and reload it"


def patient_listens(patient: Patient) -> contextlib.AbstractContextManager[object]:
    """A listener runs on this machine."""
    return patient.store.home.hold("hermes listen")


async def test_a_look_makes_no_tables_and_takes_no_lease(patient: Patient, database: Database) -> None:
    """Also by a user that might."""
    patient.share(database.address())
    found = await examined(patient)
    assert told(found)["tables"] == "broken"
    assert named(found, "tables").seen.endswith("are missing; start Hermes on the machine with the bot's token first")
    assert named(found, "tables").mend == f"hermes listen --config {patient.config_file}"
    assert {"user", "phone side", "lease"}.isdisjoint(told(found))
    assert database.ask("SELECT to_regnamespace('hermes') IS NULL") == [(True,)]
    assert not (patient.root / "store").exists()
    async with listening(patient, database.address()):
        pass
    rows = "SELECT leases::text, machines::text, members::text FROM hermes.leases, hermes.machines, hermes.members"
    before = database.ask(rows)
    await examined(patient)
    assert database.ask(rows) == before


async def test_tables_of_another_version_are_broken(patient: Patient, database: Database) -> None:
    """A newer Hermes has made them, or an earlier one: each with what to do."""
    patient.share(database.address())
    async with listening(patient, database.address()):
        database.ask("INSERT INTO hermes.migrations VALUES (99)")
    newer = named(await examined(patient), "tables")
    assert (newer.verdict, "upgrade it" in newer.seen) == ("broken", True)
    database.ask("DELETE FROM hermes.migrations")
    missing = named(await examined(patient), "tables")
    assert (missing.verdict, "start Hermes on the machine with the bot's token" in missing.seen) == ("broken", True)


async def test_fsync_that_is_off_is_broken(patient: Patient, database: Database) -> None:
    """As on the server of these tests."""
    patient.share(database.address())
    found = named(await examined(patient), "durability")
    assert (found.verdict, found.mend) == ("broken", "set fsync = on in postgresql.conf, and reload it")


async def test_clocks_that_are_apart_are_a_warning(patient: Patient, database: Database) -> None:
    """With the side that is ahead, and what it matters for."""
    patient.share(database.address())
    found = named(await examined(patient, ahead_s=7230), "clocks")
    assert found.verdict == "warning"
    assert "the database's clock is 2 h 00 min behind this machine's" in found.seen
    assert "is 2 h 00 min ahead of" in named(await examined(patient, ahead_s=-7230), "clocks").seen


def test_an_old_server_is_broken(patient: Patient) -> None:
    """Such a server is not there to be asked, so its answer is put in."""
    state = State(OLDEST - 1, "13.9", "hermes", (), 0.001, 0.0, has_tls=False)
    found = databases._version(state)
    assert (found.verdict, found.seen) == ("broken", "PostgreSQL 13.9 is too old")
    assert databases._version(replace(state, major=OLDEST)).verdict == "good"


# --- the way to it ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tls(postgres_programs: Path) -> Iterator[Address]:
    """The address of a server with TLS, under a name that is not this machine's."""
    with ProvenServer() as server:
        where = f"database.example:{server.port}/postgres?hostaddr=127.0.0.1"
        yield Address(f"postgresql://hermes@{where}", PASSWORD, ca_file=server.ca)


async def test_a_server_that_proves_who_it_is_is_well(patient: Patient, tls: Address) -> None:
    """And one with an unknown certificate cannot be reached."""
    patient.share(tls, ca_file=str(tls.ca_file))
    found = named(await examined(patient), "TLS")
    assert (found.verdict, found.seen) == ("good", "in use, and the server has proved who it is")
    del patient.tables["store"]["ca_file"]
    patient.share(tls)
    [found] = await examined(patient)
    assert (found.check, found.verdict) == ("reach", "broken")
    assert "certificate verify failed" in found.seen


@pytest.mark.parametrize(("mode", "words"), [("", "any machine could pose"), ("&sslmode=disable", "others can listen")])
async def test_tls_that_is_switched_off_is_a_warning(patient: Patient, tls: Address, mode: str, words: str) -> None:
    """Whether it is used all the same or not."""
    patient.share(replace(tls, url=tls.url + mode), tls="off")
    found = named(await examined(patient), "TLS")
    assert (found.verdict, found.mend) == ("warning", 'remove tls = "off" from [store]')
    assert words in found.seen


async def test_tls_is_not_needed_on_this_machine(patient: Patient, database: Database) -> None:
    """Also if it is switched off."""
    patient.share(database.address(), tls="off")
    assert named(await examined(patient), "TLS").verdict == "good"


async def test_a_wrong_password_is_said_without_it(patient: Patient, database: Database) -> None:
    """In one finding."""
    patient.share(database.address(password="not-the-password"))
    [found] = await examined(patient)
    assert (found.check, found.verdict) == ("reach", "broken")
    assert "not-the-password" not in found.seen


async def test_a_pooler_in_transaction_mode_is_broken(patient: Patient, database: Database) -> None:
    """In session mode it is well."""
    async with listening(patient, database.address()):
        pass
    with pooler(database, "transaction") as port:
        patient.share(database.address(port=port))
        found = named(await examined(patient), "pooler")
        assert (found.verdict, "the pooler's session mode" in found.seen) == ("broken", True)
    with pooler(database, "session") as port:
        patient.share(database.address(port=port))
        assert named(await examined(patient), "pooler").verdict == "good"


# --- users ------------------------------------------------------------------------------------------------------------


@pytest.fixture
async def agent_only(patient: Patient, database: Database) -> AsyncIterator[str]:
    """The patient is an agent-only machine, with a user of its own; the name of that user."""
    name = f"ci_{secrets.token_hex(4)}"
    async with listening(patient, database.address()):
        pass
    for statement in roles.statements(name, SECRET, int(patient.token.partition(":")[0])):
        database.ask(statement)
    patient.share(database.address(name, SECRET))
    yield name
    for statement in roles.removal(name).splitlines():
        database.ask(statement)


async def test_an_agent_only_user_cannot_read_the_chat(patient: Patient, database: Database, agent_only: str) -> None:
    """Unless somebody gave it the right to."""
    telegram = patient.tables.pop("telegram")
    patient.write()
    found = await examined(patient)
    assert (told(found)["user"], told(found)["lease"], "phone side" in told(found)) == ("good", "good", False)
    assert "agent-only: " in named(found, "user").seen
    database.ask(f"GRANT SELECT (phone) ON hermes.entries TO {agent_only}")
    found = await examined(patient)
    assert named(found, "chat").seen == "this agent-only user can read the chat"
    database.ask(f"REVOKE SELECT (phone) ON hermes.entries FROM {agent_only}")  # noqa: S608 (a name of the test)
    patient.tables["telegram"] = telegram
    patient.write()
    found = await examined(patient)
    assert (named(found, "user").verdict, "never becomes the phone side" in named(found, "user").seen) == (
        "warning",
        True,
    )


async def test_an_owner_without_a_bot_has_more_rights_than_it_needs(patient: Patient, database: Database) -> None:
    """A warning: it could read the chat."""
    async with listening(patient, database.address()):
        pass
    patient.share(database.address())
    del patient.tables["telegram"]
    patient.write()
    found = named(await examined(patient), "user")
    assert (found.verdict, "read the chat" in found.seen) == ("warning", True)


async def test_a_user_of_no_bot_is_broken(patient: Patient, database: Database, agent_only: str) -> None:
    """Its machine was removed, for instance."""
    database.ask("DELETE FROM hermes.members WHERE owner = %s", agent_only)
    found = named(await examined(patient), "user")
    assert (found.verdict, "does not belong to the bot" in found.seen) == ("broken", True)


# --- leases -----------------------------------------------------------------------------------------------------------


async def test_machines_without_a_phone_side_are_broken(patient: Patient, database: Database) -> None:
    """Their questions wait; without any machine there are none."""
    patient.share(database.address())
    async with listening(patient, database.address()):
        with patient_listens(patient):
            found = named(await examined(patient), "phone side")
        assert (found.verdict, found.seen) == ("broken", "no machine, so questions from desk wait")
    database.ask("UPDATE hermes.machines SET seen = seen - interval '1 h'")
    assert named(await examined(patient), "phone side").seen == "no machine: none runs"


async def test_a_copied_disk_is_broken(patient: Patient, database: Database, tmp_path: Path) -> None:
    """Another process renews the lease of this machine, and no listener runs here."""
    patient.share(database.address())
    async with listening(patient, database.address()):
        pass
    async with listening(patient, database.address(), tmp_path / "copy") as copy, asyncio.TaskGroup() as group:
        looking = group.create_task(examined(patient))
        while not looking.done():
            await copy.renew(())
            await asyncio.sleep(0.1)
    found = named(looking.result(), "lease")
    assert (found.verdict, "a copied disk?" in found.seen) == ("broken", True)
    assert f"remove {patient.root / 'store' / 'machine'} there" in found.mend


async def test_a_lease_that_nobody_renews_is_of_a_listener_that_died(patient: Patient, database: Database) -> None:
    """It runs out by itself. A listener without its lease is a warning."""
    patient.share(database.address())
    async with listening(patient, database.address()):
        assert "has ended without a word" in named(await examined(patient), "lease").seen
    assert named(await examined(patient), "lease").seen == "free: no listener runs on this machine"
    with patient_listens(patient):
        assert named(await examined(patient), "lease").verdict == "warning"


async def test_a_listener_that_has_just_started_may_wait_for_a_copy(patient: Patient, database: Database) -> None:
    """It ends within 20 s if another process renews the lease; until then nobody can tell the two apart."""
    patient.share(database.address())
    async with listening(patient, database.address()):
        with patient_listens(patient):
            young = named(await examined(patient), "lease")
            old = named(await examined(patient, ahead_s=60), "lease")
    assert (young.verdict, "look again in 20 s" in young.seen) == ("good", True)
    assert (old.verdict, old.seen) == ("good", "the listener here has the lease of this machine")


# --- all areas --------------------------------------------------------------------------------------------------------


def about_the_store(findings: list[dict[str, str]]) -> list[tuple[str, str]]:
    """The area and check of each finding that is not good."""
    return [(one["area"], one["check"]) for one in findings if one["verdict"] != "good"]


def test_a_database_that_is_away_is_told_once(healthy: Patient, api: RunningBotApi) -> None:
    """All other parts are looked at as far as they go."""
    healthy.install()
    healthy.share(Address(f"postgresql://hermes@127.0.0.1:{free_port()}/hermes", "x"))
    healthy.tables["prompts"] = {"enabled": True, "projects": [str(healthy.project)]}
    healthy.write()
    with patient_listens(healthy):
        done = run(healthy, "--json")
    assert (done.returncode, done.stderr) == (1, "")
    assert ("Prompts", "phone") in [(one["area"], one["check"]) for one in json.loads(done.stdout)]
    assert about_the_store(json.loads(done.stdout)) == [("Database", "reach")]


def test_a_frozen_database_is_told_once_and_soon(healthy: Patient, api: RunningBotApi) -> None:
    """No check waits for it but the first."""
    healthy.install()
    with Server() as server:
        healthy.share(Database("postgres", server.port).address())
        with server.frozen():
            began_s = time.monotonic()
            found = asyncio.run(checkup.examine(healthy.config_file, environ=environ(healthy)))
            took_s = time.monotonic() - began_s
    assert [(one.area, one.check) for one in found if one.verdict != "good"] == [("Database", "reach")]
    assert "did not answer in time" in found[-1].seen
    assert took_s < 15


async def test_our_own_phone_side_is_no_other_poller(healthy: Patient, rival: None, database: Database) -> None:
    """It polls on another machine, so the doctor does not poll: that would end the other's poll."""
    healthy.share(database.address())
    around = healthy.around(watch_s=10)
    async with listening(healthy, database.address()) as store:
        assert named(await telegram.look(around), "other pollers").verdict == "broken"
        assert await store.take_phone()
        found = named(await telegram.look(around), "other pollers")
        assert (found.verdict, found.seen) == ("good", "the phone side, desk, polls, and told of none")
    assert "other pollers" not in told(await telegram.look(replace(around, is_store_away=True)))


async def test_only_asks_of_this_machine_need_a_listener_here(patient: Patient, database: Database) -> None:
    """Those of other machines are theirs to deliver."""
    patient.install()
    patient.share(database.address())
    async with listening(patient, database.address()) as store:
        other = an_entry("bbbb2222")
        own = replace(other, id="aaaa2222", code="k8")
        source = replace(own.ask.source, machine=store.home.machine())
        await store.create(other)
        assert named(await listener.look(patient.around()), "lock").verdict == "good"
        await store.create(replace(own, ask=replace(own.ask, source=source)))
        found = named(await listener.look(patient.around()), "lock")
    assert (found.verdict, found.seen) == ("broken", "nobody listens, and 1 question or answer waits")


async def test_a_memory_of_the_chat_in_the_database_is_read(
    healthy: Patient, api: RunningBotApi, database: Database
) -> None:
    """As from the files."""
    healthy.share(database.address())
    async with listening(healthy, database.address()) as store:
        assert await store.take_phone()
        await store.save_chat(ChatMemory(int(healthy.token.partition(":")[0]), trouble="the bot was blocked"))
        with patient_listens(healthy):
            found = await checkup.examine(healthy.config_file, environ=healthy.environ)
    assert named([one for one in found if one.area == "Listener"], "poll").seen == "the bot was blocked"


async def test_a_poll_is_as_old_as_the_clock_of_the_database_says(patient: Patient, database: Database) -> None:
    """That of this machine may be wrong, as the part Database says."""
    patient.share(database.address())
    async with listening(patient, database.address()) as store:
        assert await store.take_phone()
        await store.save_chat(ChatMemory(int(patient.token.partition(":")[0]), last_poll_s=store.now()))
        with patient_listens(patient):
            assert named(await listener.look(patient.around(ahead_s=3600)), "poll").verdict == "good"
