"""HTTP requests to one server of an agent, and the translation of all of their errors.

Nothing here retries; the callers decide when to try again. Each failure is an AgentError that names server, method,
path and, if there is one, the status. It never contains the password or an answer.

For OpenCode 1, the directory of an instance goes into the header `x-opencode-directory`, percent-encoded once; both of
its versions accept it on every route used here. (In the query, a percent sign would have to be encoded twice, and the
query filters `GET /session`, which hides the folders below a project.) OpenCode 2 takes it in the query.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TypeVar, cast
from urllib.parse import quote

import httpx
import httpx_sse

from hermes.agents.fields import sound
from hermes.agents.wire import decode
from hermes.errors import AgentAway, AgentError, AgentRefused, NotThere, Unauthorized

T = TypeVar("T")
Params = Mapping[str, str | int]

CALL = httpx.Timeout(5, connect=2)
# The first request in a directory starts an instance there; this took 5-8 s when the npm registry was reachable.
BOOT = httpx.Timeout(30, connect=2)
# 1.18.33 never answers a request that arrives before the server is ready, so the first request has a short time-out.
PROBE = httpx.Timeout(1, connect=1)
# A heartbeat comes every 10 s (1.18.33) or 30 s (1.1.53), so that longer silence means a broken connection.
STREAM = httpx.Timeout(5, connect=2, read=45)
# The files of a prompt are large, and a server on another machine may take them slowly.
FILES = httpx.Timeout(5, connect=2, write=30)
_HEADERS_S = 5.0
_WHOLE_CALL = 2
"""A whole call takes so many times its longest time-out at most: each of those is for a single read or write."""
_LARGEST = 64 * 1024 * 1024
"""The newest messages of a session have the files that were sent to it."""
_LARGEST_REFUSAL = 64 * 1024
_PLAIN = {"Accept-Encoding": "identity"}
_EVENT_END = re.compile(rb"\n\n|\r\r|\r\n\r\n")

# The exceptions of httpx, the most specific first, and the error that each becomes. A test keeps the table complete.
_MEANINGS: tuple[tuple[tuple[type[Exception], ...], type[AgentError], str], ...] = (
    ((httpx.TimeoutException,), AgentAway, "no answer in time"),
    ((httpx_sse.SSEError,), AgentRefused, "no event stream; is this an OpenCode server?"),
    ((httpx.UnsupportedProtocol, httpx.InvalidURL), AgentRefused, "cannot be asked; is the URL right?"),
    ((httpx.LocalProtocolError, httpx.CookieConflict), AgentRefused, "cannot be asked"),
    ((httpx.DecodingError, httpx.StreamError), AgentRefused, "an answer that cannot be read"),
    ((httpx.HTTPStatusError, httpx.TooManyRedirects), AgentRefused, "an answer that cannot be read"),
    ((httpx.ConnectError,), AgentAway, "nobody answers there"),
    ((httpx.HTTPError,), AgentAway, "the connection broke"),
)


@contextlib.contextmanager
def translated(what: str) -> Iterator[None]:
    """Turn each exception that httpx raises inside into an AgentError that begins with `what`."""
    try:
        yield
    except tuple(kind for kinds, _, _ in _MEANINGS for kind in kinds) as error:
        # The first row that fits. The text of httpx is left out, because it can quote the request.
        _, meaning, words = next(row for row in _MEANINGS if isinstance(error, row[0]))
        raise meaning(f"{what}: {words}") from error


class Api:
    """The connections to one server.

    Every method raises AgentAway (not reachable, too slow, 5xx: trying again can help), Unauthorized (401),
    NotThere (404) or AgentRefused (any other refusal, an answer of another shape), unless its docstring says otherwise.
    """

    def __init__(
        self,
        name: str,
        url: str,
        *,
        events: str = "/global/event",
        username: str = "opencode",
        password: str = "",
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`events` is the path of the event stream."""
        self.name = name
        self._events = events
        self._http = httpx.AsyncClient(
            base_url=url,
            auth=httpx.BasicAuth(username, password) if password else None,
            verify=_tls(url),
            transport=transport,
            timeout=CALL,
            trust_env=False,  # a proxy from the environment must neither see questions nor be used for loopback
        )

    def __repr__(self) -> str:
        return f"<Api {self.name!r}>"

    async def aclose(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    @contextlib.contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        if self._http.is_closed:  # by another task; httpx raises a RuntimeError then
            raise AgentAway(f"{what}: the connection was closed")
        with translated(what):
            yield

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[AsyncIterator[httpx_sse.ServerSentEvent]]:
        """Subscribe to the events of all directories. Raises AgentAway after 45 s without data."""
        what = f"OpenCode {self.name!r}: GET {self._events}"
        with self._translated(what):
            async with contextlib.AsyncExitStack() as stack:
                try:
                    async with asyncio.timeout(_HEADERS_S):
                        source = await stack.enter_async_context(
                            httpx_sse.aconnect_sse(self._http, "GET", self._events, headers=_PLAIN, timeout=STREAM)
                        )
                except TimeoutError:
                    raise AgentAway(f"{what}: no answer in time") from None
                await _accept(what, source.response)
                _limit(what, source.response)
                source.response.encoding = "utf-8"  # the format is always UTF-8, even if the header says otherwise
                yield await stack.enter_async_context(contextlib.aclosing(source.aiter_sse()))

    async def get(
        self,
        kind: type[T],
        path: str,
        directory: str = "",
        *,
        params: Params | None = None,
        timeout: httpx.Timeout = CALL,
    ) -> T:
        """Send a GET request and return its answer, decoded into the shape `kind`."""
        content = await self.call("GET", path, directory, params=params, timeout=timeout)
        try:
            return decode(kind, content)
        except ValueError as error:
            raise AgentRefused(f"OpenCode {self.name!r}: GET {path}: an unknown shape: {error}") from None

    async def call(
        self,
        method: str,
        path: str,
        directory: str = "",
        *,
        params: Params | None = None,
        body: object = None,
        timeout: httpx.Timeout = CALL,
    ) -> bytes:
        """Send one request and return the JSON of its answer, not yet decoded; of a 204, nothing."""
        what = f"OpenCode {self.name!r}: {method} {path}"
        headers = {"x-opencode-directory": quote(directory)} if directory else {}
        with self._translated(what):
            async with (
                _whole(what, timeout),
                self._http.stream(method, path, headers=headers, params=params, json=body, timeout=timeout) as response,
            ):
                await _accept(what, response)
                if response.status_code == httpx.codes.NO_CONTENT:
                    return b""
                kind = _kind(response)
                if kind != "application/json":  # 1.18.33 answers an unknown route with its web page
                    raise AgentRefused(f"{what}: {kind or 'nothing'} instead of JSON; is this an OpenCode server?")
                return await _body(what, response)

    async def seen(self, path: str, *, params: Params | None = None) -> tuple[int, str, bytes]:
        """Send a GET request, and return status, content type and content of its answer, whatever they are."""
        what = f"OpenCode {self.name!r}: GET {path}"
        with self._translated(what):
            async with _whole(what, BOOT), self._http.stream("GET", path, params=params, timeout=BOOT) as response:
                return response.status_code, _kind(response), await _body(what, response)


def _limit(what: str, response: httpx.Response) -> None:
    if "content-encoding" in response.headers:  # few bytes may become many
        raise AgentRefused(f"{what}: a compressed event stream")
    response.stream = _Events(what, cast("httpx.AsyncByteStream", response.stream))


class _Events(httpx.AsyncByteStream):
    """The bytes of an event stream, until an event is too large: httpx-sse keeps all of an event in memory."""

    def __init__(self, what: str, stream: httpx.AsyncByteStream) -> None:
        self._what = what
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, tail = 0, b""
        async for chunk in self._stream:
            *ended, rest = _EVENT_END.split(tail + chunk)
            size = len(rest) if ended else size + len(chunk)
            if size > _LARGEST:
                raise AgentRefused(f"{self._what}: an event of more than {_LARGEST >> 20} MiB")
            tail = rest[-3:]  # an end may come in two pieces
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


@contextlib.asynccontextmanager
async def _whole(what: str, timeout: httpx.Timeout) -> AsyncIterator[None]:
    """End a call that goes on for too long. The time-outs of httpx never do, if a byte comes now and then."""
    longest_s = _WHOLE_CALL * max(one or 0 for one in timeout.as_dict().values())
    try:
        async with asyncio.timeout(longest_s):
            yield
    except TimeoutError:
        raise AgentAway(f"{what}: no whole answer within {longest_s:g} s") from None


def _kind(response: httpx.Response) -> str:
    kind: str = response.headers.get("content-type", "").partition(";")[0]
    return kind


def _tls(url: str) -> ssl.SSLContext:
    if url.startswith("https:"):
        return ssl.create_default_context()
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # not used for http; trusts no certificate, and is fast to make


def path_of(*segments: str) -> str:
    """Join segments to a path, each quoted, so that no id from an agent can lead to another route.

    Raises:
        NotThere: a segment is empty or consists of dots only.
    """
    if any(set(segment) <= {"."} for segment in segments):
        raise NotThere("OpenCode: an id of dots alone is none")
    return "".join(f"/{quote(segment, safe='')}" for segment in segments)


async def _accept(what: str, response: httpx.Response) -> None:
    status = response.status_code
    if response.is_success:
        return
    if status == httpx.codes.UNAUTHORIZED:
        raise Unauthorized(f"{what}: 401: the server wants another user name or password")
    if response.is_server_error or status in {httpx.codes.REQUEST_TIMEOUT, httpx.codes.TOO_MANY_REQUESTS}:
        raise AgentAway(f"{what}: {status}")
    tag, said = await _reason(what, response)
    kind = NotThere if status == httpx.codes.NOT_FOUND else AgentRefused
    raise kind(f"{what}: {status}{f' {tag}' if tag else ''}", tag=tag, said=said)


async def _reason(what: str, response: httpx.Response) -> tuple[str, str]:
    """Return `_tag` and `message` of a refusal, each "" if it has none."""
    try:
        told = json.loads(await _body(what, response, _LARGEST_REFUSAL))
    except (AgentRefused, ValueError, RecursionError):
        return "", ""
    if not isinstance(told, dict):
        return "", ""
    tag, said = told.get("_tag"), told.get("message")
    named = tag[:80] if isinstance(tag, str) and tag.isidentifier() else ""
    return named, sound(said[:500]) if isinstance(said, str) else ""


async def _body(what: str, response: httpx.Response, largest: int = _LARGEST) -> bytes:
    content = bytearray()
    async for chunk in response.aiter_bytes():
        content += chunk
        if len(content) > largest:
            raise AgentRefused(f"{what}: an answer of more than {largest >> 20} MiB")
    return bytes(content)
