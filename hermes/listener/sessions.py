"""The lists of sessions that a person asks for: the phone side asks, the agent side finds, the phone side shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from hermes.listener.wakes import Wakes
    from hermes.model.card import Listed, Wanted

ID: Final = "sessions"
"""Under this id the workers "list" and "listed" are woken, and the buttons of a list name it."""


@dataclass(frozen=True, slots=True)
class ListWish:
    """A person's wish for a list, and the message that said so."""

    wanted: Wanted
    message_id: int


@dataclass(slots=True)
class SessionLists:
    """The wishes that are not shown yet, and the newest list. Both are in memory alone: a person can ask again.

    `silent` are the names of the agents and servers that did not answer. `shown` has what each message lists.
    """

    wakes: Wakes
    wishes: list[ListWish] = field(default_factory=list)
    found: tuple[Listed, ...] = ()
    silent: tuple[str, ...] = ()
    shown: dict[int, Wanted] = field(default_factory=dict)

    def want(self, wish: ListWish) -> None:
        """Let the agent side make a new list for this wish."""
        self.wishes.append(wish)
        self.wakes.put(ID, "list")

    def fill(self, found: tuple[Listed, ...], silent: tuple[str, ...]) -> None:
        """Give the list to the phone side, which shows it for all wishes."""
        self.found, self.silent = found, silent
        self.wakes.put(ID, "listed")
