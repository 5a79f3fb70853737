"""The short form of the rounds with three machines, and their laws, each seen to fail on a made-up violation."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest

from hermes.errors import NotSaved
from hermes.model.answer import Answer
from hermes.model.state import Armed, State
from tests.faults.faults import CATALOGUE as OF_ONE
from tests.faults.machines import database as databases, laws
from tests.faults.machines.faults import CATALOGUE
from tests.faults.machines.round import BESIDE
from tests.faults.playing import MACHINES, played
from tests.faults.test_faults import ONE_AT_A_TIME, violations
from tests.storage.machines import joined, machine
from tests.storage.store_process import an_entry

if TYPE_CHECKING:
    from pathlib import Path

    from hermes.model.entry import Entry
    from tests.harness.postgres import Database, Server

SEED: Final = 19
SETTLED: Final = State(answers=(Answer(),), phase="settled")
WRITE: Final = "UPDATE hermes.entries SET revision = revision + 1 WHERE id = %(id)s"
"""A write without the fence."""
A_PROMPT: Final = """
INSERT INTO hermes.records (bot, kind, id, machine, revision, body) VALUES (42, 'prompts', 'pppp2222', 'desk', 1, '{}')
"""
A_FILE: Final = """
INSERT INTO hermes.files (bot, prompt, message, piece, size, data) VALUES (42, 'pppp2222', 7, 0, 1, 'x')
"""


@pytest.mark.nightly
@ONE_AT_A_TIME
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("postgres_programs")
def test_nothing_is_lost_in_six_rounds_with_three_machines() -> None:
    """Every law holds after each."""
    outcomes = played(SEED, range(6), MACHINES)
    assert violations(outcomes) == []
    assert len({kind for outcome in outcomes for kind in outcome.faults} & CATALOGUE.keys()) > 5


USUAL_SEED: Final = 7
USUAL: Final = (
    "phone side killed",
    "phone side frozen beyond its lease",
    "database stopped",
    "cut after a statement",
    "a cloned disk",
)


@pytest.mark.nightly
@ONE_AT_A_TIME
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("postgres_programs")
def test_nothing_is_lost_in_the_usual_trouble_of_machines() -> None:
    """Each of these is in one of four rounds."""
    outcomes = played(USUAL_SEED, range(4), MACHINES, USUAL)
    assert violations(outcomes) == []
    begun = {kind for outcome in outcomes for kind in outcome.faults}
    assert set(USUAL) <= begun, "take another USUAL_SEED"


def test_each_kind_of_trouble_has_one_name() -> None:
    """Those of one machine come beside those of several."""
    assert set(BESIDE) <= OF_ONE.keys()
    assert not CATALOGUE.keys() & OF_ONE.keys()


# --- the laws -------------------------------------------------------------------------------------------------------


def of_machine(name: str) -> Entry:
    """An ask of this machine."""
    entry = an_entry("aaaa2222")
    return replace(entry, ask=replace(entry.ask, source=replace(entry.ask.source, machine=name)))


def armed(entry: Entry) -> Entry:
    """The ask, which waits for a text."""
    return replace(entry, state=replace(entry.state, armed=Armed(0, 1001)))


def unarmed(entry: Entry) -> Entry:
    """The ask, which waits for no text."""
    return replace(entry, state=replace(entry.state, armed=None))


async def test_a_write_without_a_lease_is_a_violation(database: Database, tmp_path: Path) -> None:
    """As an agent side, and as a phone side that another one has followed."""
    async with joined(machine(tmp_path, "desk", database.address()), phone=True) as desk:
        databases.watch(database)
        await desk.renew(())
        entry = await desk.create(of_machine("ci"))
        await desk.change(entry.id, lambda found: replace(found, code="k7m2q"))
        assert databases.notes(database) == 2
        assert list(databases.written_by_deposed(database)) == []
        database.ask("UPDATE hermes.leases SET holder = 'another', machine = 'ci' WHERE name = 'phone'")
        await desk._connection.write(WRITE, {"id": entry.id})
        [violation] = databases.written_by_deposed(database)
        assert "machine desk did “UPDATE entries aaaa2222” for the phone side without the lease" in violation
        database.ask("UPDATE hermes.entries SET machine = 'desk'")
        database.ask("DELETE FROM audit.writes")
        await desk._connection.write(WRITE, {"id": entry.id})
        assert list(databases.written_by_deposed(database)) == []
        database.ask("UPDATE hermes.leases SET holder = 'another' WHERE name = 'machine:desk'")
        await desk._connection.write(WRITE, {"id": entry.id})
        [violation] = databases.written_by_deposed(database)
        assert "for its agents without the lease" in violation
        database.ask("DELETE FROM audit.writes")
        database.ask(A_PROMPT)
        await desk._connection.write(A_FILE)
        assert any("“INSERT files" in one for one in databases.written_by_deposed(database))


async def test_an_agent_side_may_end_the_wait_for_a_text_with_its_ask_alone(database: Database, tmp_path: Path) -> None:
    """While the ask is open, only the phone side says which texts are for it."""
    desk, ci = (machine(tmp_path, name, database.address()) for name in ("desk", "ci"))
    async with joined(desk, phone=True), joined(ci):
        databases.watch(database)
        await asyncio.gather(desk.renew(()), ci.renew(()))
        entry = await ci.create(of_machine("ci"))
        await desk.change(entry.id, armed)
        await ci.change(entry.id, unarmed)
        [violation] = databases.written_by_deposed(database)
        assert "machine ci did “UPDATE entries aaaa2222” for the phone side without the lease" in violation
        await desk.change(entry.id, armed)
        await ci.change(entry.id, lambda found: replace(found, state=SETTLED))
        assert databases.notes(database) == 2
        assert list(databases.written_by_deposed(database)) == []


async def test_a_full_database_refuses_all_writes(database: Database, tmp_path: Path) -> None:
    """Until there is room again."""
    async with joined(machine(tmp_path, "desk", database.address())) as desk:
        databases.watch(database)
        databases.fill_disk(database, is_full=True)
        with pytest.raises(NotSaved, match="disk of the database is full"):
            await desk.create(of_machine("desk"))
        databases.fill_disk(database, is_full=False)
        await desk.create(of_machine("desk"))


async def test_the_leases_of_a_round_run_out_at_its_pace(database: Database, tmp_path: Path) -> None:
    """The database is at five times the time since then, for every statement of Hermes."""
    databases.pace_time(database, time.time() - 1000.0, 5.0)
    async with joined(machine(tmp_path, "desk", database.address())):
        [(ahead_s,)] = database.ask(
            "SELECT extract(epoch FROM until - pg_catalog.real_clock_timestamp())::float8 FROM hermes.leases"
        )
    assert isinstance(ahead_s, float)
    assert 4000.0 < ahead_s < 4600.0


async def test_what_is_written_while_the_database_is_away_is_told(database: Database, postgres: Server) -> None:
    """The driver goes on: the open asks are not known, and neither is the phone side."""
    postgres.stop()
    try:
        assert databases.phone_machine(database) == ""
        assert "a database that is away" in databases.open_entries(database)[0]
    finally:
        postgres.start()


def test_a_secret_in_a_log_is_a_violation(tmp_path: Path) -> None:
    """In the log of Hermes, or in what a process prints."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "hermes.log").write_text("all is well")
    assert list(laws.no_secret(tmp_path, {"open sesame"})) == []
    (tmp_path / "logs" / "listen-1.err").write_text("password=open sesame")
    [violation] = laws.no_secret(tmp_path, {"open sesame"})
    assert violation.endswith("logs/listen-1.err")
    assert "sesame" not in violation
