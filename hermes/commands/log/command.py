"""The whole of `hermes log`: for people as paragraphs, for programs as JSON, one object a line."""

import asyncio
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from hermes.commands.log import history, paragraphs
from hermes.commands.status import table
from hermes.commands.stores import look, store_of
from hermes.config import reading as configuration


def run(path: Path | None, *, environ: Mapping[str, str], since: str | None, last: int | None, as_json: bool) -> None:
    """Print the exchanges since `since`, or the last ones. Raises ConfigError."""
    config = configuration.load(path, environ=environ)
    now_s, zone = time.time(), config.questions.zone
    since_s = 0.0 if since is None else history.since_of(since, now_s=now_s, zone=zone)
    told = asyncio.run(look(store_of(config), lambda store: history.gather(store, since_s=since_s)))
    found = len(told.exchanges)
    shown = told.exchanges[-(last or (found if since or as_json else paragraphs.LAST)) :]
    for warning in told.warnings:
        sys.stderr.write(f"hermes: {warning}\n")
    if as_json:
        for exchange in shown:
            sys.stdout.write(f"{history.to_json(exchange)}\n")
        return
    console, past_s = table.console(), now_s - since_s if since else 0.0
    remark = paragraphs.remark(shown=len(shown), found=found, past_s=past_s, kept_s=config.store.keep_done)
    if remark:
        console.print(f"{remark}\n" if shown else remark, style="dim", markup=False)
    paragraphs.show(shown, console, zone=zone)
