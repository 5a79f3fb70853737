"""Break a connection as a network failure does: no status line, no body. This uses internals of uvicorn."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from starlette.requests import Request
from starlette.responses import Response
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from uvicorn._types import ASGIReceiveCallable, ASGISendCallable, Scope

ABORT = "hermes.abort"


class CuttableProtocol(H11Protocol):
    """The HTTP/1.1 protocol, with a function in each request's scope that aborts its connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wrap the application so that the scope of each request of this connection has `abort`."""
        super().connection_made(transport)
        app = self.app

        async def with_abort(scope: "Scope", receive: "ASGIReceiveCallable", send: "ASGISendCallable") -> None:
            if scope["type"] == "http":
                scope["extensions"] = {ABORT: {"abort": transport.abort}}
            await app(scope, receive, send)

        self.app = with_abort


async def cut(request: Request) -> None:
    """Abort the connection of this request; return when it is closed, so that no answer can be written."""
    extension = request.scope.get("extensions", {}).get(ABORT)
    if extension is None:
        raise RuntimeError("this server can't cut connections: it doesn't run CuttableProtocol")
    cast("Callable[[], None]", extension["abort"])()
    await gone(request)


async def gone(request: Request) -> None:
    """Return when the client has hung up."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def nobody(*_: object) -> Response:
    """Return an empty response: the client has hung up before the end of its request."""
    return Response()
