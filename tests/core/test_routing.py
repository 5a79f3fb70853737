"""Which ask a text belongs to."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hermes.core.dialog import start, step
from hermes.core.routing import TYPING_S, Ignore, Tell, ToAsk, may_be_late, route
from hermes.model.actions import Arm, Go, Pick
from hermes.model.answer import Outcome
from hermes.model.entry import Phone, Side
from hermes.model.events import Tapped, Text, Texted
from tests.asks import ANN, BOB, CHAT_ID, ask, entry, question

if TYPE_CHECKING:
    from hermes.model.answer import User
    from hermes.model.ask import Ask
    from hermes.model.entry import Entry
    from hermes.model.events import TextHow

ONE = ask(question())
TWO = ask(question("Colour?", ("Red",), header="Colour"), question("Size?", ("S",), header="Size"))
STRICT = ask(question("Proceed?", ("Yes", "No"), custom=False))


def opened(an_ask: Ask = ONE, entry_id: str = "e1", code: str = "k7mx4", message_id: int = 500) -> Entry:
    """An ask that is open on the phone; its message has Telegram's date 90."""
    made = entry(an_ask, start(an_ask), entry_id=entry_id, code=code, message_id=message_id)
    return replace(made, phone=replace(made.phone, since_id=message_id, since_date_s=90.0, after_id=message_id - 50))


def armed(an_entry: Entry, at_s: float, user: User = ANN) -> Entry:
    """The same after ✏️."""
    tapped = Tapped(900, at_s, user, Arm(0), an_entry.state.epoch)
    return replace(an_entry, state=step(an_entry.ask, an_entry.state, tapped).state)


def in_topic(an_entry: Entry, thread_id: int) -> Entry:
    """The same in this topic."""
    return replace(an_entry, phone=replace(an_entry.phone, thread_id=thread_id))


def text(words: str | None, **about: Any) -> Text:
    """A text of Ann's, written later than all asks."""
    return replace(Text(1, 100.0, ANN, CHAT_ID, 942, words, date_s=95.0), **about)


def to(entry_id: str, how: TextHow, words: str) -> ToAsk:
    """What the text becomes."""
    return ToAsk(entry_id, Texted(1, 100.0, ANN, 942, words, how, 95.0))


def test_a_reply_belongs_to_the_message_that_it_replies_to() -> None:
    """Main message, older copy or message beside: all are the ask's own."""
    first = opened()
    phone = replace(first.phone, copies=(499,), sides=(Side("final_call", 501),))
    both = [replace(first, phone=phone), opened(entry_id="e2", code="m3abc", message_id=600)]
    for message_id in (500, 499, 501):
        assert route(text("words", reply_to=message_id), both) == to("e1", "reply", "words")
    assert route(text("words", reply_to=600), both) == to("e2", "reply", "words")


def test_a_reply_to_a_request_to_type_counts_for_the_person_whom_it_asked() -> None:
    """It is offered once the page has changed; and so is the text of another person, whose app also began the reply."""
    asked = opened()
    asked = replace(asked, phone=replace(asked.phone, sides=(Side("typing", 501),)))
    reply = text("words", reply_to=501, group=True)
    assert route(reply, [armed(asked, 10.0)]) == to("e1", "reply", "words")
    assert route(reply, [asked]) == to("e1", "offered", "words")
    assert route(reply, [armed(asked, 10.0, BOB)]) == to("e1", "offered", "words")
    unknown = replace(reply, reply_to=777, reply_text="Reply to this with your answer. #k7mx4")
    assert route(unknown, [armed(asked, 10.0, BOB)]) == to("e1", "offered", "words")
    assert route(unknown, [armed(asked, 10.0)]) == to("e1", "reply", "words")


