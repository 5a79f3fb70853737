"""OpenCode 2, in both shapes that were described: found by its file, followed, answered."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from hermes.agents.opencode2.discovery import NAME
from hermes.model.ask import Source
from hermes.model.notice import Retry
from hermes.model.signals import Retrying
from hermes.model.verdicts import AnsweredWith
from hermes.sandbox.opencode.server import running_agent
from hermes.sandbox.opencode2.routes import Refusal
from hermes.sandbox.opencode2.server import OpenCode2Agent, running_opencode2
from tests.listening import House, house, question, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection

ASKED = "Which database?"
home = house()
PASSWORD = "a-password-of-its-own"
SHAPES = ("august", "released")


@pytest.fixture(params=SHAPES)
async def agent(home: House, request: pytest.FixtureRequest) -> AsyncIterator[OpenCode2Agent]:
    """A server that keeps its file where Hermes looks for it."""
    with running_opencode2(shape=request.param, file=home.root / "service.json", now=home.clock.now) as running:
        yield running
        await home.stop()


async def follows(home: House, agent: OpenCode2Agent) -> None:
    """Start a listener, and wait until it follows."""
    await home.start()
    await until(lambda: agent.sinks, "an event stream")


async def test_a_choice_reaches_the_agent(home: House, agent: OpenCode2Agent) -> None:
    """With no table in the configuration and no plugin: found, asked, answered, confirmed by the form's state."""
    await follows(home, agent)
    form = agent.ask([question()], session=agent.session("Fix the build"), say="I looked around.")
    asked = await home.person.sees(ASKED, buttons=True)
    assert "OpenCode" in asked.text
    assert "Fix the build" in asked.text
    assert "I looked around." in asked.text
    await home.person.taps(asked, "SQLite")
    await home.person.sees("✅ SQLite", buttons=False)
    assert agent.came_of(form) == [(("SQLite",),)]
    await until(lambda: "working again" in (home.person.find("✅ SQLite") or asked).text, "the agent at work")
    await home.closed()


async def test_words_and_several_questions(home: House, agent: OpenCode2Agent) -> None:
    """A text of one's own; several choices with words beside them, in the order chosen."""
    await follows(home, agent)
    several = question("Which features?", ("Auth", "Cache"), multiple=True)
    form = agent.ask([question(), several])
    home.person.write('Neither: "DuckDB"', to=await home.person.sees(ASKED, buttons=True))
    await home.person.taps(await home.person.sees("Which features?"), "☐ Cache")
    home.person.write("and logs", to=await home.person.sees("Which features?"))
    await home.person.taps(await home.person.sees("and logs"), "Review ▶")
    await home.person.taps(await home.person.sees("Ready to send?"), "Send")
    await until(lambda: agent.came_of(form), "the answer")
    assert agent.came_of(form) == [(('Neither: "DuckDB"',), ("Cache", "and logs"))]


async def test_skip_and_stop(home: House, agent: OpenCode2Agent) -> None:
    """Skip answers nothing, so that the model goes on; Stop cancels the form, and the turn ends."""
    await follows(home, agent)
    skipped = agent.ask([question()])
    asked = await home.person.sees(ASKED, buttons=True)
    await home.person.taps(asked, "⏭ Skip")
    await home.person.taps(asked, "Yes")
    await home.person.sees("⏭ Skipped", buttons=False)
    assert agent.came_of(skipped) == [((),)]
    stopped = agent.ask([question("Go on?")])
    asked = await home.person.sees("Go on?", buttons=True)
    await home.person.taps(asked, "⏹ Stop")
    await home.person.taps(asked, "Yes, stop")
    await home.person.sees("⏹ Stopped", buttons=False)
    assert agent.came_of(stopped) == [None]
    assert agent.forms[stopped].state["status"] == "cancelled"


async def test_the_desk_is_first(home: House, agent: OpenCode2Agent) -> None:
    """Answered or dismissed there: the buttons go, and the message says so."""
    await follows(home, agent)
    form = agent.ask([question()])
    await home.person.sees(ASKED, buttons=True)
    agent.answer(form, [["PostgreSQL"]])
    await home.person.sees("🖥 Answered on the computer: PostgreSQL", buttons=False)
    form = agent.ask([question("Go on?")])
    await home.person.sees("Go on?", buttons=True)
    agent.dismiss(form)
    await home.person.sees("🖥 Dismissed on the computer", buttons=False)


