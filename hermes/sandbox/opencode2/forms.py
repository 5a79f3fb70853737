"""Forms: made from the arguments of the question tool, and checked as OpenCode 2 checks the answers to them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

Json = dict[str, Any]


class Invalid(Exception):
    """An answer that does not fit; its text is the server's own."""


def fields_of(questions: Sequence[Json]) -> list[Json]:
    """Return the fields that the question tool makes: header and question change names, `custom` is always true."""
    return [
        {
            "key": f"q{place}",
            "title": one["header"],
            "description": one["question"],
            "type": "multiselect" if one.get("multiple") else "string",
            "options": [
                {"value": option["label"], "label": option["label"], "description": option.get("description", "")}
                for option in one.get("options", ())
            ],
            "custom": True,
        }
        for place, one in enumerate(questions)
    ]


def check(fields: Sequence[Json], answer: Mapping[str, Any]) -> None:
    """Raise Invalid if the answer does not fit these fields."""
    known = {field["key"]: field for field in fields}
    for key in answer:
        if key not in known:
            raise Invalid(f"Unknown form field: {key}")
    for key, field in known.items():
        active = all(answer.get(one["key"]) == one["value"] for one in field.get("when", ()))
        if key not in answer:
            if active and field.get("required"):
                raise Invalid(f"Missing required form field: {key}")
            continue
        if not active:
            raise Invalid(f"Form field is not active: {key}")
        _check_value(field, answer[key])


def _check_value(field: Json, value: object) -> None:
    key, kind = field["key"], field["type"]
    match kind:
        case "string":
            if not isinstance(value, str):
                raise Invalid(f"Expected string for form field: {key}")
            _check_options(field, [value])
        case "multiselect":
            if not isinstance(value, list):
                raise Invalid(f"Expected string array for form field: {key}")
            if len(value) > field.get("maxItems", len(value)):
                raise Invalid(f"Too many selections for form field: {key}")
            if len(value) < field.get("minItems", 0):
                raise Invalid(f"Too few selections for form field: {key}")
            _check_options(field, value)
        case "integer" | "number":
            _check_number(field, value)
        case "boolean" if not isinstance(value, bool):
            raise Invalid(f"Expected boolean for form field: {key}")


def _check_number(field: Json, value: object) -> None:
    key, kind = field["key"], field["type"]
    if isinstance(value, bool) or not isinstance(value, int | float) or (kind == "integer" and value != int(value)):
        raise Invalid(f"Expected {kind} for form field: {key}")
    if value < field.get("minimum", value):
        raise Invalid(f"Form field is too small: {key}")
    if value > field.get("maximum", value):
        raise Invalid(f"Form field is too large: {key}")


def _check_options(field: Json, values: Sequence[object]) -> None:
    allowed = [option["value"] for option in field.get("options", ())]
    if allowed and not field.get("custom") and any(value not in allowed for value in values):
        raise Invalid(f"Invalid option for form field: {field['key']}")


def output(questions: Sequence[Json], answers: Sequence[Sequence[str]]) -> str:
    """Return what the model reads after an answer."""
    told = [
        f'"{one["question"]}"="{", ".join(given) if given else "Unanswered"}"'
        for one, given in zip(questions, answers, strict=True)
    ]
    return f"User has answered your questions: {', '.join(told)}. You can now continue with the user's answers in mind."


def as_lists(fields: Sequence[Json], answer: Mapping[str, Any]) -> list[list[str]]:
    """Return an answer as the question tool stores it: one list for each field, with what is no text as JSON."""
    given = [answer.get(field["key"], []) for field in fields]
    lists = [value if isinstance(value, list) else [value] for value in given]
    return [[one if isinstance(one, str) else json.dumps(one) for one in values] for values in lists]
