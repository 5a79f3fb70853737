"""A turn of the scripted agent server that is told step by step is for Hermes a turn like any other."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import pytest

from hermes.agents.http import Api
from hermes.agents.opencode.client import OpenCodeServer
from hermes.model.ask import Source
from hermes.sandbox.opencode.events import Manner
from hermes.sandbox.opencode.server import ScriptedAgent, running_agent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

HERE = "/home/dev/project"


@pytest.fixture(params=get_args(Manner))
def agent(request: pytest.FixtureRequest) -> Iterator[ScriptedAgent]:
    """An agent server of each manner, which is told each step."""
    with running_agent(manner=request.param) as running:
        running.finishes = False
        yield running


@pytest.fixture
async def server(agent: ScriptedAgent) -> AsyncIterator[OpenCodeServer]:
    """Hermes' own way to it."""
    async with OpenCodeServer(Api("desk", agent.url), machine="laptop") as there:
        yield there


async def test_tools_words_and_the_time_that_it_took(agent: ScriptedAgent, server: OpenCodeServer) -> None:
    """While a tool runs the prompt is at work with it; at the end the turn has the words, and its whole length."""
    session = agent.session("First title")
    source = Source("opencode", "laptop", session, directory=HERE, server="desk")
    prompt = agent.prompt(session, "Do it.", ago_s=600)
    agent.begin_call(session, "bash", {"command": "make"})
    sight = await server.prompts.look(source, prompt)
    assert (sight.record, sight.tool) == ("running", "bash")
    agent.end_calls(session, "made")
    assert (await server.prompts.look(source, prompt)).record == "running"
    assert await server.turn(session, HERE) is None
    agent.begin_call(session, "edit", {})
    agent.end_calls(session, "edited")
    agent.retitle(session, "Another title")
    agent.say(session, "It is done.")
    assert (await server.prompts.look(source, prompt)).record == "finished"
    turn = await server.turn(session, HERE)
    assert turn is not None
    assert (turn.words, turn.prompt_id) == ("It is done.", prompt)
    assert turn.began_s is not None
    assert 599 < turn.ended_s - turn.began_s < 660
    assert [one.target.source.session_title for one in await server.prompts.listed(0)] == ["Another title"]


async def test_a_prompt_that_comes_while_a_turn_runs_is_that_of_the_next_step(agent: ScriptedAgent) -> None:
    """The words answer it."""
    session = agent.session()
    agent.prompt(session, "Do it.")
    agent.begin_call(session, "bash", {"command": "make"})
    later = agent.prompt(session, "And that, too.")
    agent.end_calls(session, "made")
    agent.say(session, "Both are done.")
    last = agent.sessions[session].messages[-1]
    assert (last["info"]["parentID"], last["parts"][-1]["text"]) == (later, "Both are done.")
    assert not agent.sessions[session].busy


async def test_the_model_can_fail_at_a_later_step(agent: ScriptedAgent, server: OpenCodeServer) -> None:
    """The step that it was asked for last has the error."""
    session = agent.session()
    agent.prompt(session, "Do it.")
    agent.begin_call(session, "bash", {"command": "make"})
    agent.end_calls(session, "made")
    agent.begin_step(session)
    agent.begin_step(session)
    agent.fail(session, "No credit", 402)
    turn = await server.turn(session, HERE)
    assert turn is not None
    assert turn.failure == "No credit (402)"
    assert [part["type"] for part in agent.sessions[session].messages[-1]["parts"]] == []
