"""Several machines with one bot: their listeners share a database, and one of them is the phone side."""

from __future__ import annotations

import asyncio
import secrets
import socket
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from hermes.commands.store import machines
from hermes.errors import StoreError, TooNew
from hermes.hook import spool
from hermes.listener.daemon import Listener
from hermes.listener.phone.machines import LOOK_S
from hermes.listener.phone.outage import PATIENCE_S
from hermes.listener.sd_notify import Supervisor
from hermes.sandbox.botapi import running_botapi
from hermes.sandbox.opencode.server import running_agent
from hermes.storage.home import Home
from hermes.storage.postgres.store import PostgresStore
from tests.listening import ANN, BOB, STRANGER, Clock, House, a_request, question, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from hermes.storage.postgres.address import Address
    from tests.harness.postgres import Database, Server

ASKED = "Which database?"


class Machine(House):
    """A machine with a folder and an agent of its own."""

    address: Address
    environ: dict[str, str]

    def new(self, *, idle_s: float | None = None, **sections: Any) -> Listener:
        """A listener of this machine that does not run yet."""
        told = {"path": str(self.store), "url": self.address.url}
        config = self.config(**{"store": told, **sections})
        home = Home(config.store.path, now=self.clock.now)
        bot_id = None if config.phone is None else config.phone.bot_id
        store = PostgresStore(home, self.address, bot_id)
        return Listener(
            config,
            store,
            monotonic=self.clock.monotonic,
            idle_s=idle_s,
            rate_scale=1000.0,
            supervisor=Supervisor(self.environ),
        )

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
            machine.address, machine.environ = database.address(), {}
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


async def started(*machines: Machine, **sections: Any) -> None:
    """Start them, the first as the phone side."""
    first, *others = machines
    await first.start(**sections)
    for other in others:
        await other.start(settle=False, **sections)
        await until(lambda other=other: other.agent.sinks, "an event stream")  # type: ignore[misc]


async def test_a_standby_takes_over_when_the_phone_side_leaves(three: tuple[Machine, ...]) -> None:
    """What is open stays on the phone, and is answered through the other machine."""
    laptop, workstation, server = three
    await started(*three)
    request_id = server.agent.ask([question()])
    shown = await laptop.person.sees(ASKED)
    await laptop.stop()
    await until(lambda: workstation.is_phone or server.is_phone, "another phone side")
    await laptop.person.taps(shown, "PostgreSQL")
    await until(lambda: server.agent.came_of(request_id), "the answer at the server")
    await laptop.person.sees("✅")
    assert len([one for one in laptop.person.shown() if ASKED in one.text]) == 1


async def test_a_machine_without_a_bot_asks_on_the_phone(three: tuple[Machine, ...]) -> None:
    """It has the database and nothing else; a hook of it waits, too."""
    laptop, workstation, _ = three
    await laptop.start()
    await workstation.start(settle=False, telegram={})
    await until(lambda: workstation.agent.sinks, "an event stream")
    request_id = workstation.agent.ask([question()])
    await laptop.person.taps(await laptop.person.sees(ASKED), "SQLite")
    await until(lambda: workstation.agent.came_of(request_id), "the answer")
    with workstation.waiting("que_hook") as wait:
        workstation.hook("question.asked", a_request("que_hook", question("Which colour?")))
        shown = await laptop.person.sees("Which colour?")
        await laptop.person.taps(shown, "PostgreSQL")
        await until(lambda: spool.take_answer(workstation.store, wait), "the answer for the hook")


async def test_a_service_without_the_phone_is_ready(three: tuple[Machine, ...]) -> None:
    """No poll says so. The manager hears, too, that it is alive."""
    laptop, workstation, _ = three
    await laptop.start()
    place = workstation.root / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(place))
        manager.settimeout(20)
        workstation.environ["NOTIFY_SOCKET"] = str(place)
        await workstation.start(settle=False, telegram={})
        heard: set[str] = set()
        async with asyncio.timeout(20):
            while not {"READY=1", "WATCHDOG=1"} <= heard:
                heard |= set((await asyncio.to_thread(manager.recv, 4096)).decode().splitlines())


async def test_a_reaper_does_not_wait_for_the_database(three: tuple[Machine, ...], postgres: Server) -> None:
    """The timer comes again."""
    laptop, _, _ = three
    postgres.stop()
    try:
        with pytest.raises(StoreError, match="the database cannot be reached"):
            await laptop.new().run_once()
    finally:
        postgres.start()


async def test_the_sessions_of_all_machines_are_listed(three: tuple[Machine, ...]) -> None:
    """Each machine lists its own."""
    laptop, workstation, server = three
    await started(*three, prompts={"enabled": True})
    for machine, title in ((workstation, "Paint the shop"), (server, "Count the stock")):
        with machine.agent.lock:
            machine.agent.session(title)
    laptop.person.write("/sessions")
    shown = await laptop.person.sees("Paint the shop")
    assert "Count the stock" in shown.text


async def test_the_desk_of_another_machine_is_followed(three: tuple[Machine, ...]) -> None:
    """What is answered there closes on the phone."""
    laptop, workstation, _ = three
    await started(laptop, workstation)
    request_id = workstation.agent.ask([question()])
    await laptop.person.sees(ASKED)
    workstation.agent.answer(request_id, [["SQLite"]])
    await laptop.person.sees("Answered on the computer", buttons=False)


async def test_status_tells_of_every_machine(three: tuple[Machine, ...]) -> None:
    """Which of them has the phone, and since when another is away."""
    laptop, workstation, server = three
    await started(*three)
    await server.stop()
    long_ago(laptop, server)
    await until(lambda: len(laptop.listener._parts.phone.machines.all) == 3, "all machines")
    laptop.clock.advance(LOOK_S)
    await until(lambda: any(one.is_away for one in laptop.listener._parts.phone.machines.all), "one that is away")
    laptop.person.write("/status")
    shown = await laptop.person.sees("Nothing is open")
    assert shown.text.count("has the phone") == 1
    assert shown.text.count("is away since") == 1
    assert workstation.is_phone is False


