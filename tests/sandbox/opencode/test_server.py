"""The scripted agent server behaves as OpenCode was recorded to, in both manners, and misbehaves on demand."""

from __future__ import annotations

import io
import json
import time
from typing import TYPE_CHECKING, Any, get_args

import httpx
import pytest

from hermes.agents.http import Api
from hermes.agents.opencode.client import OpenCodeServer
from hermes.agents.server import Connected, Heard, follow
from hermes.errors import AgentAway, AgentRefused, NotThere, Unauthorized
from hermes.model.signals import Asked, Busy, Replied
from hermes.model.verdicts import AnsweredWith, Dead, StillOpen, Unproven, WasDismissed
from hermes.sandbox.opencode import server
from hermes.sandbox.opencode.events import Manner
from hermes.sandbox.opencode.server import ScriptedAgent, running_agent
from tests.agents.opencode.recorded import recorded

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = "/home/dev/project"
DATABASE: dict[str, Any] = {
    "question": "Which database should I use?",
    "header": "Database",
    "options": [{"label": "PostgreSQL", "description": "Relational"}, {"label": "SQLite", "description": "Small"}],
}
BOTH = pytest.mark.parametrize("agent", get_args(Manner), indirect=True)


@pytest.fixture
def agent(request: pytest.FixtureRequest) -> Iterator[ScriptedAgent]:
    """An agent server of this manner, "new" where none is named."""
    with running_agent(manner=getattr(request, "param", "new")) as running:
        yield running


def client(agent: ScriptedAgent, password: str = "") -> OpenCodeServer:
    """Hermes' own client of it."""
    return OpenCodeServer(Api("desk", agent.url, password=password), machine="laptop")


def keys(value: Any) -> Any:
    """The shape of JSON: its keys, without what numbers and texts say."""
    if isinstance(value, dict):
        return {key: keys(one) for key, one in value.items()}
    if isinstance(value, list):
        return [keys(value[0])] if value else []
    return type(value).__name__


def fits(ours: Any, theirs: Any) -> bool:
    """Whether everything that ours has stands in theirs, in the same shape."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return all(key in theirs and fits(one, theirs[key]) for key, one in ours.items())
    if isinstance(ours, list) and isinstance(theirs, list):
        return not ours or not theirs or fits(ours[0], theirs[0])
    return bool(ours == theirs)


def without(value: dict[str, Any], *gone: str) -> dict[str, Any]:
    """The same without these keys."""
    return {key: one for key, one in value.items() if key not in gone}


@BOTH
def test_its_answers_have_the_recorded_shapes(agent: ScriptedAgent) -> None:
    """What OpenCode sent when it was recorded has every key that this one sends, in the same place."""
    request = agent.ask([DATABASE], say="Let me ask.")
    session = agent.pending[request]["sessionID"]
    child = agent.session("sub job (@asker subagent)", parent=session)
    with httpx.Client(base_url=agent.url) as http:
        said = {
            "health": http.get("/global/health"),
            "questions": http.get("/question"),
            "status": http.get("/session/status"),
            "session": http.get(f"/session/{child}"),
            "session 404": http.get("/session/ses_none"),
        }
        for name, response in said.items():
            was = recorded(agent.version, "http", name)
            assert response.status_code == was["status"], name
            ours, theirs = response.json(), was["body"]
            if name == "status":
                ours, theirs = list(ours.values()), list(theirs.values())
            if name == "session":
                theirs["parentID"] = "ses_"  # the one of new was no child
            assert fits(keys(ours), keys(theirs)), name
        http.post(f"/question/{request}/reply", json={"answers": [["SQLite"]]})
        (ours,) = [part for part in _parts(http, session) if part["type"] == "tool"]
        (theirs,) = [
            part
            for message in recorded(agent.version, "http", "messages")["body"]
            for part in message["parts"]
            if part["type"] == "tool"
        ]
        assert fits(keys(ours), keys(theirs))
        assert ours["state"]["output"] == theirs["state"]["output"]
        openapi = http.get("/doc").json()
    assert openapi["paths"]["/question/{request}/reply"]["post"]


def _parts(http: httpx.Client, session: str) -> list[dict[str, Any]]:
    messages = http.get(f"/session/{session}/message", params={"limit": "9"}).json()
    return [part for message in messages for part in message["parts"]]


@BOTH
def test_its_events_have_the_recorded_shapes(agent: ScriptedAgent) -> None:
    """Each of them has the keys of the recorded one of its kind."""
    told: list[dict[str, Any]] = []
    agent.sinks.add(lambda event: told.append(event or {}))
    session = agent.session()
    agent.answer(agent.ask([DATABASE], session=session), [["SQLite"]])
    agent.dismiss(agent.ask([DATABASE], session=session))
    agent.delete(session)
    agent.dispose()
    names = {
        "session.created": "session.created",
        "session.status": "session.status-busy",
        "session.idle": "session.idle",
        "question.asked": "question.asked-1q",
        "question.replied": "question.replied",
        "question.rejected": "question.rejected",
        "session.deleted": "session.deleted",
        "server.instance.disposed": "server.instance.disposed",
    }
    for kind, name in names.items():
        ours = next(event for event in told if event["payload"]["type"] == kind)
        assert fits(keys(ours), keys(recorded(agent.version, "events", name))), kind
    assert any(event["payload"]["type"] == "sync" for event in told) is (agent.manner == "new")


@BOTH
async def test_an_answer_takes_effect_once(agent: ScriptedAgent) -> None:
    """Hermes' client sees it open, then answered; what came second had no effect, and old does not say so."""
    request = agent.ask([DATABASE])
    async with client(agent) as desk:
        (ask,) = (await desk.pending(HERE)).asks
        assert ask.source.request_id == request
        assert await desk.verdict(ask) == StillOpen()
        await desk.reply(ask, (("SQLite",),))
        if agent.manner == "old":
            await desk.reply(ask, (("PostgreSQL",),))
        else:
            with pytest.raises(NotThere):
                await desk.reply(ask, (("PostgreSQL",),))
        assert await desk.verdict(ask) == AnsweredWith((("SQLite",),))
    assert [(effect.request_id, effect.answers) for effect in agent.effects] == [(request, (("SQLite",),))]
    assert [one.body for one in agent.received if one.route == "reply"] == [
        {"answers": [["SQLite"]]},
        {"answers": [["PostgreSQL"]]},
    ]


