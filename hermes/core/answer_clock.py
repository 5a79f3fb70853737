"""The answerable clock, and the reminder, final call or expiry that is due by it.

The clock counts the seconds in which the person could have answered: it stands still while the listener is down, the
machine sleeps, Telegram is out of reach, or quiet hours last. Asks expire by this clock alone, so that no outage and
no jump of the wall clock shortens the time to answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, time, tzinfo
from typing import Final, Literal

from hermes.model.entry import Entry, Timing

GRACE_S: Final = 600.0
"""After the clock stood still, a person has at least this long to answer."""
LONGEST_CALL_S: Final = 900.0
IN_TIME: Final = 0.9
"""A final call is in time if this part of its time is left when it is sent."""
GAP_COUNTS_S: Final = 0.001
"""`begin_after` starts this much after an open ask, so that the gap lies between that ask and all later ones."""
LONGEST_TICK_S: Final = 30.0
"""If two ticks are at least this far apart, the process stood still between them."""

Due = Literal["remind", "call", "expire"]


class AnswerableClock:
    """A counter of answerable seconds. `gap_at` is the count at which the clock last stood still, or None."""

    def __init__(self, counted_s: float, *, monotonic: Callable[[], float]) -> None:
        self.counted_s = counted_s
        self.gap_at: float | None = counted_s
        self._monotonic = monotonic
        self._looked = monotonic()

    def begin_after(self, set_at: float) -> None:
        """Start after the count `set_at` of an open ask: an earlier process reached it, perhaps without saving it."""
        if set_at >= self.counted_s:
            self.counted_s = set_at + GAP_COUNTS_S
            self.gap_at = self.counted_s - GAP_COUNTS_S / 2

    def tick(self, *, answerable: bool) -> None:
        """Count the time since the last tick if the person could answer through all of it, else note a gap."""
        looked = self._monotonic()
        passed, self._looked = looked - self._looked, looked
        if answerable and passed < LONGEST_TICK_S:
            self.counted_s += passed
        else:
            self.gap_at = self.counted_s

    def started(self, *, now_s: float, ttl_s: float, timing: Timing | None = None, stands: bool = False) -> Timing:
        """Return the timing of an ask whose time to answer starts now.

        The time since the last tick is not counted yet, and the next tick counts all of it or nothing. The ask starts
        after that time, so that the person never has less than `ttl_s` answerable seconds. In quiet hours the clock
        `stands` still: the ask starts just before the end of that gap, after which ten minutes are left.
        """
        passed = self._monotonic() - self._looked
        uncounted_s = passed if passed < LONGEST_TICK_S else 0.0
        begun_at = self.counted_s + (-GAP_COUNTS_S if stands else uncounted_s)
        return replace(
            timing or Timing(posted_s=now_s),
            set_at=begun_at,
            expires_at=begun_at + ttl_s,
            until_s=now_s + ttl_s,
            called=False,
            reminded=0,
        )

    def left_s(self, timing: Timing) -> float | None:
        """Return the answerable seconds that are left (below 0 after the end), or None: not posted yet, or no end."""
        if timing.expires_at is None or timing.set_at is None:
            return None
        end = timing.expires_at
        if self.gap_at is not None and self.gap_at > timing.set_at:
            end = max(end, self.gap_at + GRACE_S)
        return end - self.counted_s

    def missed(self, timing: Timing) -> Timing:
        """Return the timing of an ask whose machine is away from now on."""
        return timing if timing.away_at is not None else replace(timing, away_at=self.counted_s)

    def back(self, timing: Timing, *, now_s: float) -> Timing:
        """Return the timing of an ask whose machine is back: it has as much time as when the machine was missed."""
        if timing.away_at is None:
            return timing
        away_at, timing = timing.away_at, replace(timing, away_at=None)
        if timing.set_at is None:
            return timing
        later_s = max(0.0, self.counted_s - max(away_at, timing.set_at))
        timing = replace(timing, set_at=timing.set_at + later_s)  # nor is a reminder due for that time
        if timing.expires_at is None:
            return timing
        timing = replace(timing, expires_at=timing.expires_at + later_s)
        return replace(timing, until_s=now_s + max(0.0, self.left_s(timing) or 0.0))


def call_lead_s(timing: Timing) -> float:
    """Return the seconds between final call and end: a third of the time to answer, 15 minutes at most."""
    if timing.expires_at is None or timing.set_at is None:
        return 0.0
    return min((timing.expires_at - timing.set_at) / 3, LONGEST_CALL_S)


@dataclass(frozen=True, slots=True)
class Quiet:
    """The quiet hours from `start` to `end`, which may pass midnight; a `zone` of None is that of the machine."""

    start: time
    end: time
    zone: tzinfo | None

    def holds(self, now_s: float) -> bool:
        """Tell whether this time (epoch) lies in the quiet hours."""
        clock = datetime.fromtimestamp(now_s).astimezone(self.zone).time()
        if self.start <= self.end:
            return self.start <= clock < self.end
        return clock >= self.start or clock < self.end


class AnswerTimes:
    """The timings of asks, by one answerable clock. `now` is the epoch clock; no phone rings in the `quiet` hours.

    `ttl_s` is the time to answer, and `remind_s` the time before the first reminder (None: no reminders).
    `at_desk_s`: how long things wait for a person at the desk, unless the person `is_away`.
    """

    def __init__(
        self,
        clock: AnswerableClock,
        *,
        ttl_s: float,
        now: Callable[[], float],
        quiet: Quiet | None = None,
        remind_s: float | None = None,
        at_desk_s: float = 0.0,
        is_away: bool = False,
    ) -> None:
        self.clock = clock
        self._remind_s = remind_s
        self._ttl_s = ttl_s
        self.at_desk_s = at_desk_s
        self.is_away = is_away
        self._now = now
        self._quiet = quiet

    def started(self, entry: Entry, extra_s: float = 0.0) -> Timing:
        """Return the timing of an ask whose time to answer starts (again) now; it is `extra_s` longer than usual."""
        timing = entry.timing if entry.timing.posted_s is not None else None
        ttl_s = self._ttl_s if entry.ask.ttl_s is None else entry.ask.ttl_s
        is_quiet = self.is_quiet()
        begun = self.clock.started(now_s=self._now(), ttl_s=ttl_s + extra_s, timing=timing, stands=is_quiet)
        return replace(begun, until_s=None) if is_quiet else begun  # nobody knows when the clock goes on

    def touched(self, entry: Entry, extra_s: float) -> Timing:
        """Return the timing of an ask that a person touched: it starts again, unless the ask was never posted.

        With an `extra_s` of infinity it never ends, until a touch with another `extra_s` above 0. A touch with 0 takes
        away none of the time that is left.
        """
        if entry.timing.posted_s is None:
            return entry.timing
        if math.isinf(extra_s) or (entry.timing.expires_at is None and not extra_s):
            return replace(self.started(entry), expires_at=None, until_s=None)  # reminders begin again, too
        begun, left_s = self.started(entry, extra_s), self.clock.left_s(entry.timing) or 0.0
        end_at = self.clock.counted_s + left_s  # it may lie after `expires_at`, since the clock stood still
        is_longer = end_at > (begun.expires_at or 0.0)
        return replace(begun, expires_at=end_at, until_s=entry.timing.until_s) if is_longer else begun

    def called(self, timing: Timing) -> Timing:
        """Return the timing of an ask whose final call was just sent: the end moves if the call was sent late.

        Telegram may have refused it for longer than the time that was left.
        """
        left_s, lead_s = self.clock.left_s(timing), call_lead_s(timing)
        if left_s is None or timing.expires_at is None or timing.set_at is None or left_s >= lead_s * IN_TIME:
            return timing
        end_at, until_s = self.clock.counted_s + lead_s, None if self.is_quiet() else self._now() + lead_s
        set_at = timing.set_at + end_at - timing.expires_at  # the whole time, and so the lead, stays as it was
        return replace(timing, set_at=set_at, expires_at=end_at, until_s=until_s)

    def due(self, entry: Entry) -> Due | None:
        """Return the step that is due for an open ask, or None.

        An answerable ask expires only after its final call was sent, which a message in `Phone.sides` proves.
        """
        timing, left_s = entry.timing, self.clock.left_s(entry.timing)
        if entry.state.phase != "open" or entry.state.joining is not None or timing.away_at is not None:
            return None
        if not entry.ask.answerable:
            # A person can do nothing about this ask, so it expires without reminders and without a final call.
            return "expire" if left_s is not None and left_s <= 0 else None
        if left_s is None or left_s > call_lead_s(timing):
            return "remind" if self.reminders(timing) > timing.reminded else None
        if not timing.called:
            return "call"
        sent = any(side.kind == "final_call" for side in entry.phone.sides)
        return "expire" if sent and left_s <= 0 else None

    def reminders(self, timing: Timing) -> int:
        """Return how many reminders are due: the first after `remind_s`, each further one after twice the last pause.

        They can be more than one further, if the setting was changed.
        """
        if self._remind_s is None or timing.set_at is None:
            return 0
        return int(math.log2(max(0.0, self.clock.counted_s - timing.set_at) / self._remind_s + 1))

    @property
    def post_after_s(self) -> float:
        """How long an ask or a notice waits for the desk now."""
        return 0.0 if self.is_away else self.at_desk_s

    def is_quiet(self) -> bool:
        """Tell whether the phone must not ring now."""
        return self._quiet is not None and self._quiet.holds(self._now())
