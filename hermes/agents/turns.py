"""The turns of a server's sessions: when they began, as its events tell, and which step is the last. Pure."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from hermes.model.signals import Busy, Quiet, Signal

GOES_ON: Final = frozenset({None, "", "tool-calls", "unknown"})
"""A step of the model that finished so is not the last of its turn."""
_MOST: Final = 500


class Beginnings:
    """The last beginning of each session's work, in epoch seconds; of the last 500 sessions that worked."""

    def __init__(self) -> None:
        self._began_s: OrderedDict[str, float] = OrderedDict()
        self._over: set[str] = set()

    def note(self, signal: Signal | None, now_s: float) -> None:
        """Note that a session is at work, or that its turn has ended, if the signal says so."""
        match signal:
            case Busy(session_id):
                self._works(session_id, now_s)
            case Quiet(session_id) if session_id in self._began_s:
                self._over.add(session_id)

    def _works(self, session_id: str, now_s: float) -> None:
        """Note that the session is at work now; only the first time since its last turn ended counts."""
        if session_id not in self._began_s or session_id in self._over:
            self._over.discard(session_id)
            self._began_s[session_id] = now_s
            self._began_s.move_to_end(session_id)
        while len(self._began_s) > _MOST:
            self._over.discard(self._began_s.popitem(last=False)[0])

    def of(self, session_id: str, prompt_s: float | None) -> float | None:
        """Return when the last turn began: with its prompt, or earlier, if that prompt came while the session worked.

        None if neither is known.
        """
        known = [at_s for at_s in (prompt_s, self._began_s.get(session_id)) if at_s is not None]
        return min(known, default=None)

    def forget(self) -> None:
        """Forget all, because events were lost."""
        self._began_s.clear()
        self._over.clear()
