"""A copied disk: a second machine with the id of one that runs. It does nothing, and says why."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final

from tests.scenes.stage import Stage

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.machines.fleet import Machine
    from tests.faults.machines.round import MachinesRound

SEEN_S: Final = 30.0
"""A copied machine says so within this, on the wall."""
SAID: Final = "two machines with one id (a copied disk?)"
HELD: Final = 3


def cloned_disk(play: MachinesRound) -> None:
    """The copy is started beside its original."""
    machine = play.rng.choice(play.world.machines)
    root = machine.stage.root.with_name(f"copy-{play.number}")
    stage = _copied(machine, root)
    copy = stage.run("listen", "--config", str(stage.config))
    try:
        if not play.meanwhile(lambda: not copy.alive(), SEEN_S):
            play.violations.append(f"the copy of the {machine.label} does not leave: {copy.output()[-300:]}")
        elif copy.wait() != HELD or SAID not in copy.output():
            play.violations.append(f"the copy of the {machine.label} left with {copy.wait()}: {copy.output()[-300:]}")
    finally:
        copy.close()
        shutil.rmtree(root, ignore_errors=True)


def _copied(machine: Machine, root: Path) -> Stage:
    """Return the same machine in another folder, with nothing but its id and its configuration."""
    original = machine.stage
    stage = Stage(root, original.api, test_clock=original.test_clock, prefix=original.prefix)
    stage.store.mkdir(parents=True, mode=0o700)
    shutil.copy(original.store / "machine", stage.store / "machine")
    stage.servers = original.servers
    stage.write_config(**original.settings | {
        "store": original.settings["store"] | {"path": str(stage.store)},
        "log": {"level": "info", "file": str(stage.log)},
    })  # fmt: skip
    return stage
