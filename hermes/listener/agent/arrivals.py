"""Takes in the asks of one agent's server, by its events and its lists, each with its titles and its last words.

The news of earlier asks goes the same way.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from typing import Final

from hermes.agents.server import AgentServer
from hermes.errors import AgentAway, AgentError, StoreError
from hermes.listener.agent.errands import Errands
from hermes.listener.agent.intake import Intake
from hermes.listener.background import Background
from hermes.listener.entries import Entries
from hermes.model.ask import Ask
from hermes.model.errand import Doubted
from hermes.model.signals import Asked, Signal
from hermes.model.verdicts import Dead

log = logging.getLogger(__name__)

PATIENCE_S: Final = 5.0
"""Events wait this long, at most, for the lists of all folders: OpenCode may need 30 s to start one folder."""
FIRST_LIST_PAUSE_S: Final = 0.5
LONGEST_LIST_PAUSE_S: Final = 60.0
LEARN_PAUSES_S: Final = (0.0, 0.5, 2.0, 8.0, 30.0)
"""The pauses before each try to learn what an ask went to the phone without."""


class Arrivals:
    """Takes in the asks and the news of one server. It lists a folder that does not answer again for `ttl_s`."""

    def __init__(
        self,
        server: AgentServer,
        entries: Entries,
        intake: Intake,
        errands: Errands,
        background: Background,
        *,
        ttl_s: float,
        monotonic: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.ttl_s = ttl_s
        self._server = server
        self._entries = entries
        self._intake = intake
        self._errands = errands
        self._background = background
        self._monotonic = monotonic
        self._sleep = sleep
        self._listings = 0
        self._learning: set[str] = set()

    async def take_listed(self, folders: Collection[str]) -> int:
        """Take in what is pending in these folders, and return how many asks that is. Raises StoreError.

        A folder of which not all is known by then is listed again and again in the background.
        """
        count, unknown = await self._list_all(folders, until_s=asyncio.get_running_loop().time() + PATIENCE_S)
        if unknown:
            self._background.spawn(self._list_until_known(unknown))
        return count

    async def take(self, signal: Signal) -> None:
        """Take in what an event told: a new ask, or the news of earlier ones or of a session.

        Raises AgentError, StoreError.
        """
        if isinstance(signal, Asked):
            await self._take_ask(signal)
        else:
            await self._intake.take(signal, heard_by=self._server.name)

    async def _take_ask(self, asked: Asked) -> None:
        """Take in an ask; one that no entry has, with its context."""
        source = asked.ask.source
        is_unknown = self._entries.find(source) is None
        if is_unknown:
            asked = Asked(await self._server.context(asked.ask))
        await self._intake.take(asked, heard_by=self._server.name)
        entry = self._entries.find(source)
        if entry is not None and is_unknown and not asked.ask.source.session_title:
            # Its session could not be read: the news of its end may have come before, when no entry had it.
            self._errands.hint(entry.id, Doubted())
        self._learn_later(asked.ask)

    async def _list_all(self, folders: Collection[str], *, until_s: float | None = None) -> tuple[int, set[str]]:
        """Take in what is pending in these folders; wait for their lists until then, by the time of the event loop.

        Return the number of asks, and the folders of which not all is known.
        """
        count, unknown = 0, set()
        for folder in sorted(folders):
            # One folder with a broken configuration, or one broken record, must not hide the questions of all others.
            try:
                async with asyncio.timeout_at(until_s):
                    pending = await self._server.pending(folder)
            except (AgentError, TimeoutError) as error:
                self._log_unknown(folder, error)
                unknown.add(folder)
                continue
            if not pending.is_whole:
                unknown.add(folder)
            for ask in pending.asks:
                try:
                    await self._take_one(ask)
                    count += 1
                except AgentError as error:
                    self._log_unknown(folder, error)
                    unknown.add(folder)
                    if isinstance(error, AgentAway):
                        break  # each of the others would wait as long
        return count, unknown

    def _log_unknown(self, folder: str, error: AgentError | TimeoutError) -> None:
        why = str(error) or "it takes long"
        log.warning("server %s: the questions of %s are not known yet: %s", self._server.name, folder, why)

    async def _list_until_known(self, folders: set[str]) -> None:
        """List again and again: no event tells of what was asked before, so nobody would ever see it."""
        self._listings += 1
        turn = self._listings
        pause_s, until_s = FIRST_LIST_PAUSE_S, self._monotonic() + self.ttl_s
        while folders and self._listings == turn and self._monotonic() < until_s:
            await self._sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_LIST_PAUSE_S)
            try:
                _, folders = await self._list_all(folders)
                # An ask may have ended during its listing, and its event came when no entry had it.
                for entry in self._entries.ours():
                    if entry.ask.source.server == self._server.name:
                        self._errands.hint(entry.id, Doubted())
            except StoreError as error:
                log.error("server %s: %s", self._server.name, error)  # noqa: TRY400 (a full disk, not a defect)

    async def _take_one(self, ask: Ask) -> None:
        """Take in a listed ask, except a dead one: OpenCode lists it for ever."""
        if await self._entries.is_closed(ask.source):
            return
        if self._entries.find(ask.source) is None:
            if isinstance(await self._server.verdict(ask), Dead):
                log.info("request %s is listed, but its session no longer waits", ask.source.request_id)
                return
            ask = await self._server.context(ask)
        await self._intake.take(Asked(ask), heard_by=self._server.name)
        self._learn_later(ask)

    def _learn_later(self, ask: Ask) -> None:
        entry = self._entries.find(ask.source)
        if entry is not None and _is_bare(entry.ask) and entry.id not in self._learning:
            self._learning.add(entry.id)
            self._background.spawn(self._learn(ask, entry.id))

    async def _learn(self, ask: Ask, entry_id: str) -> None:
        """Complete an ask whose server did not tell all of it when it came: nobody allows half a command for good.

        `ask` is what the server told, before the rules for permissions took their part away.
        """
        try:
            for pause_s in LEARN_PAUSES_S:
                await self._sleep(pause_s)
                entry = self._entries.get(entry_id)
                if entry is None or entry.state.phase != "open" or not _is_bare(entry.ask):
                    return
                told = Asked(await self._server.context(ask))
                with suppress(StoreError):
                    await self._intake.take(told, heard_by=self._server.name)
        finally:
            self._learning.discard(entry_id)


def _is_bare(ask: Ask) -> bool:
    """Tell whether an ask went to the phone without its titles, or without all of its command."""
    return not ask.source.session_title or (ask.permission is not None and ask.permission.partial)
