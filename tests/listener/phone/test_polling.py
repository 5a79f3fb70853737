"""The connection to Telegram: absences, rivals, blocked chats, groups that move."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes.listener.phone.polling import ABSENCE_S
from hermes.model.chat_memory import ChatMemory
from hermes.sandbox.botapi import Chat
from tests.at_once import at_once
from tests.listening import ANN, STRANGER, House, house, question, until
from tests.stores import a_store

if TYPE_CHECKING:
    from hermes.sandbox.phone_values import ShownMessage

ASKED = "Which database?"
GROUP = -4_001
home = house("new")
team = house("new", chats=(Chat(GROUP, "Team"),), chat_id=GROUP)


def memory(home: House) -> ChatMemory:
    """What the bot remembers on disk."""
    return at_once(a_store(home.store).load_chat(home.config().telegram.bot_id))


async def two_asked(home: House) -> None:
    """Start, and let two questions stand on the phone."""
    await home.start()
    for text in ("One?", "Two?"):
        home.agent.ask([question(text)])
    for text in ("One?", "Two?"):
        await home.person.sees(text)
    await home.polled()


def calls(home: House) -> int:
    """How often a message was to be edited or deleted."""
    return len(home.api.control.calls("editMessageText")) + len(home.api.control.calls("deleteMessage"))


def count(home: House, text: str) -> int:
    """How many messages of the bot hold this text."""
    return sum(text in one.text for one in home.person.shown())


# --- absences -----------------------------------------------------------------------------------------------------


async def test_after_an_absence_it_is_said_and_all_is_drawn_afresh(home: House) -> None:
    """The listener was down for longer than Telegram keeps taps: one message, and every open question redrawn."""
    await two_asked(home)
    await home.stop()
    edits = len(home.api.control.calls("editMessageText"))
    home.clock.advance(ABSENCE_S + 1)
    await home.start()
    await home.person.sees("I was offline from")
    await until(lambda: len(home.api.control.calls("editMessageText")) >= edits + 2, "two edits")
    assert count(home, "I was offline") == 1
    assert count(home, "One?") == 1


async def test_a_short_absence_or_one_without_questions_is_no_news(home: House) -> None:
    """Nothing can have been tapped in vain."""
    await home.start()
    await home.polled()
    await home.stop()
    home.clock.advance(ABSENCE_S + 1)
    await home.start()
    home.agent.ask([question()])
    await home.person.sees(ASKED)
    await home.polled()
    await home.stop()
    home.clock.advance(ABSENCE_S - 60)
    await home.start()
    assert count(home, "I was offline") == 0


async def test_a_machine_that_slept_comes_back_the_same(home: House) -> None:
    """The process stood still while the clock went on: the next answer of Telegram tells."""
    await home.start()
    home.agent.ask([question()])
    await home.person.sees(ASKED)
    await home.polled()
    home.clock.advance(ABSENCE_S + 1)
    await home.polled()
    await home.person.sees("I was offline from")


# --- trouble ------------------------------------------------------------------------------------------------------


async def test_a_rival_is_told_of_once(home: House, caplog: pytest.LogCaptureFixture) -> None:
    """409: another program polls: said on the phone, in the log and in the memory; forgotten when it is over."""
    await home.start()
    home.api.control.fault(method="getUpdates", action="error", status=409, times=99)
    await home.person.sees("Another program is using this bot")
    await until(lambda: "another program receives" in memory(home).trouble, "the trouble on disk")
    home.api.control.clear_faults()
    await until(lambda: home.api.control.state().polling, "a poll that nobody disturbs")
    await home.polled()
    await until(lambda: not home.listener._parts.phone.memory.at.trouble, "the end of the trouble")
    assert count(home, "Another program") == 1
    assert "the chat does not work" in caplog.text


async def test_an_unknown_token_is_loud(home: House) -> None:
    """401 again and again is no passing thing; it is said where people look."""
    await home.start()
    home.api.control.fault(method="getUpdates", action="error", status=401, times=50)
    await until(lambda: "does not accept the bot's token" in memory(home).trouble, "the trouble on disk")
    assert not home.listener._parts.phone.connection.answerable
    home.api.control.clear_faults()
    await until(lambda: home.api.control.state().polling, "a poll that goes well")
    await home.polled()
    await until(lambda: home.listener._parts.phone.connection.answerable, "its end")
    assert not home.listener._parts.phone.memory.at.trouble


async def test_a_blocked_bot_is_said_until_it_is_let_in_again(home: House) -> None:
    """Polls go well all the while, which does not make the chat work."""
    await home.start()
    home.api.control.block()
    await until(lambda: "blocked" in memory(home).trouble, "the trouble on disk")
    home.agent.ask([question()])
    await until(lambda: [c for c in home.api.control.calls("sendMessage") if c.status == 403], "a refusal")
    await home.polled()
    home.listener._parts.steps.kick("phone", home.entry().id)
    await until(lambda: len([c for c in home.api.control.calls("sendMessage") if c.status == 403]) == 2, "another")
    await home.listener._loops.remember()
    assert "blocked" in memory(home).trouble
    home.api.control.unblock()
    home.listener._parts.steps.kick("phone", home.entry().id)
    await home.person.sees(ASKED)
    await until(lambda: not home.listener._parts.phone.memory.at.trouble, "the end of the trouble")


async def test_trouble_of_an_earlier_run_is_over_with_the_first_good_poll(home: House) -> None:
    """The token was mended, and the listener started anew."""
    await home.start()
    home.api.control.fault(method="getUpdates", action="error", status=401, times=50)
    await until(lambda: "does not accept the bot's token" in memory(home).trouble, "the trouble on disk")
    home.api.control.clear_faults()
    await home.stop()
    await home.start()
    await home.polled()
    await until(lambda: not home.listener._parts.phone.memory.at.trouble, "its end")


async def test_a_bot_that_is_blocked_again_after_a_restart_is_said_until_it_is_let_in(home: House) -> None:
    """The trouble of the run before was over with the first good poll: it is no trouble with polls from then on."""
    await home.start()
    home.api.control.block()
    await until(lambda: "blocked" in memory(home).trouble, "the trouble on disk")
    await home.stop()
    await home.start()
    await home.polled()
    await until(lambda: not home.listener._parts.phone.memory.at.trouble, "its end")
    home.api.control.unblock()
    home.api.control.block()
    await until(lambda: "blocked" in memory(home).trouble, "the trouble on disk again")
    await home.polled()
    await home.polled()
    assert "blocked" in home.listener._parts.phone.memory.at.trouble


async def test_a_bot_that_is_let_in_again_says_so_with_any_message(home: House) -> None:
    """No question is open: the answer to a command is the next message."""
    await home.start()
    home.api.control.block()
    await until(lambda: "blocked" in memory(home).trouble, "the trouble on disk")
    home.api.control.unblock()
    home.person.write("/help")
    await home.person.sees("When your coding agent asks something")
    await until(lambda: not home.listener._parts.phone.memory.at.trouble, "the end of the trouble")


async def test_a_bot_that_is_let_in_again_is_no_trouble_although_nothing_is_sent(home: House) -> None:
    """`hermes status --check` would raise an alarm for as long as no agent asks."""
    await home.start()
    home.api.control.block()
    await until(lambda: "blocked" in memory(home).trouble, "the trouble on disk")
    home.api.control.unblock()
    await until(lambda: not home.listener._parts.phone.memory.at.trouble, "the end of the trouble")


async def test_a_stranger_who_blocks_the_bot_is_no_trouble(home: House) -> None:
    """Another chat than the configured one."""
    await home.start()
    home.api.control.write("hello", user_id=6666)
    home.api.control.block(chat_id=6666)
    home.agent.ask([question()])
    await home.person.sees(ASKED)
    assert home.listener._parts.phone.memory.at.trouble == ""


async def test_trouble_on_a_full_disk_is_said_all_the_same(home: House, caplog: pytest.LogCaptureFixture) -> None:
    """It cannot be noted for `status`: the log has both."""
    await home.start()
    (home.store / "telegram.json").unlink(missing_ok=True)
    (home.store / "telegram.json").mkdir()
    home.api.control.block()
    await until(lambda: "the bot was blocked" in caplog.text and "a folder is where" in caplog.text, "both lines")
    (home.store / "telegram.json").rmdir()


async def test_what_cannot_be_drawn_afresh_is_said(home: House, caplog: pytest.LogCaptureFixture) -> None:
    """One file is of a newer Hermes when this one comes back: the other question is drawn all the same."""
    await two_asked(home)
    first, _ = home.entries()
    edits = len(home.api.control.calls("editMessageText"))
    (home.store / "pending" / f"{first.id}.json").write_text('{"v":99}')
    home.clock.advance(ABSENCE_S + 1)
    await home.polled()
    await until(lambda: len(home.api.control.calls("editMessageText")) > edits, "an edit")
    assert f"entry {first.id} is not drawn afresh" in caplog.text


# --- a group that moves -------------------------------------------------------------------------------------------


async def test_a_group_that_became_a_supergroup_is_followed(team: House) -> None:
    """All is posted again there, works there, and the new id outlives a restart."""
    await team.start()
    team.agent.ask([question()])
    await team.person.sees(ASKED, chat=GROUP)
    new = team.api.control.migrate(chat_id=GROUP)
    moved = await team.person.sees(ASKED, chat=new)
    assert memory(team).chat_id == new
    await team.stop()
    await team.start()
    await team.person.taps(moved, "SQLite")
    await team.person.sees("✅ SQLite", chat=new)
    assert len(team.agent.effects) == 1


async def test_a_message_that_was_on_its_way_when_the_group_moved_is_posted_again(team: House) -> None:
    """Its id means another message in the supergroup."""
    await team.start()
    team.agent.ask([question()])
    shown = await team.person.sees(ASKED, chat=GROUP)
    await team.noted(shown)
    team.api.control.fault(method="sendMessage", action="hang", hang_s=2.0, processed=True)
    await team.person.taps(shown, "✏️ Other")
    await team.person.sees("Reply to this", chat=GROUP)
    new = team.api.control.migrate(chat_id=GROUP)
    await team.person.sees(ASKED, chat=new)
    await team.person.sees("Reply to this", chat=new)


async def test_a_refusal_tells_of_the_move_too(team: House) -> None:
    """The service message never came; the error of a send names the new chat."""
    await team.start()
    team.api.control.fault(method="getUpdates", action="error", status=502, times=99)
    new = team.api.control.migrate(chat_id=GROUP)
    team.agent.ask([question()])
    await team.person.sees(ASKED, chat=new)
    assert memory(team).chat_id == new


async def test_a_move_that_was_not_saved_is_told_by_the_next_refusal(
    team: House, caplog: pytest.LogCaptureFixture
) -> None:
    """The disk refuses the new id: nothing is lost but time; told twice, it is one move."""
    await team.start()
    await team.polled()
    team.agent.ask([question()])
    await team.person.sees(ASKED, chat=GROUP)
    await until((team.store / "telegram.json").exists, "what is remembered on disk")
    (team.store / "telegram.json").unlink()
    (team.store / "telegram.json").mkdir()
    new = team.api.control.migrate(chat_id=GROUP)
    await until(lambda: "not saved: nothing was saved" in caplog.text, "the refusal of the disk")
    (team.store / "telegram.json").rmdir()
    team.agent.ask([question("And now?")])
    await team.person.sees("And now?", chat=new)
    await team.person.sees(ASKED, chat=new)
    await team.listener._parts.phone.link.moved(new)
    assert team.listener._parts.phone.memory.at.moved_from == GROUP


async def test_another_chat_in_the_configuration_counts(team: House) -> None:
    """The id that replaced a group's does not outlive that group in the configuration."""
    await team.start()
    team.agent.ask([question()])
    await team.person.sees(ASKED, chat=GROUP)
    new = team.api.control.migrate(chat_id=GROUP)
    await team.person.sees(ASKED, chat=new)
    await team.stop()
    team.chat_id = 1001
    team.api.control.write("hello", chat_id=1001)
    await team.start()
    shown = await team.person.sees(ASKED, chat=1001)
    await team.person.taps(shown, "SQLite")
    await team.person.sees("✅ SQLite", chat=1001)


