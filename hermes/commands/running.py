"""The commands that run Hermes, install it, and remove it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from hermes import clock as clocks
from hermes.commands import install as installing
from hermes.commands.loading import load, read
from hermes.commands.options import (
    ConfigOption,
    GivenConfigOption,
    LogJsonOption,
    LogOption,
    Removable,
    StoreOption,
    TestClockOption,
    What,
)
from hermes.config import reading as configuration
from hermes.errors import ConfigError, Held
from hermes.hook import run as hooks, starting
from hermes.listener.sd_notify import Supervisor

PANEL = "Running it"

app = typer.Typer()


@app.command(rich_help_panel=PANEL)
def mcp(*, config: GivenConfigOption = None) -> None:
    """Started by an agent: an MCP server with one tool, ask_user, for agents that have no way to ask."""
    try:
        from hermes.commands.ask import tool
    except ModuleNotFoundError:
        raise ConfigError(
            "it needs the MCP SDK: install Hermes with it, as in `pipx install --force '.[mcp]'`."
        ) from None
    # An agent's environment can come from the repository that it works in, so only the arguments count.
    environ = starting.built_environment(os.environ)
    os.environ.clear()
    os.environ.update(environ)
    # The place is given, so that the error names the file: the person may expect that $HERMES_CONFIG counts.
    place = configuration.config_path(config, environ=environ)
    tool.server(*read(place)).run("stdio")


@app.command(rich_help_panel=PANEL)
def stop(*, config: ConfigOption = None) -> None:
    """Stop the listener; what is open stays on the phone, and goes on when the next one runs."""
    from hermes.commands.stores import home_of

    stopped = home_of(load(config, log_json=False)).stop_listener()
    typer.echo("Nobody listens." if stopped is None else f"Stopped: {stopped}.")


@app.command(rich_help_panel=PANEL)
def listen(
    *,
    config: ConfigOption = None,
    store: StoreOption = None,
    log_file: LogOption = None,
    log_json: LogJsonOption = False,
    log_lines: Annotated[
        bool, typer.Option("--log-lines", help="Log one line for each event, also on a terminal.")
    ] = False,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="Leave once nothing has been open for ten minutes.")
    ] = False,
    idle_after_s: Annotated[float | None, typer.Option(hidden=True)] = None,
    test_clock: TestClockOption = None,
) -> None:
    """Run: post to your phone what agents ask, and bring your answers back. Ctrl-C stops it."""
    from hermes.commands import listening

    clock = clocks.bent(test_clock)

    def made() -> listening.Listening:
        followed = configuration.Followed(config, environ=os.environ)
        # If a hook started this listener, its standard error is the log file already.
        loaded = load(
            config,
            log_json=log_json,
            console=not until_idle,
            log_lines=log_lines,
            store=store,
            log_file=log_file,
        )
        followed.watch_secrets(loaded.secret_files())
        return listening.Listening(loaded, followed, clock)

    if until_idle:
        listening.listen_until_idle(made, store, idle_after_s)
    else:
        listening.listen_always(made(), Supervisor(os.environ))


@app.command(rich_help_panel=PANEL)
def reap(
    *,
    config: ConfigOption = None,
    store: StoreOption = None,
    log_file: LogOption = None,
    log_json: LogJsonOption = False,
    test_clock: TestClockOption = None,
) -> None:
    """Take in once what was tapped and asked, deliver it, and leave: for a timer, every two minutes at least."""
    from hermes.commands import listening
    from hermes.commands.stores import home_of

    followed = configuration.Followed(config, environ=os.environ)
    loaded = load(config, log_json=log_json, store=store, log_file=log_file)
    try:
        listening.reap(loaded, followed, clocks.bent(test_clock))
    except Held:
        if home_of(loaded).listener() is None:  # a listener of another store holds the bot
            raise
        typer.echo("A listener is at work and does this by itself.")


@app.command(
    rich_help_panel=PANEL,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []},
    add_help_option=False,
)
def hook(context: typer.Context) -> None:
    """Started by an agent's plugin, or by any program: hand one question over (`hermes hook --help` has the JSON)."""
    words = context.args
    if words[:1] == ["generic"] and not {"--store", "--help", "-h"} & set(words):
        at = words.index("--config") if "--config" in words[:-1] else None
        given = None if at is None else Path(words[at + 1])
        try:
            loaded, place = read(given, environ=configuration.without_keys(os.environ))
        except ConfigError as error:
            if os.isatty(2):
                raise
            from hermes.agents.generic.adapter import refusal

            typer.echo(refusal(str(error)))
            sys.exit(0)
        found = ("--store", str(loaded.store.path), "--log", str(loaded.log.file), "--config", str(place))
        words = [*words, *found]  # the hook checks the other words
    sys.exit(hooks.main(words))


@app.command(rich_help_panel=PANEL)
def install(
    what: What,
    *,
    config: ConfigOption = None,
    permissions: Annotated[
        bool | None,
        typer.Option(help="claude-code: ask for its permission prompts on the phone, too.", show_default=False),
    ] = None,
    headless: Annotated[
        bool | None,
        typer.Option(help="claude-code, oh-my-pi: also ask if there is no terminal.", show_default=False),
    ] = None,
) -> None:
    """Put an agent's plugin in place (it says whether to restart the agent), or Hermes as a service."""
    loaded, place = read(config)
    options = {"permissions": permissions, "headless": headless}
    _say(installing.install(what, loaded, place, environ=os.environ, options=options))


@app.command(rich_help_panel=PANEL)
def uninstall(what: Removable, *, config: ConfigOption = None) -> None:
    """Remove what `install` installed; `all` also stops the listener, and says what is left to delete."""
    if what == installing.ALL:
        from hermes.commands import removal

        _say(removal.remove_all(config, environ=os.environ))
    else:
        _say(installing.uninstall(what, environ=os.environ))


def _say(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        typer.echo(sentence)
