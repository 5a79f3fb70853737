"""Every edge of every reachable errand of small asks: the laws of the errand hold on each."""

from __future__ import annotations

import gc
import math
from collections import deque
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from hermes.core import dialog, errand, facts
from hermes.core.graces import (
    HOOK_GRACE_S,
    HOOK_LOOK_S,
    LAY_AGAIN_S,
    LEFT_GRACE_S,
    LONGEST_RETRY_S,
    NO_EFFECT_S,
    OPEN_S,
    PLACES_GRACE_S,
    TAKEN_GRACE_S,
    UNCONFIRMED_S,
    UNTAKEN_S,
)  # fmt: skip
from hermes.core.intake import merged
from hermes.model.answer import Allowed, Answer, Decision, Once, Refused
from hermes.model.ask import Capabilities
from hermes.model.entry import Entry, Phone
from hermes.model.errand import (
    Accepted,
    AskVerdict,
    Complete,
    Doubted,
    Errand,
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
    NewsCame,
    NoteHook,
    PendingListed,
    PlacesGone,
    Release,
    Released,
    RequestCame,
    Send,
    ServerBack,
    SessionBusy,
    SetRoute,
    Superseded,
    Terms,
    Unfitting,
    Unknown,
    Unreached,
    Wait,
    Woke,
)  # fmt: skip
from hermes.model.events import Delivered, Ended
from hermes.model.signals import Dismissed, Quiet, Replied
from hermes.model.verdicts import AnsweredWith, Dead, StillOpen, Unproven, WasDismissed
from tests.asks import ANN, ask, permission_ask, question

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes.model.answer import Response
    from hermes.model.ask import Ask
    from hermes.model.entry import Route
    from hermes.model.errand import Fact, Order
    from hermes.model.state import Phase
    from hermes.model.verdicts import Verdict

SURPRISES = 1
"""The walk goes on behind so many facts that came without an order; more take minutes, and showed nothing new."""
LONG_S = 100.0
HINT_S = 0.1
"""A look takes less than this: hints before it are no news to it."""
PAUSE_S = 0.3
"""The pause after a save that failed."""
AGES_S = {
    "hinted_s": (HINT_S,),
    "open_s": (OPEN_S,),
    "sent_s": (UNCONFIRMED_S,),
    "hook_at_s": (HOOK_LOOK_S,),
    "alone_since_s": (LEFT_GRACE_S, 3.0, TAKEN_GRACE_S, HOOK_GRACE_S),
    "places_gone_s": (PLACES_GRACE_S,),
    "laid_s": (LAY_AGAIN_S, UNTAKEN_S, LONGEST_RETRY_S),
    "first_laid_s": (NO_EFFECT_S,),
}
"""Each time is told apart by the graces that it is compared with."""
LAST = (Delivered, Ended)
HINTS = (NewsCame, ServerBack, Doubted)
ANSWERING = (Send, LayReady, SetRoute)
COUNTED = (PendingListed, Unreached, Judged)
OURS, THEIRS = (("B",),), (("A",),)
HEARD = Replied("", "ses_1", THEIRS)
MUTE = Capabilities("Mute", reports=False)
CLAUDE = Capabilities("Claude", reports=False, silence_s=3.0, tells_answers=True)


@dataclass(frozen=True)
class Case:
    """An ask and its circumstances; `permission` terms differ in what their answer means."""

    ask: Ask
    is_served: bool = False
    restarts_hooks: bool = False
    is_call: bool = False
    ends_anew: dict[tuple[object, ...], list[str]] = field(default_factory=dict, init=False, compare=False)
    """How a forgotten errand may end, by the flags of its entry: many errands are compared with it."""

    def terms(self, entry: Entry) -> Terms:
        """As the listener makes them."""
        return self.while_sending if entry.state.phase == "sending" else self.before

    @cached_property
    def before(self) -> Terms:
        """Before a decision, and after the end."""
        return Terms(1000.0, None, self.is_served, self.restarts_hooks, tries=2, delay_s=1.0)

    @cached_property
    def while_sending(self) -> Terms:
        """While our answer is on the way."""
        word = Once() if self.ask.permission is not None else OURS
        return replace(self.before, meant=AnsweredWith(word, ""))


