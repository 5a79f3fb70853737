"""Check that the configuration can be used, and that no other user can read its secrets."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from hermes.commands.doctor.finding import Area, Around, Finding, close_to_others, command
from hermes.config.reading import NOT_SET_UP, OF_VARIABLE, open_to_others
from hermes.errors import ConfigError

AREA = Area("Configuration")


async def look(around: Around) -> tuple[Finding, ...]:
    """Check the file, the modes of all files that hold secrets, the list of users, and the log."""
    return await AREA.each(around, {"file": _file, "modes": _modes, "people": _people, "log": _log})


def unusable(error: ConfigError, place: Path, environ: Mapping[str, str]) -> tuple[Finding, ...]:
    """Return the findings if the configuration cannot be loaded; all other areas need it, so they are not checked."""
    try:
        place.stat()
        mend = f"edit {place}" if os.access(place, os.R_OK) else f"chmod u+r {shlex.quote(str(place))}"
    except FileNotFoundError:
        mend = command("setup", place=place, environ=environ)
    except OSError:
        mend = "free the way to it, or name another file with --config"
    if str(error).startswith(OF_VARIABLE):
        mend = "unset that variable, or correct it"
    rest = Finding("All else", "", "warning", "not looked at: it needs the configuration")
    seen = "not set up yet" if str(error) == NOT_SET_UP else str(error)
    return AREA.broken("file", seen, mend), *_open([place]), rest


def _file(around: Around) -> list[Finding]:
    there = around.config_file.exists()
    return [AREA.good("file", str(around.config_file) if there else "no file: the environment says all")]


def _modes(around: Around) -> list[Finding]:
    return _open([around.config_file, *around.config.secret_files()]) or [AREA.good("modes", "closed to others")]


def _open(secret: list[Path]) -> list[Finding]:
    return [
        AREA.broken(
            "modes", f"others may read or change {path}", f"chmod 600 {shlex.quote(str(path))}", close_to_others([path])
        )
        for path in secret
        if open_to_others(path)
    ]


def _people(around: Around) -> list[Finding]:
    if around.config.phone is None:
        return []  # the machine with [telegram] says who may answer
    chat_id, users = around.config.phone.chat_id, around.config.phone.users
    if chat_id > 0 and chat_id not in users:
        seen = f"telegram.chat_id {chat_id} is one person's own chat, and telegram.users does not name that person"
        return [AREA.broken("people", seen, f"add {chat_id} to telegram.users")]
    return [AREA.good("people", f"{len(users)} may answer" if len(users) > 1 else f"user {users[0]} may answer")]


def _log(around: Around) -> list[Finding]:
    file = around.config.log.file
    there = next(path for path in (file, *file.parents) if path.exists())
    usable = not there.is_dir() and os.access(there, os.W_OK)  # it may be a device, such as /dev/null
    if there != file:
        usable = there.is_dir() and os.access(there, os.W_OK | os.X_OK)
    if not usable:
        wrong = "is a folder" if there == file and file.is_dir() else f"cannot be written ({there})"
        return [AREA.broken("log", f"{file} {wrong}", "set log.file, or free the way to it")]
    return [AREA.good("log", str(file))]
