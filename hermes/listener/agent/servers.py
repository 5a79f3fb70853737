"""Follows one agent's server: its events and its lists go to intake, and its ups and downs to the errands.

Events are not replayed: each connection begins with the list of pending asks, and with a look at all that was open.
All times here are compared with those that the agent writes down, so they are of the clock of this machine, which may
differ from that of a store in a database.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from hermes.agents.server import AgentServer, Connected, Disposed, Heard, Lost, follow
from hermes.errors import AgentError, NotRunning, StoreError
from hermes.listener.agent.arrivals import Arrivals
from hermes.listener.agent.errands import Errands
from hermes.listener.agent.turn_ends import TurnEnds
from hermes.listener.entries import Entries
from hermes.model.chat_memory import Followed
from hermes.model.entry import Entry
from hermes.model.errand import Doubted, NewsCame, ServerBack
from hermes.model.signals import Asked, Quiet, Signal

log = logging.getLogger(__name__)

FOLLOW_PAUSE_S: Final = 5.0
NEWS_S: Final = 60.0
"""The last turn of a session that stops has ended within this time; otherwise the session stopped without one."""
SET_BACK_S: Final = 3600.0
"""If the clock was set back, turns are looked for that ended within this time."""
LONGEST_AWAY_S: Final = 7 * 86400.0
"""After a longer absence, asks are looked for in the sessions of this time alone."""


class Follower:
    """Follows one server.

    `heard_s` is the time (epoch) until which its events are known. `connected` is for others to read: it holds the
    server's name, and whether it is connected now.
    """

    def __init__(
        self,
        server: AgentServer,
        entries: Entries,
        errands: Errands,
        arrivals: Arrivals,
        turn_ends: TurnEnds,
        connected: dict[str, bool],
        *,
        heard_s: float,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.server = server
        self._entries = entries
        self._now = entries.store.home.now
        self._errands = errands
        self._arrivals = arrivals
        self.turn_ends = turn_ends
        self._told_since_s = heard_s
        self._connected = connected
        self._heard_s = heard_s
        self._sleep = sleep
        self._is_hearing = False
        self.is_connected = False

    @property
    def is_connected(self) -> bool:
        """Tell whether its events arrive now, and its asks are known."""
        return self._connected.get(self.server.name, False)

    @is_connected.setter
    def is_connected(self, is_so: bool) -> None:
        self._connected[self.server.name] = is_so

    async def run(self) -> None:
        """Follow the events for ever."""
        server = self.server
        while True:
            try:
                async for told in follow(server.name, server.listen, longest_s=server.longest_pause_s):
                    match told:
                        case Connected():
                            await self.compare()
                            self.is_connected, self._is_hearing = True, False
                        case Heard(signal, directory):
                            await self._hear(signal, directory)
                        case Disposed(directory):
                            self._disposed(directory)
                        case Lost(error):
                            self._note_heard()
                            self.is_connected = False
                            if isinstance(error, NotRunning):
                                self._stopped()
            except (StoreError, AgentError) as error:
                log.error("server %s: %s", self.server.name, error)  # noqa: TRY400 (an outage, not a defect)
            # The last event may not be saved, so later events do not count as heard until the list was read again.
            self.is_connected = False
            await self._sleep(FOLLOW_PAUSE_S)

    def _stopped(self) -> None:
        """Look at what was open there; a server that runs only now and then is not shown as missing."""
        del self._connected[self.server.name]
        for entry in self._mine():
            self._errands.hint(entry.id, Doubted())
        self.turn_ends.look_at_retries(is_running=False)

    def followed(self) -> Followed:
        """Return until when the events are known, and the turns that ended."""
        self._note_heard()
        return Followed(self.server.name, min(self._heard_s, self.turn_ends.unknown_since_s()))

    def _note_heard(self) -> None:
        """Note until when its events are known: as its stream says, but at least until the last look.

        An event that is being saved is not known yet: this process may be stopped, or lose its store, before it is.
        """
        if self.is_connected and not self._is_hearing:
            self._heard_s = max(self._known_s(), self.server.heard_s)

    def _known_s(self) -> float:
        """Return until when its events are known. A time in the future says that the clock was set back."""
        now_s = self._now()
        return self._heard_s if self._heard_s <= now_s else now_s - SET_BACK_S

    async def compare(self) -> None:
        """Take in what the server lists, and look at all entries of this server. Raises AgentError, StoreError."""
        mine, now_s = self._mine(), self._now()  # what ends while the list is read is told by an event alone
        self._told_since_s = self._known_s()
        # Asks of the time in which nobody followed count as if they came just now.
        away_s = min(max(0.0, now_s - self._told_since_s), LONGEST_AWAY_S)
        folders = set(await self.server.directories(now_s - self._arrivals.ttl_s - away_s))
        folders |= {entry.ask.source.directory for entry in mine}
        count = await self._arrivals.take_listed(folders - {""})
        self._look_for_ends()
        for entry in mine:
            # A request that is still listed may be dead by now, so the listed ones are looked at, too.
            self._errands.hint(entry.id, ServerBack())
        self._look_for_requests()
        self.turn_ends.look_back(self._told_since_s)
        self.turn_ends.look_at_retries()
        self._heard_s = now_s
        log.info("server %s: connected, %d questions are open there", self.server.name, count)

    def doubt(self) -> None:
        """Look whether an ask, or a turn that keeps trying, ended without an event."""
        if self.is_connected:
            for entry in self._mine():
                self._errands.hint(entry.id, Doubted())
            self._look_for_ends()
            self.turn_ends.look_at_retries()

    def _mine(self) -> list[Entry]:
        return [entry for entry in self._entries.ours() if entry.ask.source.server == self.server.name]

    def _without_server(self) -> list[Entry]:
        def is_one(entry: Entry) -> bool:
            source = entry.ask.source
            has_no_server = source.agent == self.server.agent and source.request_id is not None and not source.server
            return has_no_server and entry.ask.answerable and entry.state.phase == "open"

        return [entry for entry in self._entries.ours() if is_one(entry)]

    def _look_for_ends(self) -> None:
        """Look at the asks that a hook brought: this server may have told of their end before."""
        for entry in self._without_server():
            self._errands.hint(entry.id, NewsCame(Quiet(entry.ask.source.session_id), self.server.name))

    def _look_for_requests(self) -> None:
        for entry in self._entries.ours():
            if entry.state.phase == "matching":
                self._errands.hint(entry.id, Doubted())

    # --- events -----------------------------------------------------------------------------------------------------

    async def _hear(self, signal: Signal, directory: str) -> None:
        """Take one event in. A new ask is shown with its context, which the stream most often has brought."""
        self._is_hearing = True
        await self._arrivals.take(signal)
        if isinstance(signal, Asked):
            self._look_for_requests()
        if isinstance(signal, Quiet):
            since_s = min(self._told_since_s, self._now() - NEWS_S)
            self.turn_ends.look(signal.session_id, directory, since_s)
        self._is_hearing = False

    def _disposed(self, directory: str) -> None:
        """Look at all asks of this directory: they vanished with its instance, and no event of their own tells so."""
        for entry in self._mine():
            if directory in {"", entry.ask.source.directory}:
                self._errands.hint(entry.id, NewsCame(Quiet(entry.ask.source.session_id), self.server.name))
