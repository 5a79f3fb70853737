"""Which turns get a notice, and when it is posted."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from hermes.core import notices
from hermes.core.notices import (
    KEEPS_TRYING,
    LATEST_S,
    LONGEST_REASON,
    LONGEST_WORDS,
    MOST_UNTOLD,
    NoticeRules,
    Pause,
    Post,
    TakeButtons,
    TellRetry,
    Update,
)
from hermes.model.ask import Source
from hermes.model.notice import Notice, Retry, RetryShown, Shown, Turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SOURCE = Source("claude-code", "laptop", "ses_1", "/home/dev/shop-api")
RULES = NoticeRules(finished_s=120.0)
POST_AFTER_S = 20.0
NEW = Notice("n1", "claude-code", "ses_1")


def turn(turn_id: str = "t1", *, began_s: float | None = 0.0, ended_s: float = 300.0) -> Turn:
    """A turn of five minutes."""
    return Turn(SOURCE, "Claude Code", turn_id, began_s, ended_s)


def shown(of: Turn, message_id: int = 7) -> Shown:
    """Its notice on the phone."""
    return Shown(of, 301.0, 1001, message_id)


def test_a_long_turn_gets_a_notice_after_the_time_for_the_desk() -> None:
    """That time counts from the moment in which Hermes heard of it."""
    waiting = notices.ended(NEW, turn(), RULES, 301.0)
    assert notices.due(waiting, POST_AFTER_S, 311.0) == Pause(10.0)
    assert notices.due(waiting, POST_AFTER_S, 321.0) == Post(turn())
    assert notices.due(notices.posted(waiting, shown(turn())), POST_AFTER_S, 400.0) is None
    alone = replace(turn(), nobody_there=True)
    assert notices.due(notices.ended(NEW, alone, RULES, 301.0), POST_AFTER_S, 302.0) == Post(alone)


@pytest.mark.parametrize(
    ("ended", "rules"),
    [
        (turn(ended_s=119.9), RULES),
        (turn(began_s=None), RULES),
        (turn(), replace(RULES, enabled=False)),
    ],
    ids=["short", "of a length that nobody knows", "not wanted"],
)
def test_other_turns_get_none(ended: Turn, rules: NoticeRules) -> None:
    """Nothing waits for them."""
    assert notices.due(notices.ended(NEW, ended, rules, 301.0), POST_AFTER_S, 1000.0) is None


def test_a_turn_without_times_is_as_long_as_hermes_saw_it_run() -> None:
    """The first report of its beginning counts."""
    running = notices.began(notices.began(NEW, "t1", 100.0), "t1", 250.0)
    assert notices.ended(running, turn(began_s=None), RULES, 301.0).turn == turn(began_s=100.0)


def test_a_turn_that_nobody_saw_end_makes_the_next_one_no_longer() -> None:
    """Somebody interrupted it; and a prompt that was queued meanwhile has a beginning of its own."""
    running = notices.began(notices.began(NEW, "t0", 1.0), "t1", 290.0)
    assert notices.ended(running, turn(began_s=None), RULES, 301.0).turn == turn(began_s=290.0)
    queued = notices.began(notices.began(NEW, "t1", 100.0), "t2", 290.0)
    assert notices.ended(queued, turn(began_s=None), RULES, 301.0).turn == turn(began_s=100.0)
    many = NEW
    for number in range(9):
        many = notices.began(many, f"t{number}", float(number))
    assert [one.turn_id for one in many.begun] == ["t5", "t6", "t7", "t8"]


def test_a_turn_that_begins_meanwhile_drops_the_notice_that_waits() -> None:
    """Somebody is at the desk."""
    waiting = notices.ended(NEW, turn(), RULES, 301.0)
    for meanwhile in (notices.busy(waiting, 310.0), notices.began(waiting, "t2", 310.0)):
        assert notices.due(meanwhile, POST_AFTER_S, 1000.0) is None
        assert meanwhile.turn == turn()
    assert notices.busy(waiting, 302.0) == waiting, "that report may be older than the end of the turn"
    posted = notices.posted(waiting, shown(turn()))
    assert notices.busy(posted, 310.0) == posted


def test_a_prompt_from_the_phone_lets_the_notice_that_waits_be_posted_at_once() -> None:
    """It begins the next turn; a notice that was dropped or posted stays as it is."""
    waiting = notices.ended(NEW, turn(), RULES, 301.0)
    for after in (
        notices.busy(waiting, 301.0, is_ours=True),
        notices.began(waiting, "t2", 301.0, "msg_1", is_ours=True),
    ):
        assert notices.due(after, POST_AFTER_S, 301.0) == Post(turn())
        assert notices.due(notices.busy(after, 310.0), POST_AFTER_S, 310.0) == Post(turn())
    posted = notices.posted(waiting, shown(turn()))
    dropped = notices.ended(NEW, turn(ended_s=119.0), RULES, 301.0)
    for other in (NEW, posted, dropped):
        assert notices.busy(other, 400.0, is_ours=True) == other


def test_an_end_that_waits_comes_before_the_answer_to_a_prompt_from_the_phone() -> None:
    """Also if nobody told that the turn of the prompt began."""
    waiting = notices.ended(NEW, turn(), RULES, 301.0)
    answer = turn("t2", began_s=301.0, ended_s=305.0)
    answered = notices.ended(waiting, answer, RULES, 305.0, is_ours=True)
    assert notices.due(answered, POST_AFTER_S, 305.0) == Post(turn())
    told = notices.posted(answered, shown(turn()))
    assert notices.due(told, POST_AFTER_S, 305.0) == Post(answer)


def test_a_turn_that_the_agent_begins_by_itself_goes_on_with_the_one_before() -> None:
    """It is as long as both, and told if that one is."""
    waiting = notices.ended(notices.began(NEW, "t1", 1.0), turn(began_s=None), RULES, 301.0)
    works = notices.began(waiting, "t2", 310.0, goes_on=True)
    assert works.phase == "waiting", "nobody is at the desk because of it"
    assert notices.is_running(works)
    later = turn("t2", began_s=310.0, ended_s=320.0)
    over = notices.ended(works, later, RULES, 320.0)
    assert notices.due(over, 0.0, 320.0) == Post(replace(later, began_s=1.0))
    assert not notices.is_running(over)
    again = notices.began(notices.began(over, "t3", 330.0, goes_on=True), "t4", 331.0, goes_on=True)
    assert [(one.turn_id, one.at_s) for one in again.begun] == [("t1", 1.0), ("t2", 1.0), ("t3", 1.0), ("t4", 1.0)]


@pytest.mark.parametrize("is_posted", [True, False], ids=["the answer posted", "Telegram away"])
def test_a_turn_that_goes_on_with_one_from_the_phone_is_told_however_short(is_posted: bool) -> None:
    """The person waits for what their prompt comes to. The answer before it stays on the phone."""
    asked = notices.began(NEW, "t1", 300.0, "msg_1")
    answer = replace(turn(began_s=300.0, ended_s=302.0), prompt_id="msg_1", words="I wait for the tests.")
    told = notices.ended(asked, answer, RULES, 302.0, is_ours=True)
    told = notices.posted(told, shown(answer)) if is_posted else told
    works = notices.began(notices.stopped(told), "t2", 303.0, goes_on=True)
    assert notices.is_running(works)
    known = notices.begun(works, "t2")
    assert known is not None
    assert known.prompt_id == "msg_1"
    result = replace(answer, id="t2", ended_s=304.0, words="They pass.")
    over = notices.ended(works, result, RULES, 304.0, is_ours=True)
    if not is_posted:
        assert notices.due(over, POST_AFTER_S, 304.0) == Post(answer)
        over = notices.posted(over, shown(answer))
    assert notices.due(over, POST_AFTER_S, 304.0) == Post(result)


def test_a_turn_that_the_agent_begins_first_of_all_is_one_of_its_own() -> None:
    """Hermes has not heard of the one before."""
    waiting = notices.ended(NEW, turn(), RULES, 301.0)
    works = notices.began(waiting, "t2", 310.0, goes_on=True)
    assert works.phase == "waiting"
    assert notices.ended(works, turn("t2", began_s=None, ended_s=500.0), RULES, 500.0).turn == turn(
        "t2", began_s=310.0, ended_s=500.0
    )


@pytest.mark.parametrize("again", [turn(), turn("t0", ended_s=299.0)], ids=["the same", "an older one"])
def test_a_turn_that_is_known_changes_nothing(again: Turn) -> None:
    """The list after a reconnect brings it once more."""
    posted = notices.posted(notices.ended(NEW, turn(), RULES, 301.0), shown(turn()))
    assert notices.ended(posted, again, RULES, 999.0) == posted


def test_a_clock_that_was_set_back_holds_nothing_up() -> None:
    """The notice is posted at once."""
    assert notices.due(notices.ended(NEW, turn(), RULES, 301.0), POST_AFTER_S, 5.0) == Post(turn())


def test_only_the_newest_notice_of_a_session_keeps_its_buttons() -> None:
    """The message of the one before loses them once the new one is there."""
    second = turn("t2", began_s=400.0, ended_s=700.0)
    notice = notices.posted(notices.ended(NEW, turn(), RULES, 301.0), shown(turn()))
    notice = notices.ended(notice, second, RULES, 701.0)
    assert notices.due(notice, POST_AFTER_S, 721.0) == Post(second)
    notice = notices.posted(notice, shown(second, 9))
    assert notices.due(notice, POST_AFTER_S, 721.0) == TakeButtons(shown(turn()))
    notice = notices.without_buttons(notice, shown(turn()))
    assert notices.due(notice, POST_AFTER_S, 721.0) is None
    assert notice.shown == shown(second, 9)


def test_whether_a_turn_runs_is_known_from_what_was_told() -> None:
    """A turn whose end is never told runs until another one ends, or somebody says that it was interrupted."""
    first = notices.began(NEW, "t1", 100.0)
    assert not notices.is_running(NEW)
    assert notices.is_running(first)
    over = notices.ended(first, turn(), RULES, 301.0)
    assert not notices.is_running(over)
    second = notices.began(over, "t2", 400.0)
    assert notices.is_running(second)
    assert not notices.is_running(notices.ended(second, turn("t3", ended_s=500.0), RULES, 501.0))
    assert not notices.is_running(notices.stopped(second))
    left = notices.left(second)
    assert (left.is_left, notices.is_running(left)) == (True, False)
    resumed = notices.began(left, "t3", 600.0)
    assert (resumed.is_left, notices.is_running(resumed)) == (False, True)


def test_a_turn_is_named_after_its_latest_prompt() -> None:
    """Also after it began; if a prompt comes into one that has ended once, it runs again."""
    begun = notices.began(notices.began(NEW, "t0", 90.0), "t1", 100.0)
    named = notices.began(begun, "t1", 130.0, "id_1")
    assert [(one.turn_id, one.at_s, one.prompt_id) for one in named.begun] == [("t0", 90.0, ""), ("t1", 100.0, "id_1")]
    assert notices.began(named, "t1", 140.0).begun[-1].prompt_id == "id_1"
    over = notices.ended(named, turn(), RULES, 301.0)
    goes_on = notices.began(over, "t1", 302.0, "id_2")
    assert (notices.is_running(over), notices.is_running(goes_on)) == (False, True)
    assert not notices.is_running(notices.ended(goes_on, turn(ended_s=310.0), RULES, 310.0))


def test_a_notice_that_was_sent_while_the_next_turn_began_is_still_known() -> None:
    """Its buttons are taken away when the next one comes."""
    waiting = notices.ended(NEW, turn(), RULES, 301.0)
    running = notices.posted(notices.began(waiting, "t2", 321.0), shown(turn()))
    assert (running.phase, running.shown) == ("dropped", shown(turn()))


def test_a_turn_that_goes_on_after_its_end_counts_with_its_later_end() -> None:
    """A hook of the user's own may send the agent on; if that took long, the later end has a notice of its own."""
    first = notices.ended(NEW, turn(ended_s=60.0), RULES, 61.0)
    assert notices.due(notices.ended(first, turn(), RULES, 301.0), POST_AFTER_S, 321.0) == Post(turn())
    posted = notices.posted(notices.ended(NEW, turn(), RULES, 301.0), shown(turn()))
    soon = replace(turn(ended_s=419.0), words="The linter is content, too.")
    after = notices.ended(posted, soon, RULES, 420.0)
    assert notices.due(after, POST_AFTER_S, 420.0) == Update(shown(turn()), soon)
    updated = notices.updated(after, shown(turn()), soon)
    assert updated.shown == shown(soon)
    assert notices.due(updated, POST_AFTER_S, 420.0) is None
    late = replace(soon, ended_s=540.0)
    waiting = notices.ended(updated, late, RULES, 541.0)
    assert notices.due(waiting, POST_AFTER_S, 561.0) == Post(late)
    assert notices.due(notices.posted(waiting, shown(late, 9)), POST_AFTER_S, 561.0) == TakeButtons(shown(soon))


