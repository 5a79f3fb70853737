"""A launchd agent of macOS: one property list in ~/Library/LaunchAgents for each job.

Written from launchd.plist(5) and launchctl(1); it has not been run on a Mac yet.
"""

import os
import plistlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.parsers.expat import ExpatError

from hermes import disk
from hermes.commands.service.machine import Job, Machine, ServiceState
from hermes.errors import ConfigError, ServiceError
from hermes.storage import installed_files as files

PREFIX = "hermes-telegram-phone"
THROTTLE_S = 30


def install(job: Job, command: Sequence[str], machine: Machine, *, log: Path) -> Iterator[str]:
    """Write the agent of this job and start it; yield one sentence for each thing done, as soon as it is done.

    Raises ConfigError (a file of that name that Hermes did not write), NotSaved and ServiceError (launchd refused).
    """
    place = _place(job, machine)
    wanted = _text(job, command, log)
    there = _ours(place, job)
    with files.saving(log):
        disk.make_folder(log.parent)  # launchd opens the log before Hermes runs, and does not make its folder
    if there == wanted and (now := state(job, machine)).enabled:
        yield f"{place} is already installed and up to date."
        if not now.active and job.every_s is None:
            _kick(job, machine)
    else:
        with files.saving(place):
            files.replace(place, wanted)
        yield f"{place} {'is installed' if there is None else 'was updated'}."
        # A loaded job keeps its first definition: unload it. For a job that is not loaded this does no harm.
        machine.run(["launchctl", "bootout", _target(job)])
        done = machine.run(["launchctl", "bootstrap", f"gui/{os.getuid()}", str(place)])
        if done.status:
            raise ServiceError(f"launchd did not take {place}: {done.output.strip() or done.status}")
    yield f"{_label(job)}: {state(job, machine).detail}."


def restart(job: Job, machine: Machine) -> str:
    """Restart the job as it is loaded; return a sentence with its state. Raises ServiceError."""
    _kick(job, machine)
    return f"{_label(job)}: {state(job, machine).detail}."


def uninstall(job: Job, machine: Machine) -> Iterator[str]:
    """Stop the job and remove its agent; yield one sentence about it. Raises ConfigError and NotSaved."""
    place = _place(job, machine)
    if _ours(place, job) is None:
        yield f"{place} is not there; nothing was changed."
        return
    machine.run(["launchctl", "bootout", _target(job)])
    with files.saving(place):
        place.unlink()
    yield f"{place} was removed, and what it ran is stopped."


def is_installed(job: Job, machine: Machine) -> bool:
    """Tell whether the job's agent is there."""
    return disk.is_there(_place(job, machine))


def state(job: Job, machine: Machine) -> ServiceState:
    """Return the state of the job."""
    printed = machine.run(["launchctl", "print", _target(job)])
    is_loaded = printed.status == 0
    found = re.search(r"^\s*state = (.+)$", printed.output, re.MULTILINE)
    detail = (found[1] if found else "loaded") if is_loaded else "not loaded"
    pid = re.search(r"^\s*pid = (\d+)$", printed.output, re.MULTILINE)
    is_active = detail == "running"
    return ServiceState(
        "launchd",
        is_installed(job, machine),
        is_loaded,
        is_active,
        detail,
        int(pid[1]) if pid else 0,
        _command(_place(job, machine)),
    )


def _text(job: Job, command: Sequence[str], log: Path) -> str:
    agent: dict[str, Any] = {
        "Label": _label(job),
        "ProgramArguments": list(command),
        "RunAtLoad": True,
        "Umask": 0o077,
        # Hermes writes its log itself; if Python cannot even start, its error goes to the same file.
        "StandardErrorPath": str(log),
    }
    if job.every_s is None:
        # launchd starts a listener again if it failed, but not if it was told to stop.
        agent |= {"KeepAlive": {"SuccessfulExit": False}, "ThrottleInterval": THROTTLE_S}
    else:
        agent["StartInterval"] = job.every_s
    return plistlib.dumps(agent, sort_keys=False).decode()


def _ours(place: Path, job: Job) -> str | None:
    """Return the text of our agent at `place`, None without a file. Raises ConfigError: Hermes did not write it."""
    try:
        found = place.read_text(encoding="utf-8")
        if plistlib.loads(found.encode())["Label"] == _label(job):
            return found
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError, ExpatError):
        pass  # then Hermes did not write it
    raise ConfigError(f"{place} was not written by Hermes; it stays as it is. Move it away first.")


def _command(place: Path) -> tuple[str, ...]:
    """Return the command of the agent at `place`, () if it cannot be read."""
    try:
        return tuple(map(str, plistlib.loads(place.read_bytes())["ProgramArguments"]))
    except (OSError, ValueError, LookupError, TypeError, ExpatError):
        return ()


def _kick(job: Job, machine: Machine) -> None:
    done = machine.run(["launchctl", "kickstart", "-k", _target(job)])
    if done.status:
        raise ServiceError(f"launchd did not start {_label(job)}: {done.output.strip() or done.status}")


def _place(job: Job, machine: Machine) -> Path:
    return machine.home / "Library" / "LaunchAgents" / f"{_label(job)}.plist"


def _label(job: Job) -> str:
    return f"{PREFIX}.{job.name}"


def _target(job: Job) -> str:
    return f"gui/{os.getuid()}/{_label(job)}"
