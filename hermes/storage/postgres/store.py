"""The store in PostgreSQL: what `storage.store.Store` promises, for several machines that share one bot.

A process that has not joined, such as `hermes status`, may read, and writes as its user of the database may. It makes
no tables, no file and no folder.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from hermes.errors import StoreError, TooNew, Unreadable
from hermes.model.chat_memory import ChatMemory
from hermes.model.entry import Entry
from hermes.model.machine import Machine
from hermes.storage.codec import CARDS, CHATS, LISTS, NOTICES, PROMPTS
from hermes.storage.home import Home
from hermes.storage.postgres import membership, migrations, pooler
from hermes.storage.postgres.address import Address
from hermes.storage.postgres.clock import TIME, SharedClock, awake_or_asleep
from hermes.storage.postgres.connection import Connection, UnknownError
from hermes.storage.postgres.entries import Entries
from hermes.storage.postgres.feed import Feed
from hermes.storage.postgres.identity import Identity
from hermes.storage.postgres.leases import IS_HELD, Leases
from hermes.storage.postgres.prompt_files import PromptFileRows
from hermes.storage.postgres.records import Records
from hermes.storage.postgres.rows import LogOnce
from hermes.storage.postgres.statements import Statements, surely
from hermes.storage.prompt_files import PromptFolder
from hermes.storage.store import Changed, Missed, Store

_LOAD: Final = "SELECT body::text FROM hermes.chats WHERE bot = %(bot)s"
_SAVE: Final = f"""
INSERT INTO hermes.chats (bot, body) SELECT %(bot)s, %(body)s::json WHERE {IS_HELD}
ON CONFLICT (bot) DO UPDATE SET body = excluded.body
RETURNING bot
"""
_IS_LOCKED: Final = "SELECT EXISTS (SELECT FROM hermes.locks WHERE bot = %(bot)s)"
_LOCK: Final = f"""
INSERT INTO hermes.locks (bot) SELECT %(bot)s WHERE {IS_HELD} ON CONFLICT (bot) DO NOTHING RETURNING bot
"""
_UNLOCK: Final = f"DELETE FROM hermes.locks WHERE bot = %(bot)s AND {IS_HELD} RETURNING bot"
_LEAVING_S: Final = 3.0
"""A process that ends waits this long, at most, for a database. Its leases run out by themselves."""


class PostgresStore(Entries, Store):
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
        self.home = home
        self.put_away = 0
        self.has_unread = False
        self._address = address
        self._monotonic = monotonic
        self._identity = Identity(home.root, "", bot_id)
        self._connection = Connection(address)
        self.now = self._clock = SharedClock(home.now, monotonic)
        self._leases = Leases(self._connection, self._identity, self._clock, monotonic)
        statements = Statements(self._connection, self._identity, self._leases, self._learn)
        Entries.__init__(self, statements, sleep)
        self._log_once = LogOnce()
        self._feed = Feed(address, self._identity, self._leases.is_phone, monotonic, sleep)
        self.notices = Records(statements, "notices", NOTICES)
        self.prompts = Records(statements, "prompts", PROMPTS)
        self.files = PromptFileRows(statements)
        self.cards = Records(statements, "cards", CARDS)
        self.lists = Records(statements, "lists", LISTS)

    # --- who this process is ------------------------------------------------------------------------------------------

    async def join(self, name: str, version: str) -> None:
        self.home.make()
        self._identity.machine = self.home.machine()
        await pooler.check(self._address, self._connection)
        await migrations.bring_forward(self._connection)
        await self._statements.ready()
        await membership.belong(self._connection, self._identity, name, version)
        await self._leases.take_machine(self._sleep)

    async def take_phone(self) -> bool:
        """Try to become the phone side, and tell whether it worked. What an earlier phone side began is over then."""
        await self._statements.ready()
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
        await self._statements.ready()
        return await membership.machines(self._connection, self._identity)

    async def changes(self) -> AsyncIterator[Changed | Missed]:
        """Yield what other processes change, until `leave`."""
        await self._statements.ready()
        async for change in self._feed.changes():
            yield change

    # --- asks ---------------------------------------------------------------------------------------------------------

    async def open(self) -> list[Entry]:
        self.home.make()
        PromptFolder(self.home.root).remove_sounds()
        await self._statements.ready()
        survey = await self._survey(machine=self._seen_machine())
        for path, why in survey.damaged:
            self._log_once(str(path), why)
        for path in survey.too_new:
            self._log_once(str(path), "a newer Hermes has written it; upgrade this one")
        self.has_unread = bool(survey.damaged or survey.too_new)
        return list(survey.entries)

    async def revisions(self) -> dict[str, int]:
        await self._statements.ready()
        return await self._revisions(machine=self._seen_machine())

    def _seen_machine(self) -> str | None:
        """Return the machine whose asks are served here, None for all."""
        return None if self.is_phone() else self._identity.machine

    # --- the chat -----------------------------------------------------------------------------------------------------

    async def load_chat(self, bot_id: int) -> ChatMemory:
        """Return the memory of this bot, or an empty one. One that is damaged goes to quarantine."""
        for (body,) in await self._statements.read(_LOAD, bot=bot_id):
            try:
                memory = CHATS.decode(body.encode())
            except TooNew as error:
                raise TooNew(f"the memory of the chat is left alone: {error}; upgrade this one") from None
            except Unreadable as error:
                self.home.quarantine("telegram.json", body.encode(), str(error))
                continue
            if memory.bot_id == bot_id:
                return memory
        return ChatMemory(bot_id)

    async def save_chat(self, memory: ChatMemory) -> None:
        values = {"bot": memory.bot_id, "body": CHATS.encode(memory).decode()}
        await self._statements.write_again(_SAVE, values)

    async def is_phone_locked(self) -> bool:
        return await self._statements.read(_IS_LOCKED) == [(True,)]

    async def lock_phone(self) -> None:
        await self._statements.write_again(_LOCK, {})

    async def unlock_phone(self) -> bool:
        try:
            return bool(await self._statements.write(_UNLOCK, {}))
        except UnknownError:
            await surely(self._statements.write(_UNLOCK, {}))
            return True  # the first statement may have done it

    async def _learn(self) -> None:
        self._identity.machine = self._identity.machine or self.home.known_machine()
        await membership.learn(self._connection, self._identity)
        asked_at = self._monotonic()
        [(epoch_s,)] = await self._connection.read(TIME)
        self._clock.read(epoch_s, asked_at)
