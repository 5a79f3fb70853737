"""The changes of open asks that depend on time: reminders, final calls and expiry; and quiet hours."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hermes.chat.screens import notices
from hermes.core import answer_clock
from hermes.model.events import Expired

if TYPE_CHECKING:
    from hermes.chat.screens.screen import Look
    from hermes.core.answer_clock import AnswerTimes
    from hermes.listener.entries import Entries
    from hermes.listener.phone.messenger import Messenger
    from hermes.model.entry import Entry

log = logging.getLogger(__name__)


class Timekeeper:
    """Advances the answerable clock, and does with the open asks what is due by it."""

    def __init__(self, entries: Entries, times: AnswerTimes, look: Look, messenger: Messenger) -> None:
        self._entries = entries
        self._times = times
        self._look = look
        self._messenger = messenger
        self._was_quiet = False
        self._stood = True

    def tick(self, *, answerable: bool) -> None:
        """Advance the clock; remind, make final calls and expire asks if that is due. Raises NotSaved."""
        quiet = self._times.is_quiet()
        self._times.clock.tick(answerable=answerable and not quiet)
        self._notice_quiet(quiet=quiet)
        resumed = self._resumed(answerable=answerable and not quiet)
        for entry in self._entries.all():
            with self._entries.apart(entry.id):
                self._look_at(entry, resumed=resumed)

    def _resumed(self, *, answerable: bool) -> bool:
        """Tell whether the clock has just begun to run again: the times that the phone shows are then wrong."""
        stood, self._stood = self._stood, not answerable
        return stood and answerable

    def _look_at(self, entry: Entry, *, resumed: bool) -> None:
        """Remind, make the final call or expire, if that is due; correct the shown end after a standstill."""
        left_s = self._times.clock.left_s(entry.timing)
        if resumed and left_s is not None and entry.state.phase == "open":
            self._time(entry, until_s=self._entries.now() + max(0.0, left_s))
        match answer_clock.due(entry, self._times.clock, self._times.pace):
            case "remind":
                self._time(entry, reminded=entry.timing.reminded + 1)
            case "call":
                self._time(entry, called=True, until_s=self._entries.now() + max(0.0, left_s or 0.0))
            case "expire":
                log.info("entry %s: nobody answered in time", entry.id)
                self._entries.apply(entry.id, Expired(self._entries.now(), self._look.rule(entry.ask)))
            case None:
                pass

    def _notice_quiet(self, *, quiet: bool) -> None:
        was_quiet, self._was_quiet = self._was_quiet, quiet
        waiting = sum(entry.state.phase == "open" for entry in self._entries.all())
        if was_quiet and not quiet and waiting:
            self._messenger.say(notices.digest_screen(waiting))

    def _time(self, entry: Entry, **changes: Any) -> None:
        self._entries.change(entry.id, lambda found: replace(found, timing=replace(found.timing, **changes)))
