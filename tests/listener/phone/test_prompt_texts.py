"""Prompts from the phone: texts, edits, taps and lines; what a crash, a full disk and a lock leave of them."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from hermes.core.prompts import NO_EFFECT_S
from hermes.errors import AgentRefused
from hermes.listener.agent.turn_reports import TurnReports
from hermes.listener.phone import messenger
from hermes.listener.phone.prompt_lines import PROGRESS_S
from hermes.model.notice import Retry, Turn
from hermes.model.prompt_events import Declined, StopWanted
from hermes.model.signals import Busy, Retrying, TurnEnded
from hermes.sandbox.botapi import Chat
from hermes.sandbox.phone import file_of
from tests.harness.folders import remove
from tests.listener.gates import held, unsaved
from tests.listening import ANN, BOB, House, a_request, house, living, question, until
from tests.prompted import PROMPTS, Desked

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from hermes.model.ask import Source
    from hermes.sandbox.phone_values import ShownMessage

home = house(sections=PROMPTS)
GROUP = -777
SORRY = "I could not save that"
TOO_LATE = "Your edit came too late: that prompt stays as it was."
UNTIL_UNLOCKED = "⏳ Waits until the phone is unlocked"
LONG = "word " * 819 + "."  # 4096 units: a client sends it alone, and the next ones behind it


@contextmanager
def full_disk(desk: Desked, kind: str = "prompts") -> Iterator[None]:
    """Let no record of this kind be written in the block."""
    with unsaved(getattr(desk.kept, kind)):
        yield


async def replied(desk: Desked, shop: Source, text: str = "Rename it") -> tuple[ShownMessage, int]:
    """Reply to a notice of the session; the notice, and the message of the text."""
    shown = await desk.notice(shop)
    return shown, desk.home.person.write(text, to=shown)


# --- texts --------------------------------------------------------------------------------------------------------


async def test_a_reply_to_a_notice_goes_to_its_session_once(desk: Desked, shop: Source) -> None:
    """Its line says how far it is, silently, below the text."""
    _, text = await replied(desk, shop)
    await desk.came("Rename it")
    line = await desk.home.person.sees("▶️ Working")
    assert line.reply_to == text
    assert line.silent
    assert "shop · Fix login flow · OpenCode on laptop" in line.text
    desk.desk.end(shop.session_id)
    await desk.looks()
    await desk.phase("finished")
    await desk.home.person.sees("✅ Done", buttons=False)
    assert len(desk.desk.received) == 1


async def test_a_reply_to_an_older_notice_goes_to_its_session(desk: Desked, shop: Source) -> None:
    """Its buttons may be gone, its session is not."""
    first = await desk.notice(shop)
    second = await desk.notice(shop, "And now?")
    assert second.message_id != first.message_id
    await until(lambda: not any(one.outdated for one in desk.kept.notices.all()), "no message with old buttons")
    desk.home.person.write("Rename it", to=first)
    await desk.came("Rename it")


async def test_the_end_of_the_turn_before_a_prompt_is_told(desk: Desked, shop: Source) -> None:
    """At once, although it waits for the desk otherwise: the person is at the phone."""
    shown = await desk.notice(shop)
    await desk.again(questions={"post_after": "1h"})
    desk.desk.sessions[shop.session_id].is_busy = True
    desk.home.person.write("Rename it", to=shown)
    await desk.phase("queued")
    at_s = desk.home.clock.now()
    turn = Turn(shop, "OpenCode", "msg_2", at_s - 200, at_s, "And now?")
    turns = TurnReports(desk.kept)
    await turns.take(TurnEnded(turn))
    desk.desk.end(shop.session_id)
    await desk.looks()
    await desk.came("Rename it")
    await turns.take(Busy(shop.session_id))
    await desk.home.person.sees("And now?")


async def test_the_end_of_the_turn_before_a_prompt_is_asked_for(desk: Desked, shop: Source) -> None:
    """No event has told it yet; one from before the prompt was written is history."""
    shown = await desk.notice(shop)
    desk.desk.sessions[shop.session_id].is_busy = True
    at_s = desk.home.clock.now()
    desk.desk.ended = Turn(shop, "OpenCode", "msg_0", at_s - 900, at_s - 300, "Of long ago.")
    desk.home.person.write("Rename it", to=shown)
    await desk.phase("queued")
    desk.home.clock.advance(10)
    desk.desk.end(shop.session_id)
    await desk.looks()
    await desk.came("Rename it")
    await desk.phase("running")
    assert all(one.turn is None or one.turn.id != "msg_0" for one in desk.kept.notices.all())
    desk.desk.received.clear()
    desk.home.person.write("Test it", to=shown)
    await desk.phase("queued")
    at_s = desk.home.clock.now()
    desk.desk.ended = Turn(shop, "OpenCode", "msg_2", at_s - 10, at_s + 1, "Renamed it.")
    desk.home.clock.advance(10)
    desk.desk.end(shop.session_id)
    await desk.looks()
    await desk.came("Test it")
    await desk.home.person.sees("Renamed it.")


async def test_a_prompt_that_was_written_hours_ago_does_not_begin_by_itself(desk: Desked, shop: Source) -> None:
    """Hermes was away: nobody could see that it waits, and Telegram does not tell that it was deleted since."""
    shown = await desk.notice(shop)
    await desk.home.stop()
    desk.home.person.write("Rename it", to=shown)
    desk.home.clock.advance(8 * 3600.0)
    await desk.start()
    line = await desk.home.person.sees("⏳ Not sent yet, for 8 h. Send it now?", buttons=True)
    assert desk.desk.texts() == []
    await desk.home.person.taps(line, "Send now")
    await desk.came("Rename it")


async def test_the_same_update_twice_is_one_prompt(desk: Desked, shop: Source) -> None:
    """While it is queued, while it runs, when it is over, and after a restart."""
    await replied(desk, shop)
    await desk.phase("running")
    await desk.home.polled()  # so that its update is not the last one that Telegram knows
    for end in (False, True):
        if end:
            desk.desk.end(shop.session_id)
            await desk.looks()
            await desk.phase("finished")
            await desk.again()
        _again(desk.home, "Rename it")
        await desk.home.polled()
    assert len(desk.prompts()) == 1
    assert desk.desk.texts() == ["Rename it"]


async def test_an_answer_that_comes_again_is_not_offered_as_a_prompt(tmp_path: Path) -> None:
    """Its question is still open: a further page waits."""
    async with living(tmp_path, "new", sections=PROMPTS) as made:
        desk = Desked(made)
        await desk.start()
        await desk.notice(desk.desk.session("Fix login flow"))
        made.agent.ask([question(), question("Which region?")])
        shown = await made.person.sees("Which database", buttons=True)
        await made.noted(shown)
        made.person.write("DuckDB", to=shown)
        await until(lambda: made.entry().state.answers[0].text, "the answer")
        await made.polled()  # so that its update is not the last one that Telegram knows
        await desk.again()
        _again(made, "DuckDB")
        await made.polled()
        assert not desk.prompts()


def _again(home: House, text: str) -> None:
    """Let Telegram send the update of this text again."""
    made = home.api.control.world.updates.made
    home.api.control.redeliver(next(key for key, one in made.items() if one.get("message", {}).get("text") == text))


async def test_split_parts_are_one_prompt(desk: Desked, shop: Source) -> None:
    """In their order; nothing leaves before the last one is there."""
    await replied(desk, shop, LONG + "and the end")
    await desk.came(LONG + "and the end")
    assert len(desk.prompts()) == 1
    assert len(desk.prompts()[0].parts) == 2


async def test_a_part_that_comes_while_the_others_are_joined_is_a_prompt_of_its_own(desk: Desked, shop: Source) -> None:
    """The prompt is complete on disk when the part would be added; Telegram may send the part again."""
    shown, _ = await replied(desk, shop, LONG)
    await until(lambda: desk.prompts() and desk.prompts()[0].due_s, "the first part")
    async with held(desk.kept.prompts._store, "change") as gate:
        await gate.begun()
        desk.home.person.write("but do NOT push it", to=shown)
        await until(lambda: desk.kept.prompts._lock._waiters, "the part behind the change")
    await desk.came(LONG)
    await until(lambda: len(desk.prompts()) == 2, "the second prompt")
    _again(desk.home, "but do NOT push it")
    await desk.home.polled()
    desk.desk.end(shop.session_id)
    await desk.looks()
    await desk.came(LONG, "but do NOT push it")
    assert len(desk.prompts()) == 2


async def test_an_edit_of_one_part_leaves_the_others(desk: Desked, shop: Source) -> None:
    """While the session is busy with something else."""
    shop_session = desk.desk.sessions[shop.session_id]
    shop_session.is_busy = True
    _, last = await replied(desk, shop, LONG + "and the end")
    prompt = await desk.phase("queued")
    await until(lambda: desk.prompts()[0].due_s is None, "all parts")
    desk.home.api.control.rewrite(last, "or no end")
    await until(lambda: desk.prompts()[0].is_edited, "the edit")
    await desk.home.person.sees("Waits for the current turn · edited")
    shop_session.is_busy = False
    await desk.looks()
    await desk.came(LONG + "or no end")
    assert desk.prompts()[0].id == prompt.id


async def test_an_edit_before_it_is_sent_counts_and_one_after_it_is_told(desk: Desked, shop: Source) -> None:
    """The agent gets what the person reads."""
    desk.desk.sessions[shop.session_id].is_busy = True
    _, text = await replied(desk, shop)
    await desk.home.person.sees("Waits for the current turn")
    desk.home.api.control.rewrite(text, "Rename all")
    await desk.home.person.sees("· edited")
    desk.desk.sessions[shop.session_id].is_busy = False
    await desk.looks()
    await desk.came("Rename all")
    desk.home.api.control.rewrite(text, "Rename nothing")
    told = await desk.home.person.sees(TOO_LATE)
    assert told.reply_to == text
    assert desk.desk.texts() == ["Rename all"]


async def test_an_edit_of_what_was_cancelled_is_told(desk: Desked, shop: Source) -> None:
    """The agent does not get it, as it was or as it is."""
    desk.desk.sessions[shop.session_id].is_busy = True
    _, text = await replied(desk, shop)
    await desk.home.person.taps(await desk.home.person.sees("Waits for"), "✖️ Cancel")
    await desk.home.person.sees("✖️ Cancelled", buttons=False)
    desk.home.api.control.rewrite(text, "Rename all")
    await desk.home.person.sees(TOO_LATE)
    assert not desk.desk.received


@pytest.mark.parametrize("is_locked", [False, True])
async def test_an_edit_of_what_may_be_on_its_way_is_told(desk: Desked, shop: Source, *, is_locked: bool) -> None:
    """The agent did not keep it, and gets it again as it was; nobody says that it has it."""
    desk.desk.keeps = False
    _, text = await replied(desk, shop)
    await desk.came("Rename it")
    if is_locked:
        await desk.store.lock_phone()
    desk.home.api.control.rewrite(text, "Rename all")
    assert (await desk.home.person.sees("🔒 Locked" if is_locked else TOO_LATE)).reply_to == text
    assert desk.prompts()[0].phase == "sending"
    assert desk.prompts()[0].parts[0].text == "Rename it"


async def test_what_is_no_text_is_no_prompt(desk: Desked, shop: Source) -> None:
    """A sticker in reply to a notice."""
    shown = await desk.notice(shop)
    sent = desk.home.api.control.send_sticker(reply_to=shown.message_id)
    hint = await desk.home.person.sees("I can take words, and the pictures and files that the agent takes.")
    assert hint.reply_to == sent
    assert not desk.prompts()


async def test_a_text_that_waits_for_a_turn_is_not_called_on_its_way(desk: Desked, shop: Source) -> None:
    """The session that the person chose is at work."""
    await desk.notice(shop)
    desk.desk.sessions[shop.session_id].is_busy = True
    desk.home.person.write("Rename it")
    asked = await desk.home.person.sees("What is this for?")
    assert await desk.home.person.taps(asked, "Fix login flow") == "All right, I send it"
    await desk.home.person.sees("⏳ Waits for the current turn")


async def test_a_plain_text_is_offered_and_goes_where_the_person_says(desk: Desked, shop: Source) -> None:
    """Not before; and "Nothing" is the end of it."""
    await desk.notice(shop)
    desk.home.person.write("Rename it")
    asked = await desk.home.person.sees("What is this for?")
    assert asked.labels == (("Fix login flow",), ("New in shop",), ("Nothing",))
    assert not desk.desk.received
    assert await desk.home.person.taps(asked, "Fix login flow") == "All right, I send it"
    await desk.came("Rename it")
    await desk.home.person.sees("▶️ Working")
    desk.home.person.write("Or not")
    second = await desk.home.person.sees("What is this for?")
    await desk.home.person.taps(second, "Nothing")
    await desk.home.person.sees("I send it to nobody", buttons=False)
    assert desk.desk.texts() == ["Rename it"]


async def test_two_sessions_of_one_name_are_told_apart(desk: Desked) -> None:
    """A person must know to which project a text goes."""
    for directory in ("/home/dev/shop", "/home/dev/blog"):
        await desk.notice(desk.desk.session("Fix it", directory))
    desk.home.person.write("Rename it")
    asked = await desk.home.person.sees("What is this for?")
    labels = [label for row in asked.labels for label in row]
    assert sorted(labels) == ["Fix it · blog", "Fix it · shop", "New in blog", "Nothing"]


async def test_a_plain_text_can_begin_a_session(desk: Desked, shop: Source) -> None:
    """In the project of the session above it."""
    await desk.notice(shop)
    desk.home.person.write("Rename it")
    asked = await desk.home.person.sees("What is this for?")
    assert await desk.home.person.taps(asked, "New in shop") == "All right, I send it"
    await desk.came("Rename it")
    [(session_id, _)] = desk.desk.received
    assert session_id != shop.session_id
    assert desk.desk.sessions[session_id].source.directory == shop.directory


async def test_a_reply_to_a_question_is_no_prompt(desk: Desked, shop: Source) -> None:
    """Nor is the second part of it, while a card takes the next text."""
    with desk.home.waiting("que_1"):
        desk.home.hook("question.asked", a_request(session=shop.session_id))
        asked = await desk.home.person.sees("Which database?", buttons=True)
        await desk.home.noted(asked)
        await _armed(desk, shop)
        desk.home.person.write(LONG + "Redis", to=asked)
        entry = await desk.home.phase("sending")
        assert entry.state.decision
        assert entry.state.decision.answers[0].text == LONG + "Redis"
    assert not desk.prompts()


async def test_a_reply_to_a_question_behind_a_long_prompt_is_an_answer(desk: Desked, shop: Source) -> None:
    """The parts of a prompt are still awaited."""
    shown = await desk.notice(shop)
    with desk.home.waiting("que_1"):
        desk.home.hook("question.asked", a_request(session="ses_9"))
        asked = await desk.home.person.sees("Which database?", buttons=True)
        await desk.home.noted(asked)
        desk.home.person.write(LONG, to=shown)
        desk.home.person.write("SQLite", to=asked)
        entry = await desk.home.phase("sending")
        assert entry.state.decision
        assert entry.state.decision.answers[0].picks == (1,) or entry.state.decision.answers[0].text == "SQLite"
    await desk.came(LONG)


async def _armed(desk: Desked, shop: Source, state: str = "waits for you") -> ShownMessage:
    desk.home.person.write("/sessions")
    listed = await desk.home.person.sees("Your sessions")
    await desk.home.person.taps(listed, shop.session_title)
    card = await desk.home.person.sees(state, buttons=True)
    assert await desk.home.person.taps(card, "✏️ Write a prompt") == "Type your prompt as your next message"
    return await desk.home.person.sees("Type your prompt for Fix login flow")


async def test_the_request_to_type_goes_although_telegram_is_away_for_a_moment(desk: Desked, shop: Source) -> None:
    """Else it would say that the next text is a prompt, too."""
    asked = await _armed(desk, shop)
    await until(lambda: any(one.typing for one in desk.kept.cards.all()), "the message noted")
    desk.home.api.control.fault(method="deleteMessage", action="error", status=502, times=1)
    desk.home.person.write("Rename it")
    await desk.came("Rename it")
    await desk.home.person.gone(asked)


async def test_after_write_a_prompt_the_next_text_is_one_and_no_other(desk: Desked, shop: Source) -> None:
    """Also if Telegram sends tap and text again."""
    await _armed(desk, shop)
    desk.home.person.write("Rename it")
    await desk.came("Rename it")
    assert not any(card.armed_for for card in desk.kept.cards.all())
    made = desk.home.api.control.world.updates.made
    desk.home.api.control.redeliver(max(key for key, one in made.items() if "callback_query" in one))
    _again(desk.home, "Rename it")
    await desk.home.polled()
    desk.home.person.write("Lunch?")
    await desk.home.person.sees("What is this for?")
    assert desk.desk.texts() == ["Rename it"]


async def test_the_message_that_asks_for_a_text_goes_when_it_came(desk: Desked, shop: Source) -> None:
    """Nobody taps its button any more; also if another card takes the next text, and over a restart."""
    typing = await _armed(desk, shop)
    await until(lambda: any(one.typing for one in desk.kept.cards.all()), "the message noted")
    await desk.home.stop()
    await desk.start()
    desk.home.person.write("Rename it")
    await desk.came("Rename it")
    await desk.home.person.gone(typing)
    await until(lambda: not any(one.typing for one in desk.kept.cards.all()), "the deletion noted")


async def test_cancel_typing_ends_it(desk: Desked, shop: Source) -> None:
    """The next text is offered, as any other; the message that asked for it goes."""
    typing = await _armed(desk, shop)
    assert await desk.home.person.taps(typing, "✏️ Cancel typing") == "All right, no typing"
    await desk.home.person.gone(typing)
    desk.home.person.write("Lunch?")
    await desk.home.person.sees("What is this for?")
    assert not desk.desk.received


async def test_the_pen_of_a_question_and_that_of_a_card_disarm_each_other(desk: Desked, shop: Source) -> None:
    """The newest one counts."""
    with desk.home.waiting("que_1"):
        desk.home.hook("question.asked", a_request(session="ses_9"))
        asked = await desk.home.person.sees("Which database?", buttons=True)
        await desk.home.person.taps(asked, "✏️ Other")
        await _armed(desk, shop)
        await until(lambda: desk.home.entry().state.armed is None, "a question that takes no text")
        await desk.home.person.taps(asked, "✏️ Other")
        await until(lambda: not any(card.armed_for for card in desk.kept.cards.all()), "no armed card")
        desk.home.person.write("DuckDB")
        await desk.home.phase("sending")
    assert not desk.prompts()


async def test_a_reply_to_a_notice_is_a_prompt_although_a_question_takes_the_next_text(
    desk: Desked, shop: Source
) -> None:
    """A reply names its target; the pen of the question waits for a text that does not."""
    shown = await desk.notice(shop)
    with desk.home.waiting("que_1"):
        desk.home.hook("question.asked", a_request(session="ses_9"))
        asked = await desk.home.person.sees("Which database?", buttons=True)
        await desk.home.person.taps(asked, "✏️ Other")
        desk.home.person.write("Run the tests", to=shown)
        await desk.came("Run the tests")
        assert desk.home.entry().state.decision is None


# --- the lock -----------------------------------------------------------------------------------------------------


async def test_a_lock_holds_what_was_not_sent(desk: Desked, shop: Source) -> None:
    """Its line says so, taps and texts change nothing; afterwards the prompt goes out as it was."""
    desk.desk.sessions[shop.session_id].is_busy = True
    shown, _ = await replied(desk, shop)
    line = await desk.home.person.sees("Waits for the current turn")
    desk.home.person.write("/lock")
    await desk.home.person.sees("Locked")
    await desk.home.person.sees(UNTIL_UNLOCKED)
    desk.desk.sessions[shop.session_id].is_busy = False
    await desk.looks()
    assert "Locked" in await desk.home.person.taps(line, "Cancel")
    more = desk.home.person.write("More", to=shown)
    # An answer to it is the last effect of all these.
    await until(lambda: any(one.reply_to == more for one in desk.home.person.shown()), "the answer to the text")
    assert not desk.desk.received
    await desk.store.unlock_phone()
    await desk.looks()
    await desk.came("Rename it")
    assert len(desk.prompts()) == 1


async def test_an_unlocked_prompt_waits_for_the_turn_again(desk: Desked, shop: Source) -> None:
    """The turn has outlasted the lock, of which nobody tells the listener."""
    desk.desk.sessions[shop.session_id].is_busy = True
    await replied(desk, shop)
    await desk.home.person.sees("Waits for the current turn")
    await desk.store.lock_phone()
    await desk.home.person.sees(UNTIL_UNLOCKED)
    await desk.store.unlock_phone()
    await desk.home.person.sees("Waits for the current turn")


@pytest.mark.parametrize("way", ["to a session", "to be chosen", "in parts"])
async def test_a_prompt_that_is_edited_while_locked_is_not_sent(desk: Desked, shop: Source, way: str) -> None:
    """The chat shows other words than those before the lock, and they may be a thief's."""
    desk.desk.sessions[shop.session_id].is_busy = True
    if way == "to be chosen":
        await desk.notice(shop)
        text = desk.home.person.write("Rename it")
    else:
        _, text = await replied(desk, shop, LONG if way == "in parts" else "Rename it")
    await until(desk.prompts, "the prompt")
    await desk.store.lock_phone()
    desk.home.api.control.rewrite(text, "Rename all")
    line = await desk.home.person.sees("✖️ Cancelled: it was edited while the phone was locked.", buttons=False)
    assert line.reply_to == text
    told = await desk.home.person.sees("🔒 Locked")
    assert told.reply_to == text
    await desk.store.unlock_phone()
    desk.desk.end(shop.session_id)
    await desk.looks()
    assert [one.phase for one in desk.prompts()] == ["withdrawn"]
    assert not desk.desk.received
    desk.home.api.control.rewrite(text, "Rename it, please")
    await desk.home.person.sees(TOO_LATE)


