"""A listener that sends faster than Telegram takes it, for a Bot API whose rates are scaled: CONFIG SCALE.

The same as `hermes listen` but for the one argument that its command line does not have.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from hermes.commands.stores import store_of
from hermes.config import reading as configuration
from hermes.config.logs import set_up
from hermes.config.settings import Config
from hermes.listener.daemon import Listener


def main(path: str, scale: str) -> None:
    """Serve until SIGTERM."""
    config = configuration.load(Path(path), environ=os.environ)
    set_up(config.log, console=True, json_lines=False, secrets=[])
    asyncio.run(_serve(config, float(scale)))


async def _serve(config: Config, scale: float) -> None:
    await Listener(config, store_of(config), rate_scale=scale).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
