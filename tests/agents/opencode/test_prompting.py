"""Prompts to a real OpenCode: what the model got of each kind, what is seen of it, and that it takes effect once.

"new" is 1.18.33, "old" is 1.1.53.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from functools import partial
from typing import TYPE_CHECKING

import httpx
import pytest

from hermes.agents.http import Api
from hermes.agents.opencode.client import OpenCodeServer
from hermes.agents.opencode.prompting import ABILITIES
from hermes.errors import AgentRefused, NotThere
from hermes.model.ask import Source
from hermes.model.prompt import Content, ContentKind
from hermes.sandbox.model_server import ScriptedModel, script
from tests.agents.opencode.prompt_story import Talk, tell
from tests.harness.processes import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from hermes.agents.prompting import PromptWay
    from tests.harness.home import Json
    from tests.harness.opencode import OpenCode

OLD = "1.1.53"
HINT = " Use the above message and context to generate a prompt and call the task tool with subagent: "
QUESTION: Json = {"questions": [{"question": "Which?", "header": "H", "options": [{"label": "A", "description": "d"}]}]}
ASKS: Json = {"tool": "question", "args": QUESTION}


def word() -> str:
    """Return a word that no other conversation has."""
    return f"word{uuid.uuid4().hex[:12]}"


def prompt(key: str, *steps: Json) -> str:
    """Return a prompt with this word for which the model takes these steps."""
    return script(steps, key)


@pytest.fixture
async def server(opencode: OpenCode) -> AsyncIterator[OpenCodeServer]:
    """Our client of the shared server."""
    async with OpenCodeServer(Api("desk", opencode.url), machine="laptop") as one:
        yield one


def talk_in(server: OpenCodeServer, opencode: OpenCode, project: Path) -> Talk:
    """Begin a session in this project."""
    session = opencode.session(project)
    return Talk(server.prompts, Source("opencode", "laptop", session, directory=str(project), server="desk"))


@pytest.fixture
def talk(server: OpenCodeServer, opencode: OpenCode, project: Path) -> Talk:
    """A session of the shared project."""
    return talk_in(server, opencode, project)


class RealStage:
    """A real OpenCode for the story."""

    def __init__(self, way: PromptWay, opencode: OpenCode, model: ScriptedModel, project: Path) -> None:
        self.way, self.directory, self.is_old = way, str(project), opencode.version == OLD
        self._opencode, self._model, self._project = opencode, model, project

    def answering(self, word: str) -> str:
        return prompt(word, {"text": "Done."})

    def asking(self, word: str) -> str:
        return prompt(word, ASKS)

    def failing(self, word: str) -> str:
        return prompt(word, {"status": 400})

    async def begin(self, talk: Talk, record_id: str) -> None:
        pass

    async def answer(self, talk: Talk) -> None:
        (asked,) = [
            one for one in self._opencode.questions(self._project) if one["sessionID"] == talk.source.session_id
        ]
        self._opencode.reply(asked["id"], [["A"]], self._project)

    async def delete(self, talk: Talk) -> None:
        self._opencode.request("DELETE", f"/session/{talk.source.session_id}", self._project)

    def requests(self, word: str) -> list[tuple[str, ...]]:
        return self._model.asked(word)


@pytest.mark.story
async def test_the_story(server: OpenCodeServer, opencode: OpenCode, model: ScriptedModel, project: Path) -> None:
    """A text, a note, a prompt in a running turn, a stop, a failure and the end of the session."""
    await tell(RealStage(server.prompts, opencode, model, project), word)


# what the model gets


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{} naïve й 🐘 <b>*_`[x](y)` \u2028 \"quotes\" 'and' \\ $1 $ARGUMENTS\n\n  indented\n", id="odd"),
        pytest.param("/run {} is no command here", id="slash"),
        pytest.param("!`touch ran` {} @nobody @general@x a@general.org", id="no syntax"),
        pytest.param("{}" + " and so on" * 20_000, id="long"),
    ],
)
async def test_a_text_reaches_the_model_to_the_letter(
    talk: Talk, model: ScriptedModel, project: Path, text: str
) -> None:
    """No syntax of a terminal or of a command means anything in it."""
    one = word()
    text = text.format(one)
    assert (await talk.done(text)).record == "finished"
    assert model.asked(one) == [(text,)]
    assert not (project / "ran").exists()


async def test_a_mention_makes_the_model_call_the_subagent(talk: Talk, model: ScriptedModel) -> None:
    """Each subagent that the text names is told to the model once; a main agent, or a word, is not."""
    one = word()
    text = f"{one} ask @general, then @explore. And @general again; @build and @nobody do nothing"
    await talk.done(text)
    ((said,),) = model.asked(one)
    assert said.split("\n")[0] == text
    assert [line for line in said.split("\n")[1:] if line] == [f"{HINT}general", f"{HINT}explore"]


async def test_a_note_waits_for_the_next_prompt(talk: Talk, model: ScriptedModel) -> None:
    """It begins no turn. The next prompt has it before its own text."""
    noted, asked = word(), word()
    note = await talk.send(noted, "note")
    assert await talk.until(note, "admitted") == await talk.look(note)
    await asyncio.sleep(0.5)
    assert (await talk.look(note)).record == "admitted"
    assert model.asked(noted) == []
    assert (await talk.done(asked)).record == "finished"
    (request,) = model.asked(asked)
    assert [said for said in request if said in {noted, asked}] == [noted, asked] or request == (f"{noted}\n{asked}",)


async def test_a_task_is_done_by_the_subagent(talk: Talk, model: ScriptedModel) -> None:
    """The subagent gets the text alone, the main agent its result; the answer is under our own id."""
    one = word()
    text = prompt(one, {"text": "The subagent's answer.", "delay_s": 0.5})
    task = await talk.send(text, "task", "general")
    assert (await talk.until(task, "finished")).record == "finished"
    await talk.rest()
    subagents, *rest = model.asked(one)
    assert subagents == (text,)
    assert rest == []
    assert any(sight.tool == "task" for sight in talk.seen), talk.seen
    assert model.asked("The following tool was executed by the user")
    listed = await talk.way.listed(time.time() - 600)
    assert not any("subagent" in one.target.source.session_title for one in listed)


async def test_a_task_for_nobody_is_refused(talk: Talk) -> None:
    """The words name those that exist; nothing is sent."""
    record_id = (await talk.look()).next_id
    with pytest.raises(AgentRefused) as caught:
        await talk.way.send(talk.source, record_id, Content("task", "x", "nobody"))
    assert caught.value.said == "there is no agent “nobody”; there are: explore, general"
    assert (await talk.look(record_id)).record == "absent"


# commands


def answered(model: ScriptedModel, one: str) -> list[str]:
    """Return the last text of each request to the model whose last text has this word."""
    return [texts[-1] for texts in model.asked(one) if one in texts[-1]]


def define(project: Path, **templates: str) -> None:
    """Write commands of a project; "_" in a name becomes "/"."""
    for name, template in templates.items():
        path = project / ".opencode" / "command" / f"{name.replace('_', '/')}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(template)


TEMPLATES = {
    "all": "About $ARGUMENTS.",
    "words": "First $1, then $2!",
    "bare": "Nothing has a place here.\n",
    "again": "$2 $1 $ARGUMENTS $1",
    "deep_er": "---\ndescription: A deep one\n---\n  Deep: $1",
}


async def test_a_command_is_filled_in_as_opencode_does(
    server: OpenCodeServer, opencode: OpenCode, model: ScriptedModel, own_project: Path
) -> None:
    """What the model gets from us is what it gets from OpenCode's own route."""
    define(own_project, **TEMPLATES)
    talk = talk_in(server, opencode, own_project)
    for arguments in ("", "{}", "{} two  three", "\"{} b\" 'c d' e", "{} $1 $ARGUMENTS"):
        for name in (one.replace("_", "/") for one in TEMPLATES):
            if not (arguments or name == "bare"):
                continue
            ours, theirs = word(), word()
            assert (await talk.done(arguments.format(ours), "command", name)).record == "finished"
            last = (await _texts(talk, opencode))[-1]
            body = {"command": name, "arguments": arguments.format(theirs)}
            opencode.request("POST", f"/session/{talk.source.session_id}/command", own_project, body)
            expected = (await _texts(talk, opencode))[-1].replace(theirs, ours)
            if "$" not in arguments:  # OpenCode fills in what the arguments look like, too
                assert last == expected
            assert model.asked(ours) or not arguments or ours not in last


