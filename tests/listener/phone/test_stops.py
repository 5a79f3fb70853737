"""Stop: a wish that its agent does not see at once counts for no turn of later, and not while the phone is locked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from hermes.chat.screens import hints
from tests.listener.gates import held
from tests.listener.phone.test_session_cards import labels, listed
from tests.listening import house, until
from tests.prompted import PROMPTS, Desked

if TYPE_CHECKING:
    from hermes.model.ask import Source
    from hermes.sandbox.phone_values import ShownMessage

home = house(sections=PROMPTS)


@pytest.mark.parametrize("meanwhile", ["locked", "hours", "set back", "nothing"])
async def test_a_stop_that_waits_for_its_agent(desk: Desked, meanwhile: str) -> None:
    """Its machine was away."""
    source = desk.desk.session("One", is_busy=True)
    await desk.home.person.taps(await listed(desk, "/stop"), "One")

    def sure() -> ShownMessage | None:
        return next((one for one in desk.home.person.shown() if "Yes, stop" in labels(one)), None)

    asked = await until(sure, "the second tap")
    listing: Any = desk.home.listener._parts.agent.listing
    async with held(listing, "_may_stop") as gate:
        assert await desk.home.person.taps(asked, "Yes, stop") == "Stopping"
        await gate.begun()
        if meanwhile == "locked":
            desk.home.person.write("/lock")
            await desk.home.person.sees("Locked")
        elif meanwhile == "hours":
            desk.desk.end(source.session_id)
            desk.home.clock.advance(7200)
            desk.desk.sessions[source.session_id].is_busy = True  # somebody is at the desk
        elif meanwhile == "set back":
            desk.home.clock.set_back(7200)  # then nobody knows how long ago it was
    told = "told" if meanwhile == "nothing" else "refused"
    await until(lambda: [one.stop for one in desk.kept.cards.all()] == [told], "the end of the wish")
    assert bool(desk.desk.stopped) == (told == "told")


async def test_a_stop_in_a_list_waits_for_the_look_at_its_session(desk: Desked) -> None:
    """Nobody is told meanwhile that it cannot be reached."""
    desk.desk.session("One", is_busy=True)
    shown = await listed(desk, "/stop")
    listing: Any = desk.home.listener._parts.agent.listing
    async with held(listing, "_seen") as gate:
        for one in desk.kept.cards.all():
            await desk.kept.cards.change(one.id, lambda found: replace(found, is_stale=True))
        await gate.begun()
        await desk.home.person.taps(shown, "One")
    found = await desk.home.person.sees("is working")
    assert "Yes, stop" in labels(found)
    texts = [str(call.params["text"]) for call in desk.home.api.control.calls("sendMessage")]
    assert not [text for text in texts if "can't be reached" in text]


async def test_a_stop_of_a_prompt_is_held_by_the_lock(desk: Desked, shop: Source) -> None:
    """The agent is away when the person taps, and back when the phone is locked."""
    desk.home.person.write("Go on", to=await desk.notice(shop))
    await desk.phase("running")
    line = await until(lambda: next((one for one in desk.lines() if "⏹ Stop" in labels(one)), None), "the button")
    desk.desk.is_away = True
    await desk.home.person.taps(line, "⏹ Stop")
    await desk.home.person.taps(line, "Yes, stop")
    desk.home.person.write("/lock")
    await desk.home.person.sees("Locked")
    desk.desk.is_away = False
    await desk.looks()
    await until(lambda: desk.prompts()[0].stop == "refused", "the end of the wish")
    assert not desk.desk.stopped


@pytest.mark.parametrize("meanwhile", ["another turn", "hours"])
async def test_a_first_tap_counts_for_no_later_turn(desk: Desked, meanwhile: str) -> None:
    """Its turn ends by itself; or its machine is away for hours. One tap on the old button stops nothing then."""
    source = desk.desk.session("One", is_busy=True)
    await desk.home.person.taps(await listed(desk, "/stop"), "One")

    def sure() -> ShownMessage | None:
        return next((one for one in desk.home.person.shown() if "Yes, stop" in labels(one)), None)

    asked = await until(sure, "the second tap")
    data = next(button.data for row in asked.rows for button in row if button.text == "Yes, stop")
    if meanwhile == "another turn":
        desk.desk.end(source.session_id)
        for one in desk.kept.cards.all():
            desk.home.listener._parts.steps.kick("session", one.id)
        await until(lambda: sure() is None, "the card without the button")
        desk.desk.sessions[source.session_id].is_busy = True
    else:
        desk.desk.hangs = True
        desk.home.clock.advance(7200)
    told = "This page has changed" if meanwhile == "another turn" else hints.TOASTS["sure"]
    assert await desk.home.person.toast(desk.home.person.tap(asked, data=data)) == told
    assert not desk.desk.stopped
