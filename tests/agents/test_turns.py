"""When a turn began, as events and its prompt tell."""

from __future__ import annotations

from hermes.agents.turns import Beginnings
from hermes.model.signals import Busy, Quiet


def test_a_turn_began_with_its_prompt_or_when_its_session_began_to_work() -> None:
    """A prompt that came while it worked makes a long turn no shorter."""
    known = Beginnings()
    assert known.of("ses_1", None) is None
    assert known.of("ses_1", 5.0) == 5.0
    known.note(Busy("ses_1"), 1.0)
    known.note(Busy("ses_1"), 3.0)
    assert known.of("ses_1", 5.0) == 1.0
    assert known.of("ses_1", None) == 1.0
    assert known.of("ses_1", 0.5) == 0.5


def test_the_next_turn_has_a_beginning_of_its_own() -> None:
    """The last one counts until the session works again, since its record is read after its end."""
    known = Beginnings()
    known.note(Busy("ses_1"), 1.0)
    known.note(Quiet("ses_1"), 2.0)
    known.note(Quiet("ses_2"), 2.0)
    known.note(None, 2.0)
    assert known.of("ses_1", None) == 1.0
    known.note(Busy("ses_1"), 7.0)
    assert known.of("ses_1", None) == 7.0


def test_after_a_gap_nothing_is_known() -> None:
    """A turn may have ended in it, and another one begun."""
    known = Beginnings()
    known.note(Busy("ses_1"), 1.0)
    known.forget()
    assert known.of("ses_1", None) is None


def test_it_does_not_grow_with_the_number_of_sessions() -> None:
    """The oldest goes first."""
    known = Beginnings()
    for number in range(700):
        known.note(Busy(f"ses_{number}"), float(number))
        known.note(Quiet(f"ses_{number}"), float(number))
    assert known.of("ses_0", None) is None
    assert known.of("ses_699", None) == 699.0
    assert len(known._began_s) == len(known._over) == 500
