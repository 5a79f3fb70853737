"""The tasks of a listener that nobody awaits: loops that must not end, and small pieces of work."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

log = logging.getLogger(__name__)

STUMBLE_S: Final = 1.0


class Background:
    """Runs tasks until it is closed. Errors are only logged."""

    def __init__(self, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._loops: set[asyncio.Task[None]] = set()
        self._sleep = sleep

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do this work."""
        self._begin(work, self._tasks)

    def supervise(self, loop: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a loop, and start it again whenever it fails or ends: Hermes must never be deaf."""
        self._begin(self._keep_running(loop), self._loops)

    async def at_rest(self, longest_s: float) -> None:
        """Return when all work but the loops is done, or after this time."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=longest_s)

    async def close(self) -> None:
        """Cancel everything."""
        tasks = [*self._tasks, *self._loops]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, work: Coroutine[Any, Any, None], among: set[asyncio.Task[None]]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        among.add(task)
        task.add_done_callback(among.discard)
        task.add_done_callback(_log_failure)

    async def _keep_running(self, loop: Callable[[], Coroutine[Any, Any, None]]) -> None:
        while True:
            try:
                await loop()
            except Exception:
                log.exception("a part of the listener failed, and starts again")
            await self._sleep(STUMBLE_S)


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.error("a background task failed", exc_info=task.exception())
