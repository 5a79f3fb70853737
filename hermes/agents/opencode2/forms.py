"""Read OpenCode 2's forms as asks, and write the answers to them. Pure.

    field of the form                      question on the phone
    -------------------------------------  -----------------------------------------------------------
    string, multiselect                    its options; a text if it is `custom` or has no options
    integer, number                        a text
    boolean                                Yes, No
    with `when`, hidden, of another type   the whole form is shown, but only the computer can answer it

A form of the question tool has `metadata.kind` "question"; its fields have the header as `title` and the question as
`description`. Other forms come from tools (a web search, an MCP server). If one of those asks for a credential it is
left to the computer: no password travels through a chat.

An option is answered by its value, which can differ from its label. So `answers` returns values, and `Ask.given` keeps
the key, the type and the values of each field.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeGuard

from hermes.agents.fields import Record, flag_of, id_of, list_of, record_of, sound, text_of, words_of
from hermes.agents.questions import answers_to, recommended
from hermes.errors import PayloadError, Unfit
from hermes.model.answer import Answer, Answers, Decision
from hermes.model.ask import Ask, Capabilities, Option, Question, Source

GLOBAL: Final = "global"
"""The session id of a form that belongs to a directory and to no session; an MCP server sends such forms."""
YES, NO = "true", "false"
_LARGEST: Final = 2**53 - 1
_TYPES: Final = frozenset({"string", "multiselect", "integer", "number", "boolean"})
_KNOWN: Final = frozenset(
    {"key", "type", "title", "description", "options", "custom", "required"}
    | {"minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength", "placeholder", "default"}
)
_CREDENTIAL: Final = re.compile(
    r"passw(or)?d|pass(phrase|code)|\bpwd\b|secret|token|credential|(api|private|access)[-_ ]?key|\bpin\b|\botp\b"
    r"|(verification|recovery) code|seed phrase|\b2fa\b|\bcvv\b|passwort|kennwort|mot de passe|contraseña|senha|пароль"
    r"|密码|パスワード",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Field:
    """What is needed of one field to write its answer: its key, its type, and the value of each option."""

    key: str
    type: str
    values: tuple[str, ...] = ()


def source_of(record: Record, call: Record, origin: Source, where: str) -> Source:
    """Return `origin` with the ids of a form or a permission: its own, and those of its session, call and message."""
    return replace(
        origin,
        session_id=id_of(record, "sessionID", where),
        request_id=id_of(record, "id", where),
        call_id=words_of(call, "id", where) or None,
        message_id=words_of(call, "messageID", where) or None,
    )


def is_lost(source: Source) -> bool:
    """Tell whether a form can only be answered in its directory, and that is not known."""
    return source.session_id == GLOBAL and not source.directory


# --- forms to asks --------------------------------------------------------------------------------------------------


def read_form(form: object, origin: Source, capabilities: Capabilities) -> Ask:
    """Read a form as an ask; `origin` is a Source without ids.

    Raises:
        PayloadError: it has another shape.
    """
    where = "form"
    record = record_of(form, where)
    metadata = record_of(record.get("metadata") or {}, f"{where}.metadata")
    tool = record_of(metadata.get("tool") or {}, f"{where}.metadata.tool")
    source = source_of(record, tool, origin, where)
    listed = [record_of(one, f"{where}.fields") for one in list_of(record.get("fields", []), f"{where}.fields")]
    is_question = metadata.get("kind") == "question"
    read = [_read_field(one, f"{where}.fields[{place}]") for place, one in enumerate(listed)]
    questions = tuple(question for question, _, _ in read)
    words = words_of(metadata, "message", where) or words_of(record, "title", where)
    if not is_question:
        questions = _introduced(questions, words)
    can = replace(
        capabilities,
        # Only the question tool ends the turn if it is cancelled; other tools report an error, and the turn goes on.
        reject_stops=is_question,
        can_skip=not any(one.get("required") is True for one in listed),
    )
    has_credential = not is_question and (_is_credential(words) or any(map(_asks_credential, listed)))
    answerable = all(is_plain for _, _, is_plain in read) and not has_credential
    return Ask(source, questions, can, answerable, given=_kept([field for _, field, _ in read]))


def _read_field(field: Record, where: str) -> tuple[Question, Field, bool]:
    """Return what is asked, what its answer needs, and whether the phone can answer it.

    A field of an unknown shape is shown as far as it can be read.
    """
    try:
        return _question(field, where), _field(field), _is_plain(field)
    except PayloadError:
        words = (field.get(key) for key in ("description", "title", "key"))
        text = next((sound(one) for one in words if isinstance(one, str) and one), "")
        return Question(text), Field("", ""), False


def _question(field: Record, where: str) -> Question:
    title, described = words_of(field, "title", where), words_of(field, "description", where)
    listed = list_of(field.get("options") or [], f"{where}.options")
    options = tuple(_option(record_of(one, f"{where}.options"), where) for one in listed)
    kind = words_of(field, "type", where)
    if kind == "boolean":
        options = (Option("Yes"), Option("No"))
    return Question(
        text=(described or title or words_of(field, "key", where)) + _bounds(field, kind),
        header=title if described else "",
        options=options,
        multiple=kind == "multiselect",
        custom=kind != "boolean" and (flag_of(field, "custom", where, absent=False) or not options),
        recommended=recommended(options),
    )


def _option(option: Record, where: str) -> Option:
    label = words_of(option, "label", where) or words_of(option, "value", where)
    return Option(label, words_of(option, "description", where))


def _bounds(field: Record, kind: str) -> str:
    """Say what a number must be, because no button shows it."""
    if kind not in {"integer", "number"}:
        return ""
    named = "a whole number" if kind == "integer" else "a number"
    bounds = ((" at least ", field.get("minimum")), (" at most ", field.get("maximum")))
    said = [f",{words}{_written(bound)}" for words, bound in bounds if _is_number(bound)]
    return f" ({named}{''.join(said)})"


def _is_number(bound: object) -> TypeGuard[int | float]:
    return isinstance(bound, int | float) and not isinstance(bound, bool)


def _introduced(questions: tuple[Question, ...], words: str) -> tuple[Question, ...]:
    """Put the words of the form itself before its first question."""
    if not questions or not words or words == questions[0].text:
        return questions
    return (replace(questions[0], text=f"{words}\n\n{questions[0].text}"), *questions[1:])


def _is_plain(field: Record) -> bool:
    """Tell whether the dialog on the phone can answer this field: nothing about it is unknown."""
    set_here = {key for key, value in field.items() if value not in (None, False)}
    return field.get("type") in _TYPES and set_here <= _KNOWN


def _asks_credential(field: Record) -> bool:
    return any(_is_credential(str(field.get(key) or "")) for key in ("key", "title", "description", "placeholder"))


def _is_credential(words: str) -> bool:
    """Tell whether these words ask for a credential, also if they are written with signs that nobody sees."""
    seen = "".join(sign for sign in words if unicodedata.category(sign) != "Cf")
    return bool(_CREDENTIAL.search(unicodedata.normalize("NFKC", seen)))


def _field(field: Record) -> Field:
    kind = words_of(field, "type", "field")
    values = [record_of(one, "field.options").get("value") for one in list_of(field.get("options") or [], "field")]
    if not all(isinstance(value, str) for value in values):
        raise PayloadError("form.fields: the value of an option is not text")
    return Field(text_of(field, "key", "field"), kind, (YES, NO) if kind == "boolean" else tuple(map(str, values)))


def _kept(fields: list[Field]) -> str:
    return json.dumps([[one.key, one.type, list(one.values)] for one in fields])


def fields_of(ask: Ask) -> tuple[Field, ...]:
    """Return the fields that an ask keeps of its form."""
    return tuple(Field(key, kind, tuple(values)) for key, kind, values in json.loads(ask.given or "[]"))


# --- answers to forms -----------------------------------------------------------------------------------------------


def values(ask: Ask, decision: Decision) -> Answers:
    """Return for each field the values of its picks in the order chosen, then the free text.

    Raises ValueError, as `answers_to`.
    """
    fields = fields_of(ask)
    given = answers_to(len(fields), decision)
    return tuple(_values(field, one) for field, one in zip(fields, given, strict=True))


def _values(field: Field, answer: Answer) -> tuple[str, ...]:
    chosen = tuple(sound(field.values[index]) for index in answer.picks)
    return chosen if answer.text is None else (*chosen, _number(field, answer.text))


def _number(field: Field, text: str) -> str:
    """Return the text of a number as `told` would write it, so that the two can be compared."""
    try:
        match field.type:
            case "integer":
                return str(int(text))
            case "number":
                return _written(float(text))
    except ValueError:
        pass
    return text


def _written(number: float) -> str:
    if isinstance(number, int):
        return str(number)
    return str(int(number)) if math.isfinite(number) and number == int(number) else str(number)


def body(ask: Ask, answers: Answers) -> dict[str, object]:
    """Return the body of `POST …/form/ID/reply`; a field without an answer is left out.

    Raises:
        Unfit: a text is not the number that its field wants.
    """
    fields = fields_of(ask)
    given = {field.key: _sent(field, texts) for field, texts in zip(fields, answers, strict=True) if texts}
    return {"answer": given}


def _sent(field: Field, texts: tuple[str, ...]) -> object:
    try:
        match field.type:
            case "multiselect":
                return list(texts)
            case "boolean":
                return texts[0] == YES
            case "integer":
                return _exact(int(texts[0]))
            case "number":
                number = float(texts[0])
                return int(number) if number == int(number) else number
            case _:
                return texts[0]
    except (ValueError, OverflowError):
        named = "a whole number" if field.type == "integer" else "a number"
        raise Unfit(f"OpenCode: a form field wants {named}", said=f"It must be {named}.") from None


def _exact(number: int) -> int:
    """Return a whole number that JavaScript can hold. Raises Unfit: it would store another one."""
    if abs(number) > _LARGEST:
        raise Unfit("OpenCode: a form field has no room for so large a number", said="It is too large.")
    return number


def told(fields: tuple[Field, ...], answer: object) -> Answers:
    """Return the answers in a form's state or event, one tuple for each of these fields.

    Raises:
        PayloadError: they have another shape.
    """
    given = record_of(answer, "answer")
    return tuple(_told(given[field.key]) if field.key in given else () for field in fields)


def told_alone(answer: object) -> Answers:
    """Return the answers of an event whose form is not known: those that it has, in its own order."""
    given: Mapping[str, object] = record_of(answer, "answer")
    return tuple(_told(value) for value in given.values())


def _told(value: object) -> tuple[str, ...]:
    match value:
        case bool():
            return (YES if value else NO,)
        case str():
            return (sound(value),)
        case int() | float():
            return (_written(value),)
        case list() if all(isinstance(one, str) for one in value):
            return tuple(sound(str(one)) for one in value)
        case _:
            raise PayloadError("answer: a value is of another type than text, list, number or flag")
