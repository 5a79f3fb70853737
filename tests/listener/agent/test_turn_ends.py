"""The end of a turn, as servers tell it: by an event that says only that the session stopped, and by their record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hermes.listener.loops import DOUBT_S
from hermes.model.ask import Source
from hermes.model.notice import Retry
from hermes.model.signals import Retrying
from tests.listening import BOTH, House, house, question, until

if TYPE_CHECKING:
    from hermes.sandbox.phone_values import ShownMessage

EVERY = {"notices": {"finished": "0s"}}
home = house("new", sections={"opencode2": {"enabled": False}, **EVERY})


def told(home: House) -> list[ShownMessage]:
    """All notices on the phone."""
    return [one for one in home.person.shown() if " is done" in one.text or " stopped: " in one.text]


def asking(home: House, title: str = "Fix login flow", **more: Any) -> tuple[str, str]:
    """Let a session ask; its id and that of the request."""
    session = home.agent.session(title, **more)
    return session, home.agent.ask([question()], session=session)


async def reads(home: House, text: str) -> None:
    """Let another session ask this, and wait until the listener has read of it."""
    home.agent.ask([question(text)], session=home.agent.session(text))
    await home.person.sees(text, buttons=True)


def phases(home: House) -> list[str]:
    """The phases of all notices that are kept."""
    return [one.phase for one in home.listener._parts.kept.notices._known.values()]


@pytest.fixture(autouse=True)
async def started(home: House) -> None:
    """A listener that runs."""
    await home.start()


@BOTH
async def test_a_turn_that_goes_on_to_its_end_is_told(home: House) -> None:
    """With its title, its length, its changes and the last words."""
    session, request = asking(home)
    home.agent.change(session, {"file": "a.py", "additions": 120, "deletions": 31}, {"file": "b.py", "additions": 1})
    home.clock.advance(300.0)
    home.agent.answer(request, [["SQLite"]])
    shown = await home.person.sees("✅ Fix login flow is done · 5 min · 2 files, +121 −31")
    assert "FINAL: " in shown.text
    assert "project · OpenCode on " in shown.text


@BOTH
async def test_a_turn_that_fails_is_told_with_its_reason(home: House) -> None:
    """Once, though the session says twice that it stopped."""
    session, _ = asking(home)
    home.agent.fail(session, "invalid key", 401)
    await home.person.sees("❌ Fix login flow stopped: invalid key (401)")
    await until(lambda: phases(home) == ["posted"], "the notice")
    assert len(told(home)) == 1


@BOTH
async def test_what_a_person_ended_is_no_news(home: House) -> None:
    """An interrupt, a question that was rejected. The next turn is told."""
    session, _ = asking(home)
    home.agent.abort(session)
    _, rejected = asking(home, "Rejected")
    home.agent.dismiss(rejected)
    _, request = asking(home, "Another")
    home.agent.answer(request, [["SQLite"]])
    await home.person.sees("✅ Another is done")
    await until(lambda: not home.listener._parts.background._tasks or phases(home) == ["posted"], "all looks")
    assert len(told(home)) == 1


@BOTH
async def test_the_end_of_a_subagent_is_no_news(home: House) -> None:
    """Its parent goes on."""
    parent, request = asking(home, "Parent")
    _, of_child = asking(home, "Child", parent=parent)
    home.agent.answer(of_child, [["SQLite"]])
    home.agent.answer(request, [["SQLite"]])
    await home.person.sees("✅ Parent is done")
    assert len(told(home)) == 1


@BOTH
async def test_a_turn_that_ended_while_nobody_followed_is_told_later(home: House) -> None:
    """Once, and not again after another restart."""
    _, request = asking(home)
    await home.person.sees("Which database?", buttons=True)
    await home.stop()
    home.agent.answer(request, [["SQLite"]])
    for _ in range(2):
        await home.start()
        await home.person.sees("✅ Fix login flow is done")
        await until(lambda: phases(home) == ["posted"], "the notice noted")
        await home.closed()
        await home.stop()
    assert len(told(home)) == 1


@pytest.mark.parametrize("asleep_s", [1.0, 50.0, 8 * 3600.0])
async def test_a_turn_that_ended_while_the_machine_slept_is_told(home: House, asleep_s: float) -> None:
    """The stream has an older event, which is read after the sleep, and breaks: the later ones are lost."""
    _, request = asking(home)
    await home.person.sees("Which database?", buttons=True)
    home.agent.hold_events()
    home.agent.answer(request, [["SQLite"]])
    home.agent.release_events(lost=True)
    home.clock.advance(asleep_s)
    await reads(home, "Which colour?")
    home.agent.cut_events()
    await home.person.sees("✅ Fix login flow is done")


async def test_a_turn_whose_record_cannot_be_read_is_told_once_it_can(home: House) -> None:
    """The server fails for a moment."""
    _, request = asking(home)
    await home.person.sees("Which database?", buttons=True)
    home.agent.fault("messages", "error", status=503, times=1)
    home.agent.answer(request, [["SQLite"]])
    await home.person.sees("✅ Fix login flow is done")


async def test_a_queued_prompt_does_not_make_a_long_turn_short(home: House) -> None:
    """It counts from the moment in which the session began to work, as the events told."""
    home.agent.session("Other")
    session, first = asking(home)
    await home.person.sees("Which database?", buttons=True)
    home.clock.advance(600.0)
    with home.agent.lock:
        home.agent._message(home.agent.sessions[session], "user", [{"type": "text", "text": "And this."}])
    home.agent.answer(first, [["SQLite"]])
    await home.person.sees("✅ Fix login flow is done · 10 min")


@pytest.mark.parametrize("is_away", [False, True], ids=["while it follows", "while it is away"])
async def test_a_clock_that_was_set_back_silences_no_notice(home: House, is_away: bool) -> None:
    """Until when the events are known is then a time in the future."""
    home.clock.advance(1.0)
    if is_away:
        await home.stop()
    home.clock.set_back(2000.0)
    _, request = asking(home)
    if is_away:
        home.agent.answer(request, [["SQLite"]])
        await home.start()
    else:
        await home.person.sees("Which database?", buttons=True)
        home.agent.answer(request, [["SQLite"]])
    await home.person.sees("✅ Fix login flow is done")


async def test_a_clock_that_was_set_back_and_has_caught_up_silences_no_notice(home: House) -> None:
    """It was set back while the events were heard; the turn ended when nobody heard any."""
    home.clock.advance(1.0)
    home.clock.set_back(2000.0)
    await reads(home, "Which colour?")
    await home.stop()
    _, request = asking(home)
    home.agent.answer(request, [["SQLite"]])
    home.clock.advance(3000.0)
    await home.start()
    await home.person.sees("✅ Fix login flow is done")


async def test_a_session_that_stops_without_a_turn_tells_of_no_old_one(home: House) -> None:
    """Somebody interrupts a session at rest, whose last turn is of yesterday and was never heard of."""
    await home.stop()
    _, request = asking(home, "Old")
    home.agent.answer(request, [["SQLite"]])
    home.clock.advance(7200.0)
    (home.store / "servers.json").unlink()  # what is known until when: a new store
    await home.start()
    with home.agent.lock:
        home.agent._rest(next(iter(home.agent.sessions.values())))
    _, request = asking(home, "New")
    home.agent.answer(request, [["SQLite"]])
    await home.person.sees("✅ New is done")
    await home.listener._parts.agent.followers[0].turn_ends.known(10.0)
    assert len(phases(home)) == 1


async def test_one_session_that_cannot_be_read_hides_no_other(home: House) -> None:
    """A message of another shape; a prompt that is too large only costs the changes."""
    await home.stop()
    bad, of_bad = asking(home, "Bad")
    _, of_good = asking(home, "Good")
    home.agent.answer(of_bad, [["SQLite"]])
    home.agent.answer(of_good, [["SQLite"]])
    home.agent.sessions[bad].messages[-1]["info"]["error"] = 5
    await home.start()
    await home.person.sees("✅ Good is done")


async def test_what_is_not_read_when_the_listener_ends_is_read_by_the_next(home: House) -> None:
    """The events count as known only up to there."""
    _, request = asking(home)
    await home.person.sees("Which database?", buttons=True)
    home.agent.fault("messages", "error", status=503, times=1000)
    home.agent.answer(request, [["SQLite"]])
    follower = home.listener._parts.agent.followers[0]
    await until(lambda: follower.turn_ends._under_way, "a look")
    ended_s = home.clock.now()
    for text in ("Which colour?", "Which size?"):
        home.clock.advance(100.0)
        await reads(home, text)
    assert follower.server.heard_s > ended_s
    await home.stop()
    home.agent.clear_faults()
    await home.start()
    await home.person.sees("✅ Fix login flow is done")


async def test_a_timers_round_tells_of_turns_that_ended(home: House) -> None:
    """Before it leaves; the next one tells of nothing again."""
    await home.stop()
    _, request = asking(home)
    home.agent.answer(request, [["SQLite"]])
    for _ in range(2):
        await home.new().run_once()
    assert len(told(home)) == 1


async def trying(home: House, session: str, title: str, *, server: str = "oc1") -> ShownMessage:
    """Let the turn of this session keep trying to reach its model; the message about it."""
    source = Source("opencode", "m1", session, "/home/dev/project", session_title=title, host="laptop", server=server)
    retry = Retry(source, "OpenCode", 4, home.clock.now() + 60.0, "rate limit")
    await home.listener._parts.kept.notices.take(Retrying(retry))
    shown = await home.person.sees(f"{title}: rate limit · 5th try")
    await until(lambda: all(one.retry_shown for one in home.listener._parts.kept.notices.all()), "the message noted")
    return shown


NO_LONGER = " · 4 tries failed"


@pytest.mark.parametrize("how", ["its server was restarted", "no event told", "nobody listened"])
async def test_a_turn_that_no_longer_tries_is_told(home: House, how: str) -> None:
    """Its message says so once its session is idle; that of another session, whose turn goes on, stays."""
    session, _ = asking(home)
    other, _ = asking(home, "Another")
    tries, goes_on = await trying(home, session, "Fix login flow"), await trying(home, other, "Another")
    if how == "nobody listened":
        await home.stop()
    with home.agent.lock:
        home.agent.sessions[session].busy = False
    if how == "its server was restarted":
        home.agent.cut_events()
    elif how == "no event told":
        home.clock.advance(DOUBT_S + 1.0)
    else:
        await home.start()
    await until(lambda: NO_LONGER in home.person.message(tries.message_id).text, "that it tries no more")
    assert "5th try" in home.person.message(goes_on.message_id).text


async def test_a_turn_whose_next_try_succeeds_did_not_give_up(home: House) -> None:
    """Four tries failed and the fifth did not, so that the turn goes on to its end: nobody is told of four in all."""
    session, request = asking(home)
    tries = await trying(home, session, "Fix login flow")
    home.agent.answer(request, [["SQLite"]])
    await home.person.sees("✅ Fix login flow is done")
    await until(lambda: NO_LONGER in home.person.message(tries.message_id).text, "how often it tried")


async def test_a_turn_that_keeps_trying_at_another_server_is_left_to_that_one(home: House) -> None:
    """This server does not know of it; a server that cannot be asked tells nothing, either."""
    elsewhere = await trying(home, "ses_elsewhere", "Elsewhere", server="oc2")
    here = await trying(home, "ses_here", "Here")
    home.agent.fault("status", "error", status=503, times=1)
    home.clock.advance(DOUBT_S + 1.0)
    await until(lambda: not home.agent.faults, "a look that failed")
    assert "5th try" in home.person.message(here.message_id).text
    home.clock.advance(DOUBT_S + 1.0)
    await until(lambda: NO_LONGER in home.person.message(here.message_id).text, "that it tries no more")
    assert "5th try" in home.person.message(elsewhere.message_id).text
