"""The world behind the scripted agent server: sessions, messages, questions, permissions, events. No HTTP here.

It behaves as OpenCode was seen to behave, in two manners: "old" (1.1.53) answers `true` to any reply, "new" (1.18.33)
answers 404 if there is nothing to answer. The actions of the agent, of a person at the desk and of a test are methods,
and any thread may call them. An impossible action (no such request, no such session) raises LookupError.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from typing import Final

from hermes.sandbox.opencode.events import Answers, Effect, Json, Manner, Session
from hermes.sandbox.opencode.permissions import REJECTED, Permissions

DISMISSED: Final[dict[Manner, str]] = {
    "old": "Error: The user dismissed this question",
    "new": "The user dismissed this question",
}


class AgentWorld(Permissions):
    """See the module. `directory` is the server's own folder; with `finishes`, a turn ends after its answer."""

    def __init__(
        self,
        *,
        manner: Manner = "new",
        directory: str = "/home/dev/project",
        password: str = "",
        now: Callable[[], float] = time.time,
        pace: float = 1.0,
    ) -> None:
        super().__init__(manner, directory, now=now)
        self.pace = pace  # heartbeats come sooner by this factor
        self.password = password
        self.stopping = frozenset({REJECTED[manner], DISMISSED[manner]})
        self.pending: dict[str, Json] = {}

    # --- actions of the agent -------------------------------------------------------------------------------------

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
        """Let the agent ask, in an existing or a new session, and return the request id.

        `say` is the model's text before the call; `beside` is a request of the same step, asked by another call.
        Without `tool` the request names no call, so that only an event can prove its outcome.
        """
        with self.lock:
            asking = self._asking(session, directory, beside)
            call = call_id or f"call_{secrets.token_hex(8)}"
            parts: list[Json] = [{"type": "text", "text": say}] if say else []
            if tool:
                parts.append(self._call("question", call, {"questions": list(questions)}))
            message = self._turn(asking, parts, same_step=beside is not None)
            request: Json = {"id": self.new_id("que"), "sessionID": asking.id, "questions": list(questions)}
            if tool:
                request["tool"] = {"messageID": message["info"]["id"], "callID": call}
            self.pending[request["id"]] = request
            self._tell_asked("question.asked", asking, request, message)
            return str(request["id"])

    def call(self, questions: Sequence[Json], *, session: str) -> str:
        """Begin the tool call that a plugin reports, without a request (yet), and return the call id."""
        with self.lock:
            call = f"call_{secrets.token_hex(8)}"
            asking = self.sessions[session]
            begun = self._call("question", call, {"questions": list(questions)})
            self._tell_parts(asking, self._turn(asking, [begun], same_step=False))
            return call

    # --- actions of a person at the desk --------------------------------------------------------------------------

    def answer(self, request_id: str, answers: Answers) -> None:
        """Answer a question at the desk."""
        self._there(request_id)
        self.reply(request_id, tuple(tuple(one) for one in answers))

    def dismiss(self, request_id: str) -> None:
        """Dismiss a question at the desk, as the Esc key does."""
        self._there(request_id)
        self.reject(request_id)

    def restart(self) -> None:
        """Restart the server: pending requests are lost, no event tells of them, and the event streams are cut."""
        with self.lock:
            self.pending.clear()
            self._forget_permissions()
            self._stop()
        self.cut_events()

    def dispose(self, directory: str | None = None) -> None:
        """End all that runs in one directory, by default the server's own, as `POST /instance/dispose` and a reload do.

        The directory's pending requests vanish without events of their own; event streams go on.
        """
        place = directory or self.directory
        with self.lock:
            self.pending = {one: asked for one, asked in self.pending.items() if self._place(asked) != place}
            self._dispose_permissions(place)
            self._stop(place)
            self.emit("server.instance.disposed", {"directory": place}, place)

    # --- called by the HTTP routes --------------------------------------------------------------------------------

    def listed(self, directory: str) -> list[Json]:
        """Return the pending questions of a directory in creation order, also of stopped or deleted sessions."""
        with self.lock:
            return [one for one in self.pending.values() if self._place(one) == directory]

    def reply(self, request_id: str, answers: tuple[tuple[str, ...], ...]) -> None:
        """Answer a pending question; for a stopped or deleted session, only remove it and send the event."""
        with self.lock:
            request = self.pending.pop(request_id)
            session = self.sessions[request["sessionID"]]
            told = {"sessionID": session.id, "requestID": request_id, "answers": [list(one) for one in answers]}
            text = _output(request["questions"], answers)
            live = self._is_live(session, request)
            if live:
                self._end(session, request, lambda: self._completed(session, request, answers))
            self.emit("question.replied", told, session.directory)
            if live:
                self._end(session, request, lambda: self._step_over(session, request, text))

    def reject(self, request_id: str) -> None:
        """Dismiss a pending question, which ends the turn."""
        with self.lock:
            request = self.pending.pop(request_id)
            session = self.sessions[request["sessionID"]]
            live = self._is_live(session, request)
            if live:
                self._end(session, request, lambda: self._dismissed(session, request))
            self.emit("question.rejected", {"sessionID": session.id, "requestID": request_id}, session.directory)
            if live:
                self._end(session, request, lambda: self._step_over(session, request, "", stops=True))

    # --- below here: the caller holds the lock ----------------------------------------------------------------------

    def _there(self, request_id: str) -> None:
        if request_id not in self.pending:
            raise LookupError(f"nothing is asked by {request_id}")

    def _asking(self, session: str | None, directory: str | None, beside: str | None) -> Session:
        if beside is not None:
            session = (self.pending | self.permissions)[beside]["sessionID"]
        return self.sessions[session or self.session(directory=directory)]

    def _end(self, session: Session, request: Json, end: Callable[[], None]) -> None:
        self._end_tool(lambda: self._is_live(session, request), end)

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


def _output(questions: Sequence[Json], answers: Answers) -> str:
    given = [", ".join(one) if one else "Unanswered" for one in answers[: len(questions)]]
    given += ["Unanswered"] * (len(questions) - len(given))
    told = [f'"{asked["question"]}"="{one}"' for asked, one in zip(questions, given, strict=True)]
    return f"User has answered your questions: {', '.join(told)}. You can now continue with the user's answers in mind."
