"""What agents tell becomes entries: one ask is one entry, and a hint goes to the asks that it is about."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from hermes.agents.registry import ADAPTERS
from hermes.config.settings import Matching
from hermes.core.permission_rules import Rules
from hermes.errors import NotSaved
from hermes.listener.agent.errands import Errands
from hermes.listener.agent.hooks import WaitingHooks
from hermes.listener.agent.intake import EARLY_NEWS, Intake
from hermes.listener.entries import RECENT, Entries
from hermes.model.answer import Allowed, Answer, Decision, Proof
from hermes.model.ask import Ask
from hermes.model.entry import Entry
from hermes.model.errand import Fact, NewsCame, RequestCame
from hermes.model.events import Delivered, Ended
from hermes.model.signals import Announced, Asked, Busy, Dismissed, Quiet, Replied, Signal
from tests.asks import ANN, ask, question
from tests.at_once import at_once
from tests.books import a_book, entry_of, no_records
from tests.stores import a_store

if TYPE_CHECKING:
    from pathlib import Path

NOW_S = 1_757_000_000.0
YES = Answer((0,))


class Places(WaitingHooks):
    """Where the hooks of these requests wait."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.requests: set[str | None] = set()

    def waiting(self, ask: Ask) -> bool:
        return ask.source.request_id in self.requests


class Noted(Errands):
    """Errands that note news, and take in everything else."""

    def __init__(self, book: Entries, room: WaitingHooks) -> None:
        super().__init__(book, {}, room, ADAPTERS, Matching(), monotonic=lambda: NOW_S)
        self.news: list[tuple[str | None, Signal]] = []
        self.is_full = False

    async def tell(self, entry_id: str, fact: Fact) -> None:
        if not isinstance(fact, NewsCame):
            await super().tell(entry_id, fact)
            return
        if self.is_full:
            raise NotSaved("the disk is full", disk_full=True)
        entry = self._entries.get(entry_id)
        assert entry is not None
        self.news.append((entry.ask.source.request_id, fact.news))
        self._advance(entry_id, fact)

    def is_ours(self, entry: Entry, _: Replied) -> bool:
        return entry.state.phase == "sending"


class Desk:
    """A book, and what takes signals in."""

    def __init__(self, root: Path) -> None:
        self.book = a_book(a_store(root, now=lambda: NOW_S))
        self.places = Places(root)
        self.waiting = self.places.requests
        self.errands = Noted(self.book, self.places)
        self.hints = self.errands.news
        self.intake = Intake(self.book, no_records(self.book), self.errands, self.places, rules=Rules())

    def calls(self, *request_ids: str, call_id: str = "digest") -> list[Entry]:
        """Ask the same of one session once for each of these, as an agent does that names its calls alone."""
        for request_id in request_ids:
            self.waiting.add(request_id)
            at_once(self.intake.take(Asked(an_ask(request_id, call_id), waits=True, nonce=True)))
        made = {entry.ask.source.request_id: entry for entry in self.book.all()}
        return [made[request_id] for request_id in request_ids]

    def allow(self, entry: Entry, answer: Answer = YES) -> None:
        """Send our yes to one of them, or another answer; its hook takes it."""
        decided = replace(entry.state, phase="sending", decision=Decision("answer", NOW_S, (answer,), ANN))
        at_once(self.book.change(entry.id, lambda found: replace(found, state=decided, waiter_taken=True)))

    def hand_over(self, entry: Entry, proof: Proof = "receipt") -> None:
        """Settle it by the receipt of its hook, which says no more, or by its news, and put it away."""
        self.waiting.discard(entry.ask.source.request_id)
        at_once(self.book.apply(entry.id, Delivered(NOW_S, proof)))
        at_once(self.book.close(entry_of(self.book, entry.id)))

    def news(self) -> list[str | None]:
        """Tell that a call has ended; the request ids of the asks that this is taken for."""
        self.hints.clear()
        at_once(self.intake.take(Replied("", "ses_1", Allowed(), call_id="digest")))
        return [request_id for request_id, _ in self.hints]

    def phases(self) -> list[str]:
        """The phases of all that is open, as far as it was not closed."""
        return [entry.state.phase for entry in self.book.all()]

    def only(self) -> Entry:
        """The one open entry."""
        (entry,) = self.book.all()
        return entry


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """An empty book."""
    return Desk(tmp_path / "store")


