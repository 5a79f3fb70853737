"""Time: reminders, final calls, ends, and quiet hours."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from hermes.core.answer_clock import GRACE_S
from hermes.errors import NotSaved
from hermes.model.machine import Machine
from tests.listener.gates import unwritable
from tests.listening import PATIENCE_S, House, a_request, house, question, until

if TYPE_CHECKING:
    from hermes.listener.daemon import Listener
    from hermes.model.entry import Entry
    from hermes.sandbox.phone_values import ShownMessage

TTL_S = 1800.0
CALL_S = TTL_S - TTL_S / 3
home = house()
served = house("new")


async def asked(home: House, *texts: str) -> list[ShownMessage]:
    """Let hooks hand these questions over; their messages."""
    for place, text in enumerate(texts):
        home.hook("question.asked", a_request(f"que_{place}", question(text), session=f"ses_{place}", call=f"c{place}"))
    await home.listener._loops.take_inbox()
    shown = [await home.person.sees(text) for text in texts]
    await until(lambda: all(entry.timing.posted_s is not None for entry in home.entries()), "the posts noted")
    return shown


def phases(home: House) -> list[str]:
    """The phases of all open entries, in the order asked."""
    return [entry.state.phase for entry in home.entries()]


# --- one ask ------------------------------------------------------------------------------------------------------


async def test_the_final_call_rings_and_then_the_timer_decides(home: House) -> None:
    """A third before the end a reply that rings; at the end the agent is told no, and a message says who decided."""
    async with home.still():
        (shown,) = await asked(home, "Which one?")
        await home.ticks(CALL_S - 30)
        assert len(home.person.shown()) == 1
        await home.ticks(60)
        call = await home.person.sees("⏰")
        assert not call.silent
        assert call.reply_to == shown.message_id
        await until(lambda: home.entry().phone.sides, "the call noted")
        await home.ticks(TTL_S)
        ended = await home.person.sees("⌛ Expired")
        assert ended.message_id == shown.message_id
        assert phases(home) == ["sending"]


async def test_a_question_that_was_left_to_the_computer_is_not_called_settled(home: House) -> None:
    """The answer to a late reply: only the phone takes none any more."""
    await home.start(questions={"on_expiry": "keep"})
    (shown,) = await asked(home, "Which one?")
    await home.ticks(CALL_S + 30)
    await until(lambda: home.entry().phone.sides, "the call noted")
    await home.ticks(TTL_S)
    await home.person.sees("; it can still be answered on the computer.")
    await home.closed()
    home.person.write("Redis", to=shown)
    await home.person.sees("I take no more answers to that question.")


async def test_a_question_that_was_deleted_comes_again_with_its_final_call(home: House) -> None:
    """Without its text and its options, nobody could answer it."""
    async with home.still():
        (shown,) = await asked(home, "Which one?")
        home.person.control.delete(shown.message_id)
        await home.ticks(CALL_S + 30)
        await home.person.sees("⏰")
        again = await home.person.sees("Which one?", buttons=True)
        assert again.message_id != shown.message_id


async def test_nothing_expires_without_its_final_call(home: House) -> None:
    """The call could not be sent: the ask stays open until it was, however long that takes.

    A tick leaves an ask alone that changes meanwhile, such as one whose question is drawn again with its call.
    """
    async with home.still():
        await asked(home, "Which one?")
        home.api.control.fault(method="sendMessage", action="error", status=500, times=1000)
        await home.ticks(2 * TTL_S)
        await until(lambda: [c for c in home.api.control.calls("sendMessage") if c.status == 500], "a failed call")
        await home.ticks(TTL_S)
        assert phases(home) == ["open"]
        home.api.control.clear_faults()
        home.listener._parts.steps.kick("phone", home.entry().id)
        await home.person.sees("⏰")
        await until(lambda: home.entry().phone.sides, "the call noted")
        async with asyncio.timeout(PATIENCE_S):
            while phases(home) == ["open"]:
                await home.ticks(1)
        assert phases(home) == ["sending"]


async def test_a_final_call_that_comes_late_can_still_be_answered(home: House) -> None:
    """The bot was blocked until after the end: the person has as long as after a call in time."""
    async with home.still():
        await asked(home, "Which one?")
        home.api.control.fault(method="sendMessage", action="error", status=502, times=1000)
        await home.ticks(2 * TTL_S)
        await until(lambda: [c for c in home.api.control.calls("sendMessage") if c.status == 502], "a failed call")
        home.api.control.clear_faults()
        home.listener._parts.steps.kick("phone", home.entry().id)
        await home.person.sees("⏰")
        await until(lambda: home.entry().phone.sides, "the call noted")
        await home.ticks(TTL_S / 3 - 60)
        assert phases(home) == ["open"]
        await home.ticks(120)
        assert phases(home) == ["sending"]


async def waited(home: House, listener: Listener, label: str) -> ShownMessage:
    """Ask a question, and tap this button of its final call, which goes; the message of the question."""
    (shown,) = await asked(home, "Which one?")
    await home.ticks(CALL_S + 1)
    call = await home.person.sees("⏰")
    tap = home.person.tap(call, label)
    await listener._parts.phone.updates.step(longest_s=0)
    assert await home.person.toast(tap) == "All right, I keep waiting"
    await home.person.gone(call)
    return home.person.message(shown.message_id)


async def test_an_hour_more_starts_the_time_again(home: House) -> None:
    """The call is deleted, and another one comes that much later, which can stop the agent."""
    async with home.still() as listener:
        shown = await waited(home, listener, "1 h more")
        await home.ticks(CALL_S + 600)
        assert home.entry().timing.called is False
        await home.ticks(2760)
        assert home.entry().timing.called
        assert not home.person.message(shown.message_id).deleted
        home.person.tap(await home.person.sees("⏰"), "Stop now")
        await listener._parts.phone.updates.step(longest_s=0)
        await until(lambda: "Yes, stop" in str(home.person.shown()), "the second question")


async def stopping(home: House, listener: Listener) -> ShownMessage:
    """Ask a question, and tap "Stop now" on its final call; the call, which asks for the second tap."""
    await asked(home, "Which one?")
    await home.ticks(CALL_S + 1)
    call = await home.person.sees("⏰")
    await until(lambda: home.entry().phone.sides, "the call noted")
    home.person.tap(call, "Stop now")
    await listener._parts.phone.updates.step(longest_s=0)
    await until(lambda: "Yes, stop" in str(home.person.message(call.message_id).labels), "the second question")
    return call


async def test_stop_now_is_confirmed_where_it_was_tapped(home: House) -> None:
    """Stop needs a second tap there, too; the question may be far above."""
    async with home.still() as listener:
        call = await stopping(home, listener)
        home.person.tap(home.person.message(call.message_id), "Back")
        await listener._parts.phone.updates.step(longest_s=0)
        await home.person.gone(call)
        assert home.entry().timing.called is False


async def test_a_call_that_lost_its_limit_gives_no_end(home: House) -> None:
    """Two people tap its buttons at once: the second tap on "Stop now" is asked for where the question is."""
    async with home.still() as listener:
        (shown,) = await asked(home, "Which one?")
        await home.ticks(CALL_S + 1)
        call = await home.person.sees("⏰")
        await until(lambda: home.entry().phone.sides, "the call noted")
        home.person.tap(call, "Stop now")
        home.person.tap(call, "No limit")
        await listener._parts.phone.updates.step(longest_s=0)
        await until(lambda: "Yes, stop" in str(home.person.message(shown.message_id).labels), "the second question")
        await home.person.gone(call)


async def test_stop_now_that_nobody_confirms_is_called_again(home: House) -> None:
    """Aloud, in a new message: nothing expires without that."""
    async with home.still() as listener:
        first = await stopping(home, listener)
        await home.ticks(CALL_S)
        async with asyncio.timeout(PATIENCE_S):
            while not home.entry().timing.called:
                await home.ticks(1)
        await home.person.gone(first)
        again = await home.person.sees("⏰")
        assert again.message_id > first.message_id
        assert not again.silent


async def test_another_tap_takes_no_hour_away(home: House) -> None:
    """Whatever is tapped after "1 h more"."""
    async with home.still() as listener:
        shown = await waited(home, listener, "1 h more")
        before = home.entry().timing
        home.person.tap(shown, "⏹ Stop")
        await listener._parts.phone.updates.step(longest_s=0)
        after = home.entry().timing
        assert (after.expires_at, after.until_s) == (before.expires_at, before.until_s)


async def test_a_call_that_is_too_old_to_be_deleted_keeps_no_buttons(home: House) -> None:
    """Telegram deletes nothing that is older than two days; the machine slept for three."""
    async with home.still() as listener:
        (shown,) = await asked(home, "Which one?")
        await home.ticks(CALL_S + 1)
        call = await home.person.sees("⏰")
        await until(lambda: home.entry().phone.sides, "the call noted")
        home.clock.advance(3 * 86400)
        await listener._parts.phone.timekeeper.tick(answerable=True)
        home.person.tap(home.person.message(shown.message_id), "SQLite")
        await listener._parts.phone.updates.step(longest_s=0)
        await until(lambda: not home.person.message(call.message_id).rows, "no buttons")
        assert home.person.message(call.message_id).text.startswith("This message is out of date. #")


async def test_without_a_limit_only_a_person_ends_it(home: House) -> None:
    """Neither time nor another tap brings the limit back."""
    async with home.still() as listener:
        shown = await waited(home, listener, "No limit")
        assert "waits until" not in home.person.message(shown.message_id).text
        home.person.tap(shown, "⏹ Stop")
        await listener._parts.phone.updates.step(longest_s=0)
        await home.ticks(20 * TTL_S)
        assert phases(home) == ["open"]
        assert not home.entry().timing.called


async def test_reminders_come_after_twice_the_time_each(home: House) -> None:
    """A new message that rings takes the place of the one before."""
    async with home.still(questions={"ttl": "5h", "remind_at": "10m"}):
        await asked(home, "Which one?")
        await home.ticks(610)
        first = await home.person.sees("Still waiting")
        assert "10 minutes" in first.text or "10 min" in first.text
        assert not first.silent
        await home.ticks(1180)
        assert home.entry().timing.reminded == 1
        await home.ticks(30)
        assert home.entry().timing.reminded == 2
        await home.person.gone(first)
        await home.person.sees("30 min")
        await home.ticks(2400)
        assert home.entry().timing.reminded == 3


async def test_reminders_that_are_due_at_the_same_time_are_one(home: House) -> None:
    """They were switched on while a question was open, for example: it would ring four times, one after the other."""
    async with home.still(questions={"ttl": "5h"}):
        await asked(home, "Which one?")
        await home.ticks(9100)
        await home.listener._parts.phone.upkeep.remember()
    async with home.still(questions={"ttl": "5h", "remind_at": "10m"}):
        await home.ticks(1)
        assert home.entry().timing.reminded == 4
        await home.person.sees("for 2 h 30 min")
        await home.ticks(60)
        assert home.entry().timing.reminded == 4
        sent = [one for one in home.api.control.calls("sendMessage") if "Still waiting" in str(one)]
        assert len(sent) == 1


async def test_a_tap_on_a_question_without_a_limit_brings_no_reminder_at_once(home: House) -> None:
    """The person was just here; the next one comes after the first pause."""
    async with home.still(questions={"remind_at": "15m"}) as listener:
        shown = await waited(home, listener, "No limit")
        await home.ticks(700)
        assert home.entry().timing.reminded == 0
        await home.ticks(260)
        assert home.entry().timing.reminded == 1
        reminder = await home.person.sees("Still waiting")
        await home.ticks(4 * TTL_S)
        home.person.tap(home.person.message(shown.message_id), "⏹ Stop")
        await listener._parts.phone.updates.step(longest_s=0)
        await home.person.gone(reminder)
        await home.ticks(60)
        assert home.entry().timing.reminded == 0


async def test_time_that_nobody_could_answer_in_does_not_count(home: House) -> None:
    """While Telegram is away nothing runs out; then there are ten minutes at least, and the phone shows when."""
    async with home.still():
        await asked(home, "Which one?")
        await home.ticks(TTL_S - 700)
        before_s = home.entry().timing.until_s
        await home.ticks(TTL_S, answerable=False)
        await home.ticks(20)
        after_s = home.entry().timing.until_s
        assert before_s is not None
        assert after_s is not None
        assert after_s - before_s > TTL_S - 60
        await home.ticks(120)
        await home.person.sees("⏰")
        await until(lambda: home.entry().phone.sides, "the call noted")
        await home.ticks(GRACE_S - 60)
        assert phases(home) == ["open"]
        await home.ticks(200)
        assert phases(home) == ["sending"]


async def test_an_answer_that_had_arrived_when_its_machine_left_did_not_wait_for_it(served: House) -> None:
    """It is not told a second time, in a message that rings."""
    served.agent.finishes = False
    await served.start()
    served.agent.ask([question("Which one?")])
    shown = await served.person.sees("Which one?")
    served.agent.hold_events()
    await served.person.taps(shown, "SQLite")
    await served.person.sees("✅ SQLite", buttons=False)
    served.listener._parts.phone.machines.all = (Machine("elsewhere", "elsewhere", "", 0.0),)
    await served.listener._parts.phone.timekeeper.tick(answerable=True)
    assert served.entry().timing.away_at is None
    await served.put_away()
    assert not served.person.find("Delivered")


def now(home: House, entry: Entry) -> Entry:
    """The entry as it stands."""
    found = home.listener._parts.entries.get(entry.id)
    assert found is not None
    return found


def is_over(home: House, entry: Entry) -> bool:
    """Whether its time is over; the reject may have been sent already."""
    found = home.listener._parts.entries.get(entry.id)
    return found is None or found.state.phase in {"sending", "settled"}


async def test_one_file_of_a_newer_hermes_stops_no_other(home: House, caplog: pytest.LogCaptureFixture) -> None:
    """It is said and left alone, and the others get their call, and end."""
    async with home.still():
        await asked(home, "One?", "Two?")
        first, second = home.entries()
        file = home.store / "pending" / f"{first.id}.json"
        file.write_text('{"v":99}')
        await home.ticks(CALL_S + 30)
        assert now(home, second).timing.called
        await until(lambda: now(home, second).phone.sides, "the call noted")
        await home.ticks(TTL_S)
        assert is_over(home, second)
        assert f"{file} is left alone" in caplog.text
        assert file.read_text() == '{"v":99}'


@pytest.mark.parametrize("how", ["newer", "stuck"])
async def test_the_end_of_one_file_stops_no_other(home: House, how: str) -> None:
    """Of two that are over at one tick; the one cannot be read, nor put into quarantine."""
    async with home.still():
        await asked(home, "One?", "Two?")
        first, second = home.entries()
        await home.ticks(CALL_S + 30)
        await until(lambda: all(entry.phone.sides for entry in home.entries()), "the calls noted")
        (home.store / "pending" / f"{first.id}.json").write_text('{"v":99}' if how == "newer" else "{")
        if how == "stuck":
            (home.store / "quarantine").rmdir()
            (home.store / "quarantine").write_text("in the way")
        await home.ticks(TTL_S)
        assert is_over(home, second)


async def test_an_ask_whose_content_does_not_fit_together_stops_no_other(home: House) -> None:
    """The user of an agent-only machine can write it: here it has a question, and no place for the answer."""
    async with home.still():
        await asked(home, "One?", "Two?")
        first, second = home.entries()
        await home.ticks(CALL_S + 30)
        await until(lambda: all(entry.phone.sides for entry in home.entries()), "the calls noted")
        ask, state = replace(first.ask, on_expiry="recommended"), replace(first.state, answers=())
        await home.listener._parts.entries.change(first.id, lambda found: replace(found, ask=ask, state=state))
        await home.ticks(TTL_S)
        assert is_over(home, second)


# --- quiet hours --------------------------------------------------------------------------------------------------


def until_clock(home: House, hour: int, minute: int = 0) -> float:
    """How long until this time of the day, UTC, comes next."""
    now = datetime.fromtimestamp(home.clock.now(), UTC)
    then = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
    return (then - now + timedelta(days=then <= now)).total_seconds()


async def test_quiet_hours_are_silent_and_one_message_ends_them(home: House) -> None:
    """No sound, no time that passes, and at the end one digest; a night without questions has none."""
    home.clock.advance(until_clock(home, 23))
    async with home.still(questions={"quiet_hours": "22:00-07:00", "tz": "UTC"}):
        await home.ticks(20)
        shown = await asked(home, "One?", "Two?")
        assert all(message.silent for message in shown)
        await home.ticks(2 * TTL_S)
        assert phases(home) == ["open", "open"]
        assert len(home.person.shown()) == 2
        home.clock.advance(until_clock(home, 7, 1))
        await home.ticks(1)
        digest = await home.person.sees("Quiet hours have ended: 2 questions are waiting")
        assert not digest.silent
        await home.ticks(60)
        assert len(home.person.shown()) == 3


async def test_in_quiet_hours_the_phone_shows_no_end(home: House) -> None:
    """The clock stands: the end that it shows would pass without one. At the end of the night it is known again."""
    home.clock.advance(until_clock(home, 21, 50))
    async with home.still(questions={"quiet_hours": "22:00-07:00", "tz": "UTC"}):
        await home.ticks(20)
        (before,) = await asked(home, "Before?")
        assert "waits until 22:20" in before.text
        home.clock.advance(until_clock(home, 22, 1))
        await home.ticks(20)
        home.hook("question.asked", a_request("que_2", question("Within?"), call="call_2"))
        await home.listener._loops.take_inbox()
        within = await home.person.sees("Within?")
        await home.noted(within)
        assert "waits until" not in within.text
        await until(lambda: "waits" not in home.person.message(before.message_id).text, "no end")
        home.clock.advance(until_clock(home, 7, 1))
        await home.ticks(20)
        for shown in (before, within):
            await until(lambda shown=shown: "waits until 07:" in home.person.message(shown.message_id).text, "an end")  # type: ignore[misc]


async def test_after_the_night_at_least_ten_minutes_are_left(home: House) -> None:
    """Also for a question that came within it, or was touched then, if the time to answer is shorter than that."""
    home.clock.advance(until_clock(home, 23))
    async with home.still(questions={"quiet_hours": "22:00-07:00", "tz": "UTC", "ttl": "2m"}) as listener:
        await home.ticks(20)
        untouched, touched = await asked(home, "One?", "Two?")
        await home.ticks(20)
        tap = home.person.tap(touched, "✏️ Other")
        await listener._parts.phone.updates.step(longest_s=0)
        await home.person.toast(tap)
        home.clock.advance(until_clock(home, 7))
        await home.ticks(1)
        for shown in (untouched, touched):
            await until(lambda shown=shown: "waits until 07:10" in home.person.message(shown.message_id).text, "an end")  # type: ignore[misc]
        await home.ticks(300)
        assert phases(home) == ["open", "open"]


async def test_an_end_that_cannot_be_saved_after_the_night_is_shown_later(home: House) -> None:
    """Else the phone would show none until somebody taps."""
    home.clock.advance(until_clock(home, 23))
    async with home.still(questions={"quiet_hours": "22:00-07:00", "tz": "UTC"}):
        await home.ticks(20)
        (shown,) = await asked(home, "Which one?")
        home.clock.advance(until_clock(home, 7, 1))
        with unwritable(home.store / "pending" / f"{home.entry().id}.json"), pytest.raises(NotSaved):
            await home.ticks(20)
        await home.ticks(20)
        await until(lambda: "waits until 07:" in home.person.message(shown.message_id).text, "an end")


async def test_a_restart_at_the_end_of_the_night_loses_no_digest(home: House) -> None:
    """What came in the night made no sound."""
    home.clock.advance(until_clock(home, 23))
    quiet = {"quiet_hours": "22:00-07:00", "tz": "UTC"}
    async with home.still(questions=quiet):
        await home.ticks(20)
        await asked(home, "One?")
    home.clock.advance(until_clock(home, 7, 1))
    async with home.still(questions=quiet):
        await home.ticks(20)
        await home.person.sees("Quiet hours have ended: one question is waiting")


async def test_a_night_without_questions_ends_in_silence(home: House) -> None:
    """No digest of nothing."""
    home.clock.advance(until_clock(home, 23))
    async with home.still(questions={"quiet_hours": "22:00-07:00", "tz": "UTC"}):
        await home.ticks(20)
        home.clock.advance(until_clock(home, 7, 1))
        await home.ticks(40)
        await asked(home, "One?")
        assert len(home.person.shown()) == 1


async def test_a_digest_that_cannot_be_sent_is_logged(home: House, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing depends on it."""
    home.clock.advance(until_clock(home, 23))
    async with home.still(questions={"quiet_hours": "22:00-07:00", "tz": "UTC"}):
        await home.ticks(20)
        await asked(home, "One?")
        home.api.control.fault(method="sendMessage", action="error", status=500)
        home.clock.advance(until_clock(home, 7, 1))
        await home.ticks(1)
        await until(lambda: "a message was not sent" in caplog.text, "a line in the log")


# --- many at once -------------------------------------------------------------------------------------------------


async def test_many_that_run_out_of_time_at_once_end_each_by_itself(home: House) -> None:
    """Each had its own final call; after a gap each has ten minutes more."""
    async with home.still():
        await asked(home, *(f"Number {number}?" for number in range(4)))
        await home.ticks(CALL_S)
        await until(lambda: all(entry.phone.sides for entry in home.entries()), "all final calls")
        await home.ticks(TTL_S - CALL_S - 20)
        assert phases(home) == ["open"] * 4
        await home.ticks(40)
        assert phases(home) == ["sending"] * 4
