"""How a command gets its configuration and its log."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path

import hermes
from hermes.config import reading as configuration
from hermes.config.logs import set_up
from hermes.config.settings import Config


def read(path: Path | None, *, environ: Mapping[str, str] = os.environ) -> tuple[Config, Path]:
    """Return the configuration and the path of its file. Raises ConfigError."""
    return configuration.load(path, environ=environ), configuration.config_path(path, environ=environ)


def load(
    path: Path | None,
    *,
    log_json: bool,
    console: bool = True,
    log_lines: bool = False,
    store: Path | None = None,
    log_file: Path | None = None,
) -> Config:
    """Return the configuration, and start the log that it describes, as `logs.set_up` does. Raises ConfigError.

    A terminal gets only what a person needs, unless `log_lines` or `log_json` asks for all of the log.
    """
    config = configuration.load(path, environ=os.environ).placed(store=store, log_file=log_file)
    secrets = [server.password.get_secret_value() for server in config.opencode]
    secrets += [config.store.address.password] if config.store.address else []
    secrets.append(config.monitor.ping_url.get_secret_value())
    for_person = os.isatty(2) and not (log_json or log_lines)
    set_up(config.log, console=console, json_lines=log_json, for_person=for_person, secrets=secrets)
    return config


def shipped(name: str) -> Path:
    """Return the path of a file that Hermes ships beside its code: in the package, or next to it in a checkout."""
    package = Path(hermes.__file__).parent
    return next(place for place in (package / name, package.parent / name) if place.is_file())


def discard_log() -> None:
    """Keep what is logged from the terminal: the command itself says the same in its own sentences."""
    logging.getLogger().addHandler(logging.NullHandler())
