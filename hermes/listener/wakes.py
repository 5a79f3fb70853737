"""The queue between all that changes an entry and the workers, which read it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final, Literal

ANSWER_FIRST_S: Final = 0.003
"""The effects of a tap start this much after its acknowledgement, because the person waits for that."""

Worker = Literal[
    "phone", "errand", "join", "notice", "prompt", "line", "card", "session", "list", "listed", "joining", "file"
]
"""The workers.

For an entry: "phone" for its messages, "errand", and "join" for a text that is being joined. For a notice: "notice".
For a prompt: "prompt" for its way to the agent, "line" for its message, "joining" for parts that may still come, and
"file" for the files that came with it.
For the card of a session: "card" for its message, "session" for what it wants of the agent. For the lists of sessions:
"list" makes one, "listed" shows it.
"""


@dataclass(frozen=True, slots=True)
class Wake:
    """An entry to look at, by this worker; None: by all that have something to do about its state.

    The id is that of a notice, a prompt or a card for the workers of these.
    """

    entry_id: str
    worker: Worker | None = None


class Wakes:
    """The wakes that no worker has read yet, in their order, each once."""

    def __init__(self) -> None:
        self._unread: dict[Wake, None] = {}
        self._some = asyncio.Event()

    def __len__(self) -> int:
        return len(self._unread)

    def put(self, entry_id: str, worker: Worker | None = None) -> None:
        """Let a worker look at this entry soon."""
        self._unread[Wake(entry_id, worker)] = None
        self._some.set()

    async def take(self) -> list[Wake]:
        """Wait until there are wakes, and return all of them."""
        await self._some.wait()
        self._some.clear()
        unread, self._unread = list(self._unread), {}
        return unread
