"""The HTTP side of the stand-in for OpenCode 2, on loopback, with its discovery file.

    with running_opencode2(file=state / "service.json") as agent:     # an OpenCode2World with an address
        form = agent.ask([{"question": "Which colour?", "header": "Colour", "options": [{"label": "Red"}]}])
        …
        agent.answer(form, [["Red"]])                                 # at the desk

`python -m hermes.sandbox.opencode2.server --file FILE` runs one as a process: it prints one JSON line with its URL, and
takes one JSON line `{"do": METHOD, …}` of standard input for each thing that the agent or its desk shall do.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import secrets
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TextIO, get_args

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from hermes import clock
from hermes.sandbox.botapi.cutting import cut, nobody
from hermes.sandbox.opencode.events import Fault, Json, Received
from hermes.sandbox.opencode2.routes import Refusal, UnsupportedError, body_of, routes_of
from hermes.sandbox.opencode2.turns import Shape
from hermes.sandbox.opencode2.world import OpenCode2World
from hermes.sandbox.serving import Served, obey, sse, stream

HEARTBEAT_S: Final = 15.0
HEARTBEAT: Final = ": heartbeat\n\n"


class Http:
    """Checks requests as OpenCode 2 does, applies their faults, streams events."""

    def __init__(self, world: OpenCode2World) -> None:
        self.world = world
        self.routes = routes_of(world)

    def app(self) -> Starlette:
        """Return the ASGI application."""
        routes = [
            Route(path, self._endpoint(name), methods=[method]) for name, (method, path, _) in self.routes.items()
        ]
        routes.append(Route("/api/event", self._events, methods=["GET"]))
        routes.append(Route("/openapi.json", self._described, methods=["GET"]))
        routes.append(Route("/{rest:path}", self._unknown, methods=["GET", "POST", "DELETE", "PATCH", "PUT"]))
        return Starlette(routes=routes, exception_handlers={ClientDisconnect: nobody})

    def _endpoint(self, name: str) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            content = await request.body()
            refused = self._refused(request, name, content)
            return refused or await self._answered(request, name, content, self.world.take_fault(name))

        return endpoint

    def _refused(self, request: Request, name: str, content: bytes) -> Response | None:
        """Record the request; return the answer to one that no route sees."""
        body = None
        with suppress(ValueError):
            body = json.loads(content) if content else None
        place = request.query_params.get("location[directory]", "")
        self.world.received.append(Received(name, request.method, request.url.path, place, body))
        if not self._may(request):
            return Response(status_code=401, headers={"www-authenticate": 'Basic realm="Secure Area"'})
        if self.world.is_starting:
            return Response(status_code=503, headers={"retry-after": "1"})
        return None

    def _may(self, request: Request) -> bool:
        wanted = base64.b64encode(f"opencode:{self.world.password}".encode()).decode()
        given = request.headers.get("authorization", "").removeprefix("Basic ")
        token = request.query_params.get("auth_token", "")
        return any(secrets.compare_digest(one.encode(), wanted.encode()) for one in (given, token))

    async def _answered(self, request: Request, name: str, content: bytes, fault: Fault | None) -> Response:
        action = fault.action if fault else None
        if fault and action == "slow":
            await asyncio.sleep(fault.delay_s)
        if fault and action == "error":
            return Response(status_code=fault.status)
        response = Response()
        if action != "cut":
            try:
                with self.world.lock:
                    response = self.routes[name][2](request, body_of(request, content))
            except Refusal as refusal:
                response = JSONResponse(refusal.body, refusal.status)
            except UnsupportedError as error:
                response = Response(str(error), 415, media_type="text/plain")
        if action in {"cut", "cut_after"}:
            await cut(request)
        return response

    async def _unknown(self, request: Request) -> Response:
        """Answer a route that this version does not have: 404 without a `_tag`."""
        return self._refused(request, "unknown", await request.body()) or Response(status_code=404)

    async def _described(self, request: Request) -> Response:
        """Answer the server's own description, of which only the paths and their methods are made here."""
        paths: dict[str, Json] = {"/api/event": {"get": {}}}
        for method, path, _ in self.routes.values():
            paths.setdefault(path, {})[method.lower()] = {}
        return self._refused(request, "described", b"") or JSONResponse({"openapi": "3.1.0", "paths": paths})

    # --- events -----------------------------------------------------------------------------------------------------

    async def _events(self, request: Request) -> Response:
        refused, fault = self._refused(request, "events", b""), self.world.take_fault("events")
        if refused is not None or (fault is not None and fault.action == "error"):
            return refused or Response(status_code=500)
        first = HEARTBEAT + sse({"id": self.world.new_id("evt"), "type": "server.connected", "data": {}})
        return StreamingResponse(
            stream(request, self.world, first, lambda: HEARTBEAT, HEARTBEAT_S), media_type="text/event-stream"
        )


# --- running --------------------------------------------------------------------------------------------------------


class OpenCode2Agent(OpenCode2World):
    """A stand-in with an address, `url`, and with the file by which it is found, if it has one."""

    def __init__(self, *, port: int = 0, file: Path | None = None, **world: Any) -> None:
        super().__init__(**world)
        self.file = file
        self._served = Served(Http(self).app(), port)

    @property
    def url(self) -> str:
        """The server's address."""
        return self._served.url

    def back(self) -> None:
        """Serve (again), and return when the server answers. Safe to repeat."""
        if self._served.start() and self.file is not None:
            self.write_file(self.file, self.url)

    def away(self, *, killed: bool = False, moves: bool = False) -> None:
        """Stop: the file goes, unless it was killed; the port stays, unless it moves. Safe to repeat."""
        self.cut_events()
        if self._served.stop(moves=moves) and self.file is not None and not killed:
            self.file.unlink(missing_ok=True)

    def restart(self, *, killed: bool = False) -> dict[str, str]:
        """Stop and start again; see `OpenCode2World.restart`."""
        again = super().restart(killed=killed)
        if self.file is not None:
            self.write_file(self.file, self.url)
        return again

    def close(self) -> None:
        """Stop the server and free the port."""
        self.away()
        self._served.close()


@contextmanager
def running_opencode2(**world: Any) -> Iterator[OpenCode2Agent]:
    """Run a stand-in in a thread of this process; `world` is further arguments of `OpenCode2Agent`."""
    agent = OpenCode2Agent(**world)
    agent.back()
    try:
        yield agent
    finally:
        agent.close()


def main(arguments: Sequence[str] | None = None, *, stdin: TextIO | None = None) -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(prog="hermes.sandbox.opencode2.server", description=__doc__)
    parser.add_argument("--file", type=Path, help="the discovery file to keep")
    parser.add_argument("--port", type=int, default=0, help="0 (the default) takes a free one")
    parser.add_argument("--shape", choices=get_args(Shape), default="released")
    parser.add_argument("--directory", default="/home/dev/project", help="the server's own folder")
    parser.add_argument("--test-clock", type=Path, metavar="FILE", help="a clock that a test bends")
    given = parser.parse_args(arguments)
    world = {"shape": given.shape, "directory": given.directory, "now": clock.bent(given.test_clock).now}
    with running_opencode2(file=given.file, port=given.port, **world) as agent:
        obey(agent, sys.stdin if stdin is None else stdin)


if __name__ == "__main__":
    main()
