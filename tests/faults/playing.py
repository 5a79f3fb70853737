"""Plays rounds one after another in one world."""

from __future__ import annotations

import tempfile
import traceback
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from tests.faults.real import with_real_opencode
from tests.faults.round import Outcome, Round
from tests.faults.world import created

if TYPE_CHECKING:
    from collections.abc import Sequence

A_WORLD: Final = 10
"""So many rounds are played in one world."""
FLEETING: Final = 5
"""In each so-manieth world time runs out."""


def played(seed: int, numbers: Sequence[int], version: str = "") -> list[Outcome]:
    """Play these rounds in one world: with a real OpenCode, if a version is named."""
    fleeting = (numbers[0] // A_WORLD) % FLEETING == FLEETING - 1
    outcomes = []
    with ExitStack() as stack:
        root = Path(stack.enter_context(TemporaryDirectory(prefix="hermes-faults-", ignore_cleanup_errors=True)))
        made = with_real_opencode(root, version) if version else created(root, fleeting=fleeting)
        world = stack.enter_context(made)
        for number in numbers:
            outcomes.append(_one(Round(world, seed, number)))
            if outcomes[-1].violations:
                _keep_log(world.stage.log, outcomes[-1])
                break  # what follows would be judged in a world that is broken already
    rest = numbers[len(outcomes) :]
    return outcomes + (played(seed, rest, version) if rest else [])


def _one(play: Round) -> Outcome:
    try:
        return play.play()
    except Exception:  # noqa: BLE001 (the suite goes on, and says what happened)
        play.violations.append(f"the driver: {traceback.format_exc()}")
        return Outcome(play.seed, play.number, play.kinds, len(play.persons), play.violations, 0.0, 0, 0.0)


def _keep_log(log: Path, outcome: Outcome) -> None:
    kept = Path(tempfile.gettempdir()) / f"hermes-faults-{outcome.seed}-{outcome.number}.log"
    kept.write_bytes(log.read_bytes())
