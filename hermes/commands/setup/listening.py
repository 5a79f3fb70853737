"""The listener that may run during the setup: the setup stops it, and starts it again."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hermes.commands.setup.terminal import Terminal
from hermes.errors import Held
from hermes.storage import process_lock
from hermes.storage.process_lock import Holder
from hermes.storage.store import LISTENER, Store

WHO = "hermes setup"


class Listening:
    """The listener that holds the store or the bot.

    `reviver(holder)` is called while the listener still runs; it returns a function that starts it again and returns a
    sentence about it.
    """

    def __init__(
        self,
        terminal: Terminal,
        store: Path,
        *,
        reviver: Callable[[Holder], Callable[[], str]],
    ) -> None:
        self._terminal, self._store, self._reviver = terminal, Store(store), reviver
        self._revive: Callable[[], str] | None = None

    def stop(self) -> None:
        """Stop the listener of the store, if there is one. Raises ServiceError, StoreError and Held."""
        holder = self._store.holder(LISTENER)
        if holder is not None:
            self._revive = self._reviver(holder) if holder.pid else None  # without its id it cannot be stopped
            self._store.stop_listener()

    def replaced(self) -> None:
        """Note that a new listener has been started, so that `back` has nothing to start."""
        self._revive = None

    def back(self) -> list[str]:
        """Start the stopped listener again, if any; return the sentences about it. Raises ServiceError."""
        revive, self._revive = self._revive, None
        return [] if revive is None else [revive()]

    def is_at_work(self) -> bool:
        """Tell whether a listener holds the store, or one was stopped that `back` will start. Raises StoreError."""
        return self._revive is not None or self._store.holder(LISTENER) is not None

    @contextmanager
    def alone(self, bot_id: int) -> Iterator[None]:
        """Hold the lock of the bot, so that no listener takes its updates.

        Raises:
            Held: another process holds it and does not stop, or the person does not want it to stop.
            StoreError: the lock cannot be made.
        """
        try:
            held = process_lock.hold_bot(bot_id, self._store.root, WHO)
        except Held:
            self._pause(process_lock.bot_lock(bot_id, self._store.root))
            held = process_lock.hold_bot(bot_id, self._store.root, WHO)
        with held:
            yield

    def _pause(self, lock: Path) -> None:
        """Stop the listener that holds the lock of the bot, if the person agrees. Raises Held."""
        holder = process_lock.holder(lock)
        if holder is None or not holder.pid or holder.who.startswith(WHO):
            return
        self._terminal.say(f"Hermes is at work with this bot ({holder.who}, pid {holder.pid}).")
        self._terminal.say("It would take your message away, so it has to pause. Nothing is lost by that.")
        if self._terminal.ask("Let it pause?", default=True, option="--chat ID"):
            self._revive = self._reviver(holder)
            process_lock.stop(lock)
