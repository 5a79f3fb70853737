"""Three machines: a laptop and a workstation with the bot's token, and a server that has it in half of the fleets."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import signal
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from hermes.hook import spool
from hermes.sandbox.botapi.serving import spawn_botapi
from hermes.storage.postgres import roles
from hermes.storage.postgres.connection import Connection
from tests.faults.machines import database as databases
from tests.faults.machines.proxy import lines
from tests.faults.trap import trapping
from tests.faults.world import PACE, World, hooked, obedient, scripted, write_clock
from tests.harness.agents import AgentProcess
from tests.harness.postgres import OWNER, PASSWORD, Server
from tests.scenes.stage import ANN, BOB, STRANGER, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.faults.asks import Json
    from tests.faults.machines.proxy import Line
    from tests.faults.trap import Trap
    from tests.harness.postgres import Database

NAMES: Final = ("laptop", "workstation", "server")
HOUR_S: Final = 3600.0
HOURS_APART: Final = {"laptop": 0.0, "workstation": 5 * HOUR_S, "server": -7 * HOUR_S}
"""How wrong the clock of each machine is."""
ROLE: Final = "ci"
SECRET: Final = "the password of the agent-only machine"
NEVER: Final = frozenset({PASSWORD, SECRET})
"""What no log may say."""
READY_S: Final = 60.0


@dataclass(kw_only=True)
class Machine(World):
    """One machine, with its way to the database. `label` is its name for people."""

    line: Line
    label: str

    @property
    def id(self) -> str:
        """Its id in the database."""
        return str(spool.machine(self.stage.store))

    def rename(self, label: str) -> None:
        """Give its next listener another name of the machine, where this machine lets us."""
        self.label = label
        self.stage.prefix = (*obedient(), *_named(label))

    def restart(self) -> None:
        """End its listeners at once, and start one."""
        self.signal_listeners(signal.SIGKILL)
        self.start()

    def ready(self) -> None:
        """Wait until its listener serves and follows its agent."""
        assert self.stage.listener is not None
        self.stage.listener.wait_line("listening for", READY_S)
        self.stage.listener.wait_line(f"server {self.stage.servers[0]['name']}: connected", READY_S)


@dataclass(kw_only=True)
class Fleet(World):
    """All machines as one world: what is done to a world is done to each of them. `server` is that of `database`."""

    machines: tuple[Machine, ...]
    server: Server
    database: Database
    secrets: frozenset[str] = field(default_factory=lambda: NEVER)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stage of each machine."""
        return tuple(machine.stage for machine in self.machines)

    def open_entries(self) -> list[str]:
        """Return the ids of the asks that are open."""
        return databases.open_entries(self.database)

    def phone_side(self) -> Machine | None:
        """Return the machine that is the phone side now, if that can be known."""
        machine_id = databases.phone_machine(self.database)
        return next((machine for machine in self.machines if machine_id and machine.id == machine_id), None)

    def agent_only(self) -> Machine | None:
        """Return the machine without the bot's token, if there is one."""
        return next((machine for machine in self.machines if machine.stage.settings.get("telegram") == {}), None)

    def listeners(self) -> list[int]:
        """Return the process ids of all listeners of all machines."""
        return [pid for machine in self.machines for pid in machine.listeners()]

    def start(self) -> None:
        """Start a listener on each machine that has none."""
        for machine in self.machines:
            machine.start()

    def signal_listeners(self, number: signal.Signals) -> None:
        """Send a signal to every listener of every machine."""
        for machine in self.machines:
            machine.signal_listeners(number)

    def heal(self) -> None:
        """Let the database be there for everybody."""
        if self.server.pid is None:
            self.server.start()
        for machine in self.machines:
            machine.line.heal()
        databases.fill_disk(self.database, is_full=False)

    def close(self) -> None:
        """End every process, but for the database."""
        for machine in self.machines:
            machine.close()


