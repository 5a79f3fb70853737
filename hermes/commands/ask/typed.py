"""What a line typed in the terminal means as an answer. Pure."""

from __future__ import annotations

import re
from typing import Final

from hermes.core.dialog import option_named
from hermes.model.ask import Question

_BETWEEN: Final = re.compile(r"[\s,;]+")


def answer(question: Question, line: str) -> tuple[str, ...] | None:
    """Return the labels that the line names (or the line itself, where free text is allowed), None for no answer."""
    text = line.strip()
    if not text:
        return None
    named = option_named(question, text)
    if named is not None:
        return (question.options[named].label,)
    several = _several(question, text) if question.multiple else None
    if several is not None:
        return tuple(question.options[index].label for index in several)
    return (text,) if question.custom else None


def _several(question: Question, text: str) -> tuple[int, ...] | None:
    """Read "1, 3" or "Red, Blue": every part has to be an option."""
    for parts in (text.split(","), _BETWEEN.split(text)):
        found = [option_named(question, part) for part in parts if part.strip()]
        if found and None not in found:
            return tuple(dict.fromkeys(index for index in found if index is not None))
    return None


def hint(question: Question) -> str:
    """Return what can be typed."""
    if not question.options:
        return "Type your answer."
    numbers = "numbers, such as 1,2" if question.multiple else "a number"
    return f"Type {numbers}, or your own words." if question.custom else f"Type {numbers}."
