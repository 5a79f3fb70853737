"""Check the prompts from the phone: are they on, for which projects, and can they be taken, voice notes, too."""

import asyncio
import os
import shutil
from typing import Final

from hermes.commands.doctor import listener
from hermes.commands.doctor.finding import Area, Around, Finding
from hermes.commands.service import service_state
from hermes.core.prompt_routing import is_in
from hermes.hook import starting
from hermes.model.ask import Source
from hermes.storage.store import Store

AREA = Area("Prompts")

OFF: Final = "off: the phone can answer, and starts nothing"


async def look(around: Around) -> tuple[Finding, ...]:
    """Check what the phone may start and, if it may, that a listener always runs and voice notes can be heard."""
    if not around.config.prompts.enabled:
        return (AREA.good("phone", OFF),)
    return await AREA.each(around, {"phone": _phone, "listener": _listener, "voice notes": _voice_notes})


def _phone(around: Around) -> list[Finding]:
    projects = around.config.prompts.projects
    if not projects:
        return [AREA.good("phone", "on: it may start work in all projects")]
    known = [] if around.is_store_away else asyncio.run(around.look(_known))
    unknown = [one for one in projects if not any(is_in(source, (one,)) for source in known)] if known else []
    note = f"; no session of {', '.join(unknown)} is known yet" if unknown else ""
    return [AREA.good("phone", f"on: it may start work in {', '.join(projects)}{note}")]


async def _known(store: Store) -> list[Source]:
    """Return the sources of the sessions that the phone was told of."""
    turns = [notice.turn for notice in await store.notices.survey()]
    cards = [card.target.source for card in await store.cards.survey()]
    return [*cards, *(turn.source for turn in turns if turn is not None)]


def _listener(around: Around) -> list[Finding]:
    """Report it if no listener runs all the time: one that an agent's question starts does not hear a prompt."""
    state, holder = service_state(machine=listener.machine(around)), around.home().listener()
    if state.is_running and state.is_of(around.config_file):
        return [AREA.good("listener", "the service takes them")]
    install = around.hermes("install", "service")
    if holder is None or holder.leaves_when_idle:
        mend = around.hermes("listen") if state.kind == "none" else install
        return [AREA.broken("listener", "no listener runs all the time, so what you write on the phone waits", mend)]
    if state.kind == "none":
        return [AREA.good("listener", f"{holder} takes them")]
    return [AREA.warning("listener", f"{holder} takes them, and no service starts it again if it ends", install)]


def _voice_notes(around: Around) -> list[Finding]:
    """Check that the program which turns voice notes into text, if there is one, can be started as a listener does."""
    program = next(iter(around.config.prompts.transcribe), None)
    if program is None:
        return []
    place = os.path.join("/", program) if "/" in program else program  # noqa: PTH118 (it joins as the system does)
    found = shutil.which(place, path=starting.PATH)
    if found is None:
        seen = f"{program!r} in prompts.transcribe cannot be started, so voice notes are refused"
        return [AREA.broken("voice notes", seen, "give the whole path of a program there that you may execute")]
    return [AREA.good("voice notes", f"{found} turns them into text")]
