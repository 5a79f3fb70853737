"""A stage has its own listener, and leaves none behind."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.harness.listeners import left_behind, running
from tests.harness.processes import Proc, until
from tests.scenes.stage import staged

if TYPE_CHECKING:
    from pathlib import Path

    from tests.scenes.stage import Stage

RIVALS = """
import subprocess, sys
for _ in range(3):
    subprocess.run(sys.argv[1:], check=False, start_new_session=True)
"""


def rivals(stage: Stage) -> Proc:
    """Start a process that starts three listeners, each as soon as the one before has ended."""
    command = stage.command("listen", "--until-idle", "--config", str(stage.config))
    began = Proc(
        [sys.executable, "-I", "-c", RIVALS, *command],
        cwd=stage.root, environ=stage.environ(), log_dir=stage.root / "logs", name="rivals",
    )  # fmt: skip
    until(stage.log.exists, 30, "the first rival's log")
    until(lambda: "listening for bot" in stage.log.read_text(encoding="utf-8"), 30, "the first rival at work")
    return began


def test_a_stage_has_its_own_listener_though_others_were_first(stage: Stage) -> None:
    """As where a waiting hook starts one between the kill and the start of a scene."""
    stage.write_config()
    with rivals(stage):
        own = stage.start()
        assert own.alive()
        until(lambda: [*running("listen", stage.root)] == [own.pid], 30, "the stage's listener alone")


def leave_a_listener(root: Path, *, unattended: bool) -> None:
    """End a stage while a listener that it did not start is at work."""
    with staged(root) as stage:
        stage.unattended = unattended
        stage.write_config()
        with rivals(stage):
            pass  # the listener that it has started is in a session of its own, and lives on


def test_a_stage_that_leaves_a_listener_behind_fails(tmp_path: Path) -> None:
    """The listener is ended all the same."""
    with pytest.raises(AssertionError, match="a listener was left behind"):
        leave_a_listener(tmp_path / "hermes", unattended=False)
    assert not left_behind(tmp_path)


def test_an_unattended_stage_ends_the_listeners_of_its_hooks(tmp_path: Path) -> None:
    """There a hook is meant to start one."""
    leave_a_listener(tmp_path / "hermes", unattended=True)
    assert not running("listen", tmp_path)
