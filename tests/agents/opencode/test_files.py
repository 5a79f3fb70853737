"""Files as parts of a prompt, and what OpenCode tells of its models."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from hermes.agents.http import Api
from hermes.agents.opencode import files, wire
from hermes.agents.opencode.prompting import OpenCodePrompts
from hermes.agents.registry import PROMPT_ABILITIES
from hermes.agents.wire import shaped
from hermes.errors import AgentAway, AgentRefused
from hermes.model.ask import Source
from hermes.model.files import Attachment
from hermes.model.prompt import Content

PNG, PDF, TEXT = (Attachment("a", mime, b"a\xc3\xa9") for mime in ("image/png", "application/pdf", "text/plain"))
Json = dict[str, Any]


def model(name: str, *takes: str) -> Json:
    """A model that takes these beside text."""
    capabilities = {"input": {"text": True, **{kind: kind in takes for kind in ("image", "pdf")}}}
    return {"id": name, "name": name.title(), "capabilities": capabilities}


PROVIDERS: Json = {
    "providers": [
        {"id": "one", "models": {"seer": model("seer", "image"), "reader": model("reader", "pdf")}, "key": "secret"},
        {"id": "two", "models": {"seer": model("blind"), "old": {"id": "old"}}},
    ]
}


def message(role: str, created: int, *chosen: str) -> Json:
    """A message; a prompt with the ids of provider and model."""
    info: Json = {"id": f"msg_{created}", "role": role, "time": {"created": created}}
    return {"info": info | ({"model": dict(zip(("providerID", "modelID"), chosen, strict=True))} if chosen else {})}


def an_api(*messages: Json, config: Json | None = None, status: int = 200) -> Api:
    """A server with these messages, and the providers above."""
    answers: dict[str, object] = {
        "/config/providers": PROVIDERS,
        "/config": config or {},
        "/session/ses_1/message": list(messages),
    }
    transport = httpx.MockTransport(lambda request: httpx.Response(status, json=answers[request.url.path]))
    return Api("desk", "http://desk", transport=transport)


class Desk:
    """A server, as the prompts need it."""

    name = "desk"

    def __init__(self, api: Api) -> None:
        self.api = api

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} is not needed here")


async def why(api: Api, *attached: Attachment) -> str:
    """What a check of these files says; "" if it says nothing."""
    prompts = OpenCodePrompts(Desk(api))
    try:
        await prompts.check(Source("opencode", "m", "ses_1", "/shop"), Content("text", "x", files=attached))
    except AgentRefused as error:
        return error.said
    return ""


def test_a_text_is_a_text_part_and_all_else_is_data() -> None:
    """1.1.53 would put nonsense before the text of a file part."""
    assert files.part_of(TEXT) == {"type": "text", "text": "a:\n\naé"}
    assert files.part_of(PNG) == {
        "type": "file",
        "mime": "image/png",
        "filename": "a",
        "url": "data:image/png;base64,YcOp",
    }


@pytest.mark.parametrize(
    ("chosen", "attached", "said"),
    [
        (("one", "seer"), (PNG,), ""),
        (("one", "seer"), (PDF,), "the model Seer takes no PDFs"),
        (("one", "reader"), (PNG, PDF), "the model Reader takes no pictures"),
        (("two", "seer"), (PNG, PDF, TEXT), "the model Blind takes no pictures and no PDFs"),
        (("two", "seer"), (TEXT,), ""),
        (("two", "old"), (PNG,), ""),
        (("two", "other"), (PNG,), ""),
        (("nowhere", "seer"), (PNG,), ""),
    ],
)
async def test_the_model_of_the_newest_prompt_counts(
    chosen: tuple[str, str], attached: tuple[Attachment, ...], said: str
) -> None:
    """What is not told is no objection."""
    before = message("user", 1, "one", "seer")
    assert await why(an_api(message("assistant", 3), message("user", 2, *chosen), before), *attached) == said


async def test_a_new_session_has_the_model_of_the_configuration() -> None:
    """If that names one."""
    assert await why(an_api(config={"model": "two/seer"}), PNG) == "the model Blind takes no pictures"
    assert await why(an_api(config={"model": "one/seer"}), PNG) == ""
    assert await why(an_api(), PNG) == ""


async def test_an_opencode_that_does_not_tell_is_no_objection() -> None:
    """One that cannot be reached is asked again."""
    assert await why(an_api(status=404), PNG) == ""
    with pytest.raises(AgentAway):
        await why(an_api(status=503), PNG)


def test_keys_of_providers_are_not_read() -> None:
    """They are in the same answer, and must be in no log."""
    assert "secret" not in repr(shaped(wire.Providers, PROVIDERS))


def test_only_opencode_takes_files() -> None:
    """Hooks bring texts alone into the sessions of the others."""
    assert {name for name, can in PROMPT_ABILITIES.items() if can.files} == {"opencode"}
