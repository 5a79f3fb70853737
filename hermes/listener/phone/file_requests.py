"""Sends one file of a session's project to the phone: /get PATH, as a reply to a message about the session."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping
from pathlib import Path

from hermes.agents.prompting import Excludes, HasPrompts, way_name
from hermes.chat.failures import is_without_files
from hermes.chat.outbox import Outbox
from hermes.chat.screens import files as screens
from hermes.chat.screens.screen import Screen
from hermes.chat.screens.text import one_line
from hermes.errors import AgentAway, AgentError, AgentRefused, ChatError, ChatRefused, Undelivered
from hermes.listener.background import Background
from hermes.listener.entries import Entries
from hermes.listener.phone import project_file
from hermes.listener.phone.messenger import Messenger
from hermes.listener.phone.prompt_texts import PromptTexts
from hermes.model.ask import Source
from hermes.model.events import Text
from hermes.model.project_file import ProjectFile
from hermes.model.prompt import Target

log = logging.getLogger(__name__)


class FileRequests:
    """Takes in the requests for files. A phone that may not send prompts gets none: both need the same trust.

    `ways` lead to the agents of this machine, which tell what their permissions exclude. `private` are the files and
    folders that are Hermes' own. `remote` are the names of the servers on other machines.
    """

    def __init__(
        self,
        prompts: PromptTexts,
        entries: Entries,
        outbox: Outbox,
        background: Background,
        messenger: Messenger,
        *,
        ways: Mapping[str, HasPrompts],
        private: Collection[Path],
        remote: Collection[str],
    ) -> None:
        self.prompts = prompts
        self._entries = entries
        self._outbox = outbox
        self._background = background
        self._messenger = messenger
        self._ways = ways
        self._private = private
        self._remote = remote
        self._one_at_a_time = asyncio.Lock()  # each is in memory whole, and before it the newest messages

    async def want(self, path: str, text: Text) -> Screen | None:
        """Send the file with this path soon; or return why not."""
        target = await self.prompts.session_of(text)
        if target is None or not path:
            return screens.HOW_TO_FETCH
        source = target.source
        if source.server in self._remote or not self._entries.is_here(source):
            return screens.elsewhere(self._messenger.machine)
        if not Path(source.directory).is_absolute():
            return screens.NO_FOLDER
        log.info("a file of session %s is wanted by user %d", source.session_id, text.user.id)
        self._background.spawn(self._sent(path, target, text))
        return None

    async def _sent(self, path: str, target: Target, text: Text) -> None:
        try:
            async with self._one_at_a_time:
                excludes = await self._exclusions(target.source)
                said = await self._uploaded(path, target, text, excludes)
        except AgentError as error:
            log.info("a file was not sent, because nobody tells what is excluded: %s", error)
            said = screens.not_asked(path, target, error.said if isinstance(error, AgentRefused) else "")
        except ChatError as error:
            log.warning("a file was not sent: %s", error)
            may_not = isinstance(error, ChatRefused) and is_without_files(error)
            fault = screens.not_sent(path, may_be_there=isinstance(error, Undelivered))
            said = screens.NOT_ALLOWED if may_not else fault
        except Exception:  # the person must hear of a defect, too
            log.exception("a file was not sent")
            said = screens.failed(path, self._messenger.machine)
        if said is not None:
            self._messenger.say(said, reply_to=text.message_id)

    async def _exclusions(self, source: Source) -> Excludes:
        """Return what the permissions of a session exclude. Raises AgentError."""
        has = self._ways.get(way_name(source))
        if has is None:
            raise AgentAway(f"there is no way to {way_name(source)}")
        return await (await has.way()).exclusions(source)

    async def _uploaded(self, path: str, target: Target, text: Text, excludes: Excludes) -> Screen | None:
        """Send a file; or return why not. None as well if the phone was locked meanwhile. Raises ChatError."""
        directory, private = target.source.directory, self._private
        found = await asyncio.to_thread(project_file.fetch, directory, path, excludes=excludes, private=private)
        if await self._entries.store.is_phone_locked():
            return None
        if not isinstance(found, ProjectFile):
            return screens.not_fetched(path, target, found)
        caption, file = screens.fetched(path, target), (one_line(found.name) or "file", found.content)
        await self._outbox.upload(text.chat_id, caption, file, reply_to=text.message_id)
        return None
