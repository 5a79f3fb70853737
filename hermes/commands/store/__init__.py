"""`hermes store`: the machines that share a database."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Literal

import typer

from hermes.commands.loading import discard_log, load, read
from hermes.commands.options import ConfigOption
from hermes.config.settings import Config
from hermes.errors import ConfigError
from hermes.storage.postgres.address import Address

app = typer.Typer(help="Several machines with one bot.", no_args_is_help=True)


@app.command()
def add(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="A name for the machine's user of the database, such as ci.", show_default=False
        ),
    ],
    *,
    config: ConfigOption = None,
) -> None:
    """Let one more machine ask on your phone: make a user of the database for it, and print what to run there.

    Run it on a machine with the bot's token. The other machine gets neither the token nor the chat.
    """
    settings, address = _shared(config)
    from hermes.commands.store import machines

    for line in asyncio.run(machines.add(settings, address, name)):
        typer.echo(line)


@app.command()
def remove(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="The machine's name or id, or the name of its user of the database.",
            show_default=False,
        ),
    ],
    *,
    config: ConfigOption = None,
) -> None:
    """Remove a machine for good: it can neither ask nor hear answers any more. Its open questions end."""
    settings, address = _shared(config)
    from hermes.commands.store import machines

    for line in asyncio.run(machines.remove(settings, address, name)):
        typer.echo(line)


@app.command("move")
def move_open(
    where: Annotated[
        Literal["database", "files"],
        typer.Argument(
            help="database: from the folder of this machine to its database; files: back to the folder.",
            show_default=False,
        ),
    ],
    *,
    config: ConfigOption = None,
) -> None:
    """Move what is open for this machine to the database, or from there back to its folder.

    Stop Hermes on this machine first. It can be interrupted, and run again. Closed questions stay where they are.
    """
    from hermes.commands.store import move

    _, place = read(config)
    move.run(load(config, log_json=False), place, where, typer.echo)


def _shared(path: Path | None) -> tuple[Config, Address]:
    """Return the configuration and the database that it names. Raises ConfigError: it names none."""
    discard_log()
    config, _ = read(path)
    address = config.store.address
    if address is None:
        raise ConfigError(
            "no database is configured: questions are in the folder of this machine. `hermes setup` asks whether "
            "agents run on more than one machine, and connects the database that they share."
        )
    return config, address
