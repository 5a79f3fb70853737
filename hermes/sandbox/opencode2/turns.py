"""The turns of the stand-in for OpenCode 2: sessions, their messages and tool calls, and the events of these."""

from __future__ import annotations

import copy
import json
import secrets
from collections.abc import Callable
from typing import Final, Literal

from hermes.sandbox.opencode.events import Events, Json, Session

Shape = Literal["august", "released"]
INTERRUPTED: Final = "Tool execution interrupted"
STEP_INTERRUPTED: Final[Json] = {"type": "aborted", "message": "Step interrupted"}
NO_ROUTE: Final = "provider.no-route"


class Turns(Events):
    """See the module; `OpenCode2World` adds what a turn asks."""

    def __init__(self, directory: str, now: Callable[[], float]) -> None:
        super().__init__("new", directory, now)
        self.loaded: list[str] = []

    def session(
        self,
        title: str = "A session",
        *,
        directory: str | None = None,
        parent: str | None = None,
        session_id: str | None = None,
    ) -> str:
        """Create a session (with `parent`, a subagent's) and return its id. One with this id stays as it is."""
        with self.lock:
            if session_id in self.sessions:
                return session_id
            at_ms = self.now_ms()
            made_id = session_id or self.new_id("ses")
            made = Session(made_id, title, directory or self.directory, parent, at_ms, at_ms)
            self.sessions[made.id] = made
            self.load(made.directory)
            data = {"sessionID": made.id, "title": title, "location": {"directory": made.directory}}
            self.tell("session.created", data, made.directory)
            return made.id

    def finish(self, session: str) -> None:
        """End the session's turn."""
        with self.lock:
            self._over(self.sessions[session])

    def fail(self, session: str, message: str, kind: str = "provider.invalid-request") -> None:
        """End the session's turn by an error of the model's provider; without a route to it, there is no step."""
        with self.lock:
            failed, error = self.sessions[session], {"type": kind, "message": message}
            if kind != NO_ROUTE:
                self._complete(self._message(failed, []), "error", error)
            self._ended(failed, "failed", {"error": error})

    def go_on(self, session: str) -> None:
        """Take another turn after a kill: what it left running has failed."""
        with self.lock:
            again = self.sessions[session]
            self._fail_calls(again, "aborted", f"{INTERRUPTED}: question")
            self._start(again)
            self._over(again)

    def turns_of(self, session: str) -> int:
        """Return how many turns of this session have ended by themselves."""
        with self.lock:
            return sum(one.get("finish") == "stop" for one in self.sessions[session].messages)

    def load(self, directory: str) -> None:
        """Note that the server has loaded a directory; another spelling is another one."""
        if directory not in self.loaded:
            self.loaded.append(directory)

    def tell(self, kind: str, data: Json, directory: str = "") -> None:
        """Send an event to all followers."""
        event: Json = {"id": self.new_id("evt"), "created": self.now_ms(), "type": kind, "data": copy.deepcopy(data)}
        if directory and not kind.startswith("session.execution."):
            event["location"] = {"directory": directory}
        self._hold_or_send(event)

    def _send(self, event: Json) -> None:
        for sink in tuple(self.sinks):
            for _ in range(2 if self.doubles_events else 1):
                sink(event)

    # --- below here: the caller holds the lock ----------------------------------------------------------------------

    def _begin(self, session: Session) -> None:
        if not session.busy:
            self._start(session)
            prompt = {"id": self.new_id("msg"), "type": "user", "time": {"created": self.now_ms()}, "text": "Go on."}
            session.messages.append(prompt)

    def _start(self, session: Session) -> None:
        if not session.busy:
            session.busy = True
            self.tell("session.execution.started", {"sessionID": session.id})

    def _over(self, session: Session) -> None:
        """End a turn that has done its work."""
        self._ended(session, "succeeded")

    def _message(self, session: Session, content: list[Json]) -> Json:
        at_ms = self.now_ms()
        session.updated_ms = at_ms
        made = {"id": self.new_id("msg"), "type": "assistant", "time": {"created": at_ms}, "content": content}
        session.messages.append(made)
        data = {"sessionID": session.id, "assistantMessageID": made["id"], "agent": "build"}
        self.tell("session.step.started", data, session.directory)
        return made

    def _complete(self, message: Json, finish: str, error: Json | None = None) -> None:
        """End a message of the model: with "tool-calls" the turn goes on."""
        message["time"]["completed"] = self.now_ms()
        message |= {"finish": finish} | ({} if error is None else {"error": error})

    def _call(self, session: Session, tool: str, given: Json, *, say: str = "", beside: str | None = None) -> Json:
        """Begin a tool call, in the newest message or in one of its own; return how a request names it."""
        self._begin(session)
        part = {"type": "tool", "id": f"call_{secrets.token_hex(8)}", "name": tool, "executed": False}
        part["state"] = {"status": "running", "input": given}
        if beside is not None:
            message = session.messages[-1]
            message["content"].append(part)
        else:
            message = self._message(session, [*([{"type": "text", "text": say}] if say else []), part])
        called = {"sessionID": session.id, "assistantMessageID": message["id"], "id": part["id"], "input": given}
        self.tell("session.tool.called", called, session.directory)
        return {"messageID": message["id"], "id": part["id"]}

    def _end_call(self, request: Json, state: Json) -> None:
        """End the tool call that asked; once no other call of its step runs, the model goes on, or the turn ends."""
        session = self.sessions[request["sessionID"]]
        call = request.get("source") or request["metadata"]["tool"]
        message = next(one for one in session.messages if one["id"] == call["messageID"])
        calls = [part for part in message["content"] if part["type"] == "tool"]
        for part in calls:
            if part["id"] == call["id"]:
                part["state"] |= state
                kind = "success" if state["status"] == "completed" else "failed"
                data = {"sessionID": session.id, "assistantMessageID": message["id"], "id": part["id"]}
                self.tell(f"session.tool.{kind}", data, session.directory)
        if any(part["state"]["status"] == "running" for part in calls):
            return
        if any(part["state"].get("error", {}).get("type") == "aborted" for part in calls):
            self._complete(message, "error", dict(STEP_INTERRUPTED))
            self._ended(session, "interrupted", {"reason": "shutdown"})
            return
        told = [json.dumps(part["state"].get("content") or part["state"].get("error")) for part in calls]
        self._complete(message, "tool-calls")
        self._complete(self._message(session, [{"type": "text", "text": f"FINAL: {' '.join(told)}"}]), "stop")
        self._over(session)

    def _fail_calls(self, session: Session, kind: str, message: str) -> None:
        for one in session.messages:
            for part in one.get("content", ()):
                if part["type"] == "tool" and part["state"]["status"] == "running":
                    part["state"] |= {"status": "error", "error": {"type": kind, "message": message}}

    def _interrupt_step(self, session: Session) -> None:
        """End the step that runs, as an interrupted one ends."""
        self._fail_calls(session, "aborted", INTERRUPTED)
        for one in session.messages:
            if one["type"] == "assistant" and "completed" not in one["time"]:
                self._complete(one, "error", dict(STEP_INTERRUPTED))

    def _ended(self, session: Session, how: str, more: Json | None = None) -> None:
        if session.busy:
            session.busy = False
            session.updated_ms = self.now_ms()
            self.tell(f"session.execution.{how}", {"sessionID": session.id, **(more or {})})
