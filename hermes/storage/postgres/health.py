"""The state of the database, for `hermes doctor`. Nothing here changes anything or takes a lease."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hermes.storage.postgres.clock import TIME

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.storage.postgres.connection import Connection
    from hermes.storage.postgres.identity import Identity

OLDEST: Final = 14
"""The first version of PostgreSQL that Hermes can use."""
_ABOUT: Final = """
SELECT current_setting('server_version_num')::int / 10000, current_setting('server_version'), current_user::text,
       ARRAY(SELECT name FROM unnest(ARRAY['fsync', 'full_page_writes', 'synchronous_commit']) AS name
             WHERE current_setting(name) = 'off')
"""
_READS_CHAT: Final = """
SELECT has_any_column_privilege('hermes.chats', 'SELECT') OR has_column_privilege('hermes.entries', 'phone', 'SELECT')
       OR (SELECT rolbypassrls FROM pg_roles WHERE rolname = current_user)
"""
_LEASE: Final = """
SELECT leases.machine, coalesce(machines.name, leases.machine), extract(epoch FROM until)::float8,
       extract(epoch FROM until - clock_timestamp())::float8
FROM hermes.leases LEFT JOIN hermes.machines ON machines.bot = leases.bot AND machines.id = leases.machine
WHERE leases.bot = %(bot)s AND leases.name = %(lease)s AND until > clock_timestamp()
"""


@dataclass(frozen=True, slots=True)
class Server:
    """The server of the database.

    - `major`, `version`: its version, such as 16 and "16.2". `user`: the user as whom Hermes is logged in.
    - `off`: the settings that are off for this connection, of those without which a crash loses saved data.
    - `round_trip_s`: the duration of one statement. `ahead_s`: how far its clock is ahead of this machine's.
    - `has_tls`: the connection is encrypted.
    """

    major: int
    version: str
    user: str
    off: tuple[str, ...]
    round_trip_s: float
    ahead_s: float
    has_tls: bool


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease that has not run out: of which machine (id and name), until when (epoch), and for how long yet."""

    machine: str
    name: str
    until_s: float
    left_s: float


async def server(connection: Connection, now: Callable[[], float]) -> Server:
    """Return the state of the server; `now` is the clock of this machine. Raises StoreError."""
    [(major, version, user, off)] = await connection.read(_ABOUT)
    began_s, began = now(), time.perf_counter()
    [(told_s,)] = await connection.read(TIME)
    took_s = time.perf_counter() - began
    ahead_s = told_s - (began_s + took_s / 2)
    return Server(major, version, user, tuple(off), took_s, ahead_s, connection.has_tls)


async def reads_chat(connection: Connection) -> bool:
    """Tell whether this user, which does not own the tables, may read the chat all the same. Raises StoreError."""
    return await connection.read(_READS_CHAT) == [(True,)]


async def lease(connection: Connection, identity: Identity, name: str) -> Lease | None:
    """Return the lease of this name, or None if no process holds it. Raises StoreError."""
    rows = await connection.read(_LEASE, {"bot": identity.bot, "lease": name})
    return Lease(*rows[0]) if rows else None
