"""The parts that both scripted OpenCodes share: a loopback port that stays theirs, events, and orders by stdin."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from starlette.requests import Request

from hermes.sandbox.botapi.cutting import ABORT, CuttableProtocol
from hermes.sandbox.opencode.events import Events, Json

if TYPE_CHECKING:
    from starlette.types import ASGIApp

HOST: Final = "127.0.0.1"
LOOK_S: Final = 0.02
CUTS: Final = 3
STOP_S: Final = 5.0


class AbruptServer(uvicorn.Server):
    """A uvicorn server for a thread; it stops almost at once."""

    async def main_loop(self) -> None:
        """Check `should_exit` every `LOOK_S`; uvicorn's own loop checks it ten times a second."""
        await self.on_tick(0)
        while not self.should_exit:  # noqa: ASYNC110 - uvicorn's flag is not an event
            await asyncio.sleep(LOOK_S)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop as a cut cable does: abort every connection, finish no answer, and wait for no client."""
        for server in self.servers:
            server.close()
        for one in sockets or []:
            one.close()
        # A connection that the loop has just accepted appears late, so abort a few times. Tasks that remain are
        # cancelled, but only those, because a cancelled task logs a traceback.
        tasks = self.server_state.tasks
        for _ in range(CUTS):
            for connection in list(self.server_state.connections):
                connection.transport.abort()
            if not tasks:
                return
            await asyncio.wait(tasks, timeout=LOOK_S)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Served:
    """An application in a thread; its port stays reserved while it does not serve."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self._app = app
        self._reserved = bound(port)
        self._server: AbruptServer | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The address."""
        return f"http://{HOST}:{self.port}"

    @property
    def port(self) -> int:
        """The port."""
        number: int = self._reserved.getsockname()[1]
        return number

    def start(self) -> bool:
        """Serve, and return once it answers. Return False if it serves already."""
        if self._server is not None:
            return False
        config = uvicorn.Config(
            self._app, http=CuttableProtocol, ws="none", lifespan="off", log_config=None, log_level="error",
            timeout_graceful_shutdown=1,
        )  # fmt: skip
        self._server = AbruptServer(config)
        self._reserved.listen(128)
        self._thread = threading.Thread(target=self._server.run, args=([self._reserved],), name="agent", daemon=True)
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            time.sleep(LOOK_S / 4)
        return True

    def stop(self, *, moves: bool = False) -> bool:
        """Cut every connection and refuse new ones; return False if it did not serve. With `moves` the port changes."""
        if self._server is None or self._thread is None:
            return False
        port = 0 if moves else self.port
        self._server.should_exit = True
        self._thread.join(STOP_S)
        self._server = self._thread = None
        self._reserved = bound(port)  # bound, not listening: it refuses, and no other process can take it
        return True

    def close(self) -> None:
        """Stop, and free the port."""
        self.stop()
        self._reserved.close()


async def stream(
    request: Request, world: Events, first: str, heartbeat: Callable[[], str], every_s: float
) -> AsyncIterator[str]:
    """Yield the beginning of an event stream, then the world's events, and heartbeats, until it is cut."""
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[Json | None]()

    def sink(event: Json | None) -> None:
        loop.call_soon_threadsafe(queue.put_nowait, event)

    with world.lock:
        world.sinks.add(sink)
    try:
        yield first
        while True:
            try:
                async with asyncio.timeout(every_s):
                    event = await queue.get()
            except TimeoutError:
                yield heartbeat()
                continue
            if event is None:
                request.scope["extensions"][ABORT]["abort"]()
                return
            yield sse(event)
    finally:
        with world.lock:
            world.sinks.discard(sink)


def sse(event: Json) -> str:
    """Return an event as a line of the stream."""
    return f"data: {json.dumps(event)}\n\n"


def bound(port: int) -> socket.socket:
    """Return a loopback socket at this port (0: a free one) that does not listen yet; raise OSError if that fails."""
    # The socket names TCP, so that asyncio turns Nagle's algorithm off.
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((HOST, port))
    except OSError:
        made.close()
        raise
    return made


def obey(agent: Any, lines: Iterable[str]) -> None:
    """Print the address of an agent; then call the method of each line, `{"do": METHOD, …}`, and print the result."""
    _print({"url": agent.url})
    for line in lines:
        _print(_done(agent, line))


def _done(agent: Any, line: str) -> dict[str, Any]:
    try:
        wish = json.loads(line)
        act = wish.pop("do")
        if not isinstance(act, str) or act.startswith("_") or not callable(getattr(agent, act, None)):
            return {"error": f"nothing is called {act!r}"}
        return {"done": getattr(agent, act)(**wish)}
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        return {"error": str(error)}


def _print(told: dict[str, Any]) -> None:
    sys.stdout.write(f"{json.dumps(told)}\n")
    sys.stdout.flush()
