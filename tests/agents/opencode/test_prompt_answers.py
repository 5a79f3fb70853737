"""What Hermes makes of odd answers to its looks, sends and lists, on bodies as OpenCode was seen to send them."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from hermes.agents.prompting import PromptWay
from hermes.core.prompt_text import content_of
from hermes.errors import AgentAway, AgentRefused, NotThere
from hermes.model.ask import Source
from hermes.model.prompt import Content, Sight
from tests.agents.opencode.recorded import server

HERE = "/home/dev/project"
SOURCE = Source("opencode", "laptop", "ses_1", directory=HERE, server="desk")
SESSION = {"id": "ses_1", "title": "T", "directory": HERE, "time": {"created": 1_000, "updated": 2_000}}
OURS = "msg_000000000010ours"
PROMPT = {"info": {"id": OURS, "role": "user"}, "parts": [{"type": "text", "text": "x"}]}
STEP = {"info": {"id": "msg_000000000011step", "role": "assistant", "parentID": OURS, "time": {"created": 5}}}
STATUS, MESSAGES, KEPT = "session/status", "session/ses_1/message", f"session/ses_1/message/{OURS}"
Json = dict[str, Any]


class Desk:
    """Answers by path: a function of the request, or its body. `sent` are the bodies of POST requests."""

    def __init__(self, answers: Json) -> None:
        usual: Json = {STATUS: {}, "session/ses_1": SESSION, MESSAGES: []}
        self.answers = usual | answers
        self.sent: list[Json] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """Answer one request."""
        path = request.url.path.strip("/")
        if request.method == "POST" and path.endswith("prompt_async"):
            self.sent.append(json.loads(request.content))
            return httpx.Response(204)
        answer = self.answers.get(path, httpx.Response(404))
        if callable(answer):
            answer = answer(request)
        return answer if isinstance(answer, httpx.Response) else httpx.Response(200, json=answer)


def desk(answers: Json) -> tuple[Desk, PromptWay]:
    """Return a desk with these answers, and our way to it."""
    made = Desk(answers)
    return made, server(made).prompts


async def test_messages_that_are_too_large_are_read_one_by_one() -> None:
    """A prompt of 1.1.53 holds all files that its turn changed; the newest message is enough for most looks."""

    def messages(request: httpx.Request) -> httpx.Response:
        limits.append(request.url.params["limit"])
        if limits[-1] == "1":
            return httpx.Response(200, json=[STEP])
        return httpx.Response(200, content=b" " * (9 << 20), headers={"content-type": "application/json"})

    limits: list[str] = []
    _, way = desk({MESSAGES: messages, STATUS: {"ses_1": {"type": "busy"}}})
    assert await way.look(SOURCE, OURS) == Sight("busy", "running")
    assert (await way.look(SOURCE, "")).next_id.startswith("msg_000000000012")
    assert limits == ["20", "1"] * 2


async def test_a_prompt_without_its_parts_is_absent() -> None:
    """1.1.53 can leave one, if it is killed while it writes: sent again, it is whole."""
    broken = PROMPT | {"parts": []}
    for messages in ([broken], []):
        _, way = desk({MESSAGES: messages, KEPT: broken})
        assert (await way.look(SOURCE, OURS)).record == "absent"


async def test_the_last_words_are_read_from_messages_of_any_size() -> None:
    """As with looks; a session without words has none."""
    said = STEP | {"parts": [{"type": "text", "text": "x" * 4000 + "the end"}]}
    _, way = desk({MESSAGES: [PROMPT, said]})
    words = await way.words(SOURCE)
    assert (len(words), words[-8:]) == (3000, "xthe end")
    _, way = desk({MESSAGES: [PROMPT]})
    assert await way.words(SOURCE) == ""


async def test_what_cannot_be_read_is_told() -> None:
    """A session that is gone, messages that are gone, and a server that fails."""
    for answers, error in (
        ({"session/ses_1": httpx.Response(404)}, NotThere),
        ({MESSAGES: httpx.Response(404)}, NotThere),
        ({MESSAGES: httpx.Response(500)}, AgentAway),
        ({STATUS: httpx.Response(400)}, AgentRefused),
    ):
        _, way = desk(answers)
        with pytest.raises(error):
            await way.look(SOURCE, OURS)


async def test_an_agent_may_have_null_for_what_it_has_not() -> None:
    """1.18.33 says `hidden: null` of a project's own agents."""
    agents = [
        {"name": "mine", "mode": "subagent", "hidden": None},
        {"name": "title", "mode": "primary", "hidden": True},
    ]
    made, way = desk({"agent": agents})
    await way.send(SOURCE, OURS, Content("task", "Look\nhere", "mine"))
    (body,) = made.sent
    assert body == {
        "messageID": OURS,
        "parts": [
            {
                "type": "subtask",
                "agent": "mine",
                "description": "Look",
                "prompt": "Look\nhere",
                "id": "prt_000000000010ours00",
            }
        ],
    }
    made.answers["agent"] = agents[1:]
    with pytest.raises(AgentRefused) as caught:
        await way.send(SOURCE, OURS, Content("task", "x", "title"))
    assert caught.value.said == "there is no agent “title”; there are: none"


