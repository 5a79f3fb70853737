"""What agents tell: one ask is one entry whichever way it comes; calls become requests, or never do."""

from __future__ import annotations

import errno
import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hermes.core.graces import HOOK_GRACE_S, LEFT_GRACE_S
from hermes.hook import spool
from hermes.listener.agent import arrivals
from hermes.listener.agent.hooks import STRAY_S
from hermes.listener.loops import DOUBT_S, REMEMBER_S
from hermes.model.ask import Source
from hermes.model.events import Ended
from tests import asks
from tests.listener.gates import held
from tests.listening import BOTH, House, a_request, house, question, until

ASKED = "Which database?"
FAST: dict[str, Any] = {"tries": 3, "delay": "10ms"}
home = house("new")
portless = house(started=True)
two = house("old", "new")


def call(home: House, call_id: str, session: str, *questions: Any) -> None:
    """Tell that a tool call began, as a plugin does before there is a request."""
    told = {"tool": "question", "callID": call_id, "sessionID": session}
    home.hook("tool.execute.before", {**told, "args": {"questions": list(questions or (question(),))}})


async def test_an_event_that_is_not_saved_yet_does_not_count_as_heard(home: House) -> None:
    """The listener ends in the middle of it; the next one looks for what was told since then."""
    listener = await home.start()
    await until(lambda: listener._parts.agent.followers[0].is_connected, "the end of the list")
    asked_s = home.clock.now()
    async with held(listener._store, "create") as gate:
        home.agent.ask([question()])
        await gate.begun()
        await home.stop()
    [followed] = [one for one in listener._store.home.followed() or () if one.server == "oc1"]
    assert followed.until_s <= asked_s


async def test_what_is_told_while_the_list_is_read_does_not_count_as_heard(home: House) -> None:
    """The list does not show the end of a turn; a listener that dies now leaves it to the next one."""
    home.agent.fault("all_sessions", "slow", delay_s=1.0)
    listener = await home.start()
    [follower] = [one for one in listener._parts.agent.followers if one.server.name == "oc1"]
    await until(lambda: any(one.route == "all_sessions" for one in home.agent.received), "a look at the list")
    told_s = home.clock.now()
    await until(lambda: follower.is_connected, "the end of the list")
    assert follower._heard_s <= told_s


@BOTH
@pytest.mark.parametrize("tool", [True, False], ids=["a call", "no call"])
async def test_what_vanished_with_its_instance_is_closed(home: House, *, tool: bool) -> None:
    """A dispose or a reload ends what one directory asked, by a word of its own; another directory goes on."""
    await home.start()
    home.agent.ask([question("Gone?")], tool=tool)
    home.agent.ask([question("Stays?")], directory="/home/dev/other")
    for text in ("Gone?", "Stays?"):
        await home.person.sees(text, buttons=True)
    home.agent.dispose()
    await home.person.sees("The agent no longer needs this")
    await until(lambda: len(home.entries()) == 1, "one entry left")
    assert "Stays?" in (await home.person.sees("Stays?", buttons=True)).text


async def test_an_end_that_no_event_tells_is_found_within_a_minute(home: House) -> None:
    """Its server is connected all the while."""
    await home.start()
    request_id = home.agent.ask([question()])
    await home.person.sees(ASKED, buttons=True)
    home.agent.hold_events()
    home.agent.delete(home.agent.pending[request_id]["sessionID"])
    home.agent.release_events(lost=True)
    home.clock.advance(DOUBT_S)
    await home.person.sees("The agent no longer needs this")
    await home.closed()


async def test_nothing_is_kept_of_a_closed_ask(home: House) -> None:
    """Hints, tries and words of hooks are forgotten with it."""
    await home.start(matching=FAST)
    session = home.agent.session()
    call(home, home.agent.call([question()], session=session), session)
    await home.phase("matching")
    request_id = home.agent.ask([question("Another?")])
    await home.person.sees("Another?", buttons=True)
    home.word("waiter.gone", request_id)
    await until(
        lambda: any(one.has_left for one in home.listener._parts.agent.errands._errands.values()),
        "the word of its hook",
    )
    home.agent.answer(request_id, [["SQLite"]])
    home.agent.finish(session)
    await home.closed()
    home.clock.advance(DOUBT_S)
    await until(lambda: not home.listener._parts.agent.errands._errands, "an empty memory")


