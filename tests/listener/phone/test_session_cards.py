"""The lists of sessions and their cards: paging, restarts, servers that do not answer, Stop, Mute, and two people."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest

from hermes.listener.sessions import ID, PATIENCE_S, USED_S
from hermes.model.answer import User
from hermes.model.events import Tap
from hermes.model.notice import Retry, Turn
from hermes.model.signals import Retrying, TurnEnded
from tests.listener.gates import held, unsaved
from tests.listening import ANN, house, until
from tests.prompted import CAN, PROMPTS, Desked

if TYPE_CHECKING:
    from hermes.model.prompt import Prompt
    from hermes.sandbox.phone_values import ShownMessage

home = house(sections=PROMPTS)


async def listed(desk: Desked, command: str = "/sessions") -> ShownMessage:
    """Ask for a list; its message, once the listener knows what it lists: it is on the phone a moment before."""
    before = {one.message_id for one in desk.home.person.shown()}
    desk.home.person.write(command)
    lists = desk.kept.lists
    heads = (
        "Your sessions",
        "Where should",
        "What should",
        "No agent runs",
        "I know no",
        "Nothing is running",
        "⚠️ No answer",
    )
    return await until(
        lambda: next(
            (
                one
                for one in desk.home.person.shown()
                if one.message_id not in before and one.text.startswith(heads) and one.message_id in lists.shown
            ),
            None,
        ),
        "a list",
    )


def labels(shown: ShownMessage) -> list[str]:
    """The buttons of a message."""
    return [label for row in shown.labels for label in row]


async def card(desk: Desked, title: str = "Fix login flow") -> ShownMessage:
    """Ask for the card of a session; its message, noted."""
    before = {one.message_id for one in desk.home.person.shown()}
    await desk.home.person.taps(await listed(desk), title)

    def posted() -> ShownMessage | None:
        noted = {one.shown for one in desk.kept.cards.all()}
        fresh = [one for one in desk.home.person.shown() if one.message_id not in before and "Mute" in str(one.labels)]
        return next((one for one in fresh if one.message_id in noted), None)

    return await until(posted, "the card")


# --- lists --------------------------------------------------------------------------------------------------------


async def test_no_session(desk: Desked) -> None:
    """Each list says so, in reply to its command."""
    for command, said in (("/sessions", "No agent runs"), ("/new", "I know no project"), ("/stop", "Nothing is")):
        shown = await listed(desk, command)
        assert said in shown.text
        assert not shown.rows
        assert shown.reply_to
        assert shown.silent


async def test_two_lists_one_after_the_other_name_no_machine_as_silent(desk: Desked) -> None:
    """The second is wished for while the agent still looks for the first; both wait for it."""
    desk.desk.session("Fix login flow")
    shows = desk.home.person.shown
    async with held(cast("Any", desk.desk), "listed") as gate:
        desk.home.person.write("/sessions")
        await gate.begun()
        desk.home.person.write("/sessions")
        await until(lambda: len(desk.kept.lists.requests) == 2, "the second request")
    await until(lambda: sum("Your sessions." in one.text for one in shows()) == 2, "both lists")
    assert not [one for one in shows() if "No answer" in one.text]


async def test_thirty_sessions_have_pages(desk: Desked) -> None:
    """Those that run first; each page follows the one before, in the same message; the last has no further one."""
    for number in range(30):
        desk.desk.session(f"Session {number}", is_busy=number == 29)
    shown = await listed(desk)
    assert labels(shown)[:2] == ["Session 29", "Session 0"]
    seen = labels(shown)[:-1]
    for _ in range(3):
        await desk.home.person.taps(shown, "▶")
        first = seen[-1]
        await until(lambda: first not in labels(desk.home.person.message(shown.message_id)), "the next page")  # noqa: B023
        seen += [one for one in labels(desk.home.person.message(shown.message_id)) if one not in "◀▶"]
    assert len(seen) == len(set(seen)) == 30
    assert labels(desk.home.person.message(shown.message_id))[-1] == "◀"
    await desk.home.person.taps(shown, "◀")
    assert len(desk.kept.cards.all()) == 30


async def test_an_old_list_after_a_restart(desk: Desked) -> None:
    """Its pages are not known any more; its sessions are."""
    for number in range(10):
        desk.desk.session(f"Session {number}")
    shown = await listed(desk)
    await desk.again()
    assert await desk.home.person.taps(shown, "▶") == "This page has changed"
    await desk.home.person.taps(shown, "Session 3")
    await desk.home.person.sees("Session 3 💤 waits for you")


async def test_a_page_that_cannot_be_saved_is_told(desk: Desked) -> None:
    """The cards of the next page are new."""
    for number in range(10):
        desk.desk.session(f"Session {number}")
    shown = await listed(desk)
    with unsaved(desk.kept.cards):
        assert "I could not save that" in await desk.home.person.taps(shown, "▶")
    await desk.home.person.taps(shown, "▶")
    await until(lambda: "◀" in labels(desk.home.person.message(shown.message_id)), "the next page")


@pytest.mark.parametrize("reason", ["reply markup is too long", "TOPIC_CLOSED"])
async def test_a_list_that_telegram_refuses_holds_up_no_other(desk: Desked, reason: str) -> None:
    """One that was asked for in a topic in which the bot may not write comes to the chat itself."""
    desk.desk.session("Fix login flow")
    control = desk.home.api.control
    control.fault(method="sendMessage", action="error", status=400, description=f"Bad Request: {reason}")
    desk.home.person.write("/sessions")
    await until(lambda: [call.status for call in control.calls("sendMessage")][:1] == [400], "the refusal")
    if reason == "TOPIC_CLOSED":
        assert (await desk.home.person.sees("Your sessions")).reply_to is None
    else:
        await desk.home.person.sees("Telegram did not take this list")
        assert not desk.home.person.find("Your sessions")
    desk.home.person.write("/stop")
    await desk.home.person.sees("Nothing is running")
    assert not desk.home.listener._parts.phone.memory.at.trouble


async def test_what_runs_and_cannot_be_stopped_is_not_denied(desk: Desked) -> None:
    """A turn of Claude Code cannot; and nobody knows what a server runs that does not answer."""
    desk.desk.session("Fix login flow", is_busy=True)
    desk.desk.can = replace(CAN, stops=False)
    desk.home.person.write("/stop")
    await desk.home.person.sees("Nothing is running that I can stop.")
    desk.desk.is_away = True
    desk.home.person.write("/stop")
    silent = await desk.home.person.sees("No answer from")
    assert "Nothing is running" not in silent.text


async def test_a_list_that_a_blocked_bot_may_not_send_is_trouble(desk: Desked) -> None:
    """It comes once the bot may write again."""
    control = desk.home.api.control
    control.fault(
        method="sendMessage", action="error", status=403, description="Forbidden: bot was blocked by the user"
    )
    desk.home.person.write("/sessions")
    await until(lambda: "blocked" in desk.home.listener._parts.phone.memory.at.trouble, "the trouble")
    desk.home.listener._parts.steps.kick("listed", ID)
    await desk.home.person.sees("No agent runs")


async def test_a_telegram_in_trouble_is_no_defect(desk: Desked, caplog: pytest.LogCaptureFixture) -> None:
    """A page that cannot be turned, and a text that cannot be asked for, are noted without a traceback."""
    caplog.set_level("INFO")
    for number in range(10):
        desk.desk.session(f"Session {number}")
    shown = await listed(desk)
    desk.home.api.control.fault(method="editMessageText", action="html", status=502)
    await desk.home.person.taps(shown, "▶")
    await until(lambda: "could not be turned over" in caplog.text, "a line in the log")
    await desk.home.person.taps(shown, "Session 0")
    card = await desk.home.person.sees("waits for you")
    desk.home.api.control.fault(method="sendMessage", action="html", status=502)
    assert "Type your prompt" in await desk.home.person.taps(card, "Write a prompt")
    await until(lambda: "asks for a prompt was not sent" in caplog.text, "another line in the log")
    assert "a background task failed" not in caplog.text


async def test_a_server_that_does_not_answer_is_said(desk: Desked) -> None:
    """The list comes within seconds all the same."""
    desk.desk.session("Fix login flow")
    desk.desk.is_away = True
    shown = await listed(desk)
    assert "No answer from desk" in shown.text
    desk.desk.is_away, desk.desk.hangs = False, True
    shown = await listed(desk)
    assert "No answer from desk" in shown.text


async def test_a_card_of_a_server_that_does_not_answer(desk: Desked) -> None:
    """It comes all the same, as it was listed."""
    desk.desk.session("Fix login flow")
    shown = await listed(desk)
    desk.desk.hangs = True
    await desk.home.person.taps(shown, "Fix login flow")
    await desk.home.person.sees("Fix login flow 💤 waits for you")


async def test_only_the_projects_of_the_configuration_are_listed(desk: Desked) -> None:
    """By path or name, and no other."""
    for directory in ("/home/dev/shop", "/home/dev/shop-api", "/home/shop/blog", "/", ""):
        desk.desk.session(f"in {directory}", directory)
    await desk.again(prompts={"enabled": True, "projects": ["shop", ""]})
    assert labels(await listed(desk)) == ["in /home/dev/shop"]
    await desk.again(prompts={"enabled": True, "projects": ["/home/dev/shop-api/"]})
    assert labels(await listed(desk)) == ["in /home/dev/shop-api"]


# --- new sessions -------------------------------------------------------------------------------------------------


async def test_new_begins_a_session_in_a_project(desk: Desked) -> None:
    """Each project once; the first text makes the session and goes there; a reply to its line goes there, too."""
    for title in ("One", "Two"):
        desk.desk.session(title, "/home/dev/shop")
    desk.desk.session("Three", "/home/dev/blog")
    shown = await listed(desk, "/new")
    assert labels(shown) == ["shop", "blog"]
    await desk.home.person.taps(shown, "blog")
    await desk.home.person.sees("Type your prompt for a new session in blog")
    assert len(desk.desk.sessions) == 3
    desk.home.person.write("Begin")
    await desk.came("Begin")
    session_id = desk.desk.received[0][0]
    assert desk.desk.sessions[session_id].source.directory == "/home/dev/blog"
    line = await desk.home.person.sees("▶️ Working")
    desk.desk.end(session_id)
    await desk.looks()
    await desk.phase("finished")
    desk.home.person.write("Go on", to=line)
    await desk.came("Begin", "Go on")
    assert len({one for one, _ in desk.desk.received}) == 1
    assert len(desk.desk.sessions) == 4


async def test_words_behind_new_are_not_dropped_in_silence(desk: Desked) -> None:
    """A reply says that they are not used; the list comes as without them, and a bare /new has no such reply."""
    desk.desk.session("One", "/home/dev/shop")
    shown = await listed(desk, "/new fix the tests")
    assert labels(shown) == ["shop"]
    said = await desk.home.person.sees("I did not use the words behind /new.")
    assert said.reply_to == shown.reply_to
    assert not desk.prompts()
    await listed(desk, "/new ")
    assert len([one for one in desk.home.person.shown() if "behind /new" in one.text]) == 1


async def test_a_session_that_is_slow_to_begin_waits_for_no_turn(desk: Desked) -> None:
    """There is none yet."""
    desk.desk.session("One", "/home/dev/shop")
    await desk.home.person.taps(await listed(desk, "/new"), "shop")
    await desk.home.person.sees("Type your prompt for a new session")
    desk.desk.hangs = True
    desk.home.person.write("Begin")
    line = await desk.home.person.sees("⏳ The session begins")
    assert labels(line) == ["✖️ Cancel"]


async def test_a_new_session_that_could_not_be_noted_is_not_made_again(desk: Desked) -> None:
    """The disk is full for a while; then the prompt goes to the session that was made."""
    desk.desk.session("One", "/home/dev/shop")
    await desk.home.person.taps(await listed(desk, "/new"), "shop")
    await desk.home.person.sees("Type your prompt for a new session")
    tries = []

    def is_refused(prompt: Prompt) -> bool:
        is_made = prompt.target is not None and prompt.target.source.session_id != ""
        tries.extend([prompt] * is_made)
        return is_made

    with unsaved(desk.kept.prompts, is_refused):
        desk.home.person.write("Begin")
        await until(lambda: len(tries) > 1, "two tries to note the session")
        assert len(desk.desk.sessions) == 2
    await desk.came("Begin")
    assert len(desk.desk.sessions) == 2


async def test_a_reply_before_the_session_is_made_begins_no_second_one(desk: Desked) -> None:
    """The agent is away: the person is told, because the text would be for another session."""
    desk.desk.session("One", "/home/dev/shop")
    await desk.home.person.taps(await listed(desk, "/new"), "shop")
    await desk.home.person.sees("Type your prompt for a new session")
    desk.desk.is_away = True
    desk.home.person.write("Begin")
    line = await desk.home.person.sees("can't be reached")
    await until(lambda: desk.prompts()[0].line.message_id == line.message_id, "the line noted")
    desk.home.person.write("Go on", to=line)
    await desk.home.person.sees("That session has not begun yet")
    desk.desk.is_away = False
    await desk.looks()
    await desk.came("Begin")
    assert len(desk.prompts()) == 1
    assert len(desk.desk.sessions) == 2


# --- cards --------------------------------------------------------------------------------------------------------


async def test_a_card_has_the_last_words_and_takes_replies(desk: Desked) -> None:
    """Also an older copy of it."""
    source = desk.desk.session("Fix login flow")
    desk.desk.sessions[source.session_id].words = "Both tests pass now."
    first = await card(desk)
    assert "Both tests pass now." in first.text
    assert first.silent
    await card(desk)
    desk.home.person.write("Rename it", to=first)
    await desk.came("Rename it")


async def test_a_card_that_cannot_be_noted_is_posted_once(desk: Desked) -> None:
    """However long the disk is full."""
    desk.desk.session("Fix login flow")
    shown = await listed(desk)
    with unsaved(desk.kept.cards, lambda card: card.shown is not None):
        await desk.home.person.taps(shown, "Fix login flow")
        await desk.home.person.sees("Fix login flow 💤 waits for you")
        for _ in range(4):
            desk.home.listener._parts.steps.kick("card", desk.kept.cards.all()[0].id)
            await asyncio.sleep(0.05)
    desk.home.listener._parts.steps.kick("card", desk.kept.cards.all()[0].id)
    await until(lambda: desk.kept.cards.all()[0].shown, "the card noted")
    assert len([one for one in desk.home.person.shown() if "waits for you" in one.text]) == 1


async def test_a_session_that_was_deleted(desk: Desked) -> None:
    """The card says so and offers nothing; a reply to an older card is told."""
    source = desk.desk.session("Fix login flow")
    first, shown = await card(desk), await listed(desk)
    del desk.desk.sessions[source.session_id]
    await desk.home.person.taps(shown, "Fix login flow")
    assert not (await desk.home.person.sees("does not exist any more")).rows
    desk.home.person.write("Rename it", to=first)
    await desk.home.person.sees("❌ Not sent: the session does not exist any more")


async def test_stop_with_one_and_two_that_run(desk: Desked) -> None:
    """Only those that run are listed; the second tap is on a new card, below; the other one runs on."""
    one, two = (desk.desk.session(title, is_busy=True) for title in ("One", "Two"))
    desk.desk.session("Idle")
    old = await card(desk, "One")
    for number in range(3):
        desk.home.person.write("/status")
        await until(lambda: len([1 for m in desk.home.person.shown() if "open" in m.text]) > number, "a reply")  # noqa: B023
    shown = await listed(desk, "/stop")
    assert labels(shown) == ["One", "Two"]
    assert await desk.home.person.taps(shown, "One") == "Sure? One more tap."
    asked = await until(
        lambda: next((m for m in desk.home.person.shown() if "Yes, stop" in labels(m)), None), "the second tap"
    )
    assert asked.message_id > shown.message_id > old.message_id
    assert not desk.desk.stopped
    assert await desk.home.person.taps(asked, "Yes, stop") == "Stopping"
    await desk.home.person.sees("told to stop")
    assert desk.desk.stopped == [one.session_id]
    assert labels(await listed(desk, "/stop")) == ["Two"]
    assert desk.desk.sessions[two.session_id].is_busy


async def test_a_second_tap_without_a_first_one_stops_nothing(desk: Desked) -> None:
    """A button of a page that is over."""
    desk.desk.session("One", is_busy=True)
    await desk.home.person.taps(await listed(desk, "/stop"), "One")
    asked = await until(
        lambda: next((m for m in desk.home.person.shown() if "Yes, stop" in labels(m)), None), "the second tap"
    )
    data = next(button.data for row in asked.rows for button in row if button.text == "Yes, stop")
    await desk.home.person.taps(asked, "Back")
    assert await desk.home.person.toast(desk.home.person.tap(asked, data=data)) == "This page has changed"
    assert not desk.desk.stopped


async def test_a_stop_that_is_refused_is_said(desk: Desked) -> None:
    """The server does not answer."""
    desk.desk.session("One", is_busy=True)
    await desk.home.person.taps(await listed(desk, "/stop"), "One")
    asked = await until(
        lambda: next((m for m in desk.home.person.shown() if "Yes, stop" in labels(m)), None), "the second tap"
    )
    desk.desk.is_away = True
    await desk.home.person.taps(asked, "Yes, stop")
    await desk.home.person.sees("could not be stopped")


@pytest.mark.parametrize("is_busy", [True, False], ids=["it tries on", "it has ended"])
async def test_the_stop_of_a_turn_that_keeps_trying_looks_at_it_first(desk: Desked, *, is_busy: bool) -> None:
    """There is nothing to stop if the turn has ended, and nobody was told so yet."""
    source = desk.desk.session("Fix login flow", is_busy=is_busy)
    retry = Retry(source, "OpenCode", 4, desk.home.clock.now() + 60.0, "rate limit")
    await desk.kept.notices.take(Retrying(retry))
    trying = await desk.home.person.sees("🔁 Fix login flow: rate limit", buttons=True)
    await desk.home.person.taps(trying, "⏹ Stop it")
    shown = await desk.home.person.sees("is working" if is_busy else "waits for you", buttons=True)
    assert ("Yes, stop" in labels(shown)) == is_busy
    if is_busy:
        await desk.home.person.taps(shown, "Yes, stop")
        await desk.home.person.sees("told to stop")


async def test_a_late_answer_leaves_the_card_of_its_session_as_it_is(desk: Desked) -> None:
    """Nobody has looked at the session, which may be at work; and the agent's last words stay."""
    source = desk.desk.session("Fix login flow", is_busy=True)
    desk.desk.sessions[source.session_id].words = "I take SQLite then."
    shown = await card(desk)
    assert "▶️ is working" in shown.text
    (before,) = desk.kept.cards.all()
    target = replace(before.target, source=source)
    tap = Tap(1, desk.home.clock.now(), User(ANN.id, "Ann"), desk.home.chat_id, 1, "1", "")
    await desk.home.listener._parts.phone.cards.arm_for(target, tap, about="Which database?")
    typing = await desk.home.person.sees("Type your prompt for Fix login flow about Which database?")
    await until(lambda: desk.kept.cards.all()[0].typing == typing.message_id, "the request noted")
    (after,) = desk.kept.cards.all()
    assert (after.state, after.target) == ("busy", before.target)
    assert desk.home.person.message(shown.message_id).text == shown.text


