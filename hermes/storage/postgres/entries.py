"""The asks in the database.

Each change names the revision that it began with. If another process was first, the ask is read again and the change
is made again from there. If the connection breaks in the statement, the ask is read again too, to see whether it was
changed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Final

from hermes.errors import Conflict, InUse, Missing, NotSaved, StoreAway, StoreError, TooNew, Unreadable
from hermes.model.entry import Entry, Phone
from hermes.storage import names
from hermes.storage.postgres.connection import UnknownError
from hermes.storage.postgres.identity import plain
from hermes.storage.postgres.leases import IS_HELD
from hermes.storage.postgres.rows import as_entry, as_row, surveyed
from hermes.storage.postgres.statements import MOST_TRIES, OWNER, TELL, Statements, surely
from hermes.storage.store import Survey

_INSERT: Final = f"""
INSERT INTO hermes.entries
    (bot, id, machine, owner, agent, wait_id, code, phase, revision, asked_s, body {{phone_column}})
SELECT %(bot)s, %(id)s, %(machine)s, {OWNER}, %(agent)s, %(wait_id)s, %(code)s, %(phase)s, %(revision)s, %(asked_s)s,
    %(body)s::json {{phone_value}}
WHERE {IS_HELD}
ON CONFLICT (bot, id)
"""
_CREATE: Final = f"{_INSERT} DO NOTHING RETURNING {TELL}"
_KEEP: Final = f"""
{_INSERT}
DO UPDATE SET code = excluded.code, phase = excluded.phase, revision = excluded.revision, wait_id = excluded.wait_id,
    body = excluded.body {{phone_again}}
WHERE entries.closed_s IS NULL AND entries.revision < excluded.revision
RETURNING {TELL}
"""
_CHANGE: Final = f"""
UPDATE hermes.entries
SET code = %(code)s, phase = %(phase)s, revision = %(revision)s, wait_id = %(wait_id)s, body = %(body)s::json
    {{phone_set}}
