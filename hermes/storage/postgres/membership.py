"""Which bot, user and machine this process is for, and the other machines of the bot."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from hermes.errors import StoreError
from hermes.model.machine import Machine
from hermes.storage.postgres import migrations
from hermes.storage.postgres.identity import plain

if TYPE_CHECKING:
    from hermes.storage.postgres.connection import Connection
    from hermes.storage.postgres.identity import Identity

_BOTS: Final = "SELECT DISTINCT bot FROM hermes.members WHERE owner = current_user"
_BELONG: Final = """
INSERT INTO hermes.members (owner, bot, kind) VALUES (current_user, %(bot)s, 'phone') ON CONFLICT DO NOTHING
"""
_THERE: Final = """
INSERT INTO hermes.machines (bot, id, name, version) VALUES (%(bot)s, %(id)s, %(name)s, %(version)s)
ON CONFLICT (bot, id) DO UPDATE
SET owner = current_user, name = excluded.name, version = excluded.version, seen = clock_timestamp()
"""
_MACHINES: Final = """
SELECT id, name, version,
       extract(epoch FROM clock_timestamp() - least(greatest(seen, 'epoch'), clock_timestamp()))::float8,
       EXISTS (SELECT FROM hermes.leases
               WHERE leases.bot = machines.bot AND leases.name = 'phone' AND machine = machines.id
                   AND until > clock_timestamp()),
       servers::text
FROM hermes.machines WHERE bot = %(bot)s ORDER BY name, id
"""


async def learn(connection: Connection, identity: Identity) -> int:
    """Check the tables, complete the identity, and return the id of its bot. Raises TooNew, StoreError."""
    tables = await migrations.state(connection)
    tables.check()
    identity.sees_phone = tables.is_owner
    bots = [int(bot) for (bot,) in await connection.read(_BOTS)]
    if identity.bot is None and len(bots) == 1:
        identity.bot = bots[0]
    elif identity.bot is None and bots:
        raise StoreError("this user of the database belongs to several bots; give each machine a user of its own")
    elif identity.bot is None or not (identity.sees_phone or identity.bot in bots):
        raise StoreError(
            "this user of the database does not belong to the bot; `hermes store add`, on the machine with the bot's "
            "token, makes one that does"
        )
    return identity.bot


async def belong(connection: Connection, identity: Identity, name: str, version: str) -> None:
    """Write down this machine, and that its user belongs to the bot. Raises NotSaved."""
    if identity.sees_phone:
        await connection.repeat(_BELONG, {"bot": identity.bot})
    values = {"bot": identity.bot, "id": plain(identity.machine), "name": plain(name), "version": plain(version)}
    await connection.repeat(_THERE, values)


async def machines(connection: Connection, identity: Identity) -> tuple[Machine, ...]:
    """Return the machines of the bot that this user may see. Raises StoreError."""
    return tuple([_machine(*row) for row in await connection.read(_MACHINES, {"bot": identity.bot})])


def written(servers: tuple[tuple[str, bool], ...]) -> str:
    """Return the state of servers as the database keeps it."""
    return json.dumps(servers)


def _machine(machine_id: str, name: str, version: str, silent_s: float, is_phone: Any, servers: str) -> Machine:
    return Machine(machine_id, name, version, max(0.0, silent_s), bool(is_phone), _read(servers))


def _read(servers: str) -> tuple[tuple[str, bool], ...]:
    """Return the state of servers; () if it is not one, as an agent-only user writes it as it likes."""
    try:
        return tuple([(str(server), bool(is_connected)) for server, is_connected in json.loads(servers)])
    except (ValueError, TypeError, RecursionError):
        return ()
