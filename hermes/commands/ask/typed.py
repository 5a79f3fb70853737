"""Read a line that was typed in the terminal as an answer. Pure."""

from __future__ import annotations

import re
from typing import Final

from hermes.core.answers import bare_label, option_named, option_numbered
from hermes.model.ask import Question

_BETWEEN: Final = re.compile(r"[\s,;]+")
_NUMBERS: Final = re.compile(r"\d[\d\s,;]*")
_INITIALS: Final = {"y": "yes", "n": "no"}


def answer(question: Question, line: str) -> tuple[str, ...] | None:
    """Return the labels that the line names, else the line if free text is allowed; else None.

    None also if the line is blank, or if there are options and it holds only numbers: one of them is mistyped.
    """
    text = line.strip()
    if not text:
        return None
    named = _named(question, text)
    if named is not None:
        return (question.options[named].label,)
    several = _several(question, text) if question.multiple else None
    if several is not None:
        return tuple(question.options[index].label for index in several)
    is_mistyped = question.options and _NUMBERS.fullmatch(text)
    return (text,) if question.custom and not is_mistyped else None


def fault(question: Question, line: str) -> str:
    """Return a sentence that says why the line is no answer."""
    unknown = (part for part in _BETWEEN.split(line) if part.isdigit() and _named(question, part) is None)
    number = next(unknown, "")
    return f"There is no choice {number}." if number else "That is not an answer here."


def _several(question: Question, text: str) -> tuple[int, ...] | None:
    """Return the indices of the options in "1, 3" or "Red, Blue", or None if a part names no option."""
    for parts in (text.split(","), _BETWEEN.split(text)):
        found = [_named(question, part) for part in parts if part.strip()]
        if found and None not in found:
            return tuple(dict.fromkeys(index for index in found if index is not None))
    return None


def _named(question: Question, text: str) -> int | None:
    """Return the index of the option with this label or number: here each has a number beside it, and no button."""
    named = option_named(question, text)
    if named is None:
        named = option_numbered(question, text)
    return _spelled(question, text) if named is None else named


def _spelled(question: Question, text: str) -> int | None:
    """Return the index of the only option with this label in capital or small letters; else "y" is yes, and "n" no."""
    wanted = text.strip().casefold()
    labels = [bare_label(option.label).strip().casefold() for option in question.options]
    if wanted not in labels:
        wanted = _INITIALS.get(wanted, wanted)
    return labels.index(wanted) if labels.count(wanted) == 1 else None


def hint(question: Question) -> str:
    """Return a sentence that says how the question can be answered here."""
    if not question.options:
        return "Type your answer."
    numbers = "numbers, such as 1,2" if question.multiple else "a number"
    return f"Type {numbers}, or your own words." if question.custom else f"Type {numbers}."
