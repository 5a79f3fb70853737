"""Reads diffs: the header that repeats the name of its file, and the numbers of changed lines. Pure.

A changed line may look like a header: "--- old" removes the line "-- old".
"""

import re
from typing import Final

_HEADER: Final = re.compile(r"(?:Index: (.*)\n)?(?:=+\n)?--- (.*?)\t?\n\+\+\+ (.*?)\t?\n(?=@@ -\d)")
_HUNK: Final = re.compile(r"^@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@", re.MULTILINE)


def headless(diff: str, name: str) -> str:
    """Return the diff without the header that it begins with, if that only repeats the name of the one file."""
    header = _HEADER.match(diff)
    if header is None or not all(f"/{one}".endswith(f"/{name}") for one in header.groups(name)):
        return diff
    return diff[header.end() :]


def changed_lines(diff: str) -> tuple[int, int]:
    """Return how many lines a diff adds and removes.

    The first line of a hunk says how many lines follow; a header can only be outside of them.
    """
    added = removed = old = new = 0
    has_hunks = bool(_HUNK.search(diff))
    for one in diff.split("\n"):
        inside = old > 0 or new > 0
        if not inside and (hunk := _HUNK.match(one)):
            old, new = (int(count or 1) for count in hunk.groups())
        elif inside or not (has_hunks and one.startswith(("--- ", "+++ "))):
            added, removed = added + one.startswith("+"), removed + one.startswith("-")
            old, new = old - (one[:1] in "- "), new - (one[:1] in "+ ")
    return added, removed