def of_server(an_ask: Ask) -> Ask:
    """The ask of a configured server."""
    return replace(an_ask, source=replace(an_ask.source, server="desk"))


QUESTION = ask(question(labels=("A", "B")))
CASES = {
    "a question of a server": Case(of_server(QUESTION), is_served=True, restarts_hooks=True),
    "a permission of a server": Case(of_server(permission_ask()), is_served=True, restarts_hooks=True),
    "a question of a hook that is started again": Case(QUESTION, restarts_hooks=True),
    "a permission of a hook": Case(replace(permission_ask(), capabilities=CLAUDE)),
    "a question of a hook that tells of answers": Case(replace(QUESTION, capabilities=CLAUDE)),
    "a question of a hook that says no more": Case(replace(QUESTION, capabilities=MUTE)),
    "a question of a server that is not configured": Case(of_server(QUESTION)),
    "a question for the desk alone": Case(replace(QUESTION, answerable=False)),
    "a call": Case(replace(QUESTION, source=replace(QUESTION.source, request_id=None, call_id="c")), is_call=True),
}


@pytest.fixture(autouse=True)
def _without_a_collector() -> Iterator[None]:
    """A walk keeps a million values and drops none: to look for rings among them takes a third of its time."""
    gc.disable()
    yield
    _aged.cache_clear()
    gc.enable()


class Place(NamedTuple):
    """A reachable moment, its clock at 0.

    `is_asked`: a verdict said "still open" after the last answer left; `is_judged`: one did since the decision.
    `surprises` counts the facts on the way to it that came without an order.
    """

    entry: Entry
    errand: Errand
    is_asked: bool = False
    is_judged: bool = False
    surprises: int = 0


def first(case: Case) -> Entry:
    """The entry as it was created."""
    return Entry("e1", "k7", case.ask, dialog.start(case.ask, matching=case.is_call), Phone(11), 1000.0)


def decided(entry: Entry) -> Entry:
    """Let a person answer."""
    decision = Decision("answer", 1000.0, (Answer((1,)),), ANN)
    return replace(entry, state=replace(entry.state, phase="sending", decision=decision))


def news(entry: Entry) -> Iterator[Fact]:
    """All that an agent may tell."""
    request_id = entry.ask.source.request_id or ""
    answers: tuple[Response, ...] = (OURS, THEIRS)
    if entry.ask.permission is not None:
        answers = (Once(), Refused("why"))
    yield NewsCame(Dismissed(request_id, "ses_1"))
    yield from (NewsCame(Replied(request_id, "ses_1", told)) for told in answers)
    for heard_by in ("", "other"):
        yield NewsCame(Quiet("ses_1"), heard_by)


def verdicts(entry: Entry) -> tuple[Verdict, ...]:
    """All that a server may say."""
    told = (OURS, THEIRS) if entry.ask.permission is None else (Once(), Allowed(), Refused())
    return (StillOpen(), Unproven(), Dead(), WasDismissed(), *(AnsweredWith(answers) for answers in told))


def unasked(entry: Entry, case: Case) -> Iterator[tuple[Entry, Fact]]:
    """All facts that come without an order, with the entry as it is saved by then."""
    plain: tuple[Fact, ...] = (Woke(), HookLeft(), PlacesGone(), ServerBack(), Doubted(), SessionBusy())
    yield from ((entry, fact) for fact in (*plain, HookSeen(waits=True), HookSeen(waits=False)))
    yield entry, Judged(StillOpen(), asked_s=-HINT_S / 2)  # of an order that was given before the last fact came
    yield replace(entry, waiter_taken=True), HookTook()
    if entry.state.phase == "open":
        yield entry, Superseded()
        if entry.ask.answerable:
            yield decided(entry), Woke()
    if entry.state.phase == "matching":
        yield entry, RequestCame(with_request(entry.ask))
    yield from ((entry, fact) for fact in news(entry))


