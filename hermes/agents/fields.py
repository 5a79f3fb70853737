"""Read the values in an agent's JSON. Pure.

A function that gets a value of the wrong type raises a PayloadError that names the place (`where`, and `key` if there
is one) but not the value, because errors are logged. JSON can carry half of a surrogate pair, but UTF-8 cannot, so
that such halves become U+FFFD here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping

from hermes.errors import PayloadError

_LONE = re.compile("[\ud800-\udfff]")
_ID_LENGTH = 200
_ENDLESS = 10 * 366 * 86400.0
_END_OF_TIME_MS = 10**14

Record = Mapping[str, object]


def sound(text: str) -> str:
    """Return the text with whole surrogate pairs joined, and each lone half of a pair replaced by U+FFFD."""
    if not _LONE.search(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def record_of(value: object, where: str) -> Record:
    """Read an object."""
    if not isinstance(value, Mapping):
        raise PayloadError(f"{where} is not an object")
    return value


def list_of(value: object, where: str) -> list[object]:
    """Read a list."""
    if not isinstance(value, list):
        raise PayloadError(f"{where} is not a list")
    return value


def text_of(record: Record, key: str, where: str) -> str:
    """Read a text. A missing one is an error."""
    value = record.get(key)
    if not isinstance(value, str):
        raise PayloadError(f"{where}.{key} is not text")
    return sound(value)


def words_of(record: Record, key: str, where: str) -> str:
    """Read a text, or "" if it is missing or null."""
    return "" if record.get(key) is None else text_of(record, key, where)


def said_of(record: Record, key: str) -> str:
    """Return a text, "" if it is missing or of another type."""
    value = record.get(key)
    return sound(value) if isinstance(value, str) else ""


def id_of(record: Record, key: str, where: str) -> str:
    """Read an id: a text of 1 to 200 characters."""
    value = text_of(record, key, where)
    if not 0 < len(value) <= _ID_LENGTH:
        raise PayloadError(f"{where}.{key} is not an id")
    return value


def number_of(record: Record, key: str, where: str) -> float | None:
    """Read a number of seconds above zero and below ten years, or None if it is missing or null."""
    value = record.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _ENDLESS:
        raise PayloadError(f"{where}.{key} is not a number above zero")
    return float(value)


def moment_of(record: Record, key: str, where: str) -> float:
    """Read a time in milliseconds since the epoch, and return it in seconds. A missing one is an error."""
    value = record.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _END_OF_TIME_MS:
        raise PayloadError(f"{where}.{key} is not a time in milliseconds")
    return value / 1000


def count_of(record: Record, key: str, where: str) -> int:
    """Read a whole number, 0 or more. A missing one is an error."""
    value = record.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _END_OF_TIME_MS:
        raise PayloadError(f"{where}.{key} is not a whole number")
    return value


def flag_of(record: Record, key: str, where: str, *, absent: bool) -> bool:
    """Read a flag. `absent` is returned if it is missing or null."""
    value = record.get(key)
    if value is None:
        return absent
    if not isinstance(value, bool):
        raise PayloadError(f"{where}.{key} is neither true nor false")
    return value


def json_of(value: object, *, indent: int | None = None) -> str:
    """Return a value as JSON for people."""
    try:
        return sound(json.dumps(value, ensure_ascii=False, indent=indent))
    except RecursionError:
        raise PayloadError("a value is nested too deeply") from None


def more_of(given: Record, known: Collection[str]) -> Iterator[str]:
    """Yield one line, `key: value`, for each parameter of a tool that is not in `known`.

    A text of several lines is written as JSON, so that no line of it can look like a line of a diff.
    """
    for key, value in given.items():
        if key not in known:
            plain = isinstance(value, str) and len(value.splitlines()) <= 1
            shown = value if plain else json_of(value)
            yield sound(f"{key if key.isidentifier() else json.dumps(key)}: {shown}")


def lines_of(*texts: str) -> str:
    """Return these texts as lines, without those that are empty."""
    return "\n".join(text for text in texts if text)


def texts_of(record: Record, key: str, where: str) -> tuple[str, ...]:
    """Return a list of texts, empty if the key is missing or null. Raises PayloadError: it is another value."""
    value = record.get(key)
    listed = list_of([] if value is None else value, f"{where}.{key}")
    if not all(isinstance(one, str) for one in listed):
        raise PayloadError(f"{where}.{key} contains a value that is not text")
    return tuple(sound(str(one)) for one in listed)
