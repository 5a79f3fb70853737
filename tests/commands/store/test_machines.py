"""The users of the database for other machines: `hermes store add` makes them, `hermes store remove` removes them."""

from __future__ import annotations

import secrets
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hermes.commands.store import machines
from hermes.config import reading as configuration
from hermes.errors import ConfigError, NotSaved, StoreAway, StoreError
from hermes.sandbox.postgres import programs
from hermes.storage.postgres import roles
from hermes.storage.postgres.address import Address
from tests.commands.test_cli import run
from tests.harness.postgres import OWNER, PASSWORD
from tests.storage.machines import asked_at, joined, machine

if TYPE_CHECKING:
    from hermes.config.settings import Config
    from tests.harness.postgres import Database

BOT = 1234567


@pytest.fixture
def config(tmp_path: Path, database: Database) -> Config:
    """The configuration of the machine with the bot's token."""
    return loaded(tmp_path, database.address())


def loaded(folder: Path, address: Address) -> Config:
    """A configuration with the bot and this database."""
    (folder / "password").write_text(address.password)
    place = folder / "config.toml"
    place.write_text(
        f"[telegram]\ntoken = '{BOT}:{'a' * 35}'\nchat_id = 1\nusers = [1]\n"
        f"[store]\npath = '{folder / 'desk'}'\nurl = '{address.url}'\npassword_file = '{folder / 'password'}'\n"
    )
    return configuration.load(place, environ={})


def a_name(kind: str = "ci") -> str:
    """A name that no other test has: the server keeps its users."""
    return f"{kind} {secrets.token_hex(4)}"


async def added(config: Config, name: str) -> tuple[str, list[str]]:
    """Add a machine: its password, and what is printed."""
    assert config.store.address is not None
    lines = await machines.add(config, config.store.address, name)
    return lines[-1], lines


async def removed(config: Config, which: str) -> str:
    """Remove a machine: what is printed."""
    assert config.store.address is not None
    return "\n".join(await machines.remove(config, config.store.address, which))


def users(database: Database, name: str) -> int:
    """How many users of this name the server has."""
    return len(database.ask("SELECT FROM pg_roles WHERE rolname = %s", name))


async def test_a_machine_that_has_not_joined_is_removed_by_its_user(config: Config, database: Database) -> None:
    """Nobody can log in any more."""
    name = a_name()
    _, lines = await added(config, name)
    url = f"postgresql://{name.replace(' ', '%20')}@127.0.0.1:{database.port}/{database.name}?sslmode=disable"
    assert f"hermes setup --join '{url}'" in lines
    assert await removed(config, name) == f"The database has no user {name} any more."
    assert users(database, name) == 0


async def test_an_empty_name_is_that_of_no_machine(config: Config, database: Database) -> None:
    """As of a variable that is not set; a user that no machine has used yet has no name of a machine."""
    name = a_name()
    await added(config, name)
    with pytest.raises(ConfigError, match="there is no machine ''"):
        await removed(config, "")
    assert users(database, name) == 1
    await removed(config, name)


async def test_the_other_machine_is_told_how_the_database_proves_who_it_is(
    config: Config, database: Database, tmp_path: Path
) -> None:
    """As it is told here; and that an address such as localhost is another one there."""
    authorities = tmp_path / "ca.pem"
    authorities.touch()
    address = replace(database.address(), tls="off", ca_file=authorities)
    said = "\n".join(await machines.add(config, address, a_name()))
    assert f"?sslmode=disable' --store-tls off --store-ca-file {authorities}\n" in said
    assert "Copy the file with the certificate authorities to that machine, too." in said
    assert "put the one by which the other reaches it" in said


async def test_a_machine_that_has_joined_is_removed_by_its_name(
    config: Config, database: Database, tmp_path: Path
) -> None:
    """Its user goes, too."""
    name = a_name()
    password, _ = await added(config, name)
    address = database.address(name.replace(" ", "%20"), password)
    async with joined(machine(tmp_path, "box", address, bot=None)) as box:
        assert await box.open() == []
    said = await removed(config, "box")
    done = "box is removed. Its open questions have ended; prompts to it end on the phone."
    assert said == f"{done}\nThe database has no user {name} any more."
    assert users(database, name) == 0
    with pytest.raises(StoreError, match="does not accept this user and password"):
        await machine(tmp_path, "box", address, bot=None).open()


async def test_a_machine_whose_user_stays_may_come_back(config: Config, database: Database, tmp_path: Path) -> None:
    """One with the token has the address of the owner."""
    async with joined(machine(tmp_path, "box", database.address(), bot=BOT)):
        pass
    said = await removed(config, "box")
    assert f"Its user of the database, {OWNER}, stays, so the machine comes back if Hermes still runs" in said
    async with joined(machine(tmp_path, "box", database.address(), bot=BOT)) as box:
        assert await box.open() == []


