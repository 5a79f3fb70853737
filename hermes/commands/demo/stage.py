"""The parts behind the page of the demo: a Bot API, an agent, the real listener, and two faults on demand.

    with staged(ScriptedComputer()) as stage:
        stage.ask("one")
        stage.kill_listener()    # it is started again after `Spans.down`
        stage.agent_away()       # it is back after `Spans.away`

All files are in a temporary folder, all servers listen on loopback only, and nothing is left at the end.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hermes.commands.demo.processes import Daemon
from hermes.commands.demo.scenes import SCENES, Scene
from hermes.errors import HermesError
from hermes.sandbox.botapi import RunningBotApi, User, running_botapi

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes.commands.demo.computer import Computer

log = logging.getLogger(__name__)

Json = dict[str, Any]

YOU: Final = User(1001, "You", "you")
TTL_S: Final = 1800.0
LOOK_S: Final = 0.1
START_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Spans:
    """Durations in seconds.

    `hurried` is the time to answer of a hurried ask, `down` the pause before a killed listener is started again,
    `away` the absence of the agent.
    """

    hurried: float = 30.0
    down: float = 6.0
    away: float = 20.0


class Stage:
    """See the module. Methods may be called from any thread."""

    def __init__(self, api: RunningBotApi, computer: Computer, daemon: Daemon, spans: Spans) -> None:
        self.api = api
        self.computer = computer
        self.spans = spans
        self.listener_pid: int | None = None
        self.listener_back_s: float | None = None
        self.agent_back_s: float | None = None
        self._daemon = daemon
        self._lock = threading.RLock()
        self._closing = threading.Event()
        self._watching = threading.Thread(target=self._watch, name="watch", daemon=True)
        self._ttl_s = TTL_S

    # --- life -----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the listener, and wait until it polls. Raises HermesError: it did not start."""
        self._daemon.configure(self._ttl_s)
        self._start_listener()
        if self.listener_pid is None:
            last = self.log_text().splitlines()[-1:]
            raise HermesError(f"the demo's listener did not start: {last[0] if last else 'it has logged nothing'}")
        self._watching.start()

    def close(self) -> None:
        """End all processes."""
        self._closing.set()
        if self._watching.ident is not None:
            self._watching.join()
        self.computer.close()  # first, because a hook that finds no listener starts one
        self._daemon.close()

    # --- actions of a visitor -------------------------------------------------------------------------------------

    def scenes(self) -> tuple[Scene, ...]:
        """Return what the agent can ask."""
        return tuple(scene for scene in SCENES if scene.through in self.computer.ways)

    def ask(self, name: str) -> None:
        """Let the agent ask the scene of this name. Raises LookupError: no such scene, or the agent cannot ask."""
        scene = next((scene for scene in self.scenes() if scene.name == name), None)
        if scene is None:
            raise LookupError(f"no scene is called {name!r}")
        with self._lock:
            if self.agent_back_s is not None:
                raise LookupError("the agent is away, so it cannot ask now")
            self._give(self.spans.hurried if scene.hurried or self._is_hurried() else TTL_S)
            self.computer.ask(scene, self._daemon)

    def kill_listener(self) -> None:
        """End the listener as `kill -9` does; it is started again after `Spans.down`."""
        with self._lock:
            self.listener_back_s = time.time() + self.spans.down
            self._daemon.kill()
            self.listener_pid = self._daemon.pid()

    def agent_away(self) -> None:
        """Make the agent unreachable for `Spans.away`."""
        with self._lock:
            if self.agent_back_s is None:
                self.agent_back_s = time.time() + self.spans.away
                self.computer.away()

    def unlock_phone(self) -> None:
        """Do what `hermes unlock` does."""
        asyncio.run(self._daemon.store.unlock_phone())

    def acts(self) -> dict[str, Callable[[Json], object]]:
        """Map the name of each action to a function of what the page says about it."""
        return {
            "ask": lambda told: self.ask(str(told["scene"])),
            "kill": lambda _: self.kill_listener(),
            "away": lambda _: self.agent_away(),
            "unlock": lambda _: self.unlock_phone(),
        }

    async def seen(self) -> Json:
        """Return what the page shows at this moment beside the chat. Times are epoch seconds, `spans` are seconds."""
        return {
            "rows": rows_of(self.computer),
            "agent": {"name": self.computer.name, "back_s": self.agent_back_s},
            "phone": {"locked": await self._daemon.store.is_phone_locked()},
            "listener": {"pid": self.listener_pid, "back_s": self.listener_back_s},
            "spans": asdict(self.spans),
        }

    def config_text(self) -> str:
        """Return the text of the listener's configuration."""
        return self._daemon.config.read_text(encoding="utf-8")

    def log_text(self) -> str:
        """Return the log of the listeners and hooks."""
        return self._daemon.log_text()

    # --- time to answer -------------------------------------------------------------------------------------------

    def _is_hurried(self) -> bool:
        """Tell whether a hurried ask is about to expire: a restart of the listener would give it ten minutes more."""
        since_s = time.time() - 2 * self.spans.hurried  # an ask that is open for longer was given more time
        return any(row.hurried and row.state == "waiting" and row.at_s > since_s for row in self.computer.rows())

    def _give(self, ttl_s: float) -> None:
        """Set the time to answer, and replace the listener, because it reads its configuration when it starts."""
        if ttl_s == self._ttl_s:
            return
        self._ttl_s = ttl_s
        self._daemon.configure(ttl_s)
        if self._daemon.pid() is not None:
            self._daemon.stop()
            self._start_listener()

    def _start_listener(self) -> None:
        signs = self._signs()
        self._daemon.start()
        deadline = time.monotonic() + START_S
        while self._signs() == signs and time.monotonic() < deadline:
            time.sleep(LOOK_S / 4)
        self.listener_pid, self.listener_back_s = self._daemon.pid(), None

    def _signs(self) -> int:
        """Return a number that grows once a listener that was started is at work."""
        return self.api.control.state().calls.get("getUpdates", 0)

    # --- recovery from the faults ---------------------------------------------------------------------------------

    def _watch(self) -> None:
        while not self._closing.wait(LOOK_S):
            try:
                with self._lock:
                    self._look()
            except Exception:
                log.exception("the demo stumbled")

    def _look(self) -> None:
        now = time.time()
        if self.agent_back_s is not None and now >= self.agent_back_s:
            self.computer.back()
            self.agent_back_s = None
        self.listener_pid = self._daemon.pid()
        if self.listener_pid is not None:
            self.listener_back_s = None
        elif self.listener_back_s is None:
            self.listener_back_s = now + self.spans.down  # it ended without `kill_listener`
        elif now >= self.listener_back_s:
            self._start_listener()


