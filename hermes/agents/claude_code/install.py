"""Put Hermes' hooks into the user's settings of Claude Code. Other settings and their order stay; the layout does not.

~/.claude/settings.json                  the settings; `$CLAUDE_CONFIG_DIR/settings.json` if that variable is set
~/.claude/settings.json.before-hermes    the file before Hermes changed it, for `uninstall`; empty if there was none

A hook with `asyncRewake` runs in the background; if it ends with status 2, Claude Code gives its stderr to the model,
and begins a turn if none runs. So a hook can wait in each session for prompts from the phone. One is started when a
session starts, and one with each prompt, since the first one has ended by then if it brought the prompt; if one waits
already, the other one ends at once. No hook waits while prompts from the phone are off.
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

from hermes.agents.claude_code.shape import ASKING, BEFORE, TOOL, WAKE_MESSAGE, WAKE_SUMMARY
from hermes.errors import ConfigError
from hermes.storage.installed_files import interpreter, remove_empty, replace, saving

LONGEST_S: Final = 2147483
"""The longest timeout that Claude Code can use: its timers take less than 2^31 ms (24.8 days)."""
EVERY: Final = "*"
OVER: Final = ("Stop", "StopFailure", "UserPromptSubmit", "SessionEnd")
OVER_WITH_PERMISSIONS: Final = (*OVER, "SubagentStop")
WAITING: Final = ("SessionStart", "UserPromptSubmit")
"""The events at which a hook begins to wait for prompts."""
PROMPTS_NOTE: Final = (
    "Claude Code tells its model that the prompts from your phone come from a hook and not from the user."
)
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
    ours = list(_ours(_settings(place, now)))
    held = {(event, entry.get("matcher")) for event, entry in ours}
    permissions = (ASKING, EVERY) in held if permissions is None else permissions
    headless = (BEFORE, TOOL) in held if headless is None else headless
    paths = ["--store", str(store.absolute()), "--log", str(log.absolute()), "--config", str(config_path.absolute())]
    # exec: otherwise Claude Code's shell would get the signal that is meant for the hook.
    command = "exec " + shlex.join([python, "-I", "-m", "hermes", "hook", "claude-code", *paths])
    settings = _settings(place, now)
    wanted = _with(_without_ours(settings), entries(command, permissions=permissions, headless=headless))
    if wanted == settings:
        return [f"{place} has Hermes' hooks already, and they are up to date."]
    if not ours:
        with saving(_kept(place)):
            replace(_kept(place), now or "")
    _write(place, _text(wanted))
    done = "Hermes' hooks were updated" if ours else "Hermes' hooks are"
    also = ", and its permission prompts are asked on the phone" if permissions else ""
    said = [
        f"{done} in {place}{also}.",
        "A Claude Code that is running takes them in at once; start it again if it does not.",
    ]
    return [*said, *(["Its questions wait for the phone alone now: no dialog opens before that."] if headless else [])]


def uninstall(*, environ: Mapping[str, str]) -> list[str]:
    """Remove only Hermes' hooks, and return a list of sentences about it. Safe to repeat. Raises as `install`.

    If nobody else has changed the settings meanwhile, they become the former file, byte for byte.
    """
    place = settings_path(environ)
    settings = _settings(place, _read(place))
    ours = list(_ours(settings))
    if not ours:
        return [f"{place} has no hooks of Hermes; nothing was changed."]
    rest, former = _without_ours(settings), _former(place)
    if former and _with(json.loads(former), ours) == settings:
        _write(place, former)
    elif rest or former != "":
        _write(place, _text(rest))
    else:
        with saving(place):
            place.resolve().unlink()
    with saving(_kept(place)):
        _kept(place).unlink(missing_ok=True)
    remove_empty(place.parent)
    done = "has no hooks of Hermes any more" if place.exists() else "was removed; it held nothing else"
    return [f"{place} {done}.", "A Claude Code that is running drops them at once; start it again if it does not."]


def is_connected(environ: Mapping[str, str]) -> bool:
    """Tell whether the settings have hooks of Hermes; settings that cannot be read have none."""
    with contextlib.suppress(ConfigError):
        return bool(commands(settings_path(environ)))
    return False


def is_outdated(environ: Mapping[str, str]) -> bool:
    """Tell whether an older Hermes put its hooks there: they work, but do not report all or take no prompts."""
    with contextlib.suppress(ConfigError):
        place = settings_path(environ)
        events = {event for event, _ in _ours(_settings(place, _read(place)))}
        return bool(events) and not events.issuperset((*OVER, *WAITING))
    return False


def settings_path(environ: Mapping[str, str]) -> Path:
    """Return the path of the user's settings."""
    base = environ.get("CLAUDE_CONFIG_DIR")
    return (Path(base) if base else Path(environ.get("HOME") or Path.home()) / ".claude") / "settings.json"


