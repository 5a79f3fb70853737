"""Find the pending question of an ask: by request id, else by call id, else the only one with equal questions. Pure.

Hermes never guesses between two candidates. A candidate with another call id belongs to another call, even if its
questions are equal: two calls of one step may ask exactly the same, and the second one may be listed first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hermes.model.ask import Ask, Question


def candidates(ask: Ask, pending: Sequence[Ask]) -> list[Ask]:
    """Return the questions in a server's list that may be this ask: one is it, and of several nobody can tell which."""
    ours, mine = ask.source, [one for one in pending if one.source.session_id == ask.source.session_id]
    if ours.request_id is not None:
        return [one for one in mine if one.source.request_id == ours.request_id]
    if ours.call_id is not None:
        called = [one for one in mine if one.source.call_id == ours.call_id]
        if len(called) > 1:  # some providers repeat call ids
            called = _equal(ask, called) or called
        if called:
            return called
    return _equal(ask, [one for one in mine if None in (ours.call_id, one.source.call_id)])


def _equal(ask: Ask, others: Sequence[Ask]) -> list[Ask]:
    return [one for one in others if _words(one) == _words(ask)]


def _words(ask: Ask) -> tuple[Question, ...]:
    # `custom` does not identify a call: 1.1.53 passes on a value that the model made up, 1.18.33 removes it.
    return tuple(replace(question, custom=True) for question in ask.questions)