# --- a chat that was left ----------------------------------------------------------------------------------------


@pytest.fixture
async def left(team: House) -> ShownMessage:
    """A question in the group, when the configuration names Ann's own chat and Hermes does not run yet."""
    await team.start()
    team.agent.ask([question()])
    asked = await team.person.sees(ASKED, chat=GROUP)
    await team.noted(asked)
    await team.person.taps(asked, "✏️ Other")
    await team.person.sees("Reply to this", chat=GROUP)
    await until(lambda: team.entry().phone.sides, "the request to type noted")
    await team.stop()
    team.api.control.write("hello", chat_id=ANN.id)
    team.chat_id = ANN.id
    return asked


async def test_what_was_posted_in_the_chat_before_says_so(team: House, left: ShownMessage) -> None:
    """And has no buttons any more, also if Telegram is away for a moment."""
    team.api.control.fault(method="editMessageText", action="error", status=502)
    await team.start()
    await team.person.sees(ASKED, chat=ANN.id)
    await until(lambda: not any(one.rows for one in team.person.shown(GROUP)), "no buttons in the group")
    await until(lambda: not team.entry().phone.left, "the words in the group noted")
    [word] = team.person.shown(GROUP)
    assert word.message_id == left.message_id
    assert word.text == (
        f"This message is out of date. It was posted again, in the chat that I use now. #{team.entry().code}"
    )


