"""The agent's end of a question, by a real OpenCode or by a scripted server as a process of its own."""

from __future__ import annotations

import http.client
import json
import sys
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlencode, urlsplit

from hermes.sandbox.model_server import running_model
from tests.bench import follower
from tests.harness.agents import AgentProcess
from tests.harness.home import Home, binary
from tests.harness.opencode import OpenCode
from tests.harness.processes import Proc, until
from tests.scenes.stage import Json, asking, question

OPENCODE = "1.18.33"
TITLE = "Fix login flow"
WORDS = "The schema is small."


@dataclass(frozen=True, slots=True)
class Events:
    """How a version of OpenCode tells of a question: where its stream is, and what its events hold."""

    path: str
    asked: str
    replied: str
    text: Callable[[Json], str]
    request_id: Callable[[Json], str]
    replied_id: Callable[[Json], str]


FIRST: Final = Events(
    path="/global/event",
    asked="question.asked",
    replied="question.replied",
    text=lambda properties: str(properties["questions"][0]["question"]),
    request_id=lambda properties: str(properties["id"]),
    replied_id=lambda properties: str(properties["requestID"]),
)
SECOND: Final = Events(
    path="/api/event",
    asked="form.created",
    replied="form.replied",
    text=lambda data: str(data["form"]["fields"][0]["description"]),
    request_id=lambda data: str(data["form"]["id"]),
    replied_id=lambda data: str(data["id"]),
)


class Agent(Protocol):
    """Asks one single-choice question at a time. `password` is "" if it wants none."""

    events: Events
    password: str

    @property
    def url(self) -> str:
        """Its address."""
        ...

    def ask(self, text: str) -> None:
        """Begin a session with a title, say a few words, and ask; returns soon."""
        ...


class Answerable(Agent, Protocol):
    """An agent that can be answered without Hermes."""

    def answer(self, request_id: str) -> float:
        """Answer the newest question by one plain request; return the moment (monotonic) at which it left."""
        ...


class ScriptedProcess(AgentProcess):
    """The scripted agent server."""

    events = FIRST
    password = ""

    def __init__(self, module: str = "hermes.sandbox.opencode.server") -> None:
        super().__init__(module, [module])
        self.session = ""

    def ask(self, text: str) -> None:
        """As `Agent.ask`."""
        self.session = self.do("session", title=TITLE)
        self.do("ask", questions=[question(text)], session=self.session, say=WORDS)


class SecondProcess(ScriptedProcess):
    """The stand-in for OpenCode 2."""

    events = SECOND
    password = "a-password-of-its-own"

    def __init__(self) -> None:
        super().__init__("hermes.sandbox.opencode2.server")

    def answer(self, request_id: str) -> float:
        """As `Answerable.answer`."""
        path = f"/api/session/{self.session}/form/{request_id}/reply"
        return _posted(self, "/api/info", path, {"answer": {"q0": "SQLite"}})


class RealOpenCode:
    """A real OpenCode with a scripted model."""

    events = FIRST
    password = ""

    def __init__(self, server: OpenCode) -> None:
        self._server = server
        self.url = server.url

    def ask(self, text: str) -> None:
        """As `Agent.ask`."""
        session = self._server.session(title=TITLE)
        self._server.prompt(session, [asking(question(text), say=WORDS)])

    def wish(self, command: str) -> None:
        """Begin a session in which the model wants to run this."""
        step = {"tool": "bash", "args": {"command": command, "description": "a step"}, "say": WORDS}
        self._server.prompt(self._server.session(title=TITLE), [step])

    def begin(self) -> str:
        """Begin a session, and return its id."""
        return self._server.session(title=TITLE)

    def send(self, session: str, text: str) -> float:
        """Send a prompt by one plain request; return the moment (monotonic) at which it left."""
        body = {"parts": [{"type": "text", "text": text}]}
        return _posted(self, "/global/health", f"/session/{session}/prompt_async?{self._place}", body)

    def look(self, session: str) -> float:
        """Read the newest messages of a session by one plain request; return the seconds that it took."""
        left_s, done_s = _asked(self, "GET", "/global/health", f"/session/{session}/message?limit=20&{self._place}")
        return done_s - left_s

    @property
    def _place(self) -> str:
        return urlencode({"directory": str(self._server.directory)})

    def answer(self, request_id: str) -> float:
        """As `Answerable.answer`."""
        return _posted(self, "/global/health", f"/question/{request_id}/reply", {"answers": [["SQLite"]]})