async def _texts(talk: Talk, opencode: OpenCode) -> list[str]:
    await talk.rest()
    messages = opencode.messages(talk.source.session_id)
    return [one["parts"][0]["text"] for one in messages if one["info"]["role"] == "user"]


async def test_a_command_has_its_agent_and_may_be_a_subtask(
    server: OpenCodeServer, opencode: OpenCode, model: ScriptedModel, own_project: Path
) -> None:
    """Agent, model and subtask of the command count, and the answer is under our own id."""
    head = "---\ndescription: Look\n"
    define(
        own_project,
        planned=f"{head}agent: plan\nmodel: fake/fake-model\n---\nPlan $ARGUMENTS",
        sub=f"{head}agent: general\n---\nDo $ARGUMENTS",
        alone=f"{head}subtask: true\n---\nDo $ARGUMENTS",
        beside=f"{head}agent: general\nsubtask: false\n---\nDo $ARGUMENTS",
    )
    talk = talk_in(server, opencode, own_project)
    for name, is_subtask in (("planned", False), ("sub", True), ("alone", True), ("beside", False)):
        one = word()
        text = prompt(one, {"text": "Done.", "delay_s": 0.5})
        assert (await talk.done(text, "command", name)).record == "finished"
        (said,) = answered(model, one)
        assert said.split("\n")[0] == f"{'Plan' if name == 'planned' else 'Do'} {text}"
        assert any(sight.tool == "task" for sight in talk.seen) is is_subtask, (name, talk.seen)
        talk.seen.clear()
    messages = [one["info"] for one in opencode.messages(talk.source.session_id) if one["info"]["role"] == "user"]
    assert messages[0]["agent"] == "plan"
    assert messages[0]["model"]["modelID"] == "fake-model"


