"""Reading the configuration: one TOML file, the environment above it, and nothing that is not known.

A variable `HERMES_SECTION__KEY` overrides the key of that section, `HERMES_OPENCODE__1__URL` that of the
second server (`HERMES_OPENCODE__URL` of the first). Names without two underscores are no configuration.
The keys themselves are in `settings`. An error is one sentence: place, key, what is wrong, what would be
right; it never repeats a value of a secret.
"""

import contextlib
import difflib
import re
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import platformdirs
from pydantic import ValidationError
from pydantic_settings import EnvSettingsSource

from hermes.errors import ConfigError
from hermes.settings import SECTIONS, Config, Log, Matching, OpenCode, Questions, QuietHours, Store, Telegram

__all__ = [
    "Config",
    "Log",
    "Matching",
    "OpenCode",
    "Questions",
    "QuietHours",
    "Store",
    "Telegram",
    "config_path",
    "load",
    "loads",
    "read_text",
    "readable_by_others",
]

_TWINS = {"token": "token_file", "password": "password_file", "ping_url": "ping_url_file"}
_TWINS |= {file: secret for secret, file in _TWINS.items()}
_Key = tuple[str | int, ...]


def config_path(path: Path | None, *, environ: Mapping[str, str]) -> Path:
    """Where the configuration is: `path`, else `$HERMES_CONFIG`, else the platform's folder. Absolute."""
    if path is None and environ.get("HERMES_CONFIG"):
        path = Path(environ["HERMES_CONFIG"])
    if path is None:
        return platformdirs.user_config_path("hermes") / "config.toml"
    with contextlib.suppress(RuntimeError):  # "~nobody" stays, and is said to be no file
        path = path.expanduser()
    return path.absolute()


def load(path: Path | None, *, environ: Mapping[str, str]) -> Config:
    """All settings: the file that `config_path` names, and `environ` above it.

    The file may be absent where nobody named it: then the environment must hold what has no default.
    Raises ConfigError with one sentence: place, key, what is wrong, what would be right.
    """
    place = config_path(path, environ=environ)
    text = read_text(place)
    if text is None and (path is not None or environ.get("HERMES_CONFIG")):
        message = f"{place} does not exist; `hermes setup` writes it, or name another file with --config."
        raise ConfigError(message)
    return loads(text or "", place, environ=environ)


def loads(text: str, place: Path, *, environ: Mapping[str, str]) -> Config:
    """All settings as `load` would return them if `text` stood in the file `place`. Raises as `load`."""
    settings = _parsed(text, place)
    overlay = _overlay(environ)
    for section in settings:
        # Before `Config` sees it: pydantic-settings would take some names for switches of its own.
        if section not in SECTIONS:
            raise ConfigError(f"{_where((section,), place, {})} {_unknown((section,))}.")
    try:
        return Config(**_merged(settings, overlay))
    except ValidationError as error:
        sentence = _sentence(error, place, overlay)
    raise ConfigError(sentence)  # outside the handler: the cause would carry the values


def read_text(place: Path) -> str | None:
    """The text of the file as it stands, line ends and all, or None where there is none. Raises ConfigError."""
    try:
        return place.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except OSError as error:
        wrong = f"cannot be read ({error.strerror}); it must be a file that you may read"
    except UnicodeDecodeError:
        wrong = "is not UTF-8; it must be TOML, as in config.example.toml"
    raise ConfigError(f"{place} {wrong}.")  # outside the handler: the cause would carry the content


def _parsed(text: str, place: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        wrong = f"is not TOML ({error}); config.example.toml shows how it is written"
    except (ValueError, RecursionError):
        wrong = "is not TOML (a number of far too many digits, or far too deep); see config.example.toml"
    raise ConfigError(f"{place} {wrong}.")


def readable_by_others(path: Path) -> bool:
    """Whether somebody besides the owner may read the file; one that is not there can be read by nobody."""
    try:
        return bool(path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH))
    except FileNotFoundError:
        return False


def _overlay(environ: Mapping[str, str]) -> dict[str, Any]:
    """What the environment says, shaped like the file, but for [[opencode]]: a dict by number, from 0.

    pydantic-settings passes over names that it does not know; here they are errors, as in the file.
    """
    names = {name.lower(): text for name, text in environ.items() if re.fullmatch(r"(?i)hermes_.+?__.+", name)}
    for name in names:
        section, *rest = key = _key_of(name)
        if section not in SECTIONS or len(rest) != (2 if section == "opencode" else 1):
            raise _refused(name, key)
    source = EnvSettingsSource(Config)
    source.env_vars = names
    overlay = source()
    if "opencode" in overlay:
        overlay["opencode"] = _numbered(overlay["opencode"])
    return overlay


