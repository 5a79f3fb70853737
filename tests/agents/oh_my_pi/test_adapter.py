"""What oh-my-pi's dialog is given becomes an ask, and what people decide becomes what that dialog returns."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from hermes.agents.oh_my_pi.adapter import answers, read, waiter_text
from hermes.agents.registry import ADAPTERS
from hermes.errors import PayloadError
from hermes.model.answer import Answer, Decision, User
from hermes.model.ask import Ask, Option, Source
from hermes.model.notice import Turn
from hermes.model.signals import Asked, Dismissed, Replied, SessionEnded, TurnBegan, TurnEnded, TurnStopped

ANN = User(11, "Ann")
Json = dict[str, Any]
_RECORDED = Path(__file__).parents[2] / "payloads" / "oh-my-pi" / "18.2.3.json"


def recorded(kind: str, name: str) -> Json:
    """What its extension handed to the hook, with the id that the hook makes up."""
    found: Json = json.loads(_RECORDED.read_text(encoding="utf-8"))[kind][name]
    return found | {"id": "0123"} if kind == "asked" else found


def asked(payload: Json) -> Ask:
    """The ask of such a payload."""
    signal = read(payload, machine="laptop")
    assert isinstance(signal, Asked)
    assert not signal.nonce
    return signal.ask


def question(**changes: Any) -> Json:
    """One question as its dialog gets it."""
    return {"id": "q", "question": "Which?", "options": [{"label": "A"}, {"label": "B"}]} | changes


def of(*questions: Json, **more: Any) -> Ask:
    """The ask of these questions."""
    return asked({"id": "0123", "session": "s", "questions": list(questions)} | more)


def told(ask: Ask, *given: Answer, by: User | None = ANN) -> list[Json]:
    """The results that go out for these answers."""
    line = waiter_text(ask, Decision("answer", 1.0, given, by))
    assert line.isascii()
    assert line.isprintable()
    said = json.loads(line)
    assert said.pop("kind") == "submit"
    results: list[Json] = said.pop("results")
    assert not said
    return results


# what comes


def test_a_recorded_question_is_an_ask() -> None:
    """As the real extension sent it: the recommended option is an index."""
    ask = asked(recorded("asked", "one"))
    assert ask.source == Source(
        agent="oh-my-pi",
        machine="laptop",
        session_id="01a200c2-bfe5-71ca-8e47-4be83fa337b9",
        directory="/home/dev/shop-api",
        request_id="0123",
        last_text="Two would do.",
    )
    (one,) = ask.questions
    assert (one.text, one.header, one.multiple, one.custom, one.recommended) == (
        "Which database should I use?",
        "Database",
        False,
        True,
        1,
    )
    assert one.options == (Option("PostgreSQL", "relational"), Option("SQLite"), Option("Redis"))
    assert ask.capabilities == ADAPTERS["oh-my-pi"].capabilities


def test_several_recorded_questions_are_called_by_their_ids() -> None:
    """As its own tabs are, where they have no header."""
    ask = asked(recorded("asked", "several"))
    assert [(one.header, one.multiple) for one in ask.questions] == [("sizes", True), ("name", False)]
    assert ask.capabilities.can_skip


def test_a_preview_stands_where_there_is_no_description() -> None:
    """A label may have two lines or be empty; nothing that is not there is recommended."""
    (one,) = asked(recorded("asked", "odd")).questions
    assert one.options == (Option("A 🐘\nB", "```\nx\n```"), Option(""))
    assert one.recommended is None


@pytest.mark.parametrize(
    ("marked", "known"), [(0, 0), (1, 1), (1.0, 1), (2, None), (-1, None), (True, None), ("1", None)]
)
def test_only_the_index_of_an_option_is_recommended(marked: object, known: int | None) -> None:
    """The model may write anything there."""
    assert of(question(recommended=marked)).questions[0].recommended == known


def test_what_can_be_done_follows_the_questions() -> None:
    """Nothing for one single choice would end its turn; without a dialog nobody at the desk can answer."""
    assert not of(question()).capabilities.can_skip
    assert of(question(multi=True)).capabilities.can_skip
    assert of(question(), question(id="two")).capabilities.can_skip
    assert of(question()).capabilities.desk_stays_open
    assert not of(question(), headless=True).capabilities.desk_stays_open


@pytest.mark.parametrize(
    ("name", "answered"),
    [
        ("a note", (("Redis", "a note"),)),
        ("own words", (("S", "own words"), ("Ada",))),
        ("nothing to see", (("",),)),
    ],
)
def test_recorded_words_of_the_desk_are_read(name: str, answered: tuple[tuple[str, ...], ...]) -> None:
    """Picks, then what was typed: a text of one's own, or a note."""
    said = read(recorded("asked", "one") | {"desk": recorded("desk", name)}, machine="laptop")
    assert said == Replied("0123", "01a200c2-bfe5-71ca-8e47-4be83fa337b9", answered)


def test_an_answer_of_its_own_timer_says_so() -> None:
    """As far as oh-my-pi says that it took one."""
    desk = recorded("desk", "a note") | {"timer": True}
    said = read(recorded("asked", "one") | {"desk": desk}, machine="laptop")
    assert isinstance(said, Replied)
    assert said.by_timer


