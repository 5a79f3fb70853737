"""The command line. Exit status: 0 done, 1 failed, 2 wrong usage or configuration, 3 another listener is running.

A command imports its own code when it runs: a listener runs for months and shows no tables, and a hook must start fast.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Final, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

import hermes
from hermes.commands import every_day, first_steps, running, store, streams
from hermes.errors import ConfigError, Held, HermesError

FAILED: Final = 1
WRONG: Final = 2
TAKEN: Final = 3


class _Command(TyperCommand):
    """A command whose help names no type beside a flag: typer would write <bool>, as if a value were to follow."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, with --help."""
        return _without_types(super().get_params(ctx))


class _Group(TyperGroup):
    """The same for a group of commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, with --help."""
        return _without_types(super().get_params(ctx))


def _without_types(params: list[Any]) -> list[Any]:
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params


app = typer.Typer(
    cls=_Group,
    help="Answer your coding agent's questions from your phone.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for part in (first_steps, every_day, running):
    app.add_typer(part.app)
app.add_typer(store.app, name="store", cls=_Group, rich_help_panel="Several machines")
for part in (first_steps, every_day, running, store):
    for command in part.app.registered_commands:
        command.cls = _Command


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hermes {hermes.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version and leave.")
    ] = False,
) -> None:
    pass


def main(arguments: list[str] | None = None) -> None:
    """Run the command line (of this process by default); print a known error in one sentence and set its status."""
    output = streams.prepare()
    try:
        _run(arguments)
    finally:
        if not sys.stdout.closed:
            sys.stdout.flush()
        if output is not None and (fault := output.fault()):
            _leave(f"the output could not be written: {fault}.", FAILED)


def _run(arguments: list[str] | None) -> None:
    try:
        app(args=arguments)
    except Held as error:
        _leave(str(error), TAKEN)
    except ConfigError as error:
        _leave(str(error), WRONG)
    except HermesError as error:
        _leave(str(error), FAILED)
    except (RuntimeError, FileNotFoundError):
        if (why := _why_no_folder()) is None:
            raise
        _leave(why, WRONG)
    except OSError as error:
        if "--install-completion" not in (sys.argv if arguments is None else arguments):
            raise
        # Typer writes into the home by itself.
        why = f"{error.strerror}; see that you can write there and that there is space, then run it again."
        _leave(f"the completion could not be installed in {Path.home()}: {why}", FAILED)
    except KeyboardInterrupt:
        _leave("stopped", 130)


def _why_no_folder() -> str | None:
    """Return why a path leads nowhere: the user has no home folder, or the current folder was removed; None if not."""
    try:
        Path.home()
        Path.cwd()
    except RuntimeError:
        return "this user has no home folder here; set HOME, and run it again."
    except FileNotFoundError:
        return "the current folder was removed; go to another one, and run it again."
    return None


def _leave(sentence: str, code: int) -> NoReturn:
    sys.stderr.write(f"hermes: {sentence}\n")
    sys.exit(code)
