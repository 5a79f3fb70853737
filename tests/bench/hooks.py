"""What a hook costs the agent that waits for it, and how soon its question is at the phone."""

from __future__ import annotations

import json
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hermes.hook import spool
from tests.bench.figures import Effort, Figure, middle_ms, ratios
from tests.bench.probes import ENVIRON, PASS, lasted_s
from tests.scenes.stage import Json, Stage, question, staged

EXIT: Final = Figure("hook process, start to exit, against `python -I -c pass`", "×", 2.2)
PLUGIN: Final = Figure("hook started → sendMessage, listener warm, waiting hook as the plugin starts it", "× pass", 4.0)
PLAIN: Final = Figure("hook started → sendMessage, listener warm, hook that does not wait", "× pass", 4.0)
FIGURES: Final = (EXIT, PLUGIN, PLAIN)

WAITING: Final = ("--wait", "--stay")
QUIET_S: Final = 0.4
"""Nobody looks while it is measured: looking takes the processor that is needed."""


def measure(effort: Effort, root: Path) -> list[Figure]:
    """Measure both."""
    return [_start_to_exit(effort, root / "exit"), *_to_the_phone(effort, root / "phone")]


def _start_to_exit(effort: Effort, root: Path) -> Figure:
    """Hooks that keep a question and nudge; somebody holds the listener's socket, so that they start none."""
    stdin = _payload(root, "que_exit")
    store, command = root / "store", _command(root, root / "store")
    hooks, bare = [], []
    with _held(store):
        for number in range(effort.warm_up + effort.rounds):
            took_s = lasted_s(PASS, environ=ENVIRON, stdin=stdin), lasted_s(command, environ=ENVIRON, stdin=stdin)
            if number >= effort.warm_up:
                bare.append(took_s[0])
                hooks.append(took_s[1])
    kept = len(spool.listing(store))
    assert kept == effort.warm_up + effort.rounds, f"{kept} payloads were kept"
    return EXIT.measured(*ratios(hooks, bare), note=f"hook {middle_ms(hooks)}, pass {middle_ms(bare)}")


@contextmanager
def _held(store: Path) -> Iterator[None]:
    """Hold a listener's socket that nobody reads: once it is full, a nudge still finds somebody there."""
    store.mkdir(parents=True)
    held = spool.listen_socket(store)
    try:
        yield
    finally:
        spool.close_socket(held)


def _command(root: Path, store: Path, *options: str) -> list[str]:
    paths = ("--store", str(store), "--log", str(root / "hermes.log"), "--config", str(root / "config.toml"))
    return [PASS[0], "-I", "-m", "hermes", "hook", "opencode", *paths, *options]


def _payload(root: Path, request_id: str, text: str = "Which database should I use?") -> Path:
    """Return a file with what a plugin hands over."""
    root.mkdir(parents=True, exist_ok=True)
    file = root / f"{request_id}.line"
    properties = {"id": request_id, "sessionID": "ses_bench", "questions": [question(text)]}
    context = {"title": "Fix login flow", "rootTitle": "", "lastText": "The schema is small."}
    file.write_text(_line("question.asked", properties, context))
    return file


def _line(kind: str, properties: Json, context: Json | None = None) -> str:
    payload = {"type": kind, "properties": properties, "directory": "/home/dev/shop-api", "context": context or {}}
    return json.dumps(payload) + "\n"


# --- to the phone ---------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Took:
    """Seconds, of one kind each."""

    bare: list[float] = field(default_factory=list)
    waiting: list[float] = field(default_factory=list)
    plain: list[float] = field(default_factory=list)


def _to_the_phone(effort: Effort, root: Path) -> list[Figure]:
    """Hooks of both kinds and bare Pythons by turns, beside a listener that runs."""
    warm_up, took = _Took(), _Took()
    with staged(root) as stage:
        stage.start(log={"level": "info", "file": str(stage.log)})
        nothing = _payload(root, "nothing")
        for number in range(effort.warm_up + effort.rounds):
            here = took if number >= effort.warm_up else warm_up
            here.bare.append(lasted_s(PASS, environ=ENVIRON, stdin=nothing))
            here.waiting.append(_asked(stage, effort, *WAITING))
            here.plain.append(_asked(stage, effort))
    bare = f"pass {middle_ms(took.bare)}"
    return [
        PLUGIN.measured(*ratios(took.waiting, took.bare), note=f"{middle_ms(took.waiting)}, {bare}"),
        PLAIN.measured(*ratios(took.plain, took.bare), note=f"{middle_ms(took.plain)}, {bare}"),
    ]


def _asked(stage: Stage, effort: Effort, *options: str) -> float:
    """Return the seconds from the start of a hook to the arrival of its question at the Bot API."""
    request_id = f"que_{uuid.uuid4().hex[:12]}"
    text = f"What about {request_id}?"
    line = _payload(stage.root / "lines", request_id, text).read_bytes()
    began_s = time.monotonic()
    hook = subprocess.Popen(
        _command(stage.root, stage.store, *options),
        env=stage.environ(), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert hook.stdin is not None
    hook.stdin.write(line)
    hook.stdin.flush()
    time.sleep(QUIET_S)
    stage.asked(text)
    (at_s,) = [call.at_s for call in stage.phone.calls("sendMessage") if text in call.params["text"]]
    hook.stdin.close()  # the agent is gone: a hook that waits leaves
    assert hook.wait(20) == 0
    _answered_at_desk(stage, request_id)
    time.sleep(max(0.0, began_s + effort.pause_s - time.monotonic()))
    return at_s - began_s


def _answered_at_desk(stage: Stage, request_id: str) -> None:
    """End it, so that as little is open at the next one."""
    told = {"sessionID": "ses_bench", "requestID": request_id, "answers": [["SQLite"]]}
    spool.drop(stage.store, spool.record("opencode", json.loads(_line("question.replied", told))))
    spool.nudge(stage.store)
    stage.wait_closed()
