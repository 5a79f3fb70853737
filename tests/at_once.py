"""Run coroutines that wait for nothing, in tests that are no coroutines: files make nobody wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

T = TypeVar("T")


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """Run it to its end, and return its result."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    work.close()
    raise AssertionError("it waits for something")


async def all_of(steps: AsyncIterator[object]) -> None:
    """Take all of these steps."""
    async for _ in steps:
        pass
