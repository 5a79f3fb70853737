"""A tied process ends with the program that started it, however that ends."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from hermes.sandbox.tied import tied
from tests.harness.processes import Proc, has_ended, until

DEMO = """
import pathlib, sys, time
from hermes.sandbox.tied import tied
child = tied(["sh", "-c", "echo runs; exec sleep 600"], needed=pathlib.Path(sys.argv[1]))
print("started", child.pid, flush=True)
time.sleep(600)
"""


def test_a_command_ends_with_a_demo_that_is_killed(tmp_path: Path) -> None:
    """Also if it is frozen, as OpenCode is while the agent is away; what it would be started with again is gone."""
    needed = tmp_path / "config.toml"
    needed.touch()
    command = [sys.executable, "-c", DEMO, str(needed)]
    with Proc(command, cwd=Path.cwd(), environ=os.environ, log_dir=tmp_path / "logs", name="demo") as proc:
        pid = int(proc.wait_line("started").split()[1])
        proc.wait_line("runs")
        os.kill(pid, signal.SIGSTOP)
        proc.sigkill()
        until(lambda: has_ended(pid), 30, "the end of the command")
    assert not needed.exists()


def test_a_command_that_ends_in_order_leaves_its_file_and_no_process(tmp_path: Path) -> None:
    """Nothing watches over it any more: its process group is empty."""
    needed = tmp_path / "config.toml"
    needed.touch()
    with tied(["true"], needed=needed) as child:
        child.communicate(b"\n")

    def is_empty() -> bool:
        try:
            os.killpg(child.pid, 0)
        except ProcessLookupError:
            return True
        return False

    until(is_empty, 30, "the end of the shell beside it")
    assert needed.exists()
