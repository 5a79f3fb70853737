"""The open asks in the database.

Each change names the revision that it began with. If another process was first, the ask is read again and the change
is made again from there. If the connection breaks in the statement, the ask is read again too, to see whether it was
changed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Final

from hermes.errors import Conflict, Missing, NotSaved, StoreAway, StoreError
from hermes.model.entry import Entry, Phone
from hermes.storage import names
from hermes.storage.postgres.connection import UnknownError
from hermes.storage.postgres.leases import IS_HELD
from hermes.storage.postgres.rows import LogOnce, as_entry, as_row, joined, surveyed
from hermes.storage.postgres.writing import MOST_TRIES, TELL, Writer, surely
from hermes.storage.store import Survey

OWNER: Final = """
coalesce((SELECT owner FROM hermes.machines WHERE bot = %(bot)s AND id = %(machine)s), current_user)
"""
"""The user of the machine that a row is for."""

_CREATE: Final = f"""
INSERT INTO hermes.entries
    (bot, id, machine, owner, agent, wait_id, code, phase, revision, asked_s, body {{phone}})
SELECT %(bot)s, %(id)s, %(machine)s, {OWNER}, %(agent)s, %(wait_id)s, %(code)s, %(phase)s, %(revision)s, %(asked_s)s,
    %(body)s::json {{phone_value}}
WHERE {IS_HELD}
ON CONFLICT (bot, id) {{on_conflict}}
RETURNING {TELL}
"""
_KEEP: Final = """
DO UPDATE SET code = excluded.code, phase = excluded.phase, revision = excluded.revision, wait_id = excluded.wait_id,
    body = excluded.body {phone_again}
WHERE entries.closed_s IS NULL AND entries.revision < excluded.revision
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
_OPEN: Final = """
SELECT id, machine, code, revision, body::text, {phone} FROM hermes.entries WHERE bot = %(bot)s AND closed_s IS NULL
"""
_HAS_CODE: Final = "SELECT EXISTS (SELECT FROM hermes.entries WHERE bot = %(bot)s AND code = %(code)s)"
_NEXT: Final = " AND id > %(after)s ORDER BY id LIMIT 500"
"""The asks are read in portions, because thousands of them are large as text."""
_REVISIONS: Final = "SELECT id, revision FROM hermes.entries WHERE bot = %(bot)s AND closed_s IS NULL"
_PAUSE_S: Final = 1.0
_HAS_ID: Final = "SELECT EXISTS (SELECT FROM hermes.entries WHERE bot = %(bot)s AND id = %(id)s)"


