"""What agents tell, taken into the book: an ask is one entry, whichever way and however often it comes.

A hook's payload, an event of a server's stream and a line of its list of pending questions all end here.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from hermes.errors import NotSaved
from hermes.model.events import Ended, Matched, Worked
from hermes.model.signals import Announced, Asked, Busy, Dismissed, Quiet, Replied

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from hermes.listener.entries import Book, Closed
    from hermes.model.ask import Ask, Source
    from hermes.model.entry import Entry
    from hermes.model.signals import Signal

log = logging.getLogger(__name__)

EARLY_NEWS: Final = 1000
UNHEARD: Final = 200
"""So many of the newest settled asks are remembered until their agent tells that their call has ended."""


@dataclass(frozen=True, slots=True)
class Hinted:
    """The entry's agent did something that ended it, or may have: its truth is to be looked up."""

    entry: Entry
    signal: Replied | Dismissed | Quiet


class Intake:
    """Takes signals in.

    `hinted` is called with every hint that an open entry may have ended; `admitted` gives an ask as it is to be taken
    in, None where it is not; `refused` is called with an ask that is not taken in, for who waits for it. `waiting`
    tells whether a hook waits for an ask, `is_ours` whether an agent's news of an entry is what we told it.
    """

    def __init__(
        self,
        book: Book,
        *,
        now: Callable[[], float],
        hinted: Callable[[Hinted], None],
        admitted: Callable[[Ask], Ask | None] = lambda ask: ask,
        refused: Callable[[Ask], None] = lambda _: None,
        waiting: Callable[[Ask], bool] = lambda _: False,
        is_ours: Callable[[Entry, Replied], bool] = lambda *_: False,
    ) -> None:
        self._book = book
        self._admitted = admitted
        self._refused = refused
        self._now = now
        self._hinted = hinted
        self._waiting = waiting
        self._is_ours = is_ours
        self._unheard: dict[str, tuple[str, str] | None] = {}
        self._ended: set[str] = set()
        self._early: dict[str, Replied | Dismissed] = {}

    def take(self, signal: Signal) -> None:
        """Let one signal have its effect; on disk when this returns. Taking it twice is taking it once.

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
                        self._ended.add(entry.id)
                        self._hint(entry, signal)
                if not meant and signal.request_id:
                    self._remember_early(signal.request_id, signal)
            case Quiet():
                self._forget_unheard(signal.session_id)
                for entry in self._of(signal.session_id):
                    with self._book.apart(entry):
                        self._hinted(Hinted(entry, signal))
            case Busy():
                self._worked(signal)

    def keep_only(self, open_ids: Collection[str]) -> None:
        """Forget what was heard of all entries but these."""
        self._ended.intersection_update(open_ids)

    def join(self, entry: Entry, ask: Ask) -> None:
        """Give an entry in phase "matching" the request that was found for it."""
        known = self._book.find(ask.source)
        if known is not None and known.id != entry.id:
            # The request came first by another way: that entry goes on, and this one was never shown.
            self._book.apply(entry.id, Ended(self._now(), "gone"))
            return
        self._book.change(entry.id, lambda found: replace(found, ask=_merged(found.ask, ask)))
        self._book.apply(entry.id, Matched(self._now()))

    def _asked(self, asked: Asked) -> None:
        ask = self._admitted(asked.ask)
        if ask is None:
            self._refused(asked.ask)
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
            self.join(entry, ask)
        else:
            with self._book.apart(entry):
                self._book.change(entry.id, lambda found: replace(found, ask=_merged(found.ask, ask)))
        request_id = ask.source.request_id or ""
        if request_id in self._early:
            self.take(self._early[request_id])
            del self._early[request_id]

    def _remember_early(self, request_id: str, signal: Replied | Dismissed) -> None:
        """Keep the news of an end that came before the question; most speak of what was never ours, or is closed."""
        self._early[request_id] = signal
        if len(self._early) > EARLY_NEWS:
            del self._early[next(iter(self._early))]

    def _hint(self, entry: Entry, news: Replied | Dismissed) -> None:
        """Pass news on. If it cannot be saved it comes again, and its ask may be settled by then."""
        self._unheard.pop(entry.id, None)
        try:
            self._hinted(Hinted(entry, news))
        except NotSaved:
            if not news.request_id:
                self._unheard[entry.id] = news.session_id, news.call_id
            raise

    def _worked(self, busy: Busy) -> None:
        """Note that the agent goes on: often it does so before its answer is confirmed, and says so only once."""
        for entry in self._of(busy.session_id):
            if entry.state.phase == "settled" or entry.id in self._ended:
                with self._book.apart(entry):
                    self._book.apply(entry.id, Worked(self._now()))

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
        ours = [entry for entry in same if isinstance(signal, Replied) and self._is_ours(entry, signal)]
        # If none is ours and several are open, each ends by its own hook, by its own word, or with the turn.
        return ours[:1] or (same if len(same) == 1 else [])

    # --- asks that are known by their call alone ---------------------------------------------------------------------

    def settled(self, entry: Entry) -> None:
        """Remember an ask that was allowed by us and handed over: the news that its call has ended is still to come."""
        outcome, decision, source = entry.state.outcome, entry.state.decision, entry.ask.source
        if outcome is None or outcome.kind != "answered" or outcome.proof != "receipt" or entry.id in self._unheard:
            return
        if source.call_id is not None and decision is not None and all(one.text is None for one in decision.answers):
            self._unheard[entry.id] = source.session_id, source.call_id
            if len(self._unheard) > UNHEARD:
                del self._unheard[next(iter(self._unheard))]

    def recall(self, closed: Iterable[Closed]) -> None:
        """Remember what was allowed before a restart; should its news have come, the next news is not believed."""
        for place, one in enumerate(closed):
            if one.allowed_by_us and one.call_id is not None:
                self._unheard[f"closed {place}"] = one.session_id, one.call_id

    def _is_of_a_settled_one(self, news: Replied | Dismissed) -> bool:
        """Tell whether this is the news of an ask that was settled before; each takes it once, the oldest first."""
        call = news.session_id, news.call_id
        same = (entry_id for entry_id, known in self._unheard.items() if known == call)
        oldest = next((entry_id for entry_id in same if not self._is_open(entry_id)), None)
        if oldest is not None:
            # Kept without its call: it may be seen again, still settled, before it is closed.
            self._unheard[oldest] = None
        return oldest is not None

    def _is_open(self, entry_id: str) -> bool:
        entry = self._book.get(entry_id)
        return entry is not None and entry.state.phase != "settled"

    def _forget_unheard(self, session_id: str) -> None:
        for entry_id, known in self._unheard.items():
            if known is not None and known[0] == session_id:
                self._unheard[entry_id] = None

    def _supersede(self, ask: Ask) -> None:
        """Close what this session has asked before in the same words, unless a hook still waits for that one, too."""
        ours = ask.source
        for entry in self._of(ours.session_id):
            known = entry.ask.source
            same = known.call_id == ours.call_id and known.request_id != ours.request_id
            if same and entry.state.phase == "open" and not self._waiting(entry.ask):
                with self._book.apart(entry):
                    self._book.apply(entry.id, Ended(self._now(), "gone", reason="ended", proof="left"))

    def _of(self, session_id: str) -> list[Entry]:
        return [entry for entry in self._book.entries() if entry.ask.source.session_id == session_id]


def _merged(known: Ask, told: Ask) -> Ask:
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
                "last_text",
            )
        },
        # A server may have another name since, and another word for the folder: what lists the request now is right.
        server=theirs.server or ours.server,
        directory=(theirs.directory if theirs.server else "") or ours.directory or theirs.directory,
    )
    if known.permission is not None and known.permission.partial and told.permission is not None:
        known = replace(known, permission=told.permission, questions=told.questions)
    if ours.request_id is None and theirs.request_id is not None:
        return replace(told, source=_with_titles(source, theirs))
    return replace(known, source=source)


def _with_titles(source: Source, told: Source) -> Source:
    return replace(source, directory=told.directory or source.directory)
