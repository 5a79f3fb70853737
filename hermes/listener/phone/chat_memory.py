"""The state of the chat that must survive restarts: changed in memory, written to the store by `save`."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from hermes.model.chat_memory import ChatMemory, SettledDay

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.storage.store import Store


LONGEST_GAP_S: Final = 3600.0


class Memory:
    """The saved state of one bot. `at` is its current value; only the methods of this class change it."""

    def __init__(self, store: Store, at: ChatMemory) -> None:
        """`at` is what `Store.load_chat` returned."""
        self._store = store
        self.at = at
        self._saving = asyncio.Lock()
        self._steady_s: float | None = None
        self._newest: dict[str, float] = {}

    def chat_id(self, configured: int) -> int:
        """Return the chat to post to: the configured one, or its supergroup. A newly configured chat wins."""
        if self.at.moved_from != configured:
            self.note(chat_id=None, moved_from=None)
        return self.at.chat_id or configured

    def note(self, **changes: Any) -> None:
        """Change these fields in memory; the next `save` writes them to disk."""
        self.at = replace(self.at, **changes)

    def live(self, *, now_s: float, steady_s: float) -> None:
        """Add the monotonic time since the last call to `lived_s`, the time for which Hermes was seen running.

        The first call adds the wall-clock time since `known_at_s`, when no listener ran: at most an hour, because the
        wall clock may be wrong by years.
        """
        if self._steady_s is None:
            known_s = now_s if self.at.known_at_s is None else self.at.known_at_s
            passed_s = min(max(0.0, now_s - known_s), LONGEST_GAP_S)
        else:
            passed_s = max(0.0, steady_s - self._steady_s)
        self._steady_s = steady_s
        self.note(lived_s=self.at.lived_s + passed_s)

    def outlived(self, days: Mapping[str, float], keep_s: float) -> set[str]:
        """Return the days whose asks were kept for more than `keep_s` of `lived_s`; remember the other days.

        `days` maps each day on which asks were settled to the time of the last one (epoch seconds). The count of a day
        starts now if the day is new, or if another ask was settled on it since the last call.
        """
        lived_s, known = self.at.lived_s, {one.day: one.lived_s for one in self.at.settled_days}
        since = {
            day: lived_s if day not in known or self._newest.get(day, at_s) != at_s else known[day]
            for day, at_s in days.items()
        }
        over = {day for day, from_s in since.items() if lived_s - from_s > keep_s}
        self._newest = {day: at_s for day, at_s in days.items() if day not in over}
        self.note(settled_days=tuple(SettledDay(day, from_s) for day, from_s in since.items() if day not in over))
        return over

    async def save(self, **changes: Any) -> None:
        """Change these fields and write the whole state to disk. Raises NotSaved."""
        self.note(**changes)
        async with self._saving:
            await self._store.save_chat(self.at)
