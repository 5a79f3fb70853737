"""What agents tell, taken into the book: an ask is one entry, whichever way and however often it comes.

A hook's payload, an event of a server's stream and a line of its list of pending questions all end here.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from hermes.core.intake import merged
from hermes.core.permission_rules import admitted
from hermes.errors import NotSaved
from hermes.listener.entries import in_short
from hermes.model.errand import NewsCame, RequestCame, SessionBusy, Superseded
from hermes.model.signals import Announced, Asked, Busy, Dismissed, Quiet, Replied

if TYPE_CHECKING:
    from hermes.core.permission_rules import Rules
    from hermes.listener.agent.errands import Errands
    from hermes.listener.agent.hooks import Room
    from hermes.listener.entries import Book, Closed
    from hermes.model.ask import Ask
    from hermes.model.entry import Entry
    from hermes.model.errand import Fact
    from hermes.model.signals import Signal

log = logging.getLogger(__name__)

EARLY_NEWS: Final = 1000
"""So much of the newest news of unknown asks is kept, because the ask may come after its end."""


class Intake:
    """Takes signals in: a new ask becomes an entry, and news of an ask goes to its errand.

    `rules` say which permissions are asked for on the phone. An ask has at most one news of its end: `_heard` has the
    ids of the asks that had theirs, `_again` of those whose news could not be saved and comes again.
    """

    def __init__(self, book: Book, errands: Errands, room: Room, *, rules: Rules) -> None:
        self._book = book
        self._errands = errands
        self._room = room
        self._rules = rules
        self._heard: set[str] = set()
        self._again: set[str] = set()
        self._early: dict[str, Replied | Dismissed] = {}

    def take(self, signal: Signal, *, heard_by: str = "") -> None:
        """Let one signal have its effect; on disk when this returns. Taking it twice is taking it once.

        `heard_by` is the server whose events told it, "" for a hook.

        Raises:
            NotSaved: nothing changed; the signal must be kept and taken again.
        """
        match signal:
            case Asked():
                self._asked(signal)
            case Announced(ask):
                if self._book.find(ask.source) is None:
                    self._book.create(ask, matching=True)
            case Replied() | Dismissed():
                meant = self._meant(signal)
                for entry in meant:
                    with self._book.apart(entry):
                        self._pass_on(entry, signal, heard_by)
                if not meant and signal.request_id:
                    self._remember_early(signal.request_id, signal)
            case Quiet():
                self._expect_no_more(signal.session_id)
                self._tell_session(signal.session_id, NewsCame(signal, heard_by))
            case Busy():
                self._tell_session(signal.session_id, SessionBusy())

    def _tell_session(self, session_id: str, fact: Fact) -> None:
        for entry in self._of(session_id):
            with self._book.apart(entry):
                self._errands.tell(entry.id, fact)

    def _asked(self, asked: Asked) -> None:
        ask = admitted(asked.ask, self._rules)
        if ask is None:
            self._errands.dismiss(asked.ask)
            return
        if self._book.is_closed(ask.source):
            return
        entry = self._book.find(ask.source)
        if entry is None and asked.nonce:
            self._supersede(ask)
        if entry is None:
            created = self._book.create(ask, waits=asked.waits)
            log.info(
                "asked: entry %s, request %s of session %s", created.id, ask.source.request_id, ask.source.session_id
            )
        elif entry.state.phase == "matching" and ask.permission is not None:
            self._book.create(ask)  # the call asks whether it may, before it asks what it is for
        elif entry.state.phase == "matching":
            self._errands.tell(entry.id, RequestCame(ask))
        else:
            with self._book.apart(entry):
                self._book.change(entry.id, lambda found: replace(found, ask=merged(found.ask, ask)))
        request_id = ask.source.request_id or ""
        if request_id in self._early:
            self.take(self._early[request_id])
            del self._early[request_id]

    def _remember_early(self, request_id: str, signal: Replied | Dismissed) -> None:
        """Keep the news of an end that came before the question; most speak of what was never ours, or is closed."""
        self._early[request_id] = signal
        if len(self._early) > EARLY_NEWS:
            del self._early[next(iter(self._early))]

    def _pass_on(self, entry: Entry, news: Replied | Dismissed, heard_by: str) -> None:
        """Tell the errand. If the end cannot be saved the news comes again, and its ask may be settled by then."""
        try:
            self._errands.tell(entry.id, NewsCame(news, heard_by))
        except NotSaved:
            self._again.add(entry.id)
            raise
        self._heard.add(entry.id)

    def _meant(self, signal: Replied | Dismissed) -> list[Entry]:
        """Return what this speaks of: the ask that it names, or the one that its call can only mean.

        Two identical calls of one turn are two asks: news of one must never settle the other.
        """
        mine = self._of(signal.session_id)
        if signal.request_id:
            return [entry for entry in mine if entry.ask.source.request_id == signal.request_id]
        if self._is_of_a_settled_one(signal):
            return []
        same = [
            entry for entry in mine if entry.ask.source.call_id == signal.call_id and entry.state.phase != "settled"
        ]
        ours = [entry for entry in same if isinstance(signal, Replied) and self._errands.is_ours(entry, signal)]
        # If none is ours and several are open, each ends by its own hook, by its own word, or with the turn.
        return ours[:1] or (same if len(same) == 1 else [])

    # --- asks that are known by their call alone ---------------------------------------------------------------------

    def _is_of_a_settled_one(self, news: Replied | Dismissed) -> bool:
        """Tell whether this is the news of an ask that was settled before; each takes it once, the oldest first."""
        oldest = next((one.id for one in self._unheard(news.session_id) if one.call_id == news.call_id), None)
        if oldest is not None:
            self._heard.add(oldest)
        return oldest is not None

    def _expect_no_more(self, session_id: str) -> None:
        """Note that the turn has ended: a command that was stopped is told of by nothing else."""
        self._heard.update([one.id for one in self._unheard(session_id)])

    def _unheard(self, session_id: str) -> list[Closed]:
        """Return the closed and the settled asks of this session whose news is still to come."""
        settled = [entry for entry in self._book.entries() if entry.state.phase == "settled"]
        closed = [*self._book.recently_closed, *map(in_short, settled)]
        known = {one.id for one in self._book.recently_closed} | {entry.id for entry in self._book.entries()}
        for ids in (self._heard, self._again):
            ids.intersection_update(known)
        return [one for one in closed if one.session_id == session_id and self._is_unheard(one)]

    def _is_unheard(self, one: Closed) -> bool:
        return (one.awaits_news or one.id in self._again) and one.id not in self._heard

    def _supersede(self, ask: Ask) -> None:
        """Close what this session has asked before in the same words, unless a hook still waits for that one, too."""
        ours = ask.source
        for entry in self._of(ours.session_id):
            known = entry.ask.source
            same = known.call_id == ours.call_id and known.request_id != ours.request_id
            if same and entry.state.phase == "open" and not self._room.waiting(entry.ask):
                with self._book.apart(entry):
                    self._errands.tell(entry.id, Superseded())

    def _of(self, session_id: str) -> list[Entry]:
        return [entry for entry in self._book.entries() if entry.ask.source.session_id == session_id]
