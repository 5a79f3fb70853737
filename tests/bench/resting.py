"""What Hermes takes while nothing happens."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from tests.bench.agents import ScriptedProcess
from tests.bench.figures import Effort, Figure
from tests.bench.probes import PASS, Memory, cpu_share, memory, settle
from tests.scenes.stage import Stage, question, staged

SERVERS: Final = 3


def figures(effort: Effort) -> tuple[Figure, ...]:
    """Return what is to be measured."""
    return (
        Figure("listener memory, idle", "MB", 60.0),
        Figure("memory of a waiter", "MB", 14.0),
        Figure(f"listener CPU, idle, {effort.idle_s:g} s, {SERVERS} servers connected", "% of a core", 0.3),
    )


def measure(effort: Effort, root: Path) -> list[Figure]:
    """A listener that follows three servers, then hooks that wait beside it."""
    idle, waiter, busy = figures(effort)
    with staged(root) as stage, ExitStack() as servers:
        for number in range(SERVERS):
            url = servers.enter_context(ScriptedProcess()).url
            stage.servers.append({"name": f"desk-{number}", "url": url})
        listener = stage.start(log={"level": "info", "file": str(stage.log)})
        settle(listener.pid, look_s=effort.settle_s)
        held = memory(listener.pid)
        share = cpu_share(listener.pid, effort.idle_s)
        waiting = [_waiter(stage, number, effort) for number in range(effort.waiters)]
    return [
        idle.measured(held.rss, note=f"RSS; PSS {held.pss:.1f} MB"),
        waiter.measured(*(one.rss for one in waiting), note=f"RSS; PSS {waiting[0].pss:.1f} MB"),
        busy.measured(share),
    ]


def _waiter(stage: Stage, number: int, effort: Effort) -> Memory:
    with _waiting(stage, number) as hook:
        settle(hook.pid, look_s=effort.settle_s)
        return memory(hook.pid)


@contextmanager
def _waiting(stage: Stage, number: int) -> Iterator[subprocess.Popen[bytes]]:
    """A hook that waits for an answer, as the plugin starts it."""
    properties = {"id": f"que_{number}", "sessionID": "ses_bench", "questions": [question()]}
    payload = {"type": "question.asked", "properties": properties, "directory": "/home/dev", "context": {}}
    paths = ("--store", str(stage.store), "--log", str(stage.log), "--config", str(stage.config))
    hook = subprocess.Popen(
        [PASS[0], "-I", "-m", "hermes", "hook", "opencode", *paths, "--wait", "--stay"],
        env=stage.environ(), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    with hook:
        assert hook.stdin is not None
        assert hook.stderr is not None
        hook.stdin.write(json.dumps(payload).encode() + b"\n")
        hook.stdin.flush()
        assert hook.stderr.readline() == b"kept\n"
        yield hook