async def test_an_edit_without_a_change_cancels_no_prompt_while_locked(desk: Desked, shop: Source) -> None:
    """Telegram tells of such edits, too: a preview was added, for example."""
    desk.desk.sessions[shop.session_id].is_busy = True
    _, text = await replied(desk, shop)
    await desk.phase("queued")
    await desk.store.lock_phone()
    desk.home.api.control.rewrite(text, "Rename it")
    assert (await desk.home.person.sees("🔒 Locked")).reply_to == text
    desk.desk.end(shop.session_id)
    await desk.store.unlock_phone()
    await desk.looks()
    await desk.came("Rename it")


async def test_a_lock_holds_a_second_try_too(desk: Desked, shop: Source) -> None:
    """The first one did not arrive: what would be sent now starts work."""
    desk.desk.keeps = False
    await replied(desk, shop)
    await desk.came("Rename it")
    await desk.phase("sending")
    await desk.store.lock_phone()
    desk.desk.keeps = True
    desk.home.clock.advance(20.0)
    await until(lambda: desk.prompts()[0].is_clear, "a look that misses it")
    await desk.home.person.sees(UNTIL_UNLOCKED, buttons=False)
    assert len(desk.desk.received) == 1
    await desk.store.unlock_phone()
    await desk.looks()
    await desk.came("Rename it", "Rename it")


