"""The clocks of a process: those of the machine, or clocks that a test controls.

Only tests pass `--test-clock FILE`. The file is JSON:

    {"epoch_s": 1790000000.0, "steady_s": 81234.5, "ahead_s": 0, "pace": 1}

At the machine's monotonic time `steady_s`, the wall clock shows `epoch_s + ahead_s`. Time runs `pace` times as fast as
on the machine, and pauses are shorter by the same factor. `pace` is read once; the other values are read whenever the
wall clock is read, so that a test can let it jump while the process runs. A test must replace the file as a whole.
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
    """The clocks: `now` returns epoch seconds, `monotonic` seconds that never jump.

    `loop` makes an event loop that runs at `pace` too; None means the default loop of asyncio.
    """

    now: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    loop: Callable[[], asyncio.AbstractEventLoop] | None = None
    pace: float = 1.0


def bent(file: Path | None) -> Clock:
    """Return the clock that this file describes, or that of the machine. An error in the file is raised unchanged."""
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
    """An event loop whose time runs `pace` times as fast as that of the machine."""

    def __init__(self, pace: float) -> None:
        self._pace = pace
        super().__init__(_Selector(pace))

    def time(self) -> float:
        """Return the time of the loop, in seconds of the loop."""
        return super().time() * self._pace


class _Selector(selectors.DefaultSelector):
    """A selector whose time-outs are in seconds of the loop."""

    def __init__(self, pace: float) -> None:
        super().__init__()
        self._pace = pace

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for at most `timeout` seconds of the loop."""
        return super().select(timeout if timeout is None else timeout / self._pace)