def rows_of(computer: Computer) -> list[Json]:
    """Return the asks and the turns of the agent, in the order in which they began."""
    asks = [asdict(row) | {"kind": "ask"} for row in computer.rows()]
    turns = [asdict(row) | {"kind": "turn"} for row in computer.turns()]
    return sorted([*asks, *turns], key=lambda row: float(row["at_s"]))


@contextmanager
def running_bot(*, topics: bool = False) -> Iterator[tuple[RunningBotApi, Json]]:
    """Yield a Bot API, and the [telegram] table of the configuration for it. `topics`: each session has a topic."""
    # A random bot id, because only one listener of a bot can run on a machine.
    token = f"{secrets.randbelow(10**9) + 7 * 10**9}:{secrets.token_urlsafe(26)}"
    with running_botapi(token=token, users=(YOU,), topics_mode=topics) as api:
        telegram = {"token": token, "chat_id": YOU.id, "users": [YOU.id], "api_base": api.base_url}
        yield api, telegram | {"topics": "session" if topics else "off"}


@contextmanager
def staged(computer: Computer, *, spans: Spans | None = None, topics: bool = False) -> Iterator[Stage]:
    """Yield a started stage for this computer; at the end close both. `topics` is as of `running_bot`."""
    with tempfile.TemporaryDirectory(prefix="hermes-demo-") as folder, running_bot(topics=topics) as (api, telegram):
        stage = Stage(api, computer, Daemon(Path(folder), telegram, computer.servers), spans or Spans())
        try:
            stage.start()
            yield stage
        finally:
            stage.close()