def test_a_turn_that_goes_on_in_short_steps_is_told_again_after_long() -> None:
    """The time counts from the notice, and not from the end before."""
    notice = notices.posted(notices.ended(NEW, turn(), RULES, 301.0), shown(turn()))
    for at_s in (360.0, 420.0):
        notice = notices.ended(notice, turn(ended_s=at_s), RULES, at_s)
        assert notices.due(notice, POST_AFTER_S, at_s) == Update(shown(turn()), turn(ended_s=at_s))
    notice = notices.ended(notice, turn(ended_s=430.0), RULES, 430.0)
    assert notices.due(notice, POST_AFTER_S, 450.0) == Post(turn(ended_s=430.0))


def test_the_answer_to_a_prompt_that_came_into_a_turn_has_a_notice_of_its_own() -> None:
    """Also soon after the notice of the turn's end before."""
    notice = notices.posted(notices.ended(NEW, turn(), RULES, 301.0), shown(turn()))
    answer = replace(turn(ended_s=310.0), prompt_id="id_1")
    assert notices.due(notices.ended(notice, answer, RULES, 310.0, is_ours=True), POST_AFTER_S, 310.0) == Post(answer)
    sending = notices.ended(NEW, turn(), RULES, 301.0)
    sent = notices.posted(notices.ended(sending, answer, RULES, 310.0, is_ours=True), shown(turn()))
    assert notices.due(sent, POST_AFTER_S, 310.0) == Post(answer)


