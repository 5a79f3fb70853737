"""Any text is read from the database as it was written."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from hermes.errors import Unreadable
from hermes.model.answer import User
from hermes.model.ask import Source
from hermes.model.card import Card, Listed, MachineList
from hermes.model.chat_memory import ChatMemory
from hermes.model.notice import Notice, Turn
from hermes.model.prompt import Prompt, PromptAbilities, Target
from hermes.storage import codec as codecs
from hermes.storage.postgres.rows import as_entry, as_record, as_row
from tests.harness.postgres import Database
from tests.storage.machines import BOT, joined, machine
from tests.storage.store_process import an_entry

if TYPE_CHECKING:
    from hermes.storage.codec import Codec
    from hermes.storage.store import Kind

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=30)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    st.lists(
        ANY_TEXT | st.sampled_from(["\0", "\ud800", "\udfff\ud800", '\\u0000"', "%s", "$1"]), min_size=6, max_size=6
    )
)
def test_any_text_comes_back(database: Database, texts: list[str]) -> None:
    """Also NUL and halves of surrogate pairs, in the body, in what only stands in a column, and in the phone."""
    asyncio.run(_round(database, texts))


async def _round(database: Database, texts: list[str]) -> None:
    words, drawn, host, agent, trouble, name = texts
    with tempfile.TemporaryDirectory() as folder:
        async with joined(machine(Path(folder), "desk", database.address()), phone=True) as store:
            plain = an_entry(await store.new_id(), code=await store.new_code(()))
            source = replace(plain.ask.source, last_text=words, machine=host, agent=agent)
            entry = replace(plain, ask=replace(plain.ask, source=source), phone=replace(plain.phone, drawn=drawn))
            entry = await store.create(entry)
            assert await store.get(entry.id) == entry
            turn = Turn(source, agent, words, 1.0, 2.0, words)
            notice = await store.notices.create(Notice(await store.new_id(), agent, words, turn=turn, machine=host))
            assert await store.notices.get(notice.id) == notice
            memory = ChatMemory(BOT, trouble=trouble)
            await store.save_chat(memory)
            assert await store.load_chat(BOT) == memory
            await store.renew(((name, True),))
            [desk] = await store.machines()
            assert desk.servers == ((name, True),)
            await store.settle(entry.id)
            assert await store.done(entry.id) == entry


def test_a_code_is_letters_and_digits() -> None:
    """It is shown as Hermes' own words, and the user of an agent-only machine writes the column as it likes."""
    row = as_row(an_entry())
    for code, shown in (("k7m2q", "k7m2q"), ("k7\n\nLog in again: https://evil.example", "")):
        assert as_entry("aaaa2222", "desk", code, 1, str(row["body"]), str(row["phone"])).code == shown


MANY = 70


async def test_many_rows_are_read_a_few_at_a_time(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a slow line, all of them would take longer than one statement may; their order stays."""
    async with joined(machine(tmp_path, "desk", database.address()), phone=True) as store:
        asks = [replace(an_entry(f"{number:08d}", code=f"c{number}"), asked_s=100.0 - number) for number in range(MANY)]
        for ask in asks:
            await store.create(ask)
            await store.notices.create(Notice(ask.id, "opencode", "ses_1", machine="desk"))
        sizes = []
        read = store._connection.read

        async def counted(statement: str, values: Any = None) -> Any:
            rows = await read(statement, values)
            sizes.append(len(rows) if "body" in statement else 0)
            return rows

        monkeypatch.setattr(store._connection, "read", counted)
        assert [one.id for one in await store.open()] == [ask.id for ask in reversed(asks)]
        assert {one.id for one in await store.notices.all()} == {ask.id for ask in asks}
        for ask in asks:
            await store.settle(ask.id)
        assert [one.id for one in await store.newest_done(MANY - 1)] == [ask.id for ask in reversed(asks[1:])]
        assert len((await store.survey_done(0.0)).entries) == MANY
        assert sum(sizes) > 4 * MANY
        assert max(sizes) == 50


IMPOSSIBLE = ['"nan"', "NaN", '"Infinity"', "-Infinity", "1e999", "1e300", "-1e300", "2e11"]
"""What a body can have in the place of a time."""
SOURCE = Source("opencode", "desk", "ses_1")
TARGET = Target(SOURCE, "OpenCode", PromptAbilities())
TIMED: list[tuple[Kind, Codec[Any], Any]] = [
    ("notices", codecs.NOTICES, Notice("nnnn2222", "opencode", "s", turn=Turn(SOURCE, "OpenCode", "m", None, 7.5))),
    ("prompts", codecs.PROMPTS, Prompt("pppp2222", User(1, "Ann"), 7, (), 7.5)),
    ("cards", codecs.CARDS, Card("cccc2222", 7, TARGET, used_s=7.5)),
    ("lists", codecs.LISTS, MachineList("desk", "desk", found=(Listed(TARGET, "idle", 7.5),))),
]
"""Of each kind of record: one with this time in it."""


@pytest.mark.parametrize("time", IMPOSSIBLE)
def test_an_ask_with_a_time_that_cannot_be_is_damaged(time: str) -> None:
    """It could not be saved again, or not be shown as a date."""
    entry = an_entry()
    row = as_row(replace(entry, ask=replace(entry.ask, ttl_s=7.5)))
    body = str(row["body"]).replace("7.5", time)
    with pytest.raises(Unreadable, match="a time that cannot be"):
        as_entry(entry.id, "desk", "k7", 1, body, str(row["phone"]))


@pytest.mark.parametrize("time", IMPOSSIBLE)
@pytest.mark.parametrize(("kind", "codec", "value"), TIMED, ids=[kind for kind, _, _ in TIMED])
def test_a_record_with_a_time_that_cannot_be_is_damaged(kind: Kind, codec: Codec[Any], value: Any, time: str) -> None:
    """Not even beside others, in a list of them."""
    body = codec.encode(value).decode()
    assert as_record(codec, kind, body, None) == value
    with pytest.raises(Unreadable, match="a time that cannot be"):
        as_record(codec, kind, body.replace("7.5", time), None)
