"""Listeners and hooks that a test has to find by itself: a hook, or a setup, started them."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.harness.processes import until
from tests.stores import a_store

ENDED_S = 60.0


def end_listener(root: Path) -> None:
    """End the listener of the store at `root`, if there is one, and wait until it is gone. Never ends this process."""
    store = a_store(root)

    def named() -> bool:
        # One that has just begun has not written yet who it is; a signal to process 0 would be for our whole group.
        holder = store.home.listener()
        return holder is None or bool(holder.pid)

    until(named, 60, "the listener's name")
    holder = store.home.listener()
    if holder is None or holder.pid in {0, os.getpid()}:
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(holder.pid, signal.SIGTERM)
    until(lambda: store.home.listener() != holder, 60, "the end of the listener")


def running(word: str, below: Path) -> dict[int, str]:
    """Return the living processes of `hermes WORD` whose command line names a place below this folder.

    The keys are process ids, the values command lines. Where there is no `ps` at all, CalledProcessError.
    """
    listed = subprocess.run(["ps", "-axww", "-o", "pid=,state=,args="], capture_output=True, text=True, check=True)
    found = {}
    for line in listed.stdout.splitlines():
        pid, state, command = [*line.split(None, 2), ""][:3]
        if state[0] not in "ZX" and f" hermes {word} " in f"{command} " and f"{below}/" in command:
            found[int(pid)] = command
    return found


def end(word: str, below: Path, number: signal.Signals) -> list[str]:
    """Send this signal to those processes and wait until none is left; return their command lines."""
    found = running(word, below)
    for pid in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    def gone() -> bool:
        left = running(word, below)
        for pid in left.keys() - found.keys():  # started meanwhile
            found[pid] = left[pid]
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        return not left

    until(gone, ENDED_S, f"the end of `hermes {word}` below {below}")
    return sorted(found.values())


def left_behind(below: Path) -> Sequence[str]:
    """End the hooks and then the listeners below this folder, and return the listeners' command lines.

    The hooks go first, because a waiting hook that finds no listener starts one.
    """
    if not running("hook", below) and not running("listen", below):
        return ()
    end("hook", below, signal.SIGKILL)
    return end("listen", below, signal.SIGKILL)