# --- one ask, one entry -------------------------------------------------------------------------------------------


@BOTH
async def test_hook_event_and_list_tell_of_one_ask(home: House) -> None:
    """Doubled events, the plugin's word, and a new connection: one message."""
    home.agent.doubles_events = True
    await home.start()
    request_id = home.agent.ask([question()])
    await home.person.sees(ASKED)
    pending = home.agent.pending[request_id]
    home.hook("question.asked", pending)
    call(home, pending["tool"]["callID"], pending["sessionID"])
    home.agent.cut_events()
    await until(lambda: len([one for one in home.agent.received if one.route == "events"]) == 2, "a second stream")
    await until(lambda: not spool.listing(home.store), "an empty inbox")
    assert len(home.entries()) == 1
    await home.person.taps(await home.person.sees(ASKED), "SQLite")
    await home.person.sees("✅ SQLite", buttons=False)
    await home.closed()
    home.hook("question.asked", pending)
    await until(lambda: not spool.listing(home.store), "an empty inbox")
    assert home.entries() == []
    assert len(home.person.shown()) == 1


async def test_what_was_asked_while_nobody_listened_is_found(home: House) -> None:
    """In every folder with a session of late; a zombie of the list is passed over."""
    home.agent.ask([question("Here?")], say="Some words.")
    home.agent.ask([question("There?")], directory="/home/dev/other")
    dead = home.agent.ask([question("Dead?")])
    home.agent.abort(home.agent.pending[dead]["sessionID"])
    await home.start()
    here, there = await home.person.sees("Here?"), await home.person.sees("There?")
    assert "Some words." in here.text
    assert "other" in there.text
    assert home.person.find("Dead?") is None
    assert len(home.entries()) == 2


async def test_what_was_asked_in_a_long_absence_is_found(home: House) -> None:
    """A night without a listener is longer than an ask lives; it never began to, since nobody could see it."""
    await home.start()
    await home.stop()
    home.agent.ask([question()])
    home.clock.advance(8 * 3600)
    await home.start()
    await home.person.sees(ASKED)


async def test_the_first_listener_of_all_may_be_killed_at_once(home: House) -> None:
    """What was asked after its first breath is looked for by the next, though the clock jumped meanwhile."""
    await home.start()
    memory = home.store / "telegram.json"
    kept = memory.read_bytes()
    await home.stop()
    memory.write_bytes(kept)
    home.agent.ask([question()])
    home.clock.advance(8 * 3600)
    await home.start()
    await home.person.sees(ASKED)


async def test_a_server_out_of_reach_is_asked_about_all_the_time_that_it_was(
    home: House, caplog: pytest.LogCaptureFixture
) -> None:
    """A listener that was started anew meanwhile knows no more of it than the one before."""
    await home.start()
    home.agent.away()
    await until(lambda: "is lost" in caplog.text, "the break")
    home.agent.ask([question()])
    home.clock.advance(8 * 3600)
    await home.stop()
    await home.start(settle=False)
    await home.polled()
    await home.stop()
    home.agent.back()
    await home.start()
    await home.person.sees(ASKED)


async def test_a_hooks_question_that_a_server_already_saw_answered_is_closed(home: House) -> None:
    """Told by a hook that does not wait, answered before the server was followed: the call itself proves it."""
    request_id = home.agent.ask([question()])
    pending = home.agent.pending[request_id]
    home.agent.answer(request_id, [["SQLite"]])
    home.hook("question.asked", pending)
    await home.start()
    await home.person.sees("🖥 Answered on the computer: SQLite")
    await home.closed()


async def test_what_ended_while_nobody_listened_is_closed(home: House) -> None:
    """Answered at the desk, dismissed, deleted: each found out at the start."""
    await home.start()
    ids = {text: home.agent.ask([question(text)]) for text in ("Answered?", "Dismissed?", "Deleted?")}
    for text in ids:
        await home.person.sees(text)
    await home.stop()
    home.agent.answer(ids["Answered?"], [["SQLite"]])
    home.agent.dismiss(ids["Dismissed?"])
    home.agent.delete(home.agent.pending[ids["Deleted?"]]["sessionID"])
    await home.start()
    await home.person.sees("🖥 Answered on the computer: SQLite")
    await home.person.sees("🖥 Dismissed on the computer")
    await home.person.sees("The agent no longer needs this")


