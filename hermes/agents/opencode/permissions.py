"""Read OpenCode's permission requests and the replies to them. Pure.

    permission          `what` of the Permission    metadata, as both versions were seen to send it
    ------------------  --------------------------  ------------------------------------------------------------
    bash                the whole command line      {command} (1.18.33); {} (1.1.53: the tool's input has it)
    edit (also write)   the file's name             {filepath, diff}, and {files} of a patch (1.18.33)
    external_directory  the folders' patterns       {filepath, parentDir}, {command, directories} (1.18.33); or {}
    webfetch            the address                 {url, format, timeout?}
    any other           its patterns                anything; {} of a tool of an MCP server

The input of the tool holds all parameters: the folder in which a command runs, the arguments of an MCP server's tool,
the prompt of a subagent. So each key of the metadata and of the input is shown once, except those in `_SHOWN`.

For bash, `patterns` holds the single commands of the command line; the phone shows the line itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace

from hermes.agents.fields import Record, id_of, json_of, lines_of, more_of, said_of, sound, text_of, texts_of
from hermes.errors import PayloadError
from hermes.model.answer import Refused
from hermes.model.ask import Permission, PermissionKind

_KINDS: dict[str, PermissionKind] = {
    "bash": "command",
    "edit": "change",
    "external_directory": "folder",
    "webfetch": "fetch",
}
_PATTERNS = 100
# The keys that have their own place on the screen, or say nothing about the effect of the tool. The model wrote the
# description of a command.
_SHOWN: dict[PermissionKind, frozenset[str]] = {
    "command": frozenset({"description", "timeout"}),
    "change": frozenset({"filepath", "filePath", "diff", "files"}),
    "folder": frozenset({"filepath", "parentDir", "directories", "patterns", "description", "timeout"}),
    "fetch": frozenset({"format", "timeout"}),
}
_IN_DIFF = frozenset({"oldString", "newString", "replaceAll", "content", "patchText"})
_HUNK = re.compile(r"^@@ ", re.MULTILINE)

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
    what, detail = _what_and_detail(kind, patterns, metadata)
    # 1.1.53 sends only the single commands of a line, without the operators and redirections between them.
    partial = _names_call(record) or (kind == "command" and not said_of(metadata, "command"))
    always = texts_of(record, "always", where)
    if len(patterns) > _PATTERNS:
        always = ()  # too many for a person to check, so "always" is not offered
    return Permission(tool, kind, what, detail, patterns[:_PATTERNS], always, partial)


def _names_call(record: Record) -> bool:
    """Tell whether the request names the call that asks, so that its input can be read."""
    tool = _quiet(record.get("tool"))
    return bool(tool.get("messageID") and tool.get("callID"))


def _what_and_detail(kind: PermissionKind, patterns: tuple[str, ...], metadata: Record) -> tuple[str, str]:
    """Return `what` and `detail` of a Permission; unknown metadata stands above a diff, whose end may be cut off."""
    listed = "\n".join(patterns)
    match kind:
        case "command":
            what = said_of(metadata, "command") or listed
            return what, "\n".join(_more(kind, metadata, what))
        case "change":
            named = listed or said_of(metadata, "filepath") or said_of(metadata, "filePath")
            return named, "\n".join((*_files(metadata), *_more(kind, metadata, named), said_of(metadata, "diff")))
        case "folder":
            inside = said_of(metadata, "command") or said_of(metadata, "filepath") or said_of(metadata, "filePath")
            return listed, "\n".join((inside, *_more(kind, metadata, inside)))  # see `completed`
        case "fetch":
            what = said_of(metadata, "url") or listed
            return what, "\n".join(_more(kind, metadata, what))
        case _:
            return listed, "\n".join(_more(kind, metadata, listed))


def _more(
    kind: PermissionKind, told: Record, shown: str, lines: Collection[str] = (), *, diff: bool = False
) -> Iterator[str]:
    """Yield a line for each parameter that says something, except if its text is `shown`, or its line is in `lines`.

    The "*" of a tool of an MCP server stands for all that it can do, and not for a parameter.
    """
    known = _SHOWN.get(kind, frozenset()) | (_IN_DIFF if diff else frozenset())
    for key, value in told.items():
        repeated = isinstance(value, str) and sound(value) == shown != "*"
        if value in (None, "", [], {}) or repeated:
            continue
        yield from (line for line in more_of({key: value}, known) if line not in lines)


def _files(metadata: Record) -> Iterator[str]:
    """Yield a line for each file that a patch deletes or moves."""
    files = metadata.get("files")
    for one in map(_quiet, files if isinstance(files, list) else []):
        name, moved = (" ".join(said_of(one, key).split()) for key in ("filePath", "movePath"))
        if one.get("type") == "delete":
            yield f"deletes the file {name}"
        if moved:
            yield f"moves the file {name} to {moved}"


def completed(permission: Permission, given: object) -> Permission:
    """Add the parameters that only the input of its tool (`state.input` of its part) has to a partial permission."""
    if not permission.partial or not isinstance(given, dict):
        return permission
    try:
        return _completed(permission, given)
    except PayloadError:
        return permission  # nested too deeply


def _completed(permission: Permission, given: Record) -> Permission:
    kind, what, detail = permission.kind, permission.what, permission.detail
    lines = frozenset(detail.splitlines())
    match kind:
        case "command":
            what = _line(permission, said_of(given, "command"))
            if not what:
                return permission
            detail = lines_of(detail, *_more(kind, given, what, lines))
            return replace(permission, what=what, detail=detail, partial=False)
        case "folder":
            # The first line names the command or file; it is empty if only the input does.
            inside, _, rest = detail.partition("\n")
            inside = inside or said_of(given, "command") or said_of(given, "filePath") or said_of(given, "path")
            detail = "\n".join((inside, *rest.splitlines(), *_more(kind, given, inside, lines)))
        case "change":
            diff = _HUNK.search(detail) is not None
            detail = lines_of(*_more(kind, given, what, lines, diff=diff), detail)
        case _:
            # The permission for the same call once more ("doom_loop") has all of the input in its metadata.
            is_told = f"input: {json_of(given)}" in lines
            detail = lines_of(detail, *(() if is_told else _more(kind, given, what, lines)))
    return replace(permission, detail=detail, partial=False)


def _line(permission: Permission, command: str) -> str:
    """Return the whole command line, or "" if only its single commands are known; the model sent `command`.

    The metadata's line counts more, and so do commands that are not in the model's: a plugin may change the line.
    """
    if permission.what != "\n".join(permission.patterns):
        return permission.what
    sent = "".join(command.split())
    is_whole = all("".join(one.split()) in sent for one in permission.patterns)
    return command if is_whole or not command else permission.what


def _quiet(value: object) -> Record:
    return value if isinstance(value, dict) else {}


def read_error(error: str) -> Refused | None:
    """Return the refusal, with its reason, in the error of a tool part; None if the error is no refusal."""
    if REJECTED not in error:
        return None
    return Refused(error.partition(FEEDBACK)[2])