def test_what_is_typed_into_a_turn_that_goes_on_drops_its_notice() -> None:
    """Somebody is at the desk."""
    waiting = notices.ended(notices.began(NEW, "t1", 0.0), turn(), RULES, 301.0)
    typed = notices.began(waiting, "t1", 302.0)
    assert notices.due(typed, POST_AFTER_S, 325.0) is None
    assert notices.is_running(typed)


def test_an_end_that_comes_while_the_notice_is_sent_updates_it() -> None:
    """The message tells of the end before."""
    waiting = notices.ended(NEW, turn(), RULES, 301.0)
    later = turn(ended_s=302.0)
    sent = notices.posted(notices.ended(waiting, later, RULES, 302.0), shown(turn()))
    assert notices.due(sent, POST_AFTER_S, 303.0) == Update(shown(turn()), later)


def test_a_clock_that_was_set_back_hides_no_later_end() -> None:
    """And the turn does not run after it."""
    begun = notices.began(NEW, "t1", 0.0)
    posted = notices.posted(notices.ended(begun, turn(), RULES, 301.0), shown(turn()))
    goes_on = notices.began(posted, "t1", 301.0)
    assert notices.is_running(goes_on)
    early = turn(ended_s=200.0)
    after = notices.ended(goes_on, early, RULES, 200.0)
    assert notices.due(after, POST_AFTER_S, 201.0) == Update(shown(turn()), early)
    assert not notices.is_running(after)


