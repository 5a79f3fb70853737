"""Takes in the taps on the buttons of prompts and cards that are on the phone still, while prompts are off."""

from __future__ import annotations

from hermes.chat.outbox import Outbox
from hermes.chat.screens import hints
from hermes.listener.kept import Kept
from hermes.listener.phone.taps import TapTaker
from hermes.listener.sessions import ID
from hermes.model.actions import Action, AnswerLate, Back, Mute, Withdraw
from hermes.model.events import Tap


class PromptsOff:
    """Lets `others` take the taps that write nothing, and refuses the rest."""

    def __init__(self, kept: Kept, outbox: Outbox, others: tuple[TapTaker, ...]) -> None:
        self._kept = kept
        self._outbox = outbox
        self._others = others

    async def take_tap(self, record_id: str, action: Action, tap: Tap) -> bool:
        """As `TapTaker`. Raises NotSaved."""
        if isinstance(action, Withdraw | Back | Mute):
            for other in self._others:
                if await other.take_tap(record_id, action, tap):
                    return True
        is_known = self._kept.prompts.get(record_id) is not None or self._kept.cards.get(record_id) is not None
        if not is_known and record_id != ID and not isinstance(action, AnswerLate):
            return False
        self._outbox.answer(tap.query_id, hints.TOASTS["prompts_off"])
        return True
