"""An agent in this process that takes prompts, for a listener in this process: its sessions, and what it received."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, cast

from hermes.agents.prompting import nothing_excluded
from hermes.core.prompts import SETTLE_S
from hermes.errors import AgentAway, NotThere
from hermes.model.ask import Source
from hermes.model.card import Listed
from hermes.model.notice import Turn
from hermes.model.prompt import PromptAbilities, Sight, Target
from hermes.model.signals import TurnEnded
from tests.listening import PATIENCE_S, until

if TYPE_CHECKING:
    from typing import Any

    from hermes.agents.prompting import Excludes
    from hermes.listener.kept import Kept
    from hermes.model.prompt import Content, Prompt, RecordState, SessionState
    from hermes.sandbox.phone_values import ShownMessage
    from hermes.storage.store import Store
    from tests.listening import House

SERVER: Final = "desk"
CAN: Final = PromptAbilities(
    ("text", "note", "task", "command"),
    steers=True,
    stops=True,
    makes_sessions=True,
    files=("picture", "pdf", "text"),
)
PROMPTS: Final = {"opencode2": {"enabled": False}, "prompts": {"enabled": True}, "notices": {"finished": "0s"}}


@dataclass
class Session:
    """One session: whether a turn runs, and each prompt's state by its id."""

    source: Source
    is_busy: bool = False
    words: str = ""
    tool: str = ""
    record: dict[str, RecordState] = field(default_factory=dict)


class Desk:
    """The agent, as a `PromptWay`. `received` has each prompt with its session, in order.

    `missed`: how often it was asked for something while it was away. `is_own`: it has worked on its sessions itself.
    `has_ended`: its process, and it had.
    """

    agent = "opencode"
    can = CAN

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.received: list[tuple[str, Content]] = []
        self.is_away = self.hangs = self.is_unreadable = False
        self.keeps = True
        self.is_own = self.has_ended = False
        self.refuses: Exception | None = None
        self.objects: Exception | None = None
        self.excludes: Excludes = nothing_excluded
        self.reason = ""
        self.ended: Turn | None = None
        self.stopped: list[str] = []
        self._made = self.missed = 0

    async def way(self) -> Desk:
        """The way to its sessions."""
        return self

    def session(self, title: str, directory: str = "/home/dev/shop", *, is_busy: bool = False) -> Source:
        """Begin a session at the desk."""
        self._made += 1
        session_id = f"ses_{self._made}"
        source = Source("opencode", "m1", session_id, directory, session_title=title, host="laptop", server=SERVER)
        self.sessions[session_id] = Session(source, is_busy)
        return source

    def texts(self) -> list[str]:
        """The texts that came."""
        return [content.text for _, content in self.received]

    def end(self, session_id: str, how: RecordState = "finished") -> None:
        """End the turn that runs."""
        session = self.sessions[session_id]
        session.is_busy = False
        session.record = {one: how if state == "running" else state for one, state in session.record.items()}

    async def _answers(self) -> None:
        if self.hangs:
            await asyncio.Event().wait()
        if self.is_away:
            self.missed += 1
            raise AgentAway("nobody answers there")

    def _there(self, source: Source) -> Session:
        if source.session_id not in self.sessions:
            raise NotThere("no such session")
        return self.sessions[source.session_id]

    async def look(self, source: Source, record_id: str) -> Sight:
        """As `PromptWay`."""
        await self._answers()
        if self.is_unreadable:
            raise AgentAway("the record cannot be read")
        if self.has_ended:
            return Sight("gone", is_own=True)
        session = self._there(source)
        state = session.record.get(record_id, "absent")
        fresh = f"msg_{len(self.received) + 1}"
        now: SessionState = "busy" if session.is_busy else "idle"
        return Sight(now, state, fresh, session.tool, self.reason, is_own=self.is_own)

    async def turn(self, session_id: str, directory: str) -> Turn | None:
        """As `AgentServer`: the turn that ended last, until a prompt comes."""
        return None if self.received else self.ended

    async def check(self, source: Source, content: Content) -> None:
        """As `PromptWay`."""
        await self._answers()
        if content.files and self.objects is not None:
            raise self.objects

    async def send(self, source: Source, record_id: str, content: Content) -> None:
        """As `PromptWay`."""
        await self._answers()
        if self.refuses is not None:
            raise self.refuses
        session = self._there(source)
        self.received.append((source.session_id, content))
        if self.keeps:
            session.is_busy, session.record[record_id] = True, "running"

    async def stop(self, source: Source) -> bool:
        """As `PromptWay`."""
        await self._answers()
        self.stopped.append(source.session_id)
        self.end(source.session_id, "stopped")
        return True

    async def new_session(self, directory: str) -> str:
        """As `PromptWay`."""
        await self._answers()
        return self.session("", directory).session_id

    async def words(self, source: Source) -> str:
        """As `PromptWay`."""
        await self._answers()
        return self._there(source).words

    async def exclusions(self, source: Source) -> Excludes:
        """As `PromptWay`."""
        await self._answers()
        if self.refuses is not None:
            raise self.refuses
        self._there(source)
        return self.excludes

    async def listed(self, since_s: float) -> tuple[Listed, ...]:
        """As `PromptWay`."""
        await self._answers()
        now_s = time.time()
        return tuple(
            Listed(Target(one.source, "OpenCode", self.can), "busy" if one.is_busy else "idle", now_s - number)
            for number, one in enumerate(self.sessions.values())
        )


