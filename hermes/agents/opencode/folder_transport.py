"""HTTP through files: the plugin in an OpenCode without a port makes the calls, by its client in the process.

A call is a file that the plugin takes by rename: it is made once at most. A call that nobody has taken in time is
withdrawn, so that an OpenCode that was stopped for a while does not make it later.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import httpx

from hermes import disk
from hermes.agents.wire import Text, Wire, decode

LOOK_S: Final = 0.02
_LARGEST: Final = 8 * 1024 * 1024
_LARGEST_ANSWER: Final = 4 * _LARGEST
"""The answer is JSON in JSON, in which each sign of the inner one can take more room."""
_DEFAULT_S: Final = 5.0


class Answer(Wire):
    """An answer as the plugin writes it."""

    status: int
    type: Text = ""
    body: str = ""


class FolderTransport(httpx.AsyncBaseTransport):
    """Brings requests to the plugin with this folder, and its answers back."""

    def __init__(
        self,
        folder: str | Path,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._calls = Path(folder, "in")
        self._answers = Path(folder, "out")
        self._sleep = sleep
        self._monotonic = monotonic
        self._now_ns = now_ns

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Bring one request. Raises ConnectError, ReadTimeout and DecodingError of httpx."""
        call = json.dumps(_call(request)).encode()
        if len(call) > _LARGEST:
            return httpx.Response(httpx.codes.REQUEST_ENTITY_TOO_LARGE, request=request)
        name = f"{self._now_ns():020d}-{secrets.token_hex(8)}.json"  # calls are made in the order of their names
        try:
            disk.write(self._calls / name, call)
        except OSError as error:
            raise httpx.ConnectError(f"the folder of the plugin cannot be used: {error}", request=request) from error
        try:
            answer = await self._answer(self._answers / name, request)
        finally:
            with contextlib.suppress(OSError):
                (self._calls / name).unlink()
        try:
            told = decode(Answer, answer)
            return httpx.Response(
                told.status, headers={"content-type": told.type}, content=told.body.encode(), request=request
            )
        except ValueError as error:
            raise httpx.DecodingError(f"an answer of another shape: {error}", request=request) from error

    async def _answer(self, path: Path, request: httpx.Request) -> bytes:
        longest_s = request.extensions.get("timeout", {}).get("read") or _DEFAULT_S
        until_s = self._monotonic() + longest_s
        while True:
            try:
                return _taken(path)
            except FileNotFoundError:
                if self._monotonic() >= until_s:
                    raise httpx.ReadTimeout("the plugin did not answer", request=request) from None
            except OSError as error:
                raise httpx.ReadError(f"the answer cannot be read: {error}", request=request) from error
            await self._sleep(LOOK_S)


def _taken(path: Path) -> bytes:
    """Remove the file of an answer and return its content, nothing if it is too large. Raises OSError."""
    answer = disk.read(path) if path.lstat().st_size <= _LARGEST_ANSWER else b""
    path.unlink()
    return answer


def _call(request: httpx.Request) -> dict[str, Any]:
    return {
        "method": request.method,
        "path": request.url.raw_path.partition(b"?")[0].decode("ascii"),
        "query": dict(request.url.params),
        "directory": unquote(request.headers.get("x-opencode-directory", "")),
        "body": json.loads(request.content) if request.content else None,
    }
