"""What a permission shows of its tool's input: all of it, also where a parameter would hide another."""

from __future__ import annotations

import pytest

from hermes.agents.opencode2 import permissions
from hermes.model.ask import Permission, PermissionKind

EVIL = "os.system('rm -rf ~')"
CHANGE = {"path": "a.py", "oldString": "safe()", "newString": EVIL}


def permission(kind: PermissionKind) -> Permission:
    """Return a permission whose tool's input is not known yet."""
    return Permission("tool", kind, "a.py", "\n" if kind == "folder" else "", ("a.py",), (), partial=True)


@pytest.mark.parametrize("decoy", [{"content": "# fine"}, {"content": ""}, {"patch": "+fine"}, {"patch": 3}, {}])
def test_no_decoy_hides_a_change(decoy: dict[str, object]) -> None:
    """Whichever of its parameters the tool takes, it is shown."""
    assert f"+{EVIL}" in permissions.completed(permission("change"), {**decoy, **CHANGE}).detail


def test_no_decoy_hides_what_is_done_in_a_folder() -> None:
    """The command comes first, the path and the content after it."""
    detail = permissions.completed(
        permission("folder"), {"path": "/etc/passwd", "content": EVIL, "command": "ls"}
    ).detail
    assert detail.startswith("ls\n")
    assert "path: /etc/passwd" in detail
    assert EVIL in detail


def test_a_command_that_is_no_text_is_shown() -> None:
    """As JSON, beside what the request tells of it."""
    told = permissions.completed(permission("command"), {"command": ["rm", "-rf", "~"]})
    assert (told.what, told.detail) == ("a.py", 'command: ["rm", "-rf", "~"]')


def test_a_long_change_is_told_without_a_diff() -> None:
    """All of its old lines, then all of its new ones; a diff of repeated lines takes seconds."""
    old, new = ("\n".join([word] * 1000) for word in ("old", "new"))
    detail = permissions.completed(permission("change"), {"oldString": old, "newString": new}).detail
    assert detail.splitlines() == ["-old"] * 1000 + ["+new"] * 1000
