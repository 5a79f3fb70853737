"""Many machines that share a database: how soon one sees what another has done, and what each of them costs.

Most machines are simulated (`simulated`): they do what a listener does by itself, over connections of their own. The
phone side, its standby and the machine whose hook waits are real listeners.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from hermes.hook import spool
from hermes.sandbox.botapi import RunningBotApi
from hermes.sandbox.postgres import ServerMissingError
from hermes.storage.postgres import roles
from hermes.storage.postgres.connection import Connection
from hermes.storage.store import RENEW_S
from tests.bench.burst import listening
from tests.bench.figures import Effort, Figure, middle_ms, paced
from tests.bench.probes import Memory, memory, settle
from tests.harness.home import BinaryMissingError
from tests.harness.postgres import OWNER, PASSWORD, Database, Server
from tests.harness.processes import Proc, until
from tests.scenes.stage import Json, Stage, question, staged

ROLE: Final = "bench"
CHANGES_A_SECOND: Final = 50.0
RATE_SCALE: Final = 1000.0
PATIENCE_S: Final = 1200.0
QUIET_S: Final = 0.3
"""Nobody looks while it is measured: looking takes the processor that is needed."""
SETTINGS: Final = {"max_connections": "300", "fsync": "on", "shared_buffers": "128MB", "log_min_messages": "warning"}


def figures(effort: Effort) -> tuple[Figure, ...]:
    """Return what is to be measured."""
    those = f"{effort.machines} machines, {effort.many:,} open"
    return (
        Figure(f"write → read at another machine, 95th percentile, 50 changes a second, {those}", "ms", 50.0),
        Figure("tap → answer at a hook of another machine than the phone's, against one machine alone", "×", 3.0),
        Figure(f"memory of the phone side, {those}", "MB", 200.0),
        Figure("memory of an agent-only machine", "MB", 60.0),
        Figure(f"kill -9 of the phone side → first poll of another machine, {those}", "s", 20.0),
        Figure("statements a second of an idle machine, phone side and agent-only", "a second", 2.0),
    )


def measure(effort: Effort, root: Path) -> list[Figure]:
    """Measure one after another on one server. Raises BinaryMissingError where PostgreSQL is missing."""
    seen, tapped, phone_memory, agent_memory, taken, idle = figures(effort)
    try:
        server = Server(**SETTINGS)
    except ServerMissingError as error:
        raise BinaryMissingError(str(error)) from None
    with server:
        with server.database() as database:
            agent_only, statements = _at_rest(effort, root / "rest", server, database)
        with server.database() as database, staged(root / "phone") as phone, ExitStack() as open_now:
            simulated = open_now.enter_context(_many(effort, root, phone, database))
            seen = _seen(seen, effort, simulated)
            simulated.pop("phone").end()
            listener = _phone_side(phone, database)
            _wait_posted(phone, effort.many)
            # It is never idle: it looks at the time of each open ask four times a second.
            settle(listener.pid, look_s=effort.settle_s, timeout_s=PATIENCE_S, most_ticks=math.inf)
            held = memory(listener.pid)
            standby = open_now.enter_context(_standby(root / "standby", phone, database))
            tapped = _tapped(tapped, effort, root / "alone", standby)
            taken = taken.measured(*_takeovers(effort, phone, standby))
    return [
        seen,
        tapped,
        phone_memory.measured(held.rss, note=_told(held)),
        agent_memory.measured(agent_only.rss, note=_told(agent_only)),
        taken,
        idle.measured(*statements, note=f"phone side {statements[0]:.2f}, agent-only {statements[1]:.2f}"),
    ]


def _told(held: Memory) -> str:
    return f"RSS; PSS {held.pss:.1f} MB"


# --- machines -------------------------------------------------------------------------------------------------------


class Simulated:
    """A process with simulated machines (see `simulated`)."""

    def __init__(self, root: Path, **told: Any) -> None:
        root.mkdir(parents=True)
        file = root / "told.json"
        file.write_text(json.dumps(told))
        command = [sys.executable, "-m", "tests.bench.simulated", str(file)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._said()

    def act(self, do: str, **wish: Any) -> Any:
        """Let it do something, and return what it tells."""
        self.order(do, **wish)
        return self._said()

    def order(self, do: str, **wish: Any) -> None:
        """Let it begin to do something; `told` waits for the end."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **wish}) + "\n")
        self._process.stdin.flush()

    def told(self) -> Any:
        """Return what it tells at the end of what it was ordered."""
        return self._said()

    def end(self) -> None:
        """End it; its machines leave."""
        self._process.communicate()

    def _said(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())["done"]