def test_esc_at_the_desk_is_read() -> None:
    """Whatever is no answer is none."""
    said = read(recorded("asked", "one") | {"desk": recorded("desk", "esc")}, machine="laptop")
    assert said == Dismissed("0123", "01a200c2-bfe5-71ca-8e47-4be83fa337b9")


def test_a_session_without_a_name_is_its_request() -> None:
    """The extension could not tell."""
    assert of(question(), session="").source.session_id == "0123"


def ended(**changes: Any) -> Turn:
    """The turn of the recorded end, with these changes."""
    payload = recorded("ended", "finished")
    signal = read(payload | {"turn": payload["turn"] | changes}, machine="laptop")
    assert isinstance(signal, TurnEnded)
    return signal.turn


def test_a_recorded_end_of_a_turn_has_its_times_and_the_last_words() -> None:
    """In seconds, as everywhere else."""
    place = "/home/dev/shop-api"
    source = Source("oh-my-pi", "laptop", "01a20fb5-a392-7244-99d2-a38ee094d2fa", place)
    turn = Turn(source, "oh-my-pi", "1795559891995", 1795559891.995, 1795559892.465, "Both tests pass now.")
    assert read(recorded("ended", "finished"), machine="laptop") == TurnEnded(turn)
    assert ended(began=None).began_s is None


def test_the_beginning_of_a_turn_and_what_ends_it_early() -> None:
    """A turn that begins ends no ask: the order of a hook's news and of an ask is not known."""
    began = {"began": {"id": "7", "at": 7000, "prompt": "id_1"}, "session": "ses_1", "directory": "/home/dev/shop"}
    assert read(began, machine="laptop") == TurnBegan("oh-my-pi", "ses_1", "7", 7.0, "id_1", ends_asks=False)
    stopped = {"stopped": {"id": "7"}, "session": "ses_1"}
    assert read(stopped, machine="laptop") == TurnStopped("oh-my-pi", "ses_1")
    assert read({"left": True, "session": "ses_1"}, machine="laptop") == SessionEnded("oh-my-pi", "ses_1")
    for damaged in ('{"began": 7}', '{"began": {"id": "7"}}', '{"stopped": {}}', '{"left": true, "session": ""}'):
        with pytest.raises(PayloadError):
            read(json.loads(damaged), machine="laptop")


def test_a_recorded_failure_says_why() -> None:
    """Without the file to which oh-my-pi wrote the request: nobody can open it on the phone."""
    signal = read(recorded("ended", "failed") | {"title": "Fix login"}, machine="laptop")
    assert isinstance(signal, TurnEnded)
    assert signal.turn.failure == "400 the script says so\nthe script says so (type=scripted)"
    assert signal.turn.source.session_title == "Fix login"
    assert ended(failure="raw-http-request=/x").failure == "raw-http-request=/x"


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"turn": None}, r"payload\.turn is not an object"),
        ({"session": ""}, r"payload\.session is not an id"),
        ({"directory": 1}, r"payload\.directory is not text"),
        ({"turn": {"ended": 1}}, r"payload\.turn\.id is not text"),
        ({"turn": {"id": "1"}}, r"payload\.turn\.ended is not a time"),
        ({"turn": {"id": "1", "ended": True}}, r"payload\.turn\.ended is not a time"),
        ({"turn": {"id": "1", "ended": 10**400}}, r"payload\.turn\.ended is not a time"),
        ({"turn": {"id": "1", "ended": 1, "began": "0"}}, r"payload\.turn\.began is not a time"),
        ({"turn": {"id": "1", "ended": 1, "words": []}}, r"payload\.turn\.words is not text"),
    ],
)
def test_an_end_of_another_shape_is_refused_with_its_place(changes: Json, place: str) -> None:
    """Also one that says nothing at all."""
    with pytest.raises(PayloadError, match=place):
        read(recorded("ended", "finished") | changes, machine="laptop")


@pytest.mark.parametrize(
    ("given", "place"),
    [
        (None, "payload is not an object"),
        ({"questions": []}, r"payload\.id is not text"),
        ({"id": "a", "questions": {}}, r"payload\.questions is not a list"),
        ({"id": "a", "questions": [1]}, r"payload\.questions\[0\] is not an object"),
        ({"id": "a", "questions": [question(id=1)]}, r"questions\[0\]\.id is not text"),
        ({"id": "a", "questions": [question(id=None, header="h")]}, r"questions\[0\]\.id is not text"),
        ({"id": "a", "questions": [question(question=None)]}, r"questions\[0\]\.question is not text"),
        ({"id": "a", "questions": [question(options=None)]}, r"questions\[0\]\.options is not a list"),
        (
            {"id": "a", "questions": [question(), question(options=["A"])]},
            r"questions\[1\]\.options\[0\] is not an object",
        ),
        ({"id": "a", "questions": [question(multi="x")]}, r"questions\[0\]\.multi is neither"),
        ({"id": "a", "questions": [], "headless": 1}, r"payload\.headless is neither"),
        ({"id": "a", "questions": [], "desk": 1}, "desk is not an object"),
        ({"id": "a", "questions": [], "desk": {"answers": [1]}}, r"desk\.answers\[0\] is not a list"),
    ],
)
def test_another_shape_is_refused_with_its_place(given: object, place: str) -> None:
    """The sentence says where, and never what stood there."""
    with pytest.raises(PayloadError, match=place):
        read(given, machine="laptop")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
