"""An agent that is seen at work: it takes some seconds for each prompt, uses tools, and ends with words or an error.

It answers prompts of its desk (the scenes) and of the phone alike. The page shows each turn as the agent's own record
has it.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from hermes.sandbox.opencode.server import ScriptedAgent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.commands.demo.scenes import Task
    from hermes.sandbox.opencode.events import Session

WORK_S: Final = 9.0
QUOTED: Final = 300
NAMED: Final = 40
UNNAMED: Final = "New session"

Json = dict[str, Any]
TurnState = Literal["queued", "working", "done", "failed", "stopped"]


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call of a turn; `share` is its part of the time that the turn takes."""

    tool: str
    given: Json
    output: str
    share: float

    @classmethod
    def bash(cls, command: str, output: str, share: float) -> Call:
        """Return the call that runs this command."""
        return cls("bash", {"command": command, "description": command}, output, share)


TESTS: Final = Call.bash("make test", "214 passed", 0.6)
EDIT: Final = Call("edit", {"filePath": "login.py"}, "Edit applied successfully.", 0.4)
ON_PROMPT: Final = (TESTS, EDIT)
ON_ANSWER: Final = (Call("edit", {"filePath": "settings.py"}, "Edit applied successfully.", 0.3),)
ON_TASK: Final = (Call.bash("make test", "214 passed", 0.3),)
PROMPT_CHANGES: Final = ({"file": "login.py", "additions": 12, "deletions": 3},)


@dataclass(frozen=True, slots=True)
class TurnRow:
    """A turn as the agent's record has it: the prompt, the tools that were used, the last words or the error.

    `by_phone`: the prompt came from the phone, else from the desk, `ago_s` seconds before `at_s`.
    """

    key: str
    title: str
    folder: str
    at_s: float
    by_phone: bool
    ago_s: float
    prompt: str
    state: TurnState
    tools: tuple[str, ...] = ()
    words: str = ""


@dataclass(frozen=True, slots=True)
class _Begun:
    """A prompt that the page shows."""

    session: str
    at_s: float
    by_phone: bool
    ago_s: float = 0.0


class WorkingAgent(ScriptedAgent):
    """See the module. A turn that a prompt begins takes `work_s` seconds."""

    def __init__(self, *, directory: str, work_s: float = WORK_S) -> None:
        super().__init__(directory=directory)
        self.finishes = False
        self.work_s = work_s
        self._begun: dict[str, _Begun] = {}
        self._tasks: dict[str, Task] = {}
        self._turn_numbers: dict[str, int] = {}
        self._closing = threading.Event()

    def work_on(self, task: Task, session: str) -> None:
        """Work on a task of the desk, which began long ago and ends soon."""
        with self.lock:
            self._tasks[session] = task
            message_id = self.prompt(session, task.prompt, ago_s=task.ago_s)
            self._begun[message_id] = _Begun(session, time.time(), by_phone=False, ago_s=task.ago_s)

    def take_prompt(self, session_id: str, body: Json) -> None:
        """Take a prompt of the phone; the first one of a session gives it its title."""
        with self.lock:
            begun = _Begun(session_id, time.time(), by_phone=True)
            self._begun.setdefault(str(body.get("messageID")), begun)
            super().take_prompt(session_id, body)
            if self.sessions[session_id].title.startswith(UNNAMED):
                self.retitle(session_id, _shortened(" ".join(_newest_prompt(self.sessions[session_id]).split()), NAMED))

    def turns(self) -> tuple[TurnRow, ...]:
        """Return a row for each prompt so far, in order."""
        with self.lock:
            return tuple(
                _row(self.sessions[begun.session], message, begun)
                for message_id, begun in self._begun.items()
                for message in self.sessions[begun.session].messages
                if message["info"]["id"] == message_id
            )

    def close(self) -> None:
        """End the work, and the server."""
        self._closing.set()
        super().close()

    # --- below here: the caller holds the lock, but in `_perform` ---------------------------------------------------

    def _run(self, session: Session) -> None:
        super()._run(session)
        self._begin_work(session.id, ON_TASK if session.id in self._tasks else ON_PROMPT)

    def _go_on(self, session: Session, text: str) -> None:
        super()._go_on(session, text)
        self._begin_work(session.id, ON_ANSWER)

    def _begin_work(self, session: str, calls: Sequence[Call]) -> None:
        number = self._turn_numbers[session] = self._turn_numbers.get(session, 0) + 1
        self.begin_call(session, calls[0].tool, calls[0].given)
        threading.Thread(target=self._perform, args=(session, number, calls), name="work", daemon=True).start()

    def _perform(self, session: str, number: int, calls: Sequence[Call]) -> None:
        """Do the rest of a turn whose first call has begun, unless it is stopped meanwhile."""
        for call, following in zip(calls, (*calls[1:], None), strict=True):
            if self._closing.wait(call.share * self.work_s):
                return
            with self.lock:
                if self._turn_numbers[session] != number or not self.sessions[session].busy:
                    return
                self.end_calls(session, call.output)
                if following is not None:
                    self.begin_call(session, following.tool, following.given)
                else:
                    self._end_turn(session)

    def _end_turn(self, session: str) -> None:
        task = self._tasks.pop(session, None)
        self.begin_step(session)
        if task is not None and task.failure:
            self.fail(session, *task.failure)
            return
        if task is not None:
            words, changes = task.words, task.changes
        elif self.sessions[session].messages[-1]["info"]["parentID"] in self._begun:
            words, changes = _answer(_newest_prompt(self.sessions[session])), PROMPT_CHANGES
        else:
            words, changes = "Thank you: I went on with your answer, and it is done.", ()
        self.change(session, *changes)
        self.say(session, words)


