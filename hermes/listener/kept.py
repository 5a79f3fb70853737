"""The records beside the asks: notices, prompts, and the cards of sessions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from hermes.core import prompts
from hermes.listener.notices import Notices
from hermes.listener.prompts import Prompts
from hermes.listener.records import Records
from hermes.model.card import Card

if TYPE_CHECKING:
    from hermes.core.notices import NoticeRules
    from hermes.listener.wakes import Wakes
    from hermes.storage.store import Store

MOST_CARDS: Final = 200
"""The cards of so many sessions are kept; the one whose session was used the longest ago goes first."""


class Cards(Records[Card]):
    """The cards of all sessions that the phone knows."""

    async def disarm(self, user_id: int, *, but: str = "") -> None:
        """Let no card but this one take the next plain text of this user. Raises NotSaved."""
        for card in self.all():
            if card.armed_for == user_id and card.id != but:
                await self.change(card.id, lambda found: replace(found, armed_for=0, armed_s=0.0, about=""))

    async def bring_along(self, chat_id: int) -> None:
        """Forget the messages of the cards of another chat: its numbers mean other messages here. Raises NotSaved."""
        for card in self.all():
            if card.chat_id != chat_id:
                await self.change(
                    card.id,
                    lambda found: replace(found, chat_id=chat_id, messages=(), shown=None, armed_for=0, typing=None),
                )


class Kept:
    """The records of one store."""

    def __init__(self, store: Store, rules: NoticeRules, wakes: Wakes) -> None:
        self.notices = Notices(store.notices, rules, wakes, now=store.now)
        self.prompts = Prompts(store.prompts, wakes, now=store.now)
        self.cards = Cards(store.cards, wakes, ("card", "session"), most=MOST_CARDS, age_s=lambda card: card.used_s)

    async def open(self) -> None:
        """Read all records, and wake their workers. Raises StoreError."""
        await self.notices.open()
        await self.prompts.open()
        await self.cards.open()

    async def lay_out_again(self) -> None:
        """Write all records from memory into a store whose folder was removed or replaced. Raises NotSaved."""
        await self.notices.lay_out_again()
        await self.prompts.lay_out_again()
        await self.cards.lay_out_again()

    def has_open(self) -> bool:
        """Tell whether a prompt has not come to its end, or a notice is not on the phone yet."""
        prompts_open = any(not prompts.is_over(one) for one in self.prompts.all())
        return prompts_open or any(one.phase == "waiting" for one in self.notices.all())

    async def at_rest(self) -> None:
        """Return when the changes that are under way are over."""
        for records in (self.notices, self.prompts, self.cards):
            await records.at_rest()

    async def forget_before(self, at_s: float) -> None:
        """Forget all records that are over since this time (epoch). Raises NotSaved."""
        await self.notices.forget_before(at_s)
        await self.prompts.forget_before(at_s)
        await self.cards.forget(lambda card: card.used_s < at_s)
