"""The store and the home that a configuration names."""

import time
from collections.abc import Callable

from hermes.config.settings import Config
from hermes.storage.files import FileStore
from hermes.storage.home import Home
from hermes.storage.store import Store


def home_of(config: Config, *, now: Callable[[], float] = time.time) -> Home:
    """Return the folder of this machine."""
    return Home(config.store.path, now=now)


def store_of(config: Config, *, now: Callable[[], float] = time.time) -> Store:
    """Return the store."""
    return FileStore(home_of(config, now=now))
