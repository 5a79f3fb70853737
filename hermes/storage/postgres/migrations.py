"""The tables in the database: numbered steps that only go forward (`schema/0001.sql` and so on).

The user that owns the schema, or may make it, is a user of the phone side. The listener of such a user brings the
tables forward when it joins; other users and other commands only check them. The owner of tables is not bound by their
row security, and may use all columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Final

from hermes.errors import StoreError, TooNew

if TYPE_CHECKING:
    from hermes.storage.postgres.connection import Connection

FIRST: Final = "start Hermes on the machine with the bot's token first"
_LOCK: Final = 0x4845524D4553  # "HERMES"
# The cache behind `to_regclass` may not know yet what another process has just made.
_IS_THERE: Final = "SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = 'hermes' AND tablename = 'migrations')"
_STATE: Final = f"""
SELECT ({_IS_THERE}),
       CASE WHEN to_regnamespace('hermes') IS NULL THEN has_database_privilege(current_database(), 'CREATE')
            ELSE (SELECT pg_has_role(current_user, nspowner, 'USAGE') FROM pg_namespace WHERE nspname = 'hermes') END
"""
_VERSION: Final = "SELECT coalesce(max(version), 0) FROM hermes.migrations"


@cache
def steps() -> tuple[str, ...]:
    """Return the statements of each step, in order."""
    folder = resources.files("hermes.storage.postgres") / "schema"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return tuple(file.read_text(encoding="utf-8") for file in files)


@dataclass(frozen=True, slots=True)
class State:
    """The tables as they are: their version (0: there are none), and whether this user is one of the phone side."""

    version: int
    is_owner: bool

    def check_not_newer(self) -> None:
        """Raise TooNew if a newer Hermes has made the tables."""
        known = len(steps())
        if self.version > known:
            raise TooNew(
                f"a newer Hermes has made the tables (version {self.version}; this one knows {known}); upgrade it"
            )

    def check(self) -> None:
        """Raise TooNew if a newer Hermes has made the tables, StoreError if an earlier one has, or none."""
        self.check_not_newer()
        known = len(steps())
        if self.version < known:
            found, way = "are missing", FIRST
            if self.version:
                found = f"are of an earlier Hermes (version {self.version} of {known})"
                way = "upgrade and start Hermes on the machine with the bot's token first"
            raise StoreError(f"the tables in the database {found}; {way}")


async def state(connection: Connection) -> State:
    """Return the state of the tables, and change nothing. Raises StoreError."""
    [(is_there, owns)] = await connection.read(_STATE)
    [(version,)] = await connection.read(_VERSION) if is_there else [(0,)]
    return State(int(version), bool(owns))


async def bring_forward(connection: Connection) -> None:
    """Make the tables, or bring them forward, if this user may; tables of a newer Hermes stay. Raises StoreError."""
    found = await state(connection)
    if not found.is_owner or found.version >= len(steps()):
        return
    async with connection.transaction() as work:
        await work.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        cursor = await work.execute(_IS_THERE)
        done = 0
        if await cursor.fetchone() == (True,):  # another process may have been first
            row = await (await work.execute(_VERSION)).fetchone()
            done = int(row[0]) if row else 0
        for number, step in enumerate(steps()[done:], done + 1):
            await work.execute(step.encode())
            await work.execute("INSERT INTO hermes.migrations (version) VALUES (%s)", (number,))
