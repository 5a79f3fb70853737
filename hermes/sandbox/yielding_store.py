"""A store of files that lets everything else run before and after each call, as one that talks with a server would."""

from __future__ import annotations

import asyncio
import functools
import inspect
import random
from typing import TYPE_CHECKING, Any

from hermes.storage.files import FileStore

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

MOST_TURNS = 4


class YieldingStore(FileStore):
    """Gives up the event loop for up to `MOST_TURNS` turns before each call, and as often after it."""

    _turns = random.Random(0)  # noqa: S311 (variety, no secret)

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        return self._yielding(found) if inspect.iscoroutinefunction(found) else found

    def _yielding(self, method: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Coroutine[Any, Any, Any]]:
        @functools.wraps(method)
        async def called(*args: Any, **kwargs: Any) -> Any:
            await _rest(self._turns.randint(0, MOST_TURNS))
            result = await method(*args, **kwargs)
            await _rest(self._turns.randint(0, MOST_TURNS))
            return result

        return called


async def _rest(turns: int) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)
