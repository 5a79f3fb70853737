"""Claude Code's permissions in Hermes' words: what is wanted, and what it came to. Pure.

    tool_name                what                    tool_input, as 2.1.330 was seen to send it
    -----------------------  ----------------------  --------------------------------------------------------------
    Bash                     the whole command line  {command, description?, timeout?, run_in_background?}
    Edit                     the file's name         {file_path, old_string, new_string, replace_all}
    Write                    the file's name         {file_path, content}
    NotebookEdit             the file's name         {notebook_path, new_source, cell_id?, cell_type?, edit_mode?}
    WebFetch                 the address             {url, prompt}
    any other                the tool's name         anything

Every parameter is shown but for those that say nothing of what would be done (`_SHOWN`).

"Always" is not offered: what the desk's dialog means by it (`permission_suggestions`) is now a rule for the session,
now a folder, now another mode, and no screen of Hermes says that.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from hermes.agents.fields import Record, more_of, sound
from hermes.model.ask import DeedKind, Permission

_KINDS: dict[str, DeedKind] = {
    "Bash": "command",
    "Edit": "change",
    "Write": "change",
    "NotebookEdit": "change",
    "WebFetch": "fetch",
}
_NAMED: dict[DeedKind, tuple[str, ...]] = {
    "command": ("command",),
    "change": ("file_path", "notebook_path"),
    "fetch": ("url",),
}


# What of a tool's input is shown in words of its own, or does not matter: a command's description is the model's word.
_SHOWN: dict[str, frozenset[str]] = {
    "Bash": frozenset({"command", "description", "timeout", "run_in_background", "dangerouslyDisableSandbox"}),
    "Edit": frozenset({"file_path", "old_string", "new_string", "replace_all"}),
    "Write": frozenset({"file_path", "content"}),
    "NotebookEdit": frozenset({"notebook_path", "new_source", "cell_id", "edit_mode"}),
    "WebFetch": frozenset({"url"}),
}
_FLAGS = frozenset({"run_in_background", "dangerouslyDisableSandbox", "replace_all"})
_CELL: dict[str, str] = {"delete": "deletes", "insert": "inserts a cell after", "replace": "replaces"}


def read_permission(tool: str, given: Record) -> Permission:
    """Read what a tool is to do with what it was given; what has another shape is shown as the JSON that it is."""
    kind = _KINDS.get(tool, "other")
    what = next((said for key in _NAMED.get(kind, ()) if (said := _said(given, key))), "")
    if kind == "other" or not what:
        more = sound(json.dumps(given, ensure_ascii=False, indent=1)) if given else ""
        return Permission(tool, "other", tool, more, patterns=(tool,))
    shown = {key for key in _SHOWN[tool] if _is_readable(key, given.get(key))}
    detail = (*_conditions(tool, given), *more_of(given, shown), *(_changes(given) if kind == "change" else ()))
    return Permission(tool, kind, what, "\n".join(detail), patterns=(what,))


def _is_readable(key: str, value: object) -> bool:
    if key in _FLAGS:
        return isinstance(value, bool)
    return isinstance(value, str | None) or (key == "timeout" and isinstance(value, int | float))


def _conditions(tool: str, given: Record) -> Iterator[str]:
    """Yield in words how it is to be done, above what changes: a long change is cut at its end."""
    if given.get("dangerouslyDisableSandbox") is True:
        yield "outside of its sandbox"
    if given.get("run_in_background") is True:
        yield "in the background"
    if given.get("replace_all") is True:
        yield "(wherever it stands in the file)"
    if tool == "NotebookEdit":
        mode, cell = _said(given, "edit_mode") or "replace", " ".join(_said(given, "cell_id").split())
        does = _CELL.get(mode, json.dumps(mode, ensure_ascii=False))
        yield f"{does} {f'the cell {cell}' if cell else 'a cell that it does not name'}"


def _changes(given: Record) -> Iterator[str]:
    """Yield what changes as a diff has it."""
    for sign, keys in (("-", ("old_string",)), ("+", ("new_string", "content", "new_source"))):
        for key in keys:
            yield from (f"{sign}{line}" for line in _said(given, key).splitlines())


def _said(given: Record, key: str) -> str:
    value = given.get(key)
    return sound(value) if isinstance(value, str) else ""
