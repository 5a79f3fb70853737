"""The way back: an answer is sent, proven, sent again, and told as what it was; nothing is taken for granted."""

from __future__ import annotations

import json
import math
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from hermes.core.graces import (
    HOOK_GRACE_S,
    LAY_AGAIN_S,
    LONGEST_RETRY_S,
    NO_EFFECT_S,
    TAKEN_GRACE_S,
    UNCONFIRMED_S,
    UNTAKEN_S,
)
from hermes.hook import spool
from hermes.sandbox.opencode.events import Effect
from tests.listening import BOTH, PATIENCE_S, House, a_request, house, question, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hermes.sandbox.opencode.events import Fault
    from hermes.sandbox.phone_values import ShownMessage

ASKED = "Which database?"
AWAY = "can't be reached"
home = house("new")
portless = house(started=True)


async def asked(home: House, **more: Any) -> tuple[str, ShownMessage]:
    """Start, let the agent ask, and return request and message."""
    await home.start()
    return home.agent.ask([question()], **more), await home.person.sees(ASKED)


@asynccontextmanager
async def replying(home: House, shown: ShownMessage) -> AsyncIterator[None]:
    """Tap; in the block the reply has reached the agent's server, which does nothing with it before the end."""
    go_on, fault_of = threading.Event(), home.agent.take_fault

    def held(route: str) -> Fault | None:
        if route == "reply":
            go_on.wait(PATIENCE_S)
        return fault_of(route)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(home.agent, "take_fault", held)
        try:
            await home.person.taps(shown, "SQLite")
            await until(lambda: [one for one in home.agent.received if one.route == "reply"], "a reply under way")
            yield
        finally:
            go_on.set()


async def looks_again(home: House) -> None:
    """Let time pass from look to look at an accepted reply, less in all than it has to show its effect."""
    errands, entry_id, seen_s = home.listener._parts.agent.errands, home.entry().id, None
    for _ in range(5):
        await until(lambda: errands.get(entry_id).look_s not in {None, seen_s}, "a pause before a look")  # noqa: B023
        seen_s = errands.get(entry_id).look_s
        assert seen_s is not None
        home.clock.advance(max(0.0, seen_s - home.clock.monotonic()))


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
    with home.clock.standing():
        await home.person.taps(shown, "SQLite")
        await until(lambda: [one for one in home.agent.received if one.route == "reply"], "a reply")
        await looks_again(home)
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
    home.agent.fault("events", times=1000)
    home.agent.cut_events()
    await until(lambda: [one.route for one in home.agent.received].count("events") > 1, "a stream that is refused")
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
    async with replying(home, shown):
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
    home.agent.fault("reply", "lie")
    async with replying(home, shown):
        home.agent.answer(request_id, [["PostgreSQL"]])
    await home.person.sees("came too late")
    await home.person.sees("🖥 Answered on the computer: PostgreSQL", buttons=False)
    await home.closed()


@BOTH
async def test_a_dismissal_at_the_desk_is_heard(home: House) -> None:
    """No call proves it: the event does."""
    request_id, shown = await asked(home, tool=False)
    async with replying(home, shown):
        home.agent.dismiss(request_id)
    late = await home.person.sees("came too late")
    assert "dismissed on the computer" in late.text


@BOTH
async def test_a_dismissal_at_the_desk_is_heard_of_an_open_ask_too(home: House) -> None:
    """It is shown as what it was, not as an ask that nobody waits for."""
    await home.start()
    request_id = home.agent.ask([question()], tool=False)
    await home.person.sees(ASKED)
    home.agent.dismiss(request_id)
    await home.person.sees("🖥 Dismissed on the computer", buttons=False)


@pytest.mark.parametrize("lost", [False, True])
async def test_an_event_may_come_late_or_never(home: House, lost: bool) -> None:
    """It is waited for; without any, that a live question was replied to is the best there is."""
    request_id, shown = await asked(home, tool=False)
    with home.clock.standing():
        async with replying(home, shown):
            home.agent.hold_events()
        await until(lambda: home.agent.effects, "the reply")
        await looks_again(home)
        assert home.entry().state.phase == "sending"
    home.agent.release_events(lost=lost)
    if lost:
        home.clock.advance(UNCONFIRMED_S)
    await home.person.sees("✅ SQLite", buttons=False)
    assert home.agent.effects == [Effect(request_id, (("SQLite",),))]


