"""The HTTP routes: `/bot<token>/<method>` and `/file/bot<token>/<path>` for bots, `/control/<secret>/…` for persons.

Faults are applied only here: the functions in `methods` do not know about them.
"""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic_core import to_json
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from hermes.sandbox.botapi.cutting import cut, gone, nobody
from hermes.sandbox.botapi.methods import METHODS
from hermes.sandbox.botapi.people import Control
from hermes.sandbox.botapi.polling import OTHER_POLL, get_updates
from hermes.sandbox.botapi.wire import ApiError, Params, failure, read_params, success, too_many
from hermes.sandbox.botapi.world import World
from hermes.sandbox.phone_values import Fault

T = TypeVar("T")

NAMES = {name.lower(): name for name in (*METHODS, "getUpdates")}
CONTROL_WAIT_S = 30.0
FILE = "file"
"""A download, in the log of the calls and as the method of a fault."""
ACTS = frozenset(
    {"tap", "write", "send_sticker", "share", "lose_files", "rewrite", "delete", "block", "unblock", "migrate"}
    | {"topic", "topics_mode", "rule"}
    | {"advance", "fault", "clear_faults", "redeliver", "repeat", "inject"}
)
SENTENCES = {
    401: "Unauthorized",
    403: "Forbidden: bot was blocked by the user",
    404: "Not Found",
    409: f"Conflict: {OTHER_POLL}",
    500: "Internal Server Error",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a request; without a response, the connection is cut."""

    response: Response | None
    description: str | None = None


class BotSide:
    """Answers the bot's requests."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def __call__(self, request: Request) -> Response:
        """Log one request, apply its fault if there is one, and answer it."""
        try:
            self._check_token(request.path_params["token"])
            params = await read_params(request)
        except ApiError as error:
            return failure(error)
        method = request.path_params["method"]
        method = NAMES.get(method.lower(), method)
        response = await self._logged(
            method, params.loggable(), lambda fault: self._outcome(request, method, params, fault)
        )
        if response is None:
            await cut(request)
        return response or Response()

    async def file(self, request: Request) -> Response:
        """Log one download, which is a call of the method "file", and send the file, or break off in the middle."""
        path = request.path_params["path"]
        try:
            self._check_token(request.path_params["token"])
        except ApiError as error:
            return failure(error)
        response = await self._logged(FILE, {"path": path}, lambda fault: self._downloaded(path, fault))
        return response or await _broken_off(request)

    async def _logged(
        self, method: str, params: dict[str, Any], answer: Callable[[Fault | None], Awaitable[Outcome]]
    ) -> Response | None:
        """Log one call, and answer it under its fault; return None if its connection is to be cut."""
        world = self.world
        with world.lock:
            place = world.calls.begin(method, params)
            fault = world.faults.take(method)
        world.bump()
        outcome = await answer(fault)
        with world.lock:
            status = outcome.response.status_code if outcome.response else 0
            world.calls.end(place, status, outcome.description)
        world.bump()
        return outcome.response

    async def _downloaded(self, path: str, fault: Fault | None) -> Outcome:
        if fault is not None and fault.action == "error":
            return _refusal(_error_of(fault))
        if fault is not None and fault.action == "html":
            return Outcome(HTMLResponse(_page(fault.status), fault.status), "a proxy's page")
        if fault is not None:
            await self._hang(fault)
            return Outcome(None, "cut")
        try:
            with self.world.lock:
                return Outcome(Response(self.world.files.content(path, self.world.now())))
        except ApiError as error:
            return _refusal(error)

    def _check_token(self, token: str) -> None:
        if token.startswith("0") or ":" not in token:
            raise ApiError(401, "Unauthorized: invalid token specified")
        if not secrets.compare_digest(token.encode(), self.world.token.encode()):
            raise ApiError(401, "Unauthorized")

    async def _outcome(self, request: Request, method: str, params: Params, fault: Fault | None) -> Outcome:
        if fault is None:
            return await self._process(request, method, params)
        if fault.action == "error":
            return _refusal(_error_of(fault))
        if fault.action == "html":
            return Outcome(HTMLResponse(_page(fault.status), fault.status), "a proxy's page")
        done = Outcome(None, "cut")
        if fault.action == "cut_after" or fault.processed:
            done = await self._process(request, method, params)
        if fault.action == "hang":
            await _unless_gone(request, self._hang(fault))
            return done
        return Outcome(None, done.description)

    async def _process(self, request: Request, method: str, params: Params) -> Outcome:
        try:
            if method == "getUpdates":
                updates = await _unless_gone(request, get_updates(self.world, params))
                return Outcome(success(updates or []))
            if method not in METHODS:
                return _refusal(ApiError(404, "Not Found: method not found"))
            with self.world.lock:
                return Outcome(success(METHODS[method](self.world, params)))
        except ApiError as error:
            return _refusal(error)

    async def _hang(self, fault: Fault) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + fault.hang_s
        while True:
            version = self.world.version  # it is read first: another thread may clear the faults at any time
            left_s = deadline - loop.time()
            if self.world.closed or self.world.faults.is_cleared(fault) or left_s <= 0:
                return
            await self.world.changed(version, left_s)


def _refusal(error: ApiError) -> Outcome:
    return Outcome(failure(error), error.description)


def _error_of(fault: Fault) -> ApiError:
    if fault.retry_after_s is not None:
        return too_many(fault.retry_after_s)
    if fault.status == 429:  # noqa: PLR2004 - a 429 always has a retry_after
        return too_many(1)
    return ApiError(fault.status, fault.description or SENTENCES.get(fault.status, "Bad Request: demanded"))


def _page(status: int) -> str:
    return f"<html><head><title>{status}</title></head><body><h1>{status} Bad Gateway</h1></body></html>"


async def _broken_off(request: Request) -> Response:
    """Send the head of an answer and some of its bytes, then cut the connection."""

    async def some() -> AsyncIterator[bytes]:
        yield b"\x89PNG\r\n"
        await cut(request)

    return StreamingResponse(some(), headers={"content-length": "1000"})


async def _unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T | None:
    """Return the result of the work; if the client hangs up first, cancel the work and return None."""
    working, watching = asyncio.create_task(work), asyncio.create_task(gone(request))
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        return await working if working.done() else None
    finally:
        for task in (working, watching):
            task.cancel()
        await asyncio.gather(working, watching, return_exceptions=True)


class ControlSide:
    """Answers the requests of persons and tests."""

    def __init__(self, control: Control, secret: str) -> None:
        self.control = control
        self.secret = secret

    async def look(self, request: Request) -> Response:
        """Answer a GET of state, messages, toasts, calls or wait."""
        self._check(request)
        query = request.query_params
        what = request.path_params["what"]
        try:
            if what == "wait":
                timeout_s = min(float(query.get("timeout", "0")), CONTROL_WAIT_S)
                return _json(await self.control.world.changed(int(query["version"]), timeout_s))
            chat_id = int(query["chat_id"]) if "chat_id" in query else None
            return _json(self._look(what, chat_id, query.get("method"), float(query.get("after", "0"))))
        except (LookupError, ValueError) as error:
            return JSONResponse({"error": str(error)}, 400)

    def _look(self, what: str, chat_id: int | None, method: str | None, after: float) -> object:
        if what == "messages":
            return self.control.messages(chat_id, after=int(after))
        if what == "calls":
            return self.control.calls(method)
        if what == "toasts":
            return self.control.toasts(after_s=after)
        if what == "state":
            return self.control.state()
        raise LookupError(f"there is nothing called {what!r} to see")

    async def act(self, request: Request) -> Response:
        """Answer a POST of one of `ACTS`: call that method of `Control` with the arguments of a JSON object."""
        self._check(request)
        act = request.path_params["what"]
        if act not in ACTS:
            raise HTTPException(404)
        try:
            body = json.loads(await request.body() or b"{}")
            return _json(getattr(self.control, act)(**body))
        except (LookupError, TypeError, ValueError, ApiError) as error:
            return JSONResponse({"error": str(error)}, 400)

    def _check(self, request: Request) -> None:
        if not secrets.compare_digest(request.path_params["secret"].encode(), self.secret.encode()):
            raise HTTPException(404)


def _json(value: object) -> Response:
    return Response(to_json(value), media_type="application/json")


async def _not_there(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    return failure(ApiError(status, SENTENCES.get(status, "Bad Request")))


def create_app(control: Control, secret: str) -> Starlette:
    """Return the ASGI application of one world."""
    side = ControlSide(control, secret)
    bot = BotSide(control.world)
    return Starlette(
        routes=[
            Route("/bot{token}/{method}", bot.__call__, methods=["GET", "POST"]),
            Route("/file/bot{token}/{path:path}", bot.file, methods=["GET"]),
            Route("/control/{secret}/{what}", side.look, methods=["GET"]),
            Route("/control/{secret}/{what}", side.act, methods=["POST"]),
        ],
        exception_handlers={HTTPException: _not_there, ClientDisconnect: nobody},
    )