async def test_a_command_that_runs_a_shell_is_refused(
    server: OpenCodeServer, opencode: OpenCode, own_project: Path
) -> None:
    """Its shell does not run, with any arguments; an unknown one names those that can be sent."""
    define(own_project, sh="It is !`touch ran`", fine="Fine $ARGUMENTS")
    talk = talk_in(server, opencode, own_project)
    record_id = (await talk.look()).next_id
    for name, why in (("sh", "“sh” runs a shell"), ("none", "there is no command “none”")):
        with pytest.raises(AgentRefused) as caught:
            await talk.way.send(talk.source, record_id, Content("command", "x", name))
        assert caught.value.said.startswith(f"{why}; you can send: ")
        assert "fine, init, review" in caught.value.said
        assert ", sh" not in caught.value.said
    assert (await talk.look(record_id)).record == "absent"
    await talk.done("!`touch ran`", "command", "fine")
    assert not list(own_project.rglob("ran"))


async def test_the_own_route_of_a_command_goes_on_without_its_client(
    talk: Talk, opencode: OpenCode, model: ScriptedModel, own_project: Path
) -> None:
    """It answers when the turn has ended; a client that does not wait ends nothing. Why Hermes does not use it."""
    define(own_project, slow="$ARGUMENTS")
    session, one = opencode.session(own_project), word()
    body = {"command": "slow", "arguments": prompt(one, {"text": "Late.", "delay_s": 2})}
    with httpx.Client(base_url=opencode.url, timeout=1) as impatient, pytest.raises(httpx.ReadTimeout):
        impatient.post(f"/session/{session}/command", params={"directory": str(own_project)}, json=body)
    assert await asyncio.to_thread(opencode.final_text, session) == "Late."
    assert len(model.asked(one)) == 1


@pytest.mark.parametrize("kind", ["text", "note", "command"])
async def test_a_session_keeps_its_agent_and_its_model(
    kind: ContentKind, server: OpenCodeServer, opencode: OpenCode, own_project: Path
) -> None:
    """The agent "plan" may write no file, and a prompt from the phone does not let it, whatever the default is."""
    define(own_project, do="$ARGUMENTS")
    config = json.loads((own_project / "opencode.json").read_text())
    (own_project / "opencode.json").write_text(
        json.dumps(config | {"agent": {"build": {"model": "fake/no-such-model"}}})
    )
    talk = talk_in(server, opencode, own_project)
    session = talk.source.session_id
    opencode.prompt(session, [{"text": "Planned."}], agent="plan")
    await asyncio.to_thread(opencode.final_text, session)
    writes: Json = {"tool": "write", "args": {"filePath": str(own_project / "by-phone.txt"), "content": "x"}}
    text = prompt(word(), writes, {"text": "Done."})
    if kind == "note":
        await talk.send(text, kind)
    await talk.done(text, *(("command", "do") if kind == "command" else ()))
    infos = [one["info"] for one in opencode.messages(session) if one["info"]["role"] == "user"]
    assert {(one["agent"], one["model"]["modelID"]) for one in infos} == {("plan", "fake-model")}
    assert not (own_project / "by-phone.txt").exists()


