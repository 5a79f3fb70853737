"""What bites in OpenCode, with the real binaries: one test for each fact that concerns us.

Each docstring names the fact, as seen by running it. "new" is 1.18.33, "old" is 1.1.53.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from hermes.agents.http import Api
from hermes.agents.opencode.client import OpenCodeServer
from hermes.agents.server import Connected, Disposed, Followed, Heard, Lost, follow
from hermes.core import matching
from hermes.errors import AgentAway, AgentRefused, NotThere, Unauthorized
from hermes.model.ask import Ask
from hermes.model.signals import Asked, Busy, Dismissed, Quiet, Replied, Signal
from hermes.model.verdicts import AnsweredWith, Dead, StillOpen, Unproven, WasDismissed
from hermes.sandbox.model_server import ScriptedModel, script
from tests.harness.home import Json
from tests.harness.opencode import OpenCode
from tests.harness.processes import free_port

T = TypeVar("T")
NEW, OLD = "1.18.33", "1.1.53"
ON = "You can now continue with the user's answers in mind."


def question(text: str = "Which database?", *labels: str) -> Json:
    """Return one question of the tool's arguments."""
    options = [{"label": label, "description": "d"} for label in labels or ("PostgreSQL", "SQLite")]
    return {"question": text, "header": "Header", "options": options}


def asks(*questions: Json, **more: Any) -> Json:
    """Return a step of the model that asks these in one request."""
    return {"tool": "question", "args": {"questions": list(questions)}} | more


def client_of(opencode: OpenCode, **more: Any) -> OpenCodeServer:
    """Return our client of a real server."""
    return OpenCodeServer(Api("desk", opencode.url, **more), machine="laptop")


@pytest.fixture
async def server(opencode: OpenCode) -> AsyncIterator[OpenCodeServer]:
    """Our client of the shared server."""
    async with client_of(opencode) as one:
        yield one


async def eventually(look: Callable[[], T | None], what: str, within_s: float = 60) -> T:
    """Wait until `look` returns something, and return it."""
    end_s = time.monotonic() + within_s
    while (found := look()) is None:
        assert time.monotonic() < end_s, f"waited {within_s:g} s for {what}"
        await asyncio.sleep(0.02)
    return found


async def the_ask(server: OpenCodeServer, opencode: OpenCode, session: str, project: Path) -> Ask:
    """Wait until the session asks, and return what our client lists."""
    (one,) = await the_asks(server, opencode, session, project, 1)
    return one


async def the_asks(server: OpenCodeServer, opencode: OpenCode, session: str, project: Path, count: int) -> list[Ask]:
    """Wait until the session has so many questions open, and return what our client lists."""
    opencode.wait_questions(session, count)
    return [one for one in (await server.pending(str(project))).asks if one.source.session_id == session]


class Ear:
    """All that a follower heard."""

    def __init__(self) -> None:
        self.heard: list[Followed] = []

    def signals(self) -> list[Signal]:
        """Return the signals in their order."""
        return [one.signal for one in self.heard if isinstance(one, Heard)]

    async def hears(self, kind: type[T], session: str = "", *, since: int = 0) -> T:
        """Wait for a signal of this kind (of this session), after the first `since` things."""

        def look() -> T | None:
            for one in self.heard[since:]:
                signal = one.signal if isinstance(one, Heard) else one
                if isinstance(signal, kind) and session in {"", getattr(signal, "session_id", session)}:
                    return signal
            return None

        return await eventually(look, f"{kind.__name__} of {session}; heard {self.heard[since:]}")


@contextlib.asynccontextmanager
async def listening(server: OpenCodeServer) -> AsyncIterator[Ear]:
    """Follow the server while the block runs, connected from its first line on."""
    ear = Ear()

    async def run() -> None:
        async with contextlib.aclosing(follow(server.name, server.listen)) as stream:
            async for one in stream:
                ear.heard.append(one)

    task = asyncio.create_task(run())
    try:
        await ear.hears(Connected)
        yield ear
    finally:
        task.cancel()
        await asyncio.wait([task])


# section 2: the question API


