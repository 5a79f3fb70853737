"""What comes from the phone: saved before it is acknowledged, once, from those who may, and always answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes.chat.screens.buttons import encode
from hermes.errors import InUse
from hermes.model.actions import KeepWaiting
from hermes.sandbox.botapi import Chat
from tests.listener.gates import fails_once, unwritable
from tests.listening import ANN, BOB, STRANGER, House, a_request, house, living, question, until
from tests.prompted import Desked

if TYPE_CHECKING:
    from pathlib import Path

NOTICES = {"opencode2": {"enabled": False}, "notices": {"finished": "0s"}}
ASKED = "Which database?"
STALE = "This page has changed"
GROUP, OTHER_GROUP = -4_001, -4_002
LONG = "word " * 819 + "."  # 4096 units: a client sends it alone, and the next ones behind it
home = house("new", started=True)


def pending(home: House) -> Path:
    """The file of the one open entry."""
    (file,) = (home.store / "pending").glob("*.json")
    return file


# --- taps ---------------------------------------------------------------------------------------------------------


async def test_a_stranger_gets_nothing(home: House, caplog: pytest.LogCaptureFixture) -> None:
    """No toast, no word, no change; the log says who it was, and not what."""
    home.agent.ask([question()])
    shown = await home.person.sees(ASKED)
    home.api.control.write("SQLite, secretly", user_id=STRANGER.id)
    home.api.control.inject(_tap_of(STRANGER.id, home, shown.message_id, str(shown.rows[0][0].data)))
    await until(lambda: caplog.text.count("was ignored") == 2, "two lines in the log")
    assert home.entry().state.phase == "open"
    assert home.api.control.toasts() == ()
    assert len(home.person.shown()) == 1
    assert "secretly" not in caplog.text


def _tap_of(user: int, home: House, message_id: int, data: str) -> dict[str, object]:
    message = {"message_id": message_id, "date": 1, "chat": {"id": home.chat_id, "type": "private"}, "text": "?"}
    person = {"id": user, "is_bot": False, "first_name": "M"}
    return {"callback_query": {"id": "77", "from": person, "message": message, "chat_instance": "1", "data": data}}


async def test_late_and_odd_taps_get_a_word(home: House) -> None:
    """Settled, unknown, from another Hermes, or of a settled ask whose file is damaged."""
    home.agent.ask([question()])
    shown = await home.person.sees(ASKED)
    data = str(shown.rows[0][0].data)
    await home.person.taps(shown, "SQLite")
    await home.closed()
    assert await home.person.toast(home.person.tap(shown, data=data)) == "Already answered: SQLite"
    assert await home.person.toast(home.person.tap(shown, data="x")) == STALE
    assert await home.person.toast(home.person.tap(shown, data=f"zzzzzzz2{data[8:]}")) == STALE
    (kept,) = (home.store / "done").rglob("*.json")
    kept.write_text("torn")
    assert await home.person.toast(home.person.tap(shown, data=data)) == STALE
    assert len(home.agent.effects) == 1


async def test_a_tap_that_meets_the_change_of_another_process_is_tried_again(home: House) -> None:
    """The person hears nothing of it."""
    home.agent.ask([question()])
    shown = await home.person.sees(ASKED)
    await home.noted(shown)
    fails_once(home.listener._store, "change", InUse("it is locked"))
    assert await home.person.taps(shown, "SQLite") == "SQLite"
    assert "change" not in home.listener._store.__dict__


async def test_what_telegram_sends_again_changes_nothing(home: House) -> None:
    """A tap and a text that come twice, while the ask is open and after it was closed."""
    home.agent.ask([question(multiple=True)])
    shown = await home.person.sees(ASKED)
    tap = home.person.tap(shown, "PostgreSQL")
    await home.person.toast(tap)
    home.api.control.redeliver(tap.update_id)
    home.person.write("DuckDB", to=shown)
    await until(lambda: home.entry().state.answers[0].text == "DuckDB", "the text taken in")
    assert home.entry().state.answers[0].picks == (0,)
    last = max(home.entry().state.seen)
    await home.person.taps(shown, "Done (2)")
    await home.closed()
    said = len(home.person.shown())
    await home.stop()
    home.api.control.redeliver(last)
    await home.start()
    home.agent.ask([question("Another one?")])
    await home.person.sees("Another one?")
    assert len(home.person.shown()) == said + 1, "nobody is told that this question is settled already"
    assert len(home.agent.effects) == 1


async def test_the_next_text_goes_where_it_was_asked_for_last(home: House) -> None:
    """✏️ on another ask disarms the first."""
    home.agent.ask([question("First one?")])
    home.agent.ask([question("Second one?")])
    first, second = await home.person.sees("First one?"), await home.person.sees("Second one?")
    assert await home.person.taps(first, "✏️ Other") == "Type your answer as your next message"
    await home.person.taps(second, "✏️ Other")
    await until(lambda: [entry.state.armed is None for entry in home.entries()] == [True, False], "one armed")
    home.person.write("Both of them")
    await home.person.sees("✅ “Both of them”")
    assert home.agent.effects[0].answers == (("Both of them",),)
    assert not home.person.message(first.message_id).deleted


async def test_keep_waiting_is_a_tap_like_any_other(home: House) -> None:
    """It comes from the final call; its button still counts when that call is gone."""
    home.agent.ask([question()])
    shown = await home.person.sees(ASKED)
    await until(lambda: home.entry().timing.posted_s is not None, "the post noted")
    entry = home.entry()
    data = encode(entry.id, entry.state.epoch, KeepWaiting(3600))
    assert await home.person.toast(home.person.tap(shown, data=data)) == "All right, I keep waiting"
    left_s = home.listener._parts.times.clock.left_s(home.entry().timing)
    assert left_s is not None
    assert left_s > 5000


# --- texts --------------------------------------------------------------------------------------------------------


async def test_each_text_that_changes_nothing_is_explained(home: House) -> None:
    """A sticker, a command, an empty room, two open asks, one that is settled."""
    home.person.write("anybody there?")
    await home.person.sees("No question is open just now")
    home.agent.ask([question()])
    shown = await home.person.sees(ASKED)
    home.api.control.send_sticker(reply_to=shown.message_id)
    await home.person.sees("An answer can only be words")
    home.person.write("/settings")
    await home.person.sees("Tap a button below a question")
    home.agent.ask([question("And which name?")])
    await home.person.sees("And which name?")
    await until(lambda: all(entry.phone.message_id for entry in home.entries()), "both noted")
    home.person.write("hm")
    await home.person.sees("Two questions are open")
    await home.person.taps(shown, "SQLite")
    await home.person.sees("✅ SQLite")
    await until(lambda: len(home.entries()) == 1, "the first one closed")
    home.person.write("no, Redis", to=home.person.message(shown.message_id))
    await home.person.sees("I take no more answers to that question")


async def test_a_command_that_is_none_is_named_so(home: House) -> None:
    """A person who mistypes /lock must not think that the phone is locked."""
    home.person.write("/lokc")
    await home.person.sees("I don't know that command; /help lists those that I know.")
    home.agent.ask([question()])
    await home.noted(await home.person.sees(ASKED))
    written = home.person.write("/lock!")
    told = await until(lambda: [one for one in home.person.shown() if one.reply_to == written], "a word")
    assert "I don't know that command" in told[0].text


async def test_a_text_that_comes_after_the_answer(home: House) -> None:
    """It is on its way already; the text changes nothing."""
    home.agent.ask([question()])
    shown = await home.person.sees(ASKED)
    home.agent.away()
    await home.person.taps(shown, "SQLite")
    home.person.write("Redis", to=shown)
    await home.person.sees("An answer is already on its way: SQLite")
    home.agent.back()
    await home.person.sees("✅ Delivered")
    assert home.agent.effects[0].answers == (("SQLite",),)


@pytest.mark.parametrize("question_ends", [False, True])
async def test_an_edit_of_an_answer_is_told_that_it_changes_nothing(home: House, *, question_ends: bool) -> None:
    """The words that were sent first go to the agent; without this the person takes the edit for the answer."""
    home.agent.ask([question(multiple=not question_ends)])
    shown = await home.person.sees(ASKED)
    written = home.person.write("DuckBD", to=shown)
    await home.person.sees("“DuckBD”", buttons=not question_ends)
    home.api.control.rewrite(written, "DuckDB")
    told = await home.person.sees("That edit changes nothing")
    assert told.reply_to == written
    if not question_ends:
        assert home.entry().state.answers[0].text == "DuckBD"


async def test_an_edit_in_a_group_is_told_only_if_it_is_a_reply_to_the_bot(tmp_path: Path) -> None:
    """People there talk to each other."""
    async with living(tmp_path, "new", chats=(Chat(GROUP, "Team"),), chat_id=GROUP, privacy_mode=False) as team:
        await team.start()
        team.agent.ask([question(multiple=True)])
        shown = await team.person.sees(ASKED, chat=GROUP)
        talk = team.person.write("Lunch?", chat_id=GROUP)
        team.api.control.rewrite(talk, "Lunch at one?", chat_id=GROUP)
        written = team.person.write("DuckBD", to=shown, chat_id=GROUP)
        await team.person.sees("“DuckBD”", chat=GROUP)
        team.api.control.rewrite(written, "DuckDB", chat_id=GROUP)
        told = await team.person.sees("That edit changes nothing", chat=GROUP)
        assert told.reply_to == written
        edits = [one for one in team.person.shown(chat=GROUP) if "That edit" in one.text]
        assert len(edits) == 1, "the talk comes first, and gets no word"


async def test_a_plain_label_is_offered_and_taken_by_a_tap(home: House) -> None:
    """Nothing typed counts by itself."""
    home.agent.ask([question()])
    await home.person.sees(ASKED)
    await until(lambda: home.entry().phone.message_id, "the post noted")
    home.person.write("SQLite")
    offered = await home.person.sees("Is this your answer to", buttons=True)
    assert home.entry().state.phase == "open"
    assert await home.person.taps(offered, "Use “SQLite”") == "SQLite"
    await until(lambda: home.agent.effects, "the answer")
    assert home.agent.effects[0].answers == (("SQLite",),)


async def test_a_no_to_an_offer_is_no_answer(home: House) -> None:
    """Some people reply instead of a tap: the agent must not get the "no"."""
    home.agent.ask([question()])
    await home.noted(await home.person.sees(ASKED))
    home.person.write("fix the tests, too")
    offered = await home.person.sees("Is this your answer to", buttons=True)
    await until(lambda: home.entry().phone.sides, "the offer noted")
    home.person.write("No!", to=offered)
    await until(lambda: "No!" in str(home.entry().state.offer), "another offer")
    assert await home.person.taps(offered, "Use “No!”") == "No!"
    await until(lambda: home.agent.effects, "the answer")
    assert home.agent.effects[0].answers == (("No!",),)


@pytest.mark.parametrize("is_drawn", [True, False])
async def test_a_text_that_waited_for_a_tap_when_the_question_ended_was_not_used(
    home: House, *, is_drawn: bool
) -> None:
    """A new message says so; also if there was no time to show the offer."""
    request = home.agent.ask([question()])
    await home.noted(await home.person.sees(ASKED))
    if not is_drawn:
        home.api.control.fault(method="sendMessage", action="hang", hang_s=1.0)
    home.person.write("fix the tests, too")
    await until(lambda: home.entry().state.offer, "the offer")
    offered = await home.person.sees("Is this your answer to") if is_drawn else None
    home.agent.answer(request, [["SQLite"]])
    told = await home.person.sees("Your text “fix the tests, too” was not used")
    assert told.rows == ()
    if offered is not None:
        assert told.message_id > offered.message_id
        await until(lambda: home.person.find("Is this your answer to") is None, "the offer is deleted")


async def test_a_text_that_is_quicker_than_the_answer_of_telegram_is_offered(home: House) -> None:
    """The question is on the phone already, though its send is not answered yet."""
    home.api.control.fault(method="sendMessage", action="hang", hang_s=1.0, processed=True)
    home.agent.ask([question()])
    await home.person.sees(ASKED)
    home.person.write("SQLite")
    await home.person.sees("Is this your answer to", buttons=True)


async def test_a_text_from_before_a_question_does_not_answer_it(home: House) -> None:
    """Telegram kept it while nobody listened; the question that it was for is over, another one is open."""
    request = home.agent.ask([question("The first?")])
    first = await home.person.sees("The first?")
    await until(lambda: home.entry().phone.message_id, "the post noted")
    polls = home.api.control.state().calls["getUpdates"]
    home.api.control.fault(method="getUpdates", action="error", status=502, times=99)
    # The poll that is held brings a text that is written before it ends.
    await until(lambda: home.api.control.state().calls["getUpdates"] > polls, "a poll in vain")
    home.person.write("SQLite")
    home.agent.answer(request, [["PostgreSQL"]])
    await home.person.sees("Answered on the computer")
    home.agent.ask([question("Drop the production database?")])
    await home.person.sees("Drop the production database?")
    home.api.control.clear_faults()
    await home.person.sees("No question was waiting when you wrote that")
    assert home.entries()[-1].state.phase == "open"
    assert not home.person.message(first.message_id).deleted


async def test_a_reply_to_another_bots_message_is_nobodys(home: House) -> None:
    """Its last line ends as ours do; it is neither an answer nor deleted."""
    home.agent.ask([question()])
    await home.person.sees(ASKED)
    await until(lambda: home.entry().phone.message_id, "the post noted")
    chat = {"id": home.chat_id, "type": "private", "first_name": "Ann"}
    ann = {"id": 1001, "is_bot": False, "first_name": "Ann"}
    date = int(home.clock.now())
    copied = f"Which one?\nshop-api · #{home.entry().code}"
    other = {"message_id": 9000, "date": date, "chat": chat, "text": copied}
    other |= {"from": {"id": 99, "is_bot": True, "first_name": "Another", "username": "another_bot"}}
    home.api.control.inject(
        {
            "message": {
                "message_id": 9001,
                "date": date,
                "chat": chat,
                "from": ann,
                "text": "SQLite",
                "reply_to_message": other,
            }
        }
    )
    await home.person.sees("Is this your answer to", buttons=True)
    assert home.agent.effects == []
    assert not [call for call in home.api.control.calls("deleteMessage") if call.params.get("message_id") == "9000"]


async def test_a_text_that_lacks_a_part_is_offered_although_the_next_one_ends_it(home: House) -> None:
    """The person has read that a part of it could not be saved. The next text is whole, and leaves."""
    home.agent.ask([question()])
    shown = await home.person.sees(ASKED, buttons=True)
    await home.noted(shown)
    with home.clock.standing():
        home.person.write(LONG, to=shown)
        await until(lambda: home.entry().state.joining, "the first part")
        with unwritable(pending(home)):
            home.person.write("and the end", to=shown)
            await home.person.sees("I could not save that")
    home.clock.advance(10)
    home.person.write(LONG + "DuckDB", to=home.person.message(shown.message_id))
    decision = await until(lambda: home.entry().state.decision, "the next text")
    assert decision.answers[0].text == LONG + "DuckDB"


async def test_the_end_of_a_text_whose_first_part_was_not_saved_is_no_answer(home: House) -> None:
    """The person hears of both parts."""
    home.agent.ask([question()])
    shown = await home.person.sees(ASKED, buttons=True)
    await home.noted(shown)
    with unwritable(pending(home)):
        home.person.write("Do NOT" + LONG[6:], to=shown)
        await home.person.sees("I could not save that")
    end = home.person.write("run it", to=shown)
    shows = home.person.shown
    await until(lambda: [one for one in shows() if "could not save" in one.text and one.reply_to == end], "the word")
    assert home.entry().state.phase == "open"
    assert home.agent.effects == []


async def test_a_reply_that_the_app_began_for_another_person_is_offered(tmp_path: Path) -> None:
    """Telegram opens the request to type in the apps of all people of the group."""
    async with living(tmp_path, "new", chats=(Chat(GROUP, "Team"),), chat_id=GROUP, privacy_mode=False) as team:
        await team.start()
        team.agent.ask([question()])
        shown = await team.person.sees(ASKED, chat=GROUP)
        await team.noted(shown)
        await team.person.taps(shown, "✏️ Other")
        typing = await team.person.sees("Reply to this", chat=GROUP)
        await until(lambda: team.entry().phone.sides, "it noted")
        team.person.write("Lunch?", to=typing, chat_id=GROUP, user_id=BOB.id)
        await team.person.sees("Is this your answer", chat=GROUP)
        assert team.entry().state.phase == "open"


async def test_half_of_a_split_text_is_never_delivered(home: House) -> None:
    """The second part waits at Telegram while the first one is due: a poll that begins later comes first."""
    home.agent.ask([question()])
    shown = await home.person.sees(ASKED)
    first, second = "Do NOT run it" + " ." * 2030, "before the backup is verified"
    home.person.write(first, to=shown)
    await until(lambda: home.entry().state.joining, "the first part saved")
    home.api.control.fault(method="getUpdates", action="error", status=502, times=2)
    home.person.write(second)
    home.clock.advance(600)
    home.listener._parts.steps.kick("join", home.entry().id)
    await until(lambda: home.agent.effects, "the answer")
    ((answer,),) = home.agent.effects[0].answers or ()
    assert answer.endswith(second)
    assert answer.startswith("Do NOT run it")


@pytest.mark.parametrize("trouble", ["not saved", "locked"])
async def test_a_text_whose_second_part_was_not_taken_in_is_only_offered(home: House, trouble: str) -> None:
    """The person hears of it, and nothing that was not meant leaves."""
    home.agent.ask([question()])
    shown = await home.person.sees(ASKED)
    with home.clock.standing():
        home.person.write("Do NOT run it" + " ." * 2030, to=shown)
        await until(lambda: home.entry().state.joining, "the first part saved")
        if trouble == "locked":
            await home.listener._store.lock_phone()
            home.person.write("before the backup is verified")
            await home.person.sees("🔒 Locked")
            await home.listener._store.unlock_phone()
        else:
            with unwritable(pending(home)):
                home.person.write("before the backup is verified")
                await home.person.sees("I could not save that")
    home.clock.advance(10)
    home.listener._parts.steps.kick("join", home.entry().id)
    await home.person.sees("Is this your answer to", buttons=True)
    assert home.agent.effects == []


async def test_a_clock_that_was_set_back_keeps_no_text_back(home: House) -> None:
    """A joined text that is due in an hour by the clock on the wall is due now."""
    home.agent.ask([question()])
    shown = await home.person.sees(ASKED)
    home.person.write("w" * 3000, to=shown)
    await until(lambda: home.entry().state.joining, "the text saved")
    home.clock.set_back(3600)
    home.listener._parts.steps.kick("join", home.entry().id)
    await until(lambda: home.agent.effects, "the answer")


async def test_a_locked_phone_sends_no_text_that_is_being_joined(home: House) -> None:
    """It leaves once the computer unlocks the phone."""
    home.agent.ask([question()])
    shown = await home.person.sees(ASKED)
    with home.clock.standing():
        home.person.write("w" * 3000, to=shown)
        await until(lambda: home.entry().state.joining, "the text saved")
        home.person.write("/lock")
        await home.person.sees("🔒 Locked")
    polls = len(home.api.control.calls("getUpdates"))
    home.clock.advance(10)
    await until(lambda: len(home.api.control.calls("getUpdates")) > polls + 2, "further polls")
    assert home.entry().state.joining is not None
    assert home.agent.effects == []
    await home.listener._store.unlock_phone()
    await until(lambda: home.agent.effects, "the answer")


async def test_a_lock_counts_for_what_waits_before_it_at_telegram(home: House) -> None:
    """Hermes was away: a thief has answered and written, and then the person has locked the phone from elsewhere."""
    home.agent.ask([question()])
    shown = await home.person.sees(ASKED, buttons=True)
    await home.noted(shown)
    await home.stop()
    home.person.write("SQLite", to=shown)
    home.person.write("/lock")
    await home.start()
    await until(lambda: len([one for one in home.person.shown() if "🔒 Locked" in one.text]) == 2, "both told")
    assert home.entry().state.phase == "open"
    assert home.entry().state.decision is None


async def test_a_word_that_cannot_be_sent_is_logged(home: House, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing depends on it."""
    home.api.control.fault(method="sendMessage", action="error", status=400, description="Bad Request: odd")
    home.person.write("anybody there?")
    await until(lambda: "a message was not sent" in caplog.text, "a line in the log")


