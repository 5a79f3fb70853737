"""Toasts, hints, and what Hermes says about itself."""

from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given, settings, strategies as st

from hermes.chat.screens import hints
from hermes.chat.screens.hints import digest_screen, hint, not_saved, other_poller, toast, unreadable, was_away
from hermes.chat.screens.screen import Look
from hermes.core.answers import utf16_units
from hermes.core.routing import TellKind
from hermes.model.answer import Answer, Outcome, OutcomeKind
from hermes.model.ask import Option
from hermes.model.entry import Entry
from hermes.model.state import Hint, Joining, State, Toast, ToastKind
from tests.chat.screens import entries
from tests.chat.screens.entries import (
    ANN,
    ASKED_S,
    AT_1812,
    DATABASE,
    GIVEN,
    GOES_ON,
    GROUP,
    LOOK,
    SQLITE,
    STOP,
    THREE,
    entry,
    settled,
)
from tests.chat.screens.show import shown
from tests.chat.screens.sound import assert_sound

HINTS: list[hints.HintWord] = [word for part in get_args(hints.HintWord) for word in get_args(part)]
SENDING = entry(DATABASE, state=State(phase="sending", answers=(Answer(),), decision=SQLITE))


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("picked", "SQLite (Recommended)", "SQLite"),
        ("picked", "", "(empty)"),
        ("picked", "a\n\u202eb", "a b"),
        ("dropped", "S", "☐ S"),
        ("dropped", "", "Taken out"),
        ("on_its_way", "", "On its way: SQLite"),
        ("page_changed", "", "This page has changed"),
        ("type_now", "", "Type your answer as your next message"),
        ("typing_off", "", "All right, no typing"),
        ("sure", "", "Sure? One more tap."),
        ("moved", "", "Database"),
        ("kept_waiting", "", "All right, I keep waiting"),
        ("forgotten", "", "All right, that was not an answer"),
        ("not_answerable", "", "Please answer this one on the computer"),
    ],
)
def test_a_tap_is_acknowledged_in_a_few_words(kind: ToastKind, text: str, said: str) -> None:
    """What was done, or why nothing was."""
    assert toast(SENDING, Toast(kind, text), LOOK) == said


def test_a_toast_knows_where_it_is() -> None:
    """The page by its name and place, a text that is coming in, a group."""
    pages = [entry(*THREE, state=State(page=page, answers=GIVEN)) for page in range(4)]
    assert [toast(page, Toast("moved"), LOOK) for page in pages] == [
        "Colour (1/3)",
        "Sizes (2/3)",
        "Name (3/3)",
        "Review",
    ]
    assert toast(entry(), Toast("moved"), LOOK) == "Go on?"
    joining = entry(DATABASE, state=State(answers=(Answer(),), joining=Joining(0, ANN, ())))
    assert toast(joining, Toast("receiving"), LOOK) == "One moment, I am still receiving your text"
    assert toast(joining, Toast("type_now"), GROUP) == "Reply with your answer"


ENDS: list[tuple[State, str]] = [
    (settled(Outcome("answered", AT_1812), SQLITE), "Already answered: SQLite"),
    (settled(Outcome("rejected", AT_1812), STOP), "Already stopped"),
    (settled(Outcome("skipped", AT_1812)), "Already skipped"),
    (
        settled(Outcome("answered_at_desk", AT_1812, (("a/b.com",),)), STOP),
        "Already answered on the computer: a/b.com",
    ),
    (settled(Outcome("answered_at_desk", AT_1812)), "Already answered on the computer: no answer"),
    (settled(Outcome("answered_at_desk", AT_1812, reason="timer")), "The agent's own timer has decided"),
    (settled(Outcome("rejected_at_desk", AT_1812)), "Already dismissed on the computer"),
    (settled(Outcome("gone", AT_1812)), "The agent no longer needs this"),
    (settled(Outcome("expired", AT_1812)), "Nobody answered this in time"),
]