@pytest.mark.parametrize("words", ["I take SQLite then.", ""])
async def test_a_new_list_brings_the_cards_up_to_date(desk: Desked, words: str) -> None:
    """Also the agent's last words, which the list does not tell; while the session is as it was, they stay."""
    session = desk.desk.sessions[desk.desk.session("Fix login flow", is_busy=True).session_id]
    session.words = "Which database?"
    shown = await card(desk)
    await listed(desk)
    assert desk.home.person.message(shown.message_id).text == shown.text
    session.is_busy, session.words = False, words
    await listed(desk)
    after = await until(
        lambda: one if "waits" in (one := desk.home.person.message(shown.message_id)).text else None, "the new state"
    )
    assert words in after.text
    assert "Which database?" not in after.text


async def test_mute_takes_the_notices_of_one_session(desk: Desked) -> None:
    """And gives them back; a restart changes nothing."""
    source, other = desk.desk.session("Fix login flow"), desk.desk.session("Other")
    shown = await card(desk)
    assert await desk.home.person.taps(shown, "🔕 Mute") == "No more notices of this one"
    await until(lambda: "no notices" in desk.home.person.message(shown.message_id).text, "the card drawn again")
    await desk.again()
    at_s = desk.home.clock.now()
    await desk.kept.notices.take(TurnEnded(Turn(source, "OpenCode", "msg_1", at_s - 9, at_s, "Muted.")))
    await desk.notice(other)
    await desk.home.polled()
    assert not desk.home.person.find("Fix login flow is done")
    assert await desk.home.person.taps(shown, "🔔 Notices on") == "Notices are on again"
    await desk.notice(source)


