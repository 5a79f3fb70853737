"""What the chat must remember across restarts, in memory what the store has on disk or is about to have."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hermes.codec import ChatMemory
    from hermes.store import Store


class Memory:
    """The memory of one bot. `at` is its present value; nothing else changes it."""

    def __init__(self, store: Store, bot_id: int) -> None:
        self._store = store
        self.at: ChatMemory = store.load_chat(bot_id)

    def chat_id(self, configured: int) -> int:
        """Return where to post: the configured chat, or what became of it. A newly configured one wins."""
        if self.at.moved_from != configured:
            self.note(chat_id=None, moved_from=None)
        return self.at.chat_id or configured

    def note(self, **changes: Any) -> None:
        """Change it here; it reaches the disk with the next `save`."""
        self.at = replace(self.at, **changes)

    def save(self, **changes: Any) -> None:
        """Change it, and return when it is on disk. Raises NotSaved."""
        self.note(**changes)
        self._store.save_chat(self.at)