def test_a_reply_is_only_offered_while_a_second_tap_is_asked_for() -> None:
    """A "yes" to "Stop the agent?" is no answer to the agent's question; one to "Type your answer" is."""
    asked = replace(opened(), phone=replace(opened().phone, sides=(Side("typing", 501), Side("final_call", 502))))
    sure = replace(asked, state=replace(asked.state, confirm="reject"))
    for message_id in (500, 502):
        assert route(text("yes", reply_to=message_id), [sure]) == to("e1", "offered", "yes")
        assert route(text("yes", reply_to=message_id), [asked]) == to("e1", "reply", "yes")
    typing = replace(sure, state=replace(armed(asked, 10.0).state, confirm="reject"))
    assert route(text("yes", reply_to=501), [typing]) == to("e1", "reply", "yes")


def test_a_reply_to_an_offer_is_only_offered() -> None:
    """A "no" to "Is this your answer?" is no answer to the question; the buttons there are."""
    asked = replace(opened(), phone=replace(opened().phone, sides=(Side("offer", 8),)))
    assert route(text("no", reply_to=8), [asked]) == to("e1", "offered", "no")
    reminded = replace(asked, phone=replace(asked.phone, sides=(Side("reminder", 8),)))
    assert route(text("no", reply_to=8), [reminded]) == to("e1", "reply", "no")


def test_a_reply_to_an_unknown_copy_is_known_by_the_code_in_its_last_line() -> None:
    """A code that an agent wrote into its question names nothing."""
    both = [opened(), opened(entry_id="e2", code="m3abc", message_id=600)]
    copy = "Which database?\nshop-api · waits until 18:40 · #m3abc"
    assert route(text("words", reply_to=777, reply_text=copy), both) == to("e2", "reply", "words")
    posing = "What about #m3abc?\nshop-api · #k7mx4"
    assert route(text("words", reply_to=777, reply_text=posing), both) == to("e1", "reply", "words")


def test_a_reply_to_a_settled_ask_is_told() -> None:
    """Its code is no longer open; the text is not given to another ask."""
    gone = text("words", reply_to=777, reply_text="Which?\nshop-api · #z9abc")
    assert route(gone, [opened()]) == Tell("settled")


def test_a_reply_to_another_message_is_not_the_text_after_the_pencil() -> None:
    """Also if that message is not known any more: it may have been of another session. It is offered."""
    reply = replace(text("words"), reply_to=999, reply_text="Fix login flow is done")
    assert route(reply, [armed(opened(), 10.0)]) == to("e1", "offered", "words")


def test_the_text_after_the_pencil_goes_to_the_ask_armed_last() -> None:
    """Of two, the later one; somebody else's pencil does not count."""
    first, second = armed(opened(), 10.0), armed(opened(entry_id="e2", code="m3abc", message_id=600), 20.0)
    assert route(text("words"), [first, second]) == to("e2", "armed", "words")
    theirs = armed(opened(), 10.0, BOB)
    assert route(text("words"), [theirs, second]) == to("e2", "armed", "words")
    assert route(text("words", is_forwarded=True), [theirs, second]) == to("e2", "offered", "words")


def test_a_further_part_belongs_to_the_text_that_is_being_joined() -> None:
    """As long as it replies to nothing, or to the same ask."""
    joining = opened()
    long = Texted(900, 50.0, ANN, 941, "w" * 3000, "reply", 94.0)
    joining = replace(joining, state=step(joining.ask, joining.state, long).state)
    other = opened(entry_id="e2", code="m3abc", message_id=600)
    assert route(text("the rest"), [joining, other]) == to("e1", "part", "the rest")
    assert route(text("the rest", reply_to=500), [joining, other]) == to("e1", "part", "the rest")
    assert route(text("other", reply_to=600), [joining, other]) == to("e2", "reply", "other")
    forwarded = text("a stranger's words", is_forwarded=True)
    assert route(forwarded, [joining]) == to("e1", "offered", "a stranger's words")
    assert joining.state.joining is not None
    offered = replace(joining, state=replace(joining.state, joining=replace(joining.state.joining, offered=True)))
    assert route(forwarded, [offered]) == to("e1", "part", "a stranger's words")


