"""A recording of an OpenCode 2: it tells how the server answers, and nothing of what people and models wrote."""

from __future__ import annotations

import asyncio
import copy
import json
from typing import TYPE_CHECKING, Any, get_args

import pytest

from hermes.agents.opencode2.discovery import Address
from hermes.agents.opencode2.recording import record
from hermes.errors import AgentAway
from hermes.sandbox.opencode2.server import running_opencode2
from hermes.sandbox.opencode2.turns import Shape
from tests.sandbox.opencode2.compare import differences, known, main

if TYPE_CHECKING:
    from pathlib import Path

WORD = "Zanzibar"
"""It stands in all that a person, a model, a tool or a project chooses."""


@pytest.fixture(params=get_args(Shape))
def shape(request: pytest.FixtureRequest) -> Shape:
    """Each shape that was described."""
    told: Shape = request.param
    return told


async def test_nothing_that_anybody_wrote_is_in_it(shape: Shape) -> None:
    """Titles, questions, labels, folders, commands, keys of metadata and of inputs, the password, and ids."""
    asked = {"question": f"{WORD}?", "header": WORD, "options": [{"label": WORD, "description": WORD}]}
    with running_opencode2(shape=shape, password=WORD, directory=f"/home/{WORD}") as agent:
        session = agent.session(WORD)
        form = agent.ask([asked], session=session, say=WORD)
        agent.ask_permission(WORD, [WORD], given={WORD: {WORD: WORD}, "command": WORD}, save=[WORD])
        metadata = {"kind": "mcp-elicitation", "server": WORD, "message": WORD, WORD: {WORD: [WORD, 37]}, "type": WORD}
        agent.form([{"key": WORD, "type": "string", "title": WORD}], session="global", metadata=metadata)
        told = json.dumps(await record(Address(agent.url, agent.password)))
        assert [event for event in agent.received if event.method != "GET"] == []
    assert WORD not in told
    assert form not in told
    assert session not in told
    for kept in ('"status": "pending"', '"string"', '"mcp-elicitation"', '"key": "q0"'):
        assert kept in told


async def test_the_stand_in_differs_from_the_other_shape_alone() -> None:
    """Its own recording has no difference; the one of the other shape has those of the contract."""
    august, released = await known("august"), await known("released")
    assert differences(august, august) == differences(released, released) == []
    found = differences(august, released)
    assert "there is no DELETE /api/session/{session}/form/{form}" in found
    assert "GET /api/info: 404 instead of 200" in found


async def test_a_version_of_tomorrow_is_told_apart(shape: Shape) -> None:
    """A key that is gone, a value of another type, another refusal; a key more is none."""
    told = await known(shape)
    changed = copy.deepcopy(told)
    routes = {one["route"]: one for one in changed["answers"]}
    listed = "GET /api/form" if shape == "released" else "GET /api/form/request"
    (form, *_) = routes[listed]["body"]["data"]
    del form["fields"][0]["options"][0]["value"]
    form["fields"][0]["custom"] = "text"
    form["more"] = "text"
    (refused,) = [one for one in changed["answers"] if one["route"] == "GET /api/session/ID" and one["status"] == 404]
    refused["body"]["_tag"] = "Gone"
    assert differences(changed, told) == [
        f"{listed}: data: fields: options: value is missing",
        f"{listed}: data: fields: custom: str instead of bool",
        "GET /api/session/ID: _tag: Gone instead of SessionNotFoundError",
    ]


async def test_a_server_that_does_not_answer_is_not_recorded() -> None:
    """Nothing is written down that was not seen."""
    with running_opencode2() as agent:
        address = Address(agent.url, agent.password)
    with pytest.raises(AgentAway):
        await record(address)


async def test_one_route_that_breaks_does_not_end_it(shape: Shape) -> None:
    """It has status 0."""
    with running_opencode2(shape=shape) as agent:
        agent.fault("active", "cut")
        told = await record(Address(agent.url, agent.password))
    statuses: dict[str, Any] = {one["route"]: one["status"] for one in told["answers"]}
    assert statuses["GET /api/session/active"] == 0
    assert statuses["GET /api/session"] == 200


def test_one_command_compares(tmp_path: Path, capsys: pytest.CaptureFixture[str], shape: Shape) -> None:
    """It names version, shape and differences."""
    file = tmp_path / "recorded.json"
    told = asyncio.run(known(shape))
    file.write_text(json.dumps(told))
    assert main([str(file)]) == 0
    assert f"against the shape '{shape}': 0 differences" in capsys.readouterr().out
    told["event"] = None
    file.write_text(json.dumps(told))
    assert main([str(file)]) == 1
    assert "its first event: NoneType instead of dict" in capsys.readouterr().out
