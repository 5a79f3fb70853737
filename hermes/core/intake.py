"""What a signal of an agent means for the asks that are known: which ask it belongs to, and what has to be done. Pure.

An ask is one entry, whichever way and however often it comes: by a hook, by an event of a server, in a server's list.
Its call may come before its request, and the news of its end before the ask itself.

Some agents name only the call in the news of an end, and two identical calls of one turn have the same id. Then each
ask has at most one such news, the news of an ask that is settled already comes late, and news of several open asks
means the one whose hook has taken our answer, or none: each of them ends by its own hook, or with the turn.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from sys import intern

from hermes.core import ends
from hermes.model.ask import Ask
from hermes.model.entry import Closed, Entry
from hermes.model.errand import Fact, NewsCame, RequestCame, SessionBusy, Superseded
from hermes.model.signals import (
    Announced,
    Asked,
    AskSignal,
    Busy,
    Dismissed,
    Quiet,
    Replied,
    Retrying,
    SessionEnded,
    Signal,
    TurnBegan,
    TurnEnded,
    TurnStopped,
)


@dataclass(frozen=True, slots=True)
class Known:
    """All that is known when a signal comes.

    - `session`: the open entries of its session. `found`: the open entry of its ask, or None; `is_closed`: that ask is
      closed.
    - `unheard`: the settled and closed asks of its session whose news is still to come, the oldest first.
    - `waiting`: the ids of the entries of its session for which a hook waits.
    - `ours`: the ids of the entries whose decision would have the effect that this news tells of.
    - `heard_by`: the server whose events told the signal, "" for a hook.
    """

    session: tuple[Entry, ...] = ()
    found: Entry | None = None
    is_closed: bool = False
    unheard: tuple[Closed, ...] = ()
    waiting: frozenset[str] = frozenset()
    ours: frozenset[str] = frozenset()
    heard_by: str = ""


@dataclass(frozen=True, slots=True)
class Create:
    """Make an entry for this ask. `waits`: a hook waits for the answer. `matching`: its request is not known yet."""

    ask: Ask
    waits: bool = False
    matching: bool = False


@dataclass(frozen=True, slots=True)
class Merge:
    """Let the entry learn what this account of its ask adds."""

    entry_id: str
    ask: Ask


@dataclass(frozen=True, slots=True)
class Tell:
    """Tell this fact to the errand of the entry."""

    entry_id: str
    fact: Fact


@dataclass(frozen=True, slots=True)
class Heard:
    """The news of this ask, which is settled, has come, or will never come."""

    entry_id: str


@dataclass(frozen=True, slots=True)
class Keep:
    """Keep the news: its ask may still come."""


Placed = Create | Merge | Tell | Heard | Keep


def of_asks(signal: Signal) -> AskSignal | None:
    """Return what a signal means for asks, None if nothing."""
    match signal:
        case TurnBegan(session_id=session_id, turn_id=turn_id, ends_asks=ends_asks):
            return Quiet(session_id, but_turn=turn_id) if ends_asks else None
        case SessionEnded(session_id=session_id):
            return Quiet(session_id)
        case TurnEnded(turn, ends_asks):
            return Quiet(turn.source.session_id) if ends_asks else None
        case TurnStopped() | Retrying():
            return None
        case _:
            return signal


def place(signal: AskSignal, known: Known) -> tuple[Placed, ...]:
    """Return what has to be done about this signal, in this order; nothing if it changes nothing."""
    match signal:
        case Asked():
            return _place_ask(signal, known)
        case Announced(ask):
            return (Create(ask, matching=True),) if known.found is None else ()
        case Replied() | Dismissed():
            return _place_news(signal, known)
        case Quiet():
            # A command that was stopped with its turn is told of by nothing else.
            unheard = [one for one in known.unheard if not signal.request_id and not _runs_on(one.message_id, signal)]
            over = [one for one in known.session if signal.request_id in {"", one.ask.source.request_id}]
            over = [one for one in over if not _runs_on(one.ask.source.message_id, signal)]
            told = _tell(over, NewsCame(signal, known.heard_by))
            return (*(Heard(one.id) for one in unheard), *told)
        case Busy():
            return _tell(known.session, SessionBusy())


def _runs_on(message_id: str | None, quiet: Quiet) -> bool:
    return quiet.but_turn != "" and message_id == quiet.but_turn


def _place_ask(asked: Asked, known: Known) -> tuple[Placed, ...]:
    ask, found = asked.ask, known.found
    if known.is_closed:
        return ()
    if found is None:
        return (*(_superseded(asked, known) if asked.nonce else ()), Create(ask, waits=asked.waits))
    if found.state.phase != "matching":
        return (Merge(found.id, ask),)
    if ask.permission is not None:
        return (Create(ask),)  # the call asks whether it may, before it asks what it is for
    return (Tell(found.id, RequestCame(ask)),)


def _superseded(asked: Asked, known: Known) -> tuple[Tell, ...]:
    """Close what this session has asked before by the same call, unless a hook still waits for that one, too."""
    ours = asked.ask.source
    earlier = (entry for entry in known.session if entry.ask.source.call_id == ours.call_id)
    over = (entry for entry in earlier if entry.state.phase == "open" and entry.id not in known.waiting)
    return _tell((entry for entry in over if entry.ask.source.request_id != ours.request_id), Superseded())


def _place_news(news: Replied | Dismissed, known: Known) -> tuple[Placed, ...]:
    came = NewsCame(news, known.heard_by)
    if news.request_id:
        return _tell((one for one in known.session if one.ask.source.request_id == news.request_id), came) or (Keep(),)
    late = [one for one in known.unheard if one.call_id == news.call_id]
    if late:
        return (Heard(late[0].id),)
    called = [entry for entry in known.session if entry.ask.source.call_id == news.call_id]
    same = [entry for entry in called if entry.state.phase != "settled"]
    # A hook says that it takes our answer before its agent can act on it. A hook that has not said so still has to
    # print its answer, and the end of its ask would send it away without one.
    taken = [entry for entry in same if entry.id in known.ours and entry.waiter_taken]
    return _tell(taken[:1] or (same if len(same) == 1 else []), came)


def _tell(entries: Iterable[Entry], fact: Fact) -> tuple[Tell, ...]:
    return tuple(Tell(entry.id, fact) for entry in entries)


def merged(known: Ask, told: Ask) -> Ask:
    """Keep what is shown; learn what was not known: the request, the server that lists it, the titles."""
    ours, theirs = known.source, told.source
    source = replace(
        ours,
        **{
            name: getattr(ours, name) or getattr(theirs, name)
            for name in (
                "request_id",
                "call_id",
                "message_id",
                "session_title",
                "root_title",
                "root_id",
                "last_text",
            )
        },
        # A hook waits for the answer under the machine id that it told last.
        machine=ours.machine if theirs.server else theirs.machine,
        # A server may have another name since, and another word for the folder: what lists the request now is right.
        server=theirs.server or ours.server,
        directory=(theirs.directory if theirs.server else "") or ours.directory or theirs.directory,
    )
    if known.permission is not None and known.permission.partial and told.permission is not None:
        known = replace(known, permission=told.permission, questions=told.questions)
    if ours.request_id is None and theirs.request_id is not None:
        return replace(told, source=replace(source, directory=theirs.directory or source.directory))
    return replace(known, source=source)


def in_short(entry: Entry) -> Closed:
    """Return a settled entry in short."""
    source, outcome = entry.ask.source, entry.state.outcome
    ended_s = 0.0 if outcome is None else outcome.at_s
    awaits_news = _awaits_news(entry)
    return Closed(
        entry.id,
        source.session_id,
        source.call_id,
        awaits_news,
        ends.lasting_word(entry),
        ended_s,
        intern(source.agent),
        intern(source.directory),
        source.message_id if awaits_news else None,
    )


def _awaits_news(entry: Entry) -> bool:
    """Tell whether our answer ended this ask while its call goes on: its agent tells later that the call has ended.

    No such news comes of a call that was refused, or whose end was known by it.
    """
    outcome = entry.state.outcome
    if outcome is None or outcome.kind != "answered" or outcome.proof == "plugin":
        return False
    return entry.ask.source.call_id is not None and not ends.is_refused(entry)
