"""The dialog about one ask: its rules are in this file; `page` and `answers` say what a tap or a text can mean.

`step` is total: it never raises, and a stale, doubled or foreign event changes nothing. It does no I/O; its caller
derives each effect (draw, deliver, wake) from the state that `step` returns:

    matching ──Matched──▶ open ──decision──▶ sending ──Delivered──▶ settled
                           │                    │                      ▲
                           │◀────Declined───────┤                      │   (the agent did not take the answer)
                           │                    └────────Ended─────────┤
                           └────────────────────Ended──────────────────┘   (answered at the desk, gone)

`Ended` also settles an ask in phase "matching". An `Expired` that leaves the ask to the desk settles it at once.

Rules that hold on every edge (tests/core/test_dialog_walk.py walks them all):
  * a settled ask stays settled, and only `Delivered` or `Ended` moves an ask out of "sending";
  * a button of an old page (another epoch) changes nothing, except `KeepWaiting` and `TakeOffer`, which name no page;
  * a second delivery of the same update changes nothing;
  * an unasked text is only offered as an answer, even if it is an exact label; the offer stays until a tap on its own
    buttons or ✏️, or another text, takes its place;
  * a person's decision holds the answers that the screen showed; `State.decision` freezes them until they are sent.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from hermes.core.answers import (
    SPLIT_UNITS,
    joined_text,
    leaves_at_once,
    option_named,
    recommended,
    unanswered,
    utf16_units,
)
from hermes.core.page import can_be, has_option, is_on_shelf, is_sendable, is_shown, question_meant
from hermes.model.actions import (
    Action,
    Arm,
    AskTwice,
    Back,
    ClearText,
    Confirmed,
    Go,
    KeepWaiting,
    Pick,
    Send,
    Shelve,
    ShowWhole,
    TakeOffer,
)
from hermes.model.answer import Answer, Decision, DecisionKind, Outcome, OutcomeKind, User
from hermes.model.ask import Ask
from hermes.model.events import (
    Declined,
    Delivered,
    Disarmed,
    Ended,
    Event,
    Expired,
    Failed,
    Matched,
    Tapped,
    Texted,
    Ticked,
    Torn,
    Worked,
)
from hermes.model.state import Armed, Joining, Offer, Part, State, Step, Toast

JOIN_S: Final = 1.5
"""How long to wait for the next part of a text: Telegram's apps split a text that is longer than 4096 units."""
SEEN_KEPT: Final = 32


def start(ask: Ask, *, matching: bool = False) -> State:
    """Return the first state of an ask; `matching` is true if its request is not known yet."""
    return State(phase="matching" if matching else "open", answers=tuple(Answer() for _ in ask.questions))


def step(ask: Ask, state: State, event: Event) -> Step:
    """Return the step that `event` causes in `state`. Never raises; a foreign event leaves the state as it is."""
    match event:
        case Tapped() | Texted() if event.update_id in state.seen:
            return Step(state)
        case Tapped():
            return _noted(state, event.update_id, _tapped(ask, state, event))
        case Texted():
            return _noted(state, event.update_id, _texted(ask, state, event))
        case Ticked():
            return Step(_ticked(ask, state, event.at_s))
        case Expired():
            return Step(_expired(ask, state, event))
        case Declined() if state.phase == "sending" and state.decision is not None:
            return _declined(ask, state, state.decision, event)
        case Matched() if state.phase == "matching":
            return Step(replace(state, phase="open", answers=start(ask).answers))  # perhaps of other questions
        case _:
            return Step(_told(state, event))


# --- taps ---------------------------------------------------------------------------------------------------


def _tapped(ask: Ask, state: State, event: Tapped) -> Step:
    if state.phase in {"settled", "sending"}:
        return Step(state, Toast("settled" if state.phase == "settled" else "on_its_way"))
    if not ask.answerable:
        return Step(state, Toast("not_answerable"))
    return replace(_tapped_open(ask, state, event), touched=True)


def _tapped_open(ask: Ask, state: State, event: Tapped) -> Step:
    if isinstance(event.action, KeepWaiting):
        return Step(state, Toast("kept_waiting"), extra_s=event.action.extra_s or math.inf)
    if state.joining is not None:
        return Step(state, Toast("receiving"))
    if isinstance(event.action, TakeOffer):
        return _offer_taken(ask, state, event, event.action)
    if event.epoch != state.epoch or state.phase != "open":
        return Step(state, Toast("page_changed"))
    return _acted(ask, state, event, event.action)


