"""The dialog's rules, one by one; test_dialog_walk.py asserts the laws on every edge."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from hermes.core.answers import bare_label, joined_text, option_named
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
    TakeOffer,
)
from hermes.model.answer import Answer, Outcome
from hermes.model.ask import Capabilities
from hermes.model.events import Delivered, Ended, Expired, Failed, Tapped, Texted, Ticked, Torn, Worked
from hermes.model.state import Hint, Part, State, Step, Toast
from tests.asks import ANN, BOB, ask, question

if TYPE_CHECKING:
    from hermes.model.actions import Action
    from hermes.model.answer import User
    from hermes.model.ask import Ask
    from hermes.model.events import TextHow
    from hermes.model.state import Confirm, Phase


class Talk:
    """A dialog under test: taps carry the present epoch unless told otherwise, updates are numbered."""

    def __init__(self, an_ask: Ask) -> None:
        self.ask = an_ask
        self.state: State = start(an_ask)
        self.last = Step(self.state)
        self._update_id = 0

    def tap(self, action: Action, *, epoch: int | None = None, user: User = ANN) -> Toast | None:
        """Tap a button and return the acknowledgement."""
        self._update_id += 1
        at = self.state.epoch if epoch is None else epoch
        return self._step(Tapped(self._update_id, 10.0, user, action, at)).toast

    def write(
        self,
        text: str,
        how: TextHow = "reply",
        *,
        user: User = ANN,
        at_s: float = 10.0,
    ) -> Hint | None:
        """Write a text and return the hint that it got."""
        self._update_id += 1
        return self._step(Texted(self._update_id, at_s, user, 70 + self._update_id, text, how)).hint

    def tell(self, event: Ticked | Torn | Expired | Delivered | Failed | Ended | Worked) -> State:
        """Let something else happen."""
        return self._step(event).state

    def _step(self, event: Tapped | Texted | Ticked | Torn | Expired | Delivered | Failed | Ended | Worked) -> Step:
        self.last = step(self.ask, self.state, event)
        self.state = self.last.state
        return self.last


ONE = ask(question(recommended=1))
MANY = ask(question("Which sizes?", ("S", "M", "L"), header="Sizes", multiple=True))
THREE = ask(
    question("Which colour?", ("Red", "Blue"), header="Colour"),
    question("Which sizes?", ("S", "M", "L"), header="Sizes", multiple=True),
    question("Which name?", (), header="Name"),
)


def decided(talk: Talk) -> tuple[Answer, ...]:
    """The answers on their way."""
    assert talk.state.phase == "sending"
    assert talk.state.decision is not None
    return talk.state.decision.answers


def test_one_tap_answers_a_single_choice() -> None:
    """One single-choice question: one button an option, one tap answers."""
    talk = Talk(ONE)
    assert talk.tap(Pick(0, 1)) == Toast("picked", "SQLite")
    assert decided(talk) == (Answer((1,)),)
    assert talk.last.touched


def test_quick_taps_on_a_keyboard_that_is_being_redrawn_all_count() -> None:
    """Toggles keep their page's epoch and have absolute effects, in the order chosen."""
    talk = Talk(MANY)
    for action in (Pick(0, 2), Pick(0, 0), Pick(0, 0), Pick(0, 1), Pick(0, 1, on=False)):
        talk.tap(action, epoch=0)
    talk.tap(Send(), epoch=0)
    assert decided(talk) == (Answer((2, 0)),)


def test_done_with_nothing_chosen_asks_twice() -> None:
    """Sending without an answer needs a second tap."""
    talk = Talk(MANY)
    assert talk.tap(Send()) == Toast("sure")
    assert talk.state.confirm == "send"
    talk.tap(Confirmed("send"))
    assert decided(talk) == (Answer(),)


def test_three_questions_move_on_keep_answers_and_end_in_a_review() -> None:
    """Forward, back, change an answer, review, send."""
    talk = Talk(THREE)
    talk.tap(Pick(0, 0))
    assert talk.state.page == 1
    talk.tap(Pick(1, 2))
    talk.tap(Go(2))
    talk.write("Ada")
    assert talk.state.page == 3
    talk.tap(Go(0))
    talk.tap(Pick(0, 1))
    assert talk.state.page == 3, "all is answered: back to the review"
    talk.tap(Send())
    assert decided(talk) == (Answer((1,)), Answer((2,)), Answer((), "Ada"))