def test_nothing_follows_a_short_part() -> None:
    """The next text of the same person is one of its own, for another ask if that one is armed."""
    joining, other = opened(), armed(opened(entry_id="e2", code="m3abc", message_id=600), 60.0)
    for place, words in enumerate(("w" * 3000, "the end")):
        how: TextHow = "part" if place else "reply"
        part = Texted(900 + place, 50.0, ANN, 940 + place, words, how, 94.0)
        joining = replace(joining, state=step(joining.ask, joining.state, part).state)
    assert route(text("in other words"), [joining, other]) == to("e2", "armed", "in other words")


def test_a_text_of_a_later_date_is_no_part() -> None:
    """Parts leave an app together; Hermes may have been away for hours between the two."""
    joining = opened()
    long = Texted(900, 50.0, ANN, 941, "w" * 3000, "reply", 60.0)
    joining = replace(joining, state=step(joining.ask, joining.state, long).state)
    assert route(text("Yes"), [joining]) == to("e1", "offered", "Yes")


def test_a_plain_text_is_only_offered_also_if_it_is_a_label() -> None:
    """It may have been meant for somebody else."""
    for words in ("SQLite", "3", "let's take DuckDB"):
        assert route(text(words), [opened()]) == to("e1", "offered", words)
    assert route(text("No"), [opened(STRICT)]) == to("e1", "offered", "No")


def test_a_text_from_before_the_ask_is_not_for_it() -> None:
    """Telegram kept it while Hermes was away: by its id or its date it is older than the ask's first message."""
    for early in (text("SQLite", message_id=499), text("SQLite", date_s=89.0)):
        assert route(early, [opened()]) == Tell("too_early")
        assert route(early, [armed(opened(), 10.0)]) == Tell("too_early")
    older = opened(entry_id="e2", message_id=400)
    between = route(text("SQLite", message_id=450), [older, opened()])
    assert isinstance(between, ToAsk)
    assert (between.entry_id, between.event.how) == ("e2", "offered")


def test_a_text_counts_also_after_its_ask_was_posted_again() -> None:
    """The first message of the ask counts, not the newest one."""
    again = opened()
    again = replace(again, phone=replace(again.phone, message_id=990))
    assert route(text("SQLite"), [again]) == to("e1", "offered", "SQLite")


def test_a_plain_text_with_two_open_asks_belongs_to_neither() -> None:
    """The person is asked to reply to one of them."""
    both = [opened(), opened(entry_id="e2", code="m3abc", message_id=600)]
    assert route(text("SQLite"), both) == Tell("two_open", ("e1", "e2"))
    assert route(text("SQLite"), []) == Tell("none_open")


def test_a_plain_text_is_not_for_an_ask_whose_sending_is_not_confirmed() -> None:
    """Nothing tells whether it was on the phone; a reply to it names it."""
    unsure = replace(opened(), phone=Phone(CHAT_ID, after_id=450))
    assert route(text("SQLite"), [unsure]) == Tell("too_early")
    shown = opened(entry_id="e2", code="m3abc", message_id=600)
    assert route(text("SQLite"), [unsure, shown]) == to("e2", "offered", "SQLite")
    reply = text("SQLite", reply_to=480, reply_text="Which?\nshop-api · #k7mx4")
    assert route(reply, [unsure, shown]) == to("e1", "reply", "SQLite")


def test_a_code_in_a_message_older_than_the_ask_names_another_ask() -> None:
    """Codes come again when all of an old ask is forgotten."""
    old = text("words", reply_to=440, reply_text="Which?\nshop-api · #k7mx4")
    assert route(old, [opened()]) == Tell("settled")


def test_a_code_counts_only_at_the_end_of_our_own_message() -> None:
    """Of a message that somebody else wrote nothing is known, whatever it says."""
    assert route(text("words", reply_to=777), [opened()]) == to("e1", "offered", "words")
    assert route(text("words", reply_to=777, group=True), [opened()]) == Ignore()
    inside = text("words", reply_to=777, reply_text="#k7mx4 is what I said", group=True)
    assert route(inside, [opened()]) == Tell("how_to_answer")


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
    assert route(text(None, group=True, reply_to=333), [opened()]) == Ignore()
    assert route(text(None, group=True, reply_to=333, reply_text="It is done"), [opened()]) == Tell("no_words")
    assert route(text(None, group=True, reply_to=500), [opened()]) == Tell("no_words", ("e1",))


