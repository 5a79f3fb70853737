"""What a turn changed, as one text for a person: the changed lines of each file, as a unified diff. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from hermes.core.secret_files import is_secret

LONGEST: Final = 50_000
"""So many characters are kept: a notice is in memory, and is written whole with each change."""
COMPARED_LINES: Final = 500
"""A file of more lines is not compared here: hostile ones of 200 lines take 0.1 s already."""
_HEADERS: Final = ("Index: ", "=====")


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A changed file, with the agent's own diff (`patch`), or with its text before and after.

    `patch` is "" for a file that is not text.
    """

    name: str
    patch: str | None = None
    before: str | None = None
    after: str | None = None


def joined(files: Iterable[ChangedFile]) -> str:
    """Return the changes of all files as one text, cut after `LONGEST` characters; "" if the agent tells of none.

    To compare files can take seconds: call it in a thread if the agent gives no diffs of its own.
    """
    whole, rest = "", iter(files)
    for file in rest:
        text = _text_of(file)
        whole = "\n".join(part for part in (whole, text) if part)
        if len(whole) > LONGEST:
            kept = whole[:LONGEST].rpartition("\n")[0] or whole[:LONGEST]
            more = sum(1 for _ in rest)
            return f"{kept}\n… cut here, because it is too long" + (f"; {more} more files" if more else "")
    return whole


def _text_of(file: ChangedFile) -> str:
    if file.patch is None and file.before is None and file.after is None:
        return ""
    if is_secret(file.name):
        return f"{file.name}: changed; not shown, because it may hold secrets"
    text = _without_headers(file.patch) if file.patch is not None else _compared(file)
    return text or f"{file.name}: changed, but not as text"


def _without_headers(patch: str) -> str:
    lines = patch.rstrip("\n").split("\n")
    while lines and lines[0].startswith(_HEADERS):
        del lines[0]
    return "\n".join(line.rstrip("\t") if line.startswith(("--- ", "+++ ")) else line for line in lines)


def _compared(file: ChangedFile) -> str:
    before, after = (file.before or "").splitlines(), (file.after or "").splitlines()
    if max(len(before), len(after)) > COMPARED_LINES:
        return f"{file.name}: changed, but too long to show"
    return "\n".join(difflib.unified_diff(before, after, file.name, file.name, lineterm=""))
