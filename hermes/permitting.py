"""Which permissions are asked for on the phone at all, and which of them may be given for good. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes.model import Ask, Permission, Source

# What may stand before a command without being one: settings of variables.
_SETTING = re.compile(r"[A-Za-z_]\w*=\S*\Z")


@dataclass(frozen=True, slots=True)
class Rules:
    """What the configuration says. `never_always` are the first words of commands that "always" is not offered for."""

    wanted: bool = True
    always: bool = True
    never_always: tuple[str, ...] = ()
    without_projects: tuple[str, ...] = ()
    without_tools: tuple[str, ...] = ()


def admitted(ask: Ask, rules: Rules) -> Ask | None:
    """Return the ask as it goes to the phone, or None where only the desk is asked."""
    if ask.permission is None:
        return ask
    if not rules.wanted or ask.permission.tool in rules.without_tools or _is_in(ask.source, rules.without_projects):
        return None
    if rules.always and not _is_never(ask.permission, rules.never_always):
        return ask
    return replace(ask, permission=replace(ask.permission, always=()))


def _is_in(source: Source, projects: tuple[str, ...]) -> bool:
    """Tell whether it comes from one of these projects: a folder by its whole path, or by its own name."""
    folder = source.directory.rstrip("/")
    return any(one.rstrip("/") in {folder, folder.rpartition("/")[2]} for one in projects if one.rstrip("/"))


def _is_never(permission: Permission, never: tuple[str, ...]) -> bool:
    if permission.kind != "command":
        return False
    said = [_words(one) for one in (*permission.patterns, *permission.always)]
    # A pattern of nothing but a star covers them all.
    return any(words[:1] == ["*"] or any(_begins(words, one.split()) for one in never) for words in said)


def _words(command: str) -> list[str]:
    """Return the words of a command from its own name on, without the folder that it lies in."""
    words = command.split()
    while words and _SETTING.match(words[0]):
        words = words[1:]
    return [words[0].rpartition("/")[2], *words[1:]] if words else []


def _begins(words: list[str], with_these: list[str]) -> bool:
    return bool(with_these) and words[: len(with_these)] == with_these
