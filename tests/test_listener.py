"""The whole listener in one process: what is asked ends as product.md says, whatever the agent does meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes.demo.agent_world import Effect
from tests.listening import House, house, question

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def home(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[House]:
    """A house with one agent: of the manner that the test names, else new."""
    manner: str = getattr(request, "param", "new")
    with house(tmp_path / "hermes", manner) as made:
        yield made
        await made.stop()


BOTH = pytest.mark.parametrize("home", ["old", "new"], indirect=True)

# --- the outcomes -------------------------------------------------------------------------------------------------


@BOTH
async def test_a_tap_becomes_the_answer(home: House) -> None:
    """Asked, tapped, confirmed, seen working again, put away; the agent got it once."""
    await home.start()
    asked = home.agent.ask([question()], say="I need a database.")
    shown = await home.person.sees("Which database?")
    assert "I need a database." in shown.text
    assert await home.person.taps(shown, "SQLite") == "SQLite"
    ended = await home.person.sees("✅ SQLite", buttons=False)
    assert ended.message_id == shown.message_id
    await home.closed()
    assert home.agent.effects == [Effect(asked, (("SQLite",),))]
    assert "working again" in home.person.message(shown.message_id).text


@BOTH
async def test_stopped_and_skipped_by_two_taps(home: House) -> None:
    """A rejection ends the turn; a skip lets the agent decide; both are confirmed."""
    await home.start()
    first, second = home.agent.ask([question("Stop?")]), home.agent.ask([question("Skip?")])
    stop, skip = await home.person.sees("Stop?"), await home.person.sees("Skip?")
    for message, first_tap, second_tap in ((stop, "Stop the agent", "Yes, stop"), (skip, "let it decide", "Yes, ")):
        assert await home.person.taps(message, first_tap) == "Sure? One more tap."
        assert await home.person.taps(message, second_tap) != "Sure? One more tap."
    await home.person.sees("⏹ Stopped", buttons=False)
    await home.person.sees("⏭ Skipped", buttons=False)
    await home.closed()
    assert set(home.agent.effects) == {Effect(first, None), Effect(second, ((),))}
