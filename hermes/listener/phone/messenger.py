"""Messages to the chat that stand beside the asks: replies, and warnings."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from hermes.chat.outbox import Outbox
from hermes.chat.screens.screen import Screen
from hermes.errors import ChatAway, ChatError, NotSaved
from hermes.listener.background import Background
from hermes.listener.entries import Entries
from hermes.listener.phone.chat_link import ChatLink

log = logging.getLogger(__name__)

INSIST_PAUSE_S: Final = 5.0
AGAIN_S: Final = (2.0, 5.0, 10.0, 20.0, 40.0, 45.0)
"""The pauses after which a message is sent again while Telegram cannot be reached."""


class Messenger:
    """Sends messages in the background, to the chat in which asks are posted now; they name this `machine`."""

    def __init__(
        self,
        entries: Entries,
        outbox: Outbox,
        background: Background,
        link: ChatLink,
        *,
        machine: str,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.machine = machine
        self._entries = entries
        self._outbox = outbox
        self._background = background
        self.link = link
        self._sleep = sleep

    def say(self, screen: Screen, *, reply_to: int | None = None) -> None:
        """Send a message, again for about two minutes while Telegram cannot be reached; a failure is only logged.

        If Telegram's answers are lost, the message may come more than once.
        """
        self._background.spawn(self._until_done(partial(self._send, screen, reply_to), "a message was not sent"))

    def attach(self, screen: Screen, file: tuple[str, str], *, reply_to: int) -> None:
        """Send a document (name, content) with this caption, as `say` does."""
        send = partial(self._outbox.document, self._entries.chat_id, screen, file, reply_to=reply_to)
        self._background.spawn(self._until_done(send, "a document was not sent"))

    def insist(self, screen: Screen) -> None:
        """Send a message, again and again until Telegram accepts it."""
        self._background.spawn(self.insisted(screen))

    def delete(self, chat_id: int, message_id: int) -> None:
        """Delete a message, as `say` sends one."""
        delete = partial(self._outbox.delete, chat_id, message_id)
        self._background.spawn(self._until_done(delete, f"message {message_id} was not deleted"))

    def why_not_saved(self, error: NotSaved) -> tuple[str, str]:
        """Return where and why something could not be saved, in words for a person."""
        if not error.disk_full:
            return self.machine, "see its log"
        is_shared = self._entries.store.is_shared
        return "the server of your database" if is_shared else self.machine, "disk full"

    async def insisted(self, screen: Screen) -> None:
        """Return once Telegram has accepted this message."""
        while await _fault_of(partial(self._send, screen), "a message was not sent") is not None:
            await self._sleep(INSIST_PAUSE_S)

    async def _send(self, screen: Screen, reply_to: int | None = None) -> None:
        silent = reply_to is None and self._entries.is_quiet()
        await self._outbox.send(self._entries.chat_id, screen, reply_to=reply_to, silent=silent)
        self.link.sent()

    async def _until_done(self, do: Callable[[], Awaitable[object]], failure: str) -> None:
        """Do this, again while Telegram cannot be reached; `failure` begins the line of the log."""
        for pause_s in AGAIN_S:
            if not isinstance(await _fault_of(do, failure), ChatAway):
                return
            await self._sleep(pause_s)
        await _fault_of(do, failure)


async def _fault_of(do: Callable[[], Awaitable[object]], failure: str) -> ChatError | None:
    """Do this once; log and return why it failed, None if it did not."""
    try:
        await do()
    except ChatError as error:
        log.warning("%s: %s", failure, error)
        return error
    return None
