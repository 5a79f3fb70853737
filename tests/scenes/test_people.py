"""Who may answer, and how often: two people, strangers, old buttons, repeated updates, plain texts, groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes.sandbox.botapi.world import Chat
from tests.scenes.stage import ANN, BOB, COLOUR, NAME, NEWEST, SIZES, STRANGER, asking, question, staged

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermes.sandbox.model_server import ScriptedModel
    from tests.harness.opencode import OpenCode
    from tests.scenes.stage import Stage

pytestmark = NEWEST
TEAM = Chat(-4001, "Team")


@pytest.fixture(params=[True], ids=[""])
def group(tmp_path: Path, opencode: OpenCode, request: pytest.FixtureRequest) -> Iterator[Stage]:
    """A stage whose phone is a group of Ann and Bob, its listener running; the parameter is privacy mode."""
    with staged(tmp_path / "hermes", chats=(TEAM,), privacy_mode=request.param) as stage:
        stage.chat_id, stage.users = TEAM.id, (ANN.id, BOB.id)
        stage.connect(opencode)
        stage.start()
        yield stage


def test_many_taps_of_two_people_are_one_reply(
    group: Stage, opencode: OpenCode, project: Path, model: ScriptedModel
) -> None:
    """Scene 16: a doubled tap, another person's tap, the same update again: the first is the answer, and the only."""
    session = opencode.session(project)
    opencode.prompt(session, [asking(question())])
    phone, asked = group.phone, group.asked("Which database")
    sqlite, redis = asked.button("SQLite").data, asked.button("Redis").data
    taps = [phone.tap(asked, data=data, user=who.id) for data, who in ((sqlite, ANN), (sqlite, ANN), (redis, BOB))]
    assert [phone.toast_for(tap).text.rpartition(": ")[2] for tap in taps] == ["SQLite", "SQLite", "SQLite"]
    assert '="SQLite"' in opencode.final_text(session)
    group.ended("✅ SQLite · Ann · ")
    phone.redeliver(taps[0].update_id)
    group.wait_closed()
    phone.redeliver(taps[2].update_id)
    late = phone.tap(asked.message_id, data=redis, user=BOB.id, chat=TEAM.id)
    assert phone.toast_for(late).text == "Already answered: SQLite"
    assert len(model.received(session)) == 1
    (part,) = opencode.tool_parts(session, "question")
    assert part["state"]["metadata"]["answers"] == [["SQLite"]]
    group.over()


def test_old_pages_and_a_doubled_send(group: Stage, opencode: OpenCode, project: Path, model: ScriptedModel) -> None:
    """Scene 16: a button of an old page changes nothing, whoever taps it; Send tapped twice sends once."""
    session = opencode.session(project)
    opencode.prompt(session, [asking(COLOUR, NAME)])
    phone, first = group.phone, group.asked("Which colour?")
    phone.tap(first, "Blue", user=ANN.id)
    second = group.turned(first, "Which name?", "(2/2)")
    for old in ("Red", "Name ▶", "⏹ Stop"):
        late = phone.tap(first, data=first.button(old).data, user=BOB.id)
        assert phone.toast_for(late).text == "This page has changed"
    phone.tap(second, "Bea", user=BOB.id)
    review = group.turned(second, "Ready to send?", "1 Colour: Blue", "2 Name: Bea")
    phone.tap(review, data=review.button("Send").data, user=ANN.id, times=2)
    assert '"Which colour?"="Blue", "Which name?"="Bea"' in opencode.final_text(session)
    group.ended("✅ Answered · Ann")
    assert len(model.received(session)) == 1
    group.over()