def test_an_end_of_long_ago_is_no_news() -> None:
    """A hook may have kept it while nobody listened."""
    assert notices.due(notices.ended(NEW, turn(), RULES, 300.0 + LATEST_S), POST_AFTER_S, 9e9) is None


def test_an_end_in_the_future_hides_no_later_turn() -> None:
    """A clock was wrong."""
    wrong = notices.ended(NEW, turn("t0", ended_s=9e9), RULES, 200.0)
    assert notices.due(notices.ended(wrong, turn(), RULES, 301.0), POST_AFTER_S, 321.0) == Post(turn())


def test_words_are_kept_only_as_long_as_somebody_may_read_them() -> None:
    """And not more of them than a document needs."""
    long = replace(turn(), words="x" * 99_999 + "y", failure="z" * 9_999)
    kept = notices.ended(NEW, long, RULES, 301.0).turn
    assert kept is not None
    assert (len(kept.words), kept.words[-1], len(kept.failure)) == (LONGEST_WORDS, "y", LONGEST_REASON)
    dropped = notices.ended(NEW, replace(long, began_s=299.0), RULES, 301.0).turn
    assert dropped is not None
    assert (dropped.words, dropped.failure) == ("", "")


# --- a walk over every edge -----------------------------------------------------------------------------------------

