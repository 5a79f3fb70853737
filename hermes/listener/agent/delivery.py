"""The way back to the agent: a frozen decision is sent, confirmed, and sent again until it is one or the other.

Success is never assumed. On the route "server" the tool call itself proves what became of the answer; on the route
"waiter" the plugin reports what its own agent did. A reply that fails keeps the entry in "sending"; it ends only
when it is confirmed, or when the ask is provably gone.
"""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from hermes.errors import AgentAway, AgentRefused, NotThere
from hermes.model.events import Delivered, Ended, Failed
from hermes.model.signals import Dismissed, Quiet, Replied
from hermes.model.verdicts import AnsweredWith, Dead, StillOpen, Unproven, WasDismissed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from hermes.agents.registry import Adapter
    from hermes.listener.entries import Book
    from hermes.model.answer import Decision, Proof
    from hermes.model.ask import Ask
    from hermes.model.entry import Entry, Route
    from hermes.model.verdicts import Verdict

log = logging.getLogger(__name__)

FIRST_RETRY_S: Final = 0.5
LONGEST_RETRY_S: Final = 30.0
CONFIRM_S: Final = 0.05
"""How soon to look whether a reply that was accepted took effect; each further look comes later."""
UNCONFIRMED_S: Final = 3.0
"""After this long an accepted reply that shows no effect is sent again."""
WAITER_LOOK_S: Final = 1.0
WAITER_GRACE_S: Final = 30.0
"""A waiting hook that died is started again by its plugin within this time, where its agent lives."""
UNTAKEN_S: Final = 6.0
"""An answer that lies ready for longer than this is not delivered yet, and the phone says so."""
PUT_AGAIN_S: Final = 3.0
"""A waiting hook needs less than this from taking an answer to leaving."""
NO_EFFECT_S: Final = 20.0
"""An answer that waiting hooks have taken for longer than this, and that changed nothing, cannot be delivered now."""
TAKEN_GRACE_S: Final = 20.0
"""An answer that a waiting hook took is reported by its plugin within this time, where its agent lives."""
TOGETHER_S: Final = 30.0
"""A permission that ends this soon after our word on another one of its session was ended by that."""

Answers = tuple[tuple[str, ...], ...]
ALLOWED: Final[Answers] = (("allowed",),)
"""What a permission came to, where nobody tells for how long."""


class Server(Protocol):
    """An agent's server with an HTTP port. Methods raise AgentAway and AgentRefused."""

    async def verdict(self, ask: Ask) -> Verdict:
        """Return what is true of this request now."""
        ...

    def sees_open(self, ask: Ask) -> bool:
        """Tell whether the events of an unbroken stream show the request alive now."""
        ...

    async def reply(self, ask: Ask, answers: Answers) -> None:
        """Send the answers; returning proves nothing."""
        ...

    async def reject(self, ask: Ask) -> None:
        """Send the rejection; returning proves nothing."""
        ...


class WaitingRoom(Protocol):
    """Where hooks wait for the text that they print."""

    def waiting(self, ask: Ask) -> bool:
        """Tell whether a live hook waits for this ask."""
        ...

    def put(self, ask: Ask, text: str) -> None:
        """Lay the text ready. Raises NotSaved."""
        ...

    def is_ready(self, ask: Ask) -> bool:
        """Tell whether a text lies ready that nobody took yet."""
        ...


