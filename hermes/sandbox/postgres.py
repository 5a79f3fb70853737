"""A private PostgreSQL server in a temporary folder, with a password, at a loopback port and a socket in the folder.

    with Server() as server:    # it runs
        server.stop()
        server.start()          # at the same port, with the same data

It ends with the program that started it, even if that is killed. PostgreSQL refuses to run as root, so root runs it as
`nobody`.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from hermes.errors import HermesError
from hermes.sandbox.tied import tied

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER: Final = Path("/usr/lib/postgresql")  # Debian and Ubuntu keep it off the PATH
HOST: Final = "127.0.0.1"
PATIENCE_S: Final = 30.0
LOOK_S: Final = 0.02
STATUS_LINE: Final = 7  # of postmaster.pid
PORTS: Final = range(20_000, 32_000)
"""Linux and macOS, as they come, give none of these to a connection: a server that was stopped finds its port free."""
PORT_TRIES: Final = 100

_INITDB: Final = ("--no-sync", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C")


class ServerMissingError(HermesError):
    """There is no PostgreSQL on this machine."""


def programs() -> Path:
    """Return the folder of `initdb` and `postgres`, of the newest version. Raises ServerMissingError."""
    found = sorted(FOLDER.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    if usual := shutil.which("initdb"):
        return Path(usual).resolve().parent
    raise ServerMissingError("PostgreSQL is not on this machine: there is no `initdb` (apt install postgresql)")


class Server:
    """See the module. Its superuser is `user`, who logs in with `password`; `settings` are those of the server.

    `fsync` is off unless `settings` turn it on. Raises ServerMissingError; HermesError: it does not start.
    """

    def __init__(self, user: str = "postgres", password: str = "", settings: Mapping[str, str] | None = None) -> None:
        self._programs = programs()
        self.user = user
        self.password = password or secrets.token_urlsafe()
        self.port = _free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="hermes-postgres-"))
        self.settings = {"fsync": "off", **(settings or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self.give(self.folder)
        self._make()

    def __enter__(self) -> Self:
        """Start it."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End it, and remove its data."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def pid(self) -> int | None:
        """The process id, or None if it does not run."""
        running = self._process is not None and self._process.poll() is None
        return self._process.pid if running and self._process is not None else None

    def start(self) -> None:
        """Start it, and wait until it answers. Raises HermesError: it ended instead."""
        places = {"listen_addresses": HOST, "port": str(self.port), "unix_socket_directories": str(self.folder)}
        words = [f"--{name}={value}" for name, value in (places | self.settings).items()]
        command = [*as_nobody(), str(self._programs / "postgres"), "-D", str(self._data), *words]
        with self._log.open("ab") as log:
            self._process = tied(command, needed=self._password_file, cwd="/", stdout=log, stderr=log)
        deadline = time.monotonic() + PATIENCE_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                last = self._log.read_text("utf-8", "replace").strip().splitlines()[-1:] or ["it said nothing"]
                raise HermesError(f"PostgreSQL did not start: {last[0]}")
            time.sleep(LOOK_S)

    def stop(self) -> None:
        """Stop it; it ends all connections."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """End it as after a crash: the next start recovers what was committed."""
        self._end(signal.SIGQUIT)

    def give(self, path: Path) -> None:
        """Make the user that the server runs as the owner of this file or folder."""
        if os.geteuid() == 0:
            shutil.chown(path, "nobody")

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    @property
    def _log(self) -> Path:
        return self.folder / "log"

    @property
    def _password_file(self) -> Path:
        return self.folder / "password"

    def _make(self) -> None:
        self._password_file.touch(mode=0o600)
        self._password_file.write_text(self.password, encoding="utf-8")
        self.give(self._password_file)
        program, *words = "initdb", f"--username={self.user}", f"--pwfile={self._password_file}", *_INITDB
        command = [*as_nobody(), str(self._programs / program), f"--pgdata={self._data}", *words]
        done = subprocess.run(command, check=False, capture_output=True, text=True, cwd="/")
        if done.returncode:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise HermesError(f"`initdb` failed: {done.stderr.strip()}")

    def _answers(self) -> bool:
        """Tell whether this process, and not one before it, wrote that it takes connections."""
        file = self._data / "postmaster.pid"
        lines = file.read_text("utf-8").splitlines() if file.exists() else []
        return len(lines) > STATUS_LINE and lines[0] == str(self.pid) and lines[STATUS_LINE].strip() == "ready"

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.communicate(b"\n", PATIENCE_S)
            self._process = None


def _free_port() -> int:
    """Return a port at which nobody listens. Raises HermesError: there is none."""
    for _ in range(PORT_TRIES):
        port = secrets.choice(PORTS)
        with suppress(OSError), socket.create_server((HOST, port)):
            return port
    raise HermesError(f"PostgreSQL finds no free port at {HOST} (tried {PORT_TRIES} from {PORTS[0]} to {PORTS[-1]})")


def as_nobody() -> list[str]:
    """Return the words that start a command as another user, if this is root."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
