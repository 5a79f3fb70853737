"""What is open moves from the folder of a machine to the database, and back."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from hermes.hook import spool
from hermes.model.answer import User
from hermes.model.card import Card
from hermes.model.chat_memory import ChatMemory
from hermes.model.entry import Phone, Side, Timing
from hermes.model.files import File
from hermes.model.notice import Notice
from hermes.model.prompt import Prompt, PromptAbilities, Target
from hermes.model.state import Part, Phase
from hermes.storage.files import FileStore
from hermes.storage.home import Home
from hermes.storage.moving import move
from hermes.storage.postgres import roles
from hermes.storage.postgres.store import PostgresStore
from tests.harness.postgres import Database
from tests.storage.machines import BOT, joined, machine
from tests.storage.store_process import an_entry, one_more

POSTED = Phone(7, 11, drawn="abc", sides=(Side("reminder", 12),), since_id=11, since_date_s=5.0, after_id=10)
TIMED = Timing(posted_s=1000.0, set_at=100.0, expires_at=1900.0, until_s=2800.0)
MEMORY = ChatMemory(BOT, offset=9, last_poll_s=5000.0, answerable_s=500.0)
PHASES: tuple[Phase, ...] = ("open", "matching", "sending", "settled")
ASKS = (
    replace(an_entry("aaaa2222", code="k2"), phone=POSTED, timing=TIMED),
    replace(an_entry("bbbb2222", code=""), phone=Phone()),
    replace(an_entry("cccc2222", code="k4"), phone=POSTED, timing=replace(TIMED, expires_at=None)),
    replace(an_entry("dddd2222", code="k5"), phone=POSTED, timing=replace(TIMED, away_at=300.0)),
)
WRITES = 24
"""How many writes it takes to move what is open, without the memory of the chat."""
TARGET = Target(an_entry().ask.source, "OpenCode", PromptAbilities())
PICTURE = File("f1", mime="image/jpeg", size=9, is_here=True)
GONE = File("f2", mime="image/jpeg", size=9, is_here=True)
NOTICES = (Notice("nnnn2222", "opencode", "ses_1"), Notice("nnnn3333", "opencode", "ses_2", is_muted=True))
PROMPTS = (
    Prompt("pppp2222", User(7, "Ann"), 7, (Part(1, "Go"),), 1.0),
    Prompt("pppp3333", User(7, "Ann"), 7, (Part(2, "Stop"),), 1.0, target=TARGET),
    Prompt("pppp4444", User(7, "Ann"), 7, (Part(3, "Look", file=PICTURE), Part(4, "", file=GONE)), 1.0, target=TARGET),
)
CARDS = (Card("gggg2222", 7, TARGET, messages=(21,)),)

Things = dict[str, list[Any]]


@dataclass(frozen=True)
class Stored:
    """The file of a prompt with this id."""

    id: str
    data: bytes


@pytest.fixture
def files(tmp_path: Path) -> FileStore:
    """The folder of this machine."""
    root = tmp_path / "desk"
    root.mkdir()
    spool.keep_machine(root, "desk")
    store = FileStore(Home(root))
    store.home.make()
    return store


@pytest.fixture
async def database_store(tmp_path: Path, database: Database) -> AsyncIterator[PostgresStore]:
    """The database, which this machine has joined as the phone side."""
    async with joined(machine(tmp_path, "desk", database.address()), phone=True) as store:
        yield store


async def fill(store: FileStore) -> Things:
    """Open things of every kind; return them by kind."""
    for ask, phase in zip(ASKS, PHASES, strict=True):
        made = await store.create(replace(ask, state=replace(ask.state, phase=phase)))
        await store.change(made.id, one_more)
    for notice in NOTICES:
        await store.notices.create(notice)
    for prompt in PROMPTS:
        await store.prompts.create(prompt)
    await store.files.write("pppp4444", 3, b"a picture")
    for card in CARDS:
        await store.cards.create(card)
    await store.save_chat(MEMORY)
    return await things(store)


async def things(store: FileStore | PostgresStore) -> Things:
    """All that is open, by kind."""
    found: Things = {"asks": list((await store.survey()).entries)}
    for kind, records in (("notices", store.notices), ("prompts", store.prompts), ("cards", store.cards)):
        found[kind] = sorted(await records.survey(), key=lambda one: str(one.id))
    found["files"] = [Stored(one, await store.files.read(one, 3)) for one in await store.files.prompt_ids()]
    return found


def lying_in(found: Things, machine: str) -> Things:
    """The same, with the notices as a database has them; without a machine, as a folder has them."""
    return {**found, "notices": [replace(one, machine=machine) for one in found["notices"]]}


NOTHING: Things = {"asks": [], "notices": [], "prompts": [], "cards": [], "files": []}


async def test_all_that_is_open_moves_and_comes_back(files: FileStore, database_store: PostgresStore) -> None:
    """It is the same to the last revision; a second move finds nothing."""
    before = await fill(files)
    await files.lock_phone()
    moved = await move(files, database_store, BOT)
    assert dict(moved.moved) == {"entries": 4, "notices": 2, "prompts": 3, "cards": 1}
    assert (moved.left, moved.is_locked, dict(moved.of_another_bot)) == ([], True, {})
    assert await things(files) == NOTHING
    assert await things(database_store) == lying_in(before, "desk")
    assert await database_store.load_chat(BOT) == MEMORY
    assert (await database_store.is_phone_locked(), await files.is_phone_locked()) == (True, False)
    assert not (await move(files, database_store, BOT)).moved.total()

    later = replace(MEMORY, offset=12, last_poll_s=6000.0, answerable_s=900.0)
    await database_store.save_chat(later)
    changed = await database_store.change("aaaa2222", one_more)
    moved = await move(database_store, files, BOT)
    assert dict(moved.moved) == {"entries": 4, "notices": 2, "prompts": 3, "cards": 1}
    assert await things(database_store) == NOTHING
    back = lying_in(before, "")
    back["asks"][0] = changed
    assert await things(files) == back
    assert await files.load_chat(BOT) == later
    assert (await database_store.is_phone_locked(), await files.is_phone_locked()) == (True, True)


async def test_a_move_that_dies_at_any_write_is_completed_by_the_next(
    files: FileStore, database_store: PostgresStore
) -> None:
    """Whatever was written by then, each thing is in one store or in both, and in one at the end."""
    before = await fill(files)
    stores: tuple[Any, Any] = (files, database_store)
    for writes in range(WRITES):
        for (source, target), owner in ((stores, "desk"), (stores[::-1], "")):
            wanted = await things(source)
            left = [writes]
            with pytest.raises(DiedError):
                await move(Mortal(source, left), Mortal(target, left), BOT)
            here, there = await things(source), await things(target)
            for kind, all_of_it in wanted.items():
                assert {one.id for one in all_of_it} == {one.id for one in [*here[kind], *there[kind]]}
            await move(source, target, BOT)
            assert await things(source) == NOTHING
            assert await things(target) == lying_in(wanted, owner)
    assert await things(files) == lying_in(before, "")


class DiedError(Exception):
    """The process was killed."""


class Mortal:
    """A store, or the records of one kind, that dies instead of the write after the next `left[0]` ones."""

    def __init__(self, inner: Any, left: list[int]) -> None:
        self._inner = inner
        self._left = left

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name in ("notices", "prompts", "cards", "files"):
            return Mortal(found, self._left)
        if name not in ("keep", "forget", "save_chat", "lock_phone", "unlock_phone", "write", "remove"):
            return found

        async def write(*values: Any) -> Any:
            if not self._left[0]:
                raise DiedError
            self._left[0] -= 1
            return await found(*values)

        return write


async def test_an_ask_that_was_closed_meanwhile_stays_closed(files: FileStore, database_store: PostgresStore) -> None:
    """The move that was interrupted had brought it there; only the copy is removed."""
    entry = await files.create(ASKS[0])
    await database_store.keep(entry)
    await database_store.settle(entry.id)
    await move(files, database_store, BOT)
    assert await things(files) == await things(database_store) == NOTHING
    assert await database_store.done(entry.id) == entry


async def test_the_newer_copy_is_kept(files: FileStore, database_store: PostgresStore) -> None:
    """If a listener ran between two moves, that of its store."""
    await files.save_chat(MEMORY)
    for newer, older in ((files, database_store), (database_store, files)):
        entry = await newer.keep(replace(ASKS[0], revision=5))
        notice = await newer.notices.keep(replace(NOTICES[0], machine="desk", revision=5))
        await older.keep(replace(ASKS[0], revision=3))
        await older.notices.keep(replace(NOTICES[0], machine="desk", is_muted=True, revision=3))
        await move(files, database_store, BOT)
        assert await things(files) == NOTHING
        assert await things(database_store) == {**NOTHING, "asks": [entry], "notices": [notice]}
        await database_store.forget(entry.id)
        await database_store.notices.forget(notice.id)


@pytest.mark.parametrize("bot_id", [BOT, None])
async def test_the_asks_of_another_bot_are_posted_again(
    files: FileStore, database: Database, tmp_path: Path, bot_id: int | None
) -> None:
    """This bot cannot edit its messages. Records are about such messages: they stay."""
    before = await fill(files)
    await files.save_chat(replace(MEMORY, bot_id=43))
    async with joined(machine(tmp_path, "desk", database.address())) as store:
        moved = await move(files, store, bot_id)
        assert dict(moved.moved) == {"entries": 4}
        assert dict(moved.of_another_bot) == {"notices": 2, "prompts": 3, "cards": 1}
        again = [replace(ask, code="", phone=Phone(), timing=Timing()) for ask in before["asks"]]
        assert await things(store) == {**NOTHING, "asks": again}
    assert await things(files) == {**before, "asks": []}


async def test_an_agent_only_machine_moves_its_asks(files: FileStore, database: Database, tmp_path: Path) -> None:
    """Its user of the database can neither write the column of the phone nor read the chat."""
    before = await fill(files)
    user, secret = f"desk {secrets.token_hex(4)}", "a secret"
    async with joined(machine(tmp_path, "laptop", database.address()), phone=True) as laptop:
        await roles.add(laptop._connection, user, secret, BOT)
        async with joined(machine(tmp_path, "desk", database.address(quote(user), secret), bot=None)) as store:
            await move(files, store, None)
        again = [replace(ask, code="", phone=Phone(), timing=Timing()) for ask in before["asks"]]
        assert (await things(laptop))["asks"] == again
    assert await things(files) == {**before, "asks": []}
    database.ask(roles.removal(user))


async def test_an_ask_gets_another_code_if_its_own_is_taken(files: FileStore, database_store: PostgresStore) -> None:
    """An ask of another machine has it."""
    taken = await database_store.create(an_entry("zzzz2222", code=ASKS[0].code))
    entry = await files.create(ASKS[0])
    await files.save_chat(MEMORY)
    await move(files, database_store, BOT)
    moved = await database_store.get(entry.id)
    assert moved == replace(entry, code=moved.code)
    assert moved.code not in {"", taken.code}


async def test_the_time_to_answer_goes_by_the_clock_of_the_target(
    files: FileStore, database_store: PostgresStore
) -> None:
    """Another phone side has counted on: the ask has as much time left as before."""
    theirs = replace(MEMORY, answerable_s=2000.0, last_poll_s=7000.0)
    await database_store.save_chat(theirs)
    await fill(files)
    await move(files, database_store, BOT)
    assert await database_store.load_chat(BOT) == theirs
    timings = [ask.timing for ask in (await things(database_store))["asks"]]
    later = replace(TIMED, set_at=1600.0, expires_at=3400.0)
    assert timings == [
        later,
        Timing(),
        replace(later, expires_at=None),
        replace(later, away_at=1800.0),
    ]
    await move(database_store, files, BOT)
    assert [ask.timing for ask in (await things(files))["asks"]] == timings


async def test_the_chat_of_another_phone_side_is_left_alone(
    files: FileStore, database: Database, tmp_path: Path
) -> None:
    """It has the memory of it in its own process."""
    await fill(files)
    async with (
        joined(machine(tmp_path, "other", database.address()), phone=True) as other,
        joined(machine(tmp_path, "desk", database.address())) as store,
    ):
        assert not await store.take_phone()
        moved = await move(files, store, BOT)
        assert moved.moved["entries"] == 4
        assert await other.load_chat(BOT) == ChatMemory(BOT)


async def test_what_cannot_be_read_is_named_and_stays(files: FileStore, database_store: PostgresStore) -> None:
    """The others are moved; an ask with the id of another machine is none of this one's."""
    await fill(files)
    pending = files.home.root / "pending"
    (pending / "aaaa2222.json").write_bytes(b"{")
    (pending / "bbbb2222.json").write_bytes(b'{"v":999}')
    foreign = replace(ASKS[0].ask, source=replace(ASKS[0].ask.source, machine="elsewhere"))
    await files.create(replace(ASKS[0], id="ffff2222", ask=foreign))
    moved = await move(files, database_store, BOT)
    assert moved.moved["entries"] == 2
    assert len(moved.left) == 3
    for told, part in zip(
        moved.left, ("aaaa2222.json is damaged", "bbbb2222.json was written by", "ffff2222"), strict=True
    ):
        assert part in told
    assert sorted(path.stem for path in pending.iterdir()) == ["aaaa2222", "bbbb2222", "ffff2222"]
