"""A PostgreSQL server of a test's own, with TLS and one password. `initdb` refuses root, so it runs as nobody there."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import psycopg

from tests import certificates

if TYPE_CHECKING:
    from collections.abc import Iterator

PASSWORD = "the-password-of-the-test"
PROGRAMS = next((path.parent for path in sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))), None)
_AS_NOBODY = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups") if os.geteuid() == 0 else ()


class Server(NamedTuple):
    """A running server: `localhost:port`, a socket in `folder`, and the certificate `ca` that vouches for it."""

    folder: Path
    port: int
    ca: Path


@contextmanager
def running() -> Iterator[Server]:
    """Make a server and start it; in the end it and its files are gone. The user is `hermes`, with `PASSWORD`."""
    assert PROGRAMS is not None
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    ca = certificates.written(folder)
    (folder / "password").write_text(PASSWORD)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    if _AS_NOBODY:
        for path in (folder, *folder.iterdir()):
            shutil.chown(path, "nobody", "nogroup")
    (folder / "key.pem").chmod(0o600)
    data, environ = folder / "data", {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    make = ("-D", data, "-N", "-A", "scram-sha-256", "-U", "hermes", f"--pwfile={folder}/password")
    subprocess.run([*_AS_NOBODY, PROGRAMS / "initdb", *make], check=True, capture_output=True, cwd=folder, env=environ)
    settings = {
        "port": port,
        "listen_addresses": "localhost",
        "unix_socket_directories": folder,
        "ssl": "on",
        "ssl_cert_file": ca,
        "ssl_key_file": folder / "key.pem",
        "fsync": "off",
    }
    command = [*_AS_NOBODY, PROGRAMS / "postgres", "-D", data]
    command += [f"--{name}={value}" for name, value in settings.items()]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, cwd=folder, env=environ, stderr=log) as process:
        try:
            _wait(f"host={folder} port={port} user=hermes dbname=postgres password={PASSWORD}")
            yield Server(folder, port, ca)
        finally:
            process.terminate()  # it waits for nobody's leaving but ours, and all of ours have left
            process.wait(20)
            shutil.rmtree(folder)


def _wait(conninfo: str) -> None:
    end_s = time.monotonic() + 30
    while True:
        try:
            psycopg.connect(conninfo).close()
        except psycopg.OperationalError:
            if time.monotonic() > end_s:
                raise
            time.sleep(0.05)
        else:
            return