async def test_a_text_that_lost_a_part_to_the_lock_is_not_sent(desk: Desked, shop: Source) -> None:
    """Half of it is not what the person said."""
    shown = await desk.notice(shop)
    with desk.home.clock.standing():
        desk.home.person.write(LONG, to=shown)
        await until(lambda: [one for one in desk.prompts() if one.due_s], "the first part")
        await desk.store.lock_phone()
        desk.home.person.write("and the end", to=shown)
        await desk.home.person.sees("Locked")
    await desk.store.unlock_phone()
    await desk.phase("withdrawn")
    await desk.home.person.sees("✖️ Cancelled: a part of it may be lost.", buttons=False)
    assert not desk.desk.received


# --- a full disk --------------------------------------------------------------------------------------------------


async def test_a_text_that_cannot_be_saved_is_told_and_not_sent(desk: Desked, shop: Source) -> None:
    """Neither is there a line of it."""
    shown = await desk.notice(shop)
    with full_disk(desk):
        desk.home.person.write("Rename it", to=shown)
        await desk.home.person.sees(SORRY)
    assert not desk.prompts()
    assert not desk.desk.received


async def test_a_part_that_cannot_be_saved_takes_the_whole_text_with_it(desk: Desked, shop: Source) -> None:
    """Half of it is not what the person said."""
    shown = await desk.notice(shop)
    with desk.home.clock.standing():
        desk.home.person.write(LONG, to=shown)
        await until(lambda: [one for one in desk.prompts() if one.due_s], "the first part")
        with full_disk(desk):
            desk.home.person.write("and the end", to=shown)
            await desk.home.person.sees(SORRY)
    await desk.phase("withdrawn")
    assert not desk.desk.received


