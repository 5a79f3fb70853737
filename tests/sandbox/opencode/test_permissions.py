"""The scripted agent server asks leave as OpenCode was recorded to, in both manners, and misbehaves on demand."""

from __future__ import annotations

import io
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, get_args

import httpx
import pytest

from hermes.sandbox.opencode import server
from hermes.sandbox.opencode.events import Manner
from hermes.sandbox.opencode.server import ScriptedAgent, running_agent

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE, OTHER = "/home/dev/project", "/home/dev/other"
REJECTED = "The user rejected permission to use this specific tool call"
QUESTION: dict[str, Any] = {"question": "Which?", "header": "H", "options": [{"label": "This", "description": ""}]}
BOTH = pytest.mark.parametrize("agent", get_args(Manner), indirect=True)
OLD = pytest.mark.parametrize("agent", ["old"], indirect=True)


@pytest.fixture
def agent(request: pytest.FixtureRequest) -> Iterator[ScriptedAgent]:
    """An agent server of this manner, "new" where none is named."""
    with running_agent(manner=getattr(request, "param", "new")) as running:
        yield running


@pytest.fixture
def http(agent: ScriptedAgent) -> Iterator[httpx.Client]:
    """A client of it."""
    with httpx.Client(base_url=agent.url) as client:
        yield client


@contextmanager
def told(agent: ScriptedAgent) -> Iterator[list[dict[str, Any]]]:
    """What it tells meanwhile, without the second shape of new."""
    heard: list[dict[str, Any]] = []

    def sink(event: dict[str, Any] | None) -> None:
        if event and event["payload"]["type"] != "sync":
            heard.append(event)

    agent.sinks.add(sink)
    yield heard
    agent.sinks.discard(sink)


