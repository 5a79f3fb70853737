"""The agent's side of the demo: what was asked there, and what the agent received. The scripted agent is one of two."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, Self

from hermes.commands.demo.plugin import Plugin
from hermes.sandbox.opencode.server import ScriptedAgent
from hermes.sandbox.opencode.world import AgentWorld

if TYPE_CHECKING:
    from hermes.commands.demo.processes import Daemon
    from hermes.commands.demo.scenes import Scene, Through

HOME: Final = "/home/you"
COVERED: Final = "always allowed, so it did not ask"

Json = dict[str, Any]
State = Literal["waiting", "received", "refused"]


@dataclass(frozen=True, slots=True)
class Row:
    """One ask as the agent knows it.

    `received` holds the exact words for each of `asked` once there are any; `times` tells how often an answer took
    effect; `refused` is a turn that was told no.
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
        """Return the row of what is being asked now."""
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
    """The computer that an agent works on. `servers` are the tables [[opencode]] that name its agent."""

    name: str
    servers: tuple[Json, ...]

    def ask(self, scene: Scene, daemon: Daemon) -> None:
        """Let the agent ask this."""
        ...

    def rows(self) -> tuple[Row, ...]:
        """What was asked so far, in order."""
        ...

    def away(self) -> None:
        """Let the agent answer nobody."""
        ...

    def back(self) -> None:
        """Let it answer again."""
        ...

    def close(self) -> None:
        """End it."""
        ...


@dataclass(frozen=True, slots=True)
class _Asked:
    world: AgentWorld
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
    """A scripted agent with a port, and one without, of which only its plugin tells."""

    name = "a scripted agent"

    def __init__(self) -> None:
        self._agent = ScriptedAgent(directory=f"{HOME}/shop-api")
        self._agent.back()
        self._portless = AgentWorld(directory=f"{HOME}/notes")
        self._plugins: list[Plugin] = []
        self._here = threading.Event()
        self._here.set()
        self._asked: list[_Asked] = []
        self.servers: tuple[Json, ...] = ({"name": "scripted", "url": self._agent.url},)

    def ask(self, scene: Scene, daemon: Daemon) -> None:
        """Let the agent ask this, in a session of its own."""
        world = self._agent if scene.through == "server" else self._portless
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
        """What was asked so far, in order."""
        return tuple(asked.row() for asked in self._asked)

    def away(self) -> None:
        """Cut the agent's server off, and let its plugin apply nothing."""
        self._here.clear()
        self._agent.away()

    def back(self) -> None:
        """Let it answer again."""
        self._agent.back()
        self._here.set()

    def close(self) -> None:
        """End the agent, and the hooks that wait for it."""
        self._here.set()
        for plugin in self._plugins:
            plugin.close()
        self._agent.close()