@contextmanager
def _many(effort: Effort, root: Path, phone: Stage, database: Database) -> Iterator[dict[str, Simulated]]:
    """Yield the process of the phone side, and that of all agent-only machines, which have the asks."""
    bot_id = int(phone.api.token.partition(":")[0])
    running: dict[str, Simulated] = {}
    try:
        url = database.address().url
        names = ["phone"]
        running["phone"] = Simulated(
            root / "simulated-phone", url=url, password=PASSWORD, bot_id=bot_id, is_phone=True, names=names
        )
        asyncio.run(_add_role(database, bot_id))
        url = database.address(ROLE).url
        names = [f"box-{number}" for number in range(effort.machines)]
        running["boxes"] = Simulated(
            root / "boxes", url=url, password=PASSWORD, bot_id=None, is_phone=False, names=names
        )
        running["boxes"].act("create", each=effort.many // effort.machines)
        yield running
    finally:
        for one in running.values():
            one.end()


async def _add_role(database: Database, bot_id: int) -> None:
    database.ask(f"DROP ROLE IF EXISTS {ROLE}")
    connection = Connection(database.address())
    try:
        await roles.add(connection, ROLE, PASSWORD, bot_id)
    finally:
        await connection.close()


def _settings(stage: Stage, database: Database, user: str = OWNER) -> dict[str, Json]:
    secret = stage.root / "password"
    secret.touch(mode=0o600)
    secret.write_text(PASSWORD)
    store = {"path": str(stage.store), "url": database.address(user).url, "password_file": str(secret)}
    log = {"level": "info", "file": str(stage.log)}
    return {"store": store, "log": log, "questions": {"ttl": "12h"}}


def _phone_side(stage: Stage, database: Database) -> Proc:
    stage.settings |= _settings(stage, database)
    return listening(stage, RATE_SCALE)


def _wait_posted(phone: Stage, count: int) -> None:
    until(lambda: phone.phone.state().calls.get("sendMessage", 0) >= count, PATIENCE_S, "all asks posted", every_s=0.5)


@contextmanager
def _standby(root: Path, phone: Stage, database: Database, **sections: Json) -> Iterator[Stage]:
    """Yield another machine of the same bot at work; `sections` of its configuration may take the bot from it."""
    root.mkdir(parents=True)
    stage = Stage(root, phone.api, unattended=True)
    stage.settings |= {**_settings(stage, database, ROLE if sections else OWNER), **sections}
    try:
        _wait_agent_side(stage.start(settle=False))
        yield stage
    finally:
        stage.close()


def _wait_agent_side(listener: Proc) -> None:
    listener.wait_line("listening for the agents of this machine", 60)


# --- what is measured -----------------------------------------------------------------------------------------------


def _seen(figure: Figure, effort: Effort, simulated: Mapping[str, Simulated]) -> Figure:
    """Half of the changes are made by the phone side and read at the machine of the ask, half the other way."""
    for one in simulated.values():
        one.act("load")
    for one in simulated.values():
        one.order("change", rate=CHANGES_A_SECOND / 2, for_s=effort.idle_s / 2)
    began_s = {name: one.told() for name, one in simulated.items()}
    time.sleep(QUIET_S)
    seen_s = {name: one.act("seen") for name, one in simulated.items()}
    to_phone = _delays(began_s["boxes"], seen_s["phone"])
    to_boxes = _delays(began_s["phone"], seen_s["boxes"])
    missed = sum(map(len, began_s.values())) - len(to_phone) - len(to_boxes)
    p95_s = statistics.quantiles([*to_phone, *to_boxes], n=20, method="inclusive")[-1]
    note = f"to the phone side {middle_ms(to_phone)}, from it {middle_ms(to_boxes)}; {missed} were overtaken"
    return figure.measured(1000 * p95_s, note=note)


def _delays(began_s: Mapping[str, float], seen_s: Mapping[str, float]) -> list[float]:
    return [seen_s[key] - at_s for key, at_s in began_s.items() if key in seen_s]


def _tapped(figure: Figure, effort: Effort, root: Path, far: Stage) -> Figure:
    """By turns, a hook of one machine alone, and a hook of a machine that has not the phone."""
    alone_s: list[float] = []
    far_s: list[float] = []
    with staged(root) as alone:
        alone.start(log={"level": "info", "file": str(alone.log)})
        for number in range(effort.warm_up + effort.rounds):
            for stage, took_s in ((alone, alone_s), (far, far_s)):
                with paced(effort):
                    took_s.append(_answered_s(stage, number))
    alone_s, far_s = alone_s[effort.warm_up :], far_s[effort.warm_up :]
    base_s = statistics.median(alone_s)
    note = f"{middle_ms(far_s)} against {middle_ms(alone_s)}"
    return figure.measured(*(took_s / base_s for took_s in far_s), note=note)


def _answered_s(stage: Stage, number: int) -> float:
    """Ask by a hook that waits, tap, and return the seconds until the hook has printed the answer."""
    text, request_id = f"Round {number}: which database?", f"que_round{number}"
    known = _newest(stage.api)
    told: Json = {"id": request_id, "sessionID": "ses_bench", "questions": [question(text)]}
    with _hook(stage, told) as hook:
        assert hook.stdout is not None

        def shown() -> list[tuple[int, str]]:
            found = [message for message in _control(stage.api).messages(after=known) if text in message.text]
            return [(one.message_id, one.rows[0][0].data or "") for one in found if one.rows]

        ((message_id, data),) = until(shown, 60, f"{text!r} on the phone", every_s=0.1)
        time.sleep(QUIET_S)
        tapped_s = time.monotonic()
        _control(stage.api).tap(message_id, data=data)
        assert hook.stdout.readline()
        took_s = time.monotonic() - tapped_s
    properties = {"sessionID": "ses_bench", "requestID": request_id, "answers": [["PostgreSQL"]]}
    _drop(stage, "question.replied", properties)
    return took_s


def _control(api: Any) -> Any:
    assert isinstance(api, RunningBotApi)
    return api.control


def _newest(api: Any) -> int:
    world = _control(api).world
    with world.lock:
        return max((message.message_id for message in world.messages(world.default_chat)), default=0)


@contextmanager
def _hook(stage: Stage, properties: Json) -> Iterator[subprocess.Popen[bytes]]:
    paths = ("--store", str(stage.store), "--log", str(stage.log), "--config", str(stage.config))
    command = [sys.executable, "-I", "-m", "hermes", "hook", "opencode", *paths, "--wait"]
    payload = {"type": "question.asked", "properties": properties, "directory": "/home/dev", "context": {}}
    with subprocess.Popen(
        command, env=stage.environ(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as hook:
        assert hook.stdin is not None
        hook.stdin.write(json.dumps(payload).encode() + b"\n")
        hook.stdin.flush()
        yield hook


def _drop(stage: Stage, kind: str, properties: Json) -> None:
    payload: Json = {"type": kind, "properties": properties, "directory": "/home/dev", "context": {}}
    spool.drop(stage.store, spool.record("opencode", payload))
    spool.nudge(stage.store)


def _takeovers(effort: Effort, first: Stage, second: Stage) -> list[float]:
    """Kill the phone side again and again; the other machine takes over, and the first one is the next standby."""
    took_s = []
    holder, standby = first, second
    for _ in range(effort.takeovers):
        took_s.append(_takeover_s(holder))
        _wait_agent_side(holder.start(settle=False))
        holder, standby = standby, holder
    return took_s


def _takeover_s(holder: Stage) -> float:
    """Kill the phone side, and return the seconds until another machine polls."""
    polls, killed_s = len(holder.phone.calls("getUpdates")), time.monotonic()
    holder.kill()
    until(lambda: len(holder.phone.calls("getUpdates")) > polls, 60, "another phone side", every_s=0.2)
    return holder.phone.calls("getUpdates")[polls].at_s - killed_s


def _at_rest(effort: Effort, root: Path, server: Server, database: Database) -> tuple[Memory, list[float]]:
    """Measure a phone side and an agent-only machine at rest: the memory of the second, and the statements of both."""
    database.ask(f"ALTER DATABASE {database.name} SET log_statement = 'all'")
    with staged(root / "phone") as phone:
        phone.settings |= _settings(phone, database)
        both = [phone.start()]
        asyncio.run(_add_role(database, int(phone.api.token.partition(":")[0])))
        with _standby(root / "agent", phone, database, telegram={}) as agent:
            assert agent.listener is not None
            both.append(agent.listener)
            for listener in both:
                settle(listener.pid, look_s=effort.settle_s)
            held = memory(agent.listener.pid)
            over_s = max(effort.idle_s, 2 * RENEW_S)
            of_both = _statements_a_second(server, over_s)
            assert phone.stop() == 0
            of_agent = _statements_a_second(server, over_s)
    return held, [max(0.0, of_both - of_agent), of_agent]


def _statements_a_second(server: Server, over_s: float) -> float:
    """Return how many statements the server has logged."""
    before, began_s = _logged(server), time.monotonic()
    time.sleep(over_s)
    return (_logged(server) - before) / (time.monotonic() - began_s)


def _logged(server: Server) -> int:
    return len(re.findall(r"LOG:  (?:execute|statement)\b", server._log.read_text("utf-8", "replace")))
