"""Notifies the service manager that started this process of its state, by the protocol of sd_notify(3).

- The process is ready once Telegram has answered: a process that only runs cannot answer any ask.
- The process is alive while its poll loop goes on. `pause` replaces the sleep of that loop, so it notifies the
  watchdog after each round, and several times in a long pause. A failed round counts as much as a good one: the
  watchdog must kill a process that is stuck, but to kill a listener because the network is down helps no one.
- The watchdog starts only when the service is ready. Until then each round asks for more time to start. So a machine
  may boot without a network for hours, and a process that is stuck at its start is still killed.
- The address is removed from the environment, so that the child processes of this one cannot notify in its name.

Without NOTIFY_SOCKET nothing is sent; all else is the same.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
import sys
from collections.abc import MutableMapping
from pathlib import Path
from typing import Final, NoReturn

import hermes

log = logging.getLogger(__name__)

PATIENCE_S: Final = 180.0
"""The watchdog interval if the manager names no other: a round takes 45 s at most, and its pause 30 s."""


class Supervisor:
    """Notifies the service manager that `environ` names, if any. A notification never raises and never blocks."""

    def __init__(self, environ: MutableMapping[str, str] | None = None) -> None:
        self._environ = {} if environ is None else environ
        names = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
        self._taken = {name: self._environ.pop(name) for name in names if name in self._environ}
        self._address = re.sub("^@", "\0", self._taken.get("NOTIFY_SOCKET", ""))
        self._patience_s = _watchdog_s(self._taken) or PATIENCE_S
        self._is_ready = False
        self._status = ""
        self._is_heard = True

    @property
    def watches(self) -> bool:
        """Tell whether there is a service manager to notify."""
        return bool(self._address)

    def polled(self) -> None:
        """Note that Telegram has answered."""
        self.serves("Telegram answers")

    def serves(self, status: str) -> None:
        """Show this text in `systemctl status`; the first time, notify that this process is ready."""
        if not self._is_ready:
            self._is_ready = True
            self._send("READY=1")
        self.say(status)

    def say(self, status: str) -> None:
        """Show this text in `systemctl status`."""
        if status != self._status:
            self._status = status
            self._send(f"STATUS={' '.join(status.split())}")

    async def pause(self, pause_s: float) -> None:
        """Sleep; notify that this process is alive at the beginning, and then twice in each watchdog interval."""
        while self._address:
            self.alive()
            if pause_s <= self._patience_s / 2:
                break
            await asyncio.sleep(self._patience_s / 2)
            pause_s -= self._patience_s / 2
        await asyncio.sleep(pause_s)

    def alive(self) -> None:
        """Notify that this process is not stuck and, if it is not ready yet, that it needs more time to start."""
        # After `restart` the manager still takes this process for ready, but `_is_ready` is false: it sends both.
        more_time = "" if self._is_ready else f"\nEXTEND_TIMEOUT_USEC={self._patience_s * 1e6:.0f}"
        self._send(f"WATCHDOG=1{more_time}")

    def stopping(self) -> None:
        """Notify that the process ends because it was told to."""
        self._send("STOPPING=1\nSTATUS=stopping")

    def restart(self, why: str = "Hermes was installed again") -> NoReturn:
        """Replace the program by the one that is installed now, in the same process and with the same arguments."""
        self.say(f"{why}: starting again")
        self._environ.update(self._taken)
        os.execv(sys.executable, [sys.executable, "-I", "-m", "hermes", *sys.argv[1:]])  # noqa: S606 (no shell)

    def _send(self, words: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.settimeout(0)
                sender.sendto(words.encode(), self._address)
        except OSError as error:
            if self._is_heard:
                log.warning("the service manager does not listen, which stops nothing here: %s", error)
            self._is_heard = False
        else:
            self._is_heard = True


def _watchdog_s(taken: dict[str, str]) -> float:
    """Return the watchdog interval of this process in seconds, or 0 if the manager does not watch it."""
    microseconds = taken.get("WATCHDOG_USEC", "")
    is_meant = taken.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    return int(microseconds) / 1e6 if microseconds.isdecimal() and is_meant else 0.0


def _installed_at() -> int | None:
    """Return when the files of Hermes were written (epoch ns), or None: an upgrade has taken them away for now."""
    try:
        return Path(hermes.__file__).stat().st_mtime_ns
    except OSError:
        return None


_OURS: Final = _installed_at()


def is_upgraded() -> bool:
    """Tell whether Hermes was installed again since this process began. The version may be the same as before."""
    return _installed_at() not in {_OURS, None}
