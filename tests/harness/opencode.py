"""A real OpenCode for a test: a server in a home of its own, that can be frozen and restarted."""

import contextlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import httpx

from hermes.sandbox.model_server import script
from tests.harness.home import Home, Json, binary, in_query
from tests.harness.processes import LOOPBACK, Proc, free_port, until

Steps = Sequence[Mapping[str, Any]]


class OpenCode:
    """`opencode serve` of one version, and what a test asks of it over HTTP.

    A session's directory is remembered from `session()`; `directory` says otherwise (default: `directory`
    of the server, its first project). Requests, parts and messages are OpenCode's JSON, untouched.
    """

    def __init__(
        self,
        home: Home,
        *,
        directory: Path | None = None,
        password: str | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.home = home
        self.version = home.version
        self.directory = directory or home.project(f"main-{uuid.uuid4().hex[:6]}")
        self.port = free_port()
        self._environ = dict(environ or {})
        self._auth: tuple[str, str] | None = None
        if password is not None:
            self._environ["OPENCODE_SERVER_PASSWORD"] = password
            self._auth = (self._environ.get("OPENCODE_SERVER_USERNAME", "opencode"), password)
        self._starts = 0
        self._where: dict[str, Path] = {}
        self._prompts: dict[str, int] = {}
        self._proc: Proc | None = None
        self._client: httpx.Client | None = None

    def __repr__(self) -> str:
        return f"<OpenCode {self.version} port={self.port} {self._proc!r}>"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def url(self) -> str:
        """The server's base address; the same after a restart."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def proc(self) -> Proc:
        """The running process.

        Raises:
            AssertionError: it was stopped.
        """
        assert self._proc is not None, "this OpenCode is stopped"
        return self._proc

    # its life

    def start(self) -> None:
        """Start the server and wait until it answers; about 1 s."""
        assert self._proc is None, "already started"
        self._starts += 1
        proc = Proc(
            [binary(self.version), "serve", "--port", str(self.port), "--hostname", LOOPBACK],
            cwd=self.directory,
            environ=self.home.environ(**self._environ),
            log_dir=self.home.logs,
            name=f"serve-{self.port}-{self._starts}",
        )
        try:
            proc.wait_line("listening on", 60)  # 1.18.33 never answers what comes before this line
            self._client = httpx.Client(base_url=self.url, auth=self._auth, timeout=60, trust_env=False)
            until(self._healthy, 60, f"health of OpenCode {self.version}")
        except BaseException:
            proc.close()
            raise
        self._proc = proc

    def _healthy(self) -> bool:
        try:
            answer = self._http.get("/global/health", timeout=1)
        except httpx.TransportError:
            return False
        return answer.status_code == httpx.codes.OK and answer.json()["version"] == self.version

    def stop(self) -> None:
        """End it by SIGTERM, or by SIGKILL if it will not (seen once). Pending questions are lost."""
        try:
            self.proc.sigterm(5)
        except AssertionError:
            self.proc.sigkill()
        self.kill()

    def kill(self) -> None:
        """End it and all its children at once (SIGKILL). Safe to repeat."""
        if self._proc is not None:
            self._proc.close()
            self._proc = None
        if self._client is not None:
            self._client.close()
            self._client = None

    def restart(self) -> None:
        """Stop and start on the same port, with the same home."""
        self.stop()
        self.start()

    def freeze(self) -> None:
        """Stop it as if the machine slept: connections stay, nothing is answered."""
        self.proc.freeze()

    def thaw(self) -> None:
        """Let a frozen server go on."""
        self.proc.thaw()

    # HTTP

    @property
    def _http(self) -> httpx.Client:
        assert self._client is not None, "this OpenCode is stopped"
        return self._client

    def request(
        self, method: str, path: str, directory: Path | None = None, body: object = None, **params: str | int
    ) -> httpx.Response:
        """Send one request, `directory` in the query; any status is returned as it is."""
        query = {"directory": in_query(directory or self.directory), **params}
        return self._http.request(method, path, params=query, json=body)

    def _json(
        self, method: str, path: str, directory: Path | None = None, body: object = None, **params: str | int
    ) -> Any:
        answer = self.request(method, path, directory, body, **params)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text[:500]}"
        return answer.json() if answer.content else None

    def _list(self, path: str, directory: Path | None) -> list[Json]:
        listed: list[Json] = self._json("GET", path, directory)
        return listed

    def _directory_of(self, session: str, directory: Path | None = None) -> Path:
        return directory or self._where.get(session, self.directory)

    # sessions

    def session(self, directory: Path | None = None, title: str = "A test") -> str:
        """Create a session and return its id."""
        where = directory or self.directory
        session: str = self._json("POST", "/session", where, {"title": title})["id"]
        self._where[session] = where
        return session

    def prompt(
        self,
        session: str,
        steps: Steps,
        *,
        agent: str | None = None,
        key: str | None = None,
        directory: Path | None = None,
    ) -> None:
        """Let the model take these steps in this session; what it receives is kept under `key`.

        `key` is the session's id by default, so `model.received(session)` has the results of all its
        prompts. Returns at once: wait for a question or for idleness.
        """
        body: Json = {"parts": [{"type": "text", "text": script(steps, key or session)}]}
        if agent is not None:
            body["agent"] = agent
        where = self._directory_of(session, directory)
        self._json("POST", f"/session/{session}/prompt_async", where, body)
        self._prompts[session] = self._prompts.get(session, 0) + 1

    def abort(self, session: str) -> None:
        """Abort the session's turn. Its questions stay listed."""
        self._json("POST", f"/session/{session}/abort", self._directory_of(session))

    def delete_session(self, session: str) -> None:
        """Delete the session. Its questions stay listed."""
        self._json("DELETE", f"/session/{session}", self._directory_of(session))

    def children(self, session: str) -> list[Json]:
        """Return the sessions of this session's subagents."""
        return self._list(f"/session/{session}/children", self._directory_of(session))

    def clear(self, directory: Path) -> None:
        """Leave nothing pending in a directory: dismiss what is asked, delete its sessions, wait for their ends."""
        try:
            self._dismiss(directory)
            until(lambda: self._is_clear(directory), 5, f"an end of everything in {directory}")
        except AssertionError:
            self._dispose(directory)  # a turn that hangs, or what cannot be listed, ends with its instance

    def _dismiss(self, directory: Path) -> None:
        for question in self.questions(directory):
            self.reject(question["id"], directory)
        for permission in self._list("/permission", directory):
            self.request("POST", f"/permission/{permission['id']}/reply", directory, {"reply": "reject"})
        for session in [known for known, where in self._where.items() if where == directory]:
            self.request("POST", f"/session/{session}/abort", directory)
            self.request("DELETE", f"/session/{session}", directory)
            del self._where[session]

    def _is_clear(self, directory: Path) -> bool:
        listed = (*self.questions(directory), *self._list("/permission", directory))
        return not listed and not self._json("GET", "/session/status", directory)

    def discard(self, directory: Path) -> None:
        """Clear a directory that no other test uses, and end its instance."""
        self.clear(directory)
        self._dispose(directory)

    def _dispose(self, directory: Path) -> None:
        self._json("POST", "/instance/dispose", directory)

    # questions

    def questions(self, directory: Path | None = None) -> list[Json]:
        """Return the pending questions of a directory, in creation order."""
        return self._list("/question", directory)

    def wait_questions(self, session: str, count: int, timeout_s: float = 60, *, text: str | None = None) -> list[Json]:
        """Wait until the session has `count` pending questions (of those that ask `text`) and return them."""

        def wanted(one: Json) -> bool:
            return one["sessionID"] == session and text in {
                None,
                *(each["question"] for each in one["questions"]),
            }

        def pending() -> tuple[list[Json]]:
            listed = self.questions(self._directory_of(session))
            found = [one for one in listed if wanted(one)]
            assert len(found) == count, f"pending here: {listed}"
            return (found,)  # in a tuple: an empty list is a good answer where none is awaited

        with self._told_of(session):
            return until(pending, timeout_s, f"{count} questions of {session}")[0]

    def wait_question(self, session: str, timeout_s: float = 60, *, text: str | None = None) -> Json:
        """Wait until the session has exactly one pending question (that asks `text`) and return it."""
        return self.wait_questions(session, 1, timeout_s, text=text)[0]

    def reply(self, request_id: str, answers: Sequence[Sequence[str]], directory: Path | None = None) -> httpx.Response:
        """Answer a question as a desk would; the response is not judged."""
        body = {"answers": [list(one) for one in answers]}
        return self.request("POST", f"/question/{request_id}/reply", directory, body)

    def reject(self, request_id: str, directory: Path | None = None) -> httpx.Response:
        """Dismiss a question as a desk would; the response is not judged."""
        return self.request("POST", f"/question/{request_id}/reject", directory)

    # what became of it

    def messages(self, session: str, directory: Path | None = None) -> list[Json]:
        """Return the session's messages, oldest first: `{info, parts}`."""
        return self._list(f"/session/{session}/message", self._directory_of(session, directory))

    def tool_parts(self, session: str, tool: str | None = None) -> list[Json]:
        """Return the tool parts of a session in order, or those of one tool."""
        parts = [part for message in self.messages(session) for part in message["parts"]]
        return [part for part in parts if part["type"] == "tool" and tool in {None, part["tool"]}]

    def tool_part(self, session: str, call_id: str) -> Json:
        """Return the tool part of this call.

        Raises:
            AssertionError: there is none, or the provider used the id twice.
        """
        parts = [part for part in self.tool_parts(session) if part["callID"] == call_id]
        assert len(parts) == 1, f"{len(parts)} parts for {call_id}"
        return parts[0]

    def busy(self, session: str) -> bool:
        """Say whether the session's turn runs, a prompt that was just sent included.

        Not by the last message's completion: 1.1.53 leaves an aborted one as if it still ran.
        """
        roles = [message["info"]["role"] for message in self.messages(session)]
        if roles.count("user") < self._prompts.get(session, 0) or roles[-1:] == ["user"]:
            return True  # the status lags behind the 204 of a prompt, so the answer must have begun
        return session in self._json("GET", "/session/status", self._directory_of(session))

    def wait_idle(self, session: str, timeout_s: float = 60) -> None:
        """Wait until the session's turn has ended, by completion, rejection, abort or error."""
        with self._told_of(session):
            until(lambda: not self.busy(session), timeout_s, f"{session} idle")

    def final_text(self, session: str, timeout_s: float = 60) -> str:
        """Wait for the end of the turn and return the text of the last message."""
        self.wait_idle(session, timeout_s)
        parts = self.messages(session)[-1]["parts"]
        return "".join(part["text"] for part in parts if part["type"] == "text")

    @contextlib.contextmanager
    def _told_of(self, session: str) -> Iterator[None]:
        """Add the session's summary to the words of a wait that failed, once: to ask at each look costs the server."""
        try:
            yield
        except AssertionError as error:
            raise AssertionError(f"{error}; {self.summary(session)}") from None

    def summary(self, session: str) -> str:
        """Return one line about a session for the message of a failed wait."""
        parts = self.tool_parts(session)
        errors = [message["info"].get("error") for message in self.messages(session)]
        states = [f"{part['tool']}:{part['state']['status']}" for part in parts]
        return f"tools {states}, errors {[error for error in errors if error]}"
