"""The inbox: the records that hooks dropped, taken in one after the other."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from hermes import disk
from hermes.agents.registry import REFUSALS, Adapter
from hermes.errors import Deposed, NotSaved, PayloadError, StoreAway, StoreError, Stuck, TooNew
from hermes.hook import spool
from hermes.hook.prompt_wait import TAKEN
from hermes.listener.agent.errands import Errands
from hermes.listener.agent.hooks import lay_ready
from hermes.listener.agent.intake import Intake
from hermes.model.signals import Announced, Asked, Signal, TurnBegan, TurnEnded
from hermes.storage.store import Store

log = logging.getLogger(__name__)

VERSION: Final = 1
"""The version of the records."""


class Inbox:
    """Takes in all records, the oldest first: what agents tell goes to `intake`, a hook's word to `errands`."""

    def __init__(
        self, root: Path, store: Store, adapters: Mapping[str, Adapter], intake: Intake, errands: Errands
    ) -> None:
        self._root = root
        self._store = store
        self._adapters = adapters
        self._intake = intake
        self._errands = errands
        self._left: dict[str, str] = {}

    async def files(self) -> AsyncIterator[None]:
        """Take everything in, one file at each step: a caller may do other work between two.

        A file goes when its effect is on disk. One that cannot be taken in, or not be removed, stays and holds up no
        other; the log says it once.
        Raises NotSaved, StoreAway, Deposed: the store takes nothing now. The later files wait, too, because one of
        them may tell of the end of an ask that is not known yet.
        """
        paths = spool.listing(self._root)
        there = {path.name for path in paths}
        self._left = {name: why for name, why in self._left.items() if name in there}
        for path in paths:
            yield
            try:
                await self._take_file(path)
            except FileNotFoundError:
                continue
            except (NotSaved, StoreAway, Deposed):
                raise
            except (OSError, StoreError) as error:
                if self._left.get(path.name) != str(error):
                    self._left[path.name] = str(error)
                    log.error("inbox: %s could not be taken in, and stays: %s", path.name, error)  # noqa: TRY400

    async def _take_file(self, path: Path) -> None:
        record: Mapping[str, object] = {}
        try:
            record = spool.read(path)
            await self._take(record)
        except (PayloadError, ValueError, RecursionError) as error:
            await self._set_aside(path, record, str(error))
        path.unlink(missing_ok=True)

    async def _set_aside(self, path: Path, record: Mapping[str, object], why: str) -> None:
        """Refuse a damaged record, or put it into quarantine if nobody can be told.

        Raises NotSaved: the disk is full; Stuck: this file stays.
        """
        try:
            if self._refuse(record, why):
                log.warning("inbox: %s was refused, and the program that asked was told: %s", path.name, why)
            else:
                self._store.home.quarantine(path.name, disk.read(path), why)
        except NotSaved as error:
            if error.disk_full:
                raise
            raise Stuck(f"it is damaged ({why}), and cannot be put into quarantine: {error}") from error

    def _refuse(self, record: Mapping[str, object], why: str) -> bool:
        """Tell the program that asked, or send its hook away; return whether it was told why. Raises NotSaved."""
        agent, machine, payload = record.get("agent"), record.get("machine"), record.get("payload")
        request_id = payload.get("id") if isinstance(payload, dict) else None
        if isinstance(agent, str) and isinstance(machine, str) and isinstance(request_id, str):
            adapter = self._adapters.get(agent)
            last_word = REFUSALS[agent](why) if agent in REFUSALS else None if adapter is None else adapter.goodbye
            name = spool.wait_id(agent, machine, request_id)
            if last_word is not None and spool.waiters(self._root, name):
                lay_ready(self._root, name, last_word)
                return agent in REFUSALS
        return False

    async def _take(self, record: Mapping[str, object]) -> None:
        version = record.get("v")
        if isinstance(version, int) and version > VERSION:
            raise TooNew(f"its version is {version}, this Hermes reads {VERSION}; restart the listener")
        if version != VERSION:
            raise PayloadError(f"it does not say its version, or another one; this Hermes reads {VERSION}")
        payload, agent, machine = record.get("payload"), record.get("agent"), record.get("machine")
        if isinstance(payload, dict) and isinstance(payload.get("waitID"), str):
            kind = payload.get("type")
            if not isinstance(kind, str):
                raise PayloadError("a hook's word about itself has no type")
            await self._errands.hear_hook(kind, payload["waitID"])
            return
        if isinstance(payload, dict) and payload.get("type") == TAKEN:
            await self._intake.take_receipt(str(payload.get("prompt")))
            return
        if not isinstance(agent, str) or agent not in self._adapters or not isinstance(machine, str):
            raise PayloadError("it does not name an agent and a machine that this Hermes knows")
        if self._store.is_shared and machine != self._store.home.machine():
            raise PayloadError("it names another machine, because the state folder was made again or copied; ask again")
        # A record of an older Hermes has the host's name for its machine.
        host, at_s = str(record.get("host") or machine), record.get("at")
        signal = self._adapters[agent].read(payload, machine=machine)
        await self._intake.take(_completed(signal, host, at_s if isinstance(at_s, float) else self._store.now()))


def _completed(signal: Signal, host: str, at_s: float) -> Signal:
    """Return a signal with the host name, and with the time at which the hook kept the report of a turn."""
    match signal:
        case Asked(ask) | Announced(ask):
            return replace(signal, ask=replace(ask, source=replace(ask.source, host=host)))
        case TurnBegan():
            return replace(signal, at_s=at_s)
        case TurnEnded(turn):
            timed = replace(turn, ended_s=turn.ended_s or at_s, source=replace(turn.source, host=host))
            return replace(signal, turn=timed)
        case _:
            return signal
