"""What this process tells the service manager that started it, by systemd's notify protocol (sd_notify(3)).

- Ready is who was answered by Telegram once: a process that merely runs is of no use to anybody.
- Alive is whose poll loop goes on. `pause` takes the place of that loop's sleep, so the watchdog hears of each
  round when it has ended, and now and then in a long pause. A round that failed counts as much as a good one: the
  watchdog is there for a process that is stuck, and to kill a listener for want of a network would help nobody.
- The watchdog sleeps until a service is ready. Until then each round asks for more time to start in, so a machine
  that boots without a network may take hours, and one that gets stuck at its start is killed all the same.
- The address is taken out of the environment: a process that this one starts cannot speak in its name.

Without NOTIFY_SOCKET nothing is told, and nothing else is different.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import hermes

if TYPE_CHECKING:
    from collections.abc import MutableMapping

log = logging.getLogger(__name__)

PATIENCE_S: Final = 180.0
"""How long a service manager waits where it does not say so: a round takes 45 s at most, and its pause 30 s."""


class Supervisor:
    """Speaks to the service manager that `environ` names, if any. Nothing here ever raises or waits for it."""

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
        """Tell whether there is anybody to speak to."""
        return bool(self._address)

    def polled(self) -> None:
        """Telegram answered: from the first time on this process is ready."""
        if not self._is_ready:
            self._is_ready = True
            self._send("READY=1")
        self.say("Telegram answers")

    def say(self, status: str) -> None:
        """Show these words in `systemctl status`."""
        if status != self._status:
            self._status = status
            self._send(f"STATUS={' '.join(status.split())}")

    async def pause(self, pause_s: float) -> None:
        """Sleep, and let the service manager know at the beginning, and as often as it wants, that all goes on."""
        while self._address:
            self.alive()
            if pause_s <= self._patience_s / 2:
                break
            await asyncio.sleep(self._patience_s / 2)
            pause_s -= self._patience_s / 2
        await asyncio.sleep(pause_s)

    def alive(self) -> None:
        """Tell that this process is not stuck, and where it is not ready yet, that it needs more time."""
        # One that started itself anew is ready in the manager's eyes and not in its own: it says both.
        more_time = "" if self._is_ready else f"\nEXTEND_TIMEOUT_USEC={self._patience_s * 1e6:.0f}"
        self._send(f"WATCHDOG=1{more_time}")

    def stopping(self) -> None:
        """Tell that the process ends, as it was told to."""
        self._send("STOPPING=1\nSTATUS=stopping")

    def restart(self, why: str = "the installed version changed") -> NoReturn:
        """Become what is installed now, with the same arguments, as the same process under the same manager."""
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
    """Return how often the manager wants to hear of this very process, in seconds, or 0 where it does not."""
    microseconds = taken.get("WATCHDOG_USEC", "")
    is_meant = taken.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    return int(microseconds) / 1e6 if microseconds.isdecimal() and is_meant else 0.0


def installed_version() -> str:
    """Return the version on disk, which is another one after an upgrade, or "" where it cannot be read."""
    try:
        text = Path(hermes.__file__).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
    found = re.search(r'__version__ = "([^"]+)"', text)
    return found[1] if found else ""
