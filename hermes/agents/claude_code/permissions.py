"""Claude Code's permissions in Hermes' words: what is wanted, and what it came to. Pure.

    tool_name                what                    tool_input, as 2.1.330 was seen to send it
    -----------------------  ----------------------  --------------------------------------------------------------
    Bash                     the whole command line  {command, description?, timeout?, run_in_background?}
    Edit                     the file's name         {file_path, old_string, new_string, replace_all}
    Write                    the file's name         {file_path, content}
    NotebookEdit             the file's name         {notebook_path, new_source, …}
    WebFetch                 the address             {url, prompt}
    any other                the tool's name         anything

"Always" is not offered: what the desk's dialog means by it (`permission_suggestions`) is now a rule for the session,
now a folder, now another mode, and no screen of Hermes says that.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from hermes.agents.shapes import Record, sound
from hermes.model import DeedKind, Permission

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


def read_permission(tool: str, given: Record) -> Permission:
    """Read what a tool is to do with what it was given; what has another shape is shown as the JSON that it is."""
    kind = _KINDS.get(tool, "other")
    what = next((said for key in _NAMED.get(kind, ()) if (said := _said(given, key))), "")
    if kind == "other" or not what:
        more = sound(json.dumps(given, ensure_ascii=False, indent=1)) if given else ""
        return Permission(tool, "other", tool, more, patterns=(tool,))
    return Permission(tool, kind, what, "\n".join(_detail(kind, given)), patterns=(what,))


def _detail(kind: DeedKind, given: Record) -> Iterator[str]:
    """Yield what changes as a diff has it, and what a command has besides its line."""
    if kind == "change":
        for sign, keys in (("-", ("old_string",)), ("+", ("new_string", "content", "new_source"))):
            for key in keys:
                yield from (f"{sign}{line}" for line in _said(given, key).splitlines())
        if given.get("replace_all") is True:
            yield "(wherever it stands in the file)"
    elif kind == "command":
        if given.get("dangerouslyDisableSandbox") is True:
            yield "outside of its sandbox"
        if given.get("run_in_background") is True:
            yield "in the background"


def _said(given: Record, key: str) -> str:
    value = given.get(key)
    return sound(value) if isinstance(value, str) else ""