async def test_a_command_lends_its_agent_to_no_other_prompt(
    server: OpenCodeServer, opencode: OpenCode, own_project: Path
) -> None:
    """After a command of ours that builds, or is a subagent's, the session plans again."""
    head = "---\ndescription: Do\n"
    define(
        own_project,
        build=f"{head}agent: build\n---\n$ARGUMENTS",
        sub=f"{head}agent: general\nsubtask: false\n---\n$ARGUMENTS",
    )
    talk = talk_in(server, opencode, own_project)
    session = talk.source.session_id
    opencode.prompt(session, [{"text": "Planned."}], agent="plan")
    await asyncio.to_thread(opencode.final_text, session)
    for name in ("build", "sub"):
        await talk.done(prompt(word(), {"text": "Done."}), "command", name)
        await talk.done(prompt(word(), {"text": "Done."}))
    agents = [one["info"]["agent"] for one in opencode.messages(session) if one["info"]["role"] == "user"]
    assert agents == ["plan", "build", "plan", "general", "plan"]


async def test_a_session_whose_agent_is_gone_takes_no_prompt(
    server: OpenCodeServer, opencode: OpenCode, own_project: Path
) -> None:
    """The default agent may do more than that one."""
    config = json.loads((own_project / "opencode.json").read_text())
    reader = {"agent": {"reader": {"mode": "primary", "permission": {"edit": "deny"}}}}
    (own_project / "opencode.json").write_text(json.dumps(config | reader))
    talk = talk_in(server, opencode, own_project)
    opencode.prompt(talk.source.session_id, [{"text": "Read."}], agent="reader")
    await asyncio.to_thread(opencode.final_text, talk.source.session_id)
    (own_project / "opencode.json").write_text(json.dumps(config))
    opencode.request("POST", "/instance/dispose", own_project)
    record_id = (await talk.look()).next_id
    with pytest.raises(AgentRefused) as caught:
        await talk.way.send(talk.source, record_id, Content("text", word()))
    gone = "the agent “reader” of this session is not there any more; choose another one at the computer"
    assert caught.value.said == gone


# sights


async def test_the_sights_of_a_prompt_in_their_order(talk: Talk, opencode: OpenCode, project: Path) -> None:
    """Absent, then admitted or running, running with the tool's name, and finished with its time."""
    record_id = await talk.send(prompt(word(), ASKS))
    sight = await talk.until(record_id, "running", tool="question")
    assert (sight.session, sight.ended_s) == ("busy", None)
    (asked,) = opencode.wait_questions(talk.source.session_id, 1)
    opencode.reply(asked["id"], [["A"]], project)
    sight = await talk.until(record_id, "finished")
    assert sight.ended_s is not None
    assert sight.ended_s == pytest.approx(time.time(), abs=30)
    assert talk.records() in (
        ["absent", "running", "finished"],
        ["absent", "admitted", "running", "finished"],
    )


@pytest.mark.parametrize("status", [400, 401])
async def test_a_provider_that_refuses_fails_the_prompt(talk: Talk, status: int) -> None:
    """The provider's words are the reason, and the next prompt is answered."""
    sight = await talk.done(prompt(word(), {"status": status}))
    assert (sight.record, sight.session) == ("failed", "idle")
    assert "the script says so" in sight.reason
    assert f"({status})" in sight.reason
    assert (await talk.done(prompt(word(), {"text": "Well."}))).record == "finished"


