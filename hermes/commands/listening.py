"""Runs a listener: for ever, until nothing is open, or once."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hermes.clock import Clock
from hermes.commands.stores import home_of, store_of
from hermes.config.reading import Followed
from hermes.config.settings import Config
from hermes.errors import Held, HermesError, NotSaved
from hermes.hook import refusal, spool
from hermes.listener.daemon import IDLE_S, Listener
from hermes.listener.sd_notify import Supervisor

log = logging.getLogger(__name__)

HELD_TRIES: Final = 30
HELD_PAUSE_S: Final = 1.0


@dataclass(slots=True)
class Listening:
    """The parts to make a listener from, and the listener that was made last."""

    config: Config
    followed: Followed
    clock: Clock
    listener: Listener | None = None

    async def serve(self, idle_s: float | None = None, supervisor: Supervisor | None = None) -> None:
        """Make a listener, and run it until it ends. Raises as `Listener.run`."""
        self.listener = Listener(
            self.config,
            store_of(self.config, now=self.clock.now, pace=self.clock.pace),
            monotonic=self.clock.monotonic,
            idle_s=idle_s,
            supervisor=supervisor,
            followed=self.followed,
        )
        await self.listener.run()


def listen_until_idle(made: Callable[[], Listening], store: Path | None, idle_s: float | None) -> None:
    """Serve as a listener that a hook started. If it cannot start, write the reason into the store for the hooks."""
    listening: Listening | None = None
    try:
        listening = made()
        store = listening.config.store.path
        _run(serve_until_idle(listening, IDLE_S if idle_s is None else idle_s), listening.clock)
    except Held:
        raise
    except Exception as error:
        serves = listening is not None and listening.listener is not None and listening.listener.serves
        may_have_room = isinstance(error, NotSaved) and error.disk_full  # the next listener may find room
        if store is not None and not serves and not may_have_room:
            known = isinstance(error, HermesError)
            with contextlib.suppress(OSError):
                refusal.write(store, str(error) if known else "it failed by a defect of Hermes; the log says more")
        raise


async def serve_until_idle(
    listening: Listening,
    idle_s: float,
    *,
    tries: int = HELD_TRIES,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Serve, or leave the work to the listener that holds the lock; retry while the inbox is not empty.

    That listener may be about to end, and would then leave the inbox unread.
    """
    for tries_left in reversed(range(tries)):
        try:
            await listening.serve(idle_s)
        except Held as held:
            if not spool.listing(listening.config.store.path):
                return
            if tries_left == 0:
                # For example, a listener of another store has the same bot.
                log.error("questions that agents asked are kept in the inbox, and %s", held)  # noqa: TRY400 (no defect)
                if home_of(listening.config).listener() is None:
                    refusal.write(listening.config.store.path, str(held))
                return
            await sleep(HELD_PAUSE_S)
        else:
            return


def listen_always(listening: Listening, supervisor: Supervisor) -> None:
    """Serve until a signal comes. Raises as `Listener.run`."""
    _run(_serve_always(listening, supervisor), listening.clock)


async def _serve_always(listening: Listening, supervisor: Supervisor) -> None:
    """Serve. As a service, wait until another listener ends, such as one that a hook started meanwhile."""
    while True:
        try:
            await listening.serve(supervisor=supervisor)
        except Held as held:
            if not supervisor.watches:
                raise
            supervisor.say(f"waiting: {held}")
            await supervisor.pause(HELD_PAUSE_S)
        else:
            return


def reap(config: Config, followed: Followed, clock: Clock) -> None:
    """Do once what a listener does. Raises as `Listener.run_once`."""
    store = store_of(config, now=clock.now, pace=clock.pace)
    _run(Listener(config, store, monotonic=clock.monotonic, followed=followed).run_once(), clock)


def _run(work: Coroutine[Any, Any, None], clock: Clock) -> None:
    with asyncio.Runner(loop_factory=clock.loop) as runner:
        runner.run(work)