WHERE bot = %(bot)s AND id = %(id)s AND revision = %(before)s AND closed_s IS NULL AND {IS_HELD}
RETURNING {TELL}
"""
_SETTLE: Final = f"""
UPDATE hermes.entries SET closed_s = extract(epoch FROM clock_timestamp())
WHERE bot = %(bot)s AND id = %(id)s AND closed_s IS NULL AND {IS_HELD}
RETURNING {TELL}
"""
_FORGET: Final = f"""
DELETE FROM hermes.entries WHERE bot = %(bot)s AND id = %(id)s AND closed_s IS NULL AND {IS_HELD}
RETURNING {TELL}
"""
_COLUMNS: Final = "id, machine, code, revision, body::text, {phone}"
_OPEN: Final = "FROM hermes.entries WHERE bot = %(bot)s AND closed_s IS NULL"
_CLOSED: Final = "FROM hermes.entries WHERE bot = %(bot)s AND closed_s IS NOT NULL"
_HAS_ID: Final = "SELECT EXISTS (SELECT FROM hermes.entries WHERE bot = %(bot)s AND id = %(id)s)"
_HAS_CODE: Final = "SELECT EXISTS (SELECT FROM hermes.entries WHERE bot = %(bot)s AND code = %(code)s)"
_AGENT: Final = """
SELECT agent FROM hermes.entries
WHERE bot = %(bot)s AND machine = %(machine)s AND wait_id = %(wait_id)s AND closed_s IS NOT NULL LIMIT 1
"""
_TIME: Final = "least(greatest(closed_s, 0), 1e11)"  # an agent-only user writes it as it likes
_DAY: Final = f"to_char(to_timestamp({_TIME}) AT TIME ZONE 'UTC', 'YYYY-MM-DD')"
_DAYS: Final = f"""
SELECT {_DAY}, max({_TIME}) FROM hermes.entries WHERE bot = %(bot)s AND closed_s IS NOT NULL GROUP BY 1
"""
_FORGET_DONE: Final = f"""
DELETE FROM hermes.entries
WHERE bot = %(bot)s AND {IS_HELD} AND id IN (
    SELECT id FROM hermes.entries
    WHERE bot = %(bot)s AND closed_s IS NOT NULL AND {_DAY} = ANY(%(days)s)
    FOR UPDATE SKIP LOCKED
)
RETURNING id
"""
_PAUSE_S: Final = 1.0


class Entries:
    """The asks that this user may see: a part of the store."""

    def __init__(self, statements: Statements, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._statements = statements
        self._sleep = sleep
        self._identity = statements.identity

    # --- open asks ----------------------------------------------------------------------------------------------------

    async def survey(self) -> Survey:
        return await self._survey(machine=None)

    async def _survey(self, *, machine: str | None) -> Survey:
        """Return the open asks of this machine, or all that this user may see."""
        return surveyed(await self._statements.rows(_COLUMNS, _OPEN + _of(machine), machine=machine))

    async def _revisions(self, *, machine: str | None) -> dict[str, int]:
        """Map the id of each open ask of this machine, or of all, to its revision."""
        return dict(await self._statements.read(f"SELECT id, revision {_OPEN}{_of(machine)}", machine=machine))

    async def get(self, entry_id: str) -> Entry:
        return await self._one(_OPEN, entry_id)

    async def new_id(self) -> str:
        while True:
            entry_id = names.random_id()
            if await self._statements.read(_HAS_ID, id=entry_id) == [(False,)]:
                return entry_id

    async def new_code(self, open_entries: Iterable[Entry]) -> str:
        taken = {entry.code for entry in open_entries}
        while True:
            code = names.random_code()
            if code not in taken and await self._statements.read(_HAS_CODE, code=code) == [(False,)]:
                return code

    async def create(self, entry: Entry) -> Entry:
        """Save a new ask.

        If the outcome is not known it is found out, however long the database is away (unless its disk is full): an ask
        that is told again would be saved twice.
        """
        await self._statements.ready()
        wanted = self._seen(replace(entry, revision=1))
        is_doubtful = False
        while True:
            try:
                if await self._statements.write(_CREATE, self._values(wanted)):
                    return wanted
                return await self._made_before(wanted, is_doubtful=is_doubtful)
            except UnknownError:
                is_doubtful = True
            except (NotSaved, StoreAway) as error:
                if not is_doubtful or getattr(error, "disk_full", False):
                    raise
            await self._sleep(_PAUSE_S)

    async def _made_before(self, wanted: Entry, *, is_doubtful: bool) -> Entry:
        """Return the ask that a doubtful try has made, or its next version. Raises Conflict: it is another one."""
        if is_doubtful:
            with suppress(Missing):
                found = await self.get(wanted.id)
                if found.ask == wanted.ask:
                    return found
        raise Conflict(f"there is an ask {wanted.id} already")

    async def change(self, entry_id: str, fn: Callable[[Entry], Entry], known: Entry | None = None) -> Entry:
        await self._statements.ready()
        entry = known if known is not None else await self.get(entry_id)
        for _ in range(MOST_TRIES):
            changed = replace(fn(entry), revision=entry.revision)
            if changed == entry:
                return entry
            if changed.id != entry_id:
                raise StoreError(f"entry {entry_id} cannot become {changed.id}")
            wanted = self._seen(replace(changed, revision=entry.revision + 1))
            try:
                if await self._statements.write(_CHANGE, self._values(wanted) | {"before": entry.revision}):
                    return wanted
                entry = await self.get(entry_id)
            except UnknownError:
                entry = await surely(self.get(entry_id))
                if entry == wanted:
                    return wanted
        raise InUse(f"nothing was saved: other processes change the ask {entry_id} all the time")

    async def keep(self, entry: Entry) -> Entry:
        await self._statements.ready()
        wanted = self._seen(entry)
        if await self._statements.write_again(_KEEP, self._values(wanted)):
            return wanted
        return await self.get(entry.id)

    async def forget(self, entry_id: str) -> None:
        """Remove an open ask. An agent-only user may not do it."""
        await self._statements.ready()
        await self._statements.write_again(_FORGET, self._key(entry_id))

    async def settle(self, entry_id: str, known: Entry | None = None) -> None:
        await self._statements.ready()
        if known is None:
            await self.get(entry_id)
        try:
            is_closed = await self._statements.write(_SETTLE, self._key(entry_id))
        except UnknownError:
            await surely(self._statements.write(_SETTLE, self._key(entry_id)))  # it may be closed already
            is_closed = True
        if not is_closed:
            raise Missing(f"there is no open ask {entry_id}")

    # --- closed asks --------------------------------------------------------------------------------------------------

    async def survey_done(self, since_s: float) -> Survey:
        late = f"{_CLOSED} AND closed_s >= %(since_s)s"
        return surveyed(await self._statements.rows(_COLUMNS, late, since_s=since_s))

    async def done(self, entry_id: str) -> Entry:
        return await self._one(_CLOSED, entry_id)

    async def done_by(self, wait_id: str) -> str | None:
        await self._statements.ready()
        rows = await self._statements.read(_AGENT, machine=plain(self._identity.machine), wait_id=wait_id)
        return str(rows[0][0]) if rows else None

    async def newest_done(self, most: int) -> list[Entry]:
        found = []
        newest = "ORDER BY closed_s DESC, id DESC LIMIT %(most)s"
        for row in await self._statements.rows(_COLUMNS, _CLOSED, newest, most=most):
            with suppress(Unreadable, TooNew):
                found.append(as_entry(*row))
        return found

    async def days_done(self) -> dict[str, float]:
        return dict(await self._statements.read(_DAYS))

    async def forget_done(self, days: Collection[str]) -> int:
        """Delete the asks that were closed on these days. Agent-only users delete none."""
        await self._statements.ready()
        if not self._identity.sees_phone or not days:
            return 0
        return await self._statements.write_again(_FORGET_DONE, {"days": list(days)})

    async def _one(self, which: str, entry_id: str) -> Entry:
        if names.is_id(entry_id):  # ids also come from the phone
            for row in await self._statements.read(f"SELECT {_COLUMNS} {which} AND id = %(id)s", id=entry_id):
                return as_entry(*row)
        raise Missing("there is no ask with such an id")

    def _seen(self, entry: Entry) -> Entry:
        """Return the ask as this user reads it."""
        return entry if self._identity.sees_phone else replace(entry, phone=Phone(0))

    def _key(self, entry_id: str) -> dict[str, object]:
        return {"id": entry_id} | self._statements.news("entries", entry_id)

    def _values(self, entry: Entry) -> dict[str, object]:
        return as_row(entry) | self._statements.news("entries", entry.id)


def _of(machine: str | None) -> str:
    return "" if machine is None else " AND machine = %(machine)s"
