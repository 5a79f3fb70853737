"""The time of the database, and a clock of this machine that also runs while it sleeps."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

TIME: Final = "SELECT extract(epoch FROM clock_timestamp())::float8"
"""The statement that asks the database for its time, in epoch seconds."""


def awake_or_asleep() -> float:
    """Return seconds that never jump, and count the time for which the machine was suspended, too."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()  # pragma: no cover (macOS: it counts a suspend there)


class SharedClock:
    """The clock of the database, as far as it was read. Before that it is the clock of this machine, `now`."""

    def __init__(self, now: Callable[[], float], monotonic: Callable[[], float]) -> None:
        self._now = now
        self._monotonic = monotonic
        self._ahead_s: float | None = None

    def __call__(self) -> float:
        """Return epoch seconds."""
        return self._now() if self._ahead_s is None else self._monotonic() + self._ahead_s

    def read(self, epoch_s: float, asked_at: float) -> None:
        """Set the clock: the database told this time, and was asked at `asked_at` of the monotonic clock."""
        self._ahead_s = epoch_s - (asked_at + self._monotonic()) / 2
