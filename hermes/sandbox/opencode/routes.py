"""The answers of the scripted agent server's routes, made from its world alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, get_args

from starlette.responses import HTMLResponse, JSONResponse, Response

from hermes.sandbox.opencode.events import Json, Session
from hermes.sandbox.opencode.permissions import Reply
from hermes.sandbox.opencode.turns import session_json
from hermes.sandbox.opencode.world import AgentWorld


@dataclass(frozen=True, slots=True)
class Asked:
    """The fields of one request that its route needs."""

    directory: str
    query: Mapping[str, str]
    ids: Mapping[str, str]
    body: Any


class Answers:
    """One method for each route; its answer depends on the world alone."""

    def __init__(self, world: AgentWorld) -> None:
        self.world = world

    def health(self, _: Asked) -> Response:
        """Answer `GET /global/health`."""
        return JSONResponse({"healthy": True, "version": self.world.version})

    def doc(self, _: Asked) -> Response:
        """Answer `GET /doc`: the list of routes."""
        paths = {path: {method.lower(): {"operationId": name}} for name, (method, path, _) in ROUTES.items()}
        info = {"title": "opencode", "version": self.world.version}
        return JSONResponse({"openapi": "3.1.1", "info": info, "paths": paths})

    def projects(self, _: Asked) -> Response:
        """Answer `GET /project`."""
        made = sorted({session.directory for session in self._sessions()} | {self.world.directory})
        return JSONResponse([{"id": "global", "worktree": directory, "time": {"created": 1}} for directory in made])

    def all_sessions(self, asked: Asked) -> Response:
        """Answer `GET /experimental/session`: the sessions of every project; 1.1.53 does not have this route."""
        if self.world.manner == "old":
            return unknown(self.world)
        return JSONResponse(self._recent(asked, self._sessions()))

    def sessions(self, asked: Asked) -> Response:
        """Answer `GET /session`: the query filters by directory, the header does not."""
        wanted = asked.query.get("directory")
        found = [one for one in self._sessions() if wanted is None or one.directory == asked.directory]
        return JSONResponse(self._recent(asked, found))

    def status(self, asked: Asked) -> Response:
        """Answer `GET /session/status`: the sessions of this directory that are not idle."""
        here = [one for one in self.world.sessions.values() if one.directory == asked.directory and one.busy]
        return JSONResponse({one.id: {"type": "busy"} for one in here})

    def session(self, asked: Asked) -> Response:
        """Answer `GET /session/{id}`; 1.1.53 finds a session only in its own directory."""
        found = self._session(asked)
        return self._no_session(asked) if found is None else JSONResponse(session_json(found, self.world.version))

    def messages(self, asked: Asked) -> Response:
        """Answer `GET /session/{id}/message`: the newest `limit` messages, oldest first."""
        found = self._session(asked)
        if found is None:
            return self._no_session(asked)
        return JSONResponse(found.messages[-int(asked.query.get("limit", "100")) :])

    def message(self, asked: Asked) -> Response:
        """Answer `GET /session/{id}/message/{id}`."""
        found = self._session(asked)
        listed = found.messages if found else []
        named = [one for one in listed if one["info"]["id"] == asked.ids["message"]]
        return JSONResponse(named[0]) if named else self._no_session(asked)

    def questions(self, asked: Asked) -> Response:
        """Answer `GET /question`: the pending questions of this directory only."""
        return JSONResponse(self.world.listed(asked.directory))

    def reply(self, asked: Asked) -> Response:
        """Answer `POST /question/{id}/reply`: the shape of the answers is checked, their meaning is not."""
        given = _answers_in(asked.body)
        if given is None:
            return self._bad_request()
        if not self._is_asked(asked, self.world.listed):
            return self._not_asked("Question", asked.ids["request"])
        self.world.reply(asked.ids["request"], given)
        return JSONResponse(content=True)

    def reject(self, asked: Asked) -> Response:
        """Answer `POST /question/{id}/reject`."""
        if not self._is_asked(asked, self.world.listed):
            return self._not_asked("Question", asked.ids["request"])
        self.world.reject(asked.ids["request"])
        return JSONResponse(content=True)

    def permissions(self, asked: Asked) -> Response:
        """Answer `GET /permission` for this directory only; 1.18.33 fails on a webfetch without `timeout`."""
        listed = self.world.listed_permissions(asked.directory)
        for place, one in enumerate(listed if self.world.manner == "new" else ()):
            if one["permission"] == "webfetch" and "timeout" not in one["metadata"]:
                return _bad_request(
                    "Body", f'Expected JSON value, got undefined\n  at [{place}]["metadata"]["timeout"]'
                )
        return JSONResponse(listed)

    def permit(self, asked: Asked) -> Response:
        """Answer `POST /permission/{id}/reply`: 1.18.33 checks the id first, 1.1.53 the body."""
        request_id, new = asked.ids["request"], self.world.manner == "new"
        if new and not request_id.startswith("per"):
            at = f'Expected a string starting with "per", got "{request_id}"\n  at ["requestID"]'
            return _bad_request("Params", at)
        given = _permission_in(asked.body, new=new)
        if given is None:
            return self._bad_request()
        if not request_id.startswith("per"):
            sentence = 'Invalid string: must start with "per"'
            return JSONResponse({"name": "UnknownError", "data": {"message": sentence}}, 500)
        if not self._is_asked(asked, self.world.listed_permissions):
            return self._not_asked("Permission", request_id)
        self.world.reply_permission(request_id, *given)
        return JSONResponse(content=True)

    def create(self, asked: Asked) -> Response:
        """Answer `POST /session`: make a session in this directory, whether that exists or not."""
        title = (asked.body or {}).get("title", "New session - 2026-11-22T10:00:00.000Z")
        made = self.world.session(title, directory=asked.directory)
        return JSONResponse(session_json(self.world.sessions[made], self.world.version))

    def prompt(self, asked: Asked) -> Response:
        """Answer `POST /session/{id}/prompt_async`: 204 says that it was accepted, and no more."""
        if not _is_prompt(asked.body, new=self.world.manner == "new"):
            return self._bad_request()
        if self._session(asked) is not None:
            self.world.take_prompt(asked.ids["session"], asked.body)
        elif self.world.manner == "new":
            return self._no_session(asked)
        return Response(status_code=204)

    def abort(self, asked: Asked) -> Response:
        """Answer `POST /session/{id}/abort`: true, also for an unknown session."""
        if self._session(asked) is not None:
            self.world.abort(asked.ids["session"])
        return JSONResponse(content=True)

    def agents(self, _: Asked) -> Response:
        """Answer `GET /agent`."""
        return JSONResponse(self.world.agents)

    def commands(self, _: Asked) -> Response:
        """Answer `GET /command`."""
        return JSONResponse(self.world.commands)

    def config(self, _: Asked) -> Response:
        """Answer `GET /config`: the model for new sessions."""
        return JSONResponse({"model": "fake/seer"})

    def providers(self, _: Asked) -> Response:
        """Answer `GET /config/providers`: one model, which takes pictures and PDFs."""
        takes = {"text": True, "image": True, "pdf": True}
        model = {"id": "seer", "name": "Seer", "capabilities": {"input": takes}}
        return JSONResponse({"providers": [{"id": "fake", "models": {"seer": model}}], "default": {"fake": "seer"}})

    def dispose(self, asked: Asked) -> Response:
        """Answer `POST /instance/dispose`: end this directory's instance; its next request starts a new one."""
        self.world.dispose(asked.directory)
        return JSONResponse(content=True)

    # --- lookups and refusals ---------------------------------------------------------------------------------------

    def _sessions(self) -> list[Session]:
        return [session for session in self.world.sessions.values() if not session.deleted]

    def _recent(self, asked: Asked, sessions: Iterable[Session]) -> list[Json]:
        since_ms = int(asked.query.get("start", "0"))
        newest = sorted(sessions, key=lambda one: one.updated_ms, reverse=True)
        shown = [session_json(one, self.world.version) for one in newest if one.updated_ms >= since_ms]
        return shown[: int(asked.query.get("limit", "100"))]

    def _session(self, asked: Asked) -> Session | None:
        found = self.world.sessions.get(asked.ids["session"])
        if found is None or found.deleted:
            return None
        return found if self.world.manner == "new" or found.directory == asked.directory else None

    def _is_asked(self, asked: Asked, listed: Callable[[str], list[Json]]) -> bool:
        return any(one["id"] == asked.ids["request"] for one in listed(asked.directory))

    def _no_session(self, asked: Asked) -> Response:
        sentence = f"Session not found: {asked.ids['session']}"
        return JSONResponse({"name": "NotFoundError", "data": {"message": sentence}}, 404)

    def _not_asked(self, what: str, request_id: str) -> Response:
        """Return the answer to an unknown request id: `true` from 1.1.53, 404 with the reason from 1.18.33."""
        if self.world.manner == "old":
            return JSONResponse(content=True)
        sentence = f"{what} request not found: {request_id}"
        return JSONResponse({"_tag": f"{what}NotFoundError", "requestID": request_id, "message": sentence}, 404)

    def _bad_request(self) -> Response:
        if self.world.manner == "old":
            return JSONResponse({"success": False, "data": {}, "error": [{"code": "invalid_type"}]}, 400)
        return _bad_request("Payload", "Missing key")


