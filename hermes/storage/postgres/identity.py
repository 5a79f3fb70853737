"""The identity of this process in the database: its bot, its machine, and the rights of its user."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

PHONE: Final = "phone"
"""The name of the lease of the phone side."""


@dataclass(slots=True)
class Identity:
    """The identity of this process.

    - `root`: the folder of this machine. `machine`: its id.
    - `bot`: the id of the bot, None until it is known.
    - `sees_phone`: the user of the database may read and write the chat.
    - `session`: a random word that tells this process from all others.
    """

    root: Path
    machine: str
    bot: int | None
    sees_phone: bool = False
    session: str = field(default_factory=lambda: secrets.token_hex(8))

    @property
    def machine_lease(self) -> str:
        """The name of the lease of this machine."""
        return f"machine:{plain(self.machine)}"

    def channel(self, machine: str = "") -> str:
        """Return the channel on which changes for this machine are told, or those for the phone side."""
        which = f"{self.bot} {plain(machine)}"
        return f"hermes_{hashlib.sha256(which.encode()).hexdigest()[:24]}"


def plain(text: str) -> str:
    """Return the text as the database takes it: without NUL and without halves of surrogate pairs."""
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()
