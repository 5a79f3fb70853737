"""The connection to Telegram: the update offset, absences, errors, and a group that becomes a supergroup."""

from __future__ import annotations

import asyncio
import logging
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from hermes.chat.poll import PEACE_S, Offset, Poller, Trouble, as_text
from hermes.chat.screens import notices
from hermes.core.answer_clock import LONGEST_TICK_S
from hermes.core.dialog import JOIN_S
from hermes.errors import NotSaved, StoreError
from hermes.model.events import Ticked, Torn

if TYPE_CHECKING:
    from hermes.chat.bot import Bot
    from hermes.chat.screens.screen import Look
    from hermes.listener.entries import Book
    from hermes.listener.phone.chat_link import ChatLink
    from hermes.listener.phone.chat_memory import Memory
    from hermes.listener.phone.messenger import Messenger
    from hermes.listener.phone.phone import PhoneSide
    from hermes.listener.sd_notify import Supervisor

log = logging.getLogger(__name__)

SAVE_OFFSET_S: Final = 0.1
ABSENCE_S: Final = 120.0
"""After a longer absence taps may be lost: Telegram keeps a tap for 150 s."""
TAKE_IN_POLLS: Final = 3
LOCKED_LOOK_S: Final = 2.0
HEALTHY_S: Final = 60.0
"""If the last good poll is older than this, the phone does not count as answerable."""


