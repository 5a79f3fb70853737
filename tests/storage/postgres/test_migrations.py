"""The tables are made once, only go forward, and are not touched by an earlier Hermes."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path

import pytest

from hermes.errors import StoreError, TooNew
from hermes.storage.postgres import migrations
from tests.harness.postgres import PASSWORD, Database
from tests.storage.machines import joined, machine


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


async def test_a_later_step_is_done_where_the_earlier_ones_were(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And only that."""
    async with joined(machine(tmp_path, "desk", database.address())):
        pass
    later = (*migrations.steps(), "CREATE TABLE hermes.later ()")
    monkeypatch.setattr(migrations, "steps", lambda: later)
    async with joined(machine(tmp_path, "desk", database.address())):
        assert database.ask("SELECT to_regclass('hermes.later') IS NOT NULL") == [(True,)]


async def test_who_may_not_make_tables_is_told_where_they_are_made(database: Database, tmp_path: Path) -> None:
    """Also if there are no tables at all."""
    name = f"guest_{secrets.token_hex(4)}"
    database.ask(f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'")
    try:
        with pytest.raises(StoreError, match="bot's token first"):
            await machine(tmp_path, "desk", database.address(name)).survey()
    finally:
        database.ask(f"DROP ROLE {name}")
