"""A server that is given by its URL: which version answers there is found out, and never supposed."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from hermes.agents.either_opencode import EitherServer
from hermes.agents.http import Api
from hermes.agents.opencode.client import OpenCodeServer
from hermes.agents.opencode2.client import OpenCode2Server
from hermes.agents.opencode2.discovery import Address, at
from hermes.errors import AgentAway, Unauthorized
from hermes.model.ask import Source
from hermes.model.prompt import Content
from hermes.sandbox.opencode.server import running_agent
from hermes.sandbox.opencode2.server import running_opencode2

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from hermes.agents.prompting import PromptWay
    from hermes.sandbox.opencode2.server import OpenCode2Agent

HERE = "/home/dev/project"
TEXT = Content("text", "Rename it")


def fresh(url: str, password: str = "") -> AbstractAsyncContextManager[EitherServer]:
    """The server of a listener that has just started: nothing has connected to it yet."""
    first = OpenCodeServer(Api("oc", url, password=password), machine="m")
    return aclosing(EitherServer(first, OpenCode2Server("oc", at(Address(url, password)), machine="m")))


def source(agent: OpenCode2Agent) -> Source:
    """A session of a server of version 2."""
    return Source("opencode2", "m", agent.session("Fix the build"), directory=agent.directory, server="oc")


async def test_a_prompt_to_an_opencode_2_outlives_a_restart_of_the_listener() -> None:
    """It is looked for before anything has connected: it runs, and its session is not gone."""
    with running_opencode2() as agent:
        here = source(agent)
        async with fresh(agent.url, agent.password) as server:
            record_id = (await (await server.way()).look(here, "")).next_id
            await (await server.way()).check(here, TEXT)
            await (await server.way()).send(here, record_id, TEXT)
        agent.use_tool(here.session_id, "shell")
        async with fresh(agent.url, agent.password) as server:
            sight = await (await server.way()).look(here, record_id)
        assert (sight.session, sight.record) == ("busy", "running")
        assert agent.texts_of(here.session_id) == [TEXT.text]


@pytest.mark.parametrize(
    ("use", "told"),
    [
        (lambda way, here: way.words(here), "All tests pass."),
        (lambda way, here: way.stop(here), "True"),
        (lambda way, _: way.listed(0.0), "Fix the build"),
        (lambda way, here: way.new_session(here.directory), "ses_"),
        (lambda way, here: way.exclusions(here), "function"),
    ],
    ids=["words", "stop", "list", "new session", "exclusions"],
)
async def test_the_first_request_goes_to_the_version_that_answers(
    use: Callable[[PromptWay, Source], Any], told: str
) -> None:
    """A session is read, stopped, listed or made by a listener that has just started."""
    with running_opencode2() as agent:
        here = source(agent)
        agent.prompt(here.session_id, "Begin")
        agent.say(here.session_id, "All tests pass.")
        agent.prompt(here.session_id, "Go on")
        async with fresh(agent.url, agent.password) as server:
            assert told in str(await use(await server.way(), here))


async def test_an_opencode_1_is_found_out_too() -> None:
    """Its sessions are its own."""
    with running_agent() as agent:
        async with fresh(agent.url) as server:
            session_id = await (await server.way()).new_session(HERE)
            assert server.agent == "opencode"
            here = Source("opencode", "m", session_id, directory=HERE, server="oc")
            assert (await (await server.way()).look(here, "")).session == "idle"


async def test_a_server_whose_stream_broke_is_asked_for_its_health_first() -> None:
    """OpenCode 1.18.33 never answers a request that comes before it is ready: a look would wait half a minute."""
    asked: list[tuple[str, float]] = []
    here = Source("opencode", "m", "ses_1", directory=HERE, server="oc")

    def answered(request: httpx.Request) -> httpx.Response:
        asked.append((request.url.path, max(request.extensions["timeout"].values())))
        if is_ready and request.url.path == "/global/health":
            return httpx.Response(200, json={"healthy": True, "version": "1.18.33"})
        if is_ready:
            return httpx.Response(200, headers={"content-type": "text/event-stream"})
        raise httpx.ReadTimeout("swallowed")

    first = OpenCodeServer(Api("oc", "http://oc.test", transport=httpx.MockTransport(answered)), machine="m")
    second = OpenCode2Server("oc", at(Address("http://oc.test")), machine="m")
    async with aclosing(EitherServer(first, second)) as server:
        is_ready = True
        assert [told async for told in server.listen()] == []
        is_ready = False
        asked.clear()
        with pytest.raises(AgentAway):
            await (await server.way()).look(here, "")
    assert asked == [("/global/health", 1)]


async def test_a_prompt_waits_for_a_server_that_does_not_answer() -> None:
    """It is away until it answers; a wrong password is an error of its own."""
    with running_opencode2() as agent:
        here = source(agent)
        async with fresh(agent.url, "another") as server:
            with pytest.raises(Unauthorized):
                await (await server.way()).look(here, "")
        async with fresh(agent.url, agent.password) as server:
            agent.away()
            with pytest.raises(AgentAway):
                await (await server.way()).look(here, "")
            agent.back()
            assert (await (await server.way()).look(here, "")).session == "idle"
            assert server.agent == "opencode2"
