"""Prompts to OpenCode 2, in both shapes: they reach the model once, and its record tells what became of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

import pytest

from hermes.agents.opencode2 import discovery, prompting, wire
from hermes.agents.opencode2.client import OpenCode2Server
from hermes.agents.opencode2.prompting import sight_of
from hermes.agents.server import Connected
from hermes.errors import AgentAway, AgentRefused, NotThere
from hermes.model.prompt import Content, Sight
from hermes.sandbox.opencode2.server import OpenCode2Agent, running_opencode2
from hermes.sandbox.opencode2.turns import Shape

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from hermes.agents.opencode2.client import OpenCode2Server as Server
    from hermes.agents.prompting import PromptWay
    from hermes.model.ask import Source

TEXT = Content("text", 'Build it: "now" ✓\nand test it')
QUESTION = {"question": "Which?", "header": "One", "options": [{"label": "A", "description": "a"}]}


@pytest.fixture(params=get_args(Shape))
def agent(request: pytest.FixtureRequest) -> Iterator[OpenCode2Agent]:
    """A server of each shape."""
    with running_opencode2(shape=request.param) as running:
        yield running


@pytest.fixture
async def server(agent: OpenCode2Agent) -> AsyncIterator[Server]:
    """Hermes' client of it, connected."""
    async with OpenCode2Server("oc", discovery.at(discovery.Address(agent.url, agent.password)), machine="m") as made:
        await made.connect()
        yield made


@pytest.fixture
def way(server: Server) -> PromptWay:
    """The way of prompts to it."""
    return server.prompts


def source(server: Server, agent: OpenCode2Agent, session: str | None = None) -> Source:
    """Return a session of the server as a source."""
    return replace(server.origin(agent.directory), session_id=session or agent.session("Fix the build"))


async def sent(way: PromptWay, to: Source, content: Content = TEXT) -> str:
    """Send a prompt under the id that a look gives, and return the id."""
    record_id = (await way.look(to, "")).next_id
    await way.send(to, record_id, content)
    return record_id


def seen(sight: Sight) -> tuple[str, str]:
    """Return session and record of a sight."""
    return sight.session, sight.record


# --- a prompt ---------------------------------------------------------------------------------------------------------


async def test_a_prompt_that_was_sent_three_times_reaches_the_model_once(
    agent: OpenCode2Agent, server: Server, way: PromptWay
) -> None:
    """Before it ran, while it ran, and after it; the last one starts nothing."""
    here = source(server, agent)
    record_id = await sent(way, here)
    await way.send(here, record_id, TEXT)
    agent.say(here.session_id, "Done.")
    await way.send(here, record_id, TEXT)
    assert agent.texts_of(here.session_id) == [TEXT.text]
    assert seen(await way.look(here, record_id)) == ("idle", "finished")
    assert agent.turns_of(here.session_id) == 1


async def test_another_text_under_the_same_id_never_reaches_the_model(
    agent: OpenCode2Agent, server: Server, way: PromptWay
) -> None:
    """7 August refuses it, 2.0.26 answers with the first record."""
    here = source(server, agent)
    record_id = await sent(way, here)
    if agent.shape == "august":
        with pytest.raises(AgentRefused) as refused:
            await way.send(here, record_id, Content("text", "another"))
        assert refused.value.tag == "ConflictError"
    else:
        await way.send(here, record_id, Content("text", "another"))
    agent.say(here.session_id, "Done.")
    assert agent.texts_of(here.session_id) == [TEXT.text]
    with pytest.raises(AgentRefused, match="409"):
        await way.send(source(server, agent), record_id, TEXT)


async def test_a_prompt_from_the_first_look_to_its_end(agent: OpenCode2Agent, server: Server, way: PromptWay) -> None:
    """Absent, admitted, running with a tool, between two steps, finished; with the time at which it ended."""
    here = source(server, agent)
    first = await way.look(here, "")
    assert (seen(first), first.next_id[:4]) == (("idle", "absent"), "msg_")
    assert seen(await way.look(here, first.next_id)) == ("idle", "absent")
    await way.send(here, first.next_id, TEXT)
    assert seen(await way.look(here, first.next_id)) == ("busy", "admitted")
    agent.use_tool(here.session_id, "shell", {"command": "make"})
    running = await way.look(here, first.next_id)
    assert (seen(running), running.tool) == (("busy", "running"), "shell")
    agent.say(here.session_id, "Done.")
    finished = await way.look(here, first.next_id)
    assert seen(finished) == ("idle", "finished")
    assert finished.ended_s == agent.sessions[here.session_id].messages[-1]["time"]["completed"] / 1000


