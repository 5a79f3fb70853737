"""What is asked of a server and said to it, on recorded bodies; every way in which that can go wrong."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import ssl
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import httpx_sse
import pytest

from hermes.agents import http as api
from hermes.agents.http import Api
from hermes.agents.opencode import adapter
from hermes.agents.opencode.client import OpenCodeServer
from hermes.errors import AgentAway, AgentError, AgentRefused, NotThere, Unauthorized
from hermes.model.ask import Ask, Source
from hermes.model.verdicts import AnsweredWith, Dead, StillOpen, Unproven, Verdict, WasDismissed
from tests.agents.opencode.recorded import NEW, OLD, VERSIONS, Json, Routes, recorded, server

BOTH = pytest.mark.parametrize("version", VERSIONS)
HERE = "/home/dev/project"


def pending(version: str) -> Ask:
    """Return the recorded question as the server "desk" lists it."""
    (request,) = recorded(version, "http", "questions")["body"]
    return adapter.read_request(request, Source("opencode", "laptop", "", directory=HERE, server="desk"))


# errors


def exceptions(root: type[BaseException]) -> Iterator[type[BaseException]]:
    """Yield a class and everything below it."""
    yield root
    for below in root.__subclasses__():
        yield from exceptions(below)


RAISED = sorted(
    {
        kind
        for root in (httpx.HTTPError, httpx.InvalidURL, httpx.CookieConflict, httpx.StreamError)
        for kind in exceptions(root)
        if kind.__module__.partition(".")[0] in {"httpx", "httpx_sse"}
    },
    key=lambda kind: kind.__name__,
)


async def test_a_connection_that_another_task_has_closed_is_away() -> None:
    """The server was found anew meanwhile."""
    closed = Api("desk", "http://desk")
    await closed.aclose()
    with pytest.raises(AgentAway, match="was closed"):
        await closed.call("GET", "/question")
    with pytest.raises(AgentAway, match="was closed"):
        await closed.seen("/question")
    with pytest.raises(AgentAway, match="was closed"):
        async with closed.listening():
            pass


def test_the_list_of_what_httpx_raises_is_whole() -> None:
    """No exception that httpx and httpx-sse export is left out of the next test."""
    exported = {getattr(module, name) for module in (httpx, httpx_sse) for name in module.__all__}
    kinds = {kind for kind in exported if isinstance(kind, type) and issubclass(kind, Exception)}
    assert kinds <= set(RAISED)


@pytest.mark.parametrize("kind", RAISED)
def test_whatever_httpx_raises_is_translated(kind: type[Exception]) -> None:
    """One place turns all of it into AgentError, with words of our own."""
    raised = kind.__new__(kind)
    Exception.__init__(raised, "hunter2 in the text of httpx")
    with pytest.raises(AgentError, match="GET /x: ") as caught, api.translated("OpenCode 'desk': GET /x"):
        raise raised
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("raised", "meaning"),
    [
        (httpx.ConnectError("x"), AgentAway),
        (httpx.ConnectTimeout("x"), AgentAway),
        (httpx.ReadTimeout("x"), AgentAway),
        (httpx.RemoteProtocolError("x"), AgentAway),
        (httpx.ReadError("x"), AgentAway),
        (httpx.UnsupportedProtocol("x"), AgentRefused),
        (httpx.DecodingError("x"), AgentRefused),
        (httpx_sse.SSEError("x"), AgentRefused),
    ],
)
def test_trying_again_helps_only_where_it_can(raised: Exception, meaning: type[AgentError]) -> None:
    """What the network does passes; what the server is does not."""
    with pytest.raises(meaning) as caught, api.translated("it"):
        raise raised
    assert type(caught.value) is meaning


@pytest.mark.parametrize(
    ("status", "meaning"),
    [
        (401, Unauthorized),
        (404, NotThere),
        (400, AgentRefused),
        (403, AgentRefused),
        (302, AgentRefused),
        (408, AgentAway),
        (429, AgentAway),
        (500, AgentAway),
        (503, AgentAway),
    ],
)
async def test_each_status_has_its_meaning(status: int, meaning: type[AgentError]) -> None:
    """The error names server, method, path and status; `permanent` says whether to try again."""
    async with server({"GET /global/health": httpx.Response(status, text="hunter2")}) as desk:
        with pytest.raises(meaning, match=f"'desk': GET /global/health: {status}") as caught:
            await desk.health()
    assert type(caught.value) is meaning
    assert caught.value.permanent is (status < 500 and status not in {408, 429})


@BOTH
async def test_a_wrong_password_is_told_as_such(version: str) -> None:
    """Contract 6: without the password, 401 on everything; bodies differ between the versions."""
    async with server({"GET /global/health": recorded(version, "http", "health 401")}) as desk:
        with pytest.raises(Unauthorized):
            await desk.health()


async def test_the_password_is_sent_and_shown_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    """Basic authentication on each request; no repr, log or error holds it."""
    seen: list[httpx.Request] = []
    caplog.set_level(logging.DEBUG)
    async with server({}, seen) as desk:
        with pytest.raises(NotThere) as caught:
            await desk.health()
        assert httpx.BasicAuth("opencode", "hunter2")._auth_header == seen[0].headers["authorization"]
        assert "hunter2" not in repr(desk) + repr(desk.api) + str(caught.value) + caplog.text


@pytest.mark.parametrize(
    "response",
    [
        httpx.Response(200, html="<!doctype html>"),
        httpx.Response(200, html='{"healthy": true, "version": "1.1.53"}'),
        httpx.Response(200, text="fine", headers={"content-type": ""}),
        httpx.Response(200, content=b"{", headers={"content-type": "application/json"}),
        httpx.Response(200, content=b"\xff", headers={"content-type": "application/json"}),
        httpx.Response(200, content=b"[" * 100_000, headers={"content-type": "application/json"}),
        httpx.Response(200, json={"version": 7}),
        httpx.Response(200, json=["1.1.53"]),
    ],
)
async def test_what_no_opencode_says_is_refused(response: httpx.Response) -> None:
    """Contract 10.2: unknown routes are `200 text/html` on new; and whatever else a stranger may send."""
    async with server({"GET /global/health": response}) as desk:
        with pytest.raises(AgentRefused, match="'desk': GET /global/health: "):
            await desk.health()


async def test_an_endless_answer_is_cut() -> None:
    """So much is more than any answer of OpenCode that is read here, with the files in it."""

    async def endless() -> Any:
        while True:
            yield b" " * 65536

    response = httpx.Response(200, content=endless(), headers={"content-type": "application/json"})
    async with server({"GET /global/health": response}) as desk:
        with pytest.raises(AgentRefused, match="more than 64 MiB"):
            await desk.health()


async def test_an_answer_that_drips_is_given_up() -> None:
    """A byte now and then keeps each single read in time, so there is a limit for the whole call."""

    async def dripping() -> Any:
        while True:
            yield b" "
            await asyncio.sleep(0.01)

    def drip(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=dripping(), headers={"content-type": "application/json"})

    async with server({"GET /question": drip}) as desk, asyncio.timeout(5):
        with pytest.raises(AgentAway, match=r"'desk': GET /question: no whole answer within 0\.1 s"):
            await desk.api.call("GET", "/question", timeout=httpx.Timeout(0.05))


@pytest.mark.parametrize("path", ["/question", "/x"])
async def test_a_head_that_drips_is_given_up(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit holds before the answer begins, too, and for what looks at a page of an unknown server."""
    monkeypatch.setattr("hermes.agents.http.BOOT", httpx.Timeout(0.05))

    async def never(_: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        raise AssertionError("nobody ends this")

    api = Api("desk", "http://desk.test", transport=httpx.MockTransport(never))
    async with contextlib.aclosing(api), asyncio.timeout(5):
        with pytest.raises(AgentAway, match="no whole answer"):
            await (api.call("GET", path, timeout=httpx.Timeout(0.05)) if path == "/question" else api.seen(path))


async def test_ids_cannot_lead_elsewhere() -> None:
    """An id is one segment of a path, whatever it is made of."""
    seen: list[httpx.Request] = []
    async with server({}, seen) as desk:
        for request_id in ("../../session/x/abort?", "a b"):
            ask = replace(pending(NEW), source=replace(pending(NEW).source, request_id=request_id))
            with pytest.raises(NotThere):
                await desk.reject(ask)
        ask = replace(pending(NEW), source=replace(pending(NEW).source, request_id=".."))
        with pytest.raises(NotThere, match="dots"):
            await desk.reject(ask)
    assert [request.url.raw_path for request in seen] == [
        b"/question/..%2F..%2Fsession%2Fx%2Fabort%3F/reject",
        b"/question/a%20b/reject",
    ]


# lists


@BOTH
async def test_a_recorded_list_is_read(version: str) -> None:
    """The directory goes out in the header, once encoded; the ask knows server and directory."""
    seen: list[httpx.Request] = []
    async with server({"GET /question": recorded(version, "http", "questions")}, seen) as desk:
        (ask,) = (await desk.pending("/home/with blank/ünï 100%")).asks
    assert seen[0].headers["x-opencode-directory"] == "/home/with%20blank/%C3%BCn%C3%AF%20100%25"
    assert seen[0].url.query == b""
    assert (ask.source.server, ask.source.directory) == ("desk", "/home/with blank/ünï 100%")
    assert ask.source.request_id == recorded(version, "http", "questions")["body"][0]["id"]


async def test_one_odd_request_does_not_hide_the_others(caplog: pytest.LogCaptureFixture) -> None:
    """It is left out and logged; pydantic's and our own words about it hold no value of it."""
    (good,) = recorded(NEW, "http", "questions")["body"]
    odd = good | {"questions": [{"question": 7, "header": "secret words"}]}
    async with server({"GET /question": [odd, "x", good]}) as desk:
        (ask,) = (await desk.pending(HERE)).asks
    assert ask.source.request_id == good["id"]
    assert caplog.text.count("left out") == 2
    assert "secret words" not in caplog.text


def v2_ask() -> Ask:
    """Return what question.v2.asked told of "desk"."""
    properties = recorded(NEW, "events", "question.v2.asked")["payload"]["properties"]
    origin = Source("opencode", "laptop", "", directory=HERE, server="desk")
    return adapter.read_request(properties, origin, answerable=False)


async def test_questions_of_the_second_engine_are_for_the_desk() -> None:
    """Contract 9: `/question` neither lists nor accepts them; nothing is sent."""
    seen: list[httpx.Request] = []
    async with server({}, seen) as desk:
        with pytest.raises(AgentRefused, match="in its terminal only"):
            await desk.reply(v2_ask(), (("Pg",),))
    assert seen == []


def v2_message(status: str, **more: Any) -> Json:
    """Return the message that asked, with its tool in this state."""
    tool = {"type": "tool", "id": "call_c88ff6eae0ce4d8b", "name": "question"}
    state = {"status": status, "input": {}, "structured": {}, "content": []} | more
    return {"data": {"type": "assistant", "content": [{"type": "text"}, tool | {"state": state}]}}


@pytest.mark.parametrize(
    ("message", "here", "elsewhere"),
    [
        (v2_message("completed", structured={"answers": [["Pg"]]}), AnsweredWith((("Pg",),)), None),
        (v2_message("error", error={"message": "Tool execution interrupted"}), Dead(), None),
        (v2_message("running"), Dead(), Unproven()),
        (httpx.Response(404, json={}), Dead(), Unproven()),
    ],
)
async def test_the_second_engine_has_its_own_proof(message: object, here: Verdict, elsewhere: Verdict | None) -> None:
    """Listed is open (an abort does not end it there); not listed, the message tells."""
    ask = v2_ask()
    session = f"/api/session/{ask.source.session_id}"
    pending = {"data": ["odd", {"id": ask.source.request_id}]}
    routes: dict[str, object] = {f"GET {session}/question": pending}
    async with server(routes) as desk:
        assert await desk.verdict(ask) == StillOpen()
        routes[f"GET {session}/question"] = {"data": []}
        routes[f"GET {session}/message/{ask.source.message_id}"] = message
        foreign = replace(ask, source=replace(ask.source, server=""))
        assert await desk.verdict(ask) == here
        assert await desk.verdict(foreign) == (elsewhere or here)
        del routes[f"GET {session}/question"]
        assert await desk.verdict(ask) == Dead()
        assert await desk.verdict(foreign) == Unproven()


def session_of(directory: str, updated_s: float) -> Json:
    """Return a session as the lists have it."""
    return {"id": f"ses_{directory}", "directory": directory, "time": {"updated": updated_s * 1000}}


def version_of(version: str) -> dict[str, object]:
    """Return the route of a version."""
    return {"GET /global/health": {"healthy": True, "version": version}}


@pytest.mark.parametrize("version", [NEW, "1.18.34-beta.1", "2.0.0"])
async def test_directories_come_from_one_list_where_there_is_one(version: str) -> None:
    """Contract 12: new lists every project's sessions; nothing else is asked for."""
    seen: list[httpx.Request] = []
    sessions = [session_of("/a", 950), session_of("/b", 990), session_of("/a", 960), session_of("/old", 1)]
    routes = version_of(version) | {"GET /experimental/session": sessions}
    async with server(routes, seen) as desk:
        assert await desk.directories(900.0) == ("/b", "/a")
    assert [request.url.path for request in seen] == ["/global/health", "/experimental/session"]
    assert dict(seen[1].url.params) == {"start": "900000", "limit": "1000"}


@pytest.mark.parametrize("version", [OLD, "1.18.32", "local", "9.0.0"])
async def test_directories_come_from_each_project_where_there_is_none(version: str) -> None:
    """Contract 12: both: `GET /project`, then `GET /session` with the header for each worktree.

    What old does not know is not tried out: it passes it on to a server in the internet. Later versions may
    lose the one list again. One project whose folder cannot be opened does not hide the others.
    """
    seen: list[httpx.Request] = []

    def sessions(request: httpx.Request) -> object:
        worktree = request.headers["x-opencode-directory"]
        if worktree == "/broken":
            return httpx.Response(400, json={})
        return [session_of("/plain", 990)] if worktree == "/" else [session_of("/a/sub%20dir", 980)]

    routes = version_of(version) | {
        "GET /project": [{"worktree": path} for path in ("/a", "/broken", "/")],
        "GET /session": sessions,
        "GET /experimental/session": httpx.Response(200, html="<!doctype html>"),
    }
    async with server(routes, seen) as desk:
        assert await desk.directories(900.0) == ("/plain", "/a/sub%20dir")
        assert await desk.directories(985.0) == ("/plain",)
    asked = {request.url.path for request in seen}
    assert ("/experimental/session" in asked) is (version == "9.0.0")


# replies


async def test_a_reply_says_exactly_the_answers() -> None:
    """Labels to the letter, as UTF-8 JSON, to the directory of the ask; what comes back proves nothing."""
    seen: list[httpx.Request] = []
    ask = pending(OLD)
    path = f"/question/{ask.source.request_id}"
    async with server({f"POST {path}/reply": True, f"POST {path}/reject": True}, seen) as desk:
        await desk.reply(ask, (("S (Recommended)", "é\n🐘"), ()))
        await desk.reject(ask)
    reply, reject = seen
    assert json.loads(reply.content) == {"answers": [["S (Recommended)", "é\n🐘"], []]}
    assert reply.headers["content-type"] == "application/json"
    assert [request.headers["x-opencode-directory"] for request in seen] == [HERE, HERE]
    assert reject.content == b""


async def test_a_reply_to_nothing_is_refused_by_new() -> None:
    """Contract 2: unknown or already answered: new 404 (old says true, see test_gotchas)."""
    ask = pending(NEW)
    reply = recorded(NEW, "http", "reply 404")
    async with server({f"POST /question/{ask.source.request_id}/reply": reply}) as desk:
        with pytest.raises(NotThere):
            await desk.reply(ask, (("SQLite",),))
        with pytest.raises(NotThere, match="no request id"):
            await desk.reply(replace(ask, source=replace(ask.source, request_id=None)), (("SQLite",),))


# verdicts on recorded bodies


class Desk:
    """The routes of a server on which the recorded question stands, in whatever state a test wants."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.ask = pending(version)
        self.listed: list[bool] = [True]
        self.busy = True
        self.known = True
        self.states = [recorded(version, "states", "running")]
        self.after: list[str] = []
        self.parent: str | None = None
        self.prompt: str = recorded(version, "http", "messages")["body"][1]["info"]["parentID"]
        self.goes_on = False
        """Whether the model writes its next message right after the part was read."""

    def routes(self) -> Routes:
        """Return the routes; lists give one value after the other, the last for good."""
        source = self.ask.source
        session = f"GET /session/{source.session_id}"
        return {
            "GET /question": lambda _: recorded(self.version, "http", "questions")["body"] * self._next(self.listed),
            "GET /session/status": lambda _: {source.session_id: {"type": "busy"}} if self.busy else {},
            session: lambda _: {"id": source.session_id} if self.known else self._missing(),
            f"{session}/message": lambda _: self._newest(),
            f"{session}/message/{source.message_id}": lambda _: self._message(),
        }

    @staticmethod
    def _next(values: list[Any]) -> Any:
        return values.pop(0) if len(values) > 1 else values[0]

    def _missing(self) -> Any:
        return recorded(self.version, "http", "session 404")

    def _message(self) -> Any:
        state = self._next(self.states)
        self.after += ["assistant"] * self.goes_on
        message = recorded(self.version, "http", "messages")["body"][1]
        if state is None or not self.known:
            return self._missing()
        for part in message["parts"]:
            if part["type"] == "tool":
                part["state"] = state
        if state == {}:
            message["parts"] = []
        return message

    def _newest(self) -> Any:
        messages = recorded(self.version, "http", "messages")["body"][:2]
        for place, role in enumerate(self.after, start=1):
            created = messages[1]["info"]["time"]["created"] + place
            info = {"id": f"m{place}", "role": role, "time": {"created": created}, "parentID": self.parent}
            messages.append({"info": info, "parts": []})
        return messages


@pytest.fixture(params=VERSIONS)
def desk(request: pytest.FixtureRequest) -> Desk:
    """A recorded question of each version."""
    return Desk(request.param)


async def verdict_on(desk: Desk, *, of: Ask | None = None) -> Verdict:
    """Return what a client makes of it."""
    async with server(desk.routes()) as one:
        return await one.verdict(of or desk.ask)


async def test_a_listed_question_of_a_busy_session_is_open(desk: Desk) -> None:
    """Also while its part is not written yet, and with a prompt in the queue."""
    assert await verdict_on(desk) == StillOpen()
    desk.after = ["user", "user"]
    assert await verdict_on(desk) == StillOpen()
    states: list[Json | None] = [{}, None, recorded(desk.version, "states", "pending")]
    for state in states:
        desk.states = [state]
        assert await verdict_on(desk) == StillOpen()


async def test_an_answer_is_proven_by_what_the_tool_kept(desk: Desk) -> None:
    """Contract 12: status completed, `state.metadata.answers`."""
    desk.listed, desk.states = [False], [recorded(desk.version, "states", "completed")]
    assert await verdict_on(desk) == AnsweredWith((("SQLite",),))


async def test_an_answer_between_two_looks_is_no_open_question(desk: Desk) -> None:
    """Listed, then answered, then read: the list is read again before a verdict."""
    desk.listed, desk.states = [True, False], [recorded(desk.version, "states", "completed")]
    assert await verdict_on(desk) == AnsweredWith((("SQLite",),))


async def test_a_question_without_a_call_that_just_ended_is_no_zombie(desk: Desk) -> None:
    """Listed, then dismissed and its session idle, before that was asked for: only an event can tell how it ended."""
    desk.listed, desk.busy = [True, False], False
    source = replace(desk.ask.source, call_id=None, message_id=None)
    assert await verdict_on(desk, of=replace(desk.ask, source=source)) == Unproven()


async def test_a_part_that_is_about_to_end_is_waited_for(desk: Desk) -> None:
    """Contract 12: `running` turns `completed` some ms after the reply; that is no sign of death."""
    running, completed = (recorded(desk.version, "states", name) for name in ("running", "completed"))
    desk.listed, desk.states = [False], [running, running, running, completed]
    assert await verdict_on(desk) == AnsweredWith((("SQLite",),))
    assert desk.states == [completed]


async def test_a_model_that_goes_on_while_we_look_left_no_zombie(desk: Desk) -> None:
    """The part ends and the next message begins between two requests: so the part is the last that is read."""
    running, completed = (recorded(desk.version, "states", name) for name in ("running", "completed"))
    desk.listed, desk.states, desk.goes_on = [False], [running, completed], True
    assert await verdict_on(desk) == AnsweredWith((("SQLite",),))


async def test_a_part_that_never_ends_is_not_waited_for_without_end(desk: Desk) -> None:
    """Asking again later can help, and nothing is said before."""
    desk.listed = [False]
    with pytest.raises(AgentAway, match="its tool goes on"):
        await verdict_on(desk)


async def test_a_dismissal_is_proven(desk: Desk) -> None:
    """Contract 2: error "(Error: )The user dismissed this question"."""
    desk.listed, desk.busy = [False], False
    desk.states = [recorded(desk.version, "states", "dismissed")]
    assert await verdict_on(desk) == WasDismissed()


async def test_an_abort_leaves_a_zombie(desk: Desk) -> None:
    """Contract 2, Stale: listed, not in the status; the part is an error (new) or still running (old)."""
    desk.busy = False
    assert await verdict_on(desk) == Dead()
    desk.states = [recorded(desk.version, "states", "aborted")]
    assert await verdict_on(desk) == Dead()
    desk.listed = [False]
    assert await verdict_on(desk) == Dead()


async def test_a_prompt_after_an_abort_does_not_revive_it(desk: Desk) -> None:
    """Contract 2, Stale: the part is an error (new), or running while a newer message follows (old)."""
    desk.after = ["user", "assistant"]
    assert await verdict_on(desk) == Dead()
    desk.states = [recorded(desk.version, "states", "aborted")]
    assert await verdict_on(desk) == Dead()


async def test_an_earlier_step_that_looks_newer_ends_no_question(desk: Desk) -> None:
    """The clock was set back between two steps of one turn, which have the same prompt."""
    desk.after, desk.parent = ["assistant"], desk.prompt
    assert await verdict_on(desk) == StillOpen()
    desk.parent = "msg_of_another_turn"
    assert await verdict_on(desk) == Dead()


async def test_a_deleted_session_is_dead_though_listed_and_busy(desk: Desk) -> None:
    """Contract 2, Stale: after DELETE, status may still say busy."""
    desk.known = False
    assert await verdict_on(desk) == Dead()


async def test_a_restart_leaves_a_running_part(desk: Desk) -> None:
    """Contract 2, Stale: pending questions vanish without an event; the session accepts new prompts."""
    desk.listed, desk.busy = [False], False
    assert await verdict_on(desk) == Dead()
    desk.busy, desk.after = True, ["user", "assistant"]
    assert await verdict_on(desk) == Dead()


async def test_another_process_knows_nothing_of_who_is_busy(desk: Desk) -> None:
    """A terminal without a port shares its sessions with this server, not its questions."""
    desk.listed, desk.busy = [False], False
    elsewhere = replace(desk.ask, source=replace(desk.ask.source, server=""))
    assert await verdict_on(desk, of=elsewhere) == Unproven()
    desk.states = [recorded(desk.version, "states", "completed")]
    assert await verdict_on(desk, of=elsewhere) == AnsweredWith((("SQLite",),))


async def test_a_message_that_was_taken_back_asks_no_more(desk: Desk) -> None:
    """The session is there, the message is not, and nothing is listed."""
    desk.listed, desk.states = [False], [None]
    assert await verdict_on(desk) == Dead()


async def test_an_ask_without_a_tool_part_cannot_be_proven(desk: Desk) -> None:
    """Without a tool call the event is the best there is."""
    source = replace(desk.ask.source, message_id=None, call_id=None)
    desk.listed = [False]
    assert await verdict_on(desk, of=replace(desk.ask, source=source)) == Unproven()
    desk.listed = [True]
    assert await verdict_on(desk, of=replace(desk.ask, source=source)) == StillOpen()
    desk.known = False
    assert await verdict_on(desk, of=replace(desk.ask, source=source)) == Dead()


async def test_an_ask_without_a_request_id_is_found_by_its_call(desk: Desk) -> None:
    """What `tool.execute.before` announced is listed under its call id."""
    source = replace(desk.ask.source, request_id=None)
    assert await verdict_on(desk, of=replace(desk.ask, source=source)) == StillOpen()
    source = replace(source, call_id="call_other", server="")
    assert await verdict_on(desk, of=replace(desk.ask, source=source)) == Unproven()


async def test_a_server_that_is_away_gives_no_verdict(desk: Desk) -> None:
    """The error goes through: trying again can help."""

    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    async with server(refuse) as one:
        with pytest.raises(AgentAway):
            await one.verdict(desk.ask)


# context


async def test_half_a_character_in_a_title_is_survived() -> None:
    """JSON can carry it ; it becomes U+FFFD."""
    body = httpx.Response(
        200, content=b'{"id": "child", "title": "a\\ud800b"}', headers={"content-type": "application/json"}
    )
    async with server({"GET /session/child": body, "GET /session/child/message": []}) as desk:
        assert (await desk.context(child_ask())).source.session_title == "a\ufffdb"


def session_routes(**parents: str) -> dict[str, object]:
    """Return sessions with titles, each with its parent ("" for none)."""
    return {
        f"GET /session/{one}": {"id": one, "title": f"Title of {one}", "parentID": parent or None}
        for one, parent in parents.items()
    }


def child_ask(**changes: str | None) -> Ask:
    """Return an ask of a subagent's session."""
    source = Source("opencode", "laptop", "child", HERE, "que_1", "call_1", "msg_2", server="desk")
    return replace(pending(NEW), source=replace(source, **changes))  # type: ignore[arg-type]


def said(identity: str, created: int, *texts: str, role: str = "assistant", call_id: str = "") -> Json:
    """Return a message."""
    parts: list[Json] = [{"type": "text", "text": text} for text in texts]
    if call_id:
        parts.append({"type": "tool", "callID": call_id, "state": {"status": "running"}})
    return {"info": {"id": identity, "role": role, "time": {"created": created}}, "parts": parts}


async def test_an_ask_gets_titles_and_last_words() -> None:
    """For a subagent the root session's title too, by the chain of parents."""
    routes = session_routes(child="middle", middle="root", root="")
    routes["GET /session/child/message"] = [
        said("msg_1", 1, "Do it.", role="user"),
        said("msg_2", 2, "I looked. ", "\nTwo ways.", call_id="call_1"),
    ]
    async with server(routes) as desk:
        source = (await desk.context(child_ask())).source
        root = (await desk.context(child_ask(session_id="root"))).source
    assert (source.session_title, source.root_title) == ("Title of child", "Title of root")
    assert source.root_id == "root"
    assert source.last_text == "I looked. \n\n\nTwo ways."
    assert (root.session_title, root.root_title) == ("Title of root", "")


async def test_words_before_a_wordless_message_are_the_last() -> None:
    """The model may say what it found in one message and ask in the next."""
    routes = session_routes(child="")
    routes["GET /session/child/message"] = [
        said("msg_2", 2, call_id="call_1"),
        said("msg_1", 1, "I looked."),
        said("msg_0", 0, "I shall look."),
        said("msg_3", 3, "and?", role="user"),
    ]
    async with server(routes) as desk:
        assert (await desk.context(child_ask())).source.last_text == "I looked."


async def test_words_that_come_after_the_question_are_waited_for() -> None:
    """Contract 3: old: question.asked can arrive before the assistant message has its tool part."""
    routes = session_routes(child="")
    answers = [[said("msg_2", 2)], [said("msg_2", 2, "Now I ask.", call_id="call_1")]]
    routes["GET /session/child/message"] = lambda _: answers.pop(0)
    async with server(routes) as desk:
        assert (await desk.context(child_ask())).source.last_text == "Now I ask."


async def test_a_context_that_cannot_be_had_holds_nothing_up() -> None:
    """The ask goes to the phone without it; what the hook told stays."""
    async with server({}) as desk:
        ask = child_ask(session_title="from the hook", last_text="words from the hook")
        assert await desk.context(ask) == ask


async def test_a_permission_gets_the_input_of_its_call_with_one_read() -> None:
    """Its request does not tell the arguments of a tool of an MCP server; it is known in part without them."""
    call = {
        "type": "tool",
        "callID": "call_1",
        "state": {"status": "running", "input": {"sql": "DROP TABLE customers"}},
    }
    other = {**call, "callID": "call_2", "state": {"status": "running", "input": {"sql": "SELECT 1"}}}
    routes = session_routes(child="") | {"GET /session/child/message": []}
    message = {"info": {"id": "msg_2", "role": "assistant", "time": {"created": 2}}, "parts": [call, other]}
    record: Json = {"id": "per_1", "sessionID": "child", "permission": "shop_query", "patterns": ["*"], "always": ["*"]}
    record["tool"] = {"messageID": "msg_2", "callID": "call_1"}
    ask = adapter.read_permission_request(record, child_ask().source)
    seen: list[httpx.Request] = []
    async with server(routes | {"GET /session/child/message/msg_2": message}, seen) as desk:
        told = (await desk.context(ask)).permission
    async with server(routes) as desk:
        untold = (await desk.context(ask)).permission
    assert told is not None
    assert untold is not None
    assert (told.detail, told.partial) == ("sql: DROP TABLE customers", False)
    assert (untold.detail, untold.partial) == ("", True)
    assert [one.url.path for one in seen].count("/session/child/message/msg_2") == 1


async def test_parents_in_a_ring_end() -> None:
    """No session is its own grandmother, but nobody promised that."""
    routes = session_routes(child="other", other="child")
    routes["GET /session/child/message"] = []
    async with server(routes) as desk:
        assert (await desk.context(child_ask())).source.session_title == "Title of child"


@BOTH
async def test_last_words_are_cut_at_their_beginning(version: str) -> None:
    """3000 characters are kept: the end is what counts."""
    routes = session_routes(child="")
    routes["GET /session/child/message"] = [said("msg_2", 2, "x" * 5000 + "end", call_id="call_1")]
    async with server(routes) as desk:
        text = (await desk.context(child_ask())).source.last_text
    assert (len(text), text[-4:]) == (3000, "xend")


# its life


def test_no_proxy_stands_between(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the environment says of proxies is for the web, not for an agent and its password."""
    for name in ("HTTP_PROXY", "ALL_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    desk = OpenCodeServer(Api("desk", "http://desk.test"), machine="laptop")
    assert desk.api._http._mounts == {}


async def test_a_plain_url_needs_no_certificates() -> None:
    """Loading them takes longer than all else; and what is loaded for http trusts nobody."""
    context = api._tls("http://desk.test")
    assert context.get_ca_certs() == []
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert api._tls("https://desk.test").get_ca_certs() != []
