"""Several machines behind the page: each has a folder, a listener and agents; they share a bot through PostgreSQL.

    with fleet(2) as machines:
        machines.ask("one", "workstation")
        machines.kill_phone_side()    # another machine takes over within 20 s
        machines.switch_database()    # and again, to start it

PostgreSQL is a private server, which ends with the demo. A listener that was killed is started again after
`Spans.down`; by then, the phone says that its machine is away.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hermes.commands import stores
from hermes.commands.demo.computer import ScriptedComputer
from hermes.commands.demo.processes import Daemon
from hermes.commands.demo.stage import Spans, Stage, running_bot
from hermes.errors import StoreError
from hermes.sandbox.postgres import HOST, Server
from hermes.storage.home import Home
from hermes.storage.postgres.address import Address
from hermes.storage.postgres.store import PostgresStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes.commands.demo.scenes import Scene
    from hermes.model.machine import Machine
    from hermes.sandbox.botapi import RunningBotApi
    from hermes.storage.store import Store

NAMES: Final = ("laptop", "workstation", "server")
USER: Final = "hermes"
DOWN_S: Final = 45.0
LOOK_S: Final = 0.5

Json = dict[str, Any]


class MachineStage(Stage):
    """One machine: its listener polls only if it is the phone side, so its log tells whether it is at work."""

    def __init__(self, name: str, api: RunningBotApi, daemon: Daemon, computer: ScriptedComputer, spans: Spans) -> None:
        super().__init__(api, computer, daemon, spans)
        self.name = name

    @property
    def id(self) -> str:
        """The id of the machine in the database."""
        return self._daemon.store.home.machine()

    def _signs(self) -> int:
        return self.log_text().count(" listening for ")


class Fleet:
    """See the module. Methods may be called from any thread."""

    def __init__(
        self, api: RunningBotApi, server: Server, machines: tuple[MachineStage, ...], make_store: Callable[[], Store]
    ) -> None:
        self.api = api
        self.spans = machines[0].spans
        self._server = server
        self._machines = machines
        self._make_store = make_store
        self._listed: dict[str, Machine] = {}
        self._is_locked = False
        self._switching = threading.Lock()
        self._closing = threading.Event()
        self._looking = threading.Thread(target=lambda: asyncio.run(self._look()), name="fleet", daemon=True)

    def start(self) -> None:
        """Start all listeners; the first one becomes the phone side. Raises HermesError: one did not start."""
        for machine in self._machines:
            machine.start()
        self._looking.start()

    def close(self) -> None:
        """End all processes but the database."""
        self._closing.set()
        if self._looking.ident is not None:
            self._looking.join()
        for machine in self._machines:
            machine.close()

    # --- actions of a visitor -------------------------------------------------------------------------------------

    def scenes(self) -> tuple[Scene, ...]:
        """Return what an agent can ask. A hurried ask would restart a listener, so there is none."""
        return tuple(scene for scene in self._machines[0].scenes() if not scene.hurried)

    def ask(self, scene: str, name: str) -> None:
        """Let the agent of the machine with this name ask. Raises LookupError: no such machine or scene."""
        found = next((machine for machine in self._machines if machine.name == name), None)
        if found is None:
            raise LookupError(f"no machine is called {name!r}")
        found.ask(scene)

    def kill_phone_side(self) -> None:
        """End the listener of the phone side as `kill -9` does. Raises LookupError: no machine is the phone side."""
        found = self._phone_side()
        if found is None:
            raise LookupError("no machine has the phone now")
        found.kill_listener()

    def switch_database(self) -> None:
        """Stop the database, or start it again. Raises HermesError: it does not start."""
        with self._switching:
            if self._server.pid is not None:
                self._server.stop()
            else:
                self._server.start()

    def unlock_phone(self) -> None:
        """Do what `hermes unlock` does. Raises StoreError."""
        asyncio.run(stores.look(self._make_store(), lambda store: store.unlock_phone()))

    def acts(self) -> dict[str, Callable[[Json], object]]:
        """Map the name of each action to a function of what the page says about it."""
        return {
            "ask": lambda told: self.ask(str(told["scene"]), str(told["machine"])),
            "kill": lambda _: self.kill_phone_side(),
            "database": lambda _: self.switch_database(),
            "unlock": lambda _: self.unlock_phone(),
        }

    async def seen(self) -> Json:
        """Return as `Stage.seen`, and each machine, and whether the database runs."""
        told = [(machine, await machine.seen()) for machine in self._machines]
        rows = [row | {"machine": machine.name} for machine, one in told for row in one["rows"]]
        phone_side = self._phone_side() or self._machines[0]
        return dict(told)[phone_side] | {
            "rows": sorted(rows, key=lambda row: float(row["at_s"])),
            "phone": {"locked": self._is_locked},
            "machines": [self._seen(machine) | one["listener"] for machine, one in told],
            "database": {"runs": self._server.pid is not None},
        }

    def _seen(self, machine: MachineStage) -> Json:
        listed = self._listed.get(machine.id)
        is_away = listed is not None and listed.is_away
        return {"name": machine.name, "is_phone": machine is self._phone_side(), "is_away": is_away}

    def _phone_side(self) -> MachineStage | None:
        """Return the machine whose listener runs and has the phone, as the database said last."""
        holders = (one for one in self._machines if one.id in self._listed and self._listed[one.id].is_phone)
        return next((machine for machine in holders if machine.listener_pid is not None), None)

    # --- what the database says ------------------------------------------------------------------------------------

    async def _look(self) -> None:
        store = self._make_store()
        try:
            while not self._closing.is_set():
                listed: tuple[Machine, ...] = ()
                with suppress(StoreError):
                    listed = await store.machines()
                    self._is_locked = await store.is_phone_locked()
                self._listed = {machine.id: machine for machine in listed}
                await asyncio.sleep(LOOK_S)
        finally:
            await store.leave()


@contextmanager
def fleet(count: int, *, spans: Spans | None = None, topics: bool = False) -> Iterator[Fleet]:
    """Yield this many machines (two or three) at work. Raises HermesError: PostgreSQL or a listener does not start.

    `topics` is as of `running_bot`.
    """
    spans = spans or Spans(down=DOWN_S)
    with ExitStack() as stack:
        server = stack.enter_context(Server(USER))
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hermes-demo-")))
        api, telegram = stack.enter_context(running_bot(topics=topics))
        url = f"postgresql://{USER}@{HOST}:{server.port}/postgres?sslmode=disable"
        database = {"url": url, "password_file": str(_password_file(root, server.password))}
        machines = []
        for name in NAMES[:count]:
            (root / name).mkdir()
            computer = ScriptedComputer()
            daemon = Daemon(root / name, telegram, computer.servers, host=name, database=database)
            machines.append(MachineStage(name, api, daemon, computer, spans))
        bot_id = int(telegram["token"].partition(":")[0])
        address = Address(url, server.password)
        made = Fleet(api, server, tuple(machines), lambda: PostgresStore(Home(root / "page"), address, bot_id))
        stack.callback(made.close)
        made.start()
        yield made


def _password_file(root: Path, password: str) -> Path:
    file = root / "password"
    file.touch(mode=0o600)
    file.write_text(password, encoding="utf-8")
    return file
