"""Finds the sessions that a person may write to, of all agents and servers, and looks at single ones."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from hermes.agents.prompting import HasPrompts, way_name
from hermes.core.prompt_routing import is_in
from hermes.core.prompts import LOOK_S
from hermes.errors import AgentError, NotRunning, NotThere
from hermes.listener.kept import Cards
from hermes.listener.sessions import USED_S, SessionLists, is_recent
from hermes.model.card import Card, Listed
from hermes.model.prompt import StopPhase
from hermes.storage.store import Store

log = logging.getLogger(__name__)

PATIENCE_S: Final = 5.0
"""A server that does not answer within this time is left out of a list."""


class Listing:
    """The workers for lists, and for the wishes of a card about its session.

    `now` is the epoch clock of this machine, which its agents have, too.
    """

    def __init__(
        self,
        ways: Mapping[str, HasPrompts],
        lists: SessionLists,
        cards: Cards,
        store: Store,
        projects: tuple[str, ...],
        *,
        now: Callable[[], float],
    ) -> None:
        self._ways = ways
        self._lists = lists
        self._cards = cards
        self._store = store
        self._projects = projects
        self._now = now

    async def list_all(self, machine: str) -> float | None:
        """Step: list the sessions of this machine, if that is wanted. Raises NotSaved."""
        before = self._lists.get(machine)
        if before is None or before.listed_s >= before.wanted_s:
            return None
        answers = await asyncio.gather(*(self._of(name, has) for name, has in self._ways.items()))
        found = _each_once(one for listed in answers if listed is not None for one in listed)
        mine = [one for one in found if is_in(one.target.source, self._projects)]
        silent = tuple(name for name, listed in zip(self._ways, answers, strict=True) if listed is None)
        made = replace(before, listed_s=before.wanted_s, found=tuple(mine), silent=silent)
        await self._lists.change(machine, lambda found: replace(made, wanted_s=found.wanted_s))
        return None

    async def _of(self, name: str, has: HasPrompts) -> tuple[Listed, ...] | None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await (await has.way()).listed(self._now() - USED_S)
        except NotRunning:
            return ()
        except (AgentError, TimeoutError) as error:
            log.info("the sessions of %s are not listed: %s", name, error)
            return None

    async def serve(self, card_id: str) -> float | None:
        """Do what a card wants of its session: end its turn, or look at it. Raises StoreError."""
        card = self._cards.get(card_id)
        if card is None:
            return None
        source = card.target.source
        has = self._ways.get(way_name(source))
        if card.stop == "asked":
            told: StopPhase = "refused"
            if has is not None and await self._may_stop(card) and await self._is_stopped(card, has):
                told = "told"
            await self._cards.change(card_id, lambda found: replace(found, stop=told, is_stale=True))
        elif card.is_stale:
            seen = card if has is None else await self._seen(card, has)
            await self._cards.change(card_id, lambda found: _looked_at(found, seen))
        elif card.stop == "sure":
            seen = card if has is None else await self._seen(card, has)
            if seen.state == "busy" and (not card.sure_s or is_recent(card.sure_s, self._lists.now())):
                return LOOK_S
            await self._cards.change(card_id, _unasked)
        return None

    async def _may_stop(self, card: Card) -> bool:
        """Tell whether the person's wish still counts."""
        return is_recent(card.stop_s, self._lists.now()) and not await self._store.is_phone_locked()

    async def _is_stopped(self, card: Card, has: HasPrompts) -> bool:
        try:
            return await (await has.way()).stop(card.target.source)
        except AgentError as error:
            log.info("session %s could not be stopped: %s", card.target.source.session_id, error)
            return False

    async def _seen(self, card: Card, has: HasPrompts) -> Card:
        """Return the card with the state of its session and the agent's last words, if they can be read."""
        source = card.target.source
        try:
            async with asyncio.timeout(PATIENCE_S):
                way = await has.way()
                sight = await way.look(source, "")
                words = await way.words(source)
        except NotThere:
            return replace(card, state="gone")
        except (AgentError, TimeoutError) as error:
            log.info("session %s could not be looked at: %s", source.session_id, error)
            return card
        return replace(card, state=sight.session, target=replace(card.target, source=replace(source, last_text=words)))


def _looked_at(card: Card, seen: Card) -> Card:
    """Return the card after the look at its session; nobody is asked whether to stop a turn that does not run."""
    stop = "" if card.stop == "sure" and seen.state != "busy" else card.stop
    return replace(card, is_stale=False, state=seen.state, target=seen.target, stop=stop)


def _unasked(card: Card) -> Card:
    """Return the card without the request for a second tap: that tap could stop another turn than the first one."""
    return replace(card, stop="", is_stale=True) if card.stop == "sure" else card


def _each_once(found: Iterable[Listed]) -> list[Listed]:
    """Return each session once: where it runs, else where it is known to have run last, else with a server.

    The processes of an agent share their sessions on the disk, and each knows only of the turns that it runs itself.
    """
    best: dict[tuple[str, str, str], Listed] = {}
    for one in found:
        key = one.target.source.session
        if key not in best or _rank(one) > _rank(best[key]):
            best[key] = one
    return list(best.values())


def _rank(listed: Listed) -> tuple[bool, bool, bool]:
    return listed.state == "busy", listed.is_own, bool(listed.target.source.server)