async def test_a_tap_in_the_chat_before_gets_a_word_and_changes_nothing(team: House, left: ShownMessage) -> None:
    """A stranger's gets none."""
    strange = team.person.tap(left, "PostgreSQL", user_id=STRANGER.id)
    tap = team.person.tap(left, "PostgreSQL")
    await team.start()
    assert await team.person.toast(tap) == "I use another chat now"
    shown = await team.person.sees(ASKED, chat=ANN.id)
    await team.person.taps(shown, "SQLite")
    await team.person.sees("✅ SQLite", chat=ANN.id)
    assert strange.tap_id not in {one.tap_id for one in team.api.control.toasts()}


async def test_a_chat_before_that_is_closed_to_the_bot_holds_nothing_up(team: House, left: ShownMessage) -> None:
    """Each message there is edited once and deleted once, in vain, and it is no trouble of the chat."""
    team.api.control.block(chat_id=GROUP)
    before = calls(team)
    await team.start()
    shown = await team.person.sees(ASKED, chat=ANN.id)
    await until(lambda: not team.entry().phone.left, "both messages given up")
    assert calls(team) == before + 4
    assert memory(team).trouble == ""
    await team.person.taps(shown, "SQLite")
    await team.person.sees("✅ SQLite", chat=ANN.id)
    assert team.person.message(left.message_id, GROUP).rows
