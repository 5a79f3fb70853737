"""Asks and records as rows: their bodies as the codec writes them, but for what is the phone side's alone.

That has a column of its own, which a user of an agent-only machine cannot write: what a person writes goes to the ask
or the session whose message it replies to, or that waits for a text, and no other machine may draw it to itself.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from hermes.errors import StoreError, TooNew, Unreadable
from hermes.hook import spool
from hermes.model.ask import Source
from hermes.model.entry import Entry
from hermes.storage import store
from hermes.storage.codec import ENTRIES, Codec, json_object
from hermes.storage.names import is_code
from hermes.storage.postgres.identity import plain
from hermes.storage.store import Kind, Survey

log = logging.getLogger(__name__)
T = TypeVar("T")

FIRST_S: Final = -6e10
LAST_S: Final = 1e11
"""All times (seconds from the epoch) that can be shown as a date, with room for a duration."""
MOST_REVISION: Final = 2**62
"""The column of a row has room for this one, and for all that follow."""
_NO_PHONE: Final = '{"chat_id":0}'
_HEARD: Final = ("armed", "joining", "due_s", "seen")
"""The parts of an ask's state that say which texts are its own."""
_PHONE: Final[dict[Kind, frozenset[str]]] = {
    "notices": frozenset({"is_muted", "retry_shown", "shown", "outdated", "earlier"}),
    "prompts": frozenset({"user", "chat_id", "thread_id", "parts", "due_s", "choices", "line"}),
    "cards": frozenset(
        {"chat_id", "messages", "armed_for", "armed_s", "armed_in", "typing", "about", "is_muted", "shown", "drawn"}
        | {"is_wanted", "wanted_s"}
    ),
}
"""The parts of a record that are the phone side's."""


def as_row(entry: Entry) -> dict[str, object]:
    """Return the values of the columns of this ask."""
    record = json.loads(ENTRIES.encode(entry))
    phone = record["entry"].pop("phone")
    phone["heard"] = {name: record["entry"]["state"].pop(name) for name in _HEARD}
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


def as_entry(entry_id: str, machine: str, code: str, revision: int, body: str, phone: str | None) -> Entry:
    """Return the ask in this row; `phone` is None if this user may not see it. Raises Unreadable, TooNew.

    The columns decide, whatever a body says: no two asks have one code, and a change names the revision of the row.
    """
    record = json_object(body)
    if isinstance(record.get("entry"), dict):
        shown = code if is_code(code) else ""  # an agent-only user writes it as it likes
        record["entry"] |= {"code": shown, "phone": json.loads(_NO_PHONE if phone is None else phone)}
        _hear(record["entry"])
    try:
        entry = ENTRIES.decode(_written(record).encode())
    except TooNew as error:
        raise TooNew(f"the ask {entry_id} is left alone: {error}; upgrade this one") from None
    if entry.id != entry_id:
        raise Unreadable(f"it holds another entry, {entry.id}")
    _check_times(entry)
    source = of_machine(entry.ask.source, machine)
    return replace(entry, ask=replace(entry.ask, source=source), revision=usable(revision))


def _hear(entry: dict[str, Any]) -> None:
    """Put what the phone side has heard into the state of this ask, and leave out what its body says of that."""
    state, heard = entry.get("state"), entry["phone"].pop("heard", {})
    if isinstance(state, dict):
        is_over = state.get("phase") == "settled"  # by an agent side that does not see it
        wanted = {"seen"} if is_over else set(_HEARD)
        kept = {name: value for name, value in state.items() if name not in _HEARD}
        entry["state"] = kept | {name: value for name, value in heard.items() if name in wanted}


def as_columns(codec: Codec[Any], kind: Kind, record: Any, *, sees_phone: bool) -> dict[str, object]:
    """Return the body and the phone's part of this record.

    A user of an agent-only machine writes the body alone. It leaves the phone's part there: the row may be one of an
    earlier Hermes, which has it nowhere else.
    """
    whole = json.loads(codec.encode(record))
    phone = _taken(whole[codec.key], _PHONE.get(kind, frozenset())) if sees_phone else {}
    return {"body": _written(whole), "phone": _written(phone)}


def as_record(codec: Codec[T], kind: Kind, body: str, phone: str | None) -> T:
    """Return the record in this row; `phone` is None in a row of an earlier Hermes. Raises Unreadable, TooNew."""
    whole = json_object(body)
    if phone is not None and isinstance(whole.get(codec.key), dict):
        _taken(whole[codec.key], _PHONE.get(kind, frozenset()))
        whole[codec.key] |= json.loads(phone)
    record = codec.decode(_written(whole).encode())
    _check_times(record)
    return record


def _taken(values: dict[str, Any], names: frozenset[str]) -> dict[str, Any]:
    """Take these values out, and return them."""
    return {name: values.pop(name) for name in list(values) if name in names}


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


def usable(revision: int) -> int:
    """Return the revision. Raises Unreadable: the next one may have no room, so that nothing could be saved."""
    if revision > MOST_REVISION:
        raise Unreadable("it has a revision that cannot be")
    return revision


def _check_times(value: object) -> None:
    """Raise Unreadable for a time that cannot be: a row with one can be neither saved again nor shown as a date.

    An agent-only user could write such a row, and it would stop the work on all others. All floats are seconds.
    """
    if isinstance(value, float) and not FIRST_S <= value <= LAST_S:  # true for NaN, too
        raise Unreadable("it contains a time that cannot be")
    if isinstance(value, tuple):
        for one in value:
            _check_times(one)
    elif is_dataclass(value):
        for field in fields(value):
            _check_times(getattr(value, field.name))


def _written(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def surveyed(rows: Iterable[tuple[Any, ...]]) -> Survey:
    """Read rows of all that `as_entry` needs; the names of those that cannot be read are `entries/ID`."""
    return store.surveyed((Path("entries", row[0]), partial(as_entry, *row)) for row in rows)


class LogOnce:
    """Log each row that is left alone, once."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def __call__(self, what: str, why: str | StoreError) -> None:
        """Log that this row cannot be read."""
        if what not in self._told:
            self._told.add(what)
            log.error("%s in the database is left alone: %s", what, why)