async def test_the_end_of_a_text_whose_first_part_was_not_saved_is_told_as_lost(desk: Desked, shop: Source) -> None:
    """Alone it says something else. A later text is one of its own."""
    shown = await desk.notice(shop)
    with full_disk(desk):
        desk.home.person.write(LONG, to=shown)
        await desk.home.person.sees(SORRY)
    late = desk.home.person.write("and the end", to=shown)
    shows = desk.home.person.shown
    await until(lambda: [one for one in shows() if SORRY in one.text and one.reply_to == late], "it is told as lost")
    assert not desk.prompts()
    desk.home.person.write("Rename it", to=shown)
    await desk.came("Rename it")


async def test_a_text_that_lacks_a_middle_part_is_not_sent(desk: Desked, shop: Source) -> None:
    """Although its last part came, and is a short one."""
    shown = await desk.notice(shop)
    with desk.home.clock.standing():
        desk.home.person.write(LONG, to=shown)
        await until(lambda: [one for one in desk.prompts() if one.due_s], "the first part")
        with full_disk(desk):
            desk.home.person.write(LONG, to=shown)
            await desk.home.person.sees(SORRY)
        desk.home.person.write("and the end", to=shown)
    await desk.phase("withdrawn")
    await desk.home.person.sees("✖️ Cancelled: a part of it may be lost.", buttons=False)
    assert not desk.desk.received


async def test_a_text_whose_parts_are_no_prompt_fails_although_the_last_one_is_short(
    desk: Desked, shop: Source
) -> None:
    """The whole of it is looked at once all parts are here: nobody knows before whether it is one."""
    shown = await desk.notice(shop)
    desk.home.person.write("/run deploy " + LONG[:4084], to=shown)
    desk.home.person.write("`date`", to=shown)
    await desk.phase("failed")
    await desk.home.person.sees("❌ Not sent: the arguments of a command must not contain a backtick", buttons=False)
    assert not desk.desk.received


async def test_a_picture_that_cannot_be_saved_takes_its_album_with_it(desk: Desked, shop: Source) -> None:
    """Each piece is told as lost, also one that comes when the disk has room again."""
    shown = await desk.notice(shop)
    share, pieces = desk.home.api.control.share, [file_of("photo", b"\xff\xd8\xff\xe0")]
    with full_disk(desk):
        share(pieces, reply_to=shown.message_id, album="77")
        await desk.home.person.sees(SORRY)
    (late,) = share(pieces, reply_to=shown.message_id, album="77")
    shows = desk.home.person.shown
    await until(lambda: [one for one in shows() if SORRY in one.text and one.reply_to == late], "it is told as lost")
    share(pieces, reply_to=shown.message_id, album="78")
    await until(lambda: desk.desk.received, "the next album at the desk")
    assert [len(one.parts) for one in desk.prompts()] == [1]


async def test_an_edit_that_cannot_be_saved_is_told(desk: Desked, shop: Source) -> None:
    """Otherwise the person believes that the agent gets the new text."""
    desk.desk.sessions[shop.session_id].is_busy = True
    _, text = await replied(desk, shop)
    await desk.home.person.sees("Waits for the current turn")
    with full_disk(desk):
        desk.home.api.control.rewrite(text, "Rename all")
        told = await desk.home.person.sees(SORRY)
    assert told.reply_to == text


async def test_taps_that_cannot_be_saved_are_told(desk: Desked, shop: Source) -> None:
    """And change nothing."""
    desk.desk.sessions[shop.session_id].is_busy = True
    await replied(desk, shop)
    line = await desk.home.person.sees("Waits for the current turn")
    await until(lambda: desk.prompts()[0].line.message_id, "the line noted")
    with full_disk(desk):
        assert SORRY in await desk.home.person.taps(line, "Cancel")
        assert SORRY in await desk.home.person.taps(line, "Send now")
    assert desk.prompts()[0].phase == "queued"


async def test_nothing_is_sent_while_a_try_cannot_be_noted(desk: Desked, shop: Source) -> None:
    """Otherwise a crash would send it twice."""
    desk.desk.sessions[shop.session_id].is_busy = True
    await replied(desk, shop)
    await desk.home.person.sees("Waits for the current turn")
    await until(lambda: desk.prompts()[0].line.message_id, "the line noted")
    with full_disk(desk):
        desk.desk.sessions[shop.session_id].is_busy = False
        await desk.looks()
        await asyncio.sleep(0.5)
        assert not desk.desk.received
    await desk.looks()
    await desk.came("Rename it")


async def test_a_prompt_outlives_the_folder_of_the_store(desk: Desked, shop: Source) -> None:
    """Somebody removes it while a prompt waits, and no question is open."""
    desk.desk.sessions[shop.session_id].is_busy = True
    await replied(desk, shop)
    await desk.home.person.sees("Waits for the current turn")
    remove(desk.home.store)
    await until(lambda: list((desk.home.store / "prompts").glob("*.json")), "the prompt in a store that was made again")
    desk.desk.sessions[shop.session_id].is_busy = False
    await desk.looks()
    await desk.came("Rename it")


