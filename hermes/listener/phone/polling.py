"""The connection to Telegram: the update offset, absences, errors, and a group that becomes a supergroup."""

from __future__ import annotations

import asyncio
import logging
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from hermes.chat.poll import PEACE_S, Offset, Poller, Trouble, as_text
from hermes.chat.screens import notices
from hermes.core.dialog import JOIN_S
from hermes.errors import ChatRefused, NotSaved, StoreError
from hermes.model.entry import Phone

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.chat.bot import Bot
    from hermes.chat.screens.screen import Look
    from hermes.errors import HermesError
    from hermes.listener.entries import Book
    from hermes.listener.phone.chat_memory import Memory
    from hermes.listener.phone.phone import PhoneSide
    from hermes.listener.sd_notify import Supervisor

log = logging.getLogger(__name__)

SAVE_OFFSET_S: Final = 0.1
ABSENCE_S: Final = 120.0
"""After a longer absence taps may be lost: Telegram keeps a tap for 150 s."""
TAKE_IN_POLLS: Final = 3
HEALTHY_S: Final = 60.0
"""If the last good poll is older than this, the phone does not count as answerable."""


class Connection:
    """Connects the poll loop to the phone side, and keeps the state of the connection."""

    def __init__(
        self,
        bot: Bot,
        book: Book,
        phone: PhoneSide,
        memory: Memory,
        look: Look,
        *,
        supervisor: Supervisor,
        machine: str,
        now: Callable[[], float],
    ) -> None:
        self._book = book
        self._phone = phone
        self._memory = memory
        self._look = look
        self._supervisor = supervisor
        self._machine = machine
        self._now = now
        self._last_poll_s: float | None = None
        self._trouble: Trouble | None = None
        # Trouble that an earlier run saved counts as poll trouble: a good poll clears it, a refused message sets it.
        self._poll_trouble = memory.at.trouble
        self._rival_told_s = -math.inf
        self._saving: asyncio.TimerHandle | None = None
        book.note_message(memory.at.newest_message)
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
            now=now,
            sleep=supervisor.pause,
        )

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
        left_s = min(due) - self._now()
        return math.ceil(left_s) if 0 < left_s <= JOIN_S else 0.0

    @property
    def answerable(self) -> bool:
        """Tell whether a tap that is made now would arrive: the last poll is recent and nothing failed since."""
        polled_s = self._last_poll_s
        return polled_s is not None and abs(self._now() - polled_s) < HEALTHY_S and self._trouble is None

    @property
    def refusal(self) -> str:
        """The sentence about the bot's token if Telegram refused the last poll because of it, else ""."""
        return self._trouble.sentence if self._trouble and self._trouble.kind == "unauthorized" else ""

    def recover(self, *, by_timer: bool = False) -> None:
        """At a start, post the asks of another chat again, and report damaged questions and a long absence.

        `by_timer`: a timer runs Hermes, so that absences are normal and are not reported. Raises NotSaved.
        """
        self._bring_along()
        if self._memory.at.damaged:
            lost = notices.unreadable(self._memory.at.damaged, self._machine)
            self._phone.insist(lost, sent=lambda: self._memory.note(damaged=0))
        last_s = self._memory.at.last_poll_s
        if not by_timer and last_s is not None and self._now() - last_s > ABSENCE_S:
            self._back_after(last_s)

    def refused(self, error: HermesError) -> None:
        """Handle a refused message: follow a group that became a supergroup, note a blocked bot. Raises NotSaved."""
        if isinstance(error, ChatRefused):
            if error.moved_to is not None:
                self.moved(error.moved_to)
            elif error.blocked:
                self.in_trouble(str(error))

    def moved(self, chat_id: int) -> None:
        """Follow a group that became a supergroup, and post its asks again: the group's messages are out of reach.

        Raises NotSaved; a second call then does the rest.
        """
        if chat_id != self._book.chat_id:
            log.warning("the group became a supergroup: its id is now %d", chat_id)
            moved_from = self._memory.at.moved_from or self._book.chat_id
            self._memory.save(chat_id=chat_id, moved_from=moved_from, newest_message=0)
            self._book.chat_id, self._book.newest_message = chat_id, 0
        self._bring_along()

    def _bring_along(self) -> None:
        """Post the asks of another chat again: their messages there are out of reach. Raises NotSaved."""
        phone = Phone(self._book.chat_id)
        for entry in self._book.entries():
            if entry.phone.chat_id != phone.chat_id:
                with self._book.apart(entry):
                    self._book.change(entry.id, lambda found: replace(found, phone=phone))

    def in_trouble(self, sentence: str) -> None:
        """Log once and save why the chat does not work; `hermes status` shows it until the chat works again."""
        if sentence == self._memory.at.trouble:
            return
        log.error("the chat does not work: %s", sentence)
        try:
            self._memory.save(trouble=sentence)
        except NotSaved as error:
            log.error("%s", error)  # noqa: TRY400 (a full disk, not a defect)

    def _load_offset(self) -> Offset | None:
        if self._memory.at.offset is None:
            return None
        return Offset(self._memory.at.offset, self._memory.at.last_poll_s or self._now())

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
        self._over(self._poll_trouble)

    def _poll_failed(self, trouble: Trouble) -> None:
        self._trouble = trouble
        self._supervisor.say(f"no updates from Telegram: {trouble.sentence}")
        if not trouble.loud:
            return
        if trouble.kind == "conflict" and abs(self._now() - self._rival_told_s) > PEACE_S:
            self._rival_told_s = self._now()
            self._phone.say(notices.other_poller(self._machine))
        self._poll_trouble = trouble.sentence
        self.in_trouble(trouble.sentence)

    def sent(self) -> None:
        """Clear trouble with messages, since the chat has accepted one; only a good poll clears trouble with polls."""
        if self._memory.at.trouble != self._poll_trouble:
            self._over(self._memory.at.trouble)

    def _over(self, trouble: str) -> None:
        if trouble and self._memory.at.trouble == trouble:
            log.info("the chat works again")
            self._memory.note(trouble="")

    def _back_after(self, since_s: float) -> None:
        """Tell the person about an absence, in which taps may be lost, and let each open question be drawn again."""
        shown = [entry for entry in self._book.entries() if entry.phone.message_id and entry.state.phase == "open"]
        log.info("back after %d s; %d open questions are drawn afresh", self._now() - since_s, len(shown))
        if shown:
            self._phone.say(notices.was_away(since_s, self._now(), self._look))
        for entry in shown:
            try:
                self._book.change(entry.id, lambda found: replace(found, phone=replace(found.phone, drawn="")))
            except StoreError as error:
                log.error("entry %s is not drawn afresh: %s", entry.id, error)  # noqa: TRY400 (a full disk)
