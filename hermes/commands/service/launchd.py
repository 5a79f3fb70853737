"""A launchd agent of macOS: one property list in ~/Library/LaunchAgents for each job.

Written from launchd.plist(5) and launchctl(1); it has been run by nobody on a Mac yet.
"""

import os
import plistlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.parsers.expat import ExpatError

from hermes import disk
from hermes.commands.service.machine import Job, Machine, Ran, ServiceState
from hermes.errors import ConfigError, ServiceError
from hermes.storage import installed_files as files

PREFIX = "hermes-telegram-phone"
THROTTLE_S = 30


def install(job: Job, command: Sequence[str], machine: Machine, *, log: Path) -> Iterator[str]:
    """Write the agent of this job and start it; yields what was done, one sentence each, as it is done.

    Raises ConfigError (a foreign file of that name), NotSaved and ServiceError (launchd refused).
    """
    place = _place(job, machine)
    wanted = _text(job, command, log)
    there = _ours(place, job)
    with files.saving(log):
        disk.make_folder(log.parent)  # launchd opens the log before Hermes runs, and makes no folder for it
    if there == wanted and (now := state(job, machine)).enabled:
        yield f"{place} is already installed and up to date."
        if not now.active and job.every_s is None:
            _kick(job, machine)
    else:
        with files.saving(place):
            files.replace(place, wanted)
        yield f"{place} {'is installed' if there is None else 'was updated'}."
        # A job that is loaded keeps what it was loaded with; to take out one that is not does no harm.
        machine.run(["launchctl", "bootout", _target(job)])
        done = machine.run(["launchctl", "bootstrap", f"gui/{os.getuid()}", str(place)])
        if done.status:
            raise ServiceError(f"launchd did not take {place}: {done.output.strip() or done.status}")
    yield f"{_label(job)}: {state(job, machine).detail}."


def restart(job: Job, machine: Machine) -> str:
    """Start the job anew as it is loaded, and return how it is. Raises ServiceError."""
    _kick(job, machine)
    return f"{_label(job)}: {state(job, machine).detail}."


def uninstall(job: Job, machine: Machine) -> Iterator[str]:
    """Stop the job and remove its agent; yields what was done. Raises ConfigError and NotSaved."""
    place = _place(job, machine)
    if _ours(place, job) is None:
        yield f"{place} is not there; nothing was changed."
        return
    machine.run(["launchctl", "bootout", _target(job)])
    with files.saving(place):
        place.unlink()
    yield f"{place} was removed, and what it ran is stopped."


def state(job: Job, machine: Machine) -> ServiceState:
    """Return how the job is; launchd does not tell since when."""
    printed = _printed(job, machine)
    is_loaded = printed.status == 0
    found = re.search(r"^\s*state = (.+)$", printed.output, re.MULTILINE)
    detail = (found[1] if found else "loaded") if is_loaded else "not loaded"
    pid = re.search(r"^\s*pid = (\d+)$", printed.output, re.MULTILINE)
    place = _place(job, machine)
    return ServiceState(
        "launchd",
        place.exists(),
        is_loaded,
        detail == "running",
        None,
        detail,
        int(pid[1]) if pid else 0,
        _command(place),
    )


def _text(job: Job, command: Sequence[str], log: Path) -> str:
    agent: dict[str, Any] = {
        "Label": _label(job),
        "ProgramArguments": list(command),
        "RunAtLoad": True,
        "Umask": 0o077,
        # Hermes writes its log itself; what a Python says that cannot even start goes to the same place.
        "StandardErrorPath": str(log),
    }
    if job.every_s is None:
        # A listener that was told to stop stays away; one that failed comes back.
        agent |= {"KeepAlive": {"SuccessfulExit": False}, "ThrottleInterval": THROTTLE_S}
    else:
        agent["StartInterval"] = job.every_s
    return plistlib.dumps(agent, sort_keys=False).decode()


def _ours(place: Path, job: Job) -> str | None:
    """Return the text of our agent there, None where there is nothing. Raises ConfigError: it is somebody else's."""
    try:
        found = place.read_text(encoding="utf-8")
        if plistlib.loads(found.encode())["Label"] == _label(job):
            return found
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError, ExpatError):
        pass  # then it is none of ours
    raise ConfigError(f"{place} was not written by Hermes; it stays as it is. Move it away first.")


def _command(place: Path) -> tuple[str, ...]:
    """Return what the agent there starts."""
    try:
        return tuple(map(str, plistlib.loads(place.read_bytes())["ProgramArguments"]))
    except (OSError, ValueError, LookupError, TypeError, ExpatError):
        return ()


def _kick(job: Job, machine: Machine) -> None:
    done = machine.run(["launchctl", "kickstart", "-k", _target(job)])
    if done.status:
        raise ServiceError(f"launchd did not start {_label(job)}: {done.output.strip() or done.status}")


def _printed(job: Job, machine: Machine) -> Ran:
    return machine.run(["launchctl", "print", _target(job)])


def _place(job: Job, machine: Machine) -> Path:
    return machine.home / "Library" / "LaunchAgents" / f"{_label(job)}.plist"


def _label(job: Job) -> str:
    return f"{PREFIX}.{job.name}"


def _target(job: Job) -> str:
    return f"gui/{os.getuid()}/{_label(job)}"
