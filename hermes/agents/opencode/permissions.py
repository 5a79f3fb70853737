"""OpenCode's permissions in Hermes' words: what is wanted, and what was said to it. Pure.

    permission          what                        metadata, as both versions were seen to send it
    ------------------  --------------------------  ------------------------------------------------------------
    bash                the whole command line      {command} (new); {} (old: the tool's input has it)
    edit (write, too)   the file's name             {filepath, diff}, and {files} of a patch (new)
    external_directory  the folders' patterns       {filepath, parentDir}, {command, directories} (new); or {}
    webfetch            the address                 {url, format, timeout?}
    any other           its patterns                anything

What else the metadata holds is shown as it is (`_SHOWN` has the rest).

`patterns` holds the single commands of a command line; what is shown is the line itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from hermes.agents.fields import Record, id_of, list_of, more_of, sound, text_of, words_of
from hermes.errors import PayloadError
from hermes.model.ask import DeedKind, Permission

_KINDS: dict[str, DeedKind] = {
    "bash": "command",
    "edit": "change",
    "external_directory": "folder",
    "webfetch": "fetch",
}
_PATTERNS = 100
# What of the metadata is shown in a place of its own, or says nothing of what would be done.
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
    patterns = _texts(record, "patterns", where)
    metadata = _quiet(record.get("metadata"))
    what, detail = _deed(kind, patterns, metadata)
    # Old asks with the single commands of a line alone, without what joins them or where their output goes.
    partial = kind == "command" and not _said(metadata, "command")
    always = _texts(record, "always", where)
    if len(patterns) > _PATTERNS:
        always = ()  # more than anybody would read
    return Permission(tool, kind, what, detail, patterns[:_PATTERNS], always, partial)


def _deed(kind: DeedKind, patterns: tuple[str, ...], metadata: Record) -> tuple[str, str]:
    """Return what is wanted, and more of it; what is not known stands above a change, which is cut at its end."""
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
            return listed, "\n".join((inside, *more))  # its first line is empty until it is known what is done there
        case "fetch":
            return _said(metadata, "url") or listed, "\n".join(more)
        case _:
            return listed, sound(json.dumps(metadata, ensure_ascii=False, indent=1)) if metadata else ""


def _files(metadata: Record) -> Iterator[str]:
    """Yield what a patch does to whole files: it deletes or moves them."""
    files = metadata.get("files")
    for one in map(_quiet, files if isinstance(files, list) else []):
        name, moved = (" ".join(_said(one, key).split()) for key in ("filePath", "movePath"))
        if one.get("type") == "delete":
            yield f"deletes the file {name}"
        if moved:
            yield f"moves the file {name} to {moved}"


def wants_input(permission: Permission) -> bool:
    """Tell whether the tool's input would tell more than is known."""
    return permission.partial or (permission.kind == "folder" and not permission.detail.partition("\n")[0])


def completed(permission: Permission, given: object) -> Permission:
    """Return it with what only the tool's input tells (`state.input` of its part): old sends no metadata."""
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
    """Read what may have any shape, or be missing."""
    return value if isinstance(value, dict) else {}


def _texts(record: Record, key: str, where: str) -> tuple[str, ...]:
    listed = list_of(record.get(key, []), f"{where}.{key}")
    if not all(isinstance(one, str) for one in listed):
        raise PayloadError(f"OpenCode: {where}.{key} holds what is no text")
    return tuple(sound(str(one)) for one in listed)


def read_reply(record: Record, where: str) -> tuple[tuple[str, ...], ...]:
    """Read `{reply, message?}` of `permission.replied`: the event itself never says why, the plugin does.

    Raises:
        PayloadError: it is no reply.
    """
    reply = text_of(record, "reply", where)
    if reply in {"once", "always", "allowed"}:  # the last one is the plugin's, where only the tool has told
        return ((reply,),)
    if reply != "reject":
        raise PayloadError(f"OpenCode: {where}.reply is none of once, always and reject")
    return (("refused", why),) if (why := words_of(record, "message", where)) else (("refused",),)


def read_error(error: str) -> tuple[tuple[str, ...], ...] | None:
    """Return what the error of a tool part says was refused, and why; None where it was not refused at all."""
    if REJECTED not in error:
        return None
    return (("refused", error.partition(FEEDBACK)[2]),)