async def test_a_removal_that_breaks_off_leaves_no_question_for_ever(
    config: Config, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is lost once the machine is removed: nobody could name it a second time."""
    remove = roles.remove_machine

    async def last(*words: Any) -> None:
        await remove(*words)
        raise StoreAway("the database did not answer in time")

    async with joined(machine(tmp_path, "desk", database.address(), bot=BOT), phone=True) as desk:
        async with joined(machine(tmp_path, "box", database.address(), bot=BOT)) as box:
            await box.create(asked_at("box", "aaaa2222"))
        monkeypatch.setattr(roles, "remove_machine", last)
        with pytest.raises(StoreAway):
            await removed(config, "box")
        assert [entry.state.phase for entry in await desk.open()] == ["settled"]


async def test_a_name_is_used_once(config: Config, database: Database) -> None:
    """The first machine keeps its password."""
    name = a_name()
    password, _ = await added(config, name)
    with pytest.raises(NotSaved, match="has a user of this name already"):
        await added(config, name)
    async with joined(
        machine(config.store.path, "box", database.address(name.replace(" ", "%20"), password), bot=None)
    ):
        pass


@pytest.mark.parametrize("name", ["", "\udcff", "a\x1b[31mb", "é" * 32])
@pytest.mark.usefixtures("config")
def test_a_name_that_no_user_can_have(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is wrong usage. The sentence counts bytes, as the database does: 32 letters may have 64."""
    assert run("store", "add", name, "--config", str(tmp_path / "config.toml")) == 2
    wanted = "a name of 1 to 63 bytes of UTF-8 that are printable characters; give another one, such as ci."
    assert capsys.readouterr().err == f"hermes: a user of the database has {wanted}\n"


async def test_an_administrator_makes_and_removes_users(config: Config, database: Database, tmp_path: Path) -> None:
    """If our own user may not, the statements are printed, and they work."""
    owner, name = f"owner_{secrets.token_hex(4)}", a_name()
    secret = f"'{PASSWORD}'"
    database.ask(f"CREATE ROLE {owner} LOGIN PASSWORD {secret}")
    database.ask(f"ALTER DATABASE {database.name} OWNER TO {owner}")
    other = loaded(tmp_path, database.address(owner))
    password, lines = await added(other, name)
    assert "Your user of the database may not make users." in lines[0]
    assert users(database, name) == 0
    assert password not in lines[2]
    told(database, lines[2])
    address = database.address(name.replace(" ", "%20"), password)
    async with joined(machine(tmp_path, "box", address, bot=None)):
        pass
    said = await removed(other, "box")
    assert "Your user of the database may not remove users." in said
    told(database, said.partition("run this:")[2])
    assert users(database, name) == 0


def told(database: Database, statements: str) -> None:
    """Let an administrator run them."""
    place = ["--host=127.0.0.1", f"--port={database.port}", "--username=postgres", database.name]
    command = [str(programs() / "psql"), "--quiet", "--set=ON_ERROR_STOP=1", *place]
    subprocess.run(command, input=statements, text=True, check=True, env={"PGPASSWORD": PASSWORD})


async def test_only_one_machine_is_removed_and_never_this_one(
    config: Config, database: Database, tmp_path: Path
) -> None:
    """Two of one name, or of one user, want an id; the user of the other one stays."""
    name = a_name()
    password, _ = await added(config, name)
    address = database.address(name.replace(" ", "%20"), password)
    desk = machine(tmp_path, "desk", database.address(), bot=BOT)
    async with (
        joined(desk),
        joined(machine(tmp_path, "a", address, bot=None)),
        joined(machine(tmp_path, "b", address, bot=None)),
    ):
        with pytest.raises(ConfigError, match=r"means several machines; give the id of one: a \(a\), b \(b\)"):
            await removed(config, name)
        with pytest.raises(ConfigError, match="there is no machine 'nobody'; there are: "):
            await removed(config, "nobody")
        with pytest.raises(ConfigError, match="the machine that you are on"):
            await removed(config, "desk")
        done = "a is removed. Its open questions have ended; prompts to it end on the phone."
        assert (await removed(config, "a")).startswith(f"{done}\nIts user of the database, {name}, stays")
        assert users(database, name) == 1


async def test_the_user_of_another_machine_adds_nobody(config: Config, database: Database, tmp_path: Path) -> None:
    """Only the owner of the tables does."""
    name = a_name()
    password, _ = await added(config, name)
    other = loaded(tmp_path, database.address(name.replace(" ", "%20"), password))
    with pytest.raises(StoreError, match="owns the tables"):
        await added(other, a_name())


@pytest.mark.parametrize("command", ["add", "remove"])
def test_without_a_database_there_are_no_other_machines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """Status 2, and the way there."""
    place = tmp_path / "config.toml"
    place.write_text(f"[telegram]\ntoken = '{BOT}:{'a' * 35}'\nchat_id = 1\nusers = [1]\n")
    assert run("store", command, "ci", "--config", str(place)) == 2
    assert "`hermes setup` asks whether agents run on more than one machine" in capsys.readouterr().err


def test_a_machine_without_the_bot_adds_nobody(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It has no bot that the other could belong to."""
    place = tmp_path / "config.toml"
    place.write_text("store.url = 'postgresql://ci@127.0.0.1:1/hermes'\n")
    assert run("store", "add", "ci", "--config", str(place)) == 2
    assert "this machine is agent-only" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        (
            "postgresql://ann@db.example:5433/hermes?sslcert=x&sslmode=verify-full",
            "@db.example:5433/hermes?sslmode=verify-full",
        ),
        ("postgresql://ann@[::1]/her%20mes", "@[::1]/her%20mes"),
        ("postgresql://ann@a:1,b:2/hermes", "@/hermes?host=a%2Cb&port=1%2C2"),
        ("postgresql://ann@/hermes?host=/run", "@/hermes?host=%2Frun"),
        ("postgresql:///?service=ours", "@db.example/hermes"),
    ],
)
def test_the_url_for_another_user(tmp_path: Path, url: str, wanted: str) -> None:
    """The same database; what belongs to a user or to this machine is left out."""
    (tmp_path / ".pg_service.conf").write_text("[ours]\nhost=db.example\ndbname=hermes\nuser=ann\npassword=hush\n")
    address = Address(url, tls="off", home=tmp_path)
    made = address.url_of("c i")
    assert made == f"postgresql://c%20i{wanted}"
    again = Address(made, tls="off", home=tmp_path).parameters()
    assert (again["user"], again["dbname"]) == ("c i", address.parameters()["dbname"])
