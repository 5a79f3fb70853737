"""The commands that Hermes takes in the chat: /open, /status, /lock, /help, and /start, which is the same as /help."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from hermes.chat.screens import notices
from hermes.errors import ChatError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes.chat.bot import Bot
    from hermes.chat.screens.screen import Look, Screen
    from hermes.listener.entries import Book
    from hermes.model.entry import Entry
    from hermes.model.events import Text

log = logging.getLogger(__name__)

_COMMAND: Final = re.compile(r"/([a-z]+)(?:@(\w+))?(\s+[\w-]+)?\s*\Z", re.IGNORECASE)
_GREETINGS: Final = {"start": "help"}


class Commands:
    """Runs chat commands and replies. `connected()` returns (name, whether it is connected) of each followed server."""

    def __init__(
        self,
        book: Book,
        look: Look,
        *,
        machine: str,
        say: Callable[..., None],
        connected: Callable[[], Sequence[tuple[str, bool]]],
        now: Callable[[], float],
    ) -> None:
        self._book = book
        self._look = look
        self._machine = machine
        self._say = say
        self._connected = connected
        self._now = now
        self._username = ""

    async def introduce(self, bot: Bot) -> None:
        """Ask for the bot's user name and register the commands with Telegram; a ChatError is only logged."""
        try:
            self._username = (await bot.me()).username
            await bot.set_commands(notices.COMMANDS)
        except ChatError as error:
            log.info("the commands were not registered: %s", error)

    def take(self, text: Text) -> bool:
        """Run the command in this text; return whether the text is one. Raises StoreError, such as NotSaved."""
        found = _COMMAND.match((text.text or "").strip())
        name = found[1].lower() if found else ""
        if found and found[3] and name not in _GREETINGS:
            return False  # only /start has an argument: a pairing link that is pressed again sends "/start CODE"
        name = _GREETINGS.get(name, name)
        if found is None or name not in notices.COMMANDS:
            return False
        if found[2] and self._username and found[2].lower() != self._username.lower():
            return True  # it is for another bot
        log.info("command /%s of user %d", name, text.user.id)
        self._say(self._answer(name), reply_to=text.message_id)
        return True

    def _answer(self, name: str) -> Screen:
        match name:
            case "open":
                return notices.reposted(self._post_again())
            case "lock":
                self._book.store.lock_phone()
                return notices.locked(self._machine)
            case "status":
                return notices.status(self._open(), self._connected(), self._machine, self._now(), self._look)
            case _:
                return notices.help_screen()

    def _open(self) -> list[Entry]:
        return [entry for entry in self._book.entries() if entry.state.phase == "open"]

    def _post_again(self) -> int:
        """Mark each open ask to be posted again at the end of the chat; its older message is deleted afterwards."""
        shown = [entry for entry in self._open() if entry.phone.message_id is not None]
        for entry in shown:
            self._book.change(entry.id, _anew)
        return len(shown)


def _anew(entry: Entry) -> Entry:
    phone = entry.phone
    if phone.message_id is None:
        return entry
    return replace(entry, phone=replace(phone, message_id=None, drawn="", copies=(*phone.copies, phone.message_id)))
