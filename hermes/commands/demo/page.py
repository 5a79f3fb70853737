"""The page of the demo over HTTP: its files, its content as server-sent events, and the actions of its visitor.

Any program on this machine can connect to the port, and any web page can make a browser send a request to it. So each
path begins with a secret, the Host header must be ours (against names that were rebound to 127.0.0.1), and a request
for an action must come from the page itself (Origin header).
"""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from hermes.errors import HermesError
from hermes.sandbox.botapi.wire import ApiError
from hermes.sandbox.serving import HOST, STOP_S, AbruptServer, bound

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from hermes.commands.demo.scenes import Scene
    from hermes.commands.demo.stage import Spans
    from hermes.sandbox.botapi import RunningBotApi

FOLDER: Final = Path(__file__).with_name("web")
FILES: Final[Mapping[str, str]] = {
    "": "text/html; charset=utf-8",
    "demo.css": "text/css; charset=utf-8",
    "demo.js": "text/javascript; charset=utf-8",
    "drawing.js": "text/javascript; charset=utf-8",
    "topics.js": "text/javascript; charset=utf-8",
    "machines.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
LOOK_S: Final = 0.2
HEARTBEAT_S: Final = 15.0
SHOWN_MESSAGES: Final = 80
UNSHOWN: Final = {"forum_topic_created", "forum_topic_edited"}
"""The tabs say the same."""
SHOWN_TOASTS: Final = 20
LONGEST_BODY: Final = 200_000
HTTP_PORT: Final = 80

Json = dict[str, Any]


class Shown(Protocol):
    """What the page shows beside the chat, and what its visitor can do to it: a `Stage`, or a fleet of machines."""

    api: RunningBotApi
    spans: Spans

    def scenes(self) -> tuple[Scene, ...]:
        """Return what the agent can ask."""
        ...

    def acts(self) -> dict[str, Callable[[Json], object]]:
        """Map the name of each action to a function of what the page says about it."""
        ...

    async def seen(self) -> Json:
        """Return what the page shows at this moment beside the chat."""
        ...


async def seen(stage: Shown) -> Json:
    """Return all that the page shows at this moment."""
    control = stage.api.control
    messages = [one for one in control.messages() if not one.deleted and one.kind not in UNSHOWN]
    topics = control.world.topics.values()
    chat = {
        "topics": [{"id": topic.thread_id, "name": topic.name} for topic in topics],
        "messages": [_shown(asdict(message)) for message in messages[-SHOWN_MESSAGES:]],
        "toasts": [asdict(toast) for toast in control.toasts()[-SHOWN_TOASTS:]],
    }
    return chat | await stage.seen()


def _shown(message: Json) -> Json:
    names = "message_id from_bot kind date text entities rows silent edited reply_to thread_id force_reply"
    return {key: message[key] for key in names.split()}


class Page:
    """The application for one stage; `origin` is as of `origin_of`."""

    def __init__(self, stage: Shown, *, secret: str, origin: str) -> None:
        self._stage = stage
        self._secret = secret
        self._origin = origin
        self._acts: dict[str, Callable[[Json], object]] = {
            "tap": self._tap,
            "write": self._write,
            "rewrite": self._rewrite,
            **stage.acts(),
        }

    def app(self) -> ASGIApp:
        """Return the ASGI application."""
        routes = [Route(f"/{{secret}}/{name}", self._file) for name in FILES]
        routes.append(Route("/{secret}/scenes", self._scenes))
        routes.append(Route("/{secret}/events", self._events))
        routes.append(Route("/{secret}/do", self._do, methods=["POST"]))
        return _Guard(Starlette(routes=routes), secret=self._secret, origin=self._origin)

    async def _file(self, request: Request) -> Response:
        name = request.url.path.rpartition("/")[2]
        content = (FOLDER / (name or "index.html")).read_bytes()
        return Response(content, media_type=FILES[name])

    async def _scenes(self, _: Request) -> Response:
        ttl = f"{self._stage.spans.hurried:g}"
        told = [
            {"name": one.name, "label": one.label.format(ttl=ttl), "hint": one.hint, "through": one.through}
            for one in self._stage.scenes()
        ]
        return JSONResponse(told)

    async def _events(self, _: Request) -> Response:
        return StreamingResponse(self._news(), media_type="text/event-stream")

    async def _news(self) -> AsyncIterator[str]:
        """Yield the content of the page as an event when it has changed, and a heartbeat if it has not for long."""
        world, last, said_s = self._stage.api.control.world, "", 0.0
        while not world.closed:
            version = world.version
            now = json.dumps(await seen(self._stage))
            if now != last:
                yield f"data: {now}\n\n"
                last, said_s = now, time.monotonic()
            elif time.monotonic() - said_s > HEARTBEAT_S:
                yield ": still here\n\n"
                said_s = time.monotonic()
            await world.changed(version, LOOK_S)

    async def _do(self, request: Request) -> Response:
        if request.headers.get("origin") != self._origin:
            return JSONResponse({"error": "only the page itself may do that"}, 403)
        try:
            told = json.loads(await _body(request))
            act = self._acts[_text(told, "do")]
            return JSONResponse({"done": await asyncio.to_thread(act, told)})
        except (HermesError, LookupError, TypeError, ValueError, ApiError) as error:
            return JSONResponse({"error": str(error)}, 400)

    def _tap(self, told: Json) -> str:
        message_id, data = int(told["message_id"]), _text(told, "data")
        return self._stage.api.control.tap(message_id, data=data)[0].tap_id

    def _write(self, told: Json) -> tuple[int, ...]:
        reply_to, topic = (told.get(key) and int(told[key]) for key in ("reply_to", "thread_id"))
        return self._stage.api.control.write(_text(told, "text"), reply_to=reply_to, thread_id=topic)

    def _rewrite(self, told: Json) -> None:
        message_id = int(told["message_id"])
        control = self._stage.api.control
        if not any(one.message_id == message_id and not one.from_bot for one in control.messages()):
            raise LookupError("only a text of your own can be edited")
        control.rewrite(message_id, _text(told, "text"))


class _Guard:
    """Answers 404 unless the Host header and the secret are right; adds the security headers to each response."""

    def __init__(self, app: ASGIApp, *, secret: str, origin: str) -> None:
        self._app = app
        self._start = f"/{secret}/".encode()
        self._host = origin.removeprefix("http://").encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        given = scope["path"].encode()[: len(self._start)]
        known = secrets.compare_digest(given, self._start)
        app = self._app if hosts == [self._host] and known else Response("Not Found", 404)

        async def say(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] += [(name.lower().encode(), text.encode()) for name, text in HEADERS.items()]
            await send(message)

        await app(scope, receive, say)


async def _body(request: Request) -> bytes:
    content = b""
    async for chunk in request.stream():
        content += chunk
        if len(content) > LONGEST_BODY:
            raise ValueError("that is too much")
    return content


def _text(told: Json, key: str) -> str:
    text = told[key]
    if not isinstance(text, str):
        raise TypeError(f"{key} is not text")
    return text


def origin_of(port: int) -> str:
    """Return the origin of this port as a browser writes it: without the port if it is 80, also in the Host header."""
    return f"http://{HOST}" if port == HTTP_PORT else f"http://{HOST}:{port}"


@contextmanager
def serving(stage: Shown, *, port: int = 0) -> Iterator[str]:
    """Serve the page in a thread of this process, and yield its URL. Raises HermesError: the port cannot be used."""
    try:
        listening = bound(port)
    except OSError as error:
        raise HermesError(f"port {port} cannot be used: {error.strerror}; choose another one, or none") from error
    listening.listen(128)
    origin, secret = origin_of(listening.getsockname()[1]), secrets.token_urlsafe(18)
    app = Page(stage, secret=secret, origin=origin).app()
    server = AbruptServer(
        uvicorn.Config(app, ws="none", lifespan="off", access_log=False, log_config=None, log_level="error")
    )
    thread = threading.Thread(target=server.run, args=([listening],), name="page", daemon=True)
    thread.start()
    try:
        yield f"{origin}/{secret}/"
    finally:
        server.should_exit = True
        thread.join(STOP_S)