TURNS = (
    turn("t1"),
    replace(turn("t1", ended_s=350.0), words="It goes on."),
    turn("t2", began_s=400.0, ended_s=700.0),
    turn("t3", began_s=800.0, ended_s=810.0),
)
SAID_LATER = TURNS[1]


def moves(notice: Notice) -> Iterator[Notice]:
    """All that can happen to a notice."""
    yield notices.busy(notice, 20_000.0)
    yield notices.stopped(notice)
    yield notices.left(notice)
    yield from (notices.began(notice, one.id, 1.0) for one in TURNS)
    yield from (notices.ended(notice, one, RULES, 10_000.0) for one in TURNS)
    order = notices.due(notice, POST_AFTER_S, 20_000.0)
    if isinstance(order, Post):
        yield notices.posted(notice, shown(order.turn, len(notice.outdated) + 7))
    if isinstance(order, Update):
        yield notices.updated(notice, order.shown, order.turn)
    if isinstance(order, TakeButtons):
        yield notices.without_buttons(notice, order.shown)


@pytest.mark.long
def test_a_turn_is_posted_once_at_most_whatever_happens() -> None:
    """The walk follows the turns that were posted beside each state, in every order of events."""
    start: tuple[Notice, tuple[str, ...]] = (NEW, ())
    known, queue = {start}, deque([start])
    while queue:
        here, posted = queue.popleft()
        order = notices.due(here, POST_AFTER_S, 20_000.0)
        for there in moves(here):
            came = (*posted, order.turn.id) if isinstance(order, Post) and there.shown != here.shown else posted
            assert len(set(came)) == len(came)
            assert len(there.outdated) <= len(TURNS)
            if (there, came) not in known:
                known.add((there, came))
                queue.append((there, came))
    assert {came for _, came in known} == {(), ("t1",), ("t2",), ("t1", "t2")}
    assert any(there.shown is not None and there.shown.turn == SAID_LATER for there, _ in known)


# --- a walk over every order of answers, and of messages that are on their way ---------------------------------------


