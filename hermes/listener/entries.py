"""The open asks in memory, as the store has them on disk, found by their ids and identities.

The parts of the listener share their state only here. Each change is on disk before it is visible here; then the entry
goes to the queue `wakes`, which the workers read.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Final
from weakref import WeakValueDictionary

from hermes.chat.screens.settled import end_in_brief
from hermes.core import dialog
from hermes.core.answer_clock import AnswerTimes
from hermes.core.intake import in_short
from hermes.core.topics import root_of
from hermes.errors import Conflict, Deposed, Missing, NotSaved, StoreAway, StoreError
from hermes.hook import spool
from hermes.listener.wakes import Wakes
from hermes.model.ask import Ask, Source
from hermes.model.entry import Closed, Entry, Phone
from hermes.model.events import Disarmed, Event
from hermes.model.state import Step
from hermes.storage.store import Store

log = logging.getLogger(__name__)

RECENT: Final = 200
"""The number of closed asks that are read at a start and remembered in short (`Closed`)."""
LATELY: Final = 20
"""So many of the asks that were closed last are looked at when a text may have been typed for one of them."""
SEEN: Final = 1000
"""The number of update ids of closed asks that are remembered, since Telegram may send the newest updates again."""

Identity = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unsaved:
    """The error of the last new ask if it could not be saved, else None, and the number of periods of such errors."""

    error: NotSaved | None = None
    times: int = 0


class Entries:
    """All entries that are not closed. The memory that it takes does not grow with the number of closed asks.

    `recently_closed` has the last closed asks of this machine, the newest at its end. `unsaved` tells of new asks that
    could not be saved.

    `arriving` is held while it is decided to which entry an ask belongs, so that no ask gets two. `chat_id` is the chat
    for new asks, `newest_message` the highest message id known there. `now` is the epoch clock of the store.
    """

    def __init__(self, store: Store, times: AnswerTimes, *, chat_id: int) -> None:
        self.store = store
        self.now = store.now
        self.chat_id = chat_id
        self._machine = store.home.machine() if store.is_shared else None
        self.newest_message = 0
        self.wakes = Wakes()
        self.arriving = asyncio.Lock()
        self._times = times
        self._open: dict[str, Entry] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._by_identity: dict[Identity, str] = {}
        self.recently_closed: deque[Closed] = deque(maxlen=RECENT)
        self._seen_by_closed: deque[int] = deque(maxlen=SEEN)
        self._said: dict[str, str] = {}
        self.unsaved = Unsaved()

    async def open(self) -> None:
        """Read all open asks, and the last closed ones in short. Raises StoreError."""
        for entry in await self.store.open():
            self._index(entry)
        for entry in reversed(await self.store.newest_done(RECENT)):
            self._remember_closed(entry)

    async def lay_out_again(self) -> None:
        """Write all open entries from memory into a store whose folder was removed or replaced.

        Raises:
            NotSaved: some of them are not written yet.
            StoreError: the store cannot be opened.
        """
        await self.store.open()
        for entry_id in [entry.id for entry in self.all()]:
            async with self._lock(entry_id):
                entry = self._open.get(entry_id)
                if entry is not None:
                    with self.apart(entry_id):
                        self._index(await self.store.keep(entry))

    def all(self) -> list[Entry]:
        """Return the open entries, the one that was asked first at the start."""
        return sorted(self._open.values(), key=lambda entry: (entry.asked_s, entry.id))

    def ours(self) -> list[Entry]:
        """Return the open entries of this machine's agents, as `all` does."""
        return [entry for entry in self.all() if self.is_ours(entry)]

    def is_ours(self, entry: Entry) -> bool:
        """Tell whether an agent of this machine asks."""
        return self.is_here(entry.ask.source)

    def is_here(self, source: Source) -> bool:
        """Tell whether a session is one of this machine."""
        return self._machine in {None, source.machine}

    def get(self, entry_id: str) -> Entry | None:
        """Return the open entry with this id, or None if it is closed or never existed."""
        return self._open.get(entry_id)

    def find(self, source: Source) -> Entry | None:
        """Return the open entry with an identity of this source, or None."""
        for identity in identities(source):
            entry = self._open.get(self._by_identity.get(identity, ""))
            # Some providers repeat call ids: an entry with another request id is another ask.
            if entry is not None and _same(entry.ask.source, source):
                return entry
        return None

    async def is_closed(self, source: Source) -> bool:
        """Tell whether an ask with this request id is already closed. Raises StoreError."""
        if source.request_id is None:
            return False
        wait_id = spool.wait_id(source.agent, source.machine, source.request_id)
        return await self.store.done_by(wait_id) is not None

    async def over_lately(self, source: Source) -> list[Entry]:
        """Return the asks of a session and its subagents that are settled, or were closed last. Raises StoreError."""
        settled = [entry for entry in self.all() if entry.state.phase == "settled"]
        over = [*settled, *await self.store.newest_done(LATELY)]
        return [entry for entry in over if root_of(entry.ask.source).session == source.session]

    async def closed_with_code(self, code: str) -> Entry | None:
        """Return the closed ask with this code if it is among the RECENT last ones, else None. Raises StoreError."""
        return next((entry for entry in await self.store.newest_done(RECENT) if entry.code == code), None)

    def note_message(self, message_id: int) -> None:
        """Note the id of a message in the chat: the messages of an ask that is created later have higher ids."""
        self.newest_message = max(self.newest_message, message_id)

    def was_seen(self, update_id: int) -> bool:
        """Tell whether an ask has already handled this update."""
        by_open = any(update_id in entry.state.seen for entry in self._open.values())
        return by_open or update_id in self._seen_by_closed

    async def create(self, ask: Ask, *, matching: bool = False, waits: bool = False) -> Entry:
        """Save a new ask, and return its entry. `waits`: a hook waits for the answer. Raises NotSaved."""
        entry = Entry(
            id=await self.store.new_id(),
            code="",
            ask=ask,
            state=dialog.start(ask, matching=matching),
            phone=Phone(),
            asked_s=self.now(),
            waits=waits,
        )
        try:
            entry = await self.store.create(entry)
        except NotSaved as error:
            self.unsaved = Unsaved(error, self.unsaved.times + (self.unsaved.error is None))
            raise
        self.unsaved = Unsaved(None, self.unsaved.times)
        self._index(entry)
        self.wakes.put(entry.id)
        return entry

    def is_quiet(self) -> bool:
        """Tell whether the phone must not ring now."""
        return self._times.is_quiet()

    async def place(self, entry: Entry) -> Entry:
        """Give a new ask its code and its place in the chat; return it, on disk. Raises as `change`."""
        code = await self.store.new_code(self.all())
        phone = Phone(self.chat_id, after_id=self.newest_message)
        return await self.change(entry.id, lambda found: replace(found, code=code, phone=phone), seen=entry)

    async def apply(self, entry_id: str, event: Event, *, seen: Entry | None = None) -> Step:
        """Apply an event to an open entry; the result is on disk when this returns. Raises as `change`."""
        before: Entry | None = None
        steps: list[Step] = []

        def happen(entry: Entry) -> Entry:
            nonlocal before
            step = dialog.step(entry.ask, entry.state, event)
            before = entry
            steps.append(step)
            entry = replace(entry, state=step.state)
            return replace(entry, timing=self._times.touched(entry, step.extra_s)) if step.touched else entry

        after = await self.change(entry_id, happen, seen=seen)
        if after.state.phase == "settled" and before is not None and before.state.phase != "settled":
            log.info("settled: entry %s", entry_id, extra={"told": end_in_brief(after)})
        return steps[-1]

    async def disarm(self, user_id: int, *, but: str = "") -> None:
        """Let no ask but this one take the next plain text of this user. Raises as `change`."""
        for entry in self.all():
            armed = entry.state.armed
            if armed is not None and armed.user_id == user_id and entry.id != but:
                await self.apply(entry.id, Disarmed())

    async def change(self, entry_id: str, fn: Callable[[Entry], Entry], *, seen: Entry | None = None) -> Entry:
        """Change an open entry; on disk when this returns.

        `fn` is pure and gets the newest entry. Give the entry that a decision rests on as `seen`, unless `fn` decides
        by itself.

        Raises:
            StoreError: NotSaved, Missing, Stuck or TooNew; Conflict if the entry is no longer as `seen`.
        """
        async with self._lock(entry_id):
            before = self._open.get(entry_id)
            if seen is not None and not _is_same(before, seen):
                raise Conflict(f"entry {entry_id} has changed in the meantime")
            entry = await self.store.change(entry_id, fn, before)
            self._index(entry)
            self._said.pop(entry_id, None)
            if before is None or entry.revision != before.revision:
                self.wakes.put(entry.id)
            return entry

    async def close(self, entry: Entry) -> bool:
        """Close a settled entry, whose last screen is on the phone or can never be; False if it has changed since.

        Raises StoreError.
        """
        async with self._lock(entry.id):
            if not _is_same(self._open.get(entry.id), entry):
                return False
            await self.store.settle(entry.id, entry)
            self._drop(entry)
            return True

    async def refresh(self, entry_id: str) -> Entry | None:
        """Read an entry that another process has changed; if it was closed there, return it as it was closed.

        Such an entry stays here, settled, until it is dropped: its hook may still wait. Raises StoreError.
        """
        async with self._lock(entry_id):
            known = self._open.get(entry_id)
            try:
                entry = await self.store.get(entry_id)
            except Missing:
                if known is None:
                    return None
                with suppress(Missing):
                    known = await self.store.done(entry_id)
                self._open[entry_id] = known
                return known
            if known is None or known.revision < entry.revision:
                self._index(entry)
                self.wakes.put(entry_id)
            return None

    async def stale(self) -> set[str]:
        """Return the ids of the entries that are not here as the store has them. Raises StoreError."""
        found = await self.store.revisions()
        known = {entry.id: entry.revision for entry in self._open.values()}
        return {entry_id for entry_id, _ in found.items() ^ known.items()}

    def drop(self, entry: Entry) -> None:
        """Forget an entry that was closed by another process."""
        if entry.id in self._open:
            self._drop(entry)

    def _drop(self, entry: Entry) -> None:
        del self._open[entry.id]
        self._said.pop(entry.id, None)
        for identity in identities(entry.ask.source):
            if self._by_identity.get(identity) == entry.id:
                del self._by_identity[identity]
        self._remember_closed(entry)

    async def at_rest(self) -> None:
        """Return when the changes that are under way are over."""
        for lock in list(self._locks.values()):
            async with lock:
                pass

    def _lock(self, entry_id: str) -> asyncio.Lock:
        """Return the lock of this entry: one change at a time is saved and then visible here."""
        return self._locks.setdefault(entry_id, asyncio.Lock())

    @contextmanager
    def apart(self, entry_id: str) -> Iterator[None]:
        """Log an error of this entry alone, once, and go on, so that others are handled.

        Raises NotSaved, StoreAway, Deposed: nothing of any entry can be saved now.
        """
        try:
            yield
        except (NotSaved, StoreAway, Deposed):
            raise
        except StoreError as error:
            was_closed = isinstance(error, Missing) and entry_id not in self._open
            if not was_closed and self._is_news(entry_id, str(error)):
                log.error("entry %s: %s", entry_id, error)  # noqa: TRY400 (a bad file, not a defect)
        except Exception as error:  # the guard around one entry: its content may fit together in no way
            if self._is_news(entry_id, repr(error)):
                log.exception("entry %s could not be handled", entry_id)

    def _is_news(self, entry_id: str, said: str) -> bool:
        """Note what is said about an entry; tell whether that is another thing than the last time."""
        is_news = self._said.get(entry_id) != said
        self._said[entry_id] = said
        return is_news

    def _index(self, entry: Entry) -> None:
        self._open[entry.id] = entry
        if self.is_ours(entry):
            self._by_identity.update(dict.fromkeys(identities(entry.ask.source), entry.id))

    def _remember_closed(self, entry: Entry) -> None:
        if self.is_ours(entry):
            self.recently_closed.append(in_short(entry))
        self._seen_by_closed.extend(entry.state.seen)


def _is_same(known: Entry | None, seen: Entry) -> bool:
    return known is not None and known.revision == seen.revision


def identities(source: Source) -> tuple[Identity, ...]:
    """Return the keys that identify an ask of this machine: its request id, and its call id within its session.

    The machine id is none of them: a store that was removed may have another one for a moment.
    """
    keys: list[Identity] = []
    if source.request_id is not None:
        keys.append((source.agent, source.request_id))
    if source.call_id is not None:
        keys.append((source.agent, source.session_id, source.call_id))
    return tuple(keys)


def _same(known: Source, other: Source) -> bool:
    return None in (known.request_id, other.request_id) or known.request_id == other.request_id
