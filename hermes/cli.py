"""The command line. Exit status: 0 done, 1 failed, 2 wrong usage or configuration, 3 another listener is at work."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any, Final, NoReturn

import typer

import hermes
from hermes import clock as clocks, config as configuration, hook as hooks, install as installing, spool
from hermes.errors import ConfigError, Held, HermesError
from hermes.listener import IDLE_S, Listener
from hermes.logs import set_up
from hermes.settings import Config
from hermes.store import Store

log = logging.getLogger(__name__)

HELD_TRIES: Final = 30
HELD_PAUSE_S: Final = 1.0
FAILED: Final = 1
WRONG: Final = 2
TAKEN: Final = 3

app = typer.Typer(
    help="Answer your coding agent's questions from your phone.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

ConfigOption = Annotated[
    Path | None, typer.Option("--config", metavar="PATH", help="The configuration file (else $HERMES_CONFIG).")
]
LogJsonOption = Annotated[bool, typer.Option("--log-json", help="Log one JSON object a line.")]


def main(arguments: list[str] | None = None) -> None:
    """Run the command line (of this process by default); each known error is one sentence and an exit status."""
    try:
        app(args=arguments)
    except Held as error:
        _leave(str(error), TAKEN)
    except ConfigError as error:
        _leave(str(error), WRONG)
    except HermesError as error:
        _leave(str(error), FAILED)
    except KeyboardInterrupt:
        _leave("stopped", 130)


def _leave(sentence: str, code: int) -> NoReturn:
    sys.stderr.write(f"hermes: {sentence}\n")
    sys.exit(code)


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


def _loaded(path: Path | None, *, log_json: bool, console: bool = True) -> Config:
    config = configuration.load(path, environ=os.environ)
    secrets = [server.password.get_secret_value() for server in config.opencode]
    set_up(config.log, console=console, json_lines=log_json, secrets=[s for s in secrets if s])
    return config


@app.command()
def listen(
    *,
    config: ConfigOption = None,
    log_json: LogJsonOption = False,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="Leave when nothing was open for ten minutes.")
    ] = False,
    idle_after_s: Annotated[float, typer.Option(hidden=True)] = IDLE_S,
) -> None:
    """Serve: post questions, take answers, deliver them."""
    # One that a hook started has the log file as its standard error already.
    loaded = _loaded(config, log_json=log_json, console=not until_idle)
    _run(_listen_until_idle(loaded, idle_after_s) if until_idle else _listen(loaded, None))


def _run(work: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=clocks.of(os.environ).loop) as runner:
        runner.run(work)


async def _listen_until_idle(
    config: Config,
    idle_s: float,
    *,
    tries: int = HELD_TRIES,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Serve, or leave to the one that serves already; it may be just leaving, so its inbox is watched."""
    for tries_left in reversed(range(tries)):
        try:
            await _listen(config, idle_s)
        except Held as held:
            if not spool.listing(config.store.path):
                return
            if tries_left == 0:
                # Such as a listener of another store with the same bot.
                log.error("what agents asked lies in the inbox, and %s", held)  # noqa: TRY400 (no defect)
            await sleep(HELD_PAUSE_S)
        else:
            return


def _listener(config: Config, idle_s: float | None = None) -> Listener:
    clock = clocks.of(os.environ)
    return Listener(config, now=clock.now, monotonic=clock.monotonic, idle_s=idle_s)


async def _listen(config: Config, idle_s: float | None) -> None:
    await _listener(config, idle_s).run()


@app.command()
def reap(*, config: ConfigOption = None, log_json: LogJsonOption = False) -> None:
    """Without a listener: take in what was tapped, settle what is over, tidy up, leave."""
    loaded = _loaded(config, log_json=log_json)
    try:
        _run(_reap(loaded))
    except Held:
        typer.echo("A listener is at work and does this by itself.")


async def _reap(config: Config) -> None:
    await _listener(config).run_once()


@app.command()
def unlock(*, config: ConfigOption = None) -> None:
    """Take answers from the phone again, after /lock."""
    was_locked = Store(_loaded(config, log_json=False).store.path).unlock_phone()
    typer.echo("Unlocked: taps and texts count again." if was_locked else "It was not locked.")


@app.command()
def status(
    *, config: ConfigOption = None, as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False
) -> None:
    """Show the listener, the servers, and what is open."""
    # A listener that runs for months shows no tables: what draws them is not loaded into it.
    from rich.console import Console

    from hermes import status as state

    place = configuration.config_path(config, environ=os.environ)
    loaded = configuration.load(config, environ=os.environ)
    store = Store(loaded.store.path)
    gathered = asyncio.run(state.gather(loaded, store, config_file=place))
    if as_json:
        typer.echo(state.to_json(gathered))
    else:
        state.show(gathered, Console())


@app.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []},
    add_help_option=False,
)
def hook(context: typer.Context) -> None:
    """For an agent's plugin: hand one question over (see `hermes install`)."""
    sys.exit(hooks.main(context.args))


Agent = Annotated[str, typer.Argument(help="The agent: opencode.")]


@app.command()
def install(agent: Agent, *, config: ConfigOption = None) -> None:
    """Connect an agent: put its plugin in place."""
    _known(agent)
    place = configuration.config_path(config, environ=os.environ)
    loaded = configuration.load(config, environ=os.environ)
    for sentence in installing.install_opencode(
        environ=os.environ, python=sys.executable, config_path=place, store=loaded.store.path, log=loaded.log.file
    ):
        typer.echo(sentence)


@app.command()
def uninstall(agent: Agent) -> None:
    """Take an agent's plugin away again."""
    _known(agent)
    for sentence in installing.uninstall_opencode(environ=os.environ):
        typer.echo(sentence)


def _known(agent: str) -> None:
    if agent != "opencode":
        raise ConfigError(f"{agent!r} is no agent that Hermes knows; it knows opencode.")
