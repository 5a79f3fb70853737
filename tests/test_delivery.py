"""The way back: an answer is sent, proven, sent again, and told as what it was; nothing is taken for granted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes import spool
from hermes.demo.agent_world import Effect
from hermes.delivery import TAKEN_GRACE_S, UNCONFIRMED_S, UNTAKEN_S, WAITER_GRACE_S
from tests.listening import House, living, question, request, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from hermes.demo.shown import ShownMessage

BOTH = pytest.mark.parametrize("home", ["old", "new"], indirect=True)
ASKED = "Which database?"
AWAY = "can't be reached"


@pytest.fixture
async def home(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[House]:
    """A house with one agent: of the manner that the test names, else new."""
    async with living(tmp_path, getattr(request, "param", "new")) as made:
        yield made


@pytest.fixture
async def portless(tmp_path: Path) -> AsyncIterator[House]:
    """A house whose agent has no port: only its hooks carry answers."""
    async with living(tmp_path) as made:
        await made.start()
        yield made


async def asked(home: House) -> tuple[str, ShownMessage]:
    """Start, let the agent ask, and return request and message."""
    await home.start()
    return home.agent.ask([question()]), await home.person.sees(ASKED)


# --- the outcomes -------------------------------------------------------------------------------------------------


@BOTH
async def test_a_tap_becomes_the_answer(home: House) -> None:
    """Asked, tapped, confirmed, seen working again, put away; the agent got it once."""
    await home.start()
    request_id = home.agent.ask([question()], say="I need a database.")
    shown = await home.person.sees(ASKED)
    assert "I need a database." in shown.text
    assert await home.person.taps(shown, "SQLite") == "SQLite"
    ended = await home.person.sees("✅ SQLite", buttons=False)
    assert ended.message_id == shown.message_id
    await home.closed()
    assert home.agent.effects == [Effect(request_id, (("SQLite",),))]
    assert "working again" in home.person.message(shown.message_id).text


@BOTH
async def test_stopped_and_skipped_by_two_taps(home: House) -> None:
    """A rejection ends the turn; a skip lets the agent decide; both are confirmed."""
    await home.start()
    first, second = home.agent.ask([question("Stop it?")]), home.agent.ask([question("Skip it?")])
    stop, skip = await home.person.sees("Stop it?"), await home.person.sees("Skip it?")
    for message, first_tap, second_tap in ((stop, "⏹ Stop", "Yes, stop"), (skip, "⏭ Skip", "Yes")):
        assert await home.person.taps(message, first_tap) == "Sure? One more tap."
        assert (await home.person.taps(message, second_tap)).startswith("On its way")
    await home.person.sees("⏹ Stopped", buttons=False)
    await home.person.sees("⏭ Skipped", buttons=False)
    await home.closed()
    assert set(home.agent.effects) == {Effect(first, None), Effect(second, ((),))}


@BOTH
async def test_the_desk_is_followed(home: House) -> None:
    """Answered or dismissed there: the buttons go, and the message says so."""
    await home.start()
    first, second = home.agent.ask([question("Answer it?")]), home.agent.ask([question("Dismiss it?")])
    await home.person.sees("Answer it?")
    await home.person.sees("Dismiss it?")
    home.agent.answer(first, [["PostgreSQL"]])
    home.agent.dismiss(second)
    await home.person.sees("🖥 Answered on the computer: PostgreSQL", buttons=False)
    await home.person.sees("🖥 Dismissed on the computer", buttons=False)
    await home.closed()
    assert not [one for one in home.agent.received if one.method == "POST"]


@BOTH
@pytest.mark.parametrize("way", ["abort", "delete", "restart"])
async def test_what_nobody_waits_for_is_closed(home: House, way: str) -> None:
    """Aborted, deleted, lost in a restart: said on the phone within moments, and never answered."""
    request_id, shown = await asked(home)
    if way == "restart":
        home.agent.restart()
    else:
        getattr(home.agent, way)(home.agent.pending[request_id]["sessionID"])
    ended = await home.person.sees("The agent no longer needs this", buttons=False)
    assert ended.message_id == shown.message_id
    await home.closed()
    assert "Already" not in await home.person.toast(home.person.tap(shown, data=shown.rows[0][0].data))


# --- an agent in trouble ------------------------------------------------------------------------------------------


@BOTH
async def test_an_answer_outlasts_an_absence(home: House) -> None:
    """Saved and said so; delivered when the agent is back, and that is told by a message that rings."""
    request_id, shown = await asked(home)
    home.agent.away()
    await home.person.taps(shown, "SQLite")
    saved = await home.person.sees(AWAY, buttons=False)
    assert "💾 SQLite saved" in saved.text
    home.clock.advance(3600)
    home.agent.back()
    told = await home.person.sees("✅ Delivered")
    assert not told.silent
    await home.person.sees("✅ SQLite", buttons=False)
    await home.closed()
    assert home.agent.effects == [Effect(request_id, (("SQLite",),))]


async def test_a_reply_is_sent_again_until_it_takes_effect(home: House) -> None:
    """Errors of the server, and connections that break before or after the reply did its work."""
    request_id, shown = await asked(home)
    home.agent.fault("reply", status=503)
    home.agent.fault("reply", "cut")
    home.agent.fault("reply", "cut_after")
    await home.person.taps(shown, "SQLite")
    await home.person.sees("✅ SQLite", buttons=False)
    await home.closed()
    assert home.agent.effects == [Effect(request_id, (("SQLite",),))]
    bodies = [one.body for one in home.agent.received if one.route == "reply"]
    assert bodies == [{"answers": [["SQLite"]]}] * 3, "a retry carries the same frozen answer"


async def test_a_true_without_effect_is_no_success(home: House) -> None:
    """`200 true` proves nothing: the answer stays on its way, and is sent again."""
    request_id, shown = await asked(home)
    home.agent.fault("reply", "lie")
    await home.person.taps(shown, "SQLite")
    await until(lambda: [one for one in home.agent.received if one.route == "reply"], "a reply")
    looked = len(home.agent.received)
    await until(lambda: len(home.agent.received) > looked + 12, "more looks at what became of it")
    assert home.entry().state.phase == "sending"
    assert home.agent.effects == []
    home.clock.advance(UNCONFIRMED_S)
    await home.person.sees("✅ SQLite", buttons=False)
    assert home.agent.effects == [Effect(request_id, (("SQLite",),))]


async def test_a_lie_about_a_zombie_is_no_success(home: House) -> None:
    """The session was aborted while nobody heard of it: nothing is sent, and the person is told."""
    request_id, shown = await asked(home)
    home.agent.hold_events()
    home.agent.abort(home.agent.pending[request_id]["sessionID"])
    home.agent.release_events(lost=True)
    await home.person.taps(shown, "SQLite")
    late = await home.person.sees("came too late")
    assert "the agent had stopped waiting" in late.text
    assert not late.silent
    await home.closed()
    assert not [one for one in home.agent.received if one.method == "POST"]


@BOTH
async def test_the_desk_was_faster(home: House) -> None:
    """Another answer took effect while ours was on its way: never shown as ours."""
    request_id, shown = await asked(home)
    home.agent.away()
    await home.person.taps(shown, "SQLite")
    await home.person.sees(AWAY)
    home.agent.answer(request_id, [["PostgreSQL"]])
    home.agent.back()
    late = await home.person.sees("came too late")
    assert "SQLite" in late.text
    assert "already been answered on the computer" in late.text
    await home.person.sees("🖥 Answered on the computer: PostgreSQL", buttons=False)
    await home.closed()
    assert home.agent.effects == [Effect(request_id, (("PostgreSQL",),))]


async def test_the_desk_was_faster_by_a_hair(home: House) -> None:
    """It answers between our look and our reply, which is then refused with 404."""
    request_id, shown = await asked(home)
    home.agent.fault("reply", "slow", delay_s=0.3)
    await home.person.taps(shown, "SQLite")
    await until(lambda: [one for one in home.agent.received if one.route == "reply"], "a reply under way")
    home.agent.dismiss(request_id)
    late = await home.person.sees("came too late")
    assert "dismissed on the computer" in late.text
    await home.closed()


async def test_the_same_answer_at_the_desk_is_ours(home: House) -> None:
    """Who was first cannot be told, and need not be: what was wanted is what took effect."""
    request_id, shown = await asked(home)
    home.agent.away()
    await home.person.taps(shown, "SQLite")
    await home.person.sees(AWAY)
    home.agent.answer(request_id, [["SQLite"]])
    home.agent.back()
    await home.person.sees("✅ Delivered")
    await home.closed()


async def test_a_wrong_password_keeps_the_answer(home: House, caplog: pytest.LogCaptureFixture) -> None:
    """It waits until somebody mends the configuration or the server; the password is in no log."""
    request_id, shown = await asked(home)
    home.agent.password = "hunter2"
    await home.person.taps(shown, "SQLite")
    await home.person.sees(AWAY)
    assert "wants another user name or password" in caplog.text
    home.agent.password = ""
    await home.person.sees("✅ Delivered")
    assert home.agent.effects == [Effect(request_id, (("SQLite",),))]


@BOTH
async def test_an_ask_without_a_call_is_proven_by_its_event(home: House) -> None:
    """Nothing else can: our answer is ours, the desk's is the desk's."""
    await home.start()
    ours, theirs = (home.agent.ask([question(text)], tool=False) for text in ("Ours?", "Theirs?"))
    await home.person.sees("Theirs?")
    home.agent.answer(theirs, [["PostgreSQL"]])
    await home.person.sees("🖥 Answered on the computer: PostgreSQL", buttons=False)
    await home.person.taps(await home.person.sees("Ours?"), "SQLite")
    await home.person.sees("✅ SQLite", buttons=False)
    await home.closed()
    assert Effect(ours, (("SQLite",),)) in home.agent.effects


async def test_an_event_tells_who_was_faster_where_no_call_does(home: House) -> None:
    """A lie of the old kind, without a tool part: the desk's answer is not taken for ours."""
    await home.start()
    request_id = home.agent.ask([question()], tool=False)
    shown = await home.person.sees(ASKED)
    home.agent.fault("reply", "slow", delay_s=0.3)
    home.agent.fault("reply", "lie")
    await home.person.taps(shown, "SQLite")
    await until(lambda: [one for one in home.agent.received if one.route == "reply"], "a reply under way")
    home.agent.answer(request_id, [["PostgreSQL"]])
    await home.person.sees("came too late")
    await home.person.sees("🖥 Answered on the computer: PostgreSQL", buttons=False)
    await home.closed()