async def test_a_look_gives_another_id_each_time(agent: OpenCode2Agent, server: Server, way: PromptWay) -> None:
    """Two prompts never share one."""
    here = source(server, agent)
    assert (await way.look(here, "")).next_id != (await way.look(here, "")).next_id


async def test_a_prompt_that_waits_in_the_inbox_is_admitted(
    agent: OpenCode2Agent, server: Server, way: PromptWay
) -> None:
    """Before a turn takes it, and while it queues behind another; once it is deleted there, it is absent."""
    here = source(server, agent)
    agent.holds_prompts = True
    record_id = await sent(way, here)
    assert [one["id"] for one in agent.inbox(here.session_id)] == [record_id]
    assert seen(await way.look(here, record_id)) == ("busy", "admitted")
    agent.deliver(here.session_id)
    queued = agent.prompt(here.session_id, "then this", delivery="queue")
    assert seen(await way.look(here, queued)) == ("busy", "admitted")
    agent.withdraw(here.session_id, queued)
    assert seen(await way.look(here, queued)) == ("busy", "absent")


@pytest.mark.parametrize("at", range(1, 6))
async def test_a_prompt_that_is_taken_during_a_look_is_not_absent(
    agent: OpenCode2Agent, server: Server, way: PromptWay, at: int
) -> None:
    """Between any two of its requests: it is in the inbox before, and a message after it."""
    here = source(server, agent)
    agent.holds_prompts = True
    record_id = await sent(way, here)

    class Taking(list[Any]):
        """The record of requests, as which the agent takes the prompt right before one of them."""

        def append(self, request: Any) -> None:
            super().append(request)
            if len(self) == at:
                agent.deliver(here.session_id)

    agent.received = Taking()
    assert (await way.look(here, record_id)).record == "admitted"


async def test_a_turn_that_begins_during_a_look_has_not_ended(
    agent: OpenCode2Agent, server: Server, way: PromptWay
) -> None:
    """The session was idle, and then the messages show a step that called a tool."""
    here = source(server, agent)
    agent.admit(here.session_id, "msg_1", TEXT.text, "steer", resumes=False)

    class Beginning(list[Any]):
        """The record of requests, as which the agent begins to work right before the messages are read."""

        def append(self, request: Any) -> None:
            super().append(request)
            if request.route == "messages":
                agent.admit(here.session_id, "msg_1", TEXT.text, "steer")
                agent.use_tool(here.session_id, "shell")
                agent._complete(agent.sessions[here.session_id].messages[-1], "tool-calls")

    agent.received = Beginning()
    assert seen(await way.look(here, "msg_1")) == ("busy", "running")


async def test_a_prompt_joins_a_turn_that_runs(agent: OpenCode2Agent, server: Server, way: PromptWay) -> None:
    """It waits for the next step, which then answers it."""
    here = source(server, agent)
    first = await sent(way, here)
    agent.use_tool(here.session_id, "shell")
    second = await sent(way, here, Content("text", "hurry"))
    assert seen(await way.look(here, second)) == ("busy", "admitted")
    agent.use_tool(here.session_id, "edit")
    joined = await way.look(here, second)
    assert (seen(joined), joined.tool) == (("busy", "running"), "edit")
    agent.say(here.session_id, "Both done.")
    assert agent.texts_of(here.session_id) == [TEXT.text, "hurry"]
    assert [(await way.look(here, one)).record for one in (first, second)] == ["finished", "finished"]


async def test_two_prompts_that_one_step_takes_are_both_answered(
    agent: OpenCode2Agent, server: Server, way: PromptWay
) -> None:
    """The first has no step of its own, because none came between them."""
    here = source(server, agent)
    agent.holds_prompts = True
    first, second = await sent(way, here), await sent(way, here, Content("text", "and this"))
    agent.deliver(here.session_id)
    agent.use_tool(here.session_id, "shell")
    assert [(await way.look(here, one)).record for one in (first, second)] == ["running", "running"]
    agent.say(here.session_id, "Both done.")
    assert [(await way.look(here, one)).record for one in (first, second)] == ["finished", "finished"]