class OpenEntries:
    """The open asks: a part of the store."""

    def __init__(self, writer: Writer, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._writer = writer
        self._sleep = sleep
        self._connection = writer.connection
        self._identity = writer.identity
        self._log_once = LogOnce()

    async def survey(self) -> Survey:
        await self._writer.ready()
        return await self._survey(machine=None)

    async def _survey(self, *, machine: str | None) -> Survey:
        """Return the open asks of this machine, or all that this user may see."""
        statement = self._with_phone(_OPEN) + _of(machine) + _NEXT
        parts: list[Survey] = []
        after = ""
        while rows := await self._connection.read(statement, self._own(machine) | {"after": after}):
            parts.append(surveyed(rows))
            after = rows[-1][0]
        return joined(parts)

    async def _revisions(self, *, machine: str | None) -> dict[str, int]:
        """Map the id of each open ask of this machine, or of all, to its revision."""
        return dict(await self._connection.read(_REVISIONS + _of(machine), self._own(machine)))

    async def _load(self, *, machine: str | None) -> tuple[list[Entry], bool]:
        """As `_survey`; the rows that cannot be read are logged, and the flag tells that there are some."""
        survey = await self._survey(machine=machine)
        for path, why in survey.damaged:
            self._log_once(str(path), why)
        for path in survey.too_new:
            self._log_once(str(path), "a newer Hermes has written it; upgrade this one")
        return list(survey.entries), bool(survey.damaged or survey.too_new)

    async def get(self, entry_id: str) -> Entry:
        await self._writer.ready()
        rows = []
        if names.is_id(entry_id):  # ids also come from the phone
            statement = self._with_phone(_OPEN) + " AND id = %(id)s"
            rows = await self._connection.read(statement, {"bot": self._identity.bot, "id": entry_id})
        for row in rows:
            return as_entry(*row)
        raise Missing("there is no open ask with such an id")

    async def new_id(self) -> str:
        await self._writer.ready()
        while True:
            entry_id = names.random_id()
            if await self._connection.read(_HAS_ID, {"bot": self._identity.bot, "id": entry_id}) == [(False,)]:
                return entry_id

    async def new_code(self, open_entries: Iterable[Entry]) -> str:
        await self._writer.ready()
        taken = {entry.code for entry in open_entries}
        while True:
            code = names.random_code()
            values = {"bot": self._identity.bot, "code": code}
            if code not in taken and await self._connection.read(_HAS_CODE, values) == [(False,)]:
                return code

    async def create(self, entry: Entry) -> Entry:
        """Save a new ask.

        If the outcome is not known it is found out, however long the database is away (unless its disk is full): an ask
        that is told again would be saved twice.
        """
        await self._writer.ready()
        wanted = self._seen(replace(entry, revision=1))
        statement = self._with_phone(_CREATE).format(on_conflict="DO NOTHING")
        is_doubtful = False
        while True:
            try:
                if await self._writer.write(statement, self._values(wanted)):
                    return wanted
                return await self._made_before(wanted, is_doubtful=is_doubtful)
            except UnknownError:
                is_doubtful = True
            except (NotSaved, StoreAway) as error:
                if not is_doubtful or getattr(error, "disk_full", False):
                    raise
                await self._sleep(_PAUSE_S)

    def _own(self, machine: str | None) -> dict[str, object]:
        return {"bot": self._identity.bot, "machine": machine}

    async def _made_before(self, wanted: Entry, *, is_doubtful: bool) -> Entry:
        """Return the ask that a doubtful try has made, or its next version. Raises Conflict: it is another one."""
        if is_doubtful:
            with suppress(Missing):
                found = await self.get(wanted.id)
                if found.ask == wanted.ask:
                    return found
        raise Conflict(f"there is an ask {wanted.id} already")

    async def change(self, entry_id: str, fn: Callable[[Entry], Entry], known: Entry | None = None) -> Entry:
        await self._writer.ready()
        entry = known if known is not None else await self.get(entry_id)
        for _ in range(MOST_TRIES):
            changed = replace(fn(entry), revision=entry.revision)
            if changed == entry:
                return entry
            if changed.id != entry_id:
                raise StoreError(f"entry {entry_id} cannot become {changed.id}")
            wanted = self._seen(replace(changed, revision=entry.revision + 1))
            try:
                if await self._writer.write(self._with_phone(_CHANGE), self._values(wanted, before=entry.revision)):
                    return wanted
                entry = await self.get(entry_id)
            except UnknownError:
                entry = await surely(self.get(entry_id))
                if entry == wanted:
                    return wanted
        raise NotSaved(f"nothing was saved: other processes change the ask {entry_id} all the time")

    async def keep(self, entry: Entry) -> Entry:
        await self._writer.ready()
        wanted = self._seen(entry)
        statement = self._with_phone(_CREATE).format(on_conflict=self._with_phone(_KEEP))
        if await self._writer.write_again(statement, self._values(wanted)):
            return wanted
        return await self.get(entry.id)

    async def forget(self, entry_id: str) -> None:
        """Remove an open ask. An agent-only user may not do it."""
        await self._writer.ready()
        values = {"bot": self._identity.bot, "id": entry_id} | self._writer.news("entries", entry_id)
        await self._writer.write_again(_FORGET, values)

    async def settle(self, entry_id: str, known: Entry | None = None) -> None:
        await self._writer.ready()
        if known is None:
            await self.get(entry_id)
        values = {"bot": self._identity.bot, "id": entry_id} | self._writer.news("entries", entry_id)
        try:
            is_closed = await self._writer.write(_SETTLE, values)
        except UnknownError:
            await surely(self._writer.write(_SETTLE, values))  # it may be closed already
            is_closed = True
        if not is_closed:
            raise Missing(f"there is no open ask {entry_id}")

    def _seen(self, entry: Entry) -> Entry:
        """Return the ask as this user reads it."""
        return entry if self._identity.sees_phone else replace(entry, phone=Phone(0))

    def _values(self, entry: Entry, *, before: int = 0) -> dict[str, object]:
        news = self._writer.news("entries", entry.id)
        return as_row(entry) | {"bot": self._identity.bot, "before": before} | news

    def _with_phone(self, statement: str) -> str:
        """Name the column of the phone in this statement, if this user may see it."""
        return with_phone(statement, sees_phone=self._identity.sees_phone)


def _of(machine: str | None) -> str:
    return "" if machine is None else " AND machine = %(machine)s"


def with_phone(statement: str, *, sees_phone: bool) -> str:
    """Name the column of the phone in this statement, or leave it out."""
    places = {
        "{phone}": "phone::text" if statement.lstrip().startswith("SELECT") else ", phone",
        "{phone_value}": ", %(phone)s::json",
        "{phone_again}": ", phone = excluded.phone",
        "{phone_set}": ", phone = %(phone)s::json",
    }
    for place, words in places.items():
        without = "NULL" if words == "phone::text" else ""
        statement = statement.replace(place, words if sees_phone else without)
    return statement
