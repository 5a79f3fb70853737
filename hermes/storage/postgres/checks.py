"""The checks before a machine begins to use a database. They change nothing; `make_tables` does, for the phone side."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hermes.errors import StoreError
from hermes.storage.postgres import membership, migrations, pooler
from hermes.storage.postgres.address import Address
from hermes.storage.postgres.connection import Connection
from hermes.storage.postgres.health import OLDEST
from hermes.storage.postgres.identity import Identity


@asynccontextmanager
async def connection_to(address: Address) -> AsyncIterator[Connection]:
    """Yield a connection, and close it in the end. It is made with the first statement."""
    connection = Connection(address)
    try:
        yield connection
    finally:
        await connection.close()


async def check_phone(address: Address) -> None:
    """Check that a machine with the bot's token can use the database.

    Raises:
        TooNew: a newer Hermes has made the tables.
        StoreError: the database cannot be reached, is too old or behind a pooler, or the user may not make the tables.
    """
    async with connection_to(address) as connection:
        await _check_server(address, connection)
        tables = await migrations.state(connection)
        tables.check_not_newer()
        if not tables.is_owner:
            raise StoreError(
                "this user of the database may not make the tables of Hermes; use the user that owns the database"
            )


async def check_agent(address: Address) -> int:
    """Check that an agent-only machine can use the database, and return the id of the bot that its user belongs to.

    Raises:
        TooNew: a newer Hermes has made the tables.
        StoreError: as `check_phone`, or there are no tables yet, or the user belongs to no bot, or several.
    """
    async with connection_to(address) as connection:
        await _check_server(address, connection)
        return await membership.learn(connection, Identity(Path(), "", None))


async def make_tables(address: Address) -> None:
    """Make the tables, or bring them forward. Raises as `check_phone`, and NotSaved."""
    async with connection_to(address) as connection:
        await migrations.bring_forward(connection)


async def _check_server(address: Address, connection: Connection) -> None:
    [(major,)] = await connection.read("SELECT current_setting('server_version_num')::int / 10000")
    if major < OLDEST:
        raise StoreError(f"the database is PostgreSQL {major}; Hermes needs version {OLDEST} or newer")
    await pooler.check(address, connection)