async def test_questions_belong_to_one_directory(server: OpenCodeServer, opencode: OpenCode, project: Path) -> None:
    """2: "Scoped to ONE directory … Unknown/nonexistent dir → 200 []"."""
    session = opencode.session(project)
    opencode.prompt(session, [asks(question())])
    ask = await the_ask(server, opencode, session, project)
    assert ask.source.directory == str(project)
    assert (await server.pending(str(project.parent))).asks == ()
    assert (await server.pending("/nowhere/at all")).asks == ()
    assert await server.busy(str(project)) == {session}


async def test_true_is_no_proof(
    server: OpenCodeServer, opencode: OpenCode, project: Path, model: ScriptedModel
) -> None:
    """2: "unknown / already answered: old `200 true`, nothing happens; new 404"."""
    session = opencode.session(project)
    opencode.prompt(session, [asks(question())])
    ask = await the_ask(server, opencode, session, project)
    assert await server.verdict(ask) == StillOpen()
    await server.reply(ask, (("SQLite",),))
    assert await server.verdict(ask) == AnsweredWith((("SQLite",),))
    with contextlib.nullcontext() if opencode.version == OLD else pytest.raises(NotThere):
        await server.reply(ask, (("PostgreSQL",),))
    with contextlib.nullcontext() if opencode.version == OLD else pytest.raises(NotThere):
        await server.reject(ask)
    assert await server.verdict(ask) == AnsweredWith((("SQLite",),))
    opencode.wait_idle(session)
    assert model.received(session) == (f'User has answered your questions: "Which database?"="SQLite". {ON}',)


async def test_of_five_replies_at_once_one_takes_effect(
    server: OpenCodeServer, opencode: OpenCode, project: Path, model: ScriptedModel
) -> None:
    """2: "5 concurrent replies: first wins; old says `true` to all". And 4: the part ends some ms later (old)."""
    session = opencode.session(project)
    opencode.prompt(session, [asks(question())])
    ask = await the_ask(server, opencode, session, project)
    replies = [server.reply(ask, ((f"answer {number}",),)) for number in range(5)]
    results = await asyncio.gather(*replies, return_exceptions=True)
    refused = [one for one in results if one is not None]
    assert len(refused) == (0 if opencode.version == OLD else 4)
    assert all(isinstance(one, NotThere) for one in refused)
    verdict = await server.verdict(ask)
    assert isinstance(verdict, AnsweredWith)
    assert isinstance(verdict.answers, tuple)
    opencode.wait_idle(session)
    (received,) = model.received(session)
    assert f'="{verdict.answers[0][0]}"' in received


async def test_a_skip_lets_the_model_go_on(
    server: OpenCodeServer, opencode: OpenCode, project: Path, model: ScriptedModel
) -> None:
    """2: "too few, `[]`, `[[]]`: missing → "Unanswered" and the model **continues**"."""
    session = opencode.session(project)
    opencode.prompt(session, [asks(question("One?"), question("Two?"))])
    ask = await the_ask(server, opencode, session, project)
    await server.reply(ask, ((), ()))
    assert await server.verdict(ask) == AnsweredWith(((), ()))
    opencode.wait_idle(session)
    assert '"One?"="Unanswered", "Two?"="Unanswered"' in model.received(session)[0]
    assert model.turns(session) == 2


async def test_a_reject_stops_the_turn(
    server: OpenCodeServer, opencode: OpenCode, project: Path, model: ScriptedModel
) -> None:
    """2: reject: "error "(Error: )The user dismissed this question"; the model is not called again"."""
    session = opencode.session(project)
    opencode.prompt(session, [asks(question())])
    ask = await the_ask(server, opencode, session, project)
    await server.reject(ask)
    assert await server.verdict(ask) == WasDismissed()
    opencode.wait_idle(session)
    assert model.turns(session) == 1


async def test_what_is_asked_may_be_anything(
    server: OpenCodeServer, opencode: OpenCode, project: Path, model: ScriptedModel
) -> None:
    """2: labels "may be empty or **duplicate**, `options` may be `[]`", and any text arrives to the letter."""
    session = opencode.session(project)
    odd = question("Odd?\n\u2028\u0085 <b>*_`[x](y)", "A", "A", "", "🐘 (Recommended)", "x" * 300)
    opencode.prompt(session, [asks(odd, question("Free?") | {"options": []})])
    ask = await the_ask(server, opencode, session, project)
    first, second = ask.questions
    assert first.text == odd["question"]
    assert [one.label for one in first.options] == ["A", "A", "", "🐘 (Recommended)", "x" * 300]
    assert (first.recommended, second.options) == (3, ())
    answers = ((first.options[3].label,), ("й\u2028\n\x00<\"'",))
    await server.reply(ask, answers)
    assert await server.verdict(ask) == AnsweredWith(answers)
    opencode.wait_idle(session)
    assert '"🐘 (Recommended)"' in model.received(session)[0]


