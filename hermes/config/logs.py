"""The log: one line for each event, for people or for machines, without secrets.

`Lines` or `JsonLines` formats each event of every logger, including its traceback. They replace tokens, passwords and
the user names and passwords in URLs, and escape line breaks and control characters of a message, so that a text from
outside cannot look like another log line or control the terminal. A traceback follows its event in indented lines.
"""

import contextlib
import json
import logging
import os
import re
import stat
import sys
from collections.abc import Iterable
from datetime import datetime
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TextIO

from hermes import disk
from hermes.config.settings import Log
from hermes.hook.starting import LOG_BYTES

OLD_FILES = 2

_HIDDEN = "[secret]"
_SHORTEST = 4  # a shorter password would occur in many ordinary words
_SECRETS = re.compile(
    r"\d{6,20}(?::|%3A)[A-Za-z0-9_-]{20,}"  # a bot token, also in a URL
    r"|(?<=://)[^/\s@'\"]+(?=@)"  # user name and password of a URL
    r"|(?<=\bBasic )[A-Za-z0-9+/=_-]{4,}"
    r"|(?<=\bBearer )[^\s'\",]{4,}",
    re.IGNORECASE,
)
_LOUD = ("httpx", "httpcore", "telegram", "filelock", "asyncio", "aiogram", "uvicorn")


class Lines(logging.Formatter):
    """Format an event as `TIME LEVEL LOGGER: message`, with the time as ISO 8601 in local time.

    `secrets` are further texts to hide; those of fewer than 4 characters are not hidden.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        exact = sorted({secret for secret in secrets if len(secret) >= _SHORTEST}, key=len, reverse=True)
        self._exact = re.compile("|".join(map(re.escape, exact)) or "(?!)")

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of this event, followed by its traceback in indented lines."""
        head = f"{_moment(record)} {record.levelname} {record.name}: {_escaped(self.hide(record.getMessage()))}"
        return "\n    ".join([head, *map(_escaped, self._traceback(record).splitlines())])

    def hide(self, text: str) -> str:
        """Return the text without its secrets."""
        return _SECRETS.sub(_HIDDEN, self._exact.sub(_HIDDEN, text))

    def _traceback(self, record: logging.LogRecord) -> str:
        parts = [self.formatException(record.exc_info)] if record.exc_info else []
        if record.stack_info:
            parts.append(record.stack_info)
        return self.hide("\n".join(parts))


class JsonLines(Lines):
    """Format an event as one JSON object on one line: at, level, logger, message, and traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the event as one line."""
        event = {
            "at": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self.hide(record.getMessage()),
        }
        if traceback := self._traceback(record):
            event["traceback"] = traceback
        return json.dumps(event)


def files(path: Path) -> list[Path]:
    """Return the paths of this log and of the older files that it leaves beside it."""
    return [path, *(path.with_name(f"{path.name}.{number}") for number in range(1, OLD_FILES + 1))]


