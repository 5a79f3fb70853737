"""Turns Telegram updates into events of the asks, and saves each of them before it is acknowledged."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from hermes.chat.access import followed, permitted
from hermes.chat.poll import Blocked, Incoming, Migrated, read_update
from hermes.chat.screens import notices
from hermes.chat.screens.buttons import decode
from hermes.core import routing
from hermes.errors import ChatAway, NotSaved, StoreError
from hermes.model.actions import Arm, Confirmed, KeepWaiting, Pick
from hermes.model.entry import Entry
from hermes.model.events import Disarmed, Tap, Tapped, Text, Torn
from hermes.model.state import Toast

if TYPE_CHECKING:
    from typing import Any

    from hermes.chat.outbox import Outbox
    from hermes.chat.screens.screen import Look
    from hermes.listener.entries import Book
    from hermes.listener.phone.chat_commands import Commands
    from hermes.listener.phone.chat_link import ChatLink
    from hermes.listener.phone.messenger import Messenger
    from hermes.listener.phone.permission_queue import Row

log = logging.getLogger(__name__)

SORRY_S: Final = 10.0
"""The poll loop waits at most this long for the message that tells the person that nothing was saved."""
ARRIVING_S: Final = 2.0
"""A text that seems too early waits at most this long: its question may be on the phone, but not confirmed yet."""
STALE: Final = notices.TOASTS["page_changed"]


@dataclass(frozen=True, slots=True)
class Parties:
    """Who talks with whom: the id of our own bot, and the users who may answer."""

    bot_id: int
    users: frozenset[int]


class PhoneSide:
    """Handles updates, acknowledges taps, and replies to texts that need a reply at once."""

    def __init__(  # noqa: PLR0913 (one argument for each part that it connects)
        self,
        book: Book,
        outbox: Outbox,
        look: Look,
        parties: Parties,
        messenger: Messenger,
        link: ChatLink,
        row: Row,
        commands: Commands,
        *,
        sorry_s: float = SORRY_S,
    ) -> None:
        self._book = book
        self._outbox = outbox
        self._look = look
        self._parties = parties
        self._messenger = messenger
        self._link = link
        self._row = row
        self._commands = commands
        self._sorry_s = sorry_s
        self.torn: set[str] = set()
        """The ids of entries whose joined text lacks a part, because that part could not be saved."""

    async def handle(self, raw: dict[str, Any]) -> None:
        """Handle one update; its effect is on disk when this returns. Raises NotSaved, or ValueError: unknown shape."""
        incoming = self._read(raw)
        try:
            await self._take(incoming)
        except NotSaved:
            raise
        except StoreError as error:
            # For example, a newer Hermes has written the entry: the person must learn that nothing was saved.
            raise NotSaved(str(error)) from error

    def _read(self, raw: dict[str, Any]) -> Incoming:
        return read_update(raw, bot_id=self._parties.bot_id, now=self._book.now)

    async def _take(self, incoming: Incoming) -> None:
        if isinstance(incoming, Tap | Text) and incoming.chat_id == self._book.chat_id:
            self._book.note_message(incoming.message_id)
        match incoming:
            case Tap() | Text() if not self._is_permitted(incoming):
                return
            case Tap() if self._book.store.is_phone_locked():
                self._outbox.answer(incoming.query_id, notices.locked_toast(self._messenger.machine))
            case Text() if self._book.store.is_phone_locked():
                self._shut_out(incoming)
            case Tap():
                self._tapped(incoming)
            case Text():
                await self._texted(incoming)
            case Migrated(old=old, new=new):
                if followed(self._book.chat_id, old=old, new=new) != self._book.chat_id:
                    self._link.moved(new)
            case Blocked(chat_id=chat_id) if chat_id == self._book.chat_id:
                self._link.in_trouble("the bot was blocked, or removed from the group")

    def _shut_out(self, text: Text) -> None:
        for entry_id in self._joining(text):
            self._book.apply(entry_id, Torn())
        self._messenger.say(notices.locked(self._messenger.machine), reply_to=text.message_id)

    async def not_saved(self, raw: dict[str, Any], error: NotSaved) -> None:
        """Tell the person that a tap or a text could not be saved. Raises ChatError."""
        incoming = self._read(raw)
        if isinstance(incoming, Text):
            self.torn.update(self._joining(incoming))
        sorry = notices.not_saved(self._messenger.machine, "disk full" if error.disk_full else "see its log")
        log.error("not saved: %s", error)
        try:
            # The poll loop waits for this. A slow Telegram must not delay it until Telegram drops the waiting taps.
            async with asyncio.timeout(self._sorry_s):
                if isinstance(incoming, Tap):
                    await self._outbox.answer(incoming.query_id, sorry.text)
                elif isinstance(incoming, Text):
                    await self._outbox.send(incoming.chat_id, sorry, reply_to=incoming.message_id)
        except TimeoutError:
            raise ChatAway("the person could not be told in time") from None

    def _joining(self, text: Text) -> list[str]:
        """Return the ids of the entries that are joining a text of this person: `text` may be a part of it."""
        found = [(entry.id, entry.state.joining) for entry in self._book.entries()]
        return [entry_id for entry_id, joining in found if joining is not None and joining.user.id == text.user.id]

    def _is_permitted(self, incoming: Tap | Text) -> bool:
        return permitted(incoming, users=self._parties.users, chat_id=self._book.chat_id)

    # --- taps -----------------------------------------------------------------------------------------------

    def _tapped(self, tap: Tap) -> None:
        try:
            entry_id, epoch, action = decode(tap.data)
        except ValueError:
            log.info("a button with unknown data was tapped")
            self._outbox.answer(tap.query_id, STALE)
            return
        entry = self._book.get(entry_id)
        if entry is None:
            self._late(entry_id, tap)
            return
        if isinstance(action, Pick | Confirmed) and self._row.is_fresh(entry_id):
            # Applied as a tap on another page, so that it has no effect, even if Telegram sends the update again.
            self._book.apply(entry_id, Tapped(tap.update_id, tap.at_s, tap.user, action, epoch=-1))
            self._outbox.answer(tap.query_id, notices.TOASTS["fresh"])
            return
        step = self._book.apply(entry_id, Tapped(tap.update_id, tap.at_s, tap.user, action, epoch))
        after = self._book.get(entry_id) or entry
        self._outbox.answer(tap.query_id, notices.toast(after, step.toast, self._look) if step.toast else "")
        if isinstance(action, Arm) and action.on and step.state.armed is not None:
            self._disarm_others(entry_id, tap.user.id)
        if isinstance(action, KeepWaiting):
            log.info("entry %s: the person wants it to wait", entry_id)
        self._notice_copy(after, tap.message_id)

    def _late(self, entry_id: str, tap: Tap) -> None:
        """Acknowledge a tap on a closed ask; delete the tapped message unless it is the ask's main message."""
        try:
            entry = self._book.store.done(entry_id)
        except StoreError:
            self._outbox.answer(tap.query_id, STALE)
            return
        self._outbox.answer(tap.query_id, notices.toast(entry, Toast("settled"), self._look))
        if tap.message_id != entry.phone.message_id:
            self._messenger.delete(tap.chat_id, tap.message_id)

    def _disarm_others(self, entry_id: str, user_id: int) -> None:
        for other in self._book.entries():
            armed = other.state.armed
            if other.id != entry_id and armed is not None and armed.user_id == user_id:
                self._book.apply(other.id, Disarmed())

    def _notice_copy(self, entry: Entry, message_id: int) -> None:
        """Adopt an unknown message, whose send timed out but arrived, or note it as a copy, which is then deleted."""
        phone = entry.phone
        known = (phone.message_id, *phone.copies, *(side.message_id for side in phone.sides))
        if message_id in known:
            return
        if phone.message_id is None:
            # The send was not confirmed, but its message arrived: adopt it.
            adopted = replace(phone, message_id=message_id, drawn="", since_id=phone.since_id or message_id)
        else:
            log.info("entry %s: message %d is a second copy", entry.id, message_id)
            since_id = min(phone.since_id or message_id, message_id)
            adopted = replace(phone, copies=(*phone.copies, message_id), since_id=since_id)
        self._book.change(entry.id, lambda found: replace(found, phone=adopted))

    # --- texts ----------------------------------------------------------------------------------------------

    async def _texted(self, text: Text) -> None:
        if self._book.was_seen(text.update_id):
            return
        told = self._commands.take(text)
        if told is not None:
            if told.screen is not None:
                self._messenger.say(told.screen, reply_to=text.message_id)
            return
        if routing.route(text, self._book.entries()) == routing.Tell("too_early"):
            await self._outbox.arrived(text.chat_id, ARRIVING_S)
        match routing.route(text, self._book.entries()):
            case routing.ToAsk(entry_id, event):
                step = self._book.apply(entry_id, event)
                entry = self._book.get(entry_id)
                if event.how == "reply" and text.reply_to is not None and entry is not None:
                    self._notice_copy(entry, text.reply_to)
                if step.hint is not None:
                    self._tell(step.hint.kind, (entry_id,), text.message_id)
            case routing.Tell(kind, entry_ids):
                self._tell(kind, entry_ids, text.message_id)
            case routing.Ignore():
                return

    def _tell(self, kind: notices.HintWord, entry_ids: tuple[str, ...], reply_to: int) -> None:
        entry = self._book.get(entry_ids[0]) if len(entry_ids) == 1 else None
        self._messenger.say(notices.hint(kind, entry, self._look, count=len(entry_ids)), reply_to=reply_to)
