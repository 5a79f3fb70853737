"""One connection to the database, which is made again if it breaks. Statements take turns.

No statement makes its caller wait for more than a few seconds, also if the server is frozen or the network swallows
everything: then the connection is cut. A write whose connection breaks may have been done or not (`UnknownError`).
Each statement is a transaction of its own, so no transaction stays open while Hermes waits for anything else.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import psycopg

from hermes.errors import ConfigError, InUse, NotSaved, StoreAway, StoreError
from hermes.storage.postgres.address import Address
from hermes.storage.postgres.sentences import told

Row = tuple[Any, ...]
PATIENCE_S: Final = 5.0
"""How long a statement may take in all."""
_WHOLE_S: Final = 20.0
_SERVER_MS: Final = 4000
_LOCKED_MS: Final = 50
"""How long a statement waits for a row that another one changes: all others stand behind it.

Ours take a few milliseconds. The user of an agent-only machine can keep its rows locked for as long as it likes.
"""
ANY_COMMIT: Final = f"set_config('lock_timeout', '{_SERVER_MS}', true)"
"""What a statement calls that tells others: PostgreSQL commits such transactions one by one.

Behind a slow disk they stand in line, for longer than a row may be waited for.
"""
_SETTINGS: Final = f"""
SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false),
       pg_catalog.set_config('synchronous_commit', 'on', false),
       pg_catalog.set_config('statement_timeout', '{_SERVER_MS}', false),
       pg_catalog.set_config('lock_timeout', '{_LOCKED_MS}', false),
       pg_catalog.set_config('default_transaction_isolation', 'read committed', false)
"""
"""No function of another schema is called: where all users may make some, an agent-only user could act as this one."""


class UnknownError(Exception):
    """The connection broke while a statement was under way: it was done, or not, or will be done in a moment."""


class Connection:
    """A connection that is made when it is needed."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._found: psycopg.AsyncConnection[Row] | None = None
        self._turn = asyncio.Lock()
        self._failed = 0  # how often no connection could be made
        # All but `repeat` stand in line here, so that at most one of them waits for its turn before a lease is renewed.
        self._line = asyncio.Lock()

    @property
    def has_tls(self) -> bool:
        """Tell whether the connection is there, and encrypted."""
        return self._found is not None and self._found.pgconn.ssl_in_use

    async def read(self, statement: str, values: Mapping[str, object] | None = None) -> list[Row]:
        """Return the rows of a statement that changes nothing. Raises StoreError."""
        for is_last in (False, True):
            try:
                return await self._run(statement, values, writes=False)
            except UnknownError as error:
                if is_last:
                    raise StoreAway(str(error)) from None
        raise AssertionError

    async def write(self, statement: str, values: Mapping[str, object] | None = None) -> list[Row]:
        """Return the rows of a statement that changes something. Raises NotSaved, Conflict, UnknownError."""
        return await self._run(statement, values, writes=True)

    async def repeat(self, statement: str, values: Mapping[str, object] | None = None) -> list[Row]:
        """Do a write that may be done twice, before all others that wait. Raises NotSaved, Conflict."""
        try:
            return await self._run(statement, values, writes=True, first=True)
        except (UnknownError, InUse):
            try:
                return await self._run(statement, values, writes=True, first=True)
            except UnknownError as error:
                raise NotSaved(f"it is not known whether this was saved: {error}") from None

    async def close(self) -> None:
        """Close the connection; the next statement makes another one."""
        found, self._found = self._found, None
        if found is not None:
            await found.close()

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[psycopg.AsyncConnection[Row]]:
        """Take the connection for several statements that are done as a whole. Raises NotSaved."""
        async with self._taken(writes=True) as connection:
            try:
                async with asyncio.timeout(_WHOLE_S), connection.transaction():
                    await connection.execute(f"SET LOCAL lock_timeout = {_SERVER_MS}".encode())
                    yield connection
            except TimeoutError:
                raise _late(writes=True) from None
            except psycopg.Error as error:
                raise told(error, self._address, writes=True) from None

    async def _run(
        self, statement: str, values: Mapping[str, object] | None, *, writes: bool, first: bool = False
    ) -> list[Row]:
        async with self._taken(writes=writes, first=first) as connection:
            try:
                return await finished(connection, statement, values)
            except psycopg.Error as error:
                if connection.closed:
                    raise UnknownError(str(told(error, self._address, writes=False))) from None
                raise told(error, self._address, writes=writes) from None

    @contextlib.asynccontextmanager
    async def _taken(self, *, writes: bool, first: bool = False) -> AsyncIterator[psycopg.AsyncConnection[Row]]:
        failed = self._failed
        async with contextlib.nullcontext() if first else self._line:
            await self._turn.acquire()
        try:
            if failed != self._failed:  # each in line would wait for a connection in vain, one after the other
                raise _late(writes=writes)
            if self._found is None or self._found.closed:
                try:
                    self._found = await connected(self._address, writes=writes)
                except StoreError:
                    self._failed += 1
                    raise
            yield self._found
        finally:
            self._turn.release()


async def connected(address: Address, *, writes: bool = False) -> psycopg.AsyncConnection[Row]:
    """Return a connection with the settings that Hermes needs. Raises StoreError, or NotSaved if it `writes`."""
    try:
        parameters: dict[str, Any] = {**address.parameters()}
    except ConfigError as error:  # it was right at the start, but names files that have changed since
        raise _away(f"the address of the database {error}", writes=writes) from None
    try:
        async with asyncio.timeout(PATIENCE_S):
            connection = await psycopg.AsyncConnection.connect(autocommit=True, **parameters)
    except TimeoutError:
        raise _late(writes=writes) from None
    except psycopg.Error as error:
        raise told(error, address, writes=writes) from None
    async with contextlib.AsyncExitStack() as undone:
        undone.push_async_callback(connection.close)
        try:
            await finished(connection, _SETTINGS)
        except psycopg.Error as error:
            raise told(error, address, writes=writes) from None
        undone.pop_all()
    return connection


async def finished(
    connection: psycopg.AsyncConnection[Row], statement: str, values: Mapping[str, object] | None = None
) -> list[Row]:
    """Return the rows of the statement. Raises psycopg.Error.

    If it takes too long, or nobody waits for it any more, the connection is cut. Psycopg
    itself would ask the server to stop, and wait for a frozen one.
    """
    work = asyncio.create_task(_rows(connection, statement, values))
    work.add_done_callback(_note)
    try:
        await asyncio.wait({work}, timeout=PATIENCE_S)
    finally:
        if not work.done():
            _cut(connection)
            await asyncio.wait({work})
    return work.result()


async def _rows(
    connection: psycopg.AsyncConnection[Row], statement: str, values: Mapping[str, object] | None
) -> list[Row]:
    cursor = await connection.execute(statement.encode(), values)
    return [] if cursor.description is None else await cursor.fetchall()


def _note(work: asyncio.Task[list[Row]]) -> None:
    """Look at the error, if there is one: else asyncio logs a traceback where nobody waits for the result any more."""
    if not work.cancelled():
        work.exception()


def _cut(connection: psycopg.AsyncConnection[Row]) -> None:
    with contextlib.suppress(OSError), socket.socket(fileno=connection.fileno()) as cable:
        try:
            cable.shutdown(socket.SHUT_RDWR)
        finally:
            cable.detach()  # the descriptor belongs to the connection


def _late(*, writes: bool) -> StoreError:
    return _away("the database did not answer in time; look at its load, and at the network", writes=writes)


def _away(words: str, *, writes: bool) -> StoreError:
    return NotSaved(f"nothing was saved: {words}") if writes else StoreAway(words)