def _offer_taken(ask: Ask, state: State, event: Tapped, action: TakeOffer) -> Step:
    offer = state.offer
    if offer is None or offer.message_id != action.message_id:
        return Step(state, Toast("page_changed"))
    if not action.on:
        return Step(replace(state, offer=None), Toast("forgotten"))
    changed = _said(ask, replace(state, offer=None), offer.question, event.user, offer.text, event.at_s)
    return Step(changed, Toast("picked", offer.text))


def _acted(ask: Ask, state: State, event: Tapped, action: Action) -> Step:
    match action:
        case Pick() if is_shown(ask, state, action.question) and has_option(ask, action):
            return _picked(ask, state, event, action)
        case Go() if 0 <= action.page <= len(ask.questions) and len(ask.questions) > 1:
            return Step(_turned(state, page=action.page), Toast("moved"))
        case Shelve() if state.page < len(ask.questions) and is_on_shelf(ask, state, action.shelf):
            return Step(_turned(state, shelf=action.shelf), Toast("moved"))
        case Arm() if is_shown(ask, state, action.question) and ask.questions[action.question].custom:
            return _armed(state, event, action)
        case ClearText() if is_shown(ask, state, action.question):
            kept = replace(state.answers[action.question], text=None)
            return Step(_answered(state, action.question, kept), Toast("dropped"))
        case ShowWhole() if ask.permission is not None and state.confirm is None:
            return Step(replace(state, whole=True), Toast("whole"))
        case _:
            return _settling(ask, state, event, action)


def _settling(ask: Ask, state: State, event: Tapped, action: Action) -> Step:
    """Return the step for a tap on Send, Done, Reject, Skip or Always, the second tap that confirms it, or Back."""
    match action:
        case Send() | AskTwice("send") if is_sendable(ask, state):
            if unanswered(state):
                return Step(_turned(state, confirm="send"), Toast("sure"))
            return Step(_decided(state, "answer", event.at_s, event.user), Toast("on_its_way"))
        case AskTwice(what) if can_be(ask, what):
            return Step(_turned(state, confirm=what), Toast("sure"))
        case Confirmed(what) if what == state.confirm:
            kind: DecisionKind = "answer" if what == "send" else what
            return Step(_decided(state, kind, event.at_s, event.user), Toast("on_its_way"))
        case Back() if state.confirm is not None:
            return Step(_turned(state), Toast("moved"))
        case _:
            return Step(state, Toast("page_changed"))


def _picked(ask: Ask, state: State, event: Tapped, action: Pick) -> Step:
    label = ask.questions[action.question].options[action.option].label
    changed = _with_pick(ask, state, action, event.user, event.at_s)
    return Step(changed, Toast("picked" if action.on else "dropped", label))


def _armed(state: State, event: Tapped, action: Arm) -> Step:
    if not action.on:
        return Step(replace(state, armed=None), Toast("typing_off"))
    return Step(replace(state, armed=Armed(action.question, event.user.id, event.at_s), offer=None), Toast("type_now"))


# --- texts --------------------------------------------------------------------------------------------------


def _texted(ask: Ask, state: State, event: Texted) -> Step:
    if state.phase == "settled":
        return Step(state, hint="settled")
    if state.phase != "open" or not ask.answerable:
        return Step(state, hint="taken")
    if not event.text.strip():
        return Step(state)
    if state.joining is not None:
        return _while_joining(ask, state, state.joining, event)
    question = question_meant(ask, state, event.how)
    if question is None:
        return Step(state, hint="which_question", touched=True)
    return replace(_worded(ask, state, event, question), touched=True)


def _while_joining(ask: Ask, state: State, joining: Joining, event: Texted) -> Step:
    if event.user.id != joining.user.id:
        return Step(state, hint="taken")
    if event.how == "part":
        parts = dict.fromkeys((*joining.parts, Part(event.message_id, event.text, event.date_s)))
        longer = replace(joining, parts=tuple(sorted(parts, key=lambda part: part.message_id)))
        return Step(replace(state, joining=longer, due_s=event.at_s + JOIN_S), touched=True)
    # Texts arrive in the order in which they were written, so the text that is being joined has no further part.
    return replace(_texted(ask, _joined(ask, state, joining, event.at_s), event), touched=True)


