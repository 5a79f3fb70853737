"""A proxy before the database that cuts connections, delays them and loses what the server tells."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_HEAD = 5
_NOTIFICATION = ord("A")


@dataclass
class Proxy:
    """What it does to the connections through it.

    - `cut_before`, `cut_after`: a request with these bytes never arrives, or its answer does not; then it is cut.
      `cuts`: how often.
    - `loses_news`: what the server tells by NOTIFY gets lost.
    - `is_frozen`: nothing gets through. `delay_s`: everything comes that much later.
    """

    server: int
    port: int = 0
    cut_before: bytes = b""
    cut_after: bytes = b""
    cuts: int = 1
    loses_news: bool = False
    is_frozen: bool = False
    delay_s: float = 0.0
    made: int = 0
    _writers: list[asyncio.StreamWriter] = field(default_factory=list)

    def cut_all(self) -> None:
        """Cut all connections."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on one connection."""
        self.made += 1
        try:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.server)
        except OSError:
            writer.transport.abort()
            return
        self._writers += [writer, up_writer]
        down = asyncio.create_task(self._down(up_reader, writer))
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                await self._thaw()
                if self.cuts and self.cut_before and self.cut_before in data:
                    self.cuts -= 1
                    break
                if self.cuts and self.cut_after and self.cut_after in data:
                    self.cuts -= 1
                    down.cancel()
                    up_writer.write(data)
                    await up_reader.read(1)
                    break
                up_writer.write(data)
        down.cancel()
        for each in (writer, up_writer):
            each.transport.abort()

    async def _down(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readexactly(_HEAD)
                body = await reader.readexactly(int.from_bytes(head[1:]) - 4)
                await self._thaw()
                if not (self.loses_news and head[0] == _NOTIFICATION):
                    writer.write(head + body)
        writer.transport.abort()

    async def _thaw(self) -> None:
        while self.is_frozen:
            await asyncio.sleep(0.02)
        if self.delay_s:
            await asyncio.sleep(self.delay_s)


@contextlib.asynccontextmanager
async def proxy(server: int) -> AsyncIterator[Proxy]:
    """A running proxy before the server at this port."""
    made = Proxy(server)
    listening = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = listening.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        made.is_frozen = False
        listening.close()
        made.cut_all()
        await asyncio.sleep(0.05)