class Delivery:
    """Moves the agent's side of an entry."""

    def __init__(
        self,
        book: Book,
        servers: Mapping[str, Server],
        room: WaitingRoom,
        adapters: Mapping[str, Adapter],
        *,
        now: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        self._book = book
        self._servers = servers
        self._room = room
        self._adapters = adapters
        self._now = now
        self._monotonic = monotonic
        self._failures: dict[str, int] = {}
        self._accepted_s: dict[str, float] = {}
        self._lonely_s: dict[str, float] = {}
        self._put_s: dict[str, float] = {}
        self._first_put_s: dict[str, float] = {}
        self._heard: dict[str, Replied | Dismissed] = {}
        # What is true of an ask and could not be noted yet: its proof may be gone by the time that the disk has room.
        self._proven: dict[str, Verdict] = {}
        self._said: dict[str, tuple[str, str, float]] = {}

    async def step(self, entry_id: str) -> float | None:
        """Bring one decision one step further; return the seconds until the next step, None where it is over.

        Raises:
            NotSaved: what happened could not be noted; the step is to be tried again.
        """
        entry = self._book.get(entry_id)
        if entry is None or entry.state.phase != "sending" or entry.state.decision is None:
            self._forget(entry_id)
            return None
        if entry_id in self._proven:
            self._judged(entry, self._proven[entry_id])
            return None
        try:
            route = entry.route or await self._chosen(entry)
            if route == "server":
                return await self._by_server(entry, entry.state.decision)
            return await self._by_waiter(entry, entry.state.decision)
        except AgentAway as error:
            return self._failed(entry, str(error))
        except AgentRefused as error:
            # A wrong password or a server of another kind: a person has to mend it, the answer waits.
            log.warning("entry %s: %s", entry.id, error)
            return self._failed(entry, str(error))

    async def examine(self, entry_id: str, signal: Replied | Dismissed | Quiet | None = None) -> float | None:
        """Find out whether an open ask ended by itself, after `signal` or for no reason.

        Returns the seconds after which to look again, or None. Raises AgentError, NotSaved.
        """
        entry = self._book.get(entry_id)
        if entry is None or entry.state.phase in {"sending", "settled"} or entry.ask.source.request_id is None:
            return None
        server = self._servers.get(entry.ask.source.server)
        verdict = await server.verdict(entry.ask) if server else Unproven()
        told = self._heard.get(entry_id, signal)
        if isinstance(verdict, Unproven) and told is not None:
            self.told(entry, told)
        else:
            self._judged(entry, verdict)
        return 1.0 if isinstance(verdict, StillOpen) and isinstance(signal, Quiet) else None

    async def ended(self, entry: Entry, server: Server) -> None:
        """Settle an ask whose end this server can prove. Raises AgentError, NotSaved."""
        self._judged(entry, await server.verdict(entry.ask))

    def hear(self, entry_id: str, signal: Replied | Dismissed) -> None:
        """Keep what an event told of an ask, for where nothing else proves what became of it."""
        self._heard[entry_id] = signal

    def told(self, entry: Entry, signal: Replied | Dismissed | Quiet) -> None:
        """Take an agent's own word for it, where nothing else can prove it."""
        proof: Proof = "event" if entry.ask.source.server in self._servers else "plugin"
        match signal:
            case Replied(answers=answers):
                self._judged(entry, AnsweredWith(answers, proof))
            case Dismissed():
                self._judged(entry, WasDismissed(proof=proof))
            case Quiet():
                # A turn that ended without another word has taken what it was given.
                given = self._has_only_silence(entry)
                self._judged(entry, self._expected(entry, "receipt") if given else Dead(proof))

    def is_ours(self, entry: Entry, news: Replied) -> bool:
        """Tell whether this news is of the answer that is being sent to this entry."""
        return self._took_effect(entry, AnsweredWith(news.answers))

    def handed_over(self, entry_id: str) -> None:
        """A hook has printed the answer; where its agent may tell more, that comes first. Raises NotSaved."""
        entry = self._book.get(entry_id)
        if entry is not None and self._says_no_more(entry) and not entry.ask.capabilities.silence_s:
            self._judged(entry, self._expected(entry, "receipt"))

    def _has_only_silence(self, entry: Entry) -> bool:
        """Tell whether something was handed over of which its agent need not tell what came of it."""
        return entry.waiter_taken and self._says_no_more(entry)

    def _says_no_more(self, entry: Entry) -> bool:
        """Tell whether this agent need not tell what comes of what is being sent."""
        can, decision = entry.ask.capabilities, entry.state.decision
        if entry.state.phase != "sending" or can.reports or decision is None:
            return False
        answers = entry.ask.permission is None and decision.kind in {"answer", "skip"}
        return not (answers and can.tells_answers)

    def forget_failures(self, entry_id: str) -> None:
        """The agent is back: the next try is the first again."""
        self._failures.pop(entry_id, None)

    # --- routes -------------------------------------------------------------------------------------------------

    def routed(self, entry: Entry) -> Route | None:
        """Return the only route that there is, or None where it must be found out which one carries the answer."""
        if self._room.waiting(entry.ask):
            return None if entry.ask.source.server in self._servers else "waiter"
        return "server" if entry.ask.source.server else "waiter"

    async def _chosen(self, entry: Entry) -> Route:
        """Choose and save the route: the server that lists the request, else a live waiter."""
        server = self._servers.get(entry.ask.source.server)
        # A server that is no longer in the configuration proves nothing: it may be there under another name.
        route: Route = "server" if entry.ask.source.server else "waiter"
        if self._room.waiting(entry.ask):
            try:
                if server is None:
                    route = "waiter"
                else:
                    await server.verdict(entry.ask)
            except (AgentAway, AgentRefused):
                route = "waiter"
        self._book.change(entry.id, lambda found: replace(found, route=route))
        return route

    async def _by_server(self, entry: Entry, decision: Decision) -> float | None:
        server = self._servers.get(entry.ask.source.server)
        if server is None:
            raise AgentAway(f"the server {entry.ask.source.server!r} is no longer in the configuration")
        first = entry.id not in self._accepted_s and entry.id not in self._failures
        # Where its events have shown it alive until now, asking whether it lives would only cost time. But a late word
        # to a dead permission may run its command all the same (seen on both versions), so there it is asked.
        seen = first and entry.ask.permission is None and server.sees_open(entry.ask)
        verdict = StillOpen() if seen else await server.verdict(entry.ask)
        if isinstance(verdict, StillOpen) and not self._awaits_confirmation(entry.id):
            await self._send(server, entry, decision)
            verdict = await server.verdict(entry.ask)
        if isinstance(verdict, StillOpen):
            if self._awaits_confirmation(entry.id):
                return self._look_in_s(entry.id)
            return self._failed(entry, "its reply was accepted, and had no effect")
        if isinstance(verdict, Unproven):
            return self._unproven(entry)
        self._judged(entry, verdict)
        return None

    def _unproven(self, entry: Entry) -> float | None:
        """Where no call tells it, the event does; where none came in time, that the reply was accepted."""
        heard = self._heard.get(entry.id)
        if heard is not None:
            self.told(entry, heard)
            return None
        if self._awaits_confirmation(entry.id):
            return self._look_in_s(entry.id)
        self._judged(entry, self._expected(entry, "accepted") if entry.id in self._accepted_s else Dead())
        return None

    async def _send(self, server: Server, entry: Entry, decision: Decision) -> None:
        ask = entry.ask
        self._note_word(entry, decision)
        try:
            if decision.kind == "reject":
                await server.reject(ask)
            else:
                await server.reply(ask, self._adapters[ask.source.agent].answers(ask, decision))
            self._accepted_s[entry.id] = self._monotonic()
        except NotThere:
            self._accepted_s.pop(entry.id, None)
            log.info("request %s ended while its answer was on the way", ask.source.request_id)

    def _awaits_confirmation(self, entry_id: str) -> bool:
        accepted_s = self._accepted_s.get(entry_id)
        return accepted_s is not None and self._monotonic() - accepted_s < UNCONFIRMED_S

    def _look_in_s(self, entry_id: str) -> float:
        """After as long again as was waited already: an effect that did not come at once may take its time."""
        return max(CONFIRM_S, self._monotonic() - self._accepted_s[entry_id])

    async def _by_waiter(self, entry: Entry, decision: Decision) -> float | None:
        now_s = self._monotonic()
        if not self._room.waiting(entry.ask):
            alone_s = now_s - self._lonely_s.setdefault(entry.id, now_s)
            if self._has_only_silence(entry):
                left_s = entry.ask.capabilities.silence_s - alone_s
                if left_s <= 0:
                    self._judged(entry, self._expected(entry, "receipt"))
                return max(0.0, left_s) or None
            told = entry.id in self._heard and entry.ask.source.server in self._servers
            if not told and alone_s <= (TAKEN_GRACE_S if entry.waiter_taken else WAITER_GRACE_S):
                return WAITER_LOOK_S
            return await self._without_waiter(entry)
        self._lonely_s.pop(entry.id, None)
        if self._room.is_ready(entry.ask):
            if now_s - self._put_s.setdefault(entry.id, now_s) > UNTAKEN_S:
                self._book.apply(entry.id, Failed(self._now()))
        elif now_s - self._put_s.get(entry.id, -math.inf) > self._put_again_s(entry, now_s):
            # Also where a hook took it before: its plugin had no success with it, or died on the way to it.
            self._note_word(entry, decision)
            self._room.put(entry.ask, self._adapters[entry.ask.source.agent].waiter_text(entry.ask, decision))
            self._put_s[entry.id] = now_s
        return WAITER_LOOK_S

    def _put_again_s(self, entry: Entry, now_s: float) -> float:
        """Return the pause before it is laid ready again; long, and said on the phone, if it was often taken in vain.

        The plugin may be of another version than its agent, and reach it no more.
        """
        if now_s - self._first_put_s.setdefault(entry.id, now_s) <= NO_EFFECT_S:
            return PUT_AGAIN_S
        self._book.apply(entry.id, Failed(self._now()))
        return LONGEST_RETRY_S

    async def _without_waiter(self, entry: Entry) -> float | None:
        """No hook waits any more: its server tells what became of the answer, or carries it now."""
        server = self._servers.get(entry.ask.source.server)
        verdict = await server.verdict(entry.ask) if server is not None else Dead("left")
        if isinstance(verdict, StillOpen):
            self._book.change(entry.id, lambda found: replace(found, route="server"))
            return CONFIRM_S
        self._judged(entry, verdict)
        return WAITER_LOOK_S if isinstance(verdict, Unproven) else None

    # --- what comes of it -----------------------------------------------------------------------------------------

    def _judged(self, entry: Entry, verdict: Verdict) -> None:
        """Turn what is true at the agent into what happened to the entry."""
        # The person may have tapped, and another step delivered, while this verdict was awaited.
        now = self._book.get(entry.id)
        if now is None:
            return
        if isinstance(verdict, StillOpen | Unproven):
            return
        entry, at_s = now, self._now()
        self._proven[entry.id] = verdict
        ours = self._took_effect(entry, verdict)
        together = "" if ours else self._with_another(entry, verdict)
        match verdict:
            case AnsweredWith(answers) if ours and answers == ALLOWED and not self._has_said(entry.id):
                # Our word may have left before a restart, or the desk may have said more than we meant.
                self._book.apply(entry.id, Delivered(at_s, verdict.proof, ALLOWED))
            case AnsweredWith() | WasDismissed() if ours:
                self._book.apply(entry.id, Delivered(at_s, verdict.proof))
            case AnsweredWith(answers, proof) if is_refusal(entry.ask, answers):
                self._book.apply(entry.id, Ended(at_s, "rejected_at_desk", answers, together, proof))
            case AnsweredWith(answers, proof):
                self._book.apply(entry.id, Ended(at_s, "answered_at_desk", answers, together, proof))
            case WasDismissed(proof=proof):
                self._book.apply(entry.id, Ended(at_s, "rejected_at_desk", proof=proof))
            case Dead(proof):
                self._book.apply(entry.id, Ended(at_s, "gone", reason="ended", proof=proof))
        self._forget(entry.id)
        by = " by us" if ours else ""
        log.info("entry %s: %s%s, known by: %s", entry.id, type(verdict).__name__, by, verdict.proof)

    def _took_effect(self, entry: Entry, verdict: Verdict) -> bool:
        """Tell whether what took effect at the agent is what was decided on the phone."""
        if entry.state.phase != "sending":
            return False
        expected = self._expected(entry)
        if entry.ask.permission is not None and isinstance(verdict, AnsweredWith):
            return isinstance(expected, AnsweredWith) and _agree(verdict.answers, expected.answers)
        if isinstance(verdict, WasDismissed) and isinstance(expected, AnsweredWith):
            return verdict.same_as == expected.answers
        return verdict == expected or (isinstance(verdict, WasDismissed) and isinstance(expected, WasDismissed))

    def _has_said(self, entry_id: str) -> bool:
        """Tell whether this listener has sent the decision."""
        return entry_id in self._accepted_s or entry_id in self._put_s

    def _with_another(self, entry: Entry, verdict: Verdict) -> str:
        """Return "together" where our word on another permission of its session ended this one, too."""
        if entry.ask.permission is None or not isinstance(verdict, AnsweredWith) or not verdict.answers:
            return ""
        other_id, word, at_s = self._said.get(entry.ask.source.session_id, (entry.id, "", -math.inf))
        lately = self._monotonic() - at_s < TOGETHER_S
        return "together" if other_id != entry.id and lately and (word,) == verdict.answers[0][:1] else ""

    def _note_word(self, entry: Entry, decision: Decision) -> None:
        """Remember a word that ends more than its own permission: a no its session's, an "always" its like."""
        if entry.ask.permission is None:
            return
        word = self._adapters[entry.ask.source.agent].answers(entry.ask, decision)[0][0]
        if word in {"refused", "always"}:
            now_s = self._monotonic()
            kept = {session: said for session, said in self._said.items() if now_s - said[-1] < TOGETHER_S}
            self._said = {**kept, entry.ask.source.session_id: (entry.id, word, now_s)}

    def _expected(self, entry: Entry, proof: Proof = "") -> Verdict:
        """Return the verdict that proves our own decision."""
        decision = entry.state.decision
        if decision is None or (decision.kind == "reject" and entry.ask.permission is None):
            return WasDismissed(proof=proof)
        return AnsweredWith(self._adapters[entry.ask.source.agent].answers(entry.ask, decision), proof)

    def _failed(self, entry: Entry, why: str) -> float:
        failures = self._failures.get(entry.id, 0)
        self._failures[entry.id] = failures + 1
        if failures == 0:
            log.warning("entry %s: not delivered yet: %s", entry.id, why)
        self._book.apply(entry.id, Failed(self._now()))
        return min(LONGEST_RETRY_S, FIRST_RETRY_S * 2.0 ** min(failures, 10))

    def keep_only(self, open_ids: Collection[str]) -> None:
        """Forget all entries but these."""
        for memory in self._memories():
            for entry_id in memory.keys() - open_ids:
                del memory[entry_id]

    def _forget(self, entry_id: str) -> None:
        for memory in self._memories():
            memory.pop(entry_id, None)

    def _memories(self) -> tuple[dict[str, Any], ...]:
        known = (self._failures, self._accepted_s, self._lonely_s, self._heard, self._proven)
        return (*known, self._put_s, self._first_put_s)


def is_refusal(ask: Ask, answers: Answers) -> bool:
    """Tell whether these answers refuse a permission."""
    return ask.permission is not None and is_no(answers)


def _agree(found: Answers, meant: Answers) -> bool:
    """Tell whether what became of a permission can be what was meant; what is found may be known in part only."""
    if found == ALLOWED:
        return not is_no(meant)
    return found == meant or (found == (("refused",),) and is_no(meant))


def is_no(answers: Answers) -> bool:
    """Tell whether this is the word of a refusal, with or without a why."""
    return len(answers) == 1 and answers[0][:1] == ("refused",)