async def test_no_questions_want_no_answers(server: OpenCodeServer, opencode: OpenCode, project: Path) -> None:
    """2: "even `questions` may be `[]` (pending until replied `[]`)"."""
    session = opencode.session(project)
    opencode.prompt(session, [asks()])
    ask = await the_ask(server, opencode, session, project)
    assert ask.questions == ()
    await server.reply(ask, ())
    assert await server.verdict(ask) == AnsweredWith(())


async def test_half_a_character_is_survived(server: OpenCodeServer, opencode: OpenCode, project: Path) -> None:
    r"""Seen on both: a lone `\ud800` from the model is in every list and message, as JSON may have it."""
    session = opencode.session(project)
    steps = [asks(question("Q\ud800?", "L\ud800"), say="say \ud800.")]
    prompt = {"parts": [{"type": "text", "text": "SCRIPT half " + json.dumps(steps)}]}
    assert opencode.request("POST", f"/session/{session}/prompt_async", project, prompt).status_code == 204
    ask = await the_ask(server, opencode, session, project)
    assert (ask.questions[0].text, ask.questions[0].options[0].label) == ("Q\ufffd?", "L\ufffd")
    assert (await server.context(ask)).source.last_text == "say \ufffd."
    await server.reply(ask, (("L\ufffd",),))
    assert await server.verdict(ask) == AnsweredWith((("L\ufffd",),))


async def test_two_calls_of_one_step_are_two_requests(
    server: OpenCodeServer, opencode: OpenCode, project: Path
) -> None:
    """2: "two requests, same messageID, different callID, independent"; and 12: matched by the call id."""
    session = opencode.session(project)
    calls = [asks(question(), call_id="call_one"), asks(question(), call_id="call_two")]
    opencode.prompt(session, [{"tools": calls}])
    first, second = await the_asks(server, opencode, session, project, 2)
    assert first.source.message_id == second.source.message_id
    announced = replace(second, source=replace(second.source, request_id=None, message_id=None))
    assert matching.candidates(announced, [first, second]) == [second]
    nameless = replace(announced, source=replace(announced.source, call_id=None))
    assert matching.candidates(nameless, [first, second]) == [first, second]
    await server.reply(second, (("SQLite",),))
    assert await server.verdict(second) == AnsweredWith((("SQLite",),))
    assert await server.verdict(first) == StillOpen()


async def test_two_calls_may_have_one_id(server: OpenCodeServer, opencode: OpenCode, project: Path) -> None:
    """Some providers repeat call ids: both versions then keep one part for two requests."""
    session = opencode.session(project)
    opencode.prompt(session, [{"tools": [asks(question(), call_id="dup"), asks(question(), call_id="dup")]}])
    async with listening(server) as ear:
        first, second = await the_asks(server, opencode, session, project, 2)
        nameless = replace(first, source=replace(first.source, request_id=None))
        assert matching.candidates(nameless, [first, second]) == [first, second]
        await server.reply(first, (("SQLite",),))
        await ear.hears(Replied, session)
        assert await server.verdict(first) == AnsweredWith((("SQLite",),))
        assert await server.verdict(second) == StillOpen()
        since = len(ear.heard)
        await server.reply(second, (("PostgreSQL",),))
        await ear.hears(Replied, session, since=since)
        assert await server.verdict(second) == AnsweredWith((("PostgreSQL",),))


async def test_a_prompt_in_the_queue_answers_nothing(server: OpenCodeServer, opencode: OpenCode, project: Path) -> None:
    """2: "A `prompt_async` sent while pending → queued; it does not answer or cancel the question"."""
    session = opencode.session(project)
    opencode.prompt(session, [asks(question())])
    ask = await the_ask(server, opencode, session, project)
    opencode.prompt(session, [{"text": "later"}])
    await eventually(lambda: len(opencode.messages(session)) == 3 or None, "the queued prompt")
    assert await server.verdict(ask) == StillOpen()
    await server.reply(ask, (("SQLite",),))
    assert await server.verdict(ask) == AnsweredWith((("SQLite",),))
    opencode.wait_idle(session)


