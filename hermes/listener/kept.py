"""The records beside the asks: notices, prompts, and the cards of sessions."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from hermes.core import notices, prompts
from hermes.core.notices import NoticeRules
from hermes.errors import InUse
from hermes.listener.notices import Notices
from hermes.listener.prompts import Prompts
from hermes.listener.records import Records
from hermes.listener.sessions import USED_S, SessionLists
from hermes.listener.wakes import Wakes
from hermes.model.card import Card, MachineList
from hermes.model.notice import Notice
from hermes.model.prompt import Prompt, PromptLine
from hermes.storage.store import Changed, Kind, Store


class Cards(Records[Card]):
    """The cards of all sessions that the phone knows."""

    of_phone = ("card",)
    of_agent = ("session",)
    most = 200

    def _age_s(self, record: Card) -> float:
        return record.used_s

    async def disarm(self, user_id: int, *, but: str = "") -> None:
        """Let no card but this one take the next plain text of this user. Raises NotSaved."""
        for card in self.all():
            if card.armed_for == user_id and card.id != but:
                await self.change(card.id, _disarmed)

    async def bring_along(self, chat_id: int) -> None:
        """Forget the messages of the cards of another chat: its numbers mean other messages here. Raises NotSaved."""
        for card in self.all():
            if card.chat_id != chat_id:
                with suppress(InUse):  # its messages are unknown in the new chat, also without that
                    await self.change(card.id, lambda found: replace(_unposted_card(found), chat_id=chat_id))


class Kept:
    """The records of one store."""

    def __init__(self, store: Store, rules: NoticeRules, wakes: Wakes) -> None:
        machine, now = store.home.machine() if store.is_shared else None, store.now
        self.notices = Notices(store.notices, rules, wakes, now=now, machine=machine)
        self.prompts = Prompts(store.prompts, wakes, now=now, machine=machine)
        self.cards = Cards(store.cards, wakes, now=now, machine=machine)
        self.lists = SessionLists(store.lists, wakes, now=now, machine=machine)
        self._by_kind: Mapping[Kind, Records[Notice] | Records[Prompt] | Records[Card] | Records[MachineList]] = {
            "notices": self.notices,
            "prompts": self.prompts,
            "cards": self.cards,
            "lists": self.lists,
        }

    async def open(self) -> None:
        """Read all records, and wake their workers. Raises StoreError."""
        for records in self._by_kind.values():
            await records.open()

    async def list_machine(self, machine: str, name: str) -> None:
        """Give this machine a list of sessions, and its name. Raises NotSaved."""
        fresh = MachineList(machine, name)
        await self.lists.make(lambda one: one.id == machine, lambda: fresh, lambda one: replace(one, name=name))

    async def refresh(self, kind: Kind, record_id: str) -> None:
        """Read a record that another process has changed. Raises StoreError."""
        await self._by_kind[kind].refresh(record_id)

    async def stale(self) -> list[Changed]:
        """Return the records that are not here as the store has them. Raises StoreError."""
        return [Changed(kind, one) for kind, records in self._by_kind.items() for one in await records.stale()]

    async def lay_out_again(self) -> None:
        """Write all records from memory into a store whose folder was removed or replaced. Raises NotSaved."""
        await self.notices.lay_out_again()
        await self.prompts.lay_out_again()
        await self.cards.lay_out_again()

    def has_message(self, chat_id: int, message_id: int) -> bool:
        """Tell whether this message belongs to one of the records."""
        return (
            self.prompts.of_line(chat_id, message_id) is not None
            or message_id in self.lists.shown
            or any(one.chat_id == chat_id and message_id in _messages(one) for one in self.cards.all())
            or any((chat_id, message_id) in one.places for one in self.notices.all())
        )

    async def forget_messages(self) -> None:
        """Forget all messages of the records, because another bot has sent them. Raises NotSaved.

        The line of a prompt that is not over is then posted again. One that is over was only kept for its messages.
        """
        await self.prompts.forget(lambda one: prompts.is_over(one) and one.line.is_over)
        for prompt in self.prompts.all():
            await self.prompts.change(prompt.id, lambda found: replace(found, chat_id=0, line=PromptLine()))
        for notice in self.notices.all():
            await self.notices.change(
                notice.id, lambda found: replace(found, shown=None, retry_shown=None, outdated=(), earlier=())
            )
        for card in self.cards.all():
            await self.cards.change(card.id, _unposted_card)

    def has_open(self) -> bool:
        """Tell whether a prompt has not come to its end, or a notice is not on the phone yet."""
        prompts_open = any(not prompts.is_over(one) for one in self.prompts.all())
        return prompts_open or any(notices.is_behind(one) for one in self.notices.all())

    async def at_rest(self) -> None:
        """Return when the changes that are under way are over."""
        for records in self._by_kind.values():
            await records.at_rest()

    async def forget_before(self, at_s: float) -> None:
        """Forget the records that are over since this time (epoch), but no card that a list shows. Raises NotSaved."""
        await self.notices.forget_before(at_s)
        await self.prompts.forget_before(at_s)
        listed_s = self.cards.now() - USED_S
        await self.cards.forget(lambda card: card.used_s < min(at_s, listed_s))


def _unposted_card(card: Card) -> Card:
    return replace(_disarmed(card), messages=(), shown=None, typing=None)


def _disarmed(card: Card) -> Card:
    return replace(card, armed_for=0, armed_s=0.0, about="")


def _messages(card: Card) -> tuple[int | None, ...]:
    return (*card.messages, card.shown, card.typing)
