"""The first commands that a person needs: demo, setup, doctor."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from hermes import clock as clocks, disk
from hermes.commands import install as installing
from hermes.commands.loading import discard_log, shipped
from hermes.commands.options import ConfigOption, TestClockOption, chat_id, user_id
from hermes.config import reading as configuration
from hermes.errors import ConfigError
from hermes.storage.postgres.address import Tls

_AGENTS = [agent.name for agent in installing.AGENTS]

PANEL = "First steps"

app = typer.Typer()


@app.command(rich_help_panel=PANEL)
def demo(
    *,
    opencode: Annotated[
        bool, typer.Option("--opencode", help="With the OpenCode of this machine, in an empty home.")
    ] = False,
    machines: Annotated[
        int, typer.Option(min=1, max=3, help="How many machines share the bot; more than one needs PostgreSQL.")
    ] = 1,
    topics: Annotated[bool, typer.Option("--topics", help="Each session has a topic of its own in the chat.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where to serve the page; 0 takes a free port.")] = 0,
    open_page: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = False,
) -> None:
    """Try Hermes in your browser: without a token, an account or an agent. Ctrl-C ends it, and leaves nothing."""
    from hermes.commands.demo import command

    command.run(opencode=opencode, machines=machines, topics=topics, port=port, open_page=open_page, say=typer.echo)


@app.command(rich_help_panel=PANEL)
def setup(  # noqa: PLR0913 (one argument an option)
    *,
    config: ConfigOption = None,
    token_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="A file that holds the bot's token; - is standard input.")
    ] = None,
    chat: Annotated[
        int | None, typer.Option(parser=chat_id, metavar="ID", help="The chat that questions go to.")
    ] = None,
    user: Annotated[
        list[int] | None, typer.Option(parser=user_id, metavar="ID", help="Who may answer; once for each person.")
    ] = None,
    agent: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help=f"Connect this agent ({', '.join(_AGENTS)}); once for each.",
            autocompletion=lambda: _AGENTS,
        ),
    ] = None,
    no_agents: Annotated[bool, typer.Option("--no-agents", help="Connect no agent.")] = False,
    prompts: Annotated[
        bool | None, typer.Option(help="Let the phone send prompts to your agents, or no longer.")
    ] = None,
    join: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Join the machines that share this database; this one needs no bot (`hermes store add`).",
        ),
    ] = None,
    store_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The PostgreSQL database that several machines share, without its password."),
    ] = None,
    store_password_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file that holds the database's password.")
    ] = None,
    store_tls: Annotated[
        Tls | None,
        typer.Option(metavar="MODE", help="verify-full, or off: the database need not prove that it is the right one."),
    ] = None,
    store_ca_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The certificate authorities that the database is known by.")
    ] = None,
    one_machine: Annotated[
        bool, typer.Option("--one-machine", help="Ask nothing about other machines: agents run on this one alone.")
    ] = False,
    service: Annotated[bool | None, typer.Option(help="Keep a listener running as a service.")] = None,
    test: Annotated[bool | None, typer.Option(help="End with a test question.")] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Take every default; it lets no person in, and no prompts.")
    ] = False,
    proxy: Annotated[str | None, typer.Option(metavar="URL", help="A proxy on the way to Telegram.")] = None,
    api_base: Annotated[str | None, typer.Option(metavar="URL", help="A Bot API server of your own.")] = None,
    test_clock: TestClockOption = None,
) -> None:
    """Set Hermes up, or change one thing of it: bot, chat, people, agents, machines, prompts, service.

    With --join it asks for nothing but the password of the database, and takes every default.
    """
    from hermes.commands.setup import given, terminal, wizard

    discard_log()
    if no_agents and agent:
        raise ConfigError("give --agent or --no-agents, not both.")
    if sum((store_url is not None, join is not None, one_machine)) > 1:
        raise ConfigError("give one of --join, --store-url and --one-machine.")
    url = store_url if join is None else join
    options = given.Given(
        token_file,
        chat_id=chat,
        users=tuple(dict.fromkeys(user or ())),
        agents=() if no_agents else tuple(agent) if agent else None,
        prompts=prompts,
        service=service,
        test=test,
        yes=yes,
        api_base=api_base,
        proxy=proxy,
        store=given.GivenStore(url, join is not None, store_password_file, store_tls, store_ca_file, one_machine),
    )
    options = given.checked(options, environ=os.environ, stdin=sys.stdin)
    place = configuration.config_path(config, environ=os.environ)
    at = terminal.of_this_process(yes=yes)
    raise typer.Exit(wizard.run(options, place=place, environ=os.environ, terminal=at, clock=clocks.bent(test_clock)))


@app.command(name="config", rich_help_panel=PANEL)
def show_config(
    *,
    config: ConfigOption = None,
    example: Annotated[bool, typer.Option("--example", help="Print a file with every setting, explained.")] = False,
) -> None:
    """Say where the configuration is, or print an example with every setting."""
    if example:
        typer.echo(shipped("config.example.toml").read_text(encoding="utf-8"), nl=False)
    else:
        place = configuration.config_path(config, environ=os.environ)
        typer.echo(f"{place}{'' if disk.is_there(place) else ' (not there yet: `hermes setup` writes it)'}")


@app.command(rich_help_panel=PANEL)
def doctor(
    *,
    config: ConfigOption = None,
    fix: Annotated[bool, typer.Option("--fix", help="Fix what can be fixed without loss, then check again.")] = False,
    test: Annotated[bool, typer.Option("--test", help="Ask a real question on the phone, end to end.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
    record: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Check nothing; write how your OpenCode 2 answers, without its texts."),
    ] = None,
) -> None:
    """Check everything, and say how to fix it; status 1 if something is broken."""
    from hermes.commands.doctor import checkup, recording

    discard_log()
    if record is not None:
        typer.echo(recording.record(config, record, environ=os.environ))
        return
    if not asyncio.run(checkup.run(config, environ=os.environ, fix=fix, test=test, as_json=as_json)):
        raise typer.Exit(1)