def _numbered(servers: dict[str, Any]) -> dict[int, dict[str, str]]:
    numbered = {int(number): table for number, table in servers.items() if isinstance(table, dict)}
    first = {key: text for key, text in servers.items() if isinstance(text, str)}
    return numbered | ({0: first | numbered.get(0, {})} if first else {})


def _refused(name: str, key: _Key) -> ConfigError:
    return ConfigError(f"The environment variable {name.upper()} {_unknown(key)}.")


def _key_of(name: str) -> _Key:
    section, *rest = name.removeprefix("hermes_").split("__")
    if section != "opencode":
        return (section, *rest)
    if rest[0].isdecimal():
        return (section, int(rest[0]), *rest[1:])
    return (section, 0, *rest)


def _dig(tree: object, key: _Key) -> object:
    for part in key:
        tree = tree.get(part) if isinstance(tree, dict) else None
    return tree


def _merged(settings: dict[str, Any], overlay: dict[str, Any]) -> dict[str, Any]:
    merged: dict[str, Any] = {"telegram": {}} | settings
    for section, texts in overlay.items():
        if section == "opencode":
            merged[section] = _servers(merged.get(section, []), texts)
        else:
            merged[section] = _above(merged.get(section, {}), texts)
    return merged


def _servers(tables: object, texts: dict[int, dict[str, str]]) -> object:
    if not isinstance(tables, list):
        return tables
    servers = list(tables)
    for number, table in sorted(texts.items()):
        if number < len(servers):
            servers[number] = _above(servers[number], table)
        else:
            servers.append(table)
    return servers


def _above(table: object, texts: dict[str, str]) -> object:
    """The file's table with the environment's keys: a secret from here puts away its file from there."""
    if not isinstance(table, dict):
        return table
    kept = {key: value for key, value in table.items() if key not in {_TWINS.get(name) for name in texts}}
    return kept | texts


# ---------------------------------------------------------------- the sentence of an error


def _sentence(error: ValidationError, place: Path, overlay: dict[str, Any]) -> str:
    """The first error; an unknown key before all, since a missing one is often the same one misspelt."""
    errors = error.errors(include_url=False, include_input=False)
    chosen = next((each for each in errors if each["type"] == "extra_forbidden"), errors[0])
    key = chosen["loc"][: 3 if chosen["loc"][0] == "opencode" else 2]
    if chosen["type"] == "extra_forbidden":
        wrong = _unknown(key)
    else:
        wrong = f"{_wrong(chosen)}; it must be {_description(key)}"
    return f"{_where(key, place, overlay)} {wrong}."


def _wrong(error: Any) -> str:
    if error["type"] == "missing":
        return "is missing"
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    return "is wrong"


def _description(key: _Key) -> str:
    whole = len(key) == 1 or isinstance(key[-1], int)
    fields = Config.model_fields if whole else SECTIONS[str(key[0])].model_fields
    return str(fields[str(key[0] if whole else key[-1])].description)


def _where(key: _Key, place: Path, overlay: dict[str, Any]) -> str:
    if isinstance(_dig(overlay, key), str):
        return f"The environment variable HERMES_{'__'.join(str(part).upper() for part in key)}"
    file = f"{place}" if place.exists() else f"{place} (not there yet: `hermes setup` writes it)"
    match key:
        case ("opencode", int(number), *rest):
            return ", ".join((file, f"[[opencode]] number {number + 1}", *map(str, rest)))
        case (section, *rest) if section in SECTIONS and rest:
            return f"{file}, [{section}] {rest[0]}"
    return f"{file}, {key[0]}"


def _unknown(key: _Key) -> str:
    """What is wrong, and the nearest that is known: in its section, or another that has just this key."""
    section, name = str(key[0]), str(key[-1])
    if section not in SECTIONS:
        near = difflib.get_close_matches(section, SECTIONS, n=1)
        place = f"the nearest section is [{near[0]}]" if near else f"the sections are [{'], ['.join(SECTIONS)}]"
        return f"is not known; {place}"
    others = [other for other, model in SECTIONS.items() if name in model.model_fields and other != section]
    known = list(SECTIONS[section].model_fields)
    if others and not difflib.get_close_matches(name, known):
        return f"is not known there; it belongs to [{others[0]}]"
    return f"is not known; the nearest key is {_nearest(name, known)}"


def _nearest(name: str, known: list[str]) -> str:
    return difflib.get_close_matches(name, known, n=1, cutoff=0.0)[0]