def an_ask(
    request_id: str | None = "que_1", call_id: str | None = "call_1", session: str = "ses_1", **more: str
) -> Ask:
    """An ask of this identity."""
    one = ask(question())
    return replace(one, source=replace(one.source, request_id=request_id, call_id=call_id, session_id=session, **more))


def test_an_ask_that_comes_three_ways_is_one_entry(desk: Desk) -> None:
    """What one of them knows is learnt; what is shown stays; the server that lists it now is the right one."""
    at_once(desk.intake.take(Asked(an_ask(session_title="", server="old name"))))
    at_once(desk.intake.take(Asked(an_ask(session_title="Fix login", server="desk"))))
    at_once(desk.intake.take(Asked(an_ask(session_title="Another", server=""))))
    at_once(desk.intake.take(Announced(an_ask(request_id=None))))
    source = desk.only().ask.source
    assert (source.session_title, source.server) == ("Fix login", "desk")


def test_a_text_that_lies_ready_under_another_machine_id_is_taken_back(desk: Desk) -> None:
    """Its hook asks again under its new id: the old text may never be taken after another end."""
    at_once(desk.intake.take(Asked(an_ask(machine="before"))))
    before = desk.only().ask
    desk.places.put(before, "yes")
    at_once(desk.intake.take(Asked(an_ask(machine="before"))))
    assert desk.places.is_ready(before)
    at_once(desk.intake.take(Asked(an_ask(machine="after"))))
    assert desk.only().ask.source.machine == "after"
    assert not desk.places.is_ready(before)


def test_a_request_joins_the_call_that_was_announced(desk: Desk) -> None:
    """By the call id; the words of the request are those that are shown."""
    announced = replace(an_ask(request_id=None), questions=(question("Which, before it was checked?"),))
    at_once(desk.intake.take(Announced(announced)))
    at_once(desk.intake.take(Announced(announced)))
    assert desk.phases() == ["matching"]
    at_once(desk.intake.take(Asked(an_ask(directory="/home/dev/other"))))
    assert desk.phases() == ["open"]
    assert desk.only().ask.source.request_id == "que_1"
    assert desk.only().ask.source.directory == "/home/dev/other"
    assert desk.only().ask.questions == (question(),)


def test_the_folder_is_the_one_where_a_server_lists_it(desk: Desk) -> None:
    """Asked about in any other, the server would know nothing of it, and it would look dead."""
    at_once(desk.intake.take(Asked(an_ask(directory="/home/dev/link"))))
    at_once(desk.intake.take(Asked(an_ask(directory="/home/dev/project", server="desk"))))
    at_once(desk.intake.take(Asked(an_ask(directory="/home/dev/link"))))
    assert desk.only().ask.source.directory == "/home/dev/project"


def test_a_call_whose_request_is_known_already_is_gone(desk: Desk) -> None:
    """The request came first by another way, without its call: that entry goes on, the other was never shown."""
    at_once(desk.intake.take(Announced(an_ask(request_id=None))))
    call = desk.only()
    at_once(desk.intake.take(Asked(an_ask(call_id=None))))
    assert desk.phases() == ["matching", "open"] or desk.phases() == ["open", "matching"]
    at_once(desk.errands.tell(call.id, RequestCame(an_ask())))
    settled = desk.book.get(call.id)
    assert settled is not None
    assert settled.state.outcome is not None
    assert settled.state.outcome.kind == "gone"
    assert [one.id for one in desk.book.all() if one.state.phase == "open"] != [call.id]
    assert sorted(desk.phases()) == ["open", "settled"]


