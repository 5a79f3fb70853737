"""From one machine to two: the first one connects a database, the second one joins, and asks on the same phone."""

from __future__ import annotations

import asyncio
import re
import secrets
import stat
import sys
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from hermes.commands.stores import look
from hermes.config import reading as configuration
from hermes.hook import spool
from hermes.sandbox.botapi import Chat, running_botapi
from hermes.storage.home import Home
from hermes.storage.postgres.address import Address
from hermes.storage.postgres.migrations import steps
from hermes.storage.postgres.store import PostgresStore
from tests.commands.setup.desk import ANN, CTRL_C, NO_SYSTEMD, Desk, pairs
from tests.harness.postgres import PASSWORD, Database, ProvenServer, Server
from tests.harness.processes import Proc
from tests.storage.postgres.proxy import proxy
from tests.storage.store_process import an_entry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HERMES = [sys.executable, "-m", "hermes"]
ADD = [*HERMES, "store", "add"]
JOIN = [*HERMES, "setup", "--join"]
WRONG = "not-the-password"


@pytest.fixture
def other(desk: Desk, tmp_path: Path) -> Iterator[Desk]:
    """A second computer."""
    root = tmp_path / "other"
    root.mkdir()
    made = Desk(root, desk.api)
    made.has("systemctl", NO_SYSTEMD)
    yield made
    made.stop_listener()


def password_of(desk: Desk) -> Path:
    """The file beside the configuration."""
    return desk.config.parent / "database-password"


def has_database(desk: Desk, database: Database) -> None:
    """Write a configuration with the database, and make its tables."""
    desk.has_config()
    password_of(desk).write_text(PASSWORD)
    options = ("--store-url", database.address().url, "--store-password-file", str(password_of(desk)))
    status, said = desk.unattended("--yes", "--no-agents", "--no-service", *options)
    assert (status, PASSWORD in said) == (0, False), said


def added(desk: Desk, name: str) -> tuple[str, str]:
    """Add a machine: the URL to join, and the password. The server keeps its users from test to test."""
    status, said = desk.alone([*ADD, f"{name} {secrets.token_hex(4)}"])
    assert status == 0, said
    found = re.search(r"--join '?(\S+?)'?\n", said)
    assert found is not None, said
    return found[1], said.split()[-1]


@contextmanager
def listening(desk: Desk) -> Iterator[Proc]:
    """A listener at work."""
    command = [*HERMES, "listen"]
    with Proc(command, cwd=desk.root, environ=desk.environ, log_dir=desk.root / "logs", name="listener") as listener:
        desk.api.phone.wait_for_poll(30)
        yield listener


def test_a_newcomer_goes_from_one_machine_to_two(desk: Desk, other: Desk, database: Database) -> None:
    """All that a person types, on both; the answer of the phone arrives at the second machine."""
    url = database.address().url
    with desk.terminal(desk.command("--no-agents", "--no-prompts", "--no-service", "--no-test")) as terminal:
        pairs(terminal, desk)
        terminal.answers("Do agents run on more than one machine? [y/N]", "y")
        terminal.answers("The URL of the database", url)
        terminal.answers("The password of the database", PASSWORD)
        terminal.sees(f"The database {database.name} on 127.0.0.1 answers.")
        assert terminal.ends() == 0
        assert "For the next machine: `hermes store add NAME`." in terminal.said()
    assert stat.S_IMODE(password_of(desk).stat().st_mode) == 0o600
    with listening(desk):
        join, password = added(desk, "laptop")
        other.has_opencode()
        with other.terminal([*JOIN, join]) as terminal:
            terminal.answers("The password of the database", password)
            terminal.sees("OpenCode 1.18.33 is here")
            assert terminal.ends() == 0
            assert "All set. Ask your agent something: its question comes to the phone." in terminal.said()
        assert list((other.root / ".config" / "opencode").rglob("*.js"))
        assert "telegram" not in other.config.read_text()
        assert stat.S_IMODE(password_of(other).stat().st_mode) == 0o600
        with other.terminal([*HERMES, "ask", "Which way?", "-o", "Left", "-o", "Right"]) as terminal:
            desk.api.phone.tap(desk.api.phone.message_with("Which way?", 40), "Left")
            terminal.sees("Left")
            assert terminal.ends() == 0
        owners = [str(user) for (user,) in database.ask("SELECT owner::text FROM hermes.machines")]
        assert any(user.startswith("laptop ") for user in owners)