async def test_a_turn_that_asks_is_running(agent: OpenCode2Agent, server: Server, way: PromptWay) -> None:
    """Its tool is the question's; after the answer it finishes."""
    here = source(server, agent)
    record_id = await sent(way, here)
    form = agent.ask([QUESTION], session=here.session_id)
    asking = await way.look(here, record_id)
    assert (seen(asking), asking.tool) == (("busy", "running"), "question")
    agent.answer(form, [["A"]])
    assert seen(await way.look(here, record_id)) == ("idle", "finished")


async def test_a_long_session_is_read_as_far_as_it_must_be(
    agent: OpenCode2Agent, server: Server, way: PromptWay
) -> None:
    """The newest messages are enough for a prompt that is among them; an earlier one is found, too."""
    here = source(server, agent)
    first = await sent(way, here)
    agent.say(here.session_id, "Done.")
    for number in range(30):
        agent.prompt(here.session_id, f"prompt {number}")
        agent.say(here.session_id, "Done.")
    last = await sent(way, here)
    agent.received.clear()
    assert seen(await way.look(here, last)) == ("busy", "admitted")
    assert [one.route for one in agent.received] == ["session", "active", "messages"]
    assert seen(await way.look(here, first)) == ("busy", "finished")


# --- how it ends otherwise --------------------------------------------------------------------------------------------


async def test_a_failure_has_the_words_of_the_provider(agent: OpenCode2Agent, server: Server, way: PromptWay) -> None:
    """They are in the message of the step that failed."""
    here = source(server, agent)
    record_id = await sent(way, here)
    agent.fail(here.session_id, "Provider request failed with HTTP 400: no credit")
    failed = await way.look(here, record_id)
    assert (seen(failed), failed.reason) == (("idle", "failed"), "Provider request failed with HTTP 400: no credit")
    assert failed.ended_s is not None


async def heard(server: Server, agent: OpenCode2Agent) -> tuple[Any, Callable[[], Awaitable[None]]]:
    """Follow the server's events; return them, and what reads up to an event that comes now."""
    events = server.listen()
    assert isinstance(await anext(events), Connected)

    async def read() -> None:
        agent.ask([QUESTION], session=agent.session("another"))
        while not hasattr(getattr(await anext(events), "signal", None), "ask"):
            pass

    return events, read


async def test_a_failure_before_the_first_step_is_told_by_the_events(
    agent: OpenCode2Agent, server: Server, way: PromptWay
) -> None:
    """No message has its words; without the events the prompt counts as one that nobody answers."""
    here = source(server, agent)
    record_id = await sent(way, here)
    agent.fail(here.session_id, "Model unavailable: a/b", "provider.no-route")
    missed = await way.look(here, record_id)
    assert (seen(missed), missed.reason) == (("idle", "admitted"), "")
    events, read = await heard(server, agent)
    again = await sent(way, here)
    agent.fail(here.session_id, "Model unavailable: a/b", "provider.no-route")
    await read()
    failed = await way.look(here, again)
    assert (seen(failed), failed.reason) == (("idle", "failed"), "Model unavailable: a/b")
    assert failed.ended_s is not None
    await sent(way, here)
    agent.say(here.session_id, "Done.")
    await read()
    assert seen(await way.look(here, again)) == ("idle", "finished")
    await events.aclose()


async def test_a_turn_that_is_stopped(agent: OpenCode2Agent, server: Server, way: PromptWay) -> None:
    """In a step, and before the first one, which no message shows."""
    here = source(server, agent)
    record_id = await sent(way, here)
    agent.use_tool(here.session_id, "shell")
    assert await way.stop(here) is True
    stopped = await way.look(here, record_id)
    assert seen(stopped) == ("idle", "stopped")
    assert stopped.ended_s is not None
    events, read = await heard(server, agent)
    record_id = await sent(way, here)
    assert await way.stop(here) is True
    await read()
    assert seen(await way.look(here, record_id)) == ("idle", "stopped")
    await events.aclose()


async def test_what_a_stop_left_in_the_inbox_says_so(agent: OpenCode2Agent, server: Server, way: PromptWay) -> None:
    """It begins with the next prompt, and the same prompt again is one."""
    here = source(server, agent)
    await sent(way, here)
    agent.use_tool(here.session_id, "shell")
    record_id = await sent(way, here, Content("text", "hurry"))
    await way.stop(here)
    parked = await way.look(here, record_id)
    assert (seen(parked), parked.reason) == (("idle", "admitted"), prompting.PARKED)
    await way.send(here, record_id, Content("text", "hurry"))
    assert seen(await way.look(here, record_id)) == ("busy", "admitted")
    agent.say(here.session_id, "Done.")
    assert agent.texts_of(here.session_id) == [TEXT.text, "hurry"]


