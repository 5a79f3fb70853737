"""Check the prompts from the phone: whether they are on, for which projects, and whether a listener takes them."""

import asyncio
from typing import Final

from hermes.commands.doctor import listener
from hermes.commands.doctor.finding import Area, Around, Finding
from hermes.commands.service import service_state
from hermes.core.prompt_routing import is_in
from hermes.listener.daemon import UNTIL_IDLE
from hermes.model.ask import Source
from hermes.storage.store import Store

AREA = Area("Prompts")

OFF: Final = "off: the phone can answer, and starts nothing"


async def look(around: Around) -> tuple[Finding, ...]:
    """Check what the phone may start, and that a listener always runs if it may."""
    if not around.config.prompts.enabled:
        return (AREA.good("phone", OFF),)
    return await AREA.each(around, {"phone": _phone, "listener": _listener})


def _phone(around: Around) -> list[Finding]:
    projects = around.config.prompts.projects
    if not projects:
        return [AREA.good("phone", "on: it may start work in all projects")]
    known = [] if around.is_store_away else asyncio.run(_known(around))
    unknown = [one for one in projects if not any(is_in(source, (one,)) for source in known)] if known else []
    note = f"; no session of {', '.join(unknown)} is known yet" if unknown else ""
    return [AREA.good("phone", f"on: it may start work in {', '.join(projects)}{note}")]


async def _known(around: Around) -> list[Source]:
    """Return the sources of the sessions that the phone was told of."""
    return await around.look(_known_to)


async def _known_to(store: Store) -> list[Source]:
    turns = [notice.turn for notice in await store.notices.survey()]
    cards = [card.target.source for card in await store.cards.survey()]
    return [*cards, *(turn.source for turn in turns if turn is not None)]


def _listener(around: Around) -> list[Finding]:
    """Report it if no listener runs all the time: one that an agent's question starts does not hear a prompt."""
    state, holder = service_state(machine=listener.machine(around)), listener.holder(around)
    if state.is_running and state.is_of(around.config_file):
        return [AREA.good("listener", "the service takes them")]
    install = around.hermes("install", "service")
    if holder is None or holder.who.startswith(UNTIL_IDLE):
        mend = around.hermes("listen") if state.kind == "none" else install
        return [AREA.broken("listener", "no listener runs all the time, so what you write on the phone waits", mend)]
    if state.kind == "none":
        return [AREA.good("listener", f"{holder} takes them")]
    return [AREA.warning("listener", f"{holder} takes them, and no service starts it again if it ends", install)]
