"""Start and stop the local Bot API, in a thread of this process or in a separate process."""

import asyncio
import json
import os
import secrets
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from pydantic_core import to_json

import hermes
from hermes.sandbox.botapi.app import create_app
from hermes.sandbox.botapi.cutting import CuttableProtocol
from hermes.sandbox.botapi.people import Control
from hermes.sandbox.botapi.world import Settings, World
from hermes.sandbox.phone import Phone

HOST = "127.0.0.1"
LOOK_S = 1.0
START_S = 60.0  # on a machine with much to do, its imports alone take a while
STOP_S = 5.0


@dataclass(frozen=True, slots=True)
class RunningBotApi:
    """A Bot API in a thread. `base_url` is http://127.0.0.1:PORT; a bot uses it in place of Telegram's address."""

    base_url: str
    control_url: str = field(repr=False)
    token: str = field(repr=False)
    phone: Phone
    control: Control


@dataclass(frozen=True, slots=True)
class SpawnedBotApi:
    """A Bot API in a separate process."""

    base_url: str
    control_url: str = field(repr=False)
    token: str = field(repr=False)
    phone: Phone
    process: "subprocess.Popen[bytes]"


class BotApiServer(uvicorn.Server):
    """A uvicorn server on a loopback socket; it ends its long polls before it stops."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.socket = _listening()
        self.base_url = f"http://{HOST}:{self.socket.getsockname()[1]}"
        secret = secrets.token_urlsafe(12)
        self.control_url = f"{self.base_url}/control/{secret}/"
        self.control = Control(world)
        super().__init__(
            uvicorn.Config(
                create_app(self.control, secret),
                http=CuttableProtocol,
                ws="none",
                lifespan="off",
                access_log=False,  # its lines contain URLs, and the URLs contain the token
                log_config=None,
                log_level="error",
                timeout_graceful_shutdown=2,
            )
        )

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle a signal as uvicorn does, and end the held requests too."""
        self.stop()
        super().handle_exit(sig, frame)

    async def main_loop(self) -> None:
        """Do as uvicorn's main loop, but end at once after `stop`, and set the date header from the world's clock."""
        while not self.should_exit:
            date = formatdate(self.world.now(), usegmt=True).encode()
            self.server_state.default_headers = [(b"date", date), *self.config.encoded_headers]
            await self.world.changed(self.world.version, LOOK_S)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Shut down as uvicorn does; then abort connections whose client has not read its answer (a frozen client)."""
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)  # the loop, which ends after this, closes aborted connections in its next turn

    def serve_forever(self) -> None:
        """Serve until `stop` or a signal."""
        try:
            self.run(sockets=[self.socket])
        finally:
            self.socket.close()

    def stop(self) -> None:
        """Ask the server to stop; any thread may call this."""
        self.should_exit = True
        self.world.close()


def _listening() -> socket.socket:
    # asyncio turns Nagle's algorithm off only if the socket names its protocol: otherwise each answer on a
    # keep-alive connection takes 40 ms
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind((HOST, 0))
    listening.listen(128)
    return listening


@contextmanager
def running_botapi(*, now: Callable[[], float] = time.time, **settings: Any) -> Iterator[RunningBotApi]:
    """Run a Bot API in a thread of this process; `settings` are those of `Settings`."""
    world = World(Settings(**settings), now=now)
    server = BotApiServer(world)
    thread = threading.Thread(target=server.serve_forever, name="botapi", daemon=True)
    thread.start()
    try:
        with Phone(server.control_url) as phone:
            yield RunningBotApi(server.base_url, server.control_url, world.token, phone, server.control)
    finally:
        server.stop()
        thread.join(STOP_S)


@contextmanager
def spawn_botapi(**settings: Any) -> Iterator[SpawnedBotApi]:
    """Run a Bot API in a separate process, which ends with this one; raise RuntimeError if it does not start."""
    given = Settings(**settings)
    root = str(Path(hermes.__file__).parent.parent)
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    process = subprocess.Popen(
        [sys.executable, "-m", "hermes.sandbox.botapi"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    )
    with process:
        try:
            assert process.stdin is not None  # noqa: S101 - it was opened as a pipe
            process.stdin.write(to_json(given) + b"\n")  # the token is in no argument: every user can read those
            process.stdin.flush()
            address = _address(process)
            with Phone(address["control_url"]) as phone:
                yield SpawnedBotApi(address["base_url"], address["control_url"], given.token, phone, process)
        finally:
            _end(process)


def _address(process: "subprocess.Popen[bytes]") -> dict[str, str]:
    assert process.stdout is not None  # noqa: S101 - it was opened as a pipe
    ready, _, _ = select.select([process.stdout], [], [], START_S)
    line = process.stdout.readline() if ready else b""
    if not line:
        raise RuntimeError("the local Bot API did not start; its words are on standard error")
    address: dict[str, str] = json.loads(line)
    return address


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