class PrivateFile(RotatingFileHandler):
    """A log file of mode 0600 and limited size. If another process rotates or removes it, a new one is opened.

    If standard error is the same file, it is redirected to the new file too; otherwise it would fill the rotated one.
    """

    def __init__(self, path: Path, *, max_bytes: int) -> None:
        self._has_standard_error = _is_standard_error(path)
        super().__init__(
            path,
            maxBytes=max_bytes,
            backupCount=OLD_FILES,
            encoding="utf-8",
            errors="backslashreplace",
        )

    def _open(self) -> TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):  # /dev/null keeps its mode
            os.fchmod(descriptor, 0o600)
        if self._has_standard_error:
            os.dup2(descriptor, 2)
        return os.fdopen(descriptor, "a", encoding=self.encoding, errors=self.errors)

    def emit(self, record: logging.LogRecord) -> None:
        """Write the event to the file that is at the path now."""
        try:
            self._follow()
        except OSError:
            self.handleError(record)
        else:
            super().emit(record)

    def _follow(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            named = Path(self.baseFilename).stat()
            if self.stream and os.path.samestat(os.fstat(self.stream.fileno()), named):
                return
        if self.stream:
            self.stream.close()
        self.stream = None  # the value that FileHandler uses for "not open"
        self.stream = self._open()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (the name is logging's)
        """Write that the event is lost. The method of `logging` would print the raw arguments of the event."""
        _say_lost(record)


class Console(logging.StreamHandler[TextIO]):
    """A handler that writes to the standard error of this process."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (the name is logging's)
        """Write that the event is lost, as in `PrivateFile`."""
        _say_lost(record)


class ForPerson(Lines):
    """Format an event for a person at a terminal: the time of the day, and the attribute `told` or the message."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of this event."""
        told = getattr(record, "told", None)
        time = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M")
        return f"{time}  {_escaped(self.hide(told or f'! {record.getMessage()}'))}"


def is_for_person(record: logging.LogRecord) -> bool:
    """Tell whether a person at a terminal should see this event: it has words for a person, or is a warning."""
    return hasattr(record, "told") or record.levelno >= logging.WARNING


def set_up(
    settings: Log,
    *,
    console: bool,
    json_lines: bool = False,
    for_person: bool = False,
    secrets: Iterable[str] = (),
    file_bytes: int = LOG_BYTES,
) -> tuple[logging.Handler, ...]:
    """Send the log of this process to the configured file and, if `console` is true, to standard error.

    With `for_person`, standard error gets only what a person needs, in a shorter form (`ForPerson`).

    `secrets` (token, passwords) are hidden in every event. If standard error is the log file, as under launchd, no line
    is written twice. If the file cannot be opened, the log goes to standard error alone and begins with a warning,
    because Hermes must also run without a log file. The file is rotated before it grows beyond `file_bytes`, and two
    older files are kept. Libraries that log URLs log from WARNING on. Return the handlers.
    """
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    lines = JsonLines(secrets) if json_lines else Lines(secrets)
    handlers, trouble = _handlers(settings.file, console=console, file_bytes=file_bytes)
    root = logging.getLogger()
    root.setLevel(level)
    for handler in handlers:
        handler.setFormatter(lines)
        if for_person and isinstance(handler, Console):
            handler.setFormatter(ForPerson(secrets))
            handler.addFilter(is_for_person)
        root.addHandler(handler)
    for name in _LOUD:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))
    # If Telegram's answer is a web page, Hermes logs one sentence; this logger would log a traceback and the page.
    logging.getLogger("telegram.request").setLevel(logging.CRITICAL)
    if trouble:
        logging.getLogger(__name__).warning("the log file %s cannot be opened: %s", settings.file, trouble)
    return handlers


def _handlers(file: Path, *, console: bool, file_bytes: int) -> tuple[tuple[logging.Handler, ...], str]:
    """Return the handlers, and the reason if the log file is not among them, else ""."""
    try:
        disk.make_folder(file.parent)
        kept: tuple[logging.Handler, ...] = (PrivateFile(file, max_bytes=file_bytes),)
        trouble = ""
    except OSError as error:
        kept, trouble = (), error.strerror or str(error)
    is_wanted = console and not _is_standard_error(file)
    return (*kept, Console()) if is_wanted or trouble else kept, trouble


def _is_standard_error(file: Path) -> bool:
    with contextlib.suppress(OSError):
        return os.path.samestat(os.fstat(2), file.stat())
    return False


def _say_lost(record: logging.LogRecord) -> None:
    kind = sys.exc_info()[0]
    where = f"{Path(record.pathname).name}:{record.lineno}"
    with contextlib.suppress(OSError):
        told = os.fstat(2)
        if stat.S_ISREG(told.st_mode) and told.st_size > LOG_BYTES:
            return  # standard error is probably the log file, and nothing rotates it now
    with contextlib.suppress(OSError, ValueError, AttributeError):  # standard error may be closed
        sys.stderr.write(f"hermes: an event of {where} was not logged: {kind.__name__ if kind else '?'}\n")


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created).astimezone().isoformat(timespec="milliseconds")


def _escaped(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)