@pytest.mark.parametrize("steps", [({"text": "Late.", "delay_s": 30},), (ASKS,)], ids=["text", "tool"])
async def test_an_abort_is_a_stop(talk: Talk, opencode: OpenCode, steps: tuple[Json, ...]) -> None:
    """Of a turn whose model writes, and of one whose tool waits; then nothing runs that could be stopped.

    Old leaves the step whose tool waits as it was, until a later one begins.
    """
    record_id = await talk.send(prompt(word(), *steps))
    await talk.until(record_id, "running", tool="question" if steps == (ASKS,) else None)
    assert await talk.way.stop(talk.source)
    await talk.rest()
    is_left = opencode.version == OLD and steps == (ASKS,)
    assert (await talk.look(record_id)).record == ("running" if is_left else "stopped")
    assert not await talk.way.stop(talk.source)
    assert (await talk.done(prompt(word(), {"text": "Well."}))).record == "finished"
    assert (await talk.look(record_id)).record == "stopped"


async def test_a_rejected_question_is_a_stop(talk: Talk, opencode: OpenCode, project: Path) -> None:
    """The model is not called again, and nothing else tells so."""
    record_id = await talk.send(prompt(word(), ASKS))
    (asked,) = opencode.wait_questions(talk.source.session_id, 1)
    opencode.reject(asked["id"], project)
    await talk.rest()
    assert (await talk.look(record_id)).record == "stopped"


LONG = 250_000
MORE: Json = {"tool": "glob", "args": {"pattern": "*"}}
LOOKS_UP: Json = {**MORE, "tokens": LONG}


@pytest.mark.parametrize(
    ("first", "further", "record"),
    [
        (LOOKS_UP, [{"text": "Well."}], "finished"),
        (LOOKS_UP, [*[MORE] * 24, {"text": "Well."}], "finished"),
        (LOOKS_UP, [{"status": 400}], "failed"),
        (LOOKS_UP, [{"text": "Late.", "delay_s": 30}], "stopped"),
        ({"text": "Both tests pass now.", "tokens": LONG}, [MORE, {"text": "Nothing is left to do."}], "finished"),
    ],
    ids=["an answer", "an answer after many steps", "a failure", "a stop", "an answer before"],
)
async def test_a_session_that_is_summed_up_in_the_middle_of_a_turn(
    talk: Talk, server: OpenCodeServer, model: ScriptedModel, first: Json, further: list[Json], record: str
) -> None:
    """The turn goes on, and its end is that of the person's prompt. OpenCode writes a prompt of its own between."""
    then = word()
    record_id = await talk.send(prompt(word(), {**first, "summary": prompt(then, *further)}))
    if record == "stopped":
        await asyncio.to_thread(until, lambda: model.turns(then) == 1, 30, "the model goes on")
        assert (await talk.look(record_id)).record == "running"
        assert await talk.way.stop(talk.source)
    sight = await talk.until(record_id, record)
    await talk.rest()
    assert (await talk.look(record_id)).record == record
    turn = await server.turn(talk.source.session_id, talk.source.directory)
    if record == "stopped":
        assert turn is None
        return
    assert turn is not None
    assert turn.prompt_id == record_id
    assert turn.failure == sight.reason
    assert turn.words == "\n\n".join([one["text"] for one in (first, *further) if "text" in one])


async def test_a_session_that_is_gone(talk: Talk, opencode: OpenCode, project: Path) -> None:
    """Whoever deletes it: a look tells so, before and after a prompt."""
    record_id = await talk.send(prompt(word(), {"text": "x"}))
    await talk.until(record_id, "finished")
    opencode.request("DELETE", f"/session/{talk.source.session_id}", project)
    for one in ("", record_id):
        with pytest.raises(NotThere):
            await talk.look(one)


async def test_a_prompt_in_a_running_turn(talk: Talk, opencode: OpenCode, model: ScriptedModel, project: Path) -> None:
    """The model gets it with the next step; old wraps it. Both prompts are over with the turn."""
    one, two = word(), word()
    first = await talk.send(prompt(one, ASKS))
    (asked,) = opencode.wait_questions(talk.source.session_id, 1)
    second = await talk.send(two)
    assert first < second
    await talk.until(second, "admitted")
    assert (await talk.look(first)).record == "running"
    opencode.reply(asked["id"], [["A"]], project)
    await talk.until(second, "finished")
    await talk.rest()
    assert (await talk.look(first)).record == "finished"
    assert [any(two in said for said in request) for request in model.asked(one)] == [False, True]


