"""When the phone hears that a turn has ended. Pure.

    running    a turn is known to run                       → waiting, dropped
    waiting    its notice waits for the person at the desk  → posted, dropped
    posted     its notice is on the phone
    dropped    its notice will never be posted: the turn was short, or somebody was at the desk

Rules:
  * A turn has one notice at most: its id is kept, and an older turn changes nothing.
  * A turn that begins while the notice of the one before waits shows that somebody is at the desk: it is dropped.
  * Only the newest notice of a session keeps its buttons.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes.model.notice import Notice, Shown, Turn


@dataclass(frozen=True, slots=True)
class NoticeRules:
    """Which turns get a notice: those that took at least `finished_s`. The notice waits `post_after_s` for the desk."""

    enabled: bool = True
    finished_s: float = 120.0
    post_after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Post:
    """Post the notice of this turn."""

    turn: Turn


@dataclass(frozen=True, slots=True)
class TakeButtons:
    """Take the buttons of this earlier notice away."""

    shown: Shown


@dataclass(frozen=True, slots=True)
class Pause:
    """Look again after this many seconds."""

    pause_s: float


NoticeOrder = Post | TakeButtons | Pause


def began(notice: Notice, at_s: float | None = None) -> Notice:
    """Return the notice after a turn of its session has begun at `at_s` (epoch; None if that is not known).

    A second report of the same turn changes nothing.
    """
    if notice.phase == "running":
        return notice if notice.began_s is not None else replace(notice, began_s=at_s)
    return replace(notice, phase="running", began_s=at_s)


def ended(notice: Notice, turn: Turn, rules: NoticeRules, now_s: float) -> Notice:
    """Return the notice after this turn has ended; a turn that is known, or older than that, changes nothing."""
    known = notice.turn
    if known is not None and (known.id == turn.id or turn.ended_s < known.ended_s):
        return notice
    if turn.began_s is None:
        turn = replace(turn, began_s=notice.began_s)
    lasted_s = 0.0 if turn.began_s is None else turn.ended_s - turn.began_s
    is_wanted = rules.enabled and lasted_s >= rules.finished_s
    return replace(notice, phase="waiting" if is_wanted else "dropped", began_s=None, turn=turn, heard_s=now_s)


def due(notice: Notice, rules: NoticeRules, now_s: float) -> NoticeOrder | None:
    """Return what is to be done for the phone now, or None."""
    if notice.phase == "waiting" and notice.turn is not None:
        waited_s = now_s - notice.heard_s
        # A negative time: the wall clock was set back, and the notice does not wait because of that.
        if 0 <= waited_s < rules.post_after_s:
            return Pause(rules.post_after_s - waited_s)
        return Post(notice.turn)
    return TakeButtons(notice.outdated[0]) if notice.outdated else None


def posted(notice: Notice, shown: Shown) -> Notice:
    """Return the notice after its message came to the phone; that of the turn before loses its buttons next."""
    is_current = notice.phase == "waiting" and notice.turn == shown.turn
    outdated = notice.outdated if notice.shown is None else (*notice.outdated, notice.shown)
    return replace(notice, phase="posted" if is_current else notice.phase, shown=shown, outdated=outdated)


def without_buttons(notice: Notice, shown: Shown) -> Notice:
    """Return the notice after the buttons of this earlier one were taken away."""
    return replace(notice, outdated=tuple(one for one in notice.outdated if one != shown))