async def test_a_server_in_trouble_is_tried_again(home: House, caplog: pytest.LogCaptureFixture) -> None:
    """One folder fails; the others' questions are found, and soon its own: no event would ever tell of them."""
    home.agent.ask([question("Here?")])
    home.agent.ask([question("There?")], directory="/home/dev/other")
    home.agent.fault("questions", status=400)
    await home.start()
    await until(lambda: "are not known" in caplog.text, "a warning")
    await until(lambda: len(home.entries()) == 1, "one of them")
    await home.person.sees("Here?")
    await home.person.sees("There?")


async def test_slow_folders_hold_up_no_event(home: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many; what waits in them comes once they answer."""
    monkeypatch.setattr(arrivals, "PATIENCE_S", 0.2)
    for number in range(5):
        home.agent.ask([question(f"Slow {number}?")], directory=f"/mnt/{number}")
    home.agent.fault("questions", "slow", delay_s=2.0, times=2)
    listener = await home.start()
    [follower] = [one for one in listener._parts.agent.followers if one.server.name == "oc1"]
    await until(lambda: follower.is_connected, "the events")
    home.agent.ask([question("Meanwhile?")])
    meanwhile = await home.person.sees("Meanwhile?")
    slow = [await home.person.sees(f"Slow {number}?") for number in range(5)]
    assert meanwhile.message_id < min(one.message_id for one in slow)


async def test_a_record_that_cannot_be_read_hides_no_other_question(home: House) -> None:
    """It stands before the other one in the list of their folder."""
    broken = home.agent.ask([question("First?")])
    home.agent.ask([question("Second?")])
    session = home.agent.sessions[home.agent.pending[broken]["sessionID"]]
    states = [part["state"] for one in session.messages for part in one["parts"] if part.get("type") == "tool"]
    kept = [state["status"] for state in states]
    for state in states:
        state["status"] = 7
    await home.start()
    await home.person.sees("Second?", buttons=True)
    for state, status in zip(states, kept, strict=True):
        state["status"] = status
    await home.person.sees("First?", buttons=True)


async def test_an_error_in_the_middle_begins_the_following_anew(home: House, caplog: pytest.LogCaptureFixture) -> None:
    """Refused where nothing is ever refused: logged, and after a pause it is followed again."""
    home.agent.fault("all_sessions", status=503)
    await home.start()
    await until(lambda: "/experimental/session: 503" in caplog.text, "an error in the log")
    home.agent.ask([question()])
    await home.person.sees(ASKED)


async def test_a_zombie_is_not_posted_again(home: House, caplog: pytest.LogCaptureFixture) -> None:
    """It stays listed for ever: closed on the phone, it stays closed; one that was never seen is passed over."""
    caplog.set_level(logging.INFO, logger="hermes")
    await home.start()
    seen = home.agent.ask([question()])
    await home.person.sees(ASKED)
    home.agent.abort(home.agent.pending[seen]["sessionID"])
    await home.closed()
    home.agent.hold_events()
    unseen = home.agent.ask([question("Never seen?")])
    home.agent.abort(home.agent.pending[unseen]["sessionID"])
    home.agent.release_events(lost=True)
    home.agent.cut_events()
    await until(lambda: "connected, 2 questions are open there" in caplog.text, "the list taken in")
    assert "is listed, but its session no longer waits" in caplog.text
    assert len(home.person.shown()) == 1
    assert home.entries() == []


@pytest.mark.parametrize("how", ["answered", "dismissed"])
async def test_an_end_that_comes_before_its_question_is_known(home: House, how: str) -> None:
    """The session goes on, so nothing but that news tells of the end, and it comes once."""
    await home.start()
    agent = home.agent
    agent.hold_events()
    request = agent.ask([question()])
    if how == "dismissed":
        agent.dismiss(request)
    else:
        agent.answer(request, [["SQLite"]])
    agent.release_events(backwards=True)
    what = "Dismissed" if how == "dismissed" else "Answered"
    await home.person.sees(f"🖥 {what} on the computer", buttons=False)
    await home.closed()


async def test_an_end_that_hooks_told_first_is_the_end(portless: House) -> None:
    """The hook of the question found the disk full, say, and was run again."""
    asked = a_request("que_1")
    told = {"sessionID": asked["sessionID"], "requestID": "que_1", "answers": [["SQLite"]]}
    portless.hook("question.replied", told)
    portless.hook("question.asked", asked)
    await until(lambda: not spool.listing(portless.store), "both taken in")
    await portless.closed()
    assert all(not message.labels for message in portless.person.shown())


@pytest.mark.parametrize("permission", [False, True])
async def test_events_that_come_backwards_leave_nothing_open(home: House, *, permission: bool) -> None:
    """Its session was deleted, and told so, before it was heard of: it is looked up, and closed."""
    await home.start()
    agent = home.agent
    agent.hold_events()
    session = agent.session("Over soon")
    if permission:
        agent.ask_permission("bash", ["make"], session=session)
    else:
        agent.ask([question()], session=session)
    agent.delete(session)
    agent.release_events(backwards=True)
    await until(lambda: home.listener._parts.entries.recently_closed, "its end")
    await home.closed()
    shown = home.person.shown()
    assert len(shown) == (0 if permission else 1), "a permission is over before it is posted"
    assert all(not message.labels for message in shown)


async def test_a_hint_outlasts_an_error(home: House) -> None:
    """The session fell silent, and its server stumbles when it is asked about it: asked again."""
    await home.start()
    asked = home.agent.ask([question()], tool=False)
    await home.person.sees(ASKED)
    home.agent.fault("status", status=503)
    home.agent.abort(home.agent.pending[asked]["sessionID"])
    await home.person.sees("The agent no longer needs this")
    assert not [fault for fault in home.agent.faults if fault.route == "status"]


async def test_news_of_what_is_settled_is_no_news(home: House) -> None:
    """The plugin tells of the end as well, when it is long known."""
    await home.start()
    request_id = home.agent.ask([question()])
    shown = await home.person.sees(ASKED)
    session = home.agent.pending[request_id]["sessionID"]
    home.agent.hold_events()
    await home.person.taps(shown, "SQLite")
    await home.phase("settled")
    home.hook("question.replied", {"requestID": request_id, "sessionID": session, "answers": [["Redis"]]})
    await until(lambda: not spool.listing(home.store), "an empty inbox")
    home.agent.release_events()
    await home.closed()
    assert "✅ SQLite" in home.person.message(shown.message_id).text


async def test_a_subagent_names_its_root(home: House) -> None:
    """Its own title and that of the session that began it."""
    await home.start()
    root = home.agent.session("The great rewrite")
    child = home.agent.session("Look it up (@general subagent)", parent=root)
    home.agent.ask([question()], session=child)
    shown = await home.person.sees(ASKED)
    assert "The great rewrite" in shown.text


async def test_two_servers_are_followed_side_by_side(two: House) -> None:
    """Each gets its own answers; one that is away keeps nothing from the other."""
    await two.start()
    old, new = two.agents
    old.ask([question("Old one?")])
    new.ask([question("New one?")])
    first, second = await two.person.sees("Old one?"), await two.person.sees("New one?")
    old.away()
    await two.person.taps(first, "SQLite")
    await two.person.taps(second, "PostgreSQL")
    await two.person.sees("✅ PostgreSQL", buttons=False)
    old.back()
    await two.person.sees("✅ Delivered")
    assert [effect.answers for effect in (*old.effects, *new.effects)] == [(("SQLite",),), (("PostgreSQL",),)]


# --- calls that become requests -----------------------------------------------------------------------------------


@BOTH
async def test_a_call_is_posted_once_its_request_is_found(home: House) -> None:
    """The call id joins the two; nothing is shown before."""
    await home.start()
    session = home.agent.session()
    home.agent.hold_events()
    request_id = home.agent.ask([question()], session=session, call_id="call_7")
    call(home, "call_7", session)
    shown = await home.person.sees(ASKED)
    home.agent.release_events()
    await home.person.taps(shown, "SQLite")
    await home.person.sees("✅ SQLite", buttons=False)
    assert home.agent.effects[0].request_id == request_id
    assert len(home.person.shown()) == 1


async def test_an_event_ends_the_wait_for_a_request(home: House) -> None:
    """Far fewer looks than were allowed for."""
    await home.start(matching={"tries": 1000, "delay": "10m"})
    session = home.agent.session()
    call_id = home.agent.call([question()], session=session)
    call(home, call_id, session)
    await home.phase("matching")
    home.agent.ask([question()], session=session, call_id=call_id)
    await home.person.sees(ASKED)
    assert len(home.entries()) == 1


async def test_a_call_that_becomes_no_request_is_gone(home: House) -> None:
    """Its arguments were wrong, say: nothing was ever shown, and nothing is left."""
    await home.start(matching=FAST)
    call(home, "call_7", home.agent.session())
    await home.phase("matching")
    await home.closed()
    assert home.person.shown() == []


async def test_a_call_of_a_busy_session_is_waited_for(home: House) -> None:
    """All tries are used up, and its session still works: looked for now and then, until it rests."""
    await home.start(matching=FAST)
    session = home.agent.session()
    home.agent.work(session)
    call(home, "call_7", session)
    await home.phase("matching")
    await until(lambda: [one for one in home.agent.received if one.route == "status"], "a look at the session")
    assert len(home.entries()) == 1
    home.agent.finish(session)
    await home.closed()
    assert home.person.shown() == []


async def test_two_candidates_are_never_guessed_between(home: House) -> None:
    """A provider repeats its call ids, and both ask the same: the phone is told, nothing is sent."""
    await home.start()
    await until(lambda: [one for one in home.agent.received if one.route == "all_sessions"], "its list taken in")
    session = home.agent.session()
    home.agent.hold_events()
    first = home.agent.ask([question()], session=session, call_id="call_7")
    home.agent.ask([question()], beside=first, call_id="call_7")
    call(home, "call_7", session)
    told = await home.person.sees("I can't tell which is which")
    assert not told.rows
    assert not [one for one in home.agent.received if one.method == "POST"]


async def test_servers_out_of_reach_say_nothing_about_a_call(two: House) -> None:
    """The first of them wants a password: the request is found in the list of the other."""
    old, new = two.agents
    old.password = "hunter2"
    await two.start(settle=False)
    await until(lambda: [one for one in new.received if one.route == "all_sessions"], "its list taken in")
    session = new.session()
    new.hold_events()
    new.ask([question()], session=session, call_id="call_7")
    call(two, "call_7", session)
    await two.person.sees(ASKED)


async def test_a_server_that_refuses_keeps_no_call_alive(home: House) -> None:
    """Its password is wrong: it cannot say who is busy, and never will; the call is gone after all tries."""
    await home.start(matching=FAST)
    session = home.agent.session()
    home.agent.password = "hunter2"
    call(home, "call_7", session)
    await home.phase("matching")
    await home.closed()


async def test_a_call_is_kept_while_no_server_answers(home: House, caplog: pytest.LogCaptureFixture) -> None:
    """Who cannot be asked may be working: nothing is gone for that."""
    caplog.set_level(logging.INFO)
    await home.start(matching=FAST)
    session = home.agent.session()
    home.agent.away()
    call(home, "call_7", session)
    entry = await home.phase("matching")
    await until(lambda: caplog.text.count(f"entry {entry.id}: OpenCode") >= 3, "three tries")
    assert len(home.entries()) == 1


async def test_the_request_may_come_by_another_way_first(home: House) -> None:
    """A call without its id in the request: both entries are the same ask, and one message stands for it."""
    await home.start(matching=FAST)
    session = home.agent.session()
    home.agent.ask([question()], session=session, tool=False)
    await home.person.sees(ASKED)
    call(home, "call_7", session)
    await until(lambda: not spool.listing(home.store), "an empty inbox")
    await until(lambda: len(home.entries()) == 1, "one entry")
    assert len(home.person.shown()) == 1


# --- hooks that wait ----------------------------------------------------------------------------------------------


async def test_an_agent_whose_hook_died_is_gone(portless: House) -> None:
    """Killed, agent and all: after a while in which its plugin would have started another."""
    with portless.waiting("que_1"):
        portless.hook("question.asked", a_request("que_1"))
        await portless.person.sees(ASKED)
        await until(lambda: portless.entry().waits, "the waiting hook noticed")
    spool.nudge(portless.store)
    await until(
        lambda: portless.listener._parts.agent.errands.get(portless.entry().id).alone_since_s, "its absence noticed"
    )
    portless.clock.advance(HOOK_GRACE_S / 2)
    with portless.waiting("que_1"):
        spool.nudge(portless.store)
        await until(
            lambda: not portless.listener._parts.agent.errands.get(portless.entry().id).alone_since_s, "its return"
        )
    spool.nudge(portless.store)
    await until(
        lambda: portless.listener._parts.agent.errands.get(portless.entry().id).alone_since_s, "its absence again"
    )
    portless.pass_time(HOOK_GRACE_S + 1)
    await portless.person.sees("The agent no longer needs this")


@pytest.mark.parametrize("tapped", [False, True])
async def test_a_hook_that_says_farewell_is_believed(portless: House, tapped: bool) -> None:
    """Its agent has gone, before or after the tap: known within moments."""
    portless.hook("question.asked", a_request("que_1"))
    shown = await portless.person.sees(ASKED)
    if tapped:
        await portless.person.taps(shown, "SQLite")
        await portless.phase("sending")
    portless.word("waiter.gone", "que_1")
    await until(
        lambda: portless.listener._parts.agent.errands.get(portless.entry().id).alone_since_s, "its absence noticed"
    )
    portless.clock.advance(LEFT_GRACE_S + 0.5)
    spool.nudge(portless.store)
    await portless.person.sees("came too late" if tapped else "The agent no longer needs this")


async def look(home: House, after_s: float = 0.0) -> None:
    """Let this time pass, and a still listener look at the inbox and the waiting room."""
    home.clock.advance(after_s)
    await home.listener._loops.take_inbox()
    await home.listener._parts.agent.strays.release()


async def test_a_hook_that_waits_for_nothing_is_sent_away(home: House, caplog: pytest.LogCaptureFixture) -> None:
    """What it asked was damaged while nobody listened: after a while in which it may still drop its record, once."""
    async with home.still():
        with home.waiting("que_1") as wait:
            await look(home)
            await look(home, STRAY_S - 1)
            assert spool.take_answer(home.store, wait) is None
            await look(home, 2)
            assert caplog.text.count(f"({wait}): it is released") == 1
            assert spool.take_answer(home.store, wait) == ""
            await look(home)
            await look(home, STRAY_S + 1)
            assert spool.take_answer(home.store, wait) is None


async def test_a_hook_whose_ask_is_in_another_store_is_not_sent_away(home: House) -> None:
    """The ask is in the folder of this machine, which has a database by now."""
    async with home.still():
        store: Any = home.listener._parts.entries.store
        with home.waiting("que_1") as wait:
            store.is_shared = True
            (home.store / "pending" / "aaaa2222.json").write_text("{}")
            await look(home)
            await look(home, STRAY_S + 1)
            assert spool.take_answer(home.store, wait) is None
            store.is_shared = False


async def test_a_hook_that_has_an_answer_keeps_it(home: House) -> None:
    """Its agent is stopped, say, and takes the answer when it goes on."""
    async with home.still():
        with home.waiting("que_1") as wait:
            spool.put_answer(home.store, wait, "the answer")
            await look(home)
            await look(home, STRAY_S + 1)
            assert spool.take_answer(home.store, wait) == "the answer"


@pytest.mark.parametrize("how", ["newer", "unread"])
async def test_a_hook_may_wait_for_what_was_left_alone(home: House, how: str) -> None:
    """What cannot be read just now may be what it asked."""
    file = home.store / "pending" / "abcd2345.json"
    async with home.still():
        if how == "newer":
            file.write_text('{"v":99}')
        else:
            file.mkdir()
    async with home.still():
        with home.waiting("que_1") as wait:
            await look(home)
            await look(home, STRAY_S + 1)
            assert spool.take_answer(home.store, wait) is None


async def test_a_closed_ask_of_an_unknown_agent_is_in_nobodys_way(home: House) -> None:
    """One that only another version of Hermes knows."""
    one = replace(asks.ask(asks.question()), source=Source("sorcerer", "laptop", "ses_1", request_id="que_9"))
    async with home.still() as listener:
        await listener._parts.steps.close()  # a worker would write it again
        await listener._store.settle((await listener._parts.entries.create(one)).id)
    async with home.still():
        with home.waiting("que_1") as wait:
            await look(home)
            await look(home, STRAY_S + 1)
            assert spool.take_answer(home.store, wait) == ""


async def test_a_listener_that_runs_looks_for_such_hooks(portless: House) -> None:
    """Every ten seconds."""
    with portless.waiting("que_1") as wait:
        portless.clock.advance(REMEMBER_S)
        await until(lambda: portless.listener._parts.agent.strays._since_s, "the stray noticed")
        portless.clock.advance(STRAY_S + 1)
        await until(lambda: spool.take_answer(portless.store, wait) == "", "its way home")


async def test_a_hook_whose_record_is_not_read_yet_stays(home: House) -> None:
    """As one that a newer Hermes wrote."""
    async with home.still():
        with home.waiting("que_1") as wait:
            newer = home.hook("question.asked", a_request("que_1"), v=99)
            await look(home)
            await look(home, STRAY_S + 1)
            assert spool.take_answer(home.store, wait) is None
            Path(newer).unlink()
            await look(home, STRAY_S - 1)
            assert spool.take_answer(home.store, wait) is None
            await look(home, 2)
            assert spool.take_answer(home.store, wait) == ""


@pytest.mark.parametrize("agent", ["opencode", "claude-code"])
async def test_a_hook_that_was_not_told_of_the_end(home: House, monkeypatch: pytest.MonkeyPatch, agent: str) -> None:
    """The disk was full: it is told later, but where its plugin ends it itself."""

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    one = asks.ask(asks.question())
    one = replace(one, source=replace(one.source, agent=agent, machine=spool.machine(home.store), request_id="que_1"))
    async with home.still() as listener:
        with home.waiting("que_1", agent) as wait, monkeypatch.context() as full:
            full.setattr(spool, "put_answer", refuse)
            entry = await listener._parts.entries.create(one, waits=True)
            await listener._parts.entries.apply(entry.id, Ended(home.clock.now(), "gone"))
            await home.closed()
            await look(home)
            full.undo()
            await look(home, STRAY_S + 1)
            assert spool.take_answer(home.store, wait) == (None if agent == "opencode" else "")


async def test_words_of_hooks_that_nobody_knows(portless: House) -> None:
    """Of another request, or of a kind that a later hook may have: nothing comes of it."""
    portless.hook("question.asked", a_request("que_1"))
    shown = await portless.person.sees(ASKED)
    portless.word("receipt", "que_2")
    portless.word("waiter.sneezed", "que_1")
    await until(lambda: not spool.listing(portless.store), "an empty inbox")
    assert not portless.entry().waiter_taken
    assert not portless.entry().waits
    assert shown.rows


async def test_a_plugin_tells_of_its_own_desk(portless: House) -> None:
    """Answered, dismissed, and a session that fell silent: no server is needed to know."""
    for place, text in enumerate(("Answered?", "Dismissed?", "Silent?")):
        portless.hook("question.asked", a_request(f"que_{place}", question(text), session=f"ses_{place}", call=text))
        await portless.person.sees(text)
    portless.hook("question.replied", {"requestID": "que_0", "sessionID": "ses_0", "answers": [["Redis"]]})
    portless.hook("question.rejected", {"requestID": "que_1", "sessionID": "ses_1"})
    portless.hook("session.idle", {"sessionID": "ses_2"})
    await portless.person.sees("🖥 Answered on the computer: Redis")
    await portless.person.sees("🖥 Dismissed on the computer")
    await portless.person.sees("The agent no longer needs this")
    await portless.closed()


async def test_what_one_process_says_of_its_question_ends_no_other(portless: House) -> None:
    """Two terminals have one session open, each asks, and the turn of one is stopped."""
    with portless.waiting("que_1") as wait:
        portless.hook("question.asked", a_request("que_1"))
        shown = await portless.person.sees(ASKED)
        portless.hook("question.asked", a_request("que_2", question("Other?"), call="call_2"))
        await portless.person.sees("Other?")
        portless.hook("session.idle", {"sessionID": "ses_1", "requestID": "que_2"})
        await portless.person.sees("The agent no longer needs this")
        await portless.person.taps(shown, "SQLite")
        await until(lambda: spool.take_answer(portless.store, wait), "an answer")


async def test_what_only_the_desk_can_answer_is_shown_without_buttons(portless: House) -> None:
    """A question of the second engine: no hook is missed, and the desk's answer closes it."""
    portless.hook("question.v2.asked", a_request("que_1"))
    shown = await portless.person.sees("Please answer this one on the computer")
    assert not shown.rows
    portless.hook("question.v2.replied", {"requestID": "que_1", "sessionID": "ses_1", "answers": [["Redis"]]})
    await portless.person.sees("🖥 Answered on the computer: Redis")


async def test_what_only_the_desk_can_answer_is_not_sought_on_a_server(
    home: House, caplog: pytest.LogCaptureFixture
) -> None:
    """No server knows a question of the second engine: that it lists none proves no end."""
    home.hook("question.v2.asked", a_request("que_1"))
    caplog.set_level(logging.INFO)
    await home.start()
    await home.person.sees("Please answer this one on the computer")
    home.agent.cut_events()
    await until(lambda: caplog.text.count("connected, 0 questions") == 2, "a second connection")
    await home.phase("open")


async def test_a_call_of_an_agent_without_a_port_waits_for_its_request(portless: House) -> None:
    """The plugin tells of the call, and then of the request: one entry, joined by the call id."""
    call(portless, "call_7", "ses_1")
    await portless.phase("matching")
    portless.hook("question.asked", a_request("que_1", call="call_7"))
    await portless.person.sees(ASKED)
    assert portless.entry().ask.source.request_id == "que_1"


@pytest.mark.parametrize("told", [1, 2])
async def test_a_call_that_asks_another_number_of_questions_is_answered(portless: House, told: int) -> None:
    """Another plugin may change what a call asks, behind the hook that told of it."""
    both = question(), question("Which features?", ("Auth", "Cache"))
    asked = both[: 3 - told]
    call(portless, "call_1", "ses_1", *both[:told])
    await portless.phase("matching")
    with portless.waiting("que_1") as wait:
        portless.hook("question.asked", a_request("que_1", *asked))
        await portless.person.taps(await portless.person.sees(ASKED), "SQLite")
        if len(asked) > 1:
            await portless.person.taps(await portless.person.sees("Which features?"), "Auth")
            await portless.person.taps(await portless.person.sees("Ready to send?"), "Send")
        text = await until(lambda: spool.take_answer(portless.store, wait), "an answer")
    assert json.loads(text)["answers"] == [["SQLite"], ["Auth"]][: len(asked)]


# --- a disk that refuses ------------------------------------------------------------------------------------------


async def test_an_ask_that_was_not_saved_stays_with_its_server(home: House, caplog: pytest.LogCaptureFixture) -> None:
    """Said in the log; the list brings it at the next connection, once there is room."""
    await home.start()
    (home.store / "pending").rename(home.store / "pending.away")
    (home.store / "pending").write_text("a file where a folder belongs")
    home.agent.ask([question()])
    await until(lambda: "server oc1: nothing was saved" in caplog.text, "an error in the log")
    (home.store / "pending").unlink()
    (home.store / "pending.away").rename(home.store / "pending")
    await home.stop()
    await home.start()
    await home.person.sees(ASKED)


async def test_an_ask_that_was_not_saved_is_found_however_the_clock_jumps(
    home: House, caplog: pytest.LogCaptureFixture
) -> None:
    """Its session looks older than any question may be then: it is looked for from when all was heard."""
    await home.start()
    (home.store / "pending").rename(home.store / "pending.away")
    (home.store / "pending").write_text("a file where a folder belongs")
    home.agent.ask([question()])
    await until(lambda: "server oc1: nothing was saved" in caplog.text, "an error in the log")
    home.clock.set_back(-3 * 86400)
    assert home.listener is not None
    home.listener._parts.agent.followers[0].followed()  # as it is noted now and then
    await until(lambda: caplog.text.count("server oc1: nothing was saved") > 1, "another connection")
    home.listener._parts.agent.followers[0].followed()
    (home.store / "pending").unlink()
    (home.store / "pending.away").rename(home.store / "pending")
    await home.person.sees(ASKED)
