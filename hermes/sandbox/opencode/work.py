"""The steps of a turn of the scripted agent server. No HTTP here.

A world with `finishes` ends a turn by itself; in one without, these are the steps: tool calls one after the other, and
then words, or an error (`fail`). A prompt that came meanwhile is the prompt of the next step.
"""

from __future__ import annotations

from hermes.sandbox.opencode.events import Json, Session
from hermes.sandbox.opencode.prompts import Prompts
from hermes.sandbox.opencode.turns import newest_of_model, open_parts, session_json


class Work(Prompts):
    """See the module."""

    def prompt(self, session: str, text: str, *, ago_s: float = 0.0) -> str:
        """Prompt at the desk, and return the id of the message; the record says that it was so long ago."""
        with self.lock:
            prompted, at_ms = self.sessions[session], self.now_ms() - int(ago_s * 1000)
            message = self._message(prompted, "user", [{"type": "text", "text": text}], at_ms=at_ms)
            self._tell_parts(prompted, message)
            if not prompted.busy:
                self._run(prompted)
            return str(message["info"]["id"])

    def begin_call(self, session: str, tool: str, given: Json) -> None:
        """Begin a tool call, in the step that is open, or in a new one."""
        with self.lock:
            step = self._step(self.sessions[session])
            step["parts"] += self._named(
                self.sessions[session], step["info"]["id"], [self._call(tool, self.new_id("call"), given)]
            )
            self._tell_parts(self.sessions[session], step)

    def end_calls(self, session: str, output: str) -> None:
        """End the tool calls that run, all with this output, and their step with them."""
        with self.lock:
            working = self.sessions[session]
            for part in open_parts(working):
                ended = {"status": "completed", "output": output, "title": part["tool"], "metadata": {}}
                self._ended(working, {"tool": part}, ended)
            self._complete(working, newest_of_model(working), "tool-calls")

    def begin_step(self, session: str) -> None:
        """Ask the model for its next step; one that is open stays."""
        with self.lock:
            self._step(self.sessions[session])

    def say(self, session: str, words: str) -> None:
        """End the turn with these words."""
        with self.lock:
            speaking = self.sessions[session]
            step = self._step(speaking)
            step["parts"] += self._named(speaking, step["info"]["id"], [{"type": "text", "text": words}])
            self._tell_parts(speaking, step)
            self.finish(session)

    def retitle(self, session: str, title: str) -> None:
        """Give the session another title, as OpenCode does after the first prompt."""
        with self.lock:
            named = self.sessions[session]
            named.title = title
            self.emit("session.updated", {"info": session_json(named, self.version)}, named.directory)

    # --- below here: the caller holds the lock ----------------------------------------------------------------------

    def _step(self, session: Session) -> Json:
        return self._open_answer(session) or self._message(session, "assistant", [])
