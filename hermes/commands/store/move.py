"""`hermes store move`: moves what is open for this machine to the database, or from there back to its folder."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, Literal

import hermes
from hermes.commands.stores import home_of, store_of
from hermes.config.settings import Config
from hermes.errors import ConfigError, Held, StoreError
from hermes.hook import spool
from hermes.storage import moving, process_lock
from hermes.storage.files import FileStore
from hermes.storage.moving import Moved
from hermes.storage.store import RENEW_S, Kind, Store

Where = Literal["database", "files"]

_WORDS: Final[dict[Kind, str]] = {
    "entries": "question",
    "prompts": "prompt",
    "notices": "notice",
    "cards": "session card",
}


def run(config: Config, place: Path, where: Where, say: Callable[[str], None]) -> None:
    """Move what is open, and say what was moved and what to do next. `place` is the configuration file.

    Raises:
        ConfigError: the configuration names no database, or no bot on the way back.
        Held: a listener of this machine runs, or another machine is the phone side on the way back.
        StoreError: some or all asks were not moved; another call moves the rest.
    """
    if config.store.address is None:
        raise ConfigError(f"{place} has no url in [store]: write the address of the database there first.")
    if where == "files" and config.phone is None:
        raise ConfigError(
            f"{place} has no [telegram]: without a bot, questions cannot be in the folder of this machine."
        )
    home = home_of(config)
    with home.hold(process_lock.named("hermes store move", home.root)):
        moved, others = asyncio.run(_moved(config, where))
    address = config.store.address.name
    for line in _said(moved, address if where == "database" else str(home.root)):
        say(line)
    if where == "database":
        say(f"Closed questions stay in {home.root / 'done'}; `hermes log` shows only those of the database.")
        say("Next: start Hermes again.")
    else:
        say("Closed questions stay in the database; `hermes log` shows only those of the folder.")
        say(f"Next: remove url from [store] in {place}, and start Hermes again.")
        if others:
            say(f"The database still has {', '.join(others)}: stop Hermes there, or give this machine another bot.")
    if moved.left:
        raise StoreError(f"not moved: {'; '.join(moved.left)}")


async def bring(config: Config) -> list[str]:
    """Move what is open to the database, whose configuration is new; return sentences, none if there was nothing.

    Raises Held, StoreError: as `run`.
    """
    home = home_of(config)
    with home.hold(process_lock.named("hermes setup", home.root)):
        moved, _ = await _moved(config, "database")
    if moved.left:
        raise StoreError(f"not moved: {'; '.join(moved.left)}")
    has_any = any((*moved.moved.values(), *moved.of_another_bot.values(), moved.is_locked))
    return list(_said(moved, config.store.address.name)) if has_any and config.store.address else []


async def _moved(config: Config, where: Where) -> tuple[Moved, list[str]]:
    """Return what was moved, and the names of the other machines."""
    files, database = FileStore(home_of(config)), store_of(config)
    bot_id = None if config.phone is None else config.phone.bot_id
    async with _joined(database):
        is_phone = bot_id is not None and await database.take_phone()
        if where == "database":
            return await moving.move(files, database, bot_id), []
        machines = await database.machines()
        if not is_phone:
            name = next((one.name for one in machines if one.is_phone), "another machine")
            raise Held(f"{name} has the phone; stop Hermes there first, and start it again after the move")
        ours = database.home.machine()
        moved = await moving.move(database, files, bot_id)
        return moved, [one.name for one in machines if one.id != ours]


@asynccontextmanager
async def _joined(store: Store) -> AsyncIterator[None]:
    """Take this machine's place in the store, keep it for as long as the move lasts, and leave."""
    try:
        await store.join(spool.host(), hermes.__version__)
        renewing = asyncio.create_task(_renew(store))
        try:
            yield
        finally:
            renewing.cancel()
            await asyncio.wait({renewing})
    finally:
        await store.leave()


async def _renew(store: Store) -> None:
    while True:
        await asyncio.sleep(RENEW_S)
        with suppress(StoreError):  # if a lease has run out, the next write says so
            await store.renew(())


def _said(moved: Moved, target: str) -> Iterator[str]:
    found, stays = _counted(moved.moved), _counted(moved.of_another_bot)
    yield f"Moved to {target}: {found}." if found else "Nothing was open."
    if stays:
        yield f"Not moved, because another bot has sent them: {stays}."
    if moved.is_locked:
        yield "The phone stays locked; `hermes unlock` unlocks it."


def _counted(counts: Counter[Kind]) -> str:
    """Return such words as "2 questions, 1 prompt and 4 notices", "" for nothing."""
    parts = [f"{count} {word}{'s' if count > 1 else ''}" for kind, word in _WORDS.items() if (count := counts[kind])]
    return " and ".join(part for part in (", ".join(parts[:-1]), *parts[-1:]) if part)