def test_sending_with_one_unanswered_needs_a_second_tap() -> None:
    """The first Send only asks; Back leads to the same page."""
    talk = Talk(THREE)
    talk.tap(Go(3))
    assert talk.tap(Send()) == Toast("sure")
    talk.tap(Back())
    assert talk.state.confirm is None
    talk.tap(AskTwice("send"))
    assert talk.tap(Confirmed("send")) == Toast("on_its_way")
    assert decided(talk) == (Answer(), Answer(), Answer())


def test_send_stands_on_no_page_but_the_last() -> None:
    """A Send that no keyboard shows changes nothing."""
    talk = Talk(THREE)
    assert talk.tap(Send()) == Toast("page_changed")
    single = Talk(ONE)
    assert single.tap(Send()) == Toast("page_changed")


def test_a_stale_tap_changes_nothing() -> None:
    """A button of a page that has changed gets a word and no effect."""
    talk = Talk(THREE)
    talk.tap(Go(1))
    before = talk.state.answers
    assert talk.tap(Pick(1, 0), epoch=0) == Toast("page_changed")
    assert talk.state.answers == before


def test_picks_and_text_go_out_together() -> None:
    """In a multiple question the text stands beside the picks."""
    talk = Talk(MANY)
    talk.tap(Pick(0, 2))
    talk.write("XXL, but only in blue")
    talk.tap(Send())
    assert decided(talk) == (Answer((2,), "XXL, but only in blue"),)


def test_a_text_can_be_dropped_again() -> None:
    """ClearText leaves the picks."""
    talk = Talk(MANY)
    talk.tap(Pick(0, 1))
    talk.write("words")
    talk.tap(ClearText(0))
    assert talk.state.answers == (Answer((1,)),)


def test_the_next_text_after_the_pencil_counts() -> None:
    """✏️ arms the question for one person, once; tapping again takes it back."""
    talk = Talk(ONE)
    assert talk.tap(Arm(0)) == Toast("type_now")
    assert talk.tap(Arm(0, on=False)) == Toast("typing_off")
    talk.tap(Arm(0))
    talk.write("DuckDB", "armed")
    assert decided(talk) == (Answer((), "DuckDB"),)
    assert talk.state.armed is None


def test_a_typed_label_is_the_option_but_a_typed_number_is_a_text_where_texts_are_allowed() -> None:
    """Somebody who replies "2" to "how many?" means 2, not the second option."""
    by_label = Talk(ONE)
    by_label.write("SQLite")
    assert decided(by_label) == (Answer((1,)),)
    by_number = Talk(ONE)
    by_number.write("2")
    assert decided(by_number) == (Answer((), "2"),)


def test_a_label_typed_after_the_pencil_disarms() -> None:
    """Otherwise the plain text after it would be taken unasked."""
    talk = Talk(MANY)
    talk.tap(Arm(0))
    talk.write("M", "armed")
    assert talk.state.armed is None
    assert talk.state.answers == (Answer((1,)),)


def test_custom_false_hides_the_pencil_and_refuses_a_text() -> None:
    """Only labels and numbers are answers."""
    strict = ask(question("Proceed?", ("Yes", "No"), custom=False))
    talk = Talk(strict)
    assert talk.tap(Arm(0)) == Toast("page_changed")
    assert talk.write("perhaps") == "no_such_option"
    assert talk.state.phase == "open"
    talk.write("2")
    assert decided(talk) == (Answer((1,)),)


def test_a_plain_label_is_only_offered_and_becomes_the_option_by_a_tap() -> None:
    """It may have been written before the question was there, or for somebody else."""
    for an_ask, label in ((ONE, "SQLite"), (ask(question("Proceed?", ("Yes", "No"), custom=False)), "No")):
        talk = Talk(an_ask)
        assert talk.write(label, "offered") is None
        assert (talk.state.phase, talk.state.decision) == ("open", None)
        assert talk.state.offer is not None
        assert talk.tap(TakeOffer(talk.state.offer.message_id)) == Toast("picked", label)
        assert decided(talk) == (Answer((1,)),)


def test_a_plain_text_is_only_offered() -> None:
    """Taken by a tap, forgotten by another; an old offer's button does nothing."""
    talk = Talk(ONE)
    talk.write("let's take DuckDB", "offered")
    assert talk.state.phase == "open"
    offer = talk.state.offer
    assert offer is not None
    assert talk.tap(TakeOffer(offer.message_id, on=False)) == Toast("forgotten")
    assert talk.tap(TakeOffer(offer.message_id)) == Toast("page_changed")
    talk.write("let's take DuckDB", "offered")
    assert talk.state.offer is not None
    talk.tap(TakeOffer(talk.state.offer.message_id))
    assert decided(talk) == (Answer((), "let's take DuckDB"),)


