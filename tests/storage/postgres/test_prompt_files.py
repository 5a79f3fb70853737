"""The files of prompts in the database: in pieces, whole or not there, and for their own machine alone."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from hermes.errors import Deposed, Missing, NotSaved
from hermes.model.answer import User
from hermes.model.prompt import Prompt, PromptAbilities, Target
from hermes.model.state import Part
from hermes.storage.postgres import migrations, roles
from hermes.storage.postgres.prompt_files import PIECE_BYTES
from hermes.storage.postgres.store import PostgresStore
from hermes.storage.prompt_files import PromptFolder
from tests.harness.postgres import Database
from tests.storage.machines import BOT, SECRET, joined, machine
from tests.storage.postgres.proxy import proxy
from tests.storage.store_process import an_entry

LARGE = secrets.token_bytes(3 * PIECE_BYTES + 1)
REFUSED = (
    "INSERT INTO hermes.files (bot, prompt, message, piece, size, data) VALUES (42, 'pppp2222', 8, 0, 1, 'x')",
    "UPDATE hermes.files SET data = 'x'",
    "DELETE FROM hermes.files",
)


def a_prompt(prompt_id: str = "pppp2222", name: str = "desk") -> Prompt:
    """A prompt for a session of this machine."""
    target = Target(replace(an_entry().ask.source, machine=name), "OpenCode", PromptAbilities())
    return Prompt(prompt_id, User(7, "Ann"), 7, (Part(1, "Go"),), 1.0, target=target)


@pytest.fixture
async def phone(database: Database, tmp_path: Path) -> AsyncIterator[PostgresStore]:
    """The phone side, with a prompt."""
    async with joined(machine(tmp_path, "desk", database.address()), phone=True) as store:
        await store.prompts.create(a_prompt())
        yield store


async def test_a_large_file_is_the_same_to_the_byte(phone: PostgresStore) -> None:
    """Its pieces are read in their order; a smaller one in its place ends where it ends."""
    await phone.files.write("pppp2222", 7, LARGE)
    assert await phone.files.read("pppp2222", 7) == LARGE
    await phone.files.write("pppp2222", 7, LARGE[: PIECE_BYTES + 1])
    assert await phone.files.read("pppp2222", 7) == LARGE[: PIECE_BYTES + 1]


async def test_a_file_that_was_written_in_part_is_not_there(database: Database, phone: PostgresStore) -> None:
    """The phone side died in the middle; the next one completes it."""
    await phone.files.write("pppp2222", 7, LARGE)
    database.ask("DELETE FROM hermes.files WHERE piece = 3")
    with pytest.raises(Missing):
        await phone.files.read("pppp2222", 7)
    await phone.files.write("pppp2222", 7, LARGE)
    assert await phone.files.read("pppp2222", 7) == LARGE


async def test_a_file_goes_with_its_prompt(database: Database, phone: PostgresStore) -> None:
    """Also if its machine never comes back; and none is kept for a prompt that is forgotten."""
    await phone.files.write("pppp2222", 7, LARGE)
    await phone.prompts.forget("pppp2222")
    assert database.ask("SELECT count(*) FROM hermes.files") == [(0,)]
    with pytest.raises(Missing):
        await phone.files.write("pppp2222", 7, LARGE)


async def test_no_piece_lands_after_a_takeover(database: Database, phone: PostgresStore) -> None:
    """Nor is anything removed."""
    await phone.files.write("pppp2222", 7, b"x")
    database.ask("UPDATE hermes.leases SET holder = 'x' WHERE name = 'phone'")
    for work in (phone.files.write("pppp2222", 7, b"y"), phone.files.remove("pppp2222")):
        with pytest.raises(Deposed):
            await work
    assert await phone.files.read("pppp2222", 7) == b"x"


async def test_a_file_whose_connection_breaks_is_whole(database: Database, tmp_path: Path) -> None:
    """Whether the server had kept the piece or not; a full disk is told."""
    async with (
        proxy(database.port) as between,
        joined(machine(tmp_path, "desk", database.address(port=between.port)), phone=True) as store,
    ):
        await store.prompts.create(a_prompt())
        for message_id, moment in enumerate(("cut_before", "cut_after")):
            between.cuts = 1
            setattr(between, moment, b"INSERT INTO hermes.files")
            await store.files.write("pppp2222", message_id, LARGE)
            assert between.cuts == 0
            assert await store.files.read("pppp2222", message_id) == LARGE
        database.ask(
            "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'full' USING ERRCODE = '53100'; END $$"
        )
        database.ask("CREATE TRIGGER full_disk BEFORE INSERT ON hermes.files FOR EACH ROW EXECUTE FUNCTION full_disk()")
        with pytest.raises(NotSaved) as full:
            await store.files.write("pppp2222", 9, b"x")
        assert full.value.disk_full


async def test_an_agent_only_machine_reads_its_own_files_alone(
    database: Database, phone: PostgresStore, user: str, tmp_path: Path
) -> None:
    """It writes and removes none: the database says so."""
    address = database.address(quote(user), SECRET)
    async with joined(machine(tmp_path, "ci", address, bot=None)) as ci:
        await phone.prompts.create(a_prompt("cccc2222", "ci"))
        await phone.files.write("cccc2222", 7, LARGE)
        await phone.files.write("pppp2222", 7, b"of the desk")
        assert await ci.files.read("cccc2222", 7) == LARGE
        assert await ci.files.prompt_ids() == {"cccc2222"}
        with pytest.raises(Missing):
            await ci.files.read("pppp2222", 7)
    parameters: dict[str, Any] = dict(address.parameters())
    with psycopg.connect(**parameters, autocommit=True) as connection:
        for statement in REFUSED:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement.encode())
    assert await phone.files.read("pppp2222", 7) == b"of the desk"


async def test_a_user_of_before_the_tables_of_files_may_read_its_own(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step that makes the table sees to it, also if the user that takes the step has made none of the others."""
    first = migrations.steps()[:1]
    with monkeypatch.context() as earlier:
        earlier.setattr(migrations, "steps", lambda: first)
        earlier.setattr(roles, "_GRANTS", roles._GRANTS[:-1])
        async with joined(machine(tmp_path, "desk", database.address()), phone=True) as store:
            user, second = (f"{kind} {secrets.token_hex(4)}" for kind in ("ci", "laptop"))
            await roles.add(store._connection, user, SECRET, BOT)
    quoted = SECRET.replace("'", "''")
    database.ask(f"CREATE ROLE \"{second}\" LOGIN PASSWORD '{quoted}' IN ROLE hermes")
    try:
        async with joined(machine(tmp_path, "laptop", database.address(quote(second), SECRET))):
            pass
        async with (
            joined(machine(tmp_path, "desk", database.address()), phone=True) as store,
            joined(machine(tmp_path, "ci", database.address(quote(user), SECRET), bot=None)) as ci,
        ):
            await store.prompts.create(a_prompt("cccc2222", "ci"))
            await store.files.write("cccc2222", 7, b"x")
            assert await ci.files.read("cccc2222", 7) == b"x"
    finally:
        database.ask(roles.removal(user))
        database.ask(roles.removal(second))


async def test_a_start_removes_the_voice_notes_that_a_killed_phone_side_left(phone: PostgresStore) -> None:
    """The files that were not moved to the database yet stay."""
    root = phone.home.root
    await PromptFolder(root).write("pppp2222", 7, b"x")
    (root / "files" / "pppp2222.8.ogg").write_bytes(b"a sound")
    await phone.open()
    assert await PromptFolder(root).read("pppp2222", 7) == b"x"
    assert not (root / "files" / "pppp2222.8.ogg").exists()
