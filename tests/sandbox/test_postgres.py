"""The private PostgreSQL server: it stops, starts and crashes when told to, and leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from pathlib import Path

import psycopg
import pytest

from hermes.errors import HermesError
from hermes.sandbox import postgres
from hermes.sandbox.postgres import Server, ServerMissingError, programs
from tests.harness.processes import Proc, has_ended, until

PARENT = """
import time
from hermes.sandbox.postgres import Server
server = Server()
server.start()
print("started", server.pid, server.folder, flush=True)
time.sleep(600)
"""


def ask(server: Server, statement: str) -> object:
    """The first value of the first row, read through the socket."""
    place = {"host": str(server.folder), "port": str(server.port), "user": server.user, "password": server.password}
    with psycopg.connect(**place, dbname="postgres", autocommit=True) as connection:  # type: ignore[arg-type]
        cursor = connection.execute(statement.encode())
        row = cursor.fetchone() if cursor.description else None
    return None if row is None else row[0]


def test_it_keeps_its_data_over_a_stop_and_a_crash(postgres_programs: Path) -> None:
    """The settings are those that were asked for, and nothing is left in the end."""
    with Server("ann", settings={"fsync": "on"}) as server:
        assert stat.S_IMODE(server.folder.stat().st_mode) == 0o700
        assert ask(server, "SHOW fsync") == "on"
        ask(server, "CREATE TABLE kept AS SELECT 7 AS number")
        for end in (server.stop, server.kill):
            end()
            assert server.pid is None
            with pytest.raises(psycopg.OperationalError):
                ask(server, "SELECT 1")
            server.start()
            assert ask(server, "SELECT number FROM kept") == 7
    assert not server.folder.exists()


def test_a_server_that_cannot_start_says_why(postgres_programs: Path) -> None:
    """The last line of its log."""
    server = Server(settings={"shared_buffers": "1kB"})
    with pytest.raises(HermesError, match=r"PostgreSQL did not start: .*shared_buffers"):
        server.start()
    server.__exit__()
    assert not server.folder.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="the range is in /proc")
def test_no_connection_gets_the_port_of_a_server_that_is_stopped(postgres_programs: Path) -> None:
    """It is none of those that the system gives to connections."""
    first, _ = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    with Server() as server:
        assert server.port < first


def test_it_ends_with_a_program_that_is_killed(postgres_programs: Path, tmp_path: Path) -> None:
    """Nobody else would end it."""
    command = [sys.executable, "-c", PARENT]
    with Proc(command, cwd=Path.cwd(), environ=os.environ, log_dir=tmp_path / "logs", name="parent") as proc:
        pid, folder = proc.wait_line("started").split()[1:]
        proc.sigkill()
        until(lambda: has_ended(int(pid)), 30, "the end of the server")
    shutil.rmtree(folder)


def test_without_postgresql_a_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """It names what to install."""
    monkeypatch.setattr(postgres, "FOLDER", Path("/nowhere"))
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ServerMissingError, match="apt install postgresql"):
        programs()