def _worded(ask: Ask, state: State, event: Texted, index: int) -> Step:
    # A text that answers a permission is a refusal with a reason, even "yes": it counts only after ✏️.
    unasked = event.how in {"offered", "part"} or (ask.permission is not None and not _was_asked(state, event))
    part = Part(event.message_id, event.text, event.date_s)
    if ask.questions[index].custom and utf16_units(event.text) >= SPLIT_UNITS:
        joining = Joining(index, event.user, (part,), offered=unasked)
        return Step(replace(state, joining=joining, due_s=event.at_s + JOIN_S, offer=None))
    if not ask.questions[index].custom and option_named(ask.questions[index], event.text) is None:
        return Step(state, hint="no_such_option")
    if unasked:
        return Step(replace(state, offer=Offer(index, event.user, event.message_id, event.text)))
    return Step(_said(ask, state, index, event.user, event.text, event.at_s))


def _was_asked(state: State, event: Texted) -> bool:
    """Tell whether this person tapped ✏️ before the text; in a group, the text then comes as a reply."""
    armed = state.armed is not None and state.armed.user_id == event.user.id
    return event.how == "armed" or (event.how == "reply" and armed)


def _said(ask: Ask, state: State, index: int, user: User, text: str, at_s: float) -> State:
    """Take a text as the answer: the option that it names, else free text; change nothing if neither is possible.

    For a permission, each text is free text; for a question with `custom`, a number is free text.
    """
    question = ask.questions[index]
    option = None if ask.permission is not None else option_named(question, text)
    if option is not None and (not question.custom or not text.strip().isdigit()):
        return _with_pick(ask, _turned(state), Pick(index, option), user, at_s)
    return _with_text(ask, state, index, user, text, at_s) if question.custom else state


def _joined(ask: Ask, state: State, joining: Joining, at_s: float) -> State:
    """Join the parts, and take the text as the answer, or offer it if it was unasked."""
    heard, whole = replace(state, joining=None, due_s=None), _whole(joining)
    if joining.offered:
        return replace(heard, offer=whole)
    return _said(ask, heard, whole.question, whole.user, whole.text, at_s)


def _whole(joining: Joining) -> Offer:
    return Offer(joining.question, joining.user, joining.parts[0].message_id, joined_text(joining.parts))


# --- time and the agent -------------------------------------------------------------------------------------


def _ticked(ask: Ask, state: State, at_s: float) -> State:
    if state.due_s is None or at_s < state.due_s:
        return state
    if state.phase == "open" and state.joining is not None:
        return _joined(ask, state, state.joining, at_s)
    return state


def _expired(ask: Ask, state: State, event: Expired) -> State:
    if state.phase != "open" or state.joining is not None:
        return state
    if not ask.answerable or event.rule == "keep":
        return _released(ask, state, event.at_s)
    if ask.permission is not None and event.rule != "reject":
        return _released(ask, state, event.at_s)  # a timer never allows a permission
    if event.rule == "recommended" and not state.declined:
        answers = recommended(ask, state)
        if answers is not None:
            return _decided(state, "answer", event.at_s, None, answers=answers)
    if event.rule == "skip" and ask.capabilities.can_skip and not state.declined:
        return _decided(state, "skip", event.at_s, None)
    # If the agent goes on after a "no", this "no" would be an answer that no person gave: leave the ask to the desk.
    if (event.rule == "skip" and not state.declined) or not ask.capabilities.reject_stops:
        return _released(ask, state, event.at_s)
    return _decided(state, "reject", event.at_s, None)


def _declined(ask: Ask, state: State, decision: Decision, event: Declined) -> Step:
    """Ask again, and forget an answer that was the whole one; the person has all of the time for another one."""
    answers = start(ask).answers if leaves_at_once(ask) else state.answers
    opened = _turned(state, phase="open", decision=None, answers=answers, declined=event.why, away=False)
    return Step(opened, touched=decision.by is not None)