def test_people_who_talk_in_a_group_are_left_alone() -> None:
    """Only a reply to Hermes counts there, also after ✏️."""
    for words in ("SQLite", "lunch?", "/weather"):
        assert route(text(words, group=True), [opened()]) == Ignore()
        assert route(text(words, group=True), [armed(opened(), 10.0)]) == Ignore()
    assert route(text("SQLite", group=True, reply_to=333), [opened()]) == Ignore()
    assert route(text("SQLite", group=True, reply_to=500), [opened()]) == to("e1", "reply", "SQLite")


def test_a_reply_to_another_message_of_ours_is_told_something_in_a_group() -> None:
    """A notice or a hint: the person speaks to Hermes. It answers nothing, in a topic neither."""
    reply = text("SQLite", group=True, reply_to=333, reply_text="Fix login flow is done")
    assert route(reply, []) == Tell("none_open")
    assert route(reply, [opened()]) == Tell("how_to_answer")
    assert route(replace(reply, thread_id=7), [armed(in_topic(opened(), 7), 10.0)]) == Tell("how_to_answer")


def test_an_update_that_was_seen_goes_nowhere_again() -> None:
    """Also where it would now belong to another ask."""
    answered = opened(TWO)
    seen = step(TWO, answered.state, Tapped(1, 1.0, ANN, Pick(0, 0), 0)).state
    other = opened(entry_id="e2", code="m3abc", message_id=600)
    assert route(text("SQLite"), [replace(answered, state=seen), other]) == Ignore()


def test_another_chats_text_is_nobodys() -> None:
    """An ask is answered where it was posted."""
    elsewhere = replace(opened(), phone=replace(opened().phone, chat_id=999))
    assert route(text("SQLite"), [elsewhere]) == Tell("none_open")


def test_in_a_topic_only_its_own_asks_count() -> None:
    """In a topic without asks, those of the whole chat are meant; a text in no topic is about all of them, too."""
    first, second = in_topic(opened(), 7), in_topic(opened(entry_id="e2", code="m3abc", message_id=600), 8)
    both = [first, second]
    assert route(text("words", thread_id=7), both) == to("e1", "offered", "words")
    assert route(text("words", thread_id=8), [armed(first, 10.0), second]) == to("e2", "offered", "words")
    assert route(text("words", thread_id=7), [armed(first, 10.0), second]) == to("e1", "armed", "words")
    assert route(text("words", thread_id=9), both) == Tell("two_open", ("e1", "e2"))
    assert route(text("words"), [armed(first, 10.0), second]) == to("e1", "armed", "words")


def test_the_pencil_holds_in_a_topic_of_a_group() -> None:
    """For a text that replies to nothing, and only in the topic of the ask; nothing else is taken there."""
    first = in_topic(opened(), 7)
    assert route(text("words", group=True, thread_id=7), [armed(first, 10.0)]) == to("e1", "armed", "words")
    assert route(text("words", group=True, thread_id=7, reply_to=333), [armed(first, 10.0)]) == Ignore()
    assert route(text("words", group=True, thread_id=8), [armed(first, 10.0)]) == Ignore()
    assert route(text("words", group=True, thread_id=7), [first]) == Ignore()


def test_a_text_that_was_typed_while_the_ask_ended_may_be_late() -> None:
    """Not one that was written before or long after, nor one about an ask that is open."""
    ended = opened()
    ended = replace(ended, state=replace(ended.state, phase="settled", outcome=Outcome("expired", 1000.0)))
    assert may_be_late(text("SQLite", at_s=1001.0), ended)
    assert not may_be_late(text("SQLite", at_s=999.0), ended)
    assert not may_be_late(text("SQLite", at_s=1000.0 + TYPING_S), ended)
    assert not may_be_late(text("SQLite", at_s=1001.0), opened())