def of(heard: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """The properties of these events."""
    return [event["payload"]["properties"] for event in heard if event["payload"]["type"] == kind]


def listed(http: httpx.Client, directory: str = HERE) -> list[str]:
    """The ids of what is pending in this directory."""
    return [one["id"] for one in http.get("/permission", params={"directory": directory}).json()]


def say(http: httpx.Client, request: str, reply: str, **more: Any) -> httpx.Response:
    """Reply over HTTP."""
    return http.post(f"/permission/{request}/reply", json={"reply": reply, **more}, params={"directory": HERE})


def parts(http: httpx.Client, session: str) -> list[dict[str, Any]]:
    """The parts of all its messages but the user's."""
    messages = http.get(f"/session/{session}/message", params={"directory": HERE}).json()
    return [part for message in messages if message["info"]["role"] == "assistant" for part in message["parts"]]


def states(http: httpx.Client, session: str) -> list[tuple[str, str | None]]:
    """How its tool calls stand, and their errors."""
    calls = [part["state"] for part in parts(http, session) if part["type"] == "tool"]
    return [(state["status"], state.get("error")) for state in calls]


def final(http: httpx.Client, session: str) -> str | None:
    """What the model said last, if it went on."""
    newest = parts(http, session)[-1]
    return newest["text"] if newest["type"] == "text" else None


def busy(http: httpx.Client) -> list[str]:
    """The sessions at work."""
    return list(http.get("/session/status", params={"directory": HERE}).json())


def plain(agent: ScriptedAgent, feedback: str = "") -> str:
    """The error of a rejected call."""
    said = f"{REJECTED} with the following feedback: {feedback}" if feedback else f"{REJECTED}."
    return said if agent.manner == "new" else f"Error: {said}"


@BOTH
def test_its_requests_have_the_recorded_shapes(agent: ScriptedAgent, http: httpx.Client) -> None:
    """A command, a file, a folder, a page: with the metadata and the "always" of OpenCode; in creation order."""
    session = agent.session()
    command = agent.ask_permission("bash", ["rm -rf x", "npm version"], session=session)
    edit = agent.ask_permission("edit", ["new.txt"])
    folder = agent.ask_permission("external_directory", ["/etc/*"])
    page = agent.ask_permission(
        "webfetch", ["http://a/x"], metadata={"url": "http://a/x", "format": "text", "timeout": 5}
    )
    odd = agent.ask_permission("task", ["look"], metadata={"a": 1}, always=["look"])
    found = http.get("/permission").json()
    assert [one["id"] for one in found] == [command, edit, folder, page, odd]
    first, second, third, fourth, fifth = found
    assert set(first) == {"id", "sessionID", "permission", "patterns", "metadata", "always", "tool"}
    assert (first["id"][:4], len(first["id"]), first["sessionID"]) == ("per_", 30, session)
    assert (first["permission"], first["patterns"]) == ("bash", ["rm -rf x", "npm version"])
    assert first["always"] == ["rm *", "npm version *"]
    assert first["metadata"] == ({} if agent.manner == "old" else {"command": "rm -rf x && npm version"})
    assert second["metadata"]["filepath"] == f"{HERE}/new.txt"
    assert "+++ /home/dev/project/new.txt" in second["metadata"]["diff"]
    assert (second["always"], third["always"], fourth["always"]) == (["*"], ["/etc/*"], ["*"])
    assert third["metadata"]["parentDir"] == "/etc"
    assert third["metadata"]["filepath"].startswith("/etc/")
    assert (fifth["metadata"], fifth["always"]) == ({"a": 1}, ["look"])
    (call,) = parts(http, session)
    assert first["tool"] == {"messageID": call["messageID"], "callID": call["callID"]}
    assert (call["tool"], call["state"]["status"]) == ("bash", "running")
    assert call["state"]["input"]["command"] == "rm -rf x && npm version"
    tools = [parts(http, one["sessionID"])[0]["tool"] for one in found]
    assert tools == ["bash", "edit", "read", "webfetch", "task"]


@BOTH
def test_a_directory_lists_its_own(agent: ScriptedAgent, http: httpx.Client) -> None:
    """As with questions, which are not among them."""
    here, there = agent.ask_permission("bash", ["a"]), agent.ask_permission("bash", ["b"], directory=OTHER)
    asked = agent.ask([QUESTION])
    assert (listed(http), listed(http, OTHER), listed(http, "/nowhere")) == ([here], [there], [])
    assert [one["id"] for one in http.get("/question").json()] == [asked]
    assert agent.listed_permissions(OTHER)[0]["id"] == there


@BOTH
@pytest.mark.parametrize("reply", ["once", "always"])
def test_what_is_allowed_is_done(agent: ScriptedAgent, http: httpx.Client, reply: str) -> None:
    """Its call runs to its end, the model goes on, and the events say so."""
    with told(agent) as heard:
        request = agent.ask_permission("bash", ["echo one"])
        (asked,) = of(heard, "permission.asked")
        assert asked == http.get("/permission").json()[0]
        session = asked["sessionID"]
        assert (heard[-1]["payload"]["type"] == "permission.asked") is (agent.manner == "new")
        assert busy(http) == [session]
        response = say(http, request, reply)
    assert (response.status_code, response.json()) == (200, True)
    assert of(heard, "permission.replied") == [{"sessionID": session, "requestID": request, "reply": reply}]
    updates = [
        one["part"]["state"]["status"] for one in of(heard, "message.part.updated") if one["part"]["type"] == "tool"
    ]
    assert updates == ["running", "completed"]
    state = parts(http, session)[0]["state"]
    assert (state["metadata"]["output"], state["metadata"]["exit"]) == (state["output"], 0)
    assert state["time"]["start"] < state["time"]["end"]
    assert final(http, session) == f"FINAL: {state['output']}"
    assert (listed(http), busy(http), agent.came_of(request)) == ([], [], [((reply,),)])


@BOTH
def test_a_rejection_ends_the_turn(agent: ScriptedAgent, http: httpx.Client) -> None:
    """The call fails, the model is not called again; an empty message is none."""
    for more in ({}, {"message": ""}):
        request = agent.ask_permission("bash", ["echo two"])
        session = agent.permissions[request]["sessionID"]
        with told(agent) as heard:
            assert say(http, request, "reject", **more).json() is True
        assert states(http, session) == [("error", plain(agent))]
        assert of(heard, "session.idle") == [{"sessionID": session}]
        assert (final(http, session), busy(http)) == (None, [])
        assert agent.came_of(request) == [(("reject",),)]


@BOTH
def test_a_rejection_with_a_message_is_told_to_the_model(agent: ScriptedAgent, http: httpx.Client) -> None:
    """The call fails with it, and the model goes on."""
    request = agent.ask_permission("bash", ["echo three"])
    session = agent.permissions[request]["sessionID"]
    with told(agent) as heard:
        say(http, request, "reject", message='use pnpm\n"please"')
    error = plain(agent, 'use pnpm\n"please"')
    assert states(http, session) == [("error", error)]
    assert [one["status"]["type"] for one in of(heard, "session.status")] == ["busy", "idle"]
    assert (final(http, session), busy(http)) == (f"FINAL: {error}", [])
    assert agent.came_of(request) == [(("reject", 'use pnpm\n"please"'),)]


@BOTH
def test_a_rejection_rejects_all_of_the_session(agent: ScriptedAgent, http: httpx.Client) -> None:
    """What else it asks fails plainly, so its turn ends even after a message; other sessions go on asking."""
    first = agent.ask_permission("bash", ["echo a"])
    session = agent.permissions[first]["sessionID"]
    second = agent.ask_permission("bash", ["ls b"], session=session)
    other = agent.ask_permission("bash", ["echo c"])
    assert agent.permissions[first]["tool"]["messageID"] == agent.permissions[second]["tool"]["messageID"]
    with told(agent) as heard:
        say(http, first, "reject", message="no")
    replied = [(one["requestID"], one["reply"]) for one in of(heard, "permission.replied")]
    assert replied == [(first, "reject"), (second, "reject")]
    assert states(http, session) == [("error", plain(agent, "no")), ("error", plain(agent))]
    assert (final(http, session), listed(http)) == (None, [other])
    assert (agent.came_of(first), agent.came_of(second)) == ([(("reject", "no"),)], [(("reject",),)])
    assert agent.came_of(other) == []


@BOTH
def test_a_step_waits_for_all_its_calls(agent: ScriptedAgent, http: httpx.Client) -> None:
    """One allowed, one rejected with a message: the model goes on after both; a question is such a call, too."""
    first = agent.ask_permission("bash", ["echo d"])
    session = agent.permissions[first]["sessionID"]
    second = agent.ask_permission("bash", ["ls d"], session=session)
    asked = agent.ask([QUESTION], beside=first)
    say(http, first, "once")
    assert (final(http, session), busy(http), listed(http)) == (None, [session], [second])
    say(http, second, "reject", message="no")
    assert (final(http, session), busy(http)) == (None, [session])
    agent.answer(asked, [["This"]])
    text = final(http, session) or ""
    assert text.startswith("FINAL: Done: echo d\n")
    assert plain(agent, "no") in text
    assert '"Which?"="This"' in text
    assert busy(http) == []


@BOTH
def test_always_covers_its_session_at_once_and_its_directory_later(agent: ScriptedAgent, http: httpx.Client) -> None:
    """What its session asks is let go with it, what another asks stays; later asks are none, until a restart."""
    first = agent.ask_permission("bash", ["git status"])
    session = agent.permissions[first]["sessionID"]
    same = agent.ask_permission("bash", ["git status --short"], session=session)
    not_covered = agent.ask_permission("bash", ["git status", "git push"], session=session)
    elsewhere = agent.ask_permission("bash", ["git status -s"])
    with told(agent) as heard:
        say(http, first, "always")
    assert [one["requestID"] for one in of(heard, "permission.replied")] == [first, same]
    assert {one["reply"] for one in of(heard, "permission.replied")} == {"always"}
    assert listed(http) == [not_covered, elsewhere]
    assert (agent.came_of(same), agent.came_of(elsewhere)) == ([(("always",),)], [])
    later = agent.session()
    with told(agent) as heard:
        assert agent.ask_permission("bash", ["git status"], session=later) == ""
    assert of(heard, "permission.asked") == []
    assert states(http, later) == [("completed", None)]
    assert (final(http, later) or "").startswith("FINAL: Done: git status")
    assert agent.ask_permission("bash", ["git statusx"])
    assert agent.ask_permission("edit", ["git status"])
    assert agent.ask_permission("bash", ["git status"], directory=OTHER)
    agent.restart()
    assert listed(http) == []
    assert agent.ask_permission("bash", ["git status"]) in listed(http)


@BOTH
def test_a_call_asks_for_one_thing_after_the_other(agent: ScriptedAgent, http: httpx.Client) -> None:
    """The next is asked for the same call when the one before is allowed; meanwhile the call runs."""
    folder = agent.ask_permission("external_directory", ["/srv/*"], metadata={})
    session = agent.permissions[folder]["sessionID"]
    command = agent.ask_permission("bash", ["rm -rf /srv/x", "npm --version"], beside=folder)
    last = agent.ask_permission("edit", ["a"], beside=command)
    assert listed(http) == [folder]
    tool = http.get("/permission").json()[0]["tool"]
    with told(agent) as heard:
        say(http, folder, "once")
    assert [event["payload"]["type"] for event in heard] == ["permission.replied", "permission.asked"]
    (asked,) = http.get("/permission").json()
    assert (asked["id"], asked["tool"], asked["sessionID"]) == (command, tool, session)
    assert states(http, session) == [("running", None)]
    assert parts(http, session)[0]["tool"] == "bash"
    say(http, command, "once")
    assert listed(http) == [last]
    say(http, last, "reject")
    assert states(http, session) == [("error", plain(agent))]
    assert busy(http) == []


@BOTH
def test_a_rejected_call_asks_no_more(agent: ScriptedAgent, http: httpx.Client) -> None:
    """And what an "always" covers is not asked in between."""
    folder = agent.ask_permission("external_directory", ["/srv/*"])
    command = agent.ask_permission("bash", ["ls"], beside=folder)
    say(http, folder, "reject")
    assert (listed(http), agent.came_of(command)) == ([], [])
    with pytest.raises(LookupError, match="has ended"):
        agent.ask_permission("bash", ["ls"], beside=folder)
    agent.permit(agent.ask_permission("bash", ["ls"]), "always")
    folder = agent.ask_permission("external_directory", ["/srv/*"])
    session = agent.permissions[folder]["sessionID"]
    agent.ask_permission("bash", ["ls -l"], beside=folder)
    say(http, folder, "once")
    assert (listed(http), states(http, session)) == ([], [("completed", None)])


@BOTH
def test_what_cannot_be_replied_to(agent: ScriptedAgent, http: httpx.Client) -> None:
    """Odd bodies; what is unknown, answered, or asked in another directory; what is no permission's id."""
    request = agent.ask_permission("bash", ["a"])
    odd: list[object] = [{}, {"reply": "maybe"}, {"reply": 1}, {"reply": ["once"]}, [], "once", {"answers": []}]
    for body in [*odd, {"reply": "reject", "message": 1}]:
        assert http.post(f"/permission/{request}/reply", json=body).status_code == 400, body
    assert http.post("/permission/per_x/reply", json={"reply": "maybe"}).status_code == 400
    old = agent.manner == "old"
    none = say(http, request, "once", message=None)
    assert none.status_code == (400 if old else 200)
    if old:
        say(http, request, "once")
    other = agent.ask_permission("bash", ["b"])
    for one, directory in ((request, HERE), ("per_nothing", HERE), (other, OTHER)):
        said = http.post(f"/permission/{one}/reply", json={"reply": "once"}, params={"directory": directory})
        sentence = f"Permission request not found: {one}"
        missing = {"_tag": "PermissionNotFoundError", "requestID": one, "message": sentence}
        assert (said.status_code, said.json()) == ((200, True) if old else (404, missing))
    assert say(http, "que_nothing", "once").status_code == (500 if old else 400)
    assert say(http, "que_nothing", "maybe").status_code == 400
    assert listed(http) == [other]
    assert agent.came_of(request) == [(("once",),)]
    assert agent.came_of(other) == []


@BOTH
def test_an_aborted_turn_leaves_a_zombie(agent: ScriptedAgent, http: httpx.Client) -> None:
    """It stays listed; a late answer is told and does nothing, but old shows a command that was begun, and ended."""
    request = agent.ask_permission("bash", ["echo zombie"])
    edit = agent.ask_permission("edit", ["a"])
    sessions = [agent.permissions[one]["sessionID"] for one in (request, edit)]
    for session in sessions:
        agent.abort(session)
    assert listed(http) == [request, edit]
    with told(agent) as heard:
        assert say(http, request, "once").json() is True
        assert say(http, edit, "once").json() is True
    assert [one["requestID"] for one in of(heard, "permission.replied")] == [request, edit]
    ended = ("running", None) if agent.manner == "old" else ("error", "Tool execution aborted")
    assert [states(http, session) for session in sessions] == [[ended], [ended]]
    begun = [one["part"]["state"]["metadata"]["output"] for one in of(heard, "message.part.updated")]
    assert begun == ([""] if agent.manner == "old" else [])
    assert (listed(http), agent.effects, busy(http)) == ([], [], [])


@BOTH
def test_a_zombie_is_swept_and_its_always_holds(agent: ScriptedAgent, http: httpx.Client) -> None:
    """A rejection in its session clears it, an "always" to it covers what comes."""
    zombie = agent.ask_permission("bash", ["cat a"])
    session = agent.permissions[zombie]["sessionID"]
    agent.abort(session)
    live = agent.ask_permission("bash", ["ls a"], session=session)
    say(http, live, "reject")
    assert (listed(http), agent.came_of(zombie), agent.came_of(live)) == ([], [], [(("reject",),)])
    zombie = agent.ask_permission("bash", ["cat a"])
    agent.abort(agent.permissions[zombie]["sessionID"])
    say(http, zombie, "always")
    assert agent.ask_permission("bash", ["cat b"]) == ""
    assert agent.effects[1:] == []


@BOTH
def test_a_late_once_runs_in_a_deleted_session(agent: ScriptedAgent, http: httpx.Client) -> None:
    """A deletion does not stop the turn: it stays listed, and what is allowed then is done; old alone tells of it."""
    request = agent.ask_permission("bash", ["touch x"])
    session = agent.permissions[request]["sessionID"]
    agent.delete(session)
    assert listed(http) == [request]
    assert http.get(f"/session/{session}").status_code == 404
    with told(agent) as heard:
        say(http, request, "once")
    assert agent.came_of(request) == [(("once",),)]
    kinds = [event["payload"]["type"] for event in heard]
    assert kinds[0] == "permission.replied"
    assert kinds[-1] == "session.idle"
    assert ("message.part.updated" in kinds) is (agent.manner == "old")
    assert "message.updated" not in kinds


@BOTH
def test_a_restart_loses_all_and_tells_nobody(agent: ScriptedAgent, http: httpx.Client) -> None:
    """What was asked, what was to be asked next, and what was answered and had not begun."""
    agent.hold_tools()
    request, answered = agent.ask_permission("bash", ["a"]), agent.ask_permission("bash", ["b"])
    say(http, answered, "once")
    session = agent.permissions[request]["sessionID"]
    with told(agent) as heard:
        agent.restart()
        agent.release_tools()
    assert (heard, listed(http), agent.effects) == ([], [], [])
    assert states(http, session) == [("running", None)]
    assert (agent.allowed_by(request), agent.allowed_by(answered)) == (None, "once")
    response = say(http, request, "once")
    assert response.status_code == (200 if agent.manner == "old" else 404)


@BOTH
def test_new_stumbles_over_a_fetch_without_timeout(agent: ScriptedAgent, http: httpx.Client) -> None:
    """Its whole list fails, in that directory alone; the event and the reply are as ever."""
    agent.ask_permission("bash", ["a"])
    with told(agent) as heard:
        request = agent.ask_permission("webfetch", ["http://a/x"])
    agent.ask_permission("bash", ["a"], directory=OTHER)
    assert of(heard, "permission.asked")[0]["metadata"] == {"url": "http://a/x", "format": "text"}
    response = http.get("/permission")
    if agent.manner == "old":
        assert response.status_code == 200
    else:
        at = 'Expected JSON value, got undefined\n  at [1]["metadata"]["timeout"]'
        assert response.status_code == 400
        assert response.json() == {"name": "BadRequest", "data": {"message": at, "kind": "Body"}}
    assert len(listed(http, OTHER)) == 1
    assert say(http, request, "once").json() is True
    assert agent.came_of(request) == [(("once",),)]
    assert len(listed(http)) == 1


@BOTH
def test_a_tool_may_take_its_time(agent: ScriptedAgent, http: httpx.Client) -> None:
    """Between the reply and the end of the call it is not listed and not done; an abort then loses it."""
    agent.hold_tools()
    done, lost = agent.ask_permission("bash", ["a"]), agent.ask_permission("bash", ["b"])
    sessions = [agent.permissions[one]["sessionID"] for one in (done, lost)]
    with told(agent) as heard:
        say(http, done, "once")
        say(http, lost, "reject", message="no")
    assert len(of(heard, "permission.replied")) == 2
    assert (listed(http), agent.effects, busy(http)) == ([], [], sessions)
    assert [states(http, session) for session in sessions] == [[("running", None)]] * 2
    agent.abort(sessions[1])
    later = agent.ask_permission("edit", ["c"], beside=done)
    agent.release_tools()
    assert (agent.came_of(done), agent.came_of(lost)) == ([(("once",),)], [])
    assert listed(http) == [later]
    assert (agent.allowed_by(done), agent.allowed_by(lost), agent.allowed_by(later)) == ("once", None, None)
    agent.permit(later, "once")
    assert states(http, sessions[0]) == [("completed", None)]


@BOTH
def test_events_are_held_back_doubled_and_lost(agent: ScriptedAgent, http: httpx.Client) -> None:
    """An event held back tells what was when it happened."""
    agent.double_events(on=True)
    with told(agent) as heard:
        agent.hold_events()
        request = agent.ask_permission("bash", ["a"])
        say(http, request, "once")
        assert heard == []
        agent.release_events()
        assert len(of(heard, "permission.asked")) == len(of(heard, "permission.replied")) == 2
        assert of(heard, "message.part.updated")[0]["part"]["state"]["status"] == "running"
        agent.hold_events()
        agent.ask_permission("bash", ["b"])
        agent.release_events(lost=True)
        assert len(of(heard, "permission.asked")) == 2


@BOTH
def test_faults_befall_what_they_name(agent: ScriptedAgent, http: httpx.Client) -> None:
    """The list and the reply have names of their own; a lie is `true` for nothing, a cut may come after the deed."""
    request = agent.ask_permission("bash", ["a"])
    agent.fault("permissions", status=503)
    agent.fault("permit", status=502)
    agent.fault("permit", "lie")
    assert http.get("/question").json() == []
    assert http.get("/permission").status_code == 503
    assert listed(http) == [request]
    assert say(http, request, "once").status_code == 502
    assert say(http, request, "once").json() is True
    agent.fault("permit", "cut")
    with pytest.raises(httpx.TransportError):
        say(http, request, "once")
    assert agent.effects == []
    agent.fault("permit", "slow", delay_s=0.01)
    agent.fault("permit", "cut_after")
    say(http, agent.ask_permission("edit", ["b"]), "once")
    with pytest.raises(httpx.TransportError):
        say(http, request, "reject", message="no")
    assert agent.came_of(request) == [(("reject", "no"),)]
    assert [one.body for one in agent.received if one.route == "permit"][-1] == {"reply": "reject", "message": "no"}
    agent.away()
    with pytest.raises(httpx.TransportError):
        listed(http)
    agent.back()
    assert listed(http) == []


@BOTH
def test_at_the_desk_it_is_the_same(agent: ScriptedAgent, http: httpx.Client) -> None:
    """Whoever is first answers; what is impossible is said."""
    request = agent.ask_permission("bash", ["a"])
    with told(agent) as heard:
        agent.permit(request, "reject", "Not now.")
    assert of(heard, "permission.replied")[0]["reply"] == "reject"
    assert say(http, request, "once").status_code == (200 if agent.manner == "old" else 404)
    assert agent.came_of(request) == [(("reject", "Not now."),)]
    with pytest.raises(LookupError, match="nothing is asked"):
        agent.permit(request, "once")
    with pytest.raises(ValueError, match="maybe"):
        agent.permit(agent.ask_permission("bash", ["a"]), "maybe")  # type: ignore[arg-type]


def test_it_takes_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """A process of its own asks leave, lists it, and is answered at its desk."""
    wishes = [
        {"do": "ask_permission", "kind": "bash", "patterns": ["echo one"]},
        {"do": "listed_permissions", "directory": HERE},
        {"do": "permit", "request_id": "per_0", "reply": "once"},
    ]
    server.main(["--directory", HERE], environ={}, stdin=io.StringIO("\n".join(map(json.dumps, wishes))))
    _, asked, found, none = map(json.loads, capsys.readouterr().out.splitlines())
    assert [one["id"] for one in found["done"]] == [asked["done"]]
    assert "per_0" in none["error"]
