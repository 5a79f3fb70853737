"""One call of the store takes long, and the rest of the listener goes on meanwhile."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from hermes.chat.poll import Offset
from hermes.chat.screens.buttons import encode
from hermes.hook import spool
from hermes.listener.phone.polling import SAVE_OFFSET_S
from hermes.model.actions import Pick
from hermes.model.ask import Capabilities
from hermes.model.events import Ended, Expired
from tests import asks
from tests.listener.gates import held
from tests.listening import House, house, question, until

home = house("new", started=True)
alone = house("new")


async def test_a_locked_phone_stays_locked_while_the_store_is_made_again(home: House) -> None:
    """A tap that comes before all is written again is refused, too."""
    store = home.listener._store
    home.agent.ask([question()])
    shown = await home.person.sees("Which database?")
    await home.noted(shown)
    await store.lock_phone()
    spool.nudge(home.store)
    await until(lambda: home.listener._parts.watch._phone_was_locked, "the lock noticed")
    async with held(store, "keep", is_done=True) as gate:
        home.store.rename(home.store.with_name("removed"))
        spool.nudge(home.store)
        await gate.begun()
        assert "🔒" in await home.person.toast(home.person.tap(shown, "SQLite"))
    await until(lambda: spool.listing(home.store) == [], "the store again")
    assert home.entry().state.decision is None
    assert await store.is_phone_locked()


async def test_a_store_that_is_removed_during_the_look_does_not_unlock_the_phone(home: House) -> None:
    """The lock is read, then the store is judged."""
    store = home.listener._store
    home.agent.ask([question()])
    await home.noted(await home.person.sees("Which database?"))
    await store.lock_phone()
    spool.nudge(home.store)
    await until(lambda: home.listener._parts.watch._phone_was_locked, "the lock noticed")
    async with held(store, "is_phone_locked") as gate:
        spool.nudge(home.store)
        await gate.begun()
        home.store.rename(home.store.with_name("removed"))
    await home.person.sees("was removed")
    assert await store.is_phone_locked()


async def test_a_hook_is_released_although_another_ask_is_being_saved(home: House) -> None:
    """Its own entry may be closed any moment."""
    entries = home.listener._parts.entries
    one = asks.ask(asks.question(), capabilities=replace(Capabilities("Claude Code"), desk_stays_open=True))
    source = replace(one.source, agent="claude-code", machine=spool.machine(home.store), request_id="toolu_1")
    with home.waiting("toolu_1", "claude-code") as wait:
        entry = await entries.create(replace(one, source=source), waits=True)
        await until(lambda: home.entry().phone.message_id, "the post noted")
        async with held(entries.store, "create") as gate:
            home.agent.ask([question("Another?")])
            await gate.begun()
            await entries.apply(entry.id, Expired(home.clock.now(), "keep"))
            await until(lambda: spool.take_answer(home.store, wait) == "", "the release")


async def test_a_tap_on_an_ask_that_is_being_closed_is_late(home: House) -> None:
    """The person is told what became of the ask, not that something could not be saved."""
    entries = home.listener._parts.entries
    home.agent.ask([question()])
    shown = await home.person.sees("Which database?")
    await home.noted(shown)
    entry = home.entry()
    async with held(entries.store, "settle", is_done=True) as gate:
        await entries.apply(entry.id, Ended(home.clock.now(), "gone"))
        await gate.begun()
        tap = home.person.tap(shown, data=encode(entry.id, entry.state.epoch, Pick(0, 1)))
        await until(lambda: entries._lock(entry.id)._waiters, "the tap waits")
    assert await home.person.toast(tap) == "The agent no longer needs this"


async def test_a_place_that_moves_on_during_a_save_is_saved_too(alone: House) -> None:
    """Else a restart would run the last command again."""
    async with alone.still() as listener:
        connection, memory, store = listener._parts.phone.connection, listener._parts.phone.memory, listener._store
        async with held(store, "save_chat") as gate:
            connection.note_offset(Offset(10, alone.clock.now()))
            await gate.begun()
            connection.note_offset(Offset(11, alone.clock.now()))
        await asyncio.sleep(SAVE_OFFSET_S)

        async def saved() -> int | None:
            return (await store.load_chat(memory.at.bot_id)).offset

        async with asyncio.timeout(10):
            while await saved() != 11:
                await asyncio.sleep(0.01)
