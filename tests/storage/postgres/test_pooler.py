"""A real pooler between Hermes and the database: it may keep connections apart, but not lend them piecewise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes.errors import StoreError
from tests.harness.pgbouncer import pooler
from tests.storage.machines import joined, machine
from tests.storage.store_process import an_entry

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.postgres import Database


async def test_a_pooler_in_transaction_mode_is_refused(database: Database, tmp_path: Path) -> None:
    """With the remedy, and before anything is made."""
    with pooler(database, "transaction") as port:
        store = machine(tmp_path, "desk", database.address(port=port))
        with pytest.raises(StoreError, match=r"use the address of the database itself, or the pooler's session mode"):
            await store.join("desk", "1.0")
        await store.leave()
    assert database.ask("SELECT to_regnamespace('hermes') IS NULL") == [(True,)]


async def test_a_pooler_in_session_mode_is_used(database: Database, tmp_path: Path) -> None:
    """As if it were not there."""
    with pooler(database, "session") as port:
        async with joined(machine(tmp_path, "desk", database.address(port=port)), phone=True) as store:
            entry = await store.create(an_entry())
            assert await store.open() == [entry]
