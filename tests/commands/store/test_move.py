"""`hermes store move`, as a person runs it, and what a person then sees on the phone."""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
import sys
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hermes.commands.doctor import store as stores
from hermes.commands.store import move
from hermes.commands.stores import store_of
from hermes.hook import spool
from hermes.listener.daemon import Listener
from hermes.sandbox.botapi import running_botapi
from hermes.sandbox.opencode.server import running_agent
from tests.at_once import at_once
from tests.commands.doctor.patient import Patient, named, told
from tests.harness.postgres import PASSWORD, Database
from tests.harness.processes import Proc, until as wait_until
from tests.listening import ANN, BOB, STRANGER, Clock, House, a_request, question, until
from tests.storage.machines import joined, machine
from tests.storage.store_process import an_entry
from tests.stores import a_store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.harness.postgres import Server

HERMES = Path(sys.executable).parent / "hermes"
MANY = 300


class Desk(Patient):
    """A machine whose configuration names a database."""

    def __init__(self, root: Path, database: Database) -> None:
        super().__init__(root)
        secret = root / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o600)
        self.database = database
        self.tables["store"] |= {"url": database.address().url, "password_file": str(secret)}
        self.write()
        spool.keep_machine(self.store.home.root, "desk")

    def command(self, where: str) -> list[str]:
        """The words of the command."""
        return [str(HERMES), "store", "move", where, "--config", str(self.config_file)]

    def run(self, where: str) -> tuple[int, str, str]:
        """Run it; the exit status, standard output and standard error."""
        done = subprocess.run(
            self.command(where), env=self.real_environ, capture_output=True, text=True, check=False, timeout=60
        )
        return done.returncode, done.stdout, done.stderr

    @property
    def real_environ(self) -> dict[str, str]:
        """The environment of a real process."""
        return {**self.environ, "PATH": os.environ["PATH"]}

    def asks(self, *names: str) -> None:
        """Open asks in the folder."""
        for name in names:
            at_once(self.store.create(replace(an_entry(name, code=""), id=name)))

    def in_folder(self) -> set[str]:
        """The ids of the open asks in the folder."""
        return {path.stem for path in (self.root / "store" / "pending").iterdir()}

    def in_database(self) -> set[str]:
        """The ids of the open asks in the database."""
        return {str(row[0]) for row in self.database.ask("SELECT id FROM hermes.entries WHERE closed_s IS NULL")}


@pytest.fixture
def desk(tmp_path: Path, database: Database) -> Desk:
    """The machine."""
    return Desk(tmp_path, database)


def test_a_person_hears_what_was_moved_and_what_to_do(desk: Desk) -> None:
    """There and back; then there is nothing to move."""
    desk.asks("aaaa2222", "bbbb2222")
    root = desk.root / "store"
    name = f"{desk.database.name} on 127.0.0.1"
    closed = f"Closed questions stay in {root}/done; `hermes log` shows only those of the database.\n"
    assert desk.run("database") == (
        0, f"Moved to {name}: 2 questions.\n{closed}Next: start Hermes again.\n", ""
    )  # fmt: skip
    assert (desk.in_folder(), desk.in_database()) == (set(), {"aaaa2222", "bbbb2222"})
    assert desk.run("database") == (0, f"Nothing was open.\n{closed}Next: start Hermes again.\n", "")
    status, said, errors = desk.run("files")
    assert (status, errors) == (0, "")
    assert said.splitlines() == [
        f"Moved to {root}: 2 questions.",
        "Closed questions stay in the database; `hermes log` shows only those of the folder.",
        f"Next: remove url from [store] in {desk.config_file}, and start Hermes again.",
    ]
    assert (desk.in_folder(), desk.in_database()) == ({"aaaa2222", "bbbb2222"}, set())


@pytest.mark.nightly
def test_a_move_that_is_killed_is_completed_by_the_next(desk: Desk, tmp_path: Path) -> None:
    """Each ask is in one of the stores, or in both, at any time."""
    names = {f"ask{number:05d}" for number in range(MANY)}
    desk.asks(*names)
    with Proc(desk.command("database"), cwd=tmp_path, environ=desk.real_environ, log_dir=tmp_path, name="move") as one:
        wait_until(lambda: len(desk.in_folder()) < MANY * 0.8, what="a part of the move", every_s=0.002)
        one.sigkill()
    assert 0 < len(desk.in_folder()) < MANY
    assert desk.in_folder() | desk.in_database() == names
    status, said, _ = desk.run("database")
    assert (status, "questions" in said) == (0, True)
    assert (desk.in_folder(), desk.in_database()) == (set(), names)


def test_a_listener_that_runs_is_to_be_stopped_first(desk: Desk) -> None:
    """It has the asks in its memory."""
    desk.asks("aaaa2222")
    with desk.store.home.hold("hermes listen"):
        status, said, errors = desk.run("database")
    assert (status, said) == (3, "")
    assert "hermes listen (pid" in errors
    assert "stop it first" in errors
    assert desk.in_folder() == {"aaaa2222"}


def test_without_the_database_nothing_moves(desk: Desk, postgres: Server) -> None:
    """One sentence says why."""
    desk.asks("aaaa2222")
    postgres.stop()
    try:
        status, said, errors = desk.run("database")
    finally:
        postgres.start()
    assert (status, said) == (1, "")
    assert "the database cannot be reached" in errors
    assert "Traceback" not in errors
    assert desk.in_folder() == {"aaaa2222"}


