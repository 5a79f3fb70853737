"""Which OpenCode gets the prompts of a session, if several have the plugin, and what is said if none does."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hermes import disk
from hermes.agents.opencode.plugin_prompts import CLOSED, UNKNOWN, PluginPrompts, owner_of
from hermes.errors import AgentAway, AgentRefused, NotThere
from hermes.hook.plugin_folders import Plugin
from hermes.model.ask import Source
from hermes.model.prompt import Content, Sight
from tests.hook.test_plugin_folders import a_folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

HERE, THERE = "/home/dev/here", "/home/dev/there"
ENDED = 2**22 + 1
"""No process has this number."""
Json = dict[str, Any]


def plugin(name: str, *directories: str, is_alive: bool = True, **sessions: float) -> Plugin:
    """Return a plugin."""
    return Plugin(name, 7, "", directories or (HERE,), sessions, is_alive)


@pytest.mark.parametrize(
    ("known", "owner"),
    [
        ([], None),
        ([plugin("a", THERE, ses_1=9.0)], None),
        ([plugin("a")], "a"),
        ([plugin("a", ses_1=1.0), plugin("b", ses_1=2.0)], "b"),
        ([plugin("a", ses_1=1.0), plugin("b", ses_2=9.0)], "a"),
        ([plugin("a", ses_1=1.0), plugin("b", ses_1=2.0, is_alive=False)], "a"),
        ([plugin("a", ses_1=1.0, is_alive=False)], None),
        ([plugin("a", ses_1=9.0, is_alive=False), plugin("b"), plugin("c", ses_2=1.0)], "c"),
        ([plugin("a"), plugin("b", THERE, HERE)], "b"),
    ],
)
def test_a_session_belongs_to_the_live_process_that_worked_on_it_last(known: list[Plugin], owner: str | None) -> None:
    """Else to the one of its folder that was used last; in whatever order they are found."""
    for order in (known, known[::-1]):
        found = owner_of("ses_1", HERE, order)
        assert (found and found.folder) == owner


class Desk:
    """Plugins that answer from a table, by directory and path; `calls` are the calls that they took."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.calls: list[Json] = []
        self.answers: dict[str, Json] = {}

    def plug(self, name: str, answers: Json, **told: Any) -> Path:
        """Add a plugin."""
        self.answers[name] = answers
        return a_folder(self.root, name, **told)

    async def serve(self) -> None:
        """Answer what comes."""
        while True:
            for name, answers in self.answers.items():
                for path in sorted((self.root / "plugins" / name / "in").glob("*.json")):
                    call = json.loads(path.read_text())
                    path.unlink()
                    self.calls.append(call | {"plugin": name})
                    answer = answers.get(call["path"])
                    told = {"status": 404} if answer is None else {"status": 200, "type": "application/json"}
                    disk.write(path.parents[1] / "out" / path.name, json.dumps(told | _body(answer)).encode())
            await asyncio.sleep(0.005)


def _body(answer: object) -> Json:
    return {} if answer is None else {"body": json.dumps(answer)}


def a_session(name: str, directory: str = HERE, updated: float = 5_000.0, **more: Any) -> Json:
    """Return a session as OpenCode lists it."""
    return {"id": name, "title": name, "directory": directory, "time": {"created": 1, "updated": updated}, **more}


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    """A store whose plugins answer."""
    made = Desk(tmp_path / "store")
    serving = asyncio.create_task(made.serve())
    yield made
    serving.cancel()


def way(desk: Desk, patience_s: float = 30.0) -> PluginPrompts:
    """Return the way to the sessions of these plugins."""
    return PluginPrompts(desk.root, agent="opencode", machine="laptop", host="Laptop", patience_s=patience_s)


def source(session: str, directory: str = HERE) -> Source:
    """Return the origin of a session."""
    return Source("opencode", "laptop", session, directory=directory)


