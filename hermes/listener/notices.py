"""The notices of sessions in memory, as the store has them on disk: the agent side reports turns, the phone side posts.

Each change is on disk before it is visible here; then the notice goes to the queue of the workers. `core.notices`
decides.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from hermes.core import notices
from hermes.errors import NotSaved
from hermes.model.notice import Notice
from hermes.model.signals import Busy, TurnBegan, TurnEnded
from hermes.storage.names import random_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.core.notices import NoticeRules
    from hermes.listener.wakes import Wakes
    from hermes.storage.notices import NoticeFiles

log = logging.getLogger(__name__)

MOST: Final = 200
"""The notices of so many sessions are kept; the one whose last turn is the oldest goes first."""


class Notices:
    """The notice of each session whose turns Hermes has heard of. `now` is the epoch clock of the store."""

    def __init__(self, files: NoticeFiles, rules: NoticeRules, wakes: Wakes, *, now: Callable[[], float]) -> None:
        self.rules = rules
        self.now = now
        self._files = files
        self._wakes = wakes
        self._known: dict[str, Notice] = {}
        self._lock = asyncio.Lock()

    async def open(self) -> None:
        """Read all notices, and wake the worker of each that has something to do. Raises StoreError."""
        for notice in await self._files.all():
            self._known[notice.id] = notice
            self._wakes.put(notice.id, "notice")

    def get(self, notice_id: str) -> Notice | None:
        """Return the notice with this id, or None."""
        return self._known.get(notice_id)

    async def lay_out_again(self) -> None:
        """Write all notices from memory into a store whose folder was removed or replaced. Raises NotSaved."""
        async with self._lock:
            for notice in list(self._known.values()):
                self._known[notice.id] = await self._files.save(notice)

    async def forget_before(self, at_s: float) -> None:
        """Forget the notices whose turns were all heard of before this time (epoch). Raises NotSaved."""
        async with self._lock:
            for notice in [one for one in self._known.values() if one.phase != "waiting" and _age_s(one) < at_s]:
                await self._forget(notice)

    async def take(self, signal: Busy | TurnBegan | TurnEnded) -> None:
        """Keep an agent's report of its turns; on disk when this returns. Raises NotSaved, but not for `Busy`."""
        if not self.rules.enabled:
            return
        async with self._lock:
            match signal:
                case Busy(session_id):
                    with suppress(NotSaved):  # then a notice is posted that nobody needs
                        for notice in [one for one in self._known.values() if one.session_id == session_id]:
                            await self._save(notice, notices.busy(notice, self.now()))
                case TurnBegan(agent, session_id, turn_id, at_s):
                    notice = self._of(agent, session_id)
                    await self._save(notice, notices.began(notice, turn_id, at_s))
                case TurnEnded(turn):
                    notice = self._of(turn.source.agent, turn.source.session_id)
                    await self._save(notice, notices.ended(notice, turn, self.rules, self.now()))

    async def change(self, notice_id: str, fn: Callable[[Notice], Notice]) -> None:
        """Change a notice; on disk when this returns. `fn` is pure and gets the newest one. Raises NotSaved."""
        async with self._lock:
            notice = self._known.get(notice_id)
            if notice is not None:
                await self._save(notice, fn(notice))

    def _of(self, agent: str, session_id: str) -> Notice:
        found = (one for one in self._known.values() if (one.agent, one.session_id) == (agent, session_id))
        return next(found, None) or Notice(random_id(), agent, session_id)

    async def _save(self, before: Notice, after: Notice) -> None:
        if after == before and before.revision:
            return
        saved = await self._files.save(after)
        self._known[saved.id] = saved
        if saved.phase != before.phase and saved.turn is not None:
            log.info("notice %s: a turn of session %s: %s", saved.id, saved.session_id, saved.phase)
        self._wakes.put(saved.id, "notice")
        await self._forget_oldest()

    async def _forget_oldest(self) -> None:
        while len(self._known) > MOST:
            await self._forget(min(self._known.values(), key=_age_s))

    async def _forget(self, notice: Notice) -> None:
        await self._files.forget(notice.id)
        del self._known[notice.id]


def _age_s(notice: Notice) -> float:
    """Return when Hermes last heard of a turn of this session (epoch)."""
    return max([notice.heard_s, *(one.at_s for one in notice.begun)])
