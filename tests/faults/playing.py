"""Plays rounds one after another in one world."""

from __future__ import annotations

import logging
import tempfile
import traceback
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from tests.faults import opencode2, topics
from tests.faults.machines.fleet import Fleet, with_machines
from tests.faults.machines.round import MachinesRound
from tests.faults.real import with_real_opencode
from tests.faults.round import Outcome, Round
from tests.faults.world import created

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from tests.faults.world import World

MACHINES: Final = "machines"
"""The version of rounds with several machines."""
A_WORLD: Final = 10
"""So many rounds are played in one world."""
FLEETING: Final = 5
"""In each so-manieth world time runs out."""
GROUPS: Final = (1, 3)
"""Of so many worlds these have a group for a phone."""


def played(seed: int, numbers: Sequence[int], version: str = "", kinds: Sequence[str] = ()) -> list[Outcome]:
    """Play these rounds in one world, of these kinds alone, if any.

    `version` is one of OpenCode, "" for scripted servers of version 1, `MACHINES`, or that of topics.
    """
    # Servers that are cut and stopped in the middle say so at length; what counts stands in the outcomes.
    logging.getLogger().addHandler(logging.NullHandler())
    outcomes: list[Outcome] = []
    try:
        _play(seed, numbers, version, kinds, outcomes)
    except Exception:  # noqa: BLE001 (the suite goes on, and says what happened)
        if len(outcomes) < len(numbers):
            outcomes.append(Outcome(seed, numbers[len(outcomes)], version=version))
        outcomes[-1].violations.append(_words_of_the_driver())
    rest = numbers[len(outcomes) :]
    return outcomes + (played(seed, rest, version, kinds) if rest else [])


def _play(seed: int, numbers: Sequence[int], version: str, kinds: Sequence[str], outcomes: list[Outcome]) -> None:
    """Play in one world until a law is violated: what follows would be judged in a world that is broken already."""
    with ExitStack() as stack:
        root = Path(stack.enter_context(TemporaryDirectory(prefix="hermes-faults-", ignore_cleanup_errors=True)))
        world = stack.enter_context(_world(root, numbers[0] // A_WORLD, version))
        world.kinds = tuple(kinds) or world.kinds
        for number in numbers:
            made = MachinesRound(world, seed, number) if isinstance(world, Fleet) else Round(world, seed, number)
            outcome = _one(made)
            outcome.version = version
            outcomes.append(outcome)
            if outcome.violations:
                log_of(outcome).write_bytes(b"\n".join(stage.log.read_bytes() for stage in world.stages))
                break


def _world(root: Path, number: int, version: str) -> AbstractContextManager[World]:
    fleeting, group = number % FLEETING == FLEETING - 1, number % FLEETING in GROUPS
    match version:
        case "":
            return created(root, fleeting=fleeting, group=group)
        case opencode2.VERSION:
            return opencode2.with_opencode2(root, fleeting=fleeting, group=group)
        case topics.VERSION:
            return topics.with_topics(root, number, fleeting=fleeting)
        case _ if version == MACHINES:
            return with_machines(root, has_agent_only=number % 2 == 1)
        case _:
            return with_real_opencode(root, version)


def _one(play: Round) -> Outcome:
    try:
        return play.play()
    except Exception:  # noqa: BLE001 (the suite goes on, and says what happened)
        violations = [*play.violations, _words_of_the_driver()]
        return Outcome(play.seed, play.number, play.kinds, len(play.persons), violations)


def _words_of_the_driver() -> str:
    return f"the driver: {traceback.format_exc()}"


def log_of(outcome: Outcome) -> Path:
    """Return where the log of a round is kept in which a law was violated."""
    version = f"-{outcome.version}" if outcome.version else ""
    return Path(tempfile.gettempdir()) / f"hermes-faults-{outcome.seed}-{outcome.number}{version}.log"
