"""Several machines with one bot: their listeners share a database, and one of them is the phone side."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import secrets
import socket
import subprocess
import sys
import time
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

import psycopg
import pytest

from hermes.agents.prompting import without_server
from hermes.commands.ask.phone_question import TEST, Told, asking
from hermes.commands.status.survey import gather
from hermes.commands.store import machines
from hermes.commands.stores import look, store_of
from hermes.errors import Deposed, NotSaved, StoreAway, StoreError, TooNew
from hermes.hook import prompt_files, spool
from hermes.listener.agent.hook_prompts import LIES_S
from hermes.listener.daemon import Listener
from hermes.listener.phone.machines import LOOK_S, Machines
from hermes.listener.phone.outage import PATIENCE_S
from hermes.listener.phone.posting import LINGER_S
from hermes.listener.sd_notify import Supervisor
from hermes.model.ask import Source
from hermes.model.notice import Notice
from hermes.model.prompt import Content
from hermes.sandbox.botapi import running_botapi
from hermes.sandbox.opencode.server import running_agent
from hermes.sandbox.phone import file_of
from hermes.storage.home import Home
from hermes.storage.postgres import roles
from hermes.storage.postgres.leases import LEASE_S
from hermes.storage.postgres.store import PostgresStore
from hermes.storage.process_lock import STOPS_S, holder
from hermes.storage.store import Changed
from tests.listener.gates import fails_once, held
from tests.listening import ANN, BOB, STRANGER, Clock, House, a_request, question, until
from tests.prompted import Desk
from tests.storage.postgres.proxy import proxy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from hermes.model.entry import Entry
    from hermes.sandbox.phone_values import ShownMessage
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


async def test_a_machine_remembers_no_closed_ask_of_another_one(three: tuple[Machine, ...]) -> None:
    """Both may have the same session ids, if a home folder was copied."""
    laptop, workstation, _ = three
    await started(laptop, workstation)
    workstation.agent.ask([question()])
    await laptop.person.taps(await laptop.person.sees(ASKED), "SQLite")
    here, there = laptop.listener._parts.entries, workstation.listener._parts.entries
    await until(lambda: there.recently_closed and not here.all(), "the end on both machines")
    assert not here.recently_closed


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


async def test_who_is_away_stays_so_for_the_next_phone_side(three: tuple[Machine, ...]) -> None:
    """The database has it, and the machine that takes over lets nothing wait for the desk."""
    laptop, workstation, _ = three
    waiting = {"questions": {"post_after": "10m"}}
    await started(laptop, workstation, **waiting)
    laptop.person.write("/away")
    await laptop.person.sees("🚶 You are away")
    await laptop.stop()
    await until(lambda: workstation.is_phone, "the other phone side")
    await until(lambda: workstation.agent.sinks, "an event stream")
    workstation.agent.ask([question()])
    await workstation.person.sees(ASKED)


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


async def test_a_script_on_a_machine_without_a_bot_hears_that_its_question_is_on_the_phone(
    three: tuple[Machine, ...], database: Database
) -> None:
    """It sees no ids of messages; else it would take a question with a --timeout back that the phone has."""
    laptop, workstation, _ = three
    await laptop.start()
    user, secret = f"workstation_{secrets.token_hex(4)}", workstation.root / "password"
    store = laptop.listener._store
    assert isinstance(store, PostgresStore)
    secret.write_text("a secret")
    await roles.add(store._connection, user, secret.read_text(), laptop.config().telegram.bot_id)
    workstation.address = database.address(user, secret.read_text())
    told = {"path": str(workstation.store), "url": workstation.address.url, "password_file": str(secret)}
    try:
        await workstation.start(settle=False, telegram={})
        await until(lambda: workstation.agent.sinks, "an event stream")
        config = workstation.config(store=told)
        async with asking(config, workstation.root / "config.toml", TEST) as it:
            asked = await laptop.person.sees("Does this question reach you?", buttons=True)
            async with asyncio.timeout(20):
                while not await it.was_on_phone():
                    await asyncio.sleep(0.05)
            status = await look(store_of(config), lambda store: gather(config, store))
            assert [entry.posted for entry in status.entries] == [True]
            await laptop.person.taps(asked, "Yes")
            assert await it.told() == Told("answer", (("Yes",),))
        await workstation.stop()
    finally:
        database.ask(roles.removal(user))


def test_a_machine_without_a_bot_does_not_load_the_library_of_telegram() -> None:
    """It would cost a fifth of the memory."""
    loads = "import hermes.commands.listening, hermes.storage.postgres.store"
    command = [sys.executable, "-c", f"import sys; {loads}; print('telegram' in sys.modules)"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False\n"


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


async def test_a_reaper_is_done_soon(three: tuple[Machine, ...]) -> None:
    """Nobody renews its lease, so that it must be done before another machine can take the phone."""
    laptop, _, _ = three
    began_s = time.monotonic()
    await laptop.new().run_once()
    assert time.monotonic() - began_s < LEASE_S


async def test_the_sessions_of_all_machines_are_listed(three: tuple[Machine, ...]) -> None:
    """Each machine lists its own."""
    laptop, workstation, server = three
    await started(*three, prompts={"enabled": True})
    for machine, title in ((workstation, "Paint the shop"), (server, "Count the stock")):
        with machine.agent.lock:
            machine.agent.session(title)
    await lists_of(laptop, workstation, server)
    laptop.person.write("/sessions")
    shown = await laptop.person.sees("Paint the shop")
    assert "Count the stock" in shown.text


async def test_a_project_of_two_machines_can_have_a_new_session_on_each(three: tuple[Machine, ...]) -> None:
    """The same folder on another machine is another place."""
    laptop, workstation, _ = three
    await started(laptop, workstation, prompts={"enabled": True})
    for machine in (laptop, workstation):
        with machine.agent.lock:
            machine.agent.session("Paint the shop")
    await lists_of(laptop, workstation)
    laptop.person.write("/new")
    shown = await laptop.person.sees("Where should the new session begin?")
    assert shown.labels == (("1 project",), ("2 project",))


async def test_what_lies_ready_for_a_hook_has_the_time_of_its_machine(three: tuple[Machine, ...]) -> None:
    """The hook has no other clock, and takes nothing that has lain there for too long."""
    laptop, _, _ = three
    laptop.clock.set_back(7 * 3600.0)
    await laptop.start(prompts={"enabled": True})
    source = Source("oh-my-pi", spool.machine(laptop.store), "ses_1", "/home/dev/shop")
    name = prompt_files.name_of(source.agent, source.machine, source.session_id)
    held = prompt_files.take_place(laptop.store, name, {})
    assert held is not None
    way = await laptop.listener._parts.agent.ways[without_server(source.agent)].way()
    await way.send(source, "id_1", Content("text", "Go on"))
    until_s = json.loads(prompt_files.take(laptop.store, name) or "")["until"]
    prompt_files.leave_place(laptop.store, name, held)
    assert 0 < until_s - laptop.clock.now() <= LIES_S


async def test_files_are_fetched_from_the_machine_that_has_the_phone(three: tuple[Machine, ...]) -> None:
    """For a session of another machine it says so: the same path may be another file here."""
    laptop, workstation, _ = three
    await started(laptop, workstation, prompts={"enabled": True}, notices={"finished": "0s"})
    open_there = Desk()  # in place of an OpenCode without a port, which tells what its permissions exclude
    open_there.session("Fix login flow")
    cast("dict[str, Any]", laptop.listener._parts.agent.ways)[without_server("opencode")] = open_there
    for machine in (laptop, workstation):
        project = machine.root / "shop"
        project.mkdir()
        (project / "a.txt").write_text("hello")
        now_ms = machine.clock.now() * 1000
        turn = {"sessionID": "ses_1", "id": "msg_1", "began": now_ms - 5000, "ended": now_ms, "failure": ""}
        machine.hook("turn.ended", turn | {"words": machine.root.name}, directory=str(project))
        shown = await laptop.person.sees(machine.root.name)
        laptop.person.write("/get a.txt", to=shown)
    await until(lambda: laptop.api.control.calls("sendDocument"), "the file of the laptop")
    await laptop.person.sees("That session is on another machine. I can only fetch files of ")
    assert [call.params["document"] for call in laptop.api.control.calls("sendDocument")] == ["a.txt (5 bytes)"]


async def test_a_session_with_the_id_of_another_machine_s_session_has_a_notice_of_its_own(
    three: tuple[Machine, ...],
) -> None:
    """A copied home folder has the same ids. It is told even if this machine knows of the other one."""
    laptop, workstation, _ = three
    await started(laptop, workstation, notices={"finished": "0s"})
    for machine in (laptop, workstation):
        now_ms = machine.clock.now() * 1000
        turn = {"sessionID": "ses_1", "id": "msg_1", "began": now_ms - 5000, "ended": now_ms, "failure": ""}
        for one in await machine.listener._parts.kept.stale():  # it does so once a minute
            await machine.listener._parts.kept.refresh(one.kind, one.id)
        machine.hook("turn.ended", turn | {"words": f"the words of {machine.root.name}"}, directory=str(machine.root))
        await laptop.person.sees(f"the words of {machine.root.name}")


async def test_an_ask_that_is_closed_while_its_machine_cannot_save_is_over_there_too(
    three: tuple[Machine, ...],
) -> None:
    """Its machine learns that the agent works on, and cannot save that before the phone's machine closes the ask."""
    laptop, workstation, _ = three
    await started(laptop, workstation)
    workstation.agent.ask([question()])
    shown = await laptop.person.sees(ASKED, buttons=True)
    await laptop.noted(shown)
    entry_id, store = workstation.entry().id, workstation.listener._parts.entries.store
    refused, real = [], store.change

    async def change(entry_id: str, fn: Callable[[Entry], Entry], known: Entry | None = None) -> Entry:
        if fn(workstation.entry()).state.working:
            refused.append(entry_id)
            raise NotSaved("the database does not answer")
        return await real(entry_id, fn, known)

    store.__dict__["change"] = change
    await laptop.person.taps(shown, "SQLite")
    await until(lambda: refused, "a try to save that the agent works on")
    laptop.clock.advance(LINGER_S)
    laptop.listener._parts.steps.kick("phone", entry_id)
    await until(lambda: not laptop.entries(), "the ask closed")
    del store.__dict__["change"]
    await workstation.listener._loops._take_in(Changed("entries", entry_id))
    assert not workstation.entries()


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
    heard(laptop, server, ago_s=60)
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
    heard(laptop, workstation, ago_s=60)
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
    await laptop.person.sees("✅ Delivered to ")


