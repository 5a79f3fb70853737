"""Follows one agent's server: its events and its lists go to intake, and its ups and downs to the errands.

Events are not replayed: each connection begins with the list of pending asks, and with a look at all that was open.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from hermes.agents.opencode.adapter import AGENT
from hermes.agents.opencode.events import Connected, Disposed, Heard, Lost, follow
from hermes.errors import AgentError, StoreError
from hermes.model.chat_memory import Followed
from hermes.model.errand import Doubted, NewsCame, ServerBack
from hermes.model.signals import Asked, Quiet
from hermes.model.verdicts import Dead

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from hermes.agents.opencode.client import OpenCodeServer
    from hermes.listener.agent.errands import Errands
    from hermes.listener.agent.intake import Intake
    from hermes.listener.background import Background
    from hermes.listener.entries import Book
    from hermes.model.ask import Ask
    from hermes.model.entry import Entry
    from hermes.model.signals import Signal

log = logging.getLogger(__name__)

FOLLOW_PAUSE_S: Final = 5.0
FIRST_LIST_PAUSE_S: Final = 0.5
LONGEST_LIST_PAUSE_S: Final = 60.0
LEARN_PAUSES_S: Final = (0.0, 0.5, 2.0, 8.0, 30.0)
"""The pauses before each try to learn what an ask went to the phone without."""
LONGEST_AWAY_S: Final = 7 * 86400.0
"""After a longer absence, asks are looked for in the sessions of this time alone."""


class Follower:
    """Follows one server.

    `heard_s` is the time (epoch) until which its events are known. `connected` is for others to read: it holds the
    server's name, and whether it is connected now.
    """

    def __init__(  # noqa: PLR0913 (one argument for each thing that it joins)
        self,
        server: OpenCodeServer,
        book: Book,
        intake: Intake,
        errands: Errands,
        background: Background,
        connected: dict[str, bool],
        *,
        ttl_s: float,
        heard_s: float,
        monotonic: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.server = server
        self._book = book
        self._intake = intake
        self._errands = errands
        self._background = background
        self._connected = connected
        self._ttl_s = ttl_s
        self._heard_s = heard_s
        self._monotonic = monotonic
        self._sleep = sleep
        self._listings = 0
        self._learning: set[str] = set()
        self.is_connected = False

    @property
    def is_connected(self) -> bool:
        """Tell whether its events arrive now, and its asks are known."""
        return self._connected[self.server.name]

    @is_connected.setter
    def is_connected(self, is_so: bool) -> None:
        self._connected[self.server.name] = is_so

    async def run(self) -> None:
        """Follow the events for ever."""
        while True:
            try:
                async for told in follow(self.server):
                    match told:
                        case Connected():
                            await self.compare()
                            self.is_connected = True
                        case Heard(signal):
                            await self._hear(signal)
                        case Disposed(directory):
                            self._disposed(directory)
                        case Lost():
                            self._note_heard()
                            self.is_connected = False
            except (StoreError, AgentError) as error:
                log.error("server %s: %s", self.server.name, error)  # noqa: TRY400 (an outage, not a defect)
            # The last event may not be saved, so later events do not count as heard until the list was read again.
            self.is_connected = False
            await self._sleep(FOLLOW_PAUSE_S)

    def followed(self) -> Followed:
        """Return until when the events are known."""
        self._note_heard()
        return Followed(self.server.name, self._heard_s)

    def _note_heard(self) -> None:
        """While it is connected all is known up to its last event, a heartbeat at least."""
        if self.is_connected:
            self._heard_s = self.server.living.heard_s

    async def compare(self) -> None:
        """Take in what the server lists, and look at all entries of this server. Raises AgentError, StoreError."""
        mine = self._entries()
        # Asks of the time in which nobody followed count as if they came just now.
        away_s = min(max(0.0, self._book.now() - self._heard_s), LONGEST_AWAY_S)
        folders = set(await self.server.directories(self._ttl_s + away_s, now=self._book.now))
        folders |= {entry.ask.source.directory for entry in mine}
        count, unknown = await self._list_all(folders - {""})
        if unknown:
            self._background.spawn(self._list_until_known(unknown))
        for entry in self._without_server():
            # A hook told of an ask whose end this server had already told: it can be proven here alone.
            self._errands.hint(entry.id, NewsCame(Quiet(entry.ask.source.session_id), self.server.name))
        for entry in mine:
            # A request that is still listed may be dead by now, so the listed ones are looked at, too.
            self._errands.hint(entry.id, ServerBack())
        self._look_for_requests()
        self._heard_s = self._book.now()
        log.info("server %s: connected, %d questions are open there", self.server.name, count)

    def doubt(self) -> None:
        """Look whether an ask ended without an event."""
        if self.is_connected:
            for entry in self._entries():
                self._errands.hint(entry.id, Doubted())

    def _entries(self) -> list[Entry]:
        return [entry for entry in self._book.entries() if entry.ask.source.server == self.server.name]

    def _without_server(self) -> list[Entry]:
        def is_one(entry: Entry) -> bool:
            source = entry.ask.source
            has_no_server = source.agent == AGENT and source.request_id is not None and not source.server
            return has_no_server and entry.ask.answerable and entry.state.phase == "open"

        return [entry for entry in self._book.entries() if is_one(entry)]

    def _look_for_requests(self) -> None:
        for entry in self._book.entries():
            if entry.state.phase == "matching":
                self._errands.hint(entry.id, Doubted())

    # --- events -----------------------------------------------------------------------------------------------------

    async def _hear(self, signal: Signal) -> None:
        """Take one event in. A new ask is shown with its context, which the stream most often has brought."""
        if isinstance(signal, Asked):
            await self._take_new(signal)
            self._look_for_requests()
        else:
            self._intake.take(signal, heard_by=self.server.name)

    def _disposed(self, directory: str) -> None:
        """Look at all asks of this directory: they vanished with its instance, and no event of their own tells so."""
        for entry in self._entries():
            if directory in {"", entry.ask.source.directory}:
                self._errands.hint(entry.id, NewsCame(Quiet(entry.ask.source.session_id), self.server.name))

    async def _take_new(self, asked: Asked) -> None:
        source = asked.ask.source
        is_known = self._book.find(source) is not None or self._book.is_closed(source)
        if not is_known:
            asked = Asked(await self.server.context(asked.ask))
        self._intake.take(asked, heard_by=self.server.name)
        entry = self._book.find(source)
        if entry is not None and not is_known and not asked.ask.source.session_title:
            # Its session could not be read: the news of its end may have come before, when no entry had it.
            self._errands.hint(entry.id, Doubted())
        self._learn_later(asked.ask)

    # --- lists ------------------------------------------------------------------------------------------------------

    async def _list_all(self, folders: Collection[str]) -> tuple[int, set[str]]:
        """Take in what is pending in these folders; return the number of asks, and the folders that did not answer."""
        count, unknown = 0, set()
        for folder in sorted(folders):
            try:
                for ask in await self.server.questions(folder):
                    await self._take_listed(ask)
                    count += 1
            except AgentError as error:
                # One folder with a broken configuration must not hide the questions of all others.
                log.warning("server %s: the questions of %s are not known yet: %s", self.server.name, folder, error)
                unknown.add(folder)
        return count, unknown

    async def _list_until_known(self, folders: set[str]) -> None:
        """List again and again: no event tells of what is pending there, so nobody would ever see it."""
        self._listings += 1
        turn = self._listings
        pause_s, until_s = FIRST_LIST_PAUSE_S, self._monotonic() + self._ttl_s
        while folders and self._listings == turn and self._monotonic() < until_s:
            await self._sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_LIST_PAUSE_S)
            try:
                _, folders = await self._list_all(folders)
                # An ask may have ended during its listing, and its event came when no entry had it.
                for entry in self._entries():
                    self._errands.hint(entry.id, Doubted())
            except StoreError as error:
                log.error("server %s: %s", self.server.name, error)  # noqa: TRY400 (a full disk, not a defect)

    async def _take_listed(self, ask: Ask) -> None:
        """Take in a listed ask, except a dead one: OpenCode lists it for ever."""
        if self._book.is_closed(ask.source):
            return
        if self._book.find(ask.source) is None:
            if isinstance(await self.server.verdict(ask), Dead):
                log.info("request %s is listed, but its session no longer waits", ask.source.request_id)
                return
            ask = await self.server.context(ask)
        self._intake.take(Asked(ask), heard_by=self.server.name)
        self._learn_later(ask)

    # --- what an ask lacks ------------------------------------------------------------------------------------------

    def _learn_later(self, ask: Ask) -> None:
        entry = self._book.find(ask.source)
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
                entry = self._book.get(entry_id)
                if entry is None or entry.state.phase != "open" or not _is_bare(entry.ask):
                    return
                told = Asked(await self.server.context(ask))
                with suppress(StoreError):
                    self._intake.take(told, heard_by=self.server.name)
        finally:
            self._learning.discard(entry_id)


def _is_bare(ask: Ask) -> bool:
    """Tell whether an ask went to the phone without its titles, or without all of its command."""
    return not ask.source.session_title or (ask.permission is not None and ask.permission.partial)
