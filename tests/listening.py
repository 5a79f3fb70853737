"""A listener in this process, between the local Bot API and a scripted agent server; its clocks are ours."""

from __future__ import annotations

import asyncio
import secrets
import time
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from hermes.config.settings import Config
from hermes.hook import spool
from hermes.listener.daemon import Listener
from hermes.listener.phone.posting import LINGER_S
from hermes.sandbox.botapi import Chat, Control, RunningBotApi, User, running_botapi
from hermes.sandbox.opencode.server import ScriptedAgent, running_agent
from hermes.sandbox.yielding_store import YieldingStore
from hermes.storage.home import Home
from tests.harness.listeners import end_listener

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence
    from pathlib import Path

    from hermes.config.reading import Followed
    from hermes.model.entry import Entry
    from hermes.sandbox.opencode.events import Manner
    from hermes.sandbox.phone_values import ShownMessage, Tap

T = TypeVar("T")
Json = dict[str, Any]
ANN, BOB, STRANGER = User(1001, "Ann", "ann"), User(1002, "Bob", "bob"), User(6666, "Mallory", "mallory")
PATIENCE_S = 60.0
LOOK_S = 0.01


def question(
    text: str = "Which database?", labels: Sequence[str] = ("PostgreSQL", "SQLite"), *, multiple: bool = False
) -> Json:
    """One question in the shape of the agent's own."""
    options = [{"label": label, "description": f"about {label}"} for label in labels]
    asked: Json = {"question": text, "header": text.rsplit(maxsplit=1)[-1], "options": options}
    return {**asked, "multiple": True} if multiple else asked


async def until(condition: Callable[[], T | None], what: str = "it", timeout_s: float = PATIENCE_S) -> T:
    """Wait for the first true value of the condition."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"{what} did not come within {timeout_s:g} s"
        await asyncio.sleep(LOOK_S)


class Clock:
    """Both clocks of a listener, which go like everybody's but for what is added."""

    def __init__(self) -> None:
        self.ahead_s = 0.0
        self.set_s = 0.0
        self._stood: tuple[float, float] | None = None

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._looked()[0] + self.ahead_s + self.set_s

    def monotonic(self) -> float:
        """Seconds that never jump, but for our own doing."""
        return self._looked()[1] + self.ahead_s

    def advance(self, seconds: float) -> None:
        """Let this time pass at once."""
        assert seconds >= 0, "time that has passed does not come back: see `set_back`"
        self.ahead_s += seconds

    def set_back(self, seconds: float) -> None:
        """Set the clock on the wall back; the other one never goes backwards."""
        self.set_s -= seconds

    @contextmanager
    def standing(self) -> Iterator[None]:
        """Let no time pass in the block but what is added, so that nothing runs out where the machine is slow."""
        self._stood = self._looked()
        try:
            yield
        finally:
            self.ahead_s -= time.monotonic() - self._stood[1]
            self._stood = None

    def _looked(self) -> tuple[float, float]:
        return self._stood or (time.time(), time.monotonic())


class Person:
    """A phone in this process: what a person sees and does there."""

    def __init__(self, control: Control) -> None:
        self.control = control

    def shown(self, chat: int | None = None) -> list[ShownMessage]:
        """The bot's messages that are there."""
        return [one for one in self.control.messages(chat) if one.from_bot and not one.deleted]

    def message(self, message_id: int, chat: int | None = None) -> ShownMessage:
        """This message as it stands, deleted or not."""
        return next(one for one in self.control.messages(chat) if one.message_id == message_id)

    def find(self, text: str, *, buttons: bool | None = None, chat: int | None = None) -> ShownMessage | None:
        """The newest of the bot's messages with this text (and with, or without, buttons)."""
        fitting = (one for one in self.shown(chat) if text in one.text and buttons in {None, bool(one.rows)})
        return max(fitting, key=lambda one: one.message_id, default=None)

    async def sees(self, text: str, *, buttons: bool | None = None, chat: int | None = None) -> ShownMessage:
        """Wait for a message with this text."""

        def seen() -> ShownMessage | None:
            return self.find(text, buttons=buttons, chat=chat)

        try:
            return await until(seen)
        except AssertionError:
            texts = [(one.text, one.labels) for one in self.shown(chat)]
            raise AssertionError(f"{text!r} never came; there is {texts}") from None

    async def gone(self, message: ShownMessage) -> None:
        """Wait until this message is deleted."""
        await until(lambda: self.message(message.message_id, message.chat_id).deleted, f"the end of {message.text!r}")

    def tap(self, message: ShownMessage, label: str | None = None, **more: Any) -> Tap:
        """Tap a button; the last tap."""
        return self.control.tap(message.message_id, label, chat_id=message.chat_id, **more)[-1]

    async def toast(self, tap: Tap) -> str:
        """Wait for the acknowledgement of a tap."""
        found = await until(
            lambda: [one for one in self.control.toasts() if one.tap_id == tap.tap_id], f"an answer to {tap.data}"
        )
        return found[0].text

    async def taps(self, message: ShownMessage, label: str, **more: Any) -> str:
        """Wait until the message shows this button, tap it, and wait for the acknowledgement."""

        def now() -> ShownMessage | None:
            shown = self.message(message.message_id, message.chat_id)
            return shown if label in str(shown.labels) else None

        return await self.toast(self.tap(await until(now, f"the button {label!r}"), label, **more))

    def write(self, text: str, *, to: ShownMessage | None = None, **more: Any) -> int:
        """Write a text (as a reply); the id of its last message."""
        return self.control.write(text, reply_to=to.message_id if to else None, **more)[-1]


