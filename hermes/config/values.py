"""The kinds of values in the configuration: how each is written, checked and read.

A check raises the rest of a sentence ("is empty"), which never contains the value of a secret. Durations are written
with a unit ("1h30m") and kept as seconds; "none" means no value, if a key allows it.
"""

import contextlib
import ipaddress
import json
import os
import re
import tomllib
from datetime import datetime, time
from pathlib import Path
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BeforeValidator, SecretStr, ValidationInfo

_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_LONGEST_S = 36525 * 86400.0  # a time so far ahead can still be formatted as a date
_ADDRESS = re.compile(r"\d+(\.\d+){3}|.*:.*")  # of IPv4, right or wrong, or of IPv6
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhd])")


def seconds(value: object) -> float:
    """Return the seconds of a duration such as "1h30m". Raises ValueError with the rest of an error sentence."""
    text = str(value).replace(" ", "")
    if not isinstance(value, str) or not re.fullmatch(f"(?:{_PART.pattern})+", text):
        raise ValueError(f"is {json.dumps(value, default=str)}, which is not a duration")
    total_s = sum(float(number) * _UNIT_S[unit] for number, unit in _PART.findall(text))
    if total_s > _LONGEST_S:
        raise ValueError("is longer than a hundred years")
    return total_s


def _whole(value: object) -> object:
    if isinstance(value, (bool, float)):
        raise ValueError("is not a whole number")
    return value


def _or_none(value: object) -> object:
    return None if value == "none" else value


def _listed(value: object) -> object:
    """Return a list; a variable of the environment holds it as a list of TOML, or separated by commas."""
    if not isinstance(value, str):
        return value
    if not value.strip().startswith("["):
        return [part.strip() for part in value.split(",") if part.strip()]
    try:
        return tomllib.loads(f"listed = {value}")["listed"]
    except (ValueError, RecursionError):
        raise ValueError("is not a list") from None


def _path(value: object) -> object:
    if not isinstance(value, (str, Path)):
        raise ValueError("is not a path")
    if "\0" in str(value):  # each call of the system with such a path raises a ValueError
        raise ValueError("has a NUL character in it")
    try:
        path = Path(value).expanduser()
    except RuntimeError:
        raise ValueError("names a home folder that is not known") from None
    if not path.is_absolute():
        raise ValueError("is not absolute")
    return path


def _quiet(value: object) -> object:
    if value is None or isinstance(value, QuietHours):
        return value
    start, _, end = str(value).replace(" ", "").partition("-")
    try:
        hours = QuietHours(_clock(start), _clock(end))
    except ValueError:
        raise ValueError("is not two times of the day") from None
    if hours.start == hours.end:
        raise ValueError("starts when it ends")
    return hours


def _clock(text: str) -> time:
    return datetime.strptime(text, "%H:%M").time()  # noqa: DTZ007 (a time of the day has no date)


def checked_url(
    value: object, schemes: tuple[str, ...] = ("http", "https"), *, login: bool = False, query: bool = False
) -> str:
    """Return the URL without trailing slashes; an error never repeats it, because it may contain a password."""
    text = str(value).strip()
    try:
        parts = urlsplit(text)
        port_is_right = parts.port != 0
        if _ADDRESS.fullmatch(parts.hostname or ""):
            ipaddress.ip_address(parts.hostname or "")
    except ValueError:
        raise ValueError("is not a URL") from None
    if parts.scheme not in schemes or not parts.hostname or not port_is_right or re.search(r"\s", text):
        raise ValueError("is not a URL of the right kind")
    if not login and "@" in parts.netloc:
        raise ValueError("has a user name or password in it, and URLs end up in logs")
    if parts.fragment:
        raise ValueError("has a '#' in it")
    if parts.query and not query:
        raise ValueError("has a '?' in it")
    if not (text.isascii() and text.isprintable()):
        _check_signs(text)
    return text.rstrip("/")


def _check_signs(url: str) -> None:
    import httpx  # noqa: PLC0415 (takes long, and next to no URL needs it)

    try:
        httpx.URL(url)
    except (httpx.InvalidURL, UnicodeError):  # each request to it would raise that, and not an error of the network
        raise ValueError("is not a URL") from None


def is_here(url: str) -> bool:
    """Tell whether the host of this URL is a loopback address or "localhost"."""
    host = urlsplit(url).hostname or ""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def checked_proxy(value: object, *, login: bool = True) -> str:
    """Return the URL of a proxy. Raises ValueError: as `checked_url`."""
    return checked_url(value, ("http", "https", "socks5", "socks5h"), login=login)


def _proxy(value: object) -> object:
    return value if value is None or isinstance(value, SecretStr) else checked_proxy(value)


def _zone(value: object) -> object:
    if value == "local":
        return value
    try:
        ZoneInfo(str(value))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"is {json.dumps(value, default=str)}, a time zone that this machine does not know") from None
    return value


def secret_or_file(text: object, file: Path | None, file_key: str) -> str:
    """Return the secret from its key or from its file, or "" if neither is set."""
    given = text.get_secret_value() if isinstance(text, SecretStr) else text
    if not isinstance(given, str):
        raise ValueError("is not text")
    if file is None:
        return given.strip()
    if given:
        raise ValueError(f"is set, and {file_key} too: one of the two must go")
    try:
        found = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ValueError(f"cannot be read from {file_key} {file} ({why})") from None
    if not found:
        raise ValueError(f"is not there: {file_key} {file} is empty")
    return found


def _or_its_file(value: object, info: ValidationInfo) -> str:
    """Return the secret of a key such as `token`, or of the file that the key `token_file` before it names."""
    file_key = f"{info.field_name}_file"
    return secret_or_file(value, info.data.get(file_key), file_key)


class QuietHours(NamedTuple):
    """Two local times of the day; if `start` is later than `end`, the hours go past midnight."""

    start: time
    end: time


Seconds = Annotated[float, BeforeValidator(seconds)]
MaybeSeconds = Annotated[Annotated[float, BeforeValidator(seconds)] | None, BeforeValidator(_or_none)]
Whole = Annotated[int, BeforeValidator(_whole)]
Wholes = Annotated[tuple[Whole, ...], BeforeValidator(_listed)]
Words = Annotated[tuple[str, ...], BeforeValidator(_listed)]
Paths = Annotated[tuple[Annotated[str, AfterValidator(os.path.expanduser)], ...], BeforeValidator(_listed)]
"""Words of which some may be paths, in full: agents and programs know no "~"."""
Secret = Annotated[SecretStr, BeforeValidator(_or_its_file)]
Url = Annotated[str, BeforeValidator(checked_url)]
FullPath = Annotated[Path, BeforeValidator(_path)]
MaybePath = Annotated[FullPath | None, BeforeValidator(_or_none)]
MaybeProxy = Annotated[SecretStr | None, BeforeValidator(_proxy), BeforeValidator(_or_none)]
MaybeQuietHours = Annotated[QuietHours | None, BeforeValidator(_quiet), BeforeValidator(_or_none)]
Zone = Annotated[str, BeforeValidator(_zone)]