async def test_a_failure_that_left_a_prompt_in_the_inbox_says_why(
    agent: OpenCode2Agent, server: Server, way: PromptWay
) -> None:
    """As when the session's agent does not exist: the words, and that the prompt still waits."""
    here = source(server, agent)
    events, read = await heard(server, agent)
    agent.holds_prompts = True
    record_id = await sent(way, here)
    agent.fail(here.session_id, "Agent not found: nosuch", "provider.no-route")
    await read()
    parked = await way.look(here, record_id)
    assert seen(parked) == ("idle", "admitted")
    assert parked.reason == f"Agent not found: nosuch; {prompting.PARKED}"
    await events.aclose()


@pytest.mark.parametrize("error", [None, "no", {}, {"type": "unknown"}, {"message": 3, "type": "unknown"}])
async def test_an_odd_failure_in_the_events_breaks_nothing(
    agent: OpenCode2Agent, server: Server, way: PromptWay, error: Any
) -> None:
    """The prompt has failed, with the words that can be read."""
    here = source(server, agent)
    events, read = await heard(server, agent)
    record_id = await sent(way, here)
    agent._ended(agent.sessions[here.session_id], "failed", {"error": error})
    await read()
    failed = await way.look(here, record_id)
    assert seen(failed) == ("idle", "failed")
    assert failed.reason in {"", "unknown", "3"}
    await events.aclose()


async def test_nothing_to_stop(agent: OpenCode2Agent, server: Server, way: PromptWay) -> None:
    """A session at rest is left alone; if its turn ends in this moment, 2.0.26 says so."""
    here = source(server, agent)
    assert await way.stop(here) is False
    assert [one.route for one in agent.received if one.route == "interrupt"] == []
    await sent(way, here)

    class Ending(list[Any]):
        """The record of requests, as which the agent ends the turn right before the interrupt."""

        def append(self, request: Any) -> None:
            if request.route == "interrupt":
                agent.finish(here.session_id)

    agent.received = Ending()
    assert await way.stop(here) is (agent.shape == "august")


async def test_a_dismissed_question_stops_the_turn(agent: OpenCode2Agent, server: Server, way: PromptWay) -> None:
    """The model is not called again."""
    here = source(server, agent)
    record_id = await sent(way, here)
    agent.dismiss(agent.ask([QUESTION], session=here.session_id))
    assert seen(await way.look(here, record_id)) == ("idle", "stopped")


async def test_a_restart_takes_the_turn_up_again(agent: OpenCode2Agent, server: Server, way: PromptWay) -> None:
    """The step that it interrupted does not count as the end."""
    here = source(server, agent)
    record_id = await sent(way, here)
    agent.ask([QUESTION], session=here.session_id)
    (form,) = agent.restart().values()
    assert seen(await way.look(here, record_id)) == ("busy", "running")
    agent.answer(form, [["A"]])
    assert seen(await way.look(here, record_id)) == ("idle", "finished")


# --- what is not there ------------------------------------------------------------------------------------------------


async def test_a_deleted_session_is_not_there(agent: OpenCode2Agent, server: Server, way: PromptWay) -> None:
    """Every way to it says so, with the server's name for it."""
    here = source(server, agent)
    record_id = await sent(way, here)
    agent.delete(here.session_id)
    for told in (way.look(here, record_id), way.look(here, ""), way.send(here, record_id, TEXT)):
        with pytest.raises(NotThere) as gone:
            await told
        assert gone.value.tag == "SessionNotFoundError"


@pytest.mark.parametrize("route", ["session", "messages", "inbox", "message"])
async def test_a_session_that_is_deleted_during_a_look_is_not_there(
    agent: OpenCode2Agent, server: Server, way: PromptWay, route: str
) -> None:
    """Whichever request comes too late; none of them makes the prompt absent."""
    here = source(server, agent)

    class Deleting(list[Any]):
        """The record of requests, as which the session is deleted right before one of them."""

        def append(self, request: Any) -> None:
            super().append(request)
            if request.route == route:
                agent.delete(here.session_id)

    agent.received = Deleting()
    with pytest.raises(NotThere) as gone:
        await way.look(here, "msg_1")
    assert gone.value.tag == "SessionNotFoundError"


