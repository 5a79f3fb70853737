"""How soon a listener listens."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from tests.bench.figures import Effort, Figure
from tests.harness.processes import until
from tests.scenes.stage import Stage, staged

FIRST_POLL: Final = Figure("`hermes listen`, start to first poll", "s", 1.0)
FIGURES: Final = (FIRST_POLL,)
LOOK_EVERY_S: Final = 0.3


def measure(effort: Effort, root: Path) -> list[Figure]:
    """Start and stop the listener again and again."""
    with staged(root) as stage:
        stage.write_config(log={"level": "info", "file": str(stage.log)})
        first = _to_first_poll(stage)
        took = [_to_first_poll(stage) for _ in range(effort.starts)]
    return [FIRST_POLL.measured(*took, note=f"the one before them, which does not count: {first:.2f} s")]


def _to_first_poll(stage: Stage) -> float:
    seen = len(stage.phone.calls("getUpdates"))
    began_s = time.monotonic()
    stage.listener = stage.run("listen", "--config", str(stage.config))
    until(lambda: len(stage.phone.calls("getUpdates")) > seen, 30, "a poll", every_s=LOOK_EVERY_S)
    polled_s = stage.phone.calls("getUpdates")[seen].at_s
    assert stage.stop() == 0
    stage.close()
    return polled_s - began_s
