"""The world behind the scripted agent server: sessions, messages, pending questions, events. No HTTP here.

It behaves as OpenCode was seen to behave, in both manners: "old" (1.1.53) says `true` to any reply, "new" (1.18.33)
says 404 where there is nothing to answer. What a person at the desk does, and what a test stirs up, are methods; they
may be called from any thread. What is impossible (no such request, no such session) is a LookupError.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from hermes.demo.agent_events import Events, Fault, Json, Manner, Received

__all__ = ["VERSIONS", "AgentWorld", "Effect", "Fault", "Json", "Manner", "Received", "Session", "session_json"]

Answers = Sequence[Sequence[str]]

VERSIONS: Final[dict[Manner, str]] = {"old": "1.1.53", "new": "1.18.33"}
DISMISSED: Final[dict[Manner, str]] = {
    "old": "Error: The user dismissed this question",
    "new": "The user dismissed this question",
}
ABORTED: Final = "Tool execution aborted"


@dataclass(frozen=True, slots=True)
class Effect:
    """A question that a live agent saw answered; `answers` is None where it was dismissed."""

    request_id: str
    answers: tuple[tuple[str, ...], ...] | None


@dataclass(slots=True)
class Session:
    """A conversation. `deleted` sessions are kept, since their questions stay listed."""

    id: str
    title: str
    directory: str
    parent_id: str | None
    created_ms: int
    updated_ms: int
    busy: bool = False
    deleted: bool = False
    messages: list[Json] = field(default_factory=list)


class AgentWorld(Events):
    """See the module. `directory` is the server's own folder; `finishes` says whether an answered turn ends by itself.

    `effects` is what came of all that was answered, over HTTP and at the desk.
    """

    def __init__(
        self,
        *,
        manner: Manner = "new",
        directory: str = "/home/dev/project",
        password: str = "",
        now: Callable[[], float] = time.time,
        pace: float = 1.0,
    ) -> None:
        super().__init__(manner)
        self.pace = pace  # heartbeats come this much sooner
        self.version = VERSIONS[manner]
        self.directory = directory
        self.password = password
        self.finishes = True
        self.sessions: dict[str, Session] = {}
        self.pending: dict[str, Json] = {}
        self.effects: list[Effect] = []
        self._now = now
        self._places: dict[str, str] = {}
        self._held_tools: list[Callable[[], None]] | None = None
        self._created_ms = 0

    # --- what the agent does --------------------------------------------------------------------------------------

    def session(self, title: str = "A session", *, directory: str | None = None, parent: str | None = None) -> str:
        """Begin a conversation (a subagent's, below `parent`), idle so far; its id."""
        with self.lock:
            at_ms = self.now_ms()
            made = Session(self.new_id("ses"), title, directory or self.directory, parent, at_ms, at_ms)
            self.sessions[made.id] = made
            self.emit("session.created", {"info": session_json(made, self.version)}, made.directory)
            return made.id

    def ask(
        self,
        questions: Sequence[Json],
        *,
        session: str | None = None,
        directory: str | None = None,
        say: str = "",
        call_id: str | None = None,
        beside: str | None = None,
        tool: bool = True,
    ) -> str:
        """Let the agent ask, in a session that exists or a new one; the request id.

        `say` is what the model says before; `beside` is a request of the same step, asked by another of its calls.
        Without `tool` the request names no call, so nothing but an event proves what becomes of it.
        """
        with self.lock:
            asking = self._asking(session, directory, beside)
            call = call_id or f"call_{secrets.token_hex(8)}"
            given: Json = {"questions": list(questions)}
            message = self._turn(asking, say, given, call if tool else "", step_of=beside)
            request: Json = {"id": self.new_id("que"), "sessionID": asking.id, "questions": list(questions)}
            if tool:
                request["tool"] = {"messageID": message["info"]["id"], "callID": call}
            self.pending[request["id"]] = request
            self._places[request["id"]] = asking.directory
            # Old tells of the question before the call that asks it.
            if self.manner == "old":
                self.emit("question.asked", request, asking.directory)
                self._tell_parts(asking, message)
            else:
                self._tell_parts(asking, message)
                self.emit("question.asked", request, asking.directory)
            return str(request["id"])

    def call(self, questions: Sequence[Json], *, session: str) -> str:
        """Let the tool call begin, of which a plugin tells, without a request (yet); the call id."""
        with self.lock:
            call = f"call_{secrets.token_hex(8)}"
            asking = self.sessions[session]
            self._tell_parts(asking, self._turn(asking, "", {"questions": list(questions)}, call))
            return call

    def finish(self, session: str) -> None:
        """Let the session's turn end."""
        with self.lock:
            self._rest(self.sessions[session])

    def work(self, session: str) -> None:
        """Let the session be seen at work."""
        with self.lock:
            self._busy(self.sessions[session])

    # --- what a person at the desk does ---------------------------------------------------------------------------

    def answer(self, request_id: str, answers: Answers) -> None:
        """Answer at the desk."""
        self._there(request_id)
        self.reply(request_id, tuple(tuple(one) for one in answers))

    def dismiss(self, request_id: str) -> None:
        """Press Esc at the desk."""
        self._there(request_id)
        self.reject(request_id)

    def abort(self, session: str) -> None:
        """Stop the turn: its questions stay listed, and nobody waits for them."""
        with self.lock:
            stopped = self.sessions[session]
            if self.manner == "new":
                for part in _open_parts(stopped):
                    part["state"] |= {"status": "error", "error": ABORTED, "metadata": {"interrupted": True}}
                error = {"name": "MessageAbortedError", "data": {"message": "Aborted"}}
                self.emit("session.error", {"sessionID": session, "error": error}, stopped.directory)
            self._rest(stopped)

    def delete(self, session: str) -> None:
        """Delete the conversation: its questions stay listed."""
        with self.lock:
            gone = self.sessions[session]
            gone.deleted = True
            self.emit("session.deleted", {"info": session_json(gone, self.version)}, gone.directory)

    def restart(self) -> None:
        """End and begin anew: no question is left, nobody is told, and streams are cut."""
        with self.lock:
            self.pending.clear()
            # What was answered and had not ended is lost, too.
            self._held_tools = None if self._held_tools is None else []
            for session in self.sessions.values():
                session.busy = False
        self.cut_events()

    def came_of(self, request_id: str) -> list[Answers | None]:
        """Return every effect that a request had: its answers, or None where it was dismissed."""
        with self.lock:
            return [effect.answers for effect in self.effects if effect.request_id == request_id]

    # --- trouble that only this world knows -----------------------------------------------------------------------

    def hold_tools(self) -> None:
        """Keep tool calls, and with them their turns, from going on after their answer until they are let go."""
        with self.lock:
            self._held_tools = self._held_tools or []

    def release_tools(self) -> None:
        """Let answered tool calls end."""
        with self.lock:
            held, self._held_tools = self._held_tools or [], None
            for end in held:
                end()

    # --- what HTTP asks for ---------------------------------------------------------------------------------------

    def listed(self, directory: str) -> list[Json]:
        """Return the pending questions of a directory, in creation order, those of dead sessions too."""
        with self.lock:
            return [one for request_id, one in self.pending.items() if self._places[request_id] == directory]

    def known(self, request_id: str, directory: str) -> bool:
        """Tell whether this request is pending in this directory."""
        with self.lock:
            return request_id in self.pending and self._places[request_id] == directory

    def reply(self, request_id: str, answers: tuple[tuple[str, ...], ...]) -> None:
        """Answer a pending question; a zombie is cleared by it, and the event comes all the same."""
        with self.lock:
            request = self.pending.pop(request_id)
            session = self.sessions[request["sessionID"]]
            told = {"sessionID": session.id, "requestID": request_id, "answers": [list(one) for one in answers]}
            live = self._is_live(session, request)
            if live:
                self._end_tool(session, request, lambda: self._completed(session, request, answers))
            self.emit("question.replied", told, session.directory)
            if live:
                self._end_tool(session, request, lambda: self._go_on(session, request, answers))

    def reject(self, request_id: str) -> None:
        """Dismiss a pending question: the turn ends."""
        with self.lock:
            request = self.pending.pop(request_id)
            session = self.sessions[request["sessionID"]]
            live = self._is_live(session, request)
            if live:
                self._end_tool(session, request, lambda: self._dismissed(session, request))
            self.emit("question.rejected", {"sessionID": session.id, "requestID": request_id}, session.directory)
            if live:
                self._end_tool(session, request, lambda: self._rest(session))

    def now_ms(self) -> int:
        """Return the time, never the same twice: messages are told apart by it."""
        self._created_ms = max(self._created_ms + 1, int(self._now() * 1000))
        return self._created_ms

    # --- below here: whoever calls holds the lock -------------------------------------------------------------------

    def _there(self, request_id: str) -> None:
        if request_id not in self.pending:
            raise LookupError(f"nothing is asked by {request_id}")

    def _is_live(self, session: Session, request: Json) -> bool:
        if session.deleted or not session.busy:
            return False
        asked = request.get("tool", {}).get("messageID")
        return asked is None or _newest_of_model(session)["info"]["id"] == asked

    def _asking(self, session: str | None, directory: str | None, beside: str | None) -> Session:
        if beside is not None:
            session = self.pending[beside]["sessionID"]
        return self.sessions[session or self.session(directory=directory)]

    def _turn(self, session: Session, say: str, given: Json, call: str, *, step_of: str | None = None) -> Json:
        parts: list[Json] = [{"type": "text", "text": say}] if say else []
        if call:
            state = {"status": "running", "input": given, "time": {"start": self.now_ms()}}
            parts.append({"type": "tool", "tool": "question", "callID": call, "state": state})
        if step_of is not None:
            message = _newest_of_model(session)
            message["parts"] += self._named(session, message["info"]["id"], parts)
            return message
        self._busy(session)
        self._message(session, "user", [{"type": "text", "text": "Go on."}])
        return self._message(session, "assistant", parts)

    def _message(self, session: Session, role: str, parts: list[Json]) -> Json:
        message_id = self.new_id("msg")
        session.updated_ms = created_ms = self.now_ms()
        info = {"id": message_id, "role": role, "sessionID": session.id, "time": {"created": created_ms}}
        message = {"info": info, "parts": self._named(session, message_id, parts)}
        session.messages.append(message)
        self.emit("message.updated", {"info": info, "sessionID": session.id}, session.directory)
        return message

    def _named(self, session: Session, message_id: str, parts: list[Json]) -> list[Json]:
        return [{"id": self.new_id("prt"), "messageID": message_id, "sessionID": session.id, **part} for part in parts]

    def _tell_parts(self, session: Session, message: Json) -> None:
        for part in message["parts"]:
            self.emit("message.part.updated", {"part": part, "sessionID": session.id}, session.directory)

    def _end_tool(self, session: Session, request: Json, end: Callable[[], None]) -> None:
        """Do it now, or when tools are let go: unless the turn was stopped meanwhile, as its tools are with it."""
        if self._held_tools is None:
            end()
        else:
            self._held_tools.append(lambda: end() if self._is_live(session, request) else None)

    def _completed(self, session: Session, request: Json, answers: Answers) -> None:
        state = {
            "status": "completed",
            "title": f"Asked {len(request['questions'])} question",
            "output": _output(request["questions"], answers),
            "metadata": {"answers": [list(one) for one in answers], "truncated": False},
        }
        self.effects.append(Effect(request["id"], tuple(tuple(one) for one in answers)))
        self._ended(session, request, state)

    def _dismissed(self, session: Session, request: Json) -> None:
        self.effects.append(Effect(request["id"], None))
        self._ended(session, request, {"status": "error", "error": DISMISSED[self.manner]})

    def _ended(self, session: Session, request: Json, state: Json) -> None:
        call = request.get("tool", {}).get("callID")
        for part in _open_parts(session):
            if part["callID"] == call:
                part["state"] |= state
                self.emit("message.part.updated", {"part": part, "sessionID": session.id}, session.directory)

    def _go_on(self, session: Session, request: Json, answers: Answers) -> None:
        self._busy(session)
        if self.finishes:
            text = f"FINAL: {_output(request['questions'], answers)}"
            self._tell_parts(session, self._message(session, "assistant", [{"type": "text", "text": text}]))
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


def _open_parts(session: Session) -> list[Json]:
    parts = [part for message in session.messages for part in message["parts"] if part["type"] == "tool"]
    return [part for part in parts if part["state"]["status"] == "running"]


def _newest_of_model(session: Session) -> Json:
    return next(message for message in reversed(session.messages) if message["info"]["role"] == "assistant")


def _output(questions: Sequence[Json], answers: Answers) -> str:
    given = [", ".join(one) if one else "Unanswered" for one in answers[: len(questions)]]
    given += ["Unanswered"] * (len(questions) - len(given))
    told = [f'"{asked["question"]}"="{one}"' for asked, one in zip(questions, given, strict=True)]
    return f"User has answered your questions: {', '.join(told)}. You can now continue with the user's answers in mind."
