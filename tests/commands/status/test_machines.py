"""`status` with a database: every machine, the phone side, and a database that is away."""

from __future__ import annotations

import json
import secrets
import shlex
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pexpect
import pytest

from hermes.commands.status.survey import Status, gather, to_json
from hermes.commands.status.table import verdict
from hermes.config.settings import Config
from hermes.model.chat_memory import ChatMemory
from hermes.storage.postgres import roles
from hermes.storage.postgres.store import PostgresStore
from tests.commands.status.test_status import HERMES, TOKEN, lines
from tests.harness.postgres import PASSWORD, Database, Server
from tests.harness.processes import free_port
from tests.storage.machines import joined, machine
from tests.storage.store_process import an_entry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

BOT = int(TOKEN.partition(":")[0])
TELEGRAM = {"token": TOKEN, "chat_id": 7, "users": (7,)}
NOBODY = "✗ phone side no machine: questions and answers wait until one with the bot's token runs `hermes listen`"


def a_machine(tmp_path: Path, name: str, database: Database) -> PostgresStore:
    """The store of a machine of this bot."""
    return machine(tmp_path, name, database.address(), bot=BOT)


@pytest.fixture
async def three(tmp_path: Path, database: Database) -> AsyncIterator[tuple[PostgresStore, ...]]:
    """A laptop, which is the phone side, a server, and a workstation that was switched off two hours ago."""
    laptop, server, workstation = (a_machine(tmp_path, name, database) for name in ("laptop", "server", "workstation"))
    async with joined(workstation):
        pass
    database.ask("UPDATE hermes.machines SET seen = seen - interval '2 h'")
    async with joined(laptop, phone=True), joined(server):
        await server.renew((("opencode", True), ("shop", False)))
        yield laptop, server, workstation


async def look(store: PostgresStore, *, asks_start_it: bool = False, **sections: object) -> Status:
    """Gather on this machine, and leave nothing open."""
    told = {"telegram": TELEGRAM, "store": {"path": store.home.root, "url": "postgresql://x@127.0.0.1/x"}, **sections}
    config = Config.model_validate({key: value for key, value in told.items() if value})
    return await gather(config, store, asks_start_it=asks_start_it)


async def test_every_machine_is_shown(three: tuple[PostgresStore, ...]) -> None:
    """The phone side, this machine, since when one is away, and servers that are not connected; in 80 columns, too."""
    shown = lines(await look(three[1]), width=80)
    at = shown.index("   Machine      Version  State                Servers")
    assert shown[at + 1 : at + 4] == [
        "●  laptop       1.0      here · phone side    –",
        "●  server       1.0      here · this machine  opencode, shop (not connected)",
        "○  workstation  1.0      away for 2 h 00 min  –",
    ]


async def test_programs_get_every_machine(three: tuple[PostgresStore, ...]) -> None:
    """With stable keys."""
    laptop, server, workstation = json.loads(to_json(await look(three[1])))["machines"]
    servers = [{"name": "opencode", "connected": True}, {"name": "shop", "connected": False}]
    usual = {"version": "1.0", "this": False, "phone_side": False, "away_since_s": None, "servers": []}
    assert laptop == {"id": "laptop", "name": "laptop", **usual, "phone_side": True}
    assert server == {"id": "server", "name": "server", **usual, "this": True, "servers": servers}
    assert time.time() - workstation["away_since_s"] == pytest.approx(7200, abs=60)


async def test_a_machine_that_is_away_is_no_error_but_no_phone_side_is(three: tuple[PostgresStore, ...]) -> None:
    """A notebook may be shut; somebody must talk with Telegram."""
    laptop, server, _ = three
    await laptop.save_chat(ChatMemory(BOT, last_poll_s=time.time()))
    with server.home.hold("hermes listen"):
        status = await look(server)
        assert verdict(status) == (False, "all is well, 0 open; workstation is away for 2 h 00 min")
        await laptop.leave()
        status = await look(server)
    assert verdict(status)[0]
    assert verdict(status)[1].startswith("no machine is the phone side; ")
    assert " ".join(" ".join(lines(status)).split()).count(NOBODY) == 1


async def test_a_phone_side_that_the_next_ask_starts_is_no_error(tmp_path: Path, database: Database) -> None:
    """As long as no other machine needs one; its asks need no listener here."""
    tower, desk = a_machine(tmp_path, "tower", database), a_machine(tmp_path, "desk", database)
    async with joined(tower):
        pass
    database.ask("UPDATE hermes.machines SET seen = seen - interval '2 h'")
    assert not verdict(await look(tower, asks_start_it=True))[0]
    async with joined(desk):
        await desk.create(an_entry())
        assert verdict(await look(tower, asks_start_it=True)) == (True, "no machine is the phone side")
    await tower.leave()