async def test_a_final_call_gives_no_time_while_the_machine_is_away(three: tuple[Machine, ...]) -> None:
    """Nothing happens at the time that it gave before."""
    laptop, workstation, _ = three
    await started(laptop, workstation, questions={"ttl": "20m"})
    workstation.agent.ask([question()])
    await laptop.noted(await laptop.person.sees(ASKED))
    for _ in range(42):
        laptop.clock.advance(20.0)
        await laptop.listener._parts.phone.timekeeper.tick(answerable=True)
    await laptop.person.sees("⏰ At ")
    await workstation.stop()
    heard(laptop, workstation, ago_s=60)
    laptop.clock.advance(LOOK_S)
    await laptop.person.sees("is back the agent will be told to stop")
    assert not laptop.person.find("⏰ At ")


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
        await until(lambda: "it is tried again" in caplog.text, "the first try to come back: the outage has begun")
        laptop.clock.advance(PATIENCE_S)
        await laptop.person.sees("I can't reach the database")
    finally:
        postgres.start()
    await laptop.person.sees("The database of your machines is back")
    for request_id, text in ((first, ASKED), (second, "Which colour?")):
        await laptop.person.taps(await laptop.person.sees(text, buttons=True), "PostgreSQL")
        await until(lambda request_id=request_id: laptop.agent.came_of(request_id), "the answer")  # type: ignore[misc]