def with_request(an_ask: Ask) -> Ask:
    """The request of a call."""
    return replace(an_ask, source=replace(an_ask.source, request_id="que_1"))


def results(entry: Entry, order: Order | None) -> Iterator[tuple[Entry, Fact]]:
    """All that an order may come to, with the entry as it is saved by then. A save may fail."""
    match order:
        case LookForHook():
            yield from ((entry, HookSeen(*seen)) for seen in ((True, False), (True, True), (False, False)))
        case AskVerdict(server):
            yield entry, Unreached(server)
            yield from ((entry, Judged(verdict, server=server)) for verdict in verdicts(entry))
        case Send():
            yield from ((entry, fact) for fact in (Accepted(), Unknown(), Unfitting("no"), Unreached()))
        case ListPending(with_busy):
            for asks in ((), (with_request(entry.ask),), (with_request(entry.ask), with_request(entry.ask))):
                yield from ((entry, PendingListed(asks, busy)) for busy in ((True, False) if with_busy else (None,)))
        case Complete(found):
            yield entry, RequestCame(found)
        case Join(found, event):
            yield entry, Woke()
            yield entry, HeldElsewhere()
            known = replace(entry, ask=merged(entry.ask, found))
            yield replace(known, state=dialog.step(known.ask, known.state, event).state), Woke()
        case LayReady():
            yield from ((entry, fact) for fact in (Woke(), Laid()))
        case Release():
            yield entry, Released()
        case _:
            yield entry, Woke()
            yield saved(entry, order), Woke()


def saved(entry: Entry, order: Order | None) -> Entry:
    """The entry once an order that saves was done."""
    match order:
        case SetRoute(route):
            return replace(entry, route=route)
        case NoteHook():
            return replace(entry, waits=True)
        case Happen(event):
            return replace(entry, state=dialog.step(entry.ask, entry.state, event).state)
        case _:
            return entry


def aged(known: Errand, seconds: float) -> Errand:
    """The errand that much later, its clock at 0 again; ages that no grace tells apart are one."""
    if seconds == 0.0 and not known.also_ask:
        return known  # its times are 0 already, or one of the ages
    return _aged(known, seconds, proof(known))


def proof(known: Errand) -> str:
    """The proof of the verdict that still has to be saved: verdicts that differ in it alone are equal."""
    return getattr(known.proven, "proof", "")


@cache
def _aged(known: Errand, seconds: float, _proof: str) -> Errand:
    times: dict[str, Any] = {name: _past(getattr(known, name), seconds, limits) for name, limits in AGES_S.items()}
    look_s = None if known.look_s is None else max(0.0, known.look_s - seconds)
    due_s = {one.server: LONGEST_RETRY_S if one.due_s > seconds else 0.0 for one in known.also_ask}
    also_ask = tuple(replace(one, hinted_s=-1.0, due_s=due_s[one.server]) for one in known.also_ask)
    return known._replace(**times, look_s=look_s, also_ask=also_ask)


def _past(at_s: float | None, later_s: float, limits: tuple[float, ...]) -> float | None:
    if at_s is None or at_s == -math.inf:
        return at_s
    reached = [limit_s for limit_s in limits if later_s - at_s > limit_s - 1e-9]
    return -(max(reached) + 0.01) if reached else 0.0