def _posted(agent: Agent, before: str, path: str, body: Json) -> float:
    """Post on a connection that another request has opened; return the moment (monotonic) at which the post left."""
    return _asked(agent, "POST", before, path, body)[0]


def _asked(agent: Agent, method: str, before: str, path: str, body: Json | None = None) -> tuple[float, float]:
    """Ask on a connection that another request has opened; return when (monotonic) it left, and was answered."""
    place = urlsplit(agent.url)
    credentials = b64encode(f"opencode:{agent.password}".encode()).decode()
    headers = {"content-type": "application/json", "authorization": f"Basic {credentials}"}
    with closing(http.client.HTTPConnection(place.hostname or "", place.port)) as connection:
        connection.request("GET", before, headers=headers)
        connection.getresponse().read()
        left_s = time.monotonic()
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        response.read()
        assert response.status in {http.client.OK, http.client.NO_CONTENT}
        return left_s, time.monotonic()


@contextmanager
def real(root: Path, prepared: Callable[[Home], object] = lambda _: None) -> Iterator[RealOpenCode]:
    """A real OpenCode server, whose home was `prepared`. Raises BinaryMissingError where it was not fetched."""
    binary(OPENCODE)
    with running_model() as model:
        home = Home(root, OPENCODE, model.base_url)
        prepared(home)
        with OpenCode(home) as server:
            yield RealOpenCode(server)


class Heard:
    """When events about questions arrived at a follower of the agent's own stream."""

    def __init__(self, file: Path, events: Events) -> None:
        self._file = file
        self._events = events

    def asked(self, text: str) -> tuple[float, str]:
        """Wait until a question with this text is told; return when (monotonic), and the id of the request."""
        events = self._events
        at_s, told = self.first(
            lambda told: told["type"] == events.asked and events.text(told["properties"]) == text, f"question {text!r}"
        )
        return at_s, events.request_id(told)

    def replied(self, request_id: str) -> float:
        """Wait until the answer to this request is told; return when (monotonic)."""
        events = self._events
        return self.first(
            lambda told: told["type"] == events.replied and events.replied_id(told["properties"]) == request_id,
            events.replied,
        )[0]

    def first(self, fits: Callable[[Json], bool], what: str) -> tuple[float, Json]:
        """Wait for the first event that fits, by its payload; when (monotonic) it came, and its properties."""

        def found() -> list[tuple[float, Json]]:
            return [(at_s, told["properties"]) for at_s, told in self._noted() if fits(told)]

        return until(found, 60, what)[0]

    def next(self, kind: str, after_s: float) -> float:
        """Wait for the first event of this kind after a moment (monotonic); return when it came."""

        def found() -> list[float]:
            return [at_s for at_s, told in self._noted() if told["type"] == kind and at_s > after_s]

        return until(found, 60, kind)[0]

    def _noted(self) -> Iterator[tuple[float, Json]]:
        for line in self._file.read_bytes().splitlines(keepends=True):
            at_s, tab, event = line.partition(b"\t")
            if tab and event.endswith(b"\n"):
                told = json.loads(event)
                yield float(at_s), told["payload"] if "payload" in told else {**told, "properties": told["data"]}


@contextmanager
def followed(agent: Agent, root: Path, *more: str) -> Iterator[Heard]:
    """Follow the agent's events, also those of `more` kinds, by a process of its own."""
    root.mkdir(parents=True, exist_ok=True)
    notes = root / "events"
    command = [sys.executable, "-I", "-S", follower.__file__, f"{agent.url}{agent.events.path}", str(notes), *more]
    with Proc(command, cwd=root, environ={follower.PASSWORD: agent.password}, log_dir=root, name="follower"):
        until(lambda: notes.exists() and notes.read_bytes().startswith(follower.FOLLOWING), 30, "an event stream")
        yield Heard(notes, agent.events)


def monotonic_s(epoch_s: float) -> float:
    """Return the moment of an epoch time by the clock that never jumps, which all processes here share."""
    return epoch_s - time.time() + time.monotonic()
