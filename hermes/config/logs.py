"""The log: one line an event, for people or for machines, and never a secret in it.

Every line goes through `Lines` or `JsonLines` on its way out, whoever logged it, its traceback too: tokens,
passwords and the heads of URLs that carry them are replaced there. Line breaks and control characters of a
message are escaped, so a text from outside cannot pose as a line of its own or play with the terminal; a
traceback follows its event in indented lines.
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

LOG_BYTES = 5_000_000  # as in `hook`, which writes to the same file
OLD_FILES = 2

_HIDDEN = "[secret]"
_SHORTEST = 4  # a password of fewer signs would be found in every second word
_SECRETS = re.compile(
    r"\d{6,20}(?::|%3A)[A-Za-z0-9_-]{20,}"  # a bot token, also in a URL
    r"|(?<=://)[^/\s@'\"]+(?=@)"  # user name and password of a URL
    r"|(?<=\bBasic )[A-Za-z0-9+/=_-]{4,}"
    r"|(?<=\bBearer )[^\s'\",]{4,}",
    re.IGNORECASE,
)
_LOUD = ("httpx", "httpcore", "telegram", "filelock", "asyncio", "aiogram", "uvicorn")


class Lines(logging.Formatter):
    """`TIME LEVEL LOGGER: message`, with the time as ISO 8601 in local time.

    `secrets` are exact texts that are hidden as well, whatever their form.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        exact = sorted({secret for secret in secrets if len(secret) >= _SHORTEST}, key=len, reverse=True)
        self._exact = re.compile("|".join(map(re.escape, exact)) or "(?!)")

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of this event, and its traceback in indented lines below it."""
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
    """One JSON object a line: at, level, logger, message, and traceback where there is one."""

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


class PrivateFile(RotatingFileHandler):
    """A log file that only we can read, capped, and followed when another process rotates or removes it.

    If standard error is that file, it goes along: it would fill one that was put aside.
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
        if stat.S_ISREG(os.fstat(descriptor).st_mode):  # /dev/null keeps the mode it has
            os.fchmod(descriptor, 0o600)
        if self._has_standard_error:
            os.dup2(descriptor, 2)
        return os.fdopen(descriptor, "a", encoding=self.encoding, errors=self.errors)

    def emit(self, record: logging.LogRecord) -> None:
        """Write the event to the file that has the name now."""
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
        self.stream = None  # what FileHandler itself takes for "not open"
        self.stream = self._open()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (the name is logging's)
        """Say that the event is lost; as `logging` would do it, its raw arguments would be printed."""
        _say_lost(record)


class Console(logging.StreamHandler[TextIO]):
    """The standard error of this process."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (the name is logging's)
        """As in `PrivateFile`."""
        _say_lost(record)


def set_up(
    settings: Log, *, console: bool, json_lines: bool = False, secrets: Iterable[str] = (), file_bytes: int = LOG_BYTES
) -> tuple[logging.Handler, ...]:
    """Send the log of this process to the configured file, and to its standard error where `console` is true.

    `secrets` (token, passwords) are hidden wherever they turn up. Where standard error is that file already, as
    launchd is told to have it, no line is written twice. Where the file cannot be opened, the log
    goes to standard error alone and begins with a warning: nobody goes without an answer for want of a log.
    Before the file grows beyond `file_bytes` it is put aside; two older ones are kept. Libraries that log URLs
    are heard from WARNING on. Returns the handlers, for `take_down`.
    """
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    lines = JsonLines(secrets) if json_lines else Lines(secrets)
    handlers, trouble = _handlers(settings.file, console=console, file_bytes=file_bytes)
    root = logging.getLogger()
    root.setLevel(level)
    for handler in handlers:
        handler.setFormatter(lines)
        root.addHandler(handler)
    for name in _LOUD:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))
    # A page instead of an answer is a sentence of our own log; here it would be a traceback, and the page.
    logging.getLogger("telegram.request").setLevel(logging.CRITICAL)
    if trouble:
        logging.getLogger(__name__).warning("the log file %s cannot be opened: %s", settings.file, trouble)
    return handlers


def take_down(handlers: Iterable[logging.Handler]) -> None:
    """Undo `set_up`, and close the file."""
    for handler in handlers:
        logging.getLogger().removeHandler(handler)
        handler.close()


def _handlers(file: Path, *, console: bool, file_bytes: int) -> tuple[tuple[logging.Handler, ...], str]:
    """Return the handlers, and why there is no file among them, or ""."""
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
            return  # it is the log that cannot be written, and nobody caps it meanwhile
    with contextlib.suppress(OSError, ValueError, AttributeError):  # there may be no standard error any more
        sys.stderr.write(f"hermes: an event of {where} was not logged: {kind.__name__ if kind else '?'}\n")


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created).astimezone().isoformat(timespec="milliseconds")


def _escaped(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)
