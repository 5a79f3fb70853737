"""Every edge of every reachable state of small asks: the laws of the dialog hold on each."""

from __future__ import annotations

from collections import deque
from dataclasses import fields, replace
from operator import attrgetter
from typing import TYPE_CHECKING

import pytest

from hermes.core.answers import SPLIT_UNITS, unanswered
from hermes.core.dialog import start, step
from hermes.model.actions import (
    Arm,
    AskTwice,
    Back,
    ClearText,
    Confirmed,
    Go,
    KeepWaiting,
    Pick,
    Send,
    Shelve,
    ShowWhole,
    TakeOffer,
)
from hermes.model.answer import Answer
from hermes.model.ask import Capabilities
from hermes.model.events import (
    Delivered,
    Disarmed,
    Ended,
    Expired,
    Failed,
    Matched,
    Tapped,
    Texted,
    Ticked,
    Torn,
    Worked,
)
from hermes.model.state import Offer, State
from tests.asks import ANN, BOB, ask, permission_ask, question

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes.model.actions import Action
    from hermes.model.answer import Decision
    from hermes.model.ask import Ask, Permission
    from hermes.model.events import Event

LONG = "w" * SPLIT_UNITS
LASTING = tuple(field.name for field in fields(State) if field.name != "seen")
"""What a state says, without its memory of updates."""
values = attrgetter(*LASTING)
SMALL_ASKS = {
    "one choice": ask(question(labels=("A", "B"))),
    "one multiple": ask(question(labels=("A", "B"), multiple=True)),
    "no text allowed": ask(question(labels=("A", "B"), custom=False)),
    "two questions": ask(question(labels=("A",), recommended=0), question(labels=("X",), multiple=True, recommended=0)),
    "nothing asked": ask(),
    "no options": ask(question(labels=(), multiple=True)),
    "carries on after a no": ask(
        question(labels=("A",)), capabilities=Capabilities("Other", reject_stops=False, can_skip=False)
    ),
    "a permission": permission_ask(),
    "a permission that is not given for good": permission_ask(always=()),
    "only at the desk": ask(question(labels=("A",)), answerable=False),
}


def actions(an_ask: Ask) -> Iterator[Action]:
    """Every button there can be, and some that there cannot."""
    for index in range(len(an_ask.questions) + 1):
        for option in range(3):
            yield Pick(index, option)
            yield Pick(index, option, on=False)
        yield from (Go(index), Shelve(index), Arm(index), Arm(index, on=False), ClearText(index))
    yield from (
        Send(),
        Back(),
        KeepWaiting(),
        KeepWaiting(3600),
        TakeOffer(7),
        TakeOffer(7, on=False),
        ShowWhole(),
    )
    for what in ("reject", "skip", "send", "always"):
        yield AskTwice(what)
        yield Confirmed(what)


def events(an_ask: Ask, state: State) -> Iterator[Event]:
    """Every event that can reach `state`: fresh and stale taps, texts, time, and what the agent says."""
    for action in actions(an_ask):
        for epoch in (state.epoch, state.epoch - 1):
            yield Tapped(1, 100.0, ANN, action, epoch)
    for how in ("reply", "armed", "part", "offered"):
        for text in ("A", "words", LONG, "  "):
            yield Texted(1, 100.0, ANN, 7, text, how)
    yield Texted(1, 100.0, BOB, 8, "words", "part")
    yield from (
        Ticked(50.0),
        Ticked(1e6),
        Disarmed(),
        Torn(),
        Matched(100.0),
        Delivered(100.0),
        Failed(100.0),
        Failed(100.0, is_unknown=True),
        Worked(100.0),
    )
    yield from (Ended(100.0, kind) for kind in ("answered_at_desk", "rejected_at_desk", "gone"))
    yield from (Expired(100.0, rule) for rule in ("reject", "recommended", "skip", "keep"))


def canonical(state: State) -> State:
    """Forget what only grows and what no event reads any more: which words a text has, what a frozen ask said."""
    state, offer = replace(state, seen=(), epoch=1), state.offer
    if state.joining is not None:
        state = replace(state, joining=replace(state.joining, parts=state.joining.parts[:1]))
    if state.phase not in {"sending", "settled"}:
        if offer is not None and offer.text != "A":  # which is a label, too
            offer = replace(offer, text="words")
        return replace(state, answers=tuple(replace(a, text=a.text and "words") for a in state.answers), offer=offer)
    decision = state.decision and replace(state.decision, answers=())
    answers = tuple(Answer() for _ in state.answers)
    return replace(state, page=0, answers=answers, decision=decision, offer=offer and Offer(0, ANN, 7, "words"))


def changed(before: State, after: State) -> set[str]:
    """The names of what differs between two states, but for their memory of updates."""
    was, is_ = values(before), values(after)
    return set() if was == is_ else {name for name, one, other in zip(LASTING, was, is_, strict=True) if one != other}


def reachable(an_ask: Ask) -> Iterator[tuple[State, Event, State]]:
    """Walk all edges from both first states."""
    queue = deque([start(an_ask), start(an_ask, matching=True)])
    known = set(queue)
    while queue:
        before = queue.popleft()
        for event in events(an_ask, before):
            after = step(an_ask, before, event).state
            yield before, event, after
            # What changes nothing leads nowhere new.
            if changed(before, after) and (there := canonical(after)) not in known:
                known.add(there)
                queue.append(there)


LONG_WALKS = ("two questions", "one multiple", "no text allowed", "a permission that is not given for good")


@pytest.fixture(params=[pytest.param(one, marks=[pytest.mark.long] * (one in LONG_WALKS)) for one in SMALL_ASKS])
def small_ask(request: pytest.FixtureRequest) -> Ask:
    """One of the small asks."""
    return SMALL_ASKS[request.param]


