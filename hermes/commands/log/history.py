"""Collect the asks for `hermes log`: the questions, the results, the person and place of each decision, the proof.

It reads the entries in the store, which keeps settled ones for `store.keep_done`, and changes nothing.
"""

import contextlib
import json
from dataclasses import asdict, dataclass
from datetime import datetime, tzinfo
from typing import Literal

from hermes.agents.registry import ADAPTERS
from hermes.config.values import seconds
from hermes.core.ends import is_elsewhere
from hermes.errors import ConfigError
from hermes.model.answer import Decision, DecisionKind, OutcomeKind, Proof, Response
from hermes.model.ask import Ask, Permission
from hermes.model.entry import Entry
from hermes.model.state import Phase
from hermes.storage.codec import in_code
from hermes.storage.store import Store


@dataclass(frozen=True, slots=True)
class Posed:
    """One question, with the labels of its options."""

    header: str
    text: str
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision on the phone or by the timer.

    `sent` are the exact words that go to the agent. It is None if the decision has no words (a rejected question, an
    ask left to the computer) or if this Hermes does not know the agent. `stops` is true for a rejection that ends the
    agent's turn.
    """

    kind: DecisionKind
    where: Literal["phone", "timer"]
    user_id: int | None
    user_name: str
    at_s: float
    sent: Response | None
    stops: bool


@dataclass(frozen=True, slots=True)
class Exchange:
    """One ask and its result. The fields are the keys of `--json`: they stay as they are, but new ones may be added.

    - `…at_s`: a time in epoch seconds. `took_s`: the seconds from the ask to its end.
    - `state`: the phase of an open ask, or how the ask ended. `where`: the place of the decision that ended it, or "".
    - `answer`: the exact words that took effect (after an end at the computer, as the agent reported them); None or
      empty if there are none.
    - `confirmed`: how Hermes knows the end (`hermes.model.answer.Proof`).
    - `too_late`: there is a decision, but the ask ended in another way (at the computer, or given up by the agent).
    """

    id: str
    code: str
    kind: Literal["question", "permission"]
    agent: str
    machine: str
    server: str
    directory: str
    session: str
    root_session: str
    session_id: str
    request_id: str | None
    questions: tuple[Posed, ...]
    permission: Permission | None
    asked_at_s: float
    state: Phase | OutcomeKind
    where: Literal["phone", "computer", "timer", ""]
    answer: Response | None
    decision: Decided | None
    ended_at_s: float | None
    took_s: float | None
    confirmed: Proof
    reason: str
    too_late: bool


@dataclass(frozen=True, slots=True)
class History:
    """Exchanges, the newest last, and a sentence about each file that could not be used."""

    exchanges: tuple[Exchange, ...]
    warnings: tuple[str, ...]


def since_of(text: str, *, now_s: float, zone: tzinfo | None) -> float:
    """Return the time (epoch seconds) that "2h", "7d", "2026-11-20" or "2026-11-20T18:00" means.

    Raises:
        ConfigError: the text is neither a length of time nor a date.
    """
    with contextlib.suppress(ValueError):
        return now_s - seconds(text)
    try:
        at = datetime.fromisoformat(text)
        return (at if at.tzinfo or zone is None else at.replace(tzinfo=zone)).timestamp()
    except (ValueError, OverflowError):
        said = "is neither a length of time such as 2h or 7d, nor a date such as 2026-11-20"
        raise ConfigError(f"--since {text!r} {said}.") from None


async def gather(store: Store, *, since_s: float) -> History:
    """Return all pending asks, and those that ended at `since_s` (epoch) or later."""
    # Pending entries are read first: an entry that is settled meanwhile is then read twice instead of missed.
    pending, done = await store.survey(), await store.survey_done(since_s)
    entries = {entry.id: entry for entry in (*pending.entries, *done.entries)}
    told = [_exchange(entry) for entry in entries.values() if not _is_twin(entry)]
    told.sort(key=lambda one: (one.asked_at_s, one.id))
    unread = [f"cannot be read: {path}" for one in (pending, done) for path, _ in (*one.damaged, *one.unread)]
    newer = [f"written by a newer Hermes: {path}" for one in (pending, done) for path in one.too_new]
    return History(tuple(told), (*unread, *newer))


def _is_twin(entry: Entry) -> bool:
    """Tell whether this entry repeats another one that has the same request: it is gone and was never on the phone."""
    outcome = entry.state.outcome
    return outcome is not None and outcome.kind == "gone" and not outcome.reason and entry.phone.message_id is None


def _exchange(entry: Entry) -> Exchange:
    ask, source, outcome = entry.ask, entry.ask.source, entry.state.outcome
    decision = None if entry.state.decision is None else _decided(ask, entry.state.decision)
    where, answer = _effect(entry, decision)
    return Exchange(
        id=entry.id,
        code=entry.code,
        kind="question" if ask.permission is None else "permission",
        agent=ask.capabilities.agent_name,
        machine=source.host or source.machine,
        server=source.server,
        directory=source.directory,
        session=source.session_title,
        root_session=source.root_title,
        session_id=source.session_id,
        request_id=source.request_id,
        questions=tuple(Posed(one.header, one.text, tuple(o.label for o in one.options)) for one in ask.questions),
        permission=ask.permission,
        asked_at_s=entry.asked_s,
        state=entry.state.phase if outcome is None else outcome.kind,
        where=where,
        answer=answer,
        decision=decision,
        ended_at_s=None if outcome is None else outcome.at_s,
        took_s=None if outcome is None else max(0.0, outcome.at_s - entry.asked_s),
        confirmed="" if outcome is None else outcome.proof,
        reason="" if outcome is None else outcome.reason,
        too_late=decision is not None and outcome is not None and is_elsewhere(outcome),
    )


def _decided(ask: Ask, decision: Decision) -> Decided:
    by = decision.by
    return Decided(
        kind=decision.kind,
        where="timer" if by is None else "phone",
        user_id=None if by is None else by.id,
        user_name="" if by is None else by.name,
        at_s=decision.at_s,
        sent=_sent(ask, decision),
        stops=decision.kind == "reject" and ask.capabilities.reject_stops,
    )


def _sent(ask: Ask, decision: Decision) -> Response | None:
    """Return the words that the agent's adapter makes of the decision, or None if there are none."""
    adapter = ADAPTERS.get(ask.source.agent)
    try:
        return None if adapter is None else adapter.answers(ask, decision)
    except ValueError:
        return None  # a rejection or a release is no answer and has no words


def _effect(
    entry: Entry, decision: Decided | None
) -> tuple[Literal["phone", "computer", "timer", ""], Response | None]:
    """Return the place of the decision that ended the ask, or "", and the words that took effect."""
    outcome = entry.state.outcome
    if outcome is None or outcome.kind == "gone":
        return "", None
    if is_elsewhere(outcome):
        return "" if outcome.reason in {"together", "timer"} else "computer", outcome.answers
    return (decision.where, outcome.answers or decision.sent) if decision is not None else ("", None)


def to_json(exchange: Exchange) -> str:
    """Return the exchange as one line of JSON (ASCII), with its fields as keys."""
    decision = exchange.decision
    sent = None if decision is None or decision.sent is None else in_code(decision.sent)
    record = asdict(exchange)
    record["answer"] = None if exchange.answer is None else in_code(exchange.answer)
    if decision is not None:
        record["decision"]["sent"] = sent
    return json.dumps(record)
