"""The change that each fact makes to an errand. Pure; `core.errand` decides what follows."""

from __future__ import annotations

import math
from dataclasses import replace

from hermes.core import ends, matching
from hermes.core.graces import (
    CONFIRM_S,
    FIRST_RETRY_S,
    HOOK_LOOK_S,
    LONGEST_RETRY_S,
    QUIET_LOOK_S,
    UNCONFIRMED_S,
    UNMATCHED_LOOK_S,
)  # fmt: skip
from hermes.model.answer import Allowed, Proof, Refused
from hermes.model.entry import Entry
from hermes.model.errand import (
    Accepted,
    Doubted,
    Errand,
    Fact,
    HeldElsewhere,
    Hook,
    HookLeft,
    HookSeen,
    HookTook,
    Judged,
    Laid,
    News,
    NewsCame,
    Other,
    PendingListed,
    PlacesGone,
    Released,
    RequestCame,
    ServerBack,
    SessionBusy,
    Superseded,
    Terms,
    Unfitting,
    Unknown,
    Unreached,
)  # fmt: skip
from hermes.model.signals import Dismissed, Quiet, Replied
from hermes.model.verdicts import AnsweredWith, Dead, StillOpen, Unproven, Verdict, WasDismissed


def _entered(entry: Entry, errand: Errand, now_s: float) -> Errand:
    """Begin a phase: pauses, failures and absences of the one before do not count, but a hook that left has left."""
    if errand.phase == entry.state.phase:
        return errand
    hinted = errand.heard is not None or errand.is_quiet
    look_s = now_s if hinted and entry.state.phase == "open" else None
    begun = errand._replace(
        phase=entry.state.phase, look_s=look_s, failures=0, open_s=None, is_reached=None, sent_s=None, declined=""
    )
    return begun if errand.has_left else begun._replace(hook="unknown", hook_at_s=-math.inf, alone_since_s=None)


def learn(entry: Entry, errand: Errand, fact: Fact, now_s: float, terms: Terms) -> Errand:
    """Return the errand after this fact; `now_s` is the steady clock."""
    errand = _entered(entry, errand, now_s)
    is_settled = entry.state.phase == "settled"
    match fact:
        case SessionBusy():
            return errand._replace(is_busy=errand.is_busy or is_settled or errand.has_news)
        case Released():
            return errand._replace(is_released=is_settled)
        case _ if is_settled:
            return errand
        case _:
            return _learn_unsettled(entry, errand, fact, now_s, terms)


def _learn_unsettled(entry: Entry, errand: Errand, fact: Fact, now_s: float, terms: Terms) -> Errand:
    match fact:
        case HookSeen() | HookTook() | HookLeft() | PlacesGone() | Laid():
            return _learn_of_hook(entry, errand, fact, now_s, terms)
        case NewsCame():
            has_news = errand.has_news or not isinstance(fact.news, Quiet)
            return _learn_news(entry, errand._replace(has_news=has_news), fact, now_s, terms)
        case Judged():
            return _learn_verdict(entry, errand, fact, now_s, terms)
        case Unreached() | Accepted() | Unknown() | ServerBack() | Doubted():
            return _learn_of_server(entry, errand, fact, now_s)
        case PendingListed() | RequestCame() | HeldElsewhere() if entry.state.phase == "matching":
            return _learn_of_call(entry, errand, fact, now_s, terms)
        case Unfitting(why) if entry.state.phase == "sending":
            return errand._replace(declined=why)
        case Superseded():
            return errand._replace(proven=Dead("left"))
        case _:
            return errand


def _learn_of_hook(
    entry: Entry,
    errand: Errand,
    fact: HookSeen | HookTook | HookLeft | PlacesGone | Laid,
    now_s: float,
    terms: Terms,
) -> Errand:
    match fact:
        case HookSeen(waits=True, has_text=has_text):
            laid_s = now_s if has_text and errand.laid_s is None else errand.laid_s
            hook: Hook = "has text" if has_text else "waits"
            return errand._replace(hook=hook, hook_at_s=now_s, laid_s=laid_s, alone_since_s=None, has_left=False)
        case HookSeen():
            since_s = now_s if errand.alone_since_s is None else errand.alone_since_s
            return errand._replace(hook="gone", hook_at_s=now_s, alone_since_s=since_s)
        case HookTook():
            is_all = ends.says_no_more(entry) and not entry.ask.capabilities.silence_s
            return errand._replace(proven=ends.known_by(terms.meant, "receipt")) if is_all else errand
        case HookLeft():
            return errand._replace(has_left=True)
        case PlacesGone():
            return errand._replace(places_gone_s=now_s)
        case Laid():
            first_s = now_s if errand.first_laid_s is None else errand.first_laid_s
            return errand._replace(hook="has text", laid_s=now_s, first_laid_s=first_s, has_spoken=True)


