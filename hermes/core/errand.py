"""The errand of one ask: how its answer travels to the agent, and how the ask ends there. Pure.

    advance(entry, errand, fact, now_s, terms) -> (errand, order)

A fact is something that was seen: a hook waits, a server gave a verdict, news came. The errand is all that is known of
the agent's side of one open entry and is not saved. The order is the first thing that has to be done now, or None. The
caller does it and gives its result back as the next fact. Only this module decides that an ask was delivered, failed,
was matched or has ended.

    matching   list the pending requests until one of them is the call's         → Matched, Ended
    open       look for its end if something hints at one                        → Ended
    sending    by its server: verdict, reply, verdict until it is confirmed      → Delivered, Failed, Declined, Ended
               by its hook: lay the text ready until the plugin tells the result
    settled    take back a text that nobody took, release a hook that still waits

Rules:
  * Nothing ends an ask but a proof: a verdict, the agent's own news, a receipt, or a hook that is gone for good.
  * A reply is sent only after a verdict (or the unbroken event stream) says that the request is still open; to a
    permission only after a verdict.
  * The order depends on the entry and the errand alone, not on the fact that came last. So a fact may come twice, late
    or never, several facts may come before one order is done, and an order whose result could not be saved comes again.
  * `Errand()` is enough after a restart: whatever was known is seen again.
"""

from __future__ import annotations

import math

from hermes.core import ends
from hermes.core.facts import has_hook, is_awaiting_effect, learn
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
    UNTAKEN_S,
)  # fmt: skip
from hermes.model.entry import Entry
from hermes.model.errand import (
    AskVerdict,
    Complete,
    Errand,
    Fact,
    Happen,
    Join,
    LayReady,
    ListPending,
    LookForHook,
    NoteHook,
    Order,
    Release,
    Send,
    SetRoute,
    Terms,
    Wait,
)  # fmt: skip
from hermes.model.events import Declined, Failed, Matched, Worked
from hermes.model.verdicts import Dead, End


def advance(entry: Entry, errand: Errand, fact: Fact, now_s: float, terms: Terms) -> tuple[Errand, Order | None]:
    """Return what is known after this fact, and the first thing to do now, None if only another fact can help.

    `now_s` is the steady clock. Never raises; a fact that is stale or foreign changes nothing that counts.
    """
    if not terms.is_known:
        is_told = entry.state.phase != "sending" or entry.state.unknown
        return errand, None if is_told else Happen(Failed(terms.at_s, is_unknown=True))
    known = learn(entry, errand, fact, now_s, terms)
    return known, _next(entry, known, now_s, terms)


def _next(entry: Entry, errand: Errand, now_s: float, terms: Terms) -> Order | None:
    phase = entry.state.phase
    if phase == "settled":
        has_hook = entry.waits or not entry.ask.source.server
        return Release() if has_hook and not errand.is_released else _worked(entry, errand, terms)
    if errand.proven is not None:
        return _settle(entry, errand, errand.proven, terms)
    if phase == "matching":
        return _next_while_matching(errand, now_s, terms)
    if phase == "open":
        return _sooner(_next_while_open(entry, errand, now_s, terms), _next_elsewhere(errand, now_s))
    if errand.declined:
        return Happen(Declined(terms.at_s, errand.declined))
    order = _next_while_sending(entry, errand, now_s, terms)
    if order is not None and not isinstance(order, Wait):
        return order
    # The rest must not hold up an answer: another server may be slow, and the disk full.
    if errand.failures and not _is_told_of_absence(entry):
        return Happen(Failed(terms.at_s))
    return _worked(entry, errand, terms) or _sooner(order, _next_elsewhere(errand, now_s))


def _next_elsewhere(errand: Errand, now_s: float) -> AskVerdict | Wait | None:
    """Ask the servers that hinted at an end, one after the other."""
    if not errand.also_ask:
        return None
    other = min(errand.also_ask, key=lambda one: one.due_s)
    return AskVerdict(other.server) if other.due_s <= now_s else Wait(other.due_s - now_s)


def _sooner(order: Order | None, other: Order | None) -> Order | None:
    if isinstance(order, Wait) and isinstance(other, Wait):
        return Wait(min(order.pause_s, other.pause_s))
    return other if order is None or (isinstance(order, Wait) and other is not None) else order


def _worked(entry: Entry, errand: Errand, terms: Terms) -> Happen | None:
    return Happen(Worked(terms.at_s)) if errand.is_busy and not entry.state.working else None


def _next_while_matching(errand: Errand, now_s: float, terms: Terms) -> Order:
    if errand.is_elsewhere:
        # The request came first by another way: that entry goes on, and this one was never shown.
        return Happen(ends.gone(terms.at_s))
    if errand.request is not None:
        return Join(errand.request, Matched(terms.at_s))
    if errand.candidate is not None:
        return Complete(errand.candidate)
    if errand.is_ambiguous:
        return Happen(ends.gone(terms.at_s, "ambiguous"))
    if errand.has_no_request:
        return Happen(ends.gone(terms.at_s, "ended", "list"))
    if errand.look_s is not None and now_s < errand.look_s:
        return Wait(errand.look_s - now_s)
    return ListPending(with_busy=errand.tries + 1 >= terms.tries)


