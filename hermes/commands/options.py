"""The options and arguments that several commands share."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final

import typer

from hermes.commands import install
from hermes.errors import ConfigError

_FOUND: Final = "Without --chat and --user, `hermes setup` in a terminal finds the ids by itself."


def chat_id(text: str) -> int:
    """Return the id that --chat gives. Raises ConfigError: it is no number."""
    with suppress(ValueError):
        return int(text)
    raise ConfigError(f"--chat {text!r} is not the id of a chat: that is a number, below 0 for a group. {_FOUND}")


def user_id(text: str) -> int:
    """Return the id that --user gives. Raises ConfigError: it is no number above 0."""
    with suppress(ValueError):
        if (number := int(text)) > 0:
            return number
    raise ConfigError(f"--user {text!r} is not the id of a person: that is a number above 0. {_FOUND}")


ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", metavar="PATH", help="The configuration file, else $HERMES_CONFIG, else the usual place."),
]
GivenConfigOption = Annotated[
    Path | None,
    typer.Option("--config", metavar="PATH", help="The configuration file, else the usual place; no variable counts."),
]
"""For a command that takes nothing from the environment of the agent that starts it."""
StoreOption = Annotated[
    Path | None, typer.Option("--store", metavar="DIR", help="The store's folder, in place of the configuration's.")
]
LogOption = Annotated[
    Path | None, typer.Option("--log", metavar="FILE", help="The log file, in place of the configuration's.")
]
TestClockOption = Annotated[Path | None, typer.Option("--test-clock", hidden=True)]
LogJsonOption = Annotated[bool, typer.Option("--log-json", help="Log one JSON object a line.")]
_WHAT = (
    "An agent (opencode, claude-code, oh-my-pi, neovate); service: the listener, always running; "
    "reap: a timer, if no listener may run all the time"
)
What = Annotated[
    str,
    typer.Argument(metavar="WHAT", help=f"{_WHAT}.", autocompletion=lambda: list(install.NAMES), show_default=False),
]
Removable = Annotated[
    str,
    typer.Argument(
        metavar="WHAT",
        help=f"{_WHAT}; all: everything.",
        autocompletion=lambda: [*install.NAMES, install.ALL],
    ),
]
