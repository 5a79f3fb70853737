"""PgBouncer, a pooler, before a PostgreSQL server of the tests."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import psycopg
import pytest

from hermes.sandbox.postgres import as_nobody
from tests.harness.postgres import OWNER, PASSWORD
from tests.harness.processes import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.harness.postgres import Database

_STARTS_S = 20.0
_CONFIGURATION = """
[databases]
* = host=127.0.0.1 port={server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {folder}/users
pool_mode = {mode}
"""


def program() -> str:
    """The path of PgBouncer; without it the test is skipped, but not in CI."""
    found = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None and (os.environ.get("CI") or os.environ.get("HERMES_REQUIRE_SCENES") == "1"):
        pytest.fail("PgBouncer is not installed (apt install pgbouncer)", pytrace=False)
    return found or pytest.skip("PgBouncer is not installed (apt install pgbouncer)")


@contextlib.contextmanager
def pooler(database: Database, mode: Literal["session", "transaction"]) -> Iterator[int]:
    """Run PgBouncer before the server of this database; its port."""
    command, folder, port = program(), Path(tempfile.mkdtemp(prefix="hermes-pgb-")), free_port()
    told = _CONFIGURATION.format(server=database.port, port=port, folder=folder, mode=mode)
    (folder / "pgbouncer.ini").write_text(told)
    (folder / "users").write_text(f'"{OWNER}" "{PASSWORD}"\n')
    if os.getuid() == 0:
        for path in (folder, *folder.iterdir()):
            shutil.chown(path, "nobody")
    process = subprocess.Popen([*as_nobody(), command, "--quiet", folder / "pgbouncer.ini"], cwd="/")
    try:
        _wait(database, port)
        yield port
    finally:
        process.kill()
        process.wait(_STARTS_S)
        shutil.rmtree(folder)


def _wait(database: Database, port: int) -> None:
    until = time.monotonic() + _STARTS_S
    while True:
        try:
            psycopg.connect(**database.address(port=port).parameters()).close()  # type: ignore[arg-type]
        except psycopg.OperationalError:
            assert time.monotonic() < until, "PgBouncer does not start"
            time.sleep(0.05)
        else:
            return