class House:
    """A listener with its store, its phone, and the agents that it follows."""

    def __init__(self, root: Path, api: RunningBotApi, clock: Clock, *, chat_id: int) -> None:
        self.root = root
        self.store = root / "store"
        self.api = api
        self.clock = clock
        self.chat_id = chat_id
        self.person = Person(api.control)
        self.servers: list[Json] = []
        self.agents: list[ScriptedAgent] = []
        self.sections: Json = {}
        self._running: asyncio.Task[None] | None = None
        self._listener: Listener | None = None

    @property
    def agent(self) -> ScriptedAgent:
        """The first agent."""
        return self.agents[0]

    @property
    def listener(self) -> Listener:
        """The listener that runs."""
        assert self._listener is not None
        return self._listener

    def connect(self, agent: ScriptedAgent, **more: str) -> None:
        """Name an agent's server in the configuration."""
        self.agents.append(agent)
        self.servers.append({"name": f"oc{len(self.agents)}", "url": agent.url, **more})

    def config(self, **sections: Any) -> Config:
        """The configuration; `sections` are laid over what the house says by itself, from now on."""
        self.sections |= sections
        telegram = {
            "token": self.api.token,
            "chat_id": self.chat_id,
            "users": [ANN.id, BOB.id],
            "api_base": self.api.base_url,
        }
        tables = {"telegram": telegram, "store": {"path": str(self.store)}, "log": {"file": str(self.root / "log")}}
        tables["opencode2"] = {"file": str(self.root / "service.json")}
        return Config(**{**tables, "opencode": self.servers, **self.sections})

    async def start(self, *, idle_s: float | None = None, settle: bool = True, **sections: Any) -> Listener:
        """Start a listener, and wait until it polls and follows."""
        self._listener = self.new(idle_s=idle_s, **sections)
        polls = self.api.control.state().calls.get("getUpdates", 0)
        self._running = asyncio.get_running_loop().create_task(self._listener.run())
        if settle:
            await until(lambda: self.api.control.state().calls.get("getUpdates", 0) > polls, "a poll")
            for agent in self.agents:
                await until(lambda agent=agent: agent.sinks, "an event stream")  # type: ignore[misc]
        return self._listener

    def new(self, *, idle_s: float | None = None, followed: Followed | None = None, **sections: Any) -> Listener:
        """A listener that does not run yet."""
        config = self.config(**sections)
        clock = self.clock
        return Listener(
            config,
            YieldingStore(Home(config.store.path, now=clock.now)),
            monotonic=clock.monotonic,
            idle_s=idle_s,
            rate_scale=1000.0,
            followed=followed,
        )

    async def polled(self) -> None:
        """Let Telegram answer the poll that is held, with nothing of interest; wait for the next one."""
        polls = self.api.control.state().calls["getUpdates"]
        self.api.control.inject({"poll": {}})
        await until(lambda: self.api.control.state().calls["getUpdates"] > polls, "another poll")

    async def ended(self) -> None:
        """Wait for the listener to leave by itself."""
        assert self._running is not None
        async with asyncio.timeout(PATIENCE_S):
            await self._running

    async def stop(self) -> None:
        """Stop the listener, if it runs, and one that a hook has started."""
        if self._listener is not None and self._running is not None:
            self._listener._ending.begin()
            running, self._running = self._running, None
            await running
        await asyncio.to_thread(end_listener, self.store)

    @asynccontextmanager
    async def still(self, *, followed: Followed | None = None, **sections: Any) -> AsyncIterator[Listener]:
        """A listener whose steps work and whose loops do not run: time passes where a test says so."""
        self._listener = self.new(idle_s=None, followed=followed, **sections)
        async with self._listener._alone("a test"):
            assert await self._listener._opens()
            try:
                yield self._listener
            finally:
                await self._listener._close()

    async def ticks(self, seconds: float, *, answerable: bool = True) -> None:
        """Let a still listener see this time pass, in steps that a clock takes."""
        time = self.listener._parts.phone.timekeeper
        while seconds > 0:
            step_s = min(seconds, 20.0)
            seconds -= step_s
            self.clock.advance(step_s)
            await time.tick(answerable=answerable)

    # --- what is kept -------------------------------------------------------------------------------------------------

    def entries(self) -> list[Entry]:
        """What is open."""
        return self.listener._parts.entries.all()

    def entry(self) -> Entry:
        """The one entry that is open."""
        (entry,) = self.entries()
        return entry

    async def phase(self, phase: str) -> Entry:
        """Wait until an entry is in this phase."""
        return await until(
            lambda: next((one for one in self.entries() if one.state.phase == phase), None), f"an entry in {phase}"
        )

    async def noted(self, message: ShownMessage) -> None:
        """Wait until the listener knows that this message is there, which the phone shows a moment before."""
        known = message.message_id
        await until(lambda: any(entry.phone.message_id == known for entry in self.entries()), "the post noted")

    async def closed(self) -> None:
        """Wait until nothing is open."""
        await until(lambda: not self.entries(), "the end of all entries")

    async def put_away(self) -> None:
        """Wait until all is settled; then let the time pass for which it stays open, in case the agent is seen."""
        await until(lambda: all(entry.state.phase == "settled" for entry in self.entries()), "the end of all asks")
        self.pass_time(LINGER_S)
        await self.closed()

    def pass_time(self, seconds: float) -> None:
        """Let this time pass at once, also for a step that is in a pause: it looks again now."""
        self.clock.advance(seconds)
        for entry in self.entries():
            for name in ("phone", "errand"):
                self.listener._parts.steps.kick(name, entry.id)

    # --- what hooks tell ----------------------------------------------------------------------------------------------

    def hook(
        self,
        kind: str,
        properties: Json,
        *,
        directory: str = "/home/dev/project",
        context: Json | None = None,
        **record: object,
    ) -> str:
        """Drop what a plugin tells, as a hook does; the path of the file."""
        payload: dict[str, object] = {"type": kind, "properties": properties, "directory": directory}
        payload |= {} if context is None else {"context": context}
        path = spool.drop(self.store, {**spool.record("opencode", payload), **record})
        spool.nudge(self.store)
        return path

    def word(self, kind: str, request_id: str) -> None:
        """Drop what a waiting hook says of itself."""
        wait = self.wait_id(request_id)
        spool.drop(self.store, spool.record("opencode", {"type": kind, "waitID": wait}))
        spool.nudge(self.store)

    def wait_id(self, request_id: str, agent: str = "opencode") -> str:
        """The name under which a hook waits for this request."""
        return spool.wait_id(agent, spool.machine(self.store), request_id)

    @contextmanager
    def waiting(self, request_id: str, agent: str = "opencode") -> Iterator[str]:
        """Wait as a hook does, until the end of the block."""
        wait = self.wait_id(request_id, agent)
        held = spool.hold_wait(self.store, wait)
        try:
            yield wait
        finally:
            spool.leave_wait(self.store, wait, held)


