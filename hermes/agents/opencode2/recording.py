"""Record how an OpenCode 2 answers, without its texts, names, paths, numbers and secrets.

Only GET requests are sent, so that a recording changes nothing. An answer keeps its keys and the words of the
protocol ("pending", "string", …); an id becomes its prefix and a number, every other text "text", every number 0.

The recording is a JSON object:

    {"version": "2.3.2", "routes": ["GET /api/info", …], "event": {…},
     "answers": [{"route": "GET /api/form", "status": 200, "type": "application/json", "body": {…}}, …]}

`routes` are those that the server names in its own description, and `event` is the first of its event stream.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from hermes.agents.http import Api, Params, path_of
from hermes.agents.opencode2.discovery import Address
from hermes.agents.opencode2.forms import GLOBAL
from hermes.errors import AgentError

Json = dict[str, Any]

_DIRECTORIES: Final = 3
_MESSAGES: Final = 8
_ABSENT: Final = "0" * 26
_VERBS: Final = frozenset({"get", "post", "put", "patch", "delete"})
_ROUTE: Final = re.compile(r"/(?:api/(?:debug|event|form|health|info|permission|session)|global)\b[\w/{}:.-]*")
_ID: Final = re.compile(r"(call|evt|frm|msg|per|ses)_\w+")
_VERSION: Final = re.compile(r"\d+\.\d+[\w.+-]{0,40}")
_KEY: Final = re.compile(r"[A-Za-z_]\w{0,30}")
_WORD: Final = re.compile(r"[a-z][a-z0-9._-]{0,30}")
_FIELD: Final = re.compile(r"q\d{1,3}")
_NAMING: Final = frozenset({"kind", "action", "name", "sessionID"})
_NAMED: Final = frozenset(
    {"question", "shell", "edit", "write", "patch", "read", "webfetch", "external_directory", GLOBAL}
    | {"mcp-elicitation", "websearch.provider"}
)
"""The words that are kept where somebody else could choose another one."""
_FREE: Final[Mapping[str, frozenset[str]]] = {
    "metadata": frozenset({"kind", "tool", "messageID", "id", "answers", "server", "message"}),
    "input": frozenset({"command", "path", "filePath", "oldString", "newString", "content", "patch", "patchText"}),
    "answer": frozenset(),
    "structured": frozenset(),
}
"""The keys below which a model, a tool or a person chooses the keys, and those that Hermes reads there."""


class Recorder:
    """Sends the requests to one server, and collects what it answers."""

    def __init__(self, api: Api, anonymous: Api) -> None:
        """`anonymous` reaches the same server without its password."""
        self._api = api
        self._anonymous = anonymous
        self._seen: dict[str, str] = {}
        self.answers: list[Json] = []

    async def record(self) -> Json:
        """Return the recording. Raises AgentAway: the server does not answer."""
        told = [await self._note(f"GET /api/{name}", f"/api/{name}") for name in ("info", "health")]
        version = next((str(one["version"]) for one in told if isinstance(one, dict) and "version" in one), "")
        await self._note("GET /api/session without a password", "/api/session", api=self._anonymous)
        await self._note("GET /api/nothing", "/api/nothing")
        await self._directories()
        await self._sessions()
        return {
            "version": version if _VERSION.fullmatch(version) else "text",
            "routes": await self._routes(),
            "event": await self._event(),
            "answers": self.answers,
        }

    async def _directories(self) -> None:
        listed = await self._note("GET /api/session", "/api/session", {"limit": _MESSAGES})
        loaded = await self._note("GET /api/debug/location", "/api/debug/location")
        sessions = [one.get("location") for one in _records(listed)]
        places = dict.fromkeys(filter(None, map(_directory, [*_records({"data": loaded}), *sessions])))
        for place in list(places)[:_DIRECTORIES]:
            at: Params = {"location[directory]": place}
            await self._note("GET /api/form", "/api/form", at)
            await self._note("GET /api/form/request", "/api/form/request", at)
            permissions = await self._note("GET /api/permission/request", "/api/permission/request", at)
            for permission in _records(permissions):
                await self._asked(permission, "permission", permission.get("source"))
            forms = await self._note("GET /api/session/global/form", "/api/session/global/form", at)
            for form in _records(forms):
                await self._asked(form, "form", None, at)

    async def _sessions(self) -> None:
        active = await self._note("GET /api/session/active", "/api/session/active")
        ids = list(active["data"]) if isinstance(active, dict) and isinstance(active.get("data"), dict) else []
        for session_id in (*ids[:_DIRECTORIES], f"ses_{_ABSENT}"):
            one = path_of("api", "session", session_id)
            await self._note("GET /api/session/ID", one)
            await self._note("GET /api/session/ID/message", f"{one}/message", {"limit": _MESSAGES})
            await self._note("GET /api/session/ID/permission", f"{one}/permission")
            forms = await self._note("GET /api/session/ID/form", f"{one}/form")
            for form in _records(forms):
                metadata = form.get("metadata")
                await self._asked(form, "form", metadata.get("tool") if isinstance(metadata, dict) else None)
            await self._asked({"id": f"frm_{_ABSENT}", "sessionID": session_id}, "form", None)

    async def _asked(self, ask: Json, kind: str, call: object, at: Params | None = None) -> None:
        """Note what the server says of one form or permission, and of the message with its tool's call."""
        if not all(isinstance(ask.get(key), str) for key in ("id", "sessionID")):
            return
        named = GLOBAL if ask["sessionID"] == GLOBAL else "ID"
        session = path_of("api", "session", ask["sessionID"])
        one = session + path_of(kind, ask["id"])
        await self._note(f"GET /api/session/{named}/{kind}/ID", one, at)
        if kind == "form":
            await self._note(f"GET /api/session/{named}/form/ID/state", f"{one}/state", at)
        if isinstance(call, dict) and isinstance(call.get("messageID"), str):
            await self._note("GET /api/session/ID/message/ID", session + path_of("message", call["messageID"]))

    async def _note(self, route: str, path: str, params: Params | None = None, *, api: Api | None = None) -> Any:
        """Send one request, keep its answer without its texts, and return its JSON as it came; None if it has none."""
        try:
            status, kind, content = await (api or self._api).seen(path, params=params)
        except AgentError:
            if not self.answers:
                raise
            status, kind, content = 0, "", b""
        body = plain = None
        with contextlib.suppress(ValueError, RecursionError):
            body = json.loads(content) if kind == "application/json" else None
            plain = self._plain(body)
        self.answers.append({"route": route, "status": status, "type": kind, "body": plain})
        return body

    async def _routes(self) -> list[str]:
        try:
            _, _, content = await self._api.seen("/openapi.json")
            paths = json.loads(content)["paths"]
            return sorted(
                f"{verb.upper()} {path}"
                for path, verbs in paths.items()
                if _ROUTE.fullmatch(path)
                for verb in verbs
                if verb in _VERBS
            )
        except (AgentError, ValueError, RecursionError, LookupError, AttributeError, TypeError):
            return []

    async def _event(self) -> Any:
        try:
            async with self._api.listening() as events:
                async for event in events:
                    return self._plain(json.loads(event.data))
        except (AgentError, ValueError, RecursionError):
            pass
        return None

    def _plain(self, value: Any, key: str = "", known: frozenset[str] | None = None) -> Any:
        """Return the value that stands under `key` without its texts and numbers.

        `known`: the keys that are kept where somebody else could choose them; None where the server chooses.
        """
        match value:
            case dict():
                inside = _FREE.get(key, known)
                return {self._key(one, inside): self._plain(each, one, inside) for one, each in value.items()}
            case list():
                return [self._plain(one, key, known) for one in value]
            case bool() | None:
                return value
            case int() | float():
                return 0
            case _:
                return self._text(str(value), key, is_free=known is not None)

    def _key(self, key: str, known: frozenset[str] | None) -> str:
        if _ID.fullmatch(key):
            return self._id(key)
        return key if _KEY.fullmatch(key) and (known is None or key in known) else "key"

    def _text(self, text: str, key: str, *, is_free: bool) -> str:
        is_protocol = key in {"type", "status", "kind"} and not is_free and _WORD.fullmatch(text)
        is_tag = key == "_tag" and text.isidentifier()
        is_place = key == "key" and _FIELD.fullmatch(text)
        is_name = key in _NAMING and text in _NAMED
        if not text or is_place or is_protocol or is_tag or is_name:
            return text
        return self._id(text) if _ID.fullmatch(text) else "text"

    def _id(self, text: str) -> str:
        prefix = text.partition("_")[0]
        return self._seen.setdefault(text, f"{prefix}_{len(self._seen) + 1}")


async def record(address: Address) -> Json:
    """Record the server at this address; see the module. Raises AgentAway, AgentRefused: it does not answer."""
    username, password = address.username, address.password
    api = Api("opencode2", address.url, events="/api/event", username=username, password=password)
    anonymous = Api("opencode2", address.url)
    async with contextlib.aclosing(api), contextlib.aclosing(anonymous):
        return await Recorder(api, anonymous).record()


def _records(listed: object) -> list[Json]:
    data = listed.get("data") if isinstance(listed, dict) else None
    return [one for one in data if isinstance(one, dict)] if isinstance(data, list) else []


def _directory(place: object) -> str:
    directory = place.get("directory") if isinstance(place, dict) else None
    return directory if isinstance(directory, str) else ""
