"""A real OpenCode as the agent of a world: fewer faults can be demanded of it, and time runs as it does."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from hermes.sandbox.model_server import running_model
from tests.faults.world import World, created
from tests.harness.home import Home
from tests.harness.opencode import OpenCode
from tests.harness.processes import CuttableProxy, until
from tests.scenes.stage import asking

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.faults.asks import Json

KINDS: Final = (
    *("telegram 401", "telegram 409", "telegram 429", "telegram 500", "telegram cut", "telegram done, but cut"),
    *("telegram sent, but timed out", "an odd update", "updates again", "taps on old pages", "listener killed"),
    *("listener killed, started", "listener frozen", "a second listener", "hooks killed", "hooks frozen"),
    *("agent away", "agent frozen", "agent restarted", "events cut", "disk full", "entry damaged"),
    *("clock ahead", "clock back"),
)
ASKED_S: Final = 60.0


class RealAgent:
    """`opencode serve` behind a connection that can be cut, with the words of the scripted one."""

    keeps_permissions = False

    def __init__(self, opencode: OpenCode, proxy: CuttableProxy) -> None:
        self.manner = "real"
        self._opencode = opencode
        self._proxy = proxy
        self._asked: dict[str, Json] = {}
        self._last: dict[str, list[Any]] = {}
        self._acts: dict[str, Callable[..., Any]] = {
            "session": lambda title: opencode.session(title=title),
            "ask": self._ask,
            "ask_permission": self._ask_permission,
            "permit": self._permit,
            "listed": lambda directory: opencode.questions(),  # noqa: ARG005 (the scripted one has several)
            "answer": self._reply,
            "dismiss": lambda request_id: self._reply(request_id, None),
            "abort": opencode.abort,
            "delete": self._delete,
            "came_of": self._came_of,
            "away": proxy.cut,
            "back": proxy.restore,
            "cut_events": self._cut,
            "restart": opencode.restart,
            "request_count": lambda: 0,  # it does not count
        }

    @property
    def url(self) -> str:
        """The address that Hermes knows."""
        return self._proxy.url

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._opencode.proc.pid

    def table(self, name: str) -> Json:
        """Return its table of the configuration."""
        return {"name": name, "url": self.url}

    def do(self, act: str, **wish: Any) -> Any:
        """Do something; what came of it. Raises LookupError where it is impossible."""
        return self._acts[act](**wish)

    def close(self) -> None:
        """Whoever made it ends it."""

    def _ask(self, questions: list[Json], session: str) -> str:
        self._opencode.prompt(session, [asking(*questions)])
        (asked,) = self._opencode.wait_questions(session, 1)
        self._asked[asked["id"]] = asked
        return str(asked["id"])

    def _ask_permission(self, kind: str, patterns: list[str], always: list[str], session: str) -> str:
        """Let the model run a command: what it asks leave for, and what "always" covers, is OpenCode's own."""
        self._opencode.prompt(session, [{"tool": kind, "args": {"command": patterns[0], "description": "a step"}}])
        (asked,) = until(lambda: self._permissions(session), ASKED_S, f"a permission of {session}")
        self._asked[asked["id"]] = asked
        return str(asked["id"])

    def _permissions(self, session: str) -> list[Json]:
        listed: list[Json] = self._opencode.request("GET", "/permission").json()
        return [one for one in listed if one["sessionID"] == session]

    def _permit(self, request_id: str, reply: str) -> None:
        if not any(one["id"] == request_id for one in self._opencode.request("GET", "/permission").json()):
            raise LookupError(f"nothing is asked by {request_id}")
        self._opencode.request("POST", f"/permission/{request_id}/reply", body={"reply": reply})

    def _reply(self, request_id: str, answers: Any) -> None:
        if request_id not in {one["id"] for one in self._opencode.questions()}:
            raise LookupError(f"nothing is asked by {request_id}")
        if answers is None:
            self._opencode.reject(request_id)
        else:
            self._opencode.reply(request_id, answers)

    def _delete(self, session: str) -> None:
        """Delete a session, and remember what came of its asks: its record goes with it."""
        for request_id, asked in self._asked.items():
            if asked["sessionID"] == session:
                self._last[request_id] = self._came_of(request_id)
        self._opencode.delete_session(session)

    def _came_of(self, request_id: str) -> list[Any]:
        """What the tool call kept: only what took effect stands there."""
        if request_id in self._last:
            return self._last[request_id]
        asked = self._asked[request_id]
        if "permission" in asked:
            return self._came_of_permission(asked)
        for part in self._opencode.tool_parts(asked["sessionID"], "question"):
            if part["callID"] == asked["tool"]["callID"]:
                state = part["state"]
                if state["status"] == "completed":
                    return [state["metadata"]["answers"]]
                if state["status"] == "error" and "dismissed" in state["error"]:
                    return [None]
        return []

    def _came_of_permission(self, asked: Json) -> list[Any]:
        """What its tool came to. Nobody says "always" here: it would let all later commands of its kind go."""
        for part in self._opencode.tool_parts(asked["sessionID"], asked["permission"]):
            if part["callID"] == asked["tool"]["callID"]:
                state = part["state"]
                if state["status"] == "completed":
                    return [[["once"]]]
                if state["status"] == "error" and "rejected permission" in state["error"]:
                    why = state["error"].partition("following feedback: ")[2]
                    return [[["reject", why]]] if why else [[["reject"]]]
        return []

    def _cut(self) -> None:
        self._proxy.cut()
        self._proxy.restore()


@contextmanager
def with_real_opencode(root: Path, version: str) -> Iterator[World]:
    """Set up a world around an OpenCode of this version. Raises BinaryMissingError."""
    with (
        running_model() as model,
        OpenCode(Home(root / "desk", version, model.base_url)) as opencode,
        CuttableProxy(opencode.port) as proxy,
        created(
            root, agents={"real": RealAgent(opencode, proxy)}, directory=str(opencode.directory), pace=1.0
        ) as world,
    ):
        world.kinds = KINDS
        world.is_real = True
        yield world