def test_an_ask_that_cannot_be_read_is_named(desk: Desk) -> None:
    """It stays; the status says so."""
    desk.asks("aaaa2222", "bbbb2222")
    damaged = desk.root / "store" / "pending" / "aaaa2222.json"
    damaged.write_bytes(b"{")
    status, said, errors = desk.run("database")
    assert (status, "1 question." in said) == (1, True)
    assert f"{damaged} is damaged" in errors
    assert (desk.in_folder(), desk.in_database()) == ({"aaaa2222"}, {"bbbb2222"})


def test_a_configuration_that_does_not_fit_is_explained(desk: Desk) -> None:
    """Without a database there is no move; without a bot there is no way back."""
    url = desk.tables["store"].pop("url")
    desk.write()
    status, _, errors = desk.run("database")
    assert (status, "has no url in [store]" in errors) == (2, True)
    desk.tables["store"]["url"] = url
    del desk.tables["telegram"]
    desk.write()
    status, _, errors = desk.run("files")
    assert (status, "without a bot" in errors) == (2, True)


async def test_another_phone_side_is_to_be_stopped_before_the_way_back(desk: Desk, tmp_path: Path) -> None:
    """It could take an answer at the moment at which the question moves."""
    bot = int(desk.token.partition(":")[0])
    async with joined(machine(tmp_path / "others", "laptop", desk.database.address(), bot=bot), phone=True):
        status, said, errors = await asyncio.to_thread(desk.run, "files")
    assert (status, said) == (3, "")
    assert "laptop has the phone; stop Hermes there first" in errors
    status, said, _ = await asyncio.to_thread(desk.run, "files")
    assert (status, said.splitlines()[-1]) == (
        0,
        "The database still has laptop: stop Hermes there, or give this machine another bot.",
    )


async def test_the_doctor_sees_what_was_left_in_the_folder(desk: Desk) -> None:
    """Nobody else looks there."""
    assert "folder" not in told(await stores.look(desk.around()))
    await a_store(desk.root / "store").create(an_entry())
    found = named(await stores.look(desk.around()), "folder")
    assert (found.verdict, "hermes store move database" in found.mend) == ("warning", True)
    assert found.seen.startswith("an open question is in")
    del desk.tables["store"]["url"]
    desk.write()
    assert "folder" not in told(await stores.look(desk.around()))


class Laptop(House):
    """A machine that goes from files to a database, and back."""

    def new(self, *, idle_s: float | None = None, **sections: Any) -> Listener:
        """A listener that does not run yet."""
        config = self.config(**sections)
        store = store_of(config, now=self.clock.now)
        return Listener(config, store, monotonic=self.clock.monotonic, idle_s=idle_s, rate_scale=1000.0)

    async def move(self, where: move.Where) -> list[str]:
        """Run the command; the lines that it prints."""
        said: list[str] = []
        await asyncio.to_thread(move.run, self.config(), self.root / "config.toml", where, said.append)
        return said


@asynccontextmanager
async def laptop_with_agent(root: Path) -> AsyncIterator[Laptop]:
    """The machine, with an agent; it does not listen yet."""
    clock = Clock()
    token = f"{secrets.randbelow(10**9) + 10**9}:{secrets.token_hex(17)}"
    with (
        running_botapi(token=token, users=(ANN, BOB, STRANGER), now=clock.now) as api,
        running_agent(now=clock.now) as agent,
    ):
        laptop = Laptop(root, api, clock, chat_id=ANN.id)
        laptop.connect(agent)
        try:
            yield laptop
        finally:
            await laptop.stop()


async def test_questions_on_the_phone_are_answered_after_a_move(
    tmp_path: Path, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    """To the agent and to a hook that waits; in their messages, without a second one; and again after the way back."""
    secret = tmp_path / "password"
    secret.write_text(PASSWORD)
    secret.chmod(0o600)
    files = {"path": str(tmp_path / "store")}
    shared = {**files, "url": database.address().url, "password_file": str(secret)}
    async with laptop_with_agent(tmp_path) as laptop:
        person, agent = laptop.person, laptop.agent
        for turn, (before, where, after) in enumerate(((files, "database", shared), (shared, "files", files))):
            await laptop.start(store=before)
            words = (f"Which database {turn}?", f"Which colour {turn}?")
            request_id = agent.ask([question(words[0])])
            with laptop.waiting(f"que_hook{turn}") as wait:
                asked = a_request(f"que_hook{turn}", question(words[1]), call=f"call_{turn}")
                laptop.hook("question.asked", asked)
                shown = [await person.sees(text) for text in words]
                for one in shown:
                    await laptop.noted(one)
                await laptop.stop()
                laptop.sections["store"] = shared
                [line, *_] = await laptop.move(where)  # type: ignore[arg-type]
                assert "questions" in line
                await laptop.start(store=after)
                for one in shown:
                    await person.taps(one, "PostgreSQL")
                await until(lambda: agent.came_of(request_id), "the answer")  # noqa: B023
                await until(lambda: spool.take_answer(laptop.store, wait), "the answer for the hook")
            for text in words:
                await person.sees(text, buttons=False)
                assert len([one for one in person.shown() if text in one.text]) == 1
            await laptop.stop()
        assert "nobody sees them" not in caplog.text
        await a_store(tmp_path / "store").create(an_entry())
        await laptop.start(store=shared)
        assert "asks are in the folder, and nobody sees them" in caplog.text
