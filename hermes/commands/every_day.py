"""The commands of every day: status, log, ask, lock, unlock."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from hermes.commands.loading import load, read
from hermes.commands.options import ConfigOption
from hermes.config import reading as configuration
from hermes.errors import ConfigError, Held
from hermes.model.ask import OnExpiry

if TYPE_CHECKING:
    from pathlib import Path

    from hermes.config.settings import Config
    from hermes.storage.store import Store

PANEL = "Every day"

app = typer.Typer()


@app.command(rich_help_panel=PANEL)
def status(
    *,
    config: ConfigOption = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Stay, and show every change; Ctrl-C leaves.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="For monitoring: one line, and status 1 if something is wrong.")
    ] = False,
) -> None:
    """Show who listens, which servers can be reached, and what waits for an answer. Changes nothing."""
    from hermes.commands.status import command

    if not command.run(config, environ=os.environ, watch=watch, as_json=as_json, check=check):
        raise typer.Exit(1)


@app.command("log", rich_help_panel=PANEL)
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


@app.command(rich_help_panel=PANEL)
def ask(  # noqa: PLR0913 (one argument an option)
    question: Annotated[
        str | None, typer.Argument(metavar="QUESTION", help="The question.", show_default=False)
    ] = None,
    *,
    option: Annotated[
        list[str] | None, typer.Option("--option", "-o", metavar="LABEL[::WHY]", help="A choice; once for each.")
    ] = None,
    yes_no: Annotated[
        bool, typer.Option("--yes-no", help="The choices are Yes (status 0) and No (status 13).")
    ] = False,
    multiple: Annotated[bool, typer.Option("--multiple", help="Several may be chosen.")] = False,
    custom: Annotated[bool, typer.Option("--custom/--no-custom", help="A typed text can be the answer.")] = True,
    recommended: Annotated[int | None, typer.Option(metavar="N", help="The choice to mark; the first is 1.")] = None,
    header: Annotated[str, typer.Option(help="A name for the question, in a word or two.")] = "",
    file: Annotated[
        str | None, typer.Option(metavar="FILE", help="Ask these instead: JSON, a list of questions; - is stdin.")
    ] = None,
    sender: Annotated[
        str, typer.Option("--from", metavar="NAME", help="Who asks, as the phone shows it.")
    ] = "A script",
    timeout: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="How long it can be answered, such as 20m (else the configuration's ttl)."),
    ] = None,
    on_expiry: Annotated[
        OnExpiry | None,
        typer.Option(metavar="RULE", help="Without an answer: reject, recommended, skip or keep (else as configured)."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")] = False,
    config: ConfigOption = None,
) -> None:
    """Ask something, on the phone and in this terminal, and print the answer.

    The status is 0 for any answer; with --yes-no, 13 for no.
    10: the person stopped the script; 11: nobody answered in time; 12: skipped.
    """
    from hermes.commands import ask as asks
    from hermes.commands.ask import given, terminal
    from hermes.commands.stores import home_of

    if (question is None) == (file is None):
        raise ConfigError("give the question, or --file with questions, and not both.")
    if file is not None and (option or multiple or not custom or recommended is not None or header):
        raise ConfigError("--file says all of its questions: leave -o and what goes with it out.")
    if yes_no and (option or file is not None or multiple or not custom):
        raise ConfigError("--yes-no brings its own two choices: leave -o, --file, --multiple and --no-custom out.")
    if yes_no:
        option, custom = list(asks.YES_OR_NO), False
    loaded, place = read(config, environ=configuration.without_keys(os.environ))
    home_of(loaded).check()  # the hook, which must be fast, would write into any folder
    questions = (
        given.of_file(file, sys.stdin.buffer)
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


def _with_phone(path: Path | None) -> Config:
    """Return the configuration. Raises ConfigError: this machine has no say about the phone."""
    config = load(path, log_json=False)
    if config.phone is None:
        raise ConfigError(
            "this machine is agent-only, and cannot lock or unlock the phone. Run this on a machine with the bot's "
            "token; /lock in the chat locks it, too."
        )
    return config


@app.command(rich_help_panel=PANEL)
def lock(*, config: ConfigOption = None) -> None:
    """Take no answers and send no prompts from the phone until `hermes unlock`, as /lock on the phone does."""
    from hermes.commands.stores import listener_elsewhere, look, store_of

    async def locked(store: Store) -> bool:
        was_locked = await store.is_phone_locked()
        await store.lock_phone()
        return was_locked

    loaded = _with_phone(config)
    was_locked = asyncio.run(look(store_of(loaded), locked))
    if (other := listener_elsewhere(loaded)) is not None:
        raise Held(
            f"only {loaded.store.path} is locked. {other} has this bot, and still takes what comes from the phone: "
            "lock it, too, with its --config, or end it."
        )
    typer.echo(
        "It was locked already." if was_locked else "Locked: no tap, text or prompt counts until `hermes unlock`."
    )


@app.command(rich_help_panel=PANEL)
def unlock(*, config: ConfigOption = None) -> None:
    """Take answers and prompts from the phone again, after `hermes lock`, or after /lock was sent from the phone."""
    from hermes.commands.stores import look, store_of

    was_locked = asyncio.run(look(store_of(_with_phone(config)), lambda store: store.unlock_phone()))
    typer.echo("Unlocked: taps and texts count again." if was_locked else "It was not locked.")
