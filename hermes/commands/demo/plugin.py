"""The plugin of an agent without a port, for one question: a small version of agents/opencode/plugin.js."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import subprocess

    from hermes.commands.demo.processes import Daemon
    from hermes.commands.demo.scenes import Scene
    from hermes.sandbox.opencode.world import AgentWorld

PATIENCE_S: Final = 10.0

Json = dict[str, Any]


class Plugin:
    """Starts a real hook that waits for the answer, applies the answer, and reports that through a second hook.

    It applies nothing until the event `here` is set, which means that the agent is not away.
    """

    def __init__(
        self, daemon: Daemon, world: AgentWorld, request: Json, scene: Scene, *, here: threading.Event
    ) -> None:
        self._daemon = daemon
        self._world = world
        self._request = request
        self._here = here
        self._context = {"title": scene.title, "rootTitle": "", "lastText": scene.say}
        self._hook = daemon.hook("--wait", "--stay")
        self._tell(self._hook, "question.asked", request)
        self._thread = threading.Thread(target=self._attend, name="plugin", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the hook."""
        self._hook.terminate()
        self._thread.join(PATIENCE_S)

    def _attend(self) -> None:
        hook = self._hook
        assert hook.stdin is not None  # noqa: S101 - they were opened as pipes
        assert hook.stdout is not None  # noqa: S101
        with hook, suppress(BrokenPipeError):
            line = hook.stdout.readline()
            self._here.wait()
            if line:
                self._apply(json.loads(line))
            hook.terminate()

    def _apply(self, answer: Json) -> None:
        ended = {"sessionID": self._request["sessionID"], "requestID": self._request["id"]}
        if answer["kind"] == "reply":
            self._world.reply(self._request["id"], tuple(tuple(words) for words in answer["answers"]))
            kind, told = "question.replied", ended | {"answers": answer["answers"]}
        else:
            self._world.reject(self._request["id"])
            kind, told = "question.rejected", ended
        with self._daemon.hook() as hook:
            self._tell(hook, kind, told)

    def _tell(self, hook: subprocess.Popen[bytes], kind: str, properties: Json) -> None:
        payload = {
            "type": kind,
            "properties": properties,
            "directory": self._world.sessions[self._request["sessionID"]].directory,
            "context": self._context,
        }
        assert hook.stdin is not None  # noqa: S101
        hook.stdin.write(json.dumps(payload).encode() + b"\n")
        hook.stdin.flush()
