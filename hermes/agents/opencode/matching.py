"""Which pending question is ours: the request id, else the call id, else the only equal one. Pure.

Two candidates are never guessed between. A candidate whose call id is known to be another than ours belongs
to another call, however equal its words are: two calls of one step may ask the very same thing, and the
second one may be listed first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hermes.model.ask import Ask, Question


@dataclass(frozen=True, slots=True)
class Found:
    """The pending question that is ours, as the server lists it."""

    ask: Ask


@dataclass(frozen=True, slots=True)
class NotYet:
    """No pending question is ours; one may still come."""


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """Several could be ours (`count`, at least 2): nothing may be sent to any."""

    count: int


Match = Found | NotYet | Ambiguous


def find(ask: Ask, pending: Sequence[Ask]) -> Match:
    """Look for `ask` among what a server lists as pending, in the session of `ask` only."""
    ours, mine = ask.source, [one for one in pending if one.source.session_id == ask.source.session_id]
    if ours.request_id is not None:
        return _only([one for one in mine if one.source.request_id == ours.request_id])
    if ours.call_id is not None:
        called = [one for one in mine if one.source.call_id == ours.call_id]
        if len(called) > 1:  # some providers repeat call ids
            called = _equal(ask, called) or called
        if called:
            return _only(called)
    return _only(_equal(ask, [one for one in mine if None in (ours.call_id, one.source.call_id)]))


def _only(candidates: Sequence[Ask]) -> Match:
    if len(candidates) > 1:
        return Ambiguous(len(candidates))
    return Found(candidates[0]) if candidates else NotYet()


def _equal(ask: Ask, candidates: Sequence[Ask]) -> list[Ask]:
    return [one for one in candidates if _words(one) == _words(ask)]


def _words(ask: Ask) -> tuple[Question, ...]:
    # Old passes on a `custom` that the model made up, new strips it: it says nothing about which call it was.
    return tuple(replace(question, custom=True) for question in ask.questions)