async def test_a_queued_prompt_that_an_abort_swallows_stays_admitted(talk: Talk) -> None:
    """It is in the record and is never answered."""
    await talk.send(prompt(word(), ASKS))
    await talk.until((await talk.look()).next_id, "absent")
    second = None
    for _ in range(200):
        if (await talk.look()).session == "busy":
            second = await talk.send(word())
            break
        await asyncio.sleep(0.02)
    assert second is not None
    await talk.until(second, "admitted")
    assert await talk.way.stop(talk.source)
    await talk.rest()
    await asyncio.sleep(0.5)
    assert (await talk.look(second)).record == "admitted"


async def test_a_model_that_is_unknown_answers_nothing(
    server: OpenCodeServer, opencode: OpenCode, own_project: Path
) -> None:
    """The prompt is in the record of an idle session, and stays there."""
    config = json.loads((own_project / "opencode.json").read_text())
    (own_project / "opencode.json").write_text(json.dumps(config | {"model": "fake/no-such-model"}))
    talk = talk_in(server, opencode, own_project)
    record_id = await talk.send(word())
    await talk.until(record_id, "admitted")
    await asyncio.sleep(1)
    sight = await talk.look(record_id)
    assert (sight.session, sight.record) == ("idle", "admitted")


# once


async def test_what_is_sent_again_takes_effect_once(
    talk: Talk, model: ScriptedModel, opencode: OpenCode, project: Path
) -> None:
    """Five at once, one while it runs, and one after its end: one message, one part, one turn."""
    one = word()
    text, record_id = prompt(one, ASKS, {"text": "Once."}), (await talk.look()).next_id
    content = Content("text", text)
    await asyncio.gather(*(talk.way.send(talk.source, record_id, content) for _ in range(5)))
    await talk.until(record_id, "running", tool="question")
    await talk.way.send(talk.source, record_id, content)
    (asked,) = opencode.wait_questions(talk.source.session_id, 1)
    opencode.reply(asked["id"], [["A"]], project)
    await talk.until(record_id, "finished")
    await talk.rest()
    await talk.way.send(talk.source, record_id, content)
    await asyncio.sleep(0.5)
    await talk.rest()
    assert model.asked(one) == [(text,)] * 2, "before the question, and after it"
    (ours,) = [each for each in opencode.messages(talk.source.session_id) if each["info"]["id"] == record_id]
    assert [part["text"] for part in ours["parts"] if part["type"] == "text"] == [text]
    assert (await talk.look(record_id)).record == "finished"


async def test_a_note_and_a_task_that_are_sent_again_take_effect_once(talk: Talk, model: ScriptedModel) -> None:
    """A note stays one; a task is done by one subagent."""
    noted, one, asked = word(), word(), word()
    note = (await talk.look()).next_id
    await asyncio.gather(*(talk.way.send(talk.source, note, Content("note", noted)) for _ in range(3)))
    await talk.until(note, "admitted")
    task = (await talk.look()).next_id
    content = Content("task", prompt(one, {"text": "Done.", "delay_s": 1}), "general")
    await talk.way.send(talk.source, task, content)
    await talk.until(task, "running", tool="task")
    await talk.way.send(talk.source, task, content)  # 1.18.33 would do it twice
    await talk.until(task, "finished")
    await talk.rest()
    await talk.way.send(talk.source, task, content)
    await asyncio.sleep(0.5)
    await talk.rest()
    assert len(model.asked(one)) == 1
    await talk.done(asked)
    (request,) = model.asked(asked)
    assert "\n".join(request).count(noted) == 1


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["text", "task"])
async def test_a_frozen_server_takes_what_came_twice_once(
    private_opencode: Callable[..., OpenCode], model: ScriptedModel, kind: str
) -> None:
    """Two sends time out while the machine sleeps, and one comes after: one turn."""
    opencode = private_opencode()
    one = word()
    async with OpenCodeServer(Api("desk", opencode.url), machine="laptop") as server:
        talk = talk_in(server, opencode, opencode.directory)
        await talk.done(prompt(word(), {"text": "Warm."}))
        record_id = (await talk.look()).next_id
        name = "general" if kind == "task" else ""
        content = Content(kind, prompt(one, {"text": "Once."}), name)  # type: ignore[arg-type]
        opencode.freeze()
        tries = [asyncio.create_task(talk.way.send(talk.source, record_id, content)) for _ in range(2)]
        await asyncio.sleep(0.5)
        for each in tries:
            each.cancel()
        await asyncio.wait(tries)
        opencode.thaw()
        await talk.way.send(talk.source, record_id, content)
        await talk.until(record_id, "finished")
        await talk.rest()
        assert len(model.asked(one)) == 1