@dataclass(frozen=True, slots=True)
class Spot:
    """A notice, the order that Telegram has not answered yet, what each message says, and the latest end of each turn.

    `wanted`: the ends that answer a prompt from the phone, or waited for the desk when one came next.
    """

    notice: Notice = NEW
    flight: Post | Update | None = None
    phone: tuple[Turn, ...] = ()
    wanted: frozenset[Turn] = frozenset()

    def ends(self, one: Turn, *, is_ours: bool) -> Spot:
        """Let this turn end."""
        after = notices.ended(self.notice, one, RULES, 10_000.0, is_ours=is_ours)
        wanted = self.waited() if is_ours else self.wanted
        others = frozenset(other for other in wanted if other.id != one.id)
        if after == self.notice or not (is_ours or others != wanted):
            return replace(self, notice=after)
        return replace(self, notice=after, wanted=others | {one})

    def is_followed(self) -> Spot:
        """Let a prompt from the phone begin the next turn."""
        return replace(self, notice=notices.busy(self.notice, 20_000.0, is_ours=True), wanted=self.waited())

    def waited(self) -> frozenset[Turn]:
        """The wanted ends if the notice that waits is one of them now."""
        turn = self.notice.turn
        return self.wanted | {turn} if self.notice.phase == "waiting" and turn is not None else self.wanted

    def order(self) -> Post | Update | None:
        """What is to be done for the phone, but for buttons."""
        order = notices.due(replace(self.notice, outdated=()), POST_AFTER_S, 20_000.0)
        assert order is None or isinstance(order, Post | Update)
        return order

    def landed(self) -> Spot:
        """Let Telegram answer the order that is on its way."""
        if isinstance(self.flight, Post):
            phone = (*self.phone, self.flight.turn)
            after = notices.posted(self.notice, shown(self.flight.turn, len(self.phone)))
        else:
            assert self.flight is not None
            place = self.flight.shown.message_id
            phone = (*self.phone[:place], self.flight.turn, *self.phone[place + 1 :])
            after = notices.updated(self.notice, self.flight.shown, self.flight.turn)
        return replace(self, notice=after, flight=None, phone=phone)

    def moves(self, turns: tuple[Turn, ...]) -> Iterator[Spot]:
        """All that can happen."""
        yield from (self.ends(one, is_ours=True) for one in turns)
        yield from (self.ends(one, is_ours=False) for one in (SAID_LATER, SHORT))
        yield self.is_followed()
        if self.flight is not None:
            yield from (self.landed(), replace(self, flight=None))
        elif (order := self.order()) is not None:
            yield replace(self, flight=order)


SHORT = TURNS[3]
T1_AGAIN = turn("t1", ended_s=900.0)


@pytest.mark.parametrize("turns", [TURNS[:3], (*TURNS[:3], T1_AGAIN)], ids=["in order", "one ends after the next one"])
def test_every_answer_is_told_in_every_order_of_events(turns: tuple[Turn, ...]) -> None:
    """With its latest end; and in order, each turn has one message."""
    known, queue = {Spot()}, deque([Spot()])
    while queue:
        here = queue.popleft()
        if here.flight is None and here.order() is None:
            assert here.wanted <= set(here.phone), here
            assert not notices.is_behind(here.notice)
        messages = [one.id for one in here.phone]
        assert T1_AGAIN in turns or len(set(messages)) == len(messages), here
        for there in here.moves(turns):
            if there not in known:
                known.add(there)
                queue.append(there)
    assert any(len(here.phone) == 2 and here.wanted == set(here.phone) for here in known)


# --- a turn that keeps trying ---------------------------------------------------------------------------------------


def retry(attempt: int = KEEPS_TRYING, *, next_s: float = 330.0) -> Retry:
    """A request that failed so often."""
    return Retry(SOURCE, "Claude Code", attempt, next_s, "rate limit")


def test_a_turn_that_keeps_trying_is_told_once_and_followed() -> None:
    """Not after the first failures; and after the time for the desk, like every notice."""
    first = notices.retrying(NEW, retry(KEEPS_TRYING - 1), RULES, 300.0)
    assert first == NEW
    trying = notices.retrying(NEW, retry(), RULES, 300.0)
    assert notices.due(trying, POST_AFTER_S, 310.0) == Pause(10.0)
    told = trying.retry
    assert told is not None
    assert notices.due(trying, POST_AFTER_S, 320.0) == TellRetry(told)
    shown = RetryShown(told, 1001, 7)
    trying = notices.retry_told(trying, shown)
    assert notices.due(trying, POST_AFTER_S, 320.0) is None
    later = notices.retrying(trying, retry(KEEPS_TRYING + 1), RULES, 330.0)
    assert isinstance(notices.due(later, POST_AFTER_S, 330.0), TellRetry), "it follows the next failure at once"


