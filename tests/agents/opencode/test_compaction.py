"""Whose prompt a step of the model answers, although OpenCode summed up the session before it."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.agents.opencode import turns
from hermes.agents.opencode.wire import TurnMessage
from hermes.agents.wire import shaped
from hermes.model.prompt import Sight

TEXT = {"type": "text", "text": "x"}
SYNTHETIC = {**TEXT, "synthetic": True}
RUNS = {"created": 3000}
FAILED = {"name": "ContextOverflowError", "data": {"message": "Too long"}}


def message(name: str, *parts: dict[str, Any], parent: str = "", **info: Any) -> TurnMessage:
    """Return a message with the next time: one of the model if it has a parent."""
    at_ms = int(name[1:]) * 1000
    head: dict[str, Any] = {"id": name, "role": "user", "time": {"created": at_ms}}
    if parent:
        head |= {"role": "assistant", "parentID": parent, "time": {"created": at_ms, "completed": at_ms + 500}}
    return shaped(TurnMessage, {"info": head | info, "parts": [*parts]})


def person(name: str) -> TurnMessage:
    """Return a prompt of a person."""
    return message(name, TEXT)


def step(name: str, parent: str, finish: str = "tool-calls") -> TurnMessage:
    """Return a step that has ended."""
    return message(name, TEXT, parent=parent, finish=finish)


def summed_up(name: str, *, auto: bool = True, overflow: bool = False, **info: Any) -> list[TurnMessage]:
    """Return the prompt that asks for a summary, and the summary, which have two times."""
    asked = message(name, {"type": "compaction", "auto": auto, "overflow": overflow})
    return [asked, message(f"b{int(name[1:]) + 1}", TEXT, parent=name, summary=True, finish="stop", **info)]


def continued(name: str) -> TurnMessage:
    """Return the prompt by which OpenCode lets the model go on."""
    return message(name, SYNTHETIC)


BEFORE = [person("a1"), step("b2", "a1"), *summed_up("c3")]
CASES = [
    pytest.param([person("a1"), step("b2", "a1"), person("a3"), step("b4", "a3")], "a3", id="no summary"),
    pytest.param([*BEFORE, continued("d5"), step("b6", "d5")], "a1", id="it goes on"),
    pytest.param(
        [*BEFORE, continued("d5"), step("b6", "d5"), *summed_up("c7"), continued("d9"), step("b10", "d9")],
        "a1",
        id="it goes on twice",
    ),
    pytest.param([*BEFORE[1:], continued("d5"), step("b6", "d5")], "a1", id="the prompt is before the messages"),
    pytest.param([person("a1"), *summed_up("c2"), continued("d4"), step("b5", "d4")], "a1", id="before the first step"),
    pytest.param(
        [person("a1"), *summed_up("c2", overflow=True), person("d4"), step("b5", "d4")], "a1", id="the prompt repeated"
    ),
    pytest.param(
        [person("a1"), *summed_up("c2", overflow=True), person("d4"), person("a5"), step("b6", "a5")],
        "a5",
        id="a prompt after the repeated one",
    ),
    pytest.param(
        [person("a1"), *summed_up("c2", overflow=True, time=RUNS), person("a4"), step("b5", "a4")],
        "a4",
        id="a summary that was cut off",
    ),
    pytest.param([*BEFORE, continued("d5"), person("a6"), step("b7", "a6")], "a6", id="a further prompt"),
    pytest.param([*BEFORE, person("a5"), step("b6", "a5")], "a5", id="a prompt right after a summary"),
    pytest.param([*BEFORE, person("a5"), continued("d6"), step("b7", "d6")], "a5", id="a prompt during a summary"),
    pytest.param(
        [person("a1"), *summed_up("c2", auto=False), continued("d4"), step("b5", "d4")],
        "d4",
        id="a summary for a person",
    ),
    pytest.param(
        [person("a1"), *summed_up("c2", overflow=True, error=FAILED), person("a4"), step("b5", "a4")],
        "a4",
        id="a summary that failed",
    ),
    pytest.param(
        [*BEFORE, continued("d5"), step("b6", "d5", "stop"), continued("d7"), step("b8", "d7")], "d7", id="a shell"
    ),
    pytest.param([continued("d5"), step("b6", "d5")], "d5", id="nothing before it"),
    pytest.param([message("b6", TEXT, parent="d5")], "d5", id="one message"),
]


@pytest.mark.parametrize(("messages", "prompt_id"), CASES)
def test_the_prompt_that_the_last_step_answers(messages: list[TurnMessage], prompt_id: str) -> None:
    """A person's, however often OpenCode summed up the session since then."""
    asked = turns.asked_by(messages)
    assert asked[messages[-1].info.id] == prompt_id
    assert asked.keys() == {one.info.id for one in messages}


FINAL = [person("a1"), step("b2", "a1", "stop")]
SIGHTS = [
    pytest.param(BEFORE[:3], True, Sight("busy", "running"), id="a summary is asked for"),
    pytest.param(BEFORE, True, Sight("busy", "running"), id="it is summed up"),
    pytest.param([*BEFORE, continued("d5")], True, Sight("busy", "running"), id="it is to go on"),
    pytest.param([*BEFORE, continued("d5"), step("b6", "d5")], True, Sight("busy", "running"), id="it goes on"),
    pytest.param(
        [*BEFORE, continued("d5"), step("b6", "d5", "stop")], True, Sight("busy", "finished", ended_s=6.5), id="the end"
    ),
    pytest.param(
        [*BEFORE, continued("d5"), step("b6", "d5", "stop"), person("a7"), step("b8", "a7", "stop")],
        False,
        Sight("idle", "finished", ended_s=6.5),
        id="a further turn",
    ),
    pytest.param(FINAL, True, Sight("busy", "finished", ended_s=2.5), id="the answer"),
    pytest.param([*FINAL, *summed_up("c3")], True, Sight("busy", "running"), id="a summary after the answer"),
    pytest.param(
        [*FINAL, *summed_up("c3")], False, Sight("idle", "finished", ended_s=2.5), id="a summary after the answer, idle"
    ),
    pytest.param(
        [person("a1"), step("b2", "a1"), *summed_up("c3", error=FAILED)],
        False,
        Sight("idle", "failed", reason="Too long", ended_s=4.5),
        id="a summary that failed",
    ),
    pytest.param(BEFORE, False, Sight("idle", "stopped", ended_s=2.5), id="it does not go on"),
]


@pytest.mark.parametrize(("messages", "is_busy", "sight"), SIGHTS)
def test_what_the_messages_tell_of_a_prompt(messages: list[TurnMessage], *, is_busy: bool, sight: Sight) -> None:
    """It is not over as long as the turn goes on."""
    assert turns.sight_of(messages, "a1", is_busy=is_busy) == sight