@BOTH
async def test_what_an_abort_leaves_is_a_zombie(agent: ScriptedAgent) -> None:
    """It stays listed; a reply to it is told as an event and has no effect; so is a rejection."""
    session = agent.session()
    first, second = agent.ask([DATABASE], session=session), agent.ask([DATABASE], session=session)
    agent.abort(session)
    async with client(agent) as desk:
        asks = (await desk.pending(HERE)).asks
        assert [await desk.verdict(ask) for ask in asks] == [Dead(), Dead()]
        async for told in follow(desk.name, desk.listen):
            if isinstance(told, Connected):
                await desk.reply(asks[0], (("SQLite",),))
                await desk.reject(asks[1])
            elif isinstance(told, Heard):
                assert isinstance(told.signal, Replied)
                assert told.signal.request_id == first
                break
    assert agent.effects == []
    assert second not in agent.pending


@BOTH
async def test_ways_to_end(agent: ScriptedAgent) -> None:
    """Dismissed, deleted, gone on without it, lost in a restart, and not to be told without a tool call."""
    asked = {name: agent.ask([DATABASE]) for name in ("dismissed", "deleted", "went on", "restarted")}
    bare = agent.ask([DATABASE], tool=False)
    async with client(agent) as desk:
        asks = {ask.source.request_id or "": ask for ask in (await desk.pending(HERE)).asks}
        assert await desk.verdict(asks[bare]) == StillOpen()
        agent.dismiss(asked["dismissed"])
        agent.delete(agent.pending[asked["deleted"]]["sessionID"])
        agent.ask([DATABASE], session=agent.pending[asked["went on"]]["sessionID"])
        agent.answer(bare, [["SQLite"]])
        assert await desk.verdict(asks[asked["dismissed"]]) == WasDismissed()
        assert await desk.verdict(asks[asked["deleted"]]) == Dead()
        assert await desk.verdict(asks[asked["went on"]]) == Dead()
        assert await desk.verdict(asks[bare]) == Unproven()
        agent.restart()
        assert (await desk.pending(HERE)).asks == ()
        assert await desk.verdict(asks[asked["restarted"]]) == Dead()


