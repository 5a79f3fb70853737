"""The turns of the scripted agent server: sessions, messages and tool calls. No HTTP here."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from hermes.sandbox.opencode.events import Events, Json, Manner, Session

VERSIONS: Final[dict[Manner, str]] = {"old": "1.1.53", "new": "1.18.33"}
ABORTED: Final = "Tool execution aborted"


class Turns(Events):
    """See the module; the parameters are those of `AgentWorld`."""

    stopping: frozenset[str]
    """The errors of a tool call after which the model is not called again."""

    def __init__(self, manner: Manner, directory: str, *, now: Callable[[], float] = time.time) -> None:
        super().__init__(manner, directory, now)
        self.version = VERSIONS[manner]
        self.finishes = True
        self._held_tools: list[Callable[[], None]] | None = None

    # --- actions of the agent -------------------------------------------------------------------------------------

    def session(self, title: str = "A session", *, directory: str | None = None, parent: str | None = None) -> str:
        """Create an idle session (with `parent`, a subagent's) and return its id."""
        with self.lock:
            at_ms = self.now_ms()
            made = Session(self.new_id("ses"), title, directory or self.directory, parent, at_ms, at_ms)
            self.sessions[made.id] = made
            self.emit("session.created", {"info": session_json(made, self.version)}, made.directory)
            return made.id

    def finish(self, session: str) -> None:
        """End the session's turn."""
        with self.lock:
            self._rest(self.sessions[session])

    def fail(self, session: str, message: str, status: int | None = None) -> None:
        """End the session's turn by an error of the model's provider."""
        with self.lock:
            failed = self.sessions[session]
            data = {"message": message, "isRetryable": False} | ({} if status is None else {"statusCode": status})
            self._fail(failed, {"name": "APIError", "data": data})
            self._rest(failed)

    def change(self, session: str, *diffs: Json) -> None:
        """Note what the running turn has changed: `{"file", "additions", "deletions"}`."""
        with self.lock:
            prompt = next(one for one in reversed(self.sessions[session].messages) if one["info"]["role"] == "user")
            prompt["info"]["summary"] = {"diffs": list(diffs)}

    def work(self, session: str) -> None:
        """Make the session busy."""
        with self.lock:
            self._busy(self.sessions[session])

    # --- actions of a person at the desk --------------------------------------------------------------------------

    def abort(self, session: str) -> None:
        """Stop the turn; its requests stay listed, but the agent does not wait for them.

        If a call waits for an answer, 1.1.53 leaves the call and its message as they are.
        """
        with self.lock:
            stopped = self.sessions[session]
            if self.manner == "new":
                self._abort_calls(stopped)
            if stopped.busy and not open_parts(stopped):
                self._fail(stopped, {"name": "MessageAbortedError", "data": {"message": "Aborted"}})
            self._rest(stopped)

    def delete(self, session: str) -> None:
        """Delete the session; its requests stay listed."""
        with self.lock:
            gone = self.sessions[session]
            gone.deleted = True
            self.emit("session.deleted", {"info": session_json(gone, self.version)}, gone.directory)

    def turns_of(self, session: str) -> int:
        """Return how many turns of this session have ended by themselves."""
        with self.lock:
            return sum(one["info"].get("finish") == "stop" for one in self.sessions[session].messages)

    # --- holding tools ----------------------------------------------------------------------------------------

    def hold_tools(self) -> None:
        """Stop tool calls, and so their turns, from going on after their answer, until `release_tools`."""
        with self.lock:
            self._held_tools = self._held_tools or []

    def release_tools(self) -> None:
        """Let answered tool calls go on and end."""
        with self.lock:
            held, self._held_tools = self._held_tools or [], None
            for end in held:
                end()

    # --- below here: the caller holds the lock ----------------------------------------------------------------------

    def _stop(self, place: str | None = None) -> None:
        """Stop every turn, or those of one directory; answered calls that have not ended are lost, too.

        In one directory, 1.18.33 ends the running calls; a restart leaves them as they are.
        """
        if place is None:
            self._held_tools = None if self._held_tools is None else []
        for session in self.sessions.values():
            if place in {None, session.directory}:
                session.busy = False
            if place == session.directory and self.manner == "new":
                self._abort_calls(session)

    def _abort_calls(self, session: Session) -> None:
        for part in open_parts(session):
            part["state"] |= {"status": "error", "error": ABORTED, "metadata": {"interrupted": True}}

    def _works_on(self, session: Session, request: Json) -> bool:
        """Tell whether the turn that asked still runs: it was not stopped, and the model has sent no newer message."""
        asked = request.get("tool", {}).get("messageID")
        return session.busy and (asked is None or newest_of_model(session)["info"]["id"] == asked)

    def _is_waiting(self, session: Session) -> bool:
        """Tell whether a call of the session's newest step has not ended."""
        return session.busy and any(self._works_on(session, {"tool": part}) for part in open_parts(session))

    def _is_live(self, session: Session, request: Json) -> bool:
        return not session.deleted and self._works_on(session, request)

    def _turn(self, session: Session, parts: list[Json], *, same_step: bool) -> Json:
        """Add parts to the model's newest message (`same_step`), or begin a turn with them; return the message."""
        if same_step:
            message = newest_of_model(session)
            message["parts"] += self._named(session, message["info"]["id"], parts)
            return message
        self._busy(session)
        self._message(session, "user", [{"type": "text", "text": "Go on."}])
        return self._message(session, "assistant", parts)

    def _call(self, tool: str, call_id: str, given: Json) -> Json:
        state = {"status": "running", "input": given, "time": {"start": self.now_ms()}}
        return {"type": "tool", "tool": tool, "callID": call_id, "state": state}

    def _message(
        self,
        session: Session,
        role: str,
        parts: list[Json],
        message_id: str | None = None,
        *,
        at_ms: int | None = None,
    ) -> Json:
        session.updated_ms = created_ms = self.now_ms() if at_ms is None else at_ms
        message_id = message_id or self._id_of(created_ms)
        info: Json = {"id": message_id, "role": role, "sessionID": session.id, "time": {"created": created_ms}}
        prompt = next((one for one in reversed(session.messages) if one["info"]["role"] == "user"), None)
        if role == "assistant" and prompt is not None:
            info["parentID"] = prompt["info"]["id"]
        message = {"info": info, "parts": self._named(session, message_id, parts)}
        session.messages.append(message)
        if self.manner == "old":
            session.messages.sort(key=lambda one: str(one["info"]["id"]))
        self.emit("message.updated", {"info": info, "sessionID": session.id}, session.directory)
        return message

    def _id_of(self, created_ms: int) -> str:
        """Return a message's id as OpenCode makes it: the low 48 bits of its time, and random characters."""
        return f"msg_{created_ms * 0x1000 % 16**12:012x}{self.new_id('')[-14:]}"

    def _complete(self, session: Session, message: Json, finish: str) -> None:
        """End a message of the model: with "tool-calls" the turn goes on, with "stop" it is over."""
        message["info"]["time"]["completed"] = self.now_ms()
        message["info"]["finish"] = finish
        if not session.deleted:
            self.emit("message.updated", {"info": message["info"], "sessionID": session.id}, session.directory)

    def _fail(self, session: Session, error: Json) -> None:
        """End the model's newest message by an error; 1.18.33 tells the error, and rests, before it says so."""
        if self.manner == "new":
            self.emit("session.error", {"sessionID": session.id, "error": error}, session.directory)
            self.emit("session.idle", {"sessionID": session.id}, session.directory)
        if any(one["info"]["role"] == "assistant" for one in session.messages):
            info = newest_of_model(session)["info"]
            info["time"]["completed"] = self.now_ms()
            info["error"] = error
            self.emit("message.updated", {"info": info, "sessionID": session.id}, session.directory)

    def _named(self, session: Session, message_id: str, parts: list[Json]) -> list[Json]:
        return [{"id": self.new_id("prt"), "messageID": message_id, "sessionID": session.id, **part} for part in parts]

    def _tell_parts(self, session: Session, message: Json) -> None:
        for part in message["parts"]:
            self.emit("message.part.updated", {"part": part, "sessionID": session.id}, session.directory)

    def _tell_asked(self, kind: str, session: Session, request: Json, message: Json) -> None:
        """Send the events of the request and of the call that asks; 1.1.53 sends the request first."""
        if self.manner == "new":
            self._tell_parts(session, message)
        self.emit(kind, request, session.directory)
        if self.manner == "old":
            self._tell_parts(session, message)

    def _end_tool(self, still: Callable[[], bool], end: Callable[[], None]) -> None:
        """Call `end` now, or at `release_tools` if `still` holds then: a stopped turn stops its tools, too."""
        if self._held_tools is None:
            end()
        else:
            self._held_tools.append(lambda: end() if still() else None)

    def _ended(self, session: Session, request: Json, state: Json) -> None:
        call = request.get("tool", {}).get("callID")
        for part in open_parts(session):
            if part["callID"] == call:
                part["state"] |= state
                part["state"]["time"]["end"] = self.now_ms()
                # 1.18.33 cannot write a part of a deleted session, and sends no event.
                if self.manner == "old" or not session.deleted:
                    self.emit("message.part.updated", {"part": part, "sessionID": session.id}, session.directory)

    def _step_over(self, session: Session, request: Json, text: str, *, stops: bool = False) -> None:
        """Let the model go on, or end the turn, once no other call of the step runs."""
        asked = request.get("tool", {}).get("messageID")
        states = [part["state"] for part in tool_parts(session) if part["messageID"] == asked]
        if any(state["status"] == "running" for state in states):
            return
        if asked is not None:
            message = next((one for one in session.messages if one["info"]["id"] == asked), None)
            if message is not None:
                self._complete(session, message, "tool-calls")
        if stops or session.deleted or any(state.get("error") in self.stopping for state in states):
            self._rest(session)
        else:
            told = [state.get("output") or state.get("error", "") for state in states]
            self._go_on(session, "\n".join(told) if told else text)

    def _go_on(self, session: Session, text: str) -> None:
        self._busy(session)
        if self.finishes:
            final = [{"type": "text", "text": f"FINAL: {text}"}]
            last = self._message(session, "assistant", final)
            self._tell_parts(session, last)
            self._complete(session, last, "stop")
            self._rest(session)

    def _busy(self, session: Session) -> None:
        session.busy = True
        status = {"sessionID": session.id, "status": {"type": "busy"}}
        self.emit("session.status", status, session.directory)

    def _rest(self, session: Session) -> None:
        session.busy = False
        status = {"sessionID": session.id, "status": {"type": "idle"}}
        self.emit("session.status", status, session.directory)
        self.emit("session.idle", {"sessionID": session.id}, session.directory)


def session_json(session: Session, version: str) -> Json:
    """Return a session as OpenCode shows it."""
    shown: Json = {
        "id": session.id,
        "slug": "quiet-pixel",
        "projectID": "global",
        "directory": session.directory,
        "title": session.title,
        "version": version,
        "time": {"created": session.created_ms, "updated": session.updated_ms},
    }
    return shown | ({"parentID": session.parent_id} if session.parent_id else {})


def tool_parts(session: Session) -> list[Json]:
    """Return the session's tool calls: parts of all its messages."""
    return [part for message in session.messages for part in message["parts"] if part["type"] == "tool"]


def open_parts(session: Session) -> list[Json]:
    """Return the session's tool calls that have not ended."""
    return [part for part in tool_parts(session) if part["state"]["status"] == "running"]


def newest_of_model(session: Session) -> Json:
    """Return the model's newest message."""
    return next(message for message in reversed(session.messages) if message["info"]["role"] == "assistant")