def _answer(prompt: str) -> str:
    return f"You asked: “{_shortened(prompt, QUOTED)}” I ran the tests, then made the change, and all 214 pass again."


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"


def _text(message: Json) -> str:
    texts = [part.get("text") or part.get("prompt") for part in message["parts"] if not part.get("synthetic")]
    return "\n".join(text for text in texts if text).strip()


def _newest_prompt(session: Session) -> str:
    return _text(next(one for one in reversed(session.messages) if one["info"]["role"] == "user"))


def _row(session: Session, prompt: Json, begun: _Begun) -> TurnRow:
    steps = [one for one in session.messages if one["info"].get("parentID") == prompt["info"]["id"]]
    tools = [part for step in steps for part in step["parts"] if part["type"] == "tool"]
    return TurnRow(
        key=prompt["info"]["id"],
        title=session.title,
        folder=session.directory.rpartition("/")[2],
        at_s=begun.at_s,
        by_phone=begun.by_phone,
        ago_s=begun.ago_s,
        prompt=_text(prompt),
        state=_state(session, steps),
        tools=tuple(part["state"]["input"].get("command") or _named(part) for part in tools),
        words=_said(steps[-1]) if steps else "",
    )


def _named(part: Json) -> str:
    return " ".join([part["tool"], *(str(one) for one in part["state"]["input"].values())])


def _said(step: Json) -> str:
    error = step["info"].get("error")
    if error is None:
        return "\n\n".join(part["text"] for part in step["parts"] if part["type"] == "text")
    status = error["data"].get("statusCode")
    return str(error["data"]["message"]) + (f" ({status})" if status else "")


def _state(session: Session, steps: Sequence[Json]) -> TurnState:
    if not steps:
        return "queued"
    info = steps[-1]["info"]
    if "error" in info:
        return "stopped" if info["error"]["name"] == "MessageAbortedError" else "failed"
    is_newest = steps[-1] is session.messages[-1] or session.messages[-1]["info"]["role"] == "user"
    if info.get("finish") == "stop" or not is_newest:  # a later prompt has taken the turn over
        return "done"
    return "working" if session.busy else "stopped"