def test_passwords_are_neither_shown_nor_given_as_words(desk: Desk, other: Desk, database: Database) -> None:
    """A hidden one is in its file alone; a URL that has one is refused, and not repeated."""
    has_database(desk, database)
    join, password = added(desk, "laptop")
    with other.terminal([*JOIN, join]) as terminal:
        terminal.answers("The password of the database", password)
        shown = terminal.raw
        assert terminal.ends() == 0
        assert password.encode() not in shown + terminal.raw
    files = [file for file in other.root.rglob("*") if file.is_file() and password.encode() in file.read_bytes()]
    assert files == [password_of(other)]
    status, said = other.alone([*JOIN, join.replace("@", f":{WRONG}@"), "--yes"])
    assert (status, WRONG in said) == (2, False)
    assert "has a password in it" in said


def test_who_mistypes_is_asked_again(desk: Desk, database: Database) -> None:
    """A URL that is none, one without a database, a wrong password; all else is set up without a database."""
    before = desk.has_config()
    url = database.address().url
    with desk.terminal(desk.command("--no-agents", "--no-prompts", "--no-service", "--no-test")) as terminal:
        terminal.answers("Keep this bot?", "")
        terminal.answers("Keep this?", "")
        terminal.answers("more than one machine?", "y")
        for wrong, why in (
            ("hermes", "is not the URL of a PostgreSQL database"),
            ("postgresql://hermes@127.0.0.1/", "does not name a database"),
        ):
            terminal.answers("The URL of the database", wrong)
            terminal.sees(f"That URL {why}")
        terminal.answers("The URL of the database", url)
        terminal.answers("The password of the database", WRONG)
        terminal.sees("The database does not accept this user and password.")
        terminal.answers("Try again?", "")
        terminal.answers("The URL of the database", url)
        terminal.answers("The password of the database", "")
        terminal.sees("The database wants a password from this user, and there is none.")
        terminal.answers("Try again?", "n")
        assert terminal.ends() == 0
        assert "No database was connected. All else is set up for this machine alone" in terminal.said()
    assert (desk.config.read_bytes(), desk.left()) == (before, ["config.toml"])
    assert database.ask("SELECT to_regnamespace('hermes')") == [(None,)]


def test_an_empty_line_leaves_the_question_about_the_database(desk: Desk) -> None:
    """A person may have no database yet: the question says so, and all else is set up."""
    before = desk.has_config()
    with desk.terminal(desk.command("--no-agents", "--no-prompts", "--no-service", "--no-test")) as terminal:
        terminal.answers("Keep this bot?", "")
        terminal.answers("Keep this?", "")
        terminal.answers("more than one machine?", "y")
        terminal.answers("The URL of the database (postgresql://USER@HOST/DATABASE; Enter for none):", "")
        assert terminal.ends() == 0
        assert "No database was connected. All else is set up for this machine alone" in terminal.said()
    assert (desk.config.read_bytes(), desk.left()) == (before, ["config.toml"])


@pytest.mark.nightly
def test_a_database_that_is_there_is_named_and_not_asked_for(desk: Desk, database: Database) -> None:
    """Nothing changes with Enter alone."""
    has_database(desk, database)
    before = desk.config.read_bytes()
    with desk.terminal(desk.command("--no-agents", "--no-prompts", "--no-service", "--no-test")) as terminal:
        terminal.answers("Keep this bot?", "")
        terminal.answers("Keep this?", "")
        terminal.sees(f"They share the database {database.name} on 127.0.0.1.")
        assert terminal.ends() == 0
    assert desk.config.read_bytes() == before


def refused(desk: Desk, *words: str) -> str:
    """Join in vain, which changes nothing; the sentence."""
    before = {file: file.read_bytes() for file in (desk.config, password_of(desk)) if file.exists()}
    status, said = desk.alone([*JOIN, *words])
    assert status in (1, 2), said
    assert {file: file.read_bytes() for file in (desk.config, password_of(desk)) if file.exists()} == before
    lines = [line for line in said.splitlines() if line.startswith("hermes: ")]
    assert len(lines) == 1, said
    assert "Traceback" not in said
    return lines[0]


def with_password(desk: Desk, password: str) -> list[str]:
    """The option for a file with this password."""
    file = desk.root / "secret"
    file.write_text(password)
    return ["--store-password-file", str(file)]


