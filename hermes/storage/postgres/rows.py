"""An ask as a row: its body as the codec writes it, but for the phone, which has a column of its own."""

from __future__ import annotations

import json
import logging
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from hermes.errors import StoreError, TooNew, Unreadable
from hermes.hook import spool
from hermes.model.ask import Source
from hermes.storage.codec import ENTRIES
from hermes.storage.postgres.identity import plain
from hermes.storage.reading import Survey

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes.model.entry import Entry

log = logging.getLogger(__name__)
T = TypeVar("T")

_NO_PHONE: Final = '{"chat_id":0}'


def as_row(entry: Entry) -> dict[str, object]:
    """Return the values of the columns of this ask."""
    record = json.loads(ENTRIES.encode(entry))
    phone = record["entry"].pop("phone")
    source = entry.ask.source
    wait_id = "" if source.request_id is None else spool.wait_id(source.agent, source.machine, source.request_id)
    return {
        "id": entry.id,
        "machine": plain(source.machine),
        "agent": plain(source.agent),
        "wait_id": wait_id,
        "code": plain(entry.code),
        "phase": entry.state.phase,
        "revision": entry.revision,
        "asked_s": entry.asked_s,
        "body": _written(record),
        "phone": _written(phone),
    }


def as_entry(entry_id: str, machine: str, body: str, phone: str | None) -> Entry:
    """Return the ask in this row; `phone` is None if this user may not see it. Raises Unreadable, TooNew."""
    record = json.loads(body)
    if not isinstance(record, dict):
        raise Unreadable("it is not a JSON object")
    if isinstance(record.get("entry"), dict):
        record["entry"]["phone"] = json.loads(_NO_PHONE if phone is None else phone)
    try:
        entry = ENTRIES.decode(_written(record).encode())
    except TooNew as error:
        raise TooNew(f"the ask {entry_id} is left alone: {error}; upgrade this one") from None
    if entry.id != entry_id:
        raise Unreadable(f"it holds another entry, {entry.id}")
    return replace(entry, ask=replace(entry.ask, source=of_machine(entry.ask.source, machine)))


def of_machine(value: T, machine: str) -> T:
    """Return the value with each source in it on the machine of its row.

    An agent-only user writes bodies as it likes, but only in rows of its own machines: no answer and no prompt may go
    to another machine because a body names it.
    """
    changed: Any = value
    if isinstance(value, Source):
        changed = value if plain(value.machine) == machine else replace(value, machine=machine)
    elif isinstance(value, tuple):
        changed = tuple([of_machine(one, machine) for one in value])
    elif is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: of_machine(getattr(value, field.name), machine) for field in fields(value)}
        changed = replace(value, **parts)
    return cast("T", changed)


def _written(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def surveyed(rows: Iterable[tuple[Any, ...]]) -> Survey:
    """Read rows of id, machine, body and phone; the names of those that cannot be read are `entries/ID`."""
    entries, damaged, too_new = [], [], []
    for entry_id, machine, body, phone in rows:
        try:
            entries.append(as_entry(entry_id, machine, body, phone))
        except TooNew:
            too_new.append(Path("entries", entry_id))
        except Unreadable as error:
            damaged.append((Path("entries", entry_id), str(error)))
    return joined([Survey(tuple(entries), tuple(damaged), tuple(too_new), ())])


def joined(parts: Sequence[Survey]) -> Survey:
    """Return all of these as one, the oldest ask first."""
    entries = [entry for part in parts for entry in part.entries]
    damaged = tuple(one for part in parts for one in part.damaged)
    too_new = tuple(one for part in parts for one in part.too_new)
    return Survey(tuple(sorted(entries, key=lambda entry: (entry.asked_s, entry.id))), damaged, too_new, ())


class LogOnce:
    """Log each row that is left alone, once."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def __call__(self, what: str, why: str | StoreError) -> None:
        """Log that this row cannot be read."""
        if what not in self._told:
            self._told.add(what)
            log.error("%s in the database is left alone: %s", what, why)