def test_a_split_text_is_joined_in_message_order() -> None:
    """A long text waits 1.5 s for its next part; a part cut in mid-word is glued, one cut at a line is not."""
    talk = Talk(ONE)
    talk.write("a" * 4096)
    assert talk.state.joining is not None
    assert talk.state.due_s == 11.5
    assert talk.tap(Pick(0, 0)) == Toast("receiving")
    assert talk.write("intruder", "part", user=BOB) == "taken"
    talk.write("b" * 2500, "part", at_s=11.0)
    talk.write("the end", "part", at_s=12.0)
    talk.tell(Ticked(13.0))
    assert talk.state.phase == "open"
    talk.tell(Ticked(13.5))
    assert decided(talk) == (Answer((), "a" * 4096 + "b" * 2500 + "\n" + "the end"),)


def test_a_split_text_that_nobody_asked_for_is_offered_as_a_whole() -> None:
    """Its first part alone would say half of it."""
    talk = Talk(ONE)
    talk.write("a" * 4096, "offered")
    talk.write("the end", "part")
    assert talk.state.joining is not None
    talk.tell(Ticked(11.5))
    offer = talk.state.offer
    assert offer is not None
    assert offer.text == "a" * 4096 + "the end"
    assert talk.state.phase == "open"


def test_a_later_text_of_its_own_ends_the_joining() -> None:
    """Texts come in the order of writing: the joined one is whole, and the later one is no part of it."""
    talk = Talk(ONE)
    talk.write("a" * 3000)
    assert talk.write("and something else", "offered") == "taken"
    assert decided(talk) == (Answer((), "a" * 3000),)
    several = Talk(MANY)
    several.write("a" * 3000)
    assert several.write("M") is None
    assert several.state.answers == (Answer((1,), "a" * 3000),)


@pytest.mark.parametrize("what", ["send", "reject"])
def test_a_text_that_names_an_option_shows_the_page_again(what: Confirm) -> None:
    """As free text does: the second tap must not send an answer that the screen did not show."""
    talk = Talk(MANY)
    talk.tap(AskTwice(what))
    asked = talk.state.epoch
    talk.write("M")
    assert talk.state.answers == (Answer((1,)),)
    assert talk.state.confirm is None
    assert talk.tap(Confirmed(what), epoch=asked) == Toast("page_changed")
    assert talk.state.phase == "open"


def test_a_text_of_which_a_part_is_missing_is_only_offered() -> None:
    """Half of it must not leave by itself."""
    talk = Talk(ONE)
    talk.write("a" * 4096)
    talk.tell(Torn())
    talk.tell(Ticked(11.5))
    assert talk.state.phase == "open"
    assert talk.state.offer is not None


def test_a_part_of_nothing_is_only_offered() -> None:
    """The text that it goes on with is not being joined any more."""
    talk = Talk(ONE)
    talk.write("words", "part")
    assert talk.state.phase == "open"
    assert talk.state.offer is not None


def test_parts_that_come_in_another_order_are_joined_by_their_message_id() -> None:
    """Message order is the order of writing."""
    assert joined_text((Part(1, "one"), Part(2, "two"))) == "one\ntwo"


def test_a_part_that_has_no_room_for_the_next_sign_was_cut_there() -> None:
    """An emoji takes two units, so that the part before it may have one unit less than 4096."""
    emoji = "\N{GRINNING FACE}"
    full, rest = "a" + emoji * 2047, emoji * 500
    assert joined_text((Part(1, full), Part(2, rest))) == full + rest
    assert joined_text((Part(1, full), Part(2, "b" + rest))) == f"{full}\nb{rest}"


def test_a_blank_text_is_no_answer() -> None:
    """Nothing changes; the person is told by routing."""
    talk = Talk(ONE)
    talk.write("   ")
    assert talk.state.phase == "open"


def test_a_reply_to_the_review_counts_where_one_question_is_open() -> None:
    """With two open nothing tells which one is meant."""
    talk = Talk(THREE)
    talk.tap(Go(3))
    assert talk.write("words") == "which_question"
    talk.tap(Go(0))
    talk.tap(Pick(0, 0))
    talk.tap(Pick(1, 0))
    talk.tap(Go(3))
    talk.write("Ada")
    assert talk.state.answers[2] == Answer((), "Ada")