async def test_what_was_refused_is_not_ours_without_a_word(home: House) -> None:
    """404, no call, no event: somebody else ended it, and it is not known how."""
    request_id, shown = await asked(home, tool=False)
    async with replying(home, shown):
        home.agent.hold_events()
        home.agent.answer(request_id, [["PostgreSQL"]])
        home.agent.release_events(lost=True)
    late = await home.person.sees("came too late")
    assert "stopped waiting" in late.text


async def test_a_refusal_of_what_is_open_is_tried_again(home: House) -> None:
    """404 for a question that is still listed: said to be away, and sent again."""
    request_id, shown = await asked(home)
    home.agent.fault("reply", status=404)
    await home.person.taps(shown, "SQLite")
    await home.person.sees("✅ Delivered")
    assert home.agent.effects == [Effect(request_id, (("SQLite",),))]


async def test_a_slow_tool_is_waited_for(home: House) -> None:
    """The reply was taken, its call goes on for a while: neither success nor failure until it ends."""
    request_id, shown = await asked(home)
    home.agent.finishes = False
    home.agent.hold_tools()
    await home.person.taps(shown, "SQLite")
    await until(lambda: not home.agent.pending, "the reply")
    assert home.entry().state.phase == "sending"
    home.agent.release_tools()
    await home.person.sees("✅ SQLite", buttons=False)
    assert home.agent.effects == [Effect(request_id, (("SQLite",),))]


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


# --- by a waiting hook --------------------------------------------------------------------------------------------

REPLY = '{"requestID": "que_1", "kind": "reply", "answers": [["SQLite"]]}'


async def shown(portless: House) -> ShownMessage:
    """Let a hook hand a question over, and return its message."""
    portless.hook("question.asked", a_request("que_1"))
    return await portless.person.sees(ASKED)


async def laid_ready(portless: House, wait: str) -> str:
    """Take the answer, as a waiting hook does; what it would print."""
    return await until(lambda: spool.take_answer(portless.store, wait), "an answer")


def replied(portless: House, *answers: str, request_id: str = "que_1") -> None:
    """Tell what a plugin hears of its own agent."""
    told = {"requestID": request_id, "sessionID": "ses_1", "answers": [list(answers)]}
    portless.hook("question.replied", told)


async def test_a_hook_carries_the_answer_and_its_plugin_confirms_it(portless: House) -> None:
    """Laid ready, taken, printed; success is what the plugin reports, not that it was taken."""
    with portless.waiting("que_1") as wait:
        await portless.person.taps(await shown(portless), "SQLite")
        assert await laid_ready(portless, wait) == REPLY
    portless.word("receipt", "que_1")
    await until(lambda: portless.entry().waiter_taken, "the receipt")
    assert portless.entry().state.phase == "sending"
    replied(portless, "SQLite")
    await portless.person.sees("✅ SQLite", buttons=False)
    await portless.closed()


@pytest.mark.parametrize(("label", "confirm", "kind"), [("⏹ Stop", "Yes, stop", "reject"), ("⏭ Skip", "Yes", "reply")])
async def test_a_hook_carries_a_no_and_a_skip(portless: House, label: str, confirm: str, kind: str) -> None:
    """The text for the plugin says which; the plugin's own event confirms it."""
    with portless.waiting("que_1") as wait:
        message = await shown(portless)
        await portless.person.taps(message, label)
        await portless.person.taps(message, confirm)
        assert f'"kind": "{kind}"' in await laid_ready(portless, wait)
    if kind == "reject":
        portless.hook("question.rejected", {"requestID": "que_1", "sessionID": "ses_1"})
        await portless.person.sees("⏹ Stopped", buttons=False)
    else:
        replied(portless)
        await portless.person.sees("⏭ Skipped", buttons=False)


async def test_an_end_that_is_told_before_its_answer_is_proven_first(home: House) -> None:
    """A stream that comes late, the last event first: the session stopped, since it had its answer by the hook."""
    await home.start()
    await until(lambda: home.listener._parts.agent.followers[0].is_connected, "its list taken in")
    home.agent.hold_events()
    request_id = home.agent.ask([question()])
    request = home.agent.pending[request_id]
    with home.waiting(request_id) as wait:
        home.hook("question.asked", request)
        await home.person.taps(await home.person.sees(ASKED), "SQLite")
        await laid_ready(home, wait)
    home.word("receipt", request_id)
    home.agent.answer(request_id, [["SQLite"]])
    home.agent.release_events(backwards=True)
    await home.person.sees("✅ SQLite", buttons=False)
    await home.closed()


