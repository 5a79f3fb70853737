"""The user of an agent-only machine; no test leaves a connection open."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import pytest

from hermes.storage.postgres import roles
from tests.storage.machines import BOT, MADE, SECRET, joined, machine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from hermes.storage.postgres.store import PostgresStore
    from tests.harness.postgres import Database


@pytest.fixture(autouse=True)
async def _all_leave() -> AsyncIterator[None]:
    """Close what a test has made and not closed."""
    yield
    while MADE:
        await MADE.pop().leave()


@pytest.fixture
async def phone(database: Database, tmp_path: Path) -> AsyncIterator[PostgresStore]:
    """The machine with the bot's token."""
    async with joined(machine(tmp_path, "desk", database.address()), phone=True) as store:
        yield store


@pytest.fixture
async def user(database: Database, phone: PostgresStore) -> AsyncIterator[str]:
    """The user of an agent-only machine."""
    name = f"ci {secrets.token_hex(4)}"
    await roles.add(phone._connection, name, SECRET, BOT)
    yield name
    database.ask(roles.removal(name))