@BOTH
async def test_a_dispose_ends_what_one_directory_asks(agent: ScriptedAgent) -> None:
    """Its questions and permissions vanish and are dead; those of another directory live on."""
    agent.ask([DATABASE])
    agent.ask_permission("bash", ["touch ran"])
    elsewhere = agent.ask([DATABASE], directory="/home/dev/other")
    async with client(agent) as desk:
        asks = (await desk.pending(HERE)).asks
        (other,) = (await desk.pending("/home/dev/other")).asks
        with httpx.Client(base_url=agent.url) as http:
            assert http.post("/instance/dispose").json() is True
        assert (await desk.pending(HERE)).asks == ()
        assert [await desk.verdict(ask) for ask in asks] == [Dead(), Dead()]
        assert await desk.verdict(other) == StillOpen()
    assert list(agent.pending) == [elsewhere]


async def test_a_tool_may_take_its_time() -> None:
    """Between the reply and the end of its tool call nothing is proven; the session works meanwhile."""
    with running_agent() as agent:
        agent.finishes = False
        agent.hold_tools()
        request = agent.ask([DATABASE])
        waits: list[float] = []

        async def sleep(pause_s: float) -> None:
            waits.append(pause_s)
            agent.release_tools()

        desk = OpenCodeServer(Api("desk", agent.url), machine="laptop", sleep=sleep)
        async with desk:
            (ask,) = (await desk.pending(HERE)).asks
            await desk.reply(ask, ((),))
            assert await desk.verdict(ask) == AnsweredWith(((),))
            session = ask.source.session_id
            assert await desk.busy(HERE) == {session}
            agent.finish(session)
            assert await desk.busy(HERE) == frozenset()
        assert waits
        assert agent.effects[0].request_id == request
        assert '="Unanswered"' in agent.sessions[session].messages[-1]["parts"][0]["state"]["output"]


async def test_two_of_one_step_live_side_by_side(agent: ScriptedAgent) -> None:
    """Parallel calls of one message are two requests, independent of each other."""
    one = agent.ask([DATABASE], say="Two things.")
    other = agent.ask([DATABASE], beside=one)
    async with client(agent) as desk:
        first, second = (await desk.pending(HERE)).asks
        assert first.source.message_id == second.source.message_id
        agent.answer(other, [["SQLite"]])
        assert await desk.verdict(second) == AnsweredWith((("SQLite",),))


@BOTH
async def test_events_come_doubled_held_back_and_not_at_all(agent: ScriptedAgent) -> None:
    """The stream is cut, its events are kept, lost, or told twice; after each there is a new connection."""
    signals: list[object] = []
    connected = 0
    async with client(agent) as desk:
        async for told in follow(desk.name, desk.listen):
            if isinstance(told, Connected):
                connected += 1
                agent.doubles_events = connected == 2
                agent.hold_events()
                asked = agent.ask([DATABASE])
                agent.release_events(lost=connected == 1)
                agent.work(agent.pending[asked]["sessionID"])
                if connected == 1:
                    agent.cut_events()
            elif isinstance(told, Heard):
                signals.append(told.signal)
                if sum(isinstance(signal, Asked) for signal in signals) == 2:
                    break
    assert connected == 2
    assert signals[0] == signals[1] or isinstance(signals[0], Busy)


@pytest.mark.parametrize("how", ["cut_events", "restart"])
def test_what_was_on_its_way_is_lost_with_its_stream(agent: ScriptedAgent, how: str) -> None:
    """No new stream tells of what an earlier one had not delivered, let alone an earlier life's."""
    told: list[Any] = []
    agent.sinks.add(told.append)
    agent.hold_events()
    agent.ask([DATABASE])
    getattr(agent, how)()
    agent.release_events()
    assert told == [None], "the end of the stream alone"


async def test_faults_befall_what_they_name(agent: ScriptedAgent) -> None:
    """An error, a lie, a cut before and after, a slow answer; then all is well again."""
    asked = [agent.ask([DATABASE]) for _ in range(4)]
    async with client(agent) as desk:
        asks = (await desk.pending(HERE)).asks
        agent.fault("reply", status=503)
        agent.fault("reply", "lie")
        agent.fault("reply", "cut")
        with pytest.raises(AgentAway, match="503"):
            await desk.reply(asks[0], (("a",),))
        await desk.reply(asks[0], (("b",),))
        with pytest.raises(AgentAway):
            await desk.reply(asks[0], (("c",),))
        assert agent.effects == []
        agent.fault("*", "cut_after")
        with pytest.raises(AgentAway):
            await desk.reply(asks[1], (("d",),))
        agent.fault("reply", "slow", delay_s=0.01, times=2)
        await desk.reply(asks[2], (("e",),))
        agent.fault("reply", times=9)
        agent.clear_faults()
        await desk.reply(asks[3], (("f",),))
    assert [effect.request_id for effect in agent.effects] == asked[1:]


