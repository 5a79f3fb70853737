"""The laws of topics can fail, and people do with topics what they mean to do."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from hermes.sandbox.phone_values import Button
from tests.faults import laws, prompt_laws, topics
from tests.faults.letters import Letter
from tests.faults.person import UNSAVED, Person, View
from tests.faults.playing import played
from tests.faults.round import STALLED
from tests.faults.talking import Talk
from tests.faults.test_faults import ONE_AT_A_TIME, violations
from tests.faults.test_laws import GONE, OPTIONS, Fingers, a_message, a_person, a_view, an_ask, told, wanted
from tests.faults.test_talking import Desk, Pen

if TYPE_CHECKING:
    from hermes.sandbox.phone_values import ShownMessage

SESSIONS = {"Q1w": "ses_1", "Q1x": "ses_2", "Q1t": "Q1t", "Q1tk": "Q1t"}


def after_removal(*removed: ShownMessage, then: tuple[ShownMessage, ...] = ()) -> View:
    """Show that a person has removed these, and what came then."""
    gone = tuple(replace(one, deleted=True) for one in removed)
    return View((*gone, *then), {}, {one.message_id: one for one in removed})


# --- the laws -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "broken"),
    [
        (["Q1w: which, 1?", "✅ About Q1w is done · 3 s"], ""),
        (["Q1tk please", "✅ Talk Q1t is done"], ""),
        (["Q1w: which, 1?", "something of another round: Q0x"], ""),
        (["Q1w: which, 1?", "⚠️ Your text “Q1tk” was not used."], ""),
        (["Q1w: which, 1?", "Q1x: which, 1?"], "messages about several sessions"),
        (["Q1w: which, 1?", "✅ Talk Q1t is done"], "messages about several sessions"),
    ],
)
def test_no_topic_has_messages_of_two_sessions(texts: list[str], broken: str) -> None:
    """Those that were deleted count, too; the chat itself may have all of them."""
    shown = [a_message(text, thread_id=5, deleted=text.startswith("Q1w")) for text in texts]
    told(topics.apart(a_view(*shown), SESSIONS), broken)
    told(topics.apart(a_view(*(replace(one, thread_id=None) for one in shown)), SESSIONS), "")


@pytest.mark.parametrize(
    ("places", "lost", "may_leave", "broken"),
    [
        ([5, 5], set(), False, ""),
        ([None, None], set(), False, ""),
        ([5, 6], {5}, False, ""),
        ([5, None], set(), True, ""),
        ([5, 6], set(), False, "stood in the topic 5, and then in 6"),
        ([5, None], {7}, False, "stood in the topic 5, and then in None"),
        ([None, 5], {5}, True, "stood in the topic None, and then in 5"),
    ],
)
def test_what_is_asked_stays_where_it_is(
    places: list[int | None], lost: set[int], may_leave: bool, broken: str
) -> None:
    """In the chat itself for good, in a topic while that is there."""
    copies = [a_message("q1w: which, 1?", thread_id=place, deleted=True) for place in places]
    told(topics.stays(an_ask(), a_view(*copies), lost, may_leave=may_leave), broken)


ASKED = a_message("q1w: which, 1?", rows=OPTIONS, thread_id=5)


def test_what_a_person_removed_with_its_topic_is_no_longer_owed() -> None:
    """Unless they hear nowhere that an answer which was acknowledged came to nothing."""
    asked_for = an_ask(ended_by={"deleted"}, promised=True)
    told(laws.shows(a_person(an_ask()), [wanted()], after_removal(ASKED)), "")
    told(laws.shows(a_person(asked_for), [], after_removal(ASKED)), "is not on the phone")
    told(laws.shows(a_person(asked_for), [], after_removal(ASKED, then=(a_message(GONE),))), "")
    told(laws.shows(a_person(an_ask()), [wanted()], a_view(replace(ASKED, deleted=True))), "is not on the phone")


class Missing(Fingers):
    """The message to which the first text replies was deleted."""

    def write(self, text: str, **more: Any) -> tuple[int, ...]:
        """Write, as a client does that has not seen the deletion yet."""
        ids = super().write(text, **more)
        if len(self.texts) == 1:
            raise LookupError
        return ids


def test_a_question_that_goes_under_the_finger_is_answered_when_it_is_back() -> None:
    """Nobody can reply to a deleted message."""
    fingers = Missing()
    person = Person(an_ask("reply"), fingers, Random(1), thinks_s=0.0)
    for _ in range(3):
        person._word(a_message("Q1w: which, 1?"), [])
    assert fingers.texts == [person.ask.text] * 2


def test_what_was_told_before_its_topic_was_deleted_was_told() -> None:
    """Not what was deleted by Hermes."""
    notice = a_message("✅ About q1w is done · 3 s", thread_id=5)
    assert list(laws.turns_told(an_ask(), 1, after_removal(notice), is_sure=True)) == []
    assert list(laws.turns_told(an_ask(), 1, a_view(replace(notice, deleted=True)), is_sure=True))


# --- prompts --------------------------------------------------------------------------------------------------------


def a_talk(*letters: Letter, desk: Desk | None = None) -> Talk:
    """One session with these letters, whose chat has topics."""
    return Talk("Q1t", desk or Desk(), Pen(), Random(1), list(letters), has_topics=lambda: True)


def test_a_letter_is_a_plain_text_in_the_topic_of_its_session() -> None:
    """In no other topic, and while the chat has none, a reply to the card."""
    talk = a_talk(Letter("Q1tk", "", "topic"))
    pen = talk.phone
    assert isinstance(pen, Pen)
    card = a_message("Talk Q1t is idle", thread_id=5)
    talk.has_topics = lambda: False
    talk._write(talk.letters[0], [], a_view(card))
    talk.has_topics = lambda: True
    talk._write(talk.letters[0], [], a_view(card, a_message("Talk Q1u is idle", thread_id=6)))
    assert [did.partition(" to ")[2] for did in pen.did] == [str(card.message_id), "None in 5"]


WORKS = a_message("▶️ Working\nshop · Talk Q1t · OpenCode", thread_id=5, reply_to=101)
DONE = replace(a_message("✅ Done · 3 s\nshop · Talk Q1t · OpenCode"), message_id=9)
MINE = replace(a_message("Q1tk please", thread_id=5), message_id=101, from_bot=False)


def test_a_prompt_whose_topic_was_deleted_ends_with_a_line_of_its_session() -> None:
    """Each of two needs an end of its own; a notice of a failed turn is none."""
    first, second = Letter("Q1tk", "", "topic", ids=(101,)), Letter("Q1tl", "", "topic", ids=(102,))
    talk = a_talk(first, second)
    view = after_removal(MINE, replace(MINE, message_id=102, text="Q1tl please"), WORKS, then=(DONE,))
    assert talk.end_of(first, view) == DONE.text
    assert talk.end_of(second, view) == ""
    failed = after_removal(MINE, then=(a_message("❌ Talk Q1t failed · the provider says no"),))
    assert a_talk(first).end_of(first, failed) == ""
    assert talk.end_of(first, a_view(DONE)) == "", "it was not removed, and this replies to nothing"


def test_a_text_that_is_only_offered_to_the_session_of_its_deleted_topic_is_sent_by_a_tap() -> None:
    """A question had just ended there; the line replies to nothing, and names this session first."""
    letter = Letter("Q1tk", "", "topic", ids=(101,))
    talk = a_talk(letter)
    pen = talk.phone
    assert isinstance(pen, Pen)
    labels = ("Talk Q1u", "Talk Q1t", "Nothing")
    others = a_message("What is this for?", rows=tuple((Button(label),) for label in labels))
    mine = replace(others, message_id=9, rows=((Button("Talk Q1t"),), *others.rows))
    talk._watch(letter, after_removal(MINE, then=(others, mine)))
    assert pen.did == ["tap 9 Talk Q1t"]


@pytest.mark.parametrize(("got", "broken"), [(1, ""), (0, ""), (2, "removed with its topic, came to")])
def test_a_prompt_whose_topic_was_deleted_goes_to_the_model_once_at_most(got: int, broken: str) -> None:
    """And has an end on the phone."""
    letter = Letter("Q1tk", "", "topic", ids=(101,))
    talk = a_talk(letter, desk=Desk(texts=[letter.written] * got))
    told(iter(prompt_laws._kept(talk, letter, after_removal(MINE, WORKS, then=(DONE,)), is_sure=True)), broken)
    told(iter(prompt_laws._kept(talk, letter, after_removal(MINE, WORKS), is_sure=True)), "has no end on the phone")


@pytest.mark.parametrize(("got", "broken"), [(0, ""), (1, "has no end on the phone")])
@pytest.mark.parametrize("is_removed", [True, False])
def test_a_prompt_that_was_not_saved_may_go_with_its_topic(got: int, broken: str, *, is_removed: bool) -> None:
    """The person has read that it was not saved: before they deleted the topic, or after that, below it."""
    letter = Letter("Q1tk", "", "topic", ids=(101,))
    talk = a_talk(letter, desk=Desk(texts=[letter.written] * got))
    sorry = replace(a_message(f"⚠️ {UNSAVED}", thread_id=5, reply_to=101), message_id=109)
    view = after_removal(MINE, sorry) if is_removed else after_removal(MINE, then=(replace(sorry, reply_to=None),))
    told(iter(prompt_laws._kept(talk, letter, view, is_sure=True)), broken)
    earlier = after_removal(MINE, then=(replace(sorry, reply_to=None, message_id=9),))
    told(iter(prompt_laws._kept(talk, letter, earlier, is_sure=True)), "has no end on the phone")


# --- the trouble ----------------------------------------------------------------------------------------------------


@pytest.mark.nightly
@ONE_AT_A_TIME
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("kind", "number"), [(kind, 11 if kind in topics.IN_GROUPS else 1) for kind in topics.FAULTS])
def test_nothing_is_lost_in_trouble_with_topics(kind: str, number: int) -> None:
    """One round of each, without any other trouble: in a private chat, and in a group where it is of groups alone."""
    outcomes = played(1, [number], topics.VERSION, kinds=[kind])
    assert violations(outcomes) == []
    assert {kind for outcome in outcomes for kind in outcome.faults} - {STALLED} == {kind}
    ends = [end for outcome in outcomes for end in outcome.ends]
    assert "asked in a topic" in ends or kind in {topics.FORUM_LATE, "no right to topics"}