ROUTES: Final[Mapping[str, tuple[str, str, Callable[[Answers, Asked], Response]]]] = {
    "health": ("GET", "/global/health", Answers.health),
    "doc": ("GET", "/doc", Answers.doc),
    "projects": ("GET", "/project", Answers.projects),
    "all_sessions": ("GET", "/experimental/session", Answers.all_sessions),
    "status": ("GET", "/session/status", Answers.status),
    "sessions": ("GET", "/session", Answers.sessions),
    "session": ("GET", "/session/{session}", Answers.session),
    "messages": ("GET", "/session/{session}/message", Answers.messages),
    "message": ("GET", "/session/{session}/message/{message}", Answers.message),
    "questions": ("GET", "/question", Answers.questions),
    "reply": ("POST", "/question/{request}/reply", Answers.reply),
    "reject": ("POST", "/question/{request}/reject", Answers.reject),
    "permissions": ("GET", "/permission", Answers.permissions),
    "dispose": ("POST", "/instance/dispose", Answers.dispose),
    "permit": ("POST", "/permission/{request}/reply", Answers.permit),
    "create": ("POST", "/session", Answers.create),
    "prompt": ("POST", "/session/{session}/prompt_async", Answers.prompt),
    "abort": ("POST", "/session/{session}/abort", Answers.abort),
    "agents": ("GET", "/agent", Answers.agents),
    "commands": ("GET", "/command", Answers.commands),
    "config": ("GET", "/config", Answers.config),
    "providers": ("GET", "/config/providers", Answers.providers),
}
"""Each route by its name in faults, except "events", which is `GET /global/event`."""


