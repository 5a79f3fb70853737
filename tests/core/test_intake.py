"""What a signal means for the asks that are known."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from hermes.core.dialog import start
from hermes.core.intake import Create, Heard, Keep, Known, Merge, Tell, of_asks, place
from hermes.model.answer import Allowed
from hermes.model.ask import Source
from hermes.model.entry import Closed
from hermes.model.errand import NewsCame, RequestCame, SessionBusy, Superseded
from hermes.model.notice import Turn
from hermes.model.signals import (
    Announced,
    Asked,
    Busy,
    Dismissed,
    Quiet,
    Replied,
    SessionEnded,
    TurnBegan,
    TurnEnded,
    TurnStopped,
)
from tests import asks

if TYPE_CHECKING:
    from hermes.model.entry import Entry
    from hermes.model.signals import Signal
    from hermes.model.state import Phase

TURN = Turn(Source("claude-code", "laptop", "ses_1"), "Claude Code", "t1", 0.0, 300.0)
NEWS = Replied("", "ses_1", Allowed(), call_id="call_1")


def an_entry(name: str, phase: Phase = "open", request_id: str | None = "que_1") -> Entry:
    """An entry of the call "call_1"."""
    an_ask = asks.ask(asks.question())
    made = asks.entry(an_ask, start(an_ask))
    source = replace(made.ask.source, request_id=request_id, call_id="call_1", session_id="ses_1")
    return replace(made, id=name, ask=replace(made.ask, source=source), state=replace(made.state, phase=phase))


def taken(name: str) -> Entry:
    """An entry of the call "call_1", whose hook has taken our answer."""
    return replace(an_entry(name, "sending"), waiter_taken=True)


def closed(name: str) -> Closed:
    """A closed ask of the call "call_1", whose news is still to come."""
    return Closed(name, "ses_1", "call_1", awaits_news=True)


def test_an_ask_is_made_once_and_learns_afterwards() -> None:
    """Closed ones are not made again."""
    ask = an_entry("a").ask
    assert place(Asked(ask, waits=True), Known()) == (Create(ask, waits=True),)
    assert place(Asked(ask), Known(found=an_entry("a"))) == (Merge("a", ask),)
    assert place(Asked(ask), Known(is_closed=True)) == ()


def test_a_call_waits_for_its_request() -> None:
    """A permission that the call asks for first is an ask of its own."""
    call = an_entry("a", "matching", None)
    ask = an_entry("b").ask
    assert place(Announced(call.ask), Known()) == (Create(call.ask, matching=True),)
    assert place(Announced(call.ask), Known(found=call)) == ()
    assert place(Asked(ask), Known(found=call)) == (Tell("a", RequestCame(ask)),)
    asks_first = replace(ask, permission=asks.permission_ask().permission)
    assert place(Asked(asks_first), Known(found=call)) == (Create(asks_first),)


def test_the_same_call_asked_again_takes_the_place_of_one_that_nobody_waits_for() -> None:
    """Not of one that waits, that is being sent, or that has the same request; and only if the hook made up the id."""
    session = (an_entry("a"), an_entry("b"), an_entry("c", "sending"), an_entry("d", request_id="que_2"))
    known = Known(session, waiting=frozenset("b"))
    ask = an_entry("new", request_id="que_2").ask
    assert place(Asked(ask, nonce=True), known) == (Tell("a", Superseded()), Create(ask))
    assert place(Asked(ask), known) == (Create(ask),)


def test_news_goes_to_its_request_or_is_kept() -> None:
    """Whatever the phase of the ask is."""
    for phase in ("open", "settled"):
        told = Dismissed("que_1", "ses_1")
        assert place(told, Known((an_entry("a", phase),), heard_by="desk")) == (Tell("a", NewsCame(told, "desk")),)
    assert place(Dismissed("que_9", "ses_1"), Known((an_entry("a"),))) == (Keep(),)


@pytest.mark.parametrize(
    ("known", "ids"),
    [
        (Known((an_entry("a"),)), ["a"]),
        (Known((an_entry("a"), an_entry("b", "settled"))), ["a"]),
        (Known((an_entry("a"), an_entry("b"))), []),
        (Known((an_entry("a"), taken("b")), ours=frozenset("b")), ["b"]),
        (Known((an_entry("a", request_id=None), taken("b")), ours=frozenset("b")), ["b"]),
        (Known((an_entry("a", "sending"), taken("b")), ours=frozenset("ab")), ["b"]),
        (Known((taken("a"), taken("b")), ours=frozenset("ab")), ["a"]),
        (Known((an_entry("a"), an_entry("b", "sending")), ours=frozenset("b")), []),
        (Known((an_entry("a"), taken("b"))), []),
        (Known(), []),
    ],
    ids=[
        "the only one",
        "the only open one",
        "none of two",
        "ours of two",
        "ours beside a call",
        "the one that was taken",
        "the first of two that were taken",
        "none of two that were not taken",
        "none that means something else",
        "nothing",
    ],
)
def test_news_of_a_call_goes_to_the_ask_that_it_can_only_mean(known: Known, ids: list[str]) -> None:
    """Of two identical calls it is the one whose hook has taken our answer; else each ends by its own hook."""
    assert place(NEWS, known) == tuple(Tell(one, NewsCame(NEWS)) for one in ids)


def test_late_news_of_a_settled_ask_is_for_no_other() -> None:
    """The oldest of them takes it; one of another call takes nothing."""
    known = Known((an_entry("a"),), unheard=(replace(closed("z"), call_id="call_2"), closed("x"), closed("y")))
    assert place(NEWS, known) == (Heard("x"),)


def test_the_end_of_a_turn_is_told_to_all_of_its_session() -> None:
    """No late news is expected any more."""
    known = Known((an_entry("a"), an_entry("b", "settled")), unheard=(closed("x"),))
    quiet = NewsCame(Quiet("ses_1"))
    assert place(Quiet("ses_1"), known) == (Heard("x"), Tell("a", quiet), Tell("b", quiet))
    assert place(Busy("ses_1"), known) == (Tell("a", SessionBusy()), Tell("b", SessionBusy()))


def test_what_comes_into_a_turn_ends_only_what_other_turns_asked() -> None:
    """A person may type while it waits for an answer, or while a command that was allowed runs."""
    first, second = an_entry("a"), an_entry("b")
    first = replace(first, ask=replace(first.ask, source=replace(first.ask.source, message_id="p1")))
    unheard = (replace(closed("x"), message_id="p1"), closed("y"))
    told = of_asks(TurnBegan("claude-code", "ses_1", "p1", 0.0))
    assert isinstance(told, Quiet)
    assert place(told, Known((first, second), unheard=unheard)) == (Heard("y"), Tell("b", NewsCame(told)))


@pytest.mark.parametrize(
    ("signal", "meant"),
    [
        (SessionEnded("claude-code", "ses_1"), Quiet("ses_1")),
        (TurnStopped("claude-code", "ses_1"), None),
        (TurnEnded(TURN, ends_asks=True), Quiet("ses_1")),
        (TurnEnded(TURN), None),
    ],
)
def test_some_ends_of_turns_end_asks(signal: Signal, meant: Quiet | None) -> None:
    """A session that is over waits for no answer; of a turn, its agent says so."""
    assert of_asks(signal) == meant