def test_a_repeated_call_id_with_another_request_is_another_ask(desk: Desk) -> None:
    """Some providers count their calls anew in each step."""
    at_once(desk.intake.take(Announced(an_ask(request_id=None))))
    at_once(desk.intake.take(Asked(an_ask("que_1"))))
    at_once(desk.intake.take(Asked(an_ask("que_2"))))
    assert {one.ask.source.request_id for one in desk.book.all()} == {"que_1", "que_2"}
    assert desk.phases() == ["open", "open"]


def test_what_was_closed_is_not_asked_again(desk: Desk) -> None:
    """A server goes on listing its zombies."""
    at_once(desk.intake.take(Asked(an_ask())))
    at_once(desk.book.apply(desk.only().id, Ended(NOW_S, "gone")))
    at_once(desk.book.close(entry_of(desk.book, desk.only().id)))
    at_once(desk.intake.take(Asked(an_ask())))
    assert desk.book.all() == []


def test_a_hint_goes_to_the_asks_that_it_is_about(desk: Desk) -> None:
    """A reply or a dismissal to its request alone; a silence to all of its session; nothing else to nobody."""
    for request_id, session in (("que_1", "ses_1"), ("que_2", "ses_1"), ("que_3", "ses_2")):
        at_once(desk.intake.take(Asked(an_ask(request_id, request_id, session))))
    told = (Replied("que_2", "ses_1", ()), Dismissed("que_1", "ses_1"), Replied("que_9", "ses_1", ()))
    for signal in told:
        at_once(desk.intake.take(signal))
    assert desk.hints == [("que_2", told[0]), ("que_1", told[1])]
    desk.hints.clear()
    at_once(desk.intake.take(Quiet("ses_1")))
    assert {request_id for request_id, _ in desk.hints} == {"que_1", "que_2"}


def test_an_agent_that_works_again_is_noted_where_its_ask_is_over(desk: Desk) -> None:
    """Settled, or said to be answered; not for one that is still open in the same session."""
    for request_id in ("que_1", "que_2", "que_3"):
        at_once(desk.intake.take(Asked(an_ask(request_id, request_id))))
    over, answered, waiting = desk.book.all()
    at_once(desk.book.apply(over.id, Ended(NOW_S, "answered_at_desk")))
    decided = replace(answered.state, phase="sending", decision=Decision("answer", NOW_S, (Answer((0,)),), ANN))
    at_once(desk.book.change(answered.id, lambda found: replace(found, state=decided)))
    at_once(desk.intake.take(Busy("ses_1")))
    assert [one.state.working for one in desk.book.all()] == [True, False, False]
    at_once(desk.intake.take(Replied(str(answered.ask.source.request_id), "ses_1", ())))
    at_once(desk.intake.take(Busy("ses_1")))
    assert [one.state.working for one in desk.book.all()] == [True, True, False]
    assert waiting.state.phase == "open"


def test_news_that_comes_before_its_question_is_heard_then(desk: Desk) -> None:
    """Of many that speak of what is closed, or was never ours, the latest are kept."""
    one = Asked(an_ask("que_0", "call_0"))
    for number in range(EARLY_NEWS + 1):
        at_once(desk.intake.take(Dismissed(f"que_{number}", one.ask.source.session_id)))
    at_once(desk.intake.take(one))
    assert desk.hints == [], "too long ago"
    other = Asked(an_ask(f"que_{EARLY_NEWS}", "call_1"))
    at_once(desk.intake.take(other))
    assert [news for _, news in desk.hints] == [Dismissed(f"que_{EARLY_NEWS}", other.ask.source.session_id)]
    at_once(desk.intake.take(other))
    assert len(desk.hints) == 1


# --- two identical calls of one turn ------------------------------------------------------------------------------


def test_two_identical_calls_that_both_wait_are_two_asks(desk: Desk) -> None:
    """The second one closes nothing, and news that names neither settles neither."""
    desk.calls("first", "second")
    assert desk.phases() == ["open", "open"]
    assert desk.news() == []