def test_a_tap_on_a_message_whose_sending_is_not_confirmed_yet(
    connected: Stage, opencode: OpenCode, project: Path
) -> None:
    """Scene 16: the phone was quicker than Telegram's answer to the bot; the message stays the only one."""
    phone, session = connected.phone, opencode.session(project)
    phone.fault("sendMessage", "hang", hang_s=60, processed=True)
    opencode.prompt(session, [asking(SIZES)])
    page = connected.asked("Which sizes?")
    assert phone.toast_for(phone.tap(page, "☐ L")).text == "L"
    phone.clear_faults()
    phone.tap(connected.turned(page, "☑ 3 L", button="Done (1)"), "Done (1)")
    assert '"Which sizes?"="L"' in opencode.final_text(session)
    assert connected.ended("✅ L · ").message_id == page.message_id
    connected.over()
    assert _said(connected) == ["Sizes – Which size"]


def test_updates_that_come_again_after_a_restart_change_nothing(
    connected: Stage, opencode: OpenCode, project: Path
) -> None:
    """Scene 16: a tap that was taken back since, and a text that was another question's answer."""
    session = opencode.session(project)
    opencode.prompt(session, [asking(question())])
    phone, asked = connected.phone, connected.asked("Which database")
    phone.tap(asked, "✏️ Other")
    phone.message_with("Type your answer to Database")
    phone.write("L")
    written = phone.tap(asked, data="no button of ours").update_id - 1
    assert '="L"' in opencode.final_text(session)
    connected.ended("✅ “L”")
    connected.wait_closed()
    opencode.prompt(session, [asking(SIZES)])
    page = connected.asked("Which sizes?")
    checked = phone.tap(page, "☐ M")
    phone.tap(connected.turned(page, button="☑ M"), "☑ M")
    phone.tap(connected.turned(page, button="☐ M"), "☐ S")
    page = connected.turned(page, button="☑ S")
    assert connected.stop() == 0
    connected.start()
    phone.redeliver(written)
    phone.redeliver(checked.update_id)
    phone.tap(page, "Done (1)")
    assert '"Which sizes?"="S"' in opencode.final_text(session)
    connected.ended("✅ S · ")
    connected.over()
    assert len(phone.shown()) == 2


def test_strangers_get_nothing(group: Stage, opencode: OpenCode, project: Path) -> None:
    """Scene 24: a stranger's tap, reply and private message change nothing and are not even answered."""
    session = opencode.session(project)
    opencode.prompt(session, [asking(question())])
    phone, asked = group.phone, group.asked("Which database")
    phone.tap(asked, "Redis", user=STRANGER.id)
    phone.tap(asked, "⏹ Stop", user=STRANGER.id)
    phone.write("Redis", reply_to=asked, user=STRANGER.id)
    phone.write("/start", user=STRANGER.id, chat=STRANGER.id)
    # Ann may answer, but only in the group.
    phone.write("Redis", user=ANN.id, chat=ANN.id)
    tap = phone.tap(asked, "SQLite", user=BOB.id)
    assert phone.toast_for(tap).text == "SQLite"
    assert '="SQLite"' in opencode.final_text(session)
    group.ended("✅ SQLite · Bob")
    group.over()
    assert phone.toasts(user=STRANGER.id) == ()
    assert _said(group) == ["Database – Which d"]
    for private in (STRANGER.id, ANN.id):
        assert phone.shown(chat=private) == ()
    assert group.log.read_text().count(f"of user {STRANGER.id} in chat") == 4


def test_a_plain_text_is_offered_never_taken(connected: Stage, opencode: OpenCode, project: Path) -> None:
    """Scene 25: a plain text becomes the answer only by a tap on "Use …"."""
    phone = connected.phone
    phone.write("Is anybody there?")
    phone.message_with("No question is open just now that you can answer here.")
    session = opencode.session(project)
    opencode.prompt(session, [asking(question())])
    asked = connected.noted(connected.asked("Which database"))
    phone.write("let's take DuckDB")
    offer = phone.message_with("Is this your answer to Database?")
    assert offer.labels == (("Use “let's take DuckDB”",), ("No",))
    phone.tap(offer, "No")
    connected.gone(offer)
    assert phone.message(asked.message_id).rows
    phone.write("or MongoDB")
    older = phone.message_with("Is this your answer to Database?")
    phone.write("SQLite, please")
    offer = connected.turned(older, button="Use “SQLite, please”")
    late = phone.tap(older, data=older.button("Use").data)
    assert phone.toast_for(late).text == "This page has changed"
    phone.tap(offer, "Use “SQLite, please”")
    assert '="SQLite, please"' in opencode.final_text(session)
    connected.ended("✅ “SQLite, please” · ")
    connected.over()


