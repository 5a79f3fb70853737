"""Where the person is: at the computer, where asks and notices wait for them first, or away."""

from __future__ import annotations

import logging

from hermes.core.answer_clock import AnswerTimes
from hermes.errors import StoreError
from hermes.listener.entries import Entries
from hermes.listener.notices import Notices
from hermes.listener.phone.chat_memory import Memory

log = logging.getLogger(__name__)


class Presence:
    """Does what /away and /desk say. The memory of the chat keeps it."""

    def __init__(self, memory: Memory, times: AnswerTimes, entries: Entries, notices: Notices) -> None:
        self.times = times
        self._memory = memory
        self._entries = entries
        self._notices = notices

    async def say(self, *, is_away: bool) -> None:
        """Keep where the person is; if away, let all that waits for the desk be posted. Raises NotSaved."""
        before = self._memory.at.is_away
        try:
            await self._memory.save(is_away=is_away)
        except StoreError:
            self._memory.note(is_away=before)  # the person reads that it is as before
            raise
        self.times.is_away = is_away
        log.info("the person is %s", "away" if is_away else "at the computer")
        for entry in self._entries.all():
            self._entries.wakes.put(entry.id, "phone")
        for notice in self._notices.all():
            self._notices.wake(notice.id)
