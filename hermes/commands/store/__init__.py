"""`hermes store`: the machines that share a database."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from hermes.commands.loading import load, read
from hermes.commands.options import ConfigOption

app = typer.Typer(help="Several machines with one bot.", no_args_is_help=True)


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
