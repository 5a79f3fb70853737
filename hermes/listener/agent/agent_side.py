"""The listener's agent side: what hooks and servers tell goes into the book."""

from __future__ import annotations

import asyncio
import logging
import math
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from hermes.agents.opencode import matching
from hermes.agents.opencode.adapter import AGENT
from hermes.agents.opencode.events import Connected, Disposed, Heard, Lost, follow
from hermes.core.permission_rules import admitted
from hermes.errors import AgentAway, AgentError, AgentRefused, StoreError
from hermes.listener.agent.delivery import WAITER_GRACE_S
from hermes.listener.agent.hooks import Inbox, Strays, wait_id
from hermes.listener.agent.intake import Hinted, Intake
from hermes.model.chat_memory import Followed
from hermes.model.events import Ended
from hermes.model.signals import Asked, Quiet
from hermes.model.verdicts import Dead

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Mapping

    from hermes.agents.opencode.client import OpenCodeServer
    from hermes.agents.registry import Adapter
    from hermes.config.settings import Matching
    from hermes.core.permission_rules import Rules
    from hermes.listener.agent.delivery import Delivery
    from hermes.listener.agent.hooks import Room
    from hermes.listener.entries import Book
    from hermes.model.ask import Ask
    from hermes.model.entry import Entry
    from hermes.model.signals import Signal

log = logging.getLogger(__name__)

UNMATCHED_LOOK_S: Final = 5.0
"""How often a call is looked for that has become no request after all tries."""
LOOK_S: Final = 60.0
"""How often it is found out about every open ask whether it has ended without a word."""
LEFT_GRACE_S: Final = 2.0
"""A waiting hook that was left by its agent is never started again; another one may be there already."""
PLACES_GRACE_S: Final = 30.0
"""After the store was made again no hook counts as dead for this long: each takes its place again within seconds."""
FOLLOW_PAUSE_S: Final = 5.0
FIRST_LIST_PAUSE_S: Final = 0.5
LONGEST_LIST_PAUSE_S: Final = 60.0
LEARN_PAUSES_S: Final = (0.0, 0.5, 2.0, 8.0, 30.0)
"""How long to wait before each try to learn what an ask went to the phone without."""
LONGEST_AWAY_S: Final = 7 * 86400.0
"""What was asked in an absence that was longer than this is looked for among the newer sessions alone."""