@pytest.mark.parametrize("route", ["session", "active", "messages", "inbox", "message"])
async def test_a_route_that_is_not_there_is_no_session_that_is_gone(
    agent: OpenCode2Agent, server: Server, way: PromptWay, route: str
) -> None:
    """A 404 without a name: this version has no such route. That is refused, and says nothing of the session."""
    here = source(server, agent)
    agent.fault(route, status=404)
    with pytest.raises(AgentRefused, match="no such route") as refused:
        await way.look(here, "msg_1")
    assert not isinstance(refused.value, NotThere)
    assert refused.value.said


async def test_a_version_without_prompts_refuses_them(agent: OpenCode2Agent, server: Server, way: PromptWay) -> None:
    """To send, to stop, to begin a session and to list them."""
    here = source(server, agent)
    await sent(way, here)
    for route, told in (
        ("prompt", way.send(here, "msg_2", TEXT)),
        ("interrupt", way.stop(here)),
        ("create_session", way.new_session(agent.directory)),
        ("sessions", way.listed(0)),
    ):
        agent.fault(route, status=404)
        with pytest.raises(AgentRefused, match="no such route") as refused:
            await told
        assert not isinstance(refused.value, NotThere)


async def test_a_server_that_is_away_is_away(agent: OpenCode2Agent, server: Server, way: PromptWay) -> None:
    """A prompt whose answer was lost has arrived: the next look finds it."""
    here = source(server, agent)
    agent.fault("prompt", "cut_after")
    with pytest.raises(AgentAway):
        await way.send(here, "msg_1", TEXT)
    assert seen(await way.look(here, "msg_1")) == ("busy", "admitted")
    agent.away()
    with pytest.raises(AgentAway):
        await way.look(here, "msg_1")


async def test_an_answer_of_another_shape_is_refused(agent: OpenCode2Agent, way: PromptWay) -> None:
    """A new session without an id that can be used."""
    agent.new_id = lambda _: 7  # type: ignore[assignment,method-assign,return-value]
    with pytest.raises(AgentRefused, match="unknown shape"):
        await way.new_session(agent.directory)


def test_only_texts_are_offered() -> None:
    """Nothing that holds in both versions proves that a note, a task or a command has arrived."""
    can = prompting.ABILITIES
    assert (can.kinds, can.steers, can.stops, can.makes_sessions) == (("text",), True, True, True)


# --- sessions ---------------------------------------------------------------------------------------------------------


async def test_a_new_session_takes_a_prompt(agent: OpenCode2Agent, server: Server, way: PromptWay) -> None:
    """It is made in the directory that was named, and has no title yet."""
    made = await way.new_session("/home/dev/other")
    assert agent.sessions[made].directory == "/home/dev/other"
    here = source(server, agent, made)
    await sent(way, here)
    agent.say(made, "Done.")
    assert agent.texts_of(made) == [TEXT.text]
    (listed,) = await way.listed(0)
    assert (listed.target.source.session_id, listed.target.source.session_title) == (made, "")


async def test_the_sessions_that_run_or_were_used(agent: OpenCode2Agent, server: Server, way: PromptWay) -> None:
    """With directory, title and state; no subagent's, and none that was used before."""
    agent.session("long ago")
    since_s = agent.now_ms() / 1000
    idle = agent.session("idle", directory="/home/dev/other")
    busy = agent.session("busy")
    agent.prompt(busy, "work")
    agent.prompt(agent.session("child", parent=busy), "help")
    found = {one.target.source.session_id: one for one in await way.listed(since_s)}
    assert {session: one.state for session, one in found.items()} == {idle: "idle", busy: "busy"}
    told = found[idle].target
    assert (told.source.session_title, told.source.directory) == ("idle", "/home/dev/other")
    assert (told.source.server, told.agent_name, told.can) == ("oc", "OpenCode", prompting.ABILITIES)
    assert found[idle].used_s == agent.sessions[idle].updated_ms / 1000


async def test_a_session_that_runs_is_listed_however_many_came_after_it(
    agent: OpenCode2Agent, server: Server, way: PromptWay
) -> None:
    """The server's list ends after fifty; a subagent that runs is in neither."""
    busy = agent.session("waits for a person")
    agent.prompt(busy, "work")
    agent.prompt(agent.session("child", parent=busy), "help")
    for _ in range(60):
        agent.session("later")
    listed = await way.listed(agent.now_ms() / 1000)
    assert [(one.target.source.session_id, one.state) for one in listed] == [(busy, "busy")]


