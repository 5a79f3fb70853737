"""A server on loopback that nobody has any business with: it keeps all that is said to it."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

HOST = "127.0.0.2" if sys.platform == "linux" else "127.0.0.1"
"""Nothing else listens on it, so that what retries a closed port never meets a trap which was given that port."""


@dataclass
class Trap:
    """`heard` are the first lines of the requests, with a token in them or not."""

    port: int
    heard: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Its address, as a Bot API or a proxy."""
        return f"http://{HOST}:{self.port}"


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__((HOST, 0), _Handler)
        self.trap = Trap(self.server_address[1])


class _Handler(BaseHTTPRequestHandler):
    def handle_one_request(self) -> None:
        """Keep the first line, whatever it is, and hang up."""
        line = self.rfile.readline(65537)
        assert isinstance(self.server, _Server)
        self.server.trap.heard.append(line.decode("latin-1").strip() or "a connection without a word")
        self.close_connection = True


@contextmanager
def trapping() -> Iterator[Trap]:
    """Set the trap up."""
    with _Server() as server:
        thread = threading.Thread(target=server.serve_forever, name="trap", daemon=True)
        thread.start()
        try:
            yield server.trap
        finally:
            server.shutdown()
            thread.join()
