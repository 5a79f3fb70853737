"""Until when the events of a stream are known."""

from hermes.agents.server import LATE_S, Hearing


def test_an_event_makes_known_what_was_read_some_time_before() -> None:
    """The machine sleeps at 170 for a long time: what happened in it may be lost."""
    hearing = Hearing()
    known = []
    for at_s in (100.0, 100.0 + LATE_S - 1, 100.0 + LATE_S, 170.0, 9000.0, 9001.0, 9000.0 + LATE_S):
        hearing.note(at_s)
        known.append(hearing.until_s)
    assert known == [0.0, 0.0, 100.0, 100.0, 160.0, 160.0, 9000.0]


def test_a_clock_that_is_set_back_makes_no_time_to_come_known() -> None:
    """Nor does it stop for so long."""
    hearing = Hearing()
    for at_s in (9000.0, 100.0):
        hearing.note(at_s)
    assert hearing.until_s == 100.0
    hearing.note(100.0 + LATE_S)
    hearing.note(100.0 + 2 * LATE_S)
    assert hearing.until_s == 100.0 + LATE_S
