"""A machine that shares the store with others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

AWAY_S: Final = 30.0
"""A machine that was not heard of for this long is away."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine that shares the store.

    - `name`: its name for people. `version`: the version of its Hermes.
    - `silent_s`: the seconds since it was heard of.
    - `is_phone`: it is the phone side now.
    - `servers`: for each of its agents' servers, whether it is connected.
    """

    id: str
    name: str
    version: str
    silent_s: float
    is_phone: bool = False
    servers: tuple[tuple[str, bool], ...] = ()

    @property
    def is_away(self) -> bool:
        """Tell whether it was not heard of for `AWAY_S`."""
        return self.silent_s > AWAY_S
