"""The prompts of the stand-in, as the contract describes them and as no recording shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import httpx
import pytest

from hermes.sandbox.opencode2.server import OpenCode2Agent, running_opencode2
from hermes.sandbox.opencode2.turns import Shape

if TYPE_CHECKING:
    from collections.abc import Iterator

AUGUST, RELEASED = get_args(Shape)


def running(shape: Shape) -> Iterator[tuple[OpenCode2Agent, httpx.Client]]:
    """Run a stand-in, and yield it with a client of it."""
    with running_opencode2(shape=shape) as agent:
        auth = ("opencode", agent.password)
        with httpx.Client(base_url=f"{agent.url}/api", auth=auth, trust_env=False) as http:
            yield agent, http


@pytest.fixture(params=(AUGUST, RELEASED))
def either(request: pytest.FixtureRequest) -> Iterator[tuple[OpenCode2Agent, httpx.Client]]:
    """A stand-in of each shape."""
    yield from running(request.param)


@pytest.fixture
def released() -> Iterator[tuple[OpenCode2Agent, httpx.Client]]:
    """A stand-in of 2.0.26."""
    yield from running(RELEASED)


def sent(http: httpx.Client, session: str, **body: Any) -> httpx.Response:
    """Send a prompt."""
    return http.post(f"/session/{session}/prompt", json={"text": "do it", **body})


def test_the_events_of_two_prompts(either: tuple[OpenCode2Agent, httpx.Client]) -> None:
    """P:13: admitted, started, taken; the one that queues is taken once the turn before it is over."""
    agent, http = either
    session, events = agent.session(), list[Any]()
    agent.sinks.add(events.append)
    sent(http, session, id="msg_1")
    sent(http, session, id="msg_2", delivery="queue")
    agent.say(session, "One.")
    agent.say(session, "Two.")
    kinds = [one["type"].removeprefix("session.") for one in events]
    admitted, taken = ("input.admitted", "input.promoted")
    if agent.shape == "released":
        admitted, taken = ("inbox.enqueued", "inbox.delivered")
    first = [admitted, "execution.started", taken, admitted, "step.started"]
    assert kinds == [*first, taken, "step.started", "execution.succeeded"]
    key = "inputID" if agent.shape == "august" else "inboxID"
    assert [one["data"][key] for one in events if key in one["data"]] == ["msg_1", "msg_1", "msg_2", "msg_2"]
    agent.sinks.clear()


def test_the_record_of_2_0_26(released: tuple[OpenCode2Agent, httpx.Client]) -> None:
    """Other keys, and the first record for another text under the same id; in another session it is a conflict."""
    agent, http = released
    session = agent.session()
    first = sent(http, session, id="msg_1", metadata={"by": "me"}).json()["data"]
    assert first.pop("time").keys() == {"created"}
    payload = {"text": "do it", "metadata": {"by": "me"}}
    assert first == {"id": "msg_1", "sessionID": session, "type": "user", "delivery": "steer", "payload": payload}
    again = sent(http, session, id="msg_1", text="another")
    assert (again.status_code, again.json()["data"]["payload"]) == (200, payload)
    assert sent(http, agent.session(), id="msg_1").status_code == 409


def test_the_inbox_of_2_0_26(released: tuple[OpenCode2Agent, httpx.Client]) -> None:
    """Its prompts can be withdrawn, and made to join the turn; what is not there is a no-op, or a conflict."""
    agent, http = released
    session = agent.session()
    for number in range(3):
        sent(http, session, id=f"msg_{number}", delivery="queue")
    inbox = f"/session/{session}/inbox"
    assert [one["id"] for one in http.get(inbox).json()["data"]] == ["msg_1", "msg_2"]
    assert http.patch(f"{inbox}/msg_2", json={"delivery": "steer"}).status_code == 204
    assert http.patch(f"{inbox}/msg_2", json={"delivery": "steer"}).status_code == 409
    assert http.patch(f"{inbox}/msg_1", json={"delivery": "later"}).status_code == 400
    assert [http.delete(f"{inbox}/{one}").status_code for one in ("msg_1", "msg_1")] == [204, 204]
    agent.use_tool(session, "shell")
    assert (agent.inbox(session), agent.texts_of(session)) == ([], ["do it", "do it"])
    assert http.get(f"/session/{session}/pending").content == b""


@pytest.mark.parametrize(("resume", "left"), [("false", ["msg_2", "msg_3"]), ("true", ["msg_3"])])
def test_an_interrupt_of_2_0_26(released: tuple[OpenCode2Agent, httpx.Client], resume: str, left: list[str]) -> None:
    """It says whether a turn ran; what queues stays in the inbox, and with `resume` what steers goes on."""
    agent, http = released
    session = agent.session()
    path = f"/session/{session}/interrupt?resume={resume}"
    assert http.post(path).json() == {"interrupted": False}
    sent(http, session, id="msg_1")
    agent.use_tool(session, "shell")
    sent(http, session, id="msg_2")
    sent(http, session, id="msg_3", delivery="queue")
    assert http.post(path).json() == {"interrupted": True}
    assert [one["id"] for one in agent.inbox(session)] == left
    assert agent.is_active(session) is (resume == "true")


def test_a_prompt_that_shall_not_start_waits_for_the_next(either: tuple[OpenCode2Agent, httpx.Client]) -> None:
    """`resume: false` keeps it; the same prompt again wakes the session."""
    agent, http = either
    session = agent.session()
    sent(http, session, id="msg_1", resume=False)
    assert not agent.is_active(session)
    sent(http, session, id="msg_1")
    assert agent.is_active(session)
    agent.say(session, "Done.")
    assert agent.texts_of(session) == ["do it"]


def test_an_id_of_another_kind_is_refused(either: tuple[OpenCode2Agent, httpx.Client]) -> None:
    """Of a prompt and of a session; the id of a message of the model is a conflict."""
    agent, http = either
    session = agent.session()
    assert sent(http, session, id="ses_1").json()["kind"] == "Payload"
    assert http.post("/session", json={"id": "msg_1"}).json()["kind"] == "Payload"
    assert sent(http, session, id=agent.use_tool(session, "shell")).status_code == 409


def test_the_sessions_of_a_parent(either: tuple[OpenCode2Agent, httpx.Client]) -> None:
    """The roots, and the children of one."""
    agent, http = either
    root = agent.session()
    child = agent.session(parent=root)
    for parent, found in (("null", root), (root, child)):
        assert [one["id"] for one in http.get(f"/session?parentID={parent}").json()["data"]] == [found]
