"""Hermes as a service of this user: a systemd user unit, or a launchd agent where that is what there is.

Both directions are generators: they yield one sentence for each thing done, as soon as it is done, and are safe to
repeat. No file is overwritten or removed that Hermes did not write.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from hermes.commands.service import launchd, systemd
from hermes.commands.service.machine import Job, Machine, Ran, ServiceState
from hermes.errors import ConfigError
from hermes.storage import installed_files

__all__ = [
    "JOBS",
    "Machine",
    "Ran",
    "ServiceState",
    "install_service",
    "restart_service",
    "service_state",
    "uninstall_service",
]

JOBS = {
    "service": Job("listen", ("hermes.service",)),
    "reap": Job("reap", ("hermes-reap.service", "hermes-reap.timer"), every_s=90),
}
"""What `hermes install` knows by name: the listener, and the timer for a machine that has none."""


def install_service(
    what: str = "service", *, python: str, config_path: Path, log: Path, machine: Machine | None = None
) -> Iterator[str]:
    """Put the service in place with the paths of this Hermes, start it, and show its state.

    `python` is the interpreter that has Hermes (`sys.executable`), `config_path` a configuration that was read
    without an error, `log` the log file that it names.
    Raises ConfigError (a foreign file of that name; settings that no service would see), NotSaved, and ServiceError
    (no service manager; it refused; the listener did not come up: why, and what its log says).
    """
    machine = machine or Machine()
    job = JOBS[what]
    _refuse_settings_of_this_shell(machine, config_path)
    command = [installed_files.interpreter(python), "-I", "-m", "hermes", job.name, "--config", str(config_path)]
    if machine.platform == "darwin":
        return launchd.install(job, command, machine, log=log)
    return systemd.install(job, command, machine, log=log)


def restart_service(*, log: Path, machine: Machine | None = None) -> str:
    """Start the listener's service anew as it is installed, whoever wrote that, and return how it came up.

    No file is written and nothing is enabled. Raises ServiceError: as `install_service`.
    """
    machine, job = machine or Machine(), JOBS["service"]
    if machine.platform == "darwin":
        return launchd.restart(job, machine)
    return systemd.restart(job, machine, log=log)


def uninstall_service(what: str = "service", *, machine: Machine | None = None) -> Iterator[str]:
    """Stop the service and remove its files. Raises ConfigError (a foreign file), NotSaved and ServiceError."""
    machine = machine or Machine()
    if machine.platform == "darwin":
        return launchd.uninstall(JOBS[what], machine)
    return systemd.uninstall(JOBS[what], machine)


def service_state(what: str = "service", *, machine: Machine | None = None) -> ServiceState:
    """Return how the service stands, changing nothing. It asks the service manager, which takes some 10 ms."""
    machine = machine or Machine()
    if machine.platform == "darwin":
        return launchd.state(JOBS[what], machine)
    return systemd.state(JOBS[what], machine)


def _refuse_settings_of_this_shell(machine: Machine, config_path: Path) -> None:
    names = sorted(name for name in machine.environ if re.fullmatch(r"(?i)hermes_.+?__.+", name))
    if names:
        are = "is set" if len(names) == 1 else "are set"
        raise ConfigError(
            f"{', '.join(names)} {are} in this shell alone, where no service sees it: put it into {config_path}, "
            "and unset it here."
        )
