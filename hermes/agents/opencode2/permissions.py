"""Read OpenCode 2's permission requests, the replies to them, and the input of the tools that need them. Pure.

A request has `action`, `resources`, and in `save` the patterns that "always" allows for good. It carries neither the
whole command nor a diff: the input of the tool, in the message that asked, has them.

    action              `what` of the Permission    the tool's input adds
    ------------------  --------------------------  ------------------------------------------------
    shell               the commands                the whole command line
    edit, write, patch  the names of the files      the change, and every other parameter
    external_directory  the folders' patterns       what is done there
    webfetch            the address                 every other parameter
    any other           its resources               every parameter
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from hermes.agents.fields import Record, lines_of, more_of, said_of, text_of, texts_of, words_of
from hermes.model.ask import Permission, PermissionKind

_KINDS: Final[dict[str, PermissionKind]] = {
    "shell": "command",
    "edit": "change",
    "write": "change",
    "patch": "change",
    "external_directory": "folder",
    "webfetch": "fetch",
}
_PATTERNS: Final = 100
_TOLD: Final[dict[PermissionKind, tuple[str, ...]]] = {
    "command": ("command",),
    "change": ("patch", "patchText", "content", "oldString", "newString"),
    "folder": ("command", "path", "filePath"),
    "fetch": ("url",),
}
"""The parameters that have a place of their own: of a change each, of the others the first that is there."""
_UNSAID: Final[dict[PermissionKind, frozenset[str]]] = {
    "change": frozenset({"path", "filePath"}),
    "fetch": frozenset({"format", "timeout"}),
}
"""Parameters that nobody needs; the names of changed files are in the resources."""
_DIFF_LINES: Final = 1000
"""A longer change is told as all of its old and all of its new lines, because a diff takes seconds."""


def read_permission(record: Record) -> Permission:
    """Read `{action, resources, save?, metadata?, message?, source?}`; its tool's input is not known yet.

    Raises:
        PayloadError: it has another shape.
    """
    where = "permission"
    tool = text_of(record, "action", where)
    kind = _KINDS.get(tool, "other")
    resources, save = texts_of(record, "resources", where), texts_of(record, "save", where)
    metadata = record.get("metadata")
    lines = [words_of(record, "message", where), *more_of(metadata if isinstance(metadata, dict) else {}, ())]
    detail = lines_of(*lines)
    if kind == "folder":
        detail = f"\n{detail}"  # its first line is what is done in the folder, which is not known yet
    always = save if max(len(resources), len(save)) <= _PATTERNS else ()  # a person cannot check more of them
    # Of a command only its parts are told, without the operators between them; the tool's call has the rest.
    partial = kind == "command" or isinstance(record.get("source"), dict)
    return Permission(tool, kind, "\n".join(resources), detail, resources[:_PATTERNS], always, partial)


def completed(permission: Permission, given: object) -> Permission:
    """Return the permission, completed by the input of its tool (`state.input` of its part).

    Each parameter is told, because a model may add one that its tool ignores, in order to hide another.
    """
    if not isinstance(given, dict) or not given:
        return permission
    told = [key for key in _TOLD.get(permission.kind, ()) if said_of(given, key)]
    told = told if permission.kind == "change" else told[:1]
    more = "\n".join(more_of(given, {*told, *_UNSAID.get(permission.kind, ())}))
    first = said_of(given, told[0]) if told else ""
    whole = replace(permission, partial=False)
    match permission.kind:
        case "command" | "fetch":
            return replace(whole, what=first or whole.what, detail=lines_of(whole.detail, more))
        case "change":
            return replace(whole, detail=lines_of(whole.detail, more, *_change(given)))
        case "folder":
            _, _, known = whole.detail.partition("\n")
            return replace(whole, detail=f"{first}\n{lines_of(known, more)}")
        case _:
            return replace(whole, detail=lines_of(whole.detail, more))


def _change(given: Record) -> Iterator[str]:
    """Yield the lines of a change, as those of a diff."""
    yield from (said_of(given, key) for key in ("patch", "patchText"))
    yield from (f"+{line}" for line in said_of(given, "content").splitlines())
    old, new = said_of(given, "oldString").splitlines(), said_of(given, "newString").splitlines()
    if len(old) + len(new) > _DIFF_LINES:
        yield from (*(f"-{line}" for line in old), *(f"+{line}" for line in new))
    else:
        yield from list(difflib.unified_diff(old, new, lineterm="", n=3))[2:]
