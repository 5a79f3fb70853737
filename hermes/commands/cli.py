"""The command line. Exit status: 0 done, 1 failed, 2 wrong usage or configuration, 3 another listener is running.

A command imports its own code when it runs: a listener runs for months and shows no tables, and a hook must start fast.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, NoReturn

import typer

import hermes
from hermes import clock as clocks
from hermes.commands import install as installing
from hermes.commands.options import ConfigOption, LogJsonOption, LogOption, StoreOption, TestClockOption, What
from hermes.config import reading as configuration
from hermes.config.logs import set_up
from hermes.config.settings import Config
from hermes.errors import ConfigError, Held, HermesError
from hermes.hook import run as hooks
from hermes.listener.sd_notify import Supervisor
from hermes.model.ask import OnExpiry
from hermes.storage.store import LISTENER, Store

FIRST, DAILY, RUNNING = "First steps", "Every day", "Running it"
FAILED: Final = 1
WRONG: Final = 2
TAKEN: Final = 3
_AGENTS: Final = ", ".join(agent.name for agent in installing.AGENTS)

app = typer.Typer(
    help="Answer your coding agent's questions from your phone.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line (of this process by default); print a known error in one sentence and set its status."""
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


def _read(path: Path | None, *, environ: Mapping[str, str] = os.environ) -> tuple[Config, Path]:
    """Return the configuration and the path of its file."""
    return configuration.load(path, environ=environ), configuration.config_path(path, environ=environ)


def _discard_log() -> None:
    """Keep what is logged from the terminal: the command itself says the same in its own sentences."""
    logging.getLogger().addHandler(logging.NullHandler())


def _loaded(
    path: Path | None, *, log_json: bool, console: bool = True, store: Path | None = None, log_file: Path | None = None
) -> Config:
    config = configuration.load(path, environ=os.environ).placed(store=store, log_file=log_file)
    secrets = [server.password.get_secret_value() for server in config.opencode]
    secrets.append(config.monitor.ping_url.get_secret_value())
    set_up(config.log, console=console, json_lines=log_json, secrets=secrets)
    return config


# --- first steps ------------------------------------------------------------------------------------------------


@app.command(rich_help_panel=FIRST)
def demo(
    *,
    opencode: Annotated[
        bool, typer.Option("--opencode", help="With the OpenCode of this machine, in an empty home.")
    ] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where to serve the page; 0 takes a free port.")] = 0,
    open_page: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = False,
) -> None:
    """Try Hermes in your browser: without a token, an account or an agent. Ctrl-C ends it, and leaves nothing."""
    from hermes.commands.demo import command

    command.run(opencode=opencode, port=port, open_page=open_page, say=typer.echo)


@app.command(rich_help_panel=FIRST)
def setup(  # noqa: PLR0913 (one argument an option)
    *,
    config: ConfigOption = None,
    token_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="A file that holds the bot's token; - is standard input.")
    ] = None,
    chat: Annotated[int | None, typer.Option(metavar="ID", help="The chat that questions go to.")] = None,
    user: Annotated[list[int] | None, typer.Option(metavar="ID", help="Who may answer; once for each person.")] = None,
    agent: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help=f"Connect this agent ({_AGENTS}); once for each.")
    ] = None,
    no_agents: Annotated[bool, typer.Option("--no-agents", help="Connect no agent.")] = False,
    service: Annotated[bool | None, typer.Option(help="Keep a listener running as a service.")] = None,
    test: Annotated[bool | None, typer.Option(help="End with a test question.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Take every default; it never lets a person in.")] = False,
    api_base: Annotated[str | None, typer.Option(metavar="URL", help="A Bot API server of your own.")] = None,
    test_clock: TestClockOption = None,
) -> None:
    """Set Hermes up, or change one thing of it: bot, chat, people, agents, service."""
    from hermes.commands.setup import given, terminal, wizard

    _discard_log()
    options = given.of_options(
        token_from=token_file,
        chat_id=chat,
        users=user or (),
        agents=() if no_agents else agent,
        service=service,
        test=test,
        yes=yes,
        api_base=api_base,
        environ=os.environ,
        stdin=sys.stdin,
    )
    place = configuration.config_path(config, environ=os.environ)
    at = terminal.of_this_process(yes=yes)
    raise typer.Exit(wizard.run(options, place=place, environ=os.environ, terminal=at, clock=clocks.bent(test_clock)))


