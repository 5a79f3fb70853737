"""Change a JSON text and leave every other byte of it unchanged, because a person wrote it by hand. Pure.

A place is a path of keys and indices that begins at the outermost value. The caller must have checked that the text is
JSON and has the place: these functions find only some errors (ValueError, IndexError, StopIteration).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

Path = tuple[str | int, ...]

_BLANK = re.compile(r"[ \t\r\n]*")
_INDENT = re.compile(r"\{\r?\n([ \t]+)\"")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class _Node:
    """The start and the end of a value in the text.

    `inner` are its members or items: the key or index, the start (of the key, if there is one), and the value.
    """

    start: int
    end: int
    inner: tuple[tuple[str | int, int, _Node], ...] = ()

    def at(self, path: Path) -> _Node:
        """Return the value at this path; of several members with one key, the last, as `json` does."""
        if not path:
            return self
        return next(node for key, _, node in reversed(self.inner) if key == path[0]).at(path[1:])


def appended(text: str, place: Path, value: object, *, key: str | None = None) -> str:
    """Return the text with one more item in the list at `place`, or one more member, `key`, in the object there."""
    node = _parse(text, 0).at(place)
    indent = found[1] if (found := _INDENT.search(text)) else "  "
    newline = "\r\n" if "\r\n" in text else "\n"
    name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
    if node.inner and "\n" not in text[node.start : node.end]:
        last = node.inner[-1][2].end
        return f"{text[:last]}, {name}{json.dumps(value, ensure_ascii=False)}{text[last:]}"
    pad = newline + indent * (len(place) + 1)
    lines = json.dumps(value, ensure_ascii=False, indent=indent).split("\n")
    added = f"{pad}{name}{pad.join(lines)}"
    if node.inner:
        last = node.inner[-1][2].end
        return f"{text[:last]},{added}{text[last:]}"
    return f"{text[: node.start + 1]}{added}{newline}{indent * len(place)}{text[node.end - 1 :]}"


def without(text: str, place: Path) -> str:
    """Return the text without the member or item at `place`."""
    holder = _parse(text, 0).at(place[:-1])
    index = next(index for index, (key, _, _) in enumerate(holder.inner) if key == place[-1])
    if len(holder.inner) == 1:
        return text[: holder.start + 1] + text[holder.end - 1 :]
    if index:
        return text[: holder.inner[index - 1][2].end] + text[holder.inner[index][2].end :]
    return text[: holder.inner[0][1]] + text[holder.inner[1][1] :]


def _parse(text: str, start: int) -> _Node:
    start = _skip(text, start)
    if text[start] not in "{[":
        return _Node(start, _DECODER.raw_decode(text, start)[1])
    named = text[start] == "{"
    inner: list[tuple[str | int, int, _Node]] = []
    at = _skip(text, start + 1)
    while text[at] not in "}]":
        at = first = _skip(text, at + 1) if inner else at
        key: str | int = len(inner)
        if named:
            key, at = _DECODER.raw_decode(text, at)
            at = _skip(text, at) + 1
        node = _parse(text, at)
        inner.append((key, first, node))
        at = _skip(text, node.end)
    return _Node(start, at + 1, tuple(inner))


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at
