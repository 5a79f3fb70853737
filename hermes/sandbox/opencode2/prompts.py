"""The prompts of the stand-in for OpenCode 2: admitted under an id, kept in the inbox, given to the model once.

A prompt is in the inbox until a turn takes it. From then on it is a message under the same id. "steer" prompts are
taken at the next step of the turn that runs, "queue" prompts one by one, each in a turn of its own. An interrupted turn
leaves the inbox as it is, and the next prompt wakes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hermes.sandbox.opencode.events import Json, Session
from hermes.sandbox.opencode2.turns import Shape, Turns

Delivery = Literal["steer", "queue"]


class ConflictError(Exception):
    """Another record has this id."""


@dataclass(slots=True)
class Prompt:
    """A prompt. `is_taken`: a turn has taken it. `is_read`: it went to the model."""

    id: str
    session_id: str
    text: str
    delivery: Delivery
    at_ms: int
    more: Mapping[str, Any] = field(default_factory=dict)
    is_taken: bool = False
    is_read: bool = False


class Prompts(Turns):
    """See the module. If `holds_prompts`, the turn that a prompt starts takes it only at `deliver`."""

    def __init__(self, directory: str, now: Callable[[], float], shape: Shape) -> None:
        super().__init__(directory, now)
        self.shape: Shape = shape
        self.prompts: dict[str, Prompt] = {}
        self.holds_prompts = False
        self._texts: list[tuple[str, str]] = []

    # --- what the model does ----------------------------------------------------------------------------------------

    def use_tool(self, session: str, tool: str, given: Mapping[str, Any] | None = None) -> str:
        """Let the model begin a tool call that runs until `say`, and return the id of its message."""
        with self.lock:
            return str(self._call(self.sessions[session], tool, dict(given or {}))["messageID"])

    def say(self, session: str, text: str) -> None:
        """Let the model end its last step with these words: the calls that ran have succeeded."""
        with self.lock:
            speaking = self.sessions[session]
            for message in speaking.messages:
                running = [one for one in message.get("content", ()) if one.get("state", {}).get("status") == "running"]
                for part in running:
                    part["state"] |= {"status": "completed", "content": []}
                if running:
                    self._complete(message, "tool-calls")
            self._complete(self._message(speaking, [{"type": "text", "text": text}]), "stop")
            self._over(speaking)

    def deliver(self, session: str) -> None:
        """Let the turn that has started take the prompts that wait."""
        with self.lock:
            self._take(self.sessions[session], queued=True)

    def texts_of(self, session: str) -> list[str]:
        """Return the texts of the prompts that went to the model, each as often as it did."""
        with self.lock:
            return [text for one, text in self._texts if one == session]

    # --- what clients do --------------------------------------------------------------------------------------------

    def prompt(self, session: str, text: str, *, delivery: Delivery = "steer") -> str:
        """Send a prompt from the desk, and return its id."""
        return str(self.admit(session, self.new_id("msg"), text, delivery)["id"])

    def admit(
        self,
        session: str,
        prompt_id: str,
        text: str,
        delivery: Delivery,
        *,
        more: Mapping[str, Any] | None = None,
        resumes: bool = True,
    ) -> Json:
        """Keep a prompt, unless it is known, and wake the session; return the record. Raises ConflictError."""
        with self.lock:
            known, more = self.prompts.get(prompt_id), dict(more or {})
            if known is None:
                known = self._admitted(Prompt(prompt_id, session, text, delivery, self.now_ms(), more))
            elif known.session_id != session or (self.shape == "august" and (known.text, known.more) != (text, more)):
                raise ConflictError(prompt_id)
            record = self._record(known)
            if resumes:
                self._wake(self.sessions[session])
            return record

    def inbox(self, session: str) -> list[Json]:
        """Return the prompts that wait, in the order in which they came."""
        with self.lock:
            return [self._record(one) for one in self._waiting(session)]

    def withdraw(self, session: str, prompt_id: str) -> None:
        """Remove a prompt from the inbox, if it is there."""
        with self.lock:
            if prompt_id in {one.id for one in self._waiting(session)}:
                del self.prompts[prompt_id]
                self._tell_inbox("inbox.cancelled", session, prompt_id)

    def redirect(self, session: str, prompt_id: str, delivery: Delivery) -> None:
        """Change how a prompt is delivered; "steer" wakes the session. Raises ConflictError: it does not wait so."""
        with self.lock:
            if prompt_id not in {one.id for one in self._waiting(session) if one.delivery != delivery}:
                raise ConflictError(prompt_id)
            self.prompts[prompt_id].delivery = delivery
            self._tell_inbox("inbox.delivery.changed", session, prompt_id, {"delivery": delivery})
            if delivery == "steer":
                self._wake(self.sessions[session])

    def steer_on(self, session: str) -> None:
        """Take the "steer" prompts that an interrupted turn has left."""
        with self.lock:
            if any(one.delivery == "steer" for one in self._waiting(session)):
                self._wake(self.sessions[session])

    # --- below here: the caller holds the lock ----------------------------------------------------------------------

    def _admitted(self, prompt: Prompt) -> Prompt:
        if any(prompt.id == one["id"] for session in self.sessions.values() for one in session.messages):
            raise ConflictError(prompt.id)
        self.prompts[prompt.id] = prompt
        self.sessions[prompt.session_id].updated_ms = prompt.at_ms
        record = self._record(prompt)
        content = "data" if self.shape == "august" else "payload"
        told = {key: record[key] for key in ("type", content, "delivery")}
        if self.shape == "august":
            self._tell_inbox("input.admitted", prompt.session_id, prompt.id, {"input": told})
        else:
            self._tell_inbox("inbox.enqueued", prompt.session_id, prompt.id, {"item": told})
        return prompt

    def _record(self, prompt: Prompt) -> Json:
        content = {"text": prompt.text, **prompt.more}
        one: Json = {"id": prompt.id, "sessionID": prompt.session_id, "type": "user", "delivery": prompt.delivery}
        if self.shape == "august":
            return one | {"timeCreated": prompt.at_ms, "data": content}
        return one | {"time": {"created": prompt.at_ms}, "payload": content}

    def _waiting(self, session: str) -> list[Prompt]:
        return [one for one in self.prompts.values() if one.session_id == session and not one.is_taken]

    def _wake(self, session: Session) -> None:
        """Start a turn if none runs. It ends at once if nothing waits."""
        if session.busy:
            return
        self._start(session)
        if self.holds_prompts and self._waiting(session.id):
            return
        if not self._take(session, queued=True):
            self._ended(session, "succeeded")

    def _take(self, session: Session, *, queued: bool) -> bool:
        """Take all "steer" prompts; if there is none, and `queued`, one of the others. Tell whether one was taken."""
        waiting = self._waiting(session.id)
        taken = [one for one in waiting if one.delivery == "steer"] or (waiting[:1] if queued else [])
        for one in taken:
            one.is_taken, one.at_ms = True, self.now_ms()
            message = {"id": one.id, "type": "user", "time": {"created": one.at_ms}, "text": one.text, **one.more}
            session.messages.append(message)
            self._tell_inbox("input.promoted" if self.shape == "august" else "inbox.delivered", session.id, one.id)
        return bool(taken)

    def _message(self, session: Session, content: list[Json]) -> Json:
        self._take(session, queued=False)
        for one in self.prompts.values():
            if one.session_id == session.id and one.is_taken and not one.is_read:
                one.is_read = True
                self._texts.append((session.id, one.text))
        return super()._message(session, content)

    def _over(self, session: Session) -> None:
        if not self._take(session, queued=True):
            super()._over(session)

    def _tell_inbox(self, kind: str, session: str, prompt_id: str, more: Json | None = None) -> None:
        key = "inputID" if self.shape == "august" else "inboxID"
        told = {"sessionID": session, key: prompt_id, **(more or {})}
        self.tell(f"session.{kind}", told, self.sessions[session].directory)
