"""Check the database of several machines: it answers, loses nothing, is private, and each machine has its place in it.

The checks only look: they make no tables, and take no lease. If the database cannot be used, `is_usable` tells the
other areas not to read the store, so that the trouble is reported once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from hermes.commands.doctor.finding import Area, Around, Finding
from hermes.commands.status.table import span
from hermes.errors import StoreError, TooNew
from hermes.storage.postgres import health, membership, migrations
from hermes.storage.postgres.identity import PHONE, Identity
from hermes.storage.store import RENEW_S

if TYPE_CHECKING:
    from hermes.storage.postgres.address import Address
    from hermes.storage.postgres.connection import Connection
    from hermes.storage.postgres.health import Lease, Server

AREA = Area("Database")

CLOCK_S: Final = 5.0
"""From this distance of the two clocks on, a person sees that times on the phone are wrong."""
WATCH_S: Final = RENEW_S + 1.5
YOUNG_S: Final = 20
"""A listener waits less long for a lease that another process has, and ends then."""
_LOOK_S: Final = 0.5
_LIMIT_S: Final = 12.0
_NEEDED: Final = ("all", "reach", "tables", "user")


async def look(around: Around) -> tuple[Finding, ...]:
    """Check the database; return nothing if the store is in files."""
    address = around.config.store.address
    if address is None:
        return ()
    from hermes.storage.postgres import checks  # noqa: PLC0415 (few have psycopg, which is slow to load)

    async with checks.connection_to(address) as connection:
        found = await AREA.guarded("reach", _server(around, address, connection), limit_s=_LIMIT_S)
        if not is_usable(found):
            return found
        found += await AREA.guarded("pooler", _pooler(address, connection), limit_s=_LIMIT_S)
        return found + await _tables(around, connection)


def is_usable(findings: Iterable[Finding]) -> bool:
    """Tell whether the database can be read, by the findings of this area."""
    return all(one.verdict != "broken" for one in findings if one.check in _NEEDED)


# --- the server -------------------------------------------------------------------------------------------------------


async def _server(around: Around, address: Address, connection: Connection) -> list[Finding]:
    try:
        server = await health.server(connection, around.now)
    except StoreError as error:
        mend = f"see that the database runs, and that [store] in {around.config_file} is right"
        return [AREA.broken("reach", str(error), mend)]
    reach = AREA.good("reach", f"{address.name} answers within {max(1, round(server.round_trip_s * 1000))} ms")
    return [reach, _version(server), _tls(address, server), _clocks(server), *_durability(server)]


def _version(server: Server) -> Finding:
    if server.major < health.OLDEST:
        seen = f"PostgreSQL {server.version} is too old"
        return AREA.broken("version", seen, f"upgrade the server to PostgreSQL {health.OLDEST} or newer")
    return AREA.good("version", f"PostgreSQL {server.version}")


def _tls(address: Address, server: Server) -> Finding:
    if address.is_local:
        return AREA.good("TLS", "not needed: the database is on this machine")
    if address.tls == "off":
        seen = "in use, but any machine could pose as the database" if server.has_tls else "off: others can listen"
        return AREA.warning("TLS", seen, 'remove tls = "off" from [store]')
    return AREA.good("TLS", "in use, and the server has proved who it is")


def _clocks(server: Server) -> Finding:
    apart_s = abs(server.ahead_s)
    if apart_s < CLOCK_S:
        return AREA.good("clocks", "the database and this machine have the same time")
    side = "ahead of" if server.ahead_s > 0 else "behind"
    seen = (
        f"the database's clock is {span(apart_s)} {side} this machine's. Hermes goes by the database's, so nothing is "
        "lost or late, but one of the two shows wrong times"
    )
    return AREA.warning("clocks", seen, "let both machines set their clocks by NTP")


def _durability(server: Server) -> Iterator[Finding]:
    for setting in server.off:
        seen = f"{setting} is off: after a crash of the database, saved answers can be lost or damaged"
        yield AREA.broken("durability", seen, f"set {setting} = on in postgresql.conf, and reload it")
    if not server.off:
        yield AREA.good("durability", "saved is saved: fsync, full_page_writes and synchronous_commit are on")


async def _pooler(address: Address, connection: Connection) -> list[Finding]:
    from hermes.storage.postgres import pooler  # noqa: PLC0415

    await pooler.check(address, connection)
    return [AREA.good("pooler", "none, or one that loses no notifications")]


# --- the tables -------------------------------------------------------------------------------------------------------


async def _tables(around: Around, connection: Connection) -> tuple[Finding, ...]:
    """Check the tables; if they are right, also the user and the leases."""
    home, phone = around.home(), around.config.phone
    identity = Identity(home.root, home.known_machine(), phone.bot_id if phone else None)
    found = await AREA.guarded("tables", _version_of_tables(around, connection), limit_s=_LIMIT_S)
    if is_usable(found):
        found += await AREA.guarded("user", _user(around, connection, identity), limit_s=_LIMIT_S)
    if is_usable(found):
        found += await AREA.guarded("phone side", _phone_side(around, connection, identity), limit_s=_LIMIT_S)
        found += await AREA.guarded("lease", _lease(around, connection, identity), limit_s=_LIMIT_S + WATCH_S)
    return found


async def _version_of_tables(around: Around, connection: Connection) -> list[Finding]:
    tables = await migrations.state(connection)
    try:
        tables.check()
    except StoreError as error:
        helps = tables.is_owner and around.config.phone and not isinstance(error, TooNew)
        return [AREA.broken("tables", str(error), around.hermes("listen") if helps else "")]
    return [AREA.good("tables", f"version {tables.version}, as this Hermes needs them")]


async def _user(around: Around, connection: Connection, identity: Identity) -> list[Finding]:
    await membership.learn(connection, identity)
    has_bot, mend = around.config.phone is not None, "on the machine with the bot's token: hermes store add NAME"
    if identity.sees_phone:
        seen = "owns the tables: it may be the phone side, and read the chat"
        if has_bot:
            return [AREA.good("user", seen)]
        return [AREA.warning("user", f"{seen}; a machine without the bot's token needs none of that", mend)]
    if await health.reads_chat(connection):
        return [AREA.broken("chat", "this agent-only user can read the chat", mend)]
    seen = "agent-only: it sees the questions of its own machines, and cannot read the chat"
    if has_bot:
        why = f"{seen}; so this machine, which has the bot's token, never becomes the phone side"
        return [AREA.warning("user", why, f"name the owner of the tables in [store] of {around.config_file}")]
    return [AREA.good("user", seen)]


# --- the leases -------------------------------------------------------------------------------------------------------


async def _phone_side(around: Around, connection: Connection, identity: Identity) -> list[Finding]:
    """Report the machine that is the phone side; an agent-only user cannot see that."""
    if not identity.sees_phone:
        return []
    lease = await health.lease(connection, identity, PHONE)
    if lease is not None:
        here = " (this machine)" if lease.machine == identity.machine else ""
        return [
            AREA.good("phone side", f"{lease.name}{here}; its lease ends in {span(lease.left_s)} unless it is renewed")
        ]
    waiting = [one.name for one in await membership.machines(connection, identity) if not one.is_away]
    if not waiting:
        return [AREA.good("phone side", "no machine: none runs")]
    mend = around.hermes("listen") if around.config.phone else "start Hermes on the machine with the bot's token"
    return [AREA.broken("phone side", f"no machine, so questions from {', '.join(waiting)} wait", mend)]


async def _lease(around: Around, connection: Connection, identity: Identity) -> list[Finding]:
    """Find out whether another process has the id of this machine: it renews the lease while no listener runs here."""
    lease, listener = await health.lease(connection, identity, identity.machine_lease), around.home().listener()
    if lease is None and listener is not None:
        mend = f"see {around.config.log.file}"
        return [AREA.warning("lease", "the listener here has not got the lease of this machine (yet)", mend)]
    if lease is None:
        return [AREA.good("lease", "free: no listener runs on this machine")]
    if listener is not None:
        is_young = around.now() - listener.since_s < YOUNG_S
        wait = f"; look again in {YOUNG_S} s: it may still wait for another Hermes that has it" if is_young else ""
        return [AREA.good("lease", f"the listener here has the lease of this machine{wait}")]
    if not await _is_renewed(connection, identity, lease):
        return [AREA.good("lease", "free in a moment: the listener here has ended without a word")]
    mend = f"stop Hermes on one of the two, remove {identity.root / 'machine'} there, and start it again"
    return [AREA.broken("lease", "another running Hermes has the id of this machine (a copied disk?)", mend)]


async def _is_renewed(connection: Connection, identity: Identity, first: Lease) -> bool:
    end = time.monotonic() + WATCH_S
    while time.monotonic() < end:
        await asyncio.sleep(_LOOK_S)
        now = await health.lease(connection, identity, identity.machine_lease)
        if now is not None and now.until_s > first.until_s:
            return True
    return False
