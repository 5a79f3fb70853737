"""What Neovate Code's approval is asked becomes an ask, and what people decide becomes what that approval returns."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from hermes.agents.neovate.adapter import REASON, answers, read, waiter_text
from hermes.agents.registry import ADAPTERS
from hermes.errors import PayloadError
from hermes.model.answer import Answer, Decision, User
from hermes.model.ask import Ask, Option, Source
from hermes.model.signals import Asked, Dismissed, Replied

ANN = User(11, "Ann")
Json = dict[str, Any]

# As an agent of 0.28.2 asked it when it was run.
SEEN: Json = {
    "id": "0123",
    "session": "7223256d",
    "directory": "/home/dev/shop-api",
    "context": "Hm.",
    "questions": [
        {
            "question": "Which database should we use?",
            "header": "Database",
            "options": [
                {"label": "SQLite (Recommended)", "description": "one file"},
                {"label": "Postgres", "description": "a server"},
            ],
            "multiSelect": False,
        },
        {
            "question": "Which features do you want to enable?",
            "header": "Features",
            "options": [{"label": "Auth", "description": "logins"}, {"label": "Cache", "description": "speed"}],
            "multiSelect": True,
        },
    ],
}


def question(**changes: Any) -> Json:
    """One question as the model writes it."""
    return {"question": "Which?", "header": "W", "options": [{"label": "A"}, {"label": "B"}]} | changes


def of(*questions: Json, **more: Any) -> Ask:
    """The ask of these questions."""
    signal = read({"id": "0123", "session": "s", "questions": list(questions)} | more, machine="laptop")
    assert isinstance(signal, Asked)
    assert not signal.nonce
    return signal.ask


def told(ask: Ask, decision: Decision) -> Json:
    """What goes out."""
    line = waiter_text(ask, decision)
    assert line.isascii()
    assert line.isprintable()
    said: Json = json.loads(line)
    return said


def test_a_question_is_an_ask() -> None:
    """The whole of it; the first option is recommended by its label."""
    signal = read(SEEN, machine="laptop")
    assert isinstance(signal, Asked)
    assert signal.ask.source == Source(
        agent="neovate",
        machine="laptop",
        session_id="7223256d",
        directory="/home/dev/shop-api",
        request_id="0123",
        last_text="Hm.",
    )
    first, second = signal.ask.questions
    assert (first.text, first.header, first.multiple, first.recommended) == (
        "Which database should we use?",
        "Database",
        False,
        0,
    )
    assert first.options == (Option("SQLite (Recommended)", "one file"), Option("Postgres", "a server"))
    assert (second.multiple, second.recommended, second.custom) == (True, None, True)
    assert signal.ask.capabilities == ADAPTERS["neovate"].capabilities
    assert not signal.ask.capabilities.reject_stops
    assert not signal.ask.capabilities.can_skip


def test_limits_that_only_the_model_is_told_do_not_count() -> None:
    """Execution does not validate: one option, none, five questions."""
    assert len(of(*[question(options=[])] * 5).questions) == 5


@pytest.mark.parametrize(
    ("word", "signal"),
    [
        ({"answers": [["A, B"], []]}, Replied("0123", "7223256d", (("A, B",), ()))),
        ({"kind": "reject"}, Dismissed("0123", "7223256d")),
    ],
)
def test_words_of_the_desk_are_read(word: Json, signal: object) -> None:
    """Answered there, or denied."""
    assert read(SEEN | {"desk": word}, machine="laptop") == signal


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ([], "payload is not an object"),
        ({"questions": []}, r"payload\.id is not text"),
        ({"id": "a", "questions": "Q"}, r"payload\.questions is not a list"),
        ({"id": "a", "questions": ["Q"]}, r"payload\.questions\[0\] is not an object"),
        ({"id": "a", "questions": [question(question=1)]}, r"questions\[0\]\.question is not text"),
        ({"id": "a", "questions": [question(options={})]}, r"questions\[0\]\.options is not a list"),
        ({"id": "a", "questions": [question(options=[{}])]}, r"questions\[0\]\.options\[0\]\.label is not text"),
        ({"id": "a", "questions": [question(multiSelect=1)]}, r"questions\[0\]\.multiSelect is neither"),
        ({"id": "a", "session": 1, "questions": []}, r"payload\.session is not text"),
    ],
)
def test_another_shape_is_refused_with_its_place(given: object, place: str) -> None:
    """The sentence says where, and never what stood there."""
    with pytest.raises(PayloadError, match=place):
        read(given, machine="laptop")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
QUESTION = st.fixed_dictionaries(
    {
        "question": st.text(max_size=3),
        "options": st.lists(st.fixed_dictionaries({"label": st.text(max_size=3)}) | JSON),
    },
    optional={"multiSelect": st.booleans() | JSON, "header": JSON},
)


@given(st.lists(QUESTION | JSON, max_size=3) | JSON, JSON, JSON)
def test_nothing_but_a_payload_error_comes_of_any_json(questions: object, session: object, desk: object) -> None:
    """What is understood can be answered and refused."""
    with contextlib.suppress(PayloadError):
        signal = read({"id": "a", "questions": questions, "session": session, "desk": desk}, machine="m")
        if isinstance(signal, Asked):
            every = tuple(Answer(tuple(range(len(one.options))), "x") for one in signal.ask.questions)
            said = told(signal.ask, Decision("answer", 1.0, every, ANN))
            assert len(said["params"]["answers"]) == len(signal.ask.questions)


def test_labels_are_joined_as_its_own_dialog_joins_them() -> None:
    """Picks in the order chosen, then the free text; a question to the letter; nothing for what was not answered."""
    three = of(question(question="Q\ud800?", multiSelect=True), question(question="R?"), question(question="S?"))
    decision = Decision("answer", 1.0, (Answer((1, 0), "mine\n"), Answer(), Answer((), "x")), ANN)
    assert told(three, decision) == {
        "approved": True,
        "params": {"answers": [{"question": "Q\ud800?", "answer": "B, A, mine\n"}, {"question": "S?", "answer": "x"}]},
    }
    assert answers(three, decision) == (("B", "A", "mine\n"), (), ("x",))


def test_a_no_has_a_reason() -> None:
    """The turn goes on with it; a release is nothing to tell."""
    assert told(of(question()), Decision("reject", 1.0, by=ANN)) == {"approved": False, "denyReason": REASON}
    with pytest.raises(ValueError, match="release"):
        waiter_text(of(question()), Decision("release", 1.0))