async def test_what_nobody_there_can_do_is_said_before_it_is_sent() -> None:
    """The check finds that there is no such agent, and no such command."""
    made, way = desk({"agent": [], "command": [{"name": "fine", "template": "Fine"}]})
    for content, why in (
        (Content("task", "x", "nobody"), "there is no agent “nobody”; there are: none"),
        (Content("command", "x", "nobody"), "there is no command “nobody”; you can send: fine"),
    ):
        with pytest.raises(AgentRefused) as caught:
            await way.check(SOURCE, content)
        assert caught.value.said == why
    await way.check(SOURCE, Content("command", "x", "fine"))
    assert not made.sent


async def test_what_is_there_already_is_not_sent_again() -> None:
    """A task or a mention would be done, or told, twice; a text replaces itself, so that nobody looks."""
    made, way = desk({"agent": [{"name": "mine", "mode": "subagent"}], KEPT: PROMPT})
    await way.send(SOURCE, OURS, Content("task", "x", "mine"))
    await way.send(SOURCE, OURS, Content("text", "x @mine"))
    assert made.sent == []
    await way.send(SOURCE, OURS, Content("text", "x @other @mine@x"))
    await way.send(SOURCE, OURS, Content("note", "x @mine"))
    assert [(len(body["parts"]), body.get("noReply")) for body in made.sent] == [(1, None), (1, True)]


async def test_a_question_that_is_answered_too_late_starts_no_subagent_that_it_names() -> None:
    """A mention makes OpenCode tell the model to call the subagent, also if the answer is no."""
    made, way = desk({"agent": [{"name": "mine", "mode": "subagent"}]})
    about = content_of("No", about="Shall I let @mine rewrite it?")
    await way.send(SOURCE, OURS, about)
    assert [part["text"] for part in made.sent[0]["parts"]] == [about.text]


async def test_many_parts_are_in_their_order() -> None:
    """The model gets them in the order of their ids."""
    names = [f"a{number}" for number in range(12)]
    made, way = desk({"agent": [{"name": name, "mode": "subagent"} for name in names]})
    await way.send(SOURCE, OURS, Content("text", " ".join(f"@{name}" for name in names)))
    parts = made.sent[0]["parts"]
    assert [part.get("name") for part in sorted(parts, key=lambda part: part["id"])] == [None, *names]


async def test_a_folder_that_does_not_answer_hides_no_other() -> None:
    """Its sessions are listed as idle."""
    sessions = [SESSION | {"id": f"ses_{place}", "directory": f"/{place}"} for place in ("a", "b")]

    def status(request: httpx.Request) -> httpx.Response:
        if request.headers["x-opencode-directory"] == "/a":
            return httpx.Response(503)
        return httpx.Response(200, json={"ses_b": {"type": "busy"}})

    _, way = desk({"global/health": {"version": "1.18.33"}, "experimental/session": sessions, STATUS: status})
    listed = await way.listed(0)
    assert {one.target.source.session_id: one.state for one in listed} == {"ses_a": "idle", "ses_b": "busy"}


async def test_a_new_session_of_another_shape_is_refused() -> None:
    """Its id is needed."""
    _, way = desk({"session": {"title": "no id"}})
    with pytest.raises(AgentRefused, match="unknown shape: id is missing"):
        await way.new_session(HERE)
