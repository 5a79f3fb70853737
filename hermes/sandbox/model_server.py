"""A scripted language model behind the OpenAI chat API, on loopback.

A prompt `SCRIPT [KEY] <json>` controls the model; `<json>` is a list of steps, one for each turn of the model:
say a text, call one tool, call several at once, or fail with an HTTP status. After the last step the model quotes
the latest tool results ("FINAL: …"), so that a reader can see them. The agent sends the whole conversation with
each request, and the number of the model's turns since the prompt selects the step. The server records its
requests, but no record decides an answer.
"""

import asyncio
import contextlib
import json
import re
import socket
import threading
import time
import uuid
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import uvicorn
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

MODEL_ID = "fake-model"
TITLE = "A scripted session"
SUMMARY = "The conversation so far"
_KEPT = 300
_KEPT_FILES = 20
_SUMS_UP = re.compile("Here is the conversation so far|Provide a detailed prompt for continuing our conversation")
"""The words by which OpenCode 1.18.33 and 1.1.53 let the model sum up a conversation."""
_PROMPT = re.compile(r"SCRIPT (?:(?P<key>[\w.:-]+) )?(?=\[)")

Json = dict[str, Any]


class Call(BaseModel):
    """One tool call; `call_id` is random unless a test sets it, in order to repeat it."""

    model_config = ConfigDict(extra="forbid")

    tool: str
    args: Json = Field(default_factory=dict)
    call_id: str | None = None


class Step(BaseModel):
    """One turn of the model: first `say` and `text`, then the calls. With `status` it fails with that HTTP status.

    `tokens` is the length of the conversation that the model tells. An agent lets it sum up one that is too long; then
    it says `summary`, which may be the script of the further steps.
    """

    model_config = ConfigDict(extra="forbid")

    tool: str | None = None
    args: Json = Field(default_factory=dict)
    call_id: str | None = None
    tools: tuple[Call, ...] = ()
    say: str = ""
    text: str = ""
    delay_s: float = 0
    status: int | None = None
    tokens: int = 10
    summary: str = ""

    def calls(self) -> tuple[Call, ...]:
        """Return the tool calls of this turn, in order."""
        if self.tool is None:
            return self.tools
        return (Call(tool=self.tool, args=self.args, call_id=self.call_id), *self.tools)


_STEPS = TypeAdapter(tuple[Step, ...])


class ScriptError(ValueError):
    """A script is not a list of steps, or its key is not valid."""


@dataclass(frozen=True, slots=True)
class Scene:
    """One script of a conversation, the number of the model's turns since its prompt, and their tool results."""

    key: str
    steps: tuple[Step, ...]
    turns: int
    results: tuple[str, ...]

    def step(self) -> Step:
        """Return this turn's step or, after the last step, a text that quotes the results."""
        if self.turns < len(self.steps):
            return self.steps[self.turns]
        return Step(text="FINAL: " + ("\n".join(self.results) or "nothing was called"))


def parse_script(text: str) -> tuple[str, tuple[Step, ...]] | None:
    """Return key and steps of a prompt, or None if `text` has no script; the default key is the list's JSON text.

    Raises:
        ScriptError: the list after `SCRIPT` is not a valid JSON list of steps.
    """
    found = _PROMPT.search(text)
    if found is None:
        return None
    try:
        # An agent may append its own text to the prompt (a plan mode's reminder), so text may follow the list.
        steps, end = json.JSONDecoder().raw_decode(text, found.end())
        return found["key"] or text[found.end() : end], _STEPS.validate_python(steps)
    except (json.JSONDecodeError, ValidationError) as error:
        raise ScriptError(f"not a list of steps: {error}") from error


def script(steps: Sequence[Mapping[str, Any]], key: str | None = None) -> str:
    """Return the prompt that makes the model take these steps; see `Step` for their keys.

    Raises:
        ScriptError: a step or the key is not valid; this shows here, not in the middle of a conversation.
    """
    prompt = " ".join(["SCRIPT", *([key] if key else []), json.dumps(list(steps), ensure_ascii=False)])
    if parse_script(prompt) is None:
        raise ScriptError(f"key {key!r} may hold letters, digits and .:_- only")
    return prompt


