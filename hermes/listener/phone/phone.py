"""Turns Telegram updates into events of the asks, and saves each of them before it is acknowledged."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, TypeGuard

from hermes.chat.incoming import Admitted, Blocked, Incoming, Migrated, is_permitted, read_update
from hermes.chat.outbox import Outbox
from hermes.chat.screens import hints
from hermes.core.routing import follows
from hermes.errors import ChatAway, InUse, Missing, NotSaved, StoreError
from hermes.listener.entries import Entries
from hermes.listener.phone.messenger import Messenger
from hermes.listener.phone.taps import Taps
from hermes.listener.phone.texts import Texts
from hermes.model.events import Tap, Text, TextEdit, Torn
from hermes.model.state import Part

log = logging.getLogger(__name__)

SORRY_S: Final = 10.0
"""The poll loop waits at most this long for the message that tells the person that nothing was saved."""
AGAIN_S: Final = (0.1, 0.3, 1.0)
"""What meets the change of another process is tried again after these pauses."""


class PhoneSide:
    """Handles the updates of the bot with this id: those of permitted people (`users`) go to their asks."""

    def __init__(
        self,
        entries: Entries,
        outbox: Outbox,
        taps: Taps,
        texts: Texts,
        messenger: Messenger,
        *,
        bot_id: int,
        users: frozenset[int],
        sorry_s: float = SORRY_S,
    ) -> None:
        self._entries = entries
        self._outbox = outbox
        self._taps = taps
        self._texts = texts
        self._messenger = messenger
        self._link = messenger.link
        self._bot_id = bot_id
        self._users = users
        self._sorry_s = sorry_s
        self.torn: set[str] = set()
        """The ids of entries and prompts whose joined text lacks a part, because that part could not be saved.

        Those of albums, too: the other pieces alone are not what the person said.
        """
        self._lost: dict[int, Part] = {}
        """The last text of each user that was not used: a long one may be a part, and the next text its end."""

    async def lock_first(self, updates: Sequence[dict[str, Any]]) -> None:
        """Lock the phone if one of these updates does: those before it in Telegram's queue may be a thief's.

        Telegram hands over at most 100 at once.
        """
        for raw in updates:
            with suppress(Exception):  # the guard around one update: it fails again when it is handled
                incoming = self._read(raw)
                if self._is_lock(incoming) and self._is_permitted(incoming):
                    await self._entries.store.lock_phone()

    async def handle(self, raw: dict[str, Any]) -> None:
        """Handle one update; its effect is on disk when this returns. Raises NotSaved, or ValueError: unknown shape."""
        incoming = self._read(raw)
        try:
            await self._take_again(incoming)
        except NotSaved:
            raise
        except StoreError as error:
            # For example, a newer Hermes has written the entry: the person must learn that nothing was saved.
            raise NotSaved(str(error)) from error

    async def _take_again(self, incoming: Incoming) -> None:
        """Take it in, again if that met the change of another process. Raises StoreError."""
        for pause_s in AGAIN_S:
            try:
                await self._take(incoming)
            except Missing:
                continue  # its ask was closed in the meantime
            except InUse:
                await asyncio.sleep(pause_s)
            else:
                return
        await self._take(incoming)

    def _read(self, raw: dict[str, Any]) -> Incoming:
        return read_update(raw, bot_id=self._bot_id, now=self._entries.now)

    async def _take(self, incoming: Incoming) -> None:
        if isinstance(incoming, Tap | Text) and incoming.chat_id == self._entries.chat_id:
            self._entries.note_message(incoming.message_id)
        store = self._entries.store
        match incoming:
            case Tap() | Text() | TextEdit() if not self._is_permitted(incoming):
                self._turn_away(incoming)
            case Tap() | Text() | TextEdit() if not self._is_lock(incoming) and await store.is_phone_locked():
                await self._shut_out(incoming)
            case Tap():
                await self._taps.take(incoming)
            case Text():
                await self._take_text(incoming)
            case TextEdit():
                await self._texts.edit(incoming)
            case Migrated(old=old, new=new) if old == self._entries.chat_id != new:
                await self._link.moved(new)
            case Blocked(chat_id=chat_id) if chat_id == self._entries.chat_id:
                await self._link.in_trouble("the bot was blocked, or removed from the group")
            case Admitted(chat_id=chat_id) if chat_id == self._entries.chat_id:
                self._link.sent()

    async def _take_text(self, text: Text) -> None:
        if text.album in self.torn:
            raise NotSaved("another piece of that album could not be saved")
        lost = self._lost.get(text.user.id)
        if lost is not None and follows(text, lost) and not self._is_lock(text):
            raise NotSaved("another part of that text could not be saved")
        for entry_id in self.torn & set(self._joining(text)):  # this text may end the joining
            await self._entries.apply(entry_id, Torn())
            self.torn.discard(entry_id)
        await self._texts.take(text)
        self._lost.pop(text.user.id, None)  # Telegram may have sent it again

    def _turn_away(self, incoming: Tap | Text | TextEdit) -> None:
        if isinstance(incoming, Tap) and incoming.user.id in self._users:  # in a chat that was used before
            self._outbox.answer(incoming.query_id, hints.TOASTS["other_chat"])

    async def _shut_out(self, incoming: Tap | Text | TextEdit) -> None:
        if isinstance(incoming, Tap):
            self._outbox.answer(incoming.query_id, hints.locked_toast(self._messenger.machine))
            return
        if isinstance(incoming, Text):
            for entry_id in self._joining(incoming):
                await self._entries.apply(entry_id, Torn())
            for prompt_id in self._texts.prompts.joining(incoming):
                await self._texts.prompts.tear(prompt_id)
            is_to_bot = self._texts.is_to_bot(incoming)
        else:
            is_to_bot = await self._texts.edit(incoming, is_locked=True)
        if is_to_bot:
            self._messenger.say(hints.locked(self._messenger.machine), reply_to=incoming.message_id)

    async def not_saved(self, raw: dict[str, Any], error: NotSaved) -> None:
        """Tell the person that a tap, a text or an edit could not be saved. Raises ChatError."""
        incoming = self._read(raw)
        if isinstance(incoming, Text):
            self._note_lost(incoming)
        what = "tap" if isinstance(incoming, Tap) else "edit it" if isinstance(incoming, TextEdit) else "send it"
        sorry = hints.not_saved(*self._messenger.why_not_saved(error), what=what)
        log.error("not saved: %s", error)
        try:
            # The poll loop waits for this. A slow Telegram must not delay it until Telegram drops the waiting taps.
            async with asyncio.timeout(self._sorry_s):
                if isinstance(incoming, Tap):
                    await self._outbox.answer(incoming.query_id, sorry.text)
                elif isinstance(incoming, Text | TextEdit):
                    await self._outbox.send(incoming.chat_id, sorry, reply_to=incoming.message_id)
        except TimeoutError:
            raise ChatAway("the person could not be told in time") from None

    def set_aside(self, raw: dict[str, Any], *, is_kept: bool) -> None:
        """Tell a permitted person that a defect of Hermes kept their tap, text or edit from being used.

        `is_kept`: it is in quarantine. Raises ValueError: it has another shape, so that nobody knows whose it is.
        """
        incoming = self._read(raw)
        if not isinstance(incoming, Tap | Text | TextEdit) or not self._is_permitted(incoming):
            return
        if isinstance(incoming, Text):
            self._note_lost(incoming)
        sorry = hints.defect(self._messenger.machine, is_kept=is_kept)
        if isinstance(incoming, Tap):
            self._outbox.answer(incoming.query_id, sorry.text)
        else:
            self._messenger.say(sorry, reply_to=incoming.message_id)

    def _note_lost(self, text: Text) -> None:
        """Remember that a text was not used: what it is a part of lacks that part."""
        self.torn |= {*self._joining(text), *self._texts.prompts.joining(text), text.album} - {""}
        self._lost[text.user.id] = Part(text.message_id, text.text or "", text.date_s)

    def _joining(self, text: Text) -> list[str]:
        """Return the ids of the entries that are joining a text of this person: `text` may be a part of it."""
        found = [(entry.id, entry.state.joining) for entry in self._entries.all()]
        return [entry_id for entry_id, joining in found if joining is not None and joining.user.id == text.user.id]

    def _is_lock(self, incoming: Incoming) -> TypeGuard[Text]:
        return isinstance(incoming, Text) and self._texts.commands.is_lock(incoming)

    def has_user(self, user_id: int) -> bool:
        """Tell whether this person may do anything in the chat."""
        return user_id in self._users

    def _is_permitted(self, incoming: Tap | Text | TextEdit) -> bool:
        return is_permitted(incoming, users=self._users, chat_id=self._entries.chat_id)
