"""The message that a turn has ended. Pure."""

from __future__ import annotations

from typing import Final

from hermes.chat.screens.buttons import Row, of_record
from hermes.chat.screens.screen import Caps, Look, Screen, agent_at, clock, draw, project, span
from hermes.chat.screens.text import Line, Span, dotted, ending, is_cut, line, passage, phrase
from hermes.core.answers import utf16_units
from hermes.model.actions import ShowChanges, ShowWhole, StopTurn
from hermes.model.ask import Source
from hermes.model.notice import Changes, RetryShown, Turn

_TITLE: Final = 60
_WHY: Final = 300
_DIFF: Final = 1_800
_LATE_S: Final = 600.0


def turn_ended(notice_id: str, turn: Turn, look: Look, *, heard_s: float) -> Screen:
    """Return the notice: whether the turn finished or failed, how long it took, its changes, and the last words.

    If Hermes heard of the end long after it (`heard_s`, epoch), the notice also says when it was.
    """
    since_s = turn.ended_s if heard_s - turn.ended_s > _LATE_S else None
    at = "" if since_s is None else clock(since_s, look, near_s=heard_s)

    def lines(caps: Caps) -> list[Line]:
        words = ending(turn.words, min(caps.context, look.context_chars), "expandable_blockquote")
        origin = dotted([project(turn.source), agent_at(turn.agent_name, turn.source)])
        return [_headline(turn, at), line(words), origin]

    row: Row = ()
    if is_cut(turn.words, look.context_chars):
        row += (of_record(notice_id, "Show all", ShowWhole()),)
    if turn.changes is not None and turn.changes.diff:
        row += (of_record(notice_id, "Changes", ShowChanges()),)
    return draw(lines, (row,))


def keeps_trying(notice_id: str, shown: RetryShown, look: Look) -> Screen:
    """Return the message about a turn that cannot reach its model: why, and when it tries again."""
    retry = shown.retry
    named, why = _named(retry.source), passage(retry.reason, _WHY)
    at = clock(retry.next_s, look, near_s=retry.since_s)
    said = line("🔁 ", named, ": ", why, f" · {_th(retry.attempt + 1)} try at {at}")
    if shown.is_over:
        said = line("🔁 ", named, ": ", why, f" · {retry.attempt} tries failed")
    origin = dotted([project(retry.source), agent_at(retry.agent_name, retry.source)])
    can_stop = not shown.is_over and look.may_write(retry.source)
    stop = (of_record(notice_id, "⏹ Stop it", StopTurn()),) if can_stop else ()
    return draw(lambda _: [said, origin], (stop,))


def _th(number: int) -> str:
    ending = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def whole_words(turn: Turn) -> tuple[Screen, tuple[str, str]]:
    """Return the agent's last words as a document (name, content), and the caption."""
    return draw(lambda _: [line("The last words of ", _named(turn.source))]), ("last-words.txt", turn.words)


def changed(turn: Turn) -> tuple[Screen, tuple[str, str] | None]:
    """Return what the turn has changed, in a folded quote; if it is long, the caption, and the document with it."""
    diff = "" if turn.changes is None else turn.changes.diff
    heading = line("Changes of ", _named(turn.source))
    if utf16_units(diff) > _DIFF:
        return draw(lambda _: [heading]), ("changes.diff", diff)
    return draw(lambda _: [heading, line(passage(diff, 2 * _DIFF, "expandable_blockquote"))]), None


def _named(source: Source) -> Span:
    title = phrase(source.session_title, _TITLE, "bold")
    return title if title.text else phrase(project(source).text, _TITLE, "bold", empty="A session")


def _headline(turn: Turn, at: str) -> Line:
    took = Span(f" · {span(turn.ended_s - turn.began_s)}" if turn.began_s is not None else "")
    changes = Span(f" · {_in_words(turn.changes)}" if turn.changes is not None and turn.changes.files else "")
    if turn.failure:
        stopped = f" stopped at {at}: " if at else " stopped: "
        return line("❌ ", _named(turn.source), stopped, passage(turn.failure, _WHY), took, changes)
    return line("✅ ", _named(turn.source), f" is done since {at}" if at else " is done", took, changes)


def _in_words(changes: Changes) -> str:
    files = "1 file" if changes.files == 1 else f"{changes.files} files"
    return f"{files}, +{changes.added} −{changes.removed}" if changes.added or changes.removed else files
