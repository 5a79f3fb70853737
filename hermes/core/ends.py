"""How an ask ended: a verdict becomes the event that settles the entry. Pure.

Only here it is decided whether an end is the effect of the decision made on the phone.
"""

from __future__ import annotations

from dataclasses import replace

from hermes.core.graces import LATE_ASK_S
from hermes.model.answer import Allowed, Always, Once, Outcome, Proof, Refused, Response
from hermes.model.entry import Closed, Entry, LastingWord
from hermes.model.errand import Terms
from hermes.model.events import Delivered, Ended, EndKind
from hermes.model.verdicts import AnsweredWith, Dead, End, Verdict, WasDismissed


def event(entry: Entry, verdict: End, terms: Terms, *, has_spoken: bool) -> Delivered | Ended:
    """Return the event of the end of an ask; `has_spoken` if an answer left in this run."""
    at_s = terms.at_s
    match verdict:
        case AnsweredWith(answers, proof) if is_ours(entry, verdict, terms.meant):
            # If nothing left in this run, our answer may have left before a restart, or the desk allowed it for longer.
            is_vague = answers == Allowed() and not has_spoken
            return Delivered(at_s, proof, Allowed() if is_vague else ())
        case WasDismissed(proof=proof) if is_ours(entry, verdict, terms.meant):
            return Delivered(at_s, proof)
        case AnsweredWith(answers, proof, by_timer=True):
            return Ended(at_s, "answered_at_desk", answers, "timer", proof)
        case AnsweredWith(answers, proof):
            together = "together" if _lasting(answers) and _lasting(answers) == terms.neighbours_word else ""
            kind: EndKind = "rejected_at_desk" if isinstance(answers, Refused) else "answered_at_desk"
            return Ended(at_s, kind, answers, together, proof)
        case WasDismissed(proof=proof):
            return Ended(at_s, "rejected_at_desk", proof=proof)
        case Dead(proof, reason):
            return Ended(at_s, "gone", reason=reason, proof=proof)


def gone(at_s: float, reason: str = "", proof: Proof = "") -> Ended:
    """Return the event of a call that gets no request of its own."""
    return Ended(at_s, "gone", reason=reason, proof=proof)


def is_ours(entry: Entry, verdict: Verdict, meant: Verdict | None) -> bool:
    """Tell whether the verdict is the effect of the decision that is being sent."""
    if entry.state.phase != "sending" or meant is None:
        return False
    if entry.ask.permission is not None and isinstance(verdict, AnsweredWith):
        return isinstance(meant, AnsweredWith) and _agree(verdict.answers, meant.answers)
    if isinstance(verdict, WasDismissed) and isinstance(meant, AnsweredWith):
        return verdict.same_as == meant.answers
    return verdict == meant or (isinstance(verdict, WasDismissed) and isinstance(meant, WasDismissed))


def is_elsewhere(outcome: Outcome) -> bool:
    """Tell whether something else ended the ask than the decision of the phone or of the timer."""
    return outcome.kind in {"answered_at_desk", "rejected_at_desk", "gone"}


def lasting_word(entry: Entry) -> LastingWord:
    """Return "refused" or "always" if the decision on this permission may end others, else "".

    A refusal ends all of its session, an "always" those that it covers.
    """
    decision, outcome = entry.state.decision, entry.state.outcome
    if entry.ask.permission is None or decision is None or (outcome is not None and is_elsewhere(outcome)):
        return ""
    return _lasting(Refused() if is_refused(entry) else Always() if decision.kind == "always" else Once())


def reaches(other: Closed, entry: Entry) -> bool:
    """Tell whether the lasting word on another ask may end `entry`.

    An "always" that the agent keeps counts in all sessions of its project, any other word in its own. No word ends what
    is asked later, but a refusal may become known a little before the asks that it ends.
    """
    source, stays = entry.ask.source, entry.ask.capabilities.always_stays
    is_kept = stays and other.word == "always" and (other.agent, other.directory) == (source.agent, source.directory)
    late_s = LATE_ASK_S if other.word == "refused" else 0.0
    came_later = 0.0 < other.ended_s < entry.asked_s - late_s
    return bool(other.word) and not came_later and (is_kept or other.session_id == source.session_id)


def _lasting(answers: Response) -> LastingWord:
    match answers:
        case Refused():
            return "refused"
        case Always():
            return "always"
        case _:
            return ""


def is_refused(entry: Entry) -> bool:
    """Tell whether the decision refuses the permission, with or without a reason."""
    decision = entry.state.decision
    return decision is not None and (decision.kind == "reject" or any(one.text is not None for one in decision.answers))


def _agree(found: Response, meant: Response) -> bool:
    """Tell whether the reply to a permission can be the meant one; the found one may be known in part only."""
    if found == Allowed():
        return not isinstance(meant, Refused)
    return found == meant or (found == Refused(None) and isinstance(meant, Refused))


def known_by(meant: Verdict | None, proof: Proof) -> End:
    """Return the meant verdict with this proof."""
    return replace(meant, proof=proof) if isinstance(meant, AnsweredWith | WasDismissed) else WasDismissed(proof=proof)


def has_only_silence(entry: Entry) -> bool:
    """Tell whether a hook took an answer whose result its agent need not tell."""
    return entry.waiter_taken and says_no_more(entry)


def says_no_more(entry: Entry) -> bool:
    """Tell whether the agent need not tell the result of the answer that is being sent."""
    can, decision = entry.ask.capabilities, entry.state.decision
    if entry.state.phase != "sending" or can.reports or decision is None:
        return False
    answers = entry.ask.permission is None and decision.kind in {"answer", "skip"}
    return not (answers and can.tells_answers)