def _next_while_open(entry: Entry, errand: Errand, now_s: float, terms: Terms) -> Order | None:
    if entry.ask.source.request_id is None:
        return None
    if terms.is_served:
        if errand.look_s is None:
            return None
        return AskVerdict() if errand.look_s <= now_s else Wait(errand.look_s - now_s)
    if not entry.ask.answerable:
        return None
    if has_hook(errand) and not entry.waits:
        return NoteHook()
    if errand.alone_since_s is None or not entry.waits:
        return None
    may_return = terms.restarts_hooks and not errand.has_left
    return _unless_it_returns(entry, errand, HOOK_GRACE_S if may_return else LEFT_GRACE_S, now_s, terms)


def _unless_it_returns(entry: Entry, errand: Errand, grace_s: float, now_s: float, terms: Terms) -> Order:
    """End an ask whose only way back was a hook, unless one waits again in time."""
    since_s = now_s if errand.alone_since_s is None else errand.alone_since_s
    end_s = max(since_s + grace_s, errand.places_gone_s + PLACES_GRACE_S)
    if now_s < end_s:
        return Wait(end_s - now_s)
    if errand.hook_at_s < end_s:
        return LookForHook()
    return _settle(entry, errand, Dead("left"), terms)


def _next_while_sending(entry: Entry, errand: Errand, now_s: float, terms: Terms) -> Order | None:
    if entry.state.decision is None:
        return None
    if entry.route == "waiter" or not (terms.is_served or entry.ask.source.server):
        return _next_by_hook(entry, errand, now_s, terms)
    if entry.route is None and errand.sent_s is None:
        if now_s - errand.hook_at_s >= HOOK_LOOK_S:
            return LookForHook()
        if has_hook(errand):
            return _choose_route(errand, terms)
    return _next_by_server(entry, errand, now_s)


def _choose_route(errand: Errand, terms: Terms) -> Order:
    """Prefer the server; a server that is away or not in the configuration leaves the answer to the hook."""
    if not terms.is_served:
        return SetRoute("waiter")
    if errand.is_reached is None:
        return AskVerdict()
    return SetRoute("server" if errand.is_reached else "waiter")


def _next_by_server(entry: Entry, errand: Errand, now_s: float) -> Order:
    if errand.look_s is not None and now_s < errand.look_s:
        return Wait(errand.look_s - now_s)
    if _may_send(errand, now_s) and not is_awaiting_effect(errand, now_s):
        # A second way, or a neighbour's end, is judged by the saved route after a restart.
        needs_route = has_hook(errand) or entry.ask.permission is not None
        return SetRoute("server") if needs_route and entry.route != "server" else Send()
    # A late answer to a dead permission may run its command all the same, so a verdict is asked for there.
    is_first = errand.sent_s is None and not errand.failures and not errand.is_unknown
    return AskVerdict(trusts_events=is_first and entry.ask.permission is None)


def _next_by_hook(entry: Entry, errand: Errand, now_s: float, terms: Terms) -> Order:
    if errand.look_s is not None and now_s < errand.look_s:
        return Wait(errand.look_s - now_s)
    if _may_send(errand, now_s):
        return SetRoute("server")
    look_in_s = errand.hook_at_s + HOOK_LOOK_S - now_s
    if look_in_s <= 0:
        return LookForHook()
    if errand.hook == "gone":
        return _next_without_hook(entry, errand, now_s, terms) or Wait(look_in_s)
    laid_s = -math.inf if errand.laid_s is None else errand.laid_s
    if errand.hook == "has text":
        late = now_s - laid_s > UNTAKEN_S and not _is_told_of_absence(entry)
        return Happen(Failed(terms.at_s)) if late else Wait(look_in_s)
    # A hook may wait again after it took the text: its plugin had no success with it, or died on the way.
    in_vain = errand.first_laid_s is not None and now_s - errand.first_laid_s > NO_EFFECT_S
    if now_s - laid_s > (LONGEST_RETRY_S if in_vain else LAY_AGAIN_S):
        return LayReady() if entry.route == "waiter" else SetRoute("waiter")
    return Happen(Failed(terms.at_s)) if in_vain and not _is_told_of_absence(entry) else Wait(look_in_s)


def _next_without_hook(entry: Entry, errand: Errand, now_s: float, terms: Terms) -> Order | None:
    """No hook waits any more: its plugin or its server tells the result, or the server carries the answer now."""
    alone_s = now_s - (now_s if errand.alone_since_s is None else errand.alone_since_s)
    if errand.has_left and not terms.is_served and entry.ask.answerable:
        return _unless_it_returns(entry, errand, LEFT_GRACE_S, now_s, terms)
    if ends.has_only_silence(entry):
        if alone_s < entry.ask.capabilities.silence_s:
            return Wait(entry.ask.capabilities.silence_s - alone_s)
        return _settle(entry, errand, ends.known_by(terms.meant, "receipt"), terms)
    if terms.is_served:
        grace_s = 0.0 if errand.heard is not None else _hook_grace_s(entry)
        return AskVerdict() if alone_s >= grace_s else None
    return _settle(entry, errand, Dead("left"), terms) if alone_s > _hook_grace_s(entry) else None


def _is_told_of_absence(entry: Entry) -> bool:
    return entry.state.away and not entry.state.unknown


def _may_send(errand: Errand, now_s: float) -> bool:
    return errand.open_s is not None and now_s - errand.open_s <= OPEN_S


def _hook_grace_s(entry: Entry) -> float:
    return TAKEN_GRACE_S if entry.waiter_taken else HOOK_GRACE_S


def _settle(entry: Entry, errand: Errand, verdict: End, terms: Terms) -> Happen:
    return Happen(ends.event(entry, verdict, terms, has_spoken=errand.has_spoken), verdict)