async def test_a_session_that_cannot_be_looked_at_has_a_card_nevertheless(desk: Desked) -> None:
    """Its machine is away; once that is back, the card tells."""
    desk.desk.session("Fix login flow", is_busy=True)
    shown = await listed(desk)
    listing: Any = desk.home.listener._parts.agent.listing
    async with held(listing, "_seen") as gate:
        await desk.home.person.taps(shown, "Fix login flow")
        await gate.begun()
        desk.home.clock.advance(PATIENCE_S)
        for one in desk.kept.cards.all():
            desk.home.listener._parts.steps.kick("card", one.id)
        away = await desk.home.person.sees("can't be reached just now")
        assert not [label for label in labels(away) if "Stop" in label]
    told = await desk.home.person.sees("is working")
    assert told.message_id == away.message_id


async def test_old_cards_are_forgotten(desk: Desked) -> None:
    """After `keep_done`."""
    desk.desk.session("Fix login flow")
    await card(desk)
    await desk.kept.forget_before(desk.home.clock.now() + 60.0)
    (kept,) = desk.kept.cards.all()  # a list can still show it
    await desk.kept.cards.change(kept.id, lambda found: replace(found, used_s=desk.home.clock.now() - USED_S - 60.0))
    await desk.kept.forget_before(desk.home.clock.now() + 60.0)
    assert not desk.kept.cards.all()
