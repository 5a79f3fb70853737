"""The scripted agent server takes prompts as the real one does: the same story, and what only a script can show."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import itertools
import time
from typing import TYPE_CHECKING, Any, get_args

import httpx
import pytest

from hermes.agents.http import Api
from hermes.agents.opencode.client import OpenCodeServer
from hermes.errors import AgentAway, AgentRefused, NotThere
from hermes.model.ask import Source
from hermes.model.files import Attachment
from hermes.model.prompt import Content, Sight
from hermes.sandbox.opencode.events import Manner
from hermes.sandbox.opencode.prompts import HINT
from hermes.sandbox.opencode.server import ScriptedAgent, running_agent
from tests.agents.opencode.prompt_story import Talk, tell

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from hermes.agents.prompting import PromptWay

HERE = "/home/dev/project"
QUESTION: dict[str, Any] = {"question": "Which?", "header": "H", "options": [{"label": "A", "description": "d"}]}


@pytest.fixture(params=get_args(Manner))
def agent(request: pytest.FixtureRequest) -> Iterator[ScriptedAgent]:
    """An agent server of each manner."""
    with running_agent(manner=request.param) as running:
        yield running


@pytest.fixture
async def way(agent: ScriptedAgent) -> AsyncIterator[PromptWay]:
    """Hermes' own way of prompts to it."""
    async with OpenCodeServer(Api("desk", agent.url), machine="laptop") as server:
        yield server.prompts


@pytest.fixture
def talk(agent: ScriptedAgent, way: PromptWay) -> Talk:
    """A session of it."""
    return Talk(way, Source("opencode", "laptop", agent.session(), directory=HERE, server="desk"))


class ScriptedStage:
    """The scripted agent for the story: what a prompt asks for is told to it by hand."""

    def __init__(self, agent: ScriptedAgent, way: PromptWay) -> None:
        self.way, self.directory, self.is_old = way, HERE, agent.manner == "old"
        self._agent = agent
        self._asked = ""

    def answering(self, word: str) -> str:
        """Return a prompt that is answered at once."""
        self._agent.finishes = True
        return f"answer {word}"

    def asking(self, word: str) -> str:
        """Return a prompt whose answer begins with a question."""
        self._agent.finishes = False
        return f"ask {word}"

    def failing(self, word: str) -> str:
        """Return a prompt that fails."""
        self._agent.finishes = False
        return f"fail {word}"

    async def begin(self, talk: Talk, record_id: str) -> None:
        """Ask, or fail."""
        session = talk.source.session_id
        (prompt,) = [one for one in self._agent.sessions[session].messages if one["info"]["id"] == record_id]
        match prompt["parts"][0]["text"].split():
            case ["ask", _]:
                self._asked = self._agent.ask([QUESTION], session=session)
            case ["fail", _]:
                self._agent.fail(session, "the script says so", 400)

    async def answer(self, talk: Talk) -> None:
        """Answer, and let the agent go on to its end."""
        self._agent.finishes = True
        self._agent.answer(self._asked, [["A"]])

    async def delete(self, talk: Talk) -> None:
        """Delete the session."""
        self._agent.delete(talk.source.session_id)

    def requests(self, word: str) -> list[tuple[str, ...]]:
        """Return what the model got."""
        return self._agent.requests(word)


async def test_the_story_of_the_real_one(agent: ScriptedAgent, way: PromptWay) -> None:
    """The same sights as of a real OpenCode; see tests/agents/opencode/test_prompting.py."""
    words = (f"word{number}" for number in itertools.count())
    await tell(ScriptedStage(agent, way), lambda: next(words))


async def test_accepted_is_not_recorded(agent: ScriptedAgent, talk: Talk) -> None:
    """What is held, lost on its way, or lost in a restart is absent; sent again under its id it is answered once."""
    agent.hold_prompts()
    record_id = await talk.send("one")
    assert (await talk.look(record_id)).record == "absent"
    agent.release_prompts(lost=True)
    agent.fault("prompt", "lie")
    await talk.way.send(talk.source, record_id, Content("text", "one"))
    agent.hold_prompts()
    await talk.way.send(talk.source, record_id, Content("text", "one"))
    agent.restart()
    agent.release_prompts()
    assert (await talk.look(record_id)).record == "absent"
    agent.fault("prompt", "cut_after")
    with pytest.raises(AgentAway):
        await talk.way.send(talk.source, record_id, Content("text", "one"))
    assert (await talk.look(record_id)).record == "finished"
    await talk.way.send(talk.source, record_id, Content("text", "one"))
    assert agent.requests("one") == [("one",)]
    assert agent.request_count_of(talk.source.session_id) == 1


async def test_the_files_that_the_model_got(agent: ScriptedAgent, talk: Talk) -> None:
    """By digests of their URLs, beside the texts; its model takes them."""
    picture = Attachment("a.jpg", "image/jpeg", b"a picture")
    content = Content("text", "Look", files=(picture, Attachment("b.txt", "text/plain", b"some words")))
    await talk.way.check(talk.source, content)
    record_id = (await talk.look("")).next_id
    await talk.way.send(talk.source, record_id, content)
    session = talk.source.session_id
    assert agent.texts_of(session) == ["Look\nb.txt:\n\nsome words"]
    url = f"data:image/jpeg;base64,{base64.b64encode(picture.data).decode()}"
    assert agent.files_of(session) == [(hashlib.sha256(url.encode()).hexdigest(),)]


