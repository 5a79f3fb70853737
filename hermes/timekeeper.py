"""What time does to open asks: reminders, final calls, ends; quiet hours; and the word for many ends at once."""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from hermes import expiry
from hermes.chat import words
from hermes.codec import Hold
from hermes.errors import ChatError, NotSaved, StoreError, Stuck
from hermes.expiry import AnswerableClock, Pace
from hermes.model import Expired

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from hermes.book import Book
    from hermes.chat.outbox import Outbox
    from hermes.chat.screen import Look
    from hermes.memory import Memory
    from hermes.model import Entry, Timing
    from hermes.settings import Questions

log = logging.getLogger(__name__)

TOGETHER: Final = 3
"""This many asks that run out of time at one tick are held, and asked about once."""
HOLD_PAUSE_S: Final = 5.0


class Timekeeper:
    """Owns the answerable clock. `spawn` runs a coroutine beside; `now` and `monotonic` are seconds."""

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

    # --- what the steps want to know --------------------------------------------------------------------------

    def started(self, entry: Entry, extra_s: float = 0.0) -> Timing:
        """Return the timing of an ask whose time to answer starts now, or anew; `extra_s` longer than usual."""
        timing = entry.timing if entry.timing.posted_s is not None else None
        ttl_s = self._questions.ttl if entry.ask.ttl_s is None else entry.ask.ttl_s
        return self.clock.started(now_s=self._now(), ttl_s=ttl_s + extra_s, timing=timing)

    def retimed(self, entry: Entry, extra_s: float) -> Timing:
        """Return the timing of an ask that a person touched; one that was never posted has none yet."""
        return entry.timing if entry.timing.posted_s is None else self.started(entry, extra_s)

    def is_quiet(self) -> bool:
        """Tell whether the phone must not ring now."""
        hours = self._questions.quiet_hours
        return hours is not None and expiry.is_quiet(self._now(), hours.start, hours.end, self._questions.zone)

    # --- a tick -------------------------------------------------------------------------------------------------

    def tick(self, book: Book, *, answerable: bool) -> None:
        """Count the time and do what is due. Raises NotSaved."""
        quiet = self.is_quiet()
        self.clock.tick(answerable=answerable and not quiet)
        self._notice_quiet(book, quiet=quiet)
        overdue: list[Entry] = []
        resumed = self._resumed(answerable=answerable and not quiet)
        for entry in book.entries():
            with _apart(entry):
                if self._is_due(book, entry, resumed=resumed):
                    overdue.append(entry)
        if len(overdue) >= TOGETHER:
            self._hold(book, overdue)
            return
        for entry in overdue:
            with _apart(entry):
                self._expire(book, entry)

    def _resumed(self, *, answerable: bool) -> bool:
        """Tell whether the clock runs again after a stand: the times on the phone are wrong then."""
        stood, self._stood = self._stood, not answerable
        return stood and answerable

    def _is_due(self, book: Book, entry: Entry, *, resumed: bool) -> bool:
        """Remind or call where that is due; tell whether the entry's time has run out."""
        left_s = self.clock.left_s(entry.timing)
        if resumed and left_s is not None and entry.state.phase == "open":
            _time(book, entry, until_s=self._now() + max(0.0, left_s))
        match expiry.due(entry, self.clock, self._pace):
            case "remind":
                _time(book, entry, reminded=entry.timing.reminded + 1)
            case "call":
                _time(book, entry, called=True, until_s=self._now() + max(0.0, left_s or 0.0))
            case "expire":
                return True
            case None:
                pass
        return False

    def _expire(self, book: Book, entry: Entry) -> None:
        log.info("entry %s: nobody answered in time", entry.id)
        book.apply(entry.id, Expired(self._now(), self._look.rule(entry.ask)))

    def _notice_quiet(self, book: Book, *, quiet: bool) -> None:
        was_quiet, self._was_quiet = self._was_quiet, quiet
        waiting = sum(entry.state.phase == "open" for entry in book.entries())
        if was_quiet and not quiet and waiting:
            self._spawn(self._outbox.mention(book.chat_id, words.digest_screen(waiting)))

    # --- many at once -------------------------------------------------------------------------------------------

    def _hold(self, book: Book, overdue: list[Entry]) -> None:
        """Many at once look like an outage or a holiday: the person is asked once for all of them."""
        log.info("%d asks ran out of time together: held", len(overdue))
        earlier = self._memory.at.hold
        known = earlier.entry_ids if earlier else ()
        # The hold first: an ask that is held by nothing would never expire.
        self._memory.save(hold=Hold(None, tuple(dict.fromkeys((*known, *(entry.id for entry in overdue))))))
        for entry in overdue:
            with _apart(entry):
                _time(book, entry, paused=True)
        if earlier is not None and earlier.message_id is not None:
            self._spawn(self._outbox.discard(book.chat_id, earlier.message_id))
        self._spawn(self.ask_about_hold(book))

    async def ask_about_hold(self, book: Book) -> None:
        """Post the one question about all held asks, unless it is on the phone already."""
        while (hold := self._memory.at.hold) is not None and hold.message_id is None:
            held = [entry for entry_id in hold.entry_ids if (entry := book.get(entry_id)) and entry.timing.paused]
            if not held:
                self._memory.note(hold=None)
                return
            try:
                message_id = await self._outbox.send(book.chat_id, words.hold(held, self._look))
            except ChatError as error:
                log.warning("the question about %d held asks was not sent: %s", len(held), error)
                await asyncio.sleep(HOLD_PAUSE_S)
                continue
            if self._memory.at.hold != hold:
                # More asks were held meanwhile, or somebody has decided: this message speaks of too few.
                await self._outbox.discard(book.chat_id, message_id)
                continue
            self._memory.save(hold=replace(hold, message_id=message_id))

    def hold_answered(self, book: Book, word: str, message_id: int) -> bool:
        """Do with all held asks as the person said: "go" or "keep".

        Tells whether `message_id` is the question about them; an older one changes nothing. Raises NotSaved.
        """
        hold = self._memory.at.hold
        if hold is None or hold.message_id not in {None, message_id}:
            return False
        for entry_id in hold.entry_ids:
            entry = book.get(entry_id)
            if entry is None or not entry.timing.paused:
                continue
            if word == "go":
                self._expire(book, entry)
            else:
                timing = self.started(entry)
                book.change(entry_id, lambda found, timing=timing: replace(found, timing=timing))  # type: ignore[misc]
        self._memory.save(hold=None)
        self._spawn(self._outbox.discard(book.chat_id, message_id))
        return True


@contextmanager
def _apart(entry: Entry) -> Iterator[None]:
    """What one entry's file refuses must not stop the others; a full disk stops them all."""
    try:
        yield
    except StoreError as error:
        if isinstance(error, NotSaved) and not isinstance(error, Stuck):
            raise
        log.error("entry %s: %s", entry.id, error)  # noqa: TRY400 (a file's trouble, not a defect)


def _time(book: Book, entry: Entry, **changes: Any) -> None:
    book.change(entry.id, lambda found: replace(found, timing=replace(found.timing, **changes)))
