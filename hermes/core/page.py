"""The meanings that a tap or a text can have on the page that is on show. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.answers import SPLIT_UNITS, leaves_at_once, unanswered, utf16_units

if TYPE_CHECKING:
    from hermes.model.actions import Pick
    from hermes.model.answer import User
    from hermes.model.ask import Ask
    from hermes.model.events import Texted, TextHow
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


def is_asked(state: State, event: Texted) -> bool:
    """Tell whether this person tapped ✏️ before the text; in a group, the text then comes as a reply."""
    armed = state.armed is not None and state.armed.user_id == event.user.id
    return event.how == "armed" or (event.how == "reply" and armed)


def may_offer(ask: Ask, state: State, index: int, user: User) -> bool:
    """Tell whether a text may be offered: no other is, or it can join that one, a short one of the same person."""
    offer = state.offer
    if offer is None:
        return True
    is_alike = (offer.question, offer.user.id) == (index, user.id)
    return is_alike and ask.questions[index].custom and utf16_units(offer.text) < SPLIT_UNITS


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
