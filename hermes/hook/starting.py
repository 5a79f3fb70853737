"""Starts a listener from a hook, with a log that both write and an environment that no agent can influence."""

# ruff: noqa: PTH100, PTH104, PTH120 (pathlib would cost as much as json does)

from __future__ import annotations

import contextlib
import os
import sys

from hermes import disk
from hermes.hook import spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

LOG_BYTES = 5_000_000  # a log of this size is renamed before the next line
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def start_listener(options: dict[str, str]) -> None:
    """Start a listener as a daemon (double fork) that inherits no pipe, no lock and no working folder.

    Two listeners that start at once do no harm: the second exits and says nothing. Raises OSError.
    """
    child = os.fork()
    if child:
        os.waitpid(child, 0)  # the child exits at once
        return
    try:
        os.setsid()
        if os.fork() == 0:
            _become_listener(options)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.write(open_log(options), f"no listener was started: {error.strerror}\n".encode())
    finally:
        os._exit(0)


def _become_listener(options: dict[str, str]) -> None:
    import signal  # noqa: PLC0415 (only here, and in wait.py)

    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    command = [sys.executable, "-I", "-m", "hermes", "listen", "--until-idle"]
    for name in ("store", "log", "config", "test-clock"):
        if options.get(name):
            command += [f"--{name}", os.path.abspath(options[name])]
    os.chdir("/")
    null = log = os.open(os.devnull, os.O_RDWR)
    with contextlib.suppress(OSError):  # a listener is useful without a log, too
        log = open_log(options)
    for ours, theirs in ((null, 0), (null, 1), (log, 2)):
        os.dup2(ours, theirs)
    spool.close_inherited()
    os.execve(sys.executable, command, built_environment(os.environ))  # noqa: S606 (no shell is wanted)


def built_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a process that the hook starts: only LANG, LC_* and TZ come from `environ`."""
    import pwd  # noqa: PLC0415 (only here)

    try:
        home = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        home = "/"  # the user of a container may have no entry; code that needs the home then reports missing files
    kept = {name: text for name, text in environ.items() if name in {"LANG", "TZ"} or name.startswith("LC_")}
    return {"HOME": home, "PATH": PATH, **kept}


def open_log(options: dict[str, str]) -> int:
    """Open the log for appending; rename it first if it has reached `LOG_BYTES`, as the listener does."""
    path, flags = options["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT
    disk.make_folder(os.path.dirname(os.path.abspath(path)))
    log = os.open(path, flags, 0o600)
    if os.fstat(log).st_size < LOG_BYTES:
        return log
    os.close(log)
    for older, newer in ((f"{path}.2", f"{path}.1"), (f"{path}.1", path)):
        with contextlib.suppress(OSError):
            os.rename(newer, older)
    return os.open(path, flags, 0o600)
