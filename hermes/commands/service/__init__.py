"""Hermes as a service of this user: a systemd user unit, or a launchd agent on macOS.

`install_service` and `uninstall_service` return generators: these yield one sentence for each thing done, as soon as
it is done, and are safe to repeat. They never overwrite or remove a file that Hermes did not write.
"""

from collections.abc import Iterator
from pathlib import Path

from hermes.commands.service import launchd, systemd
from hermes.commands.service.machine import Job, Machine, ServiceState
from hermes.config.reading import without_keys
from hermes.errors import ConfigError
from hermes.storage import installed_files

JOBS = {
    "service": Job("listen", ("hermes.service",)),
    "reap": Job("reap", ("hermes-reap.service", "hermes-reap.timer"), every_s=90),
}
"""The jobs that `hermes install` knows by name: the listener, and the timer for a machine without a listener."""


def install_service(
    what: str = "service", *, python: str, config_path: Path, log: Path, machine: Machine | None = None
) -> Iterator[str]:
    """Install the service with the paths of this Hermes, start it, and yield its state.

    `python` is an interpreter that has Hermes (`sys.executable`), `config_path` a configuration that was read
    without an error, `log` the log file that it names.
    Raises ConfigError (a file of that name that Hermes did not write; settings of this shell that no service would
    see), NotSaved, and ServiceError (no service manager; it refused; the listener did not start: why, and its log).
    """
    machine = machine or Machine()
    job = JOBS[what]
    _refuse_settings_of_this_shell(machine, config_path)
    command = [installed_files.interpreter(python), "-I", "-m", "hermes", job.name, "--config", str(config_path)]
    if machine.platform == "darwin":
        return launchd.install(job, command, machine, log=log)
    return systemd.install(job, command, machine, log=log)


def restart_service(*, log: Path, machine: Machine) -> str:
    """Restart the service of the listener as it is installed, even if Hermes did not write it; return its state.

    This writes no file and enables nothing. Raises ServiceError as `install_service`.
    """
    job = JOBS["service"]
    if machine.platform == "darwin":
        return launchd.restart(job, machine)
    return systemd.restart(job, machine, log=log)


def uninstall_service(what: str, *, machine: Machine | None = None) -> Iterator[str]:
    """Stop the service, remove its files. Raises ConfigError (Hermes did not write them), NotSaved, ServiceError."""
    machine = machine or Machine()
    if machine.platform == "darwin":
        return launchd.uninstall(JOBS[what], machine)
    return systemd.uninstall(JOBS[what], machine)


def service_state(*, machine: Machine) -> ServiceState:
    """Return the state of the service, and change nothing. This asks the service manager, which takes about 10 ms."""
    job = JOBS["service"]
    if machine.platform == "darwin":
        return launchd.state(job, machine)
    return systemd.state(job, machine)


def is_service_installed(what: str = "service", *, machine: Machine) -> bool:
    """Tell whether a file of this service is there; the service manager is not asked."""
    if machine.platform == "darwin":
        return launchd.is_installed(JOBS[what], machine)
    return systemd.is_installed(JOBS[what], machine)


def _refuse_settings_of_this_shell(machine: Machine, config_path: Path) -> None:
    names = sorted(machine.environ.keys() - without_keys(machine.environ).keys())
    if names:
        are = "is set" if len(names) == 1 else "are set"
        raise ConfigError(
            f"{', '.join(names)} {are} in this shell alone, where no service sees it: put it into {config_path}, "
            "and unset it here."
        )
