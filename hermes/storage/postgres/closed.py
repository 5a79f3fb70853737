"""The closed asks in the database."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from hermes.errors import Missing, TooNew, Unreadable
from hermes.model.entry import Entry
from hermes.storage import names
from hermes.storage.postgres.entries import with_phone
from hermes.storage.postgres.identity import plain
from hermes.storage.postgres.leases import IS_HELD
from hermes.storage.postgres.rows import as_entry, surveyed
from hermes.storage.postgres.writing import Writer
from hermes.storage.store import Survey

_CLOSED: Final = """
SELECT id, machine, code, revision, body::text, {phone} FROM hermes.entries WHERE bot = %(bot)s AND closed_s IS NOT NULL
"""
_AGENT: Final = """
SELECT agent FROM hermes.entries
WHERE bot = %(bot)s AND machine = %(machine)s AND wait_id = %(wait_id)s AND closed_s IS NOT NULL LIMIT 1
"""
_TIME: Final = "least(greatest(closed_s, 0), 1e11)"  # an agent-only user writes it as it likes
_DAY: Final = f"to_char(to_timestamp({_TIME}) AT TIME ZONE 'UTC', 'YYYY-MM-DD')"
_DAYS: Final = f"""
SELECT {_DAY}, max({_TIME}) FROM hermes.entries WHERE bot = %(bot)s AND closed_s IS NOT NULL GROUP BY 1
"""
_FORGET: Final = f"""
DELETE FROM hermes.entries
WHERE bot = %(bot)s AND {IS_HELD} AND id IN (
    SELECT id FROM hermes.entries
    WHERE bot = %(bot)s AND closed_s IS NOT NULL AND {_DAY} = ANY(%(days)s)
    FOR UPDATE SKIP LOCKED
)
RETURNING id
"""


class ClosedEntries:
    """The closed asks that this user may see: a part of the store."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._identity = writer.identity

    async def survey_done(self, since_s: float) -> Survey:
        return surveyed(await self._found(" AND closed_s >= %(since_s)s", since_s=since_s))

    async def done(self, entry_id: str) -> Entry:
        if names.is_id(entry_id):
            for row in await self._found(" AND id = %(id)s", id=entry_id):
                return as_entry(*row)
        raise Missing("there is no closed ask with such an id")

    async def done_by(self, wait_id: str) -> str | None:
        await self._writer.ready()
        values = {"bot": self._identity.bot, "machine": plain(self._identity.machine), "wait_id": wait_id}
        rows = await self._writer.connection.read(_AGENT, values)
        return str(rows[0][0]) if rows else None

    async def newest_done(self, most: int) -> list[Entry]:
        found = []
        for row in await self._found(" ORDER BY closed_s DESC, id DESC LIMIT %(most)s", most=most):
            try:
                found.append(as_entry(*row))
            except (Unreadable, TooNew):
                continue
        return found

    async def days_done(self) -> dict[str, float]:
        await self._writer.ready()
        return dict(await self._writer.connection.read(_DAYS, {"bot": self._identity.bot}))

    async def forget_done(self, days: Collection[str]) -> int:
        """Delete the asks that were closed on these days. Agent-only users delete none."""
        await self._writer.ready()
        if not self._identity.sees_phone or not days:
            return 0
        return await self._writer.write_again(_FORGET, {"bot": self._identity.bot, "days": list(days)})

    async def _found(self, which: str, **values: object) -> list[tuple[Any, ...]]:
        await self._writer.ready()
        statement = with_phone(_CLOSED, sees_phone=self._identity.sees_phone) + which
        return await self._writer.connection.read(statement, values | {"bot": self._identity.bot})
