"""Simulated machines in a process of their own: each joins the store, renews its leases and follows the changes.

`python -m tests.bench.simulated FILE` reads what is wanted from a JSON file, prints a JSON line when all have joined,
and then a JSON line for each order, which is a JSON line of standard input:

- {"do": "create", "each": N}: each machine saves N asks; tells how many there are.
- {"do": "load"}: each machine reads its asks (the phone side, all), and forgets what it has noted.
- {"do": "change", "rate": N, "for_s": S}: N asks a second are changed; tells for each "ID REVISION" when (monotonic)
  its change began.
- {"do": "seen"}: tells for each "ID REVISION" of another process when it had been read here.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from hermes.core import dialog
from hermes.errors import InUse, Missing
from hermes.model.entry import Entry, Phone
from hermes.storage.home import Home
from hermes.storage.postgres.address import Address
from hermes.storage.postgres.store import PostgresStore
from hermes.storage.store import RENEW_S, Changed
from tests.asks import ask, question

JOINING = 10
"""How many join at once."""


class Machine:
    """One machine; the phone side if `is_phone`."""

    def __init__(self, root: Path, address: Address, bot_id: int | None, *, is_phone: bool) -> None:
        self.store = PostgresStore(Home(root), address, bot_id)
        self.is_phone = is_phone
        self.known: dict[str, Entry] = {}
        self.began: dict[str, float] = {}
        self.seen: dict[str, float] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def join(self, joining: asyncio.Semaphore) -> None:
        """Join, and do from now on what a listener does by itself."""
        async with joining:
            await self.store.join(self.store.home.root.name, "1.0")
            assert not self.is_phone or await self.store.take_phone()
            self._tasks = [asyncio.create_task(self._follow()), asyncio.create_task(self._renew())]

    async def leave(self) -> None:
        """End."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.store.leave()

    async def create(self, count: int) -> None:
        """Save new asks of this machine."""
        for number in range(count):
            text = f"Question {number} of {self.store.home.root.name}?"
            asked = ask(question(text))
            source = replace(
                asked.source, machine=self.store.home.machine(), request_id=f"que_{random.getrandbits(60):x}"
            )
            asked = replace(asked, source=replace(source, last_text="The schema is small. " * 10))
            entry = Entry(await self.store.new_id(), "", asked, dialog.start(asked), Phone(), self.store.now())
            self.known[entry.id] = await self._created(entry)

    async def _created(self, entry: Entry) -> Entry:
        while True:
            try:
                return await self.store.create(entry)
            except InUse:  # 100 processes make a table longer at once, and stand in line for that
                continue

    async def load(self) -> None:
        """Learn the open asks, and forget what was changed and seen."""
        self.known = {entry.id: entry for entry in await self.store.open()}
        self.began.clear()
        self.seen.clear()

    async def change(self) -> None:
        """Change any ask, and note when that began."""
        entry = random.choice(list(self.known.values()))
        began_s = time.monotonic()
        saved = await self.store.change(entry.id, _marked, entry)
        self.began[f"{saved.id} {saved.revision}"] = began_s
        self.known[saved.id] = saved

    async def _follow(self) -> None:
        async for change in self.store.changes():
            if not isinstance(change, Changed):
                await self.store.open()
            elif change.kind == "entries":
                with suppress(Missing):
                    entry = await self.store.get(change.id)
                    self.seen[f"{entry.id} {entry.revision}"] = time.monotonic()
                    self.known[entry.id] = entry

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEW_S)
            await self.store.renew(())


def _marked(entry: Entry) -> Entry:
    return replace(entry, timing=replace(entry.timing, until_s=random.random()))


async def _obey(order: dict[str, Any], machines: list[Machine]) -> Any:
    if order["do"] == "create":
        await asyncio.gather(*(machine.create(order["each"]) for machine in machines))
        return sum(len(machine.known) for machine in machines)
    if order["do"] == "load":
        await asyncio.gather(*(machine.load() for machine in machines))
        return len(machines)
    if order["do"] == "change":
        await _change(machines, order["rate"], order["for_s"])
        return {key: at_s for machine in machines for key, at_s in machine.began.items()}
    return {key: at_s for machine in machines for key, at_s in machine.seen.items()}


async def _change(machines: list[Machine], rate: float, for_s: float) -> None:
    began_s = time.monotonic()
    changes = []
    for number in range(int(rate * for_s)):
        await asyncio.sleep(max(0.0, began_s + number / rate - time.monotonic()))
        changes.append(asyncio.create_task(random.choice(machines).change()))
    await asyncio.gather(*changes)


async def _main(file: str) -> None:
    told = json.loads(Path(file).read_text())
    address, root = Address(told["url"], told["password"]), Path(file).parent
    machines = [Machine(root / name, address, told["bot_id"], is_phone=told["is_phone"]) for name in told["names"]]
    joining = asyncio.Semaphore(JOINING)
    try:
        await asyncio.gather(*(machine.join(joining) for machine in machines))
        _say(len(machines))
        while line := await asyncio.to_thread(sys.stdin.readline):
            _say(await _obey(json.loads(line), machines))
    finally:
        await asyncio.gather(*(machine.leave() for machine in machines))


def _say(done: Any) -> None:
    sys.stdout.write(json.dumps({"done": done}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1]))
