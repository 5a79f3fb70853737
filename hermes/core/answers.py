"""What counts as an answer: the option that a text names, the parts of a long text, what is still missing. Pure."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from hermes.model.answer import Answer
from hermes.model.ask import Ask, Question
from hermes.model.state import Part, State

SPLIT_UNITS: Final = 2000
"""A text shorter than this, in UTF-16 units, is never taken for the first part of a split text."""
HARD_CUT_UNITS: Final = 4096
RECOMMENDED_SUFFIX: Final = "(recommended)"


def bare_label(label: str) -> str:
    """Return the label without the "(Recommended)" that agents append to mark an option."""
    trimmed = label.rstrip()
    if trimmed.lower().endswith(RECOMMENDED_SUFFIX):
        return trimmed[: -len(RECOMMENDED_SUFFIX)].rstrip()
    return label


def option_named(question: Question, text: str) -> int | None:
    """Return the index of the option that `text` names, or None.

    An option is named by its label, with or without "(Recommended)". If no label is a number, it is also named by its
    number from 1.
    """
    wanted = text.strip()
    for form in (lambda label: label.strip(), bare_label):
        for index, option in enumerate(question.options):
            if wanted and form(option.label) == wanted:
                return index
    return None if has_numbers(question) else option_numbered(question, text)


def option_numbered(question: Question, text: str) -> int | None:
    """Return the index of the option with this number from 1, or None."""
    wanted = text.strip()
    if wanted.isascii() and wanted.isdigit() and len(wanted) <= len(str(len(question.options))):
        number = int(wanted)
        if 1 <= number <= len(question.options):
            return number - 1
    return None


def has_numbers(question: Question) -> bool:
    """Tell whether the label of an option is a number: a text may be both, and means the label."""
    return any(bare_label(option.label).strip().isdigit() for option in question.options)


def leaves_at_once(ask: Ask) -> bool:
    """Tell whether one choice or one text is the whole answer, so that it is sent without a tap on Send."""
    return len(ask.questions) == 1 and not (ask.questions[0].multiple and ask.questions[0].options)


def unanswered(state: State) -> tuple[int, ...]:
    """Return the indices of the questions without an answer."""
    return tuple(index for index, answer in enumerate(state.answers) if not answer)


def open_to_people(ask: Ask, state: State) -> bool:
    """Tell whether a tap or a text can change this ask now."""
    return ask.answerable and state.phase == "open"


def recommended(ask: Ask, state: State) -> tuple[Answer, ...] | None:
    """Return the answers given, each missing one replaced by what is taken when time is up; None if one has none."""
    answers = tuple(
        given or Answer(_taken_by_time(ask, question))
        for question, given in zip(ask.questions, state.answers, strict=True)
    )
    return answers if answers and all(answers) else None


def _taken_by_time(ask: Ask, question: Question) -> tuple[int, ...]:
    """Return the recommended option; else the first one if the agent's own timer takes that one; else no option."""
    if question.recommended is not None:
        return (question.recommended,)
    return (0,) if ask.capabilities.else_first and question.options else ()


def joined_text(parts: tuple[Part, ...]) -> str:
    """Join the parts of a text: apps cut at a line break (and drop it) if they can, else at the last sign with room."""
    text = "".join(part.text for part in parts[:1])
    for before, part in pairwise(parts):
        has_room = utf16_units(before.text + part.text[:1]) <= HARD_CUT_UNITS
        text += f"\n{part.text}" if has_room else part.text
    return text


def utf16_units(text: str) -> int:
    """Return the length that Telegram counts: one for most characters, two for those beyond U+FFFF."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
