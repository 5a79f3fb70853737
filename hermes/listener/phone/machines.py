"""The machines that share the store, as the phone side has seen them last."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from hermes.model.machine import Machine
from hermes.storage.store import Store

LOOK_S: Final = 5.0


class Machines:
    """`all` has every machine of a store that is shared, and none of another."""

    def __init__(self, store: Store, *, monotonic: Callable[[], float]) -> None:
        self.all: tuple[Machine, ...] = ()
        self._store = store
        self._monotonic = monotonic
        self._looked_s = -math.inf

    async def look(self, machine: str = "") -> None:
        """Look at them now and then, and if this machine is not known: it may have joined since. Raises StoreError."""
        at_s = self._monotonic()
        is_new = machine and machine not in {one.id for one in self.all}
        if self._store.is_shared and (is_new or at_s - self._looked_s >= LOOK_S):
            self.all = await self._store.machines()
            self._looked_s = at_s

    def is_away(self, machine: str) -> bool:
        """Tell whether the machine with this id was not heard of for `AWAY_S`, or was removed."""
        return self.is_removed(machine) or machine in {one.id for one in self.all if one.is_away}

    def is_removed(self, machine: str) -> bool:
        """Tell whether this id is of no machine that shares the store: nobody can reach its agents any more."""
        return bool(self.all) and machine not in {one.id for one in self.all}