@pytest.mark.nightly
def test_who_cannot_join_is_told_why(desk: Desk, other: Desk, database: Database) -> None:
    """One sentence each, and nothing is written."""
    has_database(desk, database)
    join, password = added(desk, "ci")
    right = with_password(other, password)
    owner = database.address().url
    assert "the URL of the database is not the URL of a PostgreSQL database" in refused(other, "x", "--yes")
    assert "give --store-password-file FILE, or --yes if it needs none" in refused(other, join)
    assert "wants a password from this user" in refused(other, join, "--yes")
    assert "cannot be read from --store-password-file" in refused(other, join, "--store-password-file", "/nowhere")
    assert "does not accept this user and password" in refused(other, join, *with_password(other, WRONG))
    right = with_password(other, password)
    assert "cannot be reached" in refused(other, re.sub(r":\d+/", ":1/", join), *right)
    assert "leave --token-file, --chat" in refused(other, join, *right, "--chat", "5")
    assert "give one of --join" in refused(other, join, *right, "--store-url", owner)
    database.ask("UPDATE hermes.members SET bot = 7 WHERE kind = 'agent'")
    other.has_config()
    assert "names the bot" in refused(other, join, *right)
    other.config.unlink()
    database.ask("DELETE FROM hermes.members WHERE kind = 'agent'")
    assert "does not belong to the bot; `hermes store add`" in refused(other, join, *right)
    database.ask("INSERT INTO hermes.migrations (version) VALUES (%s)", len(steps()) + 1)
    assert "a newer Hermes has made the tables" in refused(other, join, *right)
    database.ask("DELETE FROM hermes.migrations")
    assert "the tables in the database are missing" in refused(other, join, *right)
    database.ask("DROP SCHEMA hermes CASCADE")
    assert "the tables in the database are missing" in refused(other, owner, *with_password(other, PASSWORD))
    assert other.left() == []


@pytest.mark.nightly
def test_a_server_with_an_authority_of_its_own(desk: Desk, postgres_programs: Path) -> None:
    """Its certificate is proved by setup, and by the listener."""
    before = desk.has_config()
    with ProvenServer() as server:
        url = f"postgresql://hermes@localhost:{server.port}/postgres?sslmode=verify-full"
        options = ("--yes", "--no-agents", "--no-service", "--store-url", url, *with_password(desk, PASSWORD))
        status, said = desk.unattended(*options)
        assert status == 1
        assert "`hermes setup --store-ca-file FILE`" in " ".join(said.split())
        assert desk.config.read_bytes() == before
        status, said = desk.unattended(*options, "--store-ca-file", str(server.ca))
        assert status == 0, said
        with listening(desk):
            address = Address(url, PASSWORD, ca_file=server.ca)
            with psycopg.connect(**address.parameters() | {"application_name": "test"}) as connection:  # type: ignore[arg-type]
                used = connection.execute(
                    "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'hermes'"
                ).fetchall()
        assert used == [(True,), (True,)]


def test_the_environment_names_the_database(desk: Desk, database: Database) -> None:
    """Like a token, the URL is then written into the configuration."""
    desk.has_config()
    names = {
        "HERMES_STORE__URL": database.address().url,
        "HERMES_STORE__PASSWORD_FILE": with_password(desk, PASSWORD)[1],
    }
    command = desk.command("--yes", "--no-agents", "--no-service")
    status, said = desk.alone(command, stdin=None, **names)
    assert (status, "in this shell" in said) == (0, False), said
    assert configuration.load(desk.config, environ={}).store.url == database.address().url


async def test_a_pooler_is_refused(desk: Desk, database: Database) -> None:
    """What it would lose is found out before anything is written."""
    before = desk.has_config()
    async with proxy(database.port) as between:
        between.loses_news = True
        url = database.address(port=between.port).url
        options = ("--yes", "--no-agents", "--no-service", "--store-url", url, *with_password(desk, PASSWORD))
        status, said = await asyncio.to_thread(desk.unattended, *options)
    assert (status, "the pooler's session mode" in said) == (1, True)
    assert desk.config.read_bytes() == before


@pytest.mark.nightly
def test_who_may_not_make_the_tables_is_told(desk: Desk, other: Desk, database: Database) -> None:
    """The user of an agent-only machine cannot be that of the phone."""
    has_database(desk, database)
    join, password = added(desk, "ci")
    before = other.has_config()
    options = ("--yes", "--no-agents", "--no-service", "--store-url", join, *with_password(other, password))
    status, said = other.unattended(*options)
    assert (status, "may not make the tables of Hermes; use the user that owns the database" in said) == (1, True)
    assert other.config.read_bytes() == before