async def test_the_desk_was_quicker_than_the_phone(home: House, agent: OpenCode2Agent) -> None:
    """The phone's answer meets a settled form (409): the desk's counts, and the person hears that theirs was late."""
    await follows(home, agent)
    form = agent.ask([question()])
    asked = await home.person.sees(ASKED, buttons=True)
    agent.hold_events()
    agent.answer(form, [["PostgreSQL"]])
    await home.person.taps(asked, "SQLite")
    await home.person.sees("came too late: it had already been answered on the computer")
    assert agent.came_of(form) == [(("PostgreSQL",),)]
    agent.release_events()


async def test_an_answer_whose_reply_was_lost_is_confirmed(home: House, agent: OpenCode2Agent) -> None:
    """The connection broke after the answer took effect: it is sent no second time."""
    await follows(home, agent)
    form = agent.ask([question()])
    asked = await home.person.sees(ASKED, buttons=True)
    agent.fault("reply", "cut_after")
    await home.person.taps(asked, "SQLite")
    await home.person.sees("✅ SQLite", buttons=False)
    assert agent.came_of(form) == [(("SQLite",),)]


async def test_a_cancelled_question_of_a_run_is_never_posted(home: House, agent: OpenCode2Agent) -> None:
    """`opencode run` takes its questions back within 50 ms."""
    await follows(home, agent)
    form = agent.ask([question("Of a run?")])
    agent.dismiss(form)
    agent.ask([question()])
    await home.person.sees(ASKED, buttons=True)
    assert home.person.find("Of a run?") is None


async def test_what_was_asked_while_nobody_listened(home: House, agent: OpenCode2Agent) -> None:
    """Two directories and a subagent: each is found, and answered under the session of its own."""
    agent.ask([question("Here?")])
    agent.ask([question("There?")], directory="/home/dev/other/")
    root = agent.session("The root")
    child = agent.ask([question("Child?")], session=agent.session("do it", parent=root))
    await follows(home, agent)
    await home.person.sees("Here?", buttons=True)
    assert "other" in (await home.person.sees("There?", buttons=True)).text
    asked = await home.person.sees("Child?", buttons=True)
    assert "The root" in asked.text
    await home.person.taps(asked, "SQLite")
    await until(lambda: agent.came_of(child), "the answer")


async def test_two_forms_of_one_step_are_two(home: House, agent: OpenCode2Agent) -> None:
    """The turn goes on once both are settled."""
    await follows(home, agent)
    first = agent.ask([question("First?")])
    second = agent.ask([question("Second?")], beside=first)
    for text in ("Second?", "First?"):
        await home.person.taps(await home.person.sees(text, buttons=True), "SQLite")
    await until(lambda: agent.came_of(first) and agent.came_of(second), "both answers")
    await home.put_away()


async def test_an_aborted_and_a_deleted_session(home: House, agent: OpenCode2Agent) -> None:
    """Their questions are closed on the phone."""
    await follows(home, agent)
    session = agent.session()
    agent.ask([question()], session=session)
    await home.person.sees(ASKED, buttons=True)
    agent.abort(session)
    await home.closed()
    agent.ask([question("Deleted?")], session=session)
    await home.person.sees("Deleted?", buttons=True)
    agent.delete(session)
    await home.person.sees("The agent no longer needs this", buttons=False)
    await home.closed()


async def test_a_swept_question_says_so(home: House, agent: OpenCode2Agent) -> None:
    """2.0 ends a turn in which nothing happened for an hour, and its question with it; the question says when."""
    await home.start(questions={"ttl": "2h"})
    session = agent.session()
    agent.ask([question()], session=session)
    asked = await home.person.sees("OpenCode may give up at", buttons=True)
    assert ASKED in asked.text
    agent.sweep(session)
    await home.person.sees("gave up waiting and ended its turn", buttons=False)


async def test_a_question_whose_folder_was_unloaded(home: House, agent: OpenCode2Agent) -> None:
    """No event tells, and its session counts as running for ever: a look finds it out."""
    await follows(home, agent)
    agent.ask([question()])
    asked = await home.person.sees(ASKED, buttons=True)
    agent.evict(agent.directory)
    await home.person.taps(asked, "SQLite")
    await home.person.sees("came too late: the agent had stopped waiting")