# --- what the messages show -------------------------------------------------------------------------------------------

OURS = {"id": "msg_p", "type": "user", "text": "do it", "time": {"created": 1000}}
LATER = {"id": "msg_q", "type": "user", "text": "and this", "time": {"created": 9000}}
NOTE = {"id": "msg_s", "type": "synthetic", "text": "go on", "time": {"created": 8000}}
ABORTED = {"type": "aborted", "message": "Step interrupted"}
REFUSED = {"type": "provider.invalid-request", "message": "no credit"}


def step(finish: str | None = None, error: Any = None, *tools: tuple[str, str], ended: int | None = 5000) -> Any:
    """Return a step of the model."""
    parts = [{"type": "tool", "id": "c", "name": name, "state": {"status": status}} for name, status in tools]
    time = {"created": 2000, "completed": ended}
    return {"id": "msg_a", "type": "assistant", "time": time, "finish": finish, "error": error, "content": parts}


CALLED = step("tool-calls", None, ("shell", "completed"))
OPEN = step(None, None, ("read", "completed"), ("shell", "running"), ended=None)
STOP, CUT, FAILED = step("stop"), step("error", ABORTED), step("error", REFUSED)
WORDLESS = step("error", {"type": "unknown"})

SIGHTS: list[tuple[str, list[Any], Sight]] = [
    ("nothing after it", [OURS], Sight("busy", "admitted")),
    ("a note alone after it", [OURS, NOTE], Sight("busy", "admitted")),
    ("another prompt alone after it", [OURS, LATER], Sight("idle", "admitted")),
    ("a step with a tool", [OURS, OPEN], Sight("busy", "running", tool="shell")),
    ("a step that ended with tools", [OURS, CALLED], Sight("busy", "running")),
    ("a step without tools", [OURS, step(ended=None)], Sight("busy", "running")),
    ("the server was killed", [OURS, OPEN], Sight("idle", "running", tool="shell")),
    ("killed, and another prompt since", [OURS, OPEN, LATER, STOP], Sight("idle", "failed", reason=prompting.KILLED)),
    ("the last step", [OURS, CALLED, STOP], Sight("idle", "finished", ended_s=5.0)),
    ("the last step, at work on another", [OURS, STOP, LATER], Sight("busy", "finished", ended_s=5.0)),
    ("taken together with another", [OURS, LATER, STOP], Sight("idle", "finished", ended_s=5.0)),
    ("a later prompt joined its turn", [OURS, CALLED, LATER, OPEN], Sight("busy", "finished", ended_s=5.0)),
    ("ended between two steps", [OURS, CALLED], Sight("idle", "stopped", ended_s=5.0)),
    ("a note between two steps", [OURS, CALLED, NOTE, OPEN], Sight("busy", "running", tool="shell")),
    ("interrupted", [OURS, CUT], Sight("idle", "stopped", ended_s=5.0)),
    ("interrupted, and another since", [OURS, CUT, LATER], Sight("busy", "stopped", ended_s=5.0)),
    ("interrupted by a restart", [OURS, CUT], Sight("busy", "running")),
    ("failed", [OURS, FAILED], Sight("idle", "failed", reason="no credit", ended_s=5.0)),
    ("failed without words", [OURS, WORDLESS], Sight("idle", "failed", reason="unknown", ended_s=5.0)),
    (
        "failed, and another since",
        [OURS, FAILED, LATER, OPEN],
        Sight("busy", "failed", reason="no credit", ended_s=5.0),
    ),
    ("failed, and tried again", [OURS, FAILED], Sight("busy", "running")),
    ("failed, and told to go on", [OURS, FAILED, NOTE], Sight("busy", "running")),
    ("failed once", [OURS, FAILED, NOTE, STOP], Sight("idle", "finished", ended_s=5.0)),
    ("its prompt is too far back", [CALLED, OPEN], Sight("busy", "running", tool="shell")),
]


@pytest.mark.parametrize(("messages", "sight"), [one[1:] for one in SIGHTS], ids=[one[0] for one in SIGHTS])
def test_what_the_messages_show(messages: list[Any], sight: Sight) -> None:
    """The newest comes first, as the server lists them; messages before the prompt do not count."""
    before = [{**LATER, "id": "msg_o"}, FAILED] if messages[0] is OURS else []
    listed = [wire.Message.model_validate(one) for one in reversed([*before, *messages])]
    assert sight_of(listed, "msg_p", sight.session) == sight
