"""A pooler between Hermes and the database that lends a connection for one transaction alone cannot be used.

Through such a pooler, no notification is heard, and settings of a connection reach other clients.
"""

from __future__ import annotations

import secrets
from typing import Final

import psycopg
from psycopg import sql

from hermes.errors import StoreError
from hermes.storage.postgres.address import Address
from hermes.storage.postgres.connection import Connection, connected, finished

_HEARS_S: Final = 3.0
REFUSED: Final = (
    "between Hermes and the database is a pooler that lends a connection for one transaction alone; "
    "use the address of the database itself, or the pooler's session mode"
)


async def check(address: Address, connection: Connection) -> None:
    """Raise StoreError if what `connection` tells is not heard by a second one, or both are one for the server."""
    listening = await connected(address)
    try:
        channel, word = f"hermes_{secrets.token_hex(8)}", secrets.token_hex(8)
        await finished(listening, sql.SQL("LISTEN {}").format(sql.Identifier(channel)).as_string())
        [(mine,)] = await finished(listening, "SELECT pg_backend_pid()")
        [(other, _)] = await connection.read(
            "SELECT pg_backend_pid(), pg_notify(%(channel)s, %(word)s)", {"channel": channel, "word": word}
        )
        heard = [news.payload async for news in listening.notifies(timeout=_HEARS_S, stop_after=1)]
    except psycopg.Error:
        raise StoreError("the connection to the database broke; try again") from None
    finally:
        await listening.close()
    if mine == other or heard != [word]:
        raise StoreError(REFUSED)