# --- a store that refuses -----------------------------------------------------------------------------------------


async def test_a_tap_that_was_not_saved_is_said_and_may_be_done_again(home: House) -> None:
    """The acknowledgement is the warning; nothing changed; the poll loop goes on, and later all is well."""
    home.agent.ask([question()])
    shown = await home.person.sees(ASKED)
    await until(lambda: home.entry().phone.message_id, "the post noted")
    with unwritable(pending(home)):
        assert "I could not save that" in await home.person.taps(shown, "SQLite")
        assert home.entry().state.phase == "open"
        home.person.write("Redis", to=shown)
        sorry = await home.person.sees("I could not save that")
        assert sorry.reply_to
        assert home.agent.effects == []
    assert await home.person.taps(shown, "SQLite") == "SQLite"
    await home.person.sees("✅ SQLite", buttons=False)
    assert len(home.agent.effects) == 1


async def test_nobody_can_be_told_so_the_tap_stays_with_telegram(home: House) -> None:
    """It comes again, and is saved then."""
    home.agent.ask([question()])
    shown = await home.person.sees(ASKED)
    await until(lambda: home.entry().phone.message_id, "the post noted")
    with unwritable(pending(home)):
        home.api.control.fault(method="answerCallbackQuery", action="error", status=502)
        home.person.tap(shown, "SQLite")
        await until(lambda: home.api.control.calls("answerCallbackQuery"), "a warning that fails")
    await home.person.sees("✅ SQLite", buttons=False)
    assert len(home.agent.effects) == 1


