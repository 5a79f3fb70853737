"""Two identical calls of one agent at once: each is an ask of its own, and news of one is no news of the other."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tests.agents.speaking import CLAUDE_CODE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes.sandbox.phone import Phone
    from tests.faults.person import View
    from tests.faults.programs import Programs, Waiting

Json = dict[str, Any]
AGENT: Final = "claude-code"
AGAIN_S: Final = 0.5
ALLOW: Final = "Allow once"


@dataclass
class Twins:
    """Two hooks of Claude Code that were handed the very same, and a person who says the same to both."""

    token: str
    programs: Programs
    phone: Phone
    asks_leave: bool
    called: list[str] = field(default_factory=list)
    _told: set[str] = field(default_factory=set)
    _next_s: float = 0.0

    @property
    def label(self) -> str:
        """What the person taps."""
        return ALLOW if self.asks_leave else f"{self.token}1b"

    def ask(self) -> None:
        """Let both ask."""
        payload = self._payload()
        self.called = [self.programs.start(AGENT, payload, self.token, tells=False) for _ in range(2)]

    def _payload(self) -> Json:
        told = {"session_id": f"ses_{self.token}", "prompt_id": f"prompt_{self.token}", "cwd": "/home/dev/project"}
        if self.asks_leave:
            given = {"command": f"echo {self.token}", "description": "a step"}
            return told | {"hook_event_name": "PermissionRequest", "tool_name": "Bash", "tool_input": given}
        options = [{"label": f"{self.token}1{sign}", "description": ""} for sign in "ab"]
        asked = {"question": f"{self.token}: which?", "header": self.token, "options": options, "multiple": False}
        return CLAUDE_CODE.ask([asked]) | told

    def step(self, view: View) -> None:
        """Tap what is shown; an agent that was answered goes on, and tells what it did."""
        for called in self.called:
            if called not in self._told and self.programs.asks[called].is_answered:
                self._told.add(called)
                self.programs.tell(AGENT, self._news(self.programs.asks[called]))
        if time.monotonic() < self._next_s:
            return
        for message in view.shown():
            if self.token in message.text and any(self.label in label for row in message.labels for label in row):
                self._next_s = time.monotonic() + AGAIN_S
                try:
                    self.phone.tap(message, self.label)
                except LookupError:
                    continue  # it was redrawn under the finger
                return

    def _news(self, waiting: Waiting) -> Json:
        payload = waiting.payload | {"hook_event_name": "PostToolUse"}
        if self.asks_leave:
            return payload
        (news,) = CLAUDE_CODE.tells(waiting.payload, [[self.label]])
        return news

    @property
    def is_over(self) -> bool:
        """Whether both have their answer."""
        return len(self._told) == len(self.called)

    def violations(self) -> Iterator[str]:
        """Each was answered by its own tap, as it was meant."""
        for called in self.called:
            waiting = self.programs.asks[called]
            if not waiting.is_answered:
                yield f"{called}: one of two identical calls got no answer, and its hook {_state(waiting)}"
            elif not self._is_meant(waiting):
                yield f"{called}: its agent was told {waiting.line()[:200]}"

    def _is_meant(self, waiting: Waiting) -> bool:
        if self.asks_leave:
            told = json.loads(waiting.line())["hookSpecificOutput"]["decision"]
            return bool(told["behavior"] == "allow")
        return waiting.took() == ((self.label,),)


def _state(waiting: Waiting) -> str:
    return "waits" if waiting.alive else "has left"