def _released(ask: Ask, state: State, at_s: float) -> State:
    """Leave the ask to the desk; if its desk does not stay open, reject it, because its agent would wait for ever."""
    if ask.answerable and not ask.capabilities.desk_stays_open:
        return _decided(state, "reject", at_s, None)
    return replace(_decided(state, "release", at_s, None), phase="settled", outcome=Outcome("expired", at_s))


def _told(state: State, event: Event) -> State:
    """Return the state after an event that neither a person nor a timer caused for this ask."""
    match event:
        case Disarmed() if state.phase == "open":
            return replace(state, armed=None)
        case Torn() if state.phase == "open" and state.joining is not None:
            return replace(state, joining=replace(state.joining, offered=True))
        case Delivered() if state.phase == "sending":
            return _settled(state, Outcome(_outcome(state.decision), event.at_s, event.answers, proof=event.proof))
        case Failed() if state.phase == "sending":
            return replace(state, away=True, unknown=event.is_unknown)
        case Ended() if state.phase != "settled":
            return _settled(state, Outcome(event.kind, event.at_s, event.answers, event.reason, event.proof))
        case Worked() if state.phase in {"sending", "settled"}:
            return replace(state, working=True)
        case _:
            return state


_OUTCOMES: Final[dict[DecisionKind, OutcomeKind]] = {
    "answer": "answered",
    "reject": "rejected",
    "skip": "skipped",
    "release": "expired",
    "always": "answered",
}


def _outcome(decision: Decision | None) -> OutcomeKind:
    if decision is None or decision.by is None:
        return "expired"
    return _OUTCOMES[decision.kind]


# --- changes of the state that the rules above share --------------------------------------------------------


def _noted(before: State, update_id: int, step: Step) -> Step:
    """Remember the update, so that a second delivery of it changes nothing."""
    seen = (*before.seen, update_id)[-SEEN_KEPT:]
    return replace(step, state=replace(step.state, seen=seen))


def _turned(state: State, **changes: object) -> State:
    """Return the state with `changes` and the next epoch, so that the buttons of the page before change nothing."""
    fresh = replace(state, epoch=state.epoch + 1, confirm=None, armed=None)
    if "page" in changes:
        fresh = replace(fresh, shelf=0)
    return replace(fresh, **changes)  # type: ignore[arg-type]


def _answered(state: State, index: int, answer: Answer) -> State:
    return replace(state, answers=(*state.answers[:index], answer, *state.answers[index + 1 :]))


def _decided(
    state: State, kind: DecisionKind, at_s: float, by: User | None, *, answers: tuple[Answer, ...] | None = None
) -> State:
    given = state.answers if answers is None else answers
    decision = Decision(kind, at_s, given if kind == "answer" else (), by)
    return _turned(state, phase="sending", decision=decision, joining=None, due_s=None, declined="")


def _settled(state: State, outcome: Outcome) -> State:
    """Settle the ask. A text that waited for its other parts becomes an offer: the phone says that it was not used."""
    offer = state.offer if state.joining is None else _whole(state.joining)
    return _turned(state, phase="settled", outcome=outcome, joining=None, due_s=None, offer=offer)


def _with_pick(ask: Ask, state: State, action: Pick, user: User, at_s: float) -> State:
    question, given = ask.questions[action.question], state.answers[action.question]
    if question.multiple:
        others = tuple(pick for pick in given.picks if pick != action.option)
        picks = given.picks if action.on and action.option in given.picks else others
        picks = (*others, action.option) if action.on and action.option not in given.picks else picks
        return _answered(state, action.question, replace(given, picks=picks))
    answered = _answered(state, action.question, Answer((action.option,) if action.on else ()))
    if not action.on:
        return answered
    return _moved_on(ask, answered, action.question, user, at_s)


def _with_text(ask: Ask, state: State, index: int, user: User, text: str, at_s: float) -> State:
    question = ask.questions[index]
    if question.multiple and question.options:
        return _turned(_answered(state, index, replace(state.answers[index], text=text)))
    return _moved_on(ask, _answered(state, index, Answer((), text)), index, user, at_s)


def _moved_on(ask: Ask, state: State, index: int, user: User, at_s: float) -> State:
    """Send the answer if it is the whole one; else show the next page, or the review if no question is unanswered."""
    if leaves_at_once(ask):
        return _decided(state, "answer", at_s, user)
    review = len(ask.questions)
    return _turned(state, page=index + 1 if unanswered(state) else review)