def test_the_laws_hold_on_every_edge(small_ask: Ask) -> None:
    """Walks every edge of every reachable state once and asserts all laws of the dialog on it."""
    edges = 0
    for before, event, after in reachable(small_ask):
        edges += 1
        settled_stays_settled(before, event, after)
        nothing_leaves_sending_but_the_end(before, event, after)
        an_old_page_changes_nothing(before, event, after)
        twice_is_once(small_ask, before, event, after)
        what_leaves_is_frozen_and_was_shown(small_ask, before, event, after)
        a_text_that_nobody_asked_for_changes_no_answer(before, event, after)
        no_text_is_dropped_in_silence(before, event, after)
        the_state_is_well_formed(small_ask, before, after)
    assert edges > 300


def settled_stays_settled(before: State, event: Event, after: State) -> None:
    """Only `working` may still be noted on a settled ask."""
    if before.phase == "settled":
        assert changed(before, after) <= {"working"}, (before, event)
        assert after.working == (before.working or isinstance(event, Worked))


def nothing_leaves_sending_but_the_end(before: State, event: Event, after: State) -> None:
    """A frozen decision stays as it is until it is confirmed or the ask has ended; no timer touches it."""
    if before.phase != "sending":
        return
    assert after.decision == before.decision
    if isinstance(event, Delivered | Ended):
        assert after.phase == "settled"
        assert after.outcome is not None
    else:
        assert changed(before, after) <= {"away", "unknown", "working"}, event
        assert after.away == (before.away or isinstance(event, Failed))
        assert after.unknown == (event.is_unknown if isinstance(event, Failed) else before.unknown)
        assert after.working == (before.working or isinstance(event, Worked))


def an_old_page_changes_nothing(before: State, event: Event, after: State) -> None:
    """A button with another epoch is without effect; two kinds stand outside the pages."""
    match event:
        case Tapped(action=KeepWaiting() | TakeOffer()):
            return
        case Tapped(epoch=epoch) if epoch != before.epoch:
            assert not changed(before, after), event


def twice_is_once(an_ask: Ask, before: State, event: Event, after: State) -> None:
    """An update that comes again changes nothing; so does any event that is repeated at once."""
    again = step(an_ask, after, event)
    if isinstance(event, Tapped | Texted):
        assert event.update_id in after.seen
        assert again.state == after
        assert not again.touched
    elif not isinstance(event, Ticked):
        assert again.state == after, (before, event)


def what_leaves_is_frozen_and_was_shown(an_ask: Ask, before: State, event: Event, after: State) -> None:
    """A decision appears only on the way into sending or a release, and holds what was chosen."""
    decision = after.decision
    if decision == before.decision:
        return
    assert decision is not None
    assert before.phase == "open"
    assert after.phase == ("settled" if decision.kind == "release" else after.phase)
    assert after.phase in {"sending", "settled"}
    assert (decision.by is None) == isinstance(event, Expired)
    assert len(decision.answers) == (len(an_ask.questions) if decision.kind == "answer" else 0)
    if isinstance(event, Tapped) and isinstance(event.action, Send | Confirmed) and decision.kind == "answer":
        assert decision.answers == before.answers
        assert not unanswered(before) or before.confirm == "send"
    if an_ask.permission is not None:
        a_permission_is_given_by_a_person_alone(an_ask.permission, event, decision)
    if decision.kind in {"reject", "skip", "always"} and decision.by is not None:
        assert before.confirm == decision.kind
    if decision.kind == "skip":
        assert an_ask.capabilities.can_skip
    if decision.kind == "reject" and decision.by is None:
        assert an_ask.capabilities.reject_stops


def a_text_that_nobody_asked_for_changes_no_answer(before: State, event: Event, after: State) -> None:
    """It is offered at most, also if it is exactly a label."""
    if isinstance(event, Texted) and event.how in {"offered", "part"} and before.joining is None:
        assert (after.answers, after.decision, after.phase) == (before.answers, before.decision, before.phase)


def no_text_is_dropped_in_silence(before: State, event: Event, after: State) -> None:
    """An offer ends by its own buttons, ✏️ or another text; else it stays, and the phone says that it was not used."""
    is_taken = isinstance(event, Texted) or (isinstance(event, Tapped) and isinstance(event.action, (TakeOffer, Arm)))
    assert before.offer is None or is_taken or after.offer is not None
    assert before.joining is None or after.phase != "settled" or after.offer is not None


def a_permission_is_given_by_a_person_alone(permission: Permission, event: Event, decision: Decision) -> None:
    """By a tap on its own button, never by words, never by time; for good only where that is offered."""
    allows = decision.kind == "always" or any(answer.picks for answer in decision.answers)
    assert not allows or (isinstance(event, Tapped) and decision.by is not None)
    assert decision.kind != "always" or permission.always


def the_state_is_well_formed(an_ask: Ask, before: State, after: State) -> None:
    """Indices point at something, the epoch never falls, and only the right phases carry the right parts."""
    assert after.epoch >= before.epoch
    assert 0 <= after.page <= len(an_ask.questions)
    assert len(after.answers) == len(an_ask.questions)
    for question_, answer in zip(an_ask.questions, after.answers, strict=True):
        assert all(0 <= pick < len(question_.options) for pick in answer.picks)
        assert len(set(answer.picks)) == len(answer.picks)
        assert question_.custom or answer.text is None
        assert question_.multiple or len(answer.picks) <= 1
    assert (after.outcome is not None) == (after.phase == "settled")
    assert (after.due_s is not None) == (after.joining is not None)
    if after.phase == "sending":
        assert after.decision is not None
        assert after.joining is None
        assert after.armed is None
    if not an_ask.answerable:
        assert after.phase in {"matching", "open", "settled"}
        assert not any(after.answers)
