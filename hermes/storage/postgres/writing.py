"""Writes under all leases that this process holds, each in one statement that also tells other processes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeVar

from hermes.errors import Conflict, Deposed, Missing, NotSaved, StoreError, TooNew, Unreadable
from hermes.storage.postgres.connection import ANY_COMMIT, Connection, UnknownError
from hermes.storage.postgres.identity import Identity
from hermes.storage.postgres.leases import FENCE, Leases
from hermes.storage.store import Kind

TELL: Final = f"""
pg_notify('hermes_' || left(encode(sha256(convert_to(bot::text || ' ' || machine, 'UTF8')), 'hex'), 24), %(news)s),
pg_notify(%(phone_channel)s, %(news)s), {ANY_COMMIT}
"""
"""What a statement returns, to tell the machine of the row and the phone side (`Identity.channel`)."""
MOST_TRIES: Final = 50

T = TypeVar("T")


class Writer:
    """The way of all writes."""

    def __init__(
        self,
        connection: Connection,
        identity: Identity,
        leases: Leases,
        learn: Callable[[], Awaitable[None]],
    ) -> None:
        self.connection = connection
        self.identity = identity
        self._leases = leases
        self._learn = learn
        self._learning = asyncio.Lock()
        self._is_ready = False

    async def ready(self) -> None:
        """Learn who this process is, before the first statement. Raises StoreError."""
        if self._is_ready:
            return
        async with self._learning:
            if not self._is_ready:
                await self._learn()
                self._is_ready = True

    async def write(self, change: str, values: Mapping[str, object]) -> int:
        """Do the change if this process still holds its leases, and return how many rows it has changed.

        `change` is one statement that returns a column for each row, and has `IS_HELD` as a condition.
        Raises Deposed, NotSaved, Conflict, UnknownError.
        """
        statement = f"WITH {FENCE}, done AS ({change}) SELECT (SELECT count(*) FROM held), (SELECT count(*) FROM done)"
        fence = self._leases.values()
        [(held, done)] = await self.connection.write(statement, fence | dict(values))
        if held != fence["leases"]:
            raise self._leases.deposed()
        return int(done)

    async def write_again(self, change: str, values: Mapping[str, object]) -> int:
        """Do a change that may be done twice; else as `write`."""
        try:
            return await self.write(change, values)
        except UnknownError:
            return await surely(self.write(change, values))

    def news(self, kind: Kind, thing_id: str) -> dict[str, object]:
        """Return what `TELL` needs."""
        return {
            "phone_channel": self.identity.channel(),
            "news": f"{kind} {thing_id} {self.identity.session}",
        }


async def surely(work: Awaitable[T]) -> T:
    """Do what finds out about a write with an unknown outcome. Raises NotSaved: that cannot be found out now."""
    try:
        return await work
    except UnknownError as error:
        raise NotSaved(f"it is not known whether this was saved: {error}") from None
    except (Conflict, Deposed, Missing, NotSaved, Unreadable, TooNew):
        raise
    except StoreError as error:
        raise NotSaved(f"it is not known whether this was saved: {error}") from None
