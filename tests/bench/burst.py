"""Very many questions at once: how long until all are on the phone, and what they weigh there."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hermes.hook import spool
from hermes.sandbox.botapi.rates import ALL_BURST, ALL_WINDOW_S, CHAT_BURST, CHAT_WINDOW_S
from hermes.sandbox.phone_values import Call
from tests.bench import scaled_listener
from tests.bench.figures import Effort, Figure
from tests.bench.probes import cpu_share, memory, settle
from tests.harness.processes import Proc, until
from tests.scenes.stage import Json, Stage, question, staged

PATIENCE_S: Final = 600.0
CPU_OVER_S: Final = 10.0
OK: Final = 200


def figures(effort: Effort) -> tuple[Figure, ...]:
    """Return what is to be measured."""
    many = f"{effort.at_once:,}"
    rates = f"rates × {effort.rate_scale:g}"
    return (
        Figure(f"{many} questions at once: last ask to all posted, against what Telegram's {rates} allow", "×", 1.2),
        Figure(f"listener memory with {many} open", "MB", 90.0),
        Figure(f"listener CPU with {many} open and nothing to do", "% of a core"),
    )


def measure(effort: Effort, root: Path) -> list[Figure]:
    """Drop the questions as hooks do, and wait until a Bot API that keeps Telegram's rates has taken them all."""
    posted, weight, busy = figures(effort)
    with staged(root, rate_scale=effort.rate_scale) as stage:
        listener = listening(stage, effort.rate_scale)
        asked_s = [_ask(stage, number) for number in range(effort.at_once)]
        until(lambda: _posted(stage) >= effort.at_once, PATIENCE_S, "all questions on the phone", every_s=0.5)
        calls = stage.phone.calls("sendMessage")
        settle(listener.pid, look_s=effort.settle_s, most_ticks=math.inf)  # its clock looks at each of them
        held = memory(listener.pid)
        share = cpu_share(listener.pid, min(CPU_OVER_S, effort.idle_s))
    return [
        _compared(posted, asked_s, calls, effort.rate_scale),
        weight.measured(held.rss, note=f"RSS; PSS {held.pss:.1f} MB"),
        busy.measured(share),
    ]


def _compared(posted: Figure, asked_s: Sequence[float], calls: Sequence[Call], rate_scale: float) -> Figure:
    last_s = asked_s[-1]
    sent_s = [call.at_s for call in calls if call.status == OK]
    took_s, allowed_s = max(sent_s) - last_s, earliest_s(asked_s, rate_scale) - last_s
    if allowed_s <= 0:
        return posted.impossible("too few questions for the rates to matter")
    note = f"{took_s:.1f} s, allowed {allowed_s:.1f} s; asked within {last_s - asked_s[0]:.1f} s"
    return posted.measured(took_s / allowed_s, note=f"{note}; {len(calls) - len(sent_s)} refused by 429")


def earliest_s(asked_s: Sequence[float], rate_scale: float) -> float:
    """Return when the last could arrive at best: each as soon as it is asked and the rates let it through."""
    limits = [(int(CHAT_BURST * rate_scale), CHAT_WINDOW_S), (int(ALL_BURST * rate_scale), ALL_WINDOW_S)]
    sent_s: list[float] = []
    for at_s in asked_s:
        waits = [sent_s[-most] + span_s for most, span_s in limits if len(sent_s) >= most]
        sent_s.append(max([at_s, *sent_s[-1:], *waits]))
    return sent_s[-1]


def listening(stage: Stage, rate_scale: float) -> Proc:
    """Start a listener that sends as fast as these rates allow, and wait until it polls."""
    stage.write_config(log={"level": "info", "file": str(stage.log)})
    command = [sys.executable, "-I", scaled_listener.__file__, str(stage.config), repr(rate_scale)]
    stage.listener = Proc(
        command, cwd=stage.root, environ=stage.environ(), log_dir=stage.root / "logs", name="scaled-listener"
    )
    stage.listener.wait_line("listening for bot")
    stage.phone.wait_for_poll()
    return stage.listener


def _ask(stage: Stage, number: int) -> float:
    """Keep a question and nudge, as a hook does; when that was done."""
    properties = {"id": f"que_{number}", "sessionID": f"ses_{number}", "questions": [question(f"Question {number}?")]}
    context = {"title": "Fix login flow", "lastText": "The schema is small. " * 10}
    payload: Json = {"type": "question.asked", "properties": properties, "directory": "/home/dev", "context": context}
    spool.drop(stage.store, spool.record("opencode", payload))
    spool.nudge(stage.store)
    return time.monotonic()


def _posted(stage: Stage) -> int:
    return stage.phone.state().calls.get("sendMessage", 0)