async def test_a_tap_finds_a_damaged_entry_whole(home: House) -> None:
    """What lies there cannot be understood: into quarantine with it; what the listener knows is enough."""
    home.agent.ask([question()])
    shown = await home.person.sees(ASKED)
    await until(lambda: home.entry().phone.message_id, "the post noted")
    # The first tick writes the entry anew, with the time that it has left.
    await until(lambda: not home.listener._parts.phone.timekeeper._stood, "the first tick")
    (pending,) = (home.store / "pending").glob("*.json")
    pending.write_text("torn")
    await home.person.taps(shown, "SQLite")
    await home.person.sees("✅ SQLite", buttons=False)
    await home.closed()
    assert len(home.agent.effects) == 1
    (damaged,) = (home.store / "quarantine").glob("*")
    assert damaged.read_text() == "torn"


# --- a defect -----------------------------------------------------------------------------------------------------


async def test_a_defect_is_told_to_the_person_whose_text_or_tap_met_it(home: House) -> None:
    """Where to look, and nothing of the error; it is in quarantine, and the next text is taken in."""
    home.agent.ask([question()])
    shown = await home.person.sees(ASKED)
    await home.noted(shown)
    phone = home.listener._parts.phone.updates._phone
    fails_once(phone._texts, "take", RuntimeError("a secret in an error"))
    text_id = home.person.write("Redis", to=shown)
    sorry = await home.person.sees("⚠️ That may not have worked, because of a defect of mine. I kept it.")
    assert sorry.reply_to == text_id
    assert sorry.text.endswith(": hermes doctor")
    assert len(list((home.store / "quarantine").glob("*"))) == 1
    fails_once(phone._taps, "take", RuntimeError("a secret in an error"))
    assert await home.person.taps(shown, "SQLite") == sorry.text
    assert await home.person.taps(shown, "SQLite") == "SQLite"
    assert "secret" not in str([one.text for one in home.person.shown()])