@pytest.mark.parametrize("what", ["reject", "skip"])
def test_reject_and_skip_need_two_taps(what: str) -> None:
    """The first asks, the second decides; a doubled first tap does not confirm."""
    talk = Talk(ONE)
    assert talk.tap(AskTwice(what)) == Toast("sure")  # type: ignore[arg-type]
    assert talk.tap(AskTwice(what), epoch=0) == Toast("page_changed")  # type: ignore[arg-type]
    assert talk.state.phase == "open"
    talk.tap(Confirmed(what))  # type: ignore[arg-type]
    assert talk.state.decision is not None
    assert talk.state.decision.kind == what
    talk.tell(Delivered(12.0))
    assert talk.state.outcome is not None
    assert talk.state.outcome.kind == {"reject": "rejected", "skip": "skipped"}[what]


def test_skip_is_not_offered_where_the_agent_cannot() -> None:
    """The capability record decides."""
    talk = Talk(ask(question(), capabilities=Capabilities("Other", can_skip=False)))
    assert talk.tap(AskTwice("skip")) == Toast("page_changed")


def test_an_ask_without_questions_is_let_go_by_one_send() -> None:
    """OpenCode waits for the reply [] to an ask with no questions."""
    talk = Talk(ask())
    talk.tap(Send())
    assert decided(talk) == ()


def test_shelves_page_a_long_list() -> None:
    """A shelf is absolute, and turning one makes the old keyboard old."""
    talk = Talk(ask(question("Which?", tuple(f"o{n}" for n in range(60)))))
    assert talk.tap(Shelve(1)) == Toast("moved")
    assert talk.state.shelf == 1
    assert talk.tap(Shelve(60)) == Toast("page_changed")


def test_keep_waiting_touches_and_changes_nothing_else() -> None:
    """The time to answer starts anew, an hour longer where asked."""
    talk = Talk(ONE)
    assert talk.tap(KeepWaiting(3600), epoch=99) == Toast("kept_waiting")
    assert talk.last.touched
    assert talk.last.extra_s == 3600


def test_a_failed_delivery_says_so_and_keeps_the_frozen_answer() -> None:
    """The answer stays on its way until it is confirmed or the ask is gone."""
    talk = Talk(ONE)
    talk.tap(Pick(0, 0))
    frozen = talk.state.decision
    talk.tell(Failed(11.0))
    assert talk.state.away
    assert talk.tap(Pick(0, 1)) == Toast("on_its_way")
    talk.tell(Expired(12.0, "reject"))
    assert talk.state.decision == frozen
    talk.tell(Delivered(13.0, "record"))
    assert talk.state.outcome == Outcome("answered", 13.0, proof="record")
    assert talk.tap(Pick(0, 1)) == Toast("settled")
    assert talk.write("late") == "settled"


def test_the_desk_is_followed_in_every_phase() -> None:
    """Answered or dismissed there, or given up: settled, with the desk's own words."""
    for prepare in ([], [Pick(0, 0)]):
        talk = Talk(ONE)
        for action in prepare:
            talk.tap(action)
        talk.tell(Ended(11.0, "answered_at_desk", (("PostgreSQL",),), proof="event"))
        assert talk.state.outcome == Outcome("answered_at_desk", 11.0, (("PostgreSQL",),), proof="event")
        talk.tell(Worked(12.0))
        assert talk.state.working


@pytest.mark.parametrize("end", [Ended(11.0, "answered_at_desk"), Expired(11.0, "reject"), Expired(11.0, "keep")])
def test_a_text_that_waits_for_a_tap_is_kept_when_the_ask_is_settled(end: Ended | Expired) -> None:
    """Its writer has to read that it was not used."""
    talk = Talk(ONE)
    talk.write("DuckDB", "offered")
    offer = talk.state.offer
    talk.tell(end)
    talk.tell(Delivered(12.0, "record"))
    assert (talk.state.phase, talk.state.offer) == ("settled", offer)
    assert offer is not None


@pytest.mark.parametrize("action", [Pick(0, 0), Go(1)])
def test_a_text_that_waits_for_a_tap_outlives_a_page_and_another_answer(action: Action) -> None:
    """Perhaps another person has tapped. The offer names its question, and can still be taken."""
    talk = Talk(THREE)
    talk.write("Green", "offered")
    talk.tap(action)
    assert talk.state.page == 1
    assert talk.state.offer is not None
    assert talk.tap(TakeOffer(talk.state.offer.message_id)) == Toast("picked", "Green")
    assert talk.state.answers[0] == Answer((), "Green")


