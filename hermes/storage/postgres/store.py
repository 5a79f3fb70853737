"""The store in PostgreSQL: what `storage.store.Store` promises, for several machines that share one bot.

A process that has not joined, such as `hermes status`, may read, and writes as its user of the database may. It makes
no tables, no file and no folder.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from hermes.errors import StoreError
from hermes.storage.codec import CARDS, LISTS, NOTICES, PROMPTS
from hermes.storage.postgres import membership, migrations, pooler
from hermes.storage.postgres.clock import TIME, SharedClock, awake_or_asleep
from hermes.storage.postgres.closed import ClosedEntries
from hermes.storage.postgres.connection import Connection
from hermes.storage.postgres.entries import OpenEntries
from hermes.storage.postgres.feed import Feed
from hermes.storage.postgres.identity import Identity
from hermes.storage.postgres.leases import Leases
from hermes.storage.postgres.phone import PhoneSide
from hermes.storage.postgres.prompt_files import PromptFileRows
from hermes.storage.postgres.records import Records
from hermes.storage.postgres.writing import Writer
from hermes.storage.prompt_files import PromptFolder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable

    from hermes.model.chat_memory import ChatMemory
    from hermes.model.entry import Entry
    from hermes.model.machine import Machine
    from hermes.storage.home import Home
    from hermes.storage.postgres.address import Address
    from hermes.storage.reading import Survey
    from hermes.storage.store import Changed, Missed

_LEAVING_S: Final = 3.0
"""A process that ends waits this long, at most, for a database. Its leases run out by themselves."""


class PostgresStore:
    """The asks, the records beside them and the memory of the chat, in the database at `address`.

    `bot_id` is None on a machine without the bot's token: the database knows the bot of its user. `monotonic` is a
    clock that also runs while the machine sleeps.
    """

    def __init__(
        self,
        home: Home,
        address: Address,
        bot_id: int | None,
        *,
        monotonic: Callable[[], float] = awake_or_asleep,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.home = home
        self.put_away = 0
        self.has_unread = False
        self._address = address
        self._sleep = sleep
        self._monotonic = monotonic
        self._identity = Identity(home.root, "", bot_id)
        self._connection = Connection(address)
        self._clock = SharedClock(home.now, monotonic)
        self._leases = Leases(self._connection, self._identity, self._clock, monotonic)
        writer = Writer(self._connection, self._identity, self._leases, self._learn)
        self._ready = writer.ready
        self._open = OpenEntries(writer, sleep)
        self._closed = ClosedEntries(writer)
        self._phone = PhoneSide(writer, home)
        self._feed = Feed(address, self._identity, self._leases.is_phone, monotonic, sleep)
        self.notices = Records(writer, "notices", NOTICES)
        self.prompts = Records(writer, "prompts", PROMPTS)
        self.files = PromptFileRows(writer)
        self.cards = Records(writer, "cards", CARDS)
        self.lists = Records(writer, "lists", LISTS)

    @property
    def is_shared(self) -> bool:
        """Tell that other machines can share this store."""
        return True

    def now(self) -> float:
        """Return the time of the database's clock (epoch seconds), or of this machine's until it was read."""
        return self._clock()

    # --- who this process is ------------------------------------------------------------------------------------------

    async def join(self, name: str, version: str) -> None:
        """Take the lease of this machine, which has this name for people. Raises Held, TooNew, StoreError."""
        self.home.make()
        self._identity.machine = self.home.machine()
        await pooler.check(self._address, self._connection)
        await migrations.bring_forward(self._connection)
        await self._ready()
        await membership.belong(self._connection, self._identity, name, version)
        await self._leases.take_machine(self._sleep)

    async def take_phone(self) -> bool:
        """Try to become the phone side, and tell whether it worked. What an earlier phone side began is over then."""
        await self._ready()
        return self._identity.sees_phone and await self._leases.take_phone()

    def is_phone(self) -> bool:
        """Tell whether this process is the phone side, by a clock alone."""
        return self._leases.is_phone()

    async def renew(self, servers: tuple[tuple[str, bool], ...]) -> None:
        """Say that this machine is there, with the state of its servers. Raises Deposed, StoreError."""
        await self._leases.renew(membership.written(servers))

    async def leave(self) -> None:
        """Give up all leases at once, and close all connections; a database that does not answer soon is no error."""
        await self._feed.close()
        with contextlib.suppress(StoreError, TimeoutError):
            async with asyncio.timeout(_LEAVING_S):
                await self._leases.leave()
        await self._connection.close()

    async def machines(self) -> tuple[Machine, ...]:
        """Return the machines that this user of the database may see: all, or its own."""
        await self._ready()
        return await membership.machines(self._connection, self._identity)

    async def changes(self) -> AsyncIterator[Changed | Missed]:
        """Yield what other processes change, until `leave`."""
        await self._ready()
        async for change in self._feed.changes():
            yield change

    # --- asks ---------------------------------------------------------------------------------------------------------

    async def open(self) -> list[Entry]:
        """Return the open asks, oldest first: of all machines for the phone side, else of this machine."""
        self.home.make()
        PromptFolder(self.home.root).remove_sounds()
        await self._ready()
        entries, self.has_unread = await self._open.load(machine=self._seen_machine())
        return entries

    async def revisions(self) -> dict[str, int]:
        """Map the id of each ask that `open` returns to its revision."""
        await self._ready()
        return await self._open.revisions(machine=self._seen_machine())

    def _seen_machine(self) -> str | None:
        """Return the machine whose asks are served here, None for all."""
        return None if self.is_phone() else self._identity.machine

    async def survey(self) -> Survey:
        """Read all open asks that this user may see, and change nothing."""
        await self._ready()
        return await self._open.survey()

    async def survey_done(self, since_s: float) -> Survey:
        """Read all asks that were closed at `since_s` (epoch) or later, and change nothing."""
        await self._ready()
        return await self._closed.since(since_s)

    async def new_id(self) -> str:
        """Return an id of eight characters that no ask has."""
        await self._ready()
        return await self._open.new_id()

    async def new_code(self, open_entries: Iterable[Entry]) -> str:
        """Return a code such as "k7m2q" that no ask has."""
        await self._ready()
        return await self._open.new_code(open_entries)

    async def create(self, entry: Entry) -> Entry:
        """Save a new ask and return it, at revision 1. Raises Conflict, NotSaved, Deposed."""
        await self._ready()
        return await self._open.create(entry)

    async def get(self, entry_id: str) -> Entry:
        """Return an open ask. Raises Missing, Unreadable, TooNew."""
        await self._ready()
        return await self._open.get(entry_id)

    async def change(self, entry_id: str, fn: Callable[[Entry], Entry], known: Entry | None = None) -> Entry:
        """Apply `fn` to the newest version of an open ask. Raises as `get`, NotSaved, Deposed."""
        await self._ready()
        return await self._open.change(entry_id, fn, known)

    async def keep(self, entry: Entry) -> Entry:
        """Write an open ask from memory if the database has lost it. Raises Missing, Conflict, NotSaved, Deposed."""
        await self._ready()
        return await self._open.keep(entry)

    async def forget(self, entry_id: str) -> None:
        """Remove an open ask that was moved to another store. Raises NotSaved, Deposed."""
        await self._ready()
        await self._open.forget(entry_id)

    async def settle(self, entry_id: str, known: Entry | None = None) -> None:
        """Close a settled ask. Raises Missing, NotSaved, Deposed."""
        await self._ready()
        await self._open.settle(entry_id, known)

    async def done(self, entry_id: str) -> Entry:
        """Return a closed ask. Raises Missing, Unreadable, TooNew."""
        await self._ready()
        return await self._closed.get(entry_id)

    async def done_by(self, wait_id: str) -> str | None:
        """Return the agent of the closed ask of this machine with this wait id, or None."""
        await self._ready()
        return await self._closed.agent_of(wait_id)

    async def newest_done(self, most: int) -> list[Entry]:
        """Return the `most` asks that were closed last, newest first, but none that cannot be read."""
        await self._ready()
        return await self._closed.newest(most)

    async def days_done(self) -> dict[str, float]:
        """Map each day (UTC, "YYYY-MM-DD") on which asks were closed to the time of its last one (epoch)."""
        await self._ready()
        return await self._closed.days()

    async def forget_done(self, days: Collection[str]) -> int:
        """Delete the asks that were closed on these days, and return how many. Raises NotSaved, Deposed."""
        await self._ready()
        return await self._closed.forget(days)

    # --- the chat -----------------------------------------------------------------------------------------------------

    async def load_chat(self, bot_id: int) -> ChatMemory:
        """Return the memory of this bot, or an empty one."""
        await self._ready()
        return await self._phone.load(bot_id)

    async def save_chat(self, memory: ChatMemory) -> None:
        """Save the memory of a bot. Raises NotSaved, Deposed."""
        await self._ready()
        await self._phone.save(memory)

    async def is_phone_locked(self) -> bool:
        """Tell whether the phone is locked."""
        await self._ready()
        return await self._phone.is_locked()

    async def lock_phone(self) -> None:
        """Lock the phone. Raises NotSaved, Deposed."""
        await self._ready()
        await self._phone.lock()

    async def unlock_phone(self) -> bool:
        """Unlock the phone, and tell whether it was locked. Raises NotSaved, Deposed."""
        await self._ready()
        return await self._phone.unlock()

    async def _learn(self) -> None:
        self._identity.machine = self._identity.machine or self.home.known_machine()
        await membership.learn(self._connection, self._identity)
        asked_at = self._monotonic()
        [(epoch_s,)] = await self._connection.read(TIME)
        self._clock.read(epoch_s, asked_at)
