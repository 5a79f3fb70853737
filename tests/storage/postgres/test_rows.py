"""Any text is read from the database as it was written."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import HealthCheck, given, settings, strategies as st

from hermes.model.chat_memory import ChatMemory
from hermes.model.notice import Notice, Turn
from tests.harness.postgres import Database
from tests.storage.machines import BOT, joined, machine
from tests.storage.store_process import an_entry

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
