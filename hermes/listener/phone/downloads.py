"""Brings the files of prompts from Telegram into the store, and removes them once their prompts are over.

The prompt is saved before its files are here. A download that breaks off is tried again, also after a restart, for as
long as the prompt may begin by itself.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from hermes.chat.bot import Bot
from hermes.chat.failures import is_about_bot, is_too_big, is_unavailable, is_without_path
from hermes.core import prompt_files, prompts
from hermes.core.prompt_routing import refusal
from hermes.core.prompts import STARTS_S
from hermes.errors import ChatAway, ChatRefused, Missing, NoRoom, NotHeard, NotSaved, StoreError
from hermes.listener.phone.transcribing import Transcriber
from hermes.listener.prompts import Prompts
from hermes.listener.workers import LOCKED_LOOK_S
from hermes.model.files import File
from hermes.model.prompt import Prompt
from hermes.model.prompt_events import Declined, Fetched, Heard, PromptEvent
from hermes.storage.prompt_files import PromptFolder
from hermes.storage.store import Store

log = logging.getLogger(__name__)

PATIENCE_S: Final = 60.0
"""A file that Telegram does not have after this time counts as one that it never has again."""
UNREACHABLE: Final = "the Bot API server gives no address for its files; if it runs with `--local`, start it without"
GONE: Final = "Telegram does not have that file any more; please send it again"
NO_ROOM: Final = "the files that wait to be sent take 500 MB already; cancel some prompts, or send this one again later"
VOICE_OFF: Final = "no program hears voice notes any more; see `[prompts] transcribe` in the configuration"
FULL: Final = "the disk is full where Hermes keeps such files; free some space there, then send it again"


class Downloads:
    """The worker for the files of prompts.

    - `sounds`: the folder of voice notes while `transcriber` hears them; None: nobody does.
    - `projects`: those that the phone may write to, () for all; None if prompts are off.
    - `keep_s`: files are kept for so long at most, but as long as their prompt may begin by itself.
    """

    def __init__(
        self,
        prompts: Prompts,
        store: Store,
        sounds: PromptFolder,
        bot: Bot,
        transcriber: Transcriber | None,
        projects: tuple[str, ...] | None,
        *,
        keep_s: float,
    ) -> None:
        self._prompts = prompts
        self._store = store
        self._files = store.files
        self._sounds = sounds
        self._bot = bot
        self._transcriber = transcriber
        self._projects = projects
        self._keep_s = max(keep_s, STARTS_S)
        self._turn = asyncio.Lock()

    async def step(self, prompt_id: str) -> float | None:
        """Step: bring the next file of this prompt. Raises ChatError and StoreError."""
        prompt = self._prompts.get(prompt_id)
        if prompt is None:
            return None
        if prompts.is_over(prompt) and prompt_files.files_of(prompt.parts):
            await self._files.remove(prompt_id)
        if not prompts.wants_files(prompt, self._prompts.now()):
            return None
        if await self._store.is_phone_locked():
            return LOCKED_LOOK_S
        message_id, file = prompt_files.lacking(prompt)[0]
        await self._prompts.apply(prompt_id, await self._event(prompt, message_id, file))
        return 0.0

    async def tidy(self) -> None:
        """Remove all files of prompts that are over, unknown, or too old. Raises StoreError."""
        for prompt_id in await self._files.prompt_ids():
            if not await self._may_be_sent(prompt_id):
                await self._files.remove(prompt_id)

    async def _may_be_sent(self, prompt_id: str) -> bool:
        prompt = self._prompts.get(prompt_id)
        try:
            prompt = await self._store.prompts.get(prompt_id) if prompt is None else prompt
        except Missing:
            return False
        except StoreError:  # a newer Hermes may have written it
            return True
        return not prompts.is_over(prompt) and prompt.asked_s >= self._prompts.now() - self._keep_s

    async def _event(self, prompt: Prompt, message_id: int, file: File) -> PromptEvent:
        """Return what came of the download. Raises ChatError and NotSaved: try it again."""
        if prompt.target is not None and (why := refusal(prompt.target.source, self._projects)):
            return Declined(why)
        try:
            bring = self._heard if file.is_voice else self._fetched
            return await bring(prompt, message_id, file)
        except NotHeard as error:
            return Declined(str(error))
        except NoRoom:
            return Declined(NO_ROOM)
        except NotSaved as error:
            if not error.disk_full:
                raise
            log.error("prompt %s: %s", prompt.id, error)  # noqa: TRY400 (a full disk, not a defect)
            return Declined(FULL)
        except ChatRefused as error:
            return Declined(self._why(error, prompt))

    async def _fetched(self, prompt: Prompt, message_id: int, file: File) -> PromptEvent:
        """Bring a file into the store. Raises ChatError, NoRoom and NotSaved."""
        async with self._turn:  # so that only one file is in memory
            data = await self._bot.download(file.file_id)
            mime = prompt_files.type_of(data)
            if mime is None:
                return Declined(prompt_files.unknown(file, prompt.target))
            await self._files.write(prompt.id, message_id, data)
            return Fetched(message_id, mime, len(data))

    async def _heard(self, prompt: Prompt, message_id: int, file: File) -> PromptEvent:
        """Return the words of a voice note. Raises NotHeard, ChatError, NoRoom and NotSaved."""
        if self._transcriber is None:
            raise NotHeard(VOICE_OFF)
        data = await self._bot.download(file.file_id)
        async with self._sounds.sound(prompt.id, message_id, data) as path:
            return Heard(message_id, await self._transcriber.text_of(path))

    def _why(self, error: ChatRefused, prompt: Prompt) -> str:
        """Return why Telegram does not give a file. Raises ChatError: it may give it later."""
        if is_about_bot(error):
            raise error
        if is_too_big(error):
            return prompt_files.TOO_LARGE
        if is_unavailable(error) and 0 <= self._prompts.now() - prompt.asked_s < PATIENCE_S:
            raise ChatAway("Telegram does not give the file now") from error
        log.warning("prompt %s: its file cannot be downloaded: %s", prompt.id, error)
        return UNREACHABLE if is_without_path(error) else GONE