async def test_turns_can_last(agent: ScriptedAgent, talk: Talk) -> None:
    """Until they are ended; what came meanwhile is answered then, and the model gets each text once."""
    session = talk.source.session_id
    agent.take_time(session)
    first = await talk.send("one")
    assert agent.is_active(session)
    assert (await talk.look(first)).record == "running"
    second = await talk.send("two")
    agent.finish(session)
    assert [(await talk.look(one)).record for one in (first, second)] == ["finished", "running"]
    agent.finish(session)
    assert not agent.is_active(session)
    assert agent.texts_of(session) == ["one", "two"]
    other = agent.session()
    agent.ask([QUESTION], session=other)
    assert agent.texts_of(other) == []


async def test_a_prompt_that_nothing_answers(agent: ScriptedAgent, talk: Talk) -> None:
    """It stays in the record of an idle session; the same again is answered when something answers."""
    agent.swallow_prompts(on=True)
    record_id = await talk.send("one")
    assert await talk.look(record_id) == Sight("idle", "admitted")
    agent.swallow_prompts(on=False)
    await talk.way.send(talk.source, record_id, Content("text", "another"))
    assert (await talk.look(record_id)).record == "finished"
    assert agent.requests("another") == [("another",)]


async def test_a_prompt_that_fails_runs_again_if_it_comes_again(agent: ScriptedAgent, talk: Talk) -> None:
    """As of both versions: so nothing is sent again after its end."""
    agent.finishes = False
    record_id = await talk.send("one")
    agent.fail(talk.source.session_id, "no", 401)
    assert (await talk.look(record_id)).reason == "no (401)"
    await talk.way.send(talk.source, record_id, Content("text", "one"))
    assert (await talk.look(record_id)).record == "running"
    assert agent.request_count_of(talk.source.session_id) == 2


async def test_a_prompt_while_the_last_words_are_written(agent: ScriptedAgent, talk: Talk) -> None:
    """The turn goes on with one more request; both are answered."""
    agent.finishes = False
    first = await talk.send("one")
    second = await talk.send("two")
    assert ((await talk.look(first)).record, (await talk.look(second)).record) == ("running", "admitted")
    agent.finish(talk.source.session_id)
    assert ((await talk.look(first)).record, (await talk.look(second)).record) == ("finished", "running")
    agent.finish(talk.source.session_id)
    assert await talk.look(second) == Sight("idle", "finished", ended_s=(await talk.look(second)).ended_s)
    assert agent.requests("one") == [("one",), ("one", "two")]


async def test_a_low_id_is_never_answered_by_old(agent: ScriptedAgent, talk: Talk) -> None:
    """1.1.53 takes it for answered by the message behind it; 1.18.33 answers it."""
    await talk.done("one")
    low = "msg_000000000000" + "x" * 14
    await talk.way.send(talk.source, low, Content("text", "two"))
    assert (await talk.look(low)).record == ("admitted" if agent.manner == "old" else "finished")
    messages = agent.sessions[talk.source.session_id].messages
    assert (messages[0]["info"]["id"] == low) is (agent.manner == "old")


async def test_tasks_mentions_and_commands(agent: ScriptedAgent, talk: Talk) -> None:
    """What the model gets of each, and what is refused."""
    agent.command("fix", "Fix $1 with $2 in $ARGUMENTS", agent="plan")
    agent.command("sh", "!`ls`")
    assert (await talk.done("look", "task", "general")).record == "finished"
    assert any(one.parent_id == talk.source.session_id for one in agent.sessions.values())
    listed = await talk.way.listed(time.time() - 600)
    assert [one.target.source.session_id for one in listed] == [talk.source.session_id]
    await talk.done("ask @explore about it")
    assert agent.requests("about it") == [("look", f"ask @explore about it\n{HINT}explore")]
    await talk.done("a b", "command", "fix")
    assert agent.requests("Fix a with b in a b")
    record_id = (await talk.look()).next_id
    for content in (Content("command", "", "sh"), Content("command", "", "none"), Content("task", "x", "title")):
        with pytest.raises(AgentRefused):
            await talk.way.send(talk.source, record_id, content)


async def test_what_the_routes_refuse(agent: ScriptedAgent, way: PromptWay) -> None:
    """Bodies without their shape: 400. Unknown sessions: 404 of new; of old 204 and nothing, and true to an abort."""
    new = agent.manner == "new"
    session = agent.session()
    with httpx.Client(base_url=agent.url) as http:
        good = {"type": "text", "text": "x"}
        bodies: list[object] = [None, {}, {"parts": ["x"]}, {"parts": [{}]}, {"parts": [good], "messageID": "x"}]
        for body in bodies:
            assert http.post(f"/session/{session}/prompt_async", json=body).status_code == 400
        odd = {"parts": [good | {"id": "x"}]}
        assert http.post(f"/session/{session}/prompt_async", json=odd).status_code == (400 if new else 204)
        assert http.post("/session/ses_none/prompt_async", json={"parts": [good]}).status_code == (404 if new else 204)
        assert http.post("/session/ses_none/abort").json() is True
        assert http.post("/session", json={"title": "T"}).json()["title"] == "T"
    with pytest.raises(NotThere):
        await way.look(Source("opencode", "laptop", "ses_none", directory=HERE), "")
    agent.hold_prompts()
    gone = Talk(way, Source("opencode", "laptop", session, directory=HERE))
    record_id = await gone.send("x")
    agent.delete(session)
    agent.release_prompts()
    assert record_id not in [one["info"]["id"] for one in agent.sessions[session].messages]
    await asyncio.sleep(0)


async def test_an_agent_tells_its_permissions(agent: ScriptedAgent, talk: Talk) -> None:
    """Those of the default one let it read all files; see tests/agents/opencode/test_exclusions.py."""
    assert not (await talk.way.exclusions(talk.source))(f"{HERE}/README.md")
    for one in agent.agents:
        one["permission"] = [{"permission": "read", "pattern": "*.md", "action": "deny"}]
    assert (await talk.way.exclusions(talk.source))(f"{HERE}/README.md")
