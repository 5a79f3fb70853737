"""The real OpenCode as the agent of the demo: in an empty home, with a scripted model, prompted over HTTP."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx

from hermes.commands.demo.computer import Row
from hermes.errors import HermesError
from hermes.sandbox import opencode_home
from hermes.sandbox.model_server import ScriptedModel, running_model, script
from hermes.sandbox.serving import HOST, bound
from hermes.sandbox.tied import tied

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.commands.demo.processes import Daemon
    from hermes.commands.demo.scenes import Scene, Through
    from hermes.commands.demo.worker import TurnRow

START_S: Final = 60.0
CALL_S: Final = 20.0
LOOK_S: Final = 0.3
MAKEFILE: Final = "migrate:\n\t@echo Moved 3 tables in $(ENV)\n"

Json = dict[str, Any]


def program() -> str:
    """Return the path of `opencode`. Raises HermesError: it is not on the PATH."""
    found = shutil.which("opencode")
    if found is None:
        raise HermesError("no `opencode` is on the PATH: install it, or leave --opencode out for a scripted agent")
    return found


class Server:
    """One `opencode serve` process on loopback, with a password; it runs until `close`."""

    def __init__(self, command: str, home: Path, *, cwd: Path, password: str) -> None:
        with bound(0) as free:
            self.url = f"http://{HOST}:{free.getsockname()[1]}"
        self._said = home.parent / f"{home.name}.log"
        with self._said.open("wb") as log:
            self._process = tied(
                [command, "serve", "--port", self.url.rpartition(":")[2], "--hostname", HOST],
                needed=self._said,
                cwd=cwd,
                env=opencode_home.environ(home) | {"OPENCODE_SERVER_PASSWORD": password},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        auth = ("opencode", password)
        self._http = httpx.Client(base_url=self.url, auth=auth, timeout=CALL_S, trust_env=False)

    def wait(self) -> None:
        """Wait until it listens. Raises HermesError: it did not start, and is closed."""
        deadline = time.monotonic() + START_S
        # OpenCode 1.18.33 never answers a request that comes before this line.
        while b"listening on" not in self._said.read_bytes():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.close()
                last = self._said.read_text("utf-8", "replace").strip().splitlines()[-1:] or ["it said nothing"]
                raise HermesError(f"OpenCode did not start: {last[0]}")
            time.sleep(LOOK_S / 10)

    def call(self, method: str, path: str, directory: Path, body: object = None) -> Any:
        """Send a request about this directory, and return the JSON of the response. Raises httpx.HTTPError."""
        answer = self._http.request(method, path, params={"directory": str(directory)}, json=body)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def signal(self, number: signal.Signals) -> None:
        """Send this signal to the server."""
        self._process.send_signal(number)

    def close(self) -> None:
        """Kill the server. The hooks that its plugin started notice that, and end."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()
        self._http.close()


@dataclass(slots=True)
class _Prompt:
    server: Server
    directory: Path
    session: str
    row: Row


