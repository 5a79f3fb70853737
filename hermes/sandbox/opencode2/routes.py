"""The routes of the stand-in for OpenCode 2, in both shapes: what each answers, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from hermes.sandbox.opencode.events import Json, Session
from hermes.sandbox.opencode2.forms import Invalid
from hermes.sandbox.opencode2.prompts import ConflictError, Delivery
from hermes.sandbox.opencode2.world import GLOBAL, Form, OpenCode2World

_PERMISSION_PREFIX, _FORM_PREFIX, _SESSION_PREFIX, _MESSAGE_PREFIX = "per", "frm", "ses", "msg"


class Refusal(Exception):
    """A request that the server refuses."""

    def __init__(self, status: int, tag: str, message: str, **more: str) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"_tag": tag, **more, "message": message}


class Answers:
    """Answers the requests that reach a route. Every method raises Refusal."""

    def __init__(self, world: OpenCode2World) -> None:
        self.world = world

    # --- lists and look-ups -----------------------------------------------------------------------------------------

    def info(self, *_: object) -> Response:
        """Answer the probe of this shape."""
        told: Json = {"version": self.world.version, "pid": self.world.pid}
        more: Json = {"healthy": True} if self.world.shape == "august" else {"urls": [], "paths": {"tmp": "/tmp"}}  # noqa: S108
        return JSONResponse(told | more)

    def sessions(self, request: Request, _: object) -> Response:
        """Answer `GET /api/session`: the newest first, of all directories."""
        limit, parent = int(request.query_params.get("limit", "50")), request.query_params.get("parentID")
        newest = sorted(self.world.sessions.values(), key=lambda one: one.updated_ms, reverse=True)
        newest = [one for one in newest if parent is None or (one.parent_id or "null") == parent]
        return JSONResponse({"data": [_session_json(one) for one in newest[:limit]], "cursor": {}})

    def active(self, *_: object) -> Response:
        """Answer `GET /api/session/active`."""
        running = [one.id for one in self.world.sessions.values() if one.busy]
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

    def create_session(self, _: Request, body: object) -> Response:
        """Answer `POST /api/session`: one with this id stays as it is."""
        given = body if isinstance(body, dict) else {}
        session_id = _own_id(given, _SESSION_PREFIX)
        place, title = given.get("location", {}).get("directory"), given.get("title", "")
        made = self.world.session(title, directory=place, parent=given.get("parentID"), session_id=session_id)
        return JSONResponse({"data": _session_json(self.world.sessions[made])})

    def prompt(self, request: Request, body: object) -> Response:
        """Answer `POST …/prompt`: the first record that came under its id."""
        given = _record(body, "text", str)
        prompt_id = _own_id(given, _MESSAGE_PREFIX) or self.world.new_id(_MESSAGE_PREFIX)
        delivery = _delivery(given.get("delivery", "steer"))
        more = {"metadata": given["metadata"]} if "metadata" in given else {}
        session, resumes = self._session(request), given.get("resume", True)
        try:
            record = self.world.admit(session.id, prompt_id, given["text"], delivery, more=more, resumes=resumes)
        except ConflictError:
            raise _conflict(prompt_id) from None
        return JSONResponse({"data": record})

    def inbox(self, request: Request, _: object) -> Response:
        """Answer `GET …/pending` (7 August), `GET …/inbox` (2.0.26)."""
        return JSONResponse({"data": self.world.inbox(self._session(request).id)})

    def withdraw(self, request: Request, _: object) -> Response:
        """Answer `DELETE …/inbox/{id}`."""
        self.world.withdraw(self._session(request).id, request.path_params["prompt"])
        return Response(status_code=204)

    def redirect(self, request: Request, body: object) -> Response:
        """Answer `PATCH …/inbox/{id}`."""
        delivery = _delivery(_record(body, "delivery", str)["delivery"])
        prompt_id = request.path_params["prompt"]
        try:
            self.world.redirect(self._session(request).id, prompt_id, delivery)
        except ConflictError:
            raise _conflict(prompt_id) from None
        return Response(status_code=204)

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
        was_active = session.busy
        self.world.abort(session.id)
        if self.world.shape == "august":
            return Response(status_code=204)
        if request.query_params.get("resume") == "true":
            self.world.steer_on(session.id)
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


class UnsupportedError(Exception):
    """A body that is not declared as JSON."""


def body_of(request: Request, content: bytes) -> object:
    """Return the JSON of a body, or None. Raises Refusal: it is none. UnsupportedError: it is not declared as JSON."""
    if request.method not in {"POST", "PATCH"} or not content:
        return None
    kind = request.headers.get("content-type", "text/plain").partition(";")[0]
    if kind != "application/json":
        raise UnsupportedError(f"Unsupported content-type: {kind}")
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


def _own_id(given: Json, prefix: str) -> str | None:
    """Return the id that a client chose, if it did."""
    own = given.get("id")
    if own is not None and not str(own).startswith(f"{prefix}_"):
        said = f'Expected a string starting with "{prefix}_", got "{own}"\n  at ["id"]'
        raise Refusal(400, "InvalidRequestError", said, kind="Payload")
    return own


def _delivery(given: object) -> Delivery:
    if given == "steer" or given == "queue":  # noqa: PLR1714 (so that mypy knows which)
        return given
    said = f'Expected "steer" | "queue", got "{given}"\n  at ["delivery"]'
    raise Refusal(400, "InvalidRequestError", said, kind="Payload")


def _conflict(prompt_id: str) -> Refusal:
    said = f"Prompt message ID conflicts with an existing durable record: {prompt_id}"
    return Refusal(409, "ConflictError", said, resource=prompt_id)


def _session_json(session: Session) -> Json:
    shown: Json = {
        "id": session.id,
        "projectID": "global",
        "time": {"created": session.created_ms, "updated": session.updated_ms},
        "location": {"directory": session.directory},
    }
    optional = {"title": session.title, "parentID": session.parent_id}
    return shown | {key: value for key, value in optional.items() if value}


Handler = Callable[[Request, object], Response]


def routes_of(world: OpenCode2World) -> Mapping[str, tuple[str, str, Handler]]:
    """Return each route of this shape by its name in faults, except "events", which is `GET /api/event`."""
    answers = Answers(world)
    one = "/api/session/{session}"
    shared: dict[str, tuple[str, str, Handler]] = {
        "locations": ("GET", "/api/debug/location", answers.locations),
        "permissions": ("GET", "/api/permission/request", answers.permissions),
        "active": ("GET", "/api/session/active", answers.active),
        "sessions": ("GET", "/api/session", answers.sessions),
        "create_session": ("POST", "/api/session", answers.create_session),
        "session": ("GET", one, answers.session),
        "remove": ("DELETE", one, answers.remove),
        "prompt": ("POST", f"{one}/prompt", answers.prompt),
        "interrupt": ("POST", f"{one}/interrupt", answers.interrupt),
        "messages": ("GET", f"{one}/message", answers.messages),
        "message": ("GET", f"{one}/message/{{message}}", answers.message),
        "session_forms": ("GET", f"{one}/form", answers.session_forms),
        "create_form": ("POST", f"{one}/form", answers.create_form),
        "form": ("GET", f"{one}/form/{{form}}", answers.form),
        "reply": ("POST", f"{one}/form/{{form}}/reply", answers.reply),
        "session_permissions": ("GET", f"{one}/permission", answers.session_permissions),
        "permission": ("GET", f"{one}/permission/{{permission}}", answers.permission),
        "permit": ("POST", f"{one}/permission/{{permission}}/reply", answers.permit),
    }
    if world.shape == "august":
        return shared | {
            "info": ("GET", "/api/health", answers.info),
            "forms": ("GET", "/api/form/request", answers.forms),
            "state": ("GET", f"{one}/form/{{form}}/state", answers.state),
            "cancel": ("POST", f"{one}/form/{{form}}/cancel", answers.cancel),
            "inbox": ("GET", f"{one}/pending", answers.inbox),
        }
    return shared | {
        "info": ("GET", "/api/info", answers.info),
        "forms": ("GET", "/api/form", answers.forms),
        "cancel": ("DELETE", f"{one}/form/{{form}}", answers.cancel),
        "inbox": ("GET", f"{one}/inbox", answers.inbox),
        "withdraw": ("DELETE", f"{one}/inbox/{{prompt}}", answers.withdraw),
        "redirect": ("PATCH", f"{one}/inbox/{{prompt}}", answers.redirect),
    }