class Desked:
    """A house whose listener brings prompts to a desk."""

    def __init__(self, home: House) -> None:
        self.home = home
        self.desk = Desk()
        home.servers.append({"name": SERVER, "url": "http://127.0.0.1:9"})  # nobody answers there until `start` ends

    async def start(self, **sections: Any) -> None:
        """Start the listener."""
        await self.home.start(**sections)
        prompting = self.home.listener._parts.agent.prompting
        cast("dict[str, Any]", prompting._ways)[SERVER] = self.desk
        prompting._servers = cast("dict[str, Any]", {SERVER: self.desk})
        for prompt in self.kept.prompts.all():
            self.kept.prompts.wake(prompt.id)

    async def again(self, **sections: Any) -> None:
        """Stop the listener and start another one."""
        await self.home.stop()
        await self.start(**sections)

    @property
    def kept(self) -> Kept:
        """The records of the listener."""
        return self.home.listener._parts.kept

    @property
    def store(self) -> Store:
        """The store of the listener."""
        return self.home.listener._parts.entries.store

    def prompts(self) -> list[Prompt]:
        """All prompts."""
        return self.kept.prompts.all()

    async def phase(self, phase: str, count: int = 1) -> Prompt:
        """Wait until so many prompts are in this phase; the last one."""

        def reached() -> list[Prompt]:
            found = [one for one in self.prompts() if one.phase == phase]
            return found if len(found) == count else []

        try:
            return (await until(reached, f"{count} prompts that are {phase}"))[-1]
        except AssertionError:
            raise AssertionError([(one.phase, one.parts, one.reason) for one in self.prompts()]) from None

    async def refused(self, count: int = 1) -> None:
        """Wait until so many prompts have failed; the time passes at once for which the agent may still take one."""
        async with asyncio.timeout(PATIENCE_S):
            while (phases := [one.phase for one in self.prompts()]).count("failed") < count:
                if "sending" in phases:
                    self.home.clock.advance(SETTLE_S)
                await self.looks()

    async def came(self, *texts: str) -> None:
        """Wait until exactly these texts have come to the desk."""
        try:
            await until(lambda: len(self.desk.received) >= len(texts), "the prompts at the desk")
        except AssertionError:
            raise AssertionError([(one.phase, one.parts, one.reason) for one in self.prompts()]) from None
        assert self.desk.texts() == list(texts)

    async def notice(
        self, source: Source, words: str = "Both tests pass now.", *, chat: int | None = None
    ) -> ShownMessage:
        """Let a turn at the desk end; the notice of it."""
        at_s = self.home.clock.now()
        turn = Turn(replace(source, last_text=""), "OpenCode", f"msg_{at_s}", at_s - 200, at_s, words)
        await self.kept.notices.take(TurnEnded(turn))
        title = source.session_title
        shown = await self.home.person.sees(f"{title} is done", chat=chat)
        noted = await until(
            lambda: [one.shown for one in self.kept.notices.all() if one.shown and one.shown.turn.id == turn.id],
            "the notice noted",
        )
        return self.home.person.message(noted[0].message_id, shown.chat_id)

    async def looks(self) -> None:
        """Let all prompts be looked at now, also one that is in a pause."""
        for prompt in self.prompts():
            for worker in ("prompt", "line", "joining", "file"):
                self.home.listener._parts.steps.kick(worker, prompt.id)
        await asyncio.sleep(0.02)

    def lines(self) -> list[ShownMessage]:
        """The lines of all prompts, as they stand."""
        known = {one.line.message_id for one in self.prompts()}
        return [one for one in self.home.person.shown() if one.message_id in known]