@app.command(rich_help_panel=FIRST)
def doctor(
    *,
    config: ConfigOption = None,
    fix: Annotated[bool, typer.Option("--fix", help="Mend what can be mended without loss, and look again.")] = False,
    test: Annotated[bool, typer.Option("--test", help="Ask a real question on the phone, end to end.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Check everything, and say what mends it; status 1 if something is broken."""
    from hermes.commands.doctor import checkup

    _discard_log()
    if not asyncio.run(checkup.run(config, environ=os.environ, fix=fix, test=test, as_json=as_json)):
        raise typer.Exit(FAILED)


# --- every day --------------------------------------------------------------------------------------------------


@app.command(rich_help_panel=DAILY)
def status(
    *,
    config: ConfigOption = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Stay, and show every change; Ctrl-C leaves.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")] = False,
    check: Annotated[bool, typer.Option("--check", help="For monitoring: one line, and 1 where it is bad.")] = False,
) -> None:
    """Show who listens, which servers can be reached, and what waits for an answer. Changes nothing."""
    from hermes.commands.status import command

    if not command.run(config, environ=os.environ, watch=watch, as_json=as_json, check=check):
        raise typer.Exit(FAILED)


@app.command("log", rich_help_panel=DAILY)
def history(
    *,
    config: ConfigOption = None,
    since: Annotated[
        str | None, typer.Option(metavar="WHEN", help="Only what ended since then: 2h, 7d, 2026-11-20.")
    ] = None,
    last: Annotated[
        int | None,
        typer.Option("--last", "-n", min=1, metavar="N", help="Only the last N (else 20, or all since WHEN)."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line, for programs.")] = False,
) -> None:
    """Show what was asked and answered: by whom, where, in which words, and how that is known."""
    from hermes.commands.log import command

    command.run(config, environ=os.environ, since=since, last=last, as_json=as_json)


@app.command(rich_help_panel=DAILY)
def ask(  # noqa: PLR0913 (one argument an option)
    question: Annotated[
        str | None, typer.Argument(metavar="QUESTION", help="What is asked.", show_default=False)
    ] = None,
    *,
    option: Annotated[
        list[str] | None, typer.Option("--option", "-o", metavar="LABEL[::WHY]", help="A choice; once for each.")
    ] = None,
    yes_no: Annotated[
        bool, typer.Option("--yes-no", help="The choices are Yes (status 0) and No (status 13).")
    ] = False,
    multiple: Annotated[bool, typer.Option("--multiple", help="Several may be chosen.")] = False,
    custom: Annotated[bool, typer.Option("--custom/--no-custom", help="Words of one's own are an answer.")] = True,
    recommended: Annotated[int | None, typer.Option(metavar="N", help="The choice to mark; the first is 1.")] = None,
    header: Annotated[str, typer.Option(help="A name for the question, in a word or two.")] = "",
    file: Annotated[
        str | None, typer.Option(metavar="FILE", help="Ask these instead: JSON, a list of questions; - is stdin.")
    ] = None,
    sender: Annotated[
        str, typer.Option("--from", metavar="NAME", help="Who asks, as the phone shows it.")
    ] = "A script",
    timeout: Annotated[
        str | None, typer.Option(metavar="TIME", help="How long it can be answered, such as 20m (else `ttl`).")
    ] = None,
    on_expiry: Annotated[OnExpiry | None, typer.Option(help="What happens then (else the configuration's).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")] = False,
    config: ConfigOption = None,
) -> None:
    """Ask something, on the phone and in this terminal, and print the answer.

    The status is 0 for any answer, whatever it says, 10 if the person stops the script, 11 if nobody answers in time,
    and 12 if the person skips the question. With --yes-no it is 0 for yes and 13 for no.
    """
    from hermes.commands import ask as asks
    from hermes.commands.ask import given, terminal

    if (question is None) == (file is None):
        raise ConfigError("give the question, or --file with questions, and not both.")
    if file is not None and (option or multiple or not custom or recommended is not None or header):
        raise ConfigError("--file says all of its questions: leave -o and what goes with it out.")
    if yes_no and (option or file is not None or multiple or not custom):
        raise ConfigError("--yes-no brings its own two choices: leave -o, --file, --multiple and --no-custom out.")
    if yes_no:
        option, custom = list(asks.YES_OR_NO), False
    loaded, place = _read(config, environ=configuration.without_keys(os.environ))
    questions = (
        given.of_file(file, sys.stdin)
        if file is not None
        else given.of_options(
            question or "", option or (), header=header, multiple=multiple, custom=custom, recommended=recommended
        )
    )
    payload, understood = given.payload(
        questions, asker=sender, directory=given.folder(), timeout=timeout, on_expiry=on_expiry
    )
    talk = asks.talk(loaded, place, payload, understood, terminal.of_this_process(), as_json=as_json, is_yes_no=yes_no)
    sys.exit(asyncio.run(talk))


@app.command(rich_help_panel=RUNNING)
def mcp(*, config: ConfigOption = None) -> None:
    """Started by an agent: an MCP server with one tool, ask_user, for agents that have no way to ask."""
    try:
        from hermes.commands.ask import tool
    except ModuleNotFoundError:
        raise ConfigError(
            "it needs the MCP SDK: install Hermes with it, as in `pipx install --force '.[mcp]'`."
        ) from None
    # An agent's environment can come from the repository that it works in, so only the arguments count.
    environ = hooks.built_environment(os.environ)
    os.environ.clear()
    os.environ.update(environ)
    tool.server(*_read(config)).run("stdio")


@app.command(rich_help_panel=DAILY)
def unlock(*, config: ConfigOption = None) -> None:
    """Take answers from the phone again, after /lock was sent from it."""
    was_locked = asyncio.run(Store(_loaded(config, log_json=False).store.path).unlock_phone())
    typer.echo("Unlocked: taps and texts count again." if was_locked else "It was not locked.")


# --- running it -------------------------------------------------------------------------------------------------


@app.command(rich_help_panel=RUNNING)
def stop(*, config: ConfigOption = None) -> None:
    """Stop the listener; what is open stays on the phone, and goes on when the next one runs."""
    stopped = Store(_loaded(config, log_json=False).store.path).stop_listener()
    typer.echo("Nobody listens." if stopped is None else f"Stopped: {stopped}.")


@app.command(rich_help_panel=RUNNING)
def listen(
    *,
    config: ConfigOption = None,
    store: StoreOption = None,
    log_file: LogOption = None,
    log_json: LogJsonOption = False,
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
        loaded = _loaded(config, log_json=log_json, console=not until_idle, store=store, log_file=log_file)
        return listening.Listening(loaded, followed, clock)

    if until_idle:
        listening.listen_until_idle(made, store, idle_after_s)
    else:
        listening.listen_always(made(), Supervisor(os.environ))


@app.command(rich_help_panel=RUNNING)
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

    loaded = _loaded(config, log_json=log_json, store=store, log_file=log_file)
    try:
        listening.reap(loaded, clocks.bent(test_clock))
    except Held:
        if Store(loaded.store.path).holder(LISTENER) is None:  # a listener of another store holds the bot
            raise
        typer.echo("A listener is at work and does this by itself.")


@app.command(
    rich_help_panel=RUNNING,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []},
    add_help_option=False,
)
def hook(context: typer.Context) -> None:
    """Started by an agent's plugin, or by any program: hand one question over (see the head of hermes/hook/run.py)."""
    words = context.args
    if words[:1] == ["generic"] and not {"--store", "--help", "-h"} & set(words):
        at = words.index("--config") if "--config" in words[:-1] else None
        given = None if at is None else Path(words[at + 1])
        loaded, place = _read(given, environ=configuration.without_keys(os.environ))
        found = ("--store", str(loaded.store.path), "--log", str(loaded.log.file), "--config", str(place))
        words = [*words, *found]  # the hook checks the other words
    sys.exit(hooks.main(words))


@app.command(rich_help_panel=RUNNING)
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
        typer.Option(help="claude-code, oh-my-pi: ask where there is no terminal, too.", show_default=False),
    ] = None,
) -> None:
    """Put an agent's plugin in place (start the agent anew after it), or Hermes as a service."""
    loaded, place = _read(config)
    options = {"permissions": permissions, "headless": headless}
    for sentence in installing.install(what, loaded, place, environ=os.environ, options=options):
        typer.echo(sentence)


@app.command(rich_help_panel=RUNNING)
def uninstall(what: What) -> None:
    """Take away again what `install` put in place."""
    for sentence in installing.uninstall(what, environ=os.environ):
        typer.echo(sentence)
