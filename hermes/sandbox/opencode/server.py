"""A scripted agent server: what OpenCode asks, on loopback; truthful in both manners, and in trouble on demand.

    with running_agent() as agent:           # an AgentWorld with an address
        request = agent.ask([{"question": "Which colour?", "header": "Colour", "options": [{"label": "Red"}]}])
        …
        agent.answer(request, [["Red"]])     # at the desk
        agent.permit(agent.ask_permission("bash", ["rm -rf build"]), "reject", "Keep it.")
        agent.away(); agent.back()           # nobody answers there; the same port again

`python -m hermes.sandbox.opencode.server` runs one as a process: it prints one JSON line with its URL, and takes one
JSON line `{"do": METHOD, …}` of standard input for each thing that the agent or its desk shall do.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import posixpath
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TextIO
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from hermes import clock
from hermes.sandbox.botapi.cutting import cut, nobody
from hermes.sandbox.opencode.events import Fault, Manner, Received
from hermes.sandbox.opencode.routes import ROUTES, Answers, Asked, unknown
from hermes.sandbox.opencode.world import AgentWorld
from hermes.sandbox.serving import Served, obey, sse, stream

PASSWORD_VARIABLE: Final = "HERMES_DEMO_AGENT_PASSWORD"  # noqa: S105 - its name, not its value
HEARTBEAT_S: Final[Mapping[Manner, float]] = {"old": 30.0, "new": 10.0}


class Http:
    """Reads requests, applies their faults, streams events."""

    def __init__(self, world: AgentWorld) -> None:
        self.world = world
        self.answers = Answers(world)

    def app(self) -> Starlette:
        """Return the ASGI application."""
        routes = [Route(path, self._endpoint(name), methods=[method]) for name, (method, path, _) in ROUTES.items()]
        routes.append(Route("/global/event", self._events, methods=["GET"]))
        routes.append(Route("/{rest:path}", self._unknown, methods=["GET", "POST"]))
        return Starlette(routes=routes, exception_handlers={ClientDisconnect: nobody})

    def _endpoint(self, name: str) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            asked, fault = await self._read(request, name), self.world.take_fault(name)
            if asked is None:
                return self._unauthorized()
            if fault and (fault.action, name) == ("lie", "prompt"):
                return Response(status_code=204)
            return await self._answered(request, ROUTES[name][2], asked, fault)

        return endpoint

    async def _answered(
        self, request: Request, answer: Callable[[Answers, Asked], Response], asked: Asked, fault: Fault | None
    ) -> Response:
        action = fault.action if fault else None
        if fault and action == "slow":
            await asyncio.sleep(fault.delay_s)
        if fault and action == "error":
            return JSONResponse({"name": "UnknownError", "data": {"message": "Unexpected server error."}}, fault.status)
        if action == "lie":
            return JSONResponse(content=True)
        response = Response()
        if action != "cut":
            with self.world.lock:
                response = answer(self.answers, asked)
        if action in {"cut", "cut_after"}:
            await cut(request)
        return response

    async def _read(self, request: Request, name: str) -> Asked | None:
        """Record the request and return it parsed, or None if its password is missing or wrong."""
        content = await request.body()
        directory = self._directory(request)
        body = _json(content)
        self.world.received.append(Received(name, request.method, request.url.path, directory, body))
        if not self._may(request):
            return None
        return Asked(directory, request.query_params, request.path_params, body)

    def _directory(self, request: Request) -> str:
        """Return the directory of the query (decoded twice), else of the header, else the server's own."""
        told = request.query_params.get("directory", "")
        told = unquote(told or request.headers.get("x-opencode-directory", "")) or self.world.directory
        return posixpath.normpath(told) if self.world.manner == "new" else told

    def _may(self, request: Request) -> bool:
        if not self.world.password:
            return True
        wanted = "Basic " + base64.b64encode(f"opencode:{self.world.password}".encode()).decode()
        return secrets.compare_digest(request.headers.get("authorization", "").encode(), wanted.encode())

    def _unauthorized(self) -> Response:
        body = "Unauthorized" if self.world.manner == "old" else ""
        return Response(body, 401, {"www-authenticate": 'Basic realm="Secure Area"'})

    async def _unknown(self, request: Request) -> Response:
        if await self._read(request, "unknown") is None:
            return self._unauthorized()
        return unknown(self.world)

    async def _events(self, request: Request) -> Response:
        """Answer `GET /global/event`: the events from now on, in every directory."""
        if await self._read(request, "events") is None:
            return self._unauthorized()
        fault = self.world.take_fault("events")
        if fault is not None:
            return await self._answered(request, lambda *_: Response(), Asked("", {}, {}, None), fault)
        told, every_s = self.world.payload, HEARTBEAT_S[self.world.manner] / self.world.pace
        first = sse({"payload": told("server.connected", {})})

        def heartbeat() -> str:
            return sse({"payload": told("server.heartbeat", {})})

        return StreamingResponse(stream(request, self.world, first, heartbeat, every_s), media_type="text/event-stream")


def _json(content: bytes) -> Any:
    try:
        return json.loads(content) if content else None
    except ValueError:
        return None


# --- running ------------------------------------------------------------------------------------------------------


class ScriptedAgent(AgentWorld):
    """A scripted agent with an address, `url`, which stays the same while the agent is away."""

    def __init__(self, *, port: int = 0, **world: Any) -> None:
        super().__init__(**world)
        self._served = Served(Http(self).app(), port)

    @property
    def url(self) -> str:
        """The server's address."""
        return self._served.url

    def back(self) -> None:
        """Serve (again), and return when the server answers. Safe to repeat."""
        self._served.start()

    def away(self) -> None:
        """Cut every connection and refuse new ones; the port stays reserved. Safe to repeat."""
        self.cut_events()
        self._served.stop()

    def close(self) -> None:
        """Stop the server and free the port."""
        self.cut_events()
        self._served.close()


@contextmanager
def running_agent(**world: Any) -> Iterator[ScriptedAgent]:
    """Run an agent server in a thread of this process; `world` is the arguments of `ScriptedAgent`."""
    agent = ScriptedAgent(**world)
    agent.back()
    try:
        yield agent
    finally:
        agent.close()


def main(
    arguments: Sequence[str] | None = None, *, environ: Mapping[str, str] = os.environ, stdin: TextIO | None = None
) -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(prog="hermes.sandbox.opencode.server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 (the default) takes a free one")
    parser.add_argument("--manner", choices=("old", "new"), default="new")
    parser.add_argument("--directory", default="/home/dev/project", help="the server's own folder")
    parser.add_argument("--test-clock", type=Path, metavar="FILE", help="a clock that a test bends")
    given = parser.parse_args(arguments)
    password, told = environ.get(PASSWORD_VARIABLE, ""), clock.bent(given.test_clock)
    world = {"manner": given.manner, "directory": given.directory, "password": password}
    with running_agent(**world, port=given.port, now=told.now, pace=told.pace) as agent:
        obey(agent, sys.stdin if stdin is None else stdin)


if __name__ == "__main__":
    main()