def read_scenes(messages: Sequence[Json]) -> list[Scene]:
    """Split a conversation at its scripts, and return one scene for each."""
    scenes: list[Scene] = []
    for message in messages:
        role, text = message.get("role"), plain_text(message.get("content"))
        is_script = role == "user" or text.startswith("SCRIPT ")  # a summary can be a script, too
        if is_script and (parsed := parse_script(text)):
            scenes.append(Scene(*parsed, turns=0, results=()))
        elif scenes and role in {"assistant", "tool"}:
            now = scenes[-1]
            answered = role == "tool"
            results = (*now.results, text) if answered else now.results
            scenes[-1] = Scene(now.key, now.steps, now.turns + (not answered), results)
    return scenes


def plain_text(content: object) -> str:
    """Return the text of a message, whose content is a string or a list of parts."""
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _no_texts(contents: Sequence[object]) -> Iterator[Json]:
    """Yield the parts of these contents that are no texts: pictures and documents."""
    for content in contents:
        parts = content if isinstance(content, list) else []
        yield from (part for part in parts if isinstance(part, dict) and part.get("type") != "text")


def _latest(messages: Sequence[Json]) -> tuple[str, ...]:
    """Return the tool results at the end of the conversation: those of the last turn's calls."""
    results: list[str] = []
    for message in reversed(messages):
        if message.get("role") != "tool":
            break
        results.insert(0, plain_text(message.get("content")))
    return tuple(results)


class ScriptedModel:
    """The model, and a record of its requests. Any thread may read the record."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self._lock = threading.Lock()
        self._received: dict[str, tuple[str, ...]] = {}
        self._turns: dict[str, int] = {}
        self._offered: dict[str, tuple[str, ...]] = {}
        self._asked: deque[tuple[str, ...]] = deque(maxlen=_KEPT)
        self._attached: deque[tuple[str, tuple[Json, ...]]] = deque(maxlen=_KEPT_FILES)

    def asked(self, word: str) -> list[tuple[str, ...]]:
        """Return the user's texts of each of the last 300 requests in which one of them has this word, oldest first."""
        with self._lock:
            return [texts for texts in self._asked if any(word in text for text in texts)]

    def attached(self, word: str) -> list[Json]:
        """Return the parts that are no texts of the user's messages, in the newest request with this word in a text."""
        with self._lock:
            return list(next((parts for texts, parts in reversed(self._attached) if word in texts), ()))

    def received(self, key: str) -> tuple[str, ...]:
        """Return the tool results after all prompts with this key, in order, as the latest request had them."""
        with self._lock:
            return self._received.get(key, ())

    def turns(self, key: str) -> int:
        """Return the number of turns requested under this key; turns that fail with a `status` count too."""
        with self._lock:
            return self._turns.get(key, 0)

    def offered(self, key: str) -> tuple[str, ...]:
        """Return the names of the tools that the agent offered with its latest request under this key."""
        with self._lock:
            return self._offered.get(key, ())

    def play(self, body: Json) -> Step:
        """Record one request and return the step that answers it.

        Raises:
            ScriptError: the conversation holds a script that cannot be read.
        """
        messages = body.get("messages") or []
        tools = tuple(tool["function"]["name"] for tool in body.get("tools") or ())
        if not tools and "title generator" in plain_text(messages[0].get("content") if messages else ""):
            return Step(text=TITLE)
        with self._lock:
            said = [one.get("content") for one in messages if one.get("role") == "user"]
            self._asked.append(tuple(plain_text(one) for one in said))
            self._attached.append(("\n".join(self._asked[-1]), tuple(_no_texts(said))))
        scenes = read_scenes(messages)
        if not scenes:
            return Step(text='This model follows scripts: SCRIPT [{"text": "hello"}]')
        if said and _SUMS_UP.search(plain_text(said[-1])):
            summaries = (step.summary for scene in reversed(scenes) for step in scene.steps if step.summary)
            return Step(text=next(summaries, SUMMARY))
        self._remember(scenes, tools)
        now = scenes[-1]
        return Scene(now.key, now.steps, now.turns, _latest(messages) or now.results[-1:]).step()

    def _remember(self, scenes: Sequence[Scene], tools: tuple[str, ...]) -> None:
        seen: dict[str, tuple[str, ...]] = {}
        for scene in scenes:
            seen[scene.key] = seen.get(scene.key, ()) + scene.results
        key = scenes[-1].key
        with self._lock:
            self._received |= seen
            self._turns[key] = self._turns.get(key, 0) + 1
            self._offered[key] = tools


