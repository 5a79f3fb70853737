"""The scripted model alone: what it says, what it remembers, how it refuses."""

import time
from typing import Any

import httpx
import pytest

from hermes.sandbox.model_server import TITLE, Json, ScriptedModel, ScriptError, script


def complete(model: ScriptedModel, *messages: Json, **more: Any) -> httpx.Response:
    """Send a conversation to the model."""
    body = {"model": "fake-model", "messages": list(messages), **more}
    return httpx.post(f"{model.base_url}/chat/completions", json=body, timeout=60, trust_env=False)


def test_the_model_answers_without_a_stream_too(model: ScriptedModel) -> None:
    """The same turn as one JSON body, words and calls together."""
    prompt = script([{"tool": "bash", "say": "First.", "call_id": "call_x"}], "whole")
    (choice,) = complete(model, {"role": "user", "content": prompt}).json()["choices"]
    assert choice["message"]["content"] == "First."
    assert choice["message"]["tool_calls"][0]["id"] == "call_x"
    assert choice["finish_reason"] == "tool_calls"


def test_the_model_keeps_its_place_by_the_conversation(model: ScriptedModel) -> None:
    """Turns since the prompt choose the step; a later prompt starts anew; results add up under a key."""
    first = {"role": "user", "content": script([{"tool": "bash"}, {"text": "second"}], "place")}
    turn = {"role": "assistant", "content": "", "tool_calls": []}
    result = {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "result one"}]}
    again = {
        "role": "user",
        "content": [{"type": "text", "text": script([], "place") + "\nremember the plan"}],
    }
    assert complete(model, first, turn, result).json()["choices"][0]["message"]["content"] == "second"
    quoted = complete(model, first, turn, result, turn, again, turn, {**result, "content": "two"})
    assert quoted.json()["choices"][0]["message"]["content"] == "FINAL: two"
    assert model.received("place") == ("result one", "two")
    assert model.turns("place") == 2


def test_the_model_gives_titles_and_lists_itself(model: ScriptedModel) -> None:
    """A title request has no tools and says what it is."""
    system = {"role": "system", "content": "You are a title generator."}
    prompt = {"role": "user", "content": script([{"text": "no"}], "title")}
    assert complete(model, system, prompt).json()["choices"][0]["message"]["content"] == TITLE
    assert model.turns("title") == 0
    listed = httpx.get(f"{model.base_url}/models", trust_env=False).json()
    assert [one["id"] for one in listed["data"]] == ["fake-model"]


def test_the_model_can_be_slow_and_can_fail(model: ScriptedModel) -> None:
    """A delay holds the answer back; a status fails it; a broken script is refused in words."""
    start = time.monotonic()
    complete(model, {"role": "user", "content": script([{"text": "late", "delay_s": 0.3}])})
    assert time.monotonic() - start >= 0.3
    assert complete(model, {"role": "user", "content": script([{"status": 503}])}).status_code == 503
    broken = complete(model, {"role": "user", "content": 'SCRIPT [{"tol": "question"}]'})
    assert broken.status_code == 400
    assert "not a list of steps" in broken.json()["error"]["message"]
    with pytest.raises(ScriptError):
        script([{"tol": "question"}])
