"""The whole of `hermes status`: for people, for programs (`--json`), for monitoring (`--check`), and `--watch`."""

import asyncio
import contextlib
import functools
from collections.abc import Mapping
from pathlib import Path

from hermes.commands.install import is_any_connected, outdated
from hermes.commands.service import is_service_installed
from hermes.commands.service.machine import Machine
from hermes.commands.status import survey, table
from hermes.commands.stores import look, store_of
from hermes.config import reading as configuration
from hermes.errors import ConfigError, StoreError


def run(path: Path | None, *, environ: Mapping[str, str], watch: bool, as_json: bool, check: bool) -> bool:
    """Print the status; return False if `check` found something wrong. Raises ConfigError, StoreError."""
    console = table.console()
    if watch and (as_json or not table.can_redraw(console)):
        raise ConfigError("--watch draws on a terminal; without it, `hermes status` prints once, also with --json.")
    if check and as_json:
        raise ConfigError("--check and --json do not go together: --check prints one sentence, and no JSON.")
    place = configuration.config_path(path, environ=environ)
    config = configuration.load(path, environ=environ)
    # Prompts need a listener that always runs, and a person who installed a service wants one.
    needs_one = config.prompts.enabled or is_service_installed(machine=Machine(environ=environ))
    asks_start_it = is_any_connected(environ) and not needs_one
    gather = functools.partial(
        survey.gather, config, config_file=place, asks_start_it=asks_start_it, warnings=outdated(environ)
    )

    async def looked() -> survey.Status:
        return await look(store_of(config), gather)

    if watch:
        with contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError):
            asyncio.run(table.watch(looked, console))
        return True
    try:
        status = asyncio.run(looked())
    except StoreError as error:
        if not check:
            raise
        console.file.write(f"{error}\n")
        return False
    if check:
        is_wrong, line = table.verdict(status)
        console.file.write(f"{line}\n")
        return not is_wrong
    if as_json:
        console.file.write(f"{survey.to_json(status)}\n")
    else:
        table.show(status, console)
    return True
