"""The store in PostgreSQL: what `storage.store.Store` promises, for several machines that share one bot.

A process that has not joined, such as `hermes status`, may read, and writes as its user of the database may. It makes
no tables, no file and no folder.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from hermes.errors import StoreError
from hermes.model.entry import Entry
from hermes.model.machine import Machine
from hermes.storage.codec import CARDS, LISTS, NOTICES, PROMPTS
from hermes.storage.home import Home
from hermes.storage.postgres import membership, migrations, pooler
from hermes.storage.postgres.address import Address
from hermes.storage.postgres.clock import TIME, SharedClock, awake_or_asleep
from hermes.storage.postgres.closed import ClosedEntries
from hermes.storage.postgres.connection import Connection
from hermes.storage.postgres.entries import OpenEntries
from hermes.storage.postgres.feed import Feed
from hermes.storage.postgres.identity import Identity
from hermes.storage.postgres.leases import Leases
from hermes.storage.postgres.phone import PhoneRows
from hermes.storage.postgres.prompt_files import PromptFileRows
from hermes.storage.postgres.records import Records
from hermes.storage.postgres.writing import Writer
from hermes.storage.prompt_files import PromptFolder
from hermes.storage.store import Changed, Missed, Store

_LEAVING_S: Final = 3.0
"""A process that ends waits this long, at most, for a database. Its leases run out by themselves."""


class PostgresStore(OpenEntries, ClosedEntries, PhoneRows, Store):
    """The asks, the records beside them and the memory of the chat, in the database at `address`.

    `bot_id` is None on a machine without the bot's token: the database knows the bot of its user. `monotonic` is a
    clock that also runs while the machine sleeps.
    """

    is_shared = True

    def __init__(
        self,
        home: Home,
        address: Address,
        bot_id: int | None,
        *,
        monotonic: Callable[[], float] = awake_or_asleep,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.put_away = 0
        self.has_unread = False
        self._address = address
        self._monotonic = monotonic
        self._identity = Identity(home.root, "", bot_id)
        self._connection = Connection(address)
        self.now = self._clock = SharedClock(home.now, monotonic)
        self._leases = Leases(self._connection, self._identity, self._clock, monotonic)
        writer = Writer(self._connection, self._identity, self._leases, self._learn)
        OpenEntries.__init__(self, writer, sleep)
        ClosedEntries.__init__(self, writer)
        PhoneRows.__init__(self, writer, home)
        self._feed = Feed(address, self._identity, self._leases.is_phone, monotonic, sleep)
        self.notices = Records(writer, "notices", NOTICES)
        self.prompts = Records(writer, "prompts", PROMPTS)
        self.files = PromptFileRows(writer)
        self.cards = Records(writer, "cards", CARDS)
        self.lists = Records(writer, "lists", LISTS)

    # --- who this process is ------------------------------------------------------------------------------------------

    async def join(self, name: str, version: str) -> None:
        self.home.make()
        self._identity.machine = self.home.machine()
        await pooler.check(self._address, self._connection)
        await migrations.bring_forward(self._connection)
        await self._writer.ready()
        await membership.belong(self._connection, self._identity, name, version)
        await self._leases.take_machine(self._sleep)

    async def take_phone(self) -> bool:
        """Try to become the phone side, and tell whether it worked. What an earlier phone side began is over then."""
        await self._writer.ready()
        return self._identity.sees_phone and await self._leases.take_phone()

    def is_phone(self) -> bool:
        return self._leases.is_phone()

    async def renew(self, servers: tuple[tuple[str, bool], ...]) -> None:
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
        await self._writer.ready()
        return await membership.machines(self._connection, self._identity)

    async def changes(self) -> AsyncIterator[Changed | Missed]:
        """Yield what other processes change, until `leave`."""
        await self._writer.ready()
        async for change in self._feed.changes():
            yield change

    # --- asks ---------------------------------------------------------------------------------------------------------

    async def open(self) -> list[Entry]:
        self.home.make()
        PromptFolder(self.home.root).remove_sounds()
        await self._writer.ready()
        entries, self.has_unread = await self._load(machine=self._seen_machine())
        return entries

    async def revisions(self) -> dict[str, int]:
        await self._writer.ready()
        return await self._revisions(machine=self._seen_machine())

    def _seen_machine(self) -> str | None:
        """Return the machine whose asks are served here, None for all."""
        return None if self.is_phone() else self._identity.machine

    async def _learn(self) -> None:
        self._identity.machine = self._identity.machine or self.home.known_machine()
        await membership.learn(self._connection, self._identity)
        asked_at = self._monotonic()
        [(epoch_s,)] = await self._connection.read(TIME)
        self._clock.read(epoch_s, asked_at)
