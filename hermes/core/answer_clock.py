"""Time: the answerable clock, and what an open ask is due for.

The clock counts seconds in which the person could have answered: it stands still while the listener is down,
the machine sleeps, Telegram is out of reach, or quiet hours last. An ask expires by this clock alone, so no
outage and no jump of the wall clock can eat its time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal

from hermes.model.entry import Timing

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import time, tzinfo

    from hermes.model.entry import Entry

GRACE_S: Final = 600.0
"""At least this long is left to answer after the clock stood still."""
LONGEST_CALL_S: Final = 900.0
GAP_COUNTS_S: Final = 0.001
"""A gap moves the count on by this, so that what was posted before it and what comes after are told apart."""
LONGEST_TICK_S: Final = 30.0
"""A longer step of the clock means that the process itself stood still."""

Due = Literal["remind", "call", "expire"]


class AnswerableClock:
    """Counts answerable seconds. `gap_at` is the count at which the clock last stood still, or None."""

    def __init__(self, counted_s: float, *, monotonic: Callable[[], float]) -> None:
        self.counted_s = counted_s
        self.gap_at: float | None = counted_s
        self._monotonic = monotonic
        self._looked = monotonic()

    def begin_after(self, set_at: float) -> None:
        """Begin beyond this count: an earlier process had counted so far, noted or not when it ended."""
        if set_at >= self.counted_s:
            self.counted_s = set_at + GAP_COUNTS_S
            self.gap_at = self.counted_s - GAP_COUNTS_S / 2

    def tick(self, *, answerable: bool) -> None:
        """Count the time since the last tick, if the phone was answerable all the while."""
        looked = self._monotonic()
        passed, self._looked = looked - self._looked, looked
        if answerable and passed < LONGEST_TICK_S:
            self.counted_s += passed
        else:
            self.gap_at = self.counted_s

    def started(self, *, now_s: float, ttl_s: float, timing: Timing | None = None) -> Timing:
        """Return the timing of an ask whose time to answer starts now.

        The next tick counts what has passed since the last one, and it may count none of it: an ask begins behind all
        of that, since nothing expires that could not be answered for all its time.
        """
        passed = self._monotonic() - self._looked
        begun_at = self.counted_s + (passed if passed < LONGEST_TICK_S else 0.0)
        return replace(
            timing or Timing(posted_s=now_s),
            set_at=begun_at,
            expires_at=begun_at + ttl_s,
            until_s=now_s + ttl_s,
            called=False,
            reminded=0,
        )

    def left_s(self, timing: Timing) -> float | None:
        """Return the answerable seconds that are left, or None before the first post."""
        if timing.expires_at is None or timing.set_at is None:
            return None
        end = timing.expires_at
        if self.gap_at is not None and self.gap_at > timing.set_at:
            end = max(end, self.gap_at + GRACE_S)
        return end - self.counted_s


@dataclass(frozen=True, slots=True)
class Pace:
    """When an open ask makes itself heard. Seconds."""

    ttl_s: float
    remind_s: float | None = None


def due(entry: Entry, clock: AnswerableClock, pace: Pace) -> Due | None:
    """Return what an open ask is due for. It expires only after its final call was seen to be sent."""
    left_s = clock.left_s(entry.timing)
    if entry.state.phase != "open" or entry.state.joining is not None or left_s is None:
        return None
    if not entry.ask.answerable:
        # Nothing that the person could do: it only leaves the phone.
        return "expire" if left_s <= 0 else None
    if left_s <= call_lead_s(entry.timing):
        if not entry.timing.called:
            return "call"
        sent = any(side.kind == "final_call" for side in entry.phone.sides)
        return "expire" if sent and left_s <= 0 else None
    return "remind" if _reminder_due(entry.timing, clock, pace) else None


def call_lead_s(timing: Timing) -> float:
    """Return how long before the end the final call rings: a third of the time to answer, 15 minutes at most."""
    if timing.expires_at is None or timing.set_at is None:
        return 0.0
    return min((timing.expires_at - timing.set_at) / 3, LONGEST_CALL_S)


def _reminder_due(timing: Timing, clock: AnswerableClock, pace: Pace) -> bool:
    """The first reminder comes after `remind_s`, each further one after twice the time of the last."""
    if pace.remind_s is None or timing.set_at is None:
        return False
    return clock.counted_s - timing.set_at >= pace.remind_s * (2.0 ** (timing.reminded + 1) - 1)


def is_quiet(now_s: float, start: time, end: time, zone: tzinfo | None) -> bool:
    """Tell whether `now_s` lies in the quiet hours from `start` to `end` (which may pass midnight)."""
    clock = datetime.fromtimestamp(now_s).astimezone(zone).time()
    if start <= end:
        return start <= clock < end
    return clock >= start or clock < end
