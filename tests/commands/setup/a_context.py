"""What a step of the setup needs, for tests that play one step alone."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.chat.bot import Bot
from hermes.commands.setup.context import Context
from hermes.commands.setup.file import Draft
from hermes.commands.setup.given import Given
from hermes.config.settings import Config

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hermes.commands.setup.terminal import Terminal

NOWHERE = Path("/nowhere/config.toml")


def a_config(**tables: object) -> Config:
    """A configuration with a bot and these tables."""
    telegram = {"token": f"1234567:{'a' * 35}", "chat_id": 1, "users": [1]}
    return Config.model_validate({"telegram": telegram, **tables})


def a_context(
    terminal: Terminal,
    place: Path = NOWHERE,
    *,
    config: Config | None = None,
    environ: Mapping[str, str] | None = None,
    run: Callable[[Any], Any] = asyncio.run,
) -> Context:
    """No option is given, the file at `place` is not there yet, and Telegram is out of reach."""
    draft = Draft(place, config or a_config(), None)
    bot = partial(Bot, api_base="http://127.0.0.1:9")
    return Context(terminal, Given(), draft, environ or {}, bot, run, lambda: 0.0)
