"""The leases of this process: the right to be the agent side of its machine, and the phone side of the bot.

Another process may take a lease once it has run out. Each taking has a term of its own. A write names the terms of all
leases that its process holds, and locks their rows until it is done (`FENCE`): so it is done before another process
takes a lease over, or not at all. A mere comparison of the terms would not be enough, because a write may wait for the
row that it changes while a takeover is saved.

A phone lease that was lost still counts as held until `take_phone` is called: nothing that the phone side of this
process began is written under the lease of the machine alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from hermes.errors import Deposed, Held, StoreError
from hermes.storage.postgres.clock import SharedClock
from hermes.storage.postgres.connection import Connection
from hermes.storage.postgres.identity import PHONE, Identity

LEASE_S: Final = 12.0
MARGIN_S: Final = 2.0
"""The phone side ends by itself so long before another process may take over."""
_LOOK_S: Final = 1.0

FENCE: Final = """
held AS (
    SELECT name FROM hermes.leases
    WHERE bot = %(bot)s AND holder = %(holder)s
        AND (name = 'phone' AND term = %(phone_term)s OR name = %(machine_lease)s AND term = %(machine_term)s)
    FOR SHARE
)
"""
"""The leases that this process holds, locked until the end of the statement."""
IS_HELD: Final = "(SELECT count(*) FROM held) = %(leases)s"

_TAKE: Final = f"""
INSERT INTO hermes.leases AS old (bot, name, machine, holder, term, until)
VALUES (%(bot)s, %(name)s, %(machine)s, %(holder)s, 1, clock_timestamp() + interval '{LEASE_S} s')
ON CONFLICT (bot, name) DO UPDATE
SET owner = current_user, machine = excluded.machine, holder = excluded.holder, term = old.term + 1,
    until = clock_timestamp() + interval '{LEASE_S} s'
WHERE old.until < clock_timestamp() OR old.holder = excluded.holder
RETURNING term, extract(epoch FROM clock_timestamp())::float8
"""
_RENEW: Final = f"""
WITH {FENCE}, kept AS (
    UPDATE hermes.leases SET until = clock_timestamp() + interval '{LEASE_S} s'
    WHERE bot = %(bot)s AND name = ANY(%(names)s) AND name IN (SELECT name FROM held)
    RETURNING name
), seen AS (
    UPDATE hermes.machines SET seen = clock_timestamp(), servers = %(servers)s::json
    WHERE bot = %(bot)s AND id = %(machine)s
)
SELECT ARRAY(SELECT name FROM kept), extract(epoch FROM clock_timestamp())::float8
"""
_LEAVE: Final = """
UPDATE hermes.leases SET until = '-infinity', holder = '' WHERE bot = %(bot)s AND holder = %(holder)s
"""


@dataclass(slots=True)
class _Lease:
    """A lease that was taken with this term, and renewed last at `since` (the beginning of that, monotonic)."""

    term: int
    since: float


class Leases:
    """The leases that this process holds."""

    def __init__(
        self,
        connection: Connection,
        identity: Identity,
        clock: SharedClock,
        monotonic: Callable[[], float],
    ) -> None:
        self._connection = connection
        self._identity = identity
        self._clock = clock
        self._monotonic = monotonic
        self._machine: _Lease | None = None
        self._phone: _Lease | None = None
        self._phone_lost = False

    async def take_machine(self, sleep: Callable[[float], Awaitable[None]]) -> None:
        """Take the lease of this machine, after the one of a process that died has run out. Raises Held, NotSaved."""
        began = self._monotonic()
        while (lease := await self._take(self._identity.machine_lease)) is None:
            if self._monotonic() > began + LEASE_S + _LOOK_S:
                raise Held(
                    "another running Hermes has the id of this machine: two machines with one id (a copied disk?). "
                    f"Stop Hermes on one of them, remove {self._identity.root / 'machine'} there, and start it again."
                )
            await sleep(_LOOK_S)
        self._machine = lease

    async def take_phone(self) -> bool:
        """Try to take the lease of the phone side, and tell whether it worked. Raises StoreError."""
        if self._machine is None:
            raise StoreError("this process has not joined the store yet")
        self._phone = await self._take(PHONE)
        self._phone_lost = False
        return self.is_phone()

    def is_phone(self) -> bool:
        """Tell whether this process is the phone side, by a clock alone."""
        lease, at = self._phone, self._monotonic()
        return lease is not None and not self._phone_lost and at < lease.since + LEASE_S - MARGIN_S

    async def renew(self, servers: str) -> None:
        """Renew all leases in one statement, with the state of the servers (JSON). Raises Deposed, StoreError."""
        began = self._monotonic()
        names = [self._identity.machine_lease] + ([PHONE] if self.is_phone() else [])
        values = self.values() | {"names": names, "servers": servers, "machine": self._identity.machine}
        [(kept, epoch_s)] = await self._connection.repeat(_RENEW, values)
        self._clock.read(epoch_s, began)
        if self._phone is not None and (PHONE not in kept or not self.is_phone()):
            self._phone_lost = True
        elif self._phone is not None:
            self._phone.since = began
        if self._identity.machine_lease not in kept:
            raise self.deposed()
        if PHONE in names and PHONE not in kept:
            raise Deposed("another machine is the phone side now; this one goes on for its own agents")

    async def leave(self) -> None:
        """Let other processes take all leases at once. Raises StoreError."""
        self._phone_lost = True
        if self._machine is not None:
            await self._connection.repeat(_LEAVE, self.values())

    def values(self) -> dict[str, object]:
        """Return what `FENCE` and `IS_HELD` need."""
        return {
            "bot": self._identity.bot,
            "holder": self._identity.session,
            "machine_lease": self._identity.machine_lease,
            "phone_term": self._phone.term if self._phone else 0,
            "machine_term": self._machine.term if self._machine else 0,
            "leases": (self._phone is not None) + (self._machine is not None),
        }

    def deposed(self) -> Deposed:
        """Return the error for a write under a lease that was lost."""
        if self._phone is not None:
            return Deposed("nothing was saved: another process has taken over from this one")
        words = "nothing was saved: another process has taken over the id of this machine"
        return Deposed(f"{words}; are there two machines with one id (a copied disk?), or was this machine removed?")

    async def _take(self, name: str) -> _Lease | None:
        began = self._monotonic()
        machine = {"name": name, "machine": self._identity.machine}
        for row in await self._connection.repeat(_TAKE, self.values() | machine):
            self._clock.read(row[1], began)
            return _Lease(row[0], began)
        return None