# section 2: stale questions


async def test_an_abort_leaves_the_question_listed(
    server: OpenCodeServer, opencode: OpenCode, project: Path, model: ScriptedModel
) -> None:
    """2: "Abort … does NOT remove the question …, emits no question.* event; replying then gives `200 true`".

    12: new emits session.error and session.idle, old idle alone: both are Quiet. "If the user prompted again
    after an abort the zombie is still listed". "A zombie that is replied to emits `question.replied`".

    Seen besides: in old a reply to a zombie (a reject too) ends the turn that runs now, and its question with
    it. So nothing is ever sent to a zombie.
    """
    session = opencode.session(project)
    async with listening(server) as ear:
        opencode.prompt(session, [asks(question())])
        ask = await the_ask(server, opencode, session, project)
        opencode.abort(session)
        await ear.hears(Quiet, session)
        opencode.wait_idle(session)
        assert await server.verdict(ask) == Dead()
        opencode.prompt(session, [asks(question("Again?"))])
        again = next(one for one in await the_asks(server, opencode, session, project, 2) if one != ask)
        assert await server.verdict(again) == StillOpen()
        assert await server.verdict(ask) == Dead()
        await server.reply(ask, (("SQLite",),))
        assert (await ear.hears(Replied, session)).request_id == ask.source.request_id
        assert await server.verdict(ask) == Dead()
        lives = opencode.version == NEW
        if not lives:
            opencode.wait_idle(session)
        await server.reply(again, (("PostgreSQL",),))
        assert await server.verdict(again) == (AnsweredWith((("PostgreSQL",),)) if lives else Dead())
        opencode.wait_idle(session)
    assert any('"Again?"="PostgreSQL"' in text for text in model.received(session)) is lives
    assert not any("SQLite" in text for text in model.received(session))


async def test_a_reject_clears_a_zombie_away(server: OpenCodeServer, opencode: OpenCode, project: Path) -> None:
    """2: "POST reject clears a zombie"."""
    session = opencode.session(project)
    opencode.prompt(session, [asks(question())])
    ask = await the_ask(server, opencode, session, project)
    opencode.abort(session)
    opencode.wait_idle(session)
    assert (await server.pending(str(project))).asks == (ask,)
    await server.reject(ask)
    assert (await server.pending(str(project))).asks == ()
    assert await server.verdict(ask) == Dead()


async def test_a_deleted_session_leaves_the_question_listed(
    server: OpenCodeServer, opencode: OpenCode, project: Path
) -> None:
    """2: "DELETE of the session … does NOT remove the question"; "after DELETE, status may still say busy"."""
    session = opencode.session(project)
    async with listening(server) as ear:
        opencode.prompt(session, [asks(question())])
        ask = await the_ask(server, opencode, session, project)
        opencode.delete_session(session)
        await ear.hears(Quiet, session)
    assert (await server.pending(str(project))).asks == (ask,)
    assert await server.verdict(ask) == Dead()


async def test_a_restart_loses_questions_without_a_word(
    private_opencode: Callable[..., OpenCode],
) -> None:
    """2: "Server restart …: pending questions vanish without an event".

    "part stays running (old; new after SIGTERM) … Session accepts new prompts"; 12: "a real restart loses
    every pending question".
    """
    opencode = private_opencode()
    project, session = opencode.directory, opencode.session()
    async with client_of(opencode) as server, listening(server) as ear:
        opencode.prompt(session, [asks(question())])
        ask = await the_ask(server, opencode, session, project)
        since = len(ear.heard)
        opencode.stop()
        await ear.hears(Lost, since=since)
        with pytest.raises(AgentAway):
            await server.verdict(ask)
        opencode.start()
        await ear.hears(Connected, since=since)
        assert (await server.pending(str(project))).asks == ()
        assert await server.verdict(ask) == Dead()
        opencode.prompt(session, [asks(question("Again?"))])
        again = await the_ask(server, opencode, session, project)
        assert await server.verdict(ask) == Dead()
        assert await server.verdict(again) == StillOpen()
        assert not any(isinstance(one, Replied | Dismissed) for one in ear.signals())