def test_a_call_that_is_asked_again_closes_the_one_that_nobody_waits_for(desk: Desk) -> None:
    """Its hook has gone: the newer ask has taken its place."""
    (first,) = desk.calls("first")
    desk.waiting.clear()
    desk.calls("second")
    settled = desk.book.get(first.id)
    assert settled is not None
    assert settled.state.outcome is not None
    assert settled.state.outcome.kind == "gone"


@pytest.mark.parametrize("place", [0, 1], ids=["first", "second"])
def test_news_is_taken_for_the_call_that_our_word_went_to(desk: Desk, place: int) -> None:
    """Whichever of the two that was."""
    desk.allow(desk.calls("first", "second")[place])
    assert desk.news() == [("first", "second")[place]]


def test_news_of_a_call_that_was_handed_over_settles_no_other(desk: Desk) -> None:
    """It comes when the command has run, which is long after. The next news is of the other."""
    first, second = desk.calls("first", "second")
    desk.allow(first)
    desk.hand_over(first)
    assert desk.news() == []
    assert desk.book.get(second.id) == second
    assert desk.news() == ["second"]


def test_news_that_could_not_be_saved_settles_no_other_when_it_comes_again(desk: Desk) -> None:
    """Meanwhile its ask may be settled: what it told is kept in memory, too."""
    first, second = desk.calls("first", "second")
    desk.allow(first)
    desk.errands.is_full = True
    with pytest.raises(NotSaved):
        desk.news()
    desk.errands.is_full = False
    desk.hand_over(first, "plugin")
    assert desk.news() == []
    assert desk.book.get(second.id) == second
    assert desk.news() == ["second"]


def test_news_that_could_not_be_saved_is_taken_when_it_comes_again(desk: Desk) -> None:
    """Its ask is open still; then the next news is of the other."""
    first, _ = desk.calls("first", "second")
    desk.allow(first)
    desk.errands.is_full = True
    with pytest.raises(NotSaved):
        desk.news()
    desk.errands.is_full = False
    assert desk.news() == ["first"]
    desk.hand_over(first, "plugin")
    assert desk.news() == ["second"]


def test_news_of_a_call_is_expected_until_its_turn_ends(desk: Desk) -> None:
    """A command that was stopped is told of by nothing else."""
    (first,) = desk.calls("first")
    desk.allow(first)
    desk.hand_over(first)
    at_once(desk.intake.take(Quiet("ses_2")))
    at_once(desk.intake.take(Quiet("ses_1")))
    desk.calls("second")
    assert desk.news() == ["second"]


def test_news_that_came_before_the_end_was_known_is_not_expected_again(desk: Desk) -> None:
    """Its agent has told already what became of it."""
    (first,) = desk.calls("first")
    desk.allow(first)
    assert desk.news() == ["first"]
    at_once(desk.book.apply(first.id, Delivered(NOW_S, "plugin")))
    at_once(desk.book.close(entry_of(desk.book, first.id)))
    desk.calls("second")
    assert desk.news() == ["second"]


def test_news_of_a_call_that_was_allowed_before_a_restart_settles_no_other(desk: Desk) -> None:
    """It may be still to come; what was refused, and other turns, are told of by no such news."""
    for request_id, told in (("first", Answer((0,))), ("refused", Answer(text="no"))):
        (one,) = desk.calls(request_id)
        desk.allow(one, told)
        desk.hand_over(one)
    desk = Desk(desk.places.root)
    desk.calls("second")
    assert desk.news() == []
    assert desk.news() == ["second"]


def test_so_much_news_is_expected_and_no_more(desk: Desk) -> None:
    """What is remembered of closed asks does not grow with them."""
    for number in range(RECENT + 1):
        (one,) = desk.calls(str(number))
        desk.allow(one)
        desk.hand_over(one)
    desk.calls("last")
    for _ in range(RECENT):
        assert desk.news() == []
    assert desk.news() == ["last"]
