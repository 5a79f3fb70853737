"""The answerable clock, and what an open ask is due for."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta, timezone

import pytest

from hermes.core.answer_clock import GRACE_S, AnswerableClock, AnswerTimes, Due, Quiet, call_lead_s
from hermes.core.dialog import start, step
from hermes.model.actions import Pick
from hermes.model.entry import Entry, Side, Timing
from hermes.model.events import Tapped, Texted
from tests.asks import ANN, ask, entry, question


class Watch:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.at_s = 0.0

    def __call__(self) -> float:
        return self.at_s


@pytest.fixture
def watch() -> Watch:
    """The clock of the machine."""
    return Watch()


@pytest.fixture
def clock(watch: Watch) -> AnswerableClock:
    """A clock that has run for a while."""
    ready = AnswerableClock(1000.0, monotonic=watch)
    run(ready, watch, 5)
    return ready


def run(clock: AnswerableClock, watch: Watch, seconds: int, *, answerable: bool = True) -> None:
    """Let seconds pass one by one."""
    for _ in range(seconds):
        watch.at_s += 1
        clock.tick(answerable=answerable)


ASK = ask(question())


def posted(clock: AnswerableClock, ttl_s: float = 3600) -> Entry:
    """An ask that was just posted."""
    return replace(entry(ASK, start(ASK)), timing=clock.started(now_s=50.0, ttl_s=ttl_s))


def timed(clock: AnswerableClock, remind_s: float | None) -> AnswerTimes:
    """Timings by this clock, with this time before the first reminder."""
    return AnswerTimes(clock, ttl_s=300, remind_s=remind_s, now=lambda: 110.0)


def due(asked: Entry, clock: AnswerableClock, remind_s: float | None) -> Due | None:
    """What is due by this clock."""
    return timed(clock, remind_s).due(asked)


def test_the_clock_counts_only_while_the_phone_is_answerable(clock: AnswerableClock, watch: Watch) -> None:
    """Telegram away, quiet hours: it stands still."""
    run(clock, watch, 10)
    run(clock, watch, 100, answerable=False)
    assert clock.counted_s == 1015.0


def test_a_long_step_means_that_the_process_stood_still(clock: AnswerableClock, watch: Watch) -> None:
    """A machine that slept, or a frozen process: that time does not count."""
    watch.at_s += 3600
    clock.tick(answerable=True)
    assert clock.counted_s == 1005.0


def test_an_ask_expires_by_answerable_time_alone(clock: AnswerableClock, watch: Watch) -> None:
    """Two thirds of its time pass in silence, then the final call, then the end, if the call was sent."""
    asked = posted(clock, 300)
    run(clock, watch, 199)
    assert due(asked, clock, None) is None
    run(clock, watch, 1)
    assert due(asked, clock, None) == "call"
    called = replace(asked, timing=replace(asked.timing, called=True))
    run(clock, watch, 500)
    assert due(called, clock, None) is None, "the call could not be sent: nothing expires"
    sent = replace(called, phone=replace(called.phone, sides=(Side("final_call", 9),)))
    assert due(sent, clock, None) == "expire"


def test_a_final_call_that_is_sent_late_leaves_its_whole_time(clock: AnswerableClock, watch: Watch) -> None:
    """A person must be able to react to it, also a second time; one that is in time moves nothing."""
    times = AnswerTimes(clock, ttl_s=300, now=lambda: 110.0)
    asked = posted(clock, 300)
    run(clock, watch, 205)
    assert times.called(asked.timing) == asked.timing
    run(clock, watch, 300)
    late = times.called(asked.timing)
    assert (clock.left_s(late), late.until_s, call_lead_s(late)) == (100.0, 210.0, 100.0)
    sent = replace(asked, timing=replace(late, called=True), phone=replace(asked.phone, sides=(Side("final_call", 9),)))
    assert due(sent, clock, None) is None
    run(clock, watch, 50)
    assert clock.left_s(times.called(late)) == 100.0
    for touched in (times.touched(asked, 0.0), times.touched(asked, math.inf)):
        assert times.called(touched) == touched


def test_no_time_from_before_an_ask_is_counted_against_it(clock: AnswerableClock, watch: Watch) -> None:
    """It begins between two ticks, anew as well: what passed before it is not its own."""
    watch.at_s += 1.5
    short = posted(clock, 3)
    watch.at_s += 0.5
    clock.tick(answerable=True)
    assert clock.left_s(short.timing) == 2.5
    watch.at_s += 0.5
    again = clock.started(now_s=52.5, ttl_s=3, timing=short.timing)
    watch.at_s += 0.5
    run(clock, watch, 2)
    assert (clock.left_s(short.timing), clock.left_s(again)) == (-0.5, 0.5)


@pytest.mark.parametrize(("before_s", "after_s", "answerable"), [(1.5, 0.5, False), (20, 20, True), (40, 1, True)])
def test_a_gap_around_the_beginning_of_an_ask_takes_none_of_its_time(
    clock: AnswerableClock, watch: Watch, before_s: float, after_s: float, *, answerable: bool
) -> None:
    """Whether the tick that it falls into counts is known only at its end."""
    watch.at_s += before_s
    short = posted(clock, 3)
    watch.at_s += after_s
    clock.tick(answerable=answerable)
    left_s = clock.left_s(short.timing)
    assert left_s is not None
    assert 3 <= left_s <= 3 + before_s


def test_after_a_gap_at_least_ten_minutes_are_left(clock: AnswerableClock, watch: Watch) -> None:
    """A gap before the post does not count; one after it gives time to come back."""
    asked = posted(clock, 700)
    run(clock, watch, 690)
    assert clock.left_s(asked.timing) == 10.0
    run(clock, watch, 1, answerable=False)
    assert clock.left_s(asked.timing) == GRACE_S
    run(clock, watch, 100)
    assert clock.left_s(asked.timing) == GRACE_S - 100


def test_nothing_is_due_before_the_post_or_while_an_answer_is_on_its_way(clock: AnswerableClock) -> None:
    """`sending` never expires, nor does a text that is being joined."""
    assert clock.left_s(Timing()) is None
    assert call_lead_s(Timing()) == 0.0
    assert due(entry(ASK, start(ASK)), clock, None) is None
    late = replace(posted(clock, 0), timing=clock.started(now_s=0, ttl_s=-5))
    assert due(late, clock, None) == "call"
    sending = step(ASK, late.state, Tapped(1, 1.0, ANN, Pick(0, 0), 0)).state
    assert due(replace(late, state=sending), clock, None) is None
    joining = step(ASK, late.state, Texted(1, 1.0, ANN, 5, "w" * 3000, "reply")).state
    assert due(replace(late, state=joining), clock, None) is None


def test_what_nobody_can_answer_here_leaves_the_phone_in_time(clock: AnswerableClock, watch: Watch) -> None:
    """Only the desk can answer it: no reminder and no final call, since there is nothing to do about it."""
    one = posted(clock, ttl_s=300)
    shown = replace(one, ask=replace(one.ask, answerable=False))
    remind_s = 10
    run(clock, watch, 299)
    assert due(shown, clock, remind_s) is None
    run(clock, watch, 1)
    assert due(shown, clock, remind_s) == "expire"


def test_reminders_come_after_growing_pauses(clock: AnswerableClock, watch: Watch) -> None:
    """After one, three and seven times the first pause."""
    asked, remind_s, at = posted(clock), 60, []
    for second in range(1, 500):
        run(clock, watch, 1)
        if due(asked, clock, remind_s) == "remind":
            at.append(second)
            asked = replace(asked, timing=replace(asked.timing, reminded=asked.timing.reminded + 1))
    assert at == [60, 180, 420]


def test_a_touch_starts_the_time_anew(clock: AnswerableClock, watch: Watch) -> None:
    """Called and reminded are forgotten; the moment of the post is kept."""
    timing = replace(posted(clock).timing, called=True, reminded=3)
    run(clock, watch, 60)
    fresh = clock.started(now_s=110.0, ttl_s=300, timing=timing)
    assert fresh == Timing(posted_s=50.0, set_at=1065.0, expires_at=1365.0, until_s=410.0)
    assert call_lead_s(replace(fresh, expires_at=1065.0 + 86400)) == 900


def test_a_touch_takes_nothing_of_the_time_after_a_gap(clock: AnswerableClock, watch: Watch) -> None:
    """Ten minutes are left after it, also for an ask whose whole time is shorter."""
    times = AnswerTimes(clock, ttl_s=60, now=lambda: 110.0)
    asked = posted(clock, ttl_s=60)
    run(clock, watch, 1)
    run(clock, watch, 30, answerable=False)
    run(clock, watch, 10)
    assert clock.left_s(asked.timing) == GRACE_S - 10
    assert clock.left_s(times.touched(asked, 0.0)) == GRACE_S - 10
    run(clock, watch, 580)
    assert clock.left_s(times.touched(asked, 0.0)) == 60


def test_no_limit_holds_until_a_person_sets_one(clock: AnswerableClock, watch: Watch) -> None:
    """Reminders go on, and the ask never ends; another touch keeps that, an hour more ends it."""
    times = AnswerTimes(clock, ttl_s=300, remind_s=100, now=lambda: 110.0)
    endless = replace(posted(clock), timing=times.touched(posted(clock), math.inf))
    assert (endless.timing.expires_at, endless.timing.until_s) == (None, None)
    assert times.due(endless) is None
    run(clock, watch, 100_000)
    assert times.due(endless) == "remind"
    assert due(endless, clock, None) is None
    assert times.touched(endless, 0.0).expires_at is None
    assert times.touched(endless, 3600.0).until_s == 110.0 + 3900


def test_reminders_of_a_question_without_a_limit_begin_again_with_each_touch(
    clock: AnswerableClock, watch: Watch
) -> None:
    """The person was just here: no reminder is due at once, let alone all those of hours, one right after the other."""
    times = AnswerTimes(clock, ttl_s=300, remind_s=100, now=lambda: 110.0)
    entry = posted(clock)
    for extra_s in (math.inf, 0.0):
        run(clock, watch, 10_000)
        entry = replace(entry, timing=times.touched(replace(entry, timing=replace(entry.timing, reminded=5)), extra_s))
        assert (entry.timing.reminded, entry.timing.expires_at) == (0, None)
        assert times.due(entry) is None
        run(clock, watch, 98)
        assert times.due(entry) is None
        run(clock, watch, 2)
        assert times.due(entry) == "remind"


def test_quiet_hours_may_pass_midnight() -> None:
    """From 22:00 to 07:00, in the zone of the person; and plain ones from 13:00 to 14:00."""
    zone = timezone(timedelta(hours=2))

    def at(hour: int) -> float:
        return datetime(2026, 11, 20, hour, 30, tzinfo=zone).astimezone(UTC).timestamp()

    night = (time(22), time(7))
    assert [hour for hour in range(24) if Quiet(*night, zone).holds(at(hour))] == [0, 1, 2, 3, 4, 5, 6, 22, 23]
    assert [hour for hour in range(24) if Quiet(time(13), time(14), zone).holds(at(hour))] == [13]


def test_what_was_open_when_a_listener_was_killed_has_ten_minutes_left(watch: Watch) -> None:
    """Also where the one before had counted further than it had noted, or had posted in its last moment."""
    killed = AnswerableClock(1000.0, monotonic=watch)
    killed.gap_at = None
    run(killed, watch, 7)
    before = posted(killed, ttl_s=60)
    for noted in (1000.0, killed.counted_s):
        after = AnswerableClock(noted, monotonic=watch)
        after.begin_after(before.timing.set_at or 0.0)
        assert after.left_s(before.timing) == pytest.approx(GRACE_S, abs=0.01)
        assert after.left_s(posted(after, ttl_s=60).timing) == 60


def test_no_time_passes_while_the_machine_is_away(clock: AnswerableClock, watch: Watch) -> None:
    """When it is back, the ask has as much time as before; nothing is due meanwhile."""
    asked = posted(clock, ttl_s=60)
    run(clock, watch, 10)
    left_s = clock.left_s(asked.timing)
    away = replace(asked, timing=clock.missed(asked.timing))
    assert clock.missed(away.timing) == away.timing
    run(clock, watch, 100)
    assert due(away, clock, None) is None
    back = clock.back(away.timing, now_s=1000.0)
    assert (clock.left_s(back), back.away_at) == (left_s, None)
    assert back.until_s == 1000.0 + (left_s or 0.0)
    assert clock.back(back, now_s=2000.0) == back


def test_an_ask_that_was_touched_while_its_machine_was_away_keeps_its_new_time(
    clock: AnswerableClock, watch: Watch
) -> None:
    """It began again then; one without an end goes on without one, and no reminder of that time is due."""
    away = clock.missed(posted(clock, ttl_s=60).timing)
    run(clock, watch, 50)
    touched = clock.started(now_s=100.0, ttl_s=60, timing=away)
    assert touched.away_at == away.away_at
    run(clock, watch, 50)
    assert clock.left_s(clock.back(touched, now_s=200.0)) == 60
    endless = replace(away, expires_at=None, until_s=None)
    back = clock.back(endless, now_s=200.0)
    assert (back.away_at, back.expires_at, back.until_s) == (None, None, None)
    assert timed(clock, 30).reminders(back) == 0


def test_an_ask_that_was_never_posted_has_no_time_that_a_machine_could_take(clock: AnswerableClock) -> None:
    """Its time begins with the post; only the absence is noted."""
    away = clock.missed(Timing())
    assert away.away_at is not None
    assert clock.back(away, now_s=200.0) == Timing()
