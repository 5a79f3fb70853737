"""The world behind the stand-in: sessions, messages, forms, permissions, events. No HTTP here.

It has two shapes: "august" (a build of 7 August 2026, which was run) and "released" (2.0.26, which was read). The
actions of the agent, of a person at the desk and of a test are methods, and any thread may call them. An impossible
action (no such form, no such session) raises LookupError.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from hermes.sandbox.opencode.events import Effect, Json, Session
from hermes.sandbox.opencode2.forms import as_lists, check, fields_of, output
from hermes.sandbox.opencode2.prompts import Prompts
from hermes.sandbox.opencode2.turns import INTERRUPTED, Shape

VERSIONS: Final[dict[Shape, str]] = {"august": "2.0.0", "released": "2.0.26"}
DISMISSED: Final = "The user dismissed this question"
DECLINED: Final = "The user declined this tool call"
GLOBAL: Final = "global"


@dataclass(slots=True)
class Form:
    """A form, what became of it, and the directory that it belongs to; `questions` of the question tool alone."""

    record: Json
    directory: str
    questions: Sequence[Json] | None
    state: Json = field(default_factory=lambda: {"status": "pending"})


class OpenCode2World(Prompts):
    """See the module."""

    def __init__(
        self,
        *,
        shape: Shape = "released",
        directory: str = "/home/dev/project",
        password: str = "a-password-of-its-own",  # noqa: S107 (of no real server)
        now: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(directory, now, shape)
        self.version = VERSIONS[shape]
        self.password = password
        self.pid = os.getpid()
        self.id = secrets.token_hex(16)
        self.forms: dict[str, Form] = {}
        self.permissions: dict[str, Json] = {}
        self.saved: set[tuple[str, str, str]] = set()
        self.is_starting = False
        self.holds_calls = False
        """Whether a tool that was allowed keeps running."""

    # --- actions of the agent ---------------------------------------------------------------------------------------

    def ask(
        self,
        questions: Sequence[Json],
        *,
        session: str | None = None,
        directory: str | None = None,
        say: str = "",
        beside: str | None = None,
    ) -> str:
        """Let the question tool ask, and return the id of its form. `beside` is an ask of the same step."""
        with self.lock:
            asking = self._asking(session, directory, beside)
            call = self._call(asking, "question", {"questions": list(questions)}, say=say, beside=beside)
            metadata = {"kind": "question", "tool": call}
            record = {"title": "Questions", "metadata": metadata, "fields": fields_of(questions)}
            return self._form(asking.id, asking.directory, record, questions)

    def form(
        self,
        fields: Sequence[Json],
        *,
        session: str | None = None,
        directory: str | None = None,
        title: str = "A form",
        metadata: Mapping[str, Any] | None = None,
    ) -> str:
        """Let a tool show a form of its own; in session "global" it belongs to the directory alone."""
        with self.lock:
            if session == GLOBAL:
                self.load(directory or self.directory)
                place = directory or self.directory
            else:
                asking = self._asking(session, directory, None)
                self._begin(asking)
                session, place = asking.id, asking.directory
            record: Json = {"title": title, "fields": list(fields)}
            return self._form(session, place, record | ({"metadata": dict(metadata)} if metadata else {}), None)

    def ask_permission(
        self,
        action: str,
        resources: Sequence[str],
        *,
        given: Mapping[str, Any] | None = None,
        save: Sequence[str] = (),
        session: str | None = None,
        directory: str | None = None,
        beside: str | None = None,
    ) -> str:
        """Let a tool ask whether it may, and return the id; `given` is its input."""
        with self.lock:
            asking = self._asking(session, directory, beside)
            tool = {"external_directory": "write"}.get(action, action)
            call = self._call(asking, tool, dict(given or {}), beside=beside)
            request: Json = {
                "id": self.new_id("per"),
                "sessionID": asking.id,
                "action": action,
                "resources": list(resources),
                "save": list(save),
                "source": {"type": "tool", **call},
            }
            self.permissions[request["id"]] = request
            self.tell("permission.asked", request, asking.directory)
            return str(request["id"])

    # --- actions of a person at the desk ----------------------------------------------------------------------------

    def answer(self, form_id: str, answers: Sequence[Sequence[str]]) -> None:
        """Answer a form at the desk."""
        fields = self.forms[form_id].record["fields"]
        given = {
            one["key"]: list(texts) if one["type"] == "multiselect" else texts[0]
            for one, texts in zip(fields, answers, strict=True)
            if texts
        }
        self.reply(form_id, given)

    def dismiss(self, form_id: str) -> None:
        """Dismiss a form at the desk, as the Esc key does."""
        self.cancel(form_id)

    def permit(self, request_id: str, reply: str, message: str = "") -> None:
        """Reply to a permission at the desk."""
        if request_id not in self.permissions:
            raise LookupError(f"nothing is asked by {request_id}")
        self.settle(request_id, reply, message)

    def abort(self, session: str, reason: str = "user") -> None:
        """Interrupt the turn and those of its subagents: forms are cancelled with events, permissions go without."""
        with self.lock:
            stopped = self.sessions[session]
            for child in [one.id for one in self.sessions.values() if one.parent_id == session and one.busy]:
                self.abort(child, reason)
            for form in list(self.forms.values()):
                if form.record["sessionID"] == session and form.state["status"] == "pending":
                    self._cancelled(form)
            self._drop_permissions(session)
            self._interrupt_step(stopped)
            self._ended(stopped, "interrupted", {"reason": reason})

    def sweep(self, session: str) -> None:
        """Interrupt a turn in which nothing happened for an hour, as 2.0.x does."""
        self.abort(session, "inactivity")

    def delete(self, session: str) -> None:
        """Delete the session and its children."""
        with self.lock:
            for child in [one.id for one in self.sessions.values() if one.parent_id == session]:
                self.delete(child)
            gone = self.sessions[session]
            self.abort(session)
            del self.sessions[session]
            self.prompts = {one: sent for one, sent in self.prompts.items() if sent.session_id != session}
            self.forms = {one: form for one, form in self.forms.items() if form.record["sessionID"] != session}
            self.tell("session.deleted", {"sessionID": session}, gone.directory)

    def evict(self, directory: str) -> None:
        """Unload a directory under its pending forms: no event, and the session counts as active for ever."""
        with self.lock:
            self.forms = {one: form for one, form in self.forms.items() if form.directory != directory}
            self.loaded = [one for one in self.loaded if one != directory]

    def forget(self, form_id: str) -> None:
        """Forget a settled form, as happens after ten minutes."""
        with self.lock:
            del self.forms[form_id]

    def restart(self, *, killed: bool = False) -> dict[str, str]:
        """Stop and start again: forms and permissions are gone, no event tells so, and the event streams are cut.

        Interrupted turns go on by themselves (in "august" not after a kill): the question tool has failed, and the
        model asks the same again. The caller writes the file anew. Return the new id of each form that is asked again.
        """
        with self.lock:
            self.id = secrets.token_hex(16)
            waiting = [form for form in self.forms.values() if form.state["status"] == "pending" and form.questions]
            self.forms.clear()
            self.permissions.clear()
            resumes = not killed or self.shape == "released"
            for session in self.sessions.values():
                session.busy = False
                if not killed:
                    self._interrupt_step(session)
                elif resumes:
                    self._fail_calls(session, "aborted", INTERRUPTED)
        self.cut_events()
        again = waiting if resumes else []
        for one in again:
            self._start(self.sessions[one.record["sessionID"]])
        return {one.record["id"]: self.ask(one.questions or (), session=one.record["sessionID"]) for one in again}

    # --- called by the HTTP routes ----------------------------------------------------------------------------------

    def pending(self, *, session: str | None = None, directory: str | None = None) -> list[Json]:
        """Return the pending forms of a session or of a directory."""
        with self.lock:
            return [
                form.record
                for form in self.forms.values()
                if form.state["status"] == "pending"
                and session in {None, form.record["sessionID"]}
                and directory in {None, form.directory}
            ]

    def reply(self, form_id: str, answer: Mapping[str, Any]) -> None:
        """Answer a pending form. Raises Invalid: the answer does not fit, and the form stays pending."""
        with self.lock:
            form = self._pending(form_id)
            check(form.record["fields"], answer)
            form.state = {"status": "answered", "answer": dict(answer)}
            told = {"id": form_id, "sessionID": form.record["sessionID"], "answer": dict(answer)}
            lists = as_lists(form.record["fields"], answer)
            self.effects.append(Effect(form_id, tuple(tuple(one) for one in lists)))
            self.tell("form.replied", told, self._place(form))
            if form.questions is not None:
                said = output(form.questions, lists)
                state = {"status": "completed", "content": [{"type": "text", "text": said}]}
                self._end_call(form.record, state | {"metadata": {"answers": lists}})

    def cancel(self, form_id: str, message: str = "") -> None:
        """Cancel a pending form; a question then ends the turn, unless it comes with a message."""
        with self.lock:
            form = self._pending(form_id)
            self.effects.append(Effect(form_id, None))
            self._cancelled(form, message)
            if form.questions is not None:
                said = message or DISMISSED
                error = {"type": "tool.execution" if message else "aborted", "message": said}
                self._end_call(form.record, {"status": "error", "error": error})

    def settle(self, request_id: str, reply: str, message: str = "") -> None:
        """Reply to a permission: a reject also ends the others of its session, an "always" those that it covers."""
        with self.lock:
            request = self.permissions.pop(request_id)
            session = self.sessions[request["sessionID"]]
            others = [one for one in self.permissions.values() if self._goes_with(one, request, reply)]
            for one in others:
                del self.permissions[one["id"]]
            if reply == "always":
                self.saved |= {(session.directory, request["action"], pattern) for pattern in request["save"]}
            for one in (request, *others):
                told = {"sessionID": one["sessionID"], "requestID": one["id"], "reply": reply}
                self.tell("permission.replied", told, session.directory)
            self.effects.append(Effect(request_id, ((reply, message) if message else (reply,),)))
            shared = message if self.shape == "released" else ""
            self._used(request, reply, message)
            for one in others:
                self.effects.append(Effect(one["id"], ((reply,),)))
                self._used(one, reply, shared)

    # --- below here: the caller holds the lock ----------------------------------------------------------------------

    def _asking(self, session: str | None, directory: str | None, beside: str | None) -> Session:
        if beside is not None:
            found = self.permissions.get(beside) or self.forms[beside].record
            session = found["sessionID"]
        return self.sessions[session or self.session(directory=directory)]

    def _form(self, session: str, directory: str, record: Json, questions: Sequence[Json] | None) -> str:
        made = {"id": self.new_id("frm"), "sessionID": session, **record}
        self.forms[made["id"]] = Form(made, directory, questions)
        # The event of a form of an MCP server names no directory.
        self.tell("form.created", {"form": made}, "" if session == GLOBAL else directory)
        return str(made["id"])

    def _place(self, form: Form) -> str:
        return "" if form.record["sessionID"] == GLOBAL else form.directory

    def _pending(self, form_id: str) -> Form:
        form = self.forms[form_id]
        if form.state["status"] != "pending":
            raise LookupError(f"{form_id} is settled")
        return form

    def _cancelled(self, form: Form, message: str = "") -> None:
        form.state = {"status": "cancelled"} | ({"message": message} if message else {})
        told = {"id": form.record["id"], "sessionID": form.record["sessionID"]}
        self.tell("form.cancelled", told, self._place(form))

    def _drop_permissions(self, session: str) -> None:
        self.permissions = {one: asked for one, asked in self.permissions.items() if asked["sessionID"] != session}

    def _goes_with(self, one: Json, settled: Json, reply: str) -> bool:
        if reply == "reject":
            return bool(one["sessionID"] == settled["sessionID"])
        return reply == "always" and one["action"] == settled["action"] and bool({*one["save"]} & {*settled["save"]})

    def _used(self, request: Json, reply: str, message: str) -> None:
        if reply != "reject":
            if self.holds_calls:
                return
            self._end_call(request, {"status": "completed", "content": [], "metadata": {}})
            return
        error = {"type": "aborted", "message": DECLINED}
        if message:
            said = f"Unable to execute command: {request['resources'][0]}" if request["action"] == "shell" else message
            error = {"type": "tool.execution", "message": said}
        self._end_call(request, {"status": "error", "error": error})

    # --- the discovery file -----------------------------------------------------------------------------------------

    def write_file(self, file: Path, url: str) -> None:
        """Write the file by which the server is found, as it does when it starts."""
        told = {"id": self.id, "version": self.version, "url": url, "pid": self.pid, "password": self.password}
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_suffix(".new")
        fresh.write_text(json.dumps(told))
        fresh.chmod(0o600)
        fresh.replace(file)