def test_a_plain_label_is_offered_like_any_other_text(connected: Stage, opencode: OpenCode, project: Path) -> None:
    """Scene 25: a label that is typed may be meant for somebody else; a tap on "Use …" makes it that option."""
    session = opencode.session(project)
    opencode.prompt(session, [asking(question())])
    phone, asked = connected.phone, connected.noted(connected.asked("Which database"))
    phone.write("Redis")
    offer = phone.message_with("Is this your answer to Database?")
    assert opencode.questions(project)
    phone.tap(offer, "Use “Redis”")
    assert '="Redis"' in opencode.final_text(session)
    connected.ended("✅ Redis · ")
    connected.over()
    assert [message.message_id for message in phone.shown()] == [asked.message_id]


def test_typing_in_a_group_goes_by_a_forced_reply(group: Stage, opencode: OpenCode, project: Path) -> None:
    """Scenes 5 and 25: privacy mode hides plain texts from the bot, so the ✏️ asks with a forced reply."""
    session = opencode.session(project)
    opencode.prompt(session, [asking(question())])
    phone, asked = group.phone, group.asked("Which database")
    tap = phone.tap(asked, "✏️ Other", user=BOB.id)
    assert phone.toast_for(tap).text == "Reply with your answer"
    typing = phone.message_with("Reply to this with your answer to Database.", chat=TEAM.id)
    assert typing.force_reply
    assert typing.reply_to == asked.message_id
    phone.write("Redis", user=ANN.id, chat=TEAM.id)
    phone.write("let's take DuckDB", reply_to=typing, user=BOB.id)
    assert '="let\'s take DuckDB"' in opencode.final_text(session)
    group.ended("✅ “let's take DuckDB” · Bob · ")
    group.over()
    assert [message.message_id for message in phone.shown(chat=TEAM.id)] == [asked.message_id]


@pytest.mark.parametrize("group", [False], indirect=True, ids=["no privacy mode"])
def test_talk_in_a_group_is_left_alone(group: Stage, opencode: OpenCode, project: Path) -> None:
    """Scene 25: people talk; only replies to Hermes mean anything, a label and the text after one's own ✏️ too."""
    session = opencode.session(project)
    opencode.prompt(session, [asking(question())])
    phone, asked = group.phone, group.asked("Which database")
    phone.write("What do you think, is it time for DuckDB?", user=ANN.id)
    phone.tap(asked, "✏️ Other", user=BOB.id)
    typing = phone.message_with("Reply to this with your answer", chat=TEAM.id)
    phone.write("I would not", user=ANN.id)
    phone.tap(asked, "✏️ Cancel typing", user=BOB.id)
    group.gone(typing)
    phone.write("Redis", user=ANN.id)
    phone.tap(asked, "✏️ Other", user=BOB.id)
    typing = phone.message_with("Reply to this with your answer", chat=TEAM.id)
    phone.write("Which one?", user=BOB.id)
    phone.write("DuckDB it is", reply_to=typing, user=BOB.id)
    assert '="DuckDB it is"' in opencode.final_text(session)
    group.ended("✅ “DuckDB it is” · Bob")
    group.over()
    assert _said(group) == ["Database – Which d", "Reply to this with", "Reply to this with"]
    assert [message.message_id for message in phone.shown(chat=TEAM.id)] == [asked.message_id]


def _said(stage: Stage) -> list[str]:
    """Return the beginnings of all that the bot ever said in the chat, deleted or not."""
    return [message.text[:18] for message in stage.phone.messages(chat=stage.chat_id) if message.from_bot]