def _learn_news(entry: Entry, errand: Errand, fact: NewsCame, now_s: float, terms: Terms) -> Errand:
    news = fact.news
    if terms.is_served or entry.state.phase == "matching":
        errand = _hinted(errand, now_s)
        return errand._replace(is_quiet=True) if isinstance(news, Quiet) else errand._replace(heard=news)
    if fact.heard_by and isinstance(news, Quiet):
        # The server's events may tell that all is over before they tell how: only what it proves counts.
        others = tuple(one for one in errand.also_ask if one.server != fact.heard_by)
        return errand._replace(also_ask=(*others, Other(fact.heard_by, hinted_s=now_s, due_s=now_s)))
    return _believe(entry, errand, news, terms)


def _hinted(errand: Errand, now_s: float) -> Errand:
    """Look now: what was known of the server may be over."""
    return errand._replace(hinted_s=now_s, look_s=now_s, open_s=None)


def _believe(entry: Entry, errand: Errand, news: News, terms: Terms) -> Errand:
    """Take the agent's own word, because nothing else can prove the end."""
    proof: Proof = "event" if terms.is_served else "plugin"
    match news:
        case Replied(answers=answers, by_timer=by_timer):
            return errand._replace(proven=AnsweredWith(answers, proof, by_timer))
        case Dismissed():
            return errand._replace(proven=WasDismissed(proof=proof))
        case Quiet():
            # A turn that ended without another word took the answer that it was given.
            given = ends.has_only_silence(entry)
            return errand._replace(proven=ends.known_by(terms.meant, "receipt") if given else Dead(proof))


def _learn_verdict(entry: Entry, errand: Errand, fact: Judged, now_s: float, terms: Terms) -> Errand:
    verdict = fact.verdict
    if fact.server:
        answered = {one for one in errand.also_ask if one.server == fact.server and one.hinted_s <= fact.asked_s}
        errand = errand._replace(also_ask=tuple(one for one in errand.also_ask if one not in answered))
        return errand if isinstance(verdict, StillOpen | Unproven) else errand._replace(proven=verdict)
    if not terms.is_served:
        return errand  # its server left the configuration
    if errand.sent_s is not None and _contradicts_by_silence(verdict, terms):
        verdict = Unproven()
    match verdict:
        case StillOpen() if fact.asked_s < errand.hinted_s:
            return errand._replace(look_s=now_s)  # what hinted at an end meanwhile may be newer
        case StillOpen() if entry.state.phase == "sending":
            return _still_open(entry, errand._replace(is_reached=True), fact.asked_s, now_s)
        case StillOpen():
            again_s = now_s + QUIET_LOOK_S if errand.is_quiet else None
            return errand._replace(failures=0, is_quiet=False, look_s=again_s)
        case Unproven() if entry.state.phase == "sending":
            return _unproven(entry, errand._replace(is_reached=True), now_s, terms)
        case Unproven():
            return _unproven_while_open(entry, errand._replace(failures=0, look_s=None), terms)
        case AnsweredWith() | WasDismissed() | Dead():
            return errand._replace(proven=verdict)


def _contradicts_by_silence(verdict: Verdict, terms: Terms) -> bool:
    """Tell whether a request seems to be allowed since it is not listed any more, although we refused it."""
    is_silent = isinstance(verdict, AnsweredWith) and (verdict.answers, verdict.proof) == (Allowed(), "list")
    return is_silent and isinstance(terms.meant, AnsweredWith) and isinstance(terms.meant.answers, Refused)


