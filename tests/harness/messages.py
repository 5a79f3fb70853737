"""The scripted model behind Anthropic's Messages API, on loopback: the steps of `hermes.sandbox.model_server`.

Only a request that brings tools is a turn of the script; what an agent asks besides (a title, a summary) gets one
short text, in the JSON that Claude Code wants of a title.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from hermes.sandbox.model_server import MODEL_ID, ScriptedModel, Step, in_thread, plain_text

Json = dict[str, Any]


class MessagesModel(ScriptedModel):
    """`base_url` is what ANTHROPIC_BASE_URL wants."""

    def __init__(self, base_url: str) -> None:
        super().__init__(base_url)
        self._latest = ""

    def has_read(self, words: str) -> bool:
        """Tell whether the latest request had these words in its conversation, whoever said them."""
        return words in self._latest

    def answer(self, body: Json) -> Step:
        """Take one request in and return the turn that answers it. Raises ScriptError."""
        if not body.get("tools"):
            return Step(text='{"title": "A scripted session"}')
        self._latest = json.dumps(body.get("messages"), ensure_ascii=False)
        tools = [{"function": {"name": tool.get("name", "")}} for tool in body["tools"]]
        return self.play({"messages": list(as_chat(body.get("messages") or ())), "tools": tools})


def as_chat(messages: Sequence[Json]) -> Iterator[Json]:
    """Yield the conversation as the chat API has it: each tool result a message of its own."""
    for message in messages:
        content = message.get("content")
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        results = [block for block in blocks if block.get("type") == "tool_result"]
        for result in results:
            yield {"role": "tool", "content": plain_text(result.get("content"))}
        if rest := [block for block in blocks if block not in results]:
            yield {"role": message.get("role"), "content": rest}


def _blocks(step: Step) -> Iterator[tuple[Json, list[Json]]]:
    """Yield each content block as it begins, and its deltas."""
    if words := step.say + step.text:
        pieces = re.findall(r"\S+\s*|\s+", words)
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces]
    for call in step.calls():
        identity = call.call_id or f"toolu_{uuid.uuid4().hex[:24]}"
        given = json.dumps(call.args, ensure_ascii=False)
        began = {"type": "tool_use", "id": identity, "name": call.tool, "input": {}}
        yield began, [{"type": "input_json_delta", "partial_json": given}]


def _events(step: Step, model: str) -> Iterator[Json]:
    message = {"id": f"msg_{uuid.uuid4().hex[:20]}", "type": "message", "role": "assistant", "model": model}
    usage = {"input_tokens": 10, "output_tokens": 10}
    opening: Json = message | {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    yield {"type": "message_start", "message": opening}
    for index, (block, deltas) in enumerate(_blocks(step)):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    reason = "tool_use" if step.calls() else "end_turn"
    yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}
    yield {"type": "message_stop"}


def _streamed(step: Step, model: str) -> Iterator[str]:
    for event in _events(step, model):
        yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"


def _whole(step: Step, model: str) -> Json:
    content = [
        block | ({"text": step.say + step.text} if block["type"] == "text" else {"input": call_input(deltas)})
        for block, deltas in _blocks(step)
    ]
    reason = "tool_use" if step.calls() else "end_turn"
    usage = {"input_tokens": 10, "output_tokens": 10}
    about = {"id": f"msg_{uuid.uuid4().hex[:20]}", "type": "message", "role": "assistant", "model": model}
    return about | {"content": content, "stop_reason": reason, "stop_sequence": None, "usage": usage}


def call_input(deltas: Sequence[Json]) -> Any:
    """Return what a call is given, from the deltas that stream it."""
    return json.loads("".join(delta["partial_json"] for delta in deltas))


def messages_app(model: MessagesModel) -> Starlette:
    """Return the application that serves `model`: `POST /v1/messages`, and its count of tokens."""

    async def messages(request: Request) -> Response:
        body = await request.json()
        step, name = model.answer(body), str(body.get("model") or MODEL_ID)
        await asyncio.sleep(step.delay_s)  # the script lets the model think so long
        if step.status is not None:
            error = {"type": "error", "error": {"type": "api_error", "message": "the script says so"}}
            return JSONResponse(error, step.status)
        if body.get("stream"):
            return StreamingResponse(_streamed(step, name), media_type="text/event-stream")
        return JSONResponse(_whole(step, name))

    async def count(_: Request) -> Response:
        return JSONResponse({"input_tokens": 10})

    routes = [
        Route("/v1/messages", messages, methods=["POST"]),
        Route("/v1/messages/count_tokens", count, methods=["POST"]),
    ]
    return Starlette(routes=routes)


@contextlib.contextmanager
def running_messages() -> Iterator[MessagesModel]:
    """Serve a scripted model from a thread on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        model = MessagesModel(f"http://127.0.0.1:{listening.getsockname()[1]}")
        with in_thread(messages_app(model), listening):
            yield model
