"""Single stories of an errand: what is known, and the order that follows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hermes.core import dialog
from hermes.core.errand import advance
from hermes.core.graces import LEFT_GRACE_S, LONGEST_RETRY_S, OPEN_S, UNCONFIRMED_S
from hermes.model.answer import Allowed, Answer, Decision, Once
from hermes.model.ask import Capabilities
from hermes.model.entry import Entry, Phone
from hermes.model.errand import (
    Accepted,
    AskVerdict,
    Doubted,
    Errand,
    Happen,
    HookLeft,
    HookSeen,
    Judged,
    LookForHook,
    NewsCame,
    Send,
    SessionBusy,
    SetRoute,
    Terms,
    Unknown,
    Unreached,
    Wait,
    Woke,
)
from hermes.model.events import Delivered, Ended, Failed, Worked
from hermes.model.signals import Dismissed, Quiet, Replied
from hermes.model.verdicts import AnsweredWith, StillOpen, Unproven
from tests.asks import ANN, ask, permission_ask, question

if TYPE_CHECKING:
    from hermes.model.ask import Ask
    from hermes.model.entry import Route
    from hermes.model.errand import Fact, Order

THEIRS = Replied("que_1", "ses_1", (("Redis",),))
QUESTION, PERMISSION = ask(question()), permission_ask()
CLAUDE = Capabilities("Claude", reports=False, silence_s=3.0, tells_answers=True)


class Story:
    """One entry, its errand and a clock; `order` is what has to be done now."""

    def __init__(
        self, an_ask: Ask, *, is_served: bool = True, route: Route | None = None, is_sent: bool = False
    ) -> None:
        server = "desk" if is_served else ""
        an_ask = replace(an_ask, source=replace(an_ask.source, server=server))
        self.entry = Entry("e1", "k7", an_ask, dialog.start(an_ask, matching=False), Phone(11), 1000.0, route=route)
        if is_sent:
            decision = Decision("answer", 1000.0, (Answer((1,)),), ANN)
            self.entry = replace(self.entry, state=replace(self.entry.state, phase="sending", decision=decision))
        meant = AnsweredWith(Once() if an_ask.permission is not None else (("SQLite",),), "")
        self.terms = Terms(1000.0, meant if is_sent else None, is_served, restarts_hooks=True)
        self.errand = Errand()
        self.now_s = 100.0
        self.order: Order | None = None

    def learn(self, *facts: Fact) -> Order | None:
        """Take these in, and return the order behind the last."""
        for fact in facts:
            self.errand, self.order = advance(self.entry, self.errand, fact, self.now_s, self.terms)
        return self.order

    def later(self, seconds: float) -> Order | None:
        """Let time pass."""
        self.now_s += seconds
        return self.learn(Woke())


# --- hints --------------------------------------------------------------------------------------------------------


def test_news_that_comes_during_a_look_is_looked_into() -> None:
    """The look began before it, and says "still open"."""
    story = Story(QUESTION)
    assert story.learn(Doubted()) == AskVerdict()
    asked_s = story.now_s
    story.now_s += 1.0
    story.learn(NewsCame(THEIRS))
    assert story.learn(Judged(StillOpen(), asked_s)) == AskVerdict()
    assert story.learn(Judged(StillOpen(), story.now_s)) is None


def test_every_server_that_tells_of_an_end_is_asked() -> None:
    """One of them may know nothing of it."""
    story = Story(QUESTION, is_served=False)
    quiet = Quiet("ses_1")
    assert story.learn(NewsCame(quiet, "one"), NewsCame(quiet, "two")) == AskVerdict("one")
    assert story.learn(Judged(Unproven(), story.now_s, "one")) == AskVerdict("two")
    asked_s = story.now_s
    story.now_s += 1.0
    story.learn(NewsCame(quiet, "two"))
    assert story.learn(Judged(Unproven(), asked_s, "two")) == AskVerdict("two")
    assert story.learn(Unreached("two")) == Wait(LONGEST_RETRY_S)
    assert story.later(LONGEST_RETRY_S) == AskVerdict("two")
    assert story.learn(Judged(Unproven(), story.now_s, "two")) is None


# --- an answer on its way by a server -----------------------------------------------------------------------------


def test_a_verdict_is_no_reason_to_send_after_news_or_for_long() -> None:
    """A full disk may hold up what comes before: a late word to a dead permission may run its command."""
    story = Story(PERMISSION, is_sent=True, route="server")
    assert story.learn(Judged(StillOpen(), story.now_s)) == Send()
    assert story.later(OPEN_S + 1.0) == AskVerdict()
    assert story.learn(Judged(StillOpen(), story.now_s)) == Send()
    assert story.learn(NewsCame(Dismissed("per_1", "ses_1"))) == AskVerdict()


def test_the_route_is_saved_before_the_first_answer_leaves() -> None:
    """After a restart no other way may carry it, too."""
    permission = Story(PERMISSION, is_sent=True)
    assert permission.learn(HookSeen(waits=False), Judged(StillOpen(), permission.now_s)) == SetRoute("server")
    two_ways = Story(QUESTION, is_sent=True)
    assert two_ways.learn(HookSeen(waits=True), Judged(StillOpen(), two_ways.now_s)) == SetRoute("server")
    hooked = Story(QUESTION, is_sent=True, is_served=False)
    assert hooked.learn(HookSeen(waits=True)) == SetRoute("waiter")


def test_a_question_with_one_way_needs_no_saved_route() -> None:
    """Its server alone can take the answer, and is asked for a verdict first."""
    story = Story(QUESTION, is_sent=True)
    assert story.learn(HookSeen(waits=False), Judged(StillOpen(), story.now_s)) == Send()


def test_a_delay_that_cannot_be_saved_holds_up_no_answer() -> None:
    """It is only told; the server is asked again in its time."""
    story = Story(QUESTION, is_sent=True, route="server")
    assert story.learn(Unreached()) == Happen(Failed(1000.0))
    assert isinstance(story.later(1.0), AskVerdict)
    assert story.learn(Judged(StillOpen(), story.now_s)) == Send()


def test_an_answer_to_an_agent_that_this_version_does_not_know_is_told_of_once() -> None:
    """Nothing else is done, whatever comes; an upgrade delivers it, or tells why that fails now."""
    story = Story(QUESTION, is_sent=True, route="server")
    story.terms = replace(story.terms, meant=None, is_known=False)
    assert story.learn(Woke()) == Happen(Failed(1000.0, is_unknown=True))
    state = dialog.step(story.entry.ask, story.entry.state, Failed(1000.0, is_unknown=True)).state
    story.entry = replace(story.entry, state=state)
    assert story.learn(HookSeen(waits=True), NewsCame(THEIRS), Unreached()) is None
    assert story.later(1e6) is None
    story.terms = Story(QUESTION, is_sent=True).terms
    assert isinstance(story.learn(Woke()), AskVerdict)
    assert story.learn(Unreached()) == Happen(Failed(1000.0))
    assert not dialog.step(story.entry.ask, state, Failed(1000.0)).state.unknown


def test_a_session_at_work_that_cannot_be_saved_holds_up_no_end() -> None:
    """The end comes first."""
    story = Story(QUESTION, is_sent=True, route="server")
    story.learn(NewsCame(THEIRS), SessionBusy(), Judged(AnsweredWith(THEIRS.answers)))
    assert isinstance(story.order, Happen)
    assert isinstance(story.order.event, Ended)
    story.entry = replace(story.entry, state=dialog.step(story.entry.ask, story.entry.state, story.order.event).state)
    assert story.learn(Woke()) == Happen(Worked(1000.0))


def test_a_server_that_is_slower_than_any_effect_is_asked_less_and_less() -> None:
    """It would else be told the same again and again without a pause."""
    story = Story(QUESTION, is_sent=True, route="server")
    story.learn(Judged(StillOpen(), story.now_s), Accepted())
    asked_s = story.now_s
    story.now_s += UNCONFIRMED_S + 1.0
    assert story.learn(Judged(StillOpen(), asked_s)) == Happen(Failed(1000.0))
    assert story.errand.look_s is not None
    assert story.errand.look_s > story.now_s


def test_what_a_server_did_not_know_was_not_our_word() -> None:
    """How long it was allowed for is not known, then."""
    story = Story(PERMISSION, is_sent=True, route="server")
    story.learn(Judged(StillOpen(), story.now_s), Unknown(), Judged(AnsweredWith(Allowed()), story.now_s))
    assert isinstance(story.order, Happen)
    assert story.order.event == Delivered(1000.0, "record", Allowed())


def test_what_a_server_does_not_know_any_more_may_be_our_word() -> None:
    """An earlier reply was accepted, and took effect at last."""
    story = Story(PERMISSION, is_sent=True, route="server")
    story.learn(Judged(StillOpen(), story.now_s), Accepted())
    story.now_s += UNCONFIRMED_S + 1.0
    assert story.learn(Judged(StillOpen(), story.now_s)) == Send()
    story.learn(Unknown(), Judged(AnsweredWith(Allowed()), story.now_s))
    assert isinstance(story.order, Happen)
    assert story.order.event == Delivered(1000.0, "record")


# --- hooks --------------------------------------------------------------------------------------------------------


def test_a_hook_that_could_not_print_handed_nothing_over() -> None:
    """It took the text, and said that its agent had left it: silence proves nothing then."""
    story = Story(replace(PERMISSION, capabilities=CLAUDE), is_sent=True, is_served=False, route="waiter")
    story.entry = replace(story.entry, waiter_taken=True, waits=True)
    assert story.learn(HookLeft(), HookSeen(waits=False)) == Wait(LEFT_GRACE_S)
    assert story.later(LEFT_GRACE_S) == LookForHook()
    story.learn(HookSeen(waits=False))
    assert isinstance(story.order, Happen)
    assert isinstance(story.order.event, Ended)


def test_an_end_by_the_agents_own_timer_says_so() -> None:
    """No person answered at the desk."""
    story = Story(QUESTION, is_served=False, route="waiter")
    story.learn(NewsCame(replace(THEIRS, by_timer=True)))
    assert isinstance(story.order, Happen)
    assert isinstance(story.order.event, Ended)
    assert (story.order.event.kind, story.order.event.reason) == ("answered_at_desk", "timer")


def test_a_hook_that_waits_takes_the_place_of_one_that_left() -> None:
    """Two hooks of one call: if the second one dies its plugin starts it again."""
    story = Story(QUESTION, is_served=False)
    story.learn(HookLeft(), HookSeen(waits=True))
    assert not story.errand.has_left


# --- nothing to do ------------------------------------------------------------------------------------------------


def test_a_damaged_entry_asks_for_nothing() -> None:
    """It is open without a request, or on its way without a decision: whatever was done could be wrong."""
    story = Story(QUESTION)
    source = replace(story.entry.ask.source, request_id=None)
    story.entry = replace(story.entry, ask=replace(story.entry.ask, source=source))
    assert story.learn(Doubted()) is None
    story = Story(QUESTION)
    story.entry = replace(story.entry, state=replace(story.entry.state, phase="sending"))
    assert story.learn(Doubted()) is None