def _still_open(entry: Entry, errand: Errand, asked_s: float, now_s: float) -> Errand:
    if entry.route != "waiter" and is_awaiting_effect(errand, now_s):
        return _look_later(errand, now_s)
    if errand.is_unknown or (entry.route != "waiter" and is_awaiting_effect(errand, asked_s)):
        # It was not there when the reply came, and is there again; or the server is too slow to show any effect.
        return _failed(errand._replace(is_unknown=False), now_s)
    return errand._replace(open_s=now_s, look_s=None)


def _unproven(entry: Entry, errand: Errand, now_s: float, terms: Terms) -> Errand:
    if errand.heard is not None:
        return _believe(entry, errand, errand.heard, terms)
    if entry.route == "waiter":
        return errand._replace(look_s=now_s + HOOK_LOOK_S)
    if is_awaiting_effect(errand, now_s):
        return _look_later(errand, now_s)
    # No event came in time: if the server accepted the reply, that is all there is to know.
    return errand._replace(proven=Dead() if errand.sent_s is None else ends.known_by(terms.meant, "accepted"))


def _unproven_while_open(entry: Entry, errand: Errand, terms: Terms) -> Errand:
    quiet = Quiet(entry.ask.source.session_id) if errand.is_quiet else None
    news = errand.heard or quiet
    errand = errand._replace(is_quiet=False)
    return errand if news is None else _believe(entry, errand, news, terms)


def _learn_of_server(
    entry: Entry, errand: Errand, fact: Unreached | Accepted | Unknown | ServerBack | Doubted, now_s: float
) -> Errand:
    is_sending = entry.state.phase == "sending"
    match fact:
        case Unreached(server) if server:
            due_s = now_s + LONGEST_RETRY_S
            others = (replace(one, due_s=due_s) if one.server == server else one for one in errand.also_ask)
            return errand._replace(also_ask=tuple(others))
        case Unreached() if is_sending and entry.route is None and has_hook(errand) and errand.sent_s is None:
            return errand._replace(is_reached=False)
        case Unreached():
            return _failed(errand, now_s)
        case Accepted() if is_sending:
            return errand._replace(sent_s=now_s, has_spoken=True, open_s=None, look_s=None)
        case Unknown() if is_sending:
            return errand._replace(sent_s=None, open_s=None, is_unknown=True, look_s=None)
        case ServerBack():
            return _hinted(errand, now_s)._replace(failures=0)
        case Doubted() if not is_sending:
            return _hinted(errand, now_s)
        case _:
            return errand


def _learn_of_call(
    entry: Entry, errand: Errand, fact: PendingListed | RequestCame | HeldElsewhere, now_s: float, terms: Terms
) -> Errand:
    match fact:
        case RequestCame(ask):
            return errand._replace(request=ask)
        case HeldElsewhere():
            return errand._replace(is_elsewhere=True)
        case PendingListed(asks, is_busy):
            found = matching.candidates(entry.ask, asks)
            candidate = found[0] if len(found) == 1 else None
            errand = errand._replace(candidate=candidate, is_ambiguous=len(found) > 1, tries=errand.tries + 1)
            if errand.tries < terms.tries or is_busy is None:
                return errand._replace(look_s=now_s + terms.delay_s)
            hinted = errand.heard is not None or errand.is_quiet
            return errand._replace(look_s=now_s + UNMATCHED_LOOK_S, has_no_request=hinted or not is_busy)


def _failed(errand: Errand, now_s: float) -> Errand:
    pause_s = min(LONGEST_RETRY_S, FIRST_RETRY_S * 2.0 ** min(errand.failures, 10))
    return errand._replace(failures=errand.failures + 1, open_s=None, look_s=now_s + pause_s)


def is_awaiting_effect(errand: Errand, now_s: float) -> bool:
    """Tell whether an accepted reply may still show its effect."""
    return errand.sent_s is not None and now_s - errand.sent_s < UNCONFIRMED_S


def _look_later(errand: Errand, now_s: float) -> Errand:
    """Look again after as long as the effect has taken until now."""
    waited_s = 0.0 if errand.sent_s is None else now_s - errand.sent_s
    return errand._replace(look_s=now_s + max(CONFIRM_S, waited_s))


def has_hook(errand: Errand) -> bool:
    """Tell whether a hook waited at the last look."""
    return errand.hook in {"waits", "has text"}