def test_a_long_text_whose_last_part_comes_after_the_end_is_kept() -> None:
    """The same, for the parts that are there."""
    talk = Talk(ONE)
    talk.write("a" * 4096)
    talk.write("b" * 4096, "part")
    talk.tell(Ended(11.0, "gone"))
    assert talk.state.offer is not None
    assert talk.state.offer.text == "a" * 4096 + "b" * 4096


@pytest.mark.parametrize(
    ("rule", "kind"), [("reject", "reject"), ("skip", "skip"), ("recommended", "answer"), ("keep", "release")]
)
def test_expiry_follows_its_rule(rule: str, kind: str) -> None:
    """A timer's decision has nobody behind it; `keep` only takes the keyboard."""
    talk = Talk(ONE)
    talk.tell(Expired(99.0, rule))  # type: ignore[arg-type]
    assert talk.state.decision is not None
    assert talk.state.decision.kind == kind
    assert talk.state.decision.by is None
    if kind == "answer":
        assert talk.state.decision.answers == (Answer((1,)),)
    talk.tell(Delivered(100.0))
    assert talk.state.outcome is not None
    assert talk.state.outcome.kind == "expired"


def test_recommended_takes_only_what_is_marked_and_keeps_what_was_chosen() -> None:
    """Without a mark on every open question the agent is told no."""
    marked = ask(question(recommended=0), question("Q2", ("X", "Y"), recommended=1))
    talk = Talk(marked)
    talk.tap(Pick(0, 2))
    talk.tell(Expired(99.0, "recommended"))
    assert decided(talk) == (Answer((2,)), Answer((1,)))
    unmarked = Talk(MANY)
    unmarked.tell(Expired(99.0, "recommended"))
    assert unmarked.state.decision is not None
    assert unmarked.state.decision.kind == "reject"


def test_expiry_releases_to_the_desk_where_a_no_would_not_stop_the_agent() -> None:
    """An expiry never makes an agent go on as if it had been answered."""
    talk = Talk(ask(question(), capabilities=Capabilities("Other", reject_stops=False, can_skip=False)))
    talk.tell(Expired(99.0, "reject"))
    assert talk.state.phase == "settled"
    assert talk.state.decision is not None
    assert talk.state.decision.kind == "release"
    cannot_skip = Talk(ask(question(), capabilities=Capabilities("Other", can_skip=False)))
    cannot_skip.tell(Expired(99.0, "skip"))
    assert cannot_skip.state.decision is not None
    assert cannot_skip.state.decision.kind == "release"


def test_nothing_expires_while_a_text_is_being_joined() -> None:
    """The person is answering just now."""
    talk = Talk(ONE)
    talk.write("a" * 3000)
    talk.tell(Expired(99.0, "reject"))
    assert talk.state.phase == "open"


@pytest.mark.parametrize("phase", ["matching", "open", "sending", "settled"])
def test_a_time_that_comes_for_nothing_changes_nothing(phase: Phase) -> None:
    """`due_s` belongs to a joined text or a held answer; whatever else it stands beside is left as it is."""
    an_ask = ask(question())
    state = replace(start(an_ask), phase=phase, due_s=5.0)
    assert step(an_ask, state, Ticked(6.0)).state == state


def test_an_option_is_named_by_its_label_first_then_by_its_number() -> None:
    """The mark of a recommendation need not be typed."""
    words = question("How many?", ("Two", "Four (Recommended)", ""))
    assert option_named(words, " Two ") == 0
    assert option_named(words, "Four") == 1
    assert option_named(words, "3") == 2
    for nothing in ("", "9", "two", "²", "0"):
        assert option_named(words, nothing) is None
    assert bare_label("Four (recommended) ") == "Four"


def test_an_option_has_no_number_beside_labels_that_are_numbers() -> None:
    """Of the options 4 and 2, "2" is the second one, and "1" is none: the person would send another number."""
    numbers = question("How many?", ("4 (Recommended)", "2", ""))
    assert option_named(numbers, " 2 ") == 1
    assert option_named(numbers, "4") == 0
    for nothing in ("1", "3", "", "9", "0"):
        assert option_named(numbers, nothing) is None


def test_a_label_without_the_mark_of_a_recommendation() -> None:
    """Only the mark goes."""
    assert bare_label("Four ") == "Four "
