"""Read OpenCode's permission requests and the replies to them. Pure.

    permission          `what` of the Permission    metadata, as both versions were seen to send it
    ------------------  --------------------------  ------------------------------------------------------------
    bash                the whole command line      {command} (1.18.33); {} (1.1.53: the tool's input has it)
    edit (also write)   the file's name             {filepath, diff}, and {files} of a patch (1.18.33)
    external_directory  the folders' patterns       {filepath, parentDir}, {command, directories} (1.18.33); or {}
    webfetch            the address                 {url, format, timeout?}
    any other           its patterns                anything

Metadata under keys that are not in `_SHOWN` is shown, too.

For bash, `patterns` holds the single commands of the command line; the phone shows the line itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hermes.agents.fields import Record, id_of, json_of, more_of, sound, text_of, texts_of
from hermes.model.answer import Refused
from hermes.model.ask import DeedKind, Permission

_KINDS: dict[str, DeedKind] = {
    "bash": "command",
    "edit": "change",
    "external_directory": "folder",
    "webfetch": "fetch",
}
_PATTERNS = 100
# The metadata keys that have their own place on the screen, or say nothing about the effect of the tool.
_SHOWN: dict[DeedKind, frozenset[str]] = {
    "command": frozenset({"command"}),
    "change": frozenset({"filepath", "filePath", "diff", "files"}),
    "folder": frozenset({"command", "filepath", "filePath", "parentDir", "directories", "patterns"}),
    "fetch": frozenset({"url", "format", "timeout"}),
}

FEEDBACK = "with the following feedback: "
REJECTED = "rejected permission"


def read_permission(record: Record) -> Permission:
    """Read `{id, permission, patterns, metadata, always}`.

    Raises:
        PayloadError: it has another shape.
    """
    where = "permission"
    id_of(record, "id", where)
    tool = text_of(record, "permission", where)
    kind = _KINDS.get(tool, "other")
    patterns = texts_of(record, "patterns", where)
    metadata = _quiet(record.get("metadata"))
    what, detail = _deed(kind, patterns, metadata)
    # 1.1.53 sends only the single commands of a line, without the operators and redirections between them.
    partial = kind == "command" and not _said(metadata, "command")
    always = texts_of(record, "always", where)
    if len(patterns) > _PATTERNS:
        always = ()  # too many for a person to check, so "always" is not offered
    return Permission(tool, kind, what, detail, patterns[:_PATTERNS], always, partial)


def _deed(kind: DeedKind, patterns: tuple[str, ...], metadata: Record) -> tuple[str, str]:
    """Return `what` and `detail` of a Permission; unknown metadata stands above a diff, whose end may be cut off."""
    listed = "\n".join(patterns)
    more = tuple(more_of(metadata, _SHOWN.get(kind, ())))
    match kind:
        case "command":
            return _said(metadata, "command") or listed, "\n".join(more)
        case "change":
            named = listed or _said(metadata, "filepath") or _said(metadata, "filePath")
            return named, "\n".join((*_files(metadata), *more, _said(metadata, "diff")))
        case "folder":
            inside = _said(metadata, "command") or _said(metadata, "filepath") or _said(metadata, "filePath")
            return listed, "\n".join((inside, *more))  # the first line is empty until the tool's input is known
        case "fetch":
            return _said(metadata, "url") or listed, "\n".join(more)
        case _:
            return listed, json_of(metadata, indent=1) if metadata else ""


def _files(metadata: Record) -> Iterator[str]:
    """Yield a line for each file that a patch deletes or moves."""
    files = metadata.get("files")
    for one in map(_quiet, files if isinstance(files, list) else []):
        name, moved = (" ".join(_said(one, key).split()) for key in ("filePath", "movePath"))
        if one.get("type") == "delete":
            yield f"deletes the file {name}"
        if moved:
            yield f"moves the file {name} to {moved}"


def wants_input(permission: Permission) -> bool:
    """Tell whether the permission lacks facts that the tool's input holds."""
    return permission.partial or (permission.kind == "folder" and not permission.detail.partition("\n")[0])


def completed(permission: Permission, given: object) -> Permission:
    """Return the permission, completed from the tool's input (`state.input` of its part).

    1.1.53 sends no metadata with a command.
    """
    if not wants_input(permission):
        return permission
    said = _quiet(given)
    command = _said(said, "command")
    if permission.kind == "command":
        return replace(permission, what=command, partial=False) if command else permission
    inside, (_, line_break, more) = command or _said(said, "filePath"), permission.detail.partition("\n")
    return replace(permission, detail=f"{inside}{line_break}{more}")


def _said(metadata: Record, key: str) -> str:
    value = metadata.get(key)
    return sound(value) if isinstance(value, str) else ""


def _quiet(value: object) -> Record:
    """Return the value if it is an object, else an empty object."""
    return value if isinstance(value, dict) else {}


def read_error(error: str) -> Refused | None:
    """Return the refusal, with its reason, in the error of a tool part; None if the error is no refusal."""
    if REJECTED not in error:
        return None
    return Refused(error.partition(FEEDBACK)[2])
