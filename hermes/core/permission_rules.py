"""Which permissions are asked for on the phone at all, and which of them may be given for good. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import dropwhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes.model.ask import Ask, Permission, Source

MOST_PATTERNS = 8
"""A person is told each pattern that "always" would cover, on one screen; what has more is not given for good."""
LONGEST_PATTERN = 120
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
    if rules.always and _can_be_named(ask.permission) and not _is_never(ask.permission, rules.never_always):
        return ask
    return replace(ask, permission=replace(ask.permission, always=()))


def _can_be_named(permission: Permission) -> bool:
    """Tell whether a person can be told all that "always" would cover, and what is asked for now."""
    named = len(permission.always) <= MOST_PATTERNS and all(len(one) <= LONGEST_PATTERN for one in permission.always)
    return named and not permission.partial


def _is_in(source: Source, projects: tuple[str, ...]) -> bool:
    """Tell whether it comes from one of these projects: a folder by its whole path, or by its own name."""
    folder = source.directory.rstrip("/")
    return any(one.rstrip("/") in {folder, folder.rpartition("/")[2]} for one in projects if one.rstrip("/"))


def _is_never(permission: Permission, never: tuple[str, ...]) -> bool:
    if permission.kind != "command":
        return False
    forbidden = [one.split() for one in never]
    asked = [_words(one) for one in permission.patterns]
    # What a pattern covers begins with all of it up to its star: "git *" covers "git push".
    covered = [_words(one) for one in permission.always]
    return any(
        any(_holds(words, these) for words in asked) or any(_meet(words, these) for words in covered)
        for these in forbidden
    )


def _words(command: str) -> list[str]:
    """Return the words of a command from its own name on, bare of quotes and of the folder that it lies in."""
    words = list(dropwhile(_SETTING.match, command.split()))
    return [words[0].strip("\\\"'").rpartition("/")[2], *words[1:]] if words else []


def _holds(words: list[str], these: list[str]) -> bool:
    """Tell whether a command is one of these: its name is the same, and the other words come in it somewhere."""
    return bool(these) and words[:1] == these[:1] and set(these[1:]) <= set(words[1:])


def _meet(words: list[str], these: list[str]) -> bool:
    """Tell whether a pattern covers one of these."""
    fixed = words[: words.index("*")] if "*" in words else words
    return bool(these) and all(one == other for one, other in zip(fixed, these, strict=False))
