"""Runs steps: small functions that each move one entry one step and say when to come again.

The contract of a step: `await step(entry_id)` does at most one thing with the outside world and returns the seconds
after which it wants to be called again (0 for at once), or None where nothing is left to do. It may raise a
HermesError: it is then called again after a growing pause. At most one run of a step is under way for an entry;
a kick meanwhile makes it look once more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from hermes.errors import AgentError, ChatAway, ChatError, HermesError
from hermes.listener.wakes import Wakes, Worker

log = logging.getLogger(__name__)

FIRST_PAUSE_S: Final = 0.3
LONGEST_PAUSE_S: Final = 30.0
ENDING_S: Final = 0.5
"""A step that is under way at the end of a listener has so long to end."""
LOCKED_LOOK_S: Final = 2.0
"""A step that a locked phone holds up looks at the lock again after this."""


Step = Callable[[str], Awaitable[float | None]]


@dataclass(slots=True)
class _Run:
    kicked: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


class Steps:
    """The step of each worker, and the entries that they are at work on. They read no `wakes`, but wait for them."""

    def __init__(
        self,
        steps: Mapping[Worker, Step],
        wakes: Wakes,
    ) -> None:
        self._steps = dict(steps)
        self._wakes = wakes
        self._runs: dict[tuple[Worker, str], _Run] = {}
        self._turn = asyncio.Lock()
        self._closed = False

    def kick(self, name: Worker, entry_id: str, *, after_s: float = 0.0) -> None:
        """Let the step look at this entry, now or as soon as it has finished what it is doing.

        One that has nothing under way begins `after_s` later.
        """
        if self._closed or name not in self._steps:  # no worker of this side
            return
        run = self._runs.get((name, entry_id))
        if run is None:
            run = self._runs[name, entry_id] = _Run()
            run.task = asyncio.get_running_loop().create_task(self._keep_at_it(name, entry_id, run, after_s))
        run.kicked.set()

    @property
    def busy(self) -> bool:
        """Tell whether anything is left to do."""
        return bool(self._runs or self._wakes)

    async def idle(self, longest_s: float) -> None:
        """Return when nothing is left to do, or after `longest_s`."""
        try:
            async with asyncio.timeout(longest_s):
                while self.busy:
                    tasks = [run.task for run in self._runs.values() if run.task is not None]
                    await (asyncio.wait(tasks) if tasks else asyncio.sleep(0))
        except TimeoutError:
            return

    async def close(self, *, grace_s: float = ENDING_S) -> None:
        """Stop. All saved work goes on after the next start.

        A step under way has `grace_s` to end: it may have sent a message, which is sent again unless that is noted.
        """
        self._closed = True
        tasks = [run.task for run in self._runs.values() if run.task is not None]
        for run in self._runs.values():
            run.kicked.set()  # ends its pause
        if tasks and grace_s:
            await asyncio.wait(tasks, timeout=grace_s)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._runs.clear()

    async def _keep_at_it(self, name: Worker, entry_id: str, run: _Run, after_s: float) -> None:
        failures = 0
        try:
            await asyncio.sleep(after_s)
            while True:
                async with self._turn:
                    # One step begins in each turn of the event loop, so that taps are looked at between two of many.
                    await asyncio.sleep(0)
                if self._closed:
                    return
                run.kicked.clear()
                pause_s = await self._once(name, entry_id, failures)
                failures = failures + 1 if pause_s is not None and pause_s < 0 else 0
                if pause_s is None:
                    if not run.kicked.is_set():
                        return
                    continue
                await _pause(run.kicked, abs(pause_s))
        finally:
            self._runs.pop((name, entry_id), None)

    async def _once(self, name: Worker, entry_id: str, failures: int) -> float | None:
        """Return the pause that the step wants, None where it is done, a negative one after an error."""
        try:
            return await self._steps[name](entry_id)
        except HermesError as error:
            if failures == 0 or not isinstance(error, ChatAway | AgentError):
                log.warning("entry %s: %s: %s", entry_id, name, error)
            told_s = error.retry_after_s if isinstance(error, ChatAway) else None
            permanent = isinstance(error, ChatError) and error.permanent
            return -(told_s or (LONGEST_PAUSE_S if permanent else _grown_s(failures)))
        except Exception:
            # The guard around one entry: a defect in one must not stop the others.
            log.exception("entry %s: %s stumbled and will try again", entry_id, name)
            return -_grown_s(failures + 4)


def _grown_s(failures: int) -> float:
    return min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(failures, 10))


async def _pause(kicked: asyncio.Event, pause_s: float) -> None:
    if pause_s == 0:
        await asyncio.sleep(0)
        return
    try:
        async with asyncio.timeout(pause_s):
            await kicked.wait()
    except TimeoutError:
        return