def entries(command: str, *, permissions: bool, headless: bool) -> list[Entry]:
    """Return Hermes' entries for the settings: the hooks that ask, that report, and that wait for prompts."""
    asking = {"type": "command", "command": command, "timeout": LONGEST_S}
    telling = {"type": "command", "command": command}
    asks = [(BEFORE, TOOL)] if headless else [] if permissions else [(ASKING, TOOL)]
    if permissions:
        asks.append((ASKING, EVERY))
    ends = ["PostToolUse", "PostToolUseFailure"] if permissions else ["PostToolUse"]
    found: list[Entry] = [(event, {"matcher": matcher, "hooks": [asking]}) for event, matcher in asks]
    found += [(event, {"matcher": EVERY if permissions else TOOL, "hooks": [telling]}) for event in ends]
    found += [(event, {"hooks": [telling]}) for event in (OVER_WITH_PERMISSIONS if permissions else OVER)]
    waiting = {"type": "command", "command": f"{command} --prompts", "timeout": LONGEST_S, "asyncRewake": True}
    waiting |= {"rewakeSummary": WAKE_SUMMARY, "rewakeMessage": WAKE_MESSAGE}
    return found + [(event, {"hooks": [waiting]}) for event in WAITING]


def commands(place: Path) -> list[list[str]]:
    """Return the words of each command of Hermes in the settings at `place`.

    Raises ConfigError: the settings cannot be read or have another shape, or no shell could read a command.
    """
    found = (entry["hooks"] for _, entry in _ours(_settings(place, _read(place))))
    try:
        return [shlex.split(hook["command"]) for hooks in found for hook in hooks]
    except ValueError:
        raise ConfigError(f"{place} has a hook of Hermes that no shell understands; install it again.") from None


# --- the settings -------------------------------------------------------------------------------------------


def _settings(place: Path, text: str | None) -> dict[str, Any]:
    """Return the settings, {} if there is no file. Raises ConfigError: they are not JSON, or have another shape."""
    if text is None:
        return {}
    try:
        settings = json.loads(text)
    except json.JSONDecodeError as error:
        fault = f"is not JSON (line {error.lineno}, column {error.colno}: {error.msg})"
    except (ValueError, RecursionError):
        fault = "is not JSON that can be read (a number of too many digits, or too deep)"
    else:
        if isinstance(settings, dict):
            hooks = settings.get("hooks", {})
            if isinstance(hooks, dict) and all(isinstance(listed, list) for listed in hooks.values()):
                return settings
            fault = "has hooks of a shape that Hermes does not know"
        else:
            fault = "is not a JSON object"
    raise ConfigError(f"{place} {fault}; nothing was changed. Correct the file first.")


def _ours(settings: Mapping[str, Any]) -> Iterator[Entry]:
    """Yield each entry with a hook of Hermes. If an entry also has other hooks, leave those out."""
    for event, listed in settings.get("hooks", {}).items():
        for entry in listed:
            if mine := [hook for hook in _commands(entry) if _is_ours(hook)]:
                yield event, {**entry, "hooks": mine}


def _commands(entry: object) -> list[Any]:
    hooks = entry.get("hooks") if isinstance(entry, dict) else None
    return hooks if isinstance(hooks, list) else []


def _is_ours(hook: object) -> bool:
    command = hook.get("command") if isinstance(hook, dict) else None
    return isinstance(command, str) and bool(_OURS.search(command))


def _with(settings: Mapping[str, Any], ours: list[Entry]) -> dict[str, Any]:
    """Return the settings with these entries, each at the end of its event's list."""
    hooks = dict(settings.get("hooks", {}))
    for event, entry in ours:
        hooks[event] = [*hooks.get(event, []), entry]
    return {**settings, "hooks": hooks}


def _without_ours(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings without Hermes' hooks, and without the entries, lists and object that only held those."""
    hooks: dict[str, list[Any]] = {}
    for event, listed in settings.get("hooks", {}).items():
        kept = []
        for entry in listed:
            others = [hook for hook in _commands(entry) if not _is_ours(hook)]
            if others or not _commands(entry):
                kept.append({**entry, "hooks": others} if others else entry)
        if kept or not listed:
            hooks[event] = kept
    rest = {key: value for key, value in settings.items() if key != "hooks"}
    return {key: hooks if key == "hooks" else rest[key] for key in settings if key != "hooks" or hooks}


# --- the files ----------------------------------------------------------------------------------------------


def _read(place: Path) -> str | None:
    try:
        return place.read_bytes().decode()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{place} cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{place} is not UTF-8; nothing was changed.") from None


def _text(settings: Mapping[str, Any]) -> str:
    """Return the settings as a file has them; half a surrogate pair, which UTF-8 cannot hold, is an escape again."""
    text = json.dumps(settings, ensure_ascii=False, indent=2)
    return text.encode("utf-8", "backslashreplace").decode() + "\n"


def _kept(place: Path) -> Path:
    return place.with_name(f"{place.name}.before-hermes")


def _former(place: Path) -> str | None:
    """Return the file as it was before Hermes changed it, "" if there was none; None if the copy is lost or damaged."""
    with contextlib.suppress(ConfigError):
        text = _read(_kept(place))
        if text:
            _settings(place, text)
        return text
    return None


def _write(place: Path, text: str) -> None:
    """Write the settings, through a link if `place` is one. They keep their file mode; that of a new file is 0600."""
    with saving(place):
        mode = stat.S_IMODE(place.stat().st_mode) if place.exists() else 0o600
        replace(place.resolve(), text, mode=mode)