# ids


async def test_the_next_id_is_right_behind_the_newest_message(
    talk: Talk, opencode: OpenCode, model: ScriptedModel, project: Path
) -> None:
    """Old answers a lower id never and a higher one again and again: ours is asked once, also behind the desk's."""
    session = talk.source.session_id
    for one, desk in [(word(), word()) for _ in range(3)]:
        assert (await talk.done(prompt(one, {"text": "Once."}))).record == "finished"
        opencode.prompt(session, [{"text": "The desk's."}], key=desk)
        await asyncio.to_thread(until, partial(answered, model, desk), what="the turn")
        await asyncio.to_thread(opencode.wait_idle, session)
        newest = max(each["info"]["id"] for each in opencode.messages(session))
        next_id = (await talk.look()).next_id
        assert newest < next_id
        assert int(next_id[4:16], 16) == int(newest[4:16], 16) + 1
        assert [len(answered(model, one)), len(answered(model, desk))] == [1, 1]


async def test_the_desk_prompts_in_our_turn(talk: Talk, opencode: OpenCode, model: ScriptedModel) -> None:
    """Our prompt is over when its own steps are, and what the desk typed is answered."""
    one, desk = word(), word()
    record_id = await talk.send(prompt(one, {"text": "Ours.", "delay_s": 1}))
    await talk.until(record_id, "running")
    opencode.prompt(talk.source.session_id, [{"text": "The desk's."}], key=desk)
    assert (await talk.until(record_id, "finished")).record == "finished"
    await asyncio.to_thread(opencode.wait_idle, talk.source.session_id)
    assert await asyncio.to_thread(opencode.final_text, talk.source.session_id) == "The desk's."
    assert (await talk.look(record_id)).record == "finished"
    assert len(model.asked(desk)) == 1


async def test_a_prompt_far_back_in_the_record_is_found(talk: Talk) -> None:
    """More than twenty messages later, too."""
    record_id = await talk.send(prompt(word(), {"text": "First."}))
    await talk.until(record_id, "finished")
    note = await talk.send(word(), "note")
    await talk.until(note, "admitted")
    for _ in range(11):
        await talk.done(prompt(word(), {"text": "And so on."}))
    assert (await talk.look(record_id)).record == "finished"
    assert (await talk.look(note)).record == "admitted"
    assert (await talk.look("msg_000000000000nothing")).record == "absent"


# sessions


async def test_sessions_are_listed_with_their_state(server: OpenCodeServer, opencode: OpenCode, project: Path) -> None:
    """Those that run and those that were used lately, with titles; no subagent's."""
    began_s = time.time()
    idle, busy = talk_in(server, opencode, project), talk_in(server, opencode, project)
    await idle.done(prompt(word(), {"text": "x"}), "task", "general")
    await busy.until(await busy.send(prompt(word(), ASKS)), "running", tool="question")
    assert opencode.children(idle.source.session_id)
    listed = {one.target.source.session_id: one for one in await server.prompts.listed(began_s - 60)}
    assert [listed[one.source.session_id].state for one in (idle, busy)] == ["idle", "busy"]
    one = listed[busy.source.session_id]
    assert one.target.source.session_title == "A test"
    assert one.target.source.directory == str(project)
    assert (one.target.agent_name, one.target.can) == ("OpenCode", ABILITIES)
    assert one.used_s == pytest.approx(time.time(), abs=30)
    assert not any(child["id"] in listed for child in opencode.children(idle.source.session_id))
    assert not [one for one in await server.prompts.listed(time.time() + 60) if one.state == "idle"]


async def test_a_new_session_takes_prompts(server: OpenCodeServer, model: ScriptedModel, project: Path) -> None:
    """It is in its directory, idle and empty, and its first prompt is asked once."""
    session, one = await server.prompts.new_session(str(project)), word()
    talk = Talk(server.prompts, Source("opencode", "laptop", session, directory=str(project)))
    assert (await talk.look()).session == "idle"
    assert (await talk.done(prompt(one, {"text": "x"}))).record == "finished"
    assert len(model.asked(one)) == 1
