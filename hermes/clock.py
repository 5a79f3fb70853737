"""The clocks of a process: the machine's own, or those that a test bends.

`--test-clock FILE`, which nothing but a test gives, names a JSON file:

    {"epoch_s": 1790000000.0, "steady_s": 81234.5, "ahead_s": 0, "pace": 1}

At the machine's steady time `steady_s` the bent wall clock shows `epoch_s + ahead_s`, and from then on all time,
waiting included, runs `pace` times as fast. `ahead_s` is read at every look, so that the wall clock can jump while
the process runs; whoever changes the file replaces it as a whole. `pace` is read once.
"""

from __future__ import annotations

import asyncio
import json
import selectors
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Clock:
    """`now` gives epoch seconds, `monotonic` seconds that never jump; `loop` makes an event loop that goes by them."""

    now: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    loop: Callable[[], asyncio.AbstractEventLoop] | None = None
    pace: float = 1.0


def bent(file: Path | None) -> Clock:
    """Return the clock of this file, or the machine's own. What is wrong with the file is raised as it is."""
    if file is None:
        return Clock()
    pace = float(_read(file)["pace"])

    def now() -> float:
        told = _read(file)
        return told["epoch_s"] + told["ahead_s"] + (time.monotonic() - told["steady_s"]) * pace

    return Clock(now, lambda: time.monotonic() * pace, lambda: _Loop(pace), pace)


def _read(file: Path) -> dict[str, float]:
    told: dict[str, float] = json.loads(file.read_text(encoding="utf-8"))
    return told


class _Loop(asyncio.SelectorEventLoop):
    """A loop whose seconds are shorter."""

    def __init__(self, pace: float) -> None:
        self._pace = pace
        super().__init__(_Selector(pace))

    def time(self) -> float:
        """Return the loop's own time, in its seconds."""
        return super().time() * self._pace


class _Selector(selectors.DefaultSelector):
    """Waits as long as the loop's seconds last."""

    def __init__(self, pace: float) -> None:
        super().__init__()
        self._pace = pace

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for `timeout` seconds of the loop's."""
        return super().select(timeout if timeout is None else timeout / self._pace)
