"""A world of processes: a Bot API, two agent servers, a terminal, and Hermes between them.

The listener, the hooks and what they start run as their users run them. Their time runs faster than the clock on the
wall (`PACE`), and so do the waits of both servers; rates and time-outs keep their proportions.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from hermes.hook import runtime, spool
from hermes.sandbox.botapi.world import Chat, User
from hermes.sandbox.opencode2.world import VERSIONS
from tests.faults import hostname
from tests.faults.asks import ROUTES
from tests.faults.programs import Programs
from tests.faults.terminal import Terminal
from tests.faults.trap import trapping
from tests.harness.agents import AgentProcess
from tests.scenes.stage import ANN, BOB, Stage, staged

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hermes.core.topics import TopicMode
    from tests.faults.asks import Answers, Ask, Json, Route
    from tests.faults.trap import Trap
    from tests.harness.processes import Proc

PACE: Final = 5.0
SERVERS: Final = ("new", "old")
DIRECTORY: Final = "/home/dev/project"
SMALL_DISK: Final = "4m"
OTHER_BOT: Final = User(2002, "@deploy_bot", is_bot=True)
GROUP: Final = Chat(-1_002_000_000_001, "Team")
STORE: Final = "disk/store"
"""Where the store is: the small disk is mounted above it, so that the store's folder can be removed."""
FLEETING_S: Final = 40
"""How long an ask can be answered in a world where time runs out; in Hermes' own seconds."""


class Agent(Protocol):
    """An agent server: scripted, or real. `keeps_permissions`: what it asks stays open if its instance is disposed."""

    manner: str
    keeps_permissions: bool

    @property
    def url(self) -> str:
        """Its address."""
        ...

    @property
    def pid(self) -> int:
        """Its process id."""
        ...

    def table(self, name: str) -> Json | None:
        """Return its table of the configuration, None if it needs none."""
        ...

    def do(self, act: str, **wish: Any) -> Any:
        """Do something; what came of it. Raises LookupError where it is impossible."""
        ...

    def close(self) -> None:
        """End it."""
        ...


