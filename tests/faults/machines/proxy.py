"""The way of each machine to the database: a proxy that a round can cut, freeze and slow down."""

from __future__ import annotations

import asyncio
import threading
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.storage.postgres.proxy import Proxy, proxy

if TYPE_CHECKING:
    from collections.abc import Iterator

_ENDS_S = 20.0


@dataclass(frozen=True, slots=True)
class Line:
    """A proxy that runs in the loop of another thread. The attributes of `proxy` may be set from any thread."""

    proxy: Proxy
    loop: asyncio.AbstractEventLoop

    @property
    def port(self) -> int:
        """The port to use instead of the server's."""
        return self.proxy.port

    def cut(self) -> None:
        """Cut all connections; others can be made at once."""
        self.loop.call_soon_threadsafe(self.proxy.cut_all)

    def cut_within(self, words: bytes, *, is_done: bool, times: int) -> None:
        """Cut the connection at a request with these words: before it arrives, or before its answer (`is_done`)."""
        self.proxy.cut_before, self.proxy.cut_after = (b"", words) if is_done else (words, b"")
        self.proxy.cuts = times

    def heal(self) -> None:
        """Pass on everything from now on."""
        self.proxy.cut_before = self.proxy.cut_after = b""
        self.proxy.loses_news = self.proxy.is_frozen = False
        self.proxy.delay_s = 0.0


@contextmanager
def lines(server: int, count: int) -> Iterator[tuple[Line, ...]]:
    """Run so many proxies before the database at this port, in a thread of their own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="lines", daemon=True)
    thread.start()
    stack = AsyncExitStack()

    def made() -> Proxy:
        return asyncio.run_coroutine_threadsafe(stack.enter_async_context(proxy(server)), loop).result(_ENDS_S)

    try:
        yield tuple(Line(made(), loop) for _ in range(count))
    finally:
        asyncio.run_coroutine_threadsafe(stack.aclose(), loop).result(_ENDS_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_ENDS_S)
        loop.close()