async def test_sessions_are_listed_once_by_their_owners(desk: Desk) -> None:
    """Each process is asked about its own folders alone: to ask about another one would open that there."""
    everything = [
        a_session("ses_1"),
        a_session("ses_2"),
        a_session("ses_old", updated=1.0),
        a_session("ses_child", parentID="ses_1"),
        a_session("ses_elsewhere", f"{HERE}/below"),
    ]
    desk.plug("a", {"/session": everything, "/session/status": {}}, directories=[HERE], sessions={"ses_1": 1.0})
    busy = {"ses_2": {"type": "busy"}}
    desk.plug("b", {"/session": everything, "/session/status": busy}, directories=[HERE], sessions={"ses_2": 2.0})
    there = [a_session("ses_3", THERE)]
    desk.plug("c", {"/session": there, "/session/status": {}}, directories=[THERE], sessions={})
    desk.plug("ended", {}, pid=ENDED, directories=[HERE], sessions={"ses_1": 9.0})
    found = {one.target.source.session_id: one for one in await way(desk).listed(2.0)}
    assert {name: (one.state, one.is_own) for name, one in found.items()} == {
        "ses_1": ("idle", True),
        "ses_2": ("busy", True),
        "ses_3": ("idle", False),
    }
    assert found["ses_3"].target.source == Source(
        "opencode", "laptop", "ses_3", directory=THERE, session_title="ses_3", host="Laptop"
    )
    assert {(call["plugin"], call["directory"]) for call in desk.calls} == {("a", HERE), ("b", HERE), ("c", THERE)}


@pytest.mark.long
async def test_one_that_is_silent_takes_the_sessions_of_the_others_from_nobody(desk: Desk) -> None:
    """If none answers, the phone says so."""
    a_folder(desk.root, "silent")
    with pytest.raises(AgentAway):
        await way(desk, 0.1).listed(0.0)
    desk.plug("a", {"/session": [a_session("ses_1")], "/session/status": {}}, directories=[HERE])
    assert [one.target.source.session_id for one in await way(desk, 3.0).listed(0.0)] == ["ses_1"]
    assert not list((desk.root / "plugins" / "silent" / "in").iterdir()), "what nobody took was withdrawn"


async def test_without_any_plugin_nothing_is_listed(desk: Desk) -> None:
    """Nor is anybody said to be silent."""
    assert await way(desk).listed(0.0) == ()
    desk.plug("ended", {}, pid=ENDED)
    assert await way(desk).listed(0.0) == ()


async def test_a_session_whose_process_ended_is_gone(desk: Desk) -> None:
    """It is said why; another one of the same folder takes it over."""
    desk.plug("ended", {}, pid=ENDED, directories=[HERE], sessions={"ses_1": 9.0})
    assert await way(desk).look(source("ses_1"), "") == Sight("gone", reason=CLOSED, is_own=True)
    assert await way(desk).look(source("ses_2"), "") == Sight("gone", reason=UNKNOWN)
    desk.plug("elsewhere", {}, directories=["/elsewhere"], sessions={"ses_1": 5.0})
    assert not (await way(desk).look(source("ses_1"), "")).is_own, "a process that lives has worked on it, too"
    acts: tuple[Callable[[PluginPrompts], Any], ...] = (
        lambda one: one.send(source("ses_1"), "msg_1", Content("text", "x")),
        lambda one: one.stop(source("ses_1")),
        lambda one: one.words(source("ses_1")),
        lambda one: one.new_session(HERE),
    )
    for act in acts:
        with pytest.raises(NotThere) as refused:
            await act(way(desk))
        assert refused.value.said in {CLOSED, UNKNOWN}
    taken = {"/session/ses_1": a_session("ses_1"), "/session/status": {}, "/session/ses_1/message": []}
    desk.plug("other", taken, directories=[HERE], sessions={})
    taken_over = await way(desk).look(source("ses_1"), "")
    assert (taken_over.session, taken_over.is_own) == ("idle", False)
    with pytest.raises(NotThere):
        await way(desk).look(source("ses_deleted"), "")


async def test_a_command_that_is_not_there_is_said_before_it_is_sent(desk: Desk) -> None:
    """The check asks the process that has the session."""
    desk.plug("here", {"/command": [{"name": "fine", "template": "Fine"}]}, directories=[HERE], sessions={"ses_1": 1.0})
    with pytest.raises(AgentRefused) as caught:
        await way(desk).check(source("ses_1"), Content("command", "", "nobody"))
    assert caught.value.said == "there is no command “nobody”; you can send: fine"


async def test_a_slow_process_keeps_its_sessions(desk: Desk) -> None:
    """While it lives, no other one is asked: both would work on the session at once."""
    desk.plug("other", {"/session/ses_1": a_session("ses_1")}, directories=[HERE], sessions={})
    folder = a_folder(desk.root, "slow", directories=[HERE], sessions={"ses_1": 1.0}, pid=os.getpid())
    looking = asyncio.create_task(way(desk).look(source("ses_1"), ""))
    await asyncio.sleep(0.2)
    assert len(list((folder / "in").iterdir())) == 1
    assert desk.calls == []
    looking.cancel()