@dataclass
class World:
    """What a round happens in. `fleeting`: time runs out here; `mounted`: its store has a small disk of its own."""

    stage: Stage
    agents: Mapping[str, Agent]
    terminal: Terminal
    programs: Programs
    trap: Trap
    clock_file: Path
    fleeting: bool
    mounted: bool
    ahead_s: float = 0.0
    pace: float = PACE
    directory: str = DIRECTORY
    is_real: bool = False
    """Whether the agent is a real OpenCode."""
    is_group: bool = False
    """Whether its phone is a group, where other people talk, too."""
    topics: TopicMode = "off"
    """For what its chat has topics, as Hermes is configured."""
    is_forum: bool = False
    """Whether the chat has topics now."""
    has_hostname: bool = False
    """Whether its processes have a host name of their own."""
    kinds: tuple[str, ...] | None = None
    """The faults that can be had here; None: all."""
    routes: tuple[Route, ...] = ROUTES
    """The ways by which asks come here."""
    planted: dict[str, bytes] = field(default_factory=dict)
    processes: list[Proc] = field(default_factory=list)
    """The listeners that were started by hand, the dead ones, too."""
    gap_s: float = 0.0
    """When the last listener was ended (steady seconds): what was open then does not expire soon."""

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stage of each machine."""
        return (self.stage,)

    def open_entries(self) -> list[str]:
        """Return names for the asks that are open in the store."""
        pending = self.stage.store / "pending"
        if not pending.is_dir():
            return ["a store that was removed, and is not made again yet"]
        return [file.name for file in pending.glob("*.json") if file.name not in self.planted and not file.is_dir()]

    # --- the listener ---------------------------------------------------------------------------------------

    def listeners(self) -> list[int]:
        """Return the process ids of all listeners of this world, those that hooks started, too."""
        wanted = str(self.stage.config).encode()
        found = []
        for place in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                words = (place / "cmdline").read_bytes().split(b"\0") if place.name.isdigit() else []
                if b"listen" in words and wanted in words and _lives(place):
                    found.append(int(place.name))
        return found

    def start(self) -> None:
        """Start a listener, unless one is there."""
        if not self.listeners():
            self.stage.listener = self.second()

    def second(self) -> Proc:
        """Start a listener beside the one that is there."""
        self.processes.append(self.stage.run("listen", "--config", str(self.stage.config)))
        return self.processes[-1]

    def signal_listeners(self, number: signal.Signals) -> None:
        """Send a signal to every listener."""
        if number in {signal.SIGKILL, signal.SIGTERM}:
            self.gap_s = time.monotonic()
        for pid in self.listeners():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        if number == signal.SIGKILL and self.stage.listener is not None:
            self.stage.listener.close()

    # --- agents ---------------------------------------------------------------------------------------------

    def ask(self, ask: Ask) -> None:
        """Let the agent ask."""
        if ask.route == "terminal":
            self.terminal.ask(ask)
            return
        if ask.route == "program":
            self.programs.ask(ask)
            return
        agent = self.agents[ask.agent]
        ask.session = agent.do("session", title=f"About {ask.token}")
        if ask.change_bytes:
            line = f"+{ask.token}: another line of a long change\n"
            change = {"filepath": f"{ask.token}.py", "diff": line * (ask.change_bytes // len(line))}
            ask.request_id = agent.do(
                "ask_permission", kind="edit", patterns=[f"{ask.token}.py"], metadata=change, session=ask.session
            )
            return
        if ask.is_permission:
            ask.request_id = agent.do(
                "ask_permission", kind="bash", patterns=[ask.command], always=[ask.command], session=ask.session
            )
            return
        ask.request_id = agent.do("ask", questions=ask.questions, session=ask.session)
        if ask.route == "both":
            listed = {one["id"]: one for one in agent.do("listed", directory=self.directory)}
            assert ask.request_id in listed, (
                f"the agent server {ask.agent!r} does not list {ask.token}, which it just asked"
            )
            self.terminal.attend(ask, listed[ask.request_id], lambda answers: self._settle(ask, answers))

    def _settle(self, ask: Ask, answers: Answers | None) -> bool:
        """Answer through the agent's own client, as a plugin does."""
        agent = self.agents[ask.agent]
        try:
            if answers is None:
                agent.do("dismiss", request_id=ask.request_id)
            else:
                agent.do("answer", request_id=ask.request_id, answers=answers)
        except LookupError:
            return False
        return True

    def tell_plugins(self) -> None:
        """Let the plugin beside a server hear what became of its questions."""
        for request_id, pending in self.terminal.asks.items():
            if pending.open and pending.ask.route == "both":
                came = self.came_of(pending.ask)
                if came:
                    self.terminal.settled(request_id, came[0])
                elif pending.ask.ended_by:
                    self.terminal.abort(request_id)

    def came_of(self, ask: Ask) -> list[Answers | None]:
        """Return every effect that an ask had."""
        if ask.route == "terminal":
            return self.terminal.came_of(ask.request_id)
        if ask.route == "program":
            return self.programs.came_of(ask.request_id)
        told = self.agents[ask.agent].do("came_of", request_id=ask.request_id)
        return [None if one is None else tuple(tuple(texts) for texts in one) for one in told]

    def allowed_by(self, ask: Ask) -> Answers | None:
        """Return the leave that a scripted agent took; None if it took none, or if nothing holds up its tools."""
        if self.is_real or not ask.is_permission or ask.agent in VERSIONS:
            return None
        reply = self.agents[ask.agent].do("allowed_by", request_id=ask.request_id)
        return None if reply is None else ((reply,),)

    def turns_of(self, ask: Ask) -> int | None:
        """Return how many turns of its session ended by themselves; None if it has no server, or was deleted."""
        if self.is_real or ask.route not in {"server", "both"} or not ask.session or "deleted" in ask.ended_by:
            return None
        turns: int = self.agents[ask.agent].do("turns_of", session=ask.session)
        return turns

    # --- surroundings ---------------------------------------------------------------------------------------

    @property
    def environ(self) -> dict[str, str]:
        """The environment of the agents, and so of their hooks."""
        return self.terminal.environ

    @environ.setter
    def environ(self, environ: dict[str, str]) -> None:
        self.terminal.environ = self.programs.environ = environ

    @property
    def socket(self) -> Path:
        """The listener's socket."""
        return Path(runtime.folder(self.stage.store)) / f"{spool._key(self.stage.store)}.sock"

    def can_be_nudged(self) -> bool:
        """Tell whether a hook can wake the listener."""
        return spool.nudge(self.stage.store)

    # --- time and disk --------------------------------------------------------------------------------------

    def jump(self, by_s: float) -> None:
        """Set every wall clock of the machine."""
        self.ahead_s += by_s
        _write_clock(self.clock_file, self.ahead_s, self.pace)

    def fill_disk(self) -> None:
        """Let nothing more be written."""
        if not self.mounted:
            self._limit(0)
            return
        with contextlib.suppress(OSError), self._filler.open("wb", buffering=0) as filler:
            while True:
                filler.write(b"\0" * 4096)

    def free_disk(self) -> None:
        """Let it be written again."""
        self._filler.unlink(missing_ok=True)
        if not self.mounted:
            self._limit(-1)

    @property
    def _filler(self) -> Path:
        return self.stage.store.parent / "filler"

    def _limit(self, size: int) -> None:
        import resource  # noqa: PLC0415 (Linux alone has prlimit)

        for pid in self.listeners():
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, -1))

    def plant(self, name: str, content: bytes) -> None:
        """Lay a file among the entries that no listener of this version can read."""
        place = self.stage.store / "pending" / name
        try:
            place.write_bytes(content)
            place.chmod(0o600)
        except OSError:
            place.unlink(missing_ok=True)  # the disk is full already
        else:
            self.planted[name] = content

    def tear(self) -> None:
        """Cut the file of an open entry in half, if there is one."""
        for place in sorted((self.stage.store / "pending").glob("*.json")):
            if place.name not in self.planted and place.is_file():
                with contextlib.suppress(FileNotFoundError), place.open("r+b") as file:
                    file.truncate(place.stat().st_size // 2)
                return

    def close(self) -> None:
        """End every process."""
        self.terminal.close()
        self.programs.close()
        self.signal_listeners(signal.SIGKILL)
        for process in self.processes:
            process.close()
        for agent in self.agents.values():
            agent.close()


def _lives(place: Path) -> bool:
    return (place / "stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}


def write_clock(root: Path, pace: float = PACE) -> Path:
    """Begin the time of a world, if that has not been done, and return the file of its clock."""
    file = root / "clock.json"
    if not file.exists():
        _write_clock(file, 0.0, pace)
    return file


def _write_clock(file: Path, ahead_s: float, pace: float) -> None:
    began = json.loads(file.read_text()) if file.exists() else {"epoch_s": time.time(), "steady_s": time.monotonic()}
    new = file.with_suffix(".new")
    new.write_text(json.dumps({**began, "ahead_s": ahead_s, "pace": pace}))
    new.replace(file)


@contextmanager
def created(
    root: Path,
    *,
    fleeting: bool = False,
    group: bool = False,
    agents: Mapping[str, Agent] | None = None,
    tables: Mapping[str, Json] | None = None,
    directory: str = DIRECTORY,
    pace: float = PACE,
    ttl_s: int = 0,
    disk: str = SMALL_DISK,
    prefix: Sequence[str] = (),
) -> Iterator[World]:
    """Set a world up, its listener at work; with scripted agents, if none are given.

    `ttl_s` is how long an ask can be answered, 0 for Hermes' own; `disk` is the size of its store's own disk, "" for
    none. `tables` are further tables of the configuration. `prefix` is a command that is given Hermes' own
    command line, and runs it. In a `group` the bot hears everybody.
    """
    root.mkdir(parents=True, exist_ok=True)
    has_hostname = hostname.leave_the_machines()
    clock_file = write_clock(root, pace)
    people: dict[str, Any] = {"users": (ANN, BOB, OTHER_BOT), "chats": (GROUP,), "privacy_mode": False} if group else {}
    with (
        staged(root / "hermes", test_clock=clock_file, spawned=True, **people) as stage,
        _disk(root / "hermes" / "disk", disk) as mounted,
        trapping() as trap,
    ):
        stage.folder = STORE
        stage.unattended = True
        stage.prefix = (*obedient(), *prefix)
        if group:
            stage.chat_id, stage.users = GROUP.id, (ANN.id, BOB.id)
        agents = agents or {manner: AgentProcess(manner, scripted(manner, clock_file)) for manner in SERVERS}
        stage.servers = [table for table in (agent.table(name) for name, agent in agents.items()) if table]
        stage.settings.update(tables or {})
        ttl_s = FLEETING_S if fleeting else ttl_s
        questions = {"ttl": f"{ttl_s}s"} if ttl_s else {}
        terminal, programs = hooked(stage, root, directory)
        world = World(
            stage, agents, terminal, programs, trap, clock_file, fleeting, mounted,
            pace=pace, directory=directory, is_group=group, has_hostname=has_hostname,
        )  # fmt: skip
        try:
            log = {"level": "info", "file": str(stage.log)}
            stage.settings.setdefault("notices", {"finished": "0s"})
            stage.settings.setdefault("prompts", {"enabled": True})
            world.processes.append(stage.start(questions=questions, log=log))
            yield world
        finally:
            world.close()


def hooked(stage: Stage, folder: Path, directory: str = DIRECTORY) -> tuple[Terminal, Programs]:
    """Return the agents of a machine that ask through hooks, those of a terminal first; `folder` has their output."""
    hook = [*stage.prefix, sys.executable, "-I", "-m", "hermes", "hook"]
    places = ["--store", str(stage.store), "--log", str(stage.log), "--config", str(stage.config)]
    places += ["--test-clock", str(stage.test_clock)]
    terminal = Terminal([*hook, "opencode", *places], stage.environ(), folder, directory)
    return terminal, Programs(hook, places, stage.environ(), folder, directory)


def scripted(manner: str, test_clock: Path) -> list[str]:
    """Return the command line of a scripted agent server, for `AgentProcess`."""
    arguments = ["--manner", manner, "--directory", DIRECTORY, "--test-clock", str(test_clock)]
    return ["hermes.sandbox.opencode.server", *arguments]


def obedient() -> tuple[str, ...]:
    """Return what makes the superuser's processes obey the modes of folders, too."""
    if os.geteuid() == 0 and (setpriv := shutil.which("setpriv")):
        return (setpriv, "--bounding-set=-dac_override,-dac_read_search")
    return ()


@contextmanager
def _disk(place: Path, size: str) -> Iterator[bool]:
    """Give the store a disk of its own, where this machine lets us. Yields whether it did."""
    place.mkdir(mode=0o700)
    if not size:
        yield False
        return
    options = f"size={size},mode=700"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], capture_output=True, check=False
    )
    try:
        yield mounted.returncode == 0
    finally:
        if mounted.returncode == 0:
            subprocess.run(["umount", "--lazy", str(place)], capture_output=True, check=False)