async def test_who_alone_cannot_reach_the_database_does_not_say_that_nobody_can(
    three: tuple[Machine, ...], database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    """Another machine has the phone meanwhile, and taps count; no word afterwards asks for them again."""
    laptop, workstation, _ = three
    async with proxy(database.port) as between:
        laptop.address = database.address(port=between.port)
        await started(laptop, workstation)
        request_id = workstation.agent.ask([question()])
        shown = await laptop.person.sees(ASKED)
        between.is_frozen = True
        await until(lambda: workstation.is_phone, "the other phone side")
        await until(lambda: "it is tried again" in caplog.text, "the first try to come back: the outage has begun")
        laptop.clock.advance(PATIENCE_S)
        told = await laptop.person.sees("I can't reach the database")
        assert told.text == (
            f"⚠️ On {spool.host()} I can't reach the database of your machines. Unless another of them has the phone "
            "now, taps don't count yet, and what agents ask waits."
        )
        await laptop.person.taps(shown, "PostgreSQL")
        await until(lambda: workstation.agent.came_of(request_id), "the answer at the workstation")
        between.is_frozen = False
        told = await laptop.person.sees("The database of your machines is back")
        assert told.text == f"✅ The database of your machines is back for {spool.host()}."


async def test_nothing_rings_because_of_the_database_in_the_quiet_hours(
    three: tuple[Machine, ...], postgres: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """The server of a database is most often looked after at night."""
    laptop, _, _ = three
    hours = [datetime.fromtimestamp(laptop.clock.now() + hours * 3600, UTC) for hours in (-2, 4)]
    await laptop.start(questions={"quiet_hours": "-".join(f"{one:%H:%M}" for one in hours), "tz": "UTC"})
    postgres.stop()
    try:
        await until(lambda: "it is tried again" in caplog.text, "the first try to come back: the outage has begun")
        laptop.clock.advance(PATIENCE_S)
        assert (await laptop.person.sees("I can't reach the database")).silent
    finally:
        postgres.start()
    assert (await laptop.person.sees("The database of your machines is back")).silent


async def test_a_listener_ends_soon_although_the_database_is_silent(
    three: tuple[Machine, ...], database: Database
) -> None:
    """`hermes stop` would call it stuck, and systemd would kill it."""
    laptop, _, _ = three
    async with proxy(database.port) as between:
        laptop.address = database.address(port=between.port)
        await laptop.start()
        between.is_frozen = True
        began_s = time.monotonic()
        await laptop.stop()
        assert time.monotonic() - began_s < STOPS_S - 1.0


async def test_a_listener_that_waits_for_its_place_ends_at_once(three: tuple[Machine, ...], database: Database) -> None:
    """The one before it was killed, and its lease has not run out yet."""
    laptop, _, _ = three
    laptop.store.mkdir()
    before = laptop.new()._store
    await before.join("laptop", "1.0")
    try:
        await laptop.start(settle=False)
        lock = laptop.store / "locks" / "listener.lock"
        await until(lambda: holder(lock) is not None, "the lock of the listener")
        began_s = time.monotonic()
        await laptop.stop()
        assert time.monotonic() - began_s < STOPS_S / 2
    finally:
        await before.leave()


async def test_a_full_disk_is_looked_for_where_the_database_is(three: tuple[Machine, ...], database: Database) -> None:
    """The disk of the machine that has the phone has room; both for a tap and for a new question."""
    laptop, _, _ = three
    await laptop.start()
    laptop.agent.ask([question()])
    shown = await laptop.person.sees(ASKED)
    await laptop.noted(shown)
    database.ask("""
        CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '53100'; END $$;
        CREATE TRIGGER full_disk BEFORE UPDATE OR INSERT ON hermes.entries
        FOR EACH STATEMENT EXECUTE FUNCTION full_disk();
    """)
    assert "(disk full on the server of your database)" in await laptop.person.taps(shown, "PostgreSQL")
    laptop.agent.ask([question("Which colour?")])
    told = await laptop.person.sees("A question could not be saved")
    assert "(disk full on the server of your database)" in told.text


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


async def removed(laptop: Machine, machine: Machine) -> None:
    """Remove a machine for good, at the laptop."""
    secret = laptop.root / "password"
    secret.write_text(laptop.address.password)
    store = {"path": str(laptop.store), "url": laptop.address.url, "password_file": str(secret)}
    config = laptop.config(store=store)
    await machines.remove(config, laptop.address, spool.machine(machine.store))


async def test_a_question_of_a_machine_that_is_removed_for_good_ends(three: tuple[Machine, ...]) -> None:
    """Nobody else could bring its answer."""
    laptop, workstation, _ = three
    await started(laptop, workstation)
    workstation.agent.ask([question()])
    await laptop.person.sees(ASKED, buttons=True)
    await workstation.stop()
    await removed(laptop, workstation)
    await laptop.person.sees("Its machine was removed", buttons=False)
    await until(lambda: not laptop.listener._parts.entries.all(), "nothing open")


async def test_what_was_written_to_a_machine_that_is_removed_for_good_ends(three: tuple[Machine, ...]) -> None:
    """Nobody is told to wait for it, and its sessions are listed no longer."""
    laptop, workstation, _ = three
    await started(laptop, workstation, prompts={"enabled": True})
    session = workstation.agent.session("Far away")
    workstation.agent.take_time(session)
    card = await card_of(laptop, workstation, "Far away")
    laptop.person.write("Begin", to=card)
    await until(lambda: workstation.agent.texts_of(session), "the first prompt")
    laptop.person.write("Go on", to=card)
    await laptop.person.sees("Waits for the current turn")
    await workstation.stop()
    await removed(laptop, workstation)
    await laptop.person.sees("❌ its machine was removed")
    unsent = await laptop.person.sees("Not sent: its machine was removed")
    laptop.person.write("Once more", to=unsent)
    await until(lambda: len([one for one in laptop.person.shown() if "Not sent: its" in one.text]) == 2, "another line")
    kept = laptop.listener._parts.kept
    await until(lambda: not [one for one in kept.cards.all() if one.target.source.session_id == session], "no card")
    laptop.person.write("/sessions")
    await laptop.person.sees("No agent runs a session that I can write to.")
    assert not laptop.person.find("No answer from")


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


async def test_the_end_of_a_turn_waits_for_the_database(
    three: tuple[Machine, ...], postgres: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """A hook tells of it once."""
    laptop, _, _ = three
    await laptop.start(notices={"finished": "0s"})
    postgres.stop()
    try:
        now_ms = laptop.clock.now() * 1000
        turn = {"sessionID": "ses_1", "id": "msg_1", "began": now_ms - 5000, "ended": now_ms, "failure": ""}
        laptop.hook("turn.ended", turn | {"words": "All tests pass."}, directory=str(laptop.root))
        await until(lambda: "inbox waits" in caplog.text or not spool.listing(laptop.store), "a try")
    finally:
        postgres.start()
    await laptop.person.sees("All tests pass.")


async def test_a_damaged_question_holds_no_other_up(three: tuple[Machine, ...], database: Database) -> None:
    """Also where nothing tells of them but the look after a broken connection."""
    laptop, workstation, _ = three
    await started(laptop, workstation)
    workstation.agent.ask([question()])
    await laptop.person.sees(ASKED)
    copy = """
        INSERT INTO hermes.entries (bot, id, machine, owner, agent, wait_id, code, phase, revision, asked_s, body)
        SELECT bot, %s, machine, owner, agent, wait_id || %s, '', phase, revision, asked_s, {body}
        FROM hermes.entries WHERE code <> ''
    """
    for number in range(8):
        database.ask(copy.format(body="'[]'"), f"damaged{number}", str(number))
    text = "body::text"
    for before, after in (
        ("'Which database'", "'Which colour'"),
        ("'\"id\":\"' || id || '\"'", '\'"id":"goodgood"\''),
        ("'\"code\":\"' || code || '\"'", '\'"code":""\''),
    ):
        text = f"replace({text}, {before}, {after})"
    database.ask(copy.format(body=f"({text})::json"), "goodgood", "good")
    database.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'hermes'")
    await laptop.person.sees("Which colour?")


@pytest.mark.parametrize("name", ["get", "revisions"])
async def test_a_question_whose_news_met_a_broken_connection_comes_soon(three: tuple[Machine, ...], name: str) -> None:
    """Also if the look for all that was missed meets another one; not only with the next regular look."""
    laptop, workstation, _ = three
    await started(laptop, workstation)
    fails_once(laptop.listener._store, "get", StoreAway("the connection broke"))
    fails_once(laptop.listener._store, name, StoreAway("the connection broke"))
    async with asyncio.timeout(20):
        workstation.agent.ask([question()])
        await laptop.person.sees(ASKED)


async def test_a_record_that_cannot_be_read_holds_no_other_up(three: tuple[Machine, ...], database: Database) -> None:
    """The look after a broken connection finds the change of a kind that comes later."""
    laptop, workstation, _ = three
    await started(laptop, workstation, prompts={"enabled": True})
    notices, lists = laptop.listener._parts.kept.notices, laptop.listener._parts.kept.lists
    machine_id = workstation.listener._store.home.machine()
    notice = Notice("nnnn2222", "opencode", "ses_1", machine=machine_id)
    await workstation.listener._store.notices.create(notice)
    await until(lambda: notices.get(notice.id) and lists.get(machine_id), "the notice and the list")
    database.ask("UPDATE hermes.records SET body = '[]' WHERE kind = 'notices'")
    database.ask("DELETE FROM hermes.records WHERE kind = 'lists' AND machine = %s", machine_id)
    database.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'hermes'")
    await until(lambda: lists.get(machine_id) is None, "the news of the list")


@pytest.mark.parametrize("written", ["body = '[]', revision = revision + 1", "revision = 9223372036854775807"])
async def test_a_list_that_cannot_be_read_stops_no_other(
    three: tuple[Machine, ...], database: Database, written: str
) -> None:
    """The user of an agent-only machine can write it."""
    laptop, workstation, _ = three
    await started(laptop, workstation, prompts={"enabled": True})
    laptop.agent.session("Paint the shop")
    await lists_of(laptop, workstation)
    await workstation.stop()
    statement = "UPDATE hermes.records SET {written} WHERE machine = %s"
    database.ask(statement.format(written=written), spool.machine(workstation.store))
    laptop.person.write("/sessions")
    await laptop.person.sees("Paint the shop")


async def test_an_ask_of_another_machine_shifts_no_time_to_answer(
    three: tuple[Machine, ...], database: Database
) -> None:
    """The clock of all asks starts after the newest time of this machine's: users of others write what they like."""
    laptop, workstation, _ = three
    await started(laptop, workstation)
    workstation.agent.ask([question()])
    await laptop.noted(await laptop.person.sees(ASKED))
    await workstation.stop()
    await laptop.stop()
    assert database.ask("""
        UPDATE hermes.entries SET body = jsonb_set(body::jsonb, '{entry,timing,set_at}', '1e9'), revision = revision + 1
        RETURNING id
    """)
    await laptop.start()
    assert laptop.listener._parts.times.clock.counted_s < 1e6


async def test_changes_are_taken_in_although_not_all_can_be_looked_for(three: tuple[Machine, ...]) -> None:
    """After a few tries the next ones have their turn."""
    laptop, workstation, _ = three
    await started(laptop, workstation)
    store = laptop.listener._store

    async def away() -> dict[str, int]:
        raise StoreAway("it took too long")

    store.__dict__["revisions"] = away
    fails_once(store, "get", StoreAway("the connection broke"))
    workstation.agent.ask([question("Which colour?")])
    await until(lambda: "get" not in store.__dict__, "the news")
    workstation.agent.ask([question()])
    await laptop.person.sees(ASKED)
    assert not laptop.person.find("Which colour?")
    del store.__dict__["revisions"]


async def test_a_listener_starts_although_its_list_cannot_be_read(
    three: tuple[Machine, ...], database: Database
) -> None:
    """Only its sessions are not listed then."""
    laptop, _, _ = three
    await laptop.start(prompts={"enabled": True})
    await laptop.stop()
    database.ask("UPDATE hermes.records SET body = '[]' WHERE kind = 'lists'")
    await laptop.start(prompts={"enabled": True})
    laptop.agent.ask([question()])
    await laptop.person.sees(ASKED)


async def test_what_a_hook_told_under_another_id_of_its_machine_is_set_aside(three: tuple[Machine, ...]) -> None:
    """It holds up no other. The state folder was made again while the listener ran, for example."""
    laptop, _, _ = three
    await laptop.start()
    laptop.hook("question.asked", a_request("que_1", question("Which colour?"), session="ses_1"), machine="another")
    laptop.hook("question.asked", a_request("que_2", question(), session="ses_2"))
    await laptop.person.sees(ASKED)
    assert not laptop.person.find("Which colour?")
    [path] = (laptop.store / "quarantine").glob("*.json")
    assert "Which colour?" in path.read_text()


async def test_the_news_of_an_end_outlives_the_loss_of_a_lease(three: tuple[Machine, ...]) -> None:
    """It stays in the inbox until it is saved."""
    laptop, _, _ = three
    await laptop.start()
    laptop.hook("question.asked", a_request("que_1", question(), session="ses_1"))
    await laptop.person.sees(ASKED)
    await until(lambda: all(one.phone.message_id for one in laptop.listener._parts.entries.all()), "the post noted")
    store, parts, tried = laptop.listener._store, laptop.listener._parts, list[Any]()
    deposed = Deposed("another process has taken over from this one")

    async def refused(*given: Any, **_: Any) -> Any:
        tried.append(given)
        raise deposed

    store.__dict__["change"] = refused
    laptop.hook("question.replied", {"sessionID": "ses_1", "requestID": "que_1", "answers": [["SQLite"]]})
    await until(lambda: tried, "a try to save the end")
    fails_once(store, "renew", deposed)
    await until(lambda: laptop.listener._parts is not parts, "another round")
    del store.__dict__["change"]
    await laptop.person.sees("Answered on the computer", buttons=False)


async def test_tables_of_a_newer_hermes_end_a_listener(three: tuple[Machine, ...], database: Database) -> None:
    """It is not waited for: somebody must upgrade this machine."""
    laptop, _, _ = three
    await laptop.start()
    await laptop.stop()
    database.ask("INSERT INTO hermes.migrations (version) VALUES (99)")
    with pytest.raises(TooNew, match="upgrade it"):
        await laptop.new().run()


def heard(here: Machine, other: Machine, *, ago_s: float = 0.0) -> None:
    """Let the other machine have been heard of so long ago."""
    parameters: dict[str, Any] = dict(here.address.parameters())
    with psycopg.connect(**parameters, autocommit=True) as connection:
        machine = spool.machine(other.store)
        seen = "UPDATE hermes.machines SET seen = clock_timestamp() - make_interval(secs => %s) WHERE id = %s"
        connection.execute(seen, [ago_s, machine])


PHOTO = b"\xff\xd8\xff\xe0" + secrets.token_bytes(600_000)
URL = f"data:image/jpeg;base64,{base64.b64encode(PHOTO).decode()}"


async def lists_of(phone: Machine, *machines: Machine) -> None:
    """Wait until the phone side has heard of these machines, whose sessions it lists from then on."""
    lists = phone.listener._parts.kept.lists
    for machine in machines:
        await until(lambda machine=machine: lists.get(spool.machine(machine.store)), "the list of a machine")  # type: ignore[misc]


async def card_of(phone: Machine, machine: Machine, title: str) -> ShownMessage:
    """The card of this session of the machine."""
    await lists_of(phone, machine)
    phone.person.write("/sessions")
    await phone.person.taps(await phone.person.sees(title), title)
    return await phone.person.sees(f"{title} 💤", buttons=True)


async def test_a_photo_goes_to_the_agent_of_another_machine(three: tuple[Machine, ...], database: Database) -> None:
    """To the byte, although that machine has nothing but the database; then the photo is removed from there."""
    laptop, workstation, _ = three
    prompts = {"enabled": True}
    await laptop.start(prompts=prompts)
    user, secret = f"workstation {secrets.token_hex(4)}", "a secret"
    store = laptop.listener._store
    assert isinstance(store, PostgresStore)
    await roles.add(store._connection, user, secret, laptop.config().telegram.bot_id)
    workstation.address = database.address(quote(user), secret)
    try:
        await workstation.start(settle=False, telegram={}, prompts=prompts)
        await until(lambda: workstation.agent.sinks, "an event stream")
        session = workstation.agent.session("Far away")
        workstation.agent.take_time(session)
        card = await card_of(laptop, workstation, "Far away")
        media = [file_of("photo", PHOTO, caption="Look"), file_of("document", b"text", name="a.txt")]
        laptop.api.control.share(media, reply_to=card.message_id)
        await until(lambda: workstation.agent.texts_of(session), "the prompt at the workstation")
        assert workstation.agent.texts_of(session) == ["Look\na.txt:\n\ntext"]
        assert workstation.agent.files_of(session) == [(hashlib.sha256(URL.encode()).hexdigest(),)]
        assert database.ask("SELECT DISTINCT size FROM hermes.files ORDER BY 1") == [(4,), (len(PHOTO),)]
        workstation.agent.finish(session)
        await until(lambda: not database.ask("SELECT FROM hermes.files LIMIT 1"), "no file in the database")
        await workstation.stop()
    finally:
        database.ask(roles.removal(user))


async def test_a_photo_outlives_the_phone_side_that_got_it(three: tuple[Machine, ...], database: Database) -> None:
    """The next one need not get it from Telegram again."""
    laptop, workstation, server = three
    prompts = {"enabled": True}
    await laptop.start(prompts=prompts)
    await workstation.start(settle=False, telegram={}, prompts=prompts)
    await server.start(settle=False, prompts=prompts)
    await until(lambda: workstation.agent.sinks, "an event stream")
    session = workstation.agent.session("Far away")
    workstation.agent.take_time(session)
    card = await card_of(laptop, workstation, "Far away")
    laptop.person.write("First this", to=card)
    await until(lambda: workstation.agent.texts_of(session), "the first prompt")
    control = laptop.api.control
    control.share([file_of("photo", PHOTO, caption="Then that")], reply_to=card.message_id)
    await laptop.person.sees("Waits for the current turn")
    await until(lambda: database.ask("SELECT FROM hermes.files HAVING sum(octet_length(data)) = max(size)"), "the file")
    await until(lambda: laptop.listener._parts.kept.prompts.all()[-1].parts[0].file.is_here, "the news")  # type: ignore[union-attr]
    await laptop.stop()
    await until(lambda: server.is_phone, "the next phone side")
    workstation.agent.finish(session)
    await until(lambda: len(workstation.agent.texts_of(session)) == 2, "the second prompt")
    assert workstation.agent.files_of(session)[1] == (hashlib.sha256(URL.encode()).hexdigest(),)
    assert len(control.calls("getFile")) == 1
    workstation.agent.finish(session)
    await until(lambda: not database.ask("SELECT FROM hermes.files LIMIT 1"), "no file in the database")


async def a_prompt_waits_at(machine: Machine, phone: Machine) -> str:
    """Start both, stop the machine, and write a prompt for a session there; return the id of the session."""
    await started(phone, machine, prompts={"enabled": True})
    session = machine.agent.session("Far away")
    card = await card_of(phone, machine, "Far away")
    await machine.stop()
    phone.person.write("Go on", to=card)
    await phone.person.sees("Waits for the current turn")
    prompts = phone.listener._parts.kept.prompts
    await until(lambda: any(one.line.message_id for one in prompts.all()), "the line noted")
    return session


async def test_a_prompt_says_that_its_machine_is_away(three: tuple[Machine, ...]) -> None:
    """From the moment when that is known, until the machine is back."""
    laptop, workstation, _ = three
    session = await a_prompt_waits_at(workstation, laptop)
    heard(laptop, workstation, ago_s=60)
    laptop.clock.advance(LOOK_S)
    await laptop.person.sees("can't be reached; it gets this as soon as it is back")
    await workstation.start(settle=False)
    await until(lambda: workstation.agent.texts_of(session), "the prompt at the workstation")


async def test_a_text_without_a_session_keeps_no_listener_from_leaving(three: tuple[Machine, ...]) -> None:
    """It is saved, and the next listener takes the tap; the machines are none of its business until then."""
    laptop, _, _ = three
    await laptop.start(idle_s=600.0, prompts={"enabled": True})
    session = laptop.agent.session("Fix login flow")
    await card_of(laptop, laptop, "Fix login flow")
    laptop.person.write("Go on")
    shown = await laptop.person.sees("What is this for?", buttons=True)
    prompts = laptop.listener._parts.kept.prompts
    await until(lambda: any(one.line.message_id for one in prompts.all()), "the line noted")
    laptop.clock.advance(700)
    await laptop.ended()
    await laptop.start()
    await laptop.person.taps(shown, "Fix login flow")
    await until(lambda: laptop.agent.texts_of(session) == ["Go on"], "the prompt")


async def test_the_next_phone_side_says_that_the_machine_of_a_prompt_is_away(three: tuple[Machine, ...]) -> None:
    """Although nothing about the prompt has changed since."""
    laptop, workstation, _ = three
    session = await a_prompt_waits_at(workstation, laptop)
    await laptop.stop()
    heard(laptop, workstation, ago_s=60)
    await laptop.start(prompts={"enabled": True})
    await laptop.person.sees("can't be reached; it gets this as soon as it is back")
    assert not workstation.agent.texts_of(session)


async def test_a_machine_that_has_just_joined_is_not_away(three: tuple[Machine, ...]) -> None:
    """Although the last look at all machines was before that."""
    laptop, workstation, _ = three
    await laptop.start()
    seen = Machines(laptop.listener._store, monotonic=lambda: 0.0)
    await seen.look()
    await workstation.start(settle=False)
    machine = spool.machine(workstation.store)
    await until(lambda: workstation.agent.sinks, "an event stream")
    await seen.look()
    assert seen.is_away(machine)
    await seen.look(machine)
    assert not seen.is_away(machine)


async def test_the_next_phone_side_draws_the_line_of_a_prompt_again(three: tuple[Machine, ...]) -> None:
    """The one before it has drawn the line, and has left before that was noted."""
    laptop, workstation, _ = three
    await a_prompt_waits_at(workstation, laptop)
    heard(laptop, workstation, ago_s=60)
    async with held(laptop.listener._store.prompts, "change"):
        laptop.clock.advance(LOOK_S)
        await laptop.person.sees("can't be reached; it gets this as soon as it is back")
        await laptop.stop()
    heard(laptop, workstation)
    await laptop.start(prompts={"enabled": True})
    await laptop.person.sees("Waits for the current turn")


async def test_a_photo_waits_for_a_machine_that_is_away(three: tuple[Machine, ...], database: Database) -> None:
    """In the database; once the prompt is withdrawn, it is removed there although the machine is still away."""
    laptop, workstation, _ = three
    await started(laptop, workstation, prompts={"enabled": True})
    session = workstation.agent.session("Far away")
    card = await card_of(laptop, workstation, "Far away")
    await workstation.stop()
    photos = [file_of("photo", PHOTO, caption=caption) for caption in ("Look", "And look")]
    _, (last,) = [laptop.api.control.share([photo], reply_to=card.message_id) for photo in photos]
    whole = "SELECT FROM hermes.files GROUP BY prompt HAVING sum(octet_length(data)) = max(size)"
    await until(lambda: len(database.ask(whole)) == 2, "both files")

    def waiting() -> list[ShownMessage]:
        return [one for one in laptop.person.shown() if any("✖️ Cancel" in row for row in one.labels)]

    await until(lambda: len(waiting()) == 2, "both lines")
    await laptop.person.taps(next(one for one in waiting() if one.reply_to == last), "✖️ Cancel")
    await until(lambda: len(database.ask("SELECT DISTINCT prompt FROM hermes.files")) == 1, "one file removed")
    await workstation.start(settle=False)
    await until(lambda: workstation.agent.texts_of(session), "the prompt at the workstation")
    assert workstation.agent.texts_of(session) == ["Look"]
    assert workstation.agent.files_of(session) == [(hashlib.sha256(URL.encode()).hexdigest(),)]
    await until(lambda: not database.ask("SELECT FROM hermes.files LIMIT 1"), "no file in the database")


async def test_the_next_phone_side_sends_no_text_that_may_lack_a_part(three: tuple[Machine, ...]) -> None:
    """The one before it may have said that a part was not saved: an answer is offered, and a prompt is not sent."""
    laptop, workstation, _ = three
    await started(laptop, workstation, prompts={"enabled": True})
    session = workstation.agent.session("Far away")
    card = await card_of(laptop, workstation, "Far away")
    request_id = workstation.agent.ask([question()])
    shown = await laptop.person.sees(ASKED)
    kept = laptop.listener._parts
    with laptop.clock.standing():
        for message in (shown, card):
            laptop.person.write("Delete nothing. " * 256, to=message)
        await until(lambda: any(one.state.joining for one in kept.entries.all()), "the first part of an answer")
        await until(lambda: any(one.due_s for one in kept.kept.prompts.all()), "the first part of a prompt")
        await laptop.stop()
    await until(lambda: workstation.is_phone, "the next phone side")
    laptop.clock.advance(10)
    await laptop.person.sees("✖️ Cancelled: a part of it may be lost. Please send it again.", buttons=False)
    await laptop.person.taps(await laptop.person.sees("Is this your answer to", buttons=True), "Use “Delete")
    await until(lambda: workstation.agent.came_of(request_id), "the answer")
    assert not workstation.agent.texts_of(session)


async def test_a_row_that_no_hermes_has_written_stops_no_clock(three: tuple[Machine, ...], database: Database) -> None:
    """The user of an agent-only machine can write it."""
    laptop, workstation, _ = three
    await started(laptop, workstation)
    await workstation.stop()
    machine_id = spool.machine(workstation.store)
    for servers, seen_at in (("5", "infinity"), ("[[1]]", "-infinity")):
        written = "UPDATE hermes.machines SET servers = %s, seen = %s::timestamptz WHERE id = %s"
        database.ask(written, servers, seen_at, machine_id)
        (row,) = [one for one in await laptop.listener._store.machines() if one.id == machine_id]
        assert (row.servers, 0 <= row.silent_s < 1e10) == ((), True)