class AgentSide:
    """Follows the servers, empties the inbox, finds requests for calls, and notices agents that are gone.

    `followed` tells until when an earlier listener knew each server's events.
    """

    def __init__(  # noqa: PLR0913 (one argument for each thing that it joins)
        self,
        book: Book,
        delivery: Delivery,
        servers: Mapping[str, OpenCodeServer],
        adapters: Mapping[str, Adapter],
        room: Room,
        *,
        kick: Callable[[str, str], None],
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        ttl_s: float,
        matching: Matching,
        rules: Rules,
        followed: Collection[Followed],
        now: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        self._book = book
        self._delivery = delivery
        self._servers = servers
        self._adapters = adapters
        self._room = room
        self._kick = kick
        self._spawn = spawn
        self._turns: dict[str, int] = {}
        self._ttl_s = ttl_s
        self._matching = matching
        self._now = now
        self._monotonic = monotonic
        known = {one.server: one.until_s for one in followed}
        self._heard_s = {name: known.get(name, now()) for name in servers}
        self._connected: set[str] = set()
        self._intake = Intake(
            book,
            now=now,
            hinted=self._hinted,
            admitted=lambda ask: admitted(ask, rules),
            refused=self._let_go,
            waiting=room.waiting,
            is_ours=delivery.is_ours,
        )
        self._strays = Strays(room.root, monotonic=monotonic)
        self.inbox = Inbox(room.root, book.store, adapters, took=self._intake.take, word=self._word_of_hook)
        self._signals: dict[str, list[Hinted]] = {}
        self._match_tried: dict[str, int] = {}
        self._alone_since_s: dict[str, float] = {}
        self._left: set[str] = set()
        self._places_gone_s = -math.inf
        self._learning: set[str] = set()
        self._hearing: OpenCodeServer | None = None
        self._looked_s = monotonic()

    # --- servers ----------------------------------------------------------------------------------------------

    async def follow(self, server: OpenCodeServer) -> None:
        """Follow one server's events for ever; every (re)connect begins with its list of pending questions."""
        while True:
            try:
                async for told in follow(server):
                    match told:
                        case Connected():
                            await self._compare(server)
                            self._connected.add(server.name)
                        case Heard(signal):
                            await self._heard(server, signal)
                        case Disposed(directory):
                            self._disposed(server, directory)
                        case Lost():
                            self._note_heard()
                            self._connected.discard(server.name)
            except (StoreError, AgentError) as error:
                log.error("server %s: %s", server.name, error)  # noqa: TRY400 (an outage, not a defect)
            # What it told last may not have been kept, so nothing later counts as heard until its list was read.
            self._connected.discard(server.name)
            await asyncio.sleep(FOLLOW_PAUSE_S)

    def followed(self) -> tuple[Followed, ...]:
        """Return until when each server's events are known."""
        self._note_heard()
        return tuple(Followed(name, heard_s) for name, heard_s in self._heard_s.items())

    def _note_heard(self) -> None:
        """Of a server that is followed all is known up to its last event, a heartbeat at least."""
        for name in self._connected:
            self._heard_s[name] = self._servers[name].living.heard_s

    def connected(self) -> list[tuple[str, bool]]:
        """Return each server's name, and whether it is followed now."""
        return [(name, name in self._connected) for name in self._servers]

    async def look_once(self) -> None:
        """Compare with what every server lists now; those out of reach are passed over."""
        for server in self._servers.values():
            try:
                await self._compare(server)
            except AgentError as error:
                log.warning("server %s: %s", server.name, error)

    async def _heard(self, server: OpenCodeServer, signal: Signal) -> None:
        """Take one event in. A new ask is shown with its context, which the stream most often has brought."""
        if isinstance(signal, Asked):
            await self._take_new(server, signal)
            self._kick_matching()
        else:
            self._hearing = server
            try:
                self._intake.take(signal)
            finally:
                self._hearing = None

    def _disposed(self, server: OpenCodeServer, directory: str) -> None:
        """Find out about all that was asked there: it has vanished, and no event of its own tells so."""
        for entry in self._book.entries():
            source = entry.ask.source
            if source.server == server.name and directory in {"", source.directory}:
                self._hinted(Hinted(entry, Quiet(source.session_id)))

    def recall(self) -> None:
        """Remember what an earlier listener allowed, once the book is open: the news of it may be still to come."""
        self._intake.recall(self._book.recently_closed)

    def look_at_the_open(self) -> None:
        """Find out once a minute about every open ask of a connected server: an end may be told by no event."""
        if self._monotonic() - self._looked_s < LOOK_S:
            return
        self._looked_s = self._monotonic()
        for name in self._connected:
            self._examine_all(self._servers[name])
        self._forget_closed()

    def _forget_closed(self) -> None:
        """Keep nothing of asks that are closed: a listener may run for months."""
        open_ids = {entry.id for entry in self._book.entries()}
        self._delivery.keep_only(open_ids)
        self._intake.keep_only(open_ids)
        self._left &= open_ids
        known: tuple[dict[str, Any], ...] = (self._signals, self._match_tried, self._alone_since_s)
        for memory in known:
            for entry_id in memory.keys() - open_ids:
                del memory[entry_id]

    async def _take_new(self, server: OpenCodeServer, asked: Asked) -> None:
        known = self._book.find(asked.ask.source) is not None or self._book.is_closed(asked.ask.source)
        if not known:
            asked = Asked(await server.context(asked.ask))
        self._intake.take(asked)
        entry = self._book.find(asked.ask.source)
        if entry is not None and not known and not asked.ask.source.session_title:
            # Its session is not to be had: the news of its end may have come before, when nobody knew of this.
            self._kick("examine", entry.id)
        self._learn_later(server, asked.ask, entry)

    def _learn_later(self, server: OpenCodeServer, ask: Ask, entry: Entry | None) -> None:
        if entry is not None and _is_bare(entry.ask) and entry.id not in self._learning:
            self._learning.add(entry.id)
            self._spawn(self._learn(server, ask, entry.id))

    async def _learn(self, server: OpenCodeServer, ask: Ask, entry_id: str) -> None:
        """Complete an ask whose server did not tell all of it when it came: nobody allows half a command for good.

        `ask` is what it told, before it was decided what of it goes to the phone.
        """
        try:
            for pause_s in LEARN_PAUSES_S:
                await asyncio.sleep(pause_s)
                entry = self._book.get(entry_id)
                if entry is None or entry.state.phase != "open" or not _is_bare(entry.ask):
                    return
                told = Asked(await server.context(ask))
                with suppress(StoreError):
                    self._intake.take(told)
        finally:
            self._learning.discard(entry_id)

    async def _compare(self, server: OpenCodeServer) -> None:
        """Take in what the server lists, and look at all that it no longer lists: events are not replayed."""
        mine = [entry for entry in self._book.entries() if entry.ask.source.server == server.name]
        # What was asked while nobody followed is looked for as if it had been asked just now.
        away_s = min(max(0.0, self._now() - self._heard_s[server.name]), LONGEST_AWAY_S)
        folders = set(await server.directories(self._ttl_s + away_s, now=self._now))
        folders |= {entry.ask.source.directory for entry in mine}
        count, unknown = await self._list_all(server, folders - {""})
        if unknown:
            self._spawn(self._list_until_known(server, unknown))
        await self._look_for_the_unplaced(server)
        for entry in mine:
            if entry.state.phase == "sending":
                self._delivery.forget_failures(entry.id)
                self._kick("deliver", entry.id)
            else:
                # What is still listed may be a zombie by now, so that is looked at, too.
                self._kick("examine", entry.id)
        self._kick_matching()
        self._heard_s[server.name] = self._now()
        log.info("server %s: connected, %d questions are open there", server.name, count)

    async def _list_all(self, server: OpenCodeServer, folders: Collection[str]) -> tuple[int, set[str]]:
        """Take in what is pending in these folders; return how many there are, and the folders that did not tell."""
        count, unknown = 0, set()
        for folder in sorted(folders):
            try:
                for ask in await server.questions(folder):
                    await self._take_listed(server, ask)
                    count += 1
            except AgentError as error:
                # One folder with a broken configuration must not hide the questions of all others.
                log.warning("server %s: the questions of %s are not known yet: %s", server.name, folder, error)
                unknown.add(folder)
        return count, unknown

    async def _list_until_known(self, server: OpenCodeServer, folders: set[str]) -> None:
        """Ask again: what is pending there is told by no event any more, and nobody would ever see it."""
        turn = self._turns[server.name] = self._turns.get(server.name, 0) + 1
        pause_s, until_s = FIRST_LIST_PAUSE_S, self._monotonic() + self._ttl_s
        while folders and self._turns[server.name] == turn and self._monotonic() < until_s:
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_LIST_PAUSE_S)
            try:
                _, folders = await self._list_all(server, folders)
            except StoreError as error:
                log.error("server %s: %s", server.name, error)  # noqa: TRY400 (a full disk, not a defect)
            # One may have ended while it was looked at, and its event told so when no entry knew it.
            self._examine_all(server)

    def _examine_all(self, server: OpenCodeServer) -> None:
        for entry in self._book.entries():
            if entry.ask.source.server == server.name and entry.state.phase != "sending":
                self._kick("examine", entry.id)

    async def _look_for_the_unplaced(self, server: OpenCodeServer) -> None:
        """A hook told of a question that this server had already seen answered: its end is proven, or nothing is."""
        for entry in self._book.entries():
            source = entry.ask.source
            unplaced = source.agent == AGENT and source.request_id is not None and not source.server
            if unplaced and entry.ask.answerable and entry.state.phase == "open":
                await self._prove(entry, server)

    async def _prove(self, entry: Entry, server: OpenCodeServer) -> None:
        """Settle an ask that came by a hook alone, where this server can prove its end."""
        try:
            await self._delivery.ended(entry, server)
        except (AgentError, StoreError) as error:
            log.info("entry %s: %s", entry.id, error)

    async def _take_listed(self, server: OpenCodeServer, ask: Ask) -> None:
        """Take in a question of the list. One that nobody waits for stays listed for ever, and is passed over."""
        if self._book.is_closed(ask.source):
            return
        if self._book.find(ask.source) is None:
            if isinstance(await server.verdict(ask), Dead):
                log.info("request %s is listed, but its session no longer waits", ask.source.request_id)
                return
            ask = await server.context(ask)
        self._intake.take(Asked(ask))
        self._learn_later(server, ask, self._book.find(ask.source))

    # --- what hooks and events hint at ------------------------------------------------------------------------

    def _hinted(self, hinted: Hinted) -> None:
        entry = hinted.entry
        if entry.state.phase == "settled":
            return
        if entry.state.phase == "matching":
            self._kick("match", entry.id)
            self._signals.setdefault(entry.id, []).append(hinted)
        elif entry.ask.source.server in self._servers:
            if isinstance(hinted.signal, Quiet):
                self._signals.setdefault(entry.id, []).append(hinted)
            else:
                self._delivery.hear(entry.id, hinted.signal)
            self._kick("deliver" if entry.state.phase == "sending" else "examine", entry.id)
        elif self._hearing is not None and isinstance(hinted.signal, Quiet):
            # Its stream may tell that all is over before it tells how: only what it proves counts.
            self._spawn(self._prove(entry, self._hearing))
        else:
            self._delivery.told(entry, hinted.signal)

    async def examine(self, entry_id: str) -> float | None:
        """Step: find out whether an open ask has ended by itself."""
        hints = self._signals.pop(entry_id, [])
        try:
            return await self._delivery.examine(entry_id, hints[-1].signal if hints else None)
        except AgentError:
            self._signals[entry_id] = [*hints, *self._signals.get(entry_id, [])]
            raise

    def _let_go(self, ask: Ask) -> None:
        """Send the hook away that waits for an ask that nobody will answer on the phone."""
        goodbye = self._adapters[ask.source.agent].goodbye
        if goodbye is not None and self._room.waiting(ask):
            self._room.put(ask, goodbye)

    def over(self, entry: Entry) -> None:
        """Clear up after a settled ask: what lies ready is withdrawn, and who still waits for it may go."""
        self._intake.settled(entry)
        self._room.withdraw(entry.ask)
        try:
            self._let_go(entry.ask)
        except StoreError as error:
            log.warning("entry %s: its hook goes on waiting for now: %s", entry.id, error)

    def _word_of_hook(self, kind: str, wait: str) -> None:
        for entry in self._book.entries():
            if entry.ask.source.request_id is not None and wait_id(entry.ask) == wait:
                if kind == "receipt":
                    self._book.change(entry.id, lambda found: replace(found, waiter_taken=True))
                    self._delivery.handed_over(entry.id)
                elif kind == "waiter.gone":
                    self._left.add(entry.id)
                    self._book.change(entry.id, lambda found: replace(found, waits=True))

    # --- calls without a request ------------------------------------------------------------------------------

    def _kick_matching(self) -> None:
        for entry in self._book.entries():
            if entry.state.phase == "matching":
                self._kick("match", entry.id)

    async def match(self, entry_id: str) -> float | None:
        """Step: look for the request that a call has become."""
        entry = self._book.get(entry_id)
        if entry is None or entry.state.phase != "matching":
            self._match_tried.pop(entry_id, None)
            return None
        found = matching.find(entry.ask, await self._pending(entry))
        if isinstance(found, matching.Found):
            server = self._servers[found.ask.source.server]
            self._intake.join(entry, await server.context(found.ask))
            return None
        if isinstance(found, matching.Ambiguous):
            log.warning("entry %s: %d requests could be it; nothing will be sent", entry.id, found.count)
            self._book.apply(entry.id, Ended(self._now(), "gone", reason="ambiguous"))
            return None
        return await self._not_yet(entry)

    async def _not_yet(self, entry: Entry) -> float | None:
        tried = self._match_tried[entry.id] = self._match_tried.get(entry.id, 0) + 1
        if tried < self._matching.tries:
            return self._matching.delay
        if self._signals.pop(entry.id, []) or not await self._is_busy(entry):
            log.info("entry %s: its call never became a request", entry.id)
            self._book.apply(entry.id, Ended(self._now(), "gone", reason="ended", proof="list"))
            return None
        return UNMATCHED_LOOK_S

    async def _pending(self, entry: Entry) -> list[Ask]:
        """Return what all reachable servers list for the entry's folder."""
        asks: list[Ask] = []
        for server in self._servers.values():
            try:
                listed = await server.questions(entry.ask.source.directory)
                asks += [ask for ask in listed if ask.permission is None]
            except AgentError as error:
                log.info("entry %s: %s", entry.id, error)
        return asks

    async def _is_busy(self, entry: Entry) -> bool:
        for server in self._servers.values():
            try:
                if entry.ask.source.session_id in await server.busy(entry.ask.source.directory):
                    return True
            except AgentAway:
                return True
            except AgentRefused as error:
                log.info("entry %s: %s", entry.id, error)  # it will not tell, now or later: the others decide
        return False

    # --- agents that died -------------------------------------------------------------------------------------

    def places_are_gone(self) -> None:
        """Note that the places of all waiting hooks went with the folder of the store."""
        self._places_gone_s = self._monotonic()

    def look_for_the_dead(self) -> None:
        """Settle asks whose only way back was a waiting hook that is gone for good. Raises NotSaved."""
        hanging = [entry for entry in self._book.entries() if self._hangs_on_a_hook(entry)]
        waiting = self._room.all_waiting() if hanging else set()
        for entry in hanging:
            with self._book.apart(entry):
                if wait_id(entry.ask) in waiting:
                    self._found_waiting(entry)
                elif entry.waits and self._is_alone_for_good(entry):
                    self._book.apply(entry.id, Ended(self._now(), "gone", reason="ended", proof="left"))
                    self._found_waiting(entry)

    def _hangs_on_a_hook(self, entry: Entry) -> bool:
        if entry.ask.source.request_id is None or entry.ask.source.server in self._servers or not entry.ask.answerable:
            return False
        # What is being sent is left to its delivery, unless the agent is known to have gone.
        return entry.state.phase == "open" or (entry.state.phase == "sending" and entry.id in self._left)

    def _found_waiting(self, entry: Entry) -> None:
        self._alone_since_s.pop(entry.id, None)
        self._left.discard(entry.id)
        if not entry.waits:
            self._book.change(entry.id, lambda found: replace(found, waits=True))

    def send_strays_away(self) -> None:
        """Let hooks go that wait for nothing; a plugin that ends its own may keep them. Raises NotSaved."""
        if self._book.store.too_new or self._book.store.unread:
            return  # what stands there may be what they wait for
        strays = self._room.all_waiting() - {wait_id(entry.ask) for entry in self._book.entries()}
        if strays:
            keeping = {agent for agent, adapter in self._adapters.items() if adapter.goodbye is None}
            strays -= {name for name in strays if self._book.closed_by(name) in keeping}
        self._strays.send_away(strays)

    def _is_alone_for_good(self, entry: Entry) -> bool:
        alone_s = self._monotonic() - self._alone_since_s.setdefault(entry.id, self._monotonic())
        if self._monotonic() - self._places_gone_s < PLACES_GRACE_S:
            return False
        started_again = self._adapters[entry.ask.source.agent].goodbye is None and entry.id not in self._left
        return alone_s > (WAITER_GRACE_S if started_again else LEFT_GRACE_S)


def _is_bare(ask: Ask) -> bool:
    """Tell whether it went to the phone without what its server knows of it: its titles, or all of its command."""
    return not ask.source.session_title or (ask.permission is not None and ask.permission.partial)