async def test_the_time_of_a_question_stands_still_while_its_machine_is_away(three: tuple[Machine, ...]) -> None:
    """It can be answered; the answer goes there when the machine is back."""
    laptop, workstation, _ = three
    await started(laptop, workstation, questions={"ttl": "20m"})
    request_id = workstation.agent.ask([question()])
    shown = await laptop.person.sees(ASKED)
    await workstation.stop()
    long_ago(laptop, workstation)
    laptop.clock.advance(LOOK_S)
    await laptop.person.sees("away now; an answer goes there when it is back")
    for _ in range(100):
        laptop.clock.advance(20.0)
        await laptop.listener._parts.phone.timekeeper.tick(answerable=True)
    await laptop.person.taps(shown, "PostgreSQL")
    await laptop.person.sees("it gets your answer as soon as it is back")
    assert not workstation.agent.came_of(request_id)
    await workstation.start(settle=False)
    await until(lambda: workstation.agent.came_of(request_id), "the answer")
    await laptop.person.sees("✅")


async def test_without_the_database_nothing_is_lost(
    three: tuple[Machine, ...], postgres: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """A hook waits, a tap is not acknowledged; when the database is back, both go on."""
    laptop, _, _ = three
    await laptop.start()
    first = laptop.agent.ask([question()])
    shown = await laptop.person.sees(ASKED)
    postgres.stop()
    try:
        assert "I could not save that" in await laptop.person.taps(shown, "PostgreSQL")
        second = laptop.agent.ask([question("Which colour?")])
        await until(lambda: "no longer the phone side" in caplog.text, "the end of the lease")
        laptop.clock.advance(PATIENCE_S)
        await laptop.person.sees("I can't reach the database")
    finally:
        postgres.start()
    await laptop.person.sees("The database of your machines is back")
    for request_id, text in ((first, ASKED), (second, "Which colour?")):
        await laptop.person.taps(await laptop.person.sees(text, buttons=True), "PostgreSQL")
        await until(lambda request_id=request_id: laptop.agent.came_of(request_id), "the answer")  # type: ignore[misc]


async def test_a_turn_is_told_where_the_clock_is_hours_behind_that_of_the_database(three: tuple[Machine, ...]) -> None:
    """The agent writes down the time of its own machine."""
    laptop, _, _ = three
    laptop.clock.set_back(7 * 3600.0)
    await laptop.start(notices={"finished": "0s"})
    laptop.agent.ask([question()])
    await laptop.person.taps(await laptop.person.sees(ASKED), "SQLite")
    await laptop.person.sees(" is done")


async def test_a_machine_that_lost_the_phone_finds_no_fault_with_the_chat(
    three: tuple[Machine, ...], caplog: pytest.LogCaptureFixture
) -> None:
    """It may not poll any more, and not write to the memory of the chat either."""
    laptop, _, _ = three
    await laptop.start()
    phone = laptop.listener._parts.phone_side
    assert phone is not None
    await laptop.listener._store.leave()
    await phone.link.poll_failed("getUpdates is left to the machine that is the phone side now")
    assert "does not work" not in caplog.text


async def test_a_question_of_a_machine_that_is_removed_for_good_ends(three: tuple[Machine, ...]) -> None:
    """Nobody else could bring its answer."""
    laptop, workstation, _ = three
    await started(laptop, workstation)
    workstation.agent.ask([question()])
    await laptop.person.sees(ASKED, buttons=True)
    await workstation.stop()
    secret = laptop.root / "password"
    secret.write_text(laptop.address.password)
    store = {"path": str(laptop.store), "url": laptop.address.url, "password_file": str(secret)}
    config = laptop.config(store=store)
    await machines.remove(config, laptop.address, spool.machine(workstation.store))
    await laptop.person.sees("Its machine was removed", buttons=False)
    await until(lambda: not laptop.listener._parts.entries.all(), "nothing open")


async def test_the_end_of_a_question_is_not_taken_in_before_the_question(
    three: tuple[Machine, ...], postgres: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """While the database cannot be reached, all that hooks told stays in its order."""
    laptop, _, _ = three
    await laptop.start()
    postgres.stop()
    try:
        laptop.hook("question.asked", a_request("que_1", question(), session="ses_1"))
        laptop.hook("session.idle", {"sessionID": "ses_1"})
        await until(lambda: "inbox" in caplog.text, "an inbox that waits")
        assert len(spool.listing(laptop.store)) == 2
    finally:
        postgres.start()
    await until(lambda: not spool.listing(laptop.store), "an empty inbox")
    await until(lambda: not laptop.listener._parts.entries.all(), "nothing open")


async def test_tables_of_a_newer_hermes_end_a_listener(three: tuple[Machine, ...], database: Database) -> None:
    """It is not waited for: somebody must upgrade this machine."""
    laptop, _, _ = three
    await laptop.start()
    await laptop.stop()
    database.ask("INSERT INTO hermes.migrations (version) VALUES (99)")
    with pytest.raises(TooNew, match="upgrade it"):
        await laptop.new().run()


def long_ago(here: Machine, other: Machine) -> None:
    """Let the other machine be silent for a minute."""
    parameters: dict[str, Any] = dict(here.address.parameters())
    with psycopg.connect(**parameters, autocommit=True) as connection:
        machine = spool.machine(other.store)
        connection.execute("UPDATE hermes.machines SET seen = seen - interval '60 s' WHERE id = %s", [machine])
