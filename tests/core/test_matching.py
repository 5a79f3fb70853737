"""Finding the request behind an ask, rule by rule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermes.agents.opencode.adapter import capabilities
from hermes.core.matching import candidates
from hermes.model.ask import Ask, Option, Question, Source

DATABASE = Question("Which database?", "DB", (Option("A"), Option("B")))
COLOUR = Question("Which colour?", "Colour", (Option("Red"),))


def ask(
    request_id: str | None = None,
    call_id: str | None = None,
    *questions: Question,
    session_id: str = "ses_1",
) -> Ask:
    """Return an ask with these ids."""
    source = Source("opencode", "laptop", session_id=session_id, request_id=request_id, call_id=call_id)
    return Ask(source, questions or (DATABASE,), capabilities)


def test_the_request_id_decides() -> None:
    """Rule 1, whatever else is equal."""
    other, ours = ask("que_1", "call_1"), ask("que_2", "call_1")
    assert candidates(ask("que_2", "call_1"), [other, ours]) == [ours]


def test_a_request_that_is_not_listed_is_not_replaced_by_an_equal_one() -> None:
    """Rule 1 again: an ask that came with its id is no other request, however alike."""
    assert candidates(ask("que_9", "call_1"), [ask("que_1", "call_1")]) == []


def test_the_call_id_decides_where_there_is_no_request_id() -> None:
    """Rule 2, while two questions of one session are open; their words do not matter."""
    other, ours = ask("que_1", "call_1"), ask("que_2", "call_2", COLOUR)
    assert candidates(ask(None, "call_2"), [other, ours]) == [ours]


def test_a_call_id_counts_in_its_own_session_only() -> None:
    """Providers number their calls anew in each session."""
    assert candidates(ask(None, "call_1"), [ask("que_1", "call_1", session_id="ses_2")]) == []


def test_a_repeated_call_id_is_told_apart_by_the_words() -> None:
    """Some providers repeat call ids, even within one message (seen on both versions)."""
    ours, other = ask("que_1", "call_1"), ask("que_2", "call_1", COLOUR)
    assert candidates(ask(None, "call_1"), [ours, other]) == [ours]


def test_a_repeated_call_id_with_equal_words_is_not_guessed() -> None:
    """Two candidates are never guessed between."""
    pending = [ask("que_1", "call_1"), ask("que_2", "call_1")]
    assert candidates(ask(None, "call_1"), pending) == pending
    assert candidates(ask(None, "call_1", COLOUR), pending) == pending


@pytest.mark.parametrize("ours", [None, "call_1"])
def test_the_only_equal_question_is_ours(ours: str | None) -> None:
    """Rule 3, where one of the two knows no call id."""
    theirs = None if ours else "call_1"
    equal = ask("que_1", theirs)
    pending = [ask("que_2", theirs, COLOUR), equal, ask("que_3", theirs, session_id="ses_2")]
    assert candidates(ask(None, ours), pending) == [equal]


def test_two_equal_questions_are_not_guessed_between() -> None:
    """Rule 3: the only one, or none."""
    pending = [ask("que_1", "call_1"), ask("que_2", "call_2")]
    assert candidates(ask(), pending) == pending


def test_an_equal_question_of_another_call_is_not_ours() -> None:
    """Two calls of one step may ask the very same; the second may be listed before the first is."""
    assert candidates(ask(None, "call_1"), [ask("que_2", "call_2")]) == []


def test_a_made_up_custom_does_not_hide_the_question() -> None:
    """Contract 2: the model cannot set `custom`; new strips it from the list, the hook still sees it."""
    ours = ask(None, None, replace(DATABASE, custom=False))
    assert candidates(ours, [ask("que_1", "call_1")]) == [ask("que_1", "call_1")]


def test_nothing_pending_is_not_yet() -> None:
    """`tool.execute.before` fires before the request exists."""
    assert candidates(ask(None, "call_1"), []) == []
