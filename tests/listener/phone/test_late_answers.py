"""Answers to questions that are over: sent as a prompt, or asked for once more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.model.events import Expired
from tests.listening import House, a_request, house, question, until
from tests.prompted import PROMPTS, Desked

if TYPE_CHECKING:
    from hermes.model.ask import Source
    from hermes.sandbox.phone_values import ShownMessage

home = house(sections=PROMPTS)


def asking(desk: Desked) -> Source:
    """A session in a terminal without a port, at work."""
    ways = desk.home.listener._parts.agent.prompting._ways
    assert isinstance(ways, dict)
    ways["opencode without a port"] = desk.desk
    return desk.desk.session("Nine", is_busy=True)


async def in_time(home: House, text: str, *, buttons: bool = True) -> ShownMessage:
    """Let time pass until a message with this text is there."""

    def there() -> ShownMessage | None:
        home.pass_time(5)
        return home.person.find(text, buttons=buttons)

    return await until(there, f"a message that says {text!r}")


async def too_late(desk: Desked, *, buttons: bool = True) -> ShownMessage:
    """Answer a question whose session ends meanwhile; the message that says so."""
    home, session_id = desk.home, asking(desk).session_id
    with home.waiting("que_1"):
        home.hook("question.asked", a_request("que_1", session=session_id))
        shown = await home.person.sees("Which database?", buttons=True)
        await home.noted(shown)
        await home.person.taps(shown, "SQLite")
        await home.phase("sending")
    home.hook("session.deleted", {"info": {"id": session_id}})
    home.hook("question.rejected", {"requestID": "que_1", "sessionID": session_id})
    return await in_time(home, "came too late", buttons=buttons)


async def test_a_late_answer_that_was_cancelled_is_not_said_to_be_sent(desk: Desked) -> None:
    """One answer is one prompt: a second tap makes no other."""
    late = await too_late(desk)
    assert await desk.home.person.taps(late, "Send it as a message") == "I send it as a message"
    line = await until(
        lambda: next((one for one in desk.home.person.shown() if "Cancel" in str(one.labels)), None), "its line"
    )
    await desk.home.person.taps(line, "Cancel")
    await desk.phase("withdrawn")
    assert await desk.home.person.taps(late, "Send it as a message") == "This page has changed"
    assert len(desk.prompts()) == 1


async def test_while_prompts_are_off_the_message_stays(desk: Desked) -> None:
    """It alone says that the answer came too late."""
    late = await too_late(desk)
    desk.home.pass_time(40)
    await desk.home.closed()
    await desk.home.stop()
    await desk.start(prompts={"enabled": False})
    assert "may not write" in await desk.home.person.taps(late, "Send it as a message")
    await desk.home.polled()
    assert not desk.home.person.message(late.message_id).deleted


async def test_a_phone_that_may_not_write_to_the_project_offers_no_message(desk: Desked) -> None:
    """The tap could only be refused, as one on a page that has changed."""
    await desk.again(prompts={"enabled": True, "projects": ["another"]})
    late = await too_late(desk, buttons=False)
    assert late.labels == ()


async def test_a_late_text_quotes_all_questions(desk: Desked) -> None:
    """Else the agent would read it as the answer to the first one."""
    home, session_id = desk.home, asking(desk).session_id
    both = question("Which colour?", ("Red", "Blue")), question("Which name?", ("Ada", "Bea"))
    with home.waiting("que_1"):
        home.hook("question.asked", a_request("que_1", *both, session=session_id))
        await home.noted(await home.person.sees("Which colour?", buttons=True))
        await home.listener._parts.entries.apply(home.entry().id, Expired(home.clock.now(), "reject"))
        await home.phase("sending")
        home.hook("question.rejected", {"requestID": "que_1", "sessionID": session_id})
        await home.person.taps(await in_time(home, "No answer to"), "Answer it now")
    (card,) = [one for one in desk.kept.cards.all() if one.armed_for]
    assert card.about == "Which colour? Which name?"


async def test_a_late_answer_to_a_subagent_goes_to_its_root(desk: Desked) -> None:
    """The subagent is over with its question; nobody would read what it says."""
    home = desk.home
    root, child = asking(desk), desk.desk.session("look (@general subagent)", is_busy=True)
    with home.waiting("que_1"):
        context = {"title": child.session_title, "rootTitle": root.session_title, "rootID": root.session_id}
        home.hook("question.asked", a_request("que_1", session=child.session_id), context=context)
        await home.noted(await home.person.sees("Which database?", buttons=True))
        await home.listener._parts.entries.apply(home.entry().id, Expired(home.clock.now(), "reject"))
        await home.phase("sending")
        home.hook("question.rejected", {"requestID": "que_1", "sessionID": child.session_id})
        await home.person.taps(await in_time(home, "No answer to"), "Answer it now")
    (armed,) = [one for one in desk.kept.cards.all() if one.armed_for]
    assert (armed.target.source.session_id, armed.target.source.session_title) == (root.session_id, root.session_title)