def without_the_past(known: Errand, phase: Phase, route: Route | None, *, is_served: bool) -> Errand:
    """Forget what no order depends on any more, so that the walk ends."""
    kept = {"phase", "is_busy", "is_released"}
    if phase != "settled":
        kept = set(Errand._fields)
    if phase != "settled" and known.proven is not None:
        kept = {"phase", "is_busy", "proven", "has_spoken"}
    if is_served:
        kept -= {"has_left", "places_gone_s"}
    if route == "server" or (is_served and phase == "open"):
        kept -= {"hook", "hook_at_s", "alone_since_s", "laid_s", "first_laid_s"}
    if route is not None:
        kept -= {"is_reached"}
    if not is_served:
        kept -= {"hinted_s", "open_s", "is_reached"}
    if known.hinted_s < 0.0:
        kept -= {"hinted_s"}
    known = Errand()._replace(**{name: getattr(known, name) for name in kept})
    look_s = 1.0 if known.look_s else known.look_s
    if known.heard is not None:
        known = known._replace(heard=HEARD)  # which news it was is told by the end alone, and it may end in each way
    return known._replace(failures=min(known.failures, 1), tries=min(known.tries, 2), look_s=look_s, has_news=False)


class Move(NamedTuple):
    """A fact that may come now, or `later_s`, with the entry as it is saved by then."""

    entry: Entry
    fact: Fact
    says_open: bool
    """Whether it is a verdict "still open" of the entry's own server."""
    is_sent: bool
    """Whether an answer left before it."""
    goes_on: bool
    """Whether the walk goes on behind it."""
    later_s: float = 0.0
    surprise: int = 0


@dataclass(slots=True)
class Step:
    """What one move does to one errand, whatever happened before."""

    move: Move
    errand: Errand
    order: Order | None
    spot: tuple[Errand, int] | None = None
    """The errand without its past, and the number of the spot; None until somebody goes on from here."""


class Edge(NamedTuple):
    """One fact at one place, and what is there after it."""

    before: Place
    fact: Fact
    entry: Entry
    errand: Errand
    order: Order | None
    is_asked: bool
    is_judged: bool
    is_new: bool
    """Whether nobody came to the place after it before."""
    is_twin: bool
    """Whether the same fact came to the same errand before: `is_asked` and `is_judged` alone may differ."""


