"""The tables in the database: numbered steps that only go forward (`schema/0001.sql` and so on).

The user that owns the schema, or may make it, is a user of the phone side, and brings the tables forward. Others only
check them. The owner of tables is not bound by their row security, and may use all columns.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Final

from hermes.errors import StoreError, TooNew

if TYPE_CHECKING:
    from hermes.storage.postgres.connection import Connection

_LOCK: Final = 0x4845524D4553  # "HERMES"
# The cache behind `to_regclass` may not know yet what another process has just made.
_IS_THERE: Final = "SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = 'hermes' AND tablename = 'migrations')"
_STATE: Final = f"""
SELECT ({_IS_THERE}),
       CASE WHEN to_regnamespace('hermes') IS NULL THEN has_database_privilege(current_database(), 'CREATE')
            ELSE (SELECT pg_has_role(current_user, nspowner, 'USAGE') FROM pg_namespace WHERE nspname = 'hermes') END
"""


@cache
def steps() -> tuple[str, ...]:
    """Return the statements of each step, in order."""
    folder = resources.files("hermes.storage.postgres") / "schema"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return tuple(file.read_text(encoding="utf-8") for file in files)


async def is_owner(connection: Connection) -> bool:
    """Check the tables, or make them; tell whether this user is one of the phone side.

    Raises:
        TooNew: a newer Hermes has made the tables.
        StoreError: an earlier one has made them, or nobody, and this user may not.
    """
    [(is_there, owns)] = await connection.read(_STATE)
    version = await _version(connection) if is_there else 0
    if version < len(steps()) and not owns:
        raise StoreError(
            "the database has no tables for this Hermes; start it on the machine with the bot's token first"
        )
    if version < len(steps()):
        await _bring_forward(connection)
    return bool(owns)


async def _version(connection: Connection) -> int:
    [(version,)] = await connection.read("SELECT coalesce(max(version), 0) FROM hermes.migrations")
    if version > len(steps()):
        raise TooNew(
            f"a newer Hermes has made the tables (version {version}; this one knows {len(steps())}); upgrade it"
        )
    return int(version)


async def _bring_forward(connection: Connection) -> None:
    async with connection.transaction() as work:
        await work.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        cursor = await work.execute(_IS_THERE)
        done = 0
        if await cursor.fetchone() == (True,):  # another process may have been first
            row = await (await work.execute("SELECT max(version) FROM hermes.migrations")).fetchone()
            done = int(row[0]) if row else 0
        for number, step in enumerate(steps()[done:], done + 1):
            await work.execute(step.encode())
            await work.execute("INSERT INTO hermes.migrations (version) VALUES (%s)", (number,))