def test_a_machine_that_joins_keeps_its_configuration(desk: Desk, other: Desk, database: Database) -> None:
    """Also its comments; a password in ~/.pgpass is enough, and nobody is asked."""
    has_database(desk, database)
    join, password = added(desk, "ci")
    other.config.parent.mkdir(parents=True)
    other.config.write_text("# mine\n[questions]\nttl = '5m' # short\n\n[store]\nkeep_done = '2d'\n")
    passes = other.root / ".pgpass"
    passes.write_text(f"*:*:*:*:{password}\n")
    passes.chmod(0o600)
    other.has_systemd()
    with other.terminal([*JOIN, join]) as terminal:
        assert terminal.ends() == 0
        assert "password" not in terminal.said()
    text = other.config.read_text()
    assert "# mine\n[questions]\nttl = '5m' # short\n" in text
    store = configuration.load(other.config, environ={}).store
    assert (store.url, store.password_file, store.keep_done) == (join, None, 172800.0)
    assert other.left() == ["config.toml"]
    assert any("start" in line for line in other.systemd_did())


@pytest.mark.nightly
def test_a_machine_joins_again(desk: Desk, other: Desk, database: Database) -> None:
    """The password is kept as long as it is right, and asked for if it is not."""
    has_database(desk, database)
    join, password = added(desk, "ci")
    with other.terminal([*JOIN, join]) as terminal:
        terminal.answers("The password of the database", password)
        assert terminal.ends() == 0
    before = other.config.read_bytes()
    with other.terminal([*JOIN, join]) as terminal:
        assert terminal.ends() == 0
        assert "stays as it was" in terminal.said()
    password_of(other).write_text(WRONG)
    assert "does not accept" in refused(other, join, "--yes")
    with other.terminal([*JOIN, join]) as terminal:
        terminal.answers("The password of the database", password)
        assert terminal.ends() == 0
    assert (other.config.read_bytes(), password_of(other).read_text()) == (before, f"{password}\n")


def test_a_machine_joins_unattended(desk: Desk, other: Desk, database: Database) -> None:
    """The file of the password is named in the configuration, and stays where it is; no token is written."""
    has_database(desk, database)
    join, password = added(desk, "ci")
    secret = with_password(other, password)
    status, said = other.alone([*JOIN, join, *secret, "--no-service"], HERMES_TELEGRAM__TOKEN=desk.api.token)
    assert (status, password in said) == (0, False)
    config = configuration.load(other.config, environ={})
    assert (config.phone, str(config.store.password_file)) == (None, secret[1])
    assert other.left() == ["config.toml"]


@pytest.mark.nightly
def test_a_joined_machine_that_gets_the_token_needs_the_owner(desk: Desk, other: Desk, database: Database) -> None:
    """Its own user of the database may not bring questions to the phone, nor lock it; with the owner's, it can."""
    has_database(desk, database)
    join, password = added(desk, "ci")
    status, said = other.alone([*JOIN, join, *with_password(other, password), "--no-agents", "--no-service"])
    assert status == 0, said
    for command in ("lock", "unlock"):
        status, said = other.alone([*HERMES, command])
        assert (status, "Run this on a machine with the bot's token" in " ".join(said.split())) == (2, True)
    bot = ("--chat", "1001", "--user", "1001", "--no-agents", "--no-service", "--yes")
    before = other.config.read_bytes()
    status, said = other.unattended(*bot, HERMES_TELEGRAM__TOKEN=desk.api.token)
    assert (status, "must reach the database as its owner" in " ".join(said.split())) == (2, True)
    assert other.config.read_bytes() == before
    owner = ("--store-url", database.address().url, *with_password(other, PASSWORD))
    status, said = other.unattended(*bot, *owner, HERMES_TELEGRAM__TOKEN=desk.api.token)
    assert status == 0, said
    assert configuration.load(other.config, environ={}).phone is not None


def connected(desk: Desk, database: Database) -> tuple[int, str]:
    """Set a database up unattended; the status, and all that was said in one line."""
    options = ("--store-url", database.address().url, *with_password(desk, PASSWORD))
    status, said = desk.unattended("--yes", "--no-agents", "--no-service", *options)
    return status, " ".join(said.split())


def test_a_question_that_waits_goes_along(desk: Desk, database: Database) -> None:
    """The listener goes on with the database, and the answer to a message of before arrives."""
    desk.has_config()
    with listening(desk), desk.terminal([*HERMES, "ask", "Which way?", "-o", "Left", "-o", "Right"]) as terminal:
        shown = desk.api.phone.message_with("Which way?", 40)
        status, said = connected(desk, database)
        assert status == 0, said
        assert f"Moved to {database.name} on 127.0.0.1: 1 question." in said
        desk.api.phone.tap(desk.api.phone.message(shown.message_id), "Left")
        terminal.sees("Left")
        assert terminal.ends() == 0
    assert [row for (row,) in database.ask("SELECT closed_s IS NOT NULL FROM hermes.entries")] == [True]


