"""The errands of all open entries: facts come in, `core.errand` decides, and its orders are done here one at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace

from hermes.agents.registry import Adapter
from hermes.agents.server import AgentServer
from hermes.config.settings import Matching
from hermes.core import ends
from hermes.core.errand import advance
from hermes.core.graces import TOGETHER_S
from hermes.core.intake import in_short, merged
from hermes.errors import AgentAway, AgentError, AgentRefused, Conflict, NotThere, StoreError, Unfit
from hermes.listener.agent.hooks import WaitingHooks, wait_id
from hermes.listener.entries import Entries
from hermes.model.ask import Ask
from hermes.model.entry import Entry, LastingWord
from hermes.model.errand import (
    Accepted,
    AskVerdict,
    Complete,
    Errand,
    Fact,
    Happen,
    HeldElsewhere,
    HookLeft,
    HookSeen,
    HookTook,
    Join,
    Judged,
    Laid,
    LayReady,
    ListPending,
    LookForHook,
    NoteHook,
    Order,
    PendingListed,
    Release,
    Released,
    RequestCame,
    Send,
    SetRoute,
    Terms,
    Unfitting,
    Unknown,
    Unreached,
    Wait,
    Woke,
)  # fmt: skip
from hermes.model.events import Delivered, Ended, Event, Failed
from hermes.model.signals import Replied
from hermes.model.state import Phase
from hermes.model.verdicts import AnsweredWith, StillOpen, Verdict, WasDismissed

log = logging.getLogger(__name__)


class Errands:
    """One errand for each open entry."""

    def __init__(
        self,
        entries: Entries,
        servers: Mapping[str, AgentServer],
        hooks: WaitingHooks,
        adapters: Mapping[str, Adapter],
        matching: Matching,
        *,
        monotonic: Callable[[], float],
    ) -> None:
        self._entries = entries
        self._servers = servers
        self._hooks = hooks
        self._adapters = adapters
        self._matching = matching
        self._monotonic = monotonic
        self._errands: dict[str, Errand] = {}
        self._troubles: dict[str, str] = {}
        self._looks: dict[str, tuple[Phase, asyncio.Timeout]] = {}

    def get(self, entry_id: str) -> Errand:
        """Return what is known of this entry's agent beside what is saved."""
        return self._errands.get(entry_id, Errand())

    async def tell(self, entry_id: str, fact: Fact) -> None:
        """Take in a fact, and do at once all that needs the store alone.

        Raises StoreError: the fact is known, but its effect is not saved.
        """
        order = self._advance(entry_id, fact)
        while order is not None:
            entry = self._entries.get(entry_id)
            if entry is None or not self._is_done_at_once(order):
                break
            try:
                order = self._advance(entry_id, await self._do_at_once(entry, order))
            except Conflict:
                order = self._advance(entry_id, Woke())
            except StoreError as error:
                self._entries.wakes.put(entry_id, "errand")
                if not isinstance(order, Release):
                    raise
                log.warning("request %s: its hook goes on waiting for now: %s", entry.ask.source.request_id, error)
                return
        if order is not None:
            self._entries.wakes.put(entry_id, "errand")

    def changed(self, entry: Entry) -> None:
        """Give up a look that began in another phase: a frozen server must not hold up what is wanted by now."""
        phase, scope = self._looks.get(entry.id, (entry.state.phase, None))
        if scope is not None and phase != entry.state.phase:
            del self._looks[entry.id]
            scope.reschedule(0.0)

    def hint(self, entry_id: str, fact: Fact) -> None:
        """Take in a fact without saving anything: the step does what follows."""
        self._advance(entry_id, fact)
        self._entries.wakes.put(entry_id, "errand")

    def hint_all(self, fact: Fact) -> None:
        """Take in a fact that is true of all open entries, as `hint` does."""
        for entry in self._entries.ours():
            self.hint(entry.id, fact)

    async def step(self, entry_id: str) -> float | None:
        """Do the next order of this entry; return the seconds until the one after it, None if only a fact can help.

        Raises StoreError: the result is known, but not saved; the order is to be tried again.
        """
        order = self._advance(entry_id, Woke())
        entry = self._entries.get(entry_id)
        if order is None or entry is None:
            return None
        if isinstance(order, Wait):
            return order.pause_s
        if isinstance(order, Release):  # at once: an entry that is settled may be closed any moment
            await self.tell(entry_id, await self._do_at_once(entry, order))
            return 0.0
        if self._is_done_at_once(order):
            return await self._step_at_once(entry_id)
        if isinstance(order, AskVerdict | ListPending | Complete):
            scope = asyncio.timeout(None)
            try:
                async with scope:
                    self._looks[entry_id] = entry.state.phase, scope
                    result = await self._do(entry, order)
            except TimeoutError:
                if scope.expired():
                    return 0.0  # the look was given up
                raise
            finally:
                self._looks.pop(entry_id, None)
        else:
            result = await self._do(entry, order)
        async with self._entries.arriving:
            await self.tell(entry_id, result)
        return 0.0

    async def _step_at_once(self, entry_id: str) -> float:
        """Do the next order, which needs the store alone, while no ask arrives that it may join."""
        async with self._entries.arriving:
            order, entry = self._advance(entry_id, Woke()), self._entries.get(entry_id)
            if order is not None and entry is not None and self._is_done_at_once(order):
                with suppress(Conflict):
                    await self.tell(entry_id, await self._do_at_once(entry, order))
        return 0.0

    def is_ours(self, entry: Entry, news: Replied) -> bool:
        """Tell whether this news is of the answer that is being sent to this entry."""
        return ends.is_ours(entry, AnsweredWith(news.answers), self._terms(entry).meant)

    def look_for_hooks(self) -> None:
        """Tell each entry that depends on a hook whether one waits, if that is news."""
        hanging = [entry for entry in self._entries.ours() if self._depends_on_a_hook(entry)]
        waiting = self._hooks.all_waiting() if hanging else set()
        for entry in hanging:
            waits, known = wait_id(entry.ask) in waiting, self.get(entry.id)
            was_gone = known.alone_since_s is not None or known.has_left
            is_news = was_gone or known.hook == "unknown" or not entry.waits
            if is_news if waits else known.alone_since_s is None:
                self.hint(entry.id, HookSeen(waits, has_text=self._hooks.is_ready(entry.ask)))

    async def hear_hook(self, kind: str, wait: str) -> None:
        """Take in a hook's word about itself: it took its text ("receipt"), or its agent left it ("waiter.gone").

        Raises StoreError: the word is to be taken again.
        """
        for entry in self._entries.ours():
            if entry.ask.source.request_id is not None and wait_id(entry.ask) == wait:
                if kind == "receipt":
                    await self._entries.change(entry.id, lambda found: replace(found, waiter_taken=True))
                    await self.tell(entry.id, HookTook())
                elif kind == "waiter.gone":
                    await self._entries.change(entry.id, lambda found: replace(found, waits=True))
                    await self.tell(entry.id, HookLeft())

    def forget_closed(self) -> None:
        """Forget the errands of all entries that are closed."""
        for entry_id in [entry_id for entry_id in self._errands if self._entries.get(entry_id) is None]:
            self._forget(entry_id)

    def _depends_on_a_hook(self, entry: Entry) -> bool:
        source = entry.ask.source
        if source.request_id is None or source.server in self._servers or not entry.ask.answerable:
            return False
        return entry.state.phase == "open" or (entry.state.phase == "sending" and self.get(entry.id).has_left)

    # --- one fact, one order ----------------------------------------------------------------------------------------

    def _advance(self, entry_id: str, fact: Fact) -> Order | None:
        entry = self._entries.get(entry_id)
        if entry is None:
            self._forget(entry_id)
            return None
        known = self.get(entry_id)
        self._errands[entry_id], order = advance(entry, known, fact, self._monotonic(), self._terms(entry))
        return order

    def _terms(self, entry: Entry) -> Terms:
        source, decision = entry.ask.source, entry.state.decision
        adapter = self._adapters.get(source.agent)  # a newer Hermes may know that agent
        meant: Verdict | None = None
        if entry.state.phase == "sending" and decision is not None and adapter is not None:
            is_dismissal = decision.kind == "reject" and entry.ask.permission is None
            meant = WasDismissed(proof="") if is_dismissal else AnsweredWith(adapter.answers(entry.ask, decision), "")
        return Terms(
            self._entries.now(),
            meant,
            is_served=source.server in self._servers,
            restarts_hooks=adapter is not None and adapter.goodbye is None,
            neighbours_word=self._neighbours_word(entry) if entry.ask.permission is not None else "",
            tries=self._matching.tries,
            delay_s=self._matching.delay,
            is_known=adapter is not None,
        )

    def _neighbours_word(self, entry: Entry) -> LastingWord:
        """Return the last lasting word that left for another permission and may end this one, "" if none did lately."""
        now_s, others = self._entries.now(), (one for one in self._entries.ours() if one.id != entry.id)
        # The route is saved before the word leaves.
        told = [in_short(one) for one in others if one.state.outcome is not None or one.route is not None]
        words = [one for one in (*self._entries.recently_closed, *told) if ends.reaches(one, entry)]
        lately = [(one.ended_s or now_s, one.word) for one in words if 0 <= now_s - (one.ended_s or now_s) < TOGETHER_S]
        return max(lately)[1] if lately else ""

    @staticmethod
    def _is_done_at_once(order: Order) -> bool:
        """Tell whether an order needs the files of the store alone; what is saved at once outlasts a crash."""
        return isinstance(order, Happen | Join | SetRoute | NoteHook | Release)

    async def _do_at_once(self, entry: Entry, order: Order) -> Fact:
        """Do an order that was decided from this `entry`. Raises Conflict: decide again, from the entry of now."""
        match order:
            case Happen(event, verdict):
                await self._entries.apply(entry.id, event, seen=entry)
                _log_end(entry, event, verdict)
            case Join(ask, event):
                known = self._entries.find(ask.source)
                if known is not None and known.id != entry.id:
                    return HeldElsewhere()
                joined = await self._entries.change(
                    entry.id, lambda found: replace(found, ask=merged(found.ask, ask)), seen=entry
                )
                await self._entries.apply(entry.id, event, seen=joined)
            case SetRoute(route):
                await self._entries.change(entry.id, lambda found: replace(found, route=route), seen=entry)
            case NoteHook():
                await self._entries.change(entry.id, lambda found: replace(found, waits=True), seen=entry)
            case Release():
                self.release(entry.ask)
                return Released()
        return Woke()

    async def _do(self, entry: Entry, order: Order) -> Fact:
        try:
            match order:
                case AskVerdict():
                    return await self._judge(entry, order)
                case Send():
                    return await self._send(entry)
                case ListPending(with_busy):
                    return await self._list(entry, with_busy=with_busy)
                case Complete(ask):
                    return RequestCame(await self._servers[ask.source.server].context(ask))
                case LayReady():
                    return self._lay_ready(entry)
                case LookForHook():
                    return HookSeen(self._hooks.waiting(entry.ask), has_text=self._hooks.is_ready(entry.ask))
        except AgentError as error:
            # A server that refuses has a wrong password or is of another kind: a person has to mend it.
            if self._troubles.get(entry.id) != str(error):
                self._troubles[entry.id] = str(error)
                log.warning("entry %s: %s", entry.id, error)
            return Unreached(order.server if isinstance(order, AskVerdict) else "")
        return Woke()

    async def _judge(self, entry: Entry, order: AskVerdict) -> Fact:
        name, asked_s = order.server or entry.ask.source.server, self._monotonic()
        server = self._servers.get(name)
        if server is None:
            raise AgentAway(f"the server {name!r} is no longer in the configuration")
        is_seen = order.trusts_events and server.sees_open(entry.ask)
        verdict = StillOpen() if is_seen else await server.verdict(entry.ask)
        return Judged(verdict, asked_s, order.server)

    async def _send(self, entry: Entry) -> Fact:
        ask, decision = entry.ask, entry.state.decision
        if decision is None:
            return Woke()
        server = self._servers[ask.source.server]
        try:
            if decision.kind == "reject":
                await server.reject(ask)
            else:
                await server.reply(ask, self._adapters[ask.source.agent].answers(ask, decision))
        except Unfit as error:
            log.warning("request %s: %s", ask.source.request_id, error)
            return Unfitting(error.said or "it gave no reason")
        except NotThere:
            log.info("request %s ended while its answer was on the way", ask.source.request_id)
            return Unknown()
        self._troubles.pop(entry.id, None)
        return Accepted()

    def _lay_ready(self, entry: Entry) -> Fact:
        decision = entry.state.decision
        if decision is None:
            return Woke()
        self._hooks.put(entry.ask, self._adapters[entry.ask.source.agent].waiter_text(entry.ask, decision))
        return Laid()

    async def _list(self, entry: Entry, *, with_busy: bool) -> Fact:
        """List what all reachable servers of its agent have pending in the entry's folder."""
        asks: list[Ask] = []
        for server in self._servers_of(entry):
            try:
                listed = await server.pending(entry.ask.source.directory)
                asks += [ask for ask in listed.asks if ask.permission is None]
            except AgentError as error:
                log.info("entry %s: %s", entry.id, error)
        return PendingListed(tuple(asks), await self._is_busy(entry) if with_busy else None)

    def _servers_of(self, entry: Entry) -> list[AgentServer]:
        return [server for server in self._servers.values() if server.agent == entry.ask.source.agent]

    async def _is_busy(self, entry: Entry) -> bool:
        for server in self._servers_of(entry):
            try:
                if entry.ask.source.session_id in await server.busy(entry.ask.source.directory):
                    return True
            except AgentAway:
                return True
            except AgentRefused as error:
                log.info("entry %s: %s", entry.id, error)  # it will not tell, now or later: the others decide
        return False

    def release(self, ask: Ask) -> None:
        """Take back the text of an ask that is over, and release the hook that waits for it. Raises StoreError."""
        self._hooks.withdraw(ask)
        self.dismiss(ask)

    def dismiss(self, ask: Ask) -> None:
        """Release the hook that waits for an ask that nobody will answer on the phone. Raises StoreError."""
        goodbye = self._adapters[ask.source.agent].goodbye
        if goodbye is not None and self._hooks.waiting(ask):
            self._hooks.put(ask, goodbye)

    def _forget(self, entry_id: str) -> None:
        self._errands.pop(entry_id, None)
        self._troubles.pop(entry_id, None)


def _log_end(entry: Entry, event: Event, verdict: Verdict | None) -> None:
    match event:
        case Delivered(proof=proof) | Ended(proof=proof) if verdict is not None:
            by = " by us" if isinstance(event, Delivered) else ""
            log.info("entry %s: %s%s, known by: %s", entry.id, type(verdict).__name__, by, proof)
        case Ended(reason="ambiguous"):
            log.warning("entry %s: several requests could be it; nothing will be sent", entry.id)
        case Failed():
            log.info("entry %s: its answer is not delivered yet", entry.id)
        case Ended(reason="ended"):
            log.info("entry %s: its call never became a request", entry.id)
