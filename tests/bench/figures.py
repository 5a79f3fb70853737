"""The words of the benchmark: what must be reached, what was measured, and how much is measured."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True, slots=True)
class Figure:
    """One row of the table: `most` is what its median must not exceed, None where it only informs.

    Before it is measured it has no values; where it cannot be, `missing` says why.
    """

    name: str
    unit: str
    most: float | None = None
    values: tuple[float, ...] = ()
    note: str = ""
    missing: str = "not measured"

    def measured(self, *values: float, note: str = "") -> Figure:
        """Return it with what was measured."""
        return replace(self, values=values, note=note, missing="" if values else "nothing was measured")

    def impossible(self, why: str) -> Figure:
        """Return it with the reason why it could not be measured."""
        return replace(self, values=(), missing=why)

    @property
    def median(self) -> float | None:
        """The middle of what was measured."""
        return statistics.median(self.values) if self.values else None

    @property
    def p95(self) -> float | None:
        """What 95 % of the values do not exceed; None for a single value."""
        if len(self.values) < 2:
            return None
        return statistics.quantiles(self.values, n=20, method="inclusive")[-1]

    @property
    def reached(self) -> bool | None:
        """Whether the median is good enough; None where nothing was measured, or nothing must be reached."""
        median = self.median
        return None if median is None or self.most is None else median <= self.most


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured. Latencies: `rounds` times each, after `warm_up` more that do not count.

    `pause_s` lies between two questions, so that none waits for Telegram's pace of one message a second; `settle_s`
    between two looks at a process that comes to rest.
    """

    rounds: int = 40
    warm_up: int = 5
    starts: int = 30
    pause_s: float = 1.1
    idle_s: float = 60.0
    few: int = 10
    many: int = 10_000
    changes: int = 400
    at_once: int = 1_000
    rate_scale: float = 20.0
    waiters: int = 5
    settle_s: float = 1.0
    machines: int = 100
    takeovers: int = 4


FULL: Final = Effort()
QUICK: Final = Effort(
    rounds=10,
    warm_up=2,
    starts=5,
    idle_s=10.0,
    many=1_000,
    changes=100,
    at_once=150,
    waiters=2,
    machines=10,
    takeovers=1,
)
"""To see that it works: too few of everything to be quoted."""


@contextmanager
def paced(effort: Effort) -> Iterator[None]:
    """Let what is done in the block take its time, so that the next one does not wait for Telegram's pace."""
    began_s = time.monotonic()
    yield
    time.sleep(max(0.0, began_s + effort.pause_s - time.monotonic()))


def ratios(values_s: list[float], bare_s: list[float]) -> tuple[float, ...]:
    """Return each of the values as a multiple of the median of what they are compared with."""
    base_s = statistics.median(bare_s)
    return tuple(value_s / base_s for value_s in values_s)


def ms(values_s: list[float]) -> tuple[float, ...]:
    """Return seconds as milliseconds."""
    return tuple(1000 * value_s for value_s in values_s)


def middle_ms(values_s: list[float]) -> str:
    """Return the median and the 95th percentile in words."""
    told = Figure("", "ms").measured(*ms(values_s))
    return f"{told.median:.1f} ms" + (f" (p95 {told.p95:.1f})" if told.p95 is not None else "")