class OpenCodeComputer:
    """One server that is in Hermes' configuration, and one with the plugin, which is started when first needed."""

    def __init__(self, command: str) -> None:
        self._command = command
        # Without a password, a program that reaches the port could run commands, and so could a page (DNS rebinding).
        self._password = secrets.token_urlsafe()
        self._open = ExitStack()
        folder = tempfile.TemporaryDirectory(prefix="hermes-demo-opencode-")
        self._root = Path(self._open.enter_context(folder))
        self._model: ScriptedModel = self._open.enter_context(running_model())
        self._version = self._asked_version()
        self.name = f"OpenCode {self._version} with a scripted model"
        self.ways: frozenset[Through] = frozenset({"server", "plugin"})
        self._prompts: list[_Prompt] = []
        self._servers: list[Server] = []
        self._plugged: Server | None = None
        self._closing = threading.Event()
        self._looking = threading.Thread(target=self._look, name="opencode", daemon=True)
        try:
            self._served = self._server("home")
        except HermesError:
            self._open.close()
            raise
        self.servers: tuple[Json, ...] = ({"name": "opencode", "url": self._served.url, "password": self._password},)
        self._looking.start()

    def ask(self, scene: Scene, daemon: Daemon) -> None:
        """Prompt the model to ask this, in a new session. Raises LookupError: OpenCode did not accept the prompt."""
        server = self._served if scene.through == "server" else self._with_plugin(daemon)
        directory = self._project(scene.folder)
        try:
            session = server.call("POST", "/session", directory, {"title": scene.title})["id"]
            prompt = {"parts": [{"type": "text", "text": script([_step(scene)], session)}]}
            server.call("POST", f"/session/{session}/prompt_async", directory, prompt)
        except httpx.HTTPError as error:
            raise LookupError("OpenCode did not take that, or did not answer in time") from error
        row = Row.waiting(session, scene)
        self._prompts.append(_Prompt(server, directory, session, row))

    def rows(self) -> tuple[Row, ...]:
        """Return a row for each prompt so far, in order, as last polled."""
        return tuple(prompt.row for prompt in self._prompts)

    def turns(self) -> tuple[TurnRow, ...]:
        """Return no row: the page does not read the records of the real OpenCode."""
        return ()

    def away(self) -> None:
        """Freeze OpenCode (SIGSTOP): its connections stay open, and it answers nothing."""
        for server in self._servers:
            server.signal(signal.SIGSTOP)

    def back(self) -> None:
        """Let OpenCode go on (SIGCONT)."""
        for server in self._servers:
            server.signal(signal.SIGCONT)

    def close(self) -> None:
        """End the servers, and remove their folder."""
        self._closing.set()
        self.back()
        for server in self._servers:
            server.close()
        self._looking.join()
        self._open.close()

    # --- servers and projects -------------------------------------------------------------------------------------

    def _asked_version(self) -> str:
        opencode_home.make(self._root / "home", "")
        environ = opencode_home.environ(self._root / "home")
        try:
            told = subprocess.run(
                [self._command, "--version"], env=environ, capture_output=True, text=True, timeout=START_S, check=True
            )
        except (OSError, subprocess.SubprocessError) as error:
            self._open.close()
            raise HermesError(f"`{self._command} --version` failed or did not answer within {START_S:g} s") from error
        return told.stdout.strip()

    def _server(self, name: str) -> Server:
        home = self._root / name
        opencode_home.make(home, self._version)
        server = Server(self._command, home, cwd=self._project("shop-api"), password=self._password)
        server.wait()
        self._servers.append(server)
        return server

    def _with_plugin(self, daemon: Daemon) -> Server:
        if self._plugged is None:
            daemon.install(opencode_home.environ(self._root / "plugged"))
            self._plugged = self._server("plugged")
        return self._plugged

    def _project(self, name: str) -> Path:
        folder = self._root / "projects" / name
        if not folder.exists():
            folder.mkdir(parents=True)
            settings = json.dumps(opencode_home.settings(self._model.base_url))
            (folder / "opencode.json").write_text(settings, encoding="utf-8")
            (folder / "Makefile").write_text(MAKEFILE, encoding="utf-8")
        return folder

    # --- results of the prompts -----------------------------------------------------------------------------------

    def _look(self) -> None:
        while not self._closing.wait(LOOK_S):
            for prompt in tuple(self._prompts):
                if prompt.row.state == "waiting":
                    with suppress(httpx.HTTPError):  # a frozen server is asked again
                        prompt.row = self._row(prompt)

    def _row(self, prompt: _Prompt) -> Row:
        messages = prompt.server.call("GET", f"/session/{prompt.session}/message", prompt.directory)
        states = [part["state"] for message in messages for part in message["parts"] if part["type"] == "tool"]
        return replace(prompt.row, **_ended(states[0])) if states else prompt.row


def _step(scene: Scene) -> Json:
    if scene.command:
        args = {"command": scene.command, "description": scene.title}
        return {"tool": "bash", "args": args, "say": scene.say}
    return {"tool": "question", "args": {"questions": list(scene.questions)}, "say": scene.say}


def _ended(state: Mapping[str, Any]) -> Json:
    """Return the fields of a row that change with this state of its tool call."""
    if state["status"] == "completed":
        answers = state.get("metadata", {}).get("answers")
        received = ((state["output"].strip(),),) if answers is None else tuple(tuple(one) for one in answers)
        return {"state": "received", "times": 1, "received": received}
    if state["status"] != "error":
        return {}
    why = re.search(r"with the following feedback: (.*)", state["error"], re.DOTALL)
    if why:
        return {"state": "received", "times": 1, "received": (("reject", why[1]),)}
    return {"state": "refused", "times": 1}
