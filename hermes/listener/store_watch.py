"""Holds the locks of the store and of the bot, and notices that the folder of the store was removed."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from hermes.chat.screens import hints
from hermes.errors import HermesError, NotSaved, StoreError
from hermes.hook import spool
from hermes.model.errand import PlacesGone
from hermes.storage import process_lock

if TYPE_CHECKING:
    from hermes.listener.agent.errands import Errands
    from hermes.listener.entries import Entries
    from hermes.listener.kept import Kept
    from hermes.listener.phone.parts import PhoneParts
    from hermes.storage.store import Store

log = logging.getLogger(__name__)


class Locks:
    """The locks of one listener: of its folder, and of the bot with this id. `who` tells others who holds them.

    `bot_id` is None where no bot is configured, or where a lease in the store says which machine has the bot.
    """

    def __init__(self, store: Store, bot_id: int | None, who: str) -> None:
        self.store = store
        self._bot_id = bot_id
        self._who = who
        self._held: list[process_lock.Holding] = []

    def take(self) -> None:
        """Take them. Raises Held: another listener has one of them; StoreError."""
        self._held.append(self.store.home.hold(self._who))
        if self._bot_id is None:
            return
        self._held.append(process_lock.hold_bot(self._bot_id, self.store.home.root, self._who, now=self.store.now))

    def release(self) -> None:
        """Release what is held."""
        while self._held:
            self._held.pop().release()

    def has_store(self) -> bool:
        """Tell whether the file of the store's lock is there, and ours."""
        return bool(self._held) and self._held[0].is_there()

    def has_bot(self) -> bool:
        """Tell whether the file of the bot's lock is there, and ours; a logout removes it."""
        return bool(self._held) and all(held.is_there() for held in self._held[1:])


class StoreWatch:
    """Makes the store again if its folder was removed while asks, prompts or notices are open."""

    def __init__(self, locks: Locks, entries: Entries, kept: Kept, errands: Errands, phone: PhoneParts | None) -> None:
        self._locks = locks
        self._kept = kept
        self._store = locks.store
        self._entries = entries
        self._errands = errands
        self._phone = phone
        self._machine = self._store.home.machine()
        self._phone_was_locked = False
        self._took_prompts = False

    async def look(self) -> None:
        """Notice that the folder of the store was removed or replaced: make it again for what is open.

        If only folders in it are gone (a removal may still go on while it is made again), these are made again. If it
        cannot be made while something is open (a full disk), the listener goes on without its locks, saves nothing,
        and tries again at each look.

        Raises:
            HermesError: the listener must leave. It holds nothing any more.
        """
        # Before the store is judged: a removed one shows no lock.
        is_locked = not self._store.is_shared and await self._store.is_phone_locked()
        takes_prompts = self._store.home.takes_prompts()
        is_ours = self._locks.has_store()
        if is_ours and self._store.home.is_whole():
            self._phone_was_locked = is_locked
            self._took_prompts = takes_prompts
            self._keep_bot()
            return
        count = sum(entry.state.phase != "settled" for entry in self._entries.all())
        self._locks.release()
        is_open = bool(count) or self._kept.has_open()
        if not is_ours and not is_open and not self._was_written_to():
            raise StoreError(f"{self._store.home.root} was removed while Hermes listened; nothing was open: leaving")
        try:
            await self._make_again()
        except HermesError as error:
            self._locks.release()
            if is_open and isinstance(error, NotSaved):
                log.error("%d asks are open, or prompts or notices: %s", count, error)  # noqa: TRY400 (a full disk, not a defect)
                return
            raise
        log.error("%s was removed while Hermes listened: made again, with %d open asks", self._store.home.root, count)
        if count and self._phone is not None:
            messenger = self._phone.messenger
            messenger.insist(hints.store_made_again(count, messenger.machine))

    async def _make_again(self) -> None:
        self._store.home.keep_machine(self._machine)
        if self._phone_was_locked:
            await self._store.lock_phone()  # before anything can be saved: no tap may slip in
        self._locks.take()
        self._store.home.let_prompts(on=self._took_prompts)
        self._errands.hint_all(PlacesGone())
        await self._entries.lay_out_again()
        await self._kept.lay_out_again()
        if self._phone is not None:
            await self._phone.memory.save()

    def _was_written_to(self) -> bool:
        """Tell whether a hook has made the folder again, and left something there."""
        try:
            return bool(spool.listing(self._store.home.root))
        except OSError:
            return False

    def _keep_bot(self) -> None:
        """Take the bot's lock again if its file was removed. Raises Held: another listener has it now."""
        if not self._locks.has_bot():
            self._locks.release()
            try:
                self._locks.take()
            except HermesError:
                self._locks.release()
                raise
