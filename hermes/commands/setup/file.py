"""Reads the configuration file, and changes some of its keys without touching anything else in it."""

import re
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Array, InlineTable

from hermes import disk
from hermes.commands.setup.given import Changes, StoreChange
from hermes.config import reading as configuration
from hermes.config.settings import AGENT_ONLY, Config
from hermes.errors import ConfigError

FRESH_AGENT = """\
# Hermes. `hermes setup` wrote this; run it again to change something, or edit it by hand.
# `hermes config --example` shows every other setting with its meaning.
"""
FRESH = f"""\
{FRESH_AGENT}\
# The bot's token is a secret: this file is for your eyes only (chmod 600).

[telegram]
"""
PASSWORD_FILE = "database-password"  # noqa: S105 (a name)
"""The file beside the configuration that holds the password of the database."""
_COMMENTS = {
    "token": "from @BotFather",
    "chat_id": "where questions go: your own id, or the (negative) id of a group",
    "users": "the ids of those who may answer",
    "url": "the database that all machines share",
    "file": "below XDG_STATE_HOME; a listener that a hook starts does not know that variable",
    "enabled": "whether the phone may send prompts to your agents; /lock in the chat holds them",
}
_ASKED_HERE = re.compile(
    r"(?i)HERMES_(TELEGRAM__(TOKEN|TOKEN_FILE|CHAT_ID|USERS)|PROMPTS__ENABLED|STORE__(URL|PASSWORD_FILE))"
)
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
    lacks: str = ""


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
    folder = disk.closed_above(place)
    if folder is not None:
        raise ConfigError(f"{place} cannot be written: {folder} is not a folder that you may write to.")


def write(place: Path, changes: Changes, *, environ: Mapping[str, str]) -> bool:
    """Make all changes or none; return whether the file, or its mode, had to be changed.

    The changes are made to the present text of the file, not to the text that was read before. The file gets the mode
    0600; a link is followed.

    Raises:
        ConfigError: a value is wrong.
        NotSaved: the disk refuses.
    """
    text = configuration.read_text(place)
    wanted = edited(text, replace(changes, opencode2_file=_opencode2_file(environ)), place)
    with _with_password(changes.store) as is_new:
        configuration.loads(wanted, place, environ=without_asked(environ))
        if wanted == text and not configuration.open_to_others(place):
            return is_new
        target = place.resolve()
        with disk.saving(target.parent):
            disk.make_folder(target.parent)
            disk.write(target, wanted.encode())
    return True


@contextmanager
def _with_password(store: StoreChange | None) -> Iterator[bool]:
    """Write the password of the database, and tell whether it is new. If the block raises, it is taken back.

    Raises NotSaved: the disk refuses.
    """
    if store is None or store.password_file is None or not store.password:
        yield False
        return
    file = store.password_file
    with disk.saving(file.parent):
        disk.make_folder(file.parent)
        before = file.read_bytes() if disk.is_there(file) else None
        disk.write(file, f"{store.password}\n".encode())
    try:
        yield before != f"{store.password}\n".encode()
    except BaseException:
        with disk.saving(file.parent):
            file.unlink() if before is None else disk.write(file, before)
        raise


def edited(text: str | None, changes: Changes, place: Path) -> str:
    """Return the text with the changes made and all else as it was; if it is None, a new text with comments.

    Raises:
        ConfigError: the text is not TOML, or [telegram], [prompts], [store] or [opencode2] is not a table.
    """
    telegram = _telegram(changes)
    fresh = FRESH if telegram else FRESH_AGENT
    try:
        document = tomlkit.parse(fresh if text is None else text)
        if telegram:
            _change(_table(document, "telegram", place), telegram)
        if changes.store is not None:
            _change(_table(document, "store", place), _store(changes.store))
        if changes.prompts or (changes.prompts is False and "prompts" in document):
            _change(_table(document, "prompts", place), {"enabled": changes.prompts})
        if changes.opencode2_file is not None:
            table = _table(document, "opencode2", place)
            _change(table, {"file": table.get("file", str(changes.opencode2_file))})
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


def _opencode2_file(environ: Mapping[str, str]) -> Path | None:
    """Return the file of OpenCode 2 if this shell has another folder for state than usual.

    The listener that a hook starts has no variables of a shell. It would look in the usual folder, find no file there,
    and take that for the proof that OpenCode 2 has ended.
    """
    folder = Path(environ.get("XDG_STATE_HOME", ""))
    is_usual = folder == Path(environ.get("HOME", "/"), ".local", "state")
    return None if is_usual or not folder.is_absolute() else folder / "opencode" / "service.json"


def _telegram(changes: Changes) -> dict[str, Any]:
    """Return the new values of [telegram]; of the token and its file, the other one goes (None)."""
    values = {
        "token": changes.token,
        "token_file": None if changes.token_file is None else str(changes.token_file),
        "chat_id": changes.chat_id,
        "users": None if changes.users is None else list(changes.users),
        "api_base": changes.api_base,
        "proxy": changes.proxy,
    }
    known = {key: value for key, value in values.items() if value is not None}
    other = {"token": "token_file", "token_file": "token"}
    return {other[key]: None for key in known if key in other} | known


def _store(change: StoreChange) -> dict[str, Any]:
    """Return the new values of [store]. A password file of another database goes (None)."""
    file = None if change.password_file is None else str(change.password_file)
    more = {"tls": change.tls, "ca_file": None if change.ca_file is None else str(change.ca_file)}
    return {"url": change.url, "password_file": file} | {key: value for key, value in more.items() if value is not None}


def _change(table: MutableMapping[str, Any], values: Mapping[str, Any]) -> None:
    """Set each key that has another value, and remove those whose value is None. False is not written if it is new."""
    for key, value in values.items():
        there = table.get(key)
        if value is None:
            table.pop(key, None)
        elif there == value or (there is None and value is False):
            continue
        elif isinstance(there, Array) and value[: len(there)] == there:
            there.extend(value[len(there) :])  # this keeps the comments of the users in it
        else:
            item = tomlkit.item(value)
            if there is None and key in _COMMENTS and not isinstance(table, InlineTable):
                item.comment(_COMMENTS[key])
            table[key] = item


def without_asked(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the keys that the setup asks for: the file must hold them."""
    return {name: value for name, value in environ.items() if not _ASKED_HERE.fullmatch(name)}
