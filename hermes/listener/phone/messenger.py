"""Messages to the chat that stand beside the asks: replies, and warnings."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from hermes.errors import ChatAway, ChatError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hermes.chat.outbox import Outbox
    from hermes.chat.screens.screen import Screen
    from hermes.listener.background import Background
    from hermes.listener.entries import Entries

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
        *,
        machine: str,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.machine = machine
        self._entries = entries
        self._outbox = outbox
        self._background = background
        self._sleep = sleep

    def say(self, screen: Screen, *, reply_to: int | None = None) -> None:
        """Send a message, again for about two minutes while Telegram cannot be reached; a failure is only logged.

        If Telegram's answers are lost, the message may come more than once.
        """
        self._background.spawn(self._said(screen, reply_to))

    def attach(self, screen: Screen, file: tuple[str, str], *, reply_to: int) -> None:
        """Send a document (name, content) with this caption; a failure is only logged."""
        self._background.spawn(self._attached(screen, file, reply_to))

    async def _attached(self, screen: Screen, file: tuple[str, str], reply_to: int) -> None:
        try:
            await self._outbox.document(self._entries.chat_id, screen, file, reply_to=reply_to)
        except ChatError as error:
            log.warning("a document was not sent: %s", error)

    def insist(self, screen: Screen) -> None:
        """Send a message, again and again until Telegram accepts it."""
        self._background.spawn(self.insisted(screen))

    def delete(self, chat_id: int, message_id: int) -> None:
        """Delete a message; a failure is only logged."""
        self._background.spawn(self._outbox.discard(chat_id, message_id))

    async def insisted(self, screen: Screen) -> None:
        """Return once Telegram has accepted this message."""
        while await self._failed(screen) is not None:
            await self._sleep(INSIST_PAUSE_S)

    async def _said(self, screen: Screen, reply_to: int | None) -> None:
        for pause_s in AGAIN_S:
            if not isinstance(await self._failed(screen, reply_to), ChatAway):
                return
            await self._sleep(pause_s)
        await self._failed(screen, reply_to)

    async def _failed(self, screen: Screen, reply_to: int | None = None) -> ChatError | None:
        """Send a message once, and return why that failed, None if it did not."""
        try:
            await self._outbox.send(self._entries.chat_id, screen, reply_to=reply_to)
        except ChatError as error:
            log.warning("a message was not sent: %s", error)
            return error
        return None