async def test_away_and_back_on_the_same_port(agent: ScriptedAgent) -> None:
    """While it is away nobody answers; its questions are still there when it is back."""
    agent.ask([DATABASE])
    async with client(agent) as desk:
        agent.away()
        agent.away()
        with pytest.raises(AgentAway, match="nobody answers there"):
            await desk.health()
        agent.back()
        agent.back()
        assert await desk.health() == "1.18.33"
        assert len((await desk.pending(HERE)).asks) == 1


@BOTH
async def test_folders_sessions_and_what_is_not_there(agent: ScriptedAgent) -> None:
    """Old finds a session in its own folder alone, and has no list of all; both look at the shape of answers."""
    agent.ask([DATABASE], directory="/home/dev/other")
    request = agent.ask([DATABASE])
    session = agent.pending[request]["sessionID"]
    async with client(agent) as desk:
        assert set(await desk.directories(time.time() - 3600)) == {HERE, "/home/dev/other"}
    with httpx.Client(base_url=agent.url, headers={"x-opencode-directory": "/home/dev/other"}) as http:
        old = agent.manner == "old"
        assert http.get(f"/session/{session}").status_code == (404 if old else 200)
        assert http.get(f"/session/{session}/message").status_code == (404 if old else 200)
        assert len(http.get("/session", params={"directory": HERE}).json()) == 1
        assert http.get("/nothing").headers["content-type"].startswith("application/json" if old else "text/html")
        assert http.post(f"/question/{request}/reply", json={"answers": [["x"]]}).status_code == (200 if old else 404)
        assert http.post("/question/que_0/reject").status_code == (200 if old else 404)
        bodies: list[object] = [{}, {"answers": ["x"]}, {"answers": [[1]]}, []]
        for body in bodies:
            assert http.post(f"/question/{request}/reply", json=body).status_code == 400
        assert http.post(f"/question/{request}/reply", content=b"{").status_code == 400
    assert agent.effects == []


@BOTH
async def test_a_password_is_wanted_everywhere(agent: ScriptedAgent) -> None:
    """On the routes, the stream, and what is no route."""
    agent.password = "hunter2"
    for password in ("", "wrong"):
        async with client(agent, password) as desk:
            with pytest.raises(Unauthorized):
                await desk.health()
            with pytest.raises(Unauthorized):
                async with desk.api.listening():
                    pass
    async with client(agent, "hunter2") as desk:
        assert await desk.health() == agent.version
    assert httpx.get(f"{agent.url}/nothing").status_code == 401


async def test_a_stream_may_be_refused(agent: ScriptedAgent) -> None:
    """A fault of the route "events" meets whoever subscribes."""
    agent.fault("events", status=400)
    async with client(agent) as desk:
        with pytest.raises(AgentRefused, match="400"):
            async with desk.api.listening():
                pass


def test_what_is_impossible_is_said(agent: ScriptedAgent) -> None:
    """The desk cannot answer what is not asked."""
    for act in (agent.dismiss, lambda request: agent.answer(request, [])):
        with pytest.raises(LookupError, match="que_0"):
            act("que_0")


def test_it_runs_as_a_process_that_takes_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """One JSON line with its address, then one for each wish; what is wrong with a wish is said."""
    wishes = [{"do": "session", "title": "T"}, {"do": "explode"}, {"do": "dismiss", "request_id": "que_0"}, {"do": 1}]
    lines = io.StringIO("".join(f"{json.dumps(wish)}\n" for wish in wishes) + "no JSON\n")
    server.main(
        ["--manner", "old", "--directory", HERE],
        environ={server.PASSWORD_VARIABLE: "hunter2"},
        stdin=lines,
    )
    url, made, unknown, impossible, odd, broken = map(json.loads, capsys.readouterr().out.splitlines())
    assert url["url"].startswith("http://127.0.0.1:")
    assert made["done"].startswith("ses_")
    assert "nothing is called 'explode'" in unknown["error"]
    assert "que_0" in impossible["error"]
    assert "nothing is called 1" in odd["error"]
    assert broken["error"]
