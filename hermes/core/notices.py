"""When the phone hears that a turn has ended. Pure.

    none       no turn has ended yet                         → waiting, dropped
    waiting    the notice waits for the person at the desk   → posted, dropped
    posted     the notice is on the phone                    → waiting, dropped: there is another end
    dropped    the notice is not posted: the turn was short, or somebody was at the desk → waiting, dropped

Rules:
  * The end of a turn has one notice at most. An older end changes nothing.
  * An agent may go on after the end of a turn, and end it again. Then the notice tells of the later end. If it is on
    the phone already, it is brought up to date; but a later end has a notice of its own if it comes long after that
    one, or after another prompt from the phone.
  * A turn that begins while the notice of the one before waits shows that somebody is at the desk, and the notice is
    dropped. If a prompt from the phone begins that turn, the person is at the phone, and the notice is posted at once.
  * A turn that an agent begins by itself, as when a background task has ended, goes on with the one before: it began
    with that one, and its end is told if that one's is. It shows nobody at the desk.
  * The end of a turn that a prompt from the phone began or came into is always told, and at once. If the next turn ends
    before Telegram took it, it stays `untold` and comes first. So does an end that waits before such a turn.
  * Only the newest notice of a session keeps its buttons.
  * A turn that keeps trying to reach its model has one message, which follows it until the turn ends.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from hermes.model.notice import Begun, Notice, Place, Retry, RetryShown, Shown, Turn

LATEST_S: Final = 86400.0
"""The end of a turn that Hermes hears of after this time is history, not news."""
AFTERMATH_S: Final = 2.0
"""For this long after the end of a turn, a report that the session is at work may be older than the end."""
LONGEST_WORDS: Final = 30_000
LONGEST_REASON: Final = 2_000
MOST_EARLIER: Final = 20
"""So many earlier messages of a session are known."""
MOST_UNTOLD: Final = 10
"""At most so many answers of a session wait for Telegram beside the latest; the oldest goes first."""
_BEGUN: Final = 4
KEEPS_TRYING: Final = 4
"""A turn keeps trying if so many requests to its model have failed in a row."""


@dataclass(frozen=True, slots=True)
class NoticeRules:
    """Which turns get a notice: those that took at least `finished_s`.

    `has_prompts`: prompts can come from the phone; the ends of their turns are told even if notices are not `enabled`.
    """

    enabled: bool = True
    finished_s: float = 120.0
    has_prompts: bool = False

    @property
    def is_watching(self) -> bool:
        """Whether the ends of turns are looked for."""
        return self.enabled or self.has_prompts


@dataclass(frozen=True, slots=True)
class Post:
    """Post the notice of this turn."""

    turn: Turn


@dataclass(frozen=True, slots=True)
class Update:
    """Let the notice that is on the phone tell of the later end of its turn."""

    shown: Shown
    turn: Turn


@dataclass(frozen=True, slots=True)
class TakeButtons:
    """Take the buttons of this earlier notice away."""

    shown: Shown


@dataclass(frozen=True, slots=True)
class Pause:
    """Look again after this many seconds."""

    pause_s: float


@dataclass(frozen=True, slots=True)
class TellRetry:
    """Post that the turn keeps trying, or bring that message up to date; `is_over`: that it no longer tries."""

    retry: Retry
    is_over: bool = False


NoticeOrder = Post | Update | TakeButtons | Pause | TellRetry


def busy(notice: Notice, now_s: float, *, is_ours: bool = False) -> Notice:
    """Return the notice after its session was seen at work; `is_ours`: with a prompt from the phone."""
    is_late = 0 <= now_s - notice.heard_s < AFTERMATH_S
    return notice if is_late and not is_ours else _followed(notice, is_ours=is_ours)


def began(
    notice: Notice, turn_id: str, at_s: float, prompt_id: str = "", *, is_ours: bool = False, goes_on: bool = False
) -> Notice:
    """Return the notice after this turn began at `at_s` (epoch).

    A later report of it says that something came into the turn, maybe a prompt from the phone, and that it runs.
    `is_ours`: a prompt from the phone is with the session. `goes_on`: the agent began the turn by itself.
    """
    after = notice if goes_on else _followed(notice, is_ours=is_ours or bool(prompt_id))
    known = begun(notice, turn_id)
    if known is not None:
        later = replace(known, runs_s=at_s, prompt_id=prompt_id or known.prompt_id)
        return replace(after, begun=tuple(later if one == known else one for one in notice.begun))
    fresh = Begun(turn_id, at_s, prompt_id)
    if goes_on and notice.begun:
        before = notice.begun[-1]
        fresh = Begun(turn_id, before.at_s, before.prompt_id, runs_s=at_s, goes_on=True)
    return replace(after, begun=(*notice.begun, fresh)[-_BEGUN:], is_stopped=False, is_left=False)


def begun(notice: Notice, turn_id: str) -> Begun | None:
    """Return the beginning of this turn, None if Hermes has not heard of it."""
    return next((one for one in notice.begun if one.turn_id == turn_id), None)


def stopped(notice: Notice) -> Notice:
    """Return the notice after the turn that ran was interrupted."""
    return replace(notice, is_stopped=True)


def left(notice: Notice) -> Notice:
    """Return the notice after its session has ended."""
    return replace(notice, is_stopped=True, is_left=True)


def is_running(notice: Notice) -> bool:
    """Tell whether the last turn that began has not ended since, as far as Hermes has heard."""
    if not notice.begun or notice.is_stopped:
        return False
    last, ended = notice.begun[-1], notice.turn
    return ended is None or ended.ended_s < max(last.at_s, last.runs_s)


def ended(notice: Notice, turn: Turn, rules: NoticeRules, now_s: float, *, is_ours: bool = False) -> Notice:
    """Return the notice after this turn has ended; one that is older than the latest known turn changes nothing.

    `is_ours`: a prompt from the phone began it or came into it.
    """
    beginning = begun(notice, turn.id)
    if beginning is not None and (beginning.goes_on or turn.began_s is None):
        turn = replace(turn, began_s=beginning.at_s)
    turn = replace(turn, words=turn.words[-LONGEST_WORDS:], failure=turn.failure[:LONGEST_REASON])
    known = notice.turn
    if known is not None and (known.id, known.ended_s) == (turn.id, turn.ended_s):
        return notice
    if known is not None and turn.ended_s < known.ended_s <= now_s:  # an end in the future says: the clock was wrong
        return notice
    all_begun = tuple(_ended_at(one, turn.ended_s) if one.turn_id == turn.id else one for one in notice.begun)
    is_later_end = _is_same(known, turn)
    is_ours = is_ours or (is_later_end and notice.is_ours)
    after = replace(notice, begun=all_begun, turn=turn, is_ours=is_ours, retry=None)
    if is_later_end and notice.phase == "posted" and now_s - notice.heard_s < rules.finished_s:
        return after
    if known is not None and not is_later_end and (notice.is_ours or is_ours) and _lacks_latest(notice):
        after = replace(after, untold=(*notice.untold, known)[-MOST_UNTOLD:])
    after = replace(after, phase="waiting", heard_s=now_s)
    return after if _is_wanted(after, turn, rules, now_s) else dropped(after)


def is_behind(notice: Notice) -> bool:
    """Tell whether the phone is to hear of an end that it does not have yet."""
    return bool(notice.untold) or _lacks_latest(notice)


def _lacks_latest(notice: Notice) -> bool:
    has_earlier_end = notice.shown is not None and notice.shown.turn != notice.turn
    return notice.phase == "waiting" or (notice.phase == "posted" and has_earlier_end)


def _is_same(known: Turn | None, turn: Turn) -> bool:
    """Tell whether both are ends of the same turn, which answers the same prompt."""
    return known is not None and (known.id, known.prompt_id) == (turn.id, turn.prompt_id)


def _ended_at(one: Begun, at_s: float) -> Begun:
    """Return the turn as one that began before this time, also if the clock was set back since."""
    return replace(one, at_s=min(one.at_s, at_s), runs_s=min(one.runs_s, at_s))


def retrying(notice: Notice, retry: Retry, rules: NoticeRules, now_s: float) -> Notice:
    """Return the notice after a request of its turn failed, which is tried again."""
    if not rules.enabled or notice.is_muted or retry.attempt < KEEPS_TRYING:
        return notice
    since_s = now_s if notice.retry is None else notice.retry.since_s
    return replace(notice, retry=replace(retry, reason=retry.reason[:LONGEST_REASON], since_s=since_s))


def quiet(notice: Notice) -> Notice:
    """Return the notice after its session stopped: it tries nothing again."""
    return replace(notice, retry=None)


def muted(notice: Notice, *, on: bool) -> Notice:
    """Return the notice after the person wants no more of its session, or wants them again."""
    if not on:
        return replace(notice, is_muted=False)
    after = notice if notice.phase != "waiting" or notice.is_ours else dropped(notice)
    return replace(after, is_muted=True, retry=notice.retry if notice.retry_shown is not None else None)


def retry_told(notice: Notice, shown: RetryShown) -> Notice:
    """Return the notice after the message about a turn that keeps trying says this."""
    return replace(_with_earlier(notice, shown), retry_shown=None if shown.is_over else shown)


def _is_wanted(notice: Notice, turn: Turn, rules: NoticeRules, now_s: float) -> bool:
    is_long = turn.began_s is not None and turn.ended_s - turn.began_s >= rules.finished_s
    is_wanted = notice.is_ours or (rules.enabled and is_long and not notice.is_muted)
    return is_wanted and now_s - turn.ended_s < LATEST_S


def _followed(notice: Notice, *, is_ours: bool) -> Notice:
    """Return the notice after the next turn began; `is_ours`: with a prompt from the phone, else at the desk."""
    if notice.phase != "waiting" or notice.is_ours:
        return notice
    return replace(notice, is_ours=True) if is_ours else dropped(notice)


def dropped(notice: Notice) -> Notice:
    """Return the notice without the words that nobody will see."""
    turn = notice.turn
    if turn is not None:
        changes = turn.changes if turn.changes is None else replace(turn.changes, diff="")
        turn = replace(turn, words="", failure="", changes=changes)
    return replace(notice, phase="dropped", turn=turn)


def due(notice: Notice, post_after_s: float, now_s: float) -> NoticeOrder | None:
    """Return what is to be done for the phone now, or None; a notice waits `post_after_s` for the desk."""
    trying = _of_retry(notice, post_after_s, now_s)
    if isinstance(trying, TellRetry):
        return trying
    shown, turn = notice.shown, notice.turn
    if notice.untold:
        first = notice.untold[0]
        return Update(shown, first) if shown is not None and _is_same(shown.turn, first) else Post(first)
    if notice.phase == "waiting" and turn is not None:
        waited_s = now_s - notice.heard_s
        # A negative time: the wall clock was set back, and the notice does not wait because of that.
        if 0 <= waited_s < post_after_s and not (notice.is_ours or turn.nobody_there):
            return Pause(post_after_s - waited_s)
        return Post(turn)
    if notice.phase == "posted" and shown is not None and turn is not None and shown.turn != turn:
        return Update(shown, turn)
    return TakeButtons(notice.outdated[0]) if notice.outdated else trying


def _of_retry(notice: Notice, post_after_s: float, now_s: float) -> TellRetry | Pause | None:
    retry, shown = notice.retry, notice.retry_shown
    if retry is None:
        return None if shown is None else TellRetry(shown.retry, is_over=True)
    waited_s = now_s - retry.since_s
    if shown is None and 0 <= waited_s < post_after_s:
        return Pause(post_after_s - waited_s)
    return TellRetry(retry) if shown is None or shown.retry != retry else None


def posted(notice: Notice, shown: Shown) -> Notice:
    """Return the notice after its message came to the phone; the message before it loses its buttons next."""
    is_current = not notice.untold and _is_same(notice.turn, shown.turn)
    phase = "posted" if is_current and notice.phase == "waiting" else notice.phase
    outdated = notice.outdated if notice.shown is None else (*notice.outdated, notice.shown)
    return _told(replace(notice, phase=phase, shown=shown, outdated=outdated), shown.turn)


def updated(notice: Notice, shown: Shown, turn: Turn) -> Notice:
    """Return the notice after this message of it was made to tell of this end."""
    after = replace(notice, shown=replace(shown, turn=turn)) if notice.shown == shown else notice
    return _told(after, turn)


def _told(notice: Notice, turn: Turn) -> Notice:
    return replace(notice, untold=tuple(one for one in notice.untold if one != turn))


def without_buttons(notice: Notice, shown: Shown) -> Notice:
    """Return the notice after the buttons of this earlier one were taken away."""
    outdated = tuple(one for one in notice.outdated if one != shown)
    return replace(_with_earlier(notice, shown), outdated=outdated)


def _with_earlier(notice: Notice, shown: Shown | RetryShown) -> Notice:
    place = Place(shown.chat_id, shown.message_id)
    known = [one for one in notice.earlier if one != place]
    return replace(notice, earlier=(*known, place)[-MOST_EARLIER:])
