"""The agent's side of the demo: its asks, the answers that it received, its turns. The scripted agent is one of two."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, Self

from hermes.commands.demo.plugin import Plugin
from hermes.commands.demo.worker import WORK_S, WorkingAgent
from hermes.sandbox.opencode.world import AgentWorld
from hermes.sandbox.opencode2.server import OpenCode2Agent

if TYPE_CHECKING:
    from hermes.commands.demo.processes import Daemon
    from hermes.commands.demo.scenes import Scene, Through
    from hermes.commands.demo.worker import TurnRow

HOME: Final = "/home/you"
COVERED: Final = "always allowed, so it did not ask"

Json = dict[str, Any]
State = Literal["waiting", "received", "refused"]


@dataclass(frozen=True, slots=True)
class Row:
    """One ask as the agent knows it.

    `received` holds, for each of `asked`, the exact words that came back (for a command that the real OpenCode ran, its
    output); `times` counts how often an answer took effect; the state is `refused` if the ask was rejected.
    """

    key: str
    title: str
    folder: str
    through: Through
    permission: bool
    hurried: bool
    asked: tuple[str, ...]
    at_s: float
    state: State
    received: tuple[tuple[str, ...], ...] = ()
    times: int = 0

    @classmethod
    def waiting(cls, key: str, scene: Scene) -> Self:
        """Return the row of an ask that begins now."""
        return cls(
            key=key,
            title=scene.title,
            folder=scene.folder,
            through=scene.through,
            permission=bool(scene.command),
            hurried=scene.hurried,
            asked=scene.asked,
            at_s=time.time(),
            state="waiting",
        )


class Computer(Protocol):
    """The computer that an agent works on. `servers` are the [[opencode]] tables of the configuration for it.

    `ways` are the ways in which Hermes can learn of what it asks.
    """

    name: str
    ways: frozenset[Through]
    servers: tuple[Json, ...]

    def ask(self, scene: Scene, daemon: Daemon) -> None:
        """Let the agent ask the questions, or for the permission, of this scene, or end its task."""
        ...

    def rows(self) -> tuple[Row, ...]:
        """Return a row for each ask so far, in order."""
        ...

    def turns(self) -> tuple[TurnRow, ...]:
        """Return a row for each prompt that the page can show, in order."""
        ...

    def away(self) -> None:
        """Make the agent unreachable."""
        ...

    def back(self) -> None:
        """Make it reachable again."""
        ...

    def close(self) -> None:
        """End the agent."""
        ...


@dataclass(frozen=True, slots=True)
class _Asked:
    world: AgentWorld | OpenCode2Agent
    first: Row

    def row(self) -> Row:
        effects = self.world.came_of(self.first.key)
        if not effects:
            return self.first
        given = effects[0]
        if given is None:
            return replace(self.first, state="refused", times=len(effects))
        received = tuple(tuple(words) for words in given)
        return replace(self.first, state="received", times=len(effects), received=received)


class ScriptedComputer:
    """Three scripted agents: one with a port, one without, whose plugin tells Hermes of its asks, and an OpenCode 2.

    The first takes prompts, and works for about `work_s` seconds on each.
    The last is started when it first asks, and Hermes finds it by its file.
    """

    name = "a scripted agent"
    ways: frozenset[Through] = frozenset({"server", "plugin", "opencode2", "work"})

    def __init__(self, *, work_s: float = WORK_S) -> None:
        self.agent = WorkingAgent(directory=f"{HOME}/shop-api", work_s=work_s)
        self.agent.back()
        self._portless = AgentWorld(directory=f"{HOME}/notes")
        self._second: OpenCode2Agent | None = None
        self._plugins: list[Plugin] = []
        self._here = threading.Event()
        self._here.set()
        self._asked: list[_Asked] = []
        self.servers: tuple[Json, ...] = ({"name": "scripted", "url": self.agent.url},)

    def ask(self, scene: Scene, daemon: Daemon) -> None:
        """Let the agent ask this, or end this task, in a new session."""
        if scene.through == "opencode2":
            self._show_form(scene, daemon)
            return
        if scene.task is not None:
            self.agent.work_on(scene.task, self.agent.session(scene.title, directory=f"{HOME}/{scene.folder}"))
            return
        world = self.agent if scene.through == "server" else self._portless
        session = world.session(scene.title, directory=f"{HOME}/{scene.folder}")
        with world.lock:
            if scene.command:
                request_id = world.ask_permission("bash", [scene.command], session=session)
            else:
                request_id = world.ask(scene.questions, session=session, say=scene.say)
            if not request_id:
                row = replace(Row.waiting(session, scene), state="received", received=((COVERED,),), times=1)
                self._asked.append(_Asked(world, row))
                return
            request = (world.pending | world.permissions)[request_id]
        self._asked.append(_Asked(world, Row.waiting(request_id, scene)))
        if scene.through == "plugin":
            self._plugins.append(Plugin(daemon, world, request, scene, here=self._here))

    def rows(self) -> tuple[Row, ...]:
        """Return a row for each ask so far, in order."""
        return tuple(asked.row() for asked in self._asked)

    def turns(self) -> tuple[TurnRow, ...]:
        """Return a row for each prompt that the first agent got, in order."""
        return self.agent.turns()

    def away(self) -> None:
        """Stop the agent's server, and make its plugin wait before it applies an answer."""
        self._here.clear()
        self.agent.away()
        if self._second is not None:
            self._second.away(killed=True)  # otherwise its file went, which says that its questions are gone, too

    def back(self) -> None:
        """Start the server again, and let the plugin go on."""
        self.agent.back()
        if self._second is not None:
            self._second.back()
        self._here.set()

    def close(self) -> None:
        """End the hooks that wait, and the agent."""
        self._here.set()
        for plugin in self._plugins:
            plugin.close()
        self.agent.close()
        if self._second is not None:
            self._second.close()

    def _show_form(self, scene: Scene, daemon: Daemon) -> None:
        if self._second is None:
            self._second = OpenCode2Agent(directory=f"{HOME}/shop-api", file=daemon.opencode2_file)
            self._second.back()
        session = self._second.session(scene.title, directory=f"{HOME}/{scene.folder}")
        form = self._second.form(scene.fields, session=session, title=scene.say)
        self._asked.append(_Asked(self._second, Row.waiting(form, scene)))
