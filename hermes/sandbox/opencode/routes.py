"""What each route of the scripted agent server answers, from its world alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, get_args

from starlette.responses import HTMLResponse, JSONResponse, Response

from hermes.sandbox.opencode.world import AgentWorld, Json, Reply, Session, session_json


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, read: what its route needs to know."""

    directory: str
    query: Mapping[str, str]
    ids: Mapping[str, str]
    body: Any


class Answers:
    """What each route answers, from the world alone."""

    def __init__(self, world: AgentWorld) -> None:
        self.world = world

    def health(self, _: Asked) -> Response:
        """`GET /global/health`."""
        return JSONResponse({"healthy": True, "version": self.world.version})

    def doc(self, _: Asked) -> Response:
        """`GET /doc`: which routes there are."""
        paths = {path: {method.lower(): {"operationId": name}} for name, (method, path, _) in ROUTES.items()}
        info = {"title": "opencode", "version": self.world.version}
        return JSONResponse({"openapi": "3.1.1", "info": info, "paths": paths})

    def projects(self, _: Asked) -> Response:
        """`GET /project`."""
        made = sorted({session.directory for session in self._sessions()} | {self.world.directory})
        return JSONResponse([{"id": "global", "worktree": directory, "time": {"created": 1}} for directory in made])

    def all_sessions(self, asked: Asked) -> Response:
        """`GET /experimental/session`: every project's, which old does not have."""
        if self.world.manner == "old":
            return unknown(self.world)
        return JSONResponse(self._recent(asked, self._sessions()))

    def sessions(self, asked: Asked) -> Response:
        """`GET /session`: the query filters by directory, the header does not."""
        wanted = asked.query.get("directory")
        found = [one for one in self._sessions() if wanted is None or one.directory == asked.directory]
        return JSONResponse(self._recent(asked, found))

    def status(self, asked: Asked) -> Response:
        """`GET /session/status`: those that are not idle."""
        here = [one for one in self.world.sessions.values() if one.directory == asked.directory and one.busy]
        return JSONResponse({one.id: {"type": "busy"} for one in here})

    def session(self, asked: Asked) -> Response:
        """`GET /session/{id}`; old finds it in its own directory alone."""
        found = self._session(asked)
        return self._no_session(asked) if found is None else JSONResponse(session_json(found, self.world.version))

    def messages(self, asked: Asked) -> Response:
        """`GET /session/{id}/message`: the newest `limit` of them, oldest first."""
        found = self._session(asked)
        if found is None:
            return self._no_session(asked)
        return JSONResponse(found.messages[-int(asked.query.get("limit", "100")) :])

    def message(self, asked: Asked) -> Response:
        """`GET /session/{id}/message/{id}`."""
        found = self._session(asked)
        listed = found.messages if found else []
        named = [one for one in listed if one["info"]["id"] == asked.ids["message"]]
        return JSONResponse(named[0]) if named else self._no_session(asked)

    def questions(self, asked: Asked) -> Response:
        """`GET /question`: what is pending in this directory alone."""
        return JSONResponse(self.world.listed(asked.directory))

    def reply(self, asked: Asked) -> Response:
        """`POST /question/{id}/reply`: shapes are checked, sense is not."""
        given = _answers_in(asked.body)
        if given is None:
            return self._bad_request()
        if not self.world.known(asked.ids["request"], asked.directory):
            return self._not_asked("Question", asked.ids["request"])
        self.world.reply(asked.ids["request"], given)
        return JSONResponse(content=True)

    def reject(self, asked: Asked) -> Response:
        """`POST /question/{id}/reject`."""
        if not self.world.known(asked.ids["request"], asked.directory):
            return self._not_asked("Question", asked.ids["request"])
        self.world.reject(asked.ids["request"])
        return JSONResponse(content=True)

    def permissions(self, asked: Asked) -> Response:
        """`GET /permission`: what is pending in this directory alone; new stumbles over a fetch without `timeout`."""
        listed = self.world.listed_permissions(asked.directory)
        for place, one in enumerate(listed if self.world.manner == "new" else ()):
            if one["permission"] == "webfetch" and "timeout" not in one["metadata"]:
                return _bad_request(
                    "Body", f'Expected JSON value, got undefined\n  at [{place}]["metadata"]["timeout"]'
                )
        return JSONResponse(listed)

    def permit(self, asked: Asked) -> Response:
        """`POST /permission/{id}/reply`: new looks at the id first, old at the body."""
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
        if not self.world.known_permission(request_id, asked.directory):
            return self._not_asked("Permission", request_id)
        self.world.reply_permission(request_id, *given)
        return JSONResponse(content=True)

    def dispose(self, asked: Asked) -> Response:
        """`POST /instance/dispose`: what runs in this directory ends, and begins at its next request."""
        self.world.dispose(asked.directory)
        return JSONResponse(content=True)

    # --- what is not there ------------------------------------------------------------------------------------------

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

    def _no_session(self, asked: Asked) -> Response:
        sentence = f"Session not found: {asked.ids['session']}"
        return JSONResponse({"name": "NotFoundError", "data": {"message": sentence}}, 404)

    def _not_asked(self, what: str, request_id: str) -> Response:
        """Old says `true` to anything; new says what is the matter."""
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
}
"""Each route by the name that faults use; "events" is the one besides, `GET /global/event`."""


def unknown(world: AgentWorld) -> Response:
    """Return what a route that is none answers: new its web page, old an error of its proxy."""
    if world.manner == "new":
        return HTMLResponse("<!doctype html><title>OpenCode</title>")
    return JSONResponse({"name": "UnknownError", "data": {"message": "Unable to connect."}}, 500)


def _bad_request(kind: str, message: str) -> Response:
    """Return what new says to a request that it cannot read, or to an answer of its own that it cannot write."""
    return JSONResponse({"name": "BadRequest", "data": {"message": message, "kind": kind}}, 400)


def _answers_in(body: object) -> tuple[tuple[str, ...], ...] | None:
    """Return the answers of a reply, or None where it has another shape."""
    given = body.get("answers") if isinstance(body, dict) else None
    if not isinstance(given, list) or not all(isinstance(one, list) for one in given):
        return None
    if not all(isinstance(text, str) for one in given for text in one):
        return None
    return tuple(tuple(one) for one in given)


def _permission_in(body: object, *, new: bool) -> tuple[Reply, str] | None:
    """Return what is said to a permission, or None where it has another shape; a null message is none to new."""
    given = body if isinstance(body, dict) else {}
    message = given.get("message", "")
    if message is None and new:
        message = ""
    if given.get("reply") not in get_args(Reply) or not isinstance(message, str):
        return None
    return given["reply"], message
