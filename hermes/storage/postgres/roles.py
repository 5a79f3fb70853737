"""The users of the database for agent-only machines, and the removal of a machine for good.

Such a user sees and changes only what belongs to its own machine, and nothing of the chat. A statement never has a
password in it, but what the server keeps of one (SCRAM-SHA-256), so that no log of the server has it either.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import Final

from psycopg import sql

from hermes.errors import ConfigError, StoreError
from hermes.storage.postgres.connection import Connection
from hermes.storage.postgres.identity import plain

_ROUNDS: Final = 4096
_LONGEST_NAME: Final = 63
_ENTRY: Final = "bot, owner, id, machine, agent, wait_id, code, phase, revision, asked_s, closed_s, body"
_CHANGED: Final = "code, phase, revision, wait_id, closed_s, body"
_RECORD: Final = "bot, kind, id, machine, owner, revision, body"
_MACHINE: Final = "bot, id, name, version"
_LEASE: Final = "machine, holder, term, until"
_GRANTS: Final = (
    "GRANT USAGE ON SCHEMA hermes TO {user}",
    "GRANT SELECT ON hermes.migrations, hermes.members, hermes.locks TO {user}",
    f"GRANT SELECT, INSERT ({_MACHINE}), UPDATE (owner, name, version, servers, seen) ON hermes.machines TO {{user}}",
    f"GRANT SELECT, INSERT (bot, name, {_LEASE}), UPDATE (owner, {_LEASE}) ON hermes.leases TO {{user}}",
    f"GRANT SELECT ({_ENTRY}), INSERT ({_ENTRY}), UPDATE ({_CHANGED}) ON hermes.entries TO {{user}}",
    f"GRANT SELECT, INSERT ({_RECORD}), UPDATE (revision, body) ON hermes.records TO {{user}}",
    "GRANT SELECT ON hermes.files TO {user}",
)
"""No right to change a whole table: with one, the user could lock the table, and so stop all machines."""
_REMOVE: Final = """
WITH gone AS (DELETE FROM hermes.machines WHERE bot = %(bot)s AND id = %(machine)s RETURNING owner),
     free AS (DELETE FROM hermes.leases WHERE bot = %(bot)s AND machine = %(machine)s),
     left_over AS (
         DELETE FROM hermes.members USING gone
         WHERE members.owner = gone.owner AND members.bot = %(bot)s AND members.kind = 'agent'
             AND NOT EXISTS (SELECT FROM hermes.machines
                             WHERE bot = %(bot)s AND owner = gone.owner AND id <> %(machine)s)
     )
SELECT owner::text FROM gone
"""
_MAY_ADD: Final = "SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user"
_REGISTERED: Final = """
SELECT members.owner::text, kind = 'agent', coalesce(id, ''), coalesce(name, '')
FROM hermes.members LEFT JOIN hermes.machines ON machines.bot = members.bot AND machines.owner = members.owner
WHERE members.bot = %(bot)s ORDER BY members.owner, name, id
"""
_DROP: Final = (
    "REVOKE ALL ON ALL TABLES IN SCHEMA hermes FROM {user}",
    "REVOKE ALL ON SCHEMA hermes FROM {user}",
    "DELETE FROM hermes.members WHERE owner = {name}",
    "DROP ROLE {user}",
)


@dataclass(frozen=True, slots=True)
class Registered:
    """A user of the database, and one of its machines by id and name ("" if no machine has used it yet).

    `is_agent`: it is the user of agent-only machines.
    """

    user: str
    is_agent: bool
    machine: str
    name: str


def statements(name: str, password: str, bot: int) -> tuple[str, ...]:
    """Return the statements that make the user of an agent-only machine, for a user that may make users.

    Raises ConfigError and StoreError: the name or the password cannot be used.
    """
    if not name.isprintable() or not 0 < len(name.encode()) <= _LONGEST_NAME:  # what is not UTF-8 is not printable
        raise ConfigError(
            f"a user of the database has a name of 1 to {_LONGEST_NAME} bytes of UTF-8 that are printable characters; "
            "give another one, such as ci."
        )
    user = sql.Identifier(name)
    secret = sql.Literal(_kept(password))
    made = sql.SQL("CREATE ROLE {user} LOGIN PASSWORD {secret}").format(user=user, secret=secret)
    grants = [sql.SQL(grant).format(user=user) for grant in _GRANTS]
    member = sql.SQL("INSERT INTO hermes.members (owner, bot, kind) VALUES ({name}, {bot}, 'agent')")
    added = member.format(name=sql.Literal(name), bot=sql.Literal(bot))
    return tuple([statement.as_string() for statement in (made, *grants, added)])


def as_text(name: str, password: str, bot: int) -> str:
    """Return the statements to print, for `psql`. Raises as `statements`."""
    return "".join(f"{statement};\n" for statement in ("BEGIN", *statements(name, password, bot), "COMMIT"))


def removal(name: str) -> str:
    """Return the statements to print that remove a user whose machine was removed."""
    user = sql.Identifier(name)
    return sql.SQL("DROP OWNED BY {user};\nDROP ROLE {user};\n").format(user=user).as_string()


async def add(connection: Connection, name: str, password: str, bot: int) -> None:
    """Make the user of an agent-only machine. Raises NotSaved, Conflict: this user may not, or there is such a user."""
    made = statements(name, password, bot)
    async with connection.transaction() as work:
        for statement in made:
            await work.execute(statement.encode())


async def remove_machine(connection: Connection, bot: int, machine: str) -> str | None:
    """Remove a machine for good, and return its user, or None if there is no such machine. Its asks stay.

    It loses its lease, so it changes nothing any more; an agent-only user with no other machine sees nothing either.
    Raises NotSaved.
    """
    rows = await connection.repeat(_REMOVE, {"bot": bot, "machine": plain(machine)})
    return str(rows[0][0]) if rows else None


async def may_add(connection: Connection) -> bool:
    """Tell whether this user of the database may make users. Raises StoreError."""
    [(may,)] = await connection.read(_MAY_ADD)
    return bool(may)


async def registered(connection: Connection, bot: int) -> tuple[Registered, ...]:
    """Return the users of a bot with their machines. For a user of the phone side. Raises StoreError."""
    rows = await connection.read(_REGISTERED, {"bot": bot})
    return tuple(
        [Registered(str(user), bool(is_agent), str(machine), str(name)) for user, is_agent, machine, name in rows]
    )


async def remove_user(connection: Connection, name: str) -> None:
    """Remove the user of an agent-only machine. Raises NotSaved: this user of the database may not do that."""
    user, literal = sql.Identifier(name), sql.Literal(name)
    async with connection.transaction() as work:
        for statement in _DROP:
            await work.execute(sql.SQL(statement).format(user=user, name=literal))


def _kept(password: str) -> str:
    """Return what the server keeps of a password (RFC 5803)."""
    if not password or not (password.isascii() and password.isprintable()):
        raise StoreError("the password of a user of the database has only letters, digits and signs of ASCII")
    salt = secrets.token_bytes(16)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, _ROUNDS)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    first, second, third = (base64.b64encode(part).decode() for part in (salt, stored, server))
    return f"SCRAM-SHA-256${_ROUNDS}:{first}${second}:{third}"