async def test_an_agent_only_machine_sees_itself(
    tmp_path: Path, database: Database, three: tuple[PostgresStore, ...]
) -> None:
    """And does not miss a phone side that it may not see."""
    user = f"ci_{secrets.token_hex(4)}"
    for statement in roles.statements(user, PASSWORD, BOT):
        database.ask(statement)
    try:
        async with joined(machine(tmp_path, "ci", database.address(user), bot=None)) as ci:
            with ci.home.hold("hermes listen"):
                status = await look(ci, telegram=None)
    finally:
        for statement in roles.removal(user).splitlines():
            database.ask(statement)
    assert [(one.name, one.this) for one in status.machines] == [("ci", True)]
    assert verdict(status) == (False, "all is well, 0 open")


async def test_a_clock_that_differs_from_the_database_s_is_no_alarm(tmp_path: Path, database: Database) -> None:
    """The times in a database are by its own clock, which is an hour behind here."""
    database.ask("""
        CREATE SCHEMA behind;
        CREATE FUNCTION behind.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS
        $$ SELECT pg_catalog.clock_timestamp() - interval '1 h' $$;
        GRANT USAGE ON SCHEMA behind TO hermes;
    """)
    database.ask(f"ALTER DATABASE {database.name} SET search_path = behind, pg_catalog, public")
    laptop, looker = (a_machine(tmp_path, "laptop", database) for _ in range(2))
    async with joined(laptop, phone=True):
        await laptop.save_chat(ChatMemory(BOT, last_poll_s=laptop.now()))
        with laptop.home.hold("hermes listen"):
            status = await look(looker)
            await looker.leave()
    assert verdict(status) == (False, "all is well, 0 open")
    assert " h " not in " ".join(lines(status))


def command(tmp_path: Path, database: Database, *options: str) -> str:
    """The command line of `hermes status` on a machine with this database."""
    secret, file = tmp_path / "password", tmp_path / "config.toml"
    secret.write_text(PASSWORD)
    told = f'url = "{database.address().url}"\npath = "{tmp_path / "home"}"\npassword_file = "{secret}"'
    file.write_text(f'[telegram]\ntoken = "{TOKEN}"\nchat_id = 7\nusers = [7]\n[store]\n{told}\n')
    for path in (secret, file):
        path.chmod(0o600)
    return shlex.join([HERMES, "status", "--config", str(file), *options])


def run(tmp_path: Path, database: Database, *options: str) -> subprocess.CompletedProcess[str]:
    """Run `hermes status` with this database."""
    words = shlex.split(command(tmp_path, database, *options))
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=30)


def test_a_database_that_is_away_is_one_sentence(tmp_path: Path) -> None:
    """Status 1; for monitoring on standard output, as every verdict."""
    away = Database("hermes", free_port())
    done = run(tmp_path, away)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("hermes: the database cannot be reached (")
    done = run(tmp_path, away, "--check")
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (1, "", 1)
    assert done.stdout.startswith("the database cannot be reached (")


def test_watching_goes_on_while_the_database_is_away(tmp_path: Path) -> None:
    """It says so, and shows all again when the database is back."""
    with Server() as server, server.database() as database:
        child = pexpect.spawn(command(tmp_path, database, "--watch"), dimensions=(20, 80), timeout=30, encoding="utf-8")
        try:
            child.expect_exact("are missing; start Hermes")
            server.stop()
            child.expect_exact("cannot be reached")
            server.start()
            child.expect_exact("are missing; start Hermes")
            child.sendcontrol("c")
            child.expect(pexpect.EOF)
        finally:
            child.close(force=True)
    assert child.exitstatus == 0


def test_a_frozen_database_is_one_sentence(tmp_path: Path) -> None:
    """After some seconds."""
    with Server() as server, server.frozen():
        done = run(tmp_path, Database("postgres", server.port))
    sentence = "hermes: the database did not answer in time; look at its load, and at the network\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", sentence)


def test_a_database_without_tables_says_what_to_do(tmp_path: Path, database: Database) -> None:
    """And gets none by a look."""
    done = run(tmp_path, database)
    assert done.returncode == 1
    assert "the tables in the database are missing; start Hermes on the machine with the bot's token" in done.stderr
    assert database.ask("SELECT to_regnamespace('hermes') IS NULL") == [(True,)]
    assert not (tmp_path / "home").exists()