@pytest.mark.parametrize(("state", "said"), ENDS)
def test_a_tap_on_a_settled_ask_is_told_how_it_ended(state: State, said: str) -> None:
    """In a toast and, for a text, in a message."""
    ended = entry(DATABASE, state=state)
    assert toast(ended, Toast("settled"), LOOK) == said
    assert shown(hint("settled", ended)) == f"{said}."


def test_every_end_has_a_word() -> None:
    """The table above is complete."""
    assert {state.outcome.kind for state, _ in ENDS if state.outcome} == set(get_args(OutcomeKind))
    refused = entry(DATABASE, state=settled(Outcome("rejected", AT_1812), STOP), capabilities=GOES_ON)
    assert toast(refused, Toast("settled"), LOOK) == "Already refused"


@pytest.mark.long
@settings(deadline=None, max_examples=60)
@given(entries.hostile(), st.sampled_from(get_args(ToastKind)), entries.wild, entries.looks)
def test_a_toast_is_short_whatever_it_speaks_of(asked: Entry, kind: ToastKind, text: str, look: Look) -> None:
    """200 characters are all that Telegram shows."""
    said = toast(asked, Toast(kind, text), look)
    assert 0 < utf16_units(said) <= 200
    assert "\n" not in said


@pytest.mark.long
@settings(deadline=None, max_examples=60)
@given(entries.hostile(), st.sampled_from(HINTS), entries.looks, st.integers(0, 99))
def test_a_hint_is_within_telegrams_limits(asked: Entry, kind: hints.HintWord, look: Look, count: int) -> None:
    """Whatever it speaks of, or nothing."""
    assert_sound(hint(kind, asked, count=count))
    assert_sound(hint(kind, None, count=count))


def test_there_is_a_hint_for_all_that_is_told() -> None:
    """Of the dialog and of the routing."""
    assert set(HINTS) == {*get_args(Hint), *get_args(TellKind)}


@pytest.mark.parametrize(
    ("kind", "asked", "said"),
    [
        ("taken", SENDING, "An answer is already on its way: **SQLite**"),
        ("taken", entry(DATABASE, answerable=False), "Please answer this one on the computer."),
        (
            "taken",
            entry(DATABASE, state=State(joining=Joining(0, ANN, ()))),
            "One moment: somebody's answer to **Database** is just coming in.",
        ),
        ("taken", None, "That answer is already on its way."),
        ("settled", None, "I take no more answers to that question."),
        ("none_open", None, "No question is open just now that you can answer here. I write when an agent asks."),
        ("no_words", SENDING, "An answer can only be words. Please type it, or tap a button."),
        ("how_to_answer", None, "Tap a button below a question, or reply to the question with your own words."),
        (
            "how_to_answer",
            SENDING,
            "To answer **Database**, tap one of its buttons, or reply to it with your own words.",
        ),
        ("how_to_answer", entry(), "To answer **Go on?**, tap one of its buttons."),
        ("which_question", entry(), "To answer **Go on?**, tap one of its buttons."),
        ("which_question", SENDING, "Which question is that for? Please tap its number, then write it again."),
        ("no_such_option", None, "That is none of the options. Please tap one."),
        (
            "no_such_option",
            entry(DATABASE, state=State(page=1)),
            "Which question is that for? Please tap its number, then write it again.",
        ),
        (
            "no_such_option",
            entry(DATABASE),
            """\
That is none of the options of **Database**. Please tap one, or send its number:
1 **PostgreSQL**
2 **SQLite**
3 **Redis**""",
        ),
    ],
)
def test_a_text_that_changed_nothing_is_told_why(kind: hints.HintWord, asked: Entry | None, said: str) -> None:
    """And what to do instead."""
    assert shown(hint(kind, asked)) == said


def test_what_a_timer_decided_is_not_called_an_answer() -> None:
    """Nobody chose it."""
    sending = replace(SENDING, state=replace(SENDING.state, decision=replace(STOP, by=None)))
    assert toast(sending, Toast("on_its_way"), LOOK) == "On its way, since time was up: Stop"
    assert shown(hint("taken", sending)) == "On its way, since time was up: **Stop**"


