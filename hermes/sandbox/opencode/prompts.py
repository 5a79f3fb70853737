"""The prompts of the scripted agent server, as OpenCode 1.1.53 and 1.18.33 take them. No HTTP here.

Seen in both versions: a prompt is accepted before it is recorded, and can be lost in between. One with an id that the
session has replaces its parts of the same ids, and is answered if the session is idle and its last turn did not answer
it. One that comes while a turn runs goes to the model with the next step, whose prompt it then is.

1.1.53 orders messages by their ids, and never answers one that sorts before the model's newest message. 1.18.33 orders
them by the time at which they came (last).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final

from hermes.sandbox.opencode.events import Json, Session
from hermes.sandbox.opencode.turns import Turns, newest_of_model, open_parts, session_json

HINT: Final = " Use the above message and context to generate a prompt and call the task tool with subagent: "
_MODES: Final = {"build": "primary", "explore": "subagent", "general": "subagent", "plan": "primary"}
_HIDDEN: Final = ("compaction", "summary", "title")


class Prompts(Turns):
    """The prompts, the texts that the model got, the steps of a turn, and the project's agents and commands.

    A world with `finishes` ends a turn by itself. In one without, these are its steps: tool calls one after the other
    (`begin_call`, `end_calls`), then words (`say`), or an error (`fail`).
    """

    def __init__(self, *world: Any, **seams: Any) -> None:
        super().__init__(*world, **seams)
        self.agents: list[Json] = [{"name": name, "mode": mode, "native": True} for name, mode in _MODES.items()]
        self.agents += [{"name": name, "mode": "primary", "native": True, "hidden": True} for name in _HIDDEN]
        for agent in self.agents:  # the real ones have longer lists
            action = "deny" if agent.get("hidden") else "allow"
            agent["permission"] = [{"permission": "*", "pattern": "*", "action": action}]
        self.commands: list[Json] = []
        self._requests: list[tuple[str, tuple[str, ...]]] = []
        self._held_prompts: list[tuple[str, Json]] | None = None
        self._swallows = False
        self._slow: set[str] = set()
        self._read: set[str] = set()
        self._texts: list[tuple[str, str, tuple[str, ...]]] = []

    # --- actions of the agent -------------------------------------------------------------------------------------

    def finish(self, session: str) -> None:
        """End the session's turn; a prompt that came while the model wrote its answer is answered now."""
        with self.lock:
            working = self.sessions[session]
            answer = self._open_answer(working)
            if answer is not None:
                self._complete(working, answer, "stop")
                if _prompts(working)[-1]["info"]["id"] != answer["info"]["parentID"]:
                    self._run(working)
                    return
            self._rest(working)

    def swallow_prompts(self, *, on: bool) -> None:
        """Record prompts and answer none, as if their model were unknown; or answer them again."""
        self._swallows = on

    def take_time(self, session: str) -> None:
        """Let each turn that a prompt begins in this session last until `finish`."""
        self._slow.add(session)

    def command(self, name: str, template: str, **more: Any) -> None:
        """Define a command of the project."""
        with self.lock:
            self.commands.append({"name": name, "template": template, "source": "command", "hints": [], **more})

    # --- a turn, step by step -------------------------------------------------------------------------------------

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

    # --- holding prompts, and what the model got --------------------------------------------------------------------

    def hold_prompts(self) -> None:
        """Accept prompts, and record none until `release_prompts`."""
        with self.lock:
            self._held_prompts = self._held_prompts or []

    def release_prompts(self, *, lost: bool = False) -> None:
        """Record the held prompts, or drop them (`lost`)."""
        with self.lock:
            held, self._held_prompts = self._held_prompts or [], None
            for session_id, body in () if lost else held:
                self._take(session_id, body)

    def requests(self, word: str) -> list[tuple[str, ...]]:
        """Return the user's texts in each request to the model for a prompt, if one of them has this word."""
        with self.lock:
            return [texts for _, texts in self._requests if any(word in text for text in texts)]

    def request_count_of(self, session: str) -> int:
        """Return how often the model was asked for prompts of this session."""
        with self.lock:
            return sum(asked == session for asked, _ in self._requests)

    def texts_of(self, session: str) -> list[str]:
        """Return the texts of the prompts that went to the model, each as often as it was to be answered."""
        with self.lock:
            return [text for asked, text, _ in self._texts if asked == session]

    def files_of(self, session: str) -> list[tuple[str, ...]]:
        """Return, for each text of `texts_of`, the SHA-256 (hex) of the URLs of its files, in their order."""
        with self.lock:
            return [files for asked, _, files in self._texts if asked == session]

    # --- called by the HTTP routes --------------------------------------------------------------------------------

    def take_prompt(self, session_id: str, body: Json) -> None:
        """Take a prompt: it is recorded now, or at `release_prompts`."""
        with self.lock:
            if self._held_prompts is None:
                self._take(session_id, body)
            else:
                self._held_prompts.append((session_id, body))

    # --- below here: the caller holds the lock ----------------------------------------------------------------------

    def _stop(self, place: str | None = None) -> None:
        if place is None:
            self._held_prompts = None if self._held_prompts is None else []
        super()._stop(place)

    def _turn(self, session: Session, parts: list[Json], *, same_step: bool) -> Json:
        return super()._turn(session, parts, same_step=same_step or self._open_answer(session) is not None)

    def _go_on(self, session: Session, text: str) -> None:
        self._ask_model(session)
        super()._go_on(session, text)

    def _open_answer(self, session: Session) -> Json | None:
        """Return the model's answer to a prompt if it is being written; None if it calls a tool, or none is."""
        newest = next((one for one in reversed(session.messages) if one["info"]["role"] == "assistant"), None)
        if not session.busy or newest is None or "completed" in newest["info"]["time"] or open_parts(session):
            return None
        return newest

    def _take(self, session_id: str, body: Json) -> None:
        session = self.sessions.get(session_id)
        if session is None or session.deleted:
            return
        message_id, parts = body.get("messageID"), _parts(body["parts"])
        known = next((one for one in session.messages if one["info"]["id"] == message_id), None)
        message = self._message(session, "user", parts, message_id) if known is None else known
        if known is not None:
            self._replace(session, known, parts)
        self._tell_parts(session, message)
        if body.get("noReply") or session.busy:
            return
        if self._is_answered(session, message):
            self._rest(session)
        else:
            self._run(session)

    def _replace(self, session: Session, message: Json, parts: list[Json]) -> None:
        """Put parts in the place of those with the same ids, others behind them; the message is now of this time."""
        info = message["info"]
        kept = {part["id"]: part for part in message["parts"]}
        message["parts"] = list(
            (kept | {part["id"]: part for part in self._named(session, info["id"], parts)}).values()
        )
        info["time"]["created"] = self.now_ms()
        if self.manner == "new":
            session.messages.remove(message)
            session.messages.append(message)
        self.emit("message.updated", {"info": info, "sessionID": session.id}, session.directory)

    def _is_answered(self, session: Session, prompt: Json) -> bool:
        """Tell whether OpenCode takes this prompt for answered: by its id (1.1.53), or by the newest answer's."""
        if all(one["info"]["role"] == "user" for one in session.messages):
            return False
        newest = newest_of_model(session)["info"]
        if newest.get("finish") in {None, "tool-calls"}:
            return False
        ours = str(prompt["info"]["id"])
        return bool(newest["id"] > ours if self.manner == "old" else newest["parentID"] == ours)

    def _run(self, session: Session) -> None:
        self._busy(session)
        if self._swallows:
            self._rest(session)
            return
        prompt = _prompts(session)[-1]
        for part in prompt["parts"]:
            if part["type"] == "subtask":
                self._do_task(session, part)
        self._read.discard(prompt["info"]["id"])
        if self.finishes and session.id not in self._slow:
            self._go_on(session, _text(prompt))
        else:
            self._ask_model(session)
            self._message(session, "assistant", [])

    def _do_task(self, session: Session, part: Json) -> None:
        self.session(
            f"{part['description']} (@{part['agent']} subagent)", directory=session.directory, parent=session.id
        )
        call = self._call("task", self.new_id("call"), {"prompt": part["prompt"], "subagent_type": part["agent"]})
        step = self._message(session, "assistant", [call])
        step["parts"][0]["state"] |= {"status": "completed", "output": "Done.", "metadata": {}}
        self._tell_parts(session, step)
        self._complete(session, step, "tool-calls")

    def _step(self, session: Session) -> Json:
        return self._open_answer(session) or self._message(session, "assistant", [])

    def _ask_model(self, session: Session) -> None:
        prompts = _prompts(session)
        self._requests.append((session.id, tuple(_text(one) for one in prompts)))
        fresh = [one for one in prompts if one["info"]["id"] not in self._read]
        self._texts += [(session.id, _text(one), _files(one)) for one in fresh]
        self._read |= {one["info"]["id"] for one in fresh}


def _parts(given: Sequence[Json]) -> list[Json]:
    """Return the parts of a prompt as OpenCode keeps them: a mentioned agent brings a hint to the model."""
    kept: list[Json] = []
    for part in given:
        kept.append(dict(part))
        if part["type"] == "agent":
            kept.append({"type": "text", "text": f"{HINT}{part['name']}", "synthetic": True})
    return kept


def _prompts(session: Session) -> list[Json]:
    return [one for one in session.messages if one["info"]["role"] == "user"]


def _text(message: Json) -> str:
    texts = [part.get("text") or part.get("prompt") for part in message["parts"]]
    return "\n".join(text for text in texts if text)


def _files(message: Json) -> tuple[str, ...]:
    urls = [str(part.get("url", "")) for part in message["parts"] if part["type"] == "file"]
    return tuple(hashlib.sha256(url.encode()).hexdigest() for url in urls)
