"""The records of one kind in the database, such as the notices of sessions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Final

from hermes.errors import Conflict, Missing, NotSaved, StoreError, TooNew, Unreadable
from hermes.storage.codec import Codec
from hermes.storage.postgres.connection import UnknownError
from hermes.storage.postgres.entries import OWNER, with_phone
from hermes.storage.postgres.identity import plain
from hermes.storage.postgres.leases import IS_HELD
from hermes.storage.postgres.rows import LogOnce, as_columns, as_record, of_machine, usable
from hermes.storage.postgres.writing import MOST_TRIES, TELL, Writer, surely
from hermes.storage.store import Kind, R, RecordStore

_LONGEST_ID: Final = 255

_ALL: Final = """
SELECT id, machine, revision, body::text, phone::text FROM hermes.records WHERE bot = %(bot)s AND kind = %(kind)s
"""
_CREATE: Final = f"""
INSERT INTO hermes.records (bot, kind, id, machine, owner, revision, body {{phone}})
SELECT %(bot)s, %(kind)s, %(id)s, %(machine)s, {OWNER}, %(revision)s, %(body)s::json {{phone_value}} WHERE {IS_HELD}
ON CONFLICT (bot, kind, id) {{on_conflict}}
RETURNING {TELL}
"""
_KEEP: Final = """
DO UPDATE SET revision = excluded.revision, body = excluded.body {phone_again} {moved}
WHERE records.revision < excluded.revision
"""
_CHANGE: Final = f"""
UPDATE hermes.records SET revision = %(revision)s, body = %(body)s::json {{phone_set}} {{moved}}
WHERE bot = %(bot)s AND kind = %(kind)s AND id = %(id)s AND revision = %(before)s AND {IS_HELD}
RETURNING {TELL}
"""
_MOVED: Final = f", machine = %(machine)s, owner = {OWNER}"
_FORGET: Final = f"""
DELETE FROM hermes.records WHERE bot = %(bot)s AND kind = %(kind)s AND id = %(id)s AND {IS_HELD}
RETURNING {TELL}
"""


class Records(RecordStore[R]):
    """The records of one kind that this user may see."""

    def __init__(self, writer: Writer, kind: Kind, codec: Codec[R]) -> None:
        self._writer = writer
        self._connection = writer.connection
        self._identity = writer.identity
        self._kind = kind
        self._codec = codec
        self._log_once = LogOnce()

    async def survey(self) -> list[R]:
        return [record for record in await self._read() if not isinstance(record, StoreError)]

    async def all(self) -> list[R]:
        return [record for record in await self._read(loudly=True) if not isinstance(record, StoreError)]

    async def get(self, record_id: str) -> R:
        await self._writer.ready()
        if _is_id(record_id):
            for row in await self._connection.read(_ALL + " AND id = %(id)s", self._key(record_id)):
                return self._decoded(*row)
        raise Missing("there is no record with such an id")

    async def create(self, record: R) -> R:
        await self._writer.ready()
        if not _is_id(record.id):
            raise StoreError("a record cannot have such an id")
        wanted = _at(record, 1)
        statement = self._for_user(_CREATE, on_conflict="DO NOTHING")
        try:
            is_new = bool(await self._writer.write(statement, self._values(wanted)))
        except UnknownError:
            # If the first statement was done, or is still under way, this one finds the record there.
            is_new = bool(await surely(self._writer.write(statement, self._values(wanted))))
            is_new = is_new or await surely(self._is_saved(wanted))
        if not is_new:
            raise Conflict(f"there is a record {record.id} already")
        return wanted

    async def change(self, known: R, fn: Callable[[R], R]) -> R:
        await self._writer.ready()
        record = known
        for _ in range(MOST_TRIES):
            changed = _at(fn(record), record.revision)
            if changed == record:
                return record
            wanted = _at(changed, record.revision + 1)
            try:
                if await self._writer.write(self._for_user(_CHANGE), self._values(wanted, before=record.revision)):
                    return wanted
                record = await self.get(known.id)
            except UnknownError:
                record = await surely(self.get(known.id))
                if record == wanted:
                    return wanted
        raise NotSaved(f"nothing was saved: other processes change the record {known.id} all the time")

    async def keep(self, record: R) -> R:
        await self._writer.ready()
        statement = self._for_user(_CREATE, on_conflict=self._for_user(_KEEP))
        if await self._writer.write_again(statement, self._values(record)):
            return record
        return await self.get(record.id)

    async def forget(self, record_id: str) -> None:
        """Remove a record. Agent-only users remove none: the phone side does. Raises NotSaved, Deposed."""
        await self._writer.ready()
        if not _is_id(record_id):
            raise StoreError("there is no record with such an id")
        if not self._identity.sees_phone:
            return
        news = self._writer.news(self._kind, record_id)
        await self._writer.write_again(_FORGET, self._key(record_id) | news)

    def _for_user(self, statement: str, **parts: str) -> str:
        # The user of an agent-only machine writes nothing of the phone's, and cannot move a row to another machine.
        is_phone = self._identity.sees_phone
        return with_phone(statement, sees_phone=is_phone).format(moved=_MOVED if is_phone else "", **parts)

    async def _is_saved(self, wanted: R) -> bool:
        try:
            return await self.get(wanted.id) == wanted
        except Missing:
            return False

    async def _read(self, *, loudly: bool = False) -> list[R | StoreError]:
        await self._writer.ready()
        found: list[R | StoreError] = []
        for row in await self._connection.read(_ALL, self._key("")):
            try:
                found.append(self._decoded(*row))
            except (Unreadable, TooNew) as error:
                found.append(error)
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
        return {"bot": self._identity.bot, "kind": self._kind, "id": record_id}

    def _values(self, record: R, *, before: int = 0) -> dict[str, object]:
        values = {"machine": plain(record.machine), "revision": record.revision, "before": before}
        columns = as_columns(self._codec, self._kind, record, sees_phone=self._identity.sees_phone)
        return self._key(record.id) | values | columns | self._writer.news(self._kind, record.id)


def _is_id(text: str) -> bool:
    """Tell whether this can be the id of a record: one of ours, or that of a machine."""
    return 0 < len(text) <= _LONGEST_ID and text.isprintable()


def _at(record: R, revision: int) -> R:
    changed: R = dataclasses.replace(record, revision=revision)  # type: ignore[type-var]
    return changed