def a_request(request_id: str = "que_1", *questions: Json, session: str = "ses_1", call: str = "call_1") -> Json:
    """A request as a plugin hands it over."""
    asked = list(questions or (question(),))
    return {
        "id": request_id,
        "sessionID": session,
        "questions": asked,
        "tool": {"messageID": "msg_1", "callID": call},
    }


@asynccontextmanager
async def living(
    root: Path,
    *manners: Manner,
    chats: Sequence[Chat] = (),
    chat_id: int = ANN.id,
    sections: Json | None = None,
    **api: Any,
) -> AsyncIterator[House]:
    """A house with an agent of each manner; each has a bot of its own, since a bot has one listener a machine."""
    clock = Clock()
    token = f"{secrets.randbelow(10**9) + 10**9}:{secrets.token_hex(17)}"
    with (
        running_botapi(token=token, users=(ANN, BOB, STRANGER), chats=chats, now=clock.now, **api) as botapi,
        _agents(manners, clock) as agents,
    ):
        made = House(root, botapi, clock, chat_id=chat_id)
        made.sections = dict(sections or {})
        for agent in agents:
            made.connect(agent)
        try:
            yield made
        finally:
            await made.stop()


def house(*manners: Manner, started: bool = False, **more: Any) -> Any:
    """Make a fixture of a house with these agents, or with one of the manner that a test names for it."""

    @pytest.fixture
    async def made(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[House]:
        named = (request.param,) if hasattr(request, "param") else manners
        async with living(tmp_path, *named, **more) as house:
            if started:
                await house.start()
            yield house

    return made


BOTH = pytest.mark.parametrize("home", ["old", "new"], indirect=True)
"""For each manner of the one agent in `home`."""


@contextmanager
def _agents(manners: Sequence[Manner], clock: Clock) -> Iterator[list[ScriptedAgent]]:
    with ExitStack() as running:
        yield [running.enter_context(running_agent(manner=manner, now=clock.now)) for manner in manners]
