"""Brings the messages of an entry on the phone up to date, one step at a time.

A step compares the screens that the phone should show (they follow from the saved entry) with the screens that it
shows (the digests in `Entry.phone`), and changes the first one that differs. So only the entry has to be kept: if the
process dies between a request and its note, at worst the request is repeated.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

from hermes.chat.bot import Sent
from hermes.chat.failures import is_about_bot
from hermes.chat.outbox import Outbox
from hermes.chat.screens.main_message import main
from hermes.chat.screens.screen import Look, Screen, SideScreen
from hermes.chat.screens.settled import in_brief
from hermes.chat.screens.side_messages import out_of_date, posted_again, sides
from hermes.core.answer_clock import AnswerTimes
from hermes.errors import ChatRefused, StoreError
from hermes.listener.entries import Entries
from hermes.listener.phone.chat_link import ChatLink
from hermes.listener.phone.permission_queue import Left, PermissionQueue
from hermes.listener.phone.topics import Topics
from hermes.model.entry import Entry, Phone, Side, SideKind
from hermes.model.notice import Place

log = logging.getLogger(__name__)

SETTLING_S: Final = 0.6
"""Wait this long before drawing a screen that will soon change again: one edit then shows the answer and the end."""
LINGER_S: Final = 10.0
"""An answered ask of a server is closed only after this time, or once the agent is seen working again."""
AT_ONCE: Final = 0.0
POSTS: Final = 20
"""So many messages wait for Telegram's rate; the others are drawn later, as their asks are then."""


