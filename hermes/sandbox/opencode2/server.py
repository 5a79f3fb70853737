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
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TextIO, get_args

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from hermes.sandbox.botapi.cutting import ABORT, cut
from hermes.sandbox.opencode.events import Fault, Received
from hermes.sandbox.opencode2.world import GLOBAL, Form, Invalid, Json, OpenCode2World, Session, Shape
from hermes.sandbox.serving import Served, obey

HEARTBEAT_S: Final = 15.0
ACTS: Final = frozenset(
    {"session", "ask", "form", "ask_permission", "finish", "answer", "dismiss", "permit", "abort", "sweep", "delete"}
    | {"evict", "restart", "came_of", "pending", "fault", "clear_faults", "away", "back", "request_count"}
    | {"cut_events", "hold_events", "release_events", "double_events"}
)
_PERMISSION_PREFIX, _FORM_PREFIX, _SESSION_PREFIX = "per", "frm", "ses"


class Refusal(Exception):
    """A request that the server refuses."""

    def __init__(self, status: int, tag: str, message: str, **more: str) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"_tag": tag, **more, "message": message}


class Http:
    """Checks requests as OpenCode 2 does, applies their faults, streams events."""

    def __init__(self, world: OpenCode2World) -> None:
        self.world = world
        self.routes = _routes(self)

    def app(self) -> Starlette:
        """Return the ASGI application."""
        routes = [
            Route(path, self._endpoint(name), methods=[method]) for name, (method, path, _) in self.routes.items()
        ]
        routes.append(Route("/api/event", self._events, methods=["GET"]))
        routes.append(Route("/openapi.json", self._described, methods=["GET"]))
        routes.append(Route("/{rest:path}", self._unknown, methods=["GET", "POST", "DELETE", "PATCH", "PUT"]))
        return Starlette(routes=routes, exception_handlers={ClientDisconnect: _nobody})

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
                    response = self.routes[name][2](request, _body_of(request, content))
            except Refusal as refusal:
                response = JSONResponse(refusal.body, refusal.status)
            except _UnsupportedError as error:
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

    # --- lists and look-ups -----------------------------------------------------------------------------------------

    def info(self, *_: object) -> Response:
        """Answer the probe of this shape."""
        told: Json = {"version": self.world.version, "pid": self.world.pid}
        more: Json = {"healthy": True} if self.world.shape == "august" else {"urls": [], "paths": {"tmp": "/tmp"}}  # noqa: S108
        return JSONResponse(told | more)

    def sessions(self, request: Request, _: object) -> Response:
        """Answer `GET /api/session`: the newest first, of all directories."""
        limit = int(request.query_params.get("limit", "50"))
        newest = sorted(self.world.sessions.values(), key=lambda one: one.updated_ms, reverse=True)
        return JSONResponse({"data": [_session_json(one) for one in newest[:limit]], "cursor": {}})

    def active(self, *_: object) -> Response:
        """Answer `GET /api/session/active`."""
        running = [one.id for one in self.world.sessions.values() if one.active]
        return JSONResponse({"data": {one: {"type": "running"} for one in running}})

    def session(self, request: Request, _: object) -> Response:
        """Answer `GET /api/session/{id}`."""
        return JSONResponse({"data": _session_json(self._session(request))})

    def messages(self, request: Request, _: object) -> Response:
        """Answer `GET /api/session/{id}/message`: the newest first."""
        listed = self._session(request).messages[::-1]
        return JSONResponse({"data": listed[: int(request.query_params.get("limit", "50"))], "cursor": {}})

    def message(self, request: Request, _: object) -> Response:
        """Answer `GET /api/session/{id}/message/{id}`."""
        wanted = request.path_params["message"]
        for one in self._session(request).messages:
            if one["id"] == wanted:
                return JSONResponse({"data": one})
        raise Refusal(
            404,
            "MessageNotFoundError",
            f"Message not found: {wanted}",
            messageID=wanted,
            sessionID=request.path_params["session"],
        )

    def locations(self, *_: object) -> Response:
        """Answer `GET /api/debug/location`."""
        return JSONResponse([{"directory": one} for one in self.world.loaded])

    def forms(self, request: Request, _: object) -> Response:
        """Answer the list of a directory's forms; those of the session "global" are not in it."""
        place = self._place(request)
        listed = [one for one in self.world.pending(directory=place) if one["sessionID"] != GLOBAL]
        return self._located(place, listed)

    def permissions(self, request: Request, _: object) -> Response:
        """Answer `GET /api/permission/request`."""
        place = self._place(request)
        asked = [one for one in self.world.permissions.values() if self._at(one) == place]
        return self._located(place, asked)

    def session_forms(self, request: Request, _: object) -> Response:
        """Answer `GET /api/session/{id}/form`."""
        session_id = request.path_params["session"]
        place = self._place(request) if session_id == GLOBAL else None
        if session_id != GLOBAL:
            self._session(request)
        return JSONResponse({"data": self.world.pending(session=session_id, directory=place)})

    def session_permissions(self, request: Request, _: object) -> Response:
        """Answer `GET /api/session/{id}/permission`."""
        session_id = self._session(request).id
        return JSONResponse(
            {"data": [one for one in self.world.permissions.values() if one["sessionID"] == session_id]}
        )

    def form(self, request: Request, _: object) -> Response:
        """Answer `GET …/form/{id}`; 2.0.26 adds its state."""
        form = self._form(request)
        more = {"state": form.state} if self.world.shape == "released" else {}
        return JSONResponse({"data": form.record | more})

    def state(self, request: Request, _: object) -> Response:
        """Answer `GET …/form/{id}/state` of 7 August."""
        return JSONResponse({"data": self._form(request).state})

    def permission(self, request: Request, _: object) -> Response:
        """Answer `GET …/permission/{id}`."""
        return JSONResponse({"data": self._permission(request)})

    # --- what changes something -------------------------------------------------------------------------------------

    def create_form(self, request: Request, body: object) -> Response:
        """Answer `POST …/form`: any client may create one."""
        given = _record(body, "fields", list)
        made = self.world.form(given["fields"], session=self._session(request).id, title=given.get("title", ""))
        return JSONResponse({"data": self.world.forms[made].record})

    def reply(self, request: Request, body: object) -> Response:
        """Answer `POST …/form/{id}/reply`."""
        form_id = self._checked(request, "form", _FORM_PREFIX)
        answer = _record(body, "answer", dict)["answer"]
        for key, value in answer.items():
            if value is None:
                said = f'Expected Form.Value, got null\n  at ["answer"]["{key}"]'
                raise Refusal(400, "InvalidRequestError", said, kind="Payload")
        self._unsettled(request)
        try:
            self.world.reply(form_id, answer)
        except Invalid as error:
            raise Refusal(400, "FormInvalidAnswerError", str(error), id=form_id) from None
        return Response(status_code=204)

    def cancel(self, request: Request, _: object) -> Response:
        """Answer `POST …/form/{id}/cancel` (7 August), `DELETE …/form/{id}` (2.0.26, which can have a message)."""
        form_id = self._unsettled(request).record["id"]
        said = request.query_params.get("message", "") if self.world.shape == "released" else ""
        self.world.cancel(form_id, said)
        return Response(status_code=204)

    def permit(self, request: Request, body: object) -> Response:
        """Answer `POST …/permission/{id}/reply`."""
        key = "reply" if self.world.shape == "august" else "decision"
        request_id = self._checked(request, "permission", _PERMISSION_PREFIX)
        given = _record(body, key, str)
        if given[key] not in {"once", "always", "reject"}:
            said = f'Expected Permission.Reply, got "{given[key]}"\n  at ["{key}"]'
            raise Refusal(400, "InvalidRequestError", said, kind="Payload")
        self._permission(request)
        self.world.settle(request_id, given[key], given.get("message", "") if given[key] == "reject" else "")
        return Response(status_code=204)

    def interrupt(self, request: Request, _: object) -> Response:
        """Answer `POST …/interrupt`."""
        session = self._session(request)
        was_active = session.active
        self.world.abort(session.id)
        if self.world.shape == "august":
            return Response(status_code=204)
        return JSONResponse({"interrupted": was_active})

    def remove(self, request: Request, _: object) -> Response:
        """Answer `DELETE /api/session/{id}`."""
        self.world.delete(self._session(request).id)
        return Response(status_code=204)

    # --- checks -----------------------------------------------------------------------------------------------------

    def _checked(self, request: Request, name: str, prefix: str) -> str:
        found = str(request.path_params[name])
        if not found.startswith(prefix):
            said = f'Expected a string starting with "{prefix}_", got "{found}"\n  at ["{name}ID"]'
            raise Refusal(400, "InvalidRequestError", said, kind="Params")
        return found

    def _session(self, request: Request) -> Session:
        session_id = self._checked(request, "session", _SESSION_PREFIX)
        if session_id not in self.world.sessions:
            said = f"Session not found: {session_id}"
            raise Refusal(404, "SessionNotFoundError", said, sessionID=session_id)
        return self.world.sessions[session_id]

    def _form(self, request: Request) -> Form:
        form_id, session_id = self._checked(request, "form", _FORM_PREFIX), request.path_params["session"]
        place = self._place(request) if session_id == GLOBAL else None
        if session_id != GLOBAL:
            self._session(request)
        form = self.world.forms.get(form_id)
        if form is None or form.record["sessionID"] != session_id or place not in {None, form.directory}:
            raise Refusal(404, "FormNotFoundError", f"Form not found: {form_id}", id=form_id)
        return form

    def _unsettled(self, request: Request) -> Form:
        form = self._form(request)
        if form.state["status"] != "pending":
            form_id = form.record["id"]
            raise Refusal(409, "FormAlreadySettledError", f"Form already settled: {form_id}", id=form_id)
        return form

    def _permission(self, request: Request) -> Json:
        session = self._session(request)
        request_id = self._checked(request, "permission", _PERMISSION_PREFIX)
        found = self.world.permissions.get(request_id)
        if found is None or found["sessionID"] != session.id:
            said = f"Permission request not found: {request_id}"
            raise Refusal(404, "PermissionNotFoundError", said, requestID=request_id)
        return found

    def _at(self, request: Json) -> str:
        return self.world.sessions[request["sessionID"]].directory

    def _place(self, request: Request) -> str:
        place = request.query_params.get("location[directory]") or self.world.directory
        self.world.load(place)
        return place

    def _located(self, place: str, data: list[Json]) -> Response:
        located: Json = {"directory": place}
        if self.world.shape == "august":
            located["project"] = {"id": "global", "directory": place, "canonical": place}
        return JSONResponse({"location": located, "data": data})

    # --- events -----------------------------------------------------------------------------------------------------

    async def _events(self, request: Request) -> Response:
        refused, fault = self._refused(request, "events", b""), self.world.take_fault("events")
        if refused is not None or (fault is not None and fault.action == "error"):
            return refused or Response(status_code=500)
        return StreamingResponse(self._stream(request), media_type="text/event-stream")

    async def _stream(self, request: Request) -> AsyncIterator[str]:
        loop, queue = asyncio.get_running_loop(), asyncio.Queue[Json | None]()

        def sink(event: Json | None) -> None:
            loop.call_soon_threadsafe(queue.put_nowait, event)

        with self.world.lock:
            self.world.sinks.add(sink)
        try:
            yield ": heartbeat\n\n"
            yield _line({"id": self.world.new_id("evt"), "type": "server.connected", "data": {}})
            while True:
                try:
                    async with asyncio.timeout(HEARTBEAT_S):
                        event = await queue.get()
                except TimeoutError:
                    yield ": heartbeat\n\n"
                    continue
                if event is None:
                    request.scope["extensions"][ABORT]["abort"]()
                    return
                yield _line(event)
        finally:
            with self.world.lock:
                self.world.sinks.discard(sink)


