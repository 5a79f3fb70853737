"""A terminal without a port: asks that live in the driver, and the hooks that its plugin would start.

It keeps to what the plugin does: one hook after another in the order of the events; the hook of a question stays
until the question is settled, and is started again when it dies; what it prints is applied once, if the question is
still there; a hook that was killed, or found the disk full, before it could keep its payload is run again. The same
plugin can run beside a server that Hermes follows, too: then the question lives there.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.faults.programs import end

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.faults.asks import Answers, Ask, Json

AGAIN_S = 0.3
TRIES = 5
KEPT = b"kept\n"


@dataclass
class _Hook:
    process: subprocess.Popen[bytes]
    out: Path

    def printed(self) -> str:
        text = self.out.read_text(encoding="utf-8")
        return text.partition("\n")[0] if "\n" in text else ""


@dataclass
class Pending:
    """A question that waits at this terminal, or did."""

    ask: Ask
    line: str
    settle: Callable[[Answers | None], bool]
    """Answers the question, or dismisses it; tells whether it was still there."""
    open: bool = True
    hook: _Hook | None = None
    again_s: float = 0.0
    applied: _Hook | None = None


@dataclass
class _Job:
    line: str
    tries: int = 0
    again_s: float = 0.0
    process: subprocess.Popen[bytes] | None = None


@dataclass
class Terminal:
    """Asks by their request ids. `command` starts a hook; `step` is to be called often."""

    command: Sequence[str]
    environ: dict[str, str]
    folder: Path
    directory: str
    asks: dict[str, Pending] = field(default_factory=dict)
    effects: dict[str, list[Answers | None]] = field(default_factory=dict)
    jobs: list[_Job] = field(default_factory=list)
    _count: int = 0

    # --- what the agent and its desk do ---------------------------------------------------------------------

    def ask(self, ask: Ask) -> None:
        """Ask; its hook waits from now on."""
        self._count += 1
        ask.request_id = f"que_{self._count:04d}{os.urandom(11).hex()}"
        ask.session = ask.session or f"ses_{os.urandom(13).hex()}"
        request = {
            "id": ask.request_id,
            "sessionID": ask.session,
            "questions": ask.questions,
            "tool": {"messageID": f"msg_{os.urandom(13).hex()}", "callID": f"call_{ask.token}"},
        }
        self.attend(ask, request, lambda answers: self.settle(ask.request_id, answers))

    def attend(self, ask: Ask, request: Json, settle: Callable[[Answers | None], bool]) -> None:
        """Let a hook wait for the answer to this question."""
        self.asks[ask.request_id] = Pending(ask, self._line("question.asked", request), settle)

    def settle(self, request_id: str, answers: Answers | None) -> bool:
        """Answer, or dismiss: at the desk, or with what a hook printed. Tells whether it was still there."""
        if not self.asks[request_id].open:
            return False
        self.effects.setdefault(request_id, []).append(answers)
        self.settled(request_id, answers)
        return True

    def settled(self, request_id: str, answers: Answers | None) -> None:
        """The question was answered, or dismissed: tell Hermes, once."""
        pending = self.asks[request_id]
        told: Json = {"sessionID": pending.ask.session, "requestID": request_id}
        if answers is None:
            self._close(pending, "question.rejected", told)
        else:
            self._close(pending, "question.replied", {**told, "answers": answers})

    def abort(self, request_id: str) -> bool:
        """Let the session stop: nobody waits for the answer any more. Tells whether somebody did."""
        pending = self.asks[request_id]
        was_open = pending.open
        self._close(pending, "session.idle", {"sessionID": pending.ask.session, "requestID": request_id})
        return was_open

    def came_of(self, request_id: str) -> list[Answers | None]:
        """Return every effect that a request had."""
        return self.effects.get(request_id, [])

    # --- what the plugin does --------------------------------------------------------------------------------

    def step(self) -> None:
        """Look after all hooks once."""
        for pending in self.asks.values():
            if pending.open:
                self._attend(pending)
        self._run_jobs()

    @property
    def idle(self) -> bool:
        """Tell whether every event was handed over."""
        return not self.jobs

    def forget(self, request_id: str) -> None:
        """Let go of a question that is over, and of its hook."""
        pending = self.asks.pop(request_id)
        if pending.hook is not None:
            end(pending.hook.process)
            pending.hook.out.unlink(missing_ok=True)

    def hooks(self) -> list[int]:
        """Return the process ids of the waiting hooks that live."""
        found = [pending.hook for pending in self.asks.values() if pending.hook]
        return [hook.process.pid for hook in found if hook.process.poll() is None]

    def runners(self) -> list[int]:
        """Return the process ids of the other hooks that live."""
        return [job.process.pid for job in self.jobs if job.process and job.process.poll() is None]

    def close(self) -> None:
        """End every hook."""
        hooks = [pending.hook.process for pending in self.asks.values() if pending.hook]
        for process in [*hooks, *(job.process for job in self.jobs if job.process)]:
            end(process)

    def _attend(self, pending: Pending) -> None:
        hook = pending.hook
        dead = hook is None or hook.process.poll() is not None  # looked at first: its last words are not missed
        printed = hook.printed() if hook else ""
        if dead and time.monotonic() >= pending.again_s:
            pending.again_s = time.monotonic() + AGAIN_S
            if hook is not None:
                end(hook.process)
            pending.hook = self._started(pending.line, "--wait", "--stay")
        if printed and hook is not pending.applied:
            pending.applied = hook
            told: dict[str, Any] = json.loads(printed)
            asked = pending.ask.request_id
            assert told["requestID"] == asked, f"the hook of {asked} printed an answer to {told['requestID']}"
            answers = tuple(tuple(one) for one in told["answers"]) if told["kind"] == "reply" else None
            pending.settle(answers)

    def _close(self, pending: Pending, kind: str, properties: Json) -> None:
        if not pending.open:
            return
        pending.open = False
        if pending.hook is not None and pending.hook.process.poll() is None:
            pending.hook.process.send_signal(signal.SIGTERM)
        self.jobs.append(_Job(self._line(kind, properties)))

    def _run_jobs(self) -> None:
        """Hand events over, one after another; one that was killed on the way is handed over again."""
        while self.jobs:
            job = self.jobs[0]
            if job.process is None:
                job.process = self._started(job.line).process
                assert job.process.stdin is not None
                job.process.stdin.close()
                return
            if job.process.poll() is None:
                return
            assert job.process.stderr is not None
            if job.process.stderr.read() == KEPT or job.tries >= TRIES:
                end(job.process)
                self.jobs.pop(0)
            elif time.monotonic() > job.again_s:
                end(job.process)
                job.tries, job.process, job.again_s = job.tries + 1, None, time.monotonic() + AGAIN_S * 2**job.tries
            else:
                return

    def _started(self, line: str, *options: str) -> _Hook:
        self._count += 1
        out = self.folder / f"hook-{self._count}.out"
        with out.open("wb") as printed:
            process = subprocess.Popen(
                [*self.command, *options],
                stdin=subprocess.PIPE,
                stdout=printed,
                stderr=subprocess.PIPE,
                env=self.environ,
                cwd="/",
                start_new_session=True,
            )
        assert process.stdin is not None
        process.stdin.write(line.encode())
        process.stdin.flush()
        return _Hook(process, out)

    def _line(self, kind: str, properties: Json) -> str:
        context = {"title": "At a terminal", "rootTitle": "", "lastText": ""}
        told = {"type": kind, "properties": properties, "directory": self.directory, "context": context}
        return json.dumps(told) + "\n"
