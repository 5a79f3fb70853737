"""The connection to Telegram: the update offset, absences and errors."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from hermes.chat.poll import PEACE_S, Offset, Trouble
from hermes.chat.screens import hints
from hermes.chat.screens.screen import Look
from hermes.core.dialog import JOIN_S
from hermes.errors import NotSaved, StoreError
from hermes.listener.entries import Entries
from hermes.listener.phone.chat_link import ChatLink
from hermes.listener.phone.chat_memory import Memory
from hermes.listener.phone.messenger import Messenger
from hermes.listener.prompts import Prompts
from hermes.listener.sd_notify import Supervisor
from hermes.model.entry import Entry

log = logging.getLogger(__name__)

SAVE_OFFSET_S: Final = 0.1
ABSENCE_S: Final = 120.0
"""After a longer absence taps may be lost: Telegram keeps a tap for 150 s."""
TAKEOVER_S: Final = 60.0
HEALTHY_S: Final = 60.0
"""If the last good poll is older than this, the phone does not count as answerable."""


class Connection:
    """Keeps the state of the connection to Telegram, and tells the person of an absence and of another poller."""

    def __init__(
        self,
        entries: Entries,
        prompts: Prompts,
        messenger: Messenger,
        memory: Memory,
        link: ChatLink,
        look: Look,
        *,
        supervisor: Supervisor,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._entries = entries
        self._prompts = prompts
        self._messenger = messenger
        self._memory = memory
        self._link = link
        self._look = look
        self._supervisor = supervisor
        self._sleep = sleep
        self._last_poll_s: float | None = None
        self._trouble: Trouble | None = None
        # Machines that share a store may poll at the same time for a moment, when one takes over.
        self._rival_told_s = entries.now() if entries.store.is_shared else -math.inf
        self._saving: asyncio.Task[None] | None = None

    def joining_s(self) -> float | None:
        """Return the seconds (rounded up) until the first text that is being joined is due, or None without one."""
        due = [entry.state.due_s for entry in self._entries.all() if entry.state.due_s is not None]
        due += [prompt.due_s for prompt in self._prompts.all() if prompt.due_s is not None]
        if not due:
            return None
        left_s = min(due) - self._entries.now()
        return math.ceil(left_s) if 0 < left_s <= JOIN_S else 0.0

    @property
    def answerable(self) -> bool:
        """Tell whether a tap that is made now would arrive: the last poll is recent and nothing failed since."""
        polled_s = self._last_poll_s
        return polled_s is not None and abs(self._entries.now() - polled_s) < HEALTHY_S and self._trouble is None

    @property
    def refusal(self) -> str:
        """The sentence about the bot's token if Telegram refused the last poll because of it, else ""."""
        return self._trouble.sentence if self._trouble and self._trouble.kind == "unauthorized" else ""

    async def recover(self, *, by_timer: bool = False) -> None:
        """At a start, post the asks of another bot or chat again, and report a long absence.

        `by_timer`: a timer runs Hermes, so that absences are normal and are not reported. Raises NotSaved.
        """
        await self._link.leave_other_bot()
        await self._link.bring_along()
        last_s = self._memory.at.last_poll_s
        if not by_timer and last_s is not None and self._entries.now() - last_s > ABSENCE_S:
            await self._back_after(last_s)

    async def report_damaged(self) -> None:
        """Tell the person of the unreadable questions that are not told of yet, and note that once it is done."""
        if self._memory.at.damaged:
            await self._messenger.insisted(hints.unreadable(self._memory.at.damaged, self._messenger.machine))
            self._memory.note(damaged=0)

    def offset(self) -> Offset | None:
        """Return the offset that an earlier run saved."""
        if self._memory.at.offset is None:
            return None
        return Offset(self._memory.at.offset, self._memory.at.last_poll_s or self._entries.now())

    def close(self) -> None:
        """Cancel a planned save of the offset; the caller saves the state of the chat."""
        if self._saving is not None:
            self._saving.cancel()

    def note_offset(self, offset: Offset) -> None:
        """Note the update offset and save it `SAVE_OFFSET_S` later, so that the acknowledgement of a tap is sent first.

        A kill in between does no harm: Telegram has dropped the updates before the offset, or sends them again, and
        the entries recognize them by their ids.
        """
        self._memory.note(offset=offset.next_id, last_poll_s=offset.at_s, newest_message=self._entries.newest_message)
        if self._saving is None or self._saving.done():
            self._saving = asyncio.get_running_loop().create_task(self._save_soon())

    async def _save_soon(self) -> None:
        offset = None
        while offset != self._memory.at.offset:
            await asyncio.sleep(SAVE_OFFSET_S)
            offset = self._memory.at.offset
            await self._save()

    async def _save(self) -> None:
        try:
            await self._memory.save()
        except NotSaved as error:
            log.warning("the place in Telegram's queue was not saved: %s", error)

    async def polled(self, at_s: float) -> None:
        """Note that Telegram answered, even if it brought nothing."""
        last_s, self._last_poll_s = self._last_poll_s, at_s
        if last_s is not None and at_s - last_s > ABSENCE_S:
            await self._back_after(last_s)
        self._trouble = None
        self._supervisor.polled()
        self._memory.note(last_poll_s=at_s, newest_message=self._entries.newest_message)
        if last_s is None:
            # Save now, so that `hermes status` shows right after a start that Telegram answers.
            await self._save()
        self._link.polled()

    async def poll_failed(self, trouble: Trouble) -> None:
        """Note why no updates come; tell of another poller, and save trouble that lasts."""
        self._trouble = trouble
        self._supervisor.say(f"no updates from Telegram: {trouble.sentence}")
        if not trouble.loud:
            return
        if trouble.kind == "conflict" and abs(self._entries.now() - self._rival_told_s) > PEACE_S:
            self._rival_told_s = self._entries.now()
            self._messenger.say(hints.other_poller(self._messenger.machine))
        await self._link.poll_failed(trouble.sentence)

    async def take_over(self, *, by_timer: bool) -> None:
        """Draw what is open again, now and a minute later: the phone side before this one may have drawn until now.

        `by_timer`: only now. The lease of such a round, which nobody renews, does not last a minute.
        """
        await self._draw_again()
        if not by_timer:
            await self._sleep(TAKEOVER_S)
            await self._draw_again()

    async def _back_after(self, since_s: float) -> None:
        """Tell the person about an absence, in which taps may be lost, and let each open question be drawn again."""
        shown = self._shown()
        log.info("back after %d s; %d open questions are drawn afresh", self._entries.now() - since_s, len(shown))
        if shown:
            self._messenger.say(hints.was_away(since_s, self._entries.now(), self._look))
        await self._draw_again()

    async def _draw_again(self) -> None:
        for entry in self._shown():
            try:
                await self._entries.change(entry.id, lambda found: replace(found, phone=replace(found.phone, drawn="")))
            except StoreError as error:
                log.error("entry %s is not drawn afresh: %s", entry.id, error)  # noqa: TRY400 (a full disk)
        await self._prompts.draw_again()

    def _shown(self) -> list[Entry]:
        return [entry for entry in self._entries.all() if entry.phone.message_id and entry.state.phase == "open"]
