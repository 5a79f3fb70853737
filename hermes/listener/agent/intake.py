"""Takes in what agents tell: hooks by their records, servers by their events and lists. `core.intake` decides."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Final

from hermes.core.intake import Create, Heard, Keep, Known, Merge, Placed, Tell, in_short, merged, of_asks, place
from hermes.core.permission_rules import Rules, admitted
from hermes.errors import Deposed, NotSaved, StoreAway, StoreError
from hermes.listener.agent.errands import Errands
from hermes.listener.agent.hooks import WaitingHooks
from hermes.listener.agent.turn_reports import TurnReports
from hermes.listener.entries import Entries
from hermes.listener.kept import Kept
from hermes.model.ask import Ask
from hermes.model.entry import Closed, Entry
from hermes.model.errand import Fact, NewsCame
from hermes.model.signals import Announced, Asked, AskSignal, Dismissed, Replied, Signal, TurnEnded, TurnReport

log = logging.getLogger(__name__)

EARLY_NEWS: Final = 1000
"""So much of the newest news of unknown asks is kept, because the ask may come after its end."""


class Intake:
    """Takes signals in: a new ask becomes an entry, and news of an ask goes to its errand.

    `rules` say which permissions are asked for on the phone. `_heard` has the ids of the asks that had the news of
    their end, `_again` of those whose news could not be saved and comes again.
    """

    def __init__(self, entries: Entries, kept: Kept, errands: Errands, hooks: WaitingHooks, *, rules: Rules) -> None:
        self._entries = entries
        self._turn_reports = TurnReports(kept)
        self._prompts = kept.prompts
        self._errands = errands
        self._hooks = hooks
        self._rules = rules
        self._heard: set[str] = set()
        self._again: set[str] = set()
        self._early: dict[str, Replied | Dismissed] = {}

    async def take(self, signal: Signal, *, heard_by: str = "") -> None:
        """Let one signal have its effect; on disk when this returns. Taking it twice is taking it once.

        `heard_by` is the server whose events told it, "" for a hook.

        Raises:
            NotSaved: nothing changed; the signal must be kept and taken again.
        """
        told = of_asks(signal)
        if told is not None:
            async with self._entries.arriving:
                await self._take(told, heard_by)
        if isinstance(signal, TurnReport):
            await self._take_turn(signal, heard_by)
            source = signal.turn.source if isinstance(signal, TurnEnded) else signal
            self._prompts.wake_session(source.session_id)

    async def take_receipt(self, record_id: str) -> None:
        """Note that a hook has taken this prompt into its session. Raises NotSaved."""
        await self._turn_reports.taken(record_id)

    async def _take_turn(self, signal: TurnReport, heard_by: str) -> None:
        """Keep the report of a turn. A hook's report that cannot be kept is dropped, unless nothing can be saved now.

        Otherwise it would stay in the inbox, and hold up the questions behind it.
        """
        try:
            await self._turn_reports.take(signal)
        except StoreError as error:
            is_out = isinstance(error, NotSaved) and (error.disk_full or self._entries.store.is_shared)
            if heard_by or is_out or isinstance(error, StoreAway | Deposed):
                raise
            log.error("a turn has no notice: %s", error)  # noqa: TRY400 (no defect)

    async def _take(self, signal: AskSignal, heard_by: str = "") -> None:
        if isinstance(signal, Asked) and signal.ask.permission is not None:
            ask = admitted(signal.ask, self._rules)
            if ask is None:
                self._errands.dismiss(signal.ask)
                return
            signal = replace(signal, ask=ask)
        for placed in place(signal, await self._known(signal, heard_by)):
            await self._do(placed, signal)
        if isinstance(signal, Asked):
            await self._take_early(signal.ask.source.request_id or "")

    async def _known(self, signal: AskSignal, heard_by: str) -> Known:
        match signal:
            case Asked(ask) | Announced(ask):
                source = ask.source
                was_open = self._entries.find(source) is not None
                is_closed = await self._entries.is_closed(source)
                found, mine = self._entries.find(source), self._of(source.session_id)
                is_asked_again = isinstance(signal, Asked) and signal.nonce
                waiting = [entry.id for entry in mine if is_asked_again and self._hooks.waiting(entry.ask)]
                return Known(mine, found, is_closed or (was_open and found is None), waiting=frozenset(waiting))
            case Replied(request_id=""):
                mine = self._of(signal.session_id)
                ours = frozenset(entry.id for entry in mine if self._errands.is_ours(entry, signal))
                return Known(mine, unheard=self._unheard(signal.session_id), ours=ours, heard_by=heard_by)
            case _:
                session_id = signal.session_id
                return Known(self._of(session_id), unheard=self._unheard(session_id), heard_by=heard_by)

    async def _do(self, placed: Placed, signal: AskSignal) -> None:
        match placed:
            case Create(ask, waits, matching):
                entry = await self._entries.create(ask, waits=waits, matching=matching)
                source = ask.source
                log.info("asked: entry %s, request %s of session %s", entry.id, source.request_id, source.session_id)
            case Merge(entry_id, ask):
                with self._entries.apart(entry_id):
                    await self._merge(entry_id, ask)
            case Tell(entry_id, fact):
                with self._entries.apart(entry_id):
                    await self._tell(entry_id, fact)
            case Heard(entry_id):
                self._heard.add(entry_id)
            case Keep() if isinstance(signal, Replied | Dismissed):
                self._early[signal.request_id] = signal
                if len(self._early) > EARLY_NEWS:
                    del self._early[next(iter(self._early))]

    async def _merge(self, entry_id: str, ask: Ask) -> None:
        """Let the entry learn. A text that lies ready under a machine id of before must not be taken any more."""
        before = self._entries.get(entry_id)
        if before is None:
            return
        after = await self._entries.change(entry_id, lambda found: replace(found, ask=merged(found.ask, ask)))
        if before.ask.source.machine != after.ask.source.machine:
            self._hooks.withdraw(before.ask)

    async def _tell(self, entry_id: str, fact: Fact) -> None:
        """Tell the errand. If an end cannot be saved its news comes again, and the ask may be settled by then."""
        is_end = isinstance(fact, NewsCame) and isinstance(fact.news, Replied | Dismissed)
        try:
            await self._errands.tell(entry_id, fact)
        except (NotSaved, Deposed):
            if is_end:
                self._again.add(entry_id)
            raise
        if is_end:
            self._heard.add(entry_id)

    async def _take_early(self, request_id: str) -> None:
        """Take in the news of an end that came before its ask."""
        if request_id in self._early:
            await self._take(self._early[request_id])
            del self._early[request_id]

    def _unheard(self, session_id: str) -> tuple[Closed, ...]:
        """Return the closed and the settled asks of this session whose news is still to come, the oldest first."""
        closed, entries = self._entries.recently_closed, self._entries.ours()
        known = {one.id for one in closed} | {entry.id for entry in entries}
        for ids in (self._heard, self._again):
            ids.intersection_update(known)
        over = [*closed, *(in_short(entry) for entry in entries if entry.state.phase == "settled")]
        return tuple(one for one in over if one.session_id == session_id and self._is_unheard(one))

    def _is_unheard(self, one: Closed) -> bool:
        return (one.awaits_news or one.id in self._again) and one.id not in self._heard

    def _of(self, session_id: str) -> tuple[Entry, ...]:
        return tuple(entry for entry in self._entries.ours() if entry.ask.source.session_id == session_id)
