"""The tables are made once, only go forward, and are not touched by an earlier Hermes."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path

import pytest

from hermes.errors import StoreError, TooNew
from hermes.storage.home import Home
from hermes.storage.postgres import migrations
from hermes.storage.postgres.store import PostgresStore
from tests.harness.postgres import PASSWORD, Database
from tests.storage.machines import BOT, joined, machine


async def test_machines_that_start_at_once_make_the_tables_once(database: Database, tmp_path: Path) -> None:
    """They wait for each other."""
    stores = [machine(tmp_path, f"m{number}", database.address()) for number in range(5)]
    await asyncio.gather(*(store.join("x", "1.0") for store in stores))
    await asyncio.gather(*(store.leave() for store in stores))
    assert database.ask("SELECT version FROM hermes.migrations ORDER BY 1") == [
        (number,) for number in range(1, len(migrations.steps()) + 1)
    ]


async def test_tables_of_a_newer_hermes_are_left_alone(database: Database, tmp_path: Path) -> None:
    """The sentence says what to do."""
    async with joined(machine(tmp_path, "desk", database.address())):
        database.ask("INSERT INTO hermes.migrations VALUES (99)")
    with pytest.raises(TooNew, match=r"newer Hermes.*upgrade"):
        await machine(tmp_path, "desk", database.address()).join("desk", "1.0")


async def test_only_a_listener_brings_tables_forward(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And only by the steps that are missing. A command that looks changes nothing, whoever its user is."""
    async with joined(machine(tmp_path, "desk", database.address())):
        pass
    later = (*migrations.steps(), "CREATE TABLE hermes.later ()")
    monkeypatch.setattr(migrations, "steps", lambda: later)
    known = len(later)
    with pytest.raises(StoreError, match=rf"earlier Hermes \(version {known - 1} of {known}\); upgrade and start"):
        await machine(tmp_path, "desk", database.address()).survey()
    assert database.ask("SELECT to_regclass('hermes.later') IS NULL") == [(True,)]
    async with joined(machine(tmp_path, "desk", database.address())):
        assert database.ask("SELECT to_regclass('hermes.later') IS NOT NULL") == [(True,)]


async def test_a_look_at_an_empty_database_makes_nothing(database: Database, tmp_path: Path) -> None:
    """No tables, and no folder of this machine."""
    store = PostgresStore(Home(tmp_path / "new"), database.address(), BOT)
    with pytest.raises(StoreError, match="tables in the database are missing; start Hermes on"):
        await store.survey()
    await store.leave()
    assert database.ask("SELECT to_regnamespace('hermes') IS NULL") == [(True,)]
    assert not (tmp_path / "new").exists()


async def test_who_may_not_make_tables_is_told_where_they_are_made(database: Database, tmp_path: Path) -> None:
    """Also if there are no tables at all."""
    name = f"guest_{secrets.token_hex(4)}"
    database.ask(f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'")
    try:
        with pytest.raises(StoreError, match="bot's token first"):
            await machine(tmp_path, "desk", database.address(name)).survey()
    finally:
        database.ask(f"DROP ROLE {name}")
