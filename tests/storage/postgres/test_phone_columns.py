"""Only the phone side writes what decides where a person's words go, whatever an agent-only user does."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from hermes.errors import Unreadable
from hermes.model.answer import User
from hermes.model.ask import Source
from hermes.model.card import Card
from hermes.model.entry import Phone
from hermes.model.notice import Notice, Place
from hermes.model.prompt import Prompt, PromptAbilities, PromptLine, Target
from hermes.model.state import Armed, Joining, Part, State
from hermes.storage.codec import CARDS, ENTRIES, NOTICES, PROMPTS
from hermes.storage.postgres import rows
from tests.storage.machines import SECRET, agent, asked_at, joined

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from hermes.storage.codec import Codec
    from hermes.storage.postgres.store import PostgresStore
    from tests.harness.postgres import Database

ANN = User(1001, "Ann")
TARGET = Target(Source("opencode", "ci", "ses_1"), "OpenCode", PromptAbilities())
PARTS = (Part(70, "Go on", 1.0),)
ARMED = Armed(0, ANN.id, 5e10)
JOINING = Joining(0, ANN, (Part(70, "x" * 4096, 5e10),))
STATE = State(armed=ARMED, joining=JOINING, due_s=5.0, seen=(9,))
CARD = Card(
    "cccc2222",
    7,
    TARGET,
    messages=(70,),
    shown=70,
    armed_for=ANN.id,
    armed_s=5e10,
    armed_in=9,
    is_wanted=True,
    wanted_s=5.0,
)
PROMPT = Prompt("pppp2222", ANN, 7, PARTS, 1.0, due_s=5e10, target=TARGET, line=PromptLine(70, 7))
NOTICE = Notice("nnnn2222", "opencode", "ses_1", earlier=(Place(7, 70),), machine="ci")
DRAWN: list[tuple[str, Codec[Any], Any, Any]] = [
    (
        "cards",
        CARDS,
        replace(CARD, messages=(), shown=None, armed_for=0, armed_s=0.0, armed_in=0, is_wanted=False, wanted_s=0.0),
        CARD,
    ),
    (
        "prompts",
        PROMPTS,
        replace(PROMPT, parts=(Part(60, "Stop"),), due_s=None, thread_id=9, line=PromptLine(61, 7)),
        PROMPT,
    ),
    ("notices", NOTICES, replace(NOTICE, earlier=(Place(7, 60),)), NOTICE),
]
"""Of each kind: a record as the phone side has made it, and one that draws a person's words to itself."""