async def test_a_dispose_loses_questions_and_the_stream_lives_on(
    server: OpenCodeServer, opencode: OpenCode, own_project: Path
) -> None:
    """2: a dispose ends questions without an event of their own; 3: the stream survives it, and tells of it."""
    session = opencode.session(own_project)
    async with listening(server) as ear:
        since = len(ear.heard)
        opencode.prompt(session, [asks(question())])
        ask = await the_ask(server, opencode, session, own_project)
        opencode.request("POST", "/instance/dispose", own_project)
        await eventually(lambda: Disposed(str(own_project)) in ear.heard or None, "word of the dispose")
        assert await server.verdict(ask) == Dead()
        assert opencode.questions(own_project) == []
        other = opencode.session(own_project)
        opencode.prompt(other, [asks(question())])
        await ear.hears(Asked)
        await eventually(lambda: self_of(ear, other), "the question after the dispose")
        assert not any(isinstance(one, Lost) for one in ear.heard[since:])


def self_of(ear: Ear, session: str) -> Ask | None:
    """Return the ask that was heard of this session."""
    asked = [one.ask for one in ear.signals() if isinstance(one, Asked)]
    return next((one for one in asked if one.source.session_id == session), None)


async def test_another_process_of_the_same_user_is_not_mistaken(
    private_opencode: Callable[..., OpenCode],
) -> None:
    """6: a TUI without a port beside a server: they share sessions, not questions (here two servers)."""
    opencode = private_opencode()
    other = private_opencode(directory=opencode.directory)
    session = opencode.session()
    async with client_of(opencode) as server, client_of(other) as beside:
        opencode.prompt(session, [asks(question())])
        ask = await the_ask(server, opencode, session, opencode.directory)
        hooked = replace(ask, source=replace(ask.source, server=""))
        assert (await beside.pending(str(opencode.directory))).asks == ()
        assert await beside.verdict(hooked) == Unproven()
        assert await server.verdict(hooked) == StillOpen()
        await server.reply(ask, (("SQLite",),))
        assert await server.verdict(ask) == AnsweredWith((("SQLite",),))
        assert await beside.verdict(hooked) == AnsweredWith((("SQLite",),))


# section 3: events


async def test_the_stream_has_no_memory_and_no_twins(server: OpenCodeServer, opencode: OpenCode, project: Path) -> None:
    """3: "**no replay**: GET /question after every (re)connect"; "`payload.type:"sync"` duplicates – ignore"."""
    early, late = opencode.session(project), opencode.session(project)
    opencode.prompt(early, [asks(question())])
    opencode.wait_question(early)
    async with listening(server) as ear:
        listed = (await server.pending(str(project))).asks
        opencode.prompt(late, [asks(question())])
        opencode.wait_question(late)
        heard = await eventually(lambda: self_of(ear, late), "the question")
        assert [one.source.session_id for one in listed] == [early]
        assert heard == (await the_ask(server, opencode, late, project))
        await server.reply(heard, (("SQLite",),))
        replied = await ear.hears(Replied, late)
        assert replied.answers == (("SQLite",),)
        await ear.hears(Quiet, late)
        kinds = [type(one) for one in ear.signals() if not isinstance(one, Busy | Quiet)]
        assert kinds == [Asked, Replied]


async def test_the_desk_is_heard(server: OpenCodeServer, opencode: OpenCode, project: Path) -> None:
    """3: replied and rejected are "also fired when the user answers / presses Esc"; then it works, or is quiet."""
    answered, dismissed = opencode.session(project), opencode.session(project)
    async with listening(server) as ear:
        for session in (answered, dismissed):
            opencode.prompt(session, [asks(question())])
        request = opencode.wait_question(answered)["id"]
        since = len(ear.heard)
        opencode.reply(request, [["at the desk"]], project)
        replied = await ear.hears(Replied, answered)
        assert replied == Replied(request, answered, (("at the desk",),))
        await ear.hears(Busy, answered, since=since)
        request = opencode.wait_question(dismissed)["id"]
        opencode.reject(request, project)
        assert await ear.hears(Dismissed, dismissed) == Dismissed(request, dismissed)
        await ear.hears(Quiet, dismissed)


