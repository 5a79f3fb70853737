"""The loop over Telegram's updates: each is handled at least once, one at a time, and the loop never ends.

- An update that cannot be handled goes to quarantine alone, the person is told, and the next one is read.
- If an update cannot be saved, the person is told to tap again. The update stays with Telegram only if Telegram cannot
  be reached for that message or refuses the token.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from hermes.chat.failures import is_about_bot
from hermes.chat.poll import LONGEST_IDLE_PAUSE_S, Poller, Trouble, as_text
from hermes.chat.screens.hints import SHUT_OUT, TORN
from hermes.core.answer_clock import LONGEST_TICK_S
from hermes.core.prompts import is_free
from hermes.errors import ChatAway, ChatError, NotSaved, StoreError
from hermes.listener.entries import Entries
from hermes.listener.phone.phone import PhoneSide
from hermes.listener.phone.polling import Connection
from hermes.listener.prompts import Prompts
from hermes.listener.wakes import ANSWER_FIRST_S
from hermes.listener.workers import LOCKED_LOOK_S
from hermes.model.events import Ticked, Torn
from hermes.model.prompt_events import Joined, Withdrawn

log = logging.getLogger(__name__)

TAKE_IN_POLLS: Final = 3


class Updates:
    """Takes in updates: `phone` handles each, and `connection` is told how the polls go."""

    def __init__(
        self,
        poller: Poller,
        entries: Entries,
        prompts: Prompts,
        phone: PhoneSide,
        connection: Connection,
        *,
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self.poller = poller
        self._entries = entries
        self._prompts = prompts
        self._phone = phone
        self._connection = connection
        self._sleep = sleep
        self._saved = poller.offset
        self._begun = self._taken = 0
        self._progress = asyncio.Condition()

    async def run(self) -> None:
        """Take in updates until cancelled. Polls return at once until the first one succeeds: is Telegram reachable?"""
        while True:
            try:
                goes_on = await self.step(longest_s=self._connection.joining_s() if self.poller.is_there else 0)
            except Exception:  # the loop must never end: log the error and continue
                log.exception("the poll loop tripped and goes on")
                goes_on, self.poller.pause_s = False, LONGEST_IDLE_PAUSE_S
            await self._sleep(ANSWER_FIRST_S if goes_on else self.poller.pause_s)

    async def step(self, *, longest_s: float | None = None) -> bool:
        """Poll once and handle the updates. Return True to continue at once, False to pause for `pause_s` first.

        `longest_s=0` handles the updates that already wait at Telegram, and does not wait for more.
        """
        began_s = self._entries.now()
        self._begun += 1
        batch = await self.poller.poll(longest_s)
        if isinstance(batch, Trouble):
            await self._connection.poll_failed(batch)
            return False
        await self._connection.polled(batch.at_s)
        brought, stays = await self._take_all(batch.updates)
        offset = self.poller.offset
        if offset is not None and offset != self._saved:
            self._connection.note_offset(offset)
            self._saved = offset
        if batch.is_whole and not stays:
            async with self._progress:
                self._taken = self._begun
                self._progress.notify_all()
        return self.poller.goes_on(brought=brought and not stays, took_s=self._entries.now() - began_s)

    def doubt(self) -> None:
        """Send no text that is being joined now: another process may have told the person that a part is lost."""
        joining = [entry.id for entry in self._entries.all() if entry.state.due_s is not None]
        self._phone.torn.update(joining, [prompt.id for prompt in self._prompts.all() if prompt.due_s is not None])

    async def shut_out(self) -> None:
        """Cancel the prompts of people who may write here no longer, if they were not sent yet.

        A text of theirs that is being joined is only offered as an answer, to the others.
        """
        for entry in self._entries.all():
            joining = entry.state.joining
            if joining is not None and not self._phone.has_user(joining.user.id):
                self._phone.torn.add(entry.id)
        for prompt in self._prompts.all():
            if is_free(prompt) and not self._phone.has_user(prompt.user.id):
                log.warning("prompt %s is cancelled: user %d may write here no longer", prompt.id, prompt.user.id)
                try:
                    await self._prompts.apply(prompt.id, Withdrawn(SHUT_OUT))
                except StoreError as error:  # for example, the user of its machine keeps it locked
                    log.error("prompt %s could not be cancelled: %s", prompt.id, error)  # noqa: TRY400

    async def take_in(self) -> None:
        """Take in all waiting updates; while a text lacks parts, poll again for them, `TAKE_IN_POLLS` times at most."""
        await self.step(longest_s=0)
        for _ in range(TAKE_IN_POLLS):
            joining_s = self._connection.joining_s()
            if joining_s is None:
                return
            await self._sleep(joining_s)
            await self.step(longest_s=0)

    async def join(self, entry_id: str) -> float | None:
        """Step: end the joining of a text whose time has come, once Telegram has no further part of it."""
        entry = self._entries.get(entry_id)
        if entry is None or entry.state.due_s is None:
            return None
        left_s = self._left_s(entry.state.due_s)
        if left_s:
            return left_s
        await self._caught_up()
        after = self._entries.get(entry_id)
        if after is None or after.state.due_s != entry.state.due_s:
            return 0.0
        if await self._entries.store.is_phone_locked():
            return LOCKED_LOOK_S
        if entry_id in self._phone.torn:
            await self._entries.apply(entry_id, Torn())
            self._phone.torn.discard(entry_id)
        await self._entries.apply(entry_id, Ticked(max(self._entries.now(), entry.state.due_s)))
        return None

    async def join_prompt(self, prompt_id: str) -> float | None:
        """Step: as `join`, for a prompt."""
        prompt = self._prompts.get(prompt_id)
        if prompt is None or prompt.due_s is None:
            return None
        left_s = self._left_s(prompt.due_s)
        if left_s:
            return left_s
        await self._caught_up()
        after = self._prompts.get(prompt_id)
        if after is None or after.due_s != prompt.due_s:
            return 0.0
        if prompt_id in self._phone.torn:
            await self._prompts.apply(prompt_id, Withdrawn(TORN))
            self._phone.torn.discard(prompt_id)
        else:
            await self._prompts.apply(prompt_id, Joined())
        return 0.0

    def _left_s(self, due_s: float) -> float:
        """Return the seconds until then; 0 also if the wall clock was set back, which must keep no text back."""
        left_s = due_s - self._entries.now()
        return left_s if 0 < left_s <= LONGEST_TICK_S else 0.0

    async def _caught_up(self) -> None:
        """Return when a poll that began after this call has brought all waiting updates, and they are handled.

        `joining_s` keeps the polls before it short.
        """
        begun = self._begun
        async with self._progress:
            await self._progress.wait_for(lambda: self._taken > begun)

    async def _take_all(self, updates: Iterable[Any]) -> tuple[bool, bool]:
        """Handle the updates; tell whether any was new, and whether one of them must come again."""
        brought = False
        await self._phone.lock_first([raw for raw in updates if not self.poller.is_done(raw)])
        for raw in updates:
            if not self.poller.is_done(raw):
                if not await self._take(raw):
                    return brought, True
                brought = True
            self.poller.handled(raw)
        return brought, False

    async def _take(self, raw: Any) -> bool:
        """Handle one update; return False if it must stay with Telegram."""
        try:
            await self._phone.handle(raw)
        except NotSaved as error:
            return await self._told(raw, error)
        except ValueError as error:
            log.warning("an update of another shape is put into quarantine: %s", error)
            await self._set_aside(raw, error)
        except Exception as error:  # the guard around one update
            log.exception("an update could not be handled and is put into quarantine")
            await self._set_aside(raw, error)
        return True

    async def _told(self, raw: dict[str, Any], error: NotSaved) -> bool:
        log.error("an update was not saved, the person is asked to do it again: %s", error)
        try:
            await self._phone.not_saved(raw, error)
        except ChatError as untold:
            if isinstance(untold, ChatAway) or is_about_bot(untold):
                log.warning("nor could they be told (%s): the update stays with Telegram", untold)
                return False
            log.warning("nor could they be told: %s", untold)
        return True

    async def _set_aside(self, raw: Any, error: Exception) -> None:
        """Put an update into quarantine, and tell the person whose it is, if it can be read at all."""
        data, is_kept = as_text(raw).encode("utf-8", "backslashreplace"), True
        try:
            self._entries.store.home.quarantine("update.json", data, str(error))
        except (StoreError, OSError) as full:
            is_kept = False
            log.error("nor could it be put there: %s", full)  # noqa: TRY400 (the cause is named; not a bug)
        try:
            self._phone.set_aside(raw, is_kept=is_kept)
        except ValueError:
            log.info("nobody knows whose update it was")
        except Exception:  # the guard around one update: else it would come again for ever
            log.exception("nor could the person be told")
