"""The two stores, each with a way to let days pass."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from hermes.hook import spool
from hermes.storage.files import FileStore
from hermes.storage.home import Home
from hermes.storage.postgres.store import PostgresStore
from tests.storage.machines import BOT

if TYPE_CHECKING:
    from hermes.storage.store import Store
    from tests.harness.postgres import Database

DAY_S = 86_400.0


class Kept(Protocol):
    """A place where a store keeps its things, over restarts."""

    def make(self) -> Store:
        """A process that uses it, which has not joined."""
        ...

    def wait(self, days: int) -> None:
        """Let days pass."""
        ...

    def damage(self, entry_id: str) -> None:
        """Let an open ask become what cannot be read."""
        ...


class InFiles:
    """A folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.now_s = 1_757_000_000.0

    def make(self) -> Store:
        return FileStore(Home(self.root, now=lambda: self.now_s))

    def wait(self, days: int) -> None:
        self.now_s += days * DAY_S

    def damage(self, entry_id: str) -> None:
        (self.root / "pending" / f"{entry_id}.json").write_bytes(b"{")


class InPostgres:
    """A database, and the folder of a machine."""

    def __init__(self, root: Path, database: Database) -> None:
        self.root = root
        self.database = database

    def make(self) -> Store:
        self.root.mkdir(parents=True, exist_ok=True)
        spool.keep_machine(self.root, "desk")
        return PostgresStore(Home(self.root), self.database.address(), BOT)

    def wait(self, days: int) -> None:
        # Its clock is that of the server, which no test moves: what was closed becomes older.
        self.database.ask("UPDATE hermes.entries SET closed_s = closed_s - %s", days * DAY_S)

    def damage(self, entry_id: str) -> None:
        self.database.ask("UPDATE hermes.entries SET body = '[]' WHERE id = %s", entry_id)
