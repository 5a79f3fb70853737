"""The meanings that a tap or a text can have on the page that is on show. Pure."""

from __future__ import annotations

from hermes.core.answers import leaves_at_once, unanswered
from hermes.model.actions import Pick
from hermes.model.ask import Ask
from hermes.model.events import TextHow
from hermes.model.state import Confirm, State


def can_be(ask: Ask, what: Confirm) -> bool:
    """Tell whether a first tap may begin this; `is_sendable` decides about "send"."""
    match what:
        case "skip":
            return ask.capabilities.can_skip
        case "always":
            return ask.permission is not None and bool(ask.permission.always)
        case _:
            return what == "reject"


def question_meant(ask: Ask, state: State, how: TextHow) -> int | None:
    """Return the index of the question that a text counts for, or None if that is not clear.

    After ✏️ it is the question of ✏️, else the question on show; on the review, the only unanswered question.
    """
    if how == "armed" and state.armed is not None:
        return state.armed.question
    if state.page < len(ask.questions):
        return state.page
    open_ones = unanswered(state)
    return open_ones[0] if len(open_ones) == 1 else None


def is_shown(ask: Ask, state: State, index: int) -> bool:
    """Tell whether this question is on show, with its buttons."""
    return state.page == index and 0 <= index < len(ask.questions) and state.confirm is None


def has_option(ask: Ask, action: Pick) -> bool:
    """Tell whether the question has this option."""
    return 0 <= action.option < len(ask.questions[action.question].options)


def is_on_shelf(ask: Ask, state: State, shelf: int) -> bool:
    """Tell whether the options of the question on show can begin at this one."""
    return state.confirm is None and 0 <= shelf < max(1, len(ask.questions[state.page].options))


def is_sendable(ask: Ask, state: State) -> bool:
    """Tell whether Send counts now: on the review, or on the only page of an ask that has no review."""
    if state.confirm is not None:
        return False
    if len(ask.questions) > 1:
        return state.page == len(ask.questions)
    return not ask.questions or not leaves_at_once(ask)
