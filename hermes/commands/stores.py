"""The store and the home that a configuration names."""

import time
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from hermes import disk
from hermes.config.settings import Config
from hermes.model.entry import Entry
from hermes.storage import process_lock
from hermes.storage.files import FileStore
from hermes.storage.home import Home
from hermes.storage.process_lock import Holder
from hermes.storage.store import Store

T = TypeVar("T")


def home_of(config: Config, *, now: Callable[[], float] = time.time) -> Home:
    """Return the folder of this machine."""
    return Home(config.store.path, now=now)


def store_of(config: Config, *, now: Callable[[], float] = time.time, pace: float = 1.0) -> Store:
    """Return the store: the database if one is configured, else the folder of this machine.

    `pace` is that of the process's clock (`hermes.clock`): the leases in a database run out at the same pace.
    """
    home, address = home_of(config, now=now), config.store.address
    if address is None:
        return FileStore(home)
    from hermes.storage.postgres.clock import awake_or_asleep  # noqa: PLC0415 (as below)
    from hermes.storage.postgres.store import PostgresStore  # noqa: PLC0415 (few have psycopg, which is slow to load)

    bot_id = None if config.phone is None else config.phone.bot_id
    return PostgresStore(home, address, bot_id, monotonic=lambda: pace * awake_or_asleep())


def listener_elsewhere(config: Config) -> Holder | None:
    """Return the process that has the bot while no listener of this store runs: it listens for another store.

    With a database, all machines of a bot have one store. Raises StoreError.
    """
    home = home_of(config)
    if config.store.url or home.listener() is not None:
        return None
    with disk.reading(home.root):
        return process_lock.holder(process_lock.bot_lock(config.telegram.bot_id, home.root))


def of_this_machine(store: Store, entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return the asks that need a listener here: all, but only this machine's if other machines share the store."""
    machine = store.home.known_machine()
    return tuple([entry for entry in entries if not store.is_shared or entry.ask.source.machine == machine])


async def look(store: Store, what: Callable[[Store], Awaitable[T]]) -> T:
    """Return the result of `what`, and close the connections of the store. Raises StoreError, and as `what`."""
    try:
        return await what(store)
    finally:
        await store.leave()