class Connection:
    """Connects the poll loop to the phone side, and keeps the state of the connection."""

    def __init__(
        self,
        bot: Bot,
        book: Book,
        phone: PhoneSide,
        messenger: Messenger,
        memory: Memory,
        link: ChatLink,
        look: Look,
        *,
        supervisor: Supervisor,
    ) -> None:
        self._book = book
        self._phone = phone
        self._messenger = messenger
        self._memory = memory
        self._link = link
        self._look = look
        self._supervisor = supervisor
        self._last_poll_s: float | None = None
        self._trouble: Trouble | None = None
        self._rival_told_s = -math.inf
        self._saving: asyncio.TimerHandle | None = None
        self.poller = Poller(
            bot,
            load=self._load_offset,
            save=self._note_offset,
            handle=phone.handle,
            quarantine=self._quarantine,
            not_saved=phone.not_saved,
            on_good_poll=self._polled,
            on_trouble=self._poll_failed,
            hurry_s=self._joining_s,
            now=book.now,
            sleep=supervisor.pause,
        )

    async def join(self, entry_id: str) -> float | None:
        """Step: end the joining of a text whose time has come, once Telegram has no further part of it."""
        entry = self._book.get(entry_id)
        if entry is None or entry.state.due_s is None:
            return None
        left_s = entry.state.due_s - self._book.now()
        # A wall clock that was set back must not keep an answer back.
        if 0 < left_s <= LONGEST_TICK_S:
            return left_s
        await self.poller.caught_up()
        after = self._book.get(entry_id)
        if after is None or after.state.due_s != entry.state.due_s:
            return 0.0
        if self._book.store.is_phone_locked():
            return LOCKED_LOOK_S
        if entry_id in self._phone.torn:
            self._book.apply(entry_id, Torn())
            self._phone.torn.discard(entry_id)
        self._book.apply(entry_id, Ticked(max(self._book.now(), entry.state.due_s)))
        return None

    async def take_in(self) -> None:
        """Take in all waiting updates; while a text lacks parts, poll again for them, `TAKE_IN_POLLS` times at most."""
        await self.poller.step(poll_s=0)
        for _ in range(TAKE_IN_POLLS):
            joining_s = self._joining_s()
            if joining_s is None:
                return
            await asyncio.sleep(joining_s)
            await self.poller.step(poll_s=0)

    def _joining_s(self) -> float | None:
        """Return the seconds (rounded up) until the first text that is being joined is due, or None without one."""
        due = [entry.state.due_s for entry in self._book.entries() if entry.state.due_s is not None]
        if not due:
            return None
        left_s = min(due) - self._book.now()
        return math.ceil(left_s) if 0 < left_s <= JOIN_S else 0.0

    @property
    def answerable(self) -> bool:
        """Tell whether a tap that is made now would arrive: the last poll is recent and nothing failed since."""
        polled_s = self._last_poll_s
        return polled_s is not None and abs(self._book.now() - polled_s) < HEALTHY_S and self._trouble is None

    @property
    def refusal(self) -> str:
        """The sentence about the bot's token if Telegram refused the last poll because of it, else ""."""
        return self._trouble.sentence if self._trouble and self._trouble.kind == "unauthorized" else ""

    def recover(self, *, by_timer: bool = False) -> None:
        """At a start, post the asks of another chat again, and report a long absence.

        `by_timer`: a timer runs Hermes, so that absences are normal and are not reported. Raises NotSaved.
        """
        self._link.bring_along()
        last_s = self._memory.at.last_poll_s
        if not by_timer and last_s is not None and self._book.now() - last_s > ABSENCE_S:
            self._back_after(last_s)

    async def report_damaged(self) -> None:
        """Tell the person of the unreadable questions that are not told of yet, and note that once it is done."""
        if self._memory.at.damaged:
            await self._messenger.insisted(notices.unreadable(self._memory.at.damaged, self._messenger.machine))
            self._memory.note(damaged=0)

    def _load_offset(self) -> Offset | None:
        if self._memory.at.offset is None:
            return None
        return Offset(self._memory.at.offset, self._memory.at.last_poll_s or self._book.now())

    def close(self) -> None:
        """Cancel a planned save of the offset; the caller saves the state of the chat."""
        if self._saving is not None:
            self._saving.cancel()

    def _note_offset(self, offset: Offset) -> None:
        """Note the update offset and save it `SAVE_OFFSET_S` later, so that the acknowledgement of a tap is sent first.

        A kill in between does no harm: Telegram has dropped the updates before the offset, or sends them again, and
        the entries recognize them by their ids.
        """
        self._memory.note(offset=offset.next_id, last_poll_s=offset.at_s, newest_message=self._book.newest_message)
        if self._saving is None or self._saving.when() < asyncio.get_running_loop().time():
            self._saving = asyncio.get_running_loop().call_later(SAVE_OFFSET_S, self._save)

    def _save(self) -> None:
        try:
            self._memory.save()
        except NotSaved as error:
            log.warning("the place in Telegram's queue was not saved: %s", error)

    def _quarantine(self, raw: object, error: Exception) -> None:
        self._book.store.quarantine("update.json", as_text(raw).encode("utf-8", "backslashreplace"), str(error))

    def _polled(self, at_s: float) -> None:
        last_s, self._last_poll_s = self._last_poll_s, at_s
        if last_s is not None and at_s - last_s > ABSENCE_S:
            self._back_after(last_s)
        self._trouble = None
        self._supervisor.polled()
        self._memory.note(last_poll_s=at_s, newest_message=self._book.newest_message)
        if last_s is None:
            # Save now, so that `hermes status` shows right after a start that Telegram answers.
            self._save()
        self._link.polled()

    def _poll_failed(self, trouble: Trouble) -> None:
        self._trouble = trouble
        self._supervisor.say(f"no updates from Telegram: {trouble.sentence}")
        if not trouble.loud:
            return
        if trouble.kind == "conflict" and abs(self._book.now() - self._rival_told_s) > PEACE_S:
            self._rival_told_s = self._book.now()
            self._messenger.say(notices.other_poller(self._messenger.machine))
        self._link.poll_failed(trouble.sentence)

    def _back_after(self, since_s: float) -> None:
        """Tell the person about an absence, in which taps may be lost, and let each open question be drawn again."""
        shown = [entry for entry in self._book.entries() if entry.phone.message_id and entry.state.phase == "open"]
        log.info("back after %d s; %d open questions are drawn afresh", self._book.now() - since_s, len(shown))
        if shown:
            self._messenger.say(notices.was_away(since_s, self._book.now(), self._look))
        for entry in shown:
            try:
                self._book.change(entry.id, lambda found: replace(found, phone=replace(found.phone, drawn="")))
            except StoreError as error:
                log.error("entry %s is not drawn afresh: %s", entry.id, error)  # noqa: TRY400 (a full disk)