class _UnsupportedError(Exception):
    """A body that is not declared as JSON."""


def _body_of(request: Request, content: bytes) -> object:
    if request.method not in {"POST", "PATCH"} or not content:
        return None
    kind = request.headers.get("content-type", "text/plain").partition(";")[0]
    if kind != "application/json":
        raise _UnsupportedError(f"Unsupported content-type: {kind}")
    try:
        return json.loads(content)
    except ValueError:
        raise Refusal(400, "InvalidRequestError", "Invalid JSON: SyntaxError", kind="Payload") from None


def _record(body: object, key: str, kind: type) -> Json:
    if not isinstance(body, dict) or key not in body:
        raise Refusal(400, "InvalidRequestError", f'Missing key\n  at ["{key}"]', kind="Payload")
    if not isinstance(body[key], kind):
        raise Refusal(400, "InvalidRequestError", f'Expected another type\n  at ["{key}"]', kind="Payload")
    return body


def _session_json(session: Session) -> Json:
    shown: Json = {
        "id": session.id,
        "projectID": "global",
        "title": session.title,
        "time": {"created": session.created_ms, "updated": session.updated_ms},
        "location": {"directory": session.directory},
    }
    return shown | ({"parentID": session.parent_id} if session.parent_id else {})


Handler = Callable[[Request, object], Response]