class Thief:
    """Writes bodies as the user of an agent-only machine."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    def writes(self, table: str, thing_id: str, body: str) -> None:
        """Write this body into its own row."""
        statement = f"UPDATE hermes.{table} SET body = %s, revision = revision + 1 WHERE id = %s"
        assert self._connection.execute(statement.encode(), [body, thing_id]).rowcount == 1

    def makes(self, kind: str, thing_id: str, body: str) -> None:
        """Make a record."""
        statement = (
            "INSERT INTO hermes.records (bot, kind, id, machine, revision, body) VALUES (42, %s, %s, 'ci', 1, %s)"
        )
        self._connection.execute(statement, [kind, thing_id, body])


@asynccontextmanager
async def thief(database: Database, user: str, tmp_path: Path) -> AsyncIterator[Thief]:
    """The user of the machine "ci", which has joined."""
    parameters = database.address(user.replace(" ", "%20"), SECRET).parameters()
    async with joined(agent(database, tmp_path, user)):
        with psycopg.connect(**parameters, autocommit=True) as connection:  # type: ignore[arg-type]
            yield Thief(connection)


async def test_an_ask_draws_no_texts_to_itself(
    database: Database, phone: PostgresStore, user: str, tmp_path: Path
) -> None:
    """Neither as the one that waits for the next text, nor by the code of another ask, nor by what it has seen."""
    other = await phone.create(asked_at("desk", "dddd2222", "d2"))
    async with thief(database, user, tmp_path) as ci:
        own = await phone.create(replace(asked_at("ci", "aaaa2222", "a2"), phone=Phone(7, message_id=70)))
        evil = replace(own, code=other.code, state=replace(own.state, page=1, armed=ARMED, joining=JOINING, seen=(9,)))
        ci.writes("entries", own.id, ENTRIES.encode(evil).decode())
        assert await phone.get(own.id) == replace(own, state=replace(own.state, page=1), revision=2)


@pytest.mark.parametrize(("kind", "codec", "made", "evil"), DRAWN, ids=[kind for kind, *_ in DRAWN])
async def test_a_record_draws_no_texts_to_itself(
    kind: str,
    codec: Codec[Any],
    made: Any,
    evil: Any,
    database: Database,
    phone: PostgresStore,
    user: str,
    tmp_path: Path,
) -> None:
    """A changed one is as the phone side has made it, and a new one takes none."""
    records = getattr(phone, kind)
    async with thief(database, user, tmp_path) as ci:
        saved = await records.create(made)
        ci.writes("records", made.id, codec.encode(evil).decode())
        assert await records.get(made.id) == replace(saved, revision=saved.revision + 1)
        new = replace(evil, id="eeee2222")
        ci.makes(kind, new.id, codec.encode(new).decode())
        if kind == "notices":
            assert await records.get(new.id) == replace(new, earlier=(), revision=1)
        else:
            with pytest.raises(Unreadable):
                await records.get(new.id)


async def test_the_revision_of_a_body_is_not_believed(
    database: Database, phone: PostgresStore, user: str, tmp_path: Path
) -> None:
    """With a false one, no change of the phone side would ever be the next one."""
    async with thief(database, user, tmp_path) as ci:
        own = await phone.create(asked_at("ci", "aaaa2222", "a2"))
        card = await phone.cards.create(CARD)
        ci.writes("entries", own.id, ENTRIES.encode(replace(own, revision=99)).decode())
        ci.writes("records", card.id, CARDS.encode(replace(card, revision=99)).decode())
        assert (await phone.change(own.id, lambda found: replace(found, waits=True), own)).revision == 3
        assert (await phone.cards.change(card, lambda found: replace(found, is_muted=True))).revision == 3


async def test_both_sides_change_a_record(database: Database, phone: PostgresStore, user: str, tmp_path: Path) -> None:
    """Each keeps what the other has written."""
    async with joined(agent(database, tmp_path, user)) as ci:
        made = await phone.cards.create(CARD)
        busy = await ci.cards.change(made, lambda found: replace(found, state="busy"))
        assert busy == replace(made, state="busy", revision=2)
        assert await phone.cards.get(CARD.id) == busy
        muted = await phone.cards.change(busy, lambda found: replace(found, is_muted=True))
        assert await ci.cards.get(CARD.id) == muted == replace(busy, is_muted=True, revision=3)


async def test_an_ask_that_the_agent_side_ends_joins_no_text(
    database: Database, phone: PostgresStore, user: str, tmp_path: Path
) -> None:
    """Although its machine did not see that one was being joined."""
    async with joined(agent(database, tmp_path, user)) as ci:
        own = await phone.create(replace(asked_at("ci", "aaaa2222", "a2"), state=STATE))
        found = await ci.get(own.id)
        assert found.state == State()
        await ci.change(own.id, lambda found: replace(found, state=replace(found.state, page=1)))
        assert (await phone.get(own.id)).state == replace(STATE, page=1)
        await ci.change(own.id, lambda found: replace(found, state=replace(found.state, phase="settled")))
        assert (await phone.get(own.id)).state == State("settled", page=1, seen=(9,))


async def test_a_record_of_an_earlier_hermes_has_all_in_its_body(database: Database, phone: PostgresStore) -> None:
    """Until it is written again."""
    made = await phone.cards.create(replace(CARD, target=replace(TARGET, source=Source("opencode", "desk", "ses_1"))))
    database.ask("UPDATE hermes.records SET phone = NULL, body = %s", CARDS.encode(made).decode())
    assert await phone.cards.all() == [made]
    after = await phone.cards.change(made, lambda found: replace(found, messages=(71,)))
    assert await phone.cards.get(CARD.id) == after
    assert database.ask("SELECT position('messages' IN body::text) > 0, phone->>'messages' FROM hermes.records") == [
        (False, "[71]")
    ]


async def test_the_agent_side_leaves_a_record_of_an_earlier_hermes_whole(
    database: Database, phone: PostgresStore, user: str, tmp_path: Path
) -> None:
    """It is often the first to write it."""
    async with joined(agent(database, tmp_path, user)) as ci:
        made = await phone.cards.create(CARD)
        database.ask("UPDATE hermes.records SET phone = NULL, body = %s", CARDS.encode(made).decode())
        busy = await ci.cards.change(made, lambda found: replace(found, state="busy"))
        assert await phone.cards.all() == [busy] == [replace(made, state="busy", revision=2)]


@pytest.mark.parametrize("closed_s", ["1e300", "-1e300", "NaN", "Infinity"])
async def test_a_time_that_is_none_keeps_no_closed_ask_for_ever(
    closed_s: str, database: Database, phone: PostgresStore, user: str, tmp_path: Path
) -> None:
    """The user of an agent-only machine can write it."""
    async with joined(agent(database, tmp_path, user)):
        await phone.create(asked_at("ci", "aaaa2222", "a2"))
        database.ask("UPDATE hermes.entries SET closed_s = %s", closed_s)
        days = await phone.days_done()
        assert await phone.forget_done(days) == 1


@pytest.mark.parametrize("body", ["[]", "1" * 5000, "[" * 3000 + "]" * 3000], ids=["list", "number", "deep"])
async def test_a_body_that_nobody_can_read_holds_up_no_other(
    body: str, database: Database, phone: PostgresStore, user: str, tmp_path: Path
) -> None:
    """Neither an ask nor a record."""
    other = await phone.create(asked_at("desk", "dddd2222", "d2"))
    async with thief(database, user, tmp_path) as ci:
        own = await phone.create(asked_at("ci", "aaaa2222", "a2"))
        await phone.cards.create(CARD)
        ci.writes("entries", own.id, body)
        ci.writes("records", CARD.id, body)
        assert await phone.open() == [other]
        assert phone.has_unread
        assert await phone.cards.all() == []


def test_what_is_the_phone_sides_is_there() -> None:
    """A part that gets another name would be the agent side's."""
    kinds: dict[str, type[Any]] = {"notices": Notice, "prompts": Prompt, "cards": Card}
    assert {kind: names - {field.name for field in fields(kinds[kind])} for kind, names in rows._PHONE.items()} == {
        kind: frozenset() for kind in kinds
    }
    assert set(rows._HEARD) <= {field.name for field in fields(State)}