QUESTION = st.fixed_dictionaries(
    {"id": st.text(max_size=3), "question": st.text(max_size=3)},
    optional={
        "options": st.lists(st.fixed_dictionaries({"label": st.text(max_size=3) | JSON}) | JSON, max_size=3),
        "multi": st.booleans() | JSON,
        "recommended": JSON,
        "header": JSON,
    },
)


@given(st.lists(QUESTION, max_size=3) | JSON, JSON, JSON, JSON)
def test_nothing_but_a_payload_error_comes_of_any_json(
    questions: object, session: object, headless: object, desk: object
) -> None:
    """What is understood can be answered, skipped and refused."""
    with contextlib.suppress(PayloadError):
        signal = read(
            {"id": "a", "questions": questions, "session": session, "headless": headless, "desk": desk}, machine="m"
        )
        if isinstance(signal, Asked):
            every = tuple(Answer(tuple(range(len(one.options))), "x") for one in signal.ask.questions)
            assert len(told(signal.ask, *every)) == len(signal.ask.questions)


TURN = st.fixed_dictionaries(
    {"id": st.text(max_size=3), "ended": st.floats() | JSON},
    optional={"began": st.floats() | JSON, "words": st.text(max_size=3) | JSON, "failure": st.text(max_size=3) | JSON},
)


@given(TURN | JSON, JSON | st.text(min_size=1, max_size=3))
@example({"id": "0", "ended": 5e-324}, "s")
def test_nothing_but_a_payload_error_comes_of_any_end(turn: object, session: object) -> None:
    """What is understood has finite times."""
    with contextlib.suppress(PayloadError):
        signal = read({"turn": turn, "session": session}, machine="m")
        assert isinstance(signal, TurnEnded)
        assert 0 <= signal.turn.ended_s < 1e12


# what goes out


def test_an_answer_repeats_its_question_to_the_letter() -> None:
    """The whole form of the dialog; half a character stays half a character."""
    options = [{"label": "A \ud800"}, {"label": "B\u2028\n"}]
    asked_of = of(question(id="i\ud800", question="Q\ud800?", options=options, multi=True))
    assert asked_of.questions[0].options[0].label == "A \ufffd"
    assert told(asked_of, Answer((1, 0))) == [
        {
            "id": "i\ud800",
            "question": "Q\ud800?",
            "options": ["A \ud800", "B\u2028\n"],
            "multi": True,
            "selectedOptions": ["B\u2028\n", "A \ud800"],
        }
    ]


def test_a_text_beside_picks_is_a_note_where_it_would_hide_them() -> None:
    """Of several questions its model is shown either; of one it is shown both."""
    several = of(question(multi=True), question(id="two"))
    first, second = told(several, Answer((0,), "and this"), Answer((), "mine"))
    assert (first["selectedOptions"], first["note"], "customInput" in first) == (["A"], "and this", False)
    assert (second["selectedOptions"], second["customInput"], "note" in second) == ([], "mine", False)
    (alone,) = told(of(question(multi=True)), Answer((0,), "and this"))
    assert (alone["selectedOptions"], alone["customInput"], "note" in alone) == (["A"], "and this", False)
    assert answers(several, Decision("answer", 1.0, (Answer((0,), "and this"),), ANN)) == (("A", "and this"), ())


def test_what_a_timer_took_is_marked_as_its_own_timer_marks_it() -> None:
    """The recommended one, else the first; not what a person chose, and nothing where a person sent it."""
    three = of(question(recommended=1), question(id="two"), question(id="three"))
    given = (Answer((1,)), Answer((0,)), Answer((1,)))
    assert [one.get("timedOut") for one in told(three, *given, by=None)] == [True, True, None]
    assert [one.get("timedOut") for one in told(three, *given)] == [None] * 3
    assert [one.get("timedOut") for one in told(of(question()), Answer((0,), "x"), by=None)] == [None]


def test_a_skip_leaves_everything_empty() -> None:
    """Its model is told that nothing was chosen."""
    said = json.loads(waiter_text(of(question(), question(id="two")), Decision("skip", 1.0)))
    assert [(one["id"], one["selectedOptions"]) for one in said["results"]] == [("q", []), ("two", [])]
    assert "timedOut" not in said["results"][0]


def test_a_no_cancels_as_esc_does() -> None:
    """And a release is nothing to tell."""
    assert json.loads(waiter_text(of(question()), Decision("reject", 1.0, by=ANN))) == {"kind": "cancel"}
    with pytest.raises(ValueError, match="release"):
        waiter_text(of(question()), Decision("release", 1.0))
    with pytest.raises(ValueError, match="release"):
        answers(of(question()), Decision("release", 1.0))
