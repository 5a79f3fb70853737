"""A PostgreSQL server of the tests' own, and a database in it for each test."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql

from hermes.sandbox import postgres
from hermes.storage.postgres.address import Address
from tests import certificates

if TYPE_CHECKING:
    from collections.abc import Iterator

PASSWORD = "open sesame"
OWNER = "hermes"


@dataclass(frozen=True, slots=True)
class Database:
    """A database of one test."""

    name: str
    port: int

    def address(self, user: str = OWNER, password: str = PASSWORD, *, port: int | None = None) -> Address:
        """How this user reaches it, also through a proxy at `port`."""
        return Address(f"postgresql://{user}@127.0.0.1:{port or self.port}/{self.name}?sslmode=disable", password)

    def ask(self, statement: str, *values: object) -> list[tuple[object, ...]]:
        """Do this as the superuser of the server."""
        with psycopg.connect(**self.superuser(), autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), values)
            return [] if cursor.description is None else cursor.fetchall()

    def superuser(self) -> dict[str, Any]:
        """The parameters of the superuser's connection."""
        return {
            "host": "127.0.0.1",
            "port": str(self.port),
            "dbname": self.name,
            "user": "postgres",
            "password": PASSWORD,
        }


class Server(postgres.Server):
    """A server with databases; `settings` are laid over the usual ones."""

    def __init__(self, **settings: str) -> None:
        small = {"max_connections": "40", "shared_buffers": "16MB", "log_min_messages": "fatal"}
        super().__init__("postgres", PASSWORD, {**small, **settings})

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Let it take connections, and answer none."""
        assert self.pid is not None
        os.kill(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    @contextlib.contextmanager
    def database(self) -> Iterator[Database]:
        """A fresh database, which the user `hermes` owns."""
        name = f"test_{secrets.token_hex(6)}"
        root = Database("postgres", self.port)
        if not root.ask("SELECT FROM pg_roles WHERE rolname = %s", OWNER):
            secret = sql.Literal(PASSWORD).as_string()
            root.ask(f"CREATE ROLE {OWNER} LOGIN CREATEROLE PASSWORD {secret}")
        root.ask(f"CREATE DATABASE {name} OWNER {OWNER}")
        try:
            yield Database(name, self.port)
        finally:
            root.ask(f"DROP DATABASE {name} WITH (FORCE)")


class ProvenServer(postgres.Server):
    """A server with TLS, whose user is `hermes`. `ca` vouches for its certificate."""

    def __init__(self) -> None:
        super().__init__("hermes", PASSWORD)
        self.ca = certificates.written(self.folder)
        for path in (self.ca, key := self.folder / "key.pem"):
            self.give(path)
        key.chmod(0o600)
        self.settings |= {"ssl": "on", "ssl_cert_file": str(self.ca), "ssl_key_file": str(key)}
