"""Work that nobody awaits: a reaper waits for it before it leaves, but not for the loops."""

from __future__ import annotations

import asyncio

from hermes.listener.background import Background


async def test_at_rest_when_the_work_is_done() -> None:
    """A loop goes on, and work that takes too long is left alone."""
    background, may_end, done = Background(), asyncio.Event(), []

    async def work() -> None:
        await may_end.wait()
        done.append("work")

    async def loop() -> None:
        await asyncio.Event().wait()

    background.supervise(loop)
    await background.at_rest(60.0)
    background.spawn(work())
    await background.at_rest(0.01)
    assert done == []
    resting = asyncio.create_task(background.at_rest(60.0))
    may_end.set()
    await resting
    assert done == ["work"]
    await background.close()
