"""Forms as asks, and answers as the values of their fields."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.agents.opencode2 import adapter
from hermes.agents.opencode2.forms import body, fields_of, told
from hermes.errors import PayloadError, Unfit
from hermes.model.answer import Answer, Decision
from hermes.model.ask import Ask, Source
from hermes.sandbox.opencode2.forms import fields_of as made

ORIGIN = Source("opencode2", "m", "")
QUESTION: dict[str, Any] = {"question": "Which token format?", "header": "Token", "options": [{"label": "JWT"}]}


def ask(*fields: dict[str, Any], kind: str = "") -> Ask:
    """A form with these fields."""
    form: dict[str, Any] = {"id": "frm_1", "sessionID": "ses_1", "title": "T", "fields": list(fields)}
    return adapter.read_question(form | {"metadata": {"kind": kind}}, ORIGIN)


def answer(an_ask: Ask, *answers: Answer) -> dict[str, object]:
    """The body of the reply with these answers."""
    found = adapter.answers(an_ask, Decision("answer", 0.0, answers))
    assert isinstance(found, tuple)
    return body(an_ask, found)


def test_title_and_description_are_the_right_way_round() -> None:
    """The header is the title of the field, and the question its description; a question may speak of a token."""
    read = ask(*made([QUESTION, QUESTION | {"multiple": True}]), kind="question")
    assert [(one.header, one.text, one.multiple, one.custom) for one in read.questions] == [
        ("Token", "Which token format?", False, True),
        ("Token", "Which token format?", True, True),
    ]
    assert read.answerable
    assert read.capabilities.can_skip


@pytest.mark.parametrize(("options", "custom"), [([], True), ([{"value": "x", "label": "Ex"}], False)])
def test_a_closed_field_takes_its_options_alone(options: list[object], custom: bool) -> None:
    """Without options there is nothing to choose, so that a text is taken whatever `custom` says."""
    read = ask({"key": "s", "type": "string", "custom": False, "options": options})
    assert read.questions[0].custom is custom


def test_a_skip_leaves_all_fields_out() -> None:
    """Also those that are left open."""
    read = ask(*made([QUESTION]), kind="question")
    assert body(read, ((),)) == {"answer": {}}
    assert answer(read) == {"answer": {}}


def test_each_type_goes_out_as_its_own() -> None:
    """Values and not labels, numbers and flags as such."""
    read = ask(
        {"key": "s", "type": "string", "options": [{"value": "x", "label": "Ex"}]},
        {"key": "m", "type": "multiselect", "options": [{"value": "a", "label": "A"}, {"value": "b", "label": "B"}]},
        {"key": "i", "type": "integer"},
        {"key": "n", "type": "number"},
        {"key": "b", "type": "boolean"},
    )
    given = (Answer((0,)), Answer((1, 0)), Answer((), " 7"), Answer((), "2.50"), Answer((1,)))
    sent = answer(read, *given)
    assert sent == {"answer": {"s": "x", "m": ["b", "a"], "i": 7, "n": 2.5, "b": False}}
    decided = Decision(
        "answer", 0.0, (Answer((0,)), Answer((1, 0)), Answer((), " 7"), Answer((), "2.50"), Answer((1,)))
    )
    assert told(fields_of(read), sent["answer"]) == adapter.answers(read, decided)


@pytest.mark.parametrize("text", ["seven", "1.5", "", "1e400", "nan"])
def test_a_text_that_is_no_number_is_not_sent(text: str) -> None:
    """The person hears what it must be."""
    with pytest.raises(Unfit) as caught:
        answer(ask({"key": "i", "type": "integer"}), Answer((), text))
    assert caught.value.said == "It must be a whole number."


@pytest.mark.parametrize("text", ["nan", "inf", "1e400"])
def test_no_number_beyond_all_bounds_is_sent(text: str) -> None:
    """JSON has none."""
    with pytest.raises(Unfit):
        answer(ask({"key": "n", "type": "number"}), Answer((), text))


TITLES = (
    *("Password", "API key", "Your PIN", "GitHub token", "pass\u200bword", "Ｐassword", "Recovery code", "CVV"),
    *("Passwort", "Kennwort", "Mot de passe", "Contraseña", "Contrasen\u0303a", "Пароль", "密码", "パスワード"),
)


@pytest.mark.parametrize(
    "field",
    [{"key": "k", "type": "string", "title": title} for title in TITLES]
    + [{"key": "k", "type": "string", "secret": True}, {"key": "k", "type": "colour"}],
)
def test_a_credential_or_an_unknown_field_is_left_to_the_computer(field: dict[str, Any]) -> None:
    """No password travels through a chat."""
    assert not ask(field).answerable


@pytest.mark.parametrize(
    "form", [None, [], {}, {"id": "frm_1", "sessionID": "ses_1", "fields": [1]}, {"id": 1, "sessionID": "ses_1"}]
)
def test_another_shape_is_an_error(form: object) -> None:
    """It names the place."""
    with pytest.raises(PayloadError):
        adapter.read_question(form, ORIGIN)