async def test_last_words_are_whole_when_the_question_comes_first(
    server: OpenCodeServer, opencode: OpenCode, project: Path
) -> None:
    """3: "Old: question.asked can arrive before the assistant message has its tool part", and its words."""
    session = opencode.session(project, "Fix login")
    async with listening(server) as ear:
        opencode.prompt(session, [asks(question(), say="I looked at both of them. Now you choose. ")])
        ask = await eventually(lambda: self_of(ear, session), "the question")
        source = (await server.context(ask)).source
        assert source.session_title == "Fix login"
        assert source.last_text.strip() == "I looked at both of them. Now you choose."
        opencode.wait_question(session)
        known = await eventually(lambda: server.memory.last_text(ask.source), "the words on the stream")
        assert known == source.last_text.strip()
    async with client_of(opencode) as fresh:
        source = (await fresh.context(ask)).source
        assert (source.session_title, source.last_text.strip()) == ("Fix login", known)


# section 6: passwords


async def once_there(look: Callable[[], Awaitable[T]]) -> T:
    """Look until the server answers, and return that: under load it is away at first."""
    while True:
        with contextlib.suppress(AgentAway):
            return await look()


async def test_a_password_is_wanted_everywhere(private_opencode: Callable[..., OpenCode]) -> None:
    """6: "Basic on everything incl. /global/health, /doc, SSE; else 401; utf-8 password ok"."""
    opencode = private_opencode(password="pässwörd: 100%")
    session = opencode.session()
    opencode.prompt(session, [asks(question())])
    async with client_of(opencode, password="wrong") as server:
        with pytest.raises(Unauthorized):
            await once_there(server.health)
        stream = follow(server.name, server.listen)
        async with contextlib.aclosing(stream):
            lost = await anext(stream)
            if isinstance(lost, Lost) and isinstance(lost.error, AgentAway):
                lost = await anext(stream)  # under load it is away at first, which is told once
        assert isinstance(lost, Lost)
        assert isinstance(lost.error, Unauthorized)
    async with client_of(opencode, password="pässwörd: 100%") as server, listening(server):
        ask = await the_ask(server, opencode, session, opencode.directory)
        await server.reply(ask, (("SQLite",),))
        assert await server.verdict(ask) == AnsweredWith((("SQLite",),))
        assert await server.directories(time.time() - 600) == (str(opencode.directory),)


# section 7: subagents


async def test_a_subagent_asks_in_the_name_of_its_root(server: OpenCodeServer, opencode: OpenCode) -> None:
    """7: "request.sessionID = **child** session; `GET /session/{child}` has `parentID`"; 2: abort of the parent."""
    project = opencode.home.project("root-title", agent={"general": {"permission": {"question": "allow"}}})
    session = opencode.session(project, "The root")
    task = {"description": "look", "subagent_type": "general", "prompt": script([asks(question())], "child-1")}
    async with listening(server) as ear:
        opencode.prompt(session, [{"tool": "task", "args": task}])
        asked = await ear.hears(Asked)
        (child,) = opencode.children(session)
        source = (await server.context(asked.ask)).source
        assert source.session_id == child["id"]
        assert source.session_title == "look (@general subagent)"
        assert source.root_title == "The root"
        assert await server.verdict(asked.ask) == StillOpen()
        opencode.abort(session)
        await ear.hears(Quiet, session)
        opencode.wait_idle(session)
        assert (await server.pending(str(project))).asks != ()
        await eventually(lambda: child["id"] not in status_of(opencode, project) or None, "the child's end")
        assert await server.verdict(asked.ask) == Dead()
    opencode.discard(project)


def status_of(opencode: OpenCode, project: Path) -> Json:
    """Return the sessions of a project that are not idle."""
    found: Json = opencode.request("GET", "/session/status", project).json()
    return found


# section 9: the second engine