class Posting:
    """Posts, edits and deletes the messages of an entry."""

    def __init__(
        self,
        entries: Entries,
        outbox: Outbox,
        topics: Topics,
        look: Look,
        queue: PermissionQueue,
        times: AnswerTimes,
        link: ChatLink,
    ) -> None:
        self._entries = entries
        self._outbox = outbox
        self._topics = topics
        self._look = look
        self._queue = queue
        self._times = times
        self._link = link
        self._few = asyncio.Semaphore(POSTS)
        # The changes that note sent messages, by entry id, while the disk is full: they must not be sent again.
        self._unnoted: dict[str, Callable[[Entry], Entry]] = {}

    async def step(self, entry_id: str) -> float | None:
        """Step: make the next change. Raises ChatError, and StoreError: the change is made, but not noted."""
        entry = self._entries.get(entry_id)
        if entry is None or entry.state.phase == "matching":
            return None
        for behind in self._queue.behind(entry):  # now it may be the turn of the next permission of its session
            self._entries.wakes.put(behind.id, "phone")
        async with self._link.heeding_refusals():
            return await self._next(entry)

    async def _next(self, entry: Entry) -> float | None:
        if entry.id in self._unnoted:
            return await self._note_sent(entry, self._unnoted[entry.id])
        if entry.phone.message_id is None:
            return await self._post(entry)
        if entry.timing.posted_s is None:
            return await self._adopted(entry)
        if entry.phone.copies:
            return await self._remove_copy(entry, entry.phone.copies[0])
        wait_s = self._settles_in(entry)
        if wait_s > 0:
            return wait_s
        screen = main(entry, self._look)
        if screen.digest != entry.phone.drawn:
            return await self._redraw(entry, screen)
        beside = await self._beside(entry)
        return beside if beside is not None else await self._closed(entry)

    async def _post(self, entry: Entry) -> float | None:
        if self._is_over_unseen(entry):
            await self._entries.close(entry)
            return None
        async with self._few:
            if self._entries.get(entry.id) is not entry:  # it has changed while it waited
                return AT_ONCE
            if not entry.phone.chat_id:
                entry = await self._entries.place(entry)
            wait_s = await self._not_before(entry)
            if wait_s is not None:
                return wait_s
            left = self._queue.left_for(entry) if entry.timing.posted_s is None else None
            posted = await self._sent(entry, left)
        replaced = left if left is not None and self._queue.moved(entry, left) else None
        try:
            await self._note_sent(entry, posted)
        except StoreError:
            await self._remove(replaced)  # the message that replaces it is there, although that could not be noted
            raise
        await self._remove(replaced)
        return AT_ONCE

    async def _remove(self, replaced: Left | None) -> None:
        if replaced is not None:
            await self._outbox.discard(replaced.chat_id, replaced.message_id)

    async def _sent(self, entry: Entry, left: Left | None) -> Callable[[Entry], Entry]:
        """Send the message of an ask, in place of the one that another has `left`; return what notes it."""
        timed = entry
        if entry.timing.posted_s is None:
            trail = entry.trail if left is None else left.trail
            timed = replace(entry, timing=self._times.started(entry), trail=trail)
        screen = main(timed, self._look)
        place = None if timed.phone.since_id is None else timed.phone.thread_id  # a new copy stands where the first did
        silent = self._times.is_quiet()
        sent = await self._in_topic(timed, screen, thread_id=place, silent=silent)
        if entry.timing.posted_s is None:
            # The message may have waited for its topic or for Telegram's rate; its time to answer begins now.
            timed = replace(timed, timing=self._times.started(entry))
        self._entries.note_message(sent.message_id)
        self._link.sent()
        told = f"On your phone: {in_brief(entry)}"
        log.info("posted: entry %s is message %d", entry.id, sent.message_id, extra={"told": told})
        return partial(_posted, timed, sent, screen.digest)

    async def _in_topic(
        self, entry: Entry, screen: Screen, *, thread_id: int | None, reply_to: int | None = None, silent: bool
    ) -> Sent:
        source, agent_name = entry.ask.source, entry.ask.capabilities.agent_name
        return await self._topics.post(
            entry.phone.chat_id, screen, source, agent_name, thread_id=thread_id, reply_to=reply_to, silent=silent
        )

    def _is_over_unseen(self, entry: Entry) -> bool:
        """Tell whether the ask was over before a person saw it, and needs no message (an ambiguous match needs one)."""
        state = entry.state
        unseen = entry.timing.posted_s is None and state.decision is None and not state.seen
        over = state.outcome is not None and state.outcome.reason != "ambiguous"
        return over and unseen

    async def _not_before(self, entry: Entry) -> float | None:
        """Return the seconds to wait before posting (for an answer at the agent, for earlier permissions), or None."""
        age_s = self._entries.now() - entry.asked_s
        for_desk_s = 0.0 if entry.ask.nobody_there else self._times.post_after_s
        after_s = max(for_desk_s, entry.ask.capabilities.post_after_s)
        # If the age is negative, the wall clock was set back: do not wait because of that.
        is_new = entry.state.phase == "open" and entry.timing.posted_s is None
        if 0 <= age_s < after_s and is_new:
            return after_s - age_s
        return await self._queue.wait_s(entry)

    async def _note_sent(self, entry: Entry, noted: Callable[[Entry], Entry]) -> float:
        """Note what was sent. Raises NotSaved: the next step begins with that."""
        self._unnoted[entry.id] = noted
        await self._entries.change(entry.id, noted)
        del self._unnoted[entry.id]
        return AT_ONCE

    async def _adopted(self, entry: Entry) -> float:
        """Start the time to answer of an ask whose send was not confirmed, but had arrived and was tapped."""
        await self._entries.change(entry.id, lambda found: replace(found, timing=self._times.started(found)))
        return AT_ONCE

    async def _redraw(self, entry: Entry, screen: Screen) -> float:
        is_there = await self._outbox.edit(entry.phone.chat_id, entry.phone.message_id or 0, screen)
        if not is_there:
            log.info("entry %s: its message was deleted on the phone", entry.id)
        again = not is_there and entry.state.phase != "settled"

        def noted(phone: Phone) -> Phone:
            # /open may have put this message among the copies meanwhile.
            return replace(phone, message_id=None if again else phone.message_id, drawn=screen.digest)

        await self._note(entry, noted)
        return AT_ONCE

    def _settles_in(self, entry: Entry) -> float:
        """Return the seconds to wait for the next state, which usually follows at once, or 0."""
        state, now_s = entry.state, self._entries.now()
        since_s = LINGER_S
        if state.phase == "sending" and state.decision is not None and not state.away:
            since_s = now_s - state.decision.at_s
        if state.phase == "settled" and state.outcome is not None and _goes_on(entry) and not state.working:
            since_s = now_s - state.outcome.at_s
        return SETTLING_S - since_s if 0 <= since_s < SETTLING_S else 0.0

    async def _remove_copy(self, entry: Entry, message_id: int) -> float:
        await self._delete(entry, message_id)
        await self._note(entry, lambda phone: replace(phone, copies=tuple(c for c in phone.copies if c != message_id)))
        return AT_ONCE

    async def _leave_word(self, entry: Entry, place: Place) -> float:
        """Say on a message in a chat that was used before that it is out of date, or delete it; at worst it stays."""
        try:
            is_told = await self._outbox.edit(place.chat_id, place.message_id, posted_again(entry))
        except ChatRefused as error:
            if is_about_bot(error):
                raise
            is_told = False
        if not is_told:  # Telegram never edits a request to type
            await self._outbox.discard(place.chat_id, place.message_id)
        await self._note(entry, lambda phone: replace(phone, left=tuple(one for one in phone.left if one != place)))
        return AT_ONCE

    # --- messages beside the main one -----------------------------------------------------------------------

    async def _beside(self, entry: Entry) -> float | None:
        wanted = sides(entry, self._look)
        there = {side.kind: side for side in entry.phone.sides}
        for kind, side in there.items():
            if kind not in wanted or (wanted[kind].fresh and side.drawn != wanted[kind].screen.digest):
                await self._delete(entry, side.message_id)
                await self._note(entry, lambda phone, gone=side: replace(phone, sides=_without(phone, gone.kind)))  # type: ignore[misc]
                return AT_ONCE
        for kind, screen in wanted.items():
            if kind not in there:
                return await self._send_beside(entry, kind, screen)
            if there[kind].drawn != screen.screen.digest:
                return await self._edit_beside(entry, there[kind], screen)
        return await self._leave_word(entry, entry.phone.left[0]) if entry.phone.left else None

    async def _send_beside(self, entry: Entry, kind: SideKind, side: SideScreen) -> float:
        silent = not side.ring or self._times.is_quiet()
        chat_id, reply_to = entry.phone.chat_id, entry.phone.message_id
        if side.document is None:
            place = entry.phone.thread_id
            sent = await self._in_topic(entry, side.screen, thread_id=place, reply_to=reply_to, silent=silent)
        else:
            sent = await self._outbox.document(chat_id, side.screen, side.document, reply_to=reply_to, silent=silent)
        message_id = sent.message_id
        self._entries.note_message(message_id)
        shown = Side(kind, message_id, side.screen.digest)

        def noted(phone: Phone) -> Phone:
            # If it was tapped before its send was confirmed, it was noted as a copy.
            copies = tuple(copy for copy in phone.copies if copy != message_id)
            # A reminder of a question that was deleted is of no use. Drawing the question again finds that out.
            drawn = "" if side.ring else phone.drawn
            return replace(phone, sides=(*_without(phone, kind), shown), copies=copies, drawn=drawn)

        on_phone = _on_phone(entry, noted)

        def called(found: Entry) -> Entry:
            return on_phone(replace(found, timing=self._times.called(found.timing)))

        return await self._note_sent(entry, called if kind == "final_call" else on_phone)

    async def _edit_beside(self, entry: Entry, side: Side, wanted: SideScreen) -> float:
        is_there = await self._outbox.edit(entry.phone.chat_id, side.message_id, wanted.screen)
        if not is_there and not wanted.lasting:  # the next step sends it again; a lasting one is only a record
            await self._note(entry, lambda phone: replace(phone, sides=_without(phone, side.kind)))
            return AT_ONCE
        drawn = replace(side, drawn=wanted.screen.digest)

        def noted(phone: Phone) -> Phone:
            is_there = side in phone.sides  # a final call of before makes way for the next one
            return replace(phone, sides=(*_without(phone, side.kind), drawn)) if is_there else phone

        await self._note(entry, noted)
        return AT_ONCE

    async def _delete(self, entry: Entry, message_id: int) -> None:
        """Delete a message, or leave it if Telegram refuses to delete just this one (it is too old, for example)."""
        try:
            await self._outbox.delete(entry.phone.chat_id, message_id)
        except ChatRefused as error:
            if is_about_bot(error) or error.moved_to is not None:
                raise
            log.info("entry %s: message %d could not be deleted: %s", entry.id, message_id, error)
            with suppress(ChatRefused):  # a message that is too old to be deleted can still be changed
                await self._outbox.edit(entry.phone.chat_id, message_id, out_of_date(entry))

    # --- the end --------------------------------------------------------------------------------------------

    async def _closed(self, entry: Entry) -> float | None:
        """Close a settled entry, whose last screen is on the phone; return the seconds to wait until then, or None."""
        outcome = entry.state.outcome
        if entry.state.phase != "settled" or outcome is None:
            return None
        passed_s = self._entries.now() - outcome.at_s
        if _goes_on(entry) and not entry.state.working and 0 <= passed_s < LINGER_S:
            return LINGER_S - passed_s
        log.info("closed: entry %s, %s", entry.id, outcome.kind)
        if await self._entries.close(entry):
            self._queue.note_closed(entry)
        return None

    async def _note(self, entry: Entry, changed: Callable[[Phone], Phone]) -> None:
        await self._entries.change(entry.id, _on_phone(entry, changed))