def test_options_that_are_numbers_get_no_numbers() -> None:
    """The text "3" is the label then, and not the third option."""
    counted = replace(DATABASE, options=(Option("3"), Option("2"), Option("1")))
    said = shown(hint("no_such_option", entry(counted)))
    assert said.endswith("Please tap one, or send its label:\n• **3**\n• **2**\n• **1**")


def test_a_long_list_of_options_is_cut() -> None:
    """As many as on a page."""
    long = entry(replace(DATABASE, options=DATABASE.options * 10))
    assert shown(hint("no_such_option", long)).endswith("\n24 **Redis**\n… and 6 more")


@pytest.mark.parametrize(("count", "said"), [(2, "Two"), (9, "Nine"), (12, "12")])
def test_open_questions_are_counted(count: int, said: str) -> None:
    """In words, as far as one says them."""
    told = shown(hint("two_open", None, count=count))
    assert told == f"{said} questions are open. Reply to the one you mean."


@pytest.mark.parametrize(
    ("count", "coming", "said"),
    [
        (1, 0, "Here is the one that is open:"),
        (1, -1, "Here is the one that is open:"),
        (1, 2, "Here is one of the 3 that are open; the others come by themselves:"),
        (2, 1, "Here are 2 of the 3 that are open; the other one comes by itself:"),
    ],
)
def test_what_is_posted_again_is_counted(count: int, coming: int, said: str) -> None:
    """Not as all, if more is open that is not here yet."""
    assert shown(hints.reposted(count, coming=coming)) == said


def test_what_is_posted_again_elsewhere_is_counted_too() -> None:
    """Below this answer nothing comes."""
    assert shown(hints.reposted(1, is_apart=True)) == "I post it again, in its topic."
    said = "I post 2 again, each in its topic. Others are open that come by themselves."
    assert shown(hints.reposted(2, coming=1, is_apart=True)) == said


def test_what_hermes_says_about_itself() -> None:
    """Plain words, and what to do."""
    assert shown(digest_screen(1)) == "Quiet hours have ended: one question is waiting for you."
    assert shown(digest_screen(3)) == "Quiet hours have ended: 3 questions are waiting for you."
    assert shown(digest_screen(0)) == "Quiet hours have ended: no questions are waiting for you."
    away = shown(was_away(ASKED_S - 7200, ASKED_S, LOOK))
    assert away == "I was offline from 16:10 to 18:10. If you tapped something then, please tap again."
    assert "from Mon 18:10 to 18:10." in was_away(ASKED_S - 2 * 86_400, ASKED_S, LOOK).text
    assert shown(not_saved("laptop")) == (
        "⚠️ I could not save that (disk full on laptop). Please tap again in a moment."
    )
    assert utf16_units(not_saved("x" * 999, "y" * 999).text) <= 200, "it has to fit into a toast"
    assert shown(hints.defect("laptop", is_kept=True)) == (
        "⚠️ That may not have worked, because of a defect of mine. I kept it. To find it, run on laptop: `hermes doctor`"
    )
    assert "I could not keep it. To find out why, run on the computer: " in hints.defect("", is_kept=False).text
    assert utf16_units(hints.defect("x" * 999, is_kept=False).text) <= 200, "it has to fit into a toast"
    assert shown(unreadable(1, "laptop")) == (
        "⚠️ A question from laptop can't be read any more: damaged on disk. "
        "If it does not come again, please answer it there."
    )
    assert "⚠️ 2 questions from the computer can't be read any more" in unreadable(2, "").text
    assert "If they do not come again, please answer them there." in unreadable(2, "").text
    assert shown(other_poller("laptop")) == (
        "⚠️ Another program is using this bot; taps may go there. On laptop: `hermes doctor`."
    )
    assert "On the computer: " in other_poller("").text
