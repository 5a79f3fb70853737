"""A round with three machines: the asks of all of them are on one phone, and come back to the right agent."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tests.faults.faults import CATALOGUE as OF_ONE
from tests.faults.machines import database as databases, laws
from tests.faults.machines.faults import ALONE, CATALOGUE, SERVERS_OWN, SURE
from tests.faults.round import UNCONFIRMING, Round

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.faults.machines.fleet import Fleet

BESIDE: Final = (
    "telegram 409", "telegram 429", "telegram 500", "telegram cut", "telegram done, but cut",
    "an odd update", "updates again", "taps on old pages", "hooks killed",
    "agent 500", "agent lies", "agent cut", "agent away", "agent restarted", "events cut", "events doubled",
)  # fmt: skip
"""Trouble of one machine that comes beside that of several."""
MOST: Final = 3
SIDE_BY_SIDE: Final = 0.3
"""How likely there is trouble of one machine, too."""


def _catalogue() -> Mapping[str, Callable[..., Callable[[], None] | None]]:
    return {**CATALOGUE, **{kind: OF_ONE[kind] for kind in BESIDE}}


@dataclass
class MachinesRound(Round):
    """See the module. The leases run out within the time in which things happen."""

    world: Fleet
    moving_s: float = 4.5
    asking_s: float = 2.5
    begins_s: float = 1.2
    lasting_s: tuple[float, float] = (0.2, 3.2)
    talks_wanted: bool = False
    catalogue: Mapping[str, Callable[..., Callable[[], None] | None]] = field(default_factory=_catalogue)
    unconfirming: frozenset[str] = UNCONFIRMING | (CATALOGUE.keys() - SURE)

    def later(self, for_s: float, act: Callable[[], None]) -> None:
        """Let something happen in so many seconds."""
        self._at(time.monotonic() - self._began_s + for_s, act)

    def is_possible(self, kind: str) -> bool:
        """Tell whether this fault can be had in this fleet."""
        return kind != "a role without its rights" or self.world.agent_only() is not None

    def _chosen(self) -> list[str]:
        """Return the faults of this round; one of several machines comes first."""
        kinds = [kind for kind in self.world.kinds or CATALOGUE if self.is_possible(kind)]
        chosen = self.rng.sample(kinds, self.rng.randint(1, min(MOST, len(kinds))))
        alone = next((kind for kind in chosen if kind in ALONE), None)
        if alone is not None:
            return [alone]
        of_server = [kind for kind in chosen if kind in SERVERS_OWN][1:]
        chosen = [kind for kind in chosen if kind not in of_server]
        if self.world.kinds is None and self.rng.random() < SIDE_BY_SIDE:
            chosen.append(self.rng.choice(BESIDE))
        return chosen

    def _lift_all(self) -> None:
        super()._lift_all()
        self.world.heal()

    def _judge(self) -> None:
        super()._judge()
        self.violations += databases.written_by_deposed(self.world.database)
        secrets = {self.world.stage.api.token, *self.world.secrets}
        for stage in self.world.stages:
            self.violations += laws.no_secret(stage.root, secrets)