class Walk:
    """Every edge of every reachable errand of one case; nothing goes on behind the edge of a session at work."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self._moves: dict[tuple[tuple[object, ...], Order | None], list[Move]] = {}
        self._steps: dict[tuple[tuple[object, ...], Errand, str], list[Step]] = {}
        self._kept: dict[tuple[tuple[object, ...], Errand, str], tuple[Errand, int]] = {}
        self._spots: dict[tuple[tuple[object, ...], Errand], int] = {}

    def edges(self) -> Iterator[Edge]:
        """Walk them all, each once."""
        queue = deque([Place(first(self.case), Errand())])
        known = {(self._spot(queue[0].entry, queue[0].errand), False, False)}
        while queue:
            here = queue.popleft()
            at = (flags(here.entry), here.errand, proof(here.errand))
            is_twin = at in self._steps
            if not is_twin:
                self._steps[at] = self._steps_from(here)
            for step in self._steps[at]:
                entry, fact, says_open, is_sent, goes_on, _, surprise = step.move
                is_judged = says_open or (here.is_judged and entry.state.phase == "sending")
                is_asked = (here.is_asked or says_open) and not is_sent
                surprises = here.surprises + surprise
                is_new = False
                if surprises <= SURPRISES and goes_on:
                    kept, spot = step.spot = step.spot or self._without_the_past(step)
                    is_new = (spot, is_asked, is_judged) not in known
                    if is_new:
                        known.add((spot, is_asked, is_judged))
                        queue.append(Place(entry, kept, is_asked, is_judged, surprises))
                yield Edge(here, fact, entry, step.errand, step.order, is_asked, is_judged, is_new, is_twin)

    def _steps_from(self, here: Place) -> list[Step]:
        entry, case = here.entry, self.case
        _, due = errand.advance(entry, here.errand, Woke(), 0.0, case.terms(entry))
        told = (flags(entry), due)
        if told not in self._moves:
            self._moves[told] = list(moves(entry, due, case))
        pauses = [due.pause_s + 0.01, LONG_S] if isinstance(due, Wait) else [LONG_S]
        later = [Move(entry, Woke(), says_open=False, is_sent=False, goes_on=True, later_s=one_s) for one_s in pauses]
        ages = {later_s: aged(here.errand, later_s) for later_s in (0.0, *pauses)}
        steps: list[Step] = []
        for move in self._moves[told] + later:
            before = ages[move.later_s]
            after, order = errand.advance(move.entry, before, move.fact, 0.0, case.terms(move.entry))
            steps.append(Step(move, aged(after, 0.0), order))
        return steps

    def _without_the_past(self, step: Step) -> tuple[Errand, int]:
        entry, known = step.move.entry, step.errand
        at = (flags(entry), known, proof(known))
        if at not in self._kept:
            kept = without_the_past(known, entry.state.phase, entry.route, is_served=self.case.is_served)
            self._kept[at] = kept, self._spot(entry, kept)
        return self._kept[at]

    def _spot(self, entry: Entry, known: Errand) -> int:
        """The number of what tells two places apart, `is_asked` and `is_judged` aside."""
        return self._spots.setdefault((flags(entry), known), len(self._spots))


def moves(entry: Entry, due: Order | None, case: Case) -> Iterator[Move]:
    """All facts that may come while this order is due."""
    for surprise, facts_ in ((0, results(entry, due)), (1, unasked(entry, case))):
        for saved_by_then, fact in facts_:
            says_open = isinstance(fact, Judged) and isinstance(fact.verdict, StillOpen) and not fact.server
            is_sent = isinstance(due, Send) and isinstance(fact, Accepted | Unknown | Unfitting | Unreached)
            goes_on = not isinstance(fact, SessionBusy)
            yield Move(saved_by_then, fact, says_open, is_sent, goes_on, surprise=surprise if fact != Woke() else 0)


def flags(entry: Entry) -> tuple[object, ...]:
    """What tells two entries of a walk apart: the words of an ask do not change."""
    state, request_id = entry.state, entry.ask.source.request_id
    return (entry.route, entry.waits, entry.waiter_taken, state.phase, state.away, state.working, request_id)


# --- the laws ---------------------------------------------------------------------------------------------------------


def no_second_answer_before_a_verdict(edge: Edge, _: Case) -> None:
    """An answer leaves for a server only if a verdict said "still open" since the one before."""
    if isinstance(edge.order, Send):
        assert edge.is_asked


def no_permission_without_a_verdict(edge: Edge, case: Case) -> None:
    """The events alone are no reason to answer a permission."""
    if case.ask.permission is not None:
        assert not (isinstance(edge.order, AskVerdict) and edge.order.trusts_events)
        assert not isinstance(edge.order, Send) or edge.is_judged


def only_a_proof_ends_an_ask(edge: Edge, _: Case) -> None:
    """A verdict, news, a receipt, a list, or a hook that was looked for and is gone."""
    proven = edge.errand.proven
    if proven is not None and proven != edge.before.errand.proven:
        assert isinstance(edge.fact, Judged | NewsCame | HookTook | Superseded)
    if not isinstance(edge.order, Happen) or not isinstance(edge.order.event, LAST):
        return
    known, verdict, taken = edge.errand, edge.order.verdict, edge.entry.waiter_taken
    if verdict is None:
        assert known.is_elsewhere or known.is_ambiguous or known.has_no_request
    elif known.proven is None:
        is_gone = known.hook == "gone" and known.alone_since_s is not None
        assert is_gone
        assert verdict == Dead("left") or taken


def only_the_frozen_decision_leaves(edge: Edge, _: Case) -> None:
    """Nothing is sent or laid ready before a person, or time, decided; nothing after the end."""
    if isinstance(edge.order, ANSWERING):
        assert edge.entry.state.phase == "sending"
        assert edge.entry.state.decision is not None


def nothing_hangs(edge: Edge, case: Case) -> None:
    """There is an order for all that is not settled and does not wait for a person; no hint at an end is lost."""
    if edge.order is not None:
        return
    entry, known = edge.entry, edge.errand
    is_older = isinstance(edge.fact, Judged) and edge.fact.asked_s < edge.before.errand.hinted_s
    assert entry.state.phase not in {"matching", "sending"}
    if entry.state.phase == "open" and case.is_served:
        assert not isinstance(edge.fact, HINTS)
        assert not is_older
    if entry.state.phase == "open" and case.ask.answerable and not case.is_served and known.alone_since_s is not None:
        assert not entry.waits or not entry.ask.source.request_id


def a_fact_twice_is_a_fact_once(edge: Edge, case: Case) -> None:
    """A doubled fact leads to the same order; what is counted (tries, failures) apart."""
    if not edge.is_new or isinstance(edge.fact, COUNTED):
        return
    entry = edge.entry
    known, order = errand.advance(entry, edge.errand, edge.fact, 0.0, case.terms(entry))
    assert order == edge.order
    assert aged(known, 0.0) == edge.errand or isinstance(edge.fact, NewsCame)


def a_failed_save_loses_no_verdict(edge: Edge, case: Case) -> None:
    """An end that could not be saved happens later, just so."""
    if isinstance(edge.order, Happen) and isinstance(edge.order.event, LAST):
        entry, later = edge.entry, aged(edge.errand, PAUSE_S)
        assert errand.advance(entry, later, Woke(), 0.0, case.terms(entry))[1] == edge.order


def forgetting_leads_to_the_same_end(edge: Edge, case: Case) -> None:
    """A restart at any moment changes no end."""
    known = edge.errand
    if edge.is_new and known.proven is None and known.heard is None and not known.also_ask and not known.declined:
        assert ends(edge.entry, known, case) == ends_anew(edge.entry, case)


def truths(case: Case) -> tuple[Verdict, ...]:
    """What may be true at the agent: the answer took effect, another one did, or nobody waits."""
    told = (OURS, THEIRS) if case.ask.permission is None else (Once(), Refused())
    return (*(AnsweredWith(answers) for answers in told), Dead()) if case.is_served else (Dead(),)


def ends_anew(entry: Entry, case: Case) -> list[str]:
    """How it may end after a restart."""
    at = flags(entry)
    if at not in case.ends_anew:
        case.ends_anew[at] = ends(entry, Errand(), case)
    return case.ends_anew[at]


def ends(entry: Entry, known: Errand, case: Case) -> list[str]:
    """How it ends for each truth, if no hook comes back and nothing else is ever told."""
    looked = doubted(entry, known, case)
    return [end(entry, *looked, case, truth) for truth in truths(case)]


def doubted(entry: Entry, known: Errand, case: Case) -> tuple[Errand, Order | None]:
    """Look for its hook and doubt it, long after."""
    known, _ = errand.advance(entry, aged(known, LONG_S), HookSeen(waits=False), 0.0, case.terms(entry))
    return errand.advance(entry, known, Doubted(), 0.0, case.terms(entry))


def end(entry: Entry, known: Errand, order: Order | None, case: Case, truth: Verdict) -> str:
    """How it ends if this is true at the agent."""
    for _ in range(6):
        for _ in range(20):
            if isinstance(order, Happen) and isinstance(order.event, LAST):
                return type(order.event).__name__ + getattr(order.event, "kind", "")
            if order is None or isinstance(order, Wait):
                break
            entry, fact = met(entry, order, truth)
            known, order = errand.advance(entry, known, fact, 0.0, case.terms(entry))
        if order is None:
            return "waits for a person"
        known, order = doubted(entry, known, case)
    return "never"


def met(entry: Entry, order: Order, truth: Verdict) -> tuple[Entry, Fact]:
    """What an order comes to in such a world."""
    match order:
        case AskVerdict():
            return entry, Judged(truth, server=order.server)
        case LookForHook():
            return entry, HookSeen(waits=False)
        case Send():
            return entry, Accepted()
        case ListPending():
            return entry, PendingListed((), is_busy=False)
        case Complete(found):
            return entry, RequestCame(found)
        case Join():
            return entry, HeldElsewhere()
        case _:
            return saved(entry, order), Released() if isinstance(order, Release) else Woke()


LAWS: tuple[Callable[[Edge, Case], None], ...] = (
    no_second_answer_before_a_verdict,
    no_permission_without_a_verdict,
    only_a_proof_ends_an_ask,
    only_the_frozen_decision_leaves,
    nothing_hangs,
    a_fact_twice_is_a_fact_once,
    a_failed_save_loses_no_verdict,
    forgetting_leads_to_the_same_end,
)
LAWS_OF_THE_WAY = LAWS[:2]
"""These look at `is_asked` and `is_judged`: they alone can tell an edge from its twin."""


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_the_laws_hold_on_every_edge(case: Case) -> None:
    """Walks every edge of every reachable errand once, and asserts all laws on it."""
    count = 0
    for edge in Walk(case).edges():
        count += 1
        for law in LAWS_OF_THE_WAY if edge.is_twin else LAWS:
            law(edge, case)
    assert count > 100


# --- each law can be broken -------------------------------------------------------------------------------------------

Mutant = tuple[str, str, str, str]
MUTANTS: dict[str, Mutant] = {
    "no_second_answer_before_a_verdict": (
        "errand", "errand.open_s is not None and", "errand.open_s is None or", "a question of a server",
    ),
    "no_permission_without_a_verdict": (
        "errand", "is_first and entry.ask.permission is None", "is_first", "a permission of a server",
    ),
    "only_a_proof_ends_an_ask": (
        "facts", "case Unreached():\n            return _failed(errand, now_s)",
        "case Unreached():\n            return errand._replace(proven=Dead())", "a question of a server",
    ),
    "only_the_frozen_decision_leaves": (
        "errand", "if entry.ask.source.request_id is None:\n        return None",
        "if errand.hook == 'waits':\n        return LayReady()", "a permission of a hook",
    ),
    "nothing_hangs": (
        "errand", 'return Happen(ends.gone(terms.at_s, "ambiguous"))', "return None", "a call",
    ),
    "a_fact_twice_is_a_fact_once": (
        "facts", "has_left=True", "has_left=not errand.has_left", "a permission of a hook",
    ),
    "a_failed_save_loses_no_verdict": (
        "facts", "match fact:\n        case SessionBusy():",
        "errand = errand._replace(proven=None)\n    match fact:\n        case SessionBusy():", "a question of a server",
    ),
    "forgetting_leads_to_the_same_end": (
        "errand", "    order = _next_while_sending(",
        "    if entry.state.away and not errand.has_spoken:\n        return None\n    order = _next_while_sending(",
        "a question of a server",
    ),
}  # fmt: skip
"""For each law: a module of core, a text in it, what stands there in its mutant, and a case that shows it."""


@pytest.mark.parametrize("law", LAWS, ids=[law.__name__ for law in LAWS])
def test_each_law_kills_its_mutant(law: Callable[[Edge, Case], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """A walk over the mutant breaks the law."""
    name, found, instead, case = MUTANTS[law.__name__]
    source = Path(str((facts if name == "facts" else errand).__file__)).read_text(encoding="utf-8")
    assert source.count(found) == 1
    mutant: dict[str, Any] = {"__name__": "mutant"}
    exec(compile(source.replace(found, instead), "mutant", "exec"), mutant)  # noqa: S102 (our own source)
    if name == "facts":
        monkeypatch.setattr(errand, "learn", mutant["learn"])
    else:
        monkeypatch.setattr(errand, "advance", mutant["advance"])
    with pytest.raises(AssertionError):
        broken(law, replace(CASES[case]))  # a case of its own: nothing is known of the mutant's ends


def broken(law: Callable[[Edge, Case], None], case: Case) -> None:
    """Assert this law on every edge of one case."""
    for edge in Walk(case).edges():
        law(edge, case)