async def test_a_turn_that_ends_between_two_looks_is_no_dead_question(
    home: House, agent: OpenCode2Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its form is forgotten, its call still runs at the first look, and nothing runs at the second one."""
    await follows(home, agent)
    form_id = agent.ask([question()])
    await home.person.sees(ASKED, buttons=True)
    form = agent.forms[form_id]
    agent.evict(agent.directory)
    [server] = [one for one in home.listener._parts.agent.servers if one.name == NAME]
    looks = server.busy

    async def after_the_end(directory: str) -> Collection[str]:
        if not agent.came_of(form_id):
            agent.forms[form_id] = form
            agent.answer(form_id, [["SQLite"]])
            agent.forget(form_id)
        return await looks(directory)

    monkeypatch.setattr(server, "busy", after_the_end)
    assert await server.verdict(home.entry().ask) == AnsweredWith((("SQLite",),), "record")


# --- permissions ------------------------------------------------------------------------------------------------------


async def test_a_command(home: House, agent: OpenCode2Agent) -> None:
    """The whole command line is read from the tool's call; "Allow once" runs it."""
    await follows(home, agent)
    given = {"command": "make && rm -rf build"}
    request = agent.ask_permission("shell", ["make", "rm -rf build"], given=given, save=["make *"])
    asked = await home.person.sees("make && rm -rf build", buttons=True)
    assert "parts of the command" not in asked.text
    await home.person.taps(asked, "Allow once")
    await home.person.sees("✅ Allowed once", buttons=False)
    assert agent.came_of(request) == [(("once",),)]


async def test_always_says_that_it_stays(home: House, agent: OpenCode2Agent) -> None:
    """It is kept for the project, and settles what else it covers."""
    await follows(home, agent)
    session = agent.session()
    request = agent.ask_permission("shell", ["make"], given={"command": "make"}, save=["make *"], session=session)
    asked = await home.person.sees("make", buttons=True)
    await home.person.taps(asked, "Always…")
    covered = await home.person.sees("Always allow all of this?")
    assert ", and of other copies of its repository, for good." in covered.text, (
        "OpenCode 2 knows a project by its commits"
    )
    await home.person.taps(asked, "Yes, always")
    await until(lambda: agent.came_of(request), "the reply")
    assert agent.came_of(request) == [(("always",),)]
    assert agent.saved == {(agent.directory, "shell", "make *")}


async def test_a_refusal_and_a_reason(home: House, agent: OpenCode2Agent) -> None:
    """A plain no ends the turn; a reason goes out with it, and for a command the phone says that nobody reads it."""
    await follows(home, agent)
    request = agent.ask_permission("shell", ["make"], given={"command": "make"})
    asked = await home.person.sees("make", buttons=True)
    await home.person.taps(asked, "✋ Refuse")
    await home.person.taps(asked, "Yes, refuse")
    await home.person.sees("✋ Refused", buttons=False)
    assert agent.came_of(request) == [(("reject",),)]
    request = agent.ask_permission("shell", ["ls"], given={"command": "ls -l"})
    asked = await home.person.sees("ls -l", buttons=True)
    await home.person.taps(asked, "✏️ Refuse with a reason")
    await home.person.sees("The agent only hears that the command could not be run, not why")
    home.person.write("Not there")
    await until(lambda: agent.came_of(request), "the reply")
    assert agent.came_of(request) == [(("reject", "Not there"),)]


async def test_a_reason_that_nobody_asked_for_is_not_offered_as_one_that_is_read(
    home: House, agent: OpenCode2Agent
) -> None:
    """As after ✏️: of a refused command, the model hears that it could not be run, and no more."""
    await follows(home, agent)
    agent.ask_permission("shell", ["ls"], given={"command": "ls -l"})
    await home.noted(await home.person.sees("ls -l", buttons=True))
    home.person.write("Not there")
    offered = await home.person.sees("for that reason?", buttons=True)
    assert (
        "The agent only hears that the command could not be run, not why. To allow it, tap its button." in offered.text
    )
    assert "tell the agent" not in offered.text
    assert offered.labels[0] == ("Refuse",)


async def test_a_change_shows_what_it_changes(home: House, agent: OpenCode2Agent) -> None:
    """The lines come from the tool's call, because the request has none."""
    await follows(home, agent)
    given = {"path": "src/a.py", "oldString": "x = 1", "newString": "x = 2"}
    agent.ask_permission("edit", ["src/a.py"], given=given)
    asked = await home.person.sees("src/a.py", buttons=True)
    assert "-x = 1\n+x = 2" in asked.text


# --- a form that is no question ---------------------------------------------------------------------------------------

NUMBER: dict[str, Any] = {"key": "n", "type": "integer", "title": "How many?", "minimum": 1, "required": True}


async def test_an_answer_that_does_not_fit_opens_the_ask_again(home: House, agent: OpenCode2Agent) -> None:
    """The reason comes in words and rings; the next answer counts."""
    await follows(home, agent)
    form = agent.form([NUMBER], title="Workers")
    home.person.write("0", to=await home.person.sees("How many? (a whole number, at least 1)"))
    told = await home.person.sees("did not take your answer")
    assert "Form field is too small: n" in told.text
    home.person.write("a few", to=await home.person.sees("How many?"))
    await home.person.sees("It must be a whole number.")
    assert agent.came_of(form) == []
    home.person.write("3", to=await home.person.sees("How many?"))
    await home.person.sees("✅ “3”", buttons=False)
    assert agent.forms[form].state["answer"] == {"n": 3}
    await until(lambda: home.person.find("did not take your answer") is None, "the end of the word")


async def test_a_reply_of_a_shape_that_is_refused_opens_the_ask_again(
    home: House, agent: OpenCode2Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a version might that wants another body: the person hears the reason, and the phone does not wait for ever."""
    await follows(home, agent)

    def refuse(*_: object) -> None:
        raise Refusal(400, "InvalidRequestError", 'Missing key\n  at ["verdict"]', kind="Payload")

    monkeypatch.setattr(agent, "settle", refuse)
    agent.ask_permission("shell", ["make"], given={"command": "make"})
    await home.person.taps(await home.person.sees("make", buttons=True), "Allow once")
    told = await home.person.sees("did not take your answer")
    assert 'Missing key at ["verdict"]' in told.text
    await home.person.sees("wants to run", buttons=True)


async def test_options_are_answered_by_their_value(home: House, agent: OpenCode2Agent) -> None:
    """Closed options and a yes or no: the label is shown, the value goes out."""
    await follows(home, agent)
    choice = {"key": "choice", "type": "string", "title": "Search the web?", "required": True}
    choice["options"] = [{"value": "allow", "label": "Allow"}, {"value": "disable", "label": "Never"}]
    form = agent.form([choice, {"key": "log", "type": "boolean", "title": "Log it?"}])
    await home.person.taps(await home.person.sees("Search the web?"), "Never")
    await home.person.taps(await home.person.sees("Log it?"), "Yes")
    await home.person.taps(await home.person.sees("Ready to send?"), "Send")
    await until(lambda: agent.came_of(form), "the answer")
    assert agent.forms[form].state["answer"] == {"choice": "disable", "log": True}


async def test_an_mcp_server_asks(home: House, agent: OpenCode2Agent) -> None:
    """Its form belongs to a directory that no event names."""
    await follows(home, agent)
    place = "/home/dev/project2"
    colour = {"key": "colour", "title": "Colour", "type": "string", "required": True}
    colour["options"] = [{"value": "red", "label": "Red"}]
    metadata = {"kind": "mcp-elicitation", "server": "el", "message": "Which one?"}
    form = agent.form([colour], session="global", directory=place, title="el asks", metadata=metadata)
    asked = await home.person.sees("Which one?", buttons=True)
    assert "project2" in asked.text
    await home.person.taps(asked, "Red")
    await home.person.sees("✅ Red", buttons=False)
    assert agent.forms[form].state == {"status": "answered", "answer": {"colour": "red"}}


@pytest.mark.parametrize(
    "field",
    [
        {"key": "k", "type": "string", "title": "Your API key"},
        {"key": "k", "type": "external", "title": "Open this page", "url": "https://example.com"},
        {"key": "k", "type": "string", "title": "Why?", "when": [{"key": "b", "op": "eq", "value": True}]},
        {"key": "k", "type": "string", "title": "Word", "hidden": True},
    ],
    ids=["a credential", "a page to open", "a condition", "hidden"],
)
async def test_other_forms_are_left_to_the_computer(home: House, agent: OpenCode2Agent, field: dict[str, Any]) -> None:
    """They are shown, without buttons; the answer to a text does not say that nothing is open."""
    await follows(home, agent)
    agent.form([field])
    asked = await home.person.sees("Please answer this one on the computer.")
    assert not asked.labels
    home.person.write("anybody there?")
    await home.person.sees("No question is open just now that you can answer here.")


# --- the server comes and goes ----------------------------------------------------------------------------------------


async def test_a_server_that_starts_later_stops_and_moves(home: House, agent: OpenCode2Agent) -> None:
    """Found within seconds, each time by its file: another port, another password."""
    agent.away()
    await home.start()
    agent.back()
    await until(lambda: agent.sinks, "the first stream")
    agent.away(moves=True)
    agent.password = "another one"
    agent.back()
    await until(lambda: agent.sinks, "the second stream")
    agent.ask([question()])
    await home.person.taps(await home.person.sees(ASKED, buttons=True), "SQLite")
    await home.person.sees("✅ SQLite", buttons=False)


async def test_an_answer_waits_for_a_server_that_is_away(home: House, agent: OpenCode2Agent) -> None:
    """Killed, so that its file stays behind; the answer is saved, and goes out if the form is still there."""
    await follows(home, agent)
    form = agent.ask([question()])
    asked = await home.person.sees(ASKED, buttons=True)
    agent.away(killed=True)
    await home.person.taps(asked, "SQLite")
    await home.person.sees("can't be reached")
    agent.back()
    await home.person.sees("✅ Delivered to")
    assert agent.came_of(form) == [(("SQLite",),)]


async def test_a_listener_that_starts_anew_brings_the_answer(home: House, agent: OpenCode2Agent) -> None:
    """The server was away when the person tapped, and the listener ended before the server was back."""
    await follows(home, agent)
    form = agent.ask([question()])
    asked = await home.person.sees(ASKED, buttons=True)
    agent.away(killed=True)
    await home.person.taps(asked, "SQLite")
    await home.person.sees("as soon as it is back")
    await home.stop()
    agent.back()
    assert agent.came_of(form) == []
    await home.start()
    await until(lambda: agent.came_of(form), "the answer")
    assert agent.came_of(form) == [(("SQLite",),)]


@pytest.mark.parametrize("by_url", [False, True])
async def test_a_reaper_brings_the_answer(home: House, agent: OpenCode2Agent, *, by_url: bool) -> None:
    """It follows no events, but connects: also to a server that is given by its URL."""
    if by_url:
        assert agent.file is not None
        agent.file.unlink()
        home.servers.append({"name": "two", "url": agent.url, "password": agent.password})
    await follows(home, agent)
    form = agent.ask([question()])
    asked = await home.person.sees(ASKED, buttons=True)
    await home.stop()
    home.person.tap(asked, "SQLite")
    home._listener = home.new()
    reaping = asyncio.create_task(home.listener.run_once())
    await home.person.sees("✅ SQLite", buttons=False)
    await home.put_away()
    await reaping
    assert agent.came_of(form) == [(("SQLite",),)]


async def test_nobody_in_time_is_a_no(home: House, agent: OpenCode2Agent) -> None:
    """The form is cancelled, which ends the turn, and nothing stays open."""
    await home.start(questions={"ttl": "3s"})
    form = agent.ask([question()])
    await home.person.sees(ASKED, buttons=True)
    await until(lambda: agent.came_of(form), "the end")
    assert agent.came_of(form) == [None]
    await home.closed()


async def test_a_server_that_stops_takes_its_questions_along(home: House, agent: OpenCode2Agent) -> None:
    """They were in its memory alone; a later answer would find nobody. The chat does not show it as missing."""
    await follows(home, agent)
    agent.ask([question()])
    await home.person.sees(ASKED, buttons=True)
    agent.away()
    await home.person.sees("The agent no longer needs this", buttons=False)
    await home.closed()
    assert "opencode2" not in home.listener._parts.agent.followers[0]._connected


async def test_a_restart_asks_again_in_place_of_the_old_message(home: House, agent: OpenCode2Agent) -> None:
    """The turn goes on by itself under a new form: one message with buttons, and the old one is gone."""
    await follows(home, agent)
    agent.ask([question()])
    old = await home.person.sees(ASKED, buttons=True)
    with home.clock.standing():  # the new one is posted a second after it came, however slow this machine is
        agent.restart()
        await home.person.sees("The agent no longer needs this", buttons=False)
        await until(lambda: len(home.entries()) == 1, "the end of the old one")
    await until(lambda: home.person.message(old.message_id).deleted, "the end of the old message")
    new = await home.person.sees(ASKED, buttons=True)
    assert new.message_id != old.message_id
    await home.person.taps(new, "SQLite")
    await home.person.sees("✅ SQLite", buttons=False)
    assert len(home.person.shown()) == 1


@pytest.mark.parametrize("is_second", [False, True])
async def test_a_question_ends_with_the_server_of_its_version(home: House, *, is_second: bool) -> None:
    """A person has updated OpenCode, or gone back: the other version answers at the same place."""

    def run(*, is_second: bool, port: int = 0) -> Any:
        if is_second:
            return running_opencode2(shape="released", password=PASSWORD, port=port, now=home.clock.now)
        return running_agent(manner="new", password=PASSWORD, port=port, now=home.clock.now)

    with run(is_second=is_second) as before:
        home.connect(before, password=PASSWORD)
        await home.start()
        before.ask([question()])
        await home.person.sees(ASKED, buttons=True)
        port = httpx.URL(before.url).port or 0
    with run(is_second=not is_second, port=port) as after:
        home.agents.clear()
        await until(lambda: after.sinks, "an event stream")
        home.clock.advance(61)
        await home.person.sees("The agent no longer needs this")
        await home.stop()


# --- what a gap or an odd server may not do ---------------------------------------------------------------------------


async def test_an_accepted_reply_is_proof_enough(home: House, agent: OpenCode2Agent) -> None:
    """No event comes, and the command runs on; or the edit fails with the words of its tool."""
    await follows(home, agent)
    agent.holds_calls = True
    ran = agent.ask_permission("shell", ["make"], given={"command": "make"})
    asked = await home.person.sees("make", buttons=True)
    agent.hold_events()
    await home.person.taps(asked, "Allow once")
    await home.person.sees("✅ Allowed once", buttons=False)
    agent.release_events()
    refused = agent.ask_permission("edit", ["a.py"], given={"path": "a.py", "content": "x = 1"})
    asked = await home.person.sees("a.py", buttons=True)
    agent.hold_events()
    await home.person.taps(asked, "✏️ Refuse with a reason")
    await home.person.sees("Write why not")
    home.person.write("Not there")
    await home.person.sees("✋ Refused", buttons=False)
    agent.release_events()
    assert (agent.came_of(ran), agent.came_of(refused)) == ([(("once",),)], [(("reject", "Not there"),)])
    assert home.person.find("came too late") is None


async def test_a_sweep_says_nothing_of_the_next_turn(home: House, agent: OpenCode2Agent) -> None:
    """The session works again: what is allowed and stopped then is told as such."""
    await follows(home, agent)
    session = agent.session()
    agent.ask([question()], session=session)
    await home.person.sees(ASKED, buttons=True)
    agent.sweep(session)
    await home.person.sees("gave up waiting", buttons=False)
    agent.ask_permission("shell", ["make"], given={"command": "make"}, session=session)
    await home.person.taps(await home.person.sees("make", buttons=True), "Allow once")
    await home.person.sees("✅ Allowed once", buttons=False)
    agent.ask([question("Go on?")], session=session)
    asked = await home.person.sees("Go on?", buttons=True)
    await home.person.taps(asked, "⏹ Stop")
    await home.person.taps(asked, "Yes, stop")
    await home.person.sees("⏹ Stopped", buttons=False)
    assert home.person.find("came too late") is None


async def test_a_form_without_a_place_waits_until_its_place_is_known(home: House, agent: OpenCode2Agent) -> None:
    """Its directory cannot be found for a moment; it is listed, and answered there."""
    await follows(home, agent)
    agent.fault("locations", "error")
    field = {"key": "colour", "type": "string", "title": "Colour", "options": [{"value": "red", "label": "Red"}]}
    metadata = {"kind": "mcp-elicitation", "server": "one", "message": "Which one?"}
    form = agent.form([field], session="global", directory="/home/dev/other", metadata=metadata)
    await home.person.taps(await home.person.sees("Which one?", buttons=True), "Red")
    await until(lambda: agent.came_of(form), "the answer")


async def test_a_form_whose_place_cannot_be_found_is_shown(home: House, agent: OpenCode2Agent) -> None:
    """The server does not tell which folders it has loaded: the computer answers it, and the phone hears of that."""
    await follows(home, agent)
    agent.fault("locations", "error", status=404, times=50)
    metadata = {"kind": "mcp-elicitation", "server": "one", "message": "Which one?"}
    field = {"key": "name", "type": "string", "title": "Name"}
    form = agent.form([field], session="global", directory="/home/dev/other", metadata=metadata)
    assert "answer this one on the computer" in (await home.person.sees("Which one?")).text
    agent.dismiss(form)
    await home.person.sees("🖥 Dismissed on the computer")


async def test_an_odd_session_hides_no_question(home: House, agent: OpenCode2Agent) -> None:
    """Its title is no text; the question of another one was asked before the listener came."""
    odd: Any = agent.sessions[agent.session()]
    odd.title = None
    agent.ask([question()])
    await home.start()
    await home.person.sees(ASKED, buttons=True)


async def test_a_field_of_tomorrow_is_shown(home: House, agent: OpenCode2Agent) -> None:
    """As far as it can be read; the computer answers it. So is a credential that the form asks for in its own words."""
    await follows(home, agent)
    agent.form([{"key": "k", "type": "rating", "title": "Rate it", "options": [1, 2, 3]}])
    assert "answer this one on the computer" in (await home.person.sees("Rate it")).text
    metadata = {"kind": "mcp-elicitation", "server": "one", "message": "Please paste your GitHub password"}
    agent.form([{"key": "value", "type": "string", "title": "Value"}], metadata=metadata)
    assert "answer this one on the computer" in (await home.person.sees("GitHub password")).text


async def test_a_number_that_the_server_would_change_comes_back(home: House, agent: OpenCode2Agent) -> None:
    """JavaScript holds whole numbers up to 2^53; nothing larger is sent."""
    await follows(home, agent)
    form = agent.form([{"key": "n", "type": "integer", "title": "How many?", "minimum": 1, "maximum": 9_999_999}])
    asked = await home.person.sees("How many? (a whole number, at least 1, at most 9999999)", buttons=True)
    home.person.write("9007199254740993", to=asked)
    await home.person.sees("“It is too large.”")
    home.person.write("37", to=await home.person.sees("How many?", buttons=True))
    await until(lambda: agent.came_of(form), "the answer")
    assert agent.came_of(form) == [(("37",),)]


async def test_a_file_with_a_bad_url_breaks_nothing(
    home: House, agent: OpenCode2Agent, caplog: pytest.LogCaptureFixture
) -> None:
    """The server is lost with a sentence; a good file is followed."""
    agent.write_file(home.root / "service.json", "http://[::1")
    await home.start()
    await until(lambda: "its url is not an http(s) URL" in caplog.text, "the sentence")
    assert "a part of the listener failed" not in caplog.text
    agent.write_file(home.root / "service.json", agent.url)
    await until(lambda: agent.sinks, "an event stream")


# --- the end of turns -----------------------------------------------------------------------------------------------


async def notices(home: House, agent: OpenCode2Agent) -> None:
    """Start a listener that tells of every turn, and wait until it follows."""
    await home.start(notices={"finished": "0s"})
    await until(lambda: agent.sinks, "an event stream")


async def test_the_end_of_a_turn_is_told(home: House, agent: OpenCode2Agent) -> None:
    """With its title, its length and the last words."""
    await notices(home, agent)
    form = agent.ask([question()], session=agent.session("Fix the build"))
    await home.person.sees(ASKED, buttons=True)
    home.clock.advance(300.0)
    agent.answer(form, [["SQLite"]])
    shown = await home.person.sees("✅ Fix the build is done · 5 min")
    assert "FINAL: " in shown.text
    assert "OpenCode on " in shown.text


async def test_a_turn_that_fails_is_told_with_its_reason(home: House, agent: OpenCode2Agent) -> None:
    """In the provider's words."""
    await notices(home, agent)
    session = agent.session("Fix the build")
    agent.ask([question()], session=session)
    await home.person.sees(ASKED, buttons=True)
    agent.fail(session, "the key was refused")
    await home.person.sees("❌ Fix the build stopped: the key was refused")


async def test_what_a_person_ended_and_what_a_subagent_did_are_no_news(home: House, agent: OpenCode2Agent) -> None:
    """A question that was dismissed, a turn that was interrupted, a child; the parent's end is told."""
    await notices(home, agent)
    agent.dismiss(agent.ask([question("Dismissed?")], session=agent.session("Dismissed")))
    interrupted = agent.session("Interrupted")
    agent.ask([question("Interrupted?")], session=interrupted)
    agent.abort(interrupted)
    parent = agent.session("Parent")
    child = agent.session("Child", parent=parent)
    agent.answer(agent.ask([question("Child?")], session=child), [["SQLite"]])
    agent.answer(agent.ask([question()], session=parent), [["SQLite"]])
    await home.person.sees("✅ Parent is done")
    for title in ("Dismissed", "Interrupted", "Child"):
        assert home.person.find(f"{title} is done") is None
        assert home.person.find(f"{title} stopped") is None


async def test_a_turn_that_ended_while_nobody_followed_is_told_later(home: House, agent: OpenCode2Agent) -> None:
    """Once."""
    await notices(home, agent)
    form = agent.ask([question()], session=agent.session("Fix the build"))
    await home.person.sees(ASKED, buttons=True)
    await home.stop()
    agent.answer(form, [["SQLite"]])
    for _ in range(2):
        await notices(home, agent)
        await home.person.sees("✅ Fix the build is done")
        known = home.listener._parts.kept.notices._known
        await until(lambda known=known: [one.phase for one in known.values()] == ["posted"], "the notice noted")  # type: ignore[misc]
        await home.stop()
    assert len([one for one in home.person.shown() if " is done" in one.text]) == 1


@pytest.mark.parametrize("how", ["restarted", "gone"])
async def test_a_turn_whose_server_ended_no_longer_tries(home: House, agent: OpenCode2Agent, how: str) -> None:
    """A server that was killed tells of no end."""
    await notices(home, agent)
    # The first look at the server may still be under way, and it would find that no turn runs there.
    await until(lambda: home.listener._parts.agent.followers[0].is_connected, "the end of the list")
    source = Source("opencode2", "m1", agent.session("Fix the build"), session_title="Fix the build", server=NAME)
    await home.listener._parts.kept.notices.take(
        Retrying(Retry(source, "OpenCode", 4, home.clock.now() + 60.0, "rate limit"))
    )
    shown = await home.person.sees("🔁 Fix the build: rate limit · 5th try")
    agent.away(killed=how == "restarted")
    if how == "restarted":
        agent.back()
    await until(lambda: " · 4 tries failed" in home.person.message(shown.message_id).text, "that it tries no more")


@pytest.mark.parametrize("is_tapped", [False, True])
async def test_an_always_that_lets_other_sessions_go_on_was_not_said_at_the_desk(
    home: House, agent: OpenCode2Agent, is_tapped: bool
) -> None:
    """OpenCode 2 keeps it for the project. The person may be answering the other one, too."""
    await home.start(permissions={"always": True})
    await until(lambda: agent.sinks, "an event stream")
    agent.holds_calls = True
    asks = [
        agent.ask_permission("shell", [line], given={"command": line}, save=["make *"], session=agent.session(line))
        for line in ("make test", "make docs")
    ]
    first = await home.person.sees("make test", buttons=True)
    second = await home.person.sees("make docs", buttons=True)
    await home.person.taps(first, "Always…")
    if is_tapped:
        agent.hold_events()
    await home.person.taps(first, "Yes, always")
    await until(lambda: agent.came_of(asks[1]), "the end of the second one")
    if is_tapped:
        await home.person.taps(second, "Allow once")
        agent.release_events()
    await until(lambda: not home.person.message(second.message_id).rows, "its end on the phone")
    assert not home.person.find("on the computer")


async def test_an_answer_to_a_form_of_no_session_is_no_prompt(home: House, agent: OpenCode2Agent) -> None:
    """An MCP server asked, outside of all sessions: nobody could be told later."""
    await home.start(prompts={"enabled": True})
    await until(lambda: agent.sinks, "an event stream")
    options = [{"value": "a", "label": "A"}, {"value": "b", "label": "B"}]
    field = {"key": "db", "type": "string", "title": ASKED, "options": options}
    told = {"kind": "mcp-elicitation", "server": "x", "message": "Hello"}
    agent.form([field], session="global", metadata=told)
    shown = await home.person.sees(ASKED, buttons=True)
    await home.noted(shown)
    agent.hold_events()
    agent.forms.clear()
    await home.person.taps(shown, "B")
    late = await home.person.sees("too late")
    assert "Send it as a message" not in str(late.labels)


async def test_an_always_says_nothing_about_another_project(home: House, agent: OpenCode2Agent) -> None:
    """OpenCode 2 keeps it for its own; what is allowed there was allowed at the desk."""
    await home.start(permissions={"always": True})
    await until(lambda: agent.sinks, "an event stream")
    agent.holds_calls = True
    there = agent.session("Two", directory="/home/dev/other")
    given = {"command": "make test"}
    first = agent.ask_permission("shell", ["make test"], given=given, save=["make *"], session=agent.session("One"))
    second = agent.ask_permission("shell", ["ls"], given={"command": "ls"}, save=["ls *"], session=there)
    shown = await home.person.sees("make test", buttons=True)
    await home.noted(await home.person.sees("other · Two", buttons=True))
    await home.person.taps(shown, "Always…")
    await home.person.taps(shown, "Yes, always")
    await until(lambda: agent.came_of(first), "the end of the first one")
    agent.settle(second, "always")
    await home.person.sees("🖥 Always allowed on the computer", buttons=False)