async def test_a_line_that_cannot_be_noted_is_posted_once(desk: Desked, shop: Source) -> None:
    """However long the disk is full, and although time goes on in it."""
    shown = await desk.notice(shop)
    desk.desk.sessions[shop.session_id].is_busy = True
    with unsaved(desk.kept.prompts, lambda prompt: prompt.line.message_id is not None):
        desk.home.person.write("Rename it", to=shown)
        await desk.home.person.sees("Waits for the current turn")
        desk.desk.sessions[shop.session_id].is_busy = False
        await desk.looks()
        await desk.phase("running")
        for _ in range(3):
            desk.home.clock.advance(61.0)
            await desk.looks()
            await asyncio.sleep(0.1)
        said = [one for one in desk.home.person.shown() if one.reply_to and "Fix login flow · OpenCode" in one.text]
        assert len(said) == 1
    await desk.looks()
    await desk.home.person.sees("▶️ Working · 3 min")


async def test_a_prompt_that_was_saved_is_not_told_as_lost(desk: Desked, shop: Source) -> None:
    """The disk is full a moment later, when the card is to be disarmed: a person who wrote again would say it twice."""
    await _armed(desk, shop)
    with full_disk(desk, "cards"):
        desk.home.person.write("Rename it")
        await desk.came("Rename it")
        await desk.home.polled()
    assert not desk.home.person.find(SORRY)


# --- the line -----------------------------------------------------------------------------------------------------


async def test_a_line_that_runs_is_edited_rarely(desk: Desked, shop: Source) -> None:
    """Each tool is worth an edit, but not each at once."""
    await replied(desk, shop)
    line = await desk.home.person.sees("▶️ Working")
    before = len(desk.home.person.message(line.message_id).versions)
    for number in range(6):
        desk.desk.sessions[shop.session_id].tool = f"tool{number}"
        desk.home.clock.advance(PROGRESS_S / 4)
        await desk.looks()
        await asyncio.sleep(0.05)
    assert len(desk.home.person.message(line.message_id).versions) - before <= 2
    desk.home.clock.advance(PROGRESS_S)
    await desk.looks()
    await desk.home.person.sees("tool5")


async def test_a_line_that_the_person_deleted_comes_again_while_it_matters(desk: Desked, shop: Source) -> None:
    """Not when all is over."""
    await replied(desk, shop)
    line = await desk.home.person.sees("▶️ Working")
    desk.home.api.control.delete(line.message_id)
    desk.home.clock.advance(61.0)
    await desk.looks()
    again = await desk.home.person.sees("▶️ Working · 1 min")
    assert again.message_id != line.message_id
    desk.home.api.control.delete(again.message_id)
    desk.desk.end(shop.session_id)
    await desk.looks()
    await desk.phase("finished")
    await until(lambda: desk.prompts()[0].line.is_over, "the end of the line")
    assert not desk.home.person.find("✅ Done")


