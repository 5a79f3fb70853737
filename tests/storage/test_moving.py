"""What is open moves from the folder of a machine to the database, and back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hermes.model.answer import User
from hermes.model.card import Card
from hermes.model.chat_memory import ChatMemory
from hermes.model.entry import Phone, Side, Timing
from hermes.model.notice import Notice
from hermes.model.prompt import Prompt, PromptAbilities, Target
from hermes.model.state import Part, Phase
from hermes.storage.files import FileStore
from hermes.storage.moving import move
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
WRITES = 18
"""How many writes it takes to move what is open, without the memory of the chat."""
TARGET = Target(an_entry().ask.source, "OpenCode", PromptAbilities())
NOTICES = (Notice("nnnn2222", "opencode", "ses_1"), Notice("nnnn3333", "opencode", "ses_2", is_muted=True))
PROMPTS = (
    Prompt("pppp2222", User(7, "Ann"), 7, (Part(1, "Go"),), 1.0),
    Prompt("pppp3333", User(7, "Ann"), 7, (Part(2, "Stop"),), 1.0, target=TARGET),
)
CARDS = (Card("gggg2222", 7, TARGET, messages=(21,)),)

Things = dict[str, list[Any]]


@pytest.fixture
async def database_store(tmp_path: Path, database: Database) -> AsyncIterator[PostgresStore]:
    """The database, which this machine has joined as the phone side."""
    async with joined(machine(tmp_path, "desk", database.address()), phone=True) as store:
        yield store


@pytest.fixture
def files(database_store: PostgresStore) -> FileStore:
    """The folder of the same machine."""
    database_store.home.make()
    return FileStore(database_store.home)


async def fill(store: FileStore) -> Things:
    """Open things of every kind; return them by kind."""
    for ask, phase in zip(ASKS, PHASES, strict=True):
        made = await store.create(replace(ask, state=replace(ask.state, phase=phase)))
        await store.change(made.id, one_more)
    for notice in NOTICES:
        await store.notices.create(notice)
    for prompt in PROMPTS:
        await store.prompts.create(prompt)
    for card in CARDS:
        await store.cards.create(card)
    await store.save_chat(MEMORY)
    return await things(store)


async def things(store: FileStore | PostgresStore) -> Things:
    """All that is open, by kind."""
    found: Things = {"asks": list((await store.survey()).entries)}
    for kind, records in (("notices", store.notices), ("prompts", store.prompts), ("cards", store.cards)):
        found[kind] = sorted(await records.survey(), key=lambda one: str(one.id))
    return found


def of_machine(found: Things) -> Things:
    """The same, with the notices as a database has them."""
    return {**found, "notices": [replace(one, machine="desk") for one in found["notices"]]}


NOTHING: Things = {"asks": [], "notices": [], "prompts": [], "cards": []}


async def test_all_that_is_open_moves_and_comes_back(files: FileStore, database_store: PostgresStore) -> None:
    """It is the same to the last revision; a second move finds nothing."""
    before = await fill(files)
    await files.lock_phone()
    moved = await move(files, database_store, BOT)
    assert dict(moved.moved) == {"entries": 4, "notices": 2, "prompts": 2, "cards": 1}
    assert (moved.left, moved.is_locked, dict(moved.of_another_bot)) == ([], True, {})
    assert await things(files) == NOTHING
    assert await things(database_store) == of_machine(before)
    assert await database_store.load_chat(BOT) == MEMORY
    assert (await database_store.is_phone_locked(), await files.is_phone_locked()) == (True, False)
    assert not (await move(files, database_store, BOT)).moved.total()

    later = replace(MEMORY, offset=12, last_poll_s=6000.0, answerable_s=900.0)
    await database_store.save_chat(later)
    changed = await database_store.change("aaaa2222", one_more)
    moved = await move(database_store, files, BOT)
    assert dict(moved.moved) == {"entries": 4, "notices": 2, "prompts": 2, "cards": 1}
    assert await things(database_store) == NOTHING
    back = of_machine(before)
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
        for source, target in (stores, stores[::-1]):
            wanted = await things(source)
            left = [writes]
            with pytest.raises(DiedError):
                await move(Mortal(source, left), Mortal(target, left), BOT)
            here, there = await things(source), await things(target)
            for kind, all_of_it in of_machine(wanted).items():
                assert {one.id for one in all_of_it} == {one.id for one in [*here[kind], *there[kind]]}
            await move(source, target, BOT)
            assert await things(source) == NOTHING
            assert await things(target) == of_machine(wanted)
    assert await things(files) == of_machine(before)


class DiedError(Exception):
    """The process was killed."""


class Mortal:
    """A store, or the records of one kind, that dies instead of the write after the next `left[0]` ones."""

    def __init__(self, inner: Any, left: list[int]) -> None:
        self._inner = inner
        self._left = left

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name in ("notices", "prompts", "cards"):
            return Mortal(found, self._left)
        if name not in ("keep", "forget", "save_chat", "lock_phone", "unlock_phone"):
            return found

        async def write(*values: Any) -> Any:
            if not self._left[0]:
                raise DiedError
            self._left[0] -= 1
            return await found(*values)

        return write
