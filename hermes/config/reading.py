"""Read the configuration: one TOML file, overridden by the environment. Unknown keys are errors.

A variable `HERMES_SECTION__KEY` overrides the key of that section; the tables [[opencode]] can only be in the file.
A name without two underscores sets no key. A listener that an agent's hook starts gets no such variable. `settings`
defines the keys. An error is one sentence with the place, the key, the fault and a correct form; it never repeats the
value of a secret.
"""

import contextlib
import difflib
import logging
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import platformdirs
from pydantic import ValidationError

from hermes import disk
from hermes.config.settings import SECTIONS, Config
from hermes.errors import ConfigError

log = logging.getLogger(__name__)

_VARIABLE = re.compile(r"(?i)hermes_.+?__.+")
OPEN_TO_OTHERS = 0o077
NOT_SET_UP = "not set up yet. Run `hermes setup`."
OF_VARIABLE = "The environment variable"
"""So begins the sentence of an error that is not in the file."""
_Key = tuple[str | int, ...]
_Overlay = dict[str, dict[str, str]]


def config_path(path: Path | None, *, environ: Mapping[str, str]) -> Path:
    """Return the absolute path of the file: `path`, else `$HERMES_CONFIG`, else the file in the platform's folder."""
    if path is None and environ.get("HERMES_CONFIG"):
        path = Path(environ["HERMES_CONFIG"])
    if path is None:
        return platformdirs.user_config_path("hermes") / "config.toml"
    return absolute(path)


def absolute(path: Path) -> Path:
    """Return the absolute path. If "~name" names no user it stays, and the file is then reported as missing."""
    with contextlib.suppress(RuntimeError):
        path = path.expanduser()
    return path.absolute()


def load(path: Path | None, *, environ: Mapping[str, str]) -> Config:
    """Return all settings: those of the file that `config_path` names, overridden by `environ`.

    The file may be absent if neither `path` nor `$HERMES_CONFIG` names it; then the environment must set every key
    that has no default: those of [telegram], or HERMES_STORE__URL on an agent-only machine. Raises ConfigError with one
    sentence: place, key, fault, correct form.
    """
    place = config_path(path, environ=environ)
    text = read_text(place)
    if text is None and (path is not None or environ.get("HERMES_CONFIG")):
        raise ConfigError(f"{place} does not exist; `hermes setup` writes it, or name another file with --config.")
    overlay = _overlay(environ)
    if text is None and "telegram" not in overlay and "url" not in overlay.get("store", {}):
        raise ConfigError(NOT_SET_UP)
    return loads(text or "", place, environ=environ)


def loads(text: str, place: Path, *, environ: Mapping[str, str]) -> Config:
    """Return all settings as `load` would if `text` were the content of the file `place`. Raises as `load`."""
    settings = _parsed(text, place)
    overlay = _overlay(environ)
    try:
        return Config.model_validate(_merged(settings, overlay))
    except ValidationError as error:
        sentence = _sentence(error, place, overlay)
    raise ConfigError(sentence)  # outside the handler: the cause would contain the values


