"""Put Hermes' hooks into the user's settings of Claude Code, and leave every other byte unchanged.

~/.claude/settings.json                  the settings; `$CLAUDE_CONFIG_DIR/settings.json` if that variable is set
~/.claude/settings.json.before-hermes    a copy without Hermes' hooks, for `uninstall`; empty if there was no file
"""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from hermes.agents.claude_code.adapter import ASKING, BEFORE, TOOL
from hermes.agents.claude_code.edits import appended, without
from hermes.errors import ConfigError
from hermes.storage.installed_files import interpreter, replace, saving

LONGEST_S: Final = 2147483
"""The longest timeout that Claude Code can use: its timers take less than 2^31 ms (24.8 days)."""
EVERY: Final = "*"
OVER: Final = ("Stop", "UserPromptSubmit", "SessionEnd", "SubagentStop")
EVENTS: Final = (BEFORE, ASKING, "PostToolUse", "PostToolUseFailure", *OVER)
_OURS: Final = re.compile(r"-I -m hermes hook claude-code --store ")

Entry = tuple[str, dict[str, Any]]
"""An event, and one item of its list: `{"matcher"?, "hooks": [{"type", "command", "timeout"?}]}`."""


def install(
    *,
    environ: Mapping[str, str],
    python: str,
    config_path: Path,
    store: Path,
    log: Path,
    permissions: bool | None = None,
    headless: bool | None = None,
) -> list[str]:
    """Put Hermes' hooks into the settings, and return a list of sentences about it. Safe to repeat.

    With `permissions`, Claude Code's other permission prompts also go to the phone. With `headless`, its questions go
    to the phone before any dialog, for runs in which nobody sees a dialog. None keeps the present value; at first it
    is off. The other arguments are those of `hermes.agents.plugin_file.Plugin.install`.

    Raises ConfigError (settings that cannot be read or have another shape, and stay unchanged; a Python without
    Hermes) and NotSaved.
    """
    python = interpreter(python)  # first, because it takes a moment in which the settings may change
    place = settings_path(environ)
    now = _read(place)
    ours = list(_ours(_hooks(place, now)))
    held = {(event, entry.get("matcher")) for event, entry in ours}
    permissions = (ASKING, EVERY) in held if permissions is None else permissions
    headless = (BEFORE, TOOL) in held if headless is None else headless
    paths = ["--store", str(store.absolute()), "--log", str(log.absolute()), "--config", str(config_path.absolute())]
    # exec: otherwise Claude Code's shell would get the signal that is meant for the hook.
    command = "exec " + shlex.join([python, "-I", "-m", "hermes", "hook", "claude-code", *paths])
    before = _before(place, now)
    wanted = _merged(before, entries(command, permissions=permissions, headless=headless))
    if wanted == now:
        return [f"{place} has Hermes' hooks already, and they are up to date."]
    _keep(place, before)
    _write(place, wanted)
    done = "Hermes' hooks were updated" if ours else "Hermes' hooks are"
    also = ", and its permission prompts are asked on the phone" if permissions else ""
    said = [f"{done} in {place}{also}.", "A Claude Code that is running takes them in when it is started again."]
    return [*said, *(["Its questions wait for the phone alone now: no dialog opens before that."] if headless else [])]


def uninstall(*, environ: Mapping[str, str]) -> list[str]:
    """Remove only Hermes' hooks, and return a list of sentences about it. Safe to repeat. Raises as `install`."""
    place = settings_path(environ)
    now = _read(place)
    if now is None or not list(_ours(_hooks(place, now))):
        return [f"{place} has no hooks of Hermes; nothing was changed."]
    before = _before(place, now)
    if before is None:
        with saving(place):
            place.resolve().unlink()
    else:
        _write(place, before)
    with saving(_kept(place)):
        _kept(place).unlink(missing_ok=True)
    done = "was removed; it held nothing else" if before is None else "has no hooks of Hermes any more"
    return [f"{place} {done}.", "A Claude Code that is running keeps them until it is started again."]


def is_connected(environ: Mapping[str, str]) -> bool:
    """Tell whether the settings have hooks of Hermes; settings that cannot be read have none."""
    with contextlib.suppress(ConfigError):
        return bool(commands(settings_path(environ)))
    return False


def settings_path(environ: Mapping[str, str]) -> Path:
    """Return the path of the user's settings."""
    base = environ.get("CLAUDE_CONFIG_DIR")
    return (Path(base) if base else Path(environ.get("HOME") or Path.home()) / ".claude") / "settings.json"


def entries(command: str, *, permissions: bool, headless: bool) -> list[Entry]:
    """Return Hermes' entries for the settings: the hooks that ask, and the hooks that report that an ask is over."""
    asking = {"type": "command", "command": command, "timeout": LONGEST_S}
    telling = {"type": "command", "command": command}
    asks = [(BEFORE, TOOL)] if headless else [] if permissions else [(ASKING, TOOL)]
    if permissions:
        asks.append((ASKING, EVERY))
    ends = ["PostToolUse", "PostToolUseFailure"] if permissions else ["PostToolUse"]
    found: list[Entry] = [(event, {"matcher": matcher, "hooks": [asking]}) for event, matcher in asks]
    found += [(event, {"matcher": EVERY if permissions else TOOL, "hooks": [telling]}) for event in ends]
    return found + [(event, {"hooks": [telling]}) for event in (OVER if permissions else OVER[:-1])]


