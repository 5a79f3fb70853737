"""The commands in the chat: /open, /status, /away, /desk, /lock, /help (also /start), and those for prompts."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Final

from hermes.chat.bot import Bot
from hermes.chat.screens import hints
from hermes.chat.screens.machines import AWAY, at_desk, in_status, status
from hermes.chat.screens.screen import Look, Screen
from hermes.core.answer_clock import AnswerTimes
from hermes.errors import ChatAway, ChatError, StoreError
from hermes.listener.entries import Entries
from hermes.listener.notices import Notices
from hermes.listener.phone.chat_memory import Memory
from hermes.listener.phone.file_requests import FileRequests
from hermes.listener.phone.machines import Machines
from hermes.listener.phone.messenger import Messenger
from hermes.listener.phone.session_cards import SessionCards
from hermes.model.entry import Entry
from hermes.model.events import Text

log = logging.getLogger(__name__)

_COMMAND: Final = re.compile(r"/([a-z]+)(?:@(\w+))?(?:\s+(.*))?\Z", re.IGNORECASE | re.DOTALL)
_GREETINGS: Final = {"start": "help"}
_CODE: Final = re.compile(r"[\w-]*")
"""A pairing link that is pressed again sends "/start CODE"."""
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0


class Presence:
    """Does what /away and /desk say. The memory of the chat keeps it."""

    def __init__(self, memory: Memory, times: AnswerTimes, entries: Entries, notices: Notices) -> None:
        self.times = times
        self._memory = memory
        self._entries = entries
        self._notices = notices

    async def say(self, *, is_away: bool) -> None:
        """Keep where the person is; if away, let all that waits for the desk be posted. Raises NotSaved."""
        before = self._memory.at.is_away
        try:
            await self._memory.save(is_away=is_away)
        except StoreError:
            self._memory.note(is_away=before)  # the person reads that it is as before
            raise
        self.times.is_away = is_away
        log.info("the person is %s", "away" if is_away else "at the computer")
        for entry in self._entries.all():
            self._entries.wakes.put(entry.id, "phone")
        for notice in self._notices.all():
            self._notices.wake(notice.id)


class Commands:
    """Runs chat commands. `connected` tells of each followed server whether it is connected now."""

    def __init__(
        self,
        entries: Entries,
        look: Look,
        cards: SessionCards,
        machines: Machines,
        presence: Presence,
        files: FileRequests,
        messenger: Messenger,
        *,
        connected: Mapping[str, bool],
    ) -> None:
        self._entries = entries
        self._look = look
        self._cards = cards
        self._machines = machines
        self._presence = presence
        self._files = files
        self._messenger = messenger
        self._connected = connected
        self._username = ""

    async def introduce(self, bot: Bot, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Ask for the names of bot and chat, and register the commands with Telegram; try again until it works."""
        pause_s, said = FIRST_PAUSE_S, ""
        while True:
            try:
                await self._register(bot)
            except ChatError as error:
                if str(error) != said:
                    said = str(error)
                    told = f"Listening, but: {error}. It is tried again. Ctrl-C stops."
                    log.info("the commands are not registered yet: %s", error, extra={"told": told})
                wanted_s = error.retry_after_s if isinstance(error, ChatAway) else None
                await sleep(pause_s if wanted_s is None else wanted_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            else:
                return

    async def _register(self, bot: Bot) -> None:
        await self.learn_name(bot)
        chat = await bot.name(self._entries.chat_id)
        prompts = hints.PROMPT_COMMANDS if self._files.prompts.is_on else {}
        await bot.set_commands({**hints.COMMANDS, **prompts})
        told = f"Listening as @{self._username} for {chat or self._entries.chat_id}. Ctrl-C stops."
        log.info("listening as @%s", self._username, extra={"told": told})

    async def learn_name(self, bot: Bot) -> None:
        """Ask for the name of the bot, which tells its commands from those of other bots. Raises ChatError.

        While it is not known, a command that names any bot counts: to lock once too often does no harm.
        """
        self._username = (await bot.me()).username

    def is_lock(self, text: Text) -> bool:
        """Tell whether this text locks the phone."""
        return self._named(text) == "lock"

    def is_command(self, text: Text) -> bool:
        """Tell whether this text is a command for this bot."""
        return self._named(text) in {*_GREETINGS, *hints.COMMANDS, *hints.PROMPT_COMMANDS}

    def _named(self, text: Text) -> str:
        """Return what stands in the place of a command, "" if there is none, or it is for another bot."""
        found = _COMMAND.match((text.text or "").strip())
        return "" if found is None or self._is_for_another(found[2]) else found[1].lower()

    def _is_for_another(self, bot: str | None) -> bool:
        return bool(bot and self._username) and (bot or "").lower() != self._username.lower()

    async def take(self, text: Text, *, is_answer: bool) -> bool:
        """Run the command in this text, and reply; tell whether it is one, also of another bot. Raises StoreError.

        Words behind a command change nothing, except for /get: "/lock now" must lock, and not go to an agent. The
        answer to an ask may look like another command with words behind it, as /get and a path of a website does, and
        is no command then. In a group, a command that names another bot is for that one, whatever it is.
        """
        found = _COMMAND.match((text.text or "").strip())
        if found is None:
            return False
        given, bot, words = found[1].lower(), found[2], found[3] or ""
        name = _GREETINGS.get(given, given)
        is_ours = name in {*hints.COMMANDS, *hints.PROMPT_COMMANDS}
        if self._is_for_another(bot):
            return is_ours or (text.group and not is_answer)
        if not is_ours or (given in _GREETINGS and not _CODE.fullmatch(words)):
            return False
        if is_answer and (given == "get" or (words and given not in {"lock", *_GREETINGS})):
            return False
        log.info("command /%s of user %d", name, text.user.id)
        about_sessions = name in hints.PROMPT_COMMANDS
        said = await (self._answer_about_sessions(name, words, text) if about_sessions else self._answer(name, text))
        if said is not None:
            self._messenger.say(said, reply_to=text.message_id)
        return True

    async def _answer_about_sessions(self, name: str, words: str, text: Text) -> Screen | None:
        """Return the answer; None if only a list comes, which is made later."""
        if not self._files.prompts.is_on:
            return hints.prompts_off(self._messenger.machine)
        if name == "get":
            return await self._files.want(words, text)
        await self._cards.want(name, text)
        return hints.WORDS_BEHIND_NEW if name == "new" and words else None

    async def _answer(self, name: str, text: Text) -> Screen:
        match name:
            case "open":
                shown = await self._post_again()
                is_apart = any(entry.phone.thread_id != text.thread_id for entry in shown)
                return hints.reposted(len(shown), coming=len(self._open()) - len(shown), is_apart=is_apart)
            case "lock":
                await self._entries.store.lock_phone()
                return hints.locked(self._messenger.machine)
            case "away":
                await self._presence.say(is_away=True)
                return AWAY
            case "desk":
                await self._presence.say(is_away=False)
                return at_desk(self._presence.times.at_desk_s, self._messenger.machine)
            case "status":
                return self._status()
            case _:
                return hints.help_screen(has_prompts=self._files.prompts.is_on)

    def _status(self) -> Screen:
        times, machines, now_s = self._presence.times, self._machines.all, self._entries.now()
        presence = in_status(is_away=times.is_away, post_after_s=times.at_desk_s)
        return status(self._open(), self._messenger.machine, self._connected, machines, presence, now_s, self._look)

    def _open(self) -> list[Entry]:
        return [entry for entry in self._entries.all() if entry.state.phase == "open"]

    async def _post_again(self) -> list[Entry]:
        """Mark the open asks to be posted again at the end of the chat; return them as they were.

        The older message of each is deleted afterwards.
        """
        shown = [entry for entry in self._open() if entry.phone.message_id is not None]
        for entry in shown:
            with self._entries.apart(entry.id):
                await self._entries.change(entry.id, _anew)
        return shown


def _anew(entry: Entry) -> Entry:
    phone = entry.phone
    if phone.message_id is None or entry.state.phase != "open":
        return entry
    return replace(entry, phone=replace(phone, message_id=None, drawn="", copies=(*phone.copies, phone.message_id)))
