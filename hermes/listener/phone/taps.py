"""Applies taps to their asks, notices, prompts or cards, and acknowledges them."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Final, Protocol

from hermes.chat.outbox import Outbox
from hermes.chat.screens import hints
from hermes.chat.screens.buttons import decode
from hermes.chat.screens.screen import Look
from hermes.errors import StoreError
from hermes.listener.entries import Entries
from hermes.listener.kept import Kept
from hermes.listener.phone.messenger import Messenger
from hermes.listener.phone.permission_queue import PermissionQueue
from hermes.model.actions import (
    Action,
    AnswerLate,
    Arm,
    AskAction,
    Confirmed,
    KeepWaiting,
    Pick,
    PromptAction,
    RecordAction,
    ShowWhole,
)
from hermes.model.entry import Entry, Phone
from hermes.model.events import Tap, Tapped
from hermes.model.notice import Place
from hermes.model.state import Toast

log = logging.getLogger(__name__)

STALE: Final = hints.TOASTS["page_changed"]


class TapTaker(Protocol):
    """Takes in the taps on the buttons of other messages than those of asks."""

    async def take_tap(self, record_id: str, action: Action, tap: Tap) -> bool:
        """Apply a tap, and acknowledge it; return False if this id is none of its own. Raises StoreError."""


class Taps:
    """Takes in taps on the buttons of asks; those of other messages go to `others`.

    `has_prompts`: the phone may write to agents. If not, buttons for that may be on it still.
    """

    def __init__(
        self,
        entries: Entries,
        outbox: Outbox,
        look: Look,
        messenger: Messenger,
        queue: PermissionQueue,
        kept: Kept,
        others: tuple[TapTaker, ...],
        *,
        has_prompts: bool,
    ) -> None:
        self._entries = entries
        self._outbox = outbox
        self._look = look
        self._messenger = messenger
        self._queue = queue
        self._kept = kept
        self._others = others
        self._has_prompts = has_prompts

    async def take(self, tap: Tap) -> None:
        """Apply a tap; its effect is on disk when this returns. Raises StoreError."""
        try:
            entry_id, epoch, action = decode(tap.data)
        except ValueError:
            log.info("a button with unknown data was tapped")
            self._outbox.answer(tap.query_id, STALE)
            return
        entry = self._entries.get(entry_id)
        if not _is_of_ask(entry, action, tap) and await self._take_for_others(entry_id, action, tap):
            return
        if entry is None:
            await self._late(entry_id, tap)
            return
        if isinstance(action, Pick | Confirmed) and self._queue.is_fresh(entry_id):
            # Applied as a tap on another page, so that it has no effect, even if Telegram sends the update again.
            await self._entries.apply(entry_id, Tapped(tap.update_id, tap.at_s, tap.user, action, epoch=-1))
            self._outbox.answer(tap.query_id, hints.TOASTS["fresh"])
            return
        # First: if the tap were saved alone, a restart would post the question again.
        await notice_copy(self._entries, self._kept, entry, Place(tap.chat_id, tap.message_id), tap.thread_id)
        step = await self._entries.apply(entry_id, Tapped(tap.update_id, tap.at_s, tap.user, action, epoch))
        after = self._entries.get(entry_id) or entry
        self._outbox.answer(tap.query_id, hints.toast(after, step.toast, self._look) if step.toast else "")
        if isinstance(action, ShowWhole) and step.toast is not None and entry.state.whole:
            # The file of before may be deleted, or far above.
            await self._entries.change(entry_id, lambda found: replace(found, phone=found.phone.wanting("whole")))
        if isinstance(action, Arm) and action.on and step.state.armed is not None:
            await self._entries.disarm(tap.user.id, but=entry_id)
            await self._kept.cards.disarm(tap.user.id)
        if isinstance(action, KeepWaiting):
            log.info("entry %s: the person wants it to wait", entry_id)

    async def _take_for_others(self, record_id: str, action: Action, tap: Tap) -> bool:
        """Let a record take the tap; return False if the button may be one of an ask. Raises StoreError."""
        if isinstance(action, PromptAction) and not self._has_prompts:
            self._outbox.answer(tap.query_id, hints.TOASTS["prompts_off"])
            return True
        for other in self._others:
            if await other.take_tap(record_id, action, tap):
                return True
        if isinstance(action, RecordAction):
            self._outbox.answer(tap.query_id, STALE)
            return True
        return False

    async def _late(self, entry_id: str, tap: Tap) -> None:
        """Acknowledge a tap on a closed ask; delete the tapped message unless it is the ask's main message."""
        try:
            entry = await self._entries.store.done(entry_id)
        except StoreError:
            self._outbox.answer(tap.query_id, STALE)
            return
        self._outbox.answer(tap.query_id, hints.toast(entry, Toast("settled"), self._look))
        if tap.message_id != entry.phone.message_id:
            self._messenger.delete(tap.chat_id, tap.message_id)


def _is_of_ask(entry: Entry | None, action: Action, tap: Tap) -> bool:
    """Tell whether a button belongs to an ask, and not to a record.

    The id does not tell: the user of an agent-only machine can write an ask with the id of a record, or the other way
    round. The messages of an ask are the phone side's to write.
    """
    if isinstance(action, AnswerLate):  # one of an ask that is over, and another part's to handle
        return False
    return isinstance(action, AskAction) or (entry is not None and tap.message_id in entry.phone.messages)


async def notice_copy(entries: Entries, kept: Kept, entry: Entry, place: Place, thread_id: int) -> None:
    """Adopt an unknown message, whose send timed out but arrived, or note it as a copy, which is then deleted.

    A message of a record is neither. `thread_id`: the topic in which it stands, 0 if in none.
    """
    message_id = place.message_id
    if message_id in entry.phone.messages or kept.has_message(place.chat_id, message_id):
        return
    after = await entries.change(
        entry.id, lambda found: replace(found, phone=_with_message(found.phone, message_id, thread_id))
    )
    if message_id in after.phone.copies:
        log.info("entry %s: message %d is a second copy", entry.id, message_id)


def _with_message(phone: Phone, message_id: int, thread_id: int) -> Phone:
    if message_id in phone.messages:
        return phone
    if phone.message_id is None:
        # The send was not confirmed, but its message arrived: adopt it.
        since_id = phone.since_id or message_id
        return replace(phone, message_id=message_id, drawn="", since_id=since_id, thread_id=thread_id)
    since_id = min(phone.since_id or message_id, message_id)
    return replace(phone, copies=(*phone.copies, message_id), since_id=since_id)
