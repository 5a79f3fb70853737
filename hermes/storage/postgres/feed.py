"""The changes of other processes: a connection of its own listens for them.

A notification is only a hint. It may get lost, so everything is to be read again now and then, and after each
connection (`Missed`). A pooler that lends a connection for one transaction alone loses all of them (`pooler`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, get_args

import psycopg

from hermes.errors import StoreError
from hermes.storage.postgres.address import Address
from hermes.storage.postgres.connection import Row, connected, finished
from hermes.storage.postgres.identity import Identity
from hermes.storage.store import Changed, Kind, Missed

AGAIN_S: Final = 60.0
"""How often everything is to be read again."""
_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 15.0


class Feed:
    """The changes by other processes."""

    def __init__(
        self,
        address: Address,
        identity: Identity,
        is_phone: Callable[[], bool],
        monotonic: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._address = address
        self._identity = identity
        self._is_phone = is_phone
        self._monotonic = monotonic
        self._sleep = sleep
        self._listening: psycopg.AsyncConnection[Row] | None = None
        self._is_closed = False

    async def changes(self) -> AsyncIterator[Changed | Missed]:
        """Yield what other processes change, until `close`. A lost connection is made again."""
        pause_s = _PAUSE_S
        while not self._is_closed:
            listening = None
            try:
                listening = self._listening = await self._connected()
                pause_s = _PAUSE_S
                yield Missed()
                async for change in self._heard(listening):
                    yield change
            except (psycopg.Error, StoreError):
                if not self._is_closed:
                    await self._sleep(pause_s)
                    pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            finally:
                if listening is not None:  # who follows later may have another one already
                    await listening.close()

    async def close(self) -> None:
        """End `changes`."""
        self._is_closed = True
        if self._listening is not None:
            await self._listening.close()

    async def _connected(self) -> psycopg.AsyncConnection[Row]:
        listening = await connected(self._address)
        try:
            for channel in self._channels():
                await finished(listening, f"LISTEN {channel}")
        except BaseException:
            await listening.close()
            raise
        return listening

    def _channels(self) -> list[str]:
        own = [self._identity.channel(self._identity.machine)]
        return [*own, self._identity.channel()] if self._identity.sees_phone else own

    async def _heard(self, listening: psycopg.AsyncConnection[Row]) -> AsyncIterator[Changed | Missed]:
        again_at = self._monotonic() + AGAIN_S
        while True:
            async for news in listening.notifies(timeout=max(0.0, again_at - self._monotonic()), stop_after=1):
                change = self._change(news)
                if change is not None:
                    yield change
            if self._monotonic() >= again_at:
                await finished(listening, "SELECT 1")  # a connection that died in silence is found out
                yield Missed()
                again_at = self._monotonic() + AGAIN_S

    def _change(self, news: psycopg.Notify) -> Changed | None:
        kind, _, rest = news.payload.partition(" ")
        thing_id, _, session = rest.rpartition(" ")
        # The phone side hears of every change; its machine's channel would only say it twice.
        wanted = self._identity.channel("" if self._is_phone() else self._identity.machine)
        if session == self._identity.session or news.channel != wanted:
            return None
        return next((Changed(each, thing_id) for each in get_args(Kind) if each == kind), None)
