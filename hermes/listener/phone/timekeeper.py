"""The changes of open asks that depend on time: reminders, final calls and expiry; and quiet hours."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hermes.chat.screens import notices
from hermes.core import answer_clock
from hermes.core.answer_clock import AnswerableClock, Pace
from hermes.model.events import Expired

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from hermes.chat.outbox import Outbox
    from hermes.chat.screens.screen import Look
    from hermes.config.settings import Questions
    from hermes.listener.entries import Book
    from hermes.listener.phone.chat_memory import Memory
    from hermes.model.entry import Entry, Timing

log = logging.getLogger(__name__)


class Timekeeper:
    """Owns the answerable clock. `spawn` starts a task; `now` is epoch seconds, `monotonic` seconds that never jump."""

    def __init__(
        self,
        memory: Memory,
        outbox: Outbox,
        look: Look,
        questions: Questions,
        *,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        now: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        self._memory = memory
        self._outbox = outbox
        self._look = look
        self._questions = questions
        self._spawn = spawn
        self._now = now
        self._pace = Pace(questions.ttl, questions.remind_at)
        self._was_quiet = False
        self._stood = True
        self.clock = AnswerableClock(memory.at.answerable_s, monotonic=monotonic)

    # --- queries of the steps ---------------------------------------------------------------------------------

    def started(self, entry: Entry, extra_s: float = 0.0) -> Timing:
        """Return the timing of an ask whose time to answer starts (again) now; it is `extra_s` longer than usual."""
        timing = entry.timing if entry.timing.posted_s is not None else None
        ttl_s = self._questions.ttl if entry.ask.ttl_s is None else entry.ask.ttl_s
        return self.clock.started(now_s=self._now(), ttl_s=ttl_s + extra_s, timing=timing)

    def retimed(self, entry: Entry, extra_s: float) -> Timing:
        """Return the timing of an ask that a person touched: it starts again, unless the ask was never posted."""
        return entry.timing if entry.timing.posted_s is None else self.started(entry, extra_s)

    def is_quiet(self) -> bool:
        """Tell whether the phone must not ring now."""
        hours = self._questions.quiet_hours
        return hours is not None and answer_clock.is_quiet(self._now(), hours.start, hours.end, self._questions.zone)

    # --- a tick -------------------------------------------------------------------------------------------------

    def tick(self, book: Book, *, answerable: bool) -> None:
        """Advance the clock; remind, make final calls and expire asks if that is due. Raises NotSaved."""
        quiet = self.is_quiet()
        self.clock.tick(answerable=answerable and not quiet)
        self._notice_quiet(book, quiet=quiet)
        resumed = self._resumed(answerable=answerable and not quiet)
        for entry in book.entries():
            with book.apart(entry):
                self._look_at(book, entry, resumed=resumed)

    def _resumed(self, *, answerable: bool) -> bool:
        """Tell whether the clock has just begun to run again: the times that the phone shows are then wrong."""
        stood, self._stood = self._stood, not answerable
        return stood and answerable

    def _look_at(self, book: Book, entry: Entry, *, resumed: bool) -> None:
        """Remind, make the final call or expire, if that is due; correct the shown end after a standstill."""
        left_s = self.clock.left_s(entry.timing)
        if resumed and left_s is not None and entry.state.phase == "open":
            _time(book, entry, until_s=self._now() + max(0.0, left_s))
        match answer_clock.due(entry, self.clock, self._pace):
            case "remind":
                _time(book, entry, reminded=entry.timing.reminded + 1)
            case "call":
                _time(book, entry, called=True, until_s=self._now() + max(0.0, left_s or 0.0))
            case "expire":
                log.info("entry %s: nobody answered in time", entry.id)
                book.apply(entry.id, Expired(self._now(), self._look.rule(entry.ask)))
            case None:
                pass

    def _notice_quiet(self, book: Book, *, quiet: bool) -> None:
        was_quiet, self._was_quiet = self._was_quiet, quiet
        waiting = sum(entry.state.phase == "open" for entry in book.entries())
        if was_quiet and not quiet and waiting:
            self._spawn(self._outbox.mention(book.chat_id, notices.digest_screen(waiting)))


def _time(book: Book, entry: Entry, **changes: Any) -> None:
    book.change(entry.id, lambda found: replace(found, timing=replace(found.timing, **changes)))
