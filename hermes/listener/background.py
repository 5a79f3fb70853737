"""The tasks of a listener that nobody awaits: loops that must not end, and small pieces of work."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

log = logging.getLogger(__name__)

STUMBLE_S: Final = 1.0


class Background:
    """Runs tasks until it is closed. Errors are only logged."""

    def __init__(self, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._sleep = sleep

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do this work."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def supervise(self, loop: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a loop, and start it again whenever it fails or ends: Hermes must never be deaf."""
        self.spawn(self._keep_running(loop))

    async def close(self) -> None:
        """Cancel everything."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep_running(self, loop: Callable[[], Coroutine[Any, Any, None]]) -> None:
        while True:
            try:
                await loop()
            except Exception:
                log.exception("a part of the listener failed, and starts again")
            await self._sleep(STUMBLE_S)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("a background task failed", exc_info=task.exception())
