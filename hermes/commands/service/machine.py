"""What a service needs to know of the machine it runs on: values, and the seams that tests put themselves into."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

COMMAND_S = 60


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that ended: its exit status (127: there is none of this name), and all that it printed."""

    status: int
    output: str


def run_command(command: Sequence[str], *, environ: Mapping[str, str] | None = None, limit_s: float = COMMAND_S) -> Ran:
    """Run it to its end, or for `limit_s` at most; `environ` is its environment, where it is not our own."""
    try:
        ended = subprocess.run(
            command,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=limit_s,
            check=False,
        )
    except FileNotFoundError:
        return Ran(127, f"{command[0]} is not there")
    except (OSError, subprocess.TimeoutExpired) as error:
        return Ran(126, str(error))
    return Ran(ended.returncode, ended.stdout.decode("utf-8", "replace"))


@dataclass(frozen=True, slots=True)
class Machine:
    """Where a service is installed: environment, platform (as `sys.platform`), commands, and the monotonic clock."""

    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    platform: str = sys.platform
    run: Callable[[Sequence[str]], Ran] = run_command
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    @property
    def home(self) -> Path:
        """The home folder of who installs."""
        return Path(self.environ.get("HOME") or Path.home())

    def lingers(self) -> bool:
        """Tell whether systemd starts what this user has without a login, and keeps it after a logout."""
        shown = self.run(["loginctl", "show-user", str(os.getuid()), "--property=Linger"])
        return shown.output.strip() == "Linger=yes"


@dataclass(frozen=True, slots=True)
class Job:
    """A command of Hermes that a service manager runs: always, or every so many seconds.

    `units` are the files of systemd, the one that is started last.
    """

    name: str
    units: tuple[str, ...]
    every_s: int | None = None

    @property
    def unit(self) -> str:
        """The unit that is enabled and started."""
        return self.units[-1]


@dataclass(frozen=True, slots=True)
class ServiceState:
    """How a job stands. `since_s` (seconds since the epoch) is None where it is not active or nobody tells.

    `kind` is "none" where there is no service manager that could run it; `detail` says it in plain words. `pid` is 0
    where no process runs, `command` what the installed file starts, () where that cannot be told.
    """

    kind: Literal["systemd", "launchd", "none"]
    installed: bool
    enabled: bool
    active: bool
    since_s: float | None
    detail: str
    pid: int = 0
    command: tuple[str, ...] = ()