def commands(place: Path) -> list[list[str]]:
    """Return the words of each command of Hermes in the settings at `place`.

    Raises ConfigError: the settings cannot be read or have another shape, or no shell could read a command.
    """
    found = (entry["hooks"] for _, entry in _ours(_hooks(place, _read(place))))
    try:
        return [shlex.split(hook["command"]) for hooks in found for hook in hooks]
    except ValueError:
        raise ConfigError(f"{place} has a hook of Hermes that no shell understands; install it again.") from None


# --- the text -----------------------------------------------------------------------------------------------


def _read(place: Path) -> str | None:
    try:
        return place.read_bytes().decode()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{place} cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{place} is not UTF-8; it stays as it is.") from None


def _hooks(place: Path, text: str | None) -> dict[str, list[Any]]:
    """Return the lists of hooks by event. Raises ConfigError: the settings have another shape."""
    if text is None:
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise ConfigError(f"{place} is no JSON; it stays as it is. Mend it first.") from None
    if not isinstance(found, dict):
        raise ConfigError(f"{place} is no JSON object; it stays as it is. Mend it first.")
    hooks = found.get("hooks", {})
    if not isinstance(hooks, dict) or not all(isinstance(one, list) for one in hooks.values()):
        raise ConfigError(f"{place}: its hooks have a shape that Hermes does not know; they stay as they are.")
    return hooks


def _ours(hooks: Mapping[str, list[Any]]) -> Iterator[Entry]:
    """Yield each entry with a hook of Hermes. If an entry also has other hooks, leave those out."""
    for event, listed in hooks.items():
        for entry in listed:
            if mine := [hook for hook in _commands(entry) if _is_ours(hook)]:
                yield event, {**entry, "hooks": mine}


def _commands(entry: object) -> list[Any]:
    hooks = entry.get("hooks") if isinstance(entry, dict) else None
    return hooks if isinstance(hooks, list) else []


def _is_ours(hook: object) -> bool:
    command = hook.get("command") if isinstance(hook, dict) else None
    return isinstance(command, str) and bool(_OURS.search(command))


def _merged(text: str | None, ours: list[Entry]) -> str:
    """Return the settings with Hermes' entries, each at the end of its event's list."""
    text = "{}\n" if text is None else text
    if "hooks" not in json.loads(text):
        text = appended(text, (), {}, key="hooks")
    # Sorted, so that the text does not depend on the order in which the entries were found.
    for event, entry in sorted(ours, key=_place_of):
        if event in json.loads(text)["hooks"]:
            text = appended(text, ("hooks", event), entry)
        else:
            text = appended(text, ("hooks",), [entry], key=event)
    return text


def _place_of(entry: Entry) -> int:
    return EVENTS.index(entry[0]) if entry[0] in EVENTS else len(EVENTS)


def _stripped(text: str) -> str:
    """Return the settings without Hermes' hooks, and without the entries, lists and object that are then empty."""
    for event, listed in json.loads(text)["hooks"].items():
        for index, entry in reversed(list(enumerate(listed))):
            hooks = _commands(entry)
            mine = [number for number, hook in enumerate(hooks) if _is_ours(hook)]
            if mine and len(mine) == len(hooks):
                text = without(text, ("hooks", event, index))
                continue
            for number in reversed(mine):
                text = without(text, ("hooks", event, index, "hooks", number))
        if listed and not json.loads(text)["hooks"][event]:
            text = without(text, ("hooks", event))
    return text if json.loads(text)["hooks"] else without(text, ("hooks",))


def _before(place: Path, now: str | None) -> str | None:
    """Return the settings without Hermes' hooks, or None if there would be no file without Hermes.

    If only Hermes has changed the settings since the copy was made, this is the copy, byte for byte.
    """
    ours = list(_ours(_hooks(place, now)))
    if now is None or not ours:
        return now
    with contextlib.suppress(ConfigError, ValueError):
        kept = _read(_kept(place))
        if kept is not None and _merged(kept or None, ours) == now:
            return kept or None
    stripped = _stripped(now)
    made = not json.loads(stripped) and _read(_kept(place)) == ""
    return None if made else stripped


# --- the files ----------------------------------------------------------------------------------------------


def _kept(place: Path) -> Path:
    return place.with_name(f"{place.name}.before-hermes")


def _keep(place: Path, before: str | None) -> None:
    kept = _kept(place)
    with saving(kept):
        replace(kept, before or "")


def _write(place: Path, text: str) -> None:
    """Write the settings, through a link if `place` is one. They keep their file mode; that of a new file is 0600."""
    with saving(place):
        mode = stat.S_IMODE(place.stat().st_mode) if place.exists() else 0o600
        replace(place.resolve(), text, mode=mode)