async def test_a_stranger_is_told_of_no_defect(home: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor of anything else."""

    def stumbles(*_: object) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(home.listener._parts.phone.updates._phone, "_turn_away", stumbles)
    home.person.write("hello?", user_id=STRANGER.id, chat_id=STRANGER.id)
    await until(lambda: list((home.store / "quarantine").glob("*")), "the quarantine")
    monkeypatch.undo()
    home.person.write("anybody there?")
    await home.person.sees("No question is open")
    assert not home.person.shown(STRANGER.id)
    assert len(home.person.shown()) == 1


# --- groups -------------------------------------------------------------------------------------------------------


async def test_in_a_group_everybody_who_may_counts(tmp_path: Path) -> None:
    """Two people, one group; what they tell each other, and another group that moves, is none of our business."""
    chats = (Chat(GROUP, "Team"), Chat(OTHER_GROUP, "Others"))
    async with living(tmp_path, "new", chats=chats, chat_id=GROUP, privacy_mode=False) as team:
        await team.start()
        team.agent.ask([question()])
        shown = await team.person.sees(ASKED, chat=GROUP)
        team.api.control.migrate(chat_id=OTHER_GROUP)
        team.person.write("Lunch?", chat_id=GROUP)
        assert await team.person.taps(shown, "✏️ Other", user_id=BOB.id) == "Reply with your answer"
        typing = await team.person.sees("Reply to this", chat=GROUP)
        assert typing.force_reply
        team.person.write("DuckDB", to=typing, user_id=BOB.id, chat_id=GROUP)
        ended = await team.person.sees("✅ “DuckDB”", chat=GROUP)
        assert "Bob" in ended.text
        assert team.listener._parts.phone.memory.at.chat_id is None
        assert len(team.agent.effects) == 1


async def test_a_text_of_somebody_who_was_taken_off_the_list_answers_nothing(tmp_path: Path) -> None:
    """It was being joined when the list was changed; another person may say that it is the answer."""
    async with living(tmp_path, "new", chats=(Chat(GROUP, "Team"),), chat_id=GROUP) as team:
        await team.start()
        team.agent.ask([question()])
        shown = await team.person.sees(ASKED, chat=GROUP)
        await team.noted(shown)
        team.person.write(LONG, to=shown, chat_id=GROUP, user_id=BOB.id)
        await until(lambda: team.entry().state.joining, "the text saved")
        await team.stop()
        telegram = {"token": team.api.token, "chat_id": GROUP, "users": [ANN.id], "api_base": team.api.base_url}
        await team.start(telegram=telegram)
        await team.person.sees("Is this your answer to", buttons=True, chat=GROUP)
        assert team.agent.effects == []


async def test_a_reply_to_a_notice_gets_a_word_in_a_group(tmp_path: Path) -> None:
    """And a reply to that gets one, too; what people tell each other gets none."""
    chats = (Chat(GROUP, "Team"),)
    async with living(tmp_path, chats=chats, chat_id=GROUP, privacy_mode=False, sections=NOTICES) as team:
        desk = Desked(team)
        await desk.start()
        shown = await desk.notice(desk.desk.session("Fix login flow"), chat=GROUP)
        team.person.write("Look, it is done", chat_id=GROUP)
        text_id = team.person.write("Now release it", to=shown, chat_id=GROUP)
        said = await team.person.sees("No question is open just now", chat=GROUP)
        assert said.reply_to == text_id
        again_id = team.person.write("Why not?", to=said, chat_id=GROUP)
        await until(lambda: [one.reply_to for one in team.person.shown(GROUP)[1:]] == [text_id, again_id], "two words")


async def test_a_locked_phone_keeps_out_of_the_talk_of_a_group(tmp_path: Path) -> None:
    """Only a text to the bot, an edit of one, and a command are told; hours of talk may pass before the unlock."""
    chats = (Chat(GROUP, "Team"),)
    async with living(tmp_path, "new", chats=chats, chat_id=GROUP, privacy_mode=False) as team:
        await team.start()
        team.agent.ask([question()])
        shown = await team.person.sees(ASKED, chat=GROUP)
        lock = team.person.write("/lock", chat_id=GROUP)
        await until(lambda: locked(team) == [lock], "the lock")
        talk = team.person.write("Lunch?", chat_id=GROUP)
        team.api.control.rewrite(talk, "Lunch at one?", chat_id=GROUP)
        team.api.control.send_sticker(chat_id=GROUP, reply_to=talk)
        written = team.person.write("SQLite", to=shown, chat_id=GROUP, user_id=BOB.id)
        await until(lambda: locked(team) == [lock, written], "the reply told")
        team.api.control.rewrite(written, "Redis", chat_id=GROUP)
        asked = team.person.write("/status", chat_id=GROUP)
        await until(lambda: locked(team) == [lock, written, written, asked], "the edit and the command told")
        assert team.entry().state.decision is None


def locked(team: House) -> list[int | None]:
    """The messages of the group that are answered by a word about the lock."""
    return [one.reply_to for one in team.person.shown(GROUP) if "🔒 Locked" in one.text]


async def test_an_update_of_another_shape_goes_to_quarantine_alone(home: House) -> None:
    """And the next one is taken in."""
    home.hook("question.asked", a_request("que_1"))
    shown = await home.person.sees(ASKED)
    home.api.control.inject({"callback_query": {"id": 5}})
    await home.person.taps(shown, "✏️ Other")
    assert len(list((home.store / "quarantine").glob("*"))) == 1
