"""The lists of sessions that a person asks for: the phone side asks, the agent sides find, the phone side shows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from hermes.errors import InUse, TooNew, Unreadable
from hermes.listener.records import Records
from hermes.listener.wakes import Wakes
from hermes.model.card import Listed, MachineList, Wanted
from hermes.storage.store import RecordStore

ID: Final = "sessions"
"""Under this id the worker "listed" is woken, and the buttons of a list name it."""
USED_S: Final = 7 * 86400.0
"""Sessions that were used within this time are listed."""
STOPS_S: Final = 60.0
"""A tap to stop a turn, the first one and the second one, counts for so long: a turn that runs later may be another."""
PATIENCE_S: Final = 7.0
"""A machine that has not listed its sessions, or looked at one, after this time is not waited for. Its agents have 5 s
of it."""


def is_recent(at_s: float, now_s: float) -> bool:
    """Tell whether a tap to stop a turn still counts."""
    return abs(now_s - at_s) < STOPS_S


@dataclass(frozen=True, slots=True)
class ListRequest:
    """A person's request for a list at `at_s` (epoch), and the message that said so.

    `awaited` are the ids of the machines that are waited for.
    """

    wanted: Wanted
    message_id: int
    at_s: float
    awaited: tuple[str, ...]


class SessionLists(Records[MachineList]):
    """The list of each machine.

    The requests that are not shown yet, and `shown` with the one that each message shows, are in memory alone: a person
    can ask again.
    """

    of_agent = ("list",)
    most = 1000

    def __init__(
        self, store: RecordStore[MachineList], wakes: Wakes, *, now: Callable[[], float], machine: str | None
    ) -> None:
        super().__init__(store, wakes, now=now, machine=machine)
        self.requests: list[ListRequest] = []
        self.shown: dict[int, ListRequest] = {}

    def _age_s(self, record: MachineList) -> float:
        return record.listed_s

    def wake(self, record_id: str) -> None:
        """Let the agent side look at its list, and the phone side at all of them."""
        super().wake(record_id)
        self._wakes.put(ID, "listed")

    async def want(self, wanted: Wanted, message_id: int) -> None:
        """Let all machines list their sessions anew. Raises NotSaved.

        A machine that has not done in time what was asked of it the last time is asked, but not waited for.
        """
        now_s = self.now()
        awaited = tuple(
            one.id for one in self.all() if one.listed_s >= one.wanted_s or abs(now_s - one.wanted_s) < PATIENCE_S
        )
        for one in self.all():
            # It cannot be read, and is unknown from now on; or it is locked, and is not waited for longer than others.
            with suppress(Unreadable, TooNew, InUse):
                await self.change(one.id, lambda found: replace(found, wanted_s=max(now_s, found.wanted_s + 0.001)))
        self.requests.append(ListRequest(wanted, message_id, now_s, awaited))
        self._wakes.put(ID, "listed")

    def missing_s(self, request: ListRequest) -> float:
        """Return how long the list for this request may still wait for machines, 0 if it waits for none."""
        lists = (self.get(machine) for machine in request.awaited)
        if all(one is None or one.listed_s >= request.at_s for one in lists):
            return 0.0
        return max(0.0, PATIENCE_S - abs(self.now() - request.at_s))

    def found(self) -> list[Listed]:
        """Return the sessions of all machines, those that run first, then by their last use."""
        found = [listed for one in self.all() for listed in one.found]
        return sorted(found, key=lambda one: (one.state == "busy", one.used_s), reverse=True)

    def silent(self, request: ListRequest) -> tuple[str, ...]:
        """Return the names of the machines, agents and servers that did not answer this request."""
        late = tuple(one.name for one in self.all() if one.listed_s < min(one.wanted_s, request.at_s))
        return (*late, *(name for one in self.all() for name in one.silent))
