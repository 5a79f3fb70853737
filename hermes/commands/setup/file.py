"""Reads the configuration file, and changes some of its keys without touching anything else in it."""

import os
import re
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Array

from hermes import disk
from hermes.commands.setup.given import Changes
from hermes.config import reading as configuration
from hermes.config.settings import AGENT_ONLY, Config
from hermes.errors import ConfigError

FRESH = """\
# Hermes. `hermes setup` wrote this; run it again to change something, or edit it by hand.
# `hermes config --example` shows every other setting with its meaning.
# The token below is a secret: this file is for your eyes only (chmod 600).

[telegram]
"""
_COMMENTS = {
    "token": "from @BotFather",
    "chat_id": "where questions go: your own id, or the (negative) id of a group",
    "users": "the ids of those who may answer",
}
_WHETHER = "whether the phone may send prompts to your agents; /lock in the chat holds them"
_ASKED_HERE = re.compile(r"(?i)HERMES_(TELEGRAM__(TOKEN|TOKEN_FILE|CHAT_ID|USERS)|PROMPTS__ENABLED)")
_ANYBODY = Changes(token=f"1:{'x' * 35}", chat_id=1, users=(1,))


@dataclass(frozen=True, slots=True)
class Draft:
    """The file as it is. If its [telegram] is not complete, `config` is None and `lacks` says why ("" without a file).

    An agent-only machine has no [telegram].

    `settings` has all other keys of the file, with made-up values for the keys that the setup asks for.
    """

    place: Path
    settings: Config
    config: Config | None
    lacks: str = field(default="")


def read(place: Path, *, environ: Mapping[str, str]) -> Draft:
    """Read the file, which may be absent; ignore the variables of `environ` for what the setup asks.

    Raises:
        ConfigError: a key for which the setup does not ask is wrong.
    """
    text, environ = configuration.read_text(place), without_asked(environ)
    settings = configuration.loads(edited(text, _ANYBODY, place), place, environ=environ)
    try:
        config = configuration.loads(text or "", place, environ=environ)
        return Draft(place, settings, config if config.phone else None, "" if config.phone else AGENT_ONLY)
    except ConfigError as error:
        return Draft(place, settings, None, "" if text is None else str(error))


def need_writable(place: Path) -> None:
    """Check, before the first question, that the file can be written. Raises ConfigError."""
    folder = next(folder for folder in place.resolve().parents if folder.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(f"{place} cannot be written: {folder} is not a folder that you may write to.")


def write(place: Path, changes: Changes, *, environ: Mapping[str, str]) -> bool:
    """Make all changes or none; return whether the file, or its mode, had to be changed.

    The changes are made to the present text of the file, not to the text that was read before. The file gets the mode
    0600; a link is followed.

    Raises:
        ConfigError: the file cannot be changed so that it has these values.
        NotSaved: the disk refuses.
    """
    text = configuration.read_text(place)
    wanted = edited(text, changes, place)
    _check(configuration.loads(wanted, place, environ=without_asked(environ)), changes, place)
    if wanted == text and not configuration.open_to_others(place):
        return False
    target = place.resolve()
    with disk.saving(target.parent):
        disk.make_folder(target.parent)
        disk.write(target, wanted.encode())
    return True


def edited(text: str | None, changes: Changes, place: Path) -> str:
    """Return the text with the changes made and all else as it was; if it is None, a new text with comments.

    Raises:
        ConfigError: the text is not TOML, or [telegram] or [prompts] is not a table.
    """
    try:
        document = tomlkit.parse(FRESH if text is None else text)
        _change(_table(document, "telegram", place), changes, fresh=text is None)
        if changes.prompts is not None:
            _switch(document, changes.prompts, place)
        return tomlkit.dumps(document)
    except TOMLKitError as error:
        raise ConfigError(
            f"{place} is not TOML ({error}); `hermes config --example` shows how it is written."
        ) from None


def _table(document: MutableMapping[str, Any], name: str, place: Path) -> MutableMapping[str, Any]:
    table = document.setdefault(name, tomlkit.table())
    if not isinstance(table, MutableMapping):
        raise ConfigError(f"{place}, {name} is wrong; it must be a table [{name}].")
    return table


def _switch(document: MutableMapping[str, Any], on: bool, place: Path) -> None:
    """Switch prompts on or off. A file without [prompts] has them off, and gets the table only when they go on."""
    is_fresh = "prompts" not in document
    if is_fresh and not on:
        return
    table = _table(document, "prompts", place)
    if table.get("enabled", False) is not on:
        item = tomlkit.item(on)
        if is_fresh:
            item.comment(_WHETHER)
        table["enabled"] = item


def _change(table: MutableMapping[str, Any], changes: Changes, *, fresh: bool) -> None:
    values: dict[str, Any] = {
        "token": changes.token,
        "token_file": None if changes.token_file is None else str(changes.token_file),
        "chat_id": changes.chat_id,
        "users": None if changes.users is None else list(changes.users),
        "api_base": changes.api_base,
        "proxy": changes.proxy,
    }
    for one, other in (("token", "token_file"), ("token_file", "token")):
        if values[one] is not None and table.get(one) != values[one]:
            table.pop(other, None)
    for key, value in values.items():
        there = table.get(key)
        if value is None or there == value:
            continue
        if isinstance(there, Array) and value[: len(there)] == there:
            there.extend(value[len(there) :])  # this keeps the comments of the users in it
            continue
        item = tomlkit.item(value)
        if fresh and key in _COMMENTS:
            item.comment(_COMMENTS[key])
        table[key] = item


def _check(config: Config, changes: Changes, place: Path) -> None:
    """Check that the changed configuration has the wanted values. Raises ConfigError."""
    telegram = config.telegram
    proxy = telegram.proxy.get_secret_value() if telegram.proxy else None
    token = telegram.token.get_secret_value()
    people = telegram.chat_id, telegram.users
    said = Changes(token, telegram.token_file, *people, telegram.api_base, proxy, config.prompts.enabled)
    wanted = {name: value for name in Changes.__slots__ if (value := getattr(changes, name)) is not None}
    if replace(said, **wanted) != said:
        raise ConfigError(f"{place} cannot be changed by itself; write {', '.join(wanted)} into it by hand.")


def without_asked(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the keys that the setup asks for: the file must hold them."""
    return {name: value for name, value in environ.items() if not _ASKED_HERE.fullmatch(name)}
