"""The agent's end of a question, by a real OpenCode or by the scripted server as a process of its own."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from hermes.sandbox.model_server import running_model
from tests.bench import follower
from tests.harness.opencode import Home, OpenCode, binary
from tests.harness.processes import Proc, until
from tests.scenes.stage import Json, asking, question

OPENCODE = "1.18.33"
TITLE = "Fix login flow"
WORDS = "The schema is small."


class Agent(Protocol):
    """Asks one single-choice question at a time."""

    @property
    def url(self) -> str:
        """Its address."""
        ...

    def ask(self, text: str) -> None:
        """Begin a session with a title, say a few words, and ask; returns soon."""
        ...


class ScriptedProcess:
    """The scripted agent server, told by lines what to do."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.url: str = self._said()["url"]

    def act(self, do: str, **wish: Any) -> Any:
        """Let the agent do something, see `hermes.sandbox.opencode.server.ACTS`."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **wish}) + "\n")
        self._process.stdin.flush()
        said = self._said()
        assert "done" in said, said
        return said["done"]

    def _said(self) -> Json:
        assert self._process.stdout is not None
        said: Json = json.loads(self._process.stdout.readline())
        return said

    def ask(self, text: str) -> None:
        """As `Agent.ask`."""
        self.act("ask", questions=[question(text)], session=self.act("session", title=TITLE), say=WORDS)


@contextmanager
def scripted() -> Iterator[ScriptedProcess]:
    """A scripted agent server, which ends with this."""
    command = [sys.executable, "-m", "hermes.sandbox.opencode.server"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield ScriptedProcess(process)
        finally:
            process.terminate()


class RealOpenCode:
    """A real OpenCode with a scripted model."""

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

    def answer(self, request_id: str) -> float:
        """Answer by one plain request on a connection that is there; the moment (monotonic) at which it left."""
        place = urlsplit(self.url)
        connection = http.client.HTTPConnection(place.hostname or "", place.port)
        with closing(connection):
            connection.request("GET", "/global/health")
            connection.getresponse().read()
            body = json.dumps({"answers": [["SQLite"]]})
            left_s = time.monotonic()
            connection.request("POST", f"/question/{request_id}/reply", body, {"content-type": "application/json"})
            assert connection.getresponse().status == http.client.OK
        return left_s


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

    def __init__(self, file: Path) -> None:
        self._file = file

    def first(self, fits: Callable[[Json], bool], what: str) -> tuple[float, Json]:
        """Wait for the first event that fits, by its payload; when (monotonic) it came, and its properties."""

        def found() -> list[tuple[float, Json]]:
            return [(at_s, event["payload"]["properties"]) for at_s, event in self._events() if fits(event["payload"])]

        return until(found, 60, what)[0]

    def _events(self) -> Iterator[tuple[float, Json]]:
        for line in self._file.read_bytes().splitlines(keepends=True):
            at_s, tab, event = line.partition(b"\t")
            if tab and event.endswith(b"\n"):
                yield float(at_s), json.loads(event)


@contextmanager
def followed(url: str, root: Path) -> Iterator[Heard]:
    """Follow the agent's events by a process of its own."""
    root.mkdir(parents=True, exist_ok=True)
    notes = root / "events"
    command = [sys.executable, "-I", "-S", follower.__file__, url, str(notes)]
    with Proc(command, cwd=root, environ={}, log_dir=root, name="follower"):
        until(lambda: notes.exists() and notes.read_bytes().startswith(follower.FOLLOWING), 30, "an event stream")
        yield Heard(notes)


def monotonic_s(epoch_s: float) -> float:
    """Return the moment of an epoch time by the clock that never jumps, which all processes here share."""
    return epoch_s - time.time() + time.monotonic()