async def test_the_second_engine_is_shown_for_the_desk(
    server: OpenCodeServer, opencode: OpenCode, project: Path
) -> None:
    """9: "asks in its own registry …; `/question` neither lists nor accepts it"."""
    if opencode.version == OLD:
        pytest.skip("contract 9: there is no v2 engine in 1.1.53")
    session = opencode.session(project)
    api = f"/api/session/{session}"

    async def prompted(ear: Ear) -> Ask:
        since = len(ear.heard)
        prompt = {"prompt": {"text": script([asks(question())], session)}}
        assert opencode.request("POST", f"{api}/prompt", project, prompt).is_success
        ask = (await ear.hears(Asked, since=since)).ask
        assert not ask.answerable
        assert (await server.pending(str(project))).asks == ()
        assert await server.verdict(ask) == StillOpen()
        return ask

    async with listening(server) as ear:
        ask = await prompted(ear)
        with pytest.raises(AgentRefused, match="in its terminal only"):
            await server.reply(ask, (("SQLite",),))
        reply = f"{api}/question/{ask.source.request_id}/reply"
        assert opencode.request("POST", reply, project, {"answers": [["SQLite"]]}).status_code == 204
        assert (await ear.hears(Replied, session)).answers == (("SQLite",),)
        await eventually(lambda: "completed" in opencode.request("GET", f"{api}/message", project).text or None, "it")
        assert await server.verdict(ask) == AnsweredWith((("SQLite",),))
        ask = await prompted(ear)
        opencode.delete_session(session)
        assert await server.verdict(ask) == Dead()


# section 10: more gotchas


async def test_a_server_is_found_when_it_starts(private_opencode: Callable[..., OpenCode]) -> None:
    """10.1: "New swallows a request that arrives between bind and the "listening on" line – never answered"."""
    opencode = private_opencode()
    opencode.stop()
    async with client_of(opencode) as server:
        ear = Ear()

        async def run() -> None:
            heard = follow(server.name, server.listen, sleep=lambda _: asyncio.sleep(0.02))
            async with contextlib.aclosing(heard) as stream:
                async for one in stream:
                    ear.heard.append(one)

        task = asyncio.create_task(run())
        try:
            await ear.hears(Lost)
            await asyncio.to_thread(opencode.start)  # asked all the while
            assert (await ear.hears(Connected)).version == opencode.version
        finally:
            task.cancel()
            await asyncio.wait([task])


async def test_a_route_that_is_not_there_is_no_answer(server: OpenCodeServer, opencode: OpenCode) -> None:
    """10.2: "Unknown routes: new `200 text/html` (web UI), old 500 (proxies to the web)"."""
    assert await once_there(server.health) == opencode.version
    if opencode.version == NEW:  # old would ask the internet
        with pytest.raises(AgentRefused, match="text/html instead of JSON"):
            await server.api.get(list[Any], "/nowhere")


async def test_nobody_there_is_away(opencode: OpenCode) -> None:
    """A port that nobody holds."""
    async with OpenCodeServer(Api("gone", f"http://127.0.0.1:{free_port()}"), machine="laptop") as server:
        with pytest.raises(AgentAway, match="'gone': GET /global/health: nobody answers there"):
            await server.health()


async def test_a_directory_of_any_name_is_reached(
    server: OpenCodeServer, opencode: OpenCode, model: ScriptedModel
) -> None:
    """10.3: "a literal `%` needs double encoding in the query (single in the header)": in every call of ours."""
    project = opencode.home.project("gotcha with blank/ünï a+b?c#d&e=f 100%")
    answered, dismissed = opencode.session(project, "Ünï"), opencode.session(project)
    for session in (answered, dismissed):
        opencode.prompt(session, [asks(question(), say="Words.")])
        opencode.wait_question(session)
    asked = {one.source.session_id: one for one in (await server.pending(str(project))).asks}
    assert {await server.verdict(one) for one in asked.values()} == {StillOpen()}
    assert await server.busy(str(project)) == {answered, dismissed}
    source = (await server.context(asked[answered])).source
    assert (source.session_title, source.last_text.strip()) == ("Ünï", "Words.")
    await server.reply(asked[answered], (("SQLite",),))
    await server.reject(asked[dismissed])
    assert await server.verdict(asked[answered]) == AnsweredWith((("SQLite",),))
    assert await server.verdict(asked[dismissed]) == WasDismissed()
    await once_there(server.health)
    assert str(project) in await server.directories(time.time() - 600)
    opencode.wait_idle(answered)
    assert '"SQLite"' in model.received(answered)[0]
    opencode.discard(project)