def _chunks(step: Step) -> Iterator[Json]:
    """Yield the choices of one streamed turn: the text word by word, then each call, then the finish reason."""
    yield {"delta": {"role": "assistant", "content": ""}, "finish_reason": None}
    for piece in re.findall(r"\S+\s*|\s+", step.say + step.text):
        yield {"delta": {"content": piece}, "finish_reason": None}
    calls = _tool_calls(step)
    for index, call in enumerate(calls):
        yield {"delta": {"tool_calls": [{"index": index, **call}]}, "finish_reason": None}
    yield {"delta": {}, "finish_reason": "tool_calls" if calls else "stop"}


def _tool_calls(step: Step) -> list[Json]:
    return [
        {
            "id": call.call_id or f"call_{uuid.uuid4().hex[:16]}",
            "type": "function",
            "function": {"name": call.tool, "arguments": json.dumps(call.args, ensure_ascii=False)},
        }
        for call in step.calls()
    ]


def _envelope(kind: str, step: Step, choice: Json) -> Json:
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": kind,
        "created": int(time.time()),
        "model": MODEL_ID,
        "choices": [{"index": 0, **choice}],
        "usage": {"prompt_tokens": step.tokens, "completion_tokens": 10, "total_tokens": step.tokens + 10},
    }


async def _stream(step: Step) -> AsyncIterator[str]:
    for choice in _chunks(step):
        yield f"data: {json.dumps(_envelope('chat.completion.chunk', step, choice))}\n\n"
        await asyncio.sleep(0)  # so that each chunk is one network write, as with a real model
    yield "data: [DONE]\n\n"


def _whole(step: Step) -> Json:
    message: Json = {"role": "assistant", "content": step.say + step.text}
    if calls := _tool_calls(step):
        message["tool_calls"] = calls
    choice = {"message": message, "finish_reason": "tool_calls" if calls else "stop"}
    return _envelope("chat.completion", step, choice)


def model_app(model: ScriptedModel) -> Starlette:
    """Return the application that serves `model`: `GET /v1/models`, `POST /v1/chat/completions`."""

    async def models(_: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": MODEL_ID, "object": "model"}]})

    async def completions(request: Request) -> Response:
        body = await request.json()
        try:
            step = model.play(body)
        except ScriptError as error:
            return _refusal(400, str(error))
        await asyncio.sleep(step.delay_s)
        if step.status is not None:
            return _refusal(step.status, "the script says so")
        if body.get("stream"):
            return StreamingResponse(_stream(step), media_type="text/event-stream")
        return JSONResponse(_whole(step))

    return Starlette(
        routes=[
            Route("/v1/models", models),
            Route("/v1/chat/completions", completions, methods=["POST"]),
        ]
    )


def _refusal(status: int, message: str) -> Response:
    return JSONResponse({"error": {"message": message, "type": "scripted", "code": status}}, status)


@contextlib.contextmanager
def running_model(port: int = 0) -> Iterator[ScriptedModel]:
    """Serve a scripted model from a thread on loopback; `base_url` of the yielded model ends in `/v1`."""
    with socket.create_server(("127.0.0.1", port)) as listening:
        model = ScriptedModel(f"http://127.0.0.1:{listening.getsockname()[1]}/v1")
        with in_thread(model_app(model), listening):
            yield model


@contextlib.contextmanager
def in_thread(app: Starlette, listening: socket.socket) -> Iterator[None]:
    """Serve a model's app on this socket, in a thread, until the end of the block."""
    settings = uvicorn.Config(
        app,
        log_level="critical",
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=1,  # a scripted delay must not delay the shutdown
    )
    server = uvicorn.Server(settings)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="scripted-model")
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join()
