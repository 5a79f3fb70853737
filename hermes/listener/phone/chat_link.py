"""The chat that Hermes writes to: whether it works, and a group that becomes a supergroup."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from hermes.errors import ChatRefused, InUse, NotSaved
from hermes.listener.entries import Entries
from hermes.listener.kept import Kept
from hermes.listener.phone.chat_memory import Memory
from hermes.model.entry import Entry, Phone
from hermes.model.notice import Place

log = logging.getLogger(__name__)


class ChatLink:
    """Keeps the id of the chat and the sentence about why it does not work, which `hermes status` shows."""

    def __init__(self, entries: Entries, kept: Kept, memory: Memory) -> None:
        self._entries = entries
        self._kept = kept
        self._memory = memory
        # Trouble that an earlier run saved counts as poll trouble: a good poll clears it, a refused message sets it.
        self._poll_trouble = memory.at.trouble
        entries.note_message(memory.at.newest_message)

    async def in_trouble(self, sentence: str) -> None:
        """Log once and save why the chat does not work, until it works again.

        A process that is no longer the phone side may not call Telegram at all: that is no trouble of the chat.
        """
        if sentence == self._memory.at.trouble or not self._entries.store.is_phone():
            return
        log.error("the chat does not work: %s", sentence)
        try:
            await self._memory.save(trouble=sentence)
        except NotSaved as error:
            log.error("%s", error)  # noqa: TRY400 (a full disk, not a defect)

    async def poll_failed(self, sentence: str) -> None:
        """Note trouble that only a good poll clears."""
        self._poll_trouble = sentence
        await self.in_trouble(sentence)

    def polled(self) -> None:
        """Clear trouble with polls."""
        self._clear(self._poll_trouble)
        self._poll_trouble = ""  # a refused message may have the same sentence later; a poll must not clear that

    def sent(self) -> None:
        """Clear trouble with messages, since the chat has accepted one, or let the bot in again."""
        if self._memory.at.trouble != self._poll_trouble:
            self._clear(self._memory.at.trouble)

    @asynccontextmanager
    async def heeding_refusals(self) -> AsyncIterator[None]:
        """Handle the refusal of a message, and raise it again."""
        try:
            yield
        except ChatRefused as error:
            await self.refused(error)
            raise

    async def refused(self, error: ChatRefused) -> None:
        """Handle a refused message: follow a group that became a supergroup, note a blocked bot.

        An error of the store is only logged: the next refusal does it again.
        """
        if error.moved_to is not None:
            try:
                await self.moved(error.moved_to)
            except NotSaved as unsaved:
                log.error("%s", unsaved)  # noqa: TRY400 (a full disk, not a defect)
        elif error.blocked:
            await self.in_trouble(str(error))

    async def moved(self, chat_id: int) -> None:
        """Follow a group that became a supergroup, and post its asks again there.

        Raises NotSaved; a second call then does the rest.
        """
        if chat_id != self._entries.chat_id:
            log.warning("the group became a supergroup: its id is now %d", chat_id)
            moved_from = self._memory.at.moved_from or self._entries.chat_id
            await self._memory.save(chat_id=chat_id, moved_from=moved_from, newest_message=0)
            self._entries.chat_id, self._entries.newest_message = chat_id, 0
        await self.bring_along()

    async def leave_other_bot(self) -> None:
        """Let each open ask and record be posted again, if another bot has sent its messages.

        Raises NotSaved; the next start then does the rest.
        """
        if not self._memory.at.takes_over:
            return
        for entry in self._entries.all():
            with self._entries.apart(entry.id), suppress(InUse):
                await self._entries.change(entry.id, Entry.unposted)
        await self._kept.forget_messages()
        await self._memory.save(takes_over=False)

    async def bring_along(self) -> None:
        """Post what is open in another chat again; `posting` leaves word on its messages there, if it can.

        Raises NotSaved.
        """
        chat_id = self._entries.chat_id

        def brought(entry: Entry) -> Entry:
            return entry if entry.phone.chat_id in {0, chat_id} else replace(entry, phone=_moved(entry.phone, chat_id))

        for entry in self._entries.all():
            with self._entries.apart(entry.id), suppress(InUse):  # its next refusal brings it along
                await self._entries.change(entry.id, brought)
        await self._kept.cards.bring_along(chat_id)
        for prompt in self._kept.prompts.all():
            self._kept.prompts.wake(prompt.id)

    def _clear(self, trouble: str) -> None:
        if trouble and self._memory.at.trouble == trouble:
            log.info("the chat works again")
            self._memory.note(trouble="")


def _moved(phone: Phone, chat_id: int) -> Phone:
    """Return the phone of an ask that is not posted in this chat yet, and leaves its messages in another one."""
    left = (Place(phone.chat_id, message_id) for message_id in sorted(phone.messages))
    return Phone(chat_id, left=(*phone.left, *left))