async def test_a_hook_that_takes_nothing_is_told_of(portless: House) -> None:
    """An answer that lies ready for long is not delivered, and the phone says so."""
    with portless.waiting("que_1") as wait:
        await portless.person.taps(await shown(portless), "SQLite")
        await until(
            lambda: portless.listener._parts.agent.hooks.is_ready(portless.entry().ask), "the answer laid ready"
        )
        portless.clock.advance(UNTAKEN_S + 1)
        await portless.person.sees(AWAY)
        assert await laid_ready(portless, wait) == REPLY
    replied(portless, "SQLite")
    await portless.person.sees("✅ Delivered")


async def test_an_answer_is_laid_ready_again_for_the_next_hook(portless: House) -> None:
    """Taken, and still a hook waits: its plugin had no success, so it gets the same answer again."""
    with portless.waiting("que_1") as wait:
        await portless.person.taps(await shown(portless), "SQLite")
        assert await laid_ready(portless, wait) == REPLY
        portless.word("receipt", "que_1")
        portless.clock.advance(LAY_AGAIN_S + 1)
        assert await laid_ready(portless, wait) == REPLY
        replied(portless, "SQLite")
        await portless.person.sees("✅ SQLite", buttons=False)


async def test_an_answer_that_is_taken_again_and_again_without_effect_is_told_of(portless: House) -> None:
    """The plugin reaches its agent no more: the phone says that it can't be reached, and it is tried on, slowly."""
    with portless.waiting("que_1") as wait:
        await portless.person.taps(await shown(portless), "SQLite")
        for _ in range(math.ceil(NO_EFFECT_S / (LAY_AGAIN_S + 1)) + 1):
            assert await laid_ready(portless, wait) == REPLY
            portless.word("receipt", "que_1")
            portless.clock.advance(LAY_AGAIN_S + 1)
        await portless.person.sees(AWAY)
        assert not portless.listener._parts.agent.hooks.is_ready(portless.entry().ask)
        portless.clock.advance(LONGEST_RETRY_S)
        assert await laid_ready(portless, wait) == REPLY
        replied(portless, "SQLite")
        await portless.person.sees("✅ Delivered")


@pytest.mark.parametrize(("taken", "grace_s"), [(False, HOOK_GRACE_S), (True, TAKEN_GRACE_S)])
async def test_an_answer_that_nobody_reports_came_too_late(portless: House, taken: bool, grace_s: float) -> None:
    """The hook died before or after it took it, and its agent with it; no text is left for a later one."""
    with portless.waiting("que_1") as wait:
        await portless.person.taps(await shown(portless), "SQLite")
        await until(
            lambda: portless.listener._parts.agent.hooks.is_ready(portless.entry().ask), "the answer laid ready"
        )
        if taken:
            await laid_ready(portless, wait)
            portless.word("receipt", "que_1")
            await until(lambda: portless.entry().waiter_taken, "the receipt")
    await until(
        lambda: portless.listener._parts.agent.errands.get(portless.entry().id).alone_since_s,
        "a look that finds nobody",
    )
    portless.clock.advance(grace_s + 1)
    late = await portless.person.sees("came too late")
    assert "stopped waiting" in late.text
    await portless.closed()
    assert spool.take_answer(portless.store, wait) is None


async def test_the_desk_beside_a_waiting_hook(portless: House) -> None:
    """Other answers of the plugin's own agent are the desk's."""
    with portless.waiting("que_1") as wait:
        await portless.person.taps(await shown(portless), "SQLite")
        await until(
            lambda: portless.listener._parts.agent.hooks.is_ready(portless.entry().ask), "the answer laid ready"
        )
        replied(portless, "PostgreSQL")
        await portless.person.sees("came too late")
        await portless.closed()
        assert spool.take_answer(portless.store, wait) is None


async def test_a_hook_carries_what_the_server_cannot(home: House) -> None:
    """The server is out of reach and a hook waits; it dies with the answer, and then the server carries it."""
    await home.start()
    request_id = home.agent.ask([question()])
    shown = await home.person.sees(ASKED)
    with home.waiting(request_id) as wait:
        home.agent.away()
        await home.person.taps(shown, "SQLite")
        assert request_id in await laid_ready(home, wait)
        assert home.entry().route == "waiter"
    home.agent.back()
    await until(
        lambda: home.listener._parts.agent.errands.get(home.entry().id).alone_since_s, "a look that finds nobody"
    )
    home.clock.advance(HOOK_GRACE_S + 1)
    await home.person.sees("✅ SQLite", buttons=False)
    assert home.agent.effects == [Effect(request_id, (("SQLite",),))]


