"""The book of open asks: in memory what the store has on disk, found by identity.

The steps of the listener (intake, posting, delivery, expiry) meet here and nowhere else. Every change is on disk
before it can be seen here; `on_change` then wakes whoever has something to do about it.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from hermes import dialog
from hermes.errors import Conflict, Missing, Stuck, Unreadable
from hermes.model import Entry, Phone, Step, Timing

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from hermes.model import Ask, Event, Route, Source
    from hermes.store import Store

T = TypeVar("T")

log = logging.getLogger(__name__)

REMEMBERED_S: Final = 86400.0
"""How long Telegram keeps an update: for as long the ids that closed asks have seen are remembered."""

Identity = tuple[str, ...]


class Book:
    """All entries that are not closed.

    `chat_id` is where new asks are posted; `retimed(entry, extra_s)` gives the timing of an ask that a person
    just touched, `routed(entry)` the route of a decision that was just made, None where that needs a closer look.
    """

    def __init__(
        self,
        store: Store,
        *,
        chat_id: int,
        now: Callable[[], float],
        retimed: Callable[[Entry, float], Timing],
        routed: Callable[[Entry], Route | None] = lambda _: None,
        on_change: Callable[[Entry], None],
    ) -> None:
        self.store = store
        self.chat_id = chat_id
        self._now = now
        self._retimed = retimed
        self._routed = routed
        self._on_change = on_change
        self._open: dict[str, Entry] = {}
        self._by_identity: dict[Identity, str] = {}
        self._closed: dict[Identity, str] = {}
        self._codes: dict[str, Entry] = {}
        self._seen_by_closed: set[int] = set()

    def open(self, *, keep_s: float) -> None:
        """Read everything in; `keep_s` is for how long closed asks stay known."""
        for entry in self.store.open():
            self._index(entry)
        now_s = self._now()
        for entry in self.store.recent_done(now_s - keep_s):
            outcome = entry.state.outcome
            self._remember_closed(entry, fresh=outcome is not None and outcome.at_s > now_s - REMEMBERED_S)

    def entries(self) -> list[Entry]:
        """Return the open entries in the order asked."""
        return sorted(self._open.values(), key=lambda entry: (entry.asked_s, entry.id))

    def get(self, entry_id: str) -> Entry | None:
        """Return the open entry, or None where it is closed or was never there."""
        return self._open.get(entry_id)

    def find(self, source: Source) -> Entry | None:
        """Return the open entry with this identity."""
        for identity in identities(source):
            entry = self._open.get(self._by_identity.get(identity, ""))
            # Some providers repeat their call ids: with another request id it is another ask.
            if entry is not None and _same(entry.ask.source, source):
                return entry
        return None

    def is_closed(self, source: Source) -> bool:
        """Tell whether an ask with this request id was settled already."""
        return source.request_id is not None and identities(source)[0] in self._closed

    def closed(self) -> Collection[Identity]:
        """Return the agent, machine and request id of what was settled."""
        return self._closed.keys()

    def was_seen(self, update_id: int) -> bool:
        """Tell whether a closed ask has taken this update in."""
        return update_id in self._seen_by_closed

    def create(self, ask: Ask, *, matching: bool = False, waits: bool = False) -> Entry:
        """Take a new ask in, for which a hook waits (`waits`). Raises NotSaved."""
        entry = Entry(
            id=self.store.new_id(),
            code=self.store.new_code([*self._open.values(), *self._codes.values()]),
            ask=ask,
            state=dialog.start(ask, matching=matching),
            phone=Phone(self.chat_id),
            asked_s=self._now(),
            waits=waits,
        )
        entry = self.store.create(entry)
        self._index(entry)
        self._on_change(entry)
        return entry

    def apply(self, entry_id: str, event: Event) -> Step:
        """Let an event happen to an open entry; on disk when this returns. Raises NotSaved, Missing."""
        steps: list[Step] = []

        def happen(entry: Entry) -> Entry:
            step = dialog.step(entry.ask, entry.state, event)
            steps.append(step)
            entry = replace(entry, state=step.state)
            if step.state.phase == "sending" and entry.route is None:
                entry = replace(entry, route=self._routed(entry))
            return replace(entry, timing=self._retimed(entry, step.extra_s)) if step.touched else entry

        self.change(entry_id, happen)
        return steps[-1]

    def change(self, entry_id: str, fn: Callable[[Entry], Entry]) -> Entry:
        """Change an open entry; on disk when this returns. Raises NotSaved, Missing."""
        before = self._open.get(entry_id)
        entry = self._on_file(before, lambda: self.store.change(entry_id, fn))
        self._index(entry)
        if before is None or entry.revision != before.revision:
            self._on_change(entry)
        return entry

    def close(self, entry_id: str) -> None:
        """Put a settled entry away, once its last screen is on the phone or can never be."""
        entry = self._open[entry_id]
        self._on_file(entry, lambda: self.store.settle(entry_id))
        del self._open[entry_id]
        for identity in identities(entry.ask.source):
            if self._by_identity.get(identity) == entry_id:
                del self._by_identity[identity]
        self._remember_closed(entry, fresh=True)

    def _on_file(self, known: Entry | None, act: Callable[[], T]) -> T:
        """Do this to an entry's file; one that was damaged or taken away under our hands is written anew first."""
        try:
            return act()
        except (Missing, Unreadable) as error:
            if known is None:
                raise
            log.error("entry %s: its file is bad (%s); it is written anew", known.id, error)  # noqa: TRY400 (no defect)
            try:
                self.store.restore(known)
            except Conflict:
                message = f"the damaged file of entry {known.id} could not be put into quarantine"
                raise Stuck(f"{message}, and is not written over") from error
            return act()

    def _index(self, entry: Entry) -> None:
        self._open[entry.id] = entry
        for identity in identities(entry.ask.source):
            self._by_identity[identity] = entry.id

    def _remember_closed(self, entry: Entry, *, fresh: bool) -> None:
        if entry.ask.source.request_id is not None:
            self._closed[identities(entry.ask.source)[0]] = entry.id
        if fresh:
            self._seen_by_closed.update(entry.state.seen)
            self._codes[entry.code] = entry


def identities(source: Source) -> tuple[Identity, ...]:
    """Return the keys by which an ask is the same: its request id, and its call in its session."""
    keys: list[Identity] = []
    if source.request_id is not None:
        keys.append((source.agent, source.machine, source.request_id))
    if source.call_id is not None:
        keys.append((source.agent, source.machine, source.session_id, source.call_id))
    return tuple(keys)


def _same(known: Source, other: Source) -> bool:
    return None in (known.request_id, other.request_id) or known.request_id == other.request_id
