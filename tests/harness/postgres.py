"""A PostgreSQL server of the tests' own, in a temporary folder, and a database in it for each test."""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import psycopg
from psycopg import sql

from hermes.storage.postgres.address import Address

if TYPE_CHECKING:
    from collections.abc import Iterator

PASSWORD = "open sesame"
OWNER = "hermes"
_STARTS_S = 30.0


class ServerMissingError(Exception):
    """There is no PostgreSQL on this machine."""


def programs() -> Path:
    """The folder of `initdb` and `postgres`, the newest version of several."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    if usual := shutil.which("initdb"):
        return Path(usual).resolve().parent
    raise ServerMissingError("PostgreSQL is not installed (apt install postgresql)")


def _as_nobody() -> list[str]:
    """The words that start a program as another user, because PostgreSQL refuses root."""
    if os.getuid() != 0:
        return []
    nobody = pwd.getpwnam("nobody")
    return ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"]


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


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


class Server:
    """A running server."""

    def __init__(self) -> None:
        self._programs = programs()
        self.folder = Path(tempfile.mkdtemp(prefix="hermes-pg-"))
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        if os.getuid() == 0:
            for path in (self.folder, secret):
                shutil.chown(path, "nobody")
        usual = ["--no-sync", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--username=postgres"]
        self._run("initdb", "--pgdata", str(self.folder / "data"), "--pwfile", str(secret), *usual)
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = {
            "fsync": "off", "listen_addresses": "127.0.0.1", "port": str(self.port), "max_connections": "40",
            "unix_socket_directories": str(self.folder), "shared_buffers": "16MB", "log_min_messages": "panic",
        }  # fmt: skip
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        command = [*_as_nobody(), str(self._programs / "postgres"), "-D", str(self.folder / "data"), *words]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")
        until = time.monotonic() + _STARTS_S
        while True:
            try:
                psycopg.connect(**Database("postgres", self.port).superuser()).close()
            except psycopg.OperationalError:
                assert time.monotonic() < until, "PostgreSQL does not start"
                time.sleep(0.05)
            else:
                return

    def stop(self, sign: int = signal.SIGINT) -> None:
        """Stop it at once (SIGINT), or as after a crash (SIGQUIT)."""
        if self._process is not None:
            self._process.send_signal(sign)
            self._process.wait(_STARTS_S)
            self._process = None

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

    def _run(self, program: str, *words: str) -> None:
        command = [*_as_nobody(), str(self._programs / program), *words]
        subprocess.run(command, check=True, capture_output=True, cwd="/")
