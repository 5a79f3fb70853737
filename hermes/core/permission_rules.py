"""Decide which permissions go to the phone, and for which of them "always" is offered. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import dropwhile, takewhile

from hermes.model.ask import Ask, Permission

MOST_PATTERNS = 8
"""With more patterns than this, "always" is not offered: one screen must show each pattern that it would cover."""
LONGEST_PATTERN = 120
# A setting of a variable (`NAME=value`), which may stand before the name of a command.
_SETTING = re.compile(r"[A-Za-z_]\w*=\S*\Z")
_QUOTES = str.maketrans("", "", "\\\"'")


@dataclass(frozen=True, slots=True)
class Rules:
    """The configuration of permissions. For the commands in `never_always`, "always" is not offered."""

    wanted: bool = True
    always: bool = True
    never_always: tuple[str, ...] = ()
    without_projects: tuple[str, ...] = ()
    without_tools: tuple[str, ...] = ()


def admitted(ask: Ask, rules: Rules) -> Ask | None:
    """Return the ask for the phone, with empty `always` if "always" is not offered; None if only the desk is asked."""
    if ask.permission is None:
        return ask
    if not rules.wanted or ask.permission.tool in rules.without_tools or ask.source.is_in(rules.without_projects):
        return None
    if rules.always and _can_be_named(ask.permission) and not _is_never(ask.permission, rules.never_always):
        return ask
    return replace(ask, permission=replace(ask.permission, always=()))


def _can_be_named(permission: Permission) -> bool:
    """Tell whether one screen can show each pattern of "always", and the agent has told the whole action."""
    named = len(permission.always) <= MOST_PATTERNS and all(len(one) <= LONGEST_PATTERN for one in permission.always)
    return named and not permission.partial


def _is_never(permission: Permission, never: tuple[str, ...]) -> bool:
    if permission.kind != "command":
        return False
    forbidden = [_words(one) for one in never]
    asked = [_words(one) for one in permission.patterns]
    # A pattern covers each command that begins with its words up to the star: "git *" covers "git push".
    covered = [_words(one) for one in permission.always]
    return any(
        any(_holds(words, these) for words in asked) or any(_meet(words, these) for words in covered)
        for these in forbidden
    )


def _words(command: str) -> list[str]:
    """Return the words of a command from its name on, without quotes and backslashes, the name without its folder."""
    words = [one.translate(_QUOTES) for one in dropwhile(_SETTING.match, command.split())]
    return [words[0].rpartition("/")[2], *words[1:]] if words else []


def _is_fixed(word: str) -> bool:
    """Tell whether a word of a pattern says which command it is; behind an option, any word of it may follow."""
    return word != "*" and not word.startswith("-")


def _holds(words: list[str], these: list[str]) -> bool:
    """Tell whether the command `words` has the name of the command `these`, and its other words in any place."""
    return bool(these) and words[:1] == these[:1] and set(these[1:]) <= set(words[1:])


def _meet(words: list[str], these: list[str]) -> bool:
    """Tell whether the pattern `words` may cover a command that begins with `these`."""
    fixed = list(takewhile(_is_fixed, words)) if "*" in words else words
    return bool(these) and all(one == other for one, other in zip(fixed, these, strict=False))
