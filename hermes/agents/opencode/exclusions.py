"""The files that the permissions of OpenCode keep from the agent of a session, as OpenCode compares them itself.

A rule names a tool and files by patterns: `*` is any text, with slashes, `?` is one character, and a last " *" may be
missing. The last rule that fits counts. 1.1.53 compares the whole path of a file, 1.18.33 its path from the worktree,
which is the folder of the repository, or "/" without git. Here a rule may fit either, and one that denies also the
path from the folder of the session: `secret/**` is meant in a folder without git, too.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from hermes.agents.http import BOOT, Api, path_of
from hermes.agents.opencode import wire
from hermes.agents.prompting import Excludes, check_length
from hermes.errors import AgentRefused
from hermes.model.ask import Source


async def exclusions(api: Api, source: Source, messages: Sequence[wire.TurnMessage]) -> Excludes:
    """Return which files the agent of a session, whose newest messages these are, may not read."""
    session = await api.get(wire.Ruled, path_of("session", source.session_id), source.directory, timeout=BOOT)
    agents = await api.get(list[wire.RuledAgent], "/agent", source.directory, timeout=BOOT)
    name = next((one.info.agent for one in reversed(messages) if one.info.agent and not one.info.summary), "")
    found = [one for one in agents if name in {"", one.name}]  # before its first prompt, the default one
    if not found:
        raise AgentRefused("OpenCode does not tell the permissions of the session's agent")
    rules = (*found[0].permission, *(session.permission or ()))
    check_length(rule.permission + rule.pattern for rule in rules)
    worktree = next((one.info.path.root for one in reversed(messages) if one.info.path), "")
    folders = _names(source.directory) if worktree else _above(source.directory)
    return lambda path: is_denied(path, rules, _names(worktree or source.directory), folders)


def _names(folder: str) -> set[str]:
    return {folder, os.path.realpath(folder)}


def _above(folder: str) -> set[str]:
    """Return a folder and all above it: until its first answer, a session does not tell which one is the worktree."""
    return {str(one) for name in _names(folder) for one in (PurePosixPath(name), *PurePosixPath(name).parents)}


def is_denied(path: str, rules: Sequence[wire.Rule], roots: Collection[str], folders: Collection[str]) -> bool:
    """Tell whether a file, by its whole path, may not be read: see above. `roots` are names of the worktree."""
    names = {path, *(posixpath.relpath(path, root) for root in roots)}
    more = names | {posixpath.relpath(path, folder) for folder in folders}
    for rule in reversed(rules):
        is_no = rule.action == "deny"
        if fits("read", rule.permission) and any(fits(name, rule.pattern) for name in (more if is_no else names)):
            return is_no
    return False


def fits(text: str, pattern: str) -> bool:
    """Tell whether a pattern of OpenCode fits a text."""
    text, plain = text.replace("\\", "/"), pattern.replace("\\", "/").replace("[", "[[]")
    return fnmatchcase(text, plain) or (plain.endswith(" *") and fnmatchcase(text, plain[:-2]))
