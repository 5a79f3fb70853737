"""A store of files, as tests make one."""

from pathlib import Path
from typing import Any

from hermes.storage.files import FileStore
from hermes.storage.home import Home


def a_store(root: Path, **settings: Any) -> FileStore:
    """Return the store of files in this folder; the settings are those of its home."""
    return FileStore(Home(root, **settings))