def unknown(world: AgentWorld) -> Response:
    """Return the answer to an unknown route: the web page of 1.18.33, or a proxy error of 1.1.53."""
    if world.manner == "new":
        return HTMLResponse("<!doctype html><title>OpenCode</title>")
    return JSONResponse({"name": "UnknownError", "data": {"message": "Unable to connect."}}, 500)


def _bad_request(kind: str, message: str) -> Response:
    """Return the answer of 1.18.33 if it cannot read a request, or cannot write its own answer."""
    return JSONResponse({"name": "BadRequest", "data": {"message": message, "kind": kind}}, 400)


def _answers_in(body: object) -> tuple[tuple[str, ...], ...] | None:
    """Return the answers of a reply, or None if it has another shape."""
    given = body.get("answers") if isinstance(body, dict) else None
    if not isinstance(given, list) or not all(isinstance(one, list) for one in given):
        return None
    if not all(isinstance(text, str) for one in given for text in one):
        return None
    return tuple(tuple(one) for one in given)


def _is_prompt(body: object, *, new: bool) -> bool:
    """Tell whether a prompt has its shape: parts with a type, and ids that begin as OpenCode's do."""
    given = body if isinstance(body, dict) else {}
    parts = given.get("parts")
    if not isinstance(parts, list) or not all(isinstance(one, dict) and "type" in one for one in parts):
        return False
    if not str(given.get("messageID", "msg")).startswith("msg"):
        return False
    return not new or all(str(one.get("id", "prt")).startswith("prt") for one in parts)


def _permission_in(body: object, *, new: bool) -> tuple[Reply, str] | None:
    """Return reply and message, or None if the body has another shape; 1.18.33 reads a null message as empty."""
    given = body if isinstance(body, dict) else {}
    message = given.get("message", "")
    if message is None and new:
        message = ""
    if given.get("reply") not in get_args(Reply) or not isinstance(message, str):
        return None
    return given["reply"], message
