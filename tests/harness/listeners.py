"""The end of listeners that nobody of a test has started: a hook, or a setup, did."""

import contextlib
import os
import signal
from pathlib import Path

from hermes.store import LISTENER, Store
from tests.harness.processes import until


def end_listener(root: Path) -> None:
    """End the listener of the store at `root`, if there is one, and wait until it is gone. Never ends this process."""
    store = Store(root)

    def named() -> bool:
        # One that has just begun has not written yet who it is; a signal to process 0 would be for our whole group.
        holder = store.holder(LISTENER)
        return holder is None or bool(holder.pid)

    until(named, 60, "the listener's name")
    holder = store.holder(LISTENER)
    if holder is None or holder.pid in {0, os.getpid()}:
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(holder.pid, signal.SIGTERM)
    until(lambda: store.holder(LISTENER) != holder, 60, "the end of the listener")