def _on_phone(seen: Entry, changed: Callable[[Phone], Phone]) -> Callable[[Entry], Entry]:
    """Return the change of an entry that does this to its messages, if they are still those of the entry seen."""

    def noted(found: Entry) -> Entry:
        if found.phone.chat_id != seen.phone.chat_id:  # the group has become a supergroup, with other ids
            return found
        return replace(found, phone=changed(found.phone))

    return noted


def _posted(timed: Entry, sent: Sent, drawn: str, found: Entry) -> Entry:
    """Return the entry after its message was sent, when it was `timed`."""
    if found.phone.chat_id != timed.phone.chat_id:
        return found
    timing = timed.timing if found.timing.posted_s is None else found.timing
    copies, sides = found.phone.copies, found.phone.sides
    if found.phone.message_id not in {None, sent.message_id}:
        # An earlier, unconfirmed send had arrived, and was tapped while this one was on its way.
        copies = (*copies, found.phone.message_id)
    if found.phone.since_id is not None and found.phone.thread_id != sent.thread_id:
        # Its topic cannot be used any more: most likely it was deleted, and the messages in it, too.
        copies, sides = (*copies, *(side.message_id for side in sides)), ()
    phone = replace(found.phone, message_id=sent.message_id, drawn=drawn, copies=copies, sides=sides)
    phone = replace(phone, thread_id=sent.thread_id)
    if phone.since_id is None:
        phone = replace(phone, since_id=sent.message_id, since_date_s=sent.date_s)
    return replace(found, phone=phone, timing=timing, trail=timed.trail)


def _goes_on(entry: Entry) -> bool:
    """Tell whether events of the agent's server will show that the agent is working again."""
    outcome = entry.state.outcome
    return bool(entry.ask.source.server) and outcome is not None and outcome.kind in {"answered", "skipped"}


def _without(phone: Phone, kind: SideKind) -> tuple[Side, ...]:
    return tuple(side for side in phone.sides if side.kind != kind)
