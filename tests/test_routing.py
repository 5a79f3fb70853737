"""Which ask a text belongs to."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hermes.dialog import start, step
from hermes.model import Arm, Go, Pick, Side, Tapped, Text, Texted
from hermes.routing import Ignore, Tell, ToAsk, route
from tests.asks import ANN, BOB, CHAT_ID, ask, entry, question

if TYPE_CHECKING:
    from hermes.model import Ask, Entry, User

ONE = ask(question())
TWO = ask(question("Colour?", ("Red",), header="Colour"), question("Size?", ("S",), header="Size"))
STRICT = ask(question("Proceed?", ("Yes", "No"), custom=False))


def opened(an_ask: Ask = ONE, entry_id: str = "e1", code: str = "k7", message_id: int = 500) -> Entry:
    """An ask that is open on the phone."""
    return entry(an_ask, start(an_ask), entry_id=entry_id, code=code, message_id=message_id)


def armed(an_entry: Entry, at_s: float, user: User = ANN) -> Entry:
    """The same after ✏️."""
    tapped = Tapped(900, at_s, user, Arm(0), an_entry.state.epoch)
    return replace(an_entry, state=step(an_entry.ask, an_entry.state, tapped).state)


def text(words: str | None, *, reply_to: int | None = None, reply_text: str = "", group: bool = False) -> Text:
    """A text of Ann's."""
    return Text(1, 100.0, ANN, CHAT_ID, 42, words, reply_to, reply_text, group)


def to(entry_id: str, how: str, words: str, option: int | None = None) -> ToAsk:
    """What the text becomes."""
    return ToAsk(entry_id, Texted(1, 100.0, ANN, 42, words, how, option))  # type: ignore[arg-type]


def test_a_reply_belongs_to_the_message_that_it_replies_to() -> None:
    """Main message, older copy or message beside: all are the ask's own."""
    first = opened()
    phone = replace(first.phone, copies=(499,), sides=(Side("typing", 501),))
    both = [replace(first, phone=phone), opened(entry_id="e2", code="m3", message_id=600)]
    for message_id in (500, 499, 501):
        assert route(text("words", reply_to=message_id), both) == to("e1", "reply", "words")
    assert route(text("words", reply_to=600), both) == to("e2", "reply", "words")


def test_a_reply_to_an_unknown_copy_is_known_by_the_code_in_its_last_line() -> None:
    """A code that an agent wrote into its question names nothing."""
    both = [opened(), opened(entry_id="e2", code="m3", message_id=600)]
    copy = "Which database?\nshop-api · waits until 18:40 · #m3"
    assert route(text("words", reply_to=777, reply_text=copy), both) == to("e2", "reply", "words")
    posing = "What about #m3?\nshop-api · #k7"
    assert route(text("words", reply_to=777, reply_text=posing), both) == to("e1", "reply", "words")


def test_a_reply_to_a_settled_ask_is_told() -> None:
    """Its code is no longer open; the text is not given to another ask."""
    gone = text("words", reply_to=777, reply_text="Which?\nshop-api · #z9")
    assert route(gone, [opened()]) == Tell("settled")


def test_the_text_after_the_pencil_goes_to_the_ask_armed_last() -> None:
    """Of two, the later one; somebody else's pencil does not count."""
    first, second = armed(opened(), 10.0), armed(opened(entry_id="e2", code="m3", message_id=600), 20.0)
    assert route(text("words"), [first, second]) == to("e2", "armed", "words")
    theirs = armed(opened(), 10.0, BOB)
    assert route(text("words"), [theirs, second]) == to("e2", "armed", "words")


def test_a_further_part_belongs_to_the_text_that_is_being_joined() -> None:
    """As long as it replies to nothing, or to the same ask."""
    joining = opened()
    long = Texted(900, 50.0, ANN, 41, "w" * 3000, "reply")
    joining = replace(joining, state=step(joining.ask, joining.state, long).state)
    other = opened(entry_id="e2", code="m3", message_id=600)
    assert route(text("the rest"), [joining, other]) == to("e1", "part", "the rest")
    assert route(text("the rest", reply_to=500), [joining, other]) == to("e1", "part", "the rest")
    assert route(text("other", reply_to=600), [joining, other]) == to("e2", "reply", "other")


