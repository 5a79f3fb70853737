"""Answering on the phone: taps, pages, texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scenes.stage import COLOUR, NAME, NEWEST, SIZES, asking, question

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes.sandbox.model_server import ScriptedModel
    from tests.harness.opencode import OpenCode
    from tests.scenes.stage import Stage

OWN_ROW = ("✏️ Other", "⏭ Skip", "⏹ Stop")


@pytest.mark.story
def test_one_tap_answers_one_choice(connected: Stage, opencode: OpenCode, project: Path, model: ScriptedModel) -> None:
    """Scene 1: one question, one tap, and the model has it."""
    session = opencode.session(project, "Fix login flow")
    opencode.prompt(session, [asking(question(), say="The schema is small.")])
    asked = connected.asked("Which database")
    asked = connected.turned(asked, "Fix login flow", "The schema is small.")
    tap = connected.phone.tap(asked, "SQLite")
    assert connected.phone.toast_for(tap).text == "SQLite"
    assert 'should I use?"="SQLite"' in opencode.final_text(session)
    ended = connected.ended("✅ SQLite")
    assert ended.message_id == asked.message_id
    connected.turned(ended, "the agent is working again")
    connected.over()


def test_quick_taps_on_a_multiple_question(connected: Stage, opencode: OpenCode, project: Path) -> None:
    """Scene 2: taps on a keyboard that is being redrawn count, doubled ones and repeated updates once."""
    session = opencode.session(project)
    opencode.prompt(session, [asking(SIZES)])
    asked = connected.asked("Which sizes?")
    assert asked.labels[-1] == OWN_ROW
    phone = connected.phone
    first_keyboard = [asked.button(f"☐ {size}").data for size in ("L", "S", "L")]
    taps = [phone.tap(asked, data=data) for data in first_keyboard]
    assert [phone.toast_for(tap).text for tap in taps] == ["L", "S", "L"]
    page = connected.turned(asked, "☑ 1 S", "☐ 2 M", "☑ 3 L", button="Done (2)")
    checked = phone.tap(page, "☐ M")
    page = connected.turned(page, "☑ 2 M", button="Done (3)")
    assert phone.toast_for(phone.tap(page, "☑ M")).text == "☐ M"
    page = connected.turned(page, "☐ 2 M", button="Done (2)")
    phone.redeliver(checked.update_id)
    phone.tap(page, "Done (2)")
    assert '"Which sizes?"="L, S"' in opencode.final_text(session)
    connected.ended("✅ L, S")
    connected.over()


@NEWEST
def test_done_with_nothing_chosen_needs_a_second_tap(connected: Stage, opencode: OpenCode, project: Path) -> None:
    """Scene 2: no answer at all is an answer too, but never by one slip of the thumb."""
    session = opencode.session(project)
    opencode.prompt(session, [asking(SIZES)])
    phone, page = connected.phone, connected.asked("Which sizes?")
    phone.tap(page, "Done (nothing chosen)")
    phone.tap(connected.turned(page, "Send without any answer?"), "Back")
    phone.tap(connected.turned(page, button="Done (nothing chosen)"), "Done (nothing chosen)")
    phone.tap(connected.turned(page, "Send without any answer?"), "Yes, send")
    assert '"Which sizes?"="Unanswered"' in opencode.final_text(session)
    connected.ended("✅ no answer")
    connected.over()


def test_three_questions_forward_back_and_review(connected: Stage, opencode: OpenCode, project: Path) -> None:
    """Scene 3: pages forward and back, an answer changed, the review with a warning, and Send."""
    session = opencode.session(project)
    opencode.prompt(session, [asking(COLOUR, SIZES, NAME)])
    phone, page = connected.phone, connected.asked("Which colour?")
    assert page.text.startswith("○ Colour  ○ Sizes  ○ Name  (1/3)")
    assert page.marked("bold")[0] == "○ Colour"
    phone.tap(page, "Blue")
    page = connected.turned(page, "● Colour", "Which sizes?", "(2/3)")
    assert page.marked("bold")[0] == "○ Sizes"
    for size in ("L", "S"):
        phone.tap(page, f"☐ {size}")
    page = connected.turned(page, "● Sizes", "☑ 1 S", "☑ 3 L")
    phone.tap(page, "Name ▶")
    phone.tap(connected.turned(page, "Which name?", "(3/3)"), "◀ Sizes")
    phone.tap(connected.turned(page, "Which sizes?", "☑ 1 S", "☑ 3 L"), "Name ▶")
    phone.tap(connected.turned(page, "Which name?"), "Review ▶")
    page = connected.turned(page, "Ready to send?", "1 Colour: Blue", "2 Sizes: L, S", "3 Name: ⚠️ no answer yet")
    phone.tap(page, "3 ⚠️")
    phone.tap(connected.turned(page, "Which name?"), "Ada")
    phone.tap(connected.turned(page, "Ready to send?", "3 Name: Ada"), "1")
    phone.tap(connected.turned(page, "● 2 Blue"), "Red")
    page = connected.turned(page, "Ready to send?", "1 Colour: Red")
    phone.tap(page, "Send")
    received = '"Which colour?"="Red", "Which sizes?"="L, S", "Which name?"="Ada"'
    assert received in opencode.final_text(session)
    connected.ended("1 Colour: Red\n2 Sizes: L, S\n3 Name: Ada\n✅ Answered")
    connected.over()


@NEWEST
def test_send_with_one_unanswered_needs_a_second_tap(connected: Stage, opencode: OpenCode, project: Path) -> None:
    """Scene 3: the review warns, the first Send asks, the second sends what there is."""
    session = opencode.session(project)
    opencode.prompt(session, [asking(COLOUR, NAME)])
    phone, page = connected.phone, connected.asked("Which colour?")
    phone.tap(page, "Red")
    phone.tap(connected.turned(page, "Which name?"), "Review ▶")
    phone.tap(connected.turned(page, "2 Name: ⚠️ no answer yet"), "Send without answer 2")
    phone.tap(connected.turned(page, "Send without answer 2?", button="Yes, send"), "Back")
    phone.tap(connected.turned(page, "Ready to send?"), "Send without answer 2")
    phone.tap(connected.turned(page, "Send without answer 2?", button="Yes, send"), "Yes, send")
    assert '"Which colour?"="Red", "Which name?"="Unanswered"' in opencode.final_text(session)
    connected.ended("1 Colour: Red\n2 Name: no answer\n✅ Answered")
    connected.over()


def test_a_reply_to_the_message_is_the_answer(connected: Stage, opencode: OpenCode, project: Path) -> None:
    """Scene 4: the text goes out to the letter; a sticker is no answer, and the person is told what is."""
    session = opencode.session(project)
    opencode.prompt(session, [asking(question())])
    phone, asked = connected.phone, connected.asked("Which database")
    phone.send_sticker(reply_to=asked)
    phone.message_with("An answer can only be words")
    phone.send_photo(b"a picture", caption="SQLite", reply_to=asked)
    phone.wait(lambda: sum("An answer can only be words" in message.text for message in phone.shown()) == 2)
    text = 'DuckDB – "in a file",\nif <b>you</b> *like* ☕ 👩‍🚀'
    phone.write(text, reply_to=asked)
    assert f'should I use?"="{text}"' in opencode.final_text(session)
    connected.ended("✅ “DuckDB")
    connected.over()


@NEWEST
def test_a_reply_that_telegram_split_is_one_answer(connected: Stage, opencode: OpenCode, project: Path) -> None:
    """Scene 4: three messages of 4096 units at most arrive as one answer."""
    text = "".join(f"{number:05}🦆" for number in range(1300))
    session = opencode.session(project)
    opencode.prompt(session, [asking(question())])
    assert len(connected.phone.write(text, reply_to=connected.asked("Which database"))) == 3
    assert f'="{text}"' in opencode.final_text(session)
    connected.ended("✅ “0000")
    connected.over()


@NEWEST
def test_the_pencil_takes_the_next_text(connected: Stage, opencode: OpenCode, project: Path) -> None:
    """Scene 5: after ✏️ the next plain text is the answer, also with another question open; or never mind."""
    first, second = opencode.session(project), opencode.session(project)
    opencode.prompt(first, [asking(question())])
    database = connected.asked("Which database")
    opencode.prompt(second, [asking(NAME)])
    name = connected.asked("Which name?")
    phone = connected.phone
    tap = phone.tap(name, "✏️ Other")
    assert phone.toast_for(tap).text == "Type your answer as your next message"
    typing = phone.message_with("Type your answer to Name as your next message.")
    phone.tap(typing, "✏️ Cancel typing")
    connected.gone(typing)
    phone.write("Cleo")
    phone.message_with("Two questions are open. Reply to the one you mean.")
    phone.tap(name, "✏️ Other")
    connected.turned(name, "✏️ Waiting for your text…", button="✏️ Cancel typing")
    typing = phone.message_with("Type your answer to Name")
    phone.tap(database, "✏️ Other")
    phone.message_with("Type your answer to Database")
    connected.gone(typing)
    phone.send_sticker()
    phone.message_with("An answer can only be words")
    phone.write("let's take DuckDB")
    assert '="let\'s take DuckDB"' in opencode.final_text(first)
    connected.ended("✅ “let's take DuckDB”")
    phone.tap(name, "Bea")
    assert '"Which name?"="Bea"' in opencode.final_text(second)
    connected.ended("✅ Bea")
    connected.over()
    assert not any("Type your answer" in message.text for message in phone.shown())


def test_picks_and_text_go_out_together(connected: Stage, opencode: OpenCode, project: Path) -> None:
    """Scene 6: in a multiple question the text joins the picks, and comes after them; it can be dropped.

    A label that is replied is a pick there, which another tap takes back.
    """
    session = opencode.session(project)
    opencode.prompt(session, [asking(SIZES)])
    phone, page = connected.phone, connected.asked("Which sizes?")
    phone.write("none of these", reply_to=page)
    page = connected.turned(page, "✏️ “none of these”", button="Done (1)")
    phone.tap(page, "✖ Without “none of these”")
    page = connected.turned(page, button="Done (nothing chosen)")
    assert "none of these" not in page.text
    phone.write("M", reply_to=page)
    page = connected.turned(page, "☑ 2 M", button="Done (1)")
    phone.tap(page, "✏️ Other")
    phone.message_with("Type your answer to Sizes")
    phone.write("XXL, but only in blue")
    page = connected.turned(page, "✏️ “XXL, but only in blue”", button="Done (2)")
    phone.tap(page, "☐ S")
    phone.tap(connected.turned(page, "☑ 1 S", "☑ 2 M", button="Done (3)"), "Done (3)")
    assert '"Which sizes?"="M, S, XXL, but only in blue"' in opencode.final_text(session)
    assert _kept(opencode, session) == [["M", "S", "XXL, but only in blue"]]
    connected.ended("✅ M, S, “XXL, but only in blue”")
    connected.over()


@pytest.mark.nightly
def test_no_free_text_where_the_agent_takes_none(
    stage: Stage, private_opencode: Callable[..., OpenCode], model: ScriptedModel
) -> None:
    """Scene 7: `custom: false` (both versions through plan_exit, contract 2): no ✏️, a text is refused with the list."""
    opencode = private_opencode(environ={"OPENCODE_EXPERIMENTAL_PLAN_MODE": "1"})
    stage.connect(opencode)
    stage.start()
    phone, session = stage.phone, opencode.session()
    opencode.prompt(session, [{"tool": "plan_exit"}], agent="plan")
    asked = stage.asked("2 No")
    # An empty reply approves a plan, so there is no Skip either.
    assert asked.labels == (("Yes",), ("No",), ("⏹ Stop",))
    phone.write("yes, but without the tests", reply_to=asked)
    refused = phone.message_with("That is none of the options of")
    assert "1 Yes\n2 No" in refused.text
    phone.write("only on Sundays")
    phone.wait(lambda: sum("That is none of the options" in message.text for message in phone.shown()) == 2)
    phone.write("2", reply_to=asked)
    stage.ended("✅ No")
    opencode.wait_idle(session)
    assert model.turns(session) == 1

    session = opencode.session()
    opencode.prompt(session, [{"tool": "plan_exit"}], agent="plan")
    phone.tap(stage.asked("2 No"), "Yes")
    stage.ended("✅ Yes")
    assert opencode.final_text(session).startswith("FINAL: ")
    assert opencode.tool_parts(session, "plan_exit")[0]["state"]["status"] == "completed"
    stage.over()


def test_a_model_itself_can_forbid_free_text_only_in_the_old_version(
    connected: Stage, opencode: OpenCode, project: Path
) -> None:
    """Scene 7: contract 2: "Model cannot set `custom` (not in its schema; new strips it, old passes it if sent)"."""
    session = opencode.session(project)
    opencode.prompt(session, [asking({**question(), "custom": False})])
    phone, asked = connected.phone, connected.asked("Which database")
    if opencode.version == "1.18.33":
        assert asked.labels[-1] == OWN_ROW
        phone.write("DuckDB", reply_to=asked)
        assert '="DuckDB"' in opencode.final_text(session)
        connected.ended("✅ “DuckDB”")
    else:
        assert "✏️" not in str(asked.labels)
        phone.write("DuckDB", reply_to=asked)
        phone.message_with("That is none of the options of Database")
        phone.write("Redis", reply_to=asked)
        assert '="Redis"' in opencode.final_text(session)
        connected.ended("✅ Redis")
    connected.over()


def test_stop_in_two_taps_ends_the_turn(
    connected: Stage, opencode: OpenCode, project: Path, model: ScriptedModel
) -> None:
    """Scene 8: one tap asks, Back forgets, the second tap stops: the model is not called again."""
    session = opencode.session(project)
    opencode.prompt(session, [asking(question())])
    phone, page = connected.phone, connected.asked("Which database")
    assert phone.toast_for(phone.tap(page, "⏹ Stop")).text == "Sure? One more tap."
    page = connected.turned(page, "Stop the agent? It ends its turn here.")
    assert page.labels == (("Yes, stop", "Back"),)
    phone.tap(page, "Back")
    phone.tap(connected.turned(page, button="⏹ Stop"), "⏹ Stop")
    phone.tap(connected.turned(page, "Stop the agent?"), "Yes, stop")
    connected.ended("⏹ Stopped")
    opencode.wait_idle(session)
    assert model.turns(session) == 1
    (part,) = opencode.tool_parts(session, "question")
    assert "dismissed" in part["state"]["error"]
    connected.over()


def test_skip_in_two_taps_lets_the_model_decide(
    connected: Stage, opencode: OpenCode, project: Path, model: ScriptedModel
) -> None:
    """Scene 8: the model is told that nobody answered, and goes on."""
    session = opencode.session(project)
    opencode.prompt(session, [asking(COLOUR, NAME)])
    phone, page = connected.phone, connected.asked("Which colour?")
    phone.tap(page, "⏭ Skip")
    page = connected.turned(page, "Let it decide by itself?")
    assert page.labels == (("Yes", "Back"),)
    phone.tap(page, "Yes")
    assert '"Which colour?"="Unanswered", "Which name?"="Unanswered"' in opencode.final_text(session)
    assert model.turns(session) == 2
    connected.ended("⏭ Skipped, it decides by itself")
    connected.over()


def _kept(opencode: OpenCode, session: str) -> list[list[str]]:
    """Return the answers that the session's first question kept, to the letter."""
    answers: list[list[str]] = opencode.tool_parts(session, "question")[0]["state"]["metadata"]["answers"]
    return answers
