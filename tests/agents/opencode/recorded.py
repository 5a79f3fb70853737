"""What both OpenCode versions were recorded to send (tests/payloads/opencode), and a server that replays it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx

from hermes.agents.http import Api
from hermes.agents.opencode.client import OpenCodeServer

Json = dict[str, Any]
NEW, OLD = VERSIONS = ("1.18.33", "1.1.53")
_FOLDER = Path(__file__).parents[2] / "payloads" / "opencode"
_RECORDED: Mapping[str, Json] = {
    version: json.loads((_FOLDER / f"{version}.json").read_text(encoding="utf-8")) for version in VERSIONS
}


def recorded(version: str, kind: str, name: str) -> Any:
    """Return a fresh copy of what was recorded; `kind` is "events", "http", "states" or "hooks"."""
    return json.loads(json.dumps(_RECORDED[version][kind][name]))


def names(version: str, kind: str) -> list[str]:
    """Return the names of what was recorded of this kind."""
    return list(_RECORDED[version][kind])


def hook(version: str, event: str, **context: str) -> Json:
    """Return what the plugin hands over for a recorded event."""
    envelope = recorded(version, "events", event)
    payload = envelope["payload"]
    return {
        "type": payload["type"],
        "properties": payload["properties"],
        "directory": envelope["directory"],
        "context": context,
    }


Routes = Mapping[str, object]


def replay(routes: Routes, seen: list[httpx.Request] | None = None) -> httpx.MockTransport:
    """Answer each `METHOD /path` with JSON, with a whole Response, or with what a function of the request says.

    A recorded `{status, ctype, body}` is a response too. Any other path is a 404, as new has for its API.
    """

    def answer(request: httpx.Request) -> httpx.Response:
        if seen is not None:
            seen.append(request)
        found = routes.get(f"{request.method} {request.url.path}", httpx.Response(404, json={}))
        if callable(found):
            found = found(request)
        if isinstance(found, dict) and set(found) == {"status", "ctype", "body"}:
            headers = {"content-type": found["ctype"]} if found["ctype"] else {}
            content = found["body"] if isinstance(found["body"], str) else json.dumps(found["body"])
            return httpx.Response(found["status"], headers=headers, content=content)
        return found if isinstance(found, httpx.Response) else httpx.Response(200, json=found)

    return httpx.MockTransport(answer)


async def no_sleep(_: float) -> None:
    """Pass no time."""


def server(
    routes: Routes | Callable[[httpx.Request], httpx.Response], seen: list[httpx.Request] | None = None
) -> OpenCodeServer:
    """Return a client of a server that replays `routes`, on no network at all."""
    transport = httpx.MockTransport(routes) if callable(routes) else replay(routes, seen)
    api = Api("desk", "http://desk.test", password="hunter2", transport=transport)
    return OpenCodeServer(api, machine="laptop", sleep=no_sleep)
