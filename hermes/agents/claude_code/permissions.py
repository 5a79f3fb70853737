"""Read the permissions that Claude Code asks for. Pure.

    tool_name                what                    tool_input, as seen with 2.1.330
    -----------------------  ----------------------  --------------------------------------------------------------
    Bash                     the whole command line  {command, description?, timeout?, run_in_background?}
    Edit                     the file's name         {file_path, old_string, new_string, replace_all}
    Write                    the file's name         {file_path, content}
    NotebookEdit             the file's name         {notebook_path, new_source, cell_id?, cell_type?, edit_mode?}
    WebFetch                 the address             {url, prompt}
    ExitPlanMode             the tool's name         {plan, planFilePath}; {} if no plan was written
    any other                the tool's name         anything

Every parameter is shown, except the few in `_SHOWN` that do not change the action.

"Always" is not offered: in the desk's dialog (`permission_suggestions`) it can mean a rule for the session, a folder
or another mode, and Hermes has no screen that shows which.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from hermes.agents.fields import Record, json_of, lines_of, more_of, said_of
from hermes.model.ask import Permission, PermissionKind

PLAN = "ExitPlanMode"
"""The tool with which Claude Code shows its plan, and asks to begin the work."""
_KINDS: dict[str, PermissionKind] = {
    "Bash": "command",
    "Edit": "change",
    "Write": "change",
    "NotebookEdit": "change",
    "WebFetch": "fetch",
}
_NAMED: dict[str, str] = {
    "Bash": "command",
    "Edit": "file_path",
    "Write": "file_path",
    "NotebookEdit": "notebook_path",
    "WebFetch": "url",
}
"""The parameter that names what each tool acts on."""
# The parameters that `more_of` leaves out: they are shown in another form, or do not change the action.
# A command's description is not shown, because the model wrote it.
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
    """Read the action of a tool from its input. The input of an unknown tool or of another shape is shown as JSON.

    A plan is shown as it was written, below all else: people read it.
    """
    if tool == PLAN and (plan := said_of(given, "plan")):
        return Permission(tool, "other", tool, lines_of(*more_of(given, {"plan"}), plan), patterns=(tool,))
    kind = _KINDS.get(tool, "other")
    what = said_of(given, _NAMED.get(tool, ""))
    if kind == "other" or not what:
        more = json_of(given, indent=1) if given else ""
        return Permission(tool, "other", tool, more, patterns=(tool,))
    shown = {key for key in _SHOWN[tool] if _is_readable(key, given.get(key))}
    detail = (*_conditions(tool, given), *more_of(given, shown), *(_changes(given) if kind == "change" else ()))
    return Permission(tool, kind, what, "\n".join(detail), patterns=(what,))


def _is_readable(key: str, value: object) -> bool:
    if key in _FLAGS:
        return isinstance(value, bool)
    return isinstance(value, str | None) or (key == "timeout" and isinstance(value, int | float))


def _conditions(tool: str, given: Record) -> Iterator[str]:
    """Yield the conditions of an action in words. They stand above the change, whose end is cut off if it is long."""
    if given.get("dangerouslyDisableSandbox") is True:
        yield "outside of its sandbox"
    if given.get("run_in_background") is True:
        yield "in the background"
    if given.get("replace_all") is True:
        yield "(everywhere in the file)"
    if tool == "NotebookEdit":
        mode, cell = said_of(given, "edit_mode") or "replace", " ".join(said_of(given, "cell_id").split())
        does = _CELL.get(mode, json.dumps(mode, ensure_ascii=False))
        yield f"{does} {f'the cell {cell}' if cell else 'a cell that it does not name'}"


def _changes(given: Record) -> Iterator[str]:
    """Yield the lines of the change as in a diff, with "-" or "+" in front."""
    for sign, keys in (("-", ("old_string",)), ("+", ("new_string", "content", "new_source"))):
        for key in keys:
            yield from (f"{sign}{line}" for line in said_of(given, key).splitlines())
