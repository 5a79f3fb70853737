"""Mute: what it keeps from the phone, for how long, and where it is seen."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hermes.model.notice import Retry, Turn
from hermes.model.signals import Retrying, TurnEnded
from tests.listener.phone.test_session_cards import card, labels, listed
from tests.listening import House, house, until
from tests.prompted import PROMPTS, Desked

if TYPE_CHECKING:
    from hermes.model.ask import Source

home = house(sections=PROMPTS)


async def ended(desk: Desked, source: Source) -> None:
    """Let a turn of a quarter of an hour end at the desk, and the notice be looked at."""
    at_s = desk.home.clock.now()
    await desk.kept.notices.take(TurnEnded(Turn(source, "OpenCode", f"msg_{at_s}", at_s - 900, at_s, "Muted.")))


async def test_a_mute_is_not_forgotten(desk: Desked) -> None:
    """The listener tidies every ten minutes, and the first turn of the session still runs."""
    source = desk.desk.session("Fix login flow", is_busy=True)
    assert await desk.home.person.taps(await card(desk), "🔕 Mute") == "No more notices of this one"
    desk.home.clock.advance(601)
    await desk.home.listener._parts.phone.upkeep.tidy(desk.kept)
    await ended(desk, source)
    assert [one.phase for one in desk.kept.notices.all()] == ["dropped"]


async def test_a_mute_outlasts_the_time_for_which_notices_are_kept(desk: Desked) -> None:
    """The session rests for a month, and then goes on. The words of its agent are not kept for so long."""
    source = desk.desk.session("Fix login flow")
    await ended(desk, source)
    await desk.home.person.sees("Muted.")
    await desk.home.person.taps(await card(desk), "🔕 Mute")
    desk.home.clock.advance(30 * 86400.0)
    await desk.home.listener._parts.phone.upkeep.tidy(desk.kept)
    (kept,) = desk.kept.notices.all()
    assert kept.turn is not None
    assert kept.turn.words == ""
    await ended(desk, source)
    assert [one.phase for one in desk.kept.notices.all()] == ["dropped"]


async def test_a_mute_holds_for_what_waits_for_the_desk(home: House) -> None:
    """A turn that has ended, and one that keeps trying."""
    desk = Desked(home)
    await desk.start(questions={"post_after": "60s"})
    done, trying = desk.desk.session("Fix login flow"), desk.desk.session("Add tests", is_busy=True)
    await ended(desk, done)
    await desk.kept.notices.take(Retrying(Retry(trying, "OpenCode", 4, home.clock.now() + 60.0, "rate limit")))
    for title in (done.session_title, trying.session_title):
        await home.person.taps(await card(desk, title), "🔕 Mute")
    after = {one.session_id: one for one in desk.kept.notices.all()}
    assert after[done.session_id].phase == "dropped"
    assert after[trying.session_id].retry is None


async def test_a_mute_is_seen_on_each_card_of_the_session(desk: Desked) -> None:
    """Another process of the agent has a card of its own."""
    ways: Any = desk.home.listener._parts.agent.prompting._ways
    ways["opencode without a port"] = desk.desk
    source = desk.desk.session("Fix login flow")
    first = await card(desk)
    await desk.home.person.taps(first, "🔕 Mute")
    desk.desk.sessions[source.session_id].source = replace(source, server="")
    await desk.home.person.taps(await listed(desk), "Fix login flow")

    def other() -> bool:
        cards = [one for one in desk.home.person.shown() if "💤 waits for you" in one.text]
        return "no notices" in cards[-1].text and "🔔 Notices on" in labels(cards[-1]) and cards[-1] != first

    await until(other, "the card of the other process")