async def test_a_refusal_before_it_began_rings(desk: Desked, shop: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a new message; the older line goes, also if Telegram is away for a moment. "Send again" does so once."""
    monkeypatch.setattr(messenger, "AGAIN_S", (0.1,))
    desk.home.api.control.fault(method="deleteMessage", action="error", status=502, times=1)
    desk.desk.sessions[shop.session_id].is_busy = True
    await replied(desk, shop)
    line = await desk.home.person.sees("Waits for the current turn")
    await until(lambda: desk.prompts()[0].line.message_id, "the line noted")
    desk.desk.refuses = AgentRefused("no", said="this model does not exist")
    desk.desk.sessions[shop.session_id].is_busy = False
    await desk.looks()
    await desk.refused()
    failed = await desk.home.person.sees("❌ this model does not exist", buttons=True)
    assert not failed.silent
    await desk.home.person.gone(line)
    desk.desk.refuses = None
    await asyncio.gather(*(desk.home.person.taps(failed, "Send again") for _ in range(2)))
    await desk.came("Rename it")
    assert len(desk.prompts()) == 2


@pytest.mark.parametrize("is_gone", [True, False])
async def test_a_prompt_whose_agent_ended_in_the_middle_of_it_rings(
    desk: Desked, shop: Source, *, is_gone: bool
) -> None:
    """Nobody saw the end of its turn, so no notice tells of it."""
    await replied(desk, shop)
    line = await desk.home.person.sees("▶️ Working")
    await until(lambda: desk.prompts()[0].line.is_running, "the line noted")
    desk.desk.has_ended = is_gone
    desk.desk.sessions[shop.session_id].is_busy = False
    await desk.looks()
    if not is_gone:
        await until(lambda: desk.prompts()[0].quiet_s, "the first look that finds nothing at work")
        desk.home.clock.advance(NO_EFFECT_S)
        await desk.looks()
    why = "does not exist any more" if is_gone else "was ended in the middle of it"
    failed = await desk.home.person.sees(why, buttons=True)
    assert (failed.silent, failed.message_id > line.message_id) == (False, True)
    await desk.home.person.gone(line)


async def test_a_turn_that_fails_rings_by_its_notice_alone(desk: Desked, shop: Source) -> None:
    """Its line is only edited."""
    await replied(desk, shop)
    line = await desk.home.person.sees("▶️ Working")
    desk.desk.reason = "no key"
    desk.desk.end(shop.session_id, "failed")
    await desk.looks()
    failed = await desk.home.person.sees("❌ no key", buttons=True)
    assert failed.message_id == line.message_id


async def test_send_again_says_nothing_that_is_not_true(desk: Desked, shop: Source) -> None:
    """Of a prompt whose second try has failed, too; that one has a button of its own."""
    desk.desk.refuses = AgentRefused("no such model")
    await replied(desk, shop)
    await desk.refused()
    first = await desk.home.person.sees("the agent refused it", buttons=True)
    await desk.home.person.taps(first, "Send again")
    await desk.refused(2)
    assert await desk.home.person.taps(first, "Send again") == "This page has changed"
    assert len(desk.prompts()) == 2


async def test_a_reply_to_a_question_that_was_just_answered_is_offered(desk: Desked, shop: Source) -> None:
    """At the desk, a moment ago: the text may be for its session, which is named first."""
    home = desk.home
    await desk.notice(shop)
    home.hook("question.asked", a_request("que_1", session="ses_9"), context={"title": "Nine"})
    shown = await home.person.sees("Which database?", buttons=True)
    await home.noted(shown)
    home.api.control.fault(method="editMessageText", action="hang", hang_s=5.0)
    home.hook("question.replied", {"requestID": "que_1", "sessionID": "ses_9", "answers": [["SQLite"]]})
    await home.phase("settled")
    text = home.person.write("take MySQL", to=shown)
    offered = await home.person.sees("What is this for?", buttons=True)
    assert offered.reply_to == text
    assert [row[0] for row in offered.labels] == ["Nine", "Fix login flow", "New in project", "Nothing"]


async def test_a_reply_to_a_question_that_is_put_away_is_offered(desk: Desked, shop: Source) -> None:
    """Its message stays on the phone, and names the question by its code; its session is named first."""
    home = desk.home
    await desk.notice(shop)
    home.hook("question.asked", a_request("que_1", session="ses_9"), context={"title": "Nine"})
    shown = await home.person.sees("Which database?", buttons=True)
    await home.noted(shown)
    home.hook("question.replied", {"requestID": "que_1", "sessionID": "ses_9", "answers": [["SQLite"]]})
    await home.put_away()
    await home.closed()
    home.person.write("take MySQL", to=await home.person.sees("SQLite"))
    offered = await home.person.sees("What is this for?", buttons=True)
    assert [row[0] for row in offered.labels] == ["Nine", "Fix login flow", "New in project", "Nothing"]


async def test_an_edit_after_send_again_counts(desk: Desked, shop: Source) -> None:
    """The message is that of the prompt which waits now, not of the one that failed."""
    desk.desk.sessions[shop.session_id].is_busy = True
    _, text = await replied(desk, shop)
    await desk.home.person.sees("Waits for the current turn")
    prompt = desk.prompts()[0]
    await desk.kept.prompts.apply(prompt.id, Declined("no model"))
    await desk.home.person.taps(await desk.home.person.sees("Not sent: no model"), "Send again")
    await desk.home.person.sees("Waits for the current turn")
    desk.home.api.control.rewrite(text, "Rename all")
    await desk.home.person.sees("· edited")
    desk.desk.sessions[shop.session_id].is_busy = False
    await desk.looks()
    await desk.came("Rename all")


async def test_steer_and_stop(desk: Desked, shop: Source) -> None:
    """Send now gives it to the turn that runs; Stop takes two taps, and Back is a way out."""
    await replied(desk, shop, "First")
    line = await desk.home.person.sees("▶️ Working")
    desk.home.person.write("Second", to=line)
    second = await desk.home.person.sees("Waits for the current turn")
    await desk.came("First")
    assert await desk.home.person.taps(second, "Send now") == "All right, I send it"
    await desk.came("First", "Second")
    assert await desk.home.person.taps(line, "⏹ Stop") == "Sure? One more tap."
    await desk.home.person.taps(line, "Back")
    await desk.home.person.taps(line, "⏹ Stop")
    assert not desk.desk.stopped
    assert await desk.home.person.taps(line, "Yes, stop") == "Stopping"
    await desk.phase("stopped", 2)
    assert desk.desk.stopped == [shop.session_id]


async def test_stop_ends_no_other_turn(desk: Desked, shop: Source) -> None:
    """Between the two taps the turn of the prompt has ended, and the person at the desk has begun another."""
    await replied(desk, shop, "First")
    prompt = await desk.phase("running")
    await desk.kept.prompts.apply(prompt.id, StopWanted())
    desk.desk.end(shop.session_id)
    desk.desk.sessions[shop.session_id].is_busy = True
    await desk.kept.prompts.apply(prompt.id, StopWanted(is_sure=True))
    await desk.phase("finished")
    assert not desk.desk.stopped


async def test_stop_needs_no_record(desk: Desked, shop: Source) -> None:
    """The agent can be stopped, but its messages cannot be read."""
    await replied(desk, shop, "First")
    line = await desk.home.person.sees("▶️ Working")
    desk.desk.is_unreadable = True
    await desk.home.person.taps(line, "⏹ Stop")
    await desk.home.person.taps(line, "Yes, stop")
    await until(lambda: desk.desk.stopped, "the stop")


async def test_two_prompts_go_one_after_the_other(desk: Desked, shop: Source) -> None:
    """The second one when the first is over."""
    shown, _ = await replied(desk, shop, "First")
    desk.home.person.write("Second", to=shown)
    await desk.came("First")
    await desk.phase("queued")
    desk.desk.end(shop.session_id)
    await desk.looks()
    await desk.phase("finished")
    await desk.came("First", "Second")


async def test_one_that_waited_too_long_asks(desk: Desked, shop: Source) -> None:
    """It does not begin by itself, not even after a restart. A new message rings: nothing goes on by itself."""
    desk.desk.sessions[shop.session_id].is_busy = True
    await replied(desk, shop)
    waiting = await desk.home.person.sees("Waits for the current turn")
    await until(lambda: desk.prompts()[0].line.message_id, "the line noted")
    desk.home.clock.advance(1801.0)
    desk.desk.sessions[shop.session_id].is_busy = False
    await desk.looks()
    line = await desk.home.person.sees("Send it now?")
    assert not line.silent
    await desk.home.person.gone(waiting)
    await desk.again()
    await asyncio.sleep(0.2)
    assert not desk.desk.received
    await desk.home.person.taps(line, "Send now")
    await desk.came("Rename it")


async def test_an_agent_that_is_away_gets_it_later(desk: Desked, shop: Source) -> None:
    """The person is told; the prompt is saved."""
    shown = await desk.notice(shop)
    desk.desk.is_away = True
    desk.home.person.write("Rename it", to=shown)
    await desk.home.person.sees("💾 Saved. OpenCode on laptop can't be reached")
    desk.desk.is_away = False
    await desk.looks()
    await desk.came("Rename it")


async def test_a_text_without_a_session_outlives_its_listener(home: House) -> None:
    """One that a hook started leaves, although nobody has said what the text is for; the next one takes the tap."""
    made = Desked(home)
    await made.start(idle_s=600.0, prompts={"enabled": True})
    await made.notice(made.desk.session("Fix login flow"))
    home.person.write("Rename it")
    shown = await home.person.sees("What is this for?", buttons=True)
    await until(lambda: made.prompts()[0].line.message_id, "the line noted")
    home.clock.advance(700)
    await home.ended()
    await made.start()
    await home.person.taps(shown, "Fix login flow")
    await made.came("Rename it")
    await home.person.sees("▶️ Working")
    assert not home.person.find("What is this for?")


# --- limits -------------------------------------------------------------------------------------------------------


async def test_prompts_are_off_by_default(home: House) -> None:
    """A reply to a notice is told what any text is told."""
    made = Desked(home)
    await made.start(prompts={"enabled": False})
    shown = await made.notice(made.desk.session("Fix login flow"))
    home.person.write("Rename it", to=shown)
    await home.person.sees("No question is open")
    home.person.write("/new")
    await home.person.sees("This phone may not write to agents")
    assert not made.prompts()


async def test_what_was_allowed_ends_with_the_configuration(desk: Desked, shop: Source) -> None:
    """Lines, cards and offers of a project that takes prompts no more; and a queued prompt."""
    desk.desk.sessions[shop.session_id].is_busy = True
    await replied(desk, shop)
    line = await desk.home.person.sees("Waits for the current turn")
    await _armed(desk, shop, "is working")
    card = await desk.home.person.sees("is working", buttons=True)
    desk.home.person.write("What now?", to=line)
    await until(lambda: len(desk.prompts()) == 2, "the second prompt")
    await desk.again(prompts={"enabled": True, "projects": ["blog"]})
    desk.desk.sessions[shop.session_id].is_busy = False
    await desk.phase("failed", 2)
    line = await desk.home.person.sees("❌ Not sent: this phone may no longer write")
    desk.home.person.write("By the line", to=line)
    desk.home.person.write("By the card", to=card)
    desk.home.person.write("By the armed card")
    await desk.home.polled()
    await desk.looks()
    await desk.phase("failed", 2)
    assert not desk.desk.received
    assert len(desk.prompts()) == 2


async def test_a_reply_to_a_project_that_is_left_out_is_offered_to_no_other_one(desk: Desked, shop: Source) -> None:
    """The person reads why; one who replies to a question of it that is over reads that."""
    home = desk.home
    await desk.again(prompts={"enabled": True, "projects": ["shop"]})
    await desk.notice(shop)
    left_out = await desk.notice(desk.desk.session("Blog post", "/home/dev/blog"))
    text = home.person.write("Rename it", to=left_out)
    told = await home.person.sees("Not sent: this phone may not write to that project. On ")
    assert told.reply_to == text
    home.hook("question.asked", a_request("que_1", session="ses_9"), context={"title": "Nine"})
    await home.noted(await home.person.sees("Which database?", buttons=True))
    home.hook("question.replied", {"requestID": "que_1", "sessionID": "ses_9", "answers": [["SQLite"]]})
    await home.put_away()
    await home.closed()
    text = home.person.write("take MySQL", to=await home.person.sees("SQLite"))
    await until(lambda: [one for one in home.person.shown() if one.reply_to == text and "no more" in one.text], "why")
    assert not desk.prompts()


async def test_a_queued_prompt_ends_when_prompts_are_turned_off(desk: Desked, shop: Source) -> None:
    """It is not sent, and the person hears of it."""
    desk.desk.sessions[shop.session_id].is_busy = True
    await replied(desk, shop)
    await desk.home.person.sees("Waits for the current turn")
    await desk.home.stop()
    desk.desk.sessions[shop.session_id].is_busy = False
    await desk.start(prompts={"enabled": False})
    await desk.home.person.sees("❌ Not sent: this phone may no longer write")
    assert not desk.desk.received


async def test_an_agent_that_is_followed_no_more_keeps_nobody_busy(desk: Desked, shop: Source) -> None:
    """Its prompt may run on there; the line says that nobody here can know."""
    await replied(desk, shop)
    await desk.home.person.sees("▶️ Working")
    await desk.home.stop()
    desk.home.servers.clear()
    await desk.home.start()
    await desk.home.person.sees("❌ this Hermes no longer follows that agent")
    await until(lambda: not desk.home.listener._parts.steps._runs.get(("prompt", desk.prompts()[0].id)), "rest")


async def test_buttons_do_nothing_while_prompts_are_off(desk: Desked, shop: Source) -> None:
    """They are on the phone still."""
    typing = await _armed(desk, shop)
    card = await desk.home.person.sees("waits for you", buttons=True)
    desk.desk.sessions[shop.session_id].is_busy = True
    desk.home.person.write("Rename it", to=typing)
    await desk.home.person.sees("Waits for the current turn")
    await desk.again(prompts={"enabled": False})
    assert "may not write" in await desk.home.person.taps(card, "✏️ Write a prompt")
    failed = await desk.home.person.sees("may no longer write", buttons=True)
    assert "may not write" in await desk.home.person.taps(failed, "Send again")
    assert not any(card.armed_for for card in desk.kept.cards.all())
    assert not desk.desk.received


# --- a group ------------------------------------------------------------------------------------------------------


@pytest.fixture
async def team(tmp_path: Path) -> AsyncIterator[Desked]:
    """A group of two."""
    chats = (Chat(GROUP, "Team"),)
    async with living(tmp_path, chats=chats, chat_id=GROUP, privacy_mode=False, sections=PROMPTS) as made:
        desked = Desked(made)
        await desked.start()
        yield desked


async def test_in_a_group_a_prompt_is_a_reply(team: Desked) -> None:
    """What people tell each other goes to no agent, armed or not; each can write and cancel."""
    shop, person = team.desk.session("Fix login flow"), team.home.person
    person.write("/sessions", chat_id=GROUP)
    listed = await person.sees("Your sessions", chat=GROUP)
    await person.taps(listed, "Fix login flow")
    card = await person.sees("waits for you", chat=GROUP)
    assert await person.taps(card, "Write a prompt", user_id=BOB.id) == "Reply with your prompt"
    typing = await person.sees("Reply to this with your prompt", chat=GROUP)
    assert typing.force_reply
    await until(lambda: any(typing.message_id in one.messages for one in team.kept.cards.all()), "the message noted")
    person.write("Lunch?", chat_id=GROUP, user_id=BOB.id)
    person.write("Lunch!", chat_id=GROUP)
    team.desk.sessions[shop.session_id].is_busy = True
    person.write("Rename it", to=typing, chat_id=GROUP, user_id=BOB.id)
    line = await person.sees("Waits for the current turn", chat=GROUP)
    assert [one.user.id for one in team.prompts()] == [BOB.id]
    person.write("As Mallory", to=card, chat_id=GROUP, user_id=6666)
    person.tap(line, "✖️ Cancel", user_id=6666)
    await team.home.polled()
    assert [one.phase for one in team.prompts()] == ["queued"]
    assert await person.taps(line, "✖️ Cancel", user_id=ANN.id) == "Cancelled"
    await team.phase("withdrawn")
    assert len(team.prompts()) == 1
    assert not team.desk.received


async def test_a_line_that_telegram_never_confirmed_goes_with_a_tap_on_it(team: Desked) -> None:
    """Hermes sent it again, and knows the second one; the first would stay as it is."""
    shop, person = team.desk.session("Fix login flow", is_busy=True), team.home.person
    notice = await team.notice(shop, chat=GROUP)
    team.home.api.control.fault(method="sendMessage", action="cut_after")
    person.write("Rename it", to=notice, chat_id=GROUP)

    def lines() -> list[ShownMessage]:
        return [one for one in person.shown(chat=GROUP) if "Waits for the current turn" in one.text]

    await until(lambda: len(lines()) == 2, "two lines")
    first, second = lines()
    await until(lambda: team.prompts()[0].line.message_id == second.message_id, "the line noted")
    assert await person.taps(first, "✖️ Cancel") == "Cancelled"
    await person.gone(first)
    await until(lambda: "Cancelled" in person.message(second.message_id, GROUP).text, "the line drawn again")


async def test_a_reply_to_a_notice_that_telegram_never_confirmed_is_offered(team: Desked) -> None:
    """Hermes does not know that message; the person means an agent all the same, in a group too."""
    shop, person, control = team.desk.session("Fix login flow"), team.home.person, team.home.api.control
    control.fault(method="sendMessage", action="cut_after")
    noted = await team.notice(shop, chat=GROUP)
    (copy,) = [one for one in _notices(team) if one.message_id != noted.message_id]
    text = person.write("Rename it", to=copy, chat_id=GROUP)
    whom = await person.sees("What is this for?", chat=GROUP)
    assert whom.reply_to == text
    await person.taps(whom, "Fix login flow")
    await team.came("Rename it")


def _notices(team: Desked) -> list[ShownMessage]:
    return [one for one in team.home.person.shown(chat=GROUP) if "Fix login flow is done" in one.text]


async def test_a_group_that_moved_takes_its_prompts_along(team: Desked) -> None:
    """Their lines are posted in the supergroup, work there, and a text there with an old number is a new text."""
    shop, person = team.desk.session("Fix login flow"), team.home.person
    team.desk.sessions[shop.session_id].is_busy = True
    notice = await _card(team, shop)
    person.write("Rename it", to=notice, chat_id=GROUP)
    await person.sees("Waits for the current turn", chat=GROUP)
    await until(lambda: team.prompts()[0].line.message_id, "the line noted")
    new = team.home.api.control.migrate(chat_id=GROUP)
    line = await person.sees("Waits for the current turn", chat=new)
    assert line.reply_to is None
    await until(lambda: team.prompts()[0].line.message_id == line.message_id, "the line noted")
    person.write("Then rest", to=line, chat_id=new)
    await until(lambda: len(team.prompts()) == 2, "the second prompt")
    team.desk.sessions[shop.session_id].is_busy = False
    await team.looks()
    await team.came("Rename it")
    await person.sees("▶️ Working", chat=new)
    await person.taps(line, "⏹ Stop")


async def test_a_turn_that_keeps_trying_is_told_where_the_group_went(team: Desked) -> None:
    """With its button; the message in the old group cannot be edited."""
    shop, notices = team.desk.session("Fix login flow", is_busy=True), team.kept.notices
    retry = Retry(shop, "OpenCode", 4, team.home.clock.now() + 60.0, "rate limit")
    await notices.take(Retrying(retry))
    await team.home.person.sees("· 5th try", chat=GROUP)
    await until(lambda: notices.all()[0].retry_shown, "the message noted")
    new = team.home.api.control.migrate(chat_id=GROUP)
    await until(lambda: team.home.listener._parts.entries.chat_id == new, "the new chat")
    await notices.take(Retrying(replace(retry, attempt=5)))
    first = await team.home.person.sees("· 6th try", chat=new, buttons=True)
    await until(lambda: getattr(notices.all()[0].retry_shown, "chat_id", 0) == new, "the message noted")
    await notices.take(Retrying(replace(retry, attempt=6)))
    assert (await team.home.person.sees("· 7th try", chat=new)).message_id == first.message_id


async def test_two_people_write_to_one_session(team: Desked) -> None:
    """The tap of the second one takes nothing from the first, who is typing."""
    shop, person = team.desk.session("Fix login flow"), team.home.person
    shown = await _card(team, shop)

    def asks() -> list[ShownMessage]:
        found = [one for one in person.shown(chat=GROUP) if "Reply to this with your prompt" in one.text]
        noted = {number for one in team.kept.cards.all() for number in one.messages}
        return [one for one in found if one.message_id in noted]

    await person.taps(shown, "Write a prompt", user_id=ANN.id)
    (first,) = await until(asks, "the first request")
    await person.taps(shown, "Write a prompt", user_id=BOB.id)
    await until(lambda: len(asks()) == 2, "the second request")
    person.write("Rename it", to=first, chat_id=GROUP, user_id=ANN.id)
    await team.came("Rename it")


async def _card(team: Desked, shop: Source) -> ShownMessage:
    person = team.home.person
    person.write("/sessions", chat_id=GROUP)
    listed = await person.sees("Your sessions", chat=GROUP)
    await person.taps(listed, shop.session_title)
    await until(lambda: any(one.shown for one in team.kept.cards.all()), "the card noted")
    return await person.sees("Fix login flow ", chat=GROUP, buttons=True)


async def test_the_cards_of_a_group_that_moved_stand_for_nothing_there(team: Desked) -> None:
    """The supergroup counts its messages from the beginning: the same number is another message."""
    shop, person = team.desk.session("Fix login flow"), team.home.person
    await _card(team, shop)
    new = team.home.api.control.migrate(chat_id=GROUP)
    await until(lambda: all(not one.messages for one in team.kept.cards.all()), "no messages of the old group")
    person.write("/sessions", chat_id=new)
    listed = await person.sees("Your sessions", chat=new)
    await person.taps(listed, "Fix login flow")
    card = await person.sees("waits for you", chat=new, buttons=True)
    await until(lambda: any(one.shown == card.message_id for one in team.kept.cards.all()), "the card noted")
    person.write("Rename it", to=card, chat_id=new)
    await team.came("Rename it")


async def test_a_question_stays_first(desk: Desked, shop: Source) -> None:
    """A plain text with one open question is offered as an answer, not as a prompt."""
    await desk.notice(shop)
    with desk.home.waiting("que_1"):
        desk.home.hook("question.asked", a_request("que_1", question(), session="ses_9"))
        await desk.home.noted(await desk.home.person.sees("Which database?", buttons=True))
        desk.home.person.write("DuckDB")
        await desk.home.person.sees("Is this your answer")
    assert not desk.prompts()


async def test_a_text_that_the_person_deleted_keeps_its_line(desk: Desked, shop: Source) -> None:
    """Telegram tells nobody of a deletion: the prompt goes out, and the line can still stop it."""
    desk.desk.sessions[shop.session_id].is_busy = True
    _, text = await replied(desk, shop)
    desk.home.api.control.delete(text)
    line = await desk.home.person.sees("Waits for the current turn")
    assert await desk.home.person.taps(line, "✖️ Cancel") == "Cancelled"
    await desk.phase("withdrawn")


async def test_a_pen_that_cannot_be_saved_is_told(desk: Desked, shop: Source) -> None:
    """The next text is then no prompt."""
    desk.home.person.write("/sessions")
    await desk.home.person.taps(await desk.home.person.sees("Your sessions"), shop.session_title)
    card = await desk.home.person.sees("waits for you", buttons=True)
    await until(lambda: any(one.shown == card.message_id for one in desk.kept.cards.all()), "the card noted")
    with full_disk(desk, "cards"):
        assert SORRY in await desk.home.person.taps(card, "✏️ Write a prompt")
    assert not desk.home.person.find("Type your prompt")
    desk.home.person.write("Rename it")
    await desk.home.person.sees("What is this for?")
    assert not desk.desk.received


async def test_prompts_keep_their_order_over_a_restart(desk: Desked, shop: Source) -> None:
    """As they were written."""
    desk.desk.sessions[shop.session_id].is_busy = True
    shown = await desk.notice(shop)
    for number in range(4):
        desk.home.person.write(f"Number {number}", to=shown)
        await until(lambda number=number: len(desk.prompts()) == number + 1, "the prompt")  # type: ignore[misc]
    await desk.again()
    for number in range(4):
        desk.desk.end(shop.session_id)
        await desk.looks()
        await desk.came(*(f"Number {one}" for one in range(number + 1)))
        await desk.phase("running")


async def test_a_lock_that_comes_before_the_session_is_made_makes_none(desk: Desked) -> None:
    """A new session is work, too."""
    desk.desk.session("One")
    desk.home.person.write("/new")
    await desk.home.person.taps(await desk.home.person.sees("Where should"), "shop")
    await desk.home.person.sees("Type your prompt for a new session")
    desk.desk.is_away = True
    desk.home.person.write("Begin")
    await desk.home.person.sees("can't be reached")
    missed = desk.desk.missed
    await until(lambda: desk.desk.missed > missed, "a try that failed: the next one comes after a pause")
    await desk.store.lock_phone()
    desk.desk.is_away = False
    await desk.looks()
    await asyncio.sleep(0.5)
    assert len(desk.desk.sessions) == 1
    await desk.store.unlock_phone()
    await desk.looks()
    await desk.came("Begin")
    assert len(desk.desk.sessions) == 2


async def test_a_prompt_of_a_person_who_may_write_no_longer_is_not_sent(team: Desked) -> None:
    """A listener that starts with another list of users cancels what they wrote before; the others' goes on."""
    shop = team.desk.session("Fix login flow")
    shown = await team.notice(shop, chat=GROUP)
    team.desk.sessions[shop.session_id].is_busy = True
    for user, text in ((BOB, "Drop the table"), (ANN, "Rename it")):
        team.home.person.write(text, to=shown, chat_id=GROUP, user_id=user.id)
    await team.phase("queued", 2)
    api = team.home.api
    users = {"token": api.token, "chat_id": GROUP, "users": [ANN.id], "api_base": api.base_url}
    await team.again(telegram=users)
    await team.home.person.sees("Cancelled: the person who wrote it may write here no longer", chat=GROUP)
    team.desk.end(shop.session_id)
    await team.came("Rename it")


async def test_a_prompt_that_is_sent_again_is_of_the_person_who_wants_that(team: Desked) -> None:
    """It is cancelled if that person may write no longer."""
    shown = await team.notice(team.desk.session("Fix login flow"), chat=GROUP)
    team.desk.refuses = AgentRefused("no such model")
    team.home.person.write("Rename it", to=shown, chat_id=GROUP, user_id=BOB.id)
    await team.refused()
    failed = await team.home.person.sees("the agent refused it", buttons=True, chat=GROUP)
    await team.home.person.taps(failed, "Send again", user_id=ANN.id)
    await team.refused(2)
    assert {one.user.id for one in team.prompts()} == {BOB.id, ANN.id}