def _routes(http: Http) -> Mapping[str, tuple[str, str, Handler]]:
    """Return each route of this shape by its name in faults, except "events", which is `GET /api/event`."""
    one = "/api/session/{session}"
    shared: dict[str, tuple[str, str, Handler]] = {
        "locations": ("GET", "/api/debug/location", http.locations),
        "permissions": ("GET", "/api/permission/request", http.permissions),
        "active": ("GET", "/api/session/active", http.active),
        "sessions": ("GET", "/api/session", http.sessions),
        "session": ("GET", one, http.session),
        "remove": ("DELETE", one, http.remove),
        "interrupt": ("POST", f"{one}/interrupt", http.interrupt),
        "messages": ("GET", f"{one}/message", http.messages),
        "message": ("GET", f"{one}/message/{{message}}", http.message),
        "session_forms": ("GET", f"{one}/form", http.session_forms),
        "create_form": ("POST", f"{one}/form", http.create_form),
        "form": ("GET", f"{one}/form/{{form}}", http.form),
        "reply": ("POST", f"{one}/form/{{form}}/reply", http.reply),
        "session_permissions": ("GET", f"{one}/permission", http.session_permissions),
        "permission": ("GET", f"{one}/permission/{{permission}}", http.permission),
        "permit": ("POST", f"{one}/permission/{{permission}}/reply", http.permit),
    }
    if http.world.shape == "august":
        return shared | {
            "info": ("GET", "/api/health", http.info),
            "forms": ("GET", "/api/form/request", http.forms),
            "state": ("GET", f"{one}/form/{{form}}/state", http.state),
            "cancel": ("POST", f"{one}/form/{{form}}/cancel", http.cancel),
        }
    return shared | {
        "info": ("GET", "/api/info", http.info),
        "forms": ("GET", "/api/form", http.forms),
        "cancel": ("DELETE", f"{one}/form/{{form}}", http.cancel),
    }


async def _nobody(*_: object) -> Response:
    """Return an empty response: the client has hung up before the end of its request."""
    return Response()


def _line(event: Json) -> str:
    return f"data: {json.dumps(event)}\n\n"


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
    given = parser.parse_args(arguments)
    with running_opencode2(file=given.file, shape=given.shape, directory=given.directory, port=given.port) as agent:
        obey(agent, ACTS, sys.stdin if stdin is None else stdin)


if __name__ == "__main__":
    main()