@pytest.mark.parametrize(
    "ends",
    [notices.quiet, lambda found: notices.ended(found, turn(began_s=290.0), RULES, 340.0)],
    ids=["stopped", "ended"],
)
def test_a_turn_that_no_longer_tries_says_so(ends: Callable[[Notice], Notice]) -> None:
    """Whether it went well, failed or was interrupted; then the next turn has a message of its own."""
    trying = notices.retrying(NEW, retry(), RULES, 300.0)
    assert trying.retry is not None
    over = ends(notices.retry_told(trying, RetryShown(trying.retry, 1001, 7)))
    assert notices.due(over, POST_AFTER_S, 340.0) == TellRetry(trying.retry, is_over=True)
    over = notices.retry_told(over, RetryShown(trying.retry, 1001, 7, is_over=True))
    assert over.retry_shown is None
    assert notices.due(ends(trying), POST_AFTER_S, 340.0) is None, "one that was not told needs no end"


def test_nobody_is_told_of_tries_that_are_not_wanted() -> None:
    """Notices are off, or the session is muted."""
    off = replace(RULES, enabled=False)
    assert notices.retrying(NEW, retry(), off, 300.0) == NEW
    muted = replace(NEW, is_muted=True)
    assert notices.retrying(muted, retry(), RULES, 300.0) == muted


# --- turns that the phone began -------------------------------------------------------------------------------------


def test_an_answer_that_cannot_be_posted_yet_is_told_before_the_turns_after_it() -> None:
    """Telegram is away, or slow: the next turn takes nothing from the phone."""
    first, second = turn(), turn("t2", began_s=400.0, ended_s=410.0)
    answered = notices.ended(NEW, first, RULES, 301.0, is_ours=True)
    later = notices.ended(notices.began(answered, "t2", 400.0), second, RULES, 411.0)
    assert notices.due(later, POST_AFTER_S, 411.0) == Post(first)
    assert not notices.is_running(later)
    told = notices.posted(later, shown(first))
    assert notices.due(told, POST_AFTER_S, 411.0) is None, "nobody wanted to hear of the short turn"
    both = notices.ended(answered, second, RULES, 411.0, is_ours=True)
    assert notices.due(both, POST_AFTER_S, 411.0) == Post(first)
    rest = notices.posted(both, shown(first))
    assert notices.due(rest, POST_AFTER_S, 411.0) == Post(second)
    rest = notices.posted(rest, shown(second, 9))
    assert notices.due(rest, POST_AFTER_S, 411.0) == TakeButtons(shown(first))


def test_a_later_end_takes_the_place_of_the_same_answer() -> None:
    """One message is enough for what a prompt came to."""
    answered = notices.ended(NEW, turn(), RULES, 301.0, is_ours=True)
    later = notices.ended(answered, turn(ended_s=310.0), RULES, 310.0, is_ours=True)
    assert notices.due(later, POST_AFTER_S, 310.0) == Post(turn(ended_s=310.0))
    assert later.untold == ()


def test_only_the_last_answers_wait_for_telegram() -> None:
    """However many prompts were queued."""
    notice = NEW
    for number in range(MOST_UNTOLD + 3):
        ended = turn(f"t{number}", ended_s=300.0 + number)
        notice = notices.ended(notice, ended, RULES, 301.0 + number, is_ours=True)
    assert [one.id for one in notice.untold] == [f"t{number}" for number in range(2, MOST_UNTOLD + 2)]


@pytest.mark.parametrize("rules", [RULES, replace(RULES, enabled=False)], ids=["notices on", "notices off"])
def test_the_end_of_a_turn_that_the_phone_began_is_told_at_once(rules: NoticeRules) -> None:
    """However short it was, although the session is muted, and although the next turn begins at once."""
    muted = replace(NEW, is_muted=True)
    told = notices.ended(muted, turn(ended_s=1.0), rules, 301.0, is_ours=True)
    assert notices.due(notices.busy(told, 310.0), POST_AFTER_S, 301.0) == Post(turn(ended_s=1.0))
    assert notices.due(notices.began(told, "t2", 301.0), POST_AFTER_S, 301.0) == Post(turn(ended_s=1.0))
    assert notices.ended(muted, turn(), RULES, 301.0).phase == "dropped"


def test_a_notice_without_a_turn_can_be_dropped() -> None:
    """That of a muted session has none until one ends."""
    assert notices.dropped(NEW) == replace(NEW, phase="dropped")
