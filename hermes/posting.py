"""What the phone shows of an entry, made true one step at a time.

A step compares what should stand on the phone (the screens of the saved entry) with what stands there (the digests
in `Entry.phone`) and does the first thing that differs. So nothing has to be remembered beside the entry: a process
that died between a request and its note at worst repeats the request.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from hermes.chat.bot import vanished
from hermes.chat.deed import trail_line
from hermes.chat.render import main, sides
from hermes.errors import ChatRefused
from hermes.model import Side

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.book import Book
    from hermes.chat.outbox import Outbox
    from hermes.chat.render import Look, Screen, SideScreen
    from hermes.model import Decision, Entry, Phone, SideKind, Timing

log = logging.getLogger(__name__)

SETTLING_S: Final = 0.6
"""How long a screen that is about to change again is not drawn: one edit shows the answer and its end."""
LINGER_S: Final = 10.0
"""How long a settled ask stays open for the news that the agent is working again."""
AT_ONCE: Final = 0.0
BEHIND_LOOK_S: Final = 5.0
"""How often a permission looks whether the one before it is over, should nobody tell."""
DRAWING_S: Final = 0.1
LOOKING_S: Final = 20.0
"""For so long after a tap its person still looks at the message: what comes next needs no sound."""
REFUSING_S: Final = 5.0
"""What was asked before the refusal of another one of its session ends with it, within this time."""
IN_A_ROW_S: Final = 600.0
"""A permission that comes later than this after the one before it begins a message of its own."""


@dataclass(frozen=True, slots=True)
class _Left:
    """The message of a permission that is over, for the next one of its session to take over."""

    chat_id: int
    message_id: int
    at_s: float
    tapped_s: float
    refused_s: float
    trail: tuple[str, ...]


class Posting:
    """Moves the phone's side of an entry.

    `started(entry)` gives the timing of an ask whose time to answer begins; `quiet()` tells whether the phone must
    not ring now; `sent` hears that the chat took a question.
    """

    def __init__(
        self,
        book: Book,
        outbox: Outbox,
        look: Look,
        *,
        post_after_s: float,
        started: Callable[[Entry], Timing],
        quiet: Callable[[], bool],
        sent: Callable[[], None] = lambda: None,
        now: Callable[[], float],
    ) -> None:
        self._book = book
        self._outbox = outbox
        self._look = look
        self._post_after_s = post_after_s
        self._started = started
        self._quiet = quiet
        self._sent = sent
        self._now = now
        # What was sent and could not be noted (a full disk): it must not be sent again and again.
        self._unnoted: dict[str, tuple[int, str]] = {}
        self._left: dict[str, _Left] = {}

    async def step(self, entry_id: str) -> float | None:
        """Do the next thing; return the seconds until the step after it, or None where all is shown.

        Raises:
            ChatError: the phone could not be reached, or refused; the step is to be tried again.
            NotSaved: the phone shows something that could not be noted; it will be shown again.
        """
        entry = self._book.get(entry_id)
        if entry is None or entry.state.phase == "matching":
            return None
        if entry.phone.message_id is None:
            return await self._post(entry)
        if entry.timing.posted_s is None:
            return self._adopted(entry)
        if entry.phone.copies:
            return await self._remove_copy(entry, entry.phone.copies[0])
        wait_s = self._settles_in(entry)
        if wait_s > 0:
            return wait_s
        if main(entry, self._look).digest != entry.phone.drawn:
            return await self._redraw(entry)
        beside = await self._beside(entry)
        return beside if beside is not None else self._closed(entry)

    async def _post(self, entry: Entry) -> float | None:
        if self._is_over_unseen(entry):
            self._book.close(entry.id)
            return None
        wait_s = self._not_before(entry)
        if wait_s is not None:
            return wait_s
        timed, left = entry, None
        if entry.timing.posted_s is None:
            left = self._left_before(entry)
            trail = entry.trail if left is None else left.trail
            timed = replace(entry, timing=self._started(entry), trail=trail)
        screen = main(timed, self._look)
        if entry.id not in self._unnoted:
            message_id = await self._shown(entry, screen, left)
            self._unnoted[entry.id] = message_id, screen.digest
        message_id, drawn = self._unnoted[entry.id]
        self._note_post(timed, message_id, drawn)
        if left is not None:
            del self._left[entry.ask.source.session_id]
            if left.message_id != message_id:
                await self._outbox.discard(left.chat_id, left.message_id)
        self._sent()
        log.info("posted: entry %s is message %d", entry.id, message_id)
        return AT_ONCE

    def _is_over_unseen(self, entry: Entry) -> bool:
        """Tell whether it was over before anybody saw it: there is nothing to say."""
        state = entry.state
        unseen = entry.timing.posted_s is None and state.decision is None and not state.seen
        over = state.outcome is not None and state.outcome.reason != "ambiguous"
        return over and unseen and entry.id not in self._unnoted

    def _not_before(self, entry: Entry) -> float | None:
        """Return when to look again where it is too early: the desk comes first, and what was asked before; or None."""
        age_s = self._now() - entry.asked_s
        # Of another age than it could have, the wall clock was set back: nobody must wait for that.
        if 0 <= age_s < self._post_after_s and entry.state.phase == "open":
            return self._post_after_s - age_s
        behind_s = self._behind(entry)
        left = self._left_before(entry)
        if left is not None and entry.asked_s <= left.refused_s and self._now() - left.at_s < REFUSING_S:
            return DRAWING_S
        return behind_s

    def _note_post(self, timed: Entry, message_id: int, drawn: str) -> None:
        """Save what was posted. Raises NotSaved: it is known here until that succeeds."""

        def posted(found: Entry) -> Entry:
            if found.phone.chat_id != timed.phone.chat_id:
                return found
            timing = timed.timing if found.timing.posted_s is None else found.timing
            copies = found.phone.copies
            if found.phone.message_id not in {None, message_id}:
                # An earlier send had arrived all the same, and was tapped while this one was on its way.
                copies = (*copies, found.phone.message_id)
            phone = replace(found.phone, message_id=message_id, drawn=drawn, copies=copies)
            return replace(found, phone=phone, timing=timing, trail=timed.trail)

        self._book.change(timed.id, posted)
        del self._unnoted[timed.id]

    # --- several permissions in a row are one message that moves on ------------------------------------------

    def _behind(self, entry: Entry) -> float | None:
        """Return when to look again where an earlier permission of the session is not over yet, else None.

        One that is over, and shown so, is put away here: its message is free.
        """
        if entry.ask.permission is None or entry.state.phase == "settled":
            return None
        for other in self._book.entries():
            if other.id == entry.id:
                return None
            if other.ask.permission is None or other.ask.source.session_id != entry.ask.source.session_id:
                continue
            if other.state.phase != "settled":
                return BEHIND_LOOK_S
            if other.phone.message_id is not None:
                if main(other, self._look).digest != other.phone.drawn or self._beside_is_due(other):
                    return DRAWING_S
                self._put_away(other)
        return None

    def _beside_is_due(self, entry: Entry) -> bool:
        wanted = sides(entry, self._look)
        return {side.kind for side in entry.phone.sides} != set(wanted)

    def _left_before(self, entry: Entry) -> _Left | None:
        left = self._left.get(entry.ask.source.session_id) if entry.ask.permission is not None else None
        if left is None or left.chat_id != entry.phone.chat_id or abs(self._now() - left.at_s) > IN_A_ROW_S:
            return None
        return left

    async def _shown(self, entry: Entry, screen: Screen, left: _Left | None) -> int:
        """Show it: in the message of the one before, if somebody still looks at that, else in a new one."""
        if left is not None and 0 <= self._now() - left.tapped_s < LOOKING_S:
            try:
                await self._outbox.edit(left.chat_id, left.message_id, screen)
            except ChatRefused as error:
                if not vanished(error):
                    raise
            else:
                return left.message_id
        return await self._outbox.send(entry.phone.chat_id, screen, silent=self._quiet())

    def _put_away(self, entry: Entry) -> None:
        """Close an entry; the message of a permission may be taken over by the next of its session."""
        self._book.close(entry.id)
        phone, decision, source = entry.phone, entry.state.decision, entry.ask.source
        if entry.ask.permission is None or phone.message_id is None:
            return
        tapped_s = decision.at_s if decision is not None and decision.by is not None else -math.inf
        trail = (*entry.trail, trail_line(entry))
        refused_s = tapped_s if decision is not None and _is_refusal(decision) else -math.inf
        self._left[source.session_id] = _Left(phone.chat_id, phone.message_id, self._now(), tapped_s, refused_s, trail)
        for session_id, left in list(self._left.items()):
            if abs(self._now() - left.at_s) > IN_A_ROW_S:
                del self._left[session_id]

    def _adopted(self, entry: Entry) -> float:
        """A send that nobody confirmed had arrived, and was tapped: its time to answer begins as any other's."""
        message_id, _ = self._unnoted.pop(entry.id, (entry.phone.message_id, ""))
        more = () if message_id in {None, entry.phone.message_id} else (message_id,)

        def noted(found: Entry) -> Entry:
            phone = replace(found.phone, copies=(*found.phone.copies, *more))
            return replace(found, phone=phone, timing=self._started(found))

        self._book.change(entry.id, noted)
        return AT_ONCE

    async def _redraw(self, entry: Entry) -> float:
        screen = main(entry, self._look)
        message_id = entry.phone.message_id or 0
        try:
            await self._outbox.edit(entry.phone.chat_id, message_id, screen)
        except ChatRefused as error:
            if not vanished(error):
                raise
            log.info("entry %s: its message was deleted on the phone", entry.id)
            again = entry.state.phase != "settled"
            self._note(
                entry, lambda phone: replace(phone, message_id=None if again else message_id, drawn=screen.digest)
            )
            return AT_ONCE
        self._note(entry, lambda phone: replace(phone, drawn=screen.digest))
        return AT_ONCE

    def _settles_in(self, entry: Entry) -> float:
        """Return how long to wait for the next state, which most often is there at once."""
        state, now_s = entry.state, self._now()
        since_s = LINGER_S
        if state.phase == "sending" and state.decision is not None and not state.away:
            since_s = now_s - state.decision.at_s
        if state.phase == "settled" and state.outcome is not None and _goes_on(entry) and not state.working:
            since_s = now_s - state.outcome.at_s
        return SETTLING_S - since_s if 0 <= since_s < SETTLING_S else 0.0

    async def _remove_copy(self, entry: Entry, message_id: int) -> float:
        await self._delete(entry, message_id)
        self._note(entry, lambda phone: replace(phone, copies=tuple(c for c in phone.copies if c != message_id)))
        return AT_ONCE

    # --- messages beside the main one -----------------------------------------------------------------------

    async def _beside(self, entry: Entry) -> float | None:
        wanted = sides(entry, self._look)
        there = {side.kind: side for side in entry.phone.sides}
        for kind, side in there.items():
            if kind not in wanted or (wanted[kind].fresh and side.drawn != wanted[kind].screen.digest):
                await self._delete(entry, side.message_id)
                self._note(entry, lambda phone, gone=side: replace(phone, sides=_without(phone, gone.kind)))  # type: ignore[misc]
                return AT_ONCE
        for kind, screen in wanted.items():
            if kind not in there:
                return await self._send_beside(entry, kind, screen)
            if there[kind].drawn != screen.screen.digest:
                return await self._edit_beside(entry, there[kind], screen)
        return None

    async def _send_beside(self, entry: Entry, kind: SideKind, side: SideScreen) -> float:
        silent = not side.ring or self._quiet()
        reply_to = entry.phone.message_id if side.reply else None
        chat_id = entry.phone.chat_id
        if side.document is None:
            message_id = await self._outbox.send(chat_id, side.screen, reply_to=reply_to, silent=silent)
        else:
            message_id = await self._outbox.document(
                chat_id, side.screen, side.document, reply_to=reply_to, silent=silent
            )
        shown = Side(kind, message_id, side.screen.digest)
        self._note(entry, lambda phone: replace(phone, sides=(*_without(phone, kind), shown)))
        return AT_ONCE

    async def _edit_beside(self, entry: Entry, side: Side, wanted: SideScreen) -> float:
        try:
            await self._outbox.edit(entry.phone.chat_id, side.message_id, wanted.screen)
        except ChatRefused as error:
            if not vanished(error):
                raise
            # Sent anew by the next step, unless it only stays for the record.
            if not wanted.lasting:
                self._note(entry, lambda phone: replace(phone, sides=_without(phone, side.kind)))
                return AT_ONCE
        drawn = replace(side, drawn=wanted.screen.digest)
        self._note(entry, lambda phone: replace(phone, sides=(*_without(phone, side.kind), drawn)))
        return AT_ONCE

    async def _delete(self, entry: Entry, message_id: int) -> None:
        try:
            await self._outbox.delete(entry.phone.chat_id, message_id)
        except ChatRefused as error:
            log.info("entry %s: message %d could not be deleted: %s", entry.id, message_id, error)

    # --- the end --------------------------------------------------------------------------------------------

    def _closed(self, entry: Entry) -> float | None:
        """Put the entry away where its last screen is on the phone."""
        outcome = entry.state.outcome
        if entry.state.phase != "settled" or outcome is None:
            return None
        passed_s = self._now() - outcome.at_s
        if _goes_on(entry) and not entry.state.working and 0 <= passed_s < LINGER_S:
            return LINGER_S - passed_s
        log.info("closed: entry %s, %s", entry.id, outcome.kind)
        self._put_away(entry)
        return None

    def _note(self, entry: Entry, changed: Callable[[Phone], Phone]) -> None:
        self._book.change(entry.id, lambda found: replace(found, phone=changed(found.phone)))


def _is_refusal(decision: Decision) -> bool:
    """Tell whether this decision about a permission is a no."""
    return decision.kind == "reject" or any(answer.text is not None for answer in decision.answers)


def _goes_on(entry: Entry) -> bool:
    """Tell whether a server's events will show the agent working again."""
    outcome = entry.state.outcome
    return bool(entry.ask.source.server) and outcome is not None and outcome.kind in {"answered", "skipped"}


def _without(phone: Phone, kind: SideKind) -> tuple[Side, ...]:
    return tuple(side for side in phone.sides if side.kind != kind)
