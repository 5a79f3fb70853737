"""Which turns get a notice, and when it is posted."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from hermes.core import notices
from hermes.core.notices import NoticeRules, Pause, Post, TakeButtons
from hermes.model.ask import Source
from hermes.model.notice import Notice, Shown, Turn

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Source("claude-code", "laptop", "ses_1", "/home/dev/shop-api")
RULES = NoticeRules(finished_s=120.0, post_after_s=20.0)
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
    assert notices.due(waiting, RULES, 311.0) == Pause(10.0)
    assert notices.due(waiting, RULES, 321.0) == Post(turn())
    assert notices.due(notices.posted(waiting, shown(turn())), RULES, 400.0) is None


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
    assert notices.due(notices.ended(NEW, ended, rules, 301.0), rules, 1000.0) is None


def test_a_turn_without_times_is_as_long_as_hermes_saw_it_run() -> None:
    """The first report of its beginning counts."""
    running = notices.began(notices.began(NEW, 100.0), 250.0)
    assert notices.ended(running, turn(began_s=None), RULES, 301.0).turn == turn(began_s=100.0)


def test_a_turn_that_begins_meanwhile_drops_the_notice_that_waits() -> None:
    """Somebody is at the desk."""
    waiting = notices.ended(NEW, turn(), RULES, 301.0)
    assert notices.due(notices.began(waiting), RULES, 1000.0) is None


@pytest.mark.parametrize("again", [turn(), turn("t0", ended_s=299.0)], ids=["the same", "an older one"])
def test_a_turn_that_is_known_changes_nothing(again: Turn) -> None:
    """The list after a reconnect brings it once more."""
    posted = notices.posted(notices.ended(NEW, turn(), RULES, 301.0), shown(turn()))
    assert notices.ended(posted, again, RULES, 999.0) == posted


def test_a_clock_that_was_set_back_holds_nothing_up() -> None:
    """The notice is posted at once."""
    assert notices.due(notices.ended(NEW, turn(), RULES, 301.0), RULES, 5.0) == Post(turn())


def test_only_the_newest_notice_of_a_session_keeps_its_buttons() -> None:
    """The message of the one before loses them once the new one is there."""
    second = turn("t2", began_s=400.0, ended_s=700.0)
    notice = notices.posted(notices.ended(NEW, turn(), RULES, 301.0), shown(turn()))
    notice = notices.ended(notice, second, RULES, 701.0)
    assert notices.due(notice, RULES, 721.0) == Post(second)
    notice = notices.posted(notice, shown(second, 9))
    assert notices.due(notice, RULES, 721.0) == TakeButtons(shown(turn()))
    notice = notices.without_buttons(notice, shown(turn()))
    assert notices.due(notice, RULES, 721.0) is None
    assert notice.shown == shown(second, 9)


def test_a_notice_that_was_sent_while_the_next_turn_began_is_still_known() -> None:
    """Its buttons are taken away when the next one comes."""
    waiting = notices.ended(NEW, turn(), RULES, 301.0)
    running = notices.posted(notices.began(waiting, 321.0), shown(turn()))
    assert (running.phase, running.shown) == ("running", shown(turn()))


# --- a walk over every edge -----------------------------------------------------------------------------------------

TURNS = (turn("t1"), turn("t2", began_s=400.0, ended_s=700.0), turn("t3", began_s=800.0, ended_s=810.0))


def moves(notice: Notice) -> Iterator[Notice]:
    """All that can happen to a notice."""
    yield notices.began(notice)
    yield notices.began(notice, 1.0)
    yield from (notices.ended(notice, one, RULES, one.ended_s) for one in TURNS)
    order = notices.due(notice, RULES, 10_000.0)
    if isinstance(order, Post):
        yield notices.posted(notice, shown(order.turn, len(notice.outdated) + 7))
    if isinstance(order, TakeButtons):
        yield notices.without_buttons(notice, order.shown)


def test_a_turn_is_posted_once_at_most_whatever_happens() -> None:
    """The walk follows the turns that were posted beside each state, in every order of events."""
    start: tuple[Notice, tuple[str, ...]] = (NEW, ())
    known, queue = {start}, deque([start])
    while queue:
        here, posted = queue.popleft()
        order = notices.due(here, RULES, 10_000.0)
        for there in moves(here):
            came = (*posted, order.turn.id) if isinstance(order, Post) and there.shown != here.shown else posted
            assert len(set(came)) == len(came)
            assert len(there.outdated) <= len(TURNS)
            if (there, came) not in known:
                known.add((there, came))
                queue.append((there, came))
    assert {came for _, came in known} == {(), ("t1",), ("t2",), ("t1", "t2")}
