"""The files that the settings of Claude Code keep from it: the `Read(PATTERN)` rules in `permissions.deny`.

Claude Code compares a file, by its real path, too, as git does with .gitignore, except that capitals never count, and
that `x/**` is the same as `x`. `//` begins at the root, `~/` in the home folder, `/` at the settings, and any other
pattern in the folder in which Claude Code was started. A session's folder can lie below that one. So the settings of
all folders above count, and their patterns both from there and from the session's folder; those of the user's settings
and of the machine's managed settings from each of these folders. A rule with `!`, which would take another one back,
has no effect here.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from hermes.agents.claude_code.install import settings_path
from hermes.agents.fields import list_of, record_of
from hermes.agents.prompting import Excludes, check_length
from hermes.errors import AgentRefused, PayloadError

LARGEST: Final = 1 << 20
MANAGED: Final = (Path("/etc/claude-code"), Path("/Library/Application Support/ClaudeCode"))
"""Where those who manage the machine put settings for all its users: on Linux and on macOS."""
_NAMES: Final = ("settings.json", "settings.local.json")
_READ: Final = re.compile(r"Read(?:\((.*)\))?", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)

Rule = tuple[Path, str]
"""A folder, and a pattern from there without a slash at its beginning, unless it must begin in that very folder."""


def exclusions(
    directory: str, record: str, environ: Mapping[str, str] = os.environ, managed: Sequence[Path] = MANAGED
) -> Excludes:
    """Return which files the settings keep from a session in this folder, whose record is the file `record`.

    Raises AgentRefused: settings that cannot be read or understood (`said` names the file), or with too many rules.
    """
    here = Path(os.path.realpath(directory))
    above = (here, *here.parents)
    files: dict[Path, tuple[Path, ...]] = {
        folder / ".claude" / name: (folder, here) for folder in above for name in _NAMES
    }
    general = (settings_path(environ), *_settings_of(record), *_managed(managed))
    files |= {file: (file.parent, *above) for file in general}
    home = Path(environ.get("HOME") or Path.home())
    patterns = ((pattern, folders) for file, folders in files.items() for pattern in _patterns(file))
    rules = [rule for pattern, folders in patterns for rule in rules_of(pattern, folders, home)]
    check_length(pattern for _, pattern in rules)
    return lambda path: any(is_named(path, rule) for rule in rules)


def _managed(folders: Sequence[Path]) -> Iterator[Path]:
    """Yield the files of the managed settings. Raises AgentRefused: a folder of them cannot be read."""
    for folder in folders:
        yield folder / "managed-settings.json"
        pieces = folder / "managed-settings.d"
        try:
            yield from (piece for piece in sorted(pieces.iterdir()) if piece.suffix == ".json")
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            raise AgentRefused("settings that cannot be read", said=f"{pieces} cannot be read") from None


def _settings_of(record: str) -> Iterator[Path]:
    """Yield the user's settings: a record is CONFIG/projects/FOLDER/ID.jsonl, and CONFIG need not be ~/.claude."""
    folders = Path(record).parents
    if Path(record).is_absolute() and len(folders) > 2 and folders[1].name == "projects":  # noqa: PLR2004 (as above)
        yield folders[2] / "settings.json"


def _patterns(file: Path) -> Iterator[str]:
    """Yield the pattern of each rule of a file that denies to read."""
    try:
        settings = record_of(json.loads(_content(file).decode("utf-8-sig")), "settings")
        permissions = record_of(settings.get("permissions", {}), "permissions")
        denied = list_of(permissions.get("deny", []), "deny")
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError, RecursionError, PayloadError):
        raise AgentRefused("settings that cannot be read", said=f"{file} cannot be read") from None
    found = (_READ.fullmatch(one) for one in denied if isinstance(one, str))
    yield from (one[1] or "**" for one in found if one)


def _content(file: Path) -> bytes:
    """Return the content of a plain file, perhaps by a link; to open a pipe or a device could have an effect."""
    if not stat.S_ISREG(file.stat().st_mode):
        raise ValueError
    with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC), "rb") as opened:
        content = opened.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ValueError
    return content


def rules_of(pattern: str, folders: Sequence[Path], home: Path) -> Iterator[Rule]:
    """Yield what a pattern in the settings means in each of these folders, or in the one that it names itself."""
    if pattern.startswith("//"):
        yield Path("/"), pattern[1:]
    elif pattern.startswith("~/"):
        yield Path(os.path.realpath(home)), pattern[1:]
        yield home, pattern[1:]
    else:
        yield from ((folder, pattern.removeprefix("./")) for folder in dict.fromkeys(folders))


def is_named(path: str, rule: Rule) -> bool:
    """Tell whether a rule names a file, by its whole path, or a folder above it."""
    folder, pattern = rule
    if not Path(path).is_relative_to(folder):
        return False
    parts = [part.lower() for part in Path(path).relative_to(folder).parts]
    pattern = pattern.lower().removesuffix("/**").removesuffix("/")
    steps = [step for step in pattern.split("/") if step]
    reached = {0}  # so many parts of the path fit the steps so far
    for step in steps if steps and "/" in pattern else ("**", *steps):
        if step == "**":
            reached = set(range(min(reached, default=len(parts) + 1), len(parts) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(parts) and fnmatchcase(parts[at], _as_fnmatch(step))}
    return any(reached)


def _as_fnmatch(step: str) -> str:
    return _ESCAPED.sub(lambda found: f"[{found[1]}]" if found[1] in "*?[" else found[1], step)
