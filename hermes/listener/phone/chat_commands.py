"""The commands in the chat: /open, /status, /lock, /help (also /start), and /sessions, /new and /stop for prompts."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from hermes.chat.screens import hints
from hermes.chat.screens.machines import Listening, status
from hermes.errors import ChatError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.chat.bot import Bot
    from hermes.chat.screens.screen import Look, Screen
    from hermes.listener.entries import Entries
    from hermes.listener.phone.machines import Machines
    from hermes.listener.phone.session_cards import SessionCards
    from hermes.model.entry import Entry
    from hermes.model.events import Text

log = logging.getLogger(__name__)

_COMMAND: Final = re.compile(r"/([a-z]+)(?:@(\w+))?(\s+[\w-]+)?\s*\Z", re.IGNORECASE)
_GREETINGS: Final = {"start": "help"}


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that was run, and the reply; None if it is for another bot, or the reply comes later."""

    screen: Screen | None


class Commands:
    """Runs chat commands. `connected` tells of each followed server whether it is connected now."""

    def __init__(
        self,
        entries: Entries,
        look: Look,
        cards: SessionCards,
        machines: Machines,
        *,
        has_prompts: bool,
        machine: str,
        connected: Mapping[str, bool],
    ) -> None:
        self._entries = entries
        self._look = look
        self._cards = cards
        self._machines = machines
        self._has_prompts = has_prompts
        self._machine = machine
        self._connected = connected
        self._username = ""

    async def introduce(self, bot: Bot) -> None:
        """Ask for the names of bot and chat, and register the commands with Telegram; a ChatError is only logged."""
        try:
            self._username = (await bot.me()).username
            chat = await bot.name(self._entries.chat_id)
            told = f"Listening as @{self._username} for {chat or self._entries.chat_id}. Ctrl-C stops."
            log.info("listening as @%s", self._username, extra={"told": told})
            prompts = hints.PROMPT_COMMANDS if self._has_prompts else {}
            await bot.set_commands({**hints.COMMANDS, **prompts})
        except ChatError as error:
            told = f"Listening, but: {error}. It is tried again. Ctrl-C stops."
            log.info("the commands were not registered: %s", error, extra={"told": told})

    async def take(self, text: Text) -> Ran | None:
        """Run the command in this text, and return it; None if the text is none. Raises StoreError."""
        found = _COMMAND.match((text.text or "").strip())
        name = found[1].lower() if found else ""
        if found and found[3] and name not in _GREETINGS:
            return None  # only /start has an argument: a pairing link that is pressed again sends "/start CODE"
        name = _GREETINGS.get(name, name)
        if found is None or name not in {*hints.COMMANDS, *hints.PROMPT_COMMANDS}:
            return None
        if found[2] and self._username and found[2].lower() != self._username.lower():
            return Ran(None)
        log.info("command /%s of user %d", name, text.user.id)
        if name in hints.PROMPT_COMMANDS and self._has_prompts:
            await self._cards.want(name, text)
            return Ran(None)
        return Ran(await self._answer(name))

    async def _answer(self, name: str) -> Screen:
        match name:
            case "sessions" | "new" | "stop":
                return hints.prompts_off(self._machine)
            case "open":
                return hints.reposted(await self._post_again())
            case "lock":
                await self._entries.store.lock_phone()
                return hints.locked(self._machine)
            case "status":
                servers = tuple(self._connected.items())
                shown = Listening(self._machine, servers, self._machines.all)
                return status(self._open(), shown, self._entries.now(), self._look)
            case _:
                return hints.help_screen(has_prompts=self._has_prompts)

    def _open(self) -> list[Entry]:
        return [entry for entry in self._entries.all() if entry.state.phase == "open"]

    async def _post_again(self) -> int:
        """Mark each open ask to be posted again at the end of the chat; its older message is deleted afterwards."""
        shown = [entry for entry in self._open() if entry.phone.message_id is not None]
        for entry in shown:
            await self._entries.change(entry.id, _anew)
        return len(shown)


def _anew(entry: Entry) -> Entry:
    phone = entry.phone
    if phone.message_id is None or entry.state.phase != "open":
        return entry
    return replace(entry, phone=replace(phone, message_id=None, drawn="", copies=(*phone.copies, phone.message_id)))
