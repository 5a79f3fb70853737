"""The users of the database for agent-only machines: add one, or remove one with its machine."""

from __future__ import annotations

import secrets
import shlex
from contextlib import suppress
from dataclasses import replace

from hermes.commands.status.table import printable
from hermes.commands.stores import home_of, look, store_of
from hermes.config.settings import Config
from hermes.core import dialog, ends
from hermes.errors import ConfigError, Missing, NotSaved, StoreError
from hermes.storage.postgres import checks, migrations, roles
from hermes.storage.postgres.address import Address
from hermes.storage.postgres.connection import Connection
from hermes.storage.postgres.roles import Registered
from hermes.storage.store import Store

_SECRET_BYTES = 24
_NO_OWNER = "only a machine whose user owns the tables of Hermes can do this: the one on which the database was set up"


async def add(config: Config, address: Address, name: str) -> list[str]:
    """Make a user of the database for an agent-only machine, and return the lines to print.

    Raises:
        ConfigError: this machine has no bot.
        StoreError: the user cannot be made; nothing has changed.
    """
    bot = config.telegram.bot_id
    password = secrets.token_urlsafe(_SECRET_BYTES)
    async with checks.connection_to(address) as connection:
        await _need_owner(connection)
        if await roles.may_add(connection):
            await roles.add(connection, name, password, bot)
            made = [f"{name} is a user of the database now."]
        else:
            made = [
                "Your user of the database may not make users. Let an administrator of the database run this first:",
                "",
                roles.as_text(name, password, bot),
            ]
    return [*made, *_next_steps(address, name, password)]


def _next_steps(address: Address, name: str, password: str) -> list[str]:
    """Return the lines about what to do on the other machine."""
    words = ["hermes", "setup", "--join", address.url_of(name)]
    if address.tls == "off":
        words += ["--store-tls", "off"]
    if address.ca_file is not None:
        words += ["--store-ca-file", str(address.ca_file)]
    lines = ["On the other machine, run:", "", shlex.join(words), ""]
    if address.is_local:
        lines += ["The address in it is only right on this machine: put the one by which the other reaches it.", ""]
    if address.ca_file is not None:
        lines += ["Copy the file with the certificate authorities to that machine, too.", ""]
    return [*lines, "It asks for this password, which is shown only now:", "", password]


async def remove(config: Config, address: Address, which: str) -> list[str]:
    """Remove the machine with this name, id or user, and its user; return the lines to print.

    Raises:
        ConfigError: this machine has no bot, or `which` names no machine, several, or this one.
        StoreError: it may be half done, and can be done again, unless the machine itself is removed already: then its
            questions have ended, and its user of the database may be left.
    """
    bot = config.telegram.bot_id
    async with checks.connection_to(address) as connection:
        await _need_owner(connection)
        known = await roles.registered(connection, bot)
        one = _meant(known, which)
        if one.machine and one.machine == home_of(config).machine():
            raise ConfigError(
                "this is the machine that you are on; remove it from another machine with the bot's token."
            )
        done = []
        if one.machine:
            # Before, because a removal that broke off is begun again by the machine's name or id; after, because the
            # machine may have asked once more.
            await look(store_of(config), lambda store: _end_all(store, one.machine))
            await roles.remove_machine(connection, bot, one.machine)
            await look(store_of(config), lambda store: _end_all(store, one.machine))
            name = printable(one.name)
            done.append(f"{name} is removed. Its open questions have ended; prompts to it end on the phone.")
        if one.is_agent and not any(other.user == one.user and other is not one for other in known):
            done += await _without_user(connection, one.user)
        elif one.machine:
            done.append(
                f"Its user of the database, {one.user}, stays, so the machine comes back if Hermes still runs there: "
                "stop it there, too."
            )
        return done


async def _end_all(store: Store, machine: str) -> None:
    """End the open questions of a machine that was removed: nobody else can bring their answers.

    Its sessions are forgotten: nobody can list them. The phone side ends what was written to them. Raises StoreError.
    """
    open_now = [entry.id for entry in (await store.survey()).entries if entry.ask.source.machine == machine]
    ended = ends.gone(store.now(), "removed")
    for entry_id in open_now:
        with suppress(Missing):  # it was closed just now
            await store.change(
                entry_id, lambda found: replace(found, state=dialog.step(found.ask, found.state, ended).state)
            )
    for records in (store.lists, store.cards):
        for record in await records.survey():
            if record.machine == machine:
                await records.forget(record.id)


async def _without_user(connection: Connection, user: str) -> list[str]:
    """Remove a user that has no machine any more, and return the lines about it."""
    why = "Your user of the database may not remove users."
    if await roles.may_add(connection):
        try:
            await roles.remove_user(connection, user)
        except NotSaved as error:
            why = f"The user of the database stays ({error})."
        else:
            return [f"The database has no user {user} any more."]
    return [f"{why} Let an administrator of the database run this:", "", roles.removal(user)]


def _meant(known: tuple[Registered, ...], which: str) -> Registered:
    """Return the machine of this id, name or user. Raises ConfigError: there is none, or there are several."""
    found = [one for one in known if which == one.machine != ""] or [
        one for one in known if which and (which == one.name or (one.is_agent and which == one.user))
    ]
    if len(found) == 1:
        return found[0]
    names = ", ".join(f"{one.name or one.user} ({one.machine or 'not joined yet'})" for one in found or known)
    names = printable(names)  # their machines write them
    if found:
        raise ConfigError(f"{which!r} means several machines; give the id of one: {names}.")
    raise ConfigError(f"there is no machine {which!r}; there are: {names}.")


async def _need_owner(connection: Connection) -> None:
    """Make the tables if they are not there yet. Raises StoreError: this user does not own them."""
    tables = await migrations.state(connection)
    tables.check_not_newer()
    if not tables.is_owner:
        raise StoreError(_NO_OWNER)
    await migrations.bring_forward(connection)