def test_a_plain_label_or_number_is_the_option_of_the_only_open_ask() -> None:
    """And nothing else is taken by itself."""
    assert route(text("SQLite"), [opened()]) == to("e1", "label", "SQLite", 1)
    assert route(text("3"), [opened()]) == to("e1", "label", "3", 2)
    assert route(text("let's take DuckDB"), [opened()]) == to("e1", "offered", "let's take DuckDB")


def test_a_plain_text_with_two_open_asks_belongs_to_neither() -> None:
    """The person is asked to reply to one of them."""
    both = [opened(), opened(entry_id="e2", code="m3", message_id=600)]
    assert route(text("SQLite"), both) == Tell("two_open", ("e1", "e2"))
    assert route(text("SQLite"), []) == Tell("none_open")


def test_a_message_whose_sending_is_not_confirmed_yet_can_be_answered() -> None:
    """The person may be quicker than Telegram's answer; an ask that is surely on the phone comes first."""
    unsure = replace(opened(), phone=replace(opened().phone, message_id=None))
    assert route(text("SQLite"), [unsure]) == to("e1", "label", "SQLite", 1)
    shown = opened(entry_id="e2", code="m3", message_id=600)
    assert route(text("SQLite"), [unsure, shown]) == to("e2", "label", "SQLite", 1)


def test_a_plain_text_that_is_no_option_is_refused_where_only_options_count() -> None:
    """The list is shown instead of an offer."""
    assert route(text("perhaps"), [opened(STRICT)]) == Tell("no_such_option", ("e1",))


def test_on_the_review_a_plain_text_is_told_how_to_answer() -> None:
    """No question is on show that it could be for."""
    review = opened(TWO)
    gone = step(TWO, review.state, Tapped(900, 1.0, ANN, Go(2), 0)).state
    assert route(text("Red"), [replace(review, state=gone)]) == Tell("how_to_answer", ("e1",))
    assert route(text("Red", group=True), [replace(review, state=gone)]) == Ignore()


def test_a_command_is_no_answer_unless_it_is_a_reply() -> None:
    """`/start` comes from the chat's first button."""
    assert route(text("/start"), [opened()]) == Tell("how_to_answer")
    assert route(text("/dev is fine", reply_to=500), [opened()]) == to("e1", "reply", "/dev is fine")


def test_what_has_no_words_is_told_so() -> None:
    """A sticker, a photo, blanks; in a group only where it replies to Hermes."""
    assert route(text(None), [opened()]) == Tell("no_words")
    assert route(text("  "), [opened()]) == Tell("no_words")
    assert route(text(None, group=True), [opened()]) == Ignore()
    assert route(text(None, group=True, reply_to=500), [opened()]) == Tell("no_words")


def test_people_who_talk_in_a_group_are_left_alone() -> None:
    """A plain label counts there too; everything else is theirs."""
    assert route(text("SQLite", group=True), [opened()]) == to("e1", "label", "SQLite", 1)
    assert route(text("lunch?", group=True), [opened()]) == Ignore()
    assert route(text("SQLite", group=True, reply_to=333), [opened()]) == Ignore()
    both = [opened(), opened(entry_id="e2", code="m3", message_id=600)]
    assert route(text("SQLite", group=True), both) == Ignore()


def test_an_update_that_was_seen_goes_nowhere_again() -> None:
    """Also where it would now belong to another ask."""
    answered = opened(TWO)
    seen = step(TWO, answered.state, Tapped(1, 1.0, ANN, Pick(0, 0), 0)).state
    other = opened(entry_id="e2", code="m3", message_id=600)
    assert route(text("SQLite"), [replace(answered, state=seen), other]) == Ignore()


def test_another_chats_text_is_nobodys() -> None:
    """An ask is answered where it was posted."""
    elsewhere = replace(opened(), phone=replace(opened().phone, chat_id=999))
    assert route(text("SQLite"), [elsewhere]) == Tell("none_open")
