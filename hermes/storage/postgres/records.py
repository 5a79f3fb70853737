"""The records of one kind in the database, such as the notices of sessions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Final

from hermes.errors import Conflict, InUse, Missing, StoreError, TooNew, Unreadable
from hermes.storage.codec import Codec
from hermes.storage.postgres.connection import UnknownError
from hermes.storage.postgres.identity import plain
from hermes.storage.postgres.leases import IS_HELD
from hermes.storage.postgres.rows import LogOnce, as_columns, as_record, of_machine, usable
from hermes.storage.postgres.statements import MOST_TRIES, OWNER, TELL, Statements, surely
from hermes.storage.store import Kind, R, RecordStore

_LONGEST_ID: Final = 255

_COLUMNS: Final = "id, machine, revision, body::text, phone::text"
_ALL: Final = "FROM hermes.records WHERE bot = %(bot)s AND kind = %(kind)s"
_INSERT: Final = f"""
INSERT INTO hermes.records (bot, kind, id, machine, owner, revision, body {{phone_column}})
SELECT %(bot)s, %(kind)s, %(id)s, %(machine)s, {OWNER}, %(revision)s, %(body)s::json {{phone_value}} WHERE {IS_HELD}
ON CONFLICT (bot, kind, id)
"""
_CREATE: Final = f"{_INSERT} DO NOTHING RETURNING {TELL}"
_KEEP: Final = f"""
{_INSERT}
DO UPDATE SET revision = excluded.revision, body = excluded.body {{phone_again}} {{moved}}
WHERE records.revision < excluded.revision
RETURNING {TELL}
"""
_CHANGE: Final = f"""
UPDATE hermes.records SET revision = %(revision)s, body = %(body)s::json {{phone_set}} {{moved}}
WHERE bot = %(bot)s AND kind = %(kind)s AND id = %(id)s AND revision = %(before)s AND {IS_HELD}
RETURNING {TELL}
"""
_FORGET: Final = f"""
DELETE FROM hermes.records WHERE bot = %(bot)s AND kind = %(kind)s AND id = %(id)s AND {IS_HELD}
RETURNING {TELL}
"""


class Records(RecordStore[R]):
    """The records of one kind that this user may see."""

    def __init__(self, statements: Statements, kind: Kind, codec: Codec[R]) -> None:
        self._statements = statements
        self._identity = statements.identity
        self._kind = kind
        self._codec = codec
        self._log_once = LogOnce()

    async def survey(self) -> list[R]:
        return await self._read()

    async def all(self) -> list[R]:
        return await self._read(loudly=True)

    async def get(self, record_id: str) -> R:
        if _is_id(record_id):
            statement = f"SELECT {_COLUMNS} {_ALL} AND id = %(id)s"
            for row in await self._statements.read(statement, kind=self._kind, id=record_id):
                return self._decoded(*row)
        raise Missing("there is no record with such an id")

    async def create(self, record: R) -> R:
        await self._statements.ready()
        if not _is_id(record.id):
            raise StoreError("a record cannot have such an id")
        wanted = _at(record, 1)
        try:
            is_new = bool(await self._statements.write(_CREATE, self._values(wanted)))
        except UnknownError:
            # If the first statement was done, or is still under way, this one finds the record there.
            is_new = bool(await surely(self._statements.write(_CREATE, self._values(wanted))))
            is_new = is_new or await surely(self._is_saved(wanted))
        if not is_new:
            raise Conflict(f"there is a record {record.id} already")
        return wanted

    async def change(self, known: R, fn: Callable[[R], R]) -> R:
        await self._statements.ready()
        record = known
        for _ in range(MOST_TRIES):
            changed = _at(fn(record), record.revision)
            if changed == record:
                return record
            wanted = _at(changed, record.revision + 1)
            try:
                if await self._statements.write(_CHANGE, self._values(wanted) | {"before": record.revision}):
                    return wanted
                record = await self.get(known.id)
            except UnknownError:
                record = await surely(self.get(known.id))
                if record == wanted:
                    return wanted
        raise InUse(f"nothing was saved: other processes change the record {known.id} all the time")

    async def keep(self, record: R) -> R:
        await self._statements.ready()
        if await self._statements.write_again(_KEEP, self._values(record)):
            return record
        return await self.get(record.id)

    async def forget(self, record_id: str) -> None:
        """Remove a record. Agent-only users remove none: the phone side does. Raises NotSaved, Deposed."""
        await self._statements.ready()
        if not _is_id(record_id):
            raise StoreError("there is no record with such an id")
        if not self._identity.sees_phone:
            return
        await self._statements.write_again(_FORGET, self._key(record_id))

    async def _is_saved(self, wanted: R) -> bool:
        try:
            return await self.get(wanted.id) == wanted
        except Missing:
            return False

    async def _read(self, *, loudly: bool = False) -> list[R]:
        found = []
        for row in await self._statements.rows(_COLUMNS, _ALL, kind=self._kind):
            try:
                found.append(self._decoded(*row))
            except (Unreadable, TooNew) as error:
                if loudly:
                    self._log_once(f"{self._kind}/{row[0]}", error)
        return found

    def _decoded(self, record_id: str, machine: str, revision: int, body: str, phone: str | None) -> R:
        record = as_record(self._codec, self._kind, body, phone)
        if record.id != record_id:
            raise Unreadable(f"it holds another record, {record.id}")
        if machine:  # one of no machine is made by the phone side
            record = of_machine(record, machine)
        if plain(record.machine) != machine:
            raise Unreadable("it is of another machine than its row")
        return _at(record, usable(revision))  # whatever its body says: a change names the revision of the row

    def _key(self, record_id: str) -> dict[str, object]:
        return {"kind": self._kind, "id": record_id} | self._statements.news(self._kind, record_id)

    def _values(self, record: R) -> dict[str, object]:
        columns = as_columns(self._codec, self._kind, record, sees_phone=self._identity.sees_phone)
        return self._key(record.id) | columns | {"machine": plain(record.machine), "revision": record.revision}


def _is_id(text: str) -> bool:
    """Tell whether this can be the id of a record: one of ours, or that of a machine."""
    return 0 < len(text) <= _LONGEST_ID and text.isprintable()


def _at(record: R, revision: int) -> R:
    changed: R = dataclasses.replace(record, revision=revision)  # type: ignore[type-var]
    return changed