@contextmanager
def with_machines(root: Path, *, has_agent_only: bool, pace: float = PACE) -> Iterator[Fleet]:
    """Set up three machines, their listeners at work, the first as the phone side."""
    root.mkdir(parents=True, exist_ok=True)
    clock_file = write_clock(root, pace)
    token = f"{secrets.randbelow(10**9) + 10**9}:{secrets.token_hex(17)}"
    with ExitStack() as stack:
        server = stack.enter_context(Server())
        database = stack.enter_context(server.database())
        databases.pace_time(database, _began_s(clock_file), pace)
        api = stack.enter_context(spawn_botapi(token=token, users=(ANN, BOB, STRANGER), test_clock=clock_file))
        ways = stack.enter_context(lines(server.port, len(NAMES)))
        trap = stack.enter_context(trapping())
        machines = []
        for name, way in zip(NAMES, ways, strict=True):
            stage = _stage(root / name, name, api, clock_file, database, way)
            stack.callback(stage.close)
            machines.append(_machine(stage, name, way, trap))
            stack.callback(machines[-1].close)
        fleet = _fleet(machines, server, database)
        stack.callback(_running, server)
        _start(fleet, int(token.partition(":")[0]), has_agent_only=has_agent_only)
        yield fleet


def _began_s(clock_file: Path) -> float:
    return float(json.loads(clock_file.read_text())["epoch_s"])


def _stage(root: Path, name: str, api: Any, clock_file: Path, database: Database, way: Line) -> Stage:
    root.mkdir()
    own_clock = root / "clock.json"
    shutil.copy(clock_file, own_clock)
    stage = Stage(root, api, test_clock=own_clock, unattended=True, prefix=(*obedient(), *_named(name)))
    stage.settings = {
        "store": _store(stage, database, way, OWNER, PASSWORD),
        "log": {"level": "info", "file": str(stage.log)},
        "notices": {"finished": "0s"},
        "prompts": {"enabled": True},
    }
    return stage


def _store(stage: Stage, database: Database, way: Line, user: str, password: str) -> Json:
    secret = stage.root / "password"
    secret.write_text(password)
    secret.chmod(0o600)
    address = database.address(user, password, port=way.port)
    return {"path": str(stage.store), "url": address.url, "password_file": str(secret)}


def _machine(stage: Stage, name: str, way: Line, trap: Trap) -> Machine:
    assert stage.test_clock is not None
    agent = AgentProcess(name, scripted("new", stage.test_clock))
    stage.servers = [{"name": name, "url": agent.url}]
    terminal, programs = hooked(stage, stage.root)
    machine = Machine(
        stage=stage, agents={name: agent}, terminal=terminal, programs=programs, trap=trap, clock_file=stage.test_clock,
        fleeting=False, mounted=False, line=way, label=name,
    )  # fmt: skip
    machine.jump(HOURS_APART[name])
    return machine


def _fleet(machines: list[Machine], server: Server, database: Database) -> Fleet:
    """Return them as one world: the hooks of a terminal run on the last machine, those of programs on the second."""
    first, second, last = machines
    return Fleet(
        stage=first.stage, agents={name: agent for one in machines for name, agent in one.agents.items()},
        terminal=last.terminal, programs=second.programs, trap=first.trap, clock_file=first.clock_file,
        fleeting=False, mounted=False, routes=("server", "server", "server", "terminal", "program"),
        machines=tuple(machines), server=server, database=database,
    )  # fmt: skip


def _running(server: Server) -> None:
    if server.pid is None:
        server.start()


def _start(fleet: Fleet, bot_id: int, *, has_agent_only: bool) -> None:
    """Start the listeners; the tables are there once the first one serves."""
    first, *others = fleet.machines
    first.processes.append(first.stage.start(settle=False))
    first.ready()
    databases.watch(fleet.database)
    if has_agent_only:
        stage = others[-1].stage
        asyncio.run(_add_role(fleet.database, bot_id))
        stage.settings |= {"telegram": {}, "store": _store(stage, fleet.database, others[-1].line, ROLE, SECRET)}
    for machine in others:
        machine.processes.append(machine.stage.start(settle=False))
    for machine in others:
        machine.ready()


async def _add_role(database: Database, bot_id: int) -> None:
    connection = Connection(database.address())
    try:
        await roles.add(connection, ROLE, SECRET, bot_id)
    finally:
        await connection.close()


def _named(label: str) -> tuple[str, ...]:
    """Return what gives a process a host name of its own."""
    if os.geteuid() == 0 and shutil.which("unshare") and shutil.which("hostname"):
        return ("unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', label)
    return ()
