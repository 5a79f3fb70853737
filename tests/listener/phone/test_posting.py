"""What stands on the phone is what is saved, however sends and edits go wrong on the way."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from hermes.listener.phone.posting import POSTS
from tests.listening import House, a_request, house, question, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes.sandbox.phone_values import ShownMessage

ASKED = "Which database?"
NOT_SAVED = "nothing was saved"
TYPE = "Type your answer"
home = house("new")


@contextmanager
def unnoted(home: House) -> Iterator[None]:
    """Meanwhile nothing about the one open ask can be saved."""
    (pending,) = (home.store / "pending").glob("*.json")
    folder = pending.with_name(f".{pending.name}.{os.getpid()}.tmp")
    folder.mkdir()
    yield
    folder.rmdir()


def sent(home: House, text: str) -> list[ShownMessage]:
    """Every message that ever held this text, deleted ones too."""
    found = home.api.control.messages()
    return [one for one in found if one.from_bot and any(text in version.text for version in one.versions)]


async def test_a_message_deleted_on_the_phone_is_posted_again(home: House) -> None:
    """At its next change it is found to be gone; the new one works."""
    await home.start()
    home.agent.ask([question(multiple=True)])
    first = await home.person.sees(ASKED)
    home.api.control.delete(first.message_id)
    home.person.tap(first, data=first.rows[0][0].data)
    second = await home.person.sees(ASKED)
    assert second.message_id != first.message_id
    assert "☑" in str(second.labels)
    await home.person.taps(second, "Done")
    await home.person.sees("✅ PostgreSQL", buttons=False)
    assert home.agent.effects[0].answers == (("PostgreSQL",),)


async def test_a_question_that_is_wanted_again_while_it_is_drawn_is_posted_again(home: House) -> None:
    """The end of the drawing does not bring the older message back, which is deleted."""
    await home.start()
    home.agent.ask([question(multiple=True)])
    first = await home.person.sees(ASKED)
    await home.noted(first)
    home.api.control.fault(method="editMessageText", action="hang", hang_s=1.0, processed=True)
    await home.person.taps(first, "PostgreSQL")
    await home.person.sees("☑")
    home.person.write("/open")
    await home.person.gone(first)
    await until(lambda: len(sent(home, ASKED)) == 2, "a new message")
    second = await home.person.sees(ASKED)
    await home.person.taps(second, "Done")
    await home.person.sees("✅ PostgreSQL", buttons=False)


async def test_a_settled_message_that_was_deleted_stays_so(home: House) -> None:
    """What is over is not posted again."""
    await home.start()
    request_id = home.agent.ask([question()])
    shown = await home.person.sees(ASKED)
    home.api.control.delete(shown.message_id)
    home.agent.answer(request_id, [["SQLite"]])
    await home.closed()
    assert len(sent(home, ASKED)) == 1


async def test_a_send_that_timed_out_and_arrived(home: House) -> None:
    """It is sent again; a tap on the older copy counts, and then one message is left."""
    await home.start()
    home.api.control.fault(method="sendMessage", action="cut_after")
    home.agent.ask([question(multiple=True)])
    await until(lambda: len(sent(home, ASKED)) == 2, "a second copy")
    first, second = sent(home, ASKED)
    await home.person.taps(first, "PostgreSQL")
    await home.person.gone(first)
    await home.person.taps(second, "Done")
    await home.person.sees("✅ PostgreSQL", buttons=False)
    assert len(home.agent.effects) == 1


async def test_a_message_may_be_answered_before_its_sending_was_confirmed(home: House) -> None:
    """Telegram is slow to say that it took it: it is on the phone, and its buttons work."""
    await home.start()
    home.api.control.fault(method="sendMessage", action="hang", hang_s=1.0, processed=True)
    home.agent.ask([question()])
    shown = await home.person.sees(ASKED)
    assert await home.person.taps(shown, "SQLite") == "SQLite"
    assert home.entry().phone.message_id == shown.message_id
    await home.person.sees("✅ SQLite", buttons=False)
    assert len(sent(home, ASKED)) == 1


async def test_the_time_to_answer_begins_with_the_first_tap_where_no_send_was_confirmed(home: House) -> None:
    """A listener that was stopped meanwhile takes the message over as it is."""
    await home.start()
    home.api.control.fault(method="sendMessage", action="hang", hang_s=60, processed=True)
    home.agent.ask([question(multiple=True)])
    shown = await home.person.sees(ASKED)
    await home.person.taps(shown, "SQLite")
    await home.stop()
    home.api.control.clear_faults()
    await home.start()
    await until(lambda: home.entry().timing.posted_s is not None, "its time to answer")
    assert home.entry().phone.message_id == shown.message_id
    assert len(sent(home, ASKED)) == 1


async def test_a_reply_to_a_copy_shows_which_message_is_there(home: House) -> None:
    """A text tells as much as a tap: the copy that it replies to goes, and one message is left."""
    await home.start()
    home.api.control.fault(method="sendMessage", action="cut_after")
    home.agent.ask([question()])
    await until(lambda: len(sent(home, ASKED)) == 2, "a second copy")
    first, _ = sent(home, ASKED)
    home.api.phone.write("In words", reply_to=first)
    await home.person.gone(first)
    await home.person.sees("✅ “In words”", buttons=False)
    assert len(home.agent.effects) == 1


async def test_the_first_of_two_sends_is_answered_while_the_second_is_under_way(home: House) -> None:
    """Both had arrived: the one that was tapped goes, the newer one stays and shows the answer."""
    await home.start()
    home.api.control.fault(method="sendMessage", action="cut_after")
    home.api.control.fault(method="sendMessage", action="hang", hang_s=1.0, processed=True)
    home.agent.ask([question()])
    await until(lambda: len(sent(home, ASKED)) == 2, "a second copy")
    first, second = sent(home, ASKED)
    await home.person.taps(first, "SQLite")
    ended = await home.person.sees("✅ SQLite", buttons=False)
    await home.person.gone(first)
    assert (await home.person.sees("✅ SQLite", buttons=False)).message_id == second.message_id
    assert ended.text
    assert len(home.agent.effects) == 1


async def test_a_post_that_could_not_be_noted_is_not_sent_again(home: House, caplog: pytest.LogCaptureFixture) -> None:
    """The disk refuses for a while: one message all the same."""
    await home.start(questions={"post_after": "20s"})
    home.agent.ask([question()])
    await until(lambda: home.entries() and home.entry().code, "the entry, with its code")
    with unnoted(home):
        home.clock.advance(20)
        home.listener._parts.steps.kick("phone", home.entry().id)
        shown = await home.person.sees(ASKED)
        for times in range(1, 4):
            await until(lambda times=times: caplog.text.count(NOT_SAVED) >= times, "the disk's refusal")  # type: ignore[misc]
            home.listener._parts.steps.kick("phone", home.entry().id)
    home.listener._parts.steps.kick("phone", home.entry().id)
    await until(lambda: home.entry().phone.message_id == shown.message_id, "the post noted")
    assert len(sent(home, ASKED)) == 1
    home.listener._parts.steps.kick("phone", "nobody22")


async def test_a_post_that_could_not_be_noted_still_tells_the_end(home: House) -> None:
    """Somebody sees it, though no entry knows: it is not over before anybody saw it."""
    await home.start(questions={"post_after": "20s"})
    request_id = home.agent.ask([question()])
    await until(lambda: home.entries() and home.entry().code, "the entry, with its code")
    with unnoted(home):
        home.clock.advance(20)
        home.listener._parts.steps.kick("phone", home.entry().id)
        shown = await home.person.sees(ASKED)
        home.agent.abort(home.agent.pending[request_id]["sessionID"])
    await home.person.sees("The agent no longer needs this", buttons=False)
    assert [message.message_id for message in home.person.shown()] == [shown.message_id]


async def test_a_message_beside_the_main_one_that_could_not_be_noted_is_not_sent_again(
    home: House, caplog: pytest.LogCaptureFixture
) -> None:
    """The disk is full from the moment on in which it is sent; once there is room, it is deleted with its reason."""
    await home.start()
    home.agent.ask([question()])
    shown = await home.person.sees(ASKED)
    await home.noted(shown)
    home.api.control.fault(method="sendMessage", action="hang", hang_s=60, processed=True)
    await home.person.taps(shown, "✏️ Other")
    typing = await home.person.sees(TYPE)
    with unnoted(home):
        home.api.control.clear_faults()
        for times in range(1, 4):
            await until(lambda times=times: caplog.text.count(NOT_SAVED) >= times, "the disk's refusal")  # type: ignore[misc]
            home.listener._parts.steps.kick("phone", home.entry().id)
        assert not home.entry().phone.sides
    home.listener._parts.steps.kick("phone", home.entry().id)
    await until(lambda: [side.message_id for side in home.entry().phone.sides] == [typing.message_id], "it noted")
    assert len(sent(home, TYPE)) == 1
    home.person.write("In words")
    await home.person.gone(typing)
    await home.person.sees("✅ “In words”", buttons=False)


async def test_a_permission_that_could_not_be_noted_replaces_the_one_before(
    home: House, caplog: pytest.LogCaptureFixture
) -> None:
    """The disk is full from the moment on in which it is sent: the message before goes all the same."""
    await home.start()
    home.agent.finishes = False
    session = home.agent.permissions[home.agent.ask_permission("bash", ["echo one"])]["sessionID"]
    first = await home.person.sees("echo one")
    await home.noted(first)
    await home.person.taps(first, "Allow once")
    await home.put_away()
    home.api.control.fault(method="sendMessage", action="hang", hang_s=60, processed=True)
    home.agent.ask_permission("bash", ["echo two"], session=session)
    second = await home.person.sees("echo two", buttons=True)
    with unnoted(home):
        home.api.control.clear_faults()
        await until(lambda: NOT_SAVED in caplog.text, "the disk's refusal")
    home.listener._parts.steps.kick("phone", home.entry().id)
    await home.noted(second)
    await home.person.gone(first)


async def test_waiting_as_long_as_telegram_says(home: House) -> None:
    """A 429 in the middle of it all: the same message, once, after the pause; taps are answered meanwhile."""
    await home.start()
    home.agent.ask([question(multiple=True)])
    shown = await home.person.sees(ASKED)
    home.api.control.fault(method="editMessageText", action="error", status=429, retry_after_s=1)
    await home.person.taps(shown, "PostgreSQL")
    await home.person.taps(shown, "SQLite")
    await until(lambda: str(home.person.message(shown.message_id).labels).count("☑") == 2, "both boxes")
    await until(lambda: all(call.status for call in home.api.control.calls("editMessageText")), "the end of the edits")
    edits = [call.status for call in home.api.control.calls("editMessageText")]
    assert edits == [429, 200, 200]


async def test_a_refused_edit_is_tried_again(home: House) -> None:
    """A 400 that says nothing of a message that is gone: the buttons stay those that are there."""
    await home.start()
    home.agent.ask([question(multiple=True)])
    shown = await home.person.sees(ASKED)
    home.api.control.fault(method="editMessageText", action="error", status=400, description="Bad Request: odd")
    await home.person.taps(shown, "PostgreSQL")
    await until(lambda: [c for c in home.api.control.calls("editMessageText") if c.status == 400], "a refusal")
    await home.person.taps(shown, "SQLite")
    await until(lambda: str(home.person.message(shown.message_id).labels).count("☑") == 2, "both boxes")
    assert len(home.person.shown()) == 1


async def test_what_the_desk_answers_in_time_is_never_posted(home: House) -> None:
    """`post_after` waits for the desk; what is still open then is posted."""
    await home.start(questions={"post_after": "20s"})
    quick = home.agent.ask([question("Quick one?")])
    home.agent.ask([question("Slow one?")])
    await until(lambda: len(home.entries()) == 2, "both entries")
    home.agent.answer(quick, [["SQLite"]])
    await until(lambda: len(home.entries()) == 1, "the end of the quick one")
    assert home.person.shown() == []
    home.clock.advance(20)
    home.listener._parts.steps.kick("phone", home.entry().id)
    await home.person.sees("Slow one?")
    assert sent(home, "Quick one?") == []


async def test_what_ends_while_others_wait_for_telegram_is_never_posted(home: House) -> None:
    """Few messages wait for Telegram at once; what is behind them is drawn later, as it is then."""
    await home.start()
    home.api.control.fault(method="sendMessage", action="hang", hang_s=60)
    asked = [home.agent.ask([question(f"The {number}th?")]) for number in range(POSTS + 2)]
    await until(lambda: len(home.entries()) == len(asked), "all entries")
    home.agent.answer(asked[-1], [["SQLite"]])
    await until(lambda: any(one.state.outcome for one in home.entries()), "the end of the last")
    home.api.control.clear_faults()
    await home.person.sees(f"The {POSTS}th?")
    await until(lambda: len(home.entries()) == len(asked) - 1, "the last to be closed")
    assert sent(home, f"The {POSTS + 1}th?") == []


async def test_a_clock_that_is_set_back_holds_no_question_up(home: House) -> None:
    """Asked an hour after now, as it seems: it is posted all the same."""
    await home.start()
    home.api.control.fault(method="sendMessage", action="error", status=500)
    home.agent.ask([question()])
    await until(lambda: home.api.control.calls("sendMessage"), "a post that fails")
    home.clock.set_back(3600)
    await home.person.sees(ASKED)


async def test_messages_beside_come_change_and_go(home: House) -> None:
    """The word after ✏️ is deleted once it is over; an offer that was deleted on the phone comes anew."""
    await home.start()
    home.agent.ask([question()])
    shown = await home.person.sees(ASKED)
    await home.person.taps(shown, "✏️ Other")
    typing = await home.person.sees("Type your answer")
    await home.person.taps(typing, "✏️ Cancel typing")
    await home.person.gone(typing)
    home.person.write("DuckDB")
    offer = await home.person.sees("Is this your answer")
    home.api.control.delete(offer.message_id)
    home.person.write("Oracle")
    again = await home.person.sees("Is this your answer")
    assert again.message_id != offer.message_id
    await home.person.taps(again, "Use “Oracle”")
    await home.person.gone(again)
    await home.person.sees("✅ “Oracle”", buttons=False)


async def test_a_message_beside_that_cannot_be_changed(home: House) -> None:
    """An edit that is refused for another reason is tried again, and nothing is sent anew."""
    await home.start()
    home.agent.ask([question()])
    await home.person.sees(ASKED)
    home.person.write("DuckDB")
    offer = await home.person.sees("Is this your answer")
    home.api.control.fault(method="editMessageText", action="error", status=400, description="Bad Request: odd")
    home.person.write("Oracle")
    await until(lambda: home.api.control.calls("editMessageText"), "a refusal")
    home.person.write("Postgres 17")
    await until(lambda: "Postgres 17" in str(home.person.message(offer.message_id).labels), "the newest offer")
    assert len(sent(home, "Is this your answer")) == 1


async def test_a_copy_that_is_too_old_to_delete(home: House) -> None:
    """It stays, and nothing else is held up by it."""
    await home.start()
    home.api.control.fault(method="sendMessage", action="cut_after")
    home.agent.ask([question(multiple=True)])
    await until(lambda: len(sent(home, ASKED)) == 2, "a second copy")
    first, second = sent(home, ASKED)
    home.api.control.fault(
        method="deleteMessage", action="error", status=400, description="Bad Request: message can't be deleted"
    )
    await home.person.taps(first, "PostgreSQL")
    await home.person.taps(second, "Done")
    await home.person.sees("✅ PostgreSQL", buttons=False)
    assert not home.person.message(first.message_id).deleted


async def test_a_copy_that_another_program_keeps_from_being_deleted(home: House) -> None:
    """A 409 says nothing about the message, so the deletion is repeated."""
    await home.start()
    home.api.control.fault(method="sendMessage", action="cut_after")
    home.agent.ask([question(multiple=True)])
    await until(lambda: len(sent(home, ASKED)) == 2, "a second copy")
    first, second = sent(home, ASKED)
    home.api.control.fault(
        method="deleteMessage", action="error", status=409, description="Conflict: terminated by other getUpdates"
    )
    await home.person.taps(first, "PostgreSQL")
    await home.person.taps(second, "Done")
    await until(lambda: home.person.message(first.message_id).deleted, "the deletion")


async def test_an_end_nobody_saw_the_beginning_of(home: House) -> None:
    """Over before it was posted: nothing is said."""
    await home.start(questions={"post_after": "20s"})
    home.hook("question.asked", a_request("que_1"))
    await until(home.entries, "the entry")
    home.hook("question.rejected", {"requestID": "que_1", "sessionID": "ses_1"})
    await home.closed()
    assert home.person.shown() == []


async def test_an_answer_settles_in_one_edit(home: House) -> None:
    """The tap, the delivery and the news that the agent works again are not three edits."""
    await home.start()
    home.agent.ask([question()])
    shown = await home.person.sees(ASKED)
    with home.clock.standing():
        await home.person.taps(shown, "SQLite")
        await home.closed()
    texts = [version.text for version in home.person.message(shown.message_id).versions]
    assert len(texts) == 2
    assert "working again" in texts[1]


async def test_news_of_work_is_awaited_for_a_while_only(home: House) -> None:
    """An agent that goes on in silence: the entry is put away after ten seconds."""
    home.agent.finishes = False
    await home.start()
    home.agent.ask([question()])
    shown = await home.person.sees(ASKED)
    home.agent.hold_events()
    await home.person.taps(shown, "SQLite")
    await home.person.sees("✅ SQLite", buttons=False)
    assert home.entry().state.phase == "settled"
    home.clock.advance(10)
    home.listener._parts.steps.kick("phone", home.entry().id)
    await home.closed()


async def test_a_message_beside_that_is_tapped_before_its_send_is_answered(home: House) -> None:
    """It is no second copy: it goes as its tap says, and comes again when it is wanted again."""
    await home.start()
    home.agent.ask([question()])
    asked = await home.person.sees(ASKED, buttons=True)
    await home.noted(asked)
    home.api.control.fault(method="sendMessage", action="hang", hang_s=60, processed=True)
    await home.person.taps(asked, "✏️ Other")
    typing = await home.person.sees("Type your answer")
    home.person.tap(typing, "✏️ Cancel typing")
    await until(lambda: home.entry().phone.copies == (typing.message_id,), "the tap on what nobody has noted yet")
    home.api.control.clear_faults()
    home.api.control.fault(method="deleteMessage", action="hang", hang_s=60.0)
    await until(lambda: home.entry().phone.sides, "its note")
    assert home.entry().phone.copies == ()
    home.api.control.clear_faults()
    await home.person.gone(typing)
    await home.person.taps(asked, "✏️ Other")
    assert (await home.person.sees("Type your answer")).message_id != typing.message_id