async def test_a_slow_tool_is_waited_for(home: House) -> None:
    """The reply was taken, its call goes on for a while: neither success nor failure until it ends."""
    request_id, shown = await asked(home)
    home.agent.finishes = False
    home.agent.hold_tools()
    await home.person.taps(shown, "SQLite")
    await until(lambda: home.agent.effects, "the reply")
    assert home.entry().state.phase == "sending"
    home.agent.release_tools()
    await home.person.sees("✅ SQLite", buttons=False)
    home.agent.finish(home.agent.sessions[home.entries()[0].ask.source.session_id].id if home.entries() else request_id)


async def test_a_server_that_was_taken_out_of_the_configuration(home: House) -> None:
    """The answer waits, and is delivered when the server is named again."""
    request_id, shown = await asked(home)
    home.agent.away()
    await home.person.taps(shown, "SQLite")
    await home.person.sees(AWAY)
    await home.stop()
    agents, servers = home.agents, home.servers
    home.agents, home.servers = [], []
    await home.start()
    assert home.entry().state.phase == "sending"
    await home.stop()
    home.agents, home.servers = agents, servers
    home.agent.back()
    await home.start()
    await home.person.sees("✅ Delivered")
    assert home.agent.effects == [Effect(request_id, (("SQLite",),))]
