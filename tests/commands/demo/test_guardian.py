"""What a demo that was killed has started ends all the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from hermes.commands.demo.guardian import guarded_folder
from tests.harness.processes import Proc, has_ended, until

DEMO = """
import subprocess, time
from hermes.commands.demo.guardian import guarded_folder
with guarded_folder("demo-") as folder:
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True)
    folder.holds(child.pid)
    print("started", child.pid, folder.path, flush=True)
    time.sleep(600)
"""


def test_what_it_has_started_ends_with_a_demo_that_is_killed(tmp_path: Path) -> None:
    """A process in a session of its own (such as OpenCode, also where it is frozen) and the folder go."""
    environ = {"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", DEMO]
    with Proc(command, cwd=Path.cwd(), environ=environ, log_dir=tmp_path / "logs", name="demo") as proc:
        _, pid, folder = proc.wait_line("started").split()
        os.kill(int(pid), signal.SIGSTOP)
        proc.sigkill()
        until(lambda: not Path(folder).exists(), 30, "the end of the folder")
        until(lambda: has_ended(int(pid)), 30, "the end of the process")


def test_who_leaves_in_order_needs_no_guardian() -> None:
    """The folder goes, and what was told of is left alone, for its number may be another's by now."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True) as child:
        with guarded_folder("demo-") as folder:
            folder.holds(child.pid)
        assert not folder.path.exists()
        assert child.poll() is None
