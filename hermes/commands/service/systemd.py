"""Units for systemd's user manager, in ~/.config/systemd/user, with the absolute paths of this Hermes."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hermes import disk
from hermes.commands.loading import shipped
from hermes.commands.service.machine import Job, Machine, Ran, ServiceState
from hermes.errors import ServiceError
from hermes.storage import installed_files as files

MARKER = "# hermes-telegram-phone:"
HEAD = f"{MARKER} written by `hermes install`, which overwrites it; own changes: `systemctl --user edit`."
PATIENCE_S = 30.0
LOOK_S = 0.1
LOG_LINES = 8
_PLAIN = re.compile(r"[A-Za-z0-9_@$%+=:,./-]+")
_NO_MANAGER = (
    "systemd does not run here for this user (a container, WSL without systemd, or `su` instead of a login): "
    "have whatever starts programs here run `hermes {command}`"
)


def install(job: Job, command: Sequence[str], machine: Machine, *, log: Path) -> Iterator[str]:
    """Write the units of this job, start it, wait until it is ready; yield one sentence for each thing done.

    Raises ConfigError (a file of that name that Hermes did not write), NotSaved and ServiceError.
    """
    _require_manager(job, machine)
    changed = False
    for name in job.units:
        place = _folder(machine) / name
        there = files.installed(place, MARKER)
        wanted = _text(name, command, machine.environ)
        if there == wanted:
            yield f"{place} is already installed and up to date."
            continue
        with files.saving(place):
            files.replace(place.resolve(), wanted)
        changed = True
        yield f"{place} {'is installed' if there is None else 'was updated'}."
    if changed:
        _done(machine, "daemon-reload")
        _done(machine, "stop", job.unit)
    _done(machine, "enable", job.unit)
    yield _started(job, machine, log)
    if not machine.lingers():
        yield "It stops when you log out; to keep it running, once: `loginctl enable-linger`."


def restart(job: Job, machine: Machine, *, log: Path) -> str:
    """Restart the job from the units that are installed, and return a sentence with its state. Raises ServiceError."""
    _done(machine, "stop", job.unit)
    return _started(job, machine, log)


def uninstall(job: Job, machine: Machine) -> Iterator[str]:
    """Stop the job and remove its units; yield one sentence for each. Raises ConfigError, NotSaved, ServiceError."""
    places = [_folder(machine) / name for name in job.units]
    # All are read first, so that nothing is stopped if one of them is not ours.
    texts = [files.installed(place, MARKER) for place in places]
    is_managed = any(text is not None for text in texts) and _has_manager(machine)
    if is_managed:
        _done(machine, "disable", "--now", job.unit)
    for place, text in zip(places, texts, strict=True):
        if text is None:
            yield f"{place} is not there; nothing was changed."
            continue
        with files.saving(place):
            # If no systemd runs that can disable the unit, remove its link here, so that it does not stay.
            for link in _folder(machine).glob(f"*.wants/{place.name}"):
                link.unlink()
        files.take_away(place, MARKER)
        yield f"{place} was removed."
    if is_managed:
        _done(machine, "daemon-reload")
        yield f"{job.unit} is stopped."


def is_installed(job: Job, machine: Machine) -> bool:
    """Tell whether a unit of the job is there."""
    return any(disk.is_there(_folder(machine) / name) for name in job.units)


def state(job: Job, machine: Machine) -> ServiceState:
    """Return the state of the job in systemd; `kind` is "none" without a user manager. Raises ServiceError."""
    is_there = all(disk.is_there(_folder(machine) / name) for name in job.units)
    if not _has_manager(machine):
        return ServiceState("none", is_there, False, False, "systemd does not run here for this user")  # noqa: FBT003
    shown = _shown(job, machine)
    active = shown.get("ActiveState") == "active"
    is_enabled = shown.get("UnitFileState") == "enabled"
    pid = int(shown.get("MainPID") or 0)
    command = _command(_folder(machine) / job.units[0])
    return ServiceState("systemd", is_there, is_enabled, active, _told(shown), pid, command)


# --- units --------------------------------------------------------------------------------------------------------


def _text(name: str, command: Sequence[str], environ: Mapping[str, str]) -> str:
    """Return the shipped unit with this command and without the text above [Unit], which is for a copy by hand."""
    lines = [HEAD, "[Unit]"]
    for line in shipped(f"systemd/{name}").read_text(encoding="utf-8").partition("[Unit]\n")[2].splitlines():
        if not line.startswith("ExecStart="):
            lines.append(line)
            continue
        # systemd expands variables in arguments, but not in the path of the program.
        lines.append(
            " ".join([f"ExecStart={quoted(command[0])}", *(quoted(word.replace("$", "$$")) for word in command[1:])])
        )
        # If this shell has another folder for state, the service must find the same store.
        lines += [f"Environment={quoted(f'{key}={environ[key]}')}" for key in ("XDG_STATE_HOME",) if environ.get(key)]
    return "\n".join(lines) + "\n"


def quoted(text: str) -> str:
    """Return the text as one word of a unit file: quoted by systemd.syntax(7), and with "%%" for "%" (a specifier)."""
    word = text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)
    return word.replace("%", "%%")


def _command(place: Path) -> tuple[str, ...]:
    """Return the command of the unit at `place`, () if it cannot be read."""
    try:
        found = re.search(r"^ExecStart=(.+)$", place.read_text(encoding="utf-8"), re.MULTILINE)
        words = shlex.split(found[1]) if found else []
    except (OSError, ValueError):
        return ()
    return tuple(word.replace("$$", "$").replace("%%", "%") for word in words)


def _folder(machine: Machine) -> Path:
    base = Path(machine.environ.get("XDG_CONFIG_HOME") or "")
    return (base if base.is_absolute() else machine.home / ".config") / "systemd" / "user"


# --- the manager --------------------------------------------------------------------------------------------------


def _has_manager(machine: Machine) -> bool:
    return machine.run(["systemctl", "--user", "show", "--property=Version"]).status == 0


def _require_manager(job: Job, machine: Machine) -> None:
    if not _has_manager(machine):
        raise ServiceError(_NO_MANAGER.format(command=job.name) + (f" every {job.every_s} s." if job.every_s else "."))


def _done(machine: Machine, *words: str) -> Ran:
    ran = machine.run(["systemctl", "--user", *words])
    if ran.status:
        raise ServiceError(f"`systemctl --user {' '.join(words)}` failed: {ran.output.strip() or ran.status}")
    return ran


def _shown(job: Job, machine: Machine) -> dict[str, str]:
    keys = "ActiveState,SubState,Result,StatusText,UnitFileState,ExecMainStatus,MainPID"
    lines = _done(machine, "show", job.unit, f"--property={keys}").output.splitlines()
    return {key: value for key, _, value in (line.partition("=") for line in lines)}


def _told(shown: Mapping[str, str]) -> str:
    """Return the state of a unit in words, such as "active: Telegram answers" or "failed: exit-code (status 2)"."""
    words = shown.get("ActiveState", "unknown")
    if words in {"failed", "inactive"} or shown.get("SubState") == "auto-restart":
        result = shown.get("Result", "")
        why = f"{result} (status {shown.get('ExecMainStatus', '?')})" if result not in {"", "success"} else ""
    else:
        why = shown.get("StatusText", "")
    return f"{words}: {why}" if why else words


def _started(job: Job, machine: Machine, log: Path) -> str:
    """Start the job, wait for it, and return a sentence with its state. Raises ServiceError."""
    # Forget the failure of an earlier start. If there was none, this fails, which does no harm.
    machine.run(["systemctl", "--user", "reset-failed", job.unit])
    # Telegram may be away for any time, so `systemctl` does not wait until the job is ready; `_came_up` polls.
    _done(machine, "--no-block", "start", job.unit)
    return _came_up(job, machine, log)


def _came_up(job: Job, machine: Machine, log: Path) -> str:
    """Wait until the job is active, or waits for another listener to end. Raises ServiceError: why it is not."""
    deadline_s = machine.monotonic() + PATIENCE_S
    while True:
        shown = _shown(job, machine)
        if shown.get("ActiveState") == "active" or _told(shown).startswith("activating: waiting:"):
            return f"{job.unit} is {_told(shown)}."
        if shown.get("ActiveState") == "failed" or shown.get("SubState") == "auto-restart":
            raise ServiceError(f"{job.unit} is {_told(shown)}; the end of its log:\n{_last_words(job, machine, log)}")
        if machine.monotonic() > deadline_s:
            raise ServiceError(
                f"{job.unit} is installed and not ready yet ({_told(shown)}); it goes on trying, and `systemctl --user "
                f"status {job.unit}` shows how that goes."
            )
        machine.sleep(LOOK_S)


def _last_words(job: Job, machine: Machine, log: Path) -> str:
    """Return the last lines of the job from the journal, else from the log file of Hermes."""
    journal = ["journalctl", "--user", f"--unit={job.unit}", f"--lines={LOG_LINES}", "--output=cat", "--quiet"]
    said = machine.run([*journal, "--no-pager"])
    if said.status == 0 and said.output.strip():
        return said.output.rstrip()
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return f"(neither the journal nor {log} has any)"
    return "\n".join(lines[-LOG_LINES:])
