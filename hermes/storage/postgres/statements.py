"""The statements of the store. Each write is under all leases of this process, and also tells other processes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeVar

from hermes.errors import Conflict, Deposed, Missing, NotSaved, StoreError, TooNew, Unreadable
from hermes.storage.postgres.connection import ANY_COMMIT, Connection, Row, UnknownError
from hermes.storage.postgres.identity import Identity
from hermes.storage.postgres.leases import FENCE, Leases
from hermes.storage.store import Kind

TELL: Final = f"""
pg_notify('hermes_' || left(encode(sha256(convert_to(bot::text || ' ' || machine, 'UTF8')), 'hex'), 24), %(news)s),
pg_notify(%(phone_channel)s, %(news)s), {ANY_COMMIT}
"""
"""What a statement returns, to tell the machine of the row and the phone side (`Identity.channel`)."""
OWNER: Final = """
coalesce((SELECT owner FROM hermes.machines WHERE bot = %(bot)s AND id = %(machine)s), current_user)
"""
"""The user of the machine that a row is for."""
MOST_TRIES: Final = 50
_PORTION: Final = 50
"""How many rows are read at once."""

_OF_PHONE: Final = {
    "phone": "phone::text",
    "phone_column": ", phone",
    "phone_value": ", %(phone)s::json",
    "phone_again": ", phone = excluded.phone",
    "phone_set": ", phone = %(phone)s::json",
    "moved": f", machine = %(machine)s, owner = {OWNER}",
}
"""The parts of a statement, by their names in it, that the user of an agent-only machine must leave out.

It sees and writes nothing of the phone's, and cannot move a row to another machine.
"""
_OF_AGENT: Final = dict.fromkeys(_OF_PHONE, "") | {"phone": "NULL"}

T = TypeVar("T")


class Statements:
    """The statements of this process. Before the first one, `learn` finds out who it is."""

    def __init__(
        self,
        connection: Connection,
        identity: Identity,
        leases: Leases,
        learn: Callable[[], Awaitable[None]],
    ) -> None:
        self.identity = identity
        self._connection = connection
        self._leases = leases
        self._learn = learn
        self._learning = asyncio.Lock()
        self._is_ready = False

    async def ready(self) -> None:
        """Learn who this process is, unless it is known. Raises StoreError."""
        async with self._learning:
            if not self._is_ready:
                await self._learn()
                self._is_ready = True

    async def read(self, statement: str, **values: object) -> list[Row]:
        """Return the rows of a statement that changes nothing; it can name the `bot`. Raises StoreError."""
        await self.ready()
        return await self._connection.read(self._for_user(statement), {"bot": self.identity.bot} | values)

    async def rows(self, columns: str, which: str, order: str = "", **values: object) -> list[Row]:
        """Return these columns, the id first, of the rows that `which` (FROM … WHERE …) names, in this order.

        The rows are large as text, and the network may be slow: after their ids, they are read a few at a time. Of
        many, some may be gone meanwhile. Raises StoreError.
        """
        ids = [row[0] for row in await self.read(f"SELECT id {which} {order}", **values)]
        found: dict[str, Row] = {}
        for start in range(0, len(ids), _PORTION):
            portion = ids[start : start + _PORTION]
            statement = f"SELECT {columns} {which} AND id = ANY(%(ids)s)"
            found |= {row[0]: row for row in await self.read(statement, ids=portion, **values)}
        return [found[one] for one in ids if one in found]

    async def write(self, change: str, values: Mapping[str, object]) -> int:
        """Do the change if this process still holds its leases, and return how many rows it has changed.

        `change` is one statement that returns a column for each row, and has `IS_HELD` as a condition.
        Raises Deposed, NotSaved, Conflict, UnknownError.
        """
        await self.ready()
        change = self._for_user(change)
        statement = f"WITH {FENCE}, done AS ({change}) SELECT (SELECT count(*) FROM held), (SELECT count(*) FROM done)"
        fence = self._leases.values()
        [(held, done)] = await self._connection.write(statement, fence | dict(values))
        if held != fence["leases"]:
            raise self._leases.deposed()
        return int(done)

    async def write_again(self, change: str, values: Mapping[str, object]) -> int:
        """Do a change that may be done twice; else as `write`."""
        try:
            return await self.write(change, values)
        except UnknownError:
            return await surely(self.write(change, values))

    def news(self, kind: Kind, thing_id: str) -> dict[str, object]:
        """Return what `TELL` needs."""
        return {
            "phone_channel": self.identity.channel(),
            "news": f"{kind} {thing_id} {self.identity.session}",
        }

    def _for_user(self, statement: str) -> str:
        return statement.format(**(_OF_PHONE if self.identity.sees_phone else _OF_AGENT))


async def surely(work: Awaitable[T]) -> T:
    """Do what finds out about a write with an unknown outcome. Raises NotSaved: that cannot be found out now."""
    try:
        return await work
    except UnknownError as error:
        raise NotSaved(f"it is not known whether this was saved: {error}") from None
    except (Conflict, Deposed, Missing, NotSaved, Unreadable, TooNew):
        raise
    except StoreError as error:
        raise NotSaved(f"it is not known whether this was saved: {error}") from None