async def test_the_exact_directory_is_used(server: OpenCodeServer, opencode: OpenCode, project: Path) -> None:
    """10.3: "old treats trailing slash and symlink as *another* instance; new resolves them"."""
    session = opencode.session(project)
    opencode.prompt(session, [asks(question())])
    ask = await the_ask(server, opencode, session, project)
    with_slash = (await server.pending(f"{project}/")).asks
    assert len(with_slash) == (0 if opencode.version == OLD else 1)
    async with listening(server) as ear:
        other = opencode.session(project)
        opencode.prompt(other, [asks(question())])
        opencode.wait_question(other)
        heard = await eventually(lambda: self_of(ear, other), "the question")
    assert heard.source.directory == ask.source.directory == str(project)


# section 12


async def test_directories_of_all_projects_are_found(private_opencode: Callable[..., OpenCode], tmp_path: Path) -> None:
    """12: "the header does not filter, so subfolders and folders without git are there"."""
    opencode = private_opencode()
    other, plain = opencode.home.project("other with blank 100%"), tmp_path / "plain folder"
    below = other / "sub" / "folder"
    for folder in (plain, below):
        folder.mkdir(parents=True)
    for folder in (other, below, plain, opencode.directory):
        opencode.session(folder)
    async with client_of(opencode) as server:
        await once_there(server.health)
        found = await server.directories(time.time() - 600)
        assert set(found) == {str(folder) for folder in (other, below, plain, opencode.directory)}
        assert len(found) == 4
        assert await server.directories(time.time() + 3000) == ()


async def test_a_plan_is_answered_by_yes_and_no(
    private_opencode: Callable[..., OpenCode],
) -> None:
    """2 and 12: "`custom:false` really occurs from `plan_exit`: labels Yes/No".

    Seen besides: its part keeps no answers; "No" ends it as a dismissal does; an empty reply approves.
    """
    opencode = private_opencode(environ={"OPENCODE_EXPERIMENTAL_PLAN_MODE": "1"})
    async with client_of(opencode) as server:

        async def planned() -> Ask:
            session = opencode.session()
            opencode.prompt(session, [{"tool": "plan_exit", "args": {}}], agent="plan")
            return await the_ask(server, opencode, session, opencode.directory)

        ask = await planned()
        assert [(one.custom, [option.label for option in one.options]) for one in ask.questions] == [
            (False, ["Yes", "No"])
        ]
        assert not ask.capabilities.can_skip
        assert await server.verdict(ask) == StillOpen()
        await server.reply(ask, (("Yes",),))
        assert await server.verdict(ask) == AnsweredWith((("Yes",),))
        ask = await planned()
        await server.reply(ask, (("No",),))
        assert await server.verdict(ask) == WasDismissed(same_as=(("No",),))
        async with listening(server) as ear:
            ask = await planned()
            await server.reply(ask, (("No",),))
            await ear.hears(Replied, ask.source.session_id)
            assert await server.verdict(ask) == AnsweredWith((("No",),))
            ask = await planned()
            await server.reject(ask)
            assert await server.verdict(ask) == WasDismissed(same_as=(("No",),))
        ask = await planned()
        await server.reply(ask, ((),))
        assert await server.verdict(ask) == AnsweredWith((("Yes",),))


async def test_a_frozen_server_takes_one_of_two_replies(
    private_opencode: Callable[..., OpenCode], model: ScriptedModel
) -> None:
    """12: "A frozen server (SIGSTOP) that got two replies … emitted one `question.replied` after SIGCONT".

    "Only a stopped process or a cut connection "comes back" with the question still open".
    """
    opencode = private_opencode()
    session = opencode.session()
    opencode.prompt(session, [asks(question())])
    async with client_of(opencode) as server, listening(server) as ear:
        ask = await the_ask(server, opencode, session, opencode.directory)
        opencode.freeze()
        try:
            for _ in range(2):
                with pytest.raises(TimeoutError):  # shorter than our own, so that the test is
                    await asyncio.wait_for(server.reply(ask, (("SQLite",),)), 1)
        finally:
            opencode.thaw()
        await ear.hears(Replied, session)
        assert await server.verdict(ask) == AnsweredWith((("SQLite",),))
        await ear.hears(Quiet, session)
        assert [type(one) for one in ear.signals() if isinstance(one, Replied)] == [Replied]
        assert len(model.received(session)) == 1
