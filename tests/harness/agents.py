"""Scripted agent servers in processes of their own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Sequence

Json = dict[str, Any]


class AgentProcess:
    """A scripted agent server in a process of its own; `do` lets it, or its desk, do something."""

    keeps_permissions = False

    def __init__(self, manner: str, module: Sequence[str]) -> None:
        """`module` is the module that serves, and its arguments."""
        self.manner = manner
        command = [sys.executable, "-m", *module]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._url: str = self._told()["url"]

    @property
    def url(self) -> str:
        """Its address."""
        return self._url

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    def table(self, name: str) -> Json | None:
        """Return its table of the configuration."""
        return {"name": name, "url": self.url}

    def do(self, act: str, **wish: Any) -> Any:
        """Do something; what came of it. Raises LookupError where it is impossible."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": act, **wish}) + "\n")
        self.process.stdin.flush()
        told = self._told()
        if "error" in told:
            raise LookupError(told["error"])
        return told["done"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _told(self) -> Json:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the agent server {self.manner!r} ended by itself, with {self.process.wait()}"
        told: Json = json.loads(line)
        return told

    def close(self) -> None:
        """End it."""
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()