def without_keys(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the variables that set keys.

    `hermes ask` and `hermes hook` may run with the variables of a project's folder, and may start a listener.
    """
    return {name: text for name, text in environ.items() if not _VARIABLE.fullmatch(name)}


def read_text(place: Path) -> str | None:
    """Return the text of the file, line breaks unchanged, or None if there is no file. Raises ConfigError.

    Some editors of Windows put a byte order mark before the text, which nobody sees, and which TOML does not allow.
    A pipe, as of `--config <(…)`, is refused: hooks read the file later, and a listener again and again.
    """
    try:
        if not place.is_fifo():
            return place.read_bytes().decode("utf-8-sig")
        wrong = "is a pipe, which can be read only once; it must be a file"
    except FileNotFoundError:
        return None
    except OSError as error:
        wrong = f"cannot be read ({error.strerror}); it must be a file that you may read"
    except UnicodeDecodeError:
        wrong = "is not UTF-8; it must be TOML, as `hermes config --example` prints it"
    raise ConfigError(f"{place} {wrong}.")  # outside the handler: the cause would contain the content


class Followed:
    """Watch the configuration file of a running process, at `place`. `path` and `environ` are as in `load`.

    Raises ConfigError: as `read_text`.
    """

    def __init__(self, path: Path | None, *, environ: Mapping[str, str]) -> None:
        self._path, self._environ = path, environ
        self.place = config_path(path, environ=environ)
        self._secret_files: tuple[Path, ...] = ()
        self._used = self._content()
        self._said = ""

    def watch_secrets(self, files: Iterable[Path]) -> None:
        """Watch these files, too: what the process has read from them is a part of its configuration."""
        self._secret_files = tuple(files)
        self._used = (self._used[0], self._content()[1])

    def has_changed(self) -> bool:
        """Tell whether a file has changed and the new content is valid; log the error of an invalid content once."""
        try:
            has_changed = self._content() != self._used
            if has_changed:
                load(self._path, environ=self._environ)
        except ConfigError as error:
            if str(error) != self._said:
                self._said = str(error)
                log.error("the configuration was changed and cannot be used, so the one before counts: %s", error)  # noqa: TRY400 (not a bug)
            return False
        self._said = ""
        return has_changed

    def _content(self) -> tuple[str | None, tuple[bytes, ...]]:
        """Return the text of the configuration and the content of the secret files. Raises ConfigError."""
        return read_text(self.place), tuple(map(_secret_in, self._secret_files))


def _secret_in(file: Path) -> bytes:
    """Return the content of the file, b"" if it cannot be read. A pipe is left alone: it can be read only once."""
    try:
        return file.read_bytes() if file.is_file() else b""
    except OSError:
        return b""


def _parsed(text: str, place: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        wrong = f"is not TOML ({error}); `hermes config --example` shows how it is written"
    except (ValueError, RecursionError):
        wrong = "is not TOML (a number of far too many digits, or far too deep); see `hermes config --example`"
    raise ConfigError(f"{place} {wrong}.")


def open_to_others(path: Path) -> bool:
    """Tell whether the mode gives other users any right; False if the path cannot be examined."""
    try:
        return bool(path.stat().st_mode & OPEN_TO_OTHERS)
    except OSError:
        return False


def _overlay(environ: Mapping[str, str]) -> _Overlay:
    """Return the settings of the environment by section and key. Raises ConfigError: a variable names no key."""
    overlay: _Overlay = {}
    for name, text in environ.items():
        if not _VARIABLE.fullmatch(name):
            continue
        section, *rest = key = name.lower().removeprefix("hermes_").split("__")
        if section == "opencode":
            wrong = "is not known; write a table [[opencode]] into the configuration file"
        elif section not in SECTIONS or len(rest) != 1:
            wrong = _unknown(tuple(key))
        else:
            overlay.setdefault(section, {})[rest[0]] = text
            continue
        raise ConfigError(f"{OF_VARIABLE} {name.upper()} {wrong}.")
    return overlay


def _merged(settings: dict[str, Any], overlay: _Overlay) -> dict[str, Any]:
    """Return the settings with those of the environment; a secret and the key of its file replace each other."""
    merged = dict(settings)
    for section, texts in overlay.items():
        table = merged.get(section, {})
        if isinstance(table, dict):
            said = {name.removesuffix("_file") for name in texts}
            merged[section] = {key: table[key] for key in table if key.removesuffix("_file") not in said} | texts
    return merged


# ---------------------------------------------------------------- error sentences


def _sentence(error: ValidationError, place: Path, overlay: _Overlay) -> str:
    """Return the sentence for the first unknown key, else for the first error: a missing key is often misspelt."""
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
    if whole:
        return next(
            str(field.description) for name, field in Config.model_fields.items() if key[0] in (name, field.alias)
        )
    return str(SECTIONS[str(key[0])].model_fields[str(key[-1])].description)


def _where(key: _Key, place: Path, overlay: _Overlay) -> str:
    if key[-1] in overlay.get(str(key[0]), {}):
        return f"{OF_VARIABLE} HERMES_{'__'.join(str(part).upper() for part in key)}"
    file = f"{place}" if disk.is_there(place) else f"{place} (not there yet: `hermes setup` writes it)"
    match key:
        case ("opencode", int(number), *rest):
            return ", ".join((file, f"[[opencode]] number {number + 1}", *map(str, rest)))
        case (section, *rest) if section in SECTIONS and rest:
            return f"{file}, [{section}] {rest[0]}"
    return f"{file}, {key[0]}"


def _unknown(key: _Key) -> str:
    """Return the end of the sentence: the key is unknown, and the tables that have it, a near name, or all names.

    A key of another table may be a near name here, too, as `password` in [store]; so both are named.
    """
    section = str(key[0])
    if section in SECTIONS:
        name, what, names = str(key[-1]), "key", {field: field for field in SECTIONS[section].model_fields}
    else:
        name, what, names = section, "section", {other: _table(other) for other in SECTIONS}
    homes = [_table(other) for other, model in SECTIONS.items() if name in model.model_fields]
    near = difflib.get_close_matches(name, names, n=1)
    hints = [f"{name} belongs in {' or '.join(homes)}"] if homes else []
    if near and not (homes and what == "section"):
        hints.append(f"the nearest {what} is {names[near[0]]}")
    every = f"the {what}s are {', '.join(names.values())}"
    return f"is not known; {'; '.join(hints) or every}"


def _table(section: str) -> str:
    return "[[opencode]]" if section == "opencode" else f"[{section}]"
