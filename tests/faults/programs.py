"""Agents that ask by a hook of their own which waits: Claude Code, oh-my-pi, Neovate, and a program of any kind.

Each ask is one hook. What the hook prints takes effect, once; where it leaves without a word, the agent asks at its
desk alone, and nothing comes of the ask from here.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tests.agents.speaking import SPEAKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.agents.speaking import Speaking
    from tests.faults.asks import Answers, Ask, Json

NAMES: Final = ("claude-code", "generic", "oh-my-pi", "neovate")
REFUSED: Final = "refused"


@dataclass
class Waiting:
    """One hook that waits, or did."""

    speaking: Speaking
    payload: Json
    process: subprocess.Popen[bytes]
    out: Path
    told: bool = False
    """Whether the agent has told what it took for an answer, or leaves that to others."""
    printed_s: float = 0.0
    """When the hook printed its line, by the wall's clock; known once the agent tells of it."""
    late_s: float = 0.0
    """How long after the printed line all that the agent told of it was handed over."""

    def line(self) -> str:
        """Return what it printed, "" where that is nothing yet."""
        text = self.out.read_text(encoding="utf-8")
        return text.partition("\n")[0] if "\n" in text else ""

    def took(self) -> Answers | None:
        """Return what the agent takes for its answer: None is a no."""
        answers = self.speaking.took(self.payload, self.line())
        return None if answers is None else tuple(tuple(one) for one in answers)

    @property
    def alive(self) -> bool:
        """Whether it still waits."""
        return self.process.poll() is None

    @property
    def is_answered(self) -> bool:
        """Whether it printed more than that it has nothing to say."""
        line = self.line()
        return line not in {"", "{}"} and json.loads(line).get("kind") != REFUSED


@dataclass
class Programs:
    """Asks by their request ids. `command` is `hermes hook`, without the name of an agent and what follows it."""

    command: Sequence[str]
    options: Sequence[str]
    environ: dict[str, str]
    folder: Path
    directory: str
    asks: dict[str, Waiting] = field(default_factory=dict)
    news: list[tuple[subprocess.Popen[bytes], Waiting | None]] = field(default_factory=list)
    """The hooks that bring news, each with the ask that it is about, if that is known."""
    started: int = 0

    def ask(self, ask: Ask) -> None:
        """Let the agent that `ask.agent` names ask."""
        questions = [{"multiple": False, **one} for one in ask.questions]
        ask.session = ask.session or f"ses_{ask.token}"
        payload = SPEAKING[ask.agent].ask(questions)
        named = {"session_id": ask.session, "prompt_id": f"prompt_{ask.token}", "session": ask.session}
        payload |= {key: name for key, name in named.items() if key in payload}
        ask.request_id = self.start(ask.agent, payload, ask.token)

    def start(self, name: str, payload: Json, token: str, *, tells: bool = True) -> str:
        """Let an agent's hook wait, and return what it is called here. `tells`: it tells of its answer by itself."""
        self.started += 1
        called = f"{token}-{self.started}"
        out = self.folder / f"program-{called}.out"
        self.asks[called] = Waiting(SPEAKING[name], payload, self._run(name, payload, out), out, told=not tells)
        return called

    def tell(self, name: str, payload: Json, about: Waiting | None = None) -> None:
        """Let a hook bring news, without an ask of its own."""
        process = self._run(name, payload, self.folder / "news.out")
        assert process.stdin is not None
        process.stdin.close()
        self.news.append((process, about))

    def step(self) -> None:
        """Let the agents tell what came of their asks, once."""
        for waiting in self.asks.values():
            if not waiting.told and waiting.is_answered:
                waiting.told = True
                waiting.printed_s = waiting.out.stat().st_mtime
                took = waiting.took()
                answers = None if took is None else [list(one) for one in took]
                for payload in waiting.speaking.tells(waiting.payload, answers):
                    self.tell(waiting.speaking.name, payload, waiting)
        under_way = [(process, about) for process, about in self.news if process.poll() is None]
        for _, about in self.news:
            if about is not None:
                about.late_s = time.time() - about.printed_s
        self.news = under_way

    def came_of(self, called: str) -> list[Answers | None]:
        """Return every effect that an ask had."""
        waiting = self.asks[called]
        return [waiting.took()] if waiting.is_answered else []

    def kill(self, called: str) -> bool:
        """End an agent together with its hook, and tell whether its ask was still open."""
        waiting = self.asks[called]
        was_open = waiting.alive and not waiting.is_answered
        if waiting.alive:
            waiting.process.kill()
        return was_open and not waiting.is_answered

    @property
    def idle(self) -> bool:
        """Whether all news was handed over."""
        return not self.news

    def forget(self, called: str) -> None:
        """Let go of an ask that is over, and of its hook."""
        waiting = self.asks.pop(called)
        end(waiting.process)
        waiting.out.unlink(missing_ok=True)

    def close(self) -> None:
        """End every hook."""
        for process in [*(waiting.process for waiting in self.asks.values()), *(process for process, _ in self.news)]:
            end(process)

    def _run(self, name: str, payload: Json, out: Path) -> subprocess.Popen[bytes]:
        with out.open("wb") as printed:
            process = subprocess.Popen(
                [*self.command, name, *self.options], stdin=subprocess.PIPE, stdout=printed, stderr=subprocess.DEVNULL,
                env=self.environ, cwd="/", start_new_session=True,
            )  # fmt: skip
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # a hook that ends by itself says so in other ways
            process.stdin.write(json.dumps(payload | {"cwd": self.directory}).encode() + b"\n")
            process.stdin.flush()
        return process


def end(process: subprocess.Popen[bytes]) -> None:
    """End a hook, if it lives."""
    if process.poll() is None:
        process.kill()
    process.wait()
    for pipe in (process.stdin, process.stderr):
        if pipe:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