def test_what_cannot_be_moved_is_told(desk: Desk, database: Database) -> None:
    """The rest is set up; a command moves it later."""
    desk.has_config()
    pending = desk.store / "pending"
    pending.mkdir(parents=True, mode=0o700)
    (pending / "aaaa2222.json").write_text("{")
    status, said = connected(desk, database)
    assert status == 1
    assert "Once that is solved, `hermes store move database` brings the open questions along." in said
    assert (pending / "aaaa2222.json").read_text() == "{"


@pytest.mark.nightly
def test_who_goes_to_another_database_hears_what_stays_in_the_one_before(
    desk: Desk, database: Database, postgres: Server
) -> None:
    """Before anything is changed, with the command that brings it along."""
    desk.has_config()
    asked = an_entry("aaaa2222", code="")
    with postgres.database() as second:
        status, said = connected(desk, database)
        assert (status, "Until now" in said, "Nothing was open" in said) == (0, False, False), said
        machine = spool.machine(desk.store)
        asked = replace(asked, ask=replace(asked.ask, source=replace(asked.ask.source, machine=machine)))
        bot = int(desk.api.token.partition(":")[0])
        store = PostgresStore(Home(desk.store), database.address(), bot)
        asyncio.run(look(store, lambda store: store.create(asked)))
        before, stays = desk.config.read_bytes(), f"Until now, it was the database {database.name} on 127.0.0.1. If"
        with desk.terminal(desk.command("--store-url", second.address().url, "--no-agents", "--no-service")) as person:
            person.answers("Keep this bot?", "")
            person.answers("Keep this?", "")
            person.answers("The password of the database", PASSWORD)
            person.sees(stays)
            person.sees("leave this with Ctrl-C, and run `hermes store move files`.")
            person.presses(CTRL_C)
            person.ends()
        assert desk.config.read_bytes() == before
        status, said = desk.alone([*HERMES, "store", "move", "files"])
        assert (status, "1 question" in said) == (0, True), said
        status, said = connected(desk, second)
        assert (status, stays in said, f"Moved to {second.name} on 127.0.0.1: 1 question." in said) == (0, True, True)
        status, said = connected(desk, second)
        assert (status, "Until now" in said) == (0, False), said


@pytest.mark.nightly
def test_the_listener_pauses_while_somebody_else_is_let_in(desk: Desk, database: Database) -> None:
    """With a database, too; else it would take the message with the code, and setup would blame another computer."""
    has_database(desk, database)
    command = desk.command("--no-agents", "--no-prompts", "--no-service", "--no-test")
    with listening(desk) as listener, desk.terminal(command) as person:
        person.answers("Keep this bot?", "")
        person.answers("Keep this?", "n")
        person.answers("Use a group?", "")
        person.answers("Let it pause?", "")
        desk.write(f"/start {person.link()[1]}")
        person.answers("Let Ann answer your agents?", "y")
        assert listener.wait() == 0
        person.sees("The listener was started again")
        assert person.ends() == 0


@pytest.mark.nightly
@pytest.mark.parametrize("is_named", [False, True], ids=["kept", "named again"])
def test_who_takes_another_bot_hears_what_stays_with_the_one_before(
    desk: Desk, database: Database, *, is_named: bool
) -> None:
    """In the database each bot has its own questions and machines."""
    has_database(desk, database)
    people = ("--chat", str(ANN.id), "--user", str(ANN.id))
    status, said = desk.unattended("--yes", "--no-agents", "--no-service", *people)
    assert (status, "With another bot" in said) == (0, False), said
    token = f"{secrets.randbelow(10**9) + 10**9}:{secrets.token_hex(17)}"
    with running_botapi(token=token, users=(ANN,), chats=(Chat(ANN.id),)) as api:
        options = ("--yes", "--no-agents", "--no-service", *people)
        named: dict[str, Any] = {"HERMES_STORE__URL": database.address().url} if is_named else {}
        status, said = Desk(desk.root, api).unattended(*options, HERMES_TELEGRAM__TOKEN=token, **named)
    assert status == 0, said
    assert "With another bot, what is open stays in the database" in " ".join(said.split())
