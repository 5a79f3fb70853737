"""Remove all of Hermes from a home, and say what else may be deleted."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import platformdirs

from hermes import disk
from hermes.commands import install, service
from hermes.commands.service.machine import Machine
from hermes.commands.setup.file import PASSWORD_FILE
from hermes.config import logs, reading as configuration
from hermes.config.settings import Config, Log, Store
from hermes.errors import ConfigError, HermesError
from hermes.hook import runtime
from hermes.storage import installed_files as files
from hermes.storage.home import Home, is_usable

_COMPLETIONS = (".bash_completions/hermes.sh", ".zfunc/_hermes", ".config/fish/completions/hermes.fish")
"""Where `hermes --install-completion` writes, by the rules of typer."""
_COMPLETES = b"_HERMES_COMPLETE"
"""What stands in each of them; another program may also be called hermes."""
_ZSH_LINE = b"fpath+=~/.zfunc; autoload -Uz compinit; compinit"
"""The line that typer adds to `.zshrc`; it loads the completions of all programs in that folder."""


def remove_all(config_path: Path | None, *, environ: Mapping[str, str]) -> Iterator[str]:
    """Remove what `install` and `--install-completion` wrote, and stop the listener; yield sentences about it.

    A failure stops nothing else. The listener is stopped last, because an agent could start another one before.
    Raises HermesError at the end: the sentences of all that failed.
    """
    failed: list[str] = []
    for name in install.NAMES:
        yield from _trying(_uninstalled(name, environ), failed)
    yield from _trying(_stopped(config_path, environ), failed)
    yield from _trying(_completion_removed(Path(environ.get("HOME") or Path.home())), failed)
    if failed:
        raise HermesError(" ".join(failed))
    yield from _left(config_path, environ)


def _trying(sentences: Iterable[str], failed: list[str]) -> Iterator[str]:
    try:
        yield from sentences
    except HermesError as error:
        failed.append(str(error))


def _uninstalled(name: str, environ: Mapping[str, str]) -> Iterator[str]:
    """Remove what is there, and say so. Raises HermesError: an agent's file that cannot be read may have some of it."""
    if name in service.JOBS:
        if service.is_service_installed(name, machine=Machine(environ=environ)):
            yield from install.uninstall(name, environ=environ)
        return
    was_there = next(agent for agent in install.AGENTS if agent.name == name).is_connected(environ)
    sentences = install.uninstall(name, environ=environ)
    if was_there:
        yield from sentences


def _stopped(config_path: Path | None, environ: Mapping[str, str]) -> Iterator[str]:
    stopped = Home(_store(config_path, environ)).stop_listener()
    yield "Nobody listens." if stopped is None else f"Stopped: {stopped}."


def _store(config_path: Path | None, environ: Mapping[str, str]) -> Path:
    """Return the folder of the store, the usual one without a configuration. Raises ConfigError."""
    config = _config(config_path, environ)
    return Store().path if config is None else config.store.path


def _config(config_path: Path | None, environ: Mapping[str, str]) -> Config | None:
    """Return the configuration, None if there is none. Raises ConfigError: only it could tell where the store is."""
    try:
        return configuration.load(config_path, environ=environ)
    except ConfigError:
        if disk.is_there(configuration.config_path(config_path, environ=environ)):
            raise
        return None


def _completion_removed(home: Path) -> Iterator[str]:
    had_zsh = disk.is_there(home / _COMPLETIONS[1])
    for place in (home / name for name in _COMPLETIONS):
        with files.saving(place):
            is_ours = disk.is_there(place) and _COMPLETES in place.read_bytes()
            if is_ours:
                place.unlink()
        if is_ours:
            files.remove_empty(place.parent)
            yield f"{place} was removed."
    bash, line = home / ".bashrc", os.fsencode(f"\nsource '{home / _COMPLETIONS[0]}'\n")
    with files.saving(bash):
        before, found, after = (bash.read_bytes() if disk.is_there(bash) else b"").partition(line)
        if found:
            # The lines before and after it must not become one.
            gap = b"" if before.endswith(b"\n") or not after else b"\n"
            disk.write(bash.resolve(), before + gap + after, mode=bash.stat().st_mode & 0o777)
            yield f"{bash} does not load the completion any more."
    zsh = home / ".zshrc"
    with suppress(OSError):  # there is none, or it cannot be read
        if had_zsh and _ZSH_LINE in zsh.read_bytes():
            yield f"{zsh} stays as it is. If no other program needs the line, delete it: {_ZSH_LINE.decode()}"


def _left(config_path: Path | None, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the command that deletes what is left, if anything is."""
    found = [place for place in _places(config_path, environ) if disk.is_there(place)]
    found = [place for place in dict.fromkeys(found) if not set(place.parents) & set(found)]
    if found:
        yield f"Left: settings, history, log and locks. To delete them: rm -r {shlex.join(map(str, found))}"
    yield "To remove the program: pipx uninstall hermes-phone"


def _places(config_path: Path | None, environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield what Hermes may have left: of folders that also hold other things, only its own files."""
    config, file = _config(config_path, environ), configuration.config_path(config_path, environ=environ)
    usual = platformdirs.user_config_path("hermes")
    yield usual if file.parent == usual else file
    if config is not None and config.store.password_file == (password := file.with_name(PASSWORD_FILE)):
        yield password
    store = _store(config_path, environ)
    with suppress(OSError):
        if is_usable(store):
            yield store
    log = (Log() if config is None else config.log).file
    if log.parent == platformdirs.user_log_path("hermes"):
        yield log.parent
    else:
        yield from (one for one in logs.files(log) if disk.is_there(one) and one.is_file())  # /dev/null is no such file
    yield from map(Path, runtime.shared_folders())
