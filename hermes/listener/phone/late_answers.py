"""Answers a question that is over by a prompt for its session, which quotes the question."""

from __future__ import annotations

from hermes.chat.outbox import Outbox
from hermes.chat.screens import hints
from hermes.chat.screens.screen import Look
from hermes.chat.screens.side_messages import is_answerable_late
from hermes.core import prompts
from hermes.core.prompt_text import late_answer
from hermes.errors import StoreError
from hermes.listener.entries import Entries
from hermes.listener.phone.prompt_texts import PromptTexts
from hermes.listener.phone.session_cards import SessionCards
from hermes.model.actions import Action, AnswerLate
from hermes.model.entry import Entry
from hermes.model.events import Tap
from hermes.model.prompt import Target
from hermes.model.state import Part


class LateAnswers:
    """Takes in the taps on "as a message". An answer that was given goes out, else the person is asked for one."""

    def __init__(self, entries: Entries, prompts: PromptTexts, cards: SessionCards, outbox: Outbox, look: Look) -> None:
        self._entries = entries
        self._prompts = prompts
        self._cards = cards
        self._outbox = outbox
        self._look = look

    async def take_tap(self, record_id: str, action: Action, tap: Tap) -> bool:
        """Apply a tap; tell whether it was one on this button. Raises NotSaved."""
        if not isinstance(action, AnswerLate):
            return False
        self._outbox.answer(tap.query_id, await self._answered(record_id, tap))
        return True

    async def _answered(self, entry_id: str, tap: Tap) -> str:
        entry = self._entries.get(entry_id)
        if entry is None:
            try:
                entry = await self._entries.store.done(entry_id)
            except StoreError:
                return hints.TOASTS["page_changed"]
        target = self._prompts.target(entry.ask.source, entry.ask.capabilities.agent_name)
        if target is None or entry.state.phase != "settled" or not is_answerable_late(entry, self._look):
            return hints.TOASTS["page_changed"]
        return await self._answer(entry, target, tap)

    async def _answer(self, entry: Entry, target: Target, tap: Tap) -> str:
        decision, about = entry.state.decision, " ".join(one.text for one in entry.ask.questions)
        if decision is None or decision.by is None:
            return await self._cards.arm_for(target, tap, about=about)
        shown = entry.phone.message_id or tap.message_id
        parts = (Part(shown, late_answer(entry.ask, decision.answers)),)
        is_one = len(entry.ask.questions) == 1
        prompt = await self._prompts.make(parts, tap, target, about=about if is_one else "")
        return hints.TOASTS["page_changed" if prompts.is_over(prompt) else "as_message"]
