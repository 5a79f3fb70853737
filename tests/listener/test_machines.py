"""Several machines with one bot: their listeners share a database, and one of them is the phone side."""

from __future__ import annotations

import secrets
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest

from hermes.listener.daemon import Listener
from hermes.sandbox.botapi import running_botapi
from hermes.sandbox.opencode.server import running_agent
from hermes.storage.home import Home
from hermes.storage.postgres.store import PostgresStore
from tests.listening import ANN, BOB, STRANGER, Clock, House, question, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from hermes.storage.postgres.address import Address
    from tests.harness.postgres import Database

ASKED = "Which database?"


class Machine(House):
    """A machine with a folder and an agent of its own."""

    address: Address

    def new(self, *, idle_s: float | None = None, **sections: Any) -> Listener:
        """A listener of this machine that does not run yet."""
        config = self.config(**sections)
        home = Home(config.store.path, now=self.clock.now)
        bot_id = None if config.phone is None else config.phone.bot_id
        store = PostgresStore(home, self.address, bot_id)
        return Listener(config, store, monotonic=self.clock.monotonic, idle_s=idle_s, rate_scale=1000.0)

    @property
    def is_phone(self) -> bool:
        """Whether it is the phone side now."""
        return self.listener._parts.phone_side is not None


@pytest.fixture
async def three(tmp_path: Path, database: Database) -> AsyncIterator[tuple[Machine, ...]]:
    """A laptop, a workstation and a server, each with an agent; none of them runs yet."""
    clock = Clock()
    token = f"{secrets.randbelow(10**9) + 10**9}:{secrets.token_hex(17)}"
    async with AsyncExitStack() as stack:
        api = stack.enter_context(running_botapi(token=token, users=(ANN, BOB, STRANGER), now=clock.now))
        machines = []
        for name in ("laptop", "workstation", "server"):
            machine = Machine(tmp_path / name, api, clock, chat_id=ANN.id)
            machine.root.mkdir()
            machine.address = database.address()
            machine.connect(stack.enter_context(running_agent(now=clock.now)))
            stack.push_async_callback(machine.stop)
            machines.append(machine)
        yield tuple(machines)


async def test_a_question_of_another_machine_is_answered_there(three: tuple[Machine, ...]) -> None:
    """One polls the bot, and the answer reaches the agent that asked."""
    laptop, workstation, _ = three
    await laptop.start()
    await workstation.start(settle=False)
    await until(lambda: workstation.agent.sinks, "an event stream")
    assert (laptop.is_phone, workstation.is_phone) == (True, False)
    request_id = workstation.agent.ask([question()])
    shown = await laptop.person.sees(ASKED)
    await laptop.person.taps(shown, "PostgreSQL")
    await until(lambda: workstation.agent.came_of(request_id), "the answer at the workstation")
    await laptop.person.sees("✅")
    assert not laptop.agent.pending