async def test_a_hook_carries_what_the_server_refuses(home: House) -> None:
    """The configured password is wrong, and a hook waits: it needs none."""
    await home.start()
    request_id = home.agent.ask([question()])
    shown = await home.person.sees(ASKED)
    with home.waiting(request_id) as wait:
        home.agent.password = "hunter2"
        await home.person.taps(shown, "SQLite")
        assert request_id in await laid_ready(home, wait)


async def test_the_server_carries_it_where_both_can(home: House) -> None:
    """A hook waits too, and gets nothing: one route at a time."""
    await home.start()
    request_id = home.agent.ask([question()])
    shown = await home.person.sees(ASKED)
    with home.waiting(request_id) as wait:
        await home.person.taps(shown, "SQLite")
        await home.person.sees("✅ SQLite", buttons=False)
        assert spool.take_answer(home.store, wait) is None
    assert home.agent.effects == [Effect(request_id, (("SQLite",),))]


def rewrite(home: House, agent: str, **state: str) -> None:
    """Give the question "Which new?" to this agent, while no listener runs."""
    for path in (home.store / "pending").glob("*.json"):
        record = json.loads(path.read_text())
        if "Which new?" in path.read_text():
            record["entry"]["ask"]["source"]["agent"] = agent
            record["entry"]["state"] |= state
            path.write_text(json.dumps(record))


@pytest.mark.parametrize("phase", ["open", "settled"])
async def test_an_ask_of_an_agent_that_only_a_newer_hermes_knows_holds_up_no_other(portless: House, phase: str) -> None:
    """After a downgrade the listener starts, and finds out that the hook of another ask has left."""
    home = portless
    with home.waiting("que_1"):
        home.hook("question.asked", a_request("que_1", question("Which new?")))
        await home.person.sees("Which new?")
        with home.waiting("que_2"):
            home.hook("question.asked", a_request("que_2", question(), session="ses_2", call="call_2"))
            await home.person.sees(ASKED)
            await until(lambda: all(one.phone.message_id for one in home.entries()), "both are noted")
            await home.stop()
            rewrite(home, "newagent", phase=phase)
            await home.start()

        def left() -> bool:
            home.pass_time(2)
            return all(one.ask.source.agent == "newagent" for one in home.entries())

        await until(left, "the end of the other ask")


async def test_an_answer_to_an_agent_that_only_a_newer_hermes_knows_waits_for_it(portless: House) -> None:
    """The phone says so once; the newer version delivers the answer."""
    home = portless
    with home.waiting("que_1") as wait:
        home.hook("question.asked", a_request("que_1", question("Which new?")))
        shown = await home.person.sees("Which new?")
        await home.noted(shown)
        await home.stop()
        rewrite(home, "newagent")
        await home.start()
        await home.person.taps(shown, "SQLite")
        told = await home.person.sees("is unknown to this version of Hermes; it gets your answer once")
        assert told.message_id == shown.message_id
        await home.stop()
        assert spool.take_answer(home.store, wait) is None
        rewrite(home, "opencode")
        await home.start()
        await laid_ready(home, wait)
        replied(home, "SQLite")
        await home.person.sees("✅ Delivered to")


async def test_a_text_that_is_typed_while_claude_code_asks_ends_no_question(portless: House) -> None:
    """The hook blocks the turn, which takes the text at its next step."""
    shared: dict[str, Any] = {"session_id": "ses_c", "prompt_id": "p1", "cwd": "/home/dev/shop"}
    options = [{"label": "A", "description": ""}, {"label": "B", "description": ""}]
    asked = {"questions": [{"question": "Which?", "header": "W", "options": options, "multiSelect": False}]}
    ask = {"hook_event_name": "PreToolUse", "id": "c1", "tool_name": "AskUserQuestion", "tool_input": asked}
    with portless.waiting("c1", "claude-code") as wait:
        spool.drop(portless.store, spool.record("claude-code", shared | ask))
        spool.nudge(portless.store)
        seen = await portless.person.sees("Which?", buttons=True)
        await portless.noted(seen)
        spool.drop(portless.store, spool.record("claude-code", shared | {"hook_event_name": "UserPromptSubmit"}))
        spool.nudge(portless.store)
        await until(lambda: not spool.listing(portless.store), "the text taken in")
        await portless.person.taps(seen, "A")
        assert '"A"' in await laid_ready(portless, wait)
