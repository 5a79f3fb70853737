"""The machine on which a service is installed: values about it, and the calls that tests replace."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Literal

from hermes.config.reading import config_path

COMMAND_S = 60


@dataclass(frozen=True, slots=True)
class Ran:
    """The end of a command: exit status (127: not found; 126: not run, or too slow), and its output or the error."""

    status: int
    output: str


def run_command(command: Sequence[str], *, environ: Mapping[str, str] | None = None, limit_s: float = COMMAND_S) -> Ran:
    """Run a command, for `limit_s` at most; `environ` is its environment, None is that of this process."""
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
    """The machine: its environment, its platform (as `sys.platform`), a way to run commands, the monotonic clock."""

    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    platform: str = sys.platform
    run: Callable[[Sequence[str]], Ran] = run_command
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    @property
    def home(self) -> Path:
        """The home folder of the user who installs the service."""
        return Path(self.environ.get("HOME") or Path.home())

    def lingers(self) -> bool:
        """Tell whether systemd starts the services of this user without a login, and keeps them after a logout."""
        shown = self.run(["loginctl", "show-user", str(os.getuid()), "--property=Linger"])
        return shown.output.strip() == "Linger=yes"


@dataclass(frozen=True, slots=True)
class Job:
    """A command of Hermes that a service manager runs: all the time, or every `every_s` seconds.

    `units` names its unit files for systemd; the last one is enabled and started.
    """

    name: str
    units: tuple[str, ...]
    every_s: int | None = None

    @property
    def unit(self) -> str:
        """The name of the unit that is enabled and started."""
        return self.units[-1]


@dataclass(frozen=True, slots=True)
class ServiceState:
    """The state of a job. `kind` is "none" if there is no service manager that can run it.

    `detail` is the state in words. `pid` is 0 if no process runs. `command` is the command in the installed file, () if
    it cannot be read.
    """

    kind: Literal["systemd", "launchd", "none"]
    installed: bool
    enabled: bool
    active: bool
    detail: str
    pid: int = 0
    command: tuple[str, ...] = ()

    @property
    def configuration(self) -> Path:
        """The configuration that the installed service reads."""
        named = next((Path(after) for before, after in pairwise(self.command) if before == "--config"), None)
        return config_path(named, environ={})

    def is_of(self, place: Path) -> bool:
        """Tell whether it is installed, and for this configuration."""
        return self.installed and self.configuration == place

    @property
    def is_running(self) -> bool:
        """Tell whether it runs, or is being started."""
        return self.active or self.detail.startswith("activating")
